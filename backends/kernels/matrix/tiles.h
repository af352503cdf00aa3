// SPDX-License-Identifier: Apache-2.0
/* A block of rows times some panels, and a part of one: what tiles.inc computes, compiled for AVX2 and for
 * AVX-512. */
#ifndef CLEAVE_KERNELS_TILES_H
#define CLEAVE_KERNELS_TILES_H

#include "kernels/matrix/matrix.h"

/* Rows of a block; the last one may have fewer. matrix.c. */
int64_t kernel_matrix_block_rows(const kernel_matrix_t *matrix);

/* Rows `begin` to `end` times panels `first` to `last`. matrix.c. */
void kernel_matrix_block(const kernel_matrix_t *matrix, const kernel_matrix_data_t *data, int64_t begin,
                         int64_t end, int64_t first, int64_t last);

/* A part of the depth of one panel: columns from `column` on, so many elements of the depth from `from` on,
 * and its weights, [depth, panel]. While rows are multiplied by them, the lines of 64 bytes at `ahead` are
 * asked for, which are read after the part. */
typedef struct kernel_matrix_part {
  int64_t column;
  int64_t from;
  int64_t depth;
  const float *weights;
  const float *ahead;
  int64_t lines; /* 0: `ahead` is not read */
} kernel_matrix_part_t;

/* Rows `begin` to `end` times the part, which is added to y unless it is the first; data->weights is not
 * read. matrix.c; by matrix->panel one of the two below it. */
void kernel_matrix_part(const kernel_matrix_t *matrix, const kernel_matrix_data_t *data,
                        const kernel_matrix_part_t *part, int64_t begin, int64_t end);
void kernel_matrix_part_avx2(const kernel_matrix_t *matrix, const kernel_matrix_data_t *data,
                             const kernel_matrix_part_t *part, int64_t begin, int64_t end);
void kernel_matrix_part_avx512(const kernel_matrix_t *matrix, const kernel_matrix_data_t *data,
                               const kernel_matrix_part_t *part, int64_t begin, int64_t end);

/* Rows of a tile, and most elements of the depth that kernel_matrix_block adds up at once. */
enum { MATRIX_ROWS = 6, MATRIX_DEPTH = 768 };

#endif /* CLEAVE_KERNELS_TILES_H */
