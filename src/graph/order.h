// SPDX-License-Identifier: Apache-2.0
/* Topological order of the live nodes. */
#ifndef CLEAVE_GRAPH_ORDER_H
#define CLEAVE_GRAPH_ORDER_H

#include "graph/graph.h"

/* Writes the live nodes into `order` (room for live_node_count), producers first; among nodes that are ready,
 * the one with the lowest index first, so that a graph built in order keeps its order. `position`, if not
 * NULL (room for cleave_graph_node_bound), gets each node's place; CLEAVE_INDEX_NONE for removed ones.
 * CLEAVE_ERROR_FORMAT names a node on a cycle. Linear, but for a heap of ready nodes if the graph is out
 * of order. */
CLEAVE_STATUS cleave_graph_topological_order(const cleave_graph_t *graph, cleave_node_t *order,
                                             uint32_t *position, cleave_error_t *error);

#endif /* CLEAVE_GRAPH_ORDER_H */
