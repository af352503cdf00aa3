// SPDX-License-Identifier: Apache-2.0
// Concat without copying: where the parts of its result lie one after the other in memory, the kernels that
// make its inputs write straight to their part, their slot. A value that several Concats read (dense blocks)
// has its slot in the last of them; the earlier ones then find their inputs side by side already.
#include "plan.h"

static bool is_concat(const onednn_kernel_t *kernel) {
  return kernel->kind == ONEDNN_CONCAT;
}

static int32_t axis_of(const onednn_plan_t *plan, const onednn_kernel_t *kernel) {
  onednn_shape_t shape = onednn_plan_shape(plan, kernel->output);
  return onednn_axis(cleave_view_int(&plan->region->nodes[kernel->node], "axis", 0), shape.rank);
}

// Is every part contiguous in a row-major or channel-blocked result?
static bool parts_are_contiguous(const onednn_shape_t *shape, int32_t axis) {
  for (int32_t d = 0; d < axis; d++) {
    if (shape->dims[d] != 1) {
      return false;
    }
  }
  return axis >= 0;
}

void onednn_slots_assign(onednn_plan_t *plan) {
  for (uint32_t k = 0; k < plan->analysis->kernel_count; k++) {
    const onednn_kernel_t *kernel = &plan->analysis->kernels[k];
    if (!is_concat(kernel)) {
      continue;
    }
    const cleave_node_view_t *node = &plan->region->nodes[kernel->node];
    onednn_shape_t shape = onednn_plan_shape(plan, kernel->output);
    int32_t axis = axis_of(plan, kernel);
    if (!parts_are_contiguous(&shape, axis)) {
      continue;
    }
    int64_t start = 0;
    for (uint32_t s = 0; s < node->input_count; s++) {
      if (node->inputs[s] == CLEAVE_INDEX_NONE) {
        continue;
      }
      onednn_binding_t *binding = &plan->bindings[node->inputs[s]];
      onednn_shape_t part = onednn_plan_shape(plan, node->inputs[s]);
      if (part.rank != shape.rank) {
        break;
      }
      if (binding->output == CLEAVE_INDEX_NONE) {
        binding->slot_of = kernel->output;
        binding->slot_axis = axis;
        binding->slot_start = start;
      }
      start += part.dims[axis];
    }
  }
}

// How many channels a block of the layout has: 1 in row-major order, 0 in layouts that are neither.
static int64_t block_of(const onednn_layout_t *layout) {
  onednn_shape_t shape = onednn_layout_shape(layout);
  if (onednn_layout_is_plain(layout)) {
    return 1;
  }
  if (shape.rank < 3) {
    return 0;
  }
  onednn_layout_t blocked = onednn_layout_blocked(&shape);
  if (onednn_layout_equal(layout, &blocked)) {
    return 16;
  }
  // Eight channels that come last are the same, but what is beside them in the region is not.
  blocked = onednn_layout_blocked_by_8(&shape);
  return !onednn_layout_is_strided(layout) && onednn_layout_equal(layout, &blocked) ? 8 : 0;
}

static onednn_layout_t in_blocks_of(int64_t block, const onednn_shape_t *shape) {
  return block == 1    ? onednn_layout_plain(shape)
         : block == 16 ? onednn_layout_blocked(shape)
                       : onednn_layout_blocked_by_8(shape);
}

// A layout whose parts along `axis` are contiguous, and the bytes of one step along the axis.
static bool divides(const onednn_layout_t *layout, int32_t axis, int64_t start, size_t *bytes) {
  onednn_shape_t shape = onednn_layout_shape(layout);
  int64_t block = block_of(layout);
  bool fits = block == 1 || (block > 1 && axis == 1 && shape.dims[1] % block == 0 && start % block == 0);
  *bytes = sizeof(float);
  for (int32_t d = axis + 1; d < shape.rank; d++) {
    *bytes *= (size_t)shape.dims[d];
  }
  return fits && onednn_layout_is_dense(layout);
}

cleave_status_t onednn_slots_make(onednn_plan_t *plan, uint32_t value, const onednn_layout_t *layout,
                                  onednn_tensor_t *out, bool *made) {
  onednn_binding_t *binding = &plan->bindings[value];
  onednn_shape_t own = onednn_layout_shape(layout);
  onednn_shape_t shape = onednn_plan_shape(plan, value);
  onednn_layout_t viewed = *layout;
  size_t step = 0;
  *made = false;
  if (binding->slot_of == CLEAVE_INDEX_NONE ||
      (!onednn_shape_equal(&own, &shape) && !onednn_layout_reshape(layout, &shape, &viewed)) ||
      !divides(&viewed, binding->slot_axis, binding->slot_start, &step)) {
    return CLEAVE_OK;
  }
  onednn_binding_t *whole = &plan->bindings[binding->slot_of];
  onednn_shape_t all = onednn_plan_shape(plan, binding->slot_of);
  int64_t block = block_of(&viewed);
  onednn_layout_t wanted = in_blocks_of(block, &all);
  if (whole->slot_buffer == CLEAVE_INDEX_NONE) {
    onednn_tensor_t target;
    if (block > 1 && all.dims[1] % block != 0) {
      return CLEAVE_OK;
    }
    ONEDNN_TRY(onednn_plan_make(plan, binding->slot_of, &wanted, &target));
    whole->slot_buffer = target.buffer;
    whole->slot_offset = target.offset;
    whole->slot_layout = wanted;
    plan->buffers[target.buffer].live_until = whole->last_use;
  }
  if (!onednn_layout_equal(&whole->slot_layout, &wanted)) {
    return CLEAVE_OK;
  }
  out->layout = *layout;
  out->buffer = whole->slot_buffer;
  out->offset = whole->slot_offset + (size_t)binding->slot_start * step;
  *made = true;
  return CLEAVE_OK;
}

// Where part `start` of the result begins, if the tensor is laid out like it.
static bool in_place(const onednn_tensor_t *tensor, uint32_t buffer, size_t offset, int32_t axis,
                     int64_t start) {
  size_t step = 0;
  return tensor->buffer == buffer && divides(&tensor->layout, axis, start, &step) &&
         tensor->offset == offset + (size_t)start * step;
}

// The inputs as one tensor, if they follow each other in one buffer.
static bool side_by_side(const onednn_plan_t *plan, const onednn_tensor_t *tensors, uint32_t count,
                         const onednn_shape_t *shape, int32_t axis, onednn_tensor_t *out) {
  int64_t start = 0;
  int64_t block = block_of(&tensors[0].layout);
  if (plan->buffers[tensors[0].buffer].place == ONEDNN_CONSTANT) {
    return false;
  }
  for (uint32_t k = 0; k < count; k++) {
    if (!in_place(&tensors[k], tensors[0].buffer, tensors[0].offset, axis, start) ||
        block_of(&tensors[k].layout) != block) {
      return false;
    }
    start += tensors[k].layout.dims[axis];
  }
  *out = tensors[0];
  out->layout = in_blocks_of(block, shape);
  return true;
}

cleave_status_t onednn_slots_concat(onednn_plan_t *plan, const onednn_kernel_t *kernel,
                                    const onednn_tensor_t *tensors, uint32_t count, bool *done) {
  onednn_shape_t shape = onednn_plan_shape(plan, kernel->output);
  int32_t axis = axis_of(plan, kernel);
  onednn_tensor_t result;
  *done = false;
  if (count == 0 || !parts_are_contiguous(&shape, axis)) {
    return CLEAVE_OK;
  }
  if (side_by_side(plan, tensors, count, &shape, axis, &result)) {
    *done = true;
    return onednn_plan_bind(plan, kernel->output, &result);
  }
  const onednn_binding_t *binding = &plan->bindings[kernel->output];
  if (binding->slot_buffer == CLEAVE_INDEX_NONE) {
    return CLEAVE_OK;
  }
  // Some inputs have been written to their slots; the others are copied to theirs.
  int64_t start = 0;
  result.layout = binding->slot_layout;
  result.buffer = binding->slot_buffer;
  result.offset = binding->slot_offset;
  int64_t block = block_of(&result.layout);
  for (uint32_t k = 0; k < count; k++) {
    onednn_shape_t part = onednn_layout_shape(&tensors[k].layout);
    onednn_tensor_t slot = result;
    size_t step = 0;
    slot.layout = in_blocks_of(block, &part);
    if (!divides(&slot.layout, axis, start, &step)) {
      return CLEAVE_OK;
    }
    slot.offset += (size_t)start * step;
    if (!in_place(&tensors[k], result.buffer, result.offset, axis, start)) {
      ONEDNN_TRY(onednn_plan_copy(plan, &tensors[k], &slot));
    }
    start += part.dims[axis];
  }
  *done = true;
  return onednn_plan_bind(plan, kernel->output, &result);
}
