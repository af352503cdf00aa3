// SPDX-License-Identifier: Apache-2.0
/* A copy of a graph to change freely: folding, binding of sizes, rewriting. Nodes, values and uses keep their
 * ids. */
#ifndef CLEAVE_GRAPH_CLONE_H
#define CLEAVE_GRAPH_CLONE_H

#include "graph/graph.h"

/* Copies records, lists and names; tensors are shared (retained), and so are the texts and lists of
 * attributes: the original must outlive the copy. Symbolic dimensions of inputs become the sizes
 * that cleave_dim_evaluate finds with `sizes` (by symbol number, negative if unbound), all others UNKNOWN;
 * the copy has no symbols of its own. The original is only read: several threads may copy it at once. */
CLEAVE_STATUS cleave_graph_clone(const cleave_graph_t *graph, const int64_t *sizes, size_t size_count,
                                 cleave_graph_t **out_graph, cleave_error_t *error);

/* cleave_graph_clone, but symbolic dimensions that have no size yet stay what they are. */
CLEAVE_STATUS cleave_graph_clone_partly(const cleave_graph_t *graph, const int64_t *sizes, size_t size_count,
                                        cleave_graph_t **out_graph, cleave_error_t *error);

/* Copies the graph with all symbols as they are, and custom operators, to be rewritten. It shares tensors,
 * texts and lists of attributes, and entries of custom operators: the original must outlive the copy. */
CLEAVE_STATUS cleave_graph_copy(const cleave_graph_t *graph, cleave_graph_t **out_graph,
                                cleave_error_t *error);

#endif /* CLEAVE_GRAPH_CLONE_H */
