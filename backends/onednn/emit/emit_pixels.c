// SPDX-License-Identifier: Apache-2.0
// Squeeze and excitation with channels last: the means of an image, and its channels times a number each, by
// loops that share the pixels among the threads as convolutions do.
#include "onednn/emit/emit.h"
#include "onednn/plan/loop_step.h"

bool onednn_has_pixels(const onednn_plan_t *plan, const onednn_tensor_t *tensor) {
  onednn_shape_t shape = onednn_layout_shape(&tensor->layout);
  if (shape.rank != 4 || tensor->layout.data_type != dnnl_f32 || onednn_plan_computes(plan) != dnnl_f32 ||
      onednn_layout_is_plain(&tensor->layout)) {
    return false;
  }
  onednn_layout_t last = onednn_layout_channels_last(&shape);
  return onednn_layout_equal(&tensor->layout, &last);
}

static onednn_loop_t loop_over(onednn_loop_fn_t run, const onednn_shape_t *shape) {
  return (onednn_loop_t){
      .run = run, .rank = 3, .dims = {shape->dims[0], shape->dims[2] * shape->dims[3], shape->dims[1]}};
}

cleave_status_t onednn_emit_pixel_means(onednn_plan_t *plan, const onednn_kernel_t *kernel,
                                        const onednn_tensor_t *source, onednn_tensor_t *out) {
  onednn_shape_t shape = onednn_layout_shape(&source->layout);
  const onednn_shape_t means = {.rank = 4, .dims = {shape.dims[0], shape.dims[1], 1, 1}};
  onednn_shape_t own = onednn_plan_shape(plan, plan->region->nodes[kernel->node].outputs[0]);
  onednn_layout_t layout = onednn_layout_channels_last(&means);
  const onednn_loop_t loop = loop_over(onednn_loop_pixel_means, &shape);
  onednn_argument_t arguments[] = {
      {.name = DNNL_ARG_SRC_0, .tensor = *source}, {.name = DNNL_ARG_SCRATCHPAD}, {.name = DNNL_ARG_DST}};
  size_t sums = (size_t)(ONEDNN_PIXEL_PARTS * onednn_shape_count(&means));
  onednn_plan_scratch(plan, onednn_round_up(sums * sizeof(float)), &arguments[1].tensor);
  uint32_t value = kernel->post_count == 0 ? kernel->output : CLEAVE_INDEX_NONE;
  ONEDNN_TRY(onednn_plan_make(plan, value, &layout, &arguments[2].tensor));
  ONEDNN_TRY(onednn_plan_loop(plan, &loop, arguments, 3, kernel->node, "avgpool acdb loop"));
  return onednn_plan_reshape(plan, &arguments[2].tensor, &own, out);
}

bool onednn_scales_channels(const onednn_plan_t *plan, const onednn_tensor_t *source,
                            const onednn_shape_t *factors) {
  onednn_shape_t shape = onednn_layout_shape(&source->layout);
  return factors->rank == 4 && onednn_has_pixels(plan, source) && factors->dims[1] == shape.dims[1] &&
         factors->dims[2] == 1 && factors->dims[3] == 1 &&
         (factors->dims[0] == 1 || factors->dims[0] == shape.dims[0]);
}

cleave_status_t onednn_emit_scale_channels(onednn_plan_t *plan, const onednn_tensor_t *source,
                                           const onednn_tensor_t *factors, uint32_t node, uint32_t value,
                                           onednn_tensor_t *out) {
  onednn_shape_t shape = onednn_layout_shape(&source->layout);
  onednn_loop_t loop = loop_over(onednn_loop_scale_channels, &shape);
  onednn_tensor_t numbers;
  ONEDNN_TRY(onednn_plan_plain(plan, factors, &numbers));
  onednn_shape_t own = onednn_layout_shape(&numbers.layout);
  loop.strides[1][0] = onednn_shape_count(&own) == shape.dims[1] ? 0 : shape.dims[1];
  if (onednn_plan_has_place(plan, value) || !onednn_plan_is_free(plan, source)) {
    ONEDNN_TRY(onednn_plan_make(plan, value, &source->layout, out));
  } else {
    *out = *source;
    onednn_plan_overwrite(plan, out);
  }
  return onednn_loop_step(plan, &loop, (const onednn_tensor_t *[]){source, &numbers, out}, 3, node,
                          "scale acdb loop");
}
