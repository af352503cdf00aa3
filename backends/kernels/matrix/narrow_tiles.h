// SPDX-License-Identifier: Apache-2.0
/* Panels of packed numbers: what narrow_tiles.c computes, compiled for AVX2. */
#ifndef CLEAVE_KERNELS_NARROW_TILES_H
#define CLEAVE_KERNELS_NARROW_TILES_H

#include "kernels/matrix/narrow.h"

/* One panel of packed numbers. */
typedef struct kernel_narrow_panel {
  int64_t column;        /* the first */
  const uint32_t *words; /* [depth / (32 / bits), 16]: integers of one column, the lowest bits first; floats
                            are [depth, 16], and the last words may be without an element */
  const float *scales;   /* [blocks, 16]; of floats the factors of columns */
  const uint8_t *zeros;  /* the same; NULL: `zero` for all */
} kernel_narrow_panel_t;

/* Most rows of kernel_narrow_few. */
enum { NARROW_ROWS = 4 };

/* All rows, at most NARROW_ROWS, times the panel. */
void kernel_narrow_few(const kernel_narrow_t *narrow, const kernel_narrow_data_t *data,
                       const kernel_narrow_panel_t *panel);

/* The numbers that elements `from` to `end` of the depth stand for, [end - from, 16], rows `stride` apart;
 * `from` is a multiple of 8. */
void kernel_narrow_expand(const kernel_narrow_t *narrow, const kernel_narrow_panel_t *panel, int64_t from,
                          int64_t end, float *out, int64_t stride);

#endif /* CLEAVE_KERNELS_NARROW_TILES_H */
