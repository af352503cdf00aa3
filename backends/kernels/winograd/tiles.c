// SPDX-License-Identifier: Apache-2.0
// The transforms of tiles, one dimension after the other, for eight channels at a time. What lies outside of
// the image is read as zeros from a copy, and written to a copy of which the inside is kept.
#include "kernels/winograd/tiles.h"

#include <fenv.h>

#include "kernels/matrix/vectors.h"
#include "kernels/vector_math.h"

enum { LANES = KERNEL_WINOGRAD_LANES, MAX_TILE = 4, MAX_SIDE = MAX_TILE + 2 };

TILE_INLINE void store(float *to, vector_t value) {
  memcpy(to, &value, sizeof(value));
}

/* One line of a tile with its border: tile + 2 numbers to as many. */
TILE_INLINE void transform_in(const vector_t *d, vector_t *v, const int tile) {
  if (tile == 2) {
    v[0] = d[0] - d[2];
    v[1] = d[1] + d[2];
    v[2] = d[2] - d[1];
    v[3] = d[3] - d[1];
    return;
  }
  const float p = (float)KERNEL_WINOGRAD_P;
  const float q = (float)KERNEL_WINOGRAD_Q;
  vector_t even_p = d[4] - q * q * d[2];
  vector_t odd_p = d[3] - q * q * d[1];
  vector_t even_q = d[4] - p * p * d[2];
  vector_t odd_q = d[3] - p * p * d[1];
  v[0] = p * p * q * q * d[0] + (d[4] - (p * p + q * q) * d[2]);
  v[1] = even_p + p * odd_p;
  v[2] = even_p - p * odd_p;
  v[3] = even_q + q * odd_q;
  v[4] = even_q - q * odd_q;
  v[5] = p * p * q * q * d[1] + (d[5] - (p * p + q * q) * d[3]);
}

/* tile + 2 products to `tile` results. */
TILE_INLINE void transform_out(const vector_t *m, vector_t *y, const int tile) {
  if (tile == 2) {
    y[0] = m[0] + m[1] + m[2];
    y[1] = m[1] - m[2] + m[3];
    return;
  }
  const float p = (float)KERNEL_WINOGRAD_P;
  const float q = (float)KERNEL_WINOGRAD_Q;
  vector_t even_p = m[1] + m[2];
  vector_t odd_p = m[1] - m[2];
  vector_t even_q = m[3] + m[4];
  vector_t odd_q = m[3] - m[4];
  y[0] = m[0] + even_p + even_q;
  y[1] = p * odd_p + q * odd_q;
  y[2] = p * p * even_p + q * q * even_q;
  y[3] = p * p * p * odd_p + (q * q * q * odd_q + m[5]);
}

/* Where a tile is: its first result, and how many of its rows and columns are in the image. */
typedef struct place {
  int64_t image;
  int64_t row;
  int64_t column;
} place_t;

static place_t place_of(const kernel_winograd_t *winograd, int64_t index) {
  int64_t across = (winograd->y.width + winograd->tile - 1) / winograd->tile;
  int64_t down = (winograd->y.height + winograd->tile - 1) / winograd->tile;
  return (place_t){.image = index / (across * down),
                   .row = index / across % down * winograd->tile,
                   .column = index % across * winograd->tile};
}

// ---- in ----

/* The pixels of a tile: `rows` and `columns` of them from `first` on are in the image. */
typedef struct view {
  const float *from; /* pixel [0, 0] of the tile, in the image or not */
  int64_t row;       /* from a row to the next */
  int64_t pixel;
  int64_t begin[2];
  int64_t end[2];
} view_t;

static int64_t clamp(int64_t value, int64_t low, int64_t high) {
  return value < low ? low : (value > high ? high : value);
}

static view_t view_of(const kernel_winograd_t *winograd, const float *x, int64_t index) {
  const kernel_winograd_image_t *image = &winograd->x;
  place_t place = place_of(winograd, index);
  int64_t row = place.row - winograd->top;
  int64_t column = place.column - winograd->left;
  int64_t side = winograd->tile + 2;
  return (view_t){.from = x + place.image * image->image + (row * image->width + column) * image->pixel,
                  .row = image->width * image->pixel,
                  .pixel = image->pixel,
                  .begin = {clamp(-row, 0, side), clamp(-column, 0, side)},
                  .end = {clamp(image->height - row, 0, side), clamp(image->width - column, 0, side)}};
}

/* A copy of eight channels, with zeros outside of the image. */
static void fill(const view_t *view, int64_t offset, float *out) {
  memset(out, 0, sizeof(float) * MAX_SIDE * MAX_SIDE * LANES);
  for (int64_t i = view->begin[0]; i < view->end[0]; i++) {
    for (int64_t j = view->begin[1]; j < view->end[1]; j++) {
      memcpy(out + (i * MAX_SIDE + j) * LANES, view->from + i * view->row + j * view->pixel + offset,
             sizeof(vector_t));
    }
  }
}

TILE_INLINE void gather_channels(const float *from, int64_t row, int64_t pixel, int64_t apart, float *out,
                                 const int tile) {
  vector_t turned[MAX_SIDE][MAX_SIDE];
#pragma GCC unroll 6
  for (int j = 0; j < tile + 2; j++) {
    vector_t d[MAX_SIDE];
    vector_t v[MAX_SIDE];
#pragma GCC unroll 6
    for (int i = 0; i < tile + 2; i++) {
      d[i] = load(from + i * row + j * pixel);
    }
    transform_in(d, v, tile);
#pragma GCC unroll 6
    for (int i = 0; i < tile + 2; i++) {
      turned[i][j] = v[i];
    }
  }
#pragma GCC unroll 6
  for (int i = 0; i < tile + 2; i++) {
    vector_t v[MAX_SIDE];
    transform_in(turned[i], v, tile);
#pragma GCC unroll 6
    for (int j = 0; j < tile + 2; j++) {
      store(out + (i * (tile + 2) + j) * apart, v[j]);
    }
  }
}

TILE_INLINE void gather(const kernel_winograd_t *winograd, const view_t *view, int64_t apart, float *out,
                        const int tile) {
  bool is_inside =
      view->begin[0] == 0 && view->begin[1] == 0 && view->end[0] == tile + 2 && view->end[1] == tile + 2;
  float copy[MAX_SIDE * MAX_SIDE * LANES];
  for (int64_t c = 0; c < winograd->inputs; c += LANES) {
    int64_t offset = c / LANES * winograd->x.block;
    if (is_inside) {
      gather_channels(view->from + offset, view->row, view->pixel, apart, out + c, tile);
    } else {
      fill(view, offset, copy);
      gather_channels(copy, MAX_SIDE * LANES, LANES, apart, out + c, tile);
    }
  }
}

void kernel_winograd_gather(const kernel_winograd_t *winograd, const float *x, int64_t begin, int64_t end,
                            int64_t apart, float *out) {
  for (int64_t index = begin; index < end; index++, out += winograd->inputs) {
    view_t view = view_of(winograd, x, index);
    if (winograd->tile == 2) {
      gather(winograd, &view, apart, out, 2);
    } else {
      gather(winograd, &view, apart, out, MAX_TILE);
    }
  }
}

// ---- out ----

/* Eight outputs of a tile. `from`: products; `y`: their results, in memory or in a copy. */
typedef struct target {
  const float *bias;
  const float *sum;
  float *y;
  int64_t row;
  int64_t pixel;
} target_t;

/* Activations that are no bounds, on results that are in the first cache. */
static __attribute__((noinline)) void activate(const kernel_winograd_t *winograd, const target_t *target) {
  for (int i = 0; i < winograd->tile; i++) {
    for (int j = 0; j < winograd->tile; j++) {
      float *values = target->y + i * target->row + j * target->pixel;
      for (int k = 0; k < LANES; k++) {
        float value = values[k];
        float leaky = value < 0 ? winograd->slope * value : value;
        values[k] = winograd->swish != 0 ? value * cpu_sigmoidf(winograd->swish * value) : leaky;
      }
    }
  }
}

/* Adds 0 times each number to `check`: NaN if one of them is not finite. */
TILE_INLINE void scatter_channels(const kernel_winograd_t *winograd, const target_t *target,
                                  const float *from, int64_t apart, vector_t *check, const int tile) {
  vector_t turned[MAX_TILE][MAX_SIDE];
#pragma GCC unroll 6
  for (int j = 0; j < tile + 2; j++) {
    vector_t m[MAX_SIDE];
    vector_t y[MAX_TILE];
#pragma GCC unroll 6
    for (int i = 0; i < tile + 2; i++) {
      m[i] = load(from + (i * (tile + 2) + j) * apart);
    }
    transform_out(m, y, tile);
#pragma GCC unroll 4
    for (int i = 0; i < tile; i++) {
      turned[i][j] = y[i];
    }
  }
  vector_t bias = target->bias != NULL ? load(target->bias) : all(0);
  vector_t low = all(winograd->low);
  vector_t high = all(winograd->high);
#pragma GCC unroll 4
  for (int i = 0; i < tile; i++) {
    vector_t y[MAX_TILE];
    transform_out(turned[i], y, tile);
#pragma GCC unroll 4
    for (int j = 0; j < tile; j++) {
      vector_t value = y[j] + bias;
      if (target->sum != NULL) {
        value += load(target->sum + i * target->row + j * target->pixel);
      }
      *check += value * all(0);
      store(target->y + i * target->row + j * target->pixel, bounded(value, low, high));
    }
  }
  if (winograd->slope != 1 || winograd->swish != 0) {
    activate(winograd, target);
  }
}

/* The rows and columns of a copy that are in the image, to or from memory. */
TILE_INLINE void move(float *image, const kernel_winograd_image_t *of, float *copy, int64_t rows,
                      int64_t columns, bool is_store) {
  for (int64_t i = 0; i < rows; i++) {
    for (int64_t j = 0; j < columns; j++) {
      float *pixel = image + (i * of->width + j) * of->pixel;
      float *own = copy + (i * MAX_TILE + j) * LANES;
      memcpy(is_store ? pixel : own, is_store ? own : pixel, sizeof(vector_t));
    }
  }
}

/* Eight outputs, from `output` on, of tile `index`. */
TILE_INLINE void scatter(const kernel_winograd_t *winograd, const winograd_products_t *products,
                         int64_t output, int64_t index, vector_t *check, const int tile) {
  const kernel_winograd_data_t *data = products->data;
  const float *from = products->from + (index - products->begin) * PANEL + output % PANEL;
  const kernel_winograd_image_t *image = &winograd->y;
  place_t place = place_of(winograd, index);
  int64_t offset = place.image * image->image + output / LANES * image->block +
                   (place.row * image->width + place.column) * image->pixel;
  int64_t rows = clamp(image->height - place.row, 0, tile);
  int64_t columns = clamp(image->width - place.column, 0, tile);
  target_t target = {.bias = data->bias != NULL ? data->bias + output : NULL,
                     .sum = data->sum != NULL ? data->sum + offset : NULL,
                     .y = data->y + offset,
                     .row = image->width * image->pixel,
                     .pixel = image->pixel};
  if (rows == tile && columns == tile) {
    scatter_channels(winograd, &target, from, products->apart, check, tile);
    return;
  }
  float copy[MAX_TILE * MAX_TILE * LANES] = {0};
  float sum[MAX_TILE * MAX_TILE * LANES] = {0};
  if (data->sum != NULL) {
    move((float *)(uintptr_t)target.sum, image, sum, rows, columns, false);
    target.sum = sum;
  }
  target.row = (int64_t)MAX_TILE * LANES;
  target.pixel = LANES;
  target.y = copy;
  scatter_channels(winograd, &target, from, products->apart, check, tile);
  move(data->y + offset, image, copy, rows, columns, true);
}

static bool has_nan(vector_t value) {
  float values[LANES];
  bool found = false;
  memcpy(values, &value, sizeof(values));
  for (int k = 0; k < LANES; k++) {
    found = found || values[k] != values[k];
  }
  return found;
}

void kernel_winograd_scatter(const kernel_winograd_t *winograd, const winograd_products_t *products,
                             int64_t panel) {
  int64_t end = (panel + 1) * PANEL < winograd->outputs ? (panel + 1) * PANEL : winograd->outputs;
  vector_t check = all(0);
  for (int64_t index = products->begin; index < products->end; index++) {
    for (int64_t output = panel * PANEL; output < end; output += LANES) {
      if (winograd->tile == 2) {
        scatter(winograd, products, output, index, &check, 2);
      } else {
        scatter(winograd, products, output, index, &check, MAX_TILE);
      }
    }
  }
  if (has_nan(check)) {
    (void)feraiseexcept(FE_INVALID);
  }
}
