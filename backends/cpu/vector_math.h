/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of one float without branches or calls, so that loops over them are vectorised. Each is within a
 * few units in the last place of the exact result, and treats NaN, infinities and overflow as libm does. Also
 * the marks that loops carry: CPU_VECTOR compiles a function for several instruction sets and picks one when
 * the library is loaded; CPU_INDEPENDENT says that iterations do not depend on each other (output over input
 * is fine).
 */
#ifndef CLEAVE_CPU_VECTOR_MATH_H
#define CLEAVE_CPU_VECTOR_MATH_H

#include <math.h>

#include "convert.h"

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && \
    defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define CPU_VECTOR __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define CPU_VECTOR
#endif

#if defined(__GNUC__) && !defined(__clang__)
#define CPU_INDEPENDENT _Pragma("GCC ivdep")
#else
#define CPU_INDEPENDENT
#endif

/* (exp(r) - 1 - r) / r^2 for |r| <= ln(2) / 2. */
static inline float cpu_exp_tail(float r) {
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  return p * r + 5.0000001201e-1f;
}

static inline float cpu_expf(float x) {
  const float shift = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer in the low bits */
  float clamped = x > 90.0f ? 90.0f : x;
  clamped = clamped < -105.0f ? -105.0f : clamped;
  float shifted = clamped * 1.44269504088896341f + shift;
  float n = shifted - shift;
  float r = (clamped - n * 0.693359375f) - n * -2.12194440e-4f;
  float y = cpu_exp_tail(r) * (r * r) + r + 1.0f;
  /* 2^n in two factors, so that overflow and denormals come out right. */
  int32_t exponent = (int32_t)(cpu_float_bits(shifted) - cpu_float_bits(shift));
  int32_t half = exponent >> 1;
  float first = cpu_bits_float(((uint32_t)half + 127u) << 23);
  float second = cpu_bits_float(((uint32_t)exponent - (uint32_t)half + 127u) << 23);
  return y * first * second;
}

static inline float cpu_expm1f(float x) {
  float small = cpu_exp_tail(x) * (x * x) + x;
  float large = cpu_expf(x) - 1.0f;
  return fabsf(x) < 0.34f ? small : large;
}

static inline float cpu_sigmoidf(float x) {
  return 1.0f / (1.0f + cpu_expf(-x));
}

static inline float cpu_tanhf(float x) {
  float z = x * x;
  float p = -5.70498872745e-3f;
  p = p * z + 2.06390887954e-2f;
  p = p * z - 5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z - 3.33332819422e-1f;
  float small = p * z * x + x;
  float magnitude = fabsf(x);
  float large = copysignf(1.0f - 2.0f / (cpu_expf(2.0f * magnitude) + 1.0f), x);
  return magnitude < 0.625f ? small : magnitude >= 0.625f ? large : x;
}

static inline float cpu_erff(float x) {
  float magnitude = fabsf(x);
  float t = magnitude > 4.0f ? 4.0f : magnitude;
  float s = t * t;
  float r = -1.72853470e-5f * t + 3.83197126e-4f;
  float u = -3.88396438e-3f * t + 2.42546219e-2f;
  r = r * s + u;
  r = r * t - 1.06777877e-1f;
  r = r * t - 6.34846687e-1f;
  r = r * t - 1.28717512e-1f;
  r = r * t - t;
  float large = copysignf(1.0f - cpu_expf(r), x);
  float q = -5.96761703e-4f;
  q = q * s + 4.99119423e-3f;
  q = q * s - 2.67681349e-2f;
  q = q * s + 1.12819925e-1f;
  q = q * s - 3.76125336e-1f;
  q = q * s + 1.28379166e-1f;
  float small = q * x + x;
  return magnitude > 0.927734375f ? large : small;
}

/* log(1 + exp(x)) */
static inline float cpu_softplusf(float x) {
  return (x > 0.0f ? x : 0.0f) + log1pf(cpu_expf(-fabsf(x)));
}

#endif /* CLEAVE_CPU_VECTOR_MATH_H */
