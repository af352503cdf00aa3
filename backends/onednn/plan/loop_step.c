// SPDX-License-Identifier: Apache-2.0
// Steps that are loops.
#include "onednn/plan/loop_step.h"

#include <string.h>

cleave_status_t onednn_loop_step(onednn_plan_t *plan, const onednn_loop_t *loop,
                                 const onednn_tensor_t *const *tensors, uint32_t count, uint32_t node,
                                 const char *label) {
  static const int names[3] = {DNNL_ARG_SRC_0, DNNL_ARG_SRC_1, DNNL_ARG_DST};
  onednn_argument_t arguments[3];
  for (uint32_t k = 0; k < count; k++) {
    arguments[k] = (onednn_argument_t){.name = names[k + 1 == count ? 2 : k], .tensor = *tensors[k]};
  }
  return onednn_plan_loop(plan, loop, arguments, count, node, label);
}

void onednn_loop_set_dims(int64_t *dims, const onednn_shape_t *shape) {
  memcpy(dims, shape->dims, (size_t)shape->rank * sizeof(int64_t));
}

void onednn_loop_set_strides(int64_t *strides, const onednn_shape_t *own) {
  int64_t stride = 1;
  for (int32_t d = own->rank; d-- > 0;) {
    strides[d] = own->dims[d] == 1 ? 0 : stride;
    stride *= own->dims[d];
  }
}

onednn_bytes_t onednn_bytes_of(const onednn_tensor_t *tensor, float scale, float zero) {
  return (onednn_bytes_t){.scale = scale, .zero = zero, .is_signed = tensor->layout.data_type == dnnl_s8};
}

// Wide: a step of its own kind.
cleave_status_t onednn_bytes_step(onednn_plan_t *plan, onednn_loop_fn_t run, const onednn_bytes_loop_t *bytes,
                                  const onednn_tensor_t *const *tensors, uint32_t count, uint32_t node,
                                  const char *label) {
  onednn_shape_t shape = onednn_layout_shape(&tensors[0]->layout);
  onednn_bytes_loop_t *context = kernel_arena_allocate(plan->arena, 1, sizeof(*context));
  if (context == NULL) {
    return onednn_plan_out_of_memory(plan);
  }
  *context = *bytes;
  const onednn_loop_t loop = {.run = run,
                              .rank = 1,
                              .dims = {onednn_shape_count(&shape)},
                              .context = context,
                              .context_bytes = sizeof(*context)};
  return onednn_loop_step(plan, &loop, tensors, count, node, label);
}
