// SPDX-License-Identifier: Apache-2.0
// Floating-point operations of one node, from the types that inference left in the graph.

#include "ops/ops.h"

double cleave_op_flops(const cleave_graph_t *graph, cleave_node_t node) {
  const cleave_op_t *op = cleave_node_op(graph, node);
  return op->flops != NULL ? op->flops(graph, node.index) : 0.0;
}
