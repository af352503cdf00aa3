// SPDX-License-Identifier: Apache-2.0
/*
 * Products of rows with a packed matrix. A tile of rows and columns stays in registers until a part of the
 * depth is added up; bias, a sum with another tensor, and bounds cost no pass of their own. float32, for
 * AVX2 and AVX-512; on other processors nothing here runs.
 *
 * Sums are in an order that the depth alone decides, so results are the same on any number of threads.
 */
#ifndef CLEAVE_KERNELS_MATRIX_H
#define CLEAVE_KERNELS_MATRIX_H

#include <stdbool.h>
#include <stdint.h>

/* Columns of a panel of weights, for AVX2 and for AVX-512. The latter are oneDNN's panels (BA16a64b). */
enum { KERNEL_MATRIX_PANEL = 16, KERNEL_MATRIX_PANEL_AVX512 = 64 };

/* y[i, n] = min(max(bias[n] + sum[i, n] + sum over k of x[i, k] w[k, n], low), high), or a function of it.
 * Sizes are at least 1. */
typedef struct kernel_matrix {
  int64_t rows;
  int64_t columns;
  int64_t depth;
  int32_t panel;    /* one of the two above: which code runs */
  int64_t x_stride; /* elements from a row to the next */
  int64_t sum_stride;
  int64_t y_stride;
  float low; /* -INFINITY and INFINITY: no bounds; a NaN stays */
  float high;
  /* What results go through, one of kernel_loops_t's unary loops for float32, and its numbers; or NULL. */
  void (*then)(void *out, const void *x, int64_t count, double alpha, double beta);
  double alpha;
  double beta;
} kernel_matrix_t;

typedef struct kernel_matrix_data {
  const float *x;
  const float *weights; /* [columns / panel, depth, panel]: the columns of a panel side by side, and zeros
                           behind the last one; panels of 64 have a multiple of 16 elements of the depth */
  const float *bias;    /* one per column; or NULL */
  const float *sum;     /* or NULL; may be y, with its stride */
  float *y;             /* neither x nor weights */
} kernel_matrix_data_t;

/* The widest panel that this processor has code for, or 0: none. */
int32_t kernel_matrix_panel(void);

/* Units of work, none of which depends on another, and the least of them that are worth a thread. */
int64_t kernel_matrix_units(const kernel_matrix_t *matrix);
int64_t kernel_matrix_grain(const kernel_matrix_t *matrix);

/* Computes units `begin` to `end`, on a processor that runs the panel. Allocates nothing. */
void kernel_matrix_run(const kernel_matrix_t *matrix, const kernel_matrix_data_t *data, int64_t begin,
                       int64_t end);

#endif /* CLEAVE_KERNELS_MATRIX_H */
