// SPDX-License-Identifier: Apache-2.0
// Products of matrices. Batches that both sides run through in one go are one call; others are several.
#include <stdio.h>
#include <string.h>

#include "emit.h"
#include "kernels/convert.h"

enum { MAX_CALLS = 4096, TILE = 64, BLOCK = 256 };

static const cuda_pointer_t nowhere = {CUDA_NO_SLOT, 0};

bool cuda_product_is_fast(const cuda_plan_t *plan, cleave_dtype_t dtype) {
  return plan->options.has_blas && cpu_dtype_is_float(dtype);
}

/* Scratch memory is given out when the algorithm is chosen. */
static cleave_status_t by_library(cuda_plan_t *plan, const char *label, const cuda_product_t *product,
                                  const cuda_pointer_t *pointers) {
  cuda_step_t *step = NULL;
  cuda_pointer_t all[5] = {pointers[0], pointers[1], pointers[2], nowhere, pointers[3]};
  CUDA_TRY(cuda_plan_scratch(plan, 0, &all[CUDA_WORKSPACE_POINTER].slot));
  CUDA_TRY(cuda_plan_step(plan, CUDA_STEP_PRODUCT, label, all, 5, &step));
  step->product = cuda_plan_allocate(plan, 1, sizeof *product);
  if (step->product == NULL) {
    return cuda_plan_no_memory(plan);
  }
  *step->product = *product;
  return CLEAVE_OK;
}

static cleave_status_t by_kernel(cuda_plan_t *plan, const char *label, const cuda_product_t *product,
                                 const cuda_pointer_t *pointers) {
  char types[256];
  char defines[320];
  (void)cuda_text_defines(product->dtype, types, sizeof types);
  bool is_double = product->dtype == CLEAVE_DTYPE_F64;
  if (product->alpha != 1.0) {
    (void)snprintf(defines, sizeof defines,
                   is_double ? "%s#define ALPHA *%.17g\n" : "%s#define ALPHA *(float)%.9g\n", types,
                   product->alpha);
  } else {
    (void)snprintf(defines, sizeof defines, "%s#define ALPHA\n", types);
  }
  int64_t tiles =
      ((product->rows + TILE - 1) / TILE) * ((product->columns + TILE - 1) / TILE) * product->batches;
  const bool *turned = product->transposes;
  const int64_t *strides = product->strides;
  cuda_kernel_call_t call = {
      .text = "product",
      .label = label,
      .defines = defines,
      .pointer_count = 3,
      .pointers = {pointers[0], pointers[1], pointers[2]},
      .number_count = 11,
      .numbers = {product->rows, product->columns, product->inner, turned[0] ? 1 : strides[0],
                  turned[0] ? strides[0] : 1, turned[1] ? 1 : strides[1], turned[1] ? strides[1] : 1,
                  strides[2], product->batch_strides[0], product->batch_strides[1],
                  product->batch_strides[2]},
      .threads = tiles * BLOCK,
      .block = BLOCK};
  for (int k = 0; k < 3; k++) {
    int64_t extent = k == 0   ? product->strides[0] * (turned[0] ? product->inner : product->rows)
                     : k == 1 ? product->strides[1] * (turned[1] ? product->columns : product->inner)
                              : product->strides[2] * product->rows;
    call.is_wide = call.is_wide || extent + product->batch_strides[k] * product->batches > INT32_MAX - 65536;
  }
  return cuda_plan_kernel(plan, &call);
}

// Wide: the four operands of a product.
cleave_status_t cuda_emit_product(cuda_plan_t *plan, const char *label, const cuda_product_t *product,
                                  cuda_pointer_t a, cuda_pointer_t b, cuda_pointer_t d, cuda_pointer_t bias) {
  const cuda_pointer_t pointers[4] = {a, b, d, bias};
  cuda_product_t own = *product;
  if (own.rows == 0 || own.columns == 0 || own.batches == 0) {
    return CLEAVE_OK;
  }
  if (own.inner == 0) {
    return own.has_bias || own.activation != 0
               ? cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE, "its matrices are empty")
               : cuda_emit_zeros(
                     plan, label, d,
                     own.rows * own.columns * own.batches * (int64_t)cleave_dtype_size(own.dtype));
  }
  bool fits =
      own.rows <= INT32_MAX && own.columns <= INT32_MAX && own.inner <= INT32_MAX && own.batches <= INT32_MAX;
  own.uses_tf32 = plan->options.tf32 && own.dtype == CLEAVE_DTYPE_F32;
  return fits && cuda_product_is_fast(plan, own.dtype) ? by_library(plan, label, &own, pointers)
                                                       : by_kernel(plan, label, &own, pointers);
}

/* ---- MatMul ---- */

typedef struct batch {
  int32_t rank;
  int64_t dims[CLEAVE_MAX_RANK];
  int64_t a[CLEAVE_MAX_RANK]; /* strides, in elements */
  int64_t b[CLEAVE_MAX_RANK];
  int64_t d[CLEAVE_MAX_RANK];
} batch_t;

/* Axes before the matrices, merged where all three run through them in one go. */
static batch_t find_batch(const cleave_tensor_view_t *a, const cleave_tensor_view_t *b, int64_t a_size,
                          int64_t b_size, int64_t d_size) {
  batch_t batch = {.rank = 0};
  int32_t a_rank = a->rank > 2 ? a->rank - 2 : 0;
  int32_t b_rank = b->rank > 2 ? b->rank - 2 : 0;
  int32_t rank = a_rank > b_rank ? a_rank : b_rank;
  int64_t a_stride = a_size;
  int64_t b_stride = b_size;
  int64_t d_stride = d_size;
  for (int32_t k = 1; k <= rank; k++) { /* from the last one on */
    int64_t a_dim = k <= a_rank ? a->dims[a_rank - k] : 1;
    int64_t b_dim = k <= b_rank ? b->dims[b_rank - k] : 1;
    int64_t dim = a_dim == 1 ? b_dim : a_dim;
    int64_t a_own = a_dim == 1 ? 0 : a_stride;
    int64_t b_own = b_dim == 1 ? 0 : b_stride;
    a_stride *= a_dim;
    b_stride *= b_dim;
    if (dim == 1) {
      continue;
    }
    int32_t last = batch.rank - 1;
    if (last >= 0 && a_own == batch.a[last] * batch.dims[last] && b_own == batch.b[last] * batch.dims[last]) {
      batch.dims[last] *= dim;
    } else {
      last = batch.rank++;
      batch.dims[last] = dim;
      batch.a[last] = a_own;
      batch.b[last] = b_own;
      batch.d[last] = d_stride;
    }
    d_stride *= dim;
  }
  return batch;
}

/* The axis of most batches is that of the calls; the others are walked through. */
static cleave_status_t emit_batches(cuda_plan_t *plan, const cleave_node_view_t *node,
                                    cuda_product_t *product, const batch_t *batch, cuda_pointer_t bias,
                                    uint32_t to) {
  int32_t widest = 0;
  int64_t calls = 1;
  int64_t size = (int64_t)cleave_dtype_size(product->dtype);
  for (int32_t k = 0; k < batch->rank; k++) {
    widest = batch->dims[k] > batch->dims[widest] ? k : widest;
    calls *= batch->dims[k];
  }
  product->batches = batch->rank > 0 ? batch->dims[widest] : 1;
  product->batch_strides[0] = batch->rank > 0 ? batch->a[widest] : 0;
  product->batch_strides[1] = batch->rank > 0 ? batch->b[widest] : 0;
  product->batch_strides[2] = batch->rank > 0 ? batch->d[widest] : 0;
  calls = product->batches > 0 ? calls / product->batches : 0;
  if (calls > MAX_CALLS) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_SIZE, "its batches would need more than %d calls", MAX_CALLS);
  }
  for (int64_t call = 0; call < calls; call++) {
    int64_t rest = call;
    int64_t offsets[3] = {0, 0, 0};
    for (int32_t k = 0; k < batch->rank; k++) {
      if (k != widest) {
        offsets[0] += rest % batch->dims[k] * batch->a[k] * size;
        offsets[1] += rest % batch->dims[k] * batch->b[k] * size;
        offsets[2] += rest % batch->dims[k] * batch->d[k] * size;
        rest /= batch->dims[k];
      }
    }
    CUDA_TRY(cuda_emit_product(plan, node->op, product, (cuda_pointer_t){node->inputs[0], offsets[0]},
                               (cuda_pointer_t){node->inputs[1], offsets[1]},
                               (cuda_pointer_t){to, offsets[2]}, bias));
  }
  return CLEAVE_OK;
}

static void add_epilogue(cuda_product_t *product, const cuda_epilogue_t *epilogue, cuda_pointer_t *out_bias) {
  if (epilogue != NULL) {
    product->has_bias = epilogue->bias != CUDA_NO_SLOT;
    product->activation = epilogue->activation;
    out_bias->slot = epilogue->bias;
  }
}

cleave_status_t cuda_emit_matmul(cuda_plan_t *plan, const cleave_node_view_t *node,
                                 const cuda_epilogue_t *epilogue) {
  const cleave_tensor_view_t *a = cuda_input(plan, node, 0);
  const cleave_tensor_view_t *b = cuda_input(plan, node, 1);
  cuda_pointer_t bias = nowhere;
  if (a->rank < 1 || b->rank < 1 || a->dtype != b->dtype || a->dtype == CLEAVE_DTYPE_BOOL) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE, "its operands are not matrices of one dtype");
  }
  int64_t inner = a->dims[a->rank - 1];
  int64_t rows = a->rank > 1 ? a->dims[a->rank - 2] : 1;
  int64_t columns = b->rank > 1 ? b->dims[b->rank - 1] : 1;
  if (inner != (b->rank > 1 ? b->dims[b->rank - 2] : b->dims[0])) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE, "its matrices do not fit together");
  }
  batch_t batch = find_batch(a, b, rows * inner, inner * columns, rows * columns);
  if (batch.rank == 1 && batch.b[0] == 0 && batch.a[0] == rows * inner) { /* one matrix of more rows */
    rows *= batch.dims[0];
    batch.rank = 0;
  }
  cuda_product_t product = {.dtype = a->dtype,
                            .rows = rows,
                            .columns = columns,
                            .inner = inner,
                            .strides = {inner, columns, columns},
                            .alpha = 1.0};
  add_epilogue(&product, epilogue, &bias);
  return emit_batches(plan, node, &product, &batch, bias,
                      epilogue != NULL ? epilogue->result : node->outputs[0]);
}

cleave_status_t cuda_emit_matmul_alone(cuda_plan_t *plan, const cleave_node_view_t *node) {
  return cuda_emit_matmul(plan, node, NULL);
}

/* ---- Gemm ---- */

static cleave_status_t build_sum(cuda_builder_t *builder, const cleave_node_view_t *node, uint32_t product,
                                 double beta, uint32_t to) {
  static const int8_t all[2] = {0, 1};
  const cuda_plan_t *plan = builder->plan;
  const cleave_tensor_view_t *c = cuda_input(plan, node, 2);
  const cleave_tensor_view_t *y = cuda_output(plan, node, 0);
  cleave_dtype_t dtype = kernel_compute_dtype(y->dtype);
  int8_t axes[2] = {-1, -1};
  uint32_t value = 0;
  uint32_t other = 0;
  uint32_t factor = 0;
  for (int32_t d = 0; d < c->rank; d++) {
    axes[2 - c->rank + d] = (int8_t)d;
  }
  CUDA_TRY(cuda_builder_load(builder, y->dtype, (cuda_pointer_t){product, 0}, all, 2, y->dims, &value));
  CUDA_TRY(cuda_builder_load(builder, c->dtype, (cuda_pointer_t){node->inputs[2], 0}, axes, c->rank, c->dims,
                             &other));
  if (beta != 1.0) {
    CUDA_TRY(cuda_builder_number(builder, dtype, beta, &factor));
    CUDA_TRY(cuda_builder_apply(builder, KERNEL_Mul, other, factor, &other));
  }
  CUDA_TRY(cuda_builder_apply(builder, KERNEL_Add, value, other, &value));
  return cuda_builder_store(builder, y->dtype, value, (cuda_pointer_t){to, 0});
}

/* C, of a shape that the library has no epilogue for, in a kernel of its own. */
static cleave_status_t emit_sum(cuda_plan_t *plan, const cleave_node_view_t *node, uint32_t product,
                                double beta) {
  cuda_builder_t builder;
  cleave_status_t status = cuda_builder_init(&builder, plan, "Gemm: C", 2, 0);
  status = status == CLEAVE_OK ? build_sum(&builder, node, product, beta, node->outputs[0]) : status;
  status = status == CLEAVE_OK ? cuda_plan_program(plan, builder.call) : status;
  cuda_builder_deinit(&builder);
  return status;
}

cleave_status_t cuda_emit_gemm(cuda_plan_t *plan, const cleave_node_view_t *node,
                               const cuda_epilogue_t *epilogue) {
  const cleave_tensor_view_t *a = cuda_input(plan, node, 0);
  const cleave_tensor_view_t *b = cuda_input(plan, node, 1);
  const cleave_tensor_view_t *c = cuda_input(plan, node, 2);
  bool turns_a = cleave_view_int(node, "transA", 0) != 0;
  bool turns_b = cleave_view_int(node, "transB", 0) != 0;
  double beta = cleave_view_float(node, "beta", 1.0);
  uint32_t to = epilogue != NULL ? epilogue->result : node->outputs[0];
  cuda_pointer_t bias = nowhere;
  if (a->rank != 2 || b->rank != 2 || (c != NULL && c->rank > 2) || !cpu_dtype_is_float(a->dtype)) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE, "its operands are not matrices of floats");
  }
  cuda_product_t product = {.dtype = a->dtype,
                            .transposes = {turns_a, turns_b},
                            .rows = a->dims[turns_a ? 1 : 0],
                            .columns = b->dims[turns_b ? 0 : 1],
                            .inner = a->dims[turns_a ? 0 : 1],
                            .strides = {a->dims[1], b->dims[1], b->dims[turns_b ? 0 : 1]},
                            .batches = 1,
                            .alpha = cleave_view_float(node, "alpha", 1.0)};
  c = beta == 0.0 ? NULL : c;
  bool is_bias = c != NULL && beta == 1.0 && cuda_product_is_fast(plan, a->dtype) && product.inner > 0 &&
                 c->rank >= 1 && c->dims[c->rank - 1] == product.columns &&
                 (c->rank == 1 || c->dims[0] == 1) && (epilogue == NULL || epilogue->bias == CUDA_NO_SLOT);
  add_epilogue(&product, epilogue, &bias);
  if (is_bias) {
    product.has_bias = true;
    bias.slot = node->inputs[2];
  }
  bool adds = c != NULL && !is_bias;
  if (adds && epilogue != NULL) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE, "its C is not a row");
  }
  if (adds) {
    CUDA_TRY(cuda_plan_scratch(plan, plan->slots[node->outputs[0]].bytes, &to));
  }
  CUDA_TRY(cuda_emit_product(plan, node->op, &product, (cuda_pointer_t){node->inputs[0], 0},
                             (cuda_pointer_t){node->inputs[1], 0}, (cuda_pointer_t){to, 0}, bias));
  return adds ? emit_sum(plan, node, to, beta) : CLEAVE_OK;
}

cleave_status_t cuda_emit_gemm_alone(cuda_plan_t *plan, const cleave_node_view_t *node) {
  return cuda_emit_gemm(plan, node, NULL);
}
