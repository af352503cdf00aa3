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
