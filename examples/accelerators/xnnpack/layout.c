// SPDX-License-Identifier: Apache-2.0
/* Transposes in tiles that stay in the first-level cache on both sides. */
#include "layout.h"

#include <string.h>

#define TILE 16

static void transpose_tile(const unsigned char *from, unsigned char *to, size_t rows, size_t columns,
                           size_t from_stride, size_t to_stride) {
  for (size_t c = 0; c < columns; c++) {
    for (size_t r = 0; r < rows; r++) {
      memcpy(to + (c * to_stride + r) * sizeof(float), from + (r * from_stride + c) * sizeof(float),
             sizeof(float));
    }
  }
}

void xnnpack_shuffle(const shuffle_t *shuffle, const void *from, void *to) {
  const unsigned char *source = from;
  unsigned char *target = to;
  size_t rows = shuffle->rows;
  size_t columns = shuffle->columns;
  size_t bytes = rows * columns * sizeof(float);
  if (rows == 1 || columns == 1) {
    memcpy(target, source, shuffle->outer * bytes);
    return;
  }
  for (size_t n = 0; n < shuffle->outer; n++) {
    for (size_t r = 0; r < rows; r += TILE) {
      size_t height = rows - r < TILE ? rows - r : TILE;
      for (size_t c = 0; c < columns; c += TILE) {
        size_t width = columns - c < TILE ? columns - c : TILE;
        transpose_tile(source + (r * columns + c) * sizeof(float), target + (c * rows + r) * sizeof(float),
                       height, width, columns, rows);
      }
    }
    source += bytes;
    target += bytes;
  }
}
