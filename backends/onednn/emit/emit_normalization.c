// SPDX-License-Identifier: Apache-2.0
// Layer normalization, softmax and local response normalization: primitives without post-ops, which can
// overwrite their source.
#include "onednn/emit/emit.h"

#include <string.h>

#include "onednn/plan/care.h"

typedef struct norm_context {
  onednn_tensor_t source;
  onednn_tensor_t scale;
  onednn_tensor_t shift;
  bool has_scale;
  bool has_shift;
  float epsilon;
  int axis;
  dnnl_alg_kind_t algorithm;
  const cleave_node_view_t *node;
} norm_context_t;

static cleave_status_t norm_arguments(onednn_plan_t *plan, void *opaque,
                                      const_dnnl_primitive_desc_t description, onednn_argument_t *out,
                                      uint32_t *count) {
  (void)plan;
  (void)description;
  const norm_context_t *context = opaque;
  out[0] = (onednn_argument_t){.name = DNNL_ARG_SRC, .tensor = context->source};
  *count = 1;
  if (context->has_scale) {
    out[(*count)++] = (onednn_argument_t){.name = DNNL_ARG_SCALE, .tensor = context->scale};
  }
  if (context->has_shift) {
    out[(*count)++] = (onednn_argument_t){.name = DNNL_ARG_SHIFT, .tensor = context->shift};
  }
  return CLEAVE_OK;
}

// One primitive on `source`, whose shape may be a merged one, with the result in the same layout.
static cleave_status_t run(onednn_plan_t *plan, const onednn_kernel_t *kernel, norm_context_t *context,
                           const char *what, onednn_describe_fn_t describe) {
  onednn_shape_t shape = onednn_layout_shape(&context->source.layout);
  onednn_layout_t low =
      onednn_layout_typed(&context->source.layout, onednn_plan_stores(plan, kernel->output));
  onednn_request_t request = {.what = what,
                              .node = kernel->node,
                              .describe = describe,
                              .arguments = norm_arguments,
                              .context = context,
                              .shape = onednn_plan_shape(plan, kernel->output),
                              .kernel_shape = shape,
                              .result = context->source.layout,
                              .value = kernel->output,
                              .in_place = &context->source};
  onednn_fitted_t fitted = {.declined = true};
  if (low.data_type != dnnl_f32) {
    request.result = low;
    ONEDNN_TRY(onednn_fit(plan, &request, ONEDNN_FIT_FAST, &fitted));
    request.result = context->source.layout;
  }
  if (fitted.declined) {
    ONEDNN_TRY(onednn_fit(plan, &request, ONEDNN_FIT_ALWAYS, &fitted));
  }
  return onednn_emit_rest(plan, &request, &fitted, kernel->output);
}

static dnnl_status_t describe_layer(void *opaque, dnnl_engine_t engine,
                                    const_dnnl_primitive_attr_t attributes, const onednn_layout_t *result,
                                    dnnl_primitive_desc_t *out) {
  const norm_context_t *context = opaque;
  unsigned flags = (context->has_scale ? (unsigned)dnnl_use_scale : 0U) |
                   (context->has_shift ? (unsigned)dnnl_use_shift : 0U);
  const onednn_maker_t maker = {.engine = engine, .attributes = attributes, .out = out};
  return onednn_make_layer_normalization(&maker, &context->source.layout, result, context->epsilon, flags);
}

static cleave_status_t fetch_vector(onednn_plan_t *plan, uint32_t value, int64_t count, onednn_tensor_t *out,
                                    bool *present) {
  *present = value != CLEAVE_INDEX_NONE;
  if (!*present) {
    return CLEAVE_OK;
  }
  onednn_shape_t own = onednn_plan_shape(plan, value);
  onednn_shape_t shape = {.rank = 1, .dims = {count}};
  onednn_tensor_t tensor;
  if (onednn_shape_count(&own) != count) {
    return kernel_fail(plan->message, CLEAVE_ERROR_UNSUPPORTED,
                       "layer normalization: expected %lld element%s in '%s'", (long long)count,
                       KERNEL_PLURAL(count), plan->region->values[value].name);
  }
  ONEDNN_TRY(onednn_plan_fetch(plan, value, &tensor));
  ONEDNN_TRY(onednn_plan_reshape(plan, &tensor, &shape, &tensor));
  return onednn_plan_plain(plan, &tensor, out);
}

cleave_status_t onednn_emit_layer_normalization(onednn_plan_t *plan, const onednn_kernel_t *kernel) {
  onednn_shape_t x = onednn_plan_shape(plan, kernel->source);
  int32_t axis = onednn_axis(kernel->axis, x.rank);
  norm_context_t context = {.epsilon = kernel->epsilon};
  onednn_shape_t merged = {.rank = 2, .dims = {1, 1}};
  if (axis < 0) {
    return kernel_fail(plan->message, CLEAVE_ERROR_SHAPE, "layer normalization: its axis is out of range");
  }
  for (int32_t d = 0; d < x.rank; d++) {
    merged.dims[d < axis ? 0 : 1] *= x.dims[d];
  }
  ONEDNN_TRY(fetch_vector(plan, kernel->scale, merged.dims[1], &context.scale, &context.has_scale));
  ONEDNN_TRY(fetch_vector(plan, kernel->shift, merged.dims[1], &context.shift, &context.has_shift));
  onednn_tensor_t source;
  ONEDNN_TRY(onednn_plan_fetch(plan, kernel->source, &source));
  ONEDNN_TRY(onednn_plan_plain(plan, &source, &source));
  ONEDNN_TRY(onednn_plan_reshape(plan, &source, &merged, &context.source));
  return run(plan, kernel, &context, "layernorm", describe_layer);
}

static dnnl_status_t describe_softmax(void *opaque, dnnl_engine_t engine,
                                      const_dnnl_primitive_attr_t attributes, const onednn_layout_t *result,
                                      dnnl_primitive_desc_t *out) {
  const norm_context_t *context = opaque;
  const onednn_maker_t maker = {.engine = engine, .attributes = attributes, .out = out};
  return onednn_make_softmax(&maker, context->algorithm, &context->source.layout, result, context->axis);
}

cleave_status_t onednn_emit_softmax(onednn_plan_t *plan, const onednn_kernel_t *kernel) {
  const cleave_node_view_t *node = &plan->region->nodes[kernel->node];
  onednn_shape_t x = onednn_plan_shape(plan, kernel->source);
  int32_t axis = onednn_axis(cleave_view_int(node, "axis", node->opset_version < 13 ? 1 : -1), x.rank);
  norm_context_t context = {
      .axis = axis,
      .algorithm = onednn_node_is(node, "LogSoftmax") ? dnnl_softmax_log : dnnl_softmax_accurate};
  if (axis < 0) {
    return kernel_fail(plan->message, CLEAVE_ERROR_SHAPE, "%s '%s': its axis is out of range", node->op,
                       onednn_node_name(node));
  }
  ONEDNN_TRY(onednn_emit_dense(plan, kernel->source, false, &context.source));
  if (!onednn_may_raise(plan)) {
    ONEDNN_TRY(onednn_plan_plain(plan, &context.source, &context.source));
  }
  if (onednn_layout_is_plain(&context.source.layout)) {
    onednn_shape_t merged = {.rank = 3, .dims = {1, 1, 1}};
    for (int32_t d = 0; d < x.rank; d++) {
      merged.dims[d < axis ? 0 : (d == axis ? 1 : 2)] *= x.dims[d];
    }
    merged.rank = merged.dims[2] == 1 && onednn_may_raise(plan) ? 2 : 3;
    context.axis = 1;
    ONEDNN_TRY(onednn_plan_reshape(plan, &context.source, &merged, &context.source));
    if (!onednn_may_raise(plan)) {
      return onednn_emit_softmax_loop(plan, kernel, &context.source, context.algorithm);
    }
  }
  return run(plan, kernel, &context, "softmax", describe_softmax);
}

static dnnl_status_t describe_lrn(void *opaque, dnnl_engine_t engine, const_dnnl_primitive_attr_t attributes,
                                  const onednn_layout_t *result, dnnl_primitive_desc_t *out) {
  const norm_context_t *context = opaque;
  const onednn_maker_t maker = {.engine = engine, .attributes = attributes, .out = out};
  return onednn_make_lrn(&maker, result, cleave_view_int(context->node, "size", 1),
                         (float)cleave_view_float(context->node, "alpha", 1e-4),
                         (float)cleave_view_float(context->node, "beta", 0.75),
                         (float)cleave_view_float(context->node, "bias", 1));
}

cleave_status_t onednn_emit_lrn(onednn_plan_t *plan, const onednn_kernel_t *kernel) {
  norm_context_t context = {.node = &plan->region->nodes[kernel->node]};
  onednn_tensor_t source;
  ONEDNN_TRY(onednn_emit_dense(plan, kernel->source, false, &source));
  context.source = source;
  onednn_shape_t shape = onednn_layout_shape(&source.layout);
  onednn_request_t request = {.what = "lrn",
                              .node = kernel->node,
                              .describe = describe_lrn,
                              .arguments = norm_arguments,
                              .context = &context,
                              .shape = shape,
                              .kernel_shape = shape,
                              .result = source.layout,
                              .value = kernel->output};
  onednn_fitted_t fitted;
  ONEDNN_TRY(onednn_fit(plan, &request, ONEDNN_FIT_ALWAYS, &fitted));
  return onednn_emit_rest(plan, &request, &fitted, kernel->output);
}
