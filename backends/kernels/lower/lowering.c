// SPDX-License-Identifier: Apache-2.0
// Operands and results of the nodes that become values of a program. Intermediate values of float16 and
// bfloat16 keep the digits of float32.
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

static cleave_status_t load(lowering_t *lowering, uint32_t value, const int8_t *axes, uint32_t *out_value) {
  cleave_dtype_t dtype = lowering->region->values[value].tensor.dtype;
  uint32_t input = 0;
  KERNEL_TRY(kernel_program_input(lowering->program, dtype, axes, &input, lowering->message));
  lowering->lowered->inputs[input] = value;
  return kernel_program_load(lowering->program, input, out_value, lowering->message);
}

/* Loads a value from outside: its axes are the last ones of the space, as ONNX broadcasts. */
static cleave_status_t load_operand(lowering_t *lowering, const cleave_node_view_t *node, uint32_t value,
                                    uint32_t *out_value) {
  const cleave_tensor_view_t *tensor = &lowering->region->values[value].tensor;
  if (tensor->rank > lowering->rank) {
    return kernel_lower_refuse(node, "an operand has more dimensions than the result", lowering->message);
  }
  int8_t axes[CLEAVE_MAX_RANK] = {0};
  int32_t skipped = lowering->rank - tensor->rank;
  for (int32_t d = 0; d < lowering->rank; d++) {
    axes[d] = (int8_t)(d < skipped ? -1 : d - skipped);
    if (d >= skipped && tensor->dims[d - skipped] != 1 && tensor->dims[d - skipped] != lowering->dims[d]) {
      return kernel_lower_refuse(node, "an operand does not broadcast to the result", lowering->message);
    }
  }
  return load(lowering, value, axes, out_value);
}

cleave_status_t kernel_lower_vector(lowering_t *lowering, const cleave_node_view_t *node, uint32_t index,
                                    int32_t axis, uint32_t *out_value) {
  const cleave_value_view_t *view = cleave_view_input(lowering->region, node, index);
  if (view == NULL || view->tensor.rank != 1 || view->tensor.dims[0] != lowering->dims[axis] ||
      view->producer != CLEAVE_INDEX_NONE) {
    return kernel_lower_refuse(node, "an operand is not a vector from outside", lowering->message);
  }
  int8_t axes[CLEAVE_MAX_RANK];
  for (int32_t d = 0; d < CLEAVE_MAX_RANK; d++) {
    axes[d] = (int8_t)(d == axis ? 0 : -1);
  }
  return load(lowering, node->inputs[index], axes, out_value);
}

cleave_status_t kernel_lower_operand(lowering_t *lowering, const cleave_node_view_t *node, uint32_t index,
                                     uint32_t *out_value) {
  const cleave_value_view_t *view = cleave_view_input(lowering->region, node, index);
  if (view == NULL) {
    return kernel_lower_refuse(node, "an operand is missing", lowering->message);
  }
  uint32_t value = node->inputs[index];
  if (lowering->values[value] == CLEAVE_INDEX_NONE) {
    const cleave_tensor_view_t *tensor = &view->tensor;
    bool is_number = tensor->data != NULL && tensor->storage == CLEAVE_STORAGE_DENSE &&
                     cleave_view_element_count(tensor) == 1 && cpu_dtype_is_plain(tensor->dtype);
    uint64_t element = 0;
    if (is_number) {
      memcpy(&element, tensor->data, cleave_dtype_size(tensor->dtype));
      KERNEL_TRY(kernel_program_constant(lowering->program, tensor->dtype, &element, &lowering->values[value],
                                         lowering->message));
    } else {
      KERNEL_TRY(load_operand(lowering, node, value, &lowering->values[value]));
    }
  }
  *out_value = lowering->values[value];
  /* Axes that were dropped would be missing where operands are lined up by their last axes. */
  if (lowering->program->values[*out_value].per_row && view->tensor.rank != lowering->rank) {
    return kernel_lower_refuse(node, "it reads a reduction that does not keep its axes", lowering->message);
  }
  return CLEAVE_OK;
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
