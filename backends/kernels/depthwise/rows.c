// SPDX-License-Identifier: Apache-2.0
// Compiled for AVX-512. Each pixel is read once per row of the window, and goes into all results that it is
// part of; what lies outside of the image is skipped.
#include "kernels/depthwise/depthwise.h"
#include "kernels/matrix/panel.h"

enum { RESULTS = 7 /* columns at a time: images of 7, 14, 28 ... columns have no rest */ };

/* Some results of a row. */
typedef struct span {
  const float *x; /* the pixel of the first row and column of the window, in the image or not */
  const float *weights;
  vector_t bias;
  float *y;
  int64_t row;       /* from a row of x to the next */
  int64_t rows[2];   /* of the window: those that are in the image */
  int64_t inside[2]; /* columns of x, from the first of the window on */
  int64_t count;     /* results to be stored */
  int64_t width;     /* channels of the block */
} span_t;

/* How many columns of x the results of a span read. */
#define REACH(side, stride) ((RESULTS - 1) * (stride) + (side))

/* Adds column `j` of x to all results that it is part of. */
TILE_INLINE void add(vector_t sums[RESULTS], vector_t value, const vector_t *weights, const int j,
                     const int side, const int stride) {
#pragma GCC unroll 5
  for (int l = 0; l < side; l++) {
    if (j - l >= 0 && (j - l) % stride == 0 && (j - l) / stride < RESULTS) {
      sums[(j - l) / stride] += value * weights[l];
    }
  }
}

TILE_INLINE void start(const span_t *span, vector_t sums[RESULTS]) {
#pragma GCC unroll 7
  for (int r = 0; r < RESULTS; r++) {
    sums[r] = span->bias;
  }
}

TILE_INLINE void load_weights(const span_t *span, int64_t row, vector_t weights[5], const int side) {
#pragma GCC unroll 5
  for (int l = 0; l < side; l++) {
    weights[l] = load(span->weights + (row * side + l) * PANEL);
  }
}

/* Seven results of sixteen channels, for which `left` and `right` columns are outside of the image. */
TILE_INLINE void compute_whole(const kernel_depthwise_t *depthwise, const span_t *span, const int side,
                               const int stride, const int left, const int right) {
  const int64_t pixel = depthwise->x.pixel;
  const kernel_activation_t *activation = &depthwise->activation;
  vector_t sums[RESULTS];
  start(span, sums);
  for (int64_t k = span->rows[0]; k < span->rows[1]; k++) {
    const float *x = span->x + k * span->row;
    vector_t weights[5];
    load_weights(span, k, weights, side);
#pragma GCC unroll 17
    for (int j = left; j < REACH(side, stride) - right; j++) {
      add(sums, once(load(x + j * pixel)), weights, j, side, stride);
    }
  }
  vector_t low = all(activation->low);
  vector_t high = all(activation->high);
  if (activation->kind == KERNEL_BOUNDS) {
#pragma GCC unroll 7
    for (int r = 0; r < RESULTS; r++) {
      store(span->y + r * depthwise->y.pixel, bounded(sums[r], low, high));
    }
    return;
  }
#pragma GCC unroll 7
  for (int r = 0; r < RESULTS; r++) {
    finish(activation, span->y + r * depthwise->y.pixel, sums[r], PANEL, false);
  }
}

/* Any number of results, of channels, and of columns in the image. */
TILE_INLINE void compute_some(const kernel_depthwise_t *depthwise, const span_t *span, const int side,
                              const int stride) {
  const int64_t pixel = depthwise->x.pixel;
  vector_t sums[RESULTS];
  start(span, sums);
  for (int64_t k = span->rows[0]; k < span->rows[1]; k++) {
    const float *x = span->x + k * span->row;
    vector_t weights[5];
    load_weights(span, k, weights, side);
#pragma GCC unroll 17
    for (int j = 0; j < REACH(side, stride); j++) {
      if (j >= span->inside[0] && j < span->inside[1]) {
        add(sums, load_some(x + j * pixel, span->width), weights, j, side, stride);
      }
    }
  }
#pragma GCC unroll 7
  for (int r = 0; r < RESULTS; r++) {
    if (r < span->count) {
      finish(&depthwise->activation, span->y + r * depthwise->y.pixel, sums[r], span->width,
             depthwise->is_filled);
    }
  }
}

/* The usual padding, and the columns of spans that touch both ends, one, or none of an image. */
TILE_INLINE void compute_window(const kernel_depthwise_t *depthwise, const span_t *span, const int side,
                                const int stride) {
  const int padding = (side - 1) / 2;
  const int behind = stride == 1 ? padding : padding - 1; /* with stride 2, of an even number of columns */
  const int reach = REACH(side, stride);
  bool is_whole = span->width == PANEL && span->count >= RESULTS;
  bool starts = span->inside[0] == padding;
  bool ends = span->inside[1] == reach - behind;
  if (is_whole && span->inside[0] == 0 && span->inside[1] == reach) {
    compute_whole(depthwise, span, side, stride, 0, 0);
  } else if (is_whole && starts && span->inside[1] == reach) {
    compute_whole(depthwise, span, side, stride, padding, 0);
  } else if (is_whole && span->inside[0] == 0 && ends) {
    compute_whole(depthwise, span, side, stride, 0, behind);
  } else if (is_whole && starts && ends) {
    compute_whole(depthwise, span, side, stride, padding, behind);
  } else {
    compute_some(depthwise, span, side, stride);
  }
}

static void compute_span(const kernel_depthwise_t *depthwise, const span_t *span) {
  if (depthwise->side == 3 && depthwise->stride == 1) {
    compute_window(depthwise, span, 3, 1);
  } else if (depthwise->side == 3) {
    compute_window(depthwise, span, 3, 2);
  } else if (depthwise->stride == 1) {
    compute_window(depthwise, span, 5, 1);
  } else {
    compute_window(depthwise, span, 5, 2);
  }
}

static int64_t clamp(int64_t value, int64_t low, int64_t high) {
  return value < low ? low : (value > high ? high : value);
}

void kernel_depthwise_rows(const kernel_depthwise_t *depthwise, const kernel_depthwise_data_t *data,
                           int64_t block, int64_t begin, int64_t end) {
  const kernel_depthwise_image_t *x = &depthwise->x;
  const kernel_depthwise_image_t *y = &depthwise->y;
  const int64_t side = depthwise->side;
  const int64_t reach = REACH(side, depthwise->stride);
  int64_t width = depthwise->channels - block * PANEL;
  span_t span = {.weights = data->weights + block * side * side * PANEL,
                 .row = x->width * x->pixel,
                 .bias = all(0),
                 .width = width < PANEL ? width : PANEL};
  if (data->bias != NULL) {
    span.bias = load_some(data->bias + block * PANEL, span.width);
  }
  for (int64_t i = begin; i < end; i++) {
    int64_t row = i * depthwise->stride - depthwise->top;
    span.rows[0] = clamp(-row, 0, side);
    span.rows[1] = clamp(x->height - row, 0, side);
    for (int64_t j = 0; j < y->width; j += RESULTS) {
      int64_t column = j * depthwise->stride - depthwise->left;
      span.inside[0] = clamp(-column, 0, reach);
      span.inside[1] = clamp(x->width - column, 0, reach);
      span.x = data->x + block * x->block + (row * x->width + column) * x->pixel;
      span.y = data->y + block * y->block + (i * y->width + j) * y->pixel;
      span.count = y->width - j;
      compute_span(depthwise, &span);
    }
  }
}
