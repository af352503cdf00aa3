// SPDX-License-Identifier: Apache-2.0
/* The transforms of images and the products in between, compiled for AVX2 and for AVX-512. */
#ifndef CLEAVE_KERNELS_WINOGRAD_TILES_H
#define CLEAVE_KERNELS_WINOGRAD_TILES_H

#include "kernels/winograd/winograd.h"

/* Tiles [begin, end) of all images as the products read them. In floats. */
typedef struct winograd_tiles {
  float *data;
  int64_t begin;
  int64_t end;
  int64_t apart; /* from one of the (tile + 2)^2 points to the next */
  int64_t tile;  /* from a tile to the next */
  int64_t block; /* from `lanes` channels to the next */
} winograd_tiles_t;

/* Products of tiles [begin, end) with a panel of 16 outputs: [(tile + 2)^2] of `apart` floats, in which a
 * tile takes 16. */
typedef struct winograd_products {
  const kernel_winograd_data_t *data;
  float *from;
  int64_t apart;
  int64_t begin;
  int64_t end;
} winograd_products_t;

/* Transformed weights of some panels, of the inputs [begin, end): [panels, (tile + 2)^2] of `apart` floats,
 * in which an input takes 16. */
typedef struct winograd_weights {
  const float *from;
  int64_t apart;
  int64_t begin;
  int64_t end;
  int64_t panels;
} winograd_weights_t;

/* Tiles for which transformed weights are better not written to memory. */
enum { WINOGRAD_FEW = 4 };

typedef struct winograd_loops {
  void (*gather)(const kernel_winograd_t *winograd, const float *x, const winograd_tiles_t *tiles);
  /* Transforms windows of `inputs` inputs and a panel, [inputs, 9, 16], into points `apart` from each other.
   */
  void (*expand)(const kernel_winograd_t *winograd, const float *windows, int64_t inputs, int64_t apart,
                 float *out);
  /* The products of a panel follow those of the one before; those of later inputs are added. */
  void (*multiply)(const kernel_winograd_t *winograd, const winograd_tiles_t *tiles,
                   const winograd_products_t *products, const winograd_weights_t *weights);
  /* With a panel of windows, all inputs, and at most WINOGRAD_FEW tiles of 4x4; or NULL. `end`: of the
   * windows of all panels. */
  void (*multiply_few)(const kernel_winograd_t *winograd, const winograd_tiles_t *tiles,
                       const winograd_products_t *products, const float *windows, const float *end);
  /* Writes the results of those tiles, and of the outputs of a panel. */
  void (*scatter)(const kernel_winograd_t *winograd, const winograd_products_t *products, int64_t panel);
} winograd_loops_t;

extern const winograd_loops_t kernel_winograd_avx2;
extern const winograd_loops_t kernel_winograd_avx512;

#endif /* CLEAVE_KERNELS_WINOGRAD_TILES_H */
