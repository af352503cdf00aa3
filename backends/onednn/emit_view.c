// SPDX-License-Identifier: Apache-2.0
// Views cost nothing where strides can say them: reshapes of plain tensors, transpositions, slices. Concat
// is the one that copies; it takes its inputs in the layout that most of their bytes have.
#include <stdlib.h>
#include <string.h>

#include "emit.h"
#include "windows.h"

cleave_status_t onednn_emit_reshape(onednn_plan_t *plan, const onednn_kernel_t *kernel) {
  onednn_tensor_t source;
  ONEDNN_TRY(onednn_plan_fetch(plan, kernel->source, &source));
  return onednn_plan_bind(plan, kernel->output, &source);
}

cleave_status_t onednn_emit_transpose(onednn_plan_t *plan, const onednn_kernel_t *kernel) {
  const cleave_node_view_t *node = &plan->region->nodes[kernel->node];
  onednn_tensor_t source;
  int32_t order[CLEAVE_MAX_RANK];
  ONEDNN_TRY(onednn_plan_fetch(plan, kernel->source, &source));
  onednn_tensor_t view = source;
  if (!onednn_transpose_order(node, source.layout.ndims, order)) {
    return onednn_fail(plan->message, CLEAVE_ERROR_UNSUPPORTED, "Transpose '%s': its perm is no permutation",
                       onednn_node_name(node));
  }
  if (!onednn_layout_transpose(&source.layout, order, &view.layout)) {
    onednn_tensor_t plain;
    ONEDNN_TRY(onednn_plan_plain(plan, &source, &plain));
    view = plain;
    if (!onednn_layout_transpose(&plain.layout, order, &view.layout)) {
      return onednn_fail(plan->message, CLEAVE_ERROR_INTERNAL, "Transpose '%s': no strides for it",
                         onednn_node_name(node));
    }
  }
  return onednn_plan_bind(plan, kernel->output, &view);
}

static cleave_status_t bind_slice(onednn_plan_t *plan, const onednn_tensor_t *source, const int64_t *starts,
                                  uint32_t value) {
  onednn_shape_t shape = onednn_plan_shape(plan, value);
  onednn_tensor_t from = *source;
  onednn_tensor_t view;
  size_t offset = 0;
  if (!onednn_layout_slice(&from.layout, starts, &shape, &view.layout, &offset)) {
    ONEDNN_TRY(onednn_plan_plain(plan, source, &from));
    if (!onednn_layout_slice(&from.layout, starts, &shape, &view.layout, &offset)) {
      return onednn_fail(plan->message, CLEAVE_ERROR_SHAPE, "value '%s': the slice is not inside its source",
                         plan->region->values[value].name);
    }
  }
  view.buffer = from.buffer;
  view.offset = from.offset + offset;
  return onednn_plan_bind(plan, value, &view);
}

static int64_t clamp(int64_t x, int64_t low, int64_t high) {
  return x < low ? low : (x > high ? high : x);
}

cleave_status_t onednn_emit_slice(onednn_plan_t *plan, const onednn_kernel_t *kernel) {
  const cleave_node_view_t *node = &plan->region->nodes[kernel->node];
  const cleave_value_view_t *given = cleave_view_input(plan->region, node, 3);
  onednn_shape_t x = onednn_plan_shape(plan, kernel->source);
  int64_t starts[CLEAVE_MAX_RANK] = {0};
  int64_t list[CLEAVE_MAX_RANK];
  int64_t axes[CLEAVE_MAX_RANK];
  uint32_t count = 0;
  uint32_t axis_count = 0;
  const cleave_value_view_t *from = cleave_view_input(plan->region, node, 1);
  if (from == NULL || !onednn_integers(from, list, &count) ||
      (given != NULL && (!onednn_integers(given, axes, &axis_count) || axis_count != count))) {
    return onednn_fail(plan->message, CLEAVE_ERROR_UNSUPPORTED,
                       "Slice '%s': its starts or axes are not constant", onednn_node_name(node));
  }
  for (uint32_t k = 0; k < count; k++) {
    int32_t axis = onednn_axis(given != NULL ? axes[k] : (int64_t)k, x.rank);
    if (axis < 0) {
      return onednn_fail(plan->message, CLEAVE_ERROR_SHAPE, "Slice '%s': axis %u is out of range",
                         onednn_node_name(node), (unsigned)k);
    }
    int64_t size = x.dims[axis];
    starts[axis] = clamp(list[k] < 0 ? clamp(list[k], -size, 0) + size : list[k], 0, size);
  }
  onednn_tensor_t source;
  ONEDNN_TRY(onednn_plan_fetch(plan, kernel->source, &source));
  return bind_slice(plan, &source, starts, kernel->output);
}

cleave_status_t onednn_emit_split(onednn_plan_t *plan, const onednn_kernel_t *kernel) {
  const cleave_node_view_t *node = &plan->region->nodes[kernel->node];
  onednn_tensor_t source;
  int64_t starts[CLEAVE_MAX_RANK] = {0};
  ONEDNN_TRY(onednn_plan_fetch(plan, kernel->source, &source));
  int32_t axis = onednn_axis(cleave_view_int(node, "axis", 0), source.layout.ndims);
  if (axis < 0) {
    return onednn_fail(plan->message, CLEAVE_ERROR_SHAPE, "Split '%s': its axis is out of range",
                       onednn_node_name(node));
  }
  const cleave_value_view_t *given = cleave_view_input(plan->region, node, 1);
  int64_t sizes[CLEAVE_MAX_RANK];
  uint32_t size_count = 0;
  if (given != NULL && !onednn_integers(given, sizes, &size_count)) {
    return onednn_fail(plan->message, CLEAVE_ERROR_UNSUPPORTED, "Split '%s': its sizes are not constant",
                       onednn_node_name(node));
  }
  // Equal parts are rounded up, and the last is what remains.
  int64_t whole = source.layout.dims[axis];
  int64_t part = (whole + (int64_t)node->output_count - 1) / (int64_t)node->output_count;
  for (uint32_t k = 0; k < node->output_count; k++) {
    if (node->outputs[k] != CLEAVE_INDEX_NONE) {
      ONEDNN_TRY(bind_slice(plan, &source, starts, node->outputs[k]));
    }
    starts[axis] += k < size_count ? sizes[k] : part;
  }
  return CLEAVE_OK;
}

typedef struct concat {
  onednn_tensor_t *tensors;
  onednn_layout_t *layouts;
  onednn_argument_t *arguments;
  uint32_t count;
  int axis;
} concat_t;

static cleave_status_t fetch_inputs(onednn_plan_t *plan, const cleave_node_view_t *node, concat_t *concat) {
  for (uint32_t k = 0; k < node->input_count; k++) {
    if (node->inputs[k] == CLEAVE_INDEX_NONE) {
      continue;
    }
    ONEDNN_TRY(onednn_emit_dense(plan, node->inputs[k], &concat->tensors[concat->count++]));
  }
  return CLEAVE_OK;
}

// All inputs in the layout that most of their bytes have.
static cleave_status_t align_inputs(onednn_plan_t *plan, const cleave_node_view_t *node, concat_t *concat) {
  size_t most = 0;
  onednn_layout_t model;
  memset(&model, 0, sizeof(model));
  for (uint32_t k = 0; k < concat->count; k++) {
    size_t bytes = dnnl_memory_desc_get_size(&concat->tensors[k].layout);
    if (bytes > most) {
      most = bytes;
      model = concat->tensors[k].layout;
    }
  }
  for (uint32_t k = 0; k < concat->count; k++) {
    onednn_shape_t shape = onednn_layout_shape(&concat->tensors[k].layout);
    onednn_layout_t like;
    if (shape.rank != model.ndims) {
      return onednn_fail(plan->message, CLEAVE_ERROR_SHAPE, "Concat '%s': its inputs differ in rank",
                         onednn_node_name(node));
    }
    if (!onednn_layout_like(&model, &shape, &like)) {
      like = onednn_layout_plain(&shape);
    }
    ONEDNN_TRY(onednn_plan_convert(plan, &concat->tensors[k], &like, &concat->tensors[k]));
    concat->layouts[k] = concat->tensors[k].layout;
  }
  return CLEAVE_OK;
}

static dnnl_status_t describe_concat(const onednn_plan_t *plan, const concat_t *concat,
                                     const onednn_layout_t *result, dnnl_primitive_desc_t *out) {
  dnnl_primitive_attr_t attributes = NULL;
  dnnl_status_t status = dnnl_primitive_attr_create(&attributes);
  if (status != dnnl_success) {
    return status;
  }
  status = dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user);
  if (status == dnnl_success) {
    status = dnnl_concat_primitive_desc_create(out, result, (int)concat->count, concat->axis, concat->layouts,
                                               attributes, plan->engine);
  }
  (void)dnnl_primitive_attr_destroy(attributes);
  return status;
}

cleave_status_t onednn_emit_concat(onednn_plan_t *plan, const onednn_kernel_t *kernel) {
  const cleave_node_view_t *node = &plan->region->nodes[kernel->node];
  onednn_shape_t shape = onednn_plan_shape(plan, kernel->output);
  concat_t concat = {.axis = onednn_axis(cleave_view_int(node, "axis", 0), shape.rank)};
  concat.tensors = onednn_arena_allocate(plan->arena, node->input_count, sizeof(onednn_tensor_t));
  concat.layouts = onednn_arena_allocate(plan->arena, node->input_count, sizeof(onednn_layout_t));
  concat.arguments =
      onednn_arena_allocate(plan->arena, (size_t)node->input_count + 1, sizeof(onednn_argument_t));
  if (concat.tensors == NULL || concat.layouts == NULL || concat.arguments == NULL) {
    return onednn_fail(plan->message, CLEAVE_ERROR_OUT_OF_MEMORY, "out of memory while compiling");
  }
  if (concat.axis < 0 || node->input_count > 1024) {
    return onednn_fail(plan->message, CLEAVE_ERROR_UNSUPPORTED, "Concat '%s': its axis or number of inputs",
                       onednn_node_name(node));
  }
  bool done = false;
  ONEDNN_TRY(fetch_inputs(plan, node, &concat));
  ONEDNN_TRY(onednn_slots_concat(plan, kernel, concat.tensors, concat.count, &done));
  if (done) {
    return CLEAVE_OK;
  }
  ONEDNN_TRY(align_inputs(plan, node, &concat));
  dnnl_primitive_desc_t description = NULL;
  onednn_layout_t any = onednn_layout_any(&shape);
  ONEDNN_TRY(onednn_check(describe_concat(plan, &concat, &any, &description), "concat", plan->message));
  onednn_tensor_t result;
  onednn_layout_t chosen = *dnnl_primitive_desc_query_md(description, dnnl_query_dst_md, 0);
  cleave_status_t status = onednn_plan_make(plan, kernel->output, &chosen, &result);
  if (status != CLEAVE_OK) {
    (void)dnnl_primitive_desc_destroy(description);
    return status;
  }
  for (uint32_t k = 0; k < concat.count; k++) {
    concat.arguments[k] =
        (onednn_argument_t){.name = DNNL_ARG_MULTIPLE_SRC + (int)k, .tensor = concat.tensors[k]};
  }
  concat.arguments[concat.count] = (onednn_argument_t){.name = DNNL_ARG_DST, .tensor = result};
  ONEDNN_TRY(onednn_plan_step(plan, description, concat.arguments, concat.count + 1, kernel->node, "concat"));
  return onednn_plan_bind(plan, kernel->output, &result);
}
