// SPDX-License-Identifier: Apache-2.0
/*
 * A graph with concrete input shapes: symbolic and unknown dimensions of inputs get their sizes, all other
 * types follow, integer shape chains and small constant computations become constants.
 */
#ifndef CLEAVE_RUNTIME_MODEL_BIND_H
#define CLEAVE_RUNTIME_MODEL_BIND_H

#include "graph/graph.h"

/* `inputs[k]` tells dtype, rank and dims for graph input k (data is not looked at); NULL, or `inputs` NULL:
 * what the graph says, which must be complete then, or become so by what the others say: by a symbol that
 * they share, or as an operand that is taken to have the shape of the others. CLEAVE_ERROR_SHAPE names the
 * input and dimension that is missing or contradicts. `keep_node`, by node index, may be NULL: nodes that
 * stay even if all their inputs are constant. *out_graph is NULL if the graph is bound as it is;
 * otherwise a copy with the same ids, which the original must outlive. Thread-safe. */
CLEAVE_STATUS cleave_graph_bind(const cleave_graph_t *graph, const cleave_tensor_view_t *const *inputs,
                                size_t input_count, const bool *keep_node, cleave_graph_t **out_graph,
                                cleave_error_t *error);

/* cleave_graph_bind for planning: negative dims stay open, and so do sizes that nothing tells. */
CLEAVE_STATUS cleave_graph_bind_partly(const cleave_graph_t *graph, const cleave_tensor_view_t *const *inputs,
                                       size_t input_count, const bool *keep_node, cleave_graph_t **out_graph,
                                       cleave_error_t *error);

/* Removes nodes that no output needs (unless `keep_node` is given), infers, folds integer chains, and
 * computes nodes whose inputs are all constant on the `cpu` backend: a few rounds, until nothing more comes
 * out of it. Random nodes stay, and so do nodes whose result would be large (more than 16 MiB and more than
 * twice their inputs), nodes that `cpu` does not run, and all that the graph's budget (fold_budget) has no
 * room for. In place; *out_count (may be NULL): nodes computed. */
CLEAVE_STATUS cleave_graph_simplify(cleave_graph_t *graph, const bool *keep_node, size_t keep_count,
                                    size_t *out_count, cleave_error_t *error);

/* Compares the shapes that the file declares for outputs (graph->declared) with those that were inferred:
 * another rank or size is CLEAVE_ERROR_SHAPE, and what inference left unknown is set in the graph, and in
 * `unfolded` (may be NULL), which has the same outputs. A size for what is symbolic is passed over: files
 * whose inputs were opened later declare it often. *out_more: something was set, so inference may find more.
 */
CLEAVE_STATUS cleave_graph_state_declared(cleave_graph_t *graph, cleave_graph_t *unfolded, bool *out_more,
                                          cleave_error_t *error);

/* Is there a node that cleave_graph_simplify might compute? */
bool cleave_graph_has_foldable(const cleave_graph_t *graph, const bool *keep_node, size_t keep_count);

#endif /* CLEAVE_RUNTIME_MODEL_BIND_H */
