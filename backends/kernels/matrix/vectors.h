// SPDX-License-Identifier: Apache-2.0
/* Vectors of KERNEL_LANES floats, 16 for AVX-512 or else 8, and rows of a panel of two vectors of eight. */
#ifndef CLEAVE_KERNELS_VECTORS_H
#define CLEAVE_KERNELS_VECTORS_H

#include <stddef.h>
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

/* The first `width` numbers, and zeros; a width below 1 is none, and one above KERNEL_LANES all. */
TILE_INLINE vector_t load_some(const float *from, int64_t width) {
  width = width < 0 ? 0 : width;
  if (width >= KERNEL_LANES) {
    return load(from);
  }
#if KERNEL_LANES == 16 && defined(__AVX512F__)
  return (vector_t)_mm512_maskz_loadu_ps((__mmask16)((1U << width) - 1U), from);
#else
  vector_t out = all(0);
  memcpy(&out, from, (size_t)width * sizeof(float));
  return out;
#endif
}

TILE_INLINE void store_some(float *to, vector_t value, int64_t width) {
  width = width < 0 ? 0 : width;
  if (width >= KERNEL_LANES) {
    store(to, value);
    return;
  }
#if KERNEL_LANES == 16 && defined(__AVX512F__)
  _mm512_mask_storeu_ps(to, (__mmask16)((1U << width) - 1U), (__m512)value);
#else
  memcpy(to, &value, (size_t)width * sizeof(float));
#endif
}

/* A row of so many vectors, of which `width` floats are there. */
TILE_INLINE void load_row(const float *from, int64_t width, vector_t *out, const int vectors) {
#pragma GCC unroll 4
  for (int v = 0; v < vectors; v++) {
    out[v] = load_some(from + (ptrdiff_t)v * KERNEL_LANES, width - (ptrdiff_t)v * KERNEL_LANES);
  }
}

TILE_INLINE void store_row(float *to, int64_t width, const vector_t *values, const int vectors) {
#pragma GCC unroll 4
  for (int v = 0; v < vectors; v++) {
    store_some(to + (ptrdiff_t)v * KERNEL_LANES, values[v], width - (ptrdiff_t)v * KERNEL_LANES);
  }
}

#endif /* CLEAVE_KERNELS_VECTORS_H */
