// SPDX-License-Identifier: Apache-2.0
// Convolutions and products of 8-bit integers. The sum of products of integers becomes a number by one scale
// per output channel, in which all factors meet: those of data and weights, of posts that multiply, and that
// of the result if nothing but a Relu is in between. Weights are packed as they are.
#include "onednn/quantized/quantized.h"

#include <string.h>

#include "onednn/convolution/convolution.h"
#include "onednn/library/types.h"
#include "onednn/product/product.h"

typedef struct context {
  bool is_product;
  onednn_layout_t source;
  onednn_layout_t weights;
  onednn_layout_t bias;
  bool has_bias;
  onednn_window_t window;
  onednn_tensor_t source_tensor;
  onednn_tensor_t weights_tensor;
  onednn_tensor_t bias_tensor;
  onednn_tensor_t scales_tensor; /* of version 3 */
  onednn_tensor_t zero_tensor;   /* of version 3, if there is a zero point */
  onednn_quantized_t numbers;
} context_t;

static dnnl_status_t describe(void *opaque, dnnl_engine_t engine, const_dnnl_primitive_attr_t attributes,
                              const onednn_layout_t *result, dnnl_primitive_desc_t *out) {
  const context_t *context = opaque;
  const onednn_window_t *window = &context->window;
  const onednn_operands_t operands = {.source = &context->source,
                                      .weights = &context->weights,
                                      .bias = context->has_bias ? &context->bias : NULL,
                                      .result = result};
  const onednn_geometry_t geometry = {.strides = window->strides,
                                      .dilations = window->dilations,
                                      .pad_begin = window->pad_begin,
                                      .pad_end = window->pad_end};
  const onednn_maker_t maker = {.engine = engine, .attributes = attributes, .out = out};
  return context->is_product ? onednn_make_matmul(&maker, &operands)
                             : onednn_make_convolution(&maker, dnnl_convolution_direct, &operands, &geometry);
}

static cleave_status_t arguments(onednn_plan_t *plan, void *opaque, const_dnnl_primitive_desc_t description,
                                 onednn_argument_t *out, uint32_t *count) {
  context_t *context = opaque;
  const onednn_tensor_t *const tensors[] = {&context->source_tensor, &context->weights_tensor,
                                            context->has_bias ? &context->bias_tensor : NULL};
  ONEDNN_TRY(onednn_plan_operands(plan, description, tensors, out, count));
#if ONEDNN_QUANTIZED_ARGUMENTS
  out[(*count)++] =
      (onednn_argument_t){.name = DNNL_ARG_ATTR_SCALES | DNNL_ARG_WEIGHTS, .tensor = context->scales_tensor};
  if (context->numbers.zero_point != 0) {
    out[(*count)++] =
        (onednn_argument_t){.name = DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_SRC, .tensor = context->zero_tensor};
  }
#endif
  return CLEAVE_OK;
}

// ---- numbers per output channel ----

typedef struct channels {
  int64_t count;
  float *scale; /* of a sum of products of integers */
  float *shift; /* added to the number */
  onednn_post_t posts[ONEDNN_MAX_POSTS];
  uint32_t post_count;
} channels_t;

static cleave_status_t start_channels(onednn_plan_t *plan, const onednn_kernel_t *kernel,
                                      const context_t *context, int64_t count, channels_t *channels) {
  const onednn_quantization_t *x = context->source_tensor.quantization;
  const onednn_quantization_t *w = context->weights_tensor.quantization;
  channels->count = count;
  channels->scale = kernel_arena_allocate(plan->arena, (size_t)count, 2 * sizeof(float));
  if (channels->scale == NULL) {
    return onednn_plan_out_of_memory(plan);
  }
  channels->shift = channels->scale + count;
  for (int64_t c = 0; c < count; c++) {
    channels->scale[c] = x->scale * (w->scales != NULL ? w->scales[c] : w->scale) * kernel->input_scale;
  }
  return CLEAVE_OK;
}

// Takes the posts that a scale and shift per channel can say.
static cleave_status_t fold_posts(onednn_plan_t *plan, const onednn_kernel_t *kernel,
                                  const onednn_shape_t *shape, int32_t axis, channels_t *channels) {
  uint32_t folded = 0;
  if (shape->dims[axis] == channels->count) {
    ONEDNN_TRY(onednn_fold_posts(plan, kernel, shape, axis, true, channels->scale, channels->shift, &folded));
  }
  channels->post_count = kernel->post_count - folded;
  memcpy(channels->posts, kernel->posts + folded, channels->post_count * sizeof(onednn_post_t));
  return CLEAVE_OK;
}

// Less the zero point of the source, by the sums of constant weights: `rows` of `length`, and outputs are
// rows or columns.
static void shift_by_zero(const onednn_plan_t *plan, const context_t *context, int64_t rows, int64_t length,
                          bool by_columns, channels_t *channels) {
  const onednn_buffer_t *buffer = &plan->buffers[context->weights_tensor.buffer];
  const signed char *data = buffer->data;
  double zero = (double)context->source_tensor.quantization->zero_point;
  for (int64_t r = 0; r < rows; r++) {
    for (int64_t k = 0; k < length; k++) {
      int64_t c = by_columns ? k : r;
      channels->shift[c] -= (float)(zero * (double)channels->scale[c] * data[r * length + k]);
    }
  }
}

// What follows keeps its sign with a positive factor, so the scale of the result joins the others; a Relu
// before unsigned integers without a zero point is their lower bound.
static void fold_result(const onednn_plan_t *plan, channels_t *channels) {
  onednn_post_t *last = &channels->posts[channels->post_count > 0 ? channels->post_count - 1 : 0];
  const onednn_post_t *first = &channels->posts[0];
  bool relu = channels->post_count == 2 && first->kind == ONEDNN_POST_ELTWISE &&
              first->algorithm == dnnl_eltwise_relu && first->alpha == 0.0F;
  if (channels->post_count == 0 || last->kind != ONEDNN_POST_QUANTIZE ||
      (channels->post_count != 1 && !relu)) {
    return;
  }
  for (int64_t c = 0; c < channels->count; c++) {
    channels->scale[c] /= last->alpha;
    channels->shift[c] /= last->alpha;
  }
  last->alpha = 1;
  bool is_bound = onednn_plan_type(plan, plan->region->nodes[last->node].outputs[0]) == dnnl_u8;
  if (relu && is_bound && last->beta == 0.0F) {
    channels->posts[0] = *last;
    channels->post_count = 1;
  }
}

// Bias and scales as oneDNN wants them; `shape` is that of the bias.
static cleave_status_t set_numbers(onednn_plan_t *plan, const channels_t *channels,
                                   const onednn_shape_t *shape, context_t *context) {
  bool differs = false;
  for (int64_t c = 0; c < channels->count; c++) {
    context->has_bias = context->has_bias || channels->shift[c] != 0.0F;
    differs = differs || channels->scale[c] != channels->scale[0];
  }
  context->numbers.scales = channels->scale;
  context->numbers.count = differs ? channels->count : 1;
  if (!differs) {
    context->numbers.result_mask = 0;
    context->numbers.weights_mask = 0;
  }
  if (context->has_bias) {
    float *data = NULL;
    context->bias = onednn_layout_plain(shape);
    ONEDNN_TRY(onednn_plan_constant(plan, &context->bias, &context->bias_tensor, &data));
    for (int64_t c = 0; c < channels->count; c++) {
      data[c] = ONEDNN_BIAS_BEFORE_SCALES ? channels->shift[c] / channels->scale[c] : channels->shift[c];
    }
  }
#if ONEDNN_QUANTIZED_ARGUMENTS
  onednn_shape_t list = {.rank = 1, .dims = {context->numbers.count}};
  onednn_layout_t layout = onednn_layout_plain(&list);
  float *data = NULL;
  ONEDNN_TRY(onednn_plan_constant(plan, &layout, &context->scales_tensor, &data));
  memcpy(data, channels->scale, (size_t)list.dims[0] * sizeof(float));
  list.dims[0] = 1;
  layout = onednn_layout_plain(&list);
  ONEDNN_TRY(onednn_plan_constant(plan, &layout, &context->zero_tensor, &data));
  memcpy(data, &context->numbers.zero_point, sizeof(int32_t));
  context->zero_tensor.layout = onednn_layout_typed(&layout, dnnl_s32);
#endif
  return CLEAVE_OK;
}

// ---- convolutions ----

static bool is_padded(const onednn_window_t *window) {
  for (int32_t d = 0; d < window->rank; d++) {
    if (window->pad_begin[d] > 0 || window->pad_end[d] > 0) {
      return true;
    }
  }
  return false;
}

// oneDNN's best code is for channels last.
static cleave_status_t fit_convolution(onednn_plan_t *plan, onednn_request_t *request, context_t *context,
                                       onednn_fitted_t *fitted) {
  onednn_shape_t x = onednn_layout_shape(&context->source_tensor.layout);
  dnnl_data_type_t type = context->source_tensor.layout.data_type;
  fitted->declined = true;
  for (int any = 0; any < 2 && fitted->declined; any++) {
    onednn_layout_t source = any ? onednn_layout_any(&x) : onednn_layout_channels_last(&x);
    onednn_layout_t result =
        any ? onednn_layout_any(&request->shape) : onednn_layout_channels_last(&request->shape);
    context->source = onednn_layout_typed(&source, type);
    request->result = onednn_layout_typed(&result, onednn_plan_type(plan, request->value));
    ONEDNN_TRY(onednn_fit(plan, request, ONEDNN_FIT_FAST, fitted));
  }
  return CLEAVE_OK;
}

static cleave_status_t emit_convolution(onednn_plan_t *plan, const onednn_kernel_t *kernel,
                                        context_t *context, bool *done) {
  const cleave_node_view_t *node = &plan->region->nodes[kernel->node];
  const cleave_value_view_t *bias = cleave_view_input(plan->region, node, 2);
  onednn_shape_t x = onednn_plan_shape(plan, kernel->source);
  onednn_shape_t y = onednn_plan_shape(plan, node->outputs[0]);
  onednn_weights_view_t view;
  channels_t channels;
  ONEDNN_TRY(onednn_convolution_window(plan, kernel, false, &x, &y, &context->window));
  ONEDNN_TRY(onednn_convolution_weights(plan, kernel, false, &view));
  if (y.dims[1] != view.outputs ||
      (bias != NULL && (!onednn_is_constant(bias) || bias->tensor.dtype != CLEAVE_DTYPE_F32 ||
                        cleave_view_element_count(&bias->tensor) != view.outputs))) {
    return CLEAVE_OK;
  }
  ONEDNN_TRY(start_channels(plan, kernel, context, view.outputs, &channels));
  if (bias != NULL) {
    onednn_floats(bias, channels.shift, (size_t)view.outputs);
  }
  ONEDNN_TRY(fold_posts(plan, kernel, &y, 1, &channels));
  if (is_padded(&context->window)) {
    context->numbers.zero_point = context->source_tensor.quantization->zero_point;
  } else if (context->source_tensor.quantization->zero_point != 0) {
    shift_by_zero(plan, context, view.outputs, onednn_shape_count(&view.shape) / view.outputs, false,
                  &channels);
  }
  fold_result(plan, &channels);
  context->numbers.result_mask = 1 << 1;
  context->numbers.weights_mask = view.groups > 1 ? 3 : 1;
  onednn_shape_t list = {.rank = 1, .dims = {view.outputs}};
  ONEDNN_TRY(set_numbers(plan, &channels, &list, context));
  onednn_layout_t layout = onednn_layout_strided(&view.shape, view.strides);
  context->weights_tensor.layout = onednn_layout_typed(&layout, dnnl_s8);
  layout = onednn_layout_any(&view.shape);
  context->weights = onednn_layout_typed(&layout, dnnl_s8);
  onednn_request_t request = {.what = "conv",
                              .node = kernel->node,
                              .describe = describe,
                              .arguments = arguments,
                              .context = context,
                              .posts = channels.posts,
                              .post_count = channels.post_count,
                              .shape = y,
                              .kernel_shape = y,
                              .value = kernel->output,
                              .sources = {&context->source_tensor, &context->weights_tensor},
                              .can_sum = true,
                              .quantized = &context->numbers};
  onednn_fitted_t fitted;
  ONEDNN_TRY(fit_convolution(plan, &request, context, &fitted));
  *done = !fitted.declined;
  return *done ? onednn_emit_rest(plan, &request, &fitted, kernel->output) : CLEAVE_OK;
}

// ---- products ----

// A constant of the channels' numbers.
static cleave_status_t list_of(onednn_plan_t *plan, const float *numbers, int64_t count,
                               onednn_tensor_t *out) {
  const onednn_shape_t shape = {.rank = 1, .dims = {count}};
  onednn_layout_t layout = onednn_layout_plain(&shape);
  float *data = NULL;
  ONEDNN_TRY(onednn_plan_constant(plan, &layout, out, &data));
  memcpy(data, numbers, (size_t)count * sizeof(float));
  return CLEAVE_OK;
}

// By a kernel of our own, if it suits a product with a constant matrix.
static cleave_status_t emit_amx(onednn_plan_t *plan, const onednn_kernel_t *kernel,
                                const onednn_product_t *product, const context_t *context,
                                const channels_t *channels, bool *done) {
  onednn_layout_t result =
      onednn_product_result(plan, kernel, product, onednn_plan_stores(plan, kernel->output));
  onednn_matrix_request_t request = {.kind = ONEDNN_MATRIX_AMX,
                                     .matrix = {.rows = product->a.dims[0],
                                                .columns = product->b.dims[1],
                                                .depth = product->a.dims[1],
                                                .x_stride = product->a.dims[1]},
                                     .source = context->source_tensor,
                                     .shape = product->result,
                                     .result = onednn_matrix_result(&result, product),
                                     .posts = channels->posts,
                                     .post_count = channels->post_count,
                                     .label = "matmul amx"};
  *done = onednn_amx_suits(plan, &request);
  if (!*done) {
    return CLEAVE_OK;
  }
  for (int64_t c = 0; c < channels->count; c++) {
    request.has_bias = request.has_bias || channels->shift[c] != 0.0F;
  }
  ONEDNN_TRY(list_of(plan, channels->scale, channels->count, &request.scale));
  if (request.has_bias) {
    ONEDNN_TRY(list_of(plan, channels->shift, channels->count, &request.bias));
  }
  ONEDNN_TRY(onednn_amx_pack(plan, &context->weights_tensor, &request));
  return onednn_emit_matrix(plan, kernel, &request);
}

// Long: one request, from its operands to the result.
static cleave_status_t emit_product(onednn_plan_t *plan, const onednn_kernel_t *kernel, context_t *context,
                                    bool *done) {
  const cleave_node_view_t *node = &plan->region->nodes[kernel->node];
  bool gemm = onednn_node_is(node, "Gemm");
  bool flip_a = gemm && cleave_view_int(node, "transA", 0) != 0;
  bool flip_b = gemm && cleave_view_int(node, "transB", 0) != 0;
  bool constant = onednn_plan_is_constant(plan, &context->weights_tensor);
  onednn_product_t product = {.tall = false};
  onednn_tensor_t a;
  onednn_tensor_t b;
  channels_t channels;
  ONEDNN_TRY(onednn_product_matrix(plan, &context->source_tensor, flip_a, false, &a));
  ONEDNN_TRY(onednn_product_matrix(plan, &context->weights_tensor, flip_b, true, &b));
  product.result = onednn_plan_shape(plan, node->outputs[0]);
  product.a = onednn_layout_shape(&a.layout);
  product.b = onednn_layout_shape(&b.layout);
  ONEDNN_TRY(onednn_product_check(plan, node, &product));
  int64_t columns = onednn_product_last(&product.b, 1);
  int64_t depth = onednn_product_last(&product.b, 2);
  int32_t last = product.result.rank - 1;
  ONEDNN_TRY(start_channels(plan, kernel, context, columns, &channels));
  ONEDNN_TRY(fold_posts(plan, kernel, &product.result, last, &channels));
  if (!constant) {
    context->numbers.zero_point = context->source_tensor.quantization->zero_point;
  } else if (context->source_tensor.quantization->zero_point != 0) {
    if (product.b.rank != 2) {
      return CLEAVE_OK;
    }
    shift_by_zero(plan, context, flip_b ? columns : depth, flip_b ? depth : columns, !flip_b, &channels);
  }
  fold_result(plan, &channels);
  onednn_product_shapes(plan, kernel, &product);
  ONEDNN_TRY(onednn_product_operand(plan, &a, a.layout.data_type, &product.a, &context->source_tensor));
  if (constant) {
    ONEDNN_TRY(onednn_plan_reshape(plan, &b, &product.b, &context->weights_tensor));
    onednn_layout_t any = onednn_layout_any(&product.b);
    context->weights = onednn_layout_typed(&any, dnnl_s8);
  } else {
    ONEDNN_TRY(onednn_product_operand(plan, &b, dnnl_s8, &product.b, &context->weights_tensor));
    context->weights = context->weights_tensor.layout;
  }
  if (constant && product.tall) {
    ONEDNN_TRY(emit_amx(plan, kernel, &product, context, &channels, done));
  }
  if (*done) {
    return CLEAVE_OK;
  }
  context->numbers.result_mask = 1 << (product.kernel.rank - 1);
  context->numbers.weights_mask = 1 << (product.kernel.rank - 1);
  onednn_shape_t list = product.kernel;
  for (int32_t d = 0; d + 1 < list.rank; d++) {
    list.dims[d] = 1;
  }
  ONEDNN_TRY(set_numbers(plan, &channels, &list, context));
  context->source = context->source_tensor.layout;
  onednn_request_t request = {.what = "matmul",
                              .node = kernel->node,
                              .describe = describe,
                              .arguments = arguments,
                              .context = context,
                              .posts = channels.posts,
                              .post_count = channels.post_count,
                              .shape = product.result,
                              .kernel_shape = product.kernel,
                              .value = kernel->output,
                              .sources = {&context->source_tensor, &context->weights_tensor},
                              .can_sum = true,
                              .quantized = &context->numbers};
  // A result that products of fewer digits read is stored in their type, if oneDNN can write it.
  const dnnl_data_type_t types[2] = {onednn_plan_stores(plan, kernel->output),
                                     onednn_plan_type(plan, kernel->output)};
  onednn_fitted_t fitted = {.declined = true};
  for (int k = types[0] == types[1] ? 1 : 0; k < 2 && fitted.declined; k++) {
    request.result = onednn_product_result(plan, kernel, &product, types[k]);
    ONEDNN_TRY(onednn_fit(plan, &request, ONEDNN_FIT_FAST, &fitted));
  }
  *done = !fitted.declined;
  return *done ? onednn_emit_rest(plan, &request, &fitted, kernel->output) : CLEAVE_OK;
}

// ---- both ----

// Data with one scale, and signed weights without zero points, as analysis has made sure of where it saw
// them.
static bool is_stored_so(const onednn_plan_t *plan, const context_t *context) {
  const onednn_quantization_t *x = context->source_tensor.quantization;
  const onednn_quantization_t *w = context->weights_tensor.quantization;
  return x != NULL && x->scales == NULL && w != NULL && w->zero_point == 0 && w->zeros == NULL &&
         context->weights_tensor.layout.data_type == dnnl_s8 &&
         (context->source_tensor.layout.data_type == dnnl_u8 || onednn_bytes_saturate() == NULL) &&
         (w->scales == NULL || plan->buffers[context->weights_tensor.buffer].place == ONEDNN_CONSTANT);
}

cleave_status_t onednn_emit_quantized(onednn_plan_t *plan, const onednn_kernel_t *kernel, bool *done) {
  context_t context = {.is_product = kernel->kind == ONEDNN_PRODUCT};
  *done = false;
  if ((!context.is_product && kernel->kind != ONEDNN_CONVOLUTION) ||
      !onednn_multiplies_bytes(plan->region, kernel->fusion)) {
    return CLEAVE_OK;
  }
  ONEDNN_TRY(onednn_plan_stored(plan, kernel->source, &context.source_tensor));
  ONEDNN_TRY(onednn_plan_stored(plan, kernel->weights, &context.weights_tensor));
  if (is_stored_so(plan, &context)) {
    ONEDNN_TRY(context.is_product ? emit_product(plan, kernel, &context, done)
                                  : emit_convolution(plan, kernel, &context, done));
  }
  if (!*done) {
    // Scales per channel do not survive the views of float32 products.
    return onednn_plan_fetch(plan, kernel->weights, &plan->bindings[kernel->weights].tensor);
  }
  return CLEAVE_OK;
}

static cleave_status_t dequantize(onednn_plan_t *plan, const cleave_node_view_t *node, bool is_fused) {
  onednn_tensor_t tensor;
  onednn_quantization_t *numbers = kernel_arena_allocate(plan->arena, 1, sizeof(*numbers));
  if (numbers == NULL) {
    return onednn_plan_out_of_memory(plan);
  }
  ONEDNN_TRY(onednn_quantization_read(plan->analysis, node, numbers));
  ONEDNN_TRY(onednn_plan_stored(plan, node->inputs[0], &tensor));
  tensor.quantization = numbers;
  if (!is_fused && onednn_plan_is_constant(plan, &tensor)) {
    ONEDNN_TRY(onednn_plan_typed(plan, &tensor, dnnl_f32, &tensor));
  }
  return onednn_plan_bind(plan, node->outputs[0], &tensor);
}

static cleave_status_t unpack(onednn_plan_t *plan, const cleave_node_view_t *node) {
  onednn_tensor_t tensor;
  onednn_bits_t *bits = kernel_arena_allocate(plan->arena, 1, sizeof(*bits));
  if (bits == NULL) {
    return onednn_plan_out_of_memory(plan);
  }
  ONEDNN_TRY(onednn_bits_read(plan->region, node, bits, plan->message));
  ONEDNN_TRY(onednn_plan_unpack(plan, bits, &tensor));
  return onednn_plan_bind(plan, node->outputs[0], &tensor);
}

cleave_status_t onednn_emit_dequantize(onednn_plan_t *plan, const onednn_kernel_t *kernel) {
  const cleave_region_view_t *region = plan->region;
  if (kernel->kind == ONEDNN_DEQUANTIZE) {
    return dequantize(plan, &region->nodes[kernel->node], false);
  }
  const cleave_fusion_view_t *fusion =
      kernel->fusion < region->fusion_count ? &region->fusions[kernel->fusion] : NULL;
  for (uint32_t k = 0; fusion != NULL && k < fusion->node_count; k++) {
    const cleave_node_view_t *node = &region->nodes[fusion->nodes[k]];
    if (onednn_unpacks(node)) {
      ONEDNN_TRY(unpack(plan, node));
    } else if (onednn_node_is(node, "DequantizeLinear")) {
      ONEDNN_TRY(dequantize(plan, node, true));
    } else if (onednn_casts_weights(region, node)) {
      onednn_tensor_t floats;
      ONEDNN_TRY(onednn_plan_stored(plan, node->inputs[0], &floats));
      ONEDNN_TRY(onednn_plan_bind(plan, node->outputs[0], &floats));
    }
  }
  return CLEAVE_OK;
}
