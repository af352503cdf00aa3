// SPDX-License-Identifier: Apache-2.0
// Compiled for AVX-512. Panels go by in pairs, and all rows of a block with a pair, which stays in the cache.
#include "kernels/matrix/panel.h"
#include "kernels/matrix/wide.h"

enum { ROWS = KERNEL_WIDE_ROWS, BLOCK = 16, GROUP = 3 /* rows with one pointer */, MANY = 8 };

/* A tile: where its first row and column are. `width`: columns of the last panel, 16 or fewer. */
typedef struct tile {
  const float *x;
  const float *weights;
  const float *bias; /* or NULL */
  const float *sum;  /* or NULL */
  float *y;
  int64_t width;
  int64_t ahead; /* of `weights`, what is read after all rows; 0: not asked for early */
  int from;      /* which lines of 16 of those this tile asks for */
  int to;
} tile_t;

TILE_INLINE vector_t bias_of(const tile_t *tile, int p, bool is_whole) {
  if (tile->bias == NULL) {
    return all(0);
  }
  const float *bias = tile->bias + (ptrdiff_t)p * BLOCK;
  return is_whole ? load(bias) : load_some(bias, tile->width);
}

TILE_INLINE vector_t sum_of(const kernel_wide_t *wide, const tile_t *tile, int r, int p, bool is_whole) {
  vector_t sum = bias_of(tile, p, is_whole);
  if (tile->sum != NULL) {
    const float *from = tile->sum + r * wide->y_row + p * wide->y_panel;
    sum += is_whole ? load(from) : load_some(from, tile->width);
  }
  return sum;
}

/* What all rows begin with. Here and in finish_all a tile decides once what holds for all of its vectors,
 * which took a sixth of its time with a depth of 16. */
TILE_INLINE void begin_all(const kernel_wide_t *wide, const tile_t *tile, vector_t sums[ROWS][2],
                           const int rows, const int panels) {
  if (tile->sum == NULL) {
    vector_t first = bias_of(tile, 0, panels == 2 || tile->width == BLOCK);
    vector_t second = panels == 2 ? bias_of(tile, 1, tile->width == BLOCK) : first;
#pragma GCC unroll 14
    for (int r = 0; r < rows; r++) {
      sums[r][0] = first;
      sums[r][1] = second;
    }
    return;
  }
#pragma GCC unroll 14
  for (int r = 0; r < rows; r++) {
#pragma GCC unroll 2
    for (int p = 0; p < panels; p++) {
      sums[r][p] = sum_of(wide, tile, r, p, p < panels - 1 || tile->width == BLOCK);
    }
  }
}

TILE_INLINE void finish_all(const kernel_wide_t *wide, const tile_t *tile, vector_t sums[ROWS][2],
                            const int rows, const int panels) {
  const kernel_activation_t *activation = &wide->activation;
  if (tile->width == BLOCK && activation->kind == KERNEL_BOUNDS) {
    vector_t low = all(activation->low);
    vector_t high = all(activation->high);
#pragma GCC unroll 14
    for (int r = 0; r < rows; r++) {
#pragma GCC unroll 2
      for (int p = 0; p < panels; p++) {
        store(tile->y + r * wide->y_row + p * wide->y_panel, bounded(sums[r][p], low, high));
      }
    }
    return;
  }
#pragma GCC unroll 14
  for (int r = 0; r < rows; r++) {
#pragma GCC unroll 2
    for (int p = 0; p < panels; p++) {
      finish(activation, tile->y + r * wide->y_row + p * wide->y_panel, sums[r][p],
             p == panels - 1 ? tile->width : BLOCK, wide->is_filled);
    }
  }
}

/* Element `k` of a block of the depth. */
TILE_INLINE void add(vector_t sums[ROWS][2], const float *const *x, int64_t k, const kernel_wide_t *wide,
                     const float *weights, const int rows, const int panels) {
  vector_t left = load(weights + k * BLOCK);
  vector_t right = panels == 2 ? load(weights + wide->w_panel + k * BLOCK) : left;
#pragma GCC unroll 14
  for (int r = 0; r < rows; r++) {
    vector_t factor = all(x[r / GROUP][r % GROUP * wide->x_row + k]);
    sums[r][0] += factor * left;
    if (panels == 2) {
      sums[r][1] += factor * right;
    }
  }
}

/* Fetches what the next tile adds to. */
TILE_INLINE void ask_for_sum(const kernel_wide_t *wide, const tile_t *tile, const int rows,
                             const int panels) {
  for (int r = 0; r < rows && tile->sum != NULL; r++) {
    for (int p = 0; p < panels; p++) {
      __builtin_prefetch(tile->sum + (r + rows) * wide->y_row + p * wide->y_panel);
    }
  }
}

/* Fetches what is read after a block of the depth: its rows `next` elements further on, and this tile's share
 * of the next panels' weights, which may come from memory: all tiles of a panel take about as long as they
 * do. */
TILE_INLINE void ask_for_more(const kernel_wide_t *wide, const tile_t *tile, const float *const *x,
                              int64_t next, const float *weights, const int rows, const int panels) {
#pragma GCC unroll 14
  for (int r = 0; r < rows; r++) {
    __builtin_prefetch(x[r / GROUP] + r % GROUP * wide->x_row + next);
  }
  for (int k = tile->from; tile->ahead != 0 && k < tile->to; k++) {
    __builtin_prefetch(weights + tile->ahead + k * BLOCK, 0, 2);
    if (panels == 2) {
      __builtin_prefetch(weights + wide->w_panel + tile->ahead + k * BLOCK, 0, 2);
    }
  }
}

/* `rows` and `panels` are literals, so that sums are registers. */
TILE_INLINE void compute(const kernel_wide_t *wide, const tile_t *tile, const int rows, const int panels) {
  vector_t sums[ROWS][2];
  const float *weights = tile->weights;
  begin_all(wide, tile, sums, rows, panels);
  ask_for_sum(wide, tile, rows, panels);
  for (int64_t left = wide->depth, block = 0; left > 0; left -= BLOCK, block++) {
    const float *x[(ROWS - 1) / GROUP + 1];
#pragma GCC unroll 5
    for (int g = 0; g <= (ROWS - 1) / GROUP; g++) {
      x[g] = tile->x + block * wide->x_block + g * GROUP * wide->x_row;
    }
    int64_t next = left > BLOCK ? wide->x_block : rows * wide->x_row - block * wide->x_block;
    ask_for_more(wide, tile, x, next, weights, rows, panels);
    if (left >= BLOCK) {
#pragma GCC unroll 4
      for (int k = 0; k < BLOCK; k++) {
        add(sums, x, k, wide, weights, rows, panels);
      }
    } else {
#pragma GCC unroll 1
      for (int64_t k = 0; k < left; k++) {
        add(sums, x, k, wide, weights, rows, panels);
      }
    }
    weights += BLOCK * BLOCK;
  }
  finish_all(wide, tile, sums, rows, panels);
}

#define CASE(rows)                  \
  case rows:                        \
    if (panels == 2) {              \
      compute(wide, tile, rows, 2); \
    } else {                        \
      compute(wide, tile, rows, 1); \
    }                               \
    break

/* One row: more panels at a time, so that none waits for its sum. */
TILE_INLINE void compute_row(const kernel_wide_t *wide, const tile_t *tile, const int panels) {
  vector_t sums[MANY];
#pragma GCC unroll 8
  for (int p = 0; p < panels; p++) {
    sums[p] = sum_of(wide, tile, 0, p, p < panels - 1 || tile->width == BLOCK);
  }
  for (int64_t k = 0; k < wide->depth; k++) {
    vector_t factor = all(tile->x[k / BLOCK * wide->x_block + k % BLOCK]);
#pragma GCC unroll 8
    for (int p = 0; p < panels; p++) {
      sums[p] += factor * load(tile->weights + p * wide->w_panel + k * BLOCK);
    }
  }
#pragma GCC unroll 8
  for (int p = 0; p < panels; p++) {
    finish(&wide->activation, tile->y + p * wide->y_panel, sums[p], p == panels - 1 ? tile->width : BLOCK,
           wide->is_filled);
  }
}

static void compute_tile(const kernel_wide_t *wide, const tile_t *tile, int64_t rows, int64_t panels) {
  switch (panels > 2 ? -panels : rows) {
    case -MANY: compute_row(wide, tile, MANY); break;
    case -MANY / 2:
      compute_row(wide, tile, MANY / 2);
      break;
      CASE(1);
      CASE(2);
      CASE(3);
      CASE(4);
      CASE(5);
      CASE(6);
      CASE(7);
      CASE(8);
      CASE(9);
      CASE(10);
      CASE(11);
      CASE(12);
      CASE(13);
      CASE(14);
    default: break;
  }
}

/* Panels at a time, of `left`. */
static int64_t panels_of(int64_t rows, int64_t left) {
  int64_t panels = rows == 1 ? MANY : 2;
  while (panels > left) {
    panels /= 2;
  }
  return panels;
}

void kernel_wide_block(const kernel_wide_t *wide, const kernel_wide_data_t *data, int64_t begin, int64_t end,
                       int64_t first, int64_t last) {
  int64_t count = end - begin;
  int64_t tiles = (count + ROWS - 1) / ROWS;
  for (int64_t panel = first, panels = 0; panel < last; panel += panels) {
    panels = panels_of(count, last - panel);
    int64_t width = wide->columns - (panel + panels - 1) * BLOCK;
    tile_t tile = {.weights = data->weights + panel * wide->w_panel,
                   .bias = data->bias != NULL ? data->bias + panel * BLOCK : NULL,
                   .width = width < BLOCK ? width : BLOCK,
                   .ahead = wide->w_ahead};
    for (int64_t k = 0; k < tiles; k++) {
      // All have about as many rows: a tile of few would wait for its sums.
      int64_t row = begin + count * k / tiles;
      int64_t offset = row * wide->y_row + panel * wide->y_panel;
      tile.x = data->x + row * wide->x_row;
      tile.sum = data->sum != NULL ? data->sum + offset : NULL;
      tile.y = data->y + offset;
      tile.from = (int)(BLOCK * k / tiles);
      tile.to = (int)(BLOCK * (k + 1) / tiles);
      compute_tile(wide, &tile, begin + count * (k + 1) / tiles - row, panels);
    }
  }
}
