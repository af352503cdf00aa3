// SPDX-License-Identifier: Apache-2.0
// Between numbers and 8-bit integers, by loops of our own over memory without gaps.
#include <math.h>

#include "onednn/emit/emit.h"
#include "onednn/library/types.h"
#include "onednn/plan/loop_step.h"

cleave_status_t onednn_emit_quantize_loop(onednn_plan_t *plan, const onednn_tensor_t *source,
                                          const onednn_post_t *post, uint32_t value, onednn_tensor_t *out) {
  dnnl_data_type_t type = onednn_plan_type(plan, plan->region->nodes[post->node].outputs[0]);
  onednn_tensor_t dense = *source;
  if (!onednn_layout_is_dense(&dense.layout)) {
    ONEDNN_TRY(onednn_plan_plain(plan, source, &dense));
  }
  onednn_layout_t layout = onednn_layout_typed(&dense.layout, type);
  onednn_tensor_t result;
  ONEDNN_TRY(onednn_plan_make(plan, value, &layout, &result));
  *out = result;
  const onednn_bytes_loop_t bytes = {.operands = {onednn_bytes_of(&result, post->alpha, post->beta)}};
  return onednn_bytes_step(plan, onednn_loop_quantize, &bytes, (const onednn_tensor_t *[]){&dense, &result},
                           2, post->node, "quantize loop");
}

// The sum of two tensors, perhaps a Relu, and what makes integers of it.
static bool is_sum(const onednn_kernel_t *kernel) {
  const onednn_post_t *posts = kernel->posts;
  const onednn_post_t *second = &posts[kernel->post_count > 1 ? 1 : 0];
  bool relu = kernel->post_count == 3 && second->kind == ONEDNN_POST_ELTWISE &&
              second->algorithm == dnnl_eltwise_relu && second->alpha == 0.0F;
  return (relu || kernel->post_count == 2) && posts[0].kind == ONEDNN_POST_BINARY &&
         posts[0].algorithm == dnnl_binary_add && posts[kernel->post_count - 1].kind == ONEDNN_POST_QUANTIZE;
}

static bool has_one_scale(const onednn_tensor_t *tensor) {
  return tensor->quantization != NULL && tensor->quantization->scales == NULL;
}

static onednn_bytes_t operand_of(const onednn_tensor_t *tensor) {
  return onednn_bytes_of(tensor, tensor->quantization->scale, (float)tensor->quantization->zero_point);
}

cleave_status_t onednn_emit_add_bytes(onednn_plan_t *plan, const onednn_kernel_t *kernel, bool *done) {
  onednn_tensor_t sides[2];
  *done = false;
  if (!is_sum(kernel)) {
    return CLEAVE_OK;
  }
  ONEDNN_TRY(onednn_plan_stored(plan, kernel->source, &sides[0]));
  ONEDNN_TRY(onednn_plan_stored(plan, kernel->posts[0].operand, &sides[1]));
  onednn_shape_t shape = onednn_layout_shape(&sides[0].layout);
  onednn_shape_t other = onednn_layout_shape(&sides[1].layout);
  if (!has_one_scale(&sides[0]) || !has_one_scale(&sides[1]) || !onednn_shape_equal(&shape, &other)) {
    return CLEAVE_OK;
  }
  bool swaps = sides[0].layout.data_type == dnnl_s8 && sides[1].layout.data_type == dnnl_u8;
  onednn_tensor_t first = sides[swaps ? 1 : 0];
  onednn_tensor_t second = sides[swaps ? 0 : 1];
  bool spreads = !onednn_layout_is_dense(&first.layout) ||
                 (onednn_layout_is_plain(&first.layout) && onednn_layout_is_dense(&second.layout));
  const onednn_layout_t model = spreads ? second.layout : first.layout;
  onednn_layout_t layout = onednn_layout_is_dense(&model) ? model : onednn_layout_plain(&shape);
  onednn_layout_t layouts[2] = {onednn_layout_typed(&layout, first.layout.data_type),
                                onednn_layout_typed(&layout, second.layout.data_type)};
  ONEDNN_TRY(onednn_plan_convert(plan, &first, &layouts[0], &first));
  ONEDNN_TRY(onednn_plan_convert(plan, &second, &layouts[1], &second));
  const onednn_post_t *post = &kernel->posts[kernel->post_count - 1];
  onednn_layout_t typed = onednn_layout_typed(&layout, onednn_plan_type(plan, kernel->output));
  onednn_tensor_t result;
  ONEDNN_TRY(onednn_plan_make(plan, kernel->output, &typed, &result));
  onednn_bytes_loop_t bytes = {.operands = {operand_of(&first), operand_of(&second),
                                            onednn_bytes_of(&result, post->alpha, post->beta)},
                               .least = kernel->post_count == 3 ? 0.0F : -INFINITY};
  ONEDNN_TRY(onednn_bytes_step(plan, onednn_loop_add_bytes, &bytes,
                               (const onednn_tensor_t *[]){&first, &second, &result}, 3, kernel->node,
                               "add loop"));
  *done = true;
  return onednn_plan_bind(plan, kernel->output, &result);
}
