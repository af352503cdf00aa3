// SPDX-License-Identifier: Apache-2.0
// MatMul and Gemm as oneDNN matmul. A right-hand side that is one matrix makes the left-hand side one tall
// matrix; a constant one is scaled and packed while compiling. Batched products read transposed operands and
// write transposed results through strides. Products of rank 3 get a leading one: oneDNN's fast kernels know
// strided batches in rank 4 only.
#include "onednn/emit/emit.h"
#include "onednn/product/product.h"

#include <string.h>

#include "kernels/instructions.h"

typedef struct product_context {
  onednn_layout_t source;
  onednn_layout_t weights;
  onednn_layout_t bias;
  bool has_bias;
  onednn_tensor_t source_tensor;
  onednn_tensor_t weights_tensor;
  onednn_tensor_t bias_tensor;
} product_context_t;

static dnnl_status_t describe(void *opaque, dnnl_engine_t engine, const_dnnl_primitive_attr_t attributes,
                              const onednn_layout_t *result, dnnl_primitive_desc_t *out) {
  const product_context_t *context = opaque;
  const onednn_operands_t operands = {.source = &context->source,
                                      .weights = &context->weights,
                                      .bias = context->has_bias ? &context->bias : NULL,
                                      .result = result};
  const onednn_maker_t maker = {.engine = engine, .attributes = attributes, .out = out};
  return onednn_make_matmul(&maker, &operands);
}

static cleave_status_t arguments(onednn_plan_t *plan, void *opaque, const_dnnl_primitive_desc_t description,
                                 onednn_argument_t *out, uint32_t *count) {
  product_context_t *context = opaque;
  const onednn_tensor_t *const tensors[] = {&context->source_tensor, &context->weights_tensor,
                                            context->has_bias ? &context->bias_tensor : NULL};
  return onednn_plan_operands(plan, description, tensors, out, count);
}

// Multiplies every column of constant weights by its scale.
typedef struct scaling {
  const cleave_value_view_t *weights;
  onednn_shape_t shape;
  bool transposed;
  const float *scale;
} scaling_t;

static void fill_scaled(const void *opaque, float *data) {
  const scaling_t *scaling = opaque;
  const onednn_shape_t *shape = &scaling->shape;
  int64_t count = onednn_shape_count(shape);
  int64_t inner = shape->dims[shape->rank - 1];
  onednn_floats(scaling->weights, data, (size_t)count);
  for (int64_t row = 0; row < count / inner; row++) {
    for (int64_t column = 0; column < inner; column++) {
      float factor =
          shape->rank == 1 ? scaling->scale[0] : scaling->scale[scaling->transposed ? row : column];
      data[row * inner + column] *= factor;
    }
  }
}

// The weights with every column multiplied by its scale, in the model's order (transposed or not); made when
// they are packed. `columns` is the number of scales.
static cleave_status_t scale_weights(onednn_plan_t *plan, uint32_t value, bool transposed, const float *scale,
                                     int64_t columns, onednn_tensor_t *out) {
  const cleave_value_view_t *weights = &plan->region->values[value];
  scaling_t *scaling = kernel_arena_allocate(plan->arena, 1, sizeof(*scaling));
  if (scaling == NULL) {
    return kernel_fail(plan->message, CLEAVE_ERROR_OUT_OF_MEMORY, "out of memory while packing weights");
  }
  *scaling = (scaling_t){
      .weights = weights, .shape = onednn_plan_shape(plan, value), .transposed = transposed, .scale = scale};
  onednn_layout_t layout = onednn_layout_plain(&scaling->shape);
  onednn_content_t content = onednn_content_of(weights);
  content = onednn_content_mix(&content, scale, (size_t)columns * sizeof(float));
  content = onednn_content_mix(&content, &transposed, sizeof(transposed));
  ONEDNN_TRY(onednn_plan_lazy(plan, &layout, &content, fill_scaled, scaling, out));
  plan->buffers[out->buffer].source = weights;
  return CLEAVE_OK;
}

// The strides were what oneDNN has no fast code for: plain layouts for everything, in a type of which at
// least the reference code can do all.
static cleave_status_t fit_plain(onednn_plan_t *plan, const onednn_product_t *product, bool constant,
                                 onednn_request_t *request, product_context_t *context,
                                 onednn_fitted_t *fitted) {
  ONEDNN_TRY(onednn_plan_plain(plan, &context->source_tensor, &context->source_tensor));
  ONEDNN_TRY(onednn_plan_typed(plan, &context->source_tensor, dnnl_f32, &context->source_tensor));
  context->source = context->source_tensor.layout;
  if (constant) {
    context->weights = onednn_layout_any(&product->b);
  } else {
    ONEDNN_TRY(onednn_plan_plain(plan, &context->weights_tensor, &context->weights_tensor));
    ONEDNN_TRY(onednn_plan_typed(plan, &context->weights_tensor, dnnl_f32, &context->weights_tensor));
    context->weights = context->weights_tensor.layout;
  }
  request->result = onednn_layout_plain(&product->kernel);
  return onednn_fit(plan, request, ONEDNN_FIT_ALWAYS, fitted);
}

static cleave_status_t run(onednn_plan_t *plan, const onednn_kernel_t *kernel,
                           const onednn_product_t *product, const onednn_folding_t *folding,
                           product_context_t *context) {
  onednn_post_t posts[ONEDNN_MAX_POSTS + 1];
  uint32_t count = 0;
  bool constant = onednn_plan_is_constant(plan, &context->weights_tensor);
  if (!constant && kernel->input_scale != 1.0F) {
    posts[count++] = (onednn_post_t){.kind = ONEDNN_POST_ELTWISE,
                                     .algorithm = dnnl_eltwise_linear,
                                     .alpha = kernel->input_scale,
                                     .operand = CLEAVE_INDEX_NONE,
                                     .node = kernel->node};
  }
  uint32_t left = kernel->post_count - folding->posts;
  memcpy(posts + count, kernel->posts + folding->posts, left * sizeof(onednn_post_t));
  count += left;
  onednn_request_t request = {
      .what = "matmul",
      .node = kernel->node,
      .describe = describe,
      .arguments = arguments,
      .context = context,
      .posts = posts,
      .post_count = count,
      .shape = product->result,
      .kernel_shape = product->kernel,
      .result = onednn_product_result(plan, kernel, product, onednn_plan_stores(plan, kernel->output)),
      .value = kernel->output,
      .sources = {&context->source_tensor, &context->weights_tensor},
      .can_sum = true};
  onednn_fitted_t fitted;
  context->source = context->source_tensor.layout;
  context->weights = constant ? onednn_layout_any(&product->b) : context->weights_tensor.layout;
  context->weights = onednn_layout_typed(&context->weights, onednn_plan_computes(plan));
  ONEDNN_TRY(onednn_fit(plan, &request, ONEDNN_FIT_FAST, &fitted));
  if (fitted.declined) {
    ONEDNN_TRY(fit_plain(plan, product, constant, &request, context, &fitted));
  }
  return onednn_emit_rest(plan, &request, &fitted, kernel->output);
}

// Few rows by a loop of our own, which reads the weights row by row, where they lie if the model has them
// transposed.
static cleave_status_t run_few_rows(onednn_plan_t *plan, const onednn_kernel_t *kernel,
                                    const onednn_product_t *product, const onednn_folding_t *folding,
                                    product_context_t *context) {
  int64_t rows = product->a.dims[0];
  int64_t depth = product->a.dims[1];
  int64_t columns = product->b.dims[1];
  onednn_layout_t weights = onednn_layout_strided(&product->b, (const int64_t[]){1, depth});
  onednn_layout_t plain = onednn_layout_plain(&product->kernel);
  onednn_tensor_t result;
  onednn_argument_t arguments[4] = {{.name = DNNL_ARG_SRC}, {.name = DNNL_ARG_WEIGHTS}};
  uint32_t count = 2;
  ONEDNN_TRY(onednn_plan_plain(plan, &context->source_tensor, &arguments[0].tensor));
  ONEDNN_TRY(onednn_plan_convert(plan, &context->weights_tensor, &weights, &arguments[1].tensor));
  if (context->has_bias) {
    arguments[count++] = (onednn_argument_t){.name = DNNL_ARG_BIAS, .tensor = context->bias_tensor};
  }
  bool is_last = kernel->post_count == folding->posts;
  ONEDNN_TRY(onednn_plan_make(plan, is_last ? kernel->output : CLEAVE_INDEX_NONE, &plain, &result));
  arguments[count++] = (onednn_argument_t){.name = DNNL_ARG_DST, .tensor = result};
  const onednn_loop_t loop = {
      .run = onednn_loop_product, .rank = (int32_t)count, .dims = {rows, columns, depth}};
  ONEDNN_TRY(onednn_plan_loop(plan, &loop, arguments, count, kernel->node, "matmul loop"));
  ONEDNN_TRY(onednn_plan_reshape(plan, &result, &product->result, &result));
  return onednn_emit_chain(plan, &result, kernel->posts + folding->posts, kernel->post_count - folding->posts,
                           kernel->node, kernel->output);
}

// Weights [K, N] in panels of the matrix. oneDNN reads the wide ones as well, so that prompts and single
// tokens share them.
static cleave_status_t pack(onednn_plan_t *plan, const onednn_tensor_t *weights, int32_t panel,
                            onednn_tensor_t *out) {
  static const int32_t swap[2] = {1, 0};
  onednn_tensor_t turned = *weights;
  onednn_shape_t shape = onednn_layout_shape(&weights->layout);
  onednn_layout_t panels = onednn_layout_product_panels(&shape);
  if (panel == KERNEL_MATRIX_PANEL_AVX512) {
    return onednn_plan_convert(plan, weights, &panels, out);
  }
  if (!onednn_layout_transpose(&weights->layout, swap, &turned.layout)) {
    return kernel_fail(plan->message, CLEAVE_ERROR_INTERNAL, "a matrix cannot be transposed");
  }
  shape = (onednn_shape_t){.rank = 3, .dims = {shape.dims[1], 1, shape.dims[0]}};
  panels = onednn_layout_panels(&shape);
  ONEDNN_TRY(onednn_plan_reshape(plan, &turned, &shape, &turned));
  return onednn_plan_convert(plan, &turned, &panels, out);
}

// A product by tiles of our own, but for the weights.
static onednn_matrix_request_t matrix_request(const onednn_plan_t *plan, const onednn_kernel_t *kernel,
                                              const onednn_product_t *product,
                                              const onednn_folding_t *folding,
                                              const product_context_t *context) {
  bool is_short = context->source_tensor.layout.data_type == dnnl_bf16;
  onednn_layout_t result =
      onednn_product_result(plan, kernel, product, onednn_plan_stores(plan, kernel->output));
  return (onednn_matrix_request_t){.kind = is_short ? ONEDNN_MATRIX_AMX : ONEDNN_MATRIX_PLAIN,
                                   .matrix = {.rows = product->a.dims[0],
                                              .columns = product->b.dims[1],
                                              .depth = product->a.dims[1],
                                              .panel = kernel_matrix_panel(),
                                              .x_stride = product->a.dims[1]},
                                   .source = context->source_tensor,
                                   .bias = context->bias_tensor,
                                   .has_bias = context->has_bias,
                                   .shape = product->result,
                                   .result = onednn_matrix_result(&result, product),
                                   .posts = kernel->posts + folding->posts,
                                   .post_count = kernel->post_count - folding->posts,
                                   .label = is_short ? "matmul amx" : "matmul tiles"};
}

typedef enum choice { BY_ONEDNN, BY_TILES, BY_ROWS } choice_t;

// What multiplies by constant weights. With AVX-512 tiles were measured to be faster for few rows, and on
// Intel's processors for any: they ask for weights that come from memory while they multiply.
static choice_t choose(const onednn_product_t *product, bool is_transposed) {
  int32_t panel = kernel_matrix_panel();
  bool is_few = product->a.dims[0] <= ONEDNN_FEW_ROWS;
  bool is_wide = panel == KERNEL_MATRIX_PANEL_AVX512;
  if (is_wide && product->b.dims[1] >= panel && (is_few || kernel_is_intel())) {
    return BY_TILES;
  }
  if (is_few && (is_transposed || panel == 0)) {
    return BY_ROWS;
  }
  return panel == KERNEL_MATRIX_PANEL ? BY_TILES : BY_ONEDNN;
}

// By a kernel of our own, or by oneDNN.
static cleave_status_t run_constant(onednn_plan_t *plan, const onednn_kernel_t *kernel,
                                    const onednn_product_t *product, const onednn_folding_t *folding,
                                    bool is_transposed, product_context_t *context) {
  onednn_matrix_request_t request = matrix_request(plan, kernel, product, folding, context);
  if (onednn_thirds_suit(plan, &request)) {
    request.kind = ONEDNN_MATRIX_THIRDS;
    ONEDNN_TRY(pack(plan, &context->weights_tensor, KERNEL_THIRDS_PANEL, &request.weights));
    return onednn_emit_matrix(plan, kernel, &request);
  }
  choice_t choice = request.kind == ONEDNN_MATRIX_PLAIN ? choose(product, is_transposed)
                    : onednn_amx_suits(plan, &request)  ? BY_TILES
                                                        : BY_ONEDNN;
  switch (choice) {
    case BY_ROWS: return run_few_rows(plan, kernel, product, folding, context);
    case BY_TILES:
      ONEDNN_TRY(request.kind == ONEDNN_MATRIX_PLAIN
                     ? pack(plan, &context->weights_tensor, request.matrix.panel, &request.weights)
                     : onednn_amx_pack(plan, &context->weights_tensor, &request));
      return onednn_emit_matrix(plan, kernel, &request);
    default: return run(plan, kernel, product, folding, context);
  }
}

cleave_status_t onednn_emit_product(onednn_plan_t *plan, const onednn_kernel_t *kernel) {
  const cleave_node_view_t *node = &plan->region->nodes[kernel->node];
  bool gemm = onednn_node_is(node, "Gemm");
  bool flip_a = gemm && cleave_view_int(node, "transA", 0) != 0;
  bool flip_b = gemm && cleave_view_int(node, "transB", 0) != 0;
  bool constant = onednn_is_constant(&plan->region->values[kernel->weights]);
  product_context_t context = {.has_bias = false};
  onednn_product_t product = {.tall = false};
  onednn_tensor_t a;
  onednn_tensor_t b;
  onednn_folding_t folding;
  ONEDNN_TRY(onednn_plan_stored(plan, kernel->source, &a));
  ONEDNN_TRY(onednn_plan_stored(plan, kernel->weights, &b));
  ONEDNN_TRY(onednn_product_matrix(plan, &a, flip_a, false, &a));
  product.result = onednn_plan_shape(plan, node->outputs[0]);
  onednn_tensor_t b_matrix;
  ONEDNN_TRY(onednn_product_matrix(plan, &b, flip_b, true, &b_matrix));
  product.a = onednn_layout_shape(&a.layout);
  product.b = onednn_layout_shape(&b_matrix.layout);
  ONEDNN_TRY(onednn_product_check(plan, node, &product));
  ONEDNN_TRY(onednn_product_fold(plan, kernel, &product, constant, &folding));
  if (constant && folding.scaled) {
    ONEDNN_TRY(
        scale_weights(plan, kernel->weights, flip_b, folding.scale, onednn_product_last(&product.b, 1), &b));
    ONEDNN_TRY(onednn_product_matrix(plan, &b, flip_b, true, &b_matrix));
  }
  onednn_product_shapes(plan, kernel, &product);
  dnnl_data_type_t type = onednn_plan_computes(plan);
  ONEDNN_TRY(onednn_product_operand(plan, &a, type, &product.a, &context.source_tensor));
  if (constant) {
    ONEDNN_TRY(onednn_plan_reshape(plan, &b_matrix, &product.b, &context.weights_tensor));
  } else {
    ONEDNN_TRY(onednn_product_operand(plan, &b_matrix, type, &product.b, &context.weights_tensor));
  }
  context.has_bias = folding.shifted;
  if (context.has_bias) {
    ONEDNN_TRY(onednn_product_bias(plan, &product, &folding, &context.bias_tensor));
    context.bias = context.bias_tensor.layout;
  }
  bool is_own = constant && product.tall && (type == dnnl_f32 || type == dnnl_bf16);
  return is_own ? run_constant(plan, kernel, &product, &folding, flip_b, &context)
                : run(plan, kernel, &product, &folding, &context);
}
