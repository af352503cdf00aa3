// SPDX-License-Identifier: Apache-2.0
// Shapes of matrix products with broadcasting. Rows of A are folded into one matrix if B is shared by all
// batches, so that a linear layer over [N, T, C] is a single product.
#include "cpu/products/matmul.h"

// Strides between matrices along the batch dims, right-aligned; false if a dim does not broadcast.
static bool batch_strides(const cpu_tensor_t *tensor, const cpu_matmul_t *plan, int64_t matrix,
                          int64_t *strides) {
  int32_t own = tensor->rank > 2 ? tensor->rank - 2 : 0;
  int64_t step = matrix;
  for (int32_t d = plan->batch_rank - 1; d >= 0; d--) {
    int32_t k = d - (plan->batch_rank - own);
    int64_t dim = k >= 0 ? tensor->dims[k] : 1;
    strides[d] = dim == 1 ? 0 : step;
    step *= dim;
    if (dim != 1 && dim != plan->batch_dims[d]) {
      return false;
    }
  }
  return true;
}

static void fold_rows(cpu_matmul_t *plan) {
  for (int32_t d = 0; d < plan->batch_rank; d++) {
    if (plan->b_strides[d] != 0 || (plan->a_strides[d] == 0 && plan->batch_dims[d] != 1)) {
      return;
    }
  }
  plan->m *= plan->batches;
  plan->batches = 1;
  plan->batch_rank = 0;
}

cleave_status_t cpu_matmul_resolve(const cpu_tensor_t *a, const cpu_tensor_t *b, const cpu_tensor_t *y,
                                   cpu_matmul_t *out_plan, cleave_message_t *message) {
  cpu_matmul_t plan = {.m = 1, .n = 1, .batches = 1};
  if (a->rank < 1 || b->rank < 1) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "an input is a scalar, expected rank 1 or more");
  }
  plan.m = a->rank > 1 ? a->dims[a->rank - 2] : 1;
  plan.k = a->dims[a->rank - 1];
  plan.n = b->rank > 1 ? b->dims[b->rank - 1] : 1;
  int64_t depth = b->rank > 1 ? b->dims[b->rank - 2] : b->dims[0];
  if (depth != plan.k) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "inner sizes differ: %lld and %lld", (long long)plan.k,
                       (long long)depth);
  }
  int32_t a_batch = a->rank > 2 ? a->rank - 2 : 0;
  int32_t b_batch = b->rank > 2 ? b->rank - 2 : 0;
  plan.batch_rank = a_batch > b_batch ? a_batch : b_batch;
  for (int32_t d = 0; d < plan.batch_rank; d++) {
    int32_t from_a = d - (plan.batch_rank - a_batch);
    int32_t from_b = d - (plan.batch_rank - b_batch);
    int64_t dim_a = from_a >= 0 ? a->dims[from_a] : 1;
    int64_t dim_b = from_b >= 0 ? b->dims[from_b] : 1;
    plan.batch_dims[d] = dim_a == 1 ? dim_b : dim_a;
    plan.batches = cpu_nn_multiply(plan.batches, plan.batch_dims[d]);
  }
  if (!batch_strides(a, &plan, plan.m * plan.k, plan.a_strides) ||
      !batch_strides(b, &plan, plan.k * plan.n, plan.b_strides)) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "batch dimensions do not broadcast");
  }
  CPU_TRY(cpu_nn_check_count("output", y, cpu_nn_multiply(plan.batches, cpu_nn_multiply(plan.m, plan.n)),
                             message));
  fold_rows(&plan);
  *out_plan = plan;
  return CLEAVE_OK;
}

void cpu_matmul_offsets(const cpu_matmul_t *plan, int64_t index, int64_t *out_a, int64_t *out_b) {
  int64_t a = 0;
  int64_t b = 0;
  for (int32_t d = plan->batch_rank - 1; d >= 0; d--) {
    a += index % plan->batch_dims[d] * plan->a_strides[d];
    b += index % plan->batch_dims[d] * plan->b_strides[d];
    index /= plan->batch_dims[d];
  }
  *out_a = a;
  *out_b = b;
}
