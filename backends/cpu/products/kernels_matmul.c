// SPDX-License-Identifier: Apache-2.0
// MatMul and Gemm for float and 32/64-bit integer types. Sizes are checked against each other before data is
// read; the numeric code is in matmul.inc.
#include "cpu/common/gemm.h"
#include "cpu/products/matmul.h"

// Multiply-adds below which one thread is enough for a product.
#define SMALL_PRODUCT ((int64_t)1 << 21)

typedef struct gemm_state {
  bool transpose_a;
  bool transpose_b;
  double alpha;
  double beta;
} gemm_state_t;

static cleave_status_t gemm_sizes(const cpu_call_t *call, int64_t *out_m, int64_t *out_n, int64_t *out_k,
                                  cleave_message_t *message) {
  const gemm_state_t *state = call->state;
  const cpu_tensor_t *a = call->inputs[0];
  const cpu_tensor_t *b = call->inputs[1];
  const cpu_tensor_t *c = cpu_input(call, 2);
  if (a->rank != 2 || b->rank != 2) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "inputs have rank %d and %d, expected 2", a->rank,
                       b->rank);
  }
  int64_t m = a->dims[state->transpose_a ? 1 : 0];
  int64_t k = a->dims[state->transpose_a ? 0 : 1];
  int64_t n = b->dims[state->transpose_b ? 0 : 1];
  if (b->dims[state->transpose_b ? 1 : 0] != k) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "inner sizes differ: %lld and %lld", (long long)k,
                       (long long)b->dims[state->transpose_b ? 1 : 0]);
  }
  if (c != NULL) {
    int64_t columns = c->rank > 0 ? c->dims[c->rank - 1] : 1;
    int64_t rows = c->rank > 1 ? c->dims[c->rank - 2] : 1;
    if (c->rank > 2 || (columns != 1 && columns != n) || (rows != 1 && rows != m)) {
      return kernel_fail(message, CLEAVE_ERROR_SHAPE, "C does not broadcast to [%lld, %lld]", (long long)m,
                         (long long)n);
    }
  }
  *out_m = m;
  *out_n = n;
  *out_k = k;
  return cpu_nn_check_count("output", call->outputs[0], cpu_nn_multiply(m, n), message);
}

#define MATMUL_IS_FLOAT
#define SCALE(factor) (factor)
#define FOR_REALS "cpu/products/matmul.inc"
#include "cpu/common/for_reals.inc"
#undef SCALE
#undef MATMUL_IS_FLOAT

// alpha and beta of integer products were checked to be small whole numbers.
#define SCALE(factor) (int64_t)(factor)
#define REAL uint32_t
#define NAME(name) CPU_CONCAT(name, u32)
#include "cpu/products/matmul.inc"
#undef REAL
#undef NAME
#define REAL uint64_t
#define NAME(name) CPU_CONCAT(name, u64)
#include "cpu/products/matmul.inc"
#undef REAL
#undef NAME
#undef SCALE

static cleave_status_t matmul_prepare(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  (void)state;
  CPU_TRY(cpu_nn_require_dtype(prepare, 0, CPU_NN_FLOATS | CPU_NN_WIDE_INTEGERS, message));
  CPU_TRY(cpu_nn_require_same_outputs(prepare, 0, message));
  return cpu_nn_require_same(prepare, 1, 2, message);
}

static cleave_status_t gemm_prepare(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  gemm_state_t *gemm = state;
  CPU_TRY(matmul_prepare(prepare, state, message));
  gemm->transpose_a = cleave_view_int(prepare->node, "transA", 0) != 0;
  gemm->transpose_b = cleave_view_int(prepare->node, "transB", 0) != 0;
  gemm->alpha = cleave_view_float(prepare->node, "alpha", 1);
  gemm->beta = cleave_view_float(prepare->node, "beta", 1);
  if (!cpu_nn_is_float(cpu_input_dtype(prepare, 0))) {
    const double factors[] = {gemm->alpha, gemm->beta};
    for (int k = 0; k < 2; k++) {
      if (!(factors[k] >= -1e6 && factors[k] <= 1e6) || (double)(int64_t)factors[k] != factors[k]) {
        return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED,
                           "alpha or beta %g of an integer product is not an integer", factors[k]);
      }
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t matmul_run(const cpu_call_t *call, cleave_message_t *message) {
  static const cpu_nn_runs_t runs = {matmul_run_f32, matmul_run_f64, matmul_run_u32, matmul_run_u64};
  return cpu_nn_run_number(call, &runs, message);
}

static cleave_status_t gemm_run(const cpu_call_t *call, cleave_message_t *message) {
  static const cpu_nn_runs_t runs = {gemm_run_f32, gemm_run_f64, gemm_run_u32, gemm_run_u64};
  return cpu_nn_run_number(call, &runs, message);
}

const cpu_kernel_t cpu_kernels_matmul[] = {
    CPU_KERNEL("MatMul", 2, .prepare = matmul_prepare, .scratch = cpu_nn_scratch_halves, .run = matmul_run,
               .multiplies = cpu_gemm_multiplies),
    CPU_KERNEL("Gemm", 2, .state_size = sizeof(gemm_state_t), .prepare = gemm_prepare,
               .scratch = cpu_nn_scratch_halves, .run = gemm_run, .multiplies = cpu_gemm_multiplies),
    {.op = NULL},
};
