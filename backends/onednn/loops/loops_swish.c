// SPDX-License-Identifier: Apache-2.0
// Swish. oneDNN's generated code takes twice the time of this loop. Neither branches nor calls, so that it is
// vectorised; no flag is raised unless the result is a NaN.
#include <string.h>

#include "onednn/loops/loops.h"

enum { GRAIN = 8192 };

static inline uint32_t bits_of(float x) {
  uint32_t bits = 0;
  memcpy(&bits, &x, sizeof(bits));
  return bits;
}

static inline float float_of(uint32_t bits) {
  float x = 0;
  memcpy(&x, &bits, sizeof(x));
  return x;
}

// x / (1 + exp(z)) with z = -alpha x. Where z is above 87 the result is below the smallest normal float times
// 100, and becomes 0. Comparisons are of bits: they take NaN for a large number.
static inline float swish_of(float x, float z) {
  const float shift = 12582912.0F;     // 1.5 * 2^23: adding it rounds to an integer in the low bits
  const uint32_t limit = 0x42ae0000U;  // 87
  uint32_t magnitude = bits_of(z) & 0x7fffffffU;
  uint32_t least = magnitude < limit ? magnitude : limit;
  float clamped = float_of(least | (bits_of(z) & 0x80000000U));
  float shifted = clamped * 1.44269504088896341F + shift;
  float n = shifted - shift;
  float r = (clamped - n * 0.693359375F) - n * -2.12194440e-4F;
  float p = 1.382063376e-3F;
  p = p * r + 8.368673734e-3F;
  p = p * r + 4.166826606e-2F;
  p = p * r + 1.666652113e-1F;
  p = p * r + 4.999999404e-1F;
  p = (p * r + 1.0F) * r + 1.0F;
  float power = float_of(bits_of(p) + (bits_of(shifted) << 23));
  float y = x / (1.0F + power);
  return (int32_t)bits_of(z) > (int32_t)limit ? 0.0F * x : y;
}

ONEDNN_VECTOR static void swish(const float *x, float *y, int64_t count, float alpha) {
  for (int64_t k = 0; k < count; k++) {
    y[k] = swish_of(x[k], -alpha * x[k]);
  }
}

typedef struct swish_body {
  float *const *data;
  float alpha;
} swish_body_t;

static void swish_range(void *opaque, int64_t begin, int64_t end) {
  const swish_body_t *body = opaque;
  swish(body->data[0] + begin, body->data[1] + begin, end - begin, body->alpha);
}

bool onednn_loop_swish(const onednn_loop_t *loop, const onednn_crew_t *crew, float *const *data) {
  swish_body_t body = {.data = data, .alpha = loop->alpha};
  crew->host->parallel_for(crew->threads, loop->dims[0], GRAIN, swish_range, &body);
  return true;
}
