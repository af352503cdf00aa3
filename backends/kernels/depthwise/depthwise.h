// SPDX-License-Identifier: Apache-2.0
/*
 * Depthwise convolutions, windows of 3x3 and 5x5 with strides 1 and 2, for AVX-512: 16 channels side by side,
 * seven results of a row in registers. Each result depends on its own window alone: results are the same bits
 * on any number of threads.
 */
#ifndef CLEAVE_KERNELS_DEPTHWISE_H
#define CLEAVE_KERNELS_DEPTHWISE_H

#include <stdint.h>

#include "kernels/matrix/activation.h"

enum { KERNEL_DEPTHWISE_PANEL = 16 };

/* An image in blocks of 16 channels, or with channels last. Distances are in elements. */
typedef struct kernel_depthwise_image {
  int64_t height;
  int64_t width;
  int64_t image; /* from an image to the next */
  int64_t block; /* from 16 channels to the next 16 */
  int64_t pixel;
} kernel_depthwise_image_t;

/* y[n, c, i, j] = activation(bias[c] + sum over k, l of x[n, c, stride i + k - top, stride j + l - left]
 * w[c, k, l]), x being 0 outside of the image. Sizes are at least 1. */
typedef struct kernel_depthwise {
  int32_t side; /* of a window: 3 or 5 */
  int32_t stride;
  int64_t images;
  int64_t channels;
  int64_t top; /* rows and columns of padding in front */
  int64_t left;
  kernel_depthwise_image_t x;
  kernel_depthwise_image_t y;
  bool is_filled; /* zeros behind the last channel of y are to be written */
  kernel_activation_t activation;
} kernel_depthwise_t;

typedef struct kernel_depthwise_data {
  const float *x;
  const float *weights; /* [channels / 16, side * side, 16], zeros behind the last channel */
  const float *bias;    /* one per channel; or NULL */
  float *y;             /* not x */
} kernel_depthwise_data_t;

/* Units of work for so many threads, none of which depends on another. */
typedef struct kernel_depthwise_cut {
  int64_t strips; /* of the rows of an image */
  int64_t groups; /* of its blocks of channels */
} kernel_depthwise_cut_t;

kernel_depthwise_cut_t kernel_depthwise_cut(const kernel_depthwise_t *depthwise, int32_t threads);
int64_t kernel_depthwise_units(const kernel_depthwise_t *depthwise, const kernel_depthwise_cut_t *cut);

/* Computes a unit, if kernel_wide_runs_here. Allocates nothing. */
void kernel_depthwise_run(const kernel_depthwise_t *depthwise, const kernel_depthwise_cut_t *cut,
                          const kernel_depthwise_data_t *data, int64_t unit);

/* Rows [begin, end) of one block of channels of one image: rows.c, compiled for AVX-512. `data` begin with
 * that image. */
void kernel_depthwise_rows(const kernel_depthwise_t *depthwise, const kernel_depthwise_data_t *data,
                           int64_t block, int64_t begin, int64_t end);

#endif /* CLEAVE_KERNELS_DEPTHWISE_H */
