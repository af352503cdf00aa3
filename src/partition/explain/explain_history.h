// SPDX-License-Identifier: Apache-2.0
/*
 * The history of a model under graph rules, for explanations: which application made or took a node, and the
 * graph as it was at a point of the log. Ids are never handed out twice, so a node is the same in every state
 * that has it. States are made on demand, by replaying the log up to that point.
 *
 * Consecutive rewrites run together until none matches anywhere. Matches that a rewrite left are in the graph
 * at the end of its group; those that other rules took from it are in the graph at the beginning. Rules that
 * do not change the graph see the graph of the plan.
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
  cleave_explainer_t *explainer; /* NULL: none has been made */
} cleave_history_state_t;

typedef struct cleave_history {
  const cleave_plan_t *plan;
  const cleave_edits_t *edits; /* NULL: no rule changed anything */
  cleave_fold_function_t fold; /* that the rules ran with */
  void *fold_context;
  uint32_t node_bound; /* of all states */
  uint32_t *made;      /* per node: group of edits that made it, or NONE */
  uint32_t *taken;     /* per node: group of edits that removed it; NONE if none did, or if folding did */
  CLEAVE_ARRAY(cleave_history_state_t *) states;
} cleave_history_t;

/* The plan must outlive the history. */
CLEAVE_STATUS cleave_history_create(const cleave_plan_t *plan, cleave_fold_function_t fold,
                                    void *fold_context, cleave_history_t **out_history,
                                    cleave_error_t *error);
void cleave_history_destroy(cleave_history_t *history);
/* Destroys the explainers; the graphs stay. */
void cleave_history_release_explainers(cleave_history_t *history);

/* The state at a step, with an explainer. CLEAVE_ERROR_LIMIT if there would be too many states. Borrowed. */
CLEAVE_STATUS cleave_history_state(cleave_history_t *history, size_t step,
                                   const cleave_history_state_t **out_state, cleave_error_t *error);

/* The step at which a rule of the plan began to run, and the step at which it ended. */
size_t cleave_history_begin(const cleave_history_t *history, uint32_t rule);
size_t cleave_history_end(const cleave_history_t *history, uint32_t rule);

/* The rule (in plan->rules) that made a node, or NONE for nodes of the model; the rule that removed it, or
 * NONE for nodes that are live or were folded. */
uint32_t cleave_history_maker(const cleave_history_t *history, cleave_node_t node);
uint32_t cleave_history_taker(const cleave_history_t *history, cleave_node_t node);

/* The step before the first application of the rule that took a node; if the rule made the node itself, the
 * step before it took the node. For nodes that have a taker. */
size_t cleave_history_before_taken(const cleave_history_t *history, cleave_node_t node);
/* The step before the application that made a node, at which the nodes that it took were live. */
size_t cleave_history_before_made(const cleave_history_t *history, cleave_node_t node);

/* Nodes that one application took (those that `graph` has), or made (likewise), in order of their numbers. */
CLEAVE_STATUS cleave_history_taken_by(const cleave_history_t *history, uint32_t group,
                                      const cleave_graph_t *graph, cleave_arena_t *arena,
                                      const cleave_node_t **out_nodes, uint32_t *out_count,
                                      cleave_error_t *error);
CLEAVE_STATUS cleave_history_made_by(const cleave_history_t *history, uint32_t group,
                                     const cleave_graph_t *graph, cleave_arena_t *arena,
                                     const cleave_node_t **out_nodes, uint32_t *out_count,
                                     cleave_error_t *error);

/* The reason in the log why a rule left the match with these nodes, or NULL. */
const char *cleave_history_refusal(const cleave_history_t *history, uint32_t rule,
                                   const cleave_graph_t *graph, const cleave_node_t *nodes, uint32_t count);

/* " (made by rewrite 'x')", or nothing for nodes of the model. `history` may be NULL. */
void cleave_history_print_maker(const cleave_history_t *history, cleave_node_t node, cleave_text_t *text);

#endif /* CLEAVE_PARTITION_EXPLAIN_EXPLAIN_HISTORY_H */
