// SPDX-License-Identifier: Apache-2.0
/* A block of rows times some panels: what tiles.c computes, compiled for AVX2. */
#ifndef CLEAVE_KERNELS_TILES_H
#define CLEAVE_KERNELS_TILES_H

#include "kernels/matrix/matrix.h"

/* Rows `begin` to `end` times panels `first` to `last`. */
void kernel_matrix_block(const kernel_matrix_t *matrix, const kernel_matrix_data_t *data, int64_t begin,
                         int64_t end, int64_t first, int64_t last);

/* Rows of a tile, and most elements of the depth that are added up at once. */
enum { MATRIX_ROWS = 6, MATRIX_DEPTH = 768 };

#endif /* CLEAVE_KERNELS_TILES_H */
