// SPDX-License-Identifier: Apache-2.0
// Refusals, shorthands, and results of the nodes that become values of a program. Intermediate values of
// float16 and bfloat16 keep the digits of float32.
#include "lowering.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/convert.h"

cleave_status_t kernel_lower_refuse(const cleave_node_view_t *node, const char *what,
                                    cleave_message_t *message) {
  return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "%s '%.64s': %s", node->op,
                     node->name == NULL ? "" : node->name, what);
}

cleave_status_t kernel_lower_unary(lowering_t *lowering, kernel_op_t op, uint32_t x, uint32_t *out_value) {
  const kernel_op_info_t *info = kernel_op_info(op);
  return kernel_program_apply(lowering->program, op, &x, info->alpha, info->beta, out_value,
                              lowering->message);
}

cleave_status_t kernel_lower_binary(lowering_t *lowering, kernel_op_t op, uint32_t x, uint32_t y,
                                    uint32_t *out_value) {
  const uint32_t operands[] = {x, y};
  return kernel_program_apply(lowering->program, op, operands, 0, 0, out_value, lowering->message);
}

cleave_status_t kernel_lower_number(lowering_t *lowering, cleave_dtype_t dtype, double number,
                                    uint32_t *out_value) {
  uint64_t element = 0;
  cpu_convert(CLEAVE_DTYPE_F64, &number, dtype, &element, 1);
  return kernel_program_constant(lowering->program, dtype, &element, out_value, lowering->message);
}

/* Whether a tensor has the shape of the space, or of the rows: with sizes of 1 for what is reduced, or
 * without. */
static bool has_shape(const lowering_t *lowering, const cleave_tensor_view_t *tensor, bool of_rows) {
  if (tensor->rank != lowering->rank && !(of_rows && tensor->rank == lowering->rank - lowering->reduced)) {
    return false;
  }
  for (int32_t d = 0; d < tensor->rank; d++) {
    bool is_reduced = of_rows && d >= lowering->rank - lowering->reduced;
    if (tensor->dims[d] != (is_reduced ? 1 : lowering->dims[d])) {
      return false;
    }
  }
  return true;
}

cleave_status_t kernel_lower_result(lowering_t *lowering, const cleave_node_view_t *node, uint32_t index,
                                    uint32_t value) {
  const cleave_value_view_t *view = cleave_view_output(lowering->region, node, index);
  if (view == NULL) {
    return CLEAVE_OK;
  }
  const kernel_value_t *self = &lowering->program->values[value];
  if (kernel_compute_dtype(view->tensor.dtype) != self->dtype) {
    return kernel_lower_refuse(node, "the dtype of the result is another than that of the operands",
                               lowering->message);
  }
  if (!has_shape(lowering, &view->tensor, self->per_row)) {
    return kernel_lower_refuse(node, "the result has another shape than the rest", lowering->message);
  }
  lowering->values[node->outputs[index]] = value;
  return CLEAVE_OK;
}
