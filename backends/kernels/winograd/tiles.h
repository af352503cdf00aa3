// SPDX-License-Identifier: Apache-2.0
/* The transforms of images, compiled for AVX2; numbers are side by side in eights. */
#ifndef CLEAVE_KERNELS_WINOGRAD_TILES_H
#define CLEAVE_KERNELS_WINOGRAD_TILES_H

#include "kernels/winograd/winograd.h"

/* Tiles [begin, end) of all images: of each channel of x, what the products read. `out`: [(tile + 2)^2] of
 * `apart` floats, in which a tile takes `inputs`. */
void kernel_winograd_gather(const kernel_winograd_t *winograd, const float *x, int64_t begin, int64_t end,
                            int64_t apart, float *out);

/* Products of tiles [begin, end) with a panel of 16 outputs: [(tile + 2)^2] of `apart` floats, in which a
 * tile takes 16. */
typedef struct winograd_products {
  const kernel_winograd_data_t *data;
  const float *from;
  int64_t apart;
  int64_t begin;
  int64_t end;
} winograd_products_t;

/* Writes the results of those tiles and outputs. */
void kernel_winograd_scatter(const kernel_winograd_t *winograd, const winograd_products_t *products,
                             int64_t panel);

#endif /* CLEAVE_KERNELS_WINOGRAD_TILES_H */
