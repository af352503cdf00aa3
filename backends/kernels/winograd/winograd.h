// SPDX-License-Identifier: Apache-2.0
/*
 * Convolutions with windows of 3x3 and stride 1 by Winograd's algorithm (Lavin and Gray, "Fast algorithms for
 * convolutional neural networks"): a tile of 2x2 or 4x4 results takes 16 or 36 products per pair of channels
 * in place of 36 or 144. float32, for AVX2 and AVX-512.
 *
 * Points are 0, 1, -1 for tiles of 2x2, and 0, 5/8, -5/8, 3/2, -3/2 for tiles of 4x4 (those of oneDNN), with
 * infinity. Errors are within a few 1e-7 and 1e-6 of the largest result. Each result depends on its own tile
 * alone, and sums are in an order that the depth decides: results are the same on any number of threads.
 *
 * A NaN or an infinity spreads over its tile. Where a result is not finite, the floating-point flag "invalid"
 * is raised, so that the caller can compute again by another algorithm.
 */
#ifndef CLEAVE_KERNELS_WINOGRAD_H
#define CLEAVE_KERNELS_WINOGRAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Points of tiles of 4x4, each of both signs. */
#define KERNEL_WINOGRAD_P 0.625
#define KERNEL_WINOGRAD_Q 1.5

/* Images: blocks of 8 or 16 channels, `lanes`; channels last, or blocked. Rows follow each other. In
 * elements. */
typedef struct kernel_winograd_image {
  int64_t height;
  int64_t width;
  int64_t image; /* from an image to the next */
  int64_t block; /* from `lanes` channels to the next */
  int64_t pixel;
} kernel_winograd_image_t;

/* y[n, o, i, j] = bound(bias[o] + sum[n, o, i, j] + sum over c, k, l of x[n, c, i + k - top, j + l - left]
 * w[o, c, k, l]), x being 0 outside of the image, bound(v) = min(max(v, low), high), and slope v in place of
 * a negative v before that. Sizes are at least 1. */
typedef struct kernel_winograd {
  int32_t tile;  /* 2 or 4 */
  int32_t lanes; /* channels that lie side by side: 8 for AVX2, 16 for AVX-512 */
  int64_t images;
  int64_t inputs; /* channels: multiples of `lanes` */
  int64_t outputs;
  int64_t top; /* rows and columns of padding in front */
  int64_t left;
  kernel_winograd_image_t x;
  kernel_winograd_image_t y; /* also of `sum` */
  float low;                 /* -INFINITY and INFINITY: no bounds; a NaN stays */
  float high;
  float slope;  /* 1: none */
  float swish;  /* v / (1 + exp(-swish v)) in place of bounds and slope; 0: none */
  bool windows; /* weights are windows, which are transformed for each block of tiles */
} kernel_winograd_t;

typedef struct kernel_winograd_data {
  const float *x;
  /* [outputs / 16, (tile + 2)^2, inputs, 16], zeros behind the last output. A window w has become G w G',
   * whose rows are (1, p, p^2) at a point p, divided by the product of its distances from the other points
   * but for the sign at 0 of tiles of 2x2; (0, 0, 1) at infinity. Or windows as they are, [outputs / 16,
   * inputs, 9, 16]: a half or a quarter of the memory. */
  const float *weights;
  const float *bias; /* one per output; or NULL */
  const float *sum;  /* or NULL; may be y */
  float *y;          /* not x */
} kernel_winograd_data_t;

/* The most lanes that this processor runs; those of AVX2 run with AVX-512, too. 0: none. */
int32_t kernel_winograd_lanes(void);

/* Are there so few tiles that windows are best: they are transformed in registers, for all tiles at once? */
bool kernel_winograd_is_few(const kernel_winograd_t *winograd);

/* How the work is cut for so many threads: units of work, none of which depends on another. */
typedef struct kernel_winograd_cut {
  int64_t tiles;  /* of a block */
  int64_t blocks; /* of tiles */
  int64_t panels; /* of 16 outputs, of a unit */
  int64_t parts;  /* of all panels */
} kernel_winograd_cut_t;

kernel_winograd_cut_t kernel_winograd_cut(const kernel_winograd_t *winograd, int32_t threads);
int64_t kernel_winograd_units(const kernel_winograd_cut_t *cut);

/* How many floats a unit needs as scratch memory. */
size_t kernel_winograd_scratch(const kernel_winograd_t *winograd, const kernel_winograd_cut_t *cut);

/* Computes a unit, of at most kernel_winograd_lanes. Allocates nothing. */
void kernel_winograd_run(const kernel_winograd_t *winograd, const kernel_winograd_cut_t *cut,
                         const kernel_winograd_data_t *data, int64_t unit, float *scratch);

#endif /* CLEAVE_KERNELS_WINOGRAD_H */
