// SPDX-License-Identifier: Apache-2.0
// The only place where the operators of op_list.inc meet their functions. Operators of libraries are inferred
// by the library; of operators that nobody brought nothing is known.

#include "ops/infer/op_functions.h"

#include <math.h>

#include "ops/context/infer_context.h"

static const cleave_op_functions_t FUNCTIONS[CLEAVE_OP_COUNT] = {
#define CLEAVE_OP(name, domain, since, inputs, outputs, attributes, infer, flops, flags) \
  {cleave_infer_##infer, cleave_flops_##flops},
#include "ops/op_list.inc"
#undef CLEAVE_OP
};

const cleave_op_functions_t *cleave_op_functions(const cleave_op_t *op) {
  static const cleave_op_functions_t OF_LIBRARY = {cleave_infer_custom, NULL};
  static const cleave_op_functions_t UNKNOWN = {NULL, NULL};
  if (op->id != CLEAVE_OP_ID_CUSTOM) {
    return &FUNCTIONS[op->id];
  }
  return cleave_op_has_schema(op) ? &OF_LIBRARY : &UNKNOWN;
}

double cleave_op_flops(const cleave_graph_t *graph, cleave_node_t node) {
  const cleave_op_functions_t *functions = cleave_op_functions(cleave_node_op(graph, node));
  double flops = functions->flops != NULL ? functions->flops(graph, node.index) : 0.0;
  return isnan(flops) ? -1.0 : flops;
}
