// SPDX-License-Identifier: Apache-2.0
/*
 * Discrete Fourier transforms of any length in O(n log n): radix 2 if the length is a power of two, and
 * Bluestein's convolution otherwise. Used by DFT and STFT (ONNX).
 */
#ifndef CLEAVE_CPU_SIGNAL_H
#define CLEAVE_CPU_SIGNAL_H

#include "cpu/common/nn.h"

/* Memory for a transform of one length, laid out in scratch memory. */
typedef struct cpu_fourier {
  int64_t length;
  int64_t padded;    /* power of two that the work is done in */
  double *real;      /* [padded]: the signal in, its transform out, in the first `length` elements */
  double *imaginary; /* [padded] */
  double *chirp[2];  /* [length]: cosine and sine of pi k^2 / length; Bluestein only */
  double *kernel[2]; /* [padded]: transform of the chirp; Bluestein only */
} cpu_fourier_t;

/* Takes the memory for `length` from the carver; with a measuring carver all pointers stay NULL. */
void cpu_fourier_carve(cpu_carver_t *carver, int64_t length, cpu_fourier_t *out_fourier);

/* Fills in the tables: once per length. */
void cpu_fourier_prepare(cpu_fourier_t *fourier);

/* Transforms `real` and `imaginary` in place. The inverse divides by the length. */
void cpu_fourier_run(cpu_fourier_t *fourier, bool inverse);

#endif /* CLEAVE_CPU_SIGNAL_H */
