/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What graph rules did to a model, for explanations: which application made or took a node, and the graph as
 * it was at a point of the log. Ids are never handed out twice, so a node is the same in every state that has
 * it. States are made when they are asked for, by performing the log up to there again.
 *
 * Rewrites that follow each other run together to their common end. What a rewrite had to decide about in the
 * end, and left, is in the graph at the end of its group; what others took from it is in the one at the
 * beginning. Rules that change nothing look at the graph of the plan.
 */
#ifndef CLEAVE_PARTITION_EXPLAIN_EXPLAIN_HISTORY_H
#define CLEAVE_PARTITION_EXPLAIN_EXPLAIN_HISTORY_H

#include "partition/explain/explain.h"
#include "partition/plan/plan.h"
#include "partition/rewrite/editor.h"

/* The graph after the first `step` edits. */
typedef struct cleave_history_state {
  size_t step;
  const cleave_graph_t *graph;
  cleave_graph_t *owned;         /* NULL: it is the plan's */
  cleave_explainer_t *explainer; /* NULL: nobody asked */
} cleave_history_state_t;

typedef struct cleave_history {
  const cleave_plan_t *plan;
  const cleave_edits_t *edits; /* NULL: no rule changed anything */
  cleave_fold_function_t fold; /* that the rules ran with */
  void *fold_context;
  uint32_t node_bound; /* of all states */
  uint32_t *made;      /* per node: group of edits that made it, or NONE */
  uint32_t *taken;     /* per node: group of edits that removed it, or NONE: also where folding did */
  CLEAVE_ARRAY(cleave_history_state_t *) states;
} cleave_history_t;

/* The plan must outlive the history. */
CLEAVE_MUST_USE cleave_status_t cleave_history_create(const cleave_plan_t *plan, cleave_fold_function_t fold,
                                                      void *fold_context, cleave_history_t **out_history,
                                                      cleave_error_t *error);
void cleave_history_destroy(cleave_history_t *history);
/* Explainers are of no use any more; graphs stay. */
void cleave_history_release_explainers(cleave_history_t *history);

/* The state at a step, which has an explainer. CLEAVE_ERROR_LIMIT where there would be too many. Borrowed. */
CLEAVE_MUST_USE cleave_status_t cleave_history_state(cleave_history_t *history, size_t step,
                                                     const cleave_history_state_t **out_state,
                                                     cleave_error_t *error);

/* Steps at which a rule of the plan began to look, and after which it did not look any more. */
size_t cleave_history_begin(const cleave_history_t *history, uint32_t rule);
size_t cleave_history_end(const cleave_history_t *history, uint32_t rule);

/* The rule (in plan->rules) that made a node, or removed it; NONE: it is the model's own; it is still there,
 * or became a constant. */
uint32_t cleave_history_maker(const cleave_history_t *history, cleave_node_t node);
uint32_t cleave_history_taker(const cleave_history_t *history, cleave_node_t node);

/* The step before the rule that took a node began to apply, or, where it made the node itself, before it took
 * it. For nodes that have a taker. */
size_t cleave_history_before_taken(const cleave_history_t *history, cleave_node_t node);
/* The same for the application that made a node: what it took was there. */
size_t cleave_history_before_made(const cleave_history_t *history, cleave_node_t node);

/* Nodes that one application took (those that `graph` has), or made (likewise), in order of their numbers. */
CLEAVE_MUST_USE cleave_status_t cleave_history_taken_by(const cleave_history_t *history, uint32_t group,
                                                        const cleave_graph_t *graph, cleave_arena_t *arena,
                                                        const cleave_node_t **out_nodes, uint32_t *out_count,
                                                        cleave_error_t *error);
CLEAVE_MUST_USE cleave_status_t cleave_history_made_by(const cleave_history_t *history, uint32_t group,
                                                       const cleave_graph_t *graph, cleave_arena_t *arena,
                                                       const cleave_node_t **out_nodes, uint32_t *out_count,
                                                       cleave_error_t *error);

/* Why a rule left what has these nodes, as the log says; NULL: it does not. */
const char *cleave_history_refusal(const cleave_history_t *history, uint32_t rule,
                                   const cleave_graph_t *graph, const cleave_node_t *nodes, uint32_t count);

/* " (made by rewrite 'x')", or nothing for nodes of the model. `history` may be NULL. */
void cleave_history_print_maker(const cleave_history_t *history, cleave_node_t node, cleave_text_t *text);

#endif /* CLEAVE_PARTITION_EXPLAIN_EXPLAIN_HISTORY_H */
