// SPDX-License-Identifier: Apache-2.0
// How the work is cut into units: a unit is one panel of weights over a block of rows, whose part of x stays
// in the second cache while panels go by.
#include "kernels/matrix/matrix.h"

#include "kernels/instructions.h"
#include "kernels/matrix/tiles.h"

/* Multiplications worth a thread, floats of a line, and what the depth of a wide panel is a multiple of. */
enum { GRAIN = 200000, LINE = 16, WIDE_DEPTH = 16 };

int32_t kernel_matrix_panel(void) {
  switch (kernel_instructions(KERNEL_AVX512)) {
    case KERNEL_AVX512: return KERNEL_MATRIX_PANEL_AVX512;
    case KERNEL_AVX2: return KERNEL_MATRIX_PANEL;
    default: return 0;
  }
}

static bool is_wide(const kernel_matrix_t *matrix) {
  return matrix->panel == KERNEL_MATRIX_PANEL_AVX512;
}

static int64_t quotient_up(int64_t a, int64_t b) {
  return (a - 1) / b + 1;
}

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* Floats of a panel. */
static int64_t panel_size(const kernel_matrix_t *matrix) {
  int64_t depth = is_wide(matrix) ? quotient_up(matrix->depth, WIDE_DEPTH) * WIDE_DEPTH : matrix->depth;
  return depth * matrix->panel;
}

static int64_t count_panels(const kernel_matrix_t *matrix) {
  return quotient_up(matrix->columns, matrix->panel);
}

/* Blocks have about as many rows, and part of a block about 64 Ki elements of x with AVX2, and 128 Ki with
 * AVX-512, whose processors have larger caches; at most 384 and 1536 rows. */
int64_t kernel_matrix_block_rows(const kernel_matrix_t *matrix) {
  int64_t elements = is_wide(matrix) ? 131072 : 65536;
  int64_t most = least(elements / least(matrix->depth, MATRIX_DEPTH), is_wide(matrix) ? 1536 : 384);
  int64_t rows = quotient_up(matrix->rows, quotient_up(matrix->rows, most));
  return quotient_up(rows, MATRIX_ROWS) * MATRIX_ROWS;
}

int64_t kernel_matrix_units(const kernel_matrix_t *matrix) {
  return quotient_up(matrix->rows, kernel_matrix_block_rows(matrix)) * count_panels(matrix);
}

int64_t kernel_matrix_grain(const kernel_matrix_t *matrix) {
  int64_t rows = least(kernel_matrix_block_rows(matrix), matrix->rows);
  // Few rows take the time of reading the weights.
  rows = rows < MATRIX_ROWS ? MATRIX_ROWS : rows;
  return GRAIN / (rows * matrix->depth * matrix->panel) + 1;
}

/* Part `index` of the depth of panels `first` to `last`. All panels go by with a part of x; but for rows of
 * one tile a panel is read from front to back. */
static kernel_matrix_part_t part_at(const kernel_matrix_t *matrix, const kernel_matrix_data_t *data,
                                    bool is_one_tile, int64_t first, int64_t last, int64_t index) {
  int64_t parts = quotient_up(matrix->depth, MATRIX_DEPTH);
  int64_t panels = last - first;
  int64_t panel = first + (is_one_tile ? index / parts : index % panels);
  int64_t from = (is_one_tile ? index % parts : index / panels) * MATRIX_DEPTH;
  return (kernel_matrix_part_t){.column = panel * matrix->panel,
                                .from = from,
                                .depth = least(matrix->depth - from, MATRIX_DEPTH),
                                .weights = data->weights + panel * panel_size(matrix) + from * matrix->panel};
}

void kernel_matrix_part(const kernel_matrix_t *matrix, const kernel_matrix_data_t *data,
                        const kernel_matrix_part_t *part, int64_t begin, int64_t end) {
  if (is_wide(matrix)) {
    kernel_matrix_part_avx512(matrix, data, part, begin, end);
  } else {
    kernel_matrix_part_avx2(matrix, data, part, begin, end);
  }
}

void kernel_matrix_block(const kernel_matrix_t *matrix, const kernel_matrix_data_t *data, int64_t begin,
                         int64_t end, int64_t first, int64_t last) {
  bool is_one_tile = end - begin <= MATRIX_ROWS;
  // A single row takes the time of its weights, which come as one stream that processors foresee.
  bool is_fetched = end - begin > 1 && kernel_gains_by_fetching();
  int64_t count = quotient_up(matrix->depth, MATRIX_DEPTH) * (last - first);
  kernel_matrix_part_t part = part_at(matrix, data, is_one_tile, first, last, 0);
  for (int64_t index = 1; index <= count; index++) {
    kernel_matrix_part_t next = {.column = 0};
    if (index < count) {
      next = part_at(matrix, data, is_one_tile, first, last, index);
      part.ahead = next.weights;
      part.lines = is_fetched ? next.depth * matrix->panel / LINE : 0;
    }
    kernel_matrix_part(matrix, data, &part, begin, end);
    part = next;
  }
}

void kernel_matrix_run(const kernel_matrix_t *matrix, const kernel_matrix_data_t *data, int64_t begin,
                       int64_t end) {
  int64_t panels = count_panels(matrix);
  while (begin < end) {
    int64_t panel = begin % panels;
    int64_t last = least(panel + (end - begin), panels);
    int64_t row = begin / panels * kernel_matrix_block_rows(matrix);
    int64_t next = row + kernel_matrix_block_rows(matrix);
    kernel_matrix_block(matrix, data, row, least(next, matrix->rows), panel, last);
    begin += last - panel;
  }
}
