// SPDX-License-Identifier: Apache-2.0
/*
 * Conversions between element types, as ONNX Cast defines them: float to integer truncates, integers wrap,
 * anything but zero is true. Where Cast leaves the result open (float out of range, NaN), it saturates, and
 * NaN becomes 0. Float16 and bfloat16 round to nearest even.
 */
#ifndef CLEAVE_KERNELS_CONVERT_H
#define CLEAVE_KERNELS_CONVERT_H

#include <string.h>

#include "cleave/backend.h"

/* Elements converted at a time where a loop goes through a buffer on the stack. */
enum { CPU_BLOCK = 256 };

static inline float cpu_bits_float(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static inline uint32_t cpu_float_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static inline float cpu_half_to_float(uint16_t half) {
  uint32_t magnitude = (uint32_t)(half & 0x7fffu) << 13;
  uint32_t bits = cpu_float_bits(cpu_bits_float(magnitude) * 0x1p112f);
  bits = magnitude >= 0x0f800000u ? magnitude | 0x7f800000u : bits;
  return cpu_bits_float(bits | (uint32_t)(half & 0x8000u) << 16);
}

static inline uint16_t cpu_float_to_half(float value) {
  uint32_t bits = cpu_float_bits(value);
  uint32_t sign = bits & 0x80000000u;
  uint32_t magnitude = bits ^ sign;
  /* Adding a half's smallest denormal times 2^23 lets the addition round a denormal result. */
  uint32_t denormal = cpu_float_bits(cpu_bits_float(magnitude) + 0.5f) - 0x3f000000u;
  uint32_t normal = (magnitude + 0xc8000fffu + ((magnitude >> 13) & 1u)) >> 13;
  uint32_t special = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
  uint32_t half = magnitude >= 0x47800000u ? special : magnitude < 0x38800000u ? denormal : normal;
  return (uint16_t)(half | sign >> 16);
}

static inline float cpu_bfloat_to_float(uint16_t bits) {
  return cpu_bits_float((uint32_t)bits << 16);
}

static inline uint16_t cpu_float_to_bfloat(float value) {
  uint32_t bits = cpu_float_bits(value);
  uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? (bits >> 16 | 0x40u) : rounded);
}

/* Truncates; saturates out of range; NaN gives 0. */
static inline int64_t cpu_f64_to_i64(double value) {
  if (!(value >= -0x1p63)) {
    return value != value ? 0 : INT64_MIN;
  }
  return value >= 0x1p63 ? INT64_MAX : (int64_t)value;
}

/* Converts `count` elements. Neither dtype may be STRING or UNKNOWN. Source and destination may be the same
 * memory where the elements have the same size. */
void cpu_convert(cleave_dtype_t from, const void *source, cleave_dtype_t to, void *destination,
                 int64_t count);

static inline bool cpu_dtype_is_float(cleave_dtype_t dtype) {
  return dtype == CLEAVE_DTYPE_F32 || dtype == CLEAVE_DTYPE_F64 || dtype == CLEAVE_DTYPE_F16 ||
         dtype == CLEAVE_DTYPE_BF16;
}

static inline bool cpu_dtype_is_integer(cleave_dtype_t dtype) {
  return dtype == CLEAVE_DTYPE_U8 || dtype == CLEAVE_DTYPE_I8 || dtype == CLEAVE_DTYPE_U16 ||
         dtype == CLEAVE_DTYPE_I16 || dtype == CLEAVE_DTYPE_I32 || dtype == CLEAVE_DTYPE_I64 ||
         dtype == CLEAVE_DTYPE_U32 || dtype == CLEAVE_DTYPE_U64;
}

/* Every dtype that holds numbers or truth values. */
static inline bool cpu_dtype_is_plain(cleave_dtype_t dtype) {
  return cpu_dtype_is_float(dtype) || cpu_dtype_is_integer(dtype) || dtype == CLEAVE_DTYPE_BOOL;
}

/* Float16 and bfloat16: computed as float. */
static inline bool cpu_dtype_is_short_float(cleave_dtype_t dtype) {
  return dtype == CLEAVE_DTYPE_F16 || dtype == CLEAVE_DTYPE_BF16;
}

#endif /* CLEAVE_KERNELS_CONVERT_H */
