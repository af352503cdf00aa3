// SPDX-License-Identifier: Apache-2.0
// Inputs and outputs of a set of nodes, each value once: the one place that decides what crosses a boundary.

#include <string.h>

#include "partition/grow/partitioner.h"

static bool is_inside(const cleave_partitioner_t *partitioner, cleave_node_t node, const uint32_t *member_of,
                      uint32_t member) {
  return cleave_node_exists(node) && member_of[partitioner->contraction->positions[node.index]] == member;
}

cleave_status_t cleave_partitioner_find_boundary(cleave_partitioner_t *partitioner, const uint32_t *positions,
                                                 uint32_t count, const uint32_t *member_of, uint32_t member,
                                                 cleave_error_t *error) {
  const cleave_graph_t *graph = partitioner->graph;
  partitioner->inputs.count = 0;
  partitioner->outputs.count = 0;
  if (partitioner->boundary_count == UINT32_MAX) {
    memset(partitioner->value_marks, 0,
           (size_t)cleave_graph_value_bound(graph) * sizeof *partitioner->value_marks);
    partitioner->boundary_count = 0;
  }
  uint32_t seen = ++partitioner->boundary_count;
  for (uint32_t k = 0; k < count; k++) {
    cleave_node_t node = partitioner->contraction->nodes[positions[k]];
    for (uint32_t i = 0; i < cleave_node_input_count(graph, node); i++) {
      cleave_value_t value = cleave_node_input(graph, node, i);
      if (!cleave_value_exists(value) || partitioner->value_marks[value.index] == seen ||
          cleave_value_is_constant(graph, value) ||
          is_inside(partitioner, cleave_value_producer(graph, value), member_of, member)) {
        continue;
      }
      partitioner->value_marks[value.index] = seen;
      CLEAVE_ARRAY_PUSH(&partitioner->inputs, value, error);
    }
    for (uint32_t o = 0; o < cleave_node_output_count(graph, node); o++) {
      cleave_value_t value = cleave_node_output(graph, node, o);
      cleave_use_t use = cleave_value_first_use(graph, value);
      while (cleave_use_exists(use) &&
             is_inside(partitioner, cleave_use_node(graph, use), member_of, member)) {
        use = cleave_use_next(graph, use);
      }
      if (cleave_use_exists(use)) {
        CLEAVE_ARRAY_PUSH(&partitioner->outputs, value, error);
      }
    }
  }
  return CLEAVE_OK;
}
