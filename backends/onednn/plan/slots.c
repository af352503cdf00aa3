// SPDX-License-Identifier: Apache-2.0
// Which values have slots, and in which layouts a slot is contiguous.
#include "onednn/plan/slots.h"

static bool is_concat(const onednn_kernel_t *kernel) {
  return kernel->kind == ONEDNN_CONCAT;
}

bool onednn_slots_contiguous(const onednn_shape_t *shape, int32_t axis) {
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
    int32_t axis = onednn_axis(cleave_view_int(node, "axis", 0), shape.rank);
    if (!onednn_slots_contiguous(&shape, axis)) {
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

int64_t onednn_slot_block(const onednn_layout_t *layout) {
  onednn_shape_t shape = onednn_layout_shape(layout);
  if (onednn_layout_is_plain(layout)) {
    return 1;
  }
  if (shape.rank < 3) {
    return 0;
  }
  onednn_layout_t blocked = onednn_layout_blocked(&shape);
  blocked = onednn_layout_typed(&blocked, layout->data_type);
  if (onednn_layout_equal(layout, &blocked)) {
    return 16;
  }
  // Eight channels that come last are the same, but what is beside them in the region is not.
  blocked = onednn_layout_blocked_by_8(&shape);
  blocked = onednn_layout_typed(&blocked, layout->data_type);
  return !onednn_layout_is_strided(layout) && onednn_layout_equal(layout, &blocked) ? 8 : 0;
}

onednn_layout_t onednn_slot_layout(int64_t block, const onednn_shape_t *shape, dnnl_data_type_t type) {
  onednn_layout_t layout = block == 1    ? onednn_layout_plain(shape)
                           : block == 16 ? onednn_layout_blocked(shape)
                                         : onednn_layout_blocked_by_8(shape);
  return onednn_layout_typed(&layout, type);
}

bool onednn_slot_divides(const onednn_layout_t *layout, int32_t axis, int64_t start, size_t *bytes) {
  onednn_shape_t shape = onednn_layout_shape(layout);
  int64_t block = onednn_slot_block(layout);
  bool fits = block == 1 || (block > 1 && axis == 1 && shape.dims[1] % block == 0 && start % block == 0);
  *bytes = onednn_layout_element(layout);
  for (int32_t d = axis + 1; d < shape.rank; d++) {
    *bytes *= (size_t)shape.dims[d];
  }
  return fits && onednn_layout_is_dense(layout);
}
