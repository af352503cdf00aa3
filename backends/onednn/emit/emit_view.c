// SPDX-License-Identifier: Apache-2.0
// Views cost nothing if strides can say them: reshapes of plain tensors, transpositions, slices with any
// positive step, one row of a Gather.
#include "onednn/emit/emit.h"

#include "onednn/units/windows.h"

cleave_status_t onednn_emit_reshape(onednn_plan_t *plan, const onednn_kernel_t *kernel) {
  onednn_tensor_t source;
  ONEDNN_TRY(onednn_plan_stored(plan, kernel->source, &source));
  return onednn_plan_bind(plan, kernel->output, &source);
}

cleave_status_t onednn_emit_transpose(onednn_plan_t *plan, const onednn_kernel_t *kernel) {
  const cleave_node_view_t *node = &plan->region->nodes[kernel->node];
  onednn_tensor_t source;
  int32_t order[CLEAVE_MAX_RANK];
  ONEDNN_TRY(onednn_plan_stored(plan, kernel->source, &source));
  onednn_tensor_t view = source;
  if (!onednn_transpose_order(node, source.layout.ndims, order)) {
    return kernel_fail(plan->message, CLEAVE_ERROR_UNSUPPORTED,
                       "Transpose '%s': its perm is not a permutation", onednn_node_name(node));
  }
  if (!onednn_layout_transpose(&source.layout, order, &view.layout)) {
    onednn_tensor_t plain;
    ONEDNN_TRY(onednn_plan_plain(plan, &source, &plain));
    view = plain;
    if (!onednn_layout_transpose(&plain.layout, order, &view.layout)) {
      return kernel_fail(plan->message, CLEAVE_ERROR_INTERNAL, "Transpose '%s': no strides for it",
                         onednn_node_name(node));
    }
  }
  return onednn_plan_bind(plan, kernel->output, &view);
}

// Binds part of `source` to the value; `shape` has the rank of the source, `steps` may be NULL.
static cleave_status_t bind_slice(onednn_plan_t *plan, const onednn_tensor_t *source, const int64_t *starts,
                                  const int64_t *steps, const onednn_shape_t *shape, uint32_t value) {
  onednn_tensor_t from = *source;
  onednn_tensor_t view;
  size_t offset = 0;
  if (!onednn_layout_slice(&from.layout, starts, steps, shape, &view.layout, &offset)) {
    ONEDNN_TRY(onednn_plan_plain(plan, source, &from));
    if (!onednn_layout_slice(&from.layout, starts, steps, shape, &view.layout, &offset)) {
      return kernel_fail(plan->message, CLEAVE_ERROR_SHAPE, "value '%s': the slice is not inside its source",
                         plan->region->values[value].name);
    }
  }
  view.buffer = from.buffer;
  view.offset = from.offset + offset;
  view.quantization = from.quantization;
  return onednn_plan_bind(plan, value, &view);
}

cleave_status_t onednn_emit_slice(onednn_plan_t *plan, const onednn_kernel_t *kernel) {
  const cleave_node_view_t *node = &plan->region->nodes[kernel->node];
  onednn_shape_t x = onednn_plan_shape(plan, kernel->source);
  onednn_shape_t y = onednn_plan_shape(plan, kernel->output);
  onednn_slice_t slice;
  onednn_tensor_t source;
  if (y.rank != x.rank || !onednn_slice_of(plan->region, node, &x, &slice)) {
    return kernel_fail(plan->message, CLEAVE_ERROR_UNSUPPORTED,
                       "Slice '%s': its starts, axes or steps are not constant, or out of range",
                       onednn_node_name(node));
  }
  ONEDNN_TRY(onednn_plan_stored(plan, kernel->source, &source));
  return bind_slice(plan, &source, slice.starts, slice.steps, &y, kernel->output);
}

cleave_status_t onednn_emit_gather(onednn_plan_t *plan, const onednn_kernel_t *kernel) {
  const cleave_node_view_t *node = &plan->region->nodes[kernel->node];
  onednn_shape_t part = onednn_plan_shape(plan, kernel->source);
  int32_t axis = onednn_axis(cleave_view_int(node, "axis", 0), part.rank);
  int64_t starts[CLEAVE_MAX_RANK] = {0};
  double index = 0;
  onednn_tensor_t source;
  if (axis < 0 || !onednn_scalar(&plan->region->values[node->inputs[1]], &index)) {
    return kernel_fail(plan->message, CLEAVE_ERROR_UNSUPPORTED, "Gather '%s': its index is not one constant",
                       onednn_node_name(node));
  }
  starts[axis] = (int64_t)index < 0 ? (int64_t)index + part.dims[axis] : (int64_t)index;
  if (starts[axis] < 0 || starts[axis] >= part.dims[axis]) {
    return kernel_fail(plan->message, CLEAVE_ERROR_SHAPE, "Gather '%s': its index is out of range",
                       onednn_node_name(node));
  }
  part.dims[axis] = 1;
  ONEDNN_TRY(onednn_plan_stored(plan, kernel->source, &source));
  return bind_slice(plan, &source, starts, NULL, &part, kernel->output);
}

cleave_status_t onednn_emit_split(onednn_plan_t *plan, const onednn_kernel_t *kernel) {
  const cleave_node_view_t *node = &plan->region->nodes[kernel->node];
  onednn_tensor_t source;
  int64_t starts[CLEAVE_MAX_RANK] = {0};
  ONEDNN_TRY(onednn_plan_stored(plan, kernel->source, &source));
  int32_t axis = onednn_axis(cleave_view_int(node, "axis", 0), source.layout.ndims);
  if (axis < 0) {
    return kernel_fail(plan->message, CLEAVE_ERROR_SHAPE, "Split '%s': its axis is out of range",
                       onednn_node_name(node));
  }
  const cleave_value_view_t *given = cleave_view_input(plan->region, node, 1);
  int64_t sizes[CLEAVE_MAX_RANK];
  uint32_t size_count = 0;
  if (given != NULL && !onednn_integers(given, sizes, &size_count)) {
    return kernel_fail(plan->message, CLEAVE_ERROR_UNSUPPORTED, "Split '%s': its sizes are not constant",
                       onednn_node_name(node));
  }
  // Equal parts are rounded up, and the last is what remains.
  int64_t whole = source.layout.dims[axis];
  int64_t part = (whole + (int64_t)node->output_count - 1) / (int64_t)node->output_count;
  for (uint32_t k = 0; k < node->output_count; k++) {
    if (node->outputs[k] != CLEAVE_INDEX_NONE) {
      onednn_shape_t shape = onednn_plan_shape(plan, node->outputs[k]);
      if (shape.rank != source.layout.ndims) {
        return kernel_fail(plan->message, CLEAVE_ERROR_SHAPE, "Split '%s': the rank of output %u",
                           onednn_node_name(node), (unsigned)k);
      }
      ONEDNN_TRY(bind_slice(plan, &source, starts, NULL, &shape, node->outputs[k]));
    }
    starts[axis] += k < size_count ? sizes[k] : part;
  }
  return CLEAVE_OK;
}
