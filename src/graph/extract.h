// SPDX-License-Identifier: Apache-2.0
/* A set of nodes as a graph of its own: to run a region alone, to write it to a file. */
#ifndef CLEAVE_GRAPH_EXTRACT_H
#define CLEAVE_GRAPH_EXTRACT_H

#include "graph/graph.h"

typedef struct cleave_extract_request {
  const cleave_node_t *nodes; /* in topological order */
  uint32_t node_count;
  const cleave_value_t *inputs; /* become graph inputs, with their types; symbols become unknown sizes */
  uint32_t input_count;
  const cleave_value_t *outputs; /* become graph outputs */
  uint32_t output_count;
} cleave_extract_request_t;

/* Makes a new graph of the nodes, the constants that they read (shared), and inputs and outputs in the given
 * order, under their names. Every value that a node reads is an input, a constant, or made by an earlier
 * node: CLEAVE_ERROR_INVALID_ARGUMENT otherwise. The original must outlive it if it has custom operators.
 */
CLEAVE_STATUS cleave_graph_extract(const cleave_graph_t *graph, const cleave_extract_request_t *request,
                                   cleave_graph_t **out_graph, cleave_error_t *error);

/* Adds all nodes of `graph` to another one, `to`, where `inputs` (as many as it has) take the place of its
 * inputs; `out_outputs` gets the values of its outputs. The original must outlive `to` if it has custom
 * operators. */
CLEAVE_STATUS cleave_graph_insert(const cleave_graph_t *graph, const cleave_value_t *inputs,
                                  cleave_graph_t *to, cleave_value_t *out_outputs, cleave_error_t *error);

#endif /* CLEAVE_GRAPH_EXTRACT_H */
