// SPDX-License-Identifier: Apache-2.0
/*
 * Products of rows with packed matrices for AVX-512, in memory with blocks of 16: images with channels in
 * blocks, or last, transformed tiles, and plain rows. A tile of 14 rows and 32 columns is 28 registers of
 * sums; a step along the depth takes two loads of weights and 14 of x for 28 multiplications.
 *
 * Sums are in an order that the depth alone decides, so results are the same on any number of threads.
 */
#ifndef CLEAVE_KERNELS_WIDE_H
#define CLEAVE_KERNELS_WIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/matrix/activation.h"

enum { KERNEL_WIDE_PANEL = 16, KERNEL_WIDE_ROWS = 14 };

/* y[i, n] = activation(bias[n] + sum[i, n] + sum over k of x[i, k] w[k, n]). Sizes are at least 1, strides in
 * elements. Element k % 16 of block k / 16 of x, and column n % 16 of panel n / 16 of y and `sum`, lie side
 * by side. */
typedef struct kernel_wide {
  int64_t images; /* each of so many rows */
  int64_t rows;
  int64_t columns;
  int64_t depth;
  int64_t x_image; /* from an image to the next */
  int64_t x_row;
  int64_t x_block;
  int64_t w_panel; /* from a panel [depth, 16] of weights to the next */
  int64_t w_ahead; /* to the weights that are read after a pair of panels; 0: not asked for early */
  int64_t y_image; /* also of `sum`, as are the next two */
  int64_t y_row;
  int64_t y_panel;
  bool is_filled; /* zeros behind the last column of y are to be written, and there are some behind `sum` */
  kernel_activation_t activation;
} kernel_wide_t;

typedef struct kernel_wide_data {
  const float *x;
  const float *weights; /* zeros behind the last column */
  const float *bias;    /* one per column; or NULL */
  const float *sum;     /* or NULL; may be y */
  float *y;             /* neither x nor weights */
} kernel_wide_data_t;

/* Does this processor run it? */
bool kernel_wide_runs_here(void);

/* How the work is cut for so many threads: units, none of which depends on another. */
typedef struct kernel_wide_cut {
  int64_t blocks; /* of an image, of about as many rows */
  int64_t parts;  /* of all pairs of panels */
} kernel_wide_cut_t;

kernel_wide_cut_t kernel_wide_cut(const kernel_wide_t *wide, int32_t threads);
int64_t kernel_wide_units(const kernel_wide_t *wide, const kernel_wide_cut_t *cut);

/* Computes a unit, if kernel_wide_runs_here. Allocates nothing. */
void kernel_wide_run(const kernel_wide_t *wide, const kernel_wide_cut_t *cut, const kernel_wide_data_t *data,
                     int64_t unit);

/* Rows [begin, end) of the first image times columns from panel `first` to `last`: wide_tiles.c, compiled for
 * AVX-512. */
void kernel_wide_block(const kernel_wide_t *wide, const kernel_wide_data_t *data, int64_t begin, int64_t end,
                       int64_t first, int64_t last);

#endif /* CLEAVE_KERNELS_WIDE_H */
