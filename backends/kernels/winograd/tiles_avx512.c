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

#include "kernels/winograd/tiles.inc"
