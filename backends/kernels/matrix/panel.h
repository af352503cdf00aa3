// SPDX-License-Identifier: Apache-2.0
/* Panels of 16 numbers of which some may be there, in files that are compiled for AVX-512. */
#ifndef CLEAVE_KERNELS_PANEL_H
#define CLEAVE_KERNELS_PANEL_H

#define KERNEL_LANES 16
#include "kernels/matrix/activation.h"
#include "kernels/matrix/vectors.h"

/* The first `width` numbers, and zeros. */
TILE_INLINE vector_t load_some(const float *from, int64_t width) {
#if defined(__AVX512F__)
  return (vector_t)_mm512_maskz_loadu_ps((__mmask16)((1U << width) - 1U), from);
#else
  vector_t out = all(0);
  memcpy(&out, from, (size_t)width * sizeof(float));
  return out;
#endif
}

TILE_INLINE void store_some(float *to, vector_t value, int64_t width) {
#if defined(__AVX512F__)
  _mm512_mask_storeu_ps(to, (__mmask16)((1U << width) - 1U), (__m512)value);
#else
  memcpy(to, &value, (size_t)width * sizeof(float));
#endif
}

TILE_INLINE vector_t keep_some(vector_t value, int64_t width) {
#if defined(__AVX512F__)
  return (vector_t)_mm512_maskz_mov_ps((__mmask16)((1U << width) - 1U), (__m512)value);
#else
  vector_t out = all(0);
  memcpy(&out, &value, (size_t)width * sizeof(float));
  return out;
#endif
}

/* 1 / value for normal numbers, within two units in the last place. */
TILE_INLINE vector_t inverse(vector_t value) {
#if defined(__AVX512F__)
  vector_t first = (vector_t)_mm512_rcp14_ps((__m512)value);
  return first + first * (all(1.0F) - value * first);
#else
  return all(1.0F) / value;
#endif
}

/* 1 / (1 + exp(z)). Where z is above 87 the result is below the smallest normal float times 100, and becomes
 * 0; a NaN stays. */
TILE_INLINE vector_t logistic(vector_t z) {
  const vector_t shift = all(12582912.0F); /* 1.5 * 2^23: adding it rounds to an integer in the low bits */
  vector_t clamped = bounded(z, all(-87.0F), all(87.0F));
  vector_t shifted = clamped * all(1.44269504088896341F) + shift;
  vector_t n = shifted - shift;
  vector_t r = (clamped - n * all(0.693359375F)) - n * all(-2.12194440e-4F);
  vector_t p = all(1.382063376e-3F);
  p = p * r + all(8.368673734e-3F);
  p = p * r + all(4.166826606e-2F);
  p = p * r + all(1.666652113e-1F);
  p = p * r + all(4.999999404e-1F);
  p = (p * r + all(1.0F)) * r + all(1.0F);
#if defined(__AVX512F__)
  vector_t power = (vector_t)_mm512_scalef_ps((__m512)p, (__m512)n);
  __mmask16 is_far = _mm512_cmp_ps_mask((__m512)z, _mm512_set1_ps(87.0F), _CMP_GT_OQ);
  __m512 gate = (__m512)inverse(all(1.0F) + power);
  return (vector_t)_mm512_mask_blend_ps(is_far, gate, _mm512_setzero_ps());
#else
  vector_t power = (vector_t)((mask_t)p + ((mask_t)shifted << 23));
  vector_t gate = choose(z > all(87.0F), all(0.0F), inverse(all(1.0F) + power));
  return choose(z == z, gate, z);
#endif
}

/* Stores the first `width` numbers. `is_filled`: and zeros behind them, whatever was multiplied there. */
TILE_INLINE void finish(const kernel_activation_t *activation, float *to, vector_t value, int64_t width,
                        bool is_filled) {
  value = bounded(value, all(activation->low), all(activation->high));
  if (activation->kind == KERNEL_SWISH) {
    value *= logistic(value * all(-activation->alpha));
  } else if (activation->kind == KERNEL_SIGMOID) {
    value = logistic(value * all(-activation->alpha));
  } else if (activation->kind == KERNEL_GATE) {
    value *= bounded(value * all(activation->alpha) + all(activation->beta), all(0.0F), all(1.0F));
  }
  if (width < PANEL && is_filled) {
    store(to, keep_some(value, width));
  } else if (width < PANEL) {
    store_some(to, value, width);
  } else {
    store(to, value);
  }
}

#endif /* CLEAVE_KERNELS_PANEL_H */
