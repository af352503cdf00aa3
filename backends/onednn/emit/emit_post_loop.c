// SPDX-License-Identifier: Apache-2.0
// One post as a loop of our own. Elementwise functions keep any layout in which no element is padding; what
// reads two tensors makes them plain.
#include "onednn/emit/emit.h"

#include "onednn/plan/loop_step.h"

static cleave_status_t emit_eltwise(onednn_plan_t *plan, const onednn_tensor_t *source,
                                    const onednn_post_t *post, uint32_t value, onednn_tensor_t *out) {
  onednn_shape_t shape = onednn_layout_shape(&source->layout);
  onednn_loop_t loop = {.run = onednn_loop_eltwise,
                        .algorithm = post->algorithm,
                        .alpha = post->alpha,
                        .beta = post->beta,
                        .rank = 1,
                        .dims = {onednn_shape_count(&shape)}};
  onednn_tensor_t x = *source;
  if (onednn_md_bytes(&x.layout) != (size_t)loop.dims[0] * sizeof(float)) {
    ONEDNN_TRY(onednn_plan_plain(plan, source, &x));
  }
  ONEDNN_TRY(onednn_plan_make(plan, value, &x.layout, out));
  return onednn_loop_step(plan, &loop, (const onednn_tensor_t *[]){&x, out}, 2, post->node, "eltwise loop");
}

// The larger or smaller of two tensors that broadcast against each other.
static cleave_status_t emit_binary(onednn_plan_t *plan, const onednn_tensor_t *source,
                                   const onednn_post_t *post, uint32_t value, onednn_tensor_t *out) {
  onednn_tensor_t sides[2] = {*source};
  onednn_loop_t loop = {.run = onednn_loop_binary, .algorithm = post->algorithm};
  ONEDNN_TRY(onednn_plan_fetch(plan, post->operand, &sides[1]));
  onednn_shape_t shapes[2] = {onednn_layout_shape(&sides[0].layout), onednn_layout_shape(&sides[1].layout)};
  int32_t rank = shapes[0].rank > shapes[1].rank ? shapes[0].rank : shapes[1].rank;
  onednn_shape_t shape = {.rank = rank};
  for (int k = 0; k < 2; k++) {
    shapes[k] = onednn_shape_pad(&shapes[k], rank);
    ONEDNN_TRY(onednn_plan_reshape(plan, &sides[k], &shapes[k], &sides[k]));
    ONEDNN_TRY(onednn_plan_plain(plan, &sides[k], &sides[k]));
    onednn_loop_set_strides(loop.strides[k], &shapes[k]);
  }
  for (int32_t d = 0; d < rank; d++) {
    shape.dims[d] = shapes[0].dims[d] == 1 ? shapes[1].dims[d] : shapes[0].dims[d];
    if (shapes[1].dims[d] != 1 && shapes[1].dims[d] != shape.dims[d]) {
      return kernel_fail(plan->message, CLEAVE_ERROR_SHAPE, "'%s': its operands do not broadcast",
                         onednn_node_name(&plan->region->nodes[post->node]));
    }
  }
  loop.rank = rank;
  onednn_loop_set_dims(loop.dims, &shape);
  onednn_layout_t plain = onednn_layout_plain(&shape);
  ONEDNN_TRY(onednn_plan_make(plan, value, &plain, out));
  return onednn_loop_step(plan, &loop, (const onednn_tensor_t *[]){&sides[0], &sides[1], out}, 3, post->node,
                          "binary loop");
}

cleave_status_t onednn_emit_post_loop(onednn_plan_t *plan, const onednn_tensor_t *source,
                                      const onednn_post_t *post, uint32_t value, onednn_tensor_t *out) {
  onednn_tensor_t result;
  ONEDNN_TRY(post->kind == ONEDNN_POST_BINARY ? emit_binary(plan, source, post, value, &result)
                                              : emit_eltwise(plan, source, post, value, &result));
  *out = result;
  return CLEAVE_OK;
}
