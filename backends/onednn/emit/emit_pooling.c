// SPDX-License-Identifier: Apache-2.0
// Poolings, global ones and means or maxima over all spatial dimensions among them. The source keeps its
// layout; the result gets the one that goes with it.
#include "onednn/emit/emit.h"

#include <string.h>

#include "onednn/library/types.h"
#include "onednn/plan/care.h"
#include "onednn/units/windows.h"

typedef struct pooling_context {
  dnnl_alg_kind_t algorithm;
  onednn_window_t window;
  onednn_tensor_t source;
} pooling_context_t;

static dnnl_status_t describe(void *opaque, dnnl_engine_t engine, const_dnnl_primitive_attr_t attributes,
                              const onednn_layout_t *result, dnnl_primitive_desc_t *out) {
  const pooling_context_t *context = opaque;
  const onednn_window_t *window = &context->window;
  const onednn_geometry_t geometry = {.kernel = window->kernel,
                                      .strides = window->strides,
                                      .dilations = window->dilations,
                                      .pad_begin = window->pad_begin,
                                      .pad_end = window->pad_end};
  const onednn_maker_t maker = {.engine = engine, .attributes = attributes, .out = out};
  return onednn_make_pooling(&maker, context->algorithm, &context->source.layout, result, &geometry);
}

static cleave_status_t arguments(onednn_plan_t *plan, void *opaque, const_dnnl_primitive_desc_t description,
                                 onednn_argument_t *out, uint32_t *count) {
  (void)plan;
  (void)description;
  const pooling_context_t *context = opaque;
  out[0] = (onednn_argument_t){.name = DNNL_ARG_SRC, .tensor = context->source};
  *count = 1;
  return CLEAVE_OK;
}

static bool is_max(const cleave_node_view_t *node) {
  return onednn_node_is(node, "MaxPool") || onednn_node_is(node, "GlobalMaxPool") ||
         onednn_node_is(node, "ReduceMax");
}

// The window that covers the whole image, and the shape of its result.
static onednn_shape_t whole_window(const onednn_shape_t *x, onednn_window_t *window) {
  onednn_shape_t result = *x;
  memset(window, 0, sizeof(*window));
  window->rank = x->rank - 2;
  for (int32_t d = 0; d < window->rank; d++) {
    window->kernel[d] = x->dims[d + 2];
    window->strides[d] = 1;
    result.dims[d + 2] = 1;
  }
  return result;
}

// The window that the node says, unless it has that of the whole image (y is NULL), and what is computed.
static cleave_status_t describe_window(onednn_plan_t *plan, const onednn_kernel_t *kernel,
                                       const onednn_shape_t *x, const onednn_shape_t *y,
                                       pooling_context_t *context) {
  const cleave_node_view_t *node = &plan->region->nodes[kernel->node];
  int64_t pads[2 * CLEAVE_MAX_RANK];
  const int64_t *extra = NULL;
  bool include_padding = y != NULL && cleave_view_int(node, "count_include_pad", 0) != 0;
  if (y != NULL && kernel->pad_node != CLEAVE_INDEX_NONE) {
    if (!onednn_pads_of(plan->region, &plan->region->nodes[kernel->pad_node], x->rank, pads)) {
      return kernel_fail(plan->message, CLEAVE_ERROR_INTERNAL, "the pads of '%s' are missing",
                         onednn_node_name(node));
    }
    extra = pads + 2;
    include_padding = true;
  }
  context->algorithm = is_max(node)      ? dnnl_pooling_max
                       : include_padding ? dnnl_pooling_avg_include_padding
                                         : dnnl_pooling_avg_exclude_padding;
  return y == NULL ? CLEAVE_OK
                   : onednn_window_forward(node, NULL, extra, x, y, &context->window, plan->message);
}

cleave_status_t onednn_emit_pooling(onednn_plan_t *plan, const onednn_kernel_t *kernel) {
  const cleave_node_view_t *node = &plan->region->nodes[kernel->node];
  onednn_shape_t x = onednn_plan_shape(plan, kernel->source);
  onednn_shape_t y = onednn_plan_shape(plan, node->outputs[0]);
  onednn_shape_t kernel_shape = y;
  pooling_context_t context;
  bool is_whole = !onednn_node_is(node, "MaxPool") && !onednn_node_is(node, "AveragePool");
  if (is_whole) {
    kernel_shape = whole_window(&x, &context.window);
  }
  ONEDNN_TRY(describe_window(plan, kernel, &x, is_whole ? NULL : &y, &context));
  bool low = onednn_plan_computes(plan) != dnnl_f32;
  onednn_tensor_t stored;
  ONEDNN_TRY(onednn_plan_stored(plan, kernel->source, &stored));
  if (is_whole && !is_max(node) && onednn_has_pixels(plan, &stored)) {
    ONEDNN_TRY(onednn_emit_pixel_means(plan, kernel, &stored, &stored));
    return onednn_emit_chain(plan, &stored, kernel->posts, kernel->post_count, kernel->node, kernel->output);
  }
  // The largest integer stands for the largest number. Integers have no special values.
  bool integers = is_max(node) && onednn_type_is_byte(stored.layout.data_type);
  bool watched = is_max(node) && !integers && plan->care == ONEDNN_CARE_FLAG;
  bool alone = watched || integers;
  if (is_max(node) && !integers && !onednn_may_raise(plan)) {
    return onednn_emit_max_pool_loop(plan, kernel, &context.window, &kernel_shape);
  }
  ONEDNN_TRY(onednn_emit_dense(plan, kernel->source, low || integers, &context.source));
  onednn_layout_t any = onednn_layout_any(&kernel_shape);
  onednn_request_t request = {.what = is_max(node) ? "maxpool" : "avgpool",
                              .node = kernel->node,
                              .describe = describe,
                              .arguments = arguments,
                              .context = &context,
                              .posts = kernel->posts,
                              .post_count = alone ? 0 : kernel->post_count,
                              .later_count = alone ? kernel->post_count : 0,
                              .shape = y,
                              .kernel_shape = kernel_shape,
                              .result = onednn_layout_typed(&any, context.source.layout.data_type),
                              .value = alone && kernel->post_count > 0 ? CLEAVE_INDEX_NONE : kernel->output};
  onednn_fitted_t fitted;
  ONEDNN_TRY(onednn_fit(plan, &request, ONEDNN_FIT_FAST, &fitted));
  if (fitted.declined) {
    ONEDNN_TRY(onednn_plan_plain(plan, &context.source, &context.source));
    ONEDNN_TRY(onednn_plan_typed(plan, &context.source, dnnl_f32, &context.source));
    request.result = any;
    ONEDNN_TRY(onednn_fit(plan, &request, ONEDNN_FIT_ALWAYS, &fitted));
  }
  if (watched) {
    ONEDNN_TRY(onednn_emit_watch(plan, &fitted.result, kernel->node));
  }
  if (integers && onednn_type_is_byte(fitted.result.layout.data_type)) {
    fitted.result.quantization = stored.quantization;
  }
  request.post_count = kernel->post_count;
  return onednn_emit_rest(plan, &request, &fitted, kernel->output);
}
