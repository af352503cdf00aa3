// SPDX-License-Identifier: Apache-2.0
/* Vectors of KERNEL_LANES floats, 16 for AVX-512 or else 8, and rows of a panel of two vectors of eight. */
#ifndef CLEAVE_KERNELS_VECTORS_H
#define CLEAVE_KERNELS_VECTORS_H

#include <string.h>

#include "kernels/matrix/matrix.h"

#ifndef KERNEL_LANES
#define KERNEL_LANES 8
#endif

#if KERNEL_LANES == 16 && defined(__AVX512F__)
#include <immintrin.h>
#endif

enum { PANEL = KERNEL_MATRIX_PANEL, HALF = PANEL / 2 };

typedef float vector_t __attribute__((vector_size(KERNEL_LANES * sizeof(float))));
typedef int32_t mask_t __attribute__((vector_size(KERNEL_LANES * sizeof(float))));

#define TILE_INLINE static inline __attribute__((always_inline))

TILE_INLINE vector_t load(const float *from) {
  vector_t out;
  memcpy(&out, from, sizeof(out));
  return out;
}

/* A value that several operations use: it is loaded once, not by each of them. */
TILE_INLINE vector_t once(vector_t value) {
#if KERNEL_LANES == 16 && defined(__AVX512F__)
  __asm__("" : "+v"(value));
#endif
  return value;
}

TILE_INLINE void store(float *to, vector_t value) {
  memcpy(to, &value, sizeof(value));
}

TILE_INLINE vector_t choose(mask_t mask, vector_t yes, vector_t no) {
  return (vector_t)((mask & (mask_t)yes) | (~mask & (mask_t)no));
}

TILE_INLINE vector_t all(float value) {
#if KERNEL_LANES == 16
  return (vector_t){value, value, value, value, value, value, value, value,
                    value, value, value, value, value, value, value, value};
#else
  return (vector_t){value, value, value, value, value, value, value, value};
#endif
}

/* A NaN stays. */
TILE_INLINE vector_t bounded(vector_t value, vector_t low, vector_t high) {
#if KERNEL_LANES == 16 && defined(__AVX512F__)
  return (vector_t)_mm512_min_ps((__m512)high, _mm512_max_ps((__m512)low, (__m512)value));
#else
  value = choose(value < low, low, value);
  return choose(value > high, high, value);
#endif
}

#if KERNEL_LANES == 8
/* 16 floats, of which `width` are there. */
TILE_INLINE void load_row(const float *from, int64_t width, vector_t out[2]) {
  float row[PANEL] = {0};
  if (width < PANEL) {
    memcpy(row, from, (size_t)width * sizeof(float));
    from = row;
  }
  out[0] = load(from);
  out[1] = load(from + HALF);
}

TILE_INLINE void store_row(float *to, int64_t width, const vector_t values[2]) {
  float row[PANEL];
  memcpy(width < PANEL ? row : to, values, sizeof(row));
  if (width < PANEL) {
    memcpy(to, row, (size_t)width * sizeof(float));
  }
}
#endif

#endif /* CLEAVE_KERNELS_VECTORS_H */
