// SPDX-License-Identifier: Apache-2.0
// Shapes and operands of matrix products, as oneDNN's matmul takes them.
#include "onednn/product/product.h"

#include <string.h>

#include "onednn/emit/emit.h"

static onednn_shape_t matrix_shape(const onednn_shape_t *shape, bool column) {
  onednn_shape_t out = *shape;
  if (shape->rank == 1) {
    out.rank = 2;
    out.dims[0] = column ? shape->dims[0] : 1;
    out.dims[1] = column ? 1 : shape->dims[0];
  }
  return out;
}

int64_t onednn_product_last(const onednn_shape_t *shape, int32_t back) {
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
static bool posts_allow(const onednn_plan_t *plan, const onednn_kernel_t *kernel,
                        const onednn_product_t *product) {
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

void onednn_product_shapes(const onednn_plan_t *plan, const onednn_kernel_t *kernel,
                           onednn_product_t *product) {
  int64_t m = onednn_product_last(&product->a, 2);
  int64_t k = onednn_product_last(&product->a, 1);
  int64_t n = onednn_product_last(&product->b, 1);
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
cleave_status_t onednn_product_operand(onednn_plan_t *plan, const onednn_tensor_t *tensor,
                                       dnnl_data_type_t type, const onednn_shape_t *shape,
                                       onednn_tensor_t *out) {
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

cleave_status_t onednn_product_matrix(onednn_plan_t *plan, const onednn_tensor_t *tensor, bool transposed,
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
      return kernel_fail(plan->message, CLEAVE_ERROR_INTERNAL, "a matrix cannot be transposed");
    }
  }
  return CLEAVE_OK;
}

cleave_status_t onednn_product_check(const onednn_plan_t *plan, const cleave_node_view_t *node,
                                     const onednn_product_t *product) {
  if (onednn_product_last(&product->a, 1) != onednn_product_last(&product->b, 2)) {
    return kernel_fail(plan->message, CLEAVE_ERROR_SHAPE, "%s '%s': inner dimensions %lld and %lld differ",
                       node->op, onednn_node_name(node), (long long)onednn_product_last(&product->a, 1),
                       (long long)onednn_product_last(&product->b, 2));
  }
  return CLEAVE_OK;
}

// The wanted order of the result, if the primitive's shape can say it; plain otherwise.
onednn_layout_t onednn_product_result(const onednn_plan_t *plan, const onednn_kernel_t *kernel,
                                      const onednn_product_t *product, dnnl_data_type_t type) {
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

cleave_status_t onednn_product_fold(onednn_plan_t *plan, const onednn_kernel_t *kernel,
                                    const onednn_product_t *product, bool constant,
                                    onednn_folding_t *folding) {
  int64_t columns = onednn_product_last(&product->b, 1);
  bool column_axis = onednn_product_last(&product->result, 1) == columns;
  memset(folding, 0, sizeof(*folding));
  folding->scale = kernel_arena_allocate(plan->arena, (size_t)columns, 2 * sizeof(float));
  if (folding->scale == NULL) {
    return kernel_fail(plan->message, CLEAVE_ERROR_OUT_OF_MEMORY, "out of memory while packing weights");
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

cleave_status_t onednn_product_bias(onednn_plan_t *plan, const onednn_product_t *product,
                                    const onednn_folding_t *folding, onednn_tensor_t *out) {
  onednn_shape_t shape = product->kernel;
  for (int32_t d = 0; d + 1 < shape.rank; d++) {
    shape.dims[d] = 1;
  }
  float *data = NULL;
  onednn_layout_t layout = onednn_layout_plain(&shape);
  ONEDNN_TRY(onednn_plan_constant(plan, &layout, out, &data));
  memcpy(data, folding->shift, (size_t)shape.dims[shape.rank - 1] * sizeof(float));
  return CLEAVE_OK;
}
