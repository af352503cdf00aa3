// SPDX-License-Identifier: Apache-2.0
// Matrix products through OpenBLAS. Its sizes are 32-bit: larger ones take plain loops, never a wrong
// product. A single row or column goes to gemv, which reads the matrix once instead of packing it.
#include "gemm.h"

#include <cblas.h>
#include <limits.h>
#include <stdatomic.h>

static _Atomic int32_t current_threads = 0;

void cpu_gemm_set_threads(int32_t threads) {
  int32_t wanted = threads < 1 ? 1 : threads;
  if (atomic_exchange_explicit(&current_threads, wanted, memory_order_relaxed) != wanted) {
    openblas_set_num_threads(wanted);
  }
}

#define REAL float
#define NAME(name) name##_f32
#define BLAS_GEMM cblas_sgemm
#define BLAS_GEMV cblas_sgemv
#include "gemm.inc"
#undef REAL
#undef NAME
#undef BLAS_GEMM
#undef BLAS_GEMV

#define REAL double
#define NAME(name) name##_f64
#define BLAS_GEMM cblas_dgemm
#define BLAS_GEMV cblas_dgemv
#include "gemm.inc"
