// SPDX-License-Identifier: Apache-2.0
// Loops over rows and windows: largest and smallest elements, softmax, max pooling. A NaN anywhere in a row
// or window is its result. Minimums are maximums of negated numbers.
#include <float.h>
#include <math.h>
#include <stdatomic.h>

#include "onednn/loops/loops.h"

enum { LANES = 16, GRAIN = 16384 };

typedef struct rows_body {
  const onednn_loop_t *loop;
  float *const *data;
} rows_body_t;

static inline float larger(float a, float b) {
  return (b <= a) | (a != a) ? a : b;
}

// sign is 1 for the maximum, -1 for the minimum; `most` holds sign times the extreme.
ONEDNN_VECTOR static float extreme_of_row(const float *x, int64_t count, float sign, float most) {
  float lanes[LANES];
  int64_t whole = count / LANES * LANES;
  for (int j = 0; j < LANES; j++) {
    lanes[j] = most;
  }
  for (int64_t k = 0; k < whole; k += LANES) {
    for (int j = 0; j < LANES; j++) {
      lanes[j] = larger(lanes[j], sign * x[k + j]);
    }
  }
  for (int64_t k = whole; k < count; k++) {
    lanes[0] = larger(lanes[0], sign * x[k]);
  }
  for (int j = 0; j < LANES; j++) {
    most = larger(most, lanes[j]);
  }
  return most;
}

ONEDNN_VECTOR static void extreme_of_each(const float *restrict x, float *restrict y, int64_t count,
                                          float sign) {
  for (int64_t k = 0; k < count; k++) {
    y[k] = sign * larger(sign * y[k], sign * x[k]);
  }
}

// Slices [begin, end) of the first dimension, which is kept, or all of it.
static void extreme_range(void *opaque, int64_t begin, int64_t end) {
  const rows_body_t *body = opaque;
  const onednn_loop_t *loop = body->loop;
  const int64_t *steps = loop->strides[1];
  int32_t last = loop->rank - 1;
  float sign = loop->algorithm == dnnl_reduction_min ? -1.0F : 1.0F;
  int64_t row = loop->dims[last];
  int64_t rows = 1;
  int64_t results = 1;
  for (int32_t d = 1; d <= last; d++) {
    rows *= d < last ? loop->dims[d] : 1;
    results *= steps[d] != 0 ? loop->dims[d] : 1;
  }
  // One dimension alone: its only row.
  int64_t slices = last == 0 ? 1 : end - begin;
  const float *x = body->data[0] + (last == 0 ? begin : begin * rows * row);
  float *y = body->data[1] + begin * steps[0];
  for (int64_t k = 0; k < (steps[0] != 0 ? slices * results : results); k++) {
    y[k] = sign * -INFINITY;
  }
  for (int64_t k = 0; k < slices * rows; k++) {
    int64_t rest = k;
    int64_t at = 0;
    for (int32_t d = last; d-- > 0;) {
      int64_t size = d == 0 ? slices : loop->dims[d];
      at += rest % size * steps[d];
      rest /= size;
    }
    if (steps[last] != 0) {
      extreme_of_each(x, y + at, row, sign);
    } else {
      y[at] = sign * extreme_of_row(x, row, sign, sign * y[at]);
    }
    x += row;
  }
}

bool onednn_loop_extreme(const onednn_loop_t *loop, const onednn_crew_t *crew, float *const *data) {
  rows_body_t body = {.loop = loop, .data = data};
  int64_t slice = 1;
  for (int32_t d = 1; d < loop->rank; d++) {
    slice *= loop->dims[d];
  }
  if (loop->strides[1][0] != 0 && loop->rank > 1) {
    crew->host->parallel_for(crew->threads, loop->dims[0], GRAIN / slice + 1, extreme_range, &body);
  } else {
    extreme_range(&body, 0, loop->dims[0]);
  }
  return true;
}

static void softmax_range(void *opaque, int64_t begin, int64_t end) {
  const rows_body_t *body = opaque;
  const onednn_loop_t *loop = body->loop;
  bool logarithm = loop->algorithm == dnnl_softmax_log;
  int64_t count = loop->dims[1];
  int64_t step = loop->dims[2];
  for (int64_t r = begin; r < end; r++) {
    int64_t start = r / step * count * step + r % step;
    const float *x = body->data[0] + start;
    float *y = body->data[1] + start;
    float most = -INFINITY;
    double sum = 0;
    for (int64_t k = 0; k < count; k++) {
      most = larger(most, x[k * step]);
    }
    if (most == -INFINITY) {
      for (int64_t k = 0; k < count; k++) {
        y[k * step] = loop->alpha;
      }
      continue;
    }
    for (int64_t k = 0; k < count; k++) {
      float e = expf(x[k * step] - most);
      sum += (double)e;
      y[k * step] = logarithm ? x[k * step] - most : e;
    }
    for (int64_t k = 0; k < count; k++) {
      double e = (double)y[k * step];
      y[k * step] = (float)(logarithm ? e - log(sum) : e / sum);
    }
  }
}

bool onednn_loop_softmax(const onednn_loop_t *loop, const onednn_crew_t *crew, float *const *data) {
  rows_body_t body = {.loop = loop, .data = data};
  crew->host->parallel_for(crew->threads, loop->dims[0] * loop->dims[2], GRAIN / loop->dims[1] + 1,
                           softmax_range, &body);
  return true;
}

// The elements [first, last) of one dimension that the window at `at` covers, in steps of `step`.
// Wide: numbers of one formula.
static void cover(const onednn_window_t *window, int32_t d, int64_t at, int64_t size, int64_t *first,
                  int64_t *last, int64_t *step) {
  int64_t begin = at * window->strides[d] - window->pad_begin[d];
  *step = window->dilations[d] + 1;
  int64_t end = begin + window->kernel[d] * *step;
  *first = begin < 0 ? begin + (-begin + *step - 1) / *step * *step : begin;
  *last = end < size ? end : size;
}

static float largest_in_window(const onednn_loop_t *loop, const float *x, const int64_t *at) {
  const int64_t *size = loop->strides[0];
  int64_t first[3];
  int64_t last[3];
  int64_t step[3];
  float most = -INFINITY;
  for (int32_t d = 0; d < 3; d++) {
    cover(&loop->window, d, at[d], size[d], &first[d], &last[d], &step[d]);
  }
  for (int64_t i = first[0]; i < last[0]; i += step[0]) {
    for (int64_t j = first[1]; j < last[1]; j += step[1]) {
      for (int64_t k = first[2]; k < last[2]; k += step[2]) {
        most = larger(most, x[(i * size[1] + j) * size[2] + k]);
      }
    }
  }
  return most;
}

static void max_pool_range(void *opaque, int64_t begin, int64_t end) {
  const rows_body_t *body = opaque;
  const int64_t *from = body->loop->strides[0];
  const int64_t *to = body->loop->strides[1];
  for (int64_t plane = begin; plane < end; plane++) {
    const float *x = body->data[0] + plane * from[0] * from[1] * from[2];
    float *y = body->data[1] + plane * to[0] * to[1] * to[2];
    for (int64_t i = 0; i < to[0]; i++) {
      for (int64_t j = 0; j < to[1]; j++) {
        for (int64_t k = 0; k < to[2]; k++) {
          *y++ = largest_in_window(body->loop, x, (const int64_t[3]){i, j, k});
        }
      }
    }
  }
}

bool onednn_loop_max_pool(const onednn_loop_t *loop, const onednn_crew_t *crew, float *const *data) {
  rows_body_t body = {.loop = loop, .data = data};
  crew->host->parallel_for(crew->threads, loop->dims[0], 1, max_pool_range, &body);
  return true;
}

typedef struct watch_body {
  const void *x;
  uint16_t lowest;
  atomic_bool found;
} watch_body_t;

// No element depends on another, so that the loops are as fast as memory.
ONEDNN_VECTOR static bool holds_lowest(const float *x, int64_t count) {
  int32_t found = 0;
  for (int64_t k = 0; k < count; k++) {
    found |= x[k] <= -FLT_MAX ? 1 : 0;
  }
  return found != 0;
}

ONEDNN_VECTOR static bool holds_bits(const uint16_t *x, uint16_t bits, int64_t count) {
  uint16_t found = 0;
  for (int64_t k = 0; k < count; k++) {
    found |= x[k] == bits ? 1 : 0;
  }
  return found != 0;
}

static void watch_range(void *opaque, int64_t begin, int64_t end) {
  watch_body_t *body = opaque;
  if (holds_lowest((const float *)body->x + begin, end - begin)) {
    atomic_store_explicit(&body->found, true, memory_order_relaxed);
  }
}

static void watch_short_range(void *opaque, int64_t begin, int64_t end) {
  watch_body_t *body = opaque;
  if (holds_bits((const uint16_t *)body->x + begin, body->lowest, end - begin)) {
    atomic_store_explicit(&body->found, true, memory_order_relaxed);
  }
}

bool onednn_loop_watch(const onednn_loop_t *loop, const onednn_crew_t *crew, float *const *data) {
  watch_body_t body = {.x = data[0]};
  atomic_init(&body.found, false);
  crew->host->parallel_for(crew->threads, loop->dims[0], 4 * (int64_t)GRAIN, watch_range, &body);
  return !atomic_load(&body.found);
}

bool onednn_loop_watch_short(const onednn_loop_t *loop, const onednn_crew_t *crew, float *const *data) {
  watch_body_t body = {.x = data[0], .lowest = loop->lowest};
  atomic_init(&body.found, false);
  crew->host->parallel_for(crew->threads, loop->dims[0], 8 * (int64_t)GRAIN, watch_short_range, &body);
  return !atomic_load(&body.found);
}
