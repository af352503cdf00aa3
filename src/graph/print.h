// SPDX-License-Identifier: Apache-2.0
/* A graph as text, one node a line: `%y = Conv(%x, %w) {strides = [2, 2]} : float32[1, 64, 112, 112]`. */
#ifndef CLEAVE_GRAPH_PRINT_H
#define CLEAVE_GRAPH_PRINT_H

#include "graph/graph.h"

CLEAVE_STATUS cleave_graph_print(const cleave_graph_t *graph, cleave_text_t *text, cleave_error_t *error);
void cleave_node_print(const cleave_graph_t *graph, cleave_node_t node, cleave_text_t *text);
void cleave_attribute_print(const cleave_attribute_t *attribute, cleave_text_t *text);
/* "%name", or "%12" if it has none. */
void cleave_value_print(const cleave_graph_t *graph, cleave_value_t value, cleave_text_t *text);
/* "float32[1, 3, N, 224]". */
void cleave_value_type_print(const cleave_graph_t *graph, cleave_value_t value, cleave_text_t *text);

/* Why the size of a value is not known, and what gives it: "size N of 'x' is open (--shape N=SIZE gives it)".
 */
void cleave_value_describe_open(const cleave_graph_t *graph, cleave_value_t value, cleave_text_t *text);

#endif /* CLEAVE_GRAPH_PRINT_H */
