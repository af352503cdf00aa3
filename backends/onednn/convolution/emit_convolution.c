// SPDX-License-Identifier: Apache-2.0
// Convolution and transposed convolution, all three operands in the layout that oneDNN chooses. Weights that
// are constant are scaled and packed while compiling; a bias is gathered from the node's own and what the
// posts add per channel.
#include <math.h>
#include <string.h>

#include "onednn/convolution/convolution.h"
#include "onednn/plan/loop_step.h"
#include "onednn/units/windows.h"

typedef struct convolution_context {
  bool transposed;
  bool winograd;
  int skipped;  // implementations that are passed over
  onednn_layout_t source;
  onednn_layout_t weights;  // any
  onednn_layout_t bias;
  bool has_bias;
  onednn_window_t window;
  onednn_tensor_t source_tensor;
  onednn_tensor_t weights_tensor;
  onednn_tensor_t bias_tensor;
} convolution_context_t;

static dnnl_status_t describe(void *opaque, dnnl_engine_t engine, const_dnnl_primitive_attr_t attributes,
                              const onednn_layout_t *result, dnnl_primitive_desc_t *out) {
  const convolution_context_t *context = opaque;
  const onednn_window_t *window = &context->window;
  const onednn_layout_t *bias = context->has_bias ? &context->bias : NULL;
  dnnl_alg_kind_t algorithm = context->winograd ? dnnl_convolution_winograd : dnnl_convolution_direct;
  const onednn_operands_t operands = {
      .source = &context->source, .weights = &context->weights, .bias = bias, .result = result};
  const onednn_geometry_t geometry = {.strides = window->strides,
                                      .dilations = window->dilations,
                                      .pad_begin = window->pad_begin,
                                      .pad_end = window->pad_end};
  const onednn_maker_t maker = {
      .engine = engine, .attributes = attributes, .out = out, .skipped = context->skipped};
  return context->transposed ? onednn_make_deconvolution(&maker, &operands, &geometry)
                             : onednn_make_convolution(&maker, algorithm, &operands, &geometry);
}

static cleave_status_t arguments(onednn_plan_t *plan, void *opaque, const_dnnl_primitive_desc_t description,
                                 onednn_argument_t *out, uint32_t *count) {
  convolution_context_t *context = opaque;
  const onednn_tensor_t *const tensors[] = {&context->source_tensor, &context->weights_tensor,
                                            context->has_bias ? &context->bias_tensor : NULL};
  return onednn_plan_operands(plan, description, tensors, out, count);
}

static bool is_identity(const float *scale, int64_t count) {
  for (int64_t c = 0; c < count; c++) {
    if (scale[c] != 1.0F) {
      return false;
    }
  }
  return true;
}

// The bias: the node's own, constant or not, and the shift that was folded.
static cleave_status_t make_bias(onednn_plan_t *plan, const cleave_value_view_t *own, uint32_t own_value,
                                 const onednn_shape_t *shape, const float *shift,
                                 convolution_context_t *context) {
  bool zero = true;
  for (int64_t c = 0; c < shape->dims[0]; c++) {
    zero = zero && shift[c] == 0.0F;
  }
  context->bias = onednn_layout_plain(shape);
  context->has_bias = own != NULL || !zero;
  if (own != NULL && !onednn_is_constant(own)) {
    return onednn_plan_fetch(plan, own_value, &context->bias_tensor);
  }
  if (context->has_bias) {
    float *data = NULL;
    ONEDNN_TRY(onednn_plan_constant(plan, &context->bias, &context->bias_tensor, &data));
    memcpy(data, shift, (size_t)shape->dims[0] * sizeof(float));
  }
  return CLEAVE_OK;
}

static cleave_status_t prepare(onednn_plan_t *plan, const onednn_kernel_t *kernel, bool transposed,
                               const onednn_shape_t *shape, convolution_context_t *context,
                               uint32_t *folded) {
  const cleave_node_view_t *node = &plan->region->nodes[kernel->node];
  const cleave_value_view_t *bias = cleave_view_input(plan->region, node, 2);
  onednn_weights_view_t view;
  ONEDNN_TRY(onednn_convolution_weights(plan, kernel, transposed, &view));
  float *scale = kernel_arena_allocate(plan->arena, (size_t)view.outputs, 2 * sizeof(float));
  if (scale == NULL) {
    return kernel_fail(plan->message, CLEAVE_ERROR_OUT_OF_MEMORY, "out of memory while packing weights");
  }
  float *shift = scale + view.outputs;
  onednn_shape_t channels = {.rank = 1, .dims = {view.outputs}};
  for (int64_t c = 0; c < view.outputs; c++) {
    scale[c] = 1.0F;
  }
  if (shape->dims[1] != view.outputs ||
      (bias != NULL && cleave_view_element_count(&bias->tensor) != view.outputs)) {
    return kernel_fail(plan->message, CLEAVE_ERROR_SHAPE, "%s '%s': expected %lld output channel%s", node->op,
                       onednn_node_name(node), (long long)view.outputs, KERNEL_PLURAL(view.outputs));
  }
  bool foldable = onednn_is_constant(&plan->region->values[kernel->weights]);
  if (bias != NULL && !onednn_is_constant(bias)) {
    foldable = false;
  } else if (bias != NULL) {
    onednn_floats(bias, shift, (size_t)view.outputs);
  }
  *folded = 0;
  if (foldable) {
    ONEDNN_TRY(onednn_fold_posts(plan, kernel, shape, 1, true, scale, shift, folded));
  }
  ONEDNN_TRY(make_bias(plan, bias, bias != NULL ? node->inputs[2] : 0, &channels, shift, context));
  if (is_identity(scale, view.outputs)) {
    ONEDNN_TRY(onednn_plan_fetch(plan, kernel->weights, &context->weights_tensor));
    ONEDNN_TRY(onednn_plan_plain(plan, &context->weights_tensor, &context->weights_tensor));
    context->weights_tensor.layout = onednn_layout_strided(&view.shape, view.strides);
  } else {
    ONEDNN_TRY(onednn_convolution_scaled(plan, kernel, transposed, &view, scale, &context->weights_tensor));
  }
  context->weights = onednn_layout_any(&view.shape);
  return CLEAVE_OK;
}

// Fits it in the type that the kernel computes in, with the result in the type that it is stored in. oneDNN's
// best code is for channels last, but for some sums it would choose another layout, and reorder back.
static cleave_status_t fit_low(onednn_plan_t *plan, onednn_request_t *request, convolution_context_t *context,
                               onednn_fitted_t *fitted) {
  dnnl_data_type_t type = onednn_plan_computes(plan);
  onednn_shape_t x = onednn_layout_shape(&context->source_tensor.layout);
  onednn_layout_t weights = context->weights;
  context->weights = onednn_layout_typed(&weights, type);
  fitted->declined = true;
  for (int any = 0; any < 2 && fitted->declined; any++) {
    onednn_layout_t source = any ? onednn_layout_any(&x) : onednn_layout_channels_last(&x);
    onednn_layout_t result =
        any ? onednn_layout_any(&request->shape) : onednn_layout_channels_last(&request->shape);
    context->source = onednn_layout_typed(&source, type);
    request->result = onednn_layout_typed(&result, onednn_plan_stores(plan, request->value));
    ONEDNN_TRY(onednn_fit(plan, request, ONEDNN_FIT_FAST, fitted));
  }
  context->weights = fitted->declined ? weights : context->weights;
  return CLEAVE_OK;
}

// Fits it in the form that tuning has chosen; declined if there is none.
static cleave_status_t fit_form(onednn_plan_t *plan, const onednn_kernel_t *kernel, onednn_request_t *request,
                                convolution_context_t *context, onednn_fitted_t *fitted) {
  const onednn_form_t form = onednn_plan_form(plan);
  bool by_winograd = form.layout == ONEDNN_FORM_WINOGRAD;
  fitted->declined = true;
  if (onednn_plan_computes(plan) != dnnl_f32 || (by_winograd && !onednn_winograd_suits(plan, kernel)) ||
      !onednn_form_layouts(&form, &context->source_tensor.layout, &request->shape, &context->source,
                           &request->result)) {
    return CLEAVE_OK;
  }
  context->winograd = by_winograd;
  context->skipped = form.skipped;
  cleave_status_t status = onednn_fit(plan, request, ONEDNN_FIT_FAST, fitted);
  context->winograd = false;
  context->skipped = 0;
  plan->formed[plan->kernel] = !fitted->declined;
  return status;
}

// Blocks of 16 channels if the region is for them, or channels last, else what oneDNN chooses.
static cleave_status_t fit(onednn_plan_t *plan, const onednn_kernel_t *kernel, onednn_request_t *request,
                           convolution_context_t *context, onednn_fitted_t *fitted) {
  onednn_shape_t x = onednn_layout_shape(&context->source_tensor.layout);
  ONEDNN_TRY(fit_form(plan, kernel, request, context, fitted));
  if (!fitted->declined) {
    return CLEAVE_OK;
  }
  if (onednn_plan_computes(plan) != dnnl_f32) {
    ONEDNN_TRY(fit_low(plan, request, context, fitted));
    if (!fitted->declined) {
      return CLEAVE_OK;
    }
  }
  if (plan->blocked) {
    bool first = onednn_layout_is_plain(&context->source_tensor.layout) && x.dims[1] < 16;
    context->source = first ? onednn_layout_any(&x) : onednn_layout_blocked(&x);
    request->result = onednn_layout_blocked(&request->shape);
    context->winograd = onednn_winograd_suits(plan, kernel);
    if (context->winograd) {
      // Its code knows few post-ops; with many channels it gains more than a pass of its own costs.
      ONEDNN_TRY(onednn_fit(plan, request, x.dims[1] >= 32 ? ONEDNN_FIT_FAST : ONEDNN_FIT_WHOLE, fitted));
      if (!fitted->declined) {
        return CLEAVE_OK;
      }
      context->winograd = false;
    }
    ONEDNN_TRY(onednn_fit(plan, request, ONEDNN_FIT_FAST, fitted));
    if (!fitted->declined) {
      return CLEAVE_OK;
    }
  }
  if (plan->channels_last) {
    context->source = onednn_layout_channels_last(&x);
    request->result = onednn_layout_channels_last(&request->shape);
    ONEDNN_TRY(onednn_fit(plan, request, ONEDNN_FIT_FAST, fitted));
    if (!fitted->declined) {
      return CLEAVE_OK;
    }
  }
  context->source = onednn_layout_any(&x);
  request->result = onednn_layout_any(&request->shape);
  return onednn_fit(plan, request, ONEDNN_FIT_ALWAYS, fitted);
}

// ---- Swish behind a convolution, by a loop of ours ----

// Has oneDNN fast code with channels last, which it chooses without being asked, unless the form asks?
static bool likes_channels_last(const onednn_plan_t *plan, const onednn_request_t *request,
                                convolution_context_t *context) {
  bool asks = onednn_plan_form(plan).layout == ONEDNN_FORM_CHANNELS_LAST;
  onednn_shape_t x = onednn_layout_shape(&context->source_tensor.layout);
  onednn_layout_t wish =
      asks ? onednn_layout_channels_last(&request->shape) : onednn_layout_any(&request->shape);
  onednn_layout_t source;
  onednn_layout_t result;
  dnnl_primitive_desc_t description = NULL;
  context->source = asks ? onednn_layout_channels_last(&x) : onednn_layout_any(&x);
  if (describe(context, plan->engine, NULL, &wish, &description) != dnnl_success) {
    return false;
  }
  bool known = onednn_query_layout(description, dnnl_query_src_md, &source) &&
               onednn_query_layout(description, dnnl_query_dst_md, &result) &&
               !onednn_is_reference(description);
  (void)dnnl_primitive_desc_destroy(description);
  onednn_layout_t wanted[2] = {onednn_layout_channels_last(&x), onednn_layout_channels_last(&request->shape)};
  return known && onednn_layout_equal(&source, &wanted[0]) && onednn_layout_equal(&result, &wanted[1]);
}

// Is the first post a Swish that our loop computes faster, on one image whose rows follow each other?
static bool loops_swish(const onednn_plan_t *plan, const onednn_request_t *request,
                        convolution_context_t *context) {
  const int64_t least = 16384;  // elements for which a step of its own pays
  const onednn_post_t *post = request->posts;
  const onednn_form_t form = onednn_plan_form(plan);
  bool may = form.layout == ONEDNN_FORM_DEFAULT ? !plan->blocked : form.layout == ONEDNN_FORM_CHANNELS_LAST;
  return may && form.skipped == 0 && request->post_count > 0 && post->kind == ONEDNN_POST_ELTWISE &&
         post->algorithm == dnnl_eltwise_swish && isfinite(post->alpha) && !context->transposed &&
         onednn_plan_computes(plan) == dnnl_f32 && request->shape.rank == 4 && request->shape.dims[0] == 1 &&
         onednn_shape_count(&request->shape) >= least && likes_channels_last(plan, request, context);
}

// Rows of the result that one step computes, and the rows of the data that it reads.
typedef struct tile {
  int64_t begin;
  int64_t end;
  int64_t source_begin;
  int64_t source_end;
} tile_t;

// The window of rows [begin, end): what it lacks above and below is padding.
static tile_t cut_window(const onednn_window_t *whole, int64_t source_rows, int64_t begin, int64_t end,
                         onednn_window_t *window) {
  tile_t tile = {.begin = begin, .end = end};
  int64_t reach = (whole->kernel[0] - 1) * (whole->dilations[0] + 1) + 1;
  int64_t first = begin * whole->strides[0] - whole->pad_begin[0];
  int64_t last = (end - 1) * whole->strides[0] - whole->pad_begin[0] + reach;
  tile.source_begin = first < 0 ? 0 : first;
  tile.source_end = last > source_rows ? source_rows : last;
  *window = *whole;
  window->pad_begin[0] = tile.source_begin - first;
  window->pad_end[0] = last - tile.source_end;
  return tile;
}

// Rows [begin, end) of an image with channels last.
static onednn_tensor_t rows_of(const onednn_tensor_t *image, int64_t begin, int64_t end) {
  onednn_shape_t shape = onednn_layout_shape(&image->layout);
  onednn_tensor_t rows = *image;
  rows.offset += (size_t)(begin * shape.dims[3] * shape.dims[1]) * sizeof(float);
  shape.dims[2] = end - begin;
  rows.layout = onednn_layout_channels_last(&shape);
  return rows;
}

// One tile: the convolution, and the loop over its result while that is in the cache.
static cleave_status_t emit_tile(onednn_plan_t *plan, const onednn_request_t *whole,
                                 convolution_context_t *context, const onednn_tensor_t *part) {
  const onednn_post_t *post = whole->posts;
  onednn_request_t request = *whole;
  onednn_fitted_t fitted;
  request.shape = onednn_layout_shape(&part->layout);
  request.kernel_shape = request.shape;
  request.result = part->layout;
  request.post_count = 0;
  request.value = CLEAVE_INDEX_NONE;
  request.in_place = part;
  context->source = context->source_tensor.layout;
  ONEDNN_TRY(onednn_fit(plan, &request, ONEDNN_FIT_ALWAYS, &fitted));
  onednn_loop_t loop = {.run = onednn_loop_swish,
                        .alpha = post->alpha,
                        .rank = 1,
                        .dims = {onednn_shape_count(&request.shape)}};
  return onednn_loop_step(plan, &loop, (const onednn_tensor_t *[]){&fitted.result, part}, 2, post->node,
                          "swish loop");
}

// oneDNN's Swish takes as long as a convolution of one pixel with few channels. So the image is computed by
// rows that stay in the cache until the loop has read them.
static cleave_status_t emit_with_swish(onednn_plan_t *plan, const onednn_kernel_t *kernel,
                                       const onednn_request_t *request, convolution_context_t *context) {
  const int64_t tile_bytes = 768 * 1024;  // of the second cache
  const onednn_shape_t *y = &request->shape;
  onednn_shape_t x = onednn_layout_shape(&context->source_tensor.layout);
  onednn_layout_t source_layout = onednn_layout_channels_last(&x);
  onednn_layout_t layout = onednn_layout_channels_last(y);
  onednn_window_t window = context->window;
  onednn_tensor_t source;
  onednn_tensor_t result;
  int64_t tiles = onednn_shape_count(y) * (int64_t)sizeof(float) / tile_bytes + 1;
  tiles = tiles < y->dims[2] ? tiles : y->dims[2];
  ONEDNN_TRY(onednn_plan_convert(plan, &context->source_tensor, &source_layout, &source));
  ONEDNN_TRY(onednn_plan_make(plan, CLEAVE_INDEX_NONE, &layout, &result));
  for (int64_t k = 0; k < tiles; k++) {
    tile_t tile = cut_window(&window, x.dims[2], y->dims[2] * k / tiles, y->dims[2] * (k + 1) / tiles,
                             &context->window);
    onednn_tensor_t part = rows_of(&result, tile.begin, tile.end);
    context->source_tensor = rows_of(&source, tile.source_begin, tile.source_end);
    ONEDNN_TRY(emit_tile(plan, request, context, &part));
  }
  return onednn_emit_chain(plan, &result, request->posts + 1, request->post_count - 1, kernel->node,
                           kernel->output);
}

// Emits a step of our own, if there is one; `emitted` tells.
static cleave_status_t emit_own(onednn_plan_t *plan, const onednn_kernel_t *kernel,
                                const convolution_context_t *context, uint32_t folded, bool *emitted) {
  const onednn_step_request_t request = {
      .tile = onednn_winograd_tile(plan, kernel),
      .source = context->source_tensor,
      .weights = context->weights_tensor,
      .bias = context->bias_tensor,
      .has_bias = context->has_bias,
      .top = context->window.pad_begin[0],
      .left = context->window.pad_begin[1],
      .shape = onednn_plan_shape(plan, plan->region->nodes[kernel->node].outputs[0]),
      .posts = kernel->posts + folded,
      .post_count = kernel->post_count - folded};
  *emitted = true;
  if (request.tile != 0) {
    plan->formed[plan->kernel] = onednn_plan_form(plan).layout != ONEDNN_FORM_DEFAULT;
    return onednn_emit_winograd(plan, kernel, &request);
  }
  const onednn_wide_kind_t kind = onednn_wide_suits(plan, kernel, &context->window, &request);
  *emitted = kind != ONEDNN_WIDE_NONE;
  return *emitted ? onednn_emit_wide(plan, kernel, &context->window, &request, kind) : CLEAVE_OK;
}

cleave_status_t onednn_emit_convolution(onednn_plan_t *plan, const onednn_kernel_t *kernel) {
  const cleave_node_view_t *node = &plan->region->nodes[kernel->node];
  bool transposed = kernel->kind == ONEDNN_DECONVOLUTION;
  onednn_shape_t x = onednn_plan_shape(plan, kernel->source);
  onednn_shape_t y = onednn_plan_shape(plan, node->outputs[0]);
  convolution_context_t context = {.transposed = transposed, .source = onednn_layout_any(&x)};
  uint32_t folded = 0;
  ONEDNN_TRY(onednn_convolution_window(plan, kernel, transposed, &x, &y, &context.window));
  ONEDNN_TRY(onednn_plan_stored(plan, kernel->source, &context.source_tensor));
  ONEDNN_TRY(prepare(plan, kernel, transposed, &y, &context, &folded));
  bool emitted = false;
  ONEDNN_TRY(emit_own(plan, kernel, &context, folded, &emitted));
  if (emitted) {
    return CLEAVE_OK;
  }
  onednn_request_t request = {.what = transposed ? "deconv" : "conv",
                              .node = kernel->node,
                              .describe = describe,
                              .arguments = arguments,
                              .context = &context,
                              .posts = kernel->posts + folded,
                              .post_count = kernel->post_count - folded,
                              .shape = y,
                              .kernel_shape = y,
                              .result = onednn_layout_any(&y),
                              .value = kernel->output,
                              .sources = {&context.source_tensor, &context.weights_tensor},
                              .can_sum = true,
                              .is_backward = transposed};
  if (loops_swish(plan, &request, &context)) {
    plan->formed[plan->kernel] = onednn_plan_form(plan).layout != ONEDNN_FORM_DEFAULT;
    return emit_with_swish(plan, kernel, &request, &context);
  }
  onednn_fitted_t fitted;
  ONEDNN_TRY(fit(plan, kernel, &request, &context, &fitted));
  return onednn_emit_rest(plan, &request, &fitted, kernel->output);
}
