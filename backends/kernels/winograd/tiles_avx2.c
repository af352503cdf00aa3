// SPDX-License-Identifier: Apache-2.0
// Tiles for AVX2: eight channels side by side, products of 6 tiles and 16 outputs.
#define KERNEL_LANES 8
#define TILES kernel_winograd_avx2

#include <math.h>

#include "kernels/matrix/tiles.h"
#include "kernels/winograd/tiles.h"

#include "kernels/winograd/weights.inc"

static void multiply(const kernel_winograd_t *winograd, const winograd_tiles_t *tiles,
                     const winograd_products_t *products, const winograd_weights_t *weights) {
  const int64_t points = (int64_t)(winograd->tile + 2) * (winograd->tile + 2);
  const kernel_matrix_t matrix = {.rows = tiles->end - tiles->begin,
                                  .columns = KERNEL_MATRIX_PANEL,
                                  .panel = KERNEL_MATRIX_PANEL,
                                  .depth = weights->end - weights->begin,
                                  .x_stride = tiles->tile,
                                  .sum_stride = KERNEL_MATRIX_PANEL,
                                  .y_stride = KERNEL_MATRIX_PANEL,
                                  .low = -INFINITY,
                                  .high = INFINITY};
  for (int64_t point = 0; point < points; point++) {
    for (int64_t k = 0; k < weights->panels; k++) {
      float *y = products->from + (k * points + point) * products->apart;
      const kernel_matrix_data_t product = {.x = tiles->data + point * tiles->apart + weights->begin,
                                            .weights = weights->from + (k * points + point) * weights->apart,
                                            .sum = weights->begin > 0 ? y : NULL,
                                            .y = y};
      kernel_matrix_block(&matrix, &product, 0, matrix.rows, 0, 1);
    }
  }
}

#define MULTIPLY_FEW NULL
#include "kernels/winograd/tiles.inc"
