// SPDX-License-Identifier: Apache-2.0
/*
 * Products of rows with a packed matrix. A tile of rows and columns stays in registers until a part of the
 * depth is added up; bias, a sum with another tensor, and bounds cost no pass of their own. float32, for
 * AVX2: with AVX-512 oneDNN's own code is as fast, and without AVX2 nothing here runs.
 *
 * Sums are in an order that the depth alone decides, so results are the same on any number of threads.
 */
#ifndef CLEAVE_KERNELS_MATRIX_H
#define CLEAVE_KERNELS_MATRIX_H

#include <stdbool.h>
#include <stdint.h>

/* Columns of a panel of weights. */
enum { KERNEL_MATRIX_PANEL = 16 };

/* y[i, n] = min(max(bias[n] + sum[i, n] + sum over k of x[i, k] w[k, n], low), high). Sizes are at least 1.
 */
typedef struct kernel_matrix {
  int64_t rows;
  int64_t columns;
  int64_t depth;
  int64_t x_stride; /* elements from a row to the next */
  int64_t sum_stride;
  int64_t y_stride;
  float low; /* -INFINITY and INFINITY: no bounds; a NaN stays */
  float high;
} kernel_matrix_t;

typedef struct kernel_matrix_data {
  const float *x;
  const float *weights; /* [columns / 16, depth, 16]: 16 columns side by side; zeros behind the last one */
  const float *bias;    /* one per column; or NULL */
  const float *sum;     /* or NULL; may be y, with its stride */
  float *y;             /* neither x nor weights */
} kernel_matrix_data_t;

/* Does this processor run it? */
bool kernel_matrix_runs_here(void);

/* Units of work, none of which depends on another, and the least of them that are worth a thread. */
int64_t kernel_matrix_units(const kernel_matrix_t *matrix);
int64_t kernel_matrix_grain(const kernel_matrix_t *matrix);

/* Computes units `begin` to `end`, if kernel_matrix_runs_here. Allocates nothing. */
void kernel_matrix_run(const kernel_matrix_t *matrix, const kernel_matrix_data_t *data, int64_t begin,
                       int64_t end);

#endif /* CLEAVE_KERNELS_MATRIX_H */
