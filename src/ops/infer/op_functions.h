// SPDX-License-Identifier: Apache-2.0
/* The functions that compute types and costs of an operator. */
#ifndef CLEAVE_OPS_INFER_OP_FUNCTIONS_H
#define CLEAVE_OPS_INFER_OP_FUNCTIONS_H

#include "ops/infer.h"

typedef struct cleave_op_functions {
  /* Shapes and dtypes of outputs from inputs, and back (ops/context/infer_context.h); NULL: nothing is known.
   */
  cleave_status_t (*infer)(cleave_infer_t *infer, cleave_error_t *error);
  /* Floating-point operations of a node with all shapes known; NULL: none are counted. */
  double (*flops)(const cleave_graph_t *graph, uint32_t node);
} cleave_op_functions_t;

/* Never NULL. */
const cleave_op_functions_t *cleave_op_functions(const cleave_op_t *op);

#endif /* CLEAVE_OPS_INFER_OP_FUNCTIONS_H */
