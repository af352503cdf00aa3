// SPDX-License-Identifier: Apache-2.0
// Matrix products through OpenBLAS. Its sizes are 32-bit: larger ones take plain loops, never a wrong
// product. A single row or column goes to gemv, which reads the matrix once instead of packing it. OpenBLAS
// runs on one thread: the split over threads is ours, so that its pool (where it was built with one) never
// competes with the host's.
#include "gemm.h"

#include <cblas.h>
#include <limits.h>
#ifdef CPU_HAS_OPENMP
#include <omp.h>
#endif

enum { GEMM_LEAST_PRODUCTS = 1 << 18, GEMM_LEAST_WIDTH = 16 };

void cpu_gemm_initialise(void) {
  if (openblas_get_parallel() == OPENBLAS_THREAD) {
    openblas_set_num_threads(1);
  }
}

// An OpenBLAS that was built with OpenMP takes as many threads as OpenMP would give the caller, and has no
// number of its own: the caller's is 1 around each product. Returns what to put back.
static int enter_product(void) {
#ifdef CPU_HAS_OPENMP
  int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  return threads;
#else
  return 1;
#endif
}

static void leave_product(int threads) {
#ifdef CPU_HAS_OPENMP
  omp_set_num_threads(threads);
#else
  (void)threads;
#endif
}

/* Rows or columns that are worth a thread of their own, each of `other` times `k` products. */
static int64_t gemm_grain(int64_t other, int64_t k) {
  int64_t grain =
      other > 0 && k > 0 && other <= GEMM_LEAST_PRODUCTS / k ? GEMM_LEAST_PRODUCTS / (other * k) : 1;
  return grain < GEMM_LEAST_WIDTH ? GEMM_LEAST_WIDTH : grain;
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
