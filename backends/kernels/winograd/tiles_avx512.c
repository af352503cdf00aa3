// SPDX-License-Identifier: Apache-2.0
// Tiles for AVX-512: 16 channels side by side, products of 14 tiles and 32 outputs.
#define KERNEL_LANES 16
#define TILES kernel_winograd_avx512

#include <math.h>

#include "kernels/matrix/wide.h"
#include "kernels/winograd/tiles.h"

#include "kernels/winograd/weights.inc"

static void multiply(const kernel_winograd_t *winograd, const winograd_tiles_t *tiles,
                     const winograd_products_t *products, const winograd_weights_t *weights) {
  const int64_t points = (int64_t)(winograd->tile + 2) * (winograd->tile + 2);
  const kernel_wide_t wide = {.rows = tiles->end - tiles->begin,
                              .columns = weights->panels * KERNEL_WIDE_PANEL,
                              .depth = weights->end - weights->begin,
                              .x_row = tiles->tile,
                              .x_block = tiles->block,
                              .w_panel = points * weights->apart,
                              .w_ahead = winograd->windows ? 0 : weights->apart,
                              .y_row = KERNEL_WIDE_PANEL,
                              .y_panel = points * products->apart,
                              .activation = {.low = -INFINITY, .high = INFINITY}};
  for (int64_t point = 0; point < points; point++) {
    float *y = products->from + point * products->apart;
    const kernel_wide_data_t product = {
        .x = tiles->data + point * tiles->apart + weights->begin / KERNEL_LANES * tiles->block,
        .weights = weights->from + point * weights->apart,
        .sum = weights->begin > 0 ? y : NULL,
        .y = y};
    kernel_wide_block(&wide, &product, 0, wide.rows, 0, weights->panels);
  }
}

/* Some inputs of a panel of windows, times at most WINOGRAD_FEW tiles of 4x4. */
typedef struct few {
  const float *windows;
  const float *ahead; /* what is read after them, asked for early */
  const float *x;     /* of the first tile and point */
  int64_t apart;      /* of points of tiles */
  int64_t block;
  float *y;
  int64_t y_apart;
  int64_t begin;
  int64_t end;
} few_t;

/* `column` and `count` are literals: sums of six points and of all tiles are registers, and so are weights,
 * which are never written to memory. */
TILE_INLINE void multiply_column(const few_t *few, const int column, const int count) {
  vector_t sums[SIDE][WINOGRAD_FEW];
  const float *x[SIDE];
#pragma GCC unroll 6
  for (int i = 0; i < SIDE; i++) {
    x[i] = few->x + (i * SIDE + column) * few->apart;
#pragma GCC unroll 4
    for (int t = 0; t < count; t++) {
      sums[i][t] = few->begin > 0 ? load(few->y + (i * SIDE + column) * few->y_apart + t * PANEL) : all(0);
    }
  }
  const float *window = few->windows + few->begin * AREA * PANEL;
  for (int64_t k = few->begin; k < few->end; k++, window += AREA * PANEL) {
    vector_t line[WINDOW];
    vector_t w[SIDE];
#pragma GCC unroll 3
    for (int i = 0; i < WINDOW; i++) {
      vector_t points[SIDE];
      const vector_t own[WINDOW] = {load(window + i * WINDOW * PANEL),
                                    load(window + (i * WINDOW + 1) * PANEL),
                                    load(window + (i * WINDOW + 2) * PANEL)};
      transform_weights(own, points, 4);
      line[i] = points[column];
    }
    transform_weights(line, w, 4);
    const float *ahead = few->ahead + ((k - few->begin) * SIDE + column) * (AREA * PANEL / SIDE);
    __builtin_prefetch(ahead, 0, 2);
    __builtin_prefetch(ahead + PANEL, 0, 2);
    int64_t offset = k / KERNEL_LANES * few->block + k % KERNEL_LANES;
#pragma GCC unroll 6
    for (int i = 0; i < SIDE; i++) {
#pragma GCC unroll 4
      for (int t = 0; t < count; t++) {
        sums[i][t] += w[i] * all(x[i][offset + t * KERNEL_LANES]);
      }
    }
  }
#pragma GCC unroll 6
  for (int i = 0; i < SIDE; i++) {
#pragma GCC unroll 4
    for (int t = 0; t < count; t++) {
      store(few->y + (i * SIDE + column) * few->y_apart + t * PANEL, sums[i][t]);
    }
  }
}

#define COLUMNS(count)                \
  case count:                         \
    multiply_column(few, 0, (count)); \
    multiply_column(few, 1, (count)); \
    multiply_column(few, 2, (count)); \
    multiply_column(few, 3, (count)); \
    multiply_column(few, 4, (count)); \
    multiply_column(few, 5, (count)); \
    break

static void multiply_columns(const few_t *few, int64_t count) {
  switch (count) {
    COLUMNS(1);
    COLUMNS(2);
    COLUMNS(3);
    COLUMNS(4);
    default: break;
  }
}

/* Windows of so many inputs stay in the first cache for all columns. */
enum { FEW_INPUTS = 32 };

static void multiply_few(const kernel_winograd_t *winograd, const winograd_tiles_t *tiles,
                         const winograd_products_t *products, const float *windows, const float *end) {
  few_t few = {.windows = windows,
               .x = tiles->data,
               .apart = tiles->apart,
               .block = tiles->block,
               .y = products->from,
               .y_apart = products->apart};
  for (; few.begin < winograd->inputs; few.begin = few.end) {
    few.end = few.begin + FEW_INPUTS < winograd->inputs ? few.begin + FEW_INPUTS : winograd->inputs;
    few.ahead = windows + few.end * AREA * PANEL;
    if (end - few.ahead < FEW_INPUTS * AREA * PANEL) {
      few.ahead = windows;
    }
    multiply_columns(&few, tiles->end - tiles->begin);
  }
}

#define MULTIPLY_FEW multiply_few
#include "kernels/winograd/tiles.inc"
