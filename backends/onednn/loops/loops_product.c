// SPDX-License-Identifier: Apache-2.0
// Products of few rows with a matrix of weights. Their time is that of reading the weights once, one after
// the other. Sums of a row stay in registers.
#include <string.h>

#include "onednn/loops/loops.h"

enum { LANES = 16, COLUMNS = 4, AHEAD = 256 /* elements that are asked for early */ };
/* A thread is worth it for this many weights. */
enum { GRAIN = 32768 };

typedef struct product_body {
  const onednn_loop_t *loop;
  float *const *data;
} product_body_t;

typedef float lanes_t __attribute__((vector_size(LANES * sizeof(float))));

// Part of the function that it stands in, so that it is compiled for the same instruction sets.
#define PRODUCT_INLINE static inline __attribute__((always_inline))

PRODUCT_INLINE float sum_of(const lanes_t *lanes) {
  float values[LANES];
  memcpy(values, lanes, sizeof(values));
  for (int half = LANES / 2; half > 0; half /= 2) {
    for (int k = 0; k < half; k++) {
      values[k] += values[k + half];
    }
  }
  return values[0];
}

// `rows` rows of x times `columns` rows of w; both numbers are constants where this is inlined.
PRODUCT_INLINE void dots(const float *restrict x, const float *restrict w, int64_t depth, int rows,
                         int columns, float out[ONEDNN_FEW_ROWS][COLUMNS]) {
  lanes_t sums[ONEDNN_FEW_ROWS][COLUMNS];
  memset(sums, 0, sizeof(sums));
  int64_t whole = depth / LANES * LANES;
  for (int64_t k = 0; k < whole; k += LANES) {
    lanes_t values[ONEDNN_FEW_ROWS];
    for (int r = 0; r < rows; r++) {
      memcpy(&values[r], x + r * depth + k, sizeof(lanes_t));
    }
    // Behind the end of these rows come those of the next call.
    const float *ahead = w + k + AHEAD + (k + AHEAD < depth ? 0 : (columns - 1) * depth);
    for (int c = 0; c < columns; c++) {
      lanes_t weights;
      __builtin_prefetch(ahead + c * depth);
      memcpy(&weights, w + c * depth + k, sizeof(weights));
      for (int r = 0; r < rows; r++) {
        sums[r][c] += values[r] * weights;
      }
    }
  }
  for (int r = 0; r < rows; r++) {
    for (int c = 0; c < columns; c++) {
      out[r][c] = sum_of(&sums[r][c]);
      for (int64_t k = whole; k < depth; k++) {
        out[r][c] += x[r * depth + k] * w[c * depth + k];
      }
    }
  }
}

PRODUCT_INLINE void columns_of(const product_body_t *body, int64_t begin, int64_t end, int rows) {
  const int64_t *dims = body->loop->dims;
  bool has_bias = body->loop->rank > 3;
  const float *bias = has_bias ? body->data[2] : NULL;
  float *y = body->data[has_bias ? 3 : 2];
  float out[ONEDNN_FEW_ROWS][COLUMNS];
  for (int64_t n = begin; n < end;) {
    const float *w = body->data[1] + n * dims[2];
    int64_t count = end - n < COLUMNS ? 1 : COLUMNS;
    if (count == COLUMNS) {
      dots(body->data[0], w, dims[2], rows, COLUMNS, out);
    } else {
      dots(body->data[0], w, dims[2], rows, 1, out);
    }
    for (int r = 0; r < rows; r++) {
      for (int64_t c = 0; c < count; c++) {
        y[r * dims[1] + n + c] = out[r][c] + (has_bias ? bias[n + c] : 0.0F);
      }
    }
    n += count;
  }
}

ONEDNN_VECTOR static void product_range(void *opaque, int64_t begin, int64_t end) {
  const product_body_t *body = opaque;
  switch (body->loop->dims[0]) {
    case 1: columns_of(body, begin, end, 1); break;
    case 2: columns_of(body, begin, end, 2); break;
    case 3: columns_of(body, begin, end, 3); break;
    default: columns_of(body, begin, end, 4);
  }
}

bool onednn_loop_product(const onednn_loop_t *loop, const onednn_crew_t *crew, float *const *data) {
  product_body_t body = {.loop = loop, .data = data};
  crew->host->parallel_for(crew->threads, loop->dims[1], GRAIN / (loop->dims[2] + 1) + 1, product_range,
                           &body);
  return true;
}
