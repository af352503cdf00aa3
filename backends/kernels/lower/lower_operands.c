// SPDX-License-Identifier: Apache-2.0
// Operands of nodes as values of a program: computed before, numbers, or loads of what comes from outside.
#include <string.h>

#include "kernels/convert.h"
#include "lowering.h"

/* Cuts axis 1 of the space, with what a view has along it, into groups: one axis more. */
static void split_groups(const lowering_t *lowering, kernel_view_t *view, int8_t *axes) {
  int8_t own = axes[1];
  for (int32_t d = lowering->rank; d > 1; d--) {
    axes[d] = axes[d - 1];
  }
  for (int32_t d = 0; d <= lowering->rank; d++) {
    axes[d] = (int8_t)(axes[d] + (own >= 0 && axes[d] >= own && d > 1 ? 1 : 0));
  }
  if (own < 0) {
    return;
  }
  for (int32_t d = view->rank++; d > own; d--) {
    view->dims[d] = view->dims[d - 1];
    view->strides[d] = view->strides[d - 1];
  }
  int64_t size = view->dims[own];
  view->dims[own] = size == 1 ? 1 : lowering->groups;
  view->dims[own + 1] = size == 1 ? 1 : size / lowering->groups;
  view->strides[own] *= view->dims[own + 1];
}

static cleave_status_t load(lowering_t *lowering, uint32_t source, kernel_view_t *view, int8_t *axes,
                            uint32_t *out_value) {
  cleave_dtype_t dtype = lowering->region->values[source].tensor.dtype;
  uint32_t input = 0;
  if (lowering->groups > 0) {
    split_groups(lowering, view, axes);
  }
  KERNEL_TRY(kernel_program_input(lowering->program, dtype, axes, &input, lowering->message));
  lowering->lowered->inputs[input] = source;
  lowering->lowered->views[input] = *view;
  return kernel_program_load(lowering->program, input, out_value, lowering->message);
}

/* Its axes are the last ones of the space, as ONNX broadcasts. */
cleave_status_t kernel_lower_load(lowering_t *lowering, const cleave_node_view_t *node, uint32_t value,
                                  uint32_t *out_value) {
  kernel_view_t view;
  uint32_t source = value;
  KERNEL_TRY(kernel_lower_view(lowering, value, &source, &view));
  if (view.rank > lowering->rank) {
    return kernel_lower_refuse(node, "an operand has more dimensions than the result", lowering->message);
  }
  int8_t axes[CLEAVE_MAX_RANK] = {0};
  int32_t skipped = lowering->rank - view.rank;
  for (int32_t d = 0; d < lowering->rank; d++) {
    axes[d] = (int8_t)(d < skipped ? -1 : d - skipped);
    if (d >= skipped && view.dims[d - skipped] != 1 && view.dims[d - skipped] != lowering->dims[d]) {
      return kernel_lower_refuse(node, "an operand does not broadcast to the result", lowering->message);
    }
  }
  return load(lowering, source, &view, axes, out_value);
}

cleave_status_t kernel_lower_vector(lowering_t *lowering, const cleave_node_view_t *node, uint32_t index,
                                    int32_t axis, uint32_t *out_value) {
  const cleave_value_view_t *value = cleave_view_input(lowering->region, node, index);
  if (value == NULL || value->tensor.rank != 1 || value->tensor.dims[0] != lowering->dims[axis] ||
      (value->producer != CLEAVE_INDEX_NONE && lowering->inside[value->producer])) {
    return kernel_lower_refuse(node, "an operand is not a vector from outside", lowering->message);
  }
  kernel_view_t view;
  int8_t axes[CLEAVE_MAX_RANK];
  kernel_view_whole(&value->tensor, &view);
  for (int32_t d = 0; d < CLEAVE_MAX_RANK; d++) {
    axes[d] = (int8_t)(d == axis ? 0 : -1);
  }
  return load(lowering, node->inputs[index], &view, axes, out_value);
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
      KERNEL_TRY(kernel_lower_load(lowering, node, value, &lowering->values[value]));
    }
  }
  *out_value = lowering->values[value];
  /* Axes that were dropped would be missing where operands are lined up by their last axes. */
  if (lowering->program->values[*out_value].per_row && view->tensor.rank != lowering->rank) {
    return kernel_lower_refuse(node, "it reads a reduction that does not keep its axes", lowering->message);
  }
  return CLEAVE_OK;
}
