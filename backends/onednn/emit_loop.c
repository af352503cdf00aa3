// SPDX-License-Identifier: Apache-2.0
// Steps that are loops of our own. They read and write plain tensors, except for elementwise functions, which
// keep any layout in which no element is padding.
#include <math.h>
#include <string.h>

#include "emit.h"

static cleave_status_t add(onednn_plan_t *plan, const onednn_loop_t *loop,
                           const onednn_tensor_t *const *tensors, uint32_t count, uint32_t node,
                           const char *label) {
  static const int names[3] = {DNNL_ARG_SRC_0, DNNL_ARG_SRC_1, DNNL_ARG_DST};
  onednn_argument_t arguments[3];
  for (uint32_t k = 0; k < count; k++) {
    arguments[k] = (onednn_argument_t){.name = names[k + 1 == count ? 2 : k], .tensor = *tensors[k]};
  }
  return onednn_plan_loop(plan, loop, arguments, count, node, label);
}

static void set_dims(int64_t *dims, const onednn_shape_t *shape) {
  memcpy(dims, shape->dims, (size_t)shape->rank * sizeof(int64_t));
}

// Strides of a plain tensor of shape `own`, 0 where it has one element.
static void set_strides(int64_t *strides, const onednn_shape_t *own) {
  int64_t stride = 1;
  for (int32_t d = own->rank; d-- > 0;) {
    strides[d] = own->dims[d] == 1 ? 0 : stride;
    stride *= own->dims[d];
  }
}

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
  return add(plan, &loop, (const onednn_tensor_t *[]){&x, out}, 2, post->node, "eltwise loop");
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
    set_strides(loop.strides[k], &shapes[k]);
  }
  for (int32_t d = 0; d < rank; d++) {
    shape.dims[d] = shapes[0].dims[d] == 1 ? shapes[1].dims[d] : shapes[0].dims[d];
    if (shapes[1].dims[d] != 1 && shapes[1].dims[d] != shape.dims[d]) {
      return onednn_fail(plan->message, CLEAVE_ERROR_SHAPE, "'%s': its operands do not broadcast",
                         onednn_node_name(&plan->region->nodes[post->node]));
    }
  }
  loop.rank = rank;
  set_dims(loop.dims, &shape);
  onednn_layout_t plain = onednn_layout_plain(&shape);
  ONEDNN_TRY(onednn_plan_make(plan, value, &plain, out));
  return add(plan, &loop, (const onednn_tensor_t *[]){&sides[0], &sides[1], out}, 3, post->node,
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
  set_dims(loop.dims, &from);
  set_strides(loop.strides[1], to);
  ONEDNN_TRY(make(plan, kernel, to, &result));
  ONEDNN_TRY(add(plan, &loop, (const onednn_tensor_t *[]){source, &result}, 2, kernel->node,
                 algorithm == dnnl_reduction_max ? "maximum loop" : "minimum loop"));
  return finish(plan, kernel, &result);
}

cleave_status_t onednn_emit_softmax_loop(onednn_plan_t *plan, const onednn_kernel_t *kernel,
                                         const onednn_tensor_t *source, dnnl_alg_kind_t algorithm) {
  onednn_shape_t shape = onednn_layout_shape(&source->layout);
  onednn_loop_t loop = {.run = onednn_loop_softmax, .algorithm = algorithm, .rank = 3};
  onednn_tensor_t result;
  loop.alpha = cleave_view_int(&plan->region->nodes[kernel->node], ONEDNN_MASKED, 0) != 0 ? 0.0F : NAN;
  set_dims(loop.dims, &shape);
  ONEDNN_TRY(make(plan, kernel, &shape, &result));
  ONEDNN_TRY(add(plan, &loop, (const onednn_tensor_t *[]){source, &result}, 2, kernel->node, "softmax loop"));
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
  ONEDNN_TRY(
      add(plan, &loop, (const onednn_tensor_t *[]){&source, &result}, 2, kernel->node, "maxpool loop"));
  return finish(plan, kernel, &result);
}

cleave_status_t onednn_emit_copy_loop(onednn_plan_t *plan, const onednn_tensor_t *from,
                                      const onednn_tensor_t *to) {
  onednn_shape_t shape = onednn_layout_shape(&from->layout);
  onednn_loop_t loop = {.run = onednn_loop_copy, .rank = shape.rank};
  set_dims(loop.dims, &shape);
  for (int32_t d = 0; d < shape.rank; d++) {
    loop.strides[0][d] = from->layout.format_desc.blocking.strides[d];
  }
  return add(plan, &loop, (const onednn_tensor_t *[]){from, to}, 2, CLEAVE_INDEX_NONE, "copy loop");
}

cleave_status_t onednn_emit_watch(onednn_plan_t *plan, const onednn_tensor_t *result, uint32_t node) {
  onednn_loop_t loop = {.run = onednn_loop_watch,
                        .rank = 1,
                        .dims = {(int64_t)(onednn_md_bytes(&result->layout) / sizeof(float))}};
  return add(plan, &loop, (const onednn_tensor_t *[]){result}, 1, node, "maxpool watch");
}
