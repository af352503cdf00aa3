// SPDX-License-Identifier: Apache-2.0
/*
 * OpenBLAS, loaded with the first program that multiplies matrices. It maps some 300 MiB before its first
 * function returns and 128 MiB more for every product that runs at the same time, and tries for ever if it
 * gets no memory: a program that is linked with it hangs before `main` if address space is short. So the
 * space is checked first, and products take plain loops if it is too small.
 */
#ifndef CLEAVE_CPU_BLAS_H
#define CLEAVE_CPU_BLAS_H

#include "cleave/backend.h"

/* Numbers of CBLAS and of openblas_get_parallel. */
enum {
  CPU_BLAS_ROW_MAJOR = 101,
  CPU_BLAS_NO_TRANSPOSE = 111,
  CPU_BLAS_TRANSPOSE = 112,
  CPU_BLAS_THREADS = 1
};

/* The functions of OpenBLAS that are used, with sizes of 32 bits; its header is not needed. */
typedef struct cpu_blas {
  void (*sgemm)(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha, const float *a,
                int lda, const float *b, int ldb, float beta, float *c, int ldc);
  void (*dgemm)(int order, int transpose_a, int transpose_b, int m, int n, int k, double alpha,
                const double *a, int lda, const double *b, int ldb, double beta, double *c, int ldc);
  void (*sgemv)(int order, int transpose, int m, int n, float alpha, const float *a, int lda, const float *x,
                int x_step, float beta, float *y, int y_step);
  void (*dgemv)(int order, int transpose, int m, int n, double alpha, const double *a, int lda,
                const double *x, int x_step, double beta, double *y, int y_step);
} cpu_blas_t;

/* Loads it now, so that the first product does not wait. Thread-safe. */
void cpu_blas_load(void);

/* Begins a product on the calling thread: OpenBLAS, which runs it on this thread alone, or NULL if it
 * cannot be loaded; the log of `host` (which may be NULL) says once why. Waits if address space is limited
 * and all buffers that fit into it are in use. `state` goes to cpu_blas_leave, which every product that began
 * must call. Thread-safe. */
const cpu_blas_t *cpu_blas_enter(const cleave_host_t *host, int *state);
void cpu_blas_leave(int state);

#endif /* CLEAVE_CPU_BLAS_H */
