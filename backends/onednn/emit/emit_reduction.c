// SPDX-License-Identifier: Apache-2.0
// Reductions over any dimensions, resampling, and PRelu with a tensor of slopes.
#include "onednn/emit/emit.h"

#include <string.h>

#include "onednn/units/windows.h"

typedef struct map_context {
  onednn_tensor_t source;
  onednn_tensor_t weights;
  dnnl_alg_kind_t algorithm;
  float power;
} map_context_t;

static cleave_status_t source_argument(onednn_plan_t *plan, void *opaque,
                                       const_dnnl_primitive_desc_t description, onednn_argument_t *out,
                                       uint32_t *count) {
  (void)plan;
  (void)description;
  const map_context_t *context = opaque;
  out[0] = (onednn_argument_t){.name = DNNL_ARG_SRC, .tensor = context->source};
  *count = 1;
  return CLEAVE_OK;
}

static dnnl_status_t describe_reduction(void *opaque, dnnl_engine_t engine,
                                        const_dnnl_primitive_attr_t attributes, const onednn_layout_t *result,
                                        dnnl_primitive_desc_t *out) {
  const map_context_t *context = opaque;
  const onednn_maker_t maker = {.engine = engine, .attributes = attributes, .out = out};
  return onednn_make_reduction(&maker, context->algorithm, &context->source.layout, result, context->power);
}

static const struct {
  const char *op;
  dnnl_alg_kind_t algorithm;
  float power;
} reductions[] = {
    {"ReduceL1", dnnl_reduction_norm_lp_sum, 1}, {"ReduceL2", dnnl_reduction_norm_lp_sum, 2},
    {"ReduceMax", dnnl_reduction_max, 1},        {"ReduceMean", dnnl_reduction_mean, 1},
    {"ReduceMin", dnnl_reduction_min, 1},        {"ReduceProd", dnnl_reduction_mul, 1},
    {"ReduceSum", dnnl_reduction_sum, 1},        {"ReduceSumSquare", dnnl_reduction_norm_lp_power_p_sum, 2},
};

// Merges neighbouring dimensions that are both reduced or both kept.
static void merge(const onednn_shape_t *x, const bool *axes, onednn_shape_t *from, onednn_shape_t *to) {
  int32_t last = -1;
  from->rank = 0;
  to->rank = 0;
  for (int32_t d = 0; d < x->rank; d++) {
    if (x->dims[d] == 1) {
      continue;
    }
    if (last >= 0 && axes[last] == axes[d]) {
      from->dims[from->rank - 1] *= x->dims[d];
      to->dims[to->rank - 1] *= axes[d] ? 1 : x->dims[d];
    } else {
      from->dims[from->rank++] = x->dims[d];
      to->dims[to->rank++] = axes[d] ? 1 : x->dims[d];
    }
    last = d;
  }
  // oneDNN refuses a reduction that reduces nothing; a dimension of one is reduced along.
  if (from->rank < 2 || onednn_shape_equal(from, to)) {
    from->dims[from->rank++] = 1;
    to->dims[to->rank++] = 1;
  }
}

/* Sums, of which oneDNN has its reference implementation alone. */
static bool is_sum(const map_context_t *context) {
  return context->algorithm == dnnl_reduction_sum || context->algorithm == dnnl_reduction_mean ||
         (context->algorithm == dnnl_reduction_norm_lp_power_p_sum && context->power == 2);
}

cleave_status_t onednn_emit_reduction(onednn_plan_t *plan, const onednn_kernel_t *kernel) {
  const cleave_node_view_t *node = &plan->region->nodes[kernel->node];
  onednn_shape_t x = onednn_plan_shape(plan, kernel->source);
  bool axes[CLEAVE_MAX_RANK] = {false};
  map_context_t context = {.algorithm = dnnl_reduction_sum};
  onednn_shape_t from;
  onednn_shape_t to;
  if (!onednn_reduced_axes(plan->region, node, x.rank, axes)) {
    return kernel_fail(plan->message, CLEAVE_ERROR_UNSUPPORTED, "%s '%s': its axes are not constant",
                       node->op, onednn_node_name(node));
  }
  for (size_t k = 0; k < sizeof(reductions) / sizeof(reductions[0]); k++) {
    if (onednn_node_is(node, reductions[k].op)) {
      context.algorithm = reductions[k].algorithm;
      context.power = reductions[k].power;
    }
  }
  merge(&x, axes, &from, &to);
  ONEDNN_TRY(onednn_plan_fetch(plan, kernel->source, &context.source));
  ONEDNN_TRY(onednn_plan_plain(plan, &context.source, &context.source));
  onednn_shape_t shape = onednn_plan_shape(plan, node->outputs[0]);
  if (onednn_shape_equal(&from, &to) && context.algorithm != dnnl_reduction_norm_lp_sum &&
      context.algorithm != dnnl_reduction_norm_lp_power_p_sum) {
    // One element per sum: the value itself.
    ONEDNN_TRY(onednn_plan_reshape(plan, &context.source, &shape, &context.source));
    return onednn_emit_chain(plan, &context.source, kernel->posts, kernel->post_count, kernel->node,
                             kernel->output);
  }
  ONEDNN_TRY(onednn_plan_reshape(plan, &context.source, &from, &context.source));
  bool extreme = context.algorithm == dnnl_reduction_max || context.algorithm == dnnl_reduction_min;
  if (extreme && plan->care != ONEDNN_CARE_NONE) {
    return onednn_emit_extreme_loop(plan, kernel, &context.source, &to, context.algorithm);
  }
  if (is_sum(&context)) {
    return onednn_emit_sum_loop(plan, kernel, &context.source, &to, context.algorithm);
  }
  onednn_request_t request = {.what = "reduction",
                              .node = kernel->node,
                              .describe = describe_reduction,
                              .arguments = source_argument,
                              .context = &context,
                              .posts = kernel->posts,
                              .post_count = kernel->post_count,
                              .shape = shape,
                              .kernel_shape = to,
                              .result = onednn_layout_plain(&to),
                              .value = kernel->output};
  onednn_fitted_t fitted;
  ONEDNN_TRY(onednn_fit(plan, &request, ONEDNN_FIT_ALWAYS, &fitted));
  return onednn_emit_rest(plan, &request, &fitted, kernel->output);
}

static dnnl_status_t describe_resampling(void *opaque, dnnl_engine_t engine,
                                         const_dnnl_primitive_attr_t attributes,
                                         const onednn_layout_t *result, dnnl_primitive_desc_t *out) {
  const map_context_t *context = opaque;
  const onednn_maker_t maker = {.engine = engine, .attributes = attributes, .out = out};
  return onednn_make_resampling(&maker, context->algorithm, &context->source.layout, result);
}

cleave_status_t onednn_emit_resampling(onednn_plan_t *plan, const onednn_kernel_t *kernel) {
  const cleave_node_view_t *node = &plan->region->nodes[kernel->node];
  onednn_shape_t shape = onednn_plan_shape(plan, node->outputs[0]);
  bool linear = strcmp(cleave_view_string(node, "mode", "nearest"), "linear") == 0;
  map_context_t context = {.algorithm = linear ? dnnl_resampling_linear : dnnl_resampling_nearest};
  ONEDNN_TRY(onednn_resize_check(plan->region, node, plan->message));
  ONEDNN_TRY(onednn_emit_dense(plan, kernel->source, false, &context.source));
  onednn_request_t request = {.what = "resampling",
                              .node = kernel->node,
                              .describe = describe_resampling,
                              .arguments = source_argument,
                              .context = &context,
                              .posts = kernel->posts,
                              .post_count = kernel->post_count,
                              .shape = shape,
                              .kernel_shape = shape,
                              .result = onednn_layout_any(&shape),
                              .value = kernel->output,
                              .match_blocks = true};
  onednn_fitted_t fitted;
  ONEDNN_TRY(onednn_fit(plan, &request, ONEDNN_FIT_ALWAYS, &fitted));
  return onednn_emit_rest(plan, &request, &fitted, kernel->output);
}

static dnnl_status_t describe_prelu(void *opaque, dnnl_engine_t engine,
                                    const_dnnl_primitive_attr_t attributes, const onednn_layout_t *result,
                                    dnnl_primitive_desc_t *out) {
  const map_context_t *context = opaque;
  onednn_shape_t shape = onednn_layout_shape(&context->weights.layout);
  onednn_layout_t any = onednn_layout_any(&shape);
  const onednn_maker_t maker = {.engine = engine, .attributes = attributes, .out = out};
  return onednn_make_prelu(&maker, result, &any);
}

static cleave_status_t prelu_arguments(onednn_plan_t *plan, void *opaque,
                                       const_dnnl_primitive_desc_t description, onednn_argument_t *out,
                                       uint32_t *count) {
  const map_context_t *context = opaque;
  onednn_layout_t weights;
  if (!onednn_query_layout(description, dnnl_query_weights_md, &weights)) {
    return onednn_check(dnnl_runtime_error, "the layout of a slope", plan->message);
  }
  out[0] = (onednn_argument_t){.name = DNNL_ARG_SRC, .tensor = context->source};
  out[1].name = DNNL_ARG_WEIGHTS;
  *count = 2;
  return onednn_plan_convert(plan, &context->weights, &weights, &out[1].tensor);
}

cleave_status_t onednn_emit_prelu(onednn_plan_t *plan, const onednn_kernel_t *kernel) {
  const cleave_node_view_t *node = &plan->region->nodes[kernel->node];
  onednn_shape_t shape = onednn_plan_shape(plan, kernel->source);
  onednn_shape_t slope = onednn_plan_shape(plan, node->inputs[1]);
  map_context_t context = {.algorithm = dnnl_eltwise_relu};
  if (slope.rank > shape.rank || !onednn_shape_fits(&slope, &shape)) {
    return kernel_fail(plan->message, CLEAVE_ERROR_SHAPE,
                       "PRelu '%s': its slope does not broadcast to the data", onednn_node_name(node));
  }
  slope = onednn_shape_pad(&slope, shape.rank);
  ONEDNN_TRY(onednn_emit_dense(plan, kernel->source, false, &context.source));
  ONEDNN_TRY(onednn_plan_fetch(plan, node->inputs[1], &context.weights));
  ONEDNN_TRY(onednn_plan_reshape(plan, &context.weights, &slope, &context.weights));
  onednn_request_t request = {.what = "prelu",
                              .node = kernel->node,
                              .describe = describe_prelu,
                              .arguments = prelu_arguments,
                              .context = &context,
                              .shape = shape,
                              .kernel_shape = shape,
                              .result = context.source.layout,
                              .value = kernel->output,
                              .in_place = &context.source};
  onednn_fitted_t fitted;
  ONEDNN_TRY(onednn_fit(plan, &request, ONEDNN_FIT_ALWAYS, &fitted));
  return onednn_emit_rest(plan, &request, &fitted, kernel->output);
}
