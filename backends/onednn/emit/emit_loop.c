// SPDX-License-Identifier: Apache-2.0
// Kernels that are loops of our own, and the posts behind them. They read and write plain tensors.
#include "onednn/emit/emit.h"

#include <math.h>

#include "onednn/plan/loop_step.h"

// The result of a loop in the shape of the kernel's node, and the posts behind it.
static cleave_status_t finish(onednn_plan_t *plan, const onednn_kernel_t *kernel, onednn_tensor_t *result) {
  onednn_shape_t shape = onednn_plan_shape(plan, plan->region->nodes[kernel->node].outputs[0]);
  ONEDNN_TRY(onednn_plan_reshape(plan, result, &shape, result));
  return onednn_emit_chain(plan, result, kernel->posts, kernel->post_count, kernel->node, kernel->output);
}

// Memory for the result of a kernel, which is the kernel's output if no posts follow.
static cleave_status_t make(onednn_plan_t *plan, const onednn_kernel_t *kernel, const onednn_shape_t *shape,
                            onednn_tensor_t *out) {
  onednn_layout_t layout = onednn_layout_plain(shape);
  return onednn_plan_make(plan, kernel->post_count == 0 ? kernel->output : CLEAVE_INDEX_NONE, &layout, out);
}

cleave_status_t onednn_emit_extreme_loop(onednn_plan_t *plan, const onednn_kernel_t *kernel,
                                         const onednn_tensor_t *source, const onednn_shape_t *to,
                                         dnnl_alg_kind_t algorithm) {
  onednn_shape_t from = onednn_layout_shape(&source->layout);
  onednn_loop_t loop = {.run = onednn_loop_extreme, .algorithm = algorithm};
  onednn_tensor_t result;
  loop.rank = from.rank;
  while (loop.rank > 1 && from.dims[loop.rank - 1] == 1) {
    loop.rank--;
  }
  onednn_loop_set_dims(loop.dims, &from);
  onednn_loop_set_strides(loop.strides[1], to);
  ONEDNN_TRY(make(plan, kernel, to, &result));
  ONEDNN_TRY(onednn_loop_step(plan, &loop, (const onednn_tensor_t *[]){source, &result}, 2, kernel->node,
                              algorithm == dnnl_reduction_max ? "maximum loop" : "minimum loop"));
  return finish(plan, kernel, &result);
}

cleave_status_t onednn_emit_sum_loop(onednn_plan_t *plan, const onednn_kernel_t *kernel,
                                     const onednn_tensor_t *source, const onednn_shape_t *to,
                                     dnnl_alg_kind_t algorithm) {
  onednn_shape_t from = onednn_layout_shape(&source->layout);
  onednn_loop_t loop = {.run = onednn_loop_sum, .algorithm = algorithm, .alpha = 1.0F};
  onednn_tensor_t result;
  loop.rank = from.rank;
  while (loop.rank > 1 && from.dims[loop.rank - 1] == 1) {
    loop.rank--;
  }
  onednn_loop_set_dims(loop.dims, &from);
  onednn_loop_set_strides(loop.strides[1], to);
  if (algorithm == dnnl_reduction_mean) {
    int64_t count = 1;
    for (int32_t d = 0; d < loop.rank; d++) {
      count *= loop.strides[1][d] == 0 ? loop.dims[d] : 1;
    }
    loop.alpha = (float)count;
  }
  ONEDNN_TRY(make(plan, kernel, to, &result));
  ONEDNN_TRY(onednn_loop_step(plan, &loop, (const onednn_tensor_t *[]){source, &result}, 2, kernel->node,
                              "sum loop"));
  return finish(plan, kernel, &result);
}

cleave_status_t onednn_emit_softmax_loop(onednn_plan_t *plan, const onednn_kernel_t *kernel,
                                         const onednn_tensor_t *source, dnnl_alg_kind_t algorithm) {
  onednn_shape_t shape = onednn_layout_shape(&source->layout);
  onednn_loop_t loop = {.run = onednn_loop_softmax, .algorithm = algorithm, .rank = 3};
  onednn_tensor_t result;
  loop.alpha = cleave_view_int(&plan->region->nodes[kernel->node], ONEDNN_MASKED, 0) != 0 ? 0.0F : NAN;
  onednn_loop_set_dims(loop.dims, &shape);
  ONEDNN_TRY(make(plan, kernel, &shape, &result));
  ONEDNN_TRY(onednn_loop_step(plan, &loop, (const onednn_tensor_t *[]){source, &result}, 2, kernel->node,
                              "softmax loop"));
  return finish(plan, kernel, &result);
}

cleave_status_t onednn_emit_max_pool_loop(onednn_plan_t *plan, const onednn_kernel_t *kernel,
                                          const onednn_window_t *window, const onednn_shape_t *to) {
  onednn_shape_t from = onednn_plan_shape(plan, kernel->source);
  onednn_loop_t loop = {
      .run = onednn_loop_max_pool, .rank = 1, .dims = {from.dims[0] * from.dims[1]}, .window = {.rank = 3}};
  onednn_tensor_t source;
  onednn_tensor_t result;
  ONEDNN_TRY(onednn_plan_fetch(plan, kernel->source, &source));
  ONEDNN_TRY(onednn_plan_plain(plan, &source, &source));
  ONEDNN_TRY(make(plan, kernel, to, &result));
  for (int32_t d = 0; d < 3; d++) {
    int32_t own = d - (3 - window->rank);
    loop.strides[0][d] = own < 0 ? 1 : from.dims[own + 2];
    loop.strides[1][d] = own < 0 ? 1 : to->dims[own + 2];
    loop.window.kernel[d] = own < 0 ? 1 : window->kernel[own];
    loop.window.strides[d] = own < 0 ? 1 : window->strides[own];
    loop.window.dilations[d] = own < 0 ? 0 : window->dilations[own];
    loop.window.pad_begin[d] = own < 0 ? 0 : window->pad_begin[own];
  }
  ONEDNN_TRY(onednn_loop_step(plan, &loop, (const onednn_tensor_t *[]){&source, &result}, 2, kernel->node,
                              "maxpool loop"));
  return finish(plan, kernel, &result);
}

cleave_status_t onednn_emit_watch(onednn_plan_t *plan, const onednn_tensor_t *result, uint32_t node) {
  size_t element = onednn_layout_element(&result->layout);
  onednn_loop_t loop = {.run = element == sizeof(float) ? onednn_loop_watch : onednn_loop_watch_short,
                        .rank = 1,
                        .dims = {(int64_t)(onednn_md_bytes(&result->layout) / element)},
                        .lowest = result->layout.data_type == dnnl_bf16 ? 0xff7f : 0xfbff};
  return onednn_loop_step(plan, &loop, (const onednn_tensor_t *[]){result}, 1, node, "maxpool watch");
}
