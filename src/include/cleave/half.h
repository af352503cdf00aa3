// SPDX-License-Identifier: Apache-2.0
/*
 * Float16 (IEEE 754 binary16) and bfloat16 as 16 bits, to and from float: rounded to nearest even; a NaN
 * stays one. Without branches, so that loops over them become vector code. Plain C; everything is inline.
 */
#ifndef CLEAVE_HALF_H
#define CLEAVE_HALF_H

#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

static inline float cleave_bits_to_float(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static inline uint32_t cleave_float_to_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static inline float cleave_half_to_float(uint16_t half) {
  uint32_t magnitude = (uint32_t)(half & 0x7fffu) << 13;
  uint32_t bits = cleave_float_to_bits(cleave_bits_to_float(magnitude) *
                                       5192296858534827628530496329220096.0f); /* 2^112 */
  bits = magnitude >= 0x0f800000u ? magnitude | 0x7f800000u : bits;
  return cleave_bits_to_float(bits | (uint32_t)(half & 0x8000u) << 16);
}

static inline uint16_t cleave_float_to_half(float value) {
  uint32_t bits = cleave_float_to_bits(value);
  uint32_t sign = bits & 0x80000000u;
  uint32_t magnitude = bits ^ sign;
  /* Adding a half's smallest denormal times 2^23 lets the addition round a denormal result. */
  uint32_t denormal = cleave_float_to_bits(cleave_bits_to_float(magnitude) + 0.5f) - 0x3f000000u;
  uint32_t normal = (magnitude + 0xc8000fffu + ((magnitude >> 13) & 1u)) >> 13;
  uint32_t special = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
  uint32_t half = magnitude >= 0x47800000u ? special : magnitude < 0x38800000u ? denormal : normal;
  return (uint16_t)(half | sign >> 16);
}

static inline float cleave_bfloat_to_float(uint16_t bits) {
  return cleave_bits_to_float((uint32_t)bits << 16);
}

static inline uint16_t cleave_float_to_bfloat(float value) {
  uint32_t bits = cleave_float_to_bits(value);
  uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? (bits >> 16 | 0x40u) : rounded);
}

#ifdef __cplusplus
}
#endif

#endif /* CLEAVE_HALF_H */
