// SPDX-License-Identifier: Apache-2.0
// Einsum. Two float operands without diagonals are packed and multiplied as matrices, batch by batch;
// anything else is a plain sum of products (einsum.inc).
#include <string.h>

#include "cpu/common/gemm.h"
#include "cpu/products/einsum.h"

typedef struct einsum_state {
  const char *equation;  // checked
} einsum_state_t;

// Y[batch, m, n] = A[batch, m, k] * B[batch, n, k]^T, and which labels make up each.
typedef struct product {
  int64_t batch;
  int64_t m;
  int64_t n;
  int64_t k;
  int32_t a_count;
  int32_t b_count;
  int32_t y_count;
  int32_t a_labels[CPU_EINSUM_LABELS];
  int32_t b_labels[CPU_EINSUM_LABELS];
  int32_t y_labels[CPU_EINSUM_LABELS];
} product_t;

// The labels that are in A, in B and in the output as the three flags say, appended to `labels`.
static int64_t gather_labels(const cpu_einsum_t *einsum, bool in_a, bool in_b, bool in_out, int32_t *labels,
                             int32_t *count) {
  int64_t extent = 1;
  for (int32_t label = 0; label < einsum->label_count; label++) {
    if (einsum->has[0][label] == in_a && einsum->has[1][label] == in_b && einsum->in_out[label] == in_out) {
      labels[(*count)++] = label;
      extent = cpu_nn_multiply(extent, einsum->extents[label]);
    }
  }
  return extent;
}

static bool as_product(const cpu_einsum_t *einsum, product_t *out_product) {
  if (einsum->operand_count != 2 || einsum->repeats[0] || einsum->repeats[1] || einsum->out_count == 0 ||
      einsum->sum_count == 0) {
    return false;
  }
  // A label that only one operand has and that is summed over is not a product.
  for (int32_t label = 0; label < einsum->label_count; label++) {
    if (!einsum->in_out[label] && einsum->has[0][label] != einsum->has[1][label]) {
      return false;
    }
  }
  product_t p = {0};
  int32_t ignored = 0;
  int32_t unused[CPU_EINSUM_LABELS];
  p.batch = gather_labels(einsum, true, true, true, p.a_labels, &p.a_count);
  (void)gather_labels(einsum, true, true, true, p.b_labels, &p.b_count);
  (void)gather_labels(einsum, true, true, true, p.y_labels, &p.y_count);
  p.m = gather_labels(einsum, true, false, true, p.a_labels, &p.a_count);
  (void)gather_labels(einsum, true, false, true, p.y_labels, &p.y_count);
  p.n = gather_labels(einsum, false, true, true, p.b_labels, &p.b_count);
  (void)gather_labels(einsum, false, true, true, p.y_labels, &p.y_count);
  p.k = gather_labels(einsum, true, true, false, p.a_labels, &p.a_count);
  (void)gather_labels(einsum, true, true, false, p.b_labels, &p.b_count);
  (void)gather_labels(einsum, false, false, true, unused, &ignored);
  *out_product = p;
  return ignored == 0;
}

#define EINSUM_PRODUCT
#define FOR_REALS "cpu/products/einsum.inc"
#include "cpu/common/for_reals.inc"
#undef EINSUM_PRODUCT
#define REAL uint32_t
#define NAME(name) CPU_CONCAT(name, u32)
#include "cpu/products/einsum.inc"
#undef REAL
#undef NAME
#define REAL uint64_t
#define NAME(name) CPU_CONCAT(name, u64)
#include "cpu/products/einsum.inc"
#undef REAL
#undef NAME

static cleave_status_t einsum_prepare(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  einsum_state_t *einsum = state;
  CPU_TRY(cpu_nn_require_dtype(prepare, 0, CPU_NN_FLOATS | CPU_NN_WIDE_INTEGERS, message));
  CPU_TRY(cpu_nn_require_same_outputs(prepare, 0, message));
  const char *equation = cleave_view_string(prepare->node, "equation", "");
  CPU_TRY(cpu_einsum_check(equation, prepare->node->input_count, message));
  CPU_TRY(cpu_nn_require_same(prepare, 0, prepare->node->input_count - 1, message));
  size_t size = strlen(equation) + 1;
  char *copy = prepare->allocate(prepare, size);
  if (copy == NULL) {
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  memcpy(copy, equation, size);
  einsum->equation = copy;
  return CLEAVE_OK;
}

static size_t einsum_scratch(const cpu_call_t *call) {
  return cpu_nn_is_float(call->inputs[0]->dtype)
             ? cpu_nn_scratch_float(call, 0, einsum_scratch_f32, einsum_scratch_f64)
             : 0;
}

static cleave_status_t einsum_run(const cpu_call_t *call, cleave_message_t *message) {
  static const cpu_nn_runs_t runs = {einsum_run_f32, einsum_run_f64, einsum_run_u32, einsum_run_u64};
  return cpu_nn_run_number(call, &runs, message);
}

const cpu_kernel_t cpu_kernels_matmul_einsum[] = {
    CPU_KERNEL("Einsum", 1, .state_size = sizeof(einsum_state_t), .prepare = einsum_prepare,
               .scratch = einsum_scratch, .run = einsum_run, .multiplies = cpu_gemm_multiplies),
    {.op = NULL},
};
