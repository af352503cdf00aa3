// SPDX-License-Identifier: Apache-2.0
/* Seeded numbers: element k depends on the seed and k alone (a counter-based generator), so threads do not
 * matter. */
#include <math.h>

#include "base/hash.h"
#include "system/threads.h"
#include "tensor/tensor.h"

typedef struct fill {
  cleave_tensor_t *tensor;
  uint64_t seed;
  double a; /* mean, or low */
  double b; /* deviation, or high */
} fill_t;

/* Two independent normal numbers out of one 64-bit draw (Box and Muller, 1958). */
static void normal_pair(uint64_t seed, uint64_t counter, float out[2]) {
  uint64_t bits = cleave_hash_combine(seed, counter);
  float u = ((float)(uint32_t)(bits >> 40) + 1.0f) * 0x1p-24f;
  float v = (float)(uint32_t)(bits & 0xffffff) * 0x1p-24f;
  float radius = sqrtf(-2.0f * logf(u));
  float angle = 6.28318530717958647692f * v;
  out[0] = radius * cosf(angle);
  out[1] = radius * sinf(angle);
}

static void fill_normal_range(void *context, int64_t begin, int64_t end) {
  const fill_t *fill = context;
  for (int64_t pair = begin; pair < end; pair++) {
    float values[2];
    normal_pair(fill->seed, (uint64_t)pair, values);
    for (int64_t k = 0; k < 2 && 2 * pair + k < fill->tensor->count; k++) {
      cleave_tensor_set_float(fill->tensor, 2 * pair + k, fill->a + fill->b * (double)values[k]);
    }
  }
}

static void fill_uniform_range(void *context, int64_t begin, int64_t end) {
  const fill_t *fill = context;
  for (int64_t k = begin; k < end; k++) {
    double unit = (double)(cleave_hash_combine(fill->seed, (uint64_t)k) >> 11) * 0x1p-53;
    double value = fill->a + (fill->b - fill->a) * unit;
    if (fill->tensor->dtype == CLEAVE_DTYPE_BOOL) {
      value = unit < 0.5 ? 0.0 : 1.0;
    }
    bool is_integer = cleave_dtype_is_integer(fill->tensor->dtype);
    cleave_tensor_set_float(fill->tensor, k, is_integer ? floor(value) : value);
  }
}

void cleave_tensor_fill_normal(cleave_tensor_t *tensor, uint64_t seed, double mean, double deviation) {
  fill_t fill = {tensor, cleave_hash_combine(CLEAVE_HASH_SEED, seed), mean, deviation};
  cleave_parallel_for(cleave_threads_available(), (tensor->count + 1) / 2, 1 << 15, fill_normal_range, &fill);
  cleave_tensor_touch(tensor);
}

void cleave_tensor_fill_uniform(cleave_tensor_t *tensor, uint64_t seed, double low, double high) {
  fill_t fill = {tensor, cleave_hash_combine(CLEAVE_HASH_SEED, seed), low, high};
  cleave_parallel_for(cleave_threads_available(), tensor->count, 1 << 16, fill_uniform_range, &fill);
  cleave_tensor_touch(tensor);
}
