// SPDX-License-Identifier: Apache-2.0
// How the work is cut into units: a unit is one panel of weights over a block of rows, whose part of x stays
// in the second cache while panels go by.
#include "kernels/matrix/matrix.h"

#include "kernels/instructions.h"
#include "kernels/matrix/tiles.h"

/* About how many elements of x a block of rows has, most rows of one, and multiplications worth a thread. */
enum { BLOCK = 65536, MAX_ROWS = 384, GRAIN = 200000 };

bool kernel_matrix_runs_here(void) {
  return kernel_instructions(KERNEL_AVX512) == KERNEL_AVX2;
}

static int64_t count_panels(const kernel_matrix_t *matrix) {
  return (matrix->columns - 1) / KERNEL_MATRIX_PANEL + 1;
}

int64_t kernel_matrix_block_rows(const kernel_matrix_t *matrix) {
  int64_t rows = BLOCK / (matrix->depth < MATRIX_DEPTH ? matrix->depth : MATRIX_DEPTH);
  return (rows < MAX_ROWS ? rows : MAX_ROWS) / MATRIX_ROWS * MATRIX_ROWS;
}

int64_t kernel_matrix_units(const kernel_matrix_t *matrix) {
  int64_t blocks = (matrix->rows - 1) / kernel_matrix_block_rows(matrix) + 1;
  return blocks * count_panels(matrix);
}

int64_t kernel_matrix_grain(const kernel_matrix_t *matrix) {
  int64_t rows =
      kernel_matrix_block_rows(matrix) < matrix->rows ? kernel_matrix_block_rows(matrix) : matrix->rows;
  // Few rows take the time of reading the weights.
  rows = rows < MATRIX_ROWS ? MATRIX_ROWS : rows;
  return GRAIN / (rows * matrix->depth * KERNEL_MATRIX_PANEL) + 1;
}

void kernel_matrix_run(const kernel_matrix_t *matrix, const kernel_matrix_data_t *data, int64_t begin,
                       int64_t end) {
  int64_t panels = count_panels(matrix);
  while (begin < end) {
    int64_t panel = begin % panels;
    int64_t last = end - begin < panels - panel ? panel + (end - begin) : panels;
    last = matrix->rows < MATRIX_ROWS ? panel + 1 : last;  // read from front to back
    int64_t row = begin / panels * kernel_matrix_block_rows(matrix);
    int64_t next = row + kernel_matrix_block_rows(matrix);
    kernel_matrix_block(matrix, data, row, next < matrix->rows ? next : matrix->rows, panel, last);
    begin += last - panel;
  }
}
