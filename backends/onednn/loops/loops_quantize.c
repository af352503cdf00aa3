// SPDX-License-Identifier: Apache-2.0
// Numbers as 8-bit integers. Neither branches nor calls inside the loops, so that they are vectorised; signs
// are parameters of functions that are compiled once for each.
#include <math.h>
#include <string.h>

#include "onednn/loops/loops.h"

enum { GRAIN = 16384 };

typedef struct work {
  const onednn_bytes_loop_t *bytes;
  float *const *data;
} work_t;

// 1.5 * 2^23: adding it leaves the nearest integer, ties to even, in the low bits, of numbers below 2^22.
static const float rounder = 12582912.0F;

// The integers that a type can hold, less the zero point. Bounds are variables: between constants the
// compiler sees that one comparison decides the next, and makes branches of them that it does not vectorise.
typedef struct bounds {
  float low;
  float high;
} bounds_t;

static inline bounds_t bounds_of(const onednn_bytes_t *to) {
  return (bounds_t){(to->is_signed ? -128.0F : 0.0F) - to->zero,
                    (to->is_signed ? 127.0F : 255.0F) - to->zero};
}

// To the nearest integer within bounds, which are integers themselves. NaN is the lowest.
static inline float rounded(float x, bounds_t bounds) {
  float y = x > bounds.low ? x : bounds.low;
  y = y < bounds.high ? y : bounds.high;
  return (y + rounder) - rounder;
}

ONEDNN_VECTOR static void read_signed(const int8_t *x, float *y, int64_t count, float scale, float zero) {
  for (int64_t k = 0; k < count; k++) {
    y[k] = ((float)x[k] - zero) * scale;
  }
}

ONEDNN_VECTOR static void read_unsigned(const uint8_t *x, float *y, int64_t count, float scale, float zero) {
  for (int64_t k = 0; k < count; k++) {
    y[k] = ((float)x[k] - zero) * scale;
  }
}

static void dequantize_range(void *opaque, int64_t begin, int64_t end) {
  const work_t *work = opaque;
  const onednn_bytes_t *from = &work->bytes->operands[0];
  if (from->is_signed) {
    read_signed((const int8_t *)work->data[0] + begin, work->data[1] + begin, end - begin, from->scale,
                from->zero);
  } else {
    read_unsigned((const uint8_t *)work->data[0] + begin, work->data[1] + begin, end - begin, from->scale,
                  from->zero);
  }
}

// Integers as bytes, of either sign: the lowest eight bits. Inputs of users may be unaligned.
ONEDNN_VECTOR static void write_bytes(const void *x, uint8_t *y, int64_t count, const onednn_bytes_t *to) {
  const float scale = to->scale;
  const float zero = to->zero;
  const bounds_t bounds = bounds_of(to);
  for (int64_t k = 0; k < count; k++) {
    float number;
    memcpy(&number, (const char *)x + k * (int64_t)sizeof number, sizeof number);
    y[k] = (uint8_t)(int32_t)(rounded(number / scale, bounds) + zero);
  }
}

static void quantize_range(void *opaque, int64_t begin, int64_t end) {
  const work_t *work = opaque;
  write_bytes(work->data[0] + begin, (uint8_t *)work->data[1] + begin, end - begin,
              &work->bytes->operands[0]);
}

#define ADD(name, left_t, right_t)                                                             \
  ONEDNN_VECTOR static void name(const left_t *a, const right_t *b, uint8_t *y, int64_t count, \
                                 const onednn_bytes_loop_t *bytes) {                           \
    const onednn_bytes_t l = bytes->operands[0];                                               \
    const onednn_bytes_t r = bytes->operands[1];                                               \
    const onednn_bytes_t to = bytes->operands[2];                                              \
    const float least = bytes->least;                                                          \
    const bounds_t bounds = bounds_of(&to);                                                    \
    for (int64_t k = 0; k < count; k++) {                                                      \
      float sum = ((float)a[k] - l.zero) * l.scale + ((float)b[k] - r.zero) * r.scale;         \
      sum = sum > least ? sum : least;                                                         \
      y[k] = (uint8_t)(int32_t)(rounded(sum / to.scale, bounds) + to.zero);                    \
    }                                                                                          \
  }

ADD(add_unsigned, uint8_t, uint8_t)
ADD(add_signed, int8_t, int8_t)
ADD(add_mixed, uint8_t, int8_t)

static void add_range(void *opaque, int64_t begin, int64_t end) {
  const work_t *work = opaque;
  const onednn_bytes_loop_t *bytes = work->bytes;
  const uint8_t *a = (const uint8_t *)work->data[0] + begin;
  const uint8_t *b = (const uint8_t *)work->data[1] + begin;
  uint8_t *y = (uint8_t *)work->data[2] + begin;
  if (bytes->operands[0].is_signed) {
    add_signed((const int8_t *)a, (const int8_t *)b, y, end - begin, bytes);
  } else if (bytes->operands[1].is_signed) {
    add_mixed(a, (const int8_t *)b, y, end - begin, bytes);
  } else {
    add_unsigned(a, b, y, end - begin, bytes);
  }
}

static bool run(const onednn_loop_t *loop, const onednn_crew_t *crew, float *const *data,
                void (*range)(void *opaque, int64_t begin, int64_t end)) {
  work_t work = {.bytes = loop->context, .data = data};
  crew->host->parallel_for(crew->threads, loop->dims[0], GRAIN, range, &work);
  return true;
}

bool onednn_loop_dequantize(const onednn_loop_t *loop, const onednn_crew_t *crew, float *const *data) {
  return run(loop, crew, data, dequantize_range);
}

bool onednn_loop_quantize(const onednn_loop_t *loop, const onednn_crew_t *crew, float *const *data) {
  return run(loop, crew, data, quantize_range);
}

bool onednn_loop_add_bytes(const onednn_loop_t *loop, const onednn_crew_t *crew, float *const *data) {
  return run(loop, crew, data, add_range);
}
