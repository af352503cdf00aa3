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

static cleave_status_t add_input(lowering_t *lowering, uint32_t source, kernel_view_t *view, int8_t *axes,
                                 uint32_t *out_input) {
  cleave_dtype_t dtype = lowering->region->values[source].tensor.dtype;
  if (lowering->groups > 0) {
    split_groups(lowering, view, axes);
  }
  KERNEL_TRY(kernel_program_input(lowering->program, dtype, axes, out_input, lowering->message));
  lowering->lowered->inputs[*out_input] = source;
  lowering->lowered->views[*out_input] = *view;
  return CLEAVE_OK;
}

static cleave_status_t load(lowering_t *lowering, uint32_t source, kernel_view_t *view, int8_t *axes,
                            uint32_t *out_value) {
  uint32_t input = 0;
  KERNEL_TRY(add_input(lowering, source, view, axes, &input));
  return kernel_program_load(lowering->program, input, out_value, lowering->message);
}

/* An input of the Concat `node` as a part of its load, along axis `along` of the results. */
static cleave_status_t add_part(lowering_t *lowering, const cleave_node_view_t *node, uint32_t index,
                                int32_t along, uint32_t *out_input) {
  const cleave_value_view_t *part = cleave_view_input(lowering->region, node, index);
  kernel_view_t view;
  uint32_t source = 0;
  int8_t axes[CLEAVE_MAX_RANK] = {0};
  if (part == NULL || (part->producer != CLEAVE_INDEX_NONE && lowering->inside[part->producer] &&
                       lowering->viewers[node->inputs[index]] == CLEAVE_INDEX_NONE)) {
    return kernel_lower_refuse(node, "its operand is missing, or computed inside", lowering->message);
  }
  KERNEL_TRY(kernel_lower_view(lowering, node->inputs[index], &source, &view));
  int32_t skipped = lowering->rank - part->tensor.rank;
  for (int32_t d = 0; d < lowering->rank; d++) {
    axes[d] = (int8_t)(d < skipped ? -1 : d - skipped);
    if (d >= skipped && d != along && view.dims[d - skipped] != 1 &&
        view.dims[d - skipped] != lowering->dims[d]) {
      return kernel_lower_refuse(node, "an operand does not broadcast to the result", lowering->message);
    }
  }
  return add_input(lowering, source, &view, axes, out_input);
}

/* Loads what a Concat joins as one value. */
static cleave_status_t load_joined(lowering_t *lowering, const cleave_node_view_t *node,
                                   uint32_t *out_value) {
  const cleave_value_view_t *result = cleave_view_output(lowering->region, node, 0);
  int64_t along = cleave_view_int(node, "axis", 0);
  if (result == NULL || result->tensor.rank > lowering->rank || along < -result->tensor.rank ||
      along >= result->tensor.rank) {
    return kernel_lower_refuse(node, "an operand has more dimensions than the result, or not the axis",
                               lowering->message);
  }
  int32_t axis = (int32_t)(along < 0 ? along + result->tensor.rank : along);
  int64_t size = 0;
  uint32_t first = 0;
  int32_t in_space = axis + lowering->rank - result->tensor.rank;
  if (lowering->groups > 0 && in_space == 1) {
    return kernel_lower_refuse(node, "it joins the channels that are in groups", lowering->message);
  }
  for (uint32_t k = 0; k < node->input_count; k++) {
    const cleave_value_view_t *part = cleave_view_input(lowering->region, node, k);
    uint32_t input = 0;
    if (part == NULL || part->tensor.rank != result->tensor.rank) {
      return kernel_lower_refuse(node, "its operands have different ranks", lowering->message);
    }
    size += part->tensor.dims[axis];
    KERNEL_TRY(add_part(lowering, node, k, in_space, &input));
    first = k == 0 ? input : first;
  }
  if (size != lowering->dims[in_space]) {
    return kernel_lower_refuse(node, "it is repeated along the axis of its parts", lowering->message);
  }
  in_space += lowering->groups > 0 && in_space > 1 ? 1 : 0;
  return node->input_count == 1 ? kernel_program_load(lowering->program, first, out_value, lowering->message)
                                : kernel_program_join(lowering->program, first, node->input_count, in_space,
                                                      out_value, lowering->message);
}

/* Its axes are the last ones of the space, as ONNX broadcasts. */
cleave_status_t kernel_lower_load(lowering_t *lowering, const cleave_node_view_t *node, uint32_t value,
                                  uint32_t *out_value) {
  kernel_view_t view;
  uint32_t source = value;
  uint32_t viewer = lowering->viewers[value];
  if (viewer != CLEAVE_INDEX_NONE && kernel_lower_is_join(&lowering->region->nodes[viewer])) {
    return load_joined(lowering, &lowering->region->nodes[viewer], out_value);
  }
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
