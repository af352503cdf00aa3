// SPDX-License-Identifier: Apache-2.0
/*
 * Graph rules, which run before any fuse or region rule. All rewrites and passes of all rulesets work on one
 * copy of the graph: rulesets in order, in each by priority, then in the order of the file.
 *
 * Consecutive rewrites run together until none of them matches anywhere: each until it matches nowhere, then
 * again if later ones changed something. Only nodes near a change are tried again. After each rule that
 * changed something, types are inferred and constants are folded. A pass runs once.
 *
 * Rules that would never terminate are errors that name the rules: a place that returns to a former state, a
 * substitute that its own rule matches again and again, more changes than any graph of that size needs. After
 * an error the given graph is unchanged, and there is no result. A rewrite that fails at one match leaves
 * that match as it is, and the reason is recorded.
 */
#ifndef CLEAVE_PARTITION_REWRITE_TRANSFORM_H
#define CLEAVE_PARTITION_REWRITE_TRANSFORM_H

#include "partition/plan/plan.h"
#include "partition/rewrite/editor.h"

typedef struct cleave_transform_options {
  cleave_fold_function_t fold; /* as in the editor */
  void *fold_context;
  /* May this rule take these nodes of the present graph? For passes there are no nodes. If it is NULL, the
   * answer is yes. */
  bool (*allow)(void *context, const cleave_graph_t *graph, const cleave_plan_rule_t *rule,
                const cleave_node_t *nodes, uint32_t node_count);
  void *allow_context;
  /* If set, a rewrite's mistake at one match (an error in `where` or `replace`, a substitute that does not
   * fit) ends everything with that error; if not, the match stays as it is, and the mistake is recorded as a
   * refusal. */
  bool stops_at_mistakes;
} cleave_transform_options_t;

typedef struct cleave_transformation {
  cleave_graph_t *graph; /* NULL: no rule changed anything. The graph that was given must outlive it */
  cleave_edits_t *edits; /* what was done, and what was left; NULL: there are no graph rules */
} cleave_transformation_t;

/* `options` may be NULL. Nothing of `graph` changes; it may be shared. */
CLEAVE_STATUS cleave_transform(const cleave_graph_t *graph, const cleave_ruleset_t *const *rulesets,
                               uint32_t ruleset_count, const cleave_transform_options_t *options,
                               cleave_transformation_t *out_transformation, cleave_error_t *error);
void cleave_transformation_deinit(cleave_transformation_t *transformation);

/* Moves the graph, the log and the counts of the rules into a plan for the transformed `source`. A note says
 * which outputs have another type than in `source`. If it fails, nothing has moved. */
CLEAVE_STATUS cleave_transformation_move(cleave_transformation_t *transformation,
                                         const cleave_graph_t *source, cleave_plan_t *plan,
                                         cleave_error_t *error);

/* Performs the steps of a log on a copy of a graph. CLEAVE_ERROR_INVALID_ARGUMENT if the log is about another
 * graph, if a step is not possible, or if the result differs. */
CLEAVE_STATUS cleave_transform_replay(const cleave_graph_t *graph, const cleave_edits_t *edits,
                                      const cleave_transform_options_t *options, cleave_graph_t **out_graph,
                                      cleave_error_t *error);

#endif /* CLEAVE_PARTITION_REWRITE_TRANSFORM_H */
