// SPDX-License-Identifier: Apache-2.0
// MatMul and Gemm as oneDNN matmul. A right-hand side that is one matrix makes the left-hand side one tall
// matrix; a constant one is scaled and packed while compiling. Batched products read transposed operands and
// write transposed results through strides. Products of rank 3 get a leading one: oneDNN's fast kernels know
// strided batches in rank 4 only.
#include "onednn/emit/emit.h"

#include <string.h>

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
  onednn_layout_t weights;
  if (!onednn_query_layout(description, dnnl_query_weights_md, &weights)) {
    return onednn_check(dnnl_runtime_error, "a product's layouts", plan->message);
  }
  out[0] = (onednn_argument_t){.name = DNNL_ARG_SRC, .tensor = context->source_tensor};
  out[1].name = DNNL_ARG_WEIGHTS;
  ONEDNN_TRY(onednn_plan_convert(plan, &context->weights_tensor, &weights, &out[1].tensor));
  *count = 2;
  if (context->has_bias) {
    out[(*count)++] = (onednn_argument_t){.name = DNNL_ARG_BIAS, .tensor = context->bias_tensor};
  }
  return CLEAVE_OK;
}

// Shapes of one product, operands with rank at least 2.
typedef struct product {
  onednn_shape_t a;       // [..., M, K]
  onednn_shape_t b;       // [..., K, N]
  onednn_shape_t result;  // of the node
  onednn_shape_t kernel;  // of the primitive
  bool tall;              // b is one matrix, a and the result are merged to matrices
} product_t;

static onednn_shape_t matrix_shape(const onednn_shape_t *shape, bool column) {
  onednn_shape_t out = *shape;
  if (shape->rank == 1) {
    out.rank = 2;
    out.dims[0] = column ? shape->dims[0] : 1;
    out.dims[1] = column ? 1 : shape->dims[0];
  }
  return out;
}

static int64_t last(const onednn_shape_t *shape, int32_t back) {
  return shape->dims[shape->rank - back];
}

// Product of all dims but the last two.
static int64_t batch_of(const onednn_shape_t *shape) {
  int64_t count = 1;
  for (int32_t d = 0; d + 2 < shape->rank; d++) {
    count *= shape->dims[d];
  }
  return count;
}

static bool same_batch(const onednn_shape_t *a, const onednn_shape_t *b) {
  if (a->rank != b->rank) {
    return false;
  }
  for (int32_t d = 0; d + 2 < a->rank; d++) {
    if (a->dims[d] != b->dims[d]) {
      return false;
    }
  }
  return true;
}

// Can every operand of the posts be seen in the kernel's shape?
static bool posts_allow(const onednn_plan_t *plan, const onednn_kernel_t *kernel, const product_t *product) {
  for (uint32_t k = 0; k < kernel->post_count; k++) {
    onednn_shape_t mapped;
    if (kernel->posts[k].kind != ONEDNN_POST_BINARY) {
      continue;
    }
    onednn_shape_t own = onednn_plan_shape(plan, kernel->posts[k].operand);
    if (own.rank <= product->result.rank && onednn_shape_fits(&own, &product->result) &&
        !onednn_broadcast_shape(&own, &product->result, &product->kernel, &mapped)) {
      return false;
    }
  }
  return true;
}

static onednn_shape_t shape_3(int64_t batch, int64_t rows, int64_t columns) {
  return (onednn_shape_t){.rank = 3, .dims = {batch, rows, columns}};
}

static void choose_shapes(const onednn_plan_t *plan, const onednn_kernel_t *kernel, product_t *product) {
  int64_t m = last(&product->a, 2);
  int64_t k = last(&product->a, 1);
  int64_t n = last(&product->b, 1);
  if (batch_of(&product->b) == 1) {
    product->kernel = (onednn_shape_t){.rank = 2, .dims = {batch_of(&product->a) * m, n}};
    product->tall = true;
    if (posts_allow(plan, kernel, product)) {
      product->a = (onednn_shape_t){.rank = 2, .dims = {product->kernel.dims[0], k}};
      product->b = (onednn_shape_t){.rank = 2, .dims = {k, n}};
      return;
    }
    product->tall = false;
  }
  int32_t rank = product->a.rank > product->b.rank ? product->a.rank : product->b.rank;
  product->a = onednn_shape_pad(&product->a, rank);
  product->b = onednn_shape_pad(&product->b, rank);
  product->kernel = product->a;
  for (int32_t d = 0; d + 2 < rank; d++) {
    product->kernel.dims[d] = product->a.dims[d] == 1 ? product->b.dims[d] : product->a.dims[d];
  }
  product->kernel.dims[rank - 1] = n;
  if (rank > 4 && same_batch(&product->a, &product->b)) {
    onednn_shape_t whole = product->kernel;
    product->kernel = shape_3(batch_of(&product->a), m, n);
    if (posts_allow(plan, kernel, product)) {
      product->a = shape_3(product->kernel.dims[0], m, k);
      product->b = shape_3(product->kernel.dims[0], k, n);
      rank = 3;
    } else {
      product->kernel = whole;
    }
  }
  if (rank == 3) {
    product->a = onednn_shape_pad(&product->a, 4);
    product->b = onednn_shape_pad(&product->b, 4);
    product->kernel = onednn_shape_pad(&product->kernel, 4);
  }
}

// An operand under the shape the primitive wants; strides must be ones that matmul reads directly. Gaps, as
// in a third of a fused projection, send batched products to slow code: a copy costs less. One that is stored
// in another type is copied anyway.
static cleave_status_t operand(onednn_plan_t *plan, const onednn_tensor_t *tensor, dnnl_data_type_t type,
                               const onednn_shape_t *shape, onednn_tensor_t *out) {
  if (tensor->layout.data_type != type) {
    onednn_shape_t own = onednn_layout_shape(&tensor->layout);
    onednn_layout_t plain = onednn_layout_plain(&own);
    onednn_tensor_t copy;
    plain = onednn_layout_typed(&plain, type);
    ONEDNN_TRY(onednn_plan_convert(plan, tensor, &plain, &copy));
    return onednn_plan_reshape(plan, &copy, shape, out);
  }
  ONEDNN_TRY(onednn_plan_reshape(plan, tensor, shape, out));
  if (onednn_layout_is_strided(&out->layout)) {
    const dnnl_dim_t *strides = out->layout.format_desc.blocking.strides;
    int rank = out->layout.ndims;
    bool rows = strides[rank - 1] == 1 || shape->dims[rank - 1] == 1;
    bool columns = strides[rank - 2] == 1 || shape->dims[rank - 2] == 1;
    if ((rows || columns) && (rank == 2 || onednn_layout_is_dense(&out->layout))) {
      return CLEAVE_OK;
    }
  }
  return onednn_plan_plain(plan, out, out);
}

// What it takes to multiply every column of constant weights by its scale.
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
    return onednn_fail(plan->message, CLEAVE_ERROR_OUT_OF_MEMORY, "out of memory while packing weights");
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

typedef struct folding {
  float *scale;
  float *shift;
  uint32_t posts;
  bool scaled;
  bool shifted;
} folding_t;

static cleave_status_t fold(onednn_plan_t *plan, const onednn_kernel_t *kernel, const product_t *product,
                            bool constant, folding_t *folding) {
  int64_t columns = last(&product->b, 1);
  bool column_axis = last(&product->result, 1) == columns;
  memset(folding, 0, sizeof(*folding));
  folding->scale = kernel_arena_allocate(plan->arena, (size_t)columns, 2 * sizeof(float));
  if (folding->scale == NULL) {
    return onednn_fail(plan->message, CLEAVE_ERROR_OUT_OF_MEMORY, "out of memory while packing weights");
  }
  folding->shift = folding->scale + columns;
  for (int64_t c = 0; c < columns; c++) {
    folding->scale[c] = constant ? kernel->input_scale : 1.0F;
  }
  // With run-time weights a bias comes before any factor, so the factor must be one.
  if (column_axis && (constant || kernel->input_scale == 1.0F)) {
    ONEDNN_TRY(onednn_fold_posts(plan, kernel, &product->result, product->result.rank - 1, constant,
                                 folding->scale, folding->shift, &folding->posts));
  }
  for (int64_t c = 0; c < columns; c++) {
    folding->scaled = folding->scaled || folding->scale[c] != 1.0F;
    folding->shifted = folding->shifted || folding->shift[c] != 0.0F;
  }
  return CLEAVE_OK;
}

static cleave_status_t make_bias(onednn_plan_t *plan, const product_t *product, const folding_t *folding,
                                 product_context_t *context) {
  onednn_shape_t shape = product->kernel;
  for (int32_t d = 0; d + 1 < shape.rank; d++) {
    shape.dims[d] = 1;
  }
  context->has_bias = folding->shifted;
  if (!folding->shifted) {
    return CLEAVE_OK;
  }
  float *data = NULL;
  context->bias = onednn_layout_plain(&shape);
  ONEDNN_TRY(onednn_plan_constant(plan, &context->bias, &context->bias_tensor, &data));
  memcpy(data, folding->shift, (size_t)shape.dims[shape.rank - 1] * sizeof(float));
  return CLEAVE_OK;
}

static cleave_status_t fetch_matrix(onednn_plan_t *plan, const onednn_tensor_t *tensor, bool transposed,
                                    bool column, onednn_tensor_t *out) {
  static const int32_t swap[2] = {1, 0};
  onednn_shape_t own = onednn_layout_shape(&tensor->layout);
  onednn_shape_t shape = matrix_shape(&own, column);
  onednn_tensor_t matrix;
  ONEDNN_TRY(onednn_plan_reshape(plan, tensor, &shape, &matrix));
  *out = matrix;
  if (transposed && !onednn_layout_transpose(&matrix.layout, swap, &out->layout)) {
    ONEDNN_TRY(onednn_plan_plain(plan, &matrix, out));
    if (!onednn_layout_transpose(&matrix.layout, swap, &out->layout)) {
      return onednn_fail(plan->message, CLEAVE_ERROR_INTERNAL, "a matrix cannot be transposed");
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t check_shapes(const onednn_plan_t *plan, const cleave_node_view_t *node,
                                    const product_t *product) {
  if (last(&product->a, 1) != last(&product->b, 2)) {
    return onednn_fail(plan->message, CLEAVE_ERROR_SHAPE, "%s '%s': inner dimensions %lld and %lld differ",
                       node->op, onednn_node_name(node), (long long)last(&product->a, 1),
                       (long long)last(&product->b, 2));
  }
  return CLEAVE_OK;
}

// The wanted order of the result, if the primitive's shape can say it; plain otherwise.
static onednn_layout_t result_layout(const onednn_plan_t *plan, const onednn_kernel_t *kernel,
                                     const product_t *product, dnnl_data_type_t type) {
  onednn_layout_t wanted = onednn_plan_wanted(plan, kernel->output);
  onednn_layout_t viewed;
  onednn_shape_t shape = onednn_layout_shape(&wanted);
  if (onednn_shape_count(&shape) == onednn_shape_count(&product->kernel) &&
      onednn_layout_reshape(&wanted, &product->kernel, &viewed)) {
    return onednn_layout_typed(&viewed, type);
  }
  onednn_layout_t plain = onednn_layout_plain(&product->kernel);
  return onednn_layout_typed(&plain, type);
}

// The strides were what oneDNN has no fast code for: plain layouts for everything, in a type of which at
// least the reference code can do all.
static cleave_status_t fit_plain(onednn_plan_t *plan, const product_t *product, bool constant,
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

static cleave_status_t run(onednn_plan_t *plan, const onednn_kernel_t *kernel, const product_t *product,
                           const folding_t *folding, product_context_t *context) {
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
      .result = result_layout(plan, kernel, product, onednn_plan_stores(plan, kernel->output)),
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

// Few rows by a loop of our own, which reads the weights once, where they lie if the model has them
// transposed.
static cleave_status_t run_few_rows(onednn_plan_t *plan, const onednn_kernel_t *kernel,
                                    const product_t *product, const folding_t *folding,
                                    product_context_t *context) {
  int64_t rows = product->a.dims[0];
  int64_t depth = product->a.dims[1];
  int64_t columns = product->b.dims[1];
  onednn_layout_t transposed = onednn_layout_strided(&product->b, (const int64_t[]){1, depth});
  onednn_layout_t plain = onednn_layout_plain(&product->kernel);
  onednn_tensor_t result;
  onednn_argument_t arguments[4] = {{.name = DNNL_ARG_SRC}, {.name = DNNL_ARG_WEIGHTS}};
  uint32_t count = 2;
  ONEDNN_TRY(onednn_plan_plain(plan, &context->source_tensor, &arguments[0].tensor));
  arguments[1].tensor.layout = transposed;
  ONEDNN_TRY(onednn_plan_convert(plan, &context->weights_tensor, &transposed, &arguments[1].tensor));
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

cleave_status_t onednn_emit_product(onednn_plan_t *plan, const onednn_kernel_t *kernel) {
  const cleave_node_view_t *node = &plan->region->nodes[kernel->node];
  bool gemm = onednn_node_is(node, "Gemm");
  bool flip_a = gemm && cleave_view_int(node, "transA", 0) != 0;
  bool flip_b = gemm && cleave_view_int(node, "transB", 0) != 0;
  bool constant = onednn_is_constant(&plan->region->values[kernel->weights]);
  product_context_t context = {.has_bias = false};
  product_t product = {.tall = false};
  onednn_tensor_t a;
  onednn_tensor_t b;
  folding_t folding;
  ONEDNN_TRY(onednn_plan_stored(plan, kernel->source, &a));
  ONEDNN_TRY(onednn_plan_stored(plan, kernel->weights, &b));
  ONEDNN_TRY(fetch_matrix(plan, &a, flip_a, false, &a));
  product.result = onednn_plan_shape(plan, node->outputs[0]);
  onednn_tensor_t b_matrix;
  ONEDNN_TRY(fetch_matrix(plan, &b, flip_b, true, &b_matrix));
  product.a = onednn_layout_shape(&a.layout);
  product.b = onednn_layout_shape(&b_matrix.layout);
  ONEDNN_TRY(check_shapes(plan, node, &product));
  ONEDNN_TRY(fold(plan, kernel, &product, constant, &folding));
  if (constant && folding.scaled) {
    ONEDNN_TRY(scale_weights(plan, kernel->weights, flip_b, folding.scale, last(&product.b, 1), &b));
    ONEDNN_TRY(fetch_matrix(plan, &b, flip_b, true, &b_matrix));
  }
  choose_shapes(plan, kernel, &product);
  dnnl_data_type_t type = onednn_plan_computes(plan);
  ONEDNN_TRY(operand(plan, &a, type, &product.a, &context.source_tensor));
  if (constant) {
    ONEDNN_TRY(onednn_plan_reshape(plan, &b_matrix, &product.b, &context.weights_tensor));
  } else {
    ONEDNN_TRY(operand(plan, &b_matrix, type, &product.b, &context.weights_tensor));
  }
  ONEDNN_TRY(make_bias(plan, &product, &folding, &context));
  if (constant && type == dnnl_f32 && product.tall && product.a.dims[0] <= ONEDNN_FEW_ROWS) {
    return run_few_rows(plan, kernel, &product, &folding, &context);
  }
  return run(plan, kernel, &product, &folding, &context);
}
