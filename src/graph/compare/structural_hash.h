// SPDX-License-Identifier: Apache-2.0
/* Structural hash: operators, attributes, wiring, types; not names, ids or the content of large constants. */
#ifndef CLEAVE_GRAPH_COMPARE_STRUCTURAL_HASH_H
#define CLEAVE_GRAPH_COMPARE_STRUCTURAL_HASH_H

#include "graph/graph.h"

/* Equal for graphs that differ only in names and in the order in which independent nodes were made. */
CLEAVE_STATUS cleave_graph_hash(const cleave_graph_t *graph, uint64_t *out_hash, cleave_error_t *error);

/* Hash of a node's operator and attributes alone, starting from `hash`. */
uint64_t cleave_node_hash(const cleave_graph_t *graph, cleave_node_t node, uint64_t hash);

#endif /* CLEAVE_GRAPH_COMPARE_STRUCTURAL_HASH_H */
