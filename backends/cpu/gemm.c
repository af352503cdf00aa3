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

// An OpenBLAS that was built with OpenMP sets OpenMP's number of threads along with its own: that one is put
// back.
void cpu_gemm_initialise(void) {
#ifdef CPU_HAS_OPENMP
  int threads = omp_get_max_threads();
#endif
  openblas_set_num_threads(1);
#ifdef CPU_HAS_OPENMP
  omp_set_num_threads(threads);
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
