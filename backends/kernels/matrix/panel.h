// SPDX-License-Identifier: Apache-2.0
/* Panels of 16 numbers of which some may be there, in files that are compiled for AVX-512. */
#ifndef CLEAVE_KERNELS_PANEL_H
#define CLEAVE_KERNELS_PANEL_H

#include <math.h>

#define KERNEL_LANES 16
#include "kernels/matrix/activation.h"
#include "kernels/matrix/vectors.h"

TILE_INLINE vector_t keep_some(vector_t value, int64_t width) {
#if defined(__AVX512F__)
  return (vector_t)_mm512_maskz_mov_ps((__mmask16)((1U << width) - 1U), (__m512)value);
#else
  vector_t out = all(0);
  memcpy(&out, &value, (size_t)width * sizeof(float));
  return out;
#endif
}

/* x / (1 + exp(z)), within four units in the last place. Where z is above 87 the result is below the smallest
 * normal float times 100 x, and becomes 0 x; a NaN stays. */
TILE_INLINE vector_t gated(vector_t x, vector_t z) {
#if defined(__AVX512F__)
  // exp(z) is 2^(n / 16) exp(r) with |r| <= ln 2 / 32. A register has the bits of 2^(k / 16), less k << 19,
  // which is what the bits of n, shifted to the exponent, have too much.
  const __m512i roots = _mm512_setr_epi32(
      0x3f800000, 0x3f7daac3, 0x3f7b95c2, 0x3f79c3d3, 0x3f7837f0, 0x3f76f532, 0x3f75fed7, 0x3f75583f,
      0x3f7504f3, 0x3f7508a4, 0x3f75672a, 0x3f76248c, 0x3f7744fd, 0x3f78ccdf, 0x3f7ac0c7, 0x3f7d257d);
  const vector_t shift = all(12582912.0F); /* 1.5 * 2^23: adding it rounds to an integer in the low bits */
  vector_t clamped = bounded(z, all(-87.0F), all(87.0F));
  vector_t shifted = clamped * all(16 * 1.44269504088896341F) + shift;
  vector_t n = shifted - shift;
  vector_t r = (clamped - n * all(0.693359375F / 16)) - n * all(-2.12194440e-4F / 16);
  vector_t p = ((r * all(1.66666667e-1F) + all(0.5F)) * r + all(1.0F)) * r; /* exp(r) - 1 */
  __m512i bits = _mm512_castps_si512((__m512)shifted);
  __m512i root = _mm512_permutexvar_epi32(bits, roots);
  vector_t power = (vector_t)_mm512_castsi512_ps(_mm512_add_epi32(root, _mm512_slli_epi32(bits, 19)));
  vector_t sum = all(1.0F) + (power * p + power);
  vector_t first = (vector_t)_mm512_rcp14_ps((__m512)sum);
  vector_t error = all(1.0F) - sum * first;
  __mmask16 is_near = _mm512_cmp_ps_mask((__m512)z, _mm512_set1_ps(87.0F), _CMP_NGT_UQ);
  return x * (vector_t)_mm512_maskz_fmadd_ps(is_near, (__m512)first, (__m512)error, (__m512)first);
#else
  for (int k = 0; k < KERNEL_LANES; k++) {
    x[k] *= z[k] > 87.0F ? 0.0F : 1.0F / (1.0F + expf(z[k]));
  }
  return x;
#endif
}

/* Stores the first `width` numbers. `is_filled`: and zeros behind them, whatever was multiplied there. */
TILE_INLINE void finish(const kernel_activation_t *activation, float *to, vector_t value, int64_t width,
                        bool is_filled) {
  if (activation->kind == KERNEL_BOUNDS) {
    value = bounded(value, all(activation->low), all(activation->high));
  } else if (activation->kind == KERNEL_SWISH) {
    value = gated(value, value * all(-activation->alpha));
  } else if (activation->kind == KERNEL_SIGMOID) {
    value = gated(all(1.0F), value * all(-activation->alpha));
  } else {
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
