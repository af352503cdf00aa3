// SPDX-License-Identifier: Apache-2.0
// Tiles of 6 rows and 16 columns: twelve registers of sums, two of weights, one of an element of x. A step
// along the depth takes two loads of weights and six of x for twelve multiplications.
#include "kernels/matrix/tiles.h"

#include <math.h>

#include "kernels/matrix/vectors.h"

/* The place of a tile, and the part of the depth that it adds. */
typedef struct tile {
  const kernel_matrix_t *matrix;
  const float *x;
  const float *weights;
  const float *start; /* what sums begin with; or NULL */
  int64_t start_stride;
  const float *bias; /* or NULL; added to what sums begin with */
  float *y;
  int64_t width; /* columns */
  int64_t depth;
  bool is_last; /* part of the depth */
} tile_t;

TILE_INLINE void begin_sums(vector_t sums[MATRIX_ROWS][2], const tile_t *tile, const int rows) {
  vector_t bias[2] = {all(0), all(0)};
  if (tile->bias != NULL) {
    load_row(tile->bias, tile->width, bias);
  }
#pragma GCC unroll 6
  for (int r = 0; r < rows; r++) {
    vector_t start[2] = {all(0), all(0)};
    if (tile->start != NULL) {
      load_row(tile->start + r * tile->start_stride, tile->width, start);
    }
    sums[r][0] = bias[0] + start[0];
    sums[r][1] = bias[1] + start[1];
  }
}

/* `rows` is a literal, so that sums are registers. */
TILE_INLINE void compute(const tile_t *tile, const int rows) {
  vector_t sums[MATRIX_ROWS][2];
  int64_t x_stride = tile->matrix->x_stride;
  begin_sums(sums, tile, rows);
  for (int64_t k = 0; k < tile->depth; k++) {
    vector_t left = load(tile->weights + k * PANEL);
    vector_t right = load(tile->weights + k * PANEL + HALF);
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++) {
      vector_t factor = all(tile->x[r * x_stride + k]);
      sums[r][0] += factor * left;
      sums[r][1] += factor * right;
    }
  }
  vector_t low = all(tile->is_last ? tile->matrix->low : -INFINITY);
  vector_t high = all(tile->is_last ? tile->matrix->high : INFINITY);
#pragma GCC unroll 6
  for (int r = 0; r < rows; r++) {
    vector_t out[2] = {bounded(sums[r][0], low, high), bounded(sums[r][1], low, high)};
    store_row(tile->y + r * tile->matrix->y_stride, tile->width, out);
  }
}

static void compute_tile(const tile_t *tile, int64_t rows) {
  switch (rows) {
    case 1: compute(tile, 1); break;
    case 2: compute(tile, 2); break;
    case 3: compute(tile, 3); break;
    case 4: compute(tile, 4); break;
    case 5: compute(tile, 5); break;
    default: compute(tile, MATRIX_ROWS);
  }
}

void kernel_matrix_part(const kernel_matrix_t *matrix, const kernel_matrix_data_t *data,
                        const kernel_matrix_part_t *part, int64_t begin, int64_t end) {
  int64_t column = part->column;
  int64_t from = part->from;
  int64_t width = matrix->columns - column;
  int64_t left = matrix->depth - from;
  const float *start = from > 0 ? data->y : data->sum;
  tile_t tile = {.matrix = matrix,
                 .weights = part->weights,
                 .bias = from > 0 || data->bias == NULL ? NULL : data->bias + column,
                 .start_stride = from > 0 ? matrix->y_stride : matrix->sum_stride,
                 .width = width < PANEL ? width : PANEL,
                 .depth = left < MATRIX_DEPTH ? left : MATRIX_DEPTH,
                 .is_last = left <= MATRIX_DEPTH};
  int64_t rows = MATRIX_ROWS;
  for (int64_t row = begin; row < end; row += rows) {
    // The last two tiles share what is left: one of few rows would wait for its sums.
    int64_t rest = end - row;
    rows = rest > MATRIX_ROWS && rest < 2 * MATRIX_ROWS ? (rest + 1) / 2 : rows;
    tile.x = data->x + row * matrix->x_stride + from;
    tile.y = data->y + row * matrix->y_stride + column;
    tile.start = start == NULL ? NULL : start + row * tile.start_stride + column;
    compute_tile(&tile, rest < rows ? rest : rows);
  }
}

void kernel_matrix_block(const kernel_matrix_t *matrix, const kernel_matrix_data_t *data, int64_t begin,
                         int64_t end, int64_t first, int64_t last) {
  for (int64_t from = 0; from < matrix->depth; from += MATRIX_DEPTH) {
    for (int64_t panel = first; panel < last; panel++) {
      int64_t column = panel * PANEL;
      const kernel_matrix_part_t part = {
          .column = column, .from = from, .weights = data->weights + column * matrix->depth + from * PANEL};
      kernel_matrix_part(matrix, data, &part, begin, end);
    }
  }
}
