// SPDX-License-Identifier: Apache-2.0
// Concat. If its inputs have been written to their places, nothing is left to do; inputs that are strided
// views are copied straight to theirs; the rest takes all inputs in the layout that most of their bytes have.
#include "onednn/emit/emit.h"

#include <string.h>

#include "onednn/plan/slots.h"

typedef struct concat {
  onednn_tensor_t *tensors;
  onednn_layout_t *layouts;
  onednn_argument_t *arguments;
  uint32_t count;
  int axis;
  const onednn_quantization_t *quantization; /* of all inputs, and so of the result; or NULL */
} concat_t;

// Integers that stand for numbers in the same way stay integers; others become the numbers.
static cleave_status_t agree(onednn_plan_t *plan, concat_t *concat) {
  bool same = true;
  bool any = false;
  const onednn_tensor_t *first = &concat->tensors[0];
  for (uint32_t k = 0; k < concat->count; k++) {
    const onednn_tensor_t *tensor = &concat->tensors[k];
    any = any || tensor->quantization != NULL;
    same = same && tensor->quantization != NULL && first->quantization != NULL &&
           tensor->layout.data_type == first->layout.data_type &&
           onednn_quantization_equal(tensor->quantization, first->quantization);
  }
  concat->quantization = any && same ? first->quantization : NULL;
  for (uint32_t k = 0; k < concat->count && any && !same; k++) {
    ONEDNN_TRY(onednn_plan_typed(plan, &concat->tensors[k], dnnl_f32, &concat->tensors[k]));
  }
  return CLEAVE_OK;
}

static cleave_status_t bind(onednn_plan_t *plan, const onednn_kernel_t *kernel, const concat_t *concat,
                            onednn_tensor_t *result) {
  result->quantization = concat->quantization;
  return onednn_plan_bind(plan, kernel->output, result);
}

static cleave_status_t fetch_inputs(onednn_plan_t *plan, const cleave_node_view_t *node, concat_t *concat,
                                    bool *strided) {
  *strided = false;
  for (uint32_t k = 0; k < node->input_count; k++) {
    if (node->inputs[k] == CLEAVE_INDEX_NONE) {
      continue;
    }
    onednn_tensor_t *tensor = &concat->tensors[concat->count++];
    ONEDNN_TRY(onednn_plan_stored(plan, node->inputs[k], tensor));
    *strided =
        *strided || (onednn_layout_is_strided(&tensor->layout) && !onednn_layout_is_dense(&tensor->layout));
  }
  return CLEAVE_OK;
}

// All inputs in the layout that most of their bytes have.
static cleave_status_t align_inputs(onednn_plan_t *plan, const cleave_node_view_t *node, concat_t *concat) {
  size_t most = 0;
  onednn_layout_t model;
  memset(&model, 0, sizeof(model));
  for (uint32_t k = 0; k < concat->count; k++) {
    size_t bytes = onednn_md_bytes(&concat->tensors[k].layout);
    if (bytes > most) {
      most = bytes;
      model = concat->tensors[k].layout;
    }
  }
  for (uint32_t k = 0; k < concat->count; k++) {
    onednn_shape_t shape = onednn_layout_shape(&concat->tensors[k].layout);
    onednn_layout_t like;
    if (shape.rank != model.ndims) {
      return kernel_fail(plan->message, CLEAVE_ERROR_SHAPE, "Concat '%s': its inputs differ in rank",
                         onednn_node_name(node));
    }
    if (!onednn_layout_like(&model, &shape, &like)) {
      like = onednn_layout_plain(&shape);
      like = onednn_layout_typed(&like, model.data_type);
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
    const onednn_maker_t maker = {.engine = plan->engine, .attributes = attributes, .out = out};
    status = onednn_make_concat(&maker, result, (int)concat->count, concat->axis, concat->layouts);
  }
  (void)dnnl_primitive_attr_destroy(attributes);
  return status;
}

// Copies every input to its part of a plain result.
static cleave_status_t copy_parts(onednn_plan_t *plan, const onednn_kernel_t *kernel,
                                  const concat_t *concat) {
  onednn_shape_t shape = onednn_plan_shape(plan, kernel->output);
  onednn_layout_t plain = onednn_layout_plain(&shape);
  plain = onednn_layout_typed(&plain, concat->tensors[0].layout.data_type);
  int64_t starts[CLEAVE_MAX_RANK] = {0};
  onednn_tensor_t result;
  ONEDNN_TRY(onednn_plan_make(plan, kernel->output, &plain, &result));
  for (uint32_t k = 0; k < concat->count; k++) {
    onednn_shape_t part = onednn_layout_shape(&concat->tensors[k].layout);
    onednn_tensor_t target = result;
    size_t offset = 0;
    if (part.rank != shape.rank ||
        !onednn_layout_slice(&result.layout, starts, NULL, &part, &target.layout, &offset)) {
      return kernel_fail(plan->message, CLEAVE_ERROR_SHAPE, "Concat '%s': its inputs do not make its output",
                         onednn_node_name(&plan->region->nodes[kernel->node]));
    }
    target.offset += offset;
    ONEDNN_TRY(onednn_plan_copy(plan, &concat->tensors[k], &target));
    starts[concat->axis] += part.dims[concat->axis];
  }
  return bind(plan, kernel, concat, &result);
}

// Does the tensor lie where the part of the result from `start` on belongs?
static bool in_place(const onednn_tensor_t *tensor, uint32_t buffer, size_t offset, int32_t axis,
                     int64_t start) {
  size_t step = 0;
  return tensor->buffer == buffer && onednn_slot_divides(&tensor->layout, axis, start, &step) &&
         tensor->offset == offset + (size_t)start * step;
}

// The inputs as one tensor, if they follow each other in one buffer.
static bool side_by_side(const onednn_plan_t *plan, const onednn_tensor_t *tensors, uint32_t count,
                         const onednn_shape_t *shape, int32_t axis, onednn_tensor_t *out) {
  int64_t start = 0;
  int64_t block = onednn_slot_block(&tensors[0].layout);
  if (plan->buffers[tensors[0].buffer].place == ONEDNN_CONSTANT) {
    return false;
  }
  for (uint32_t k = 0; k < count; k++) {
    if (!in_place(&tensors[k], tensors[0].buffer, tensors[0].offset, axis, start) ||
        onednn_slot_block(&tensors[k].layout) != block ||
        tensors[k].layout.data_type != tensors[0].layout.data_type) {
      return false;
    }
    start += tensors[k].layout.dims[axis];
  }
  *out = tensors[0];
  out->layout = onednn_slot_layout(block, shape, tensors[0].layout.data_type);
  return true;
}

// A Concat out of its inputs as far as they are in their slots; `*done` is false if none is.
static cleave_status_t concat_slots(onednn_plan_t *plan, const onednn_kernel_t *kernel,
                                    const concat_t *concat, bool *done) {
  onednn_shape_t shape = onednn_plan_shape(plan, kernel->output);
  const onednn_tensor_t *tensors = concat->tensors;
  uint32_t count = concat->count;
  int32_t axis = concat->axis;
  onednn_tensor_t result;
  *done = false;
  if (count == 0 || !onednn_slots_contiguous(&shape, axis)) {
    return CLEAVE_OK;
  }
  if (side_by_side(plan, tensors, count, &shape, axis, &result)) {
    *done = true;
    return bind(plan, kernel, concat, &result);
  }
  const onednn_binding_t *binding = &plan->bindings[kernel->output];
  if (binding->slot_buffer == CLEAVE_INDEX_NONE) {
    return CLEAVE_OK;
  }
  // Some inputs have been written to their slots; the others are copied to theirs.
  int64_t start = 0;
  result.layout = binding->slot_layout;
  result.buffer = binding->slot_buffer;
  result.quantization = NULL;
  result.offset = binding->slot_offset;
  int64_t block = onednn_slot_block(&result.layout);
  for (uint32_t k = 0; k < count; k++) {
    onednn_shape_t part = onednn_layout_shape(&tensors[k].layout);
    onednn_tensor_t slot = result;
    size_t step = 0;
    slot.layout = onednn_slot_layout(block, &part, result.layout.data_type);
    if (!onednn_slot_divides(&slot.layout, axis, start, &step)) {
      return CLEAVE_OK;
    }
    slot.offset += (size_t)start * step;
    if (!in_place(&tensors[k], result.buffer, result.offset, axis, start)) {
      ONEDNN_TRY(onednn_plan_copy(plan, &tensors[k], &slot));
    }
    start += part.dims[axis];
  }
  *done = true;
  return bind(plan, kernel, concat, &result);
}

cleave_status_t onednn_emit_concat(onednn_plan_t *plan, const onednn_kernel_t *kernel) {
  const cleave_node_view_t *node = &plan->region->nodes[kernel->node];
  onednn_shape_t shape = onednn_plan_shape(plan, kernel->output);
  concat_t concat = {.axis = onednn_axis(cleave_view_int(node, "axis", 0), shape.rank)};
  concat.tensors = kernel_arena_allocate(plan->arena, node->input_count, sizeof(onednn_tensor_t));
  concat.layouts = kernel_arena_allocate(plan->arena, node->input_count, sizeof(onednn_layout_t));
  concat.arguments =
      kernel_arena_allocate(plan->arena, (size_t)node->input_count + 1, sizeof(onednn_argument_t));
  if (concat.tensors == NULL || concat.layouts == NULL || concat.arguments == NULL) {
    return kernel_fail(plan->message, CLEAVE_ERROR_OUT_OF_MEMORY, "out of memory while compiling");
  }
  if (concat.axis < 0 || node->input_count > 1024) {
    return kernel_fail(plan->message, CLEAVE_ERROR_UNSUPPORTED, "Concat '%s': its axis or number of inputs",
                       onednn_node_name(node));
  }
  bool done = false;
  bool strided = false;
  ONEDNN_TRY(fetch_inputs(plan, node, &concat, &strided));
  ONEDNN_TRY(agree(plan, &concat));
  ONEDNN_TRY(concat_slots(plan, kernel, &concat, &done));
  if (done) {
    return CLEAVE_OK;
  }
  if (strided) {
    return copy_parts(plan, kernel, &concat);
  }
  ONEDNN_TRY(align_inputs(plan, node, &concat));
  dnnl_primitive_desc_t description = NULL;
  onednn_layout_t any = onednn_layout_any(&shape);
  any = onednn_layout_typed(&any, concat.layouts[0].data_type);
  ONEDNN_TRY(onednn_check(describe_concat(plan, &concat, &any, &description), "concat", plan->message));
  onednn_tensor_t result;
  onednn_layout_t chosen;
  cleave_status_t status = onednn_query_layout(description, dnnl_query_dst_md, &chosen)
                               ? onednn_plan_make(plan, kernel->output, &chosen, &result)
                               : onednn_check(dnnl_runtime_error, "a concat's layout", plan->message);
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
  return bind(plan, kernel, &concat, &result);
}
