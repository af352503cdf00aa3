// SPDX-License-Identifier: Apache-2.0
/*
 * OpenBLAS, loaded with the first program that multiplies matrices. It maps some 300 MiB before its first
 * function returns and 128 MiB more for every product that runs at the same time, and tries for ever if it
 * gets no memory: a program that is linked with it hangs before `main` if address space is short. So the
 * space is checked first, and products take plain loops if it is too small.
 */
#ifndef CLEAVE_CPU_BLAS_H
#define CLEAVE_CPU_BLAS_H

#include <cblas.h>

#include "cleave/backend.h"

/* What is used of OpenBLAS. */
typedef struct cpu_blas {
  __typeof__(&cblas_sgemm) sgemm;
  __typeof__(&cblas_dgemm) dgemm;
  __typeof__(&cblas_sgemv) sgemv;
  __typeof__(&cblas_dgemv) dgemv;
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
