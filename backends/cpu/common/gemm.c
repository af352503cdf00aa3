// SPDX-License-Identifier: Apache-2.0
// Matrix products through OpenBLAS. Its sizes are 32-bit: larger ones take plain loops, never a wrong
// product. A single row or column goes to gemv, which reads the matrix once instead of packing it. OpenBLAS
// runs on one thread: the split over threads is ours. If OpenBLAS cannot be loaded, all products take the
// plain loops.
#include "cpu/common/gemm.h"

#include <limits.h>

#include "cpu/common/blas.h"
#include "cpu/common/nn.h"

enum { GEMM_MIN_PRODUCTS = 1 << 18, GEMM_MIN_WIDTH = 16 };

/* Rows or columns that are worth a thread of their own, each of `other` times `k` products. */
static int64_t gemm_grain(int64_t other, int64_t k) {
  int64_t grain = other > 0 && k > 0 && other <= GEMM_MIN_PRODUCTS / k ? GEMM_MIN_PRODUCTS / (other * k) : 1;
  return grain < GEMM_MIN_WIDTH ? GEMM_MIN_WIDTH : grain;
}

#define BLAS_GEMM PICK(blas->sgemm, blas->dgemm)
#define BLAS_GEMV PICK(blas->sgemv, blas->dgemv)
#define FOR_REALS "cpu/common/gemm.inc"
#include "cpu/common/for_reals.inc"

bool cpu_gemm_multiplies(const cpu_call_t *call) {
  switch (call->inputs[0]->dtype) {
    case CLEAVE_DTYPE_F32:
    case CLEAVE_DTYPE_F64:
    case CLEAVE_DTYPE_F16:
    case CLEAVE_DTYPE_BF16: return true;
    default: return false;
  }
}
