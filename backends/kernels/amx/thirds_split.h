// SPDX-License-Identifier: Apache-2.0
/* float32 numbers as sums of three bfloat16 numbers, in files that are compiled for AVX-512. */
#ifndef CLEAVE_KERNELS_THIRDS_SPLIT_H
#define CLEAVE_KERNELS_THIRDS_SPLIT_H

#include <immintrin.h>

/* The bits above the middle of two vectors, those of `a` below those of `b` in each pair. */
static inline __m512i upper_halves(__m512i a, __m512i b) {
  return _mm512_mask_blend_epi16(0xaaaaaaaaU, _mm512_srli_epi32(a, 16), b);
}

/* The nearest bfloat16 number, as the bits of a float32 one whose lower half counts for nothing; halves away
 * from zero. */
static inline __m512i nearest(__m512 x) {
  return _mm512_add_epi32(_mm512_castps_si512(x), _mm512_set1_epi32(0x8000));
}

static inline __m512 without(__m512 x, __m512i near) {
  const __m512i upper = _mm512_set1_epi32((int)0xffff0000U);
  return _mm512_sub_ps(x, _mm512_castsi512_ps(_mm512_and_si512(near, upper)));
}

/* Stores the thirds of a and b, pairs of a number of each, largest thirds first, so many bytes apart. What is
 * left behind the second third has eight bits: the last one is exact. */
static inline void split(__m512 a, __m512 b, unsigned char *to, ptrdiff_t apart) {
  for (int k = 0; k < 2; k++) {
    __m512i near_a = nearest(a);
    __m512i near_b = nearest(b);
    _mm512_store_si512(to + k * apart, upper_halves(near_a, near_b));
    a = without(a, near_a);
    b = without(b, near_b);
  }
  _mm512_store_si512(to + 2 * apart, upper_halves(_mm512_castps_si512(a), _mm512_castps_si512(b)));
}

/* The first `count` of 16 numbers, which may be negative or more than there are. */
static inline __mmask16 thirds_mask(int64_t count) {
  const unsigned lanes = count >= 16 ? 16 : count <= 0 ? 0 : (unsigned)count;
  return (__mmask16)((1U << lanes) - 1U);
}

#endif /* CLEAVE_KERNELS_THIRDS_SPLIT_H */
