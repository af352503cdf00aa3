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

static inline float cpu_logf(float x) {
  const float root_half = 0.70710678118654752f;
  bool is_tiny = x < 0x1p-126f;
  float scaled = is_tiny ? x * 0x1p23f : x;
  /* scaled = m * 2^e with m from sqrt(1/2) to sqrt(2). */
  uint32_t bits = cpu_float_bits(scaled) - cpu_float_bits(root_half);
  float e = (float)((int32_t)bits >> 23) - (is_tiny ? 23.0f : 0.0f);
  float m = cpu_bits_float((bits & 0x007fffffu) + cpu_float_bits(root_half)) - 1.0f;
  float p = 7.0376836292e-2f;
  p = p * m - 1.1514610310e-1f;
  p = p * m + 1.1676998740e-1f;
  p = p * m - 1.2420140846e-1f;
  p = p * m + 1.4249322787e-1f;
  p = p * m - 1.6668057665e-1f;
  p = p * m + 2.0000714765e-1f;
  p = p * m - 2.4999993993e-1f;
  p = p * m + 3.3333331174e-1f;
  float z = m * m;
  float y = (p * m * z + e * -2.12194440e-4f - 0.5f * z) + m + e * 0.693359375f;
  y = x > 0.0f ? y : x == 0.0f ? -INFINITY : NAN;
  return x == INFINITY ? x : y;
}

/* log(1 + x) for x from 0 to 1: what rounding 1 + x loses is made up for. */
static inline float cpu_log1pf_unit(float x) {
  float u = 1.0f + x;
  float y = cpu_logf(u) * (x / (u - 1.0f));
  return u == 1.0f ? x : y;
}

/* log(1 + exp(x)) */
static inline float cpu_softplusf(float x) {
  return (x < 0.0f ? 0.0f : x) + cpu_log1pf_unit(cpu_expf(-fabsf(x)));
}

#endif /* CLEAVE_CPU_VECTOR_MATH_H */
