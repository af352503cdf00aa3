// SPDX-License-Identifier: Apache-2.0
/*
 * Dense matrix products, row-major: C[m,n] = alpha * op(A)[m,k] * op(B)[k,n] + beta * C, where op transposes
 * or not, and `lda`, `ldb`, `ldc` are the elements from one stored row to the next. With beta 0, C is not
 * read. Sizes may be zero. f32 and f64 go to OpenBLAS (blas.h).
 */
#ifndef CLEAVE_CPU_GEMM_H
#define CLEAVE_CPU_GEMM_H

#include "cpu/common/kernel.h"

/* On the threads of `call`; NULL: on this thread alone, as inside a parallel loop. */

void cpu_gemm_f32(const cpu_call_t *call, bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
                  float alpha, const float *a, int64_t lda, const float *b, int64_t ldb, float beta, float *c,
                  int64_t ldc);

void cpu_gemm_f64(const cpu_call_t *call, bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
                  double alpha, const double *a, int64_t lda, const double *b, int64_t ldb, double beta,
                  double *c, int64_t ldc);

/* `multiplies` of kernels that do for every shape, of floats in input 0. */
bool cpu_gemm_multiplies(const cpu_call_t *call);

#endif /* CLEAVE_CPU_GEMM_H */
