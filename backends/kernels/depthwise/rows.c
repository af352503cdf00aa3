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

TILE_INLINE void compute(const kernel_depthwise_t *depthwise, const span_t *span, const int side,
                         const int stride, const bool is_whole) {
  vector_t sums[RESULTS];
  const int64_t pixel = depthwise->x.pixel;
#pragma GCC unroll 7
  for (int r = 0; r < RESULTS; r++) {
    sums[r] = span->bias;
  }
  for (int64_t k = span->rows[0]; k < span->rows[1]; k++) {
    const float *x = span->x + k * span->row;
    vector_t weights[5];
#pragma GCC unroll 5
    for (int l = 0; l < side; l++) {
      weights[l] = load(span->weights + (k * side + l) * PANEL);
    }
#pragma GCC unroll 17
    for (int j = 0; j < (RESULTS - 1) * stride + side; j++) {
      if (!is_whole && (j < span->inside[0] || j >= span->inside[1])) {
        continue;
      }
      vector_t value = is_whole ? load(x + j * pixel) : load_some(x + j * pixel, span->width);
#pragma GCC unroll 5
      for (int l = 0; l < side; l++) {
        if (j - l >= 0 && (j - l) % stride == 0 && (j - l) / stride < RESULTS) {
          sums[(j - l) / stride] += value * weights[l];
        }
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

TILE_INLINE void compute_window(const kernel_depthwise_t *depthwise, const span_t *span, const int side,
                                const int stride) {
  bool is_whole = span->width == PANEL && span->inside[0] == 0 &&
                  span->inside[1] == (int64_t)(RESULTS - 1) * stride + side;
  if (is_whole) {
    compute(depthwise, span, side, stride, true);
  } else {
    compute(depthwise, span, side, stride, false);
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
  const int64_t reach = (RESULTS - 1) * depthwise->stride + side;
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
