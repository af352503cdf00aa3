// SPDX-License-Identifier: Apache-2.0
/*
 * Functions of one float without branches or calls, so that loops over them are vectorised. Each is within a
 * few units in the last place of the exact result, and treats NaN, infinities and overflow as libm does. Also
 * the marks that loops carry: CPU_VECTOR compiles a function for several instruction sets and picks one when
 * the library is loaded; CPU_INDEPENDENT says that iterations do not depend on each other (output over input
 * is fine).
 */
#ifndef CLEAVE_KERNELS_VECTOR_MATH_H
#define CLEAVE_KERNELS_VECTOR_MATH_H

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

/*
 * x * y + z. Files that define CPU_FUSED round it once, with whatever instruction set, and so get the same
 * bits from all of them; others round the product too, since their default clones have no instruction for it.
 */
static inline float cpu_fmaf(float x, float y, float z) {
#if !defined(CPU_FUSED)
  return x * y + z;
#elif defined(__FMA__) || defined(__AVX512F__) || defined(__FP_FAST_FMAF) || defined(__aarch64__)
  return __builtin_fmaf(x, y, z);
#else
  /* The product is exact in double. The sum is rounded to odd there, so that rounding it again does no harm:
   * its last bit is set if anything was lost, after going back to what cutting off would have given. */
  double product = (double)x * (double)y;
  double sum = product + (double)z;
  double rest = sum - product;
  double error = (product - (sum - rest)) + ((double)z - rest);
  uint64_t bits;
  uint64_t error_bits;
  memcpy(&bits, &sum, sizeof bits);
  memcpy(&error_bits, &error, sizeof error_bits);
  uint64_t magnitude = error_bits << 1;
  uint64_t is_infinite = ((bits >> 52 & 0x7ff) + 1) >> 11; /* or NaN */
  uint64_t is_inexact = (magnitude | (0 - magnitude)) >> 63 & (1 ^ is_infinite);
  bits = (bits - ((bits ^ error_bits) >> 63 & is_inexact)) | is_inexact;
  memcpy(&sum, &bits, sizeof sum);
  return (float)sum;
#endif
}

/* (exp(r) - 1 - r) / r^2 for |r| <= ln(2) / 2. */
static inline float cpu_exp_tail(float r) {
  float p = 1.9875691500e-4f;
  p = cpu_fmaf(p, r, 1.3981999507e-3f);
  p = cpu_fmaf(p, r, 8.3334519073e-3f);
  p = cpu_fmaf(p, r, 4.1665795894e-2f);
  p = cpu_fmaf(p, r, 1.6666665459e-1f);
  return cpu_fmaf(p, r, 5.0000001201e-1f);
}

/* exp(x + rest) for x from -176 to 90, and a rest that is below half a unit in its last place. */
static inline float cpu_exp_parts(float x, float rest) {
  const float shift = 12583166.0f; /* 1.5 * 2^23 + 254: adding it rounds to an integer in the low bits */
  float shifted = cpu_fmaf(x, 1.44269504088896341f, shift);
  float n = shifted - shift;
  float r = cpu_fmaf(n, 2.12194440e-4f, cpu_fmaf(n, -0.693359375f, x)) + rest;
  float p = 1.382063376e-3f;
  p = cpu_fmaf(p, r, 8.368673734e-3f);
  p = cpu_fmaf(p, r, 4.166826606e-2f);
  p = cpu_fmaf(p, r, 1.666652113e-1f);
  p = cpu_fmaf(p, r, 4.999999404e-1f);
  float y = cpu_fmaf(cpu_fmaf(p, r, 1.0f), r, 1.0f);
  /* 2^n in two factors, so that overflow and denormals come out right. The low bits hold n + 254. */
  uint32_t bits = cleave_float_to_bits(shifted);
  uint32_t half = bits >> 1;
  return y * cleave_bits_to_float(half << 23) * cleave_bits_to_float((bits - half) << 23);
}

/* exp(x) for x from -176 to 90; NaN stays one. */
static inline float cpu_exp_near(float x) {
  return cpu_exp_parts(x, 0.0f);
}

/* Below -175 both powers of 2 are 0, so that the result is 0 and nothing underflows, which takes Intel's
 * processors ten times as long. Masked scores are that small. From -175 to -87 products do underflow. */
static inline float cpu_expf(float x) {
  float clamped = x > 90.0f ? 90.0f : x;
  return cpu_exp_near(clamped < -176.0f ? -176.0f : clamped);
}

/* exp(-|x|) */
static inline float cpu_exp_decay(float x) {
  float magnitude = fabsf(x);
  return cpu_exp_near(magnitude > 176.0f ? -176.0f : -magnitude);
}

/* exp(x) - 1. Below -20 that is -1; exp would give denormals further on, with which Intel's processors take
 * ten times as long, also for numbers that a compiler computes and does not use. */
static inline float cpu_expm1f(float x) {
  float small = cpu_fmaf(cpu_exp_tail(x), x * x, x);
  float clamped = x > 90.0f ? 90.0f : x;
  float large = cpu_exp_near(clamped < -20.0f ? -20.0f : clamped) - 1.0f;
  return fabsf(x) < 0.34f ? small : large;
}

/* From exp(-|x|), which keeps the digits of small results. */
static inline float cpu_sigmoidf(float x) {
  float e = cpu_exp_decay(x);
  float r = 1.0f / (1.0f + e);
  return x < 0.0f ? e * r : r;
}

static inline float cpu_tanhf(float x) {
  float z = x * x;
  float p = -5.70498872745e-3f;
  p = cpu_fmaf(p, z, 2.06390887954e-2f);
  p = cpu_fmaf(p, z, -5.37397155531e-2f);
  p = cpu_fmaf(p, z, 1.33314422036e-1f);
  p = cpu_fmaf(p, z, -3.33332819422e-1f);
  float small = cpu_fmaf(p * z, x, x);
  float magnitude = fabsf(x);
  float e = cpu_exp_near(magnitude > 20.0f ? 40.0f : 2.0f * magnitude);
  float large = copysignf(1.0f - 2.0f / (e + 1.0f), x);
  return magnitude < 0.625f ? small : large;
}

/* erf(x) for |x| < 0.9277 */
static inline float cpu_erf_small(float x) {
  float s = x * x;
  float q = -5.96761703e-4f;
  q = cpu_fmaf(q, s, 4.99119423e-3f);
  q = cpu_fmaf(q, s, -2.67681349e-2f);
  q = cpu_fmaf(q, s, 1.12819925e-1f);
  q = cpu_fmaf(q, s, -3.76125336e-1f);
  q = cpu_fmaf(q, s, 1.28379166e-1f);
  return cpu_fmaf(q, x, x);
}

static inline float cpu_erff(float x) {
  float magnitude = fabsf(x);
  float t = magnitude > 4.0f ? 4.0f : magnitude;
  float s = t * t;
  float r = cpu_fmaf(-1.72853470e-5f, t, 3.83197126e-4f);
  float u = cpu_fmaf(-3.88396438e-3f, t, 2.42546219e-2f);
  r = cpu_fmaf(r, s, u);
  r = cpu_fmaf(r, t, -1.06777877e-1f);
  r = cpu_fmaf(r, t, -6.34846687e-1f);
  r = cpu_fmaf(r, t, -1.28717512e-1f);
  r = cpu_fmaf(r, t, -t);
  float large = copysignf(1.0f - cpu_exp_near(r), x);
  return magnitude > 0.927734375f ? large : cpu_erf_small(x);
}

/* |x|, or `most` if that is less or x is NaN. By bits: compilers would compute what follows for both cases,
 * for infinity too. */
static inline float cpu_magnitude(float x, float most) {
  uint32_t bits = cleave_float_to_bits(fabsf(x));
  uint32_t bound = cleave_float_to_bits(most);
  return cleave_bits_to_float(bits < bound ? bits : bound);
}

/* With fewer digits than the functions above, for a third of their time: quotients of polynomials in x^2
 * whose coefficients are all positive, exact to 2e-8 as far as they are not 1. */
static inline float cpu_fast_erff(float x) {
  float m = cpu_magnitude(x, 3.93f);
  float s = m * m;
  float over = 2.04192633e-6f;
  over = cpu_fmaf(over, s, 2.84809462e-4f);
  over = cpu_fmaf(over, s, 3.77972839e-3f);
  over = cpu_fmaf(over, s, 5.27906624e-2f);
  over = cpu_fmaf(over, s, 1.90786864e-1f);
  over = cpu_fmaf(over, s, 1.12837915f);
  float under = 3.80036533e-5f;
  under = cpu_fmaf(under, s, 1.16523789e-3f);
  under = cpu_fmaf(under, s, 1.49976828e-2f);
  under = cpu_fmaf(under, s, 1.14258752e-1f);
  under = cpu_fmaf(under, s, 5.02413175e-1f);
  under = cpu_fmaf(under, s, 1.0f);
  float y = m * over / under;
  y = copysignf(y > 1.0f ? 1.0f : y, x);
  return x == x ? y : x;
}

static inline float cpu_fast_tanhf(float x) {
  float m = cpu_magnitude(x, 9.0f);
  float s = m * m;
  float over = 1.37146075e-8f;
  over = cpu_fmaf(over, s, 2.08653361e-5f);
  over = cpu_fmaf(over, s, 3.51104983e-3f);
  over = cpu_fmaf(over, s, 1.33940170e-1f);
  over = cpu_fmaf(over, s, 1.0f);
  float under = 7.92275959e-7f;
  under = cpu_fmaf(under, s, 3.31099141e-4f);
  under = cpu_fmaf(under, s, 2.59357157e-2f);
  under = cpu_fmaf(under, s, 4.67273359e-1f);
  under = cpu_fmaf(under, s, 1.0f);
  float y = m * over / under;
  y = copysignf(y > 1.0f ? 1.0f : y, x);
  return x == x ? y : x;
}

static inline float cpu_logf(float x) {
  const float root_half = 0.70710678118654752f;
  bool is_tiny = x < 0x1p-126f;
  float scaled = is_tiny ? x * 0x1p23f : x;
  /* scaled = m * 2^e with m from sqrt(1/2) to sqrt(2). */
  uint32_t bits = cleave_float_to_bits(scaled) - cleave_float_to_bits(root_half);
  float e = (float)((int32_t)bits >> 23) - (is_tiny ? 23.0f : 0.0f);
  float m = cleave_bits_to_float((bits & 0x007fffffu) + cleave_float_to_bits(root_half)) - 1.0f;
  float p = 7.0376836292e-2f;
  p = cpu_fmaf(p, m, -1.1514610310e-1f);
  p = cpu_fmaf(p, m, 1.1676998740e-1f);
  p = cpu_fmaf(p, m, -1.2420140846e-1f);
  p = cpu_fmaf(p, m, 1.4249322787e-1f);
  p = cpu_fmaf(p, m, -1.6668057665e-1f);
  p = cpu_fmaf(p, m, 2.0000714765e-1f);
  p = cpu_fmaf(p, m, -2.4999993993e-1f);
  p = cpu_fmaf(p, m, 3.3333331174e-1f);
  float z = m * m;
  float y = cpu_fmaf(p * m, z, cpu_fmaf(e, -2.12194440e-4f, -0.5f * z)) + m;
  y = cpu_fmaf(e, 0.693359375f, y);
  y = x > 0.0f ? y : x == 0.0f ? -INFINITY : NAN;
  return x == INFINITY ? x : y;
}

/* log(1 + x) for x from 0 to 1: what rounding 1 + x loses is made up for. There is no 0 / 0, which would
 * raise the floating-point flag "invalid". */
static inline float cpu_log1pf_unit(float x) {
  float u = 1.0f + x;
  return cpu_logf(u) + (x - (u - 1.0f)) / u;
}

/* log(1 + exp(x)) */
static inline float cpu_softplusf(float x) {
  return (x < 0.0f ? 0.0f : x) + cpu_log1pf_unit(cpu_exp_decay(x));
}

static inline double cpu_softplus(double x) {
  return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
}

/* x * tanh(log(1 + e^x)), with e^x alone; beyond 20 the factor is 1. */
static inline float cpu_mishf(float x) {
  float e = cpu_expf(x > 20.0f ? 20.0f : x);
  float n = e * (e + 2.0f);
  return x > 20.0f ? x : x * (n / (n + 2.0f));
}

static inline float cpu_hard_sigmoidf(float x, float alpha, float beta) {
  float y = alpha * x + beta;
  y = y > 1.0f ? 1.0f : y;
  return y < 0.0f ? 0.0f : y;
}

static inline double cpu_hard_sigmoid(double x, double alpha, double beta) {
  double y = alpha * x + beta;
  y = y > 1.0 ? 1.0 : y;
  return y < 0.0 ? 0.0 : y;
}

static inline float cpu_shrinkf(float x, float limit, float bias) {
  return x < -limit ? x + bias : x > limit ? x - bias : x == x ? 0.0f : x;
}

static inline double cpu_shrink(double x, double limit, double bias) {
  return x < -limit ? x + bias : x > limit ? x - bias : x == x ? 0.0 : x;
}

/*
 * x * Phi(x), Phi being the normal distribution: the larger of x and 0, less m * exp(-m^2 / 2) * r(m) with m
 * = |x|, so that no digits are lost. r(m) = exp(m^2 / 2) * erfc(m / sqrt(2)) / 2 is d / (c m d + n), exact to
 * 2e-8 for m <= 14.6, with polynomials d and n whose coefficients are all positive; beyond 15 nothing is
 * left. n is small beside m d for large m, so that what is lost in computing d cancels. exp is scaled by
 * 2^64, and the divisor too, so that one factor is enough for the power of 2.
 */
static inline float cpu_gelu_erff(float x) {
  float m = cpu_magnitude(x, 15.0f);
  float part = m * -0.5f;
  float square = m * part;
  const float shift = 12583103.0f; /* 1.5 * 2^23 + 191: the low bits hold the exponent of 2^(n + 64) */
  float shifted = cpu_fmaf(square, 1.44269504088896341f, shift);
  float n = shifted - shift;
  float r = cpu_fmaf(n, 2.12194440e-4f, cpu_fmaf(m, part, n * -0.693359375f));
  float p = 1.382063376e-3f;
  p = cpu_fmaf(p, r, 8.368673734e-3f);
  p = cpu_fmaf(p, r, 4.166826606e-2f);
  p = cpu_fmaf(p, r, 1.666652113e-1f);
  p = cpu_fmaf(p, r, 4.999999404e-1f);
  float over = 1.010588e-2f; /* becomes -m d */
  over = cpu_fmaf(over, m, 9.36240479e-2f);
  over = cpu_fmaf(over, m, 4.02644902e-1f);
  over = cpu_fmaf(over, m, 9.24589992e-1f);
  over = cpu_fmaf(over, square, part);
  float under = 1.26314545e-2f * 0x1p64f;
  under = cpu_fmaf(under, m, 1.18167475e-1f * 0x1p64f);
  under = cpu_fmaf(under, m, 4.69159216e-1f * 0x1p64f);
  under = cpu_fmaf(over, -2.50663209f * 0x1p64f, under * m) + 0x1p64f;
  float scaled = over * cleave_bits_to_float(cleave_float_to_bits(shifted) << 23);
  float e = cpu_fmaf(cpu_fmaf(p, r, 1.0f) * r, scaled, scaled);
  return (0.0f > x ? 0.0f : x) + e / under;
}

/* x * sigmoid(2 sqrt(2 / pi) (x + 0.044715 x^3)): the argument in two parts, since exp magnifies its error.
 */
static inline float cpu_gelu_tanhf(float x) {
  float magnitude = fabsf(x);
  double wide = (double)(magnitude > 11.0f ? 11.0f : magnitude);
  double argument = wide * (-1.5957691216057308 - 0.071354816272600246 * (wide * wide));
  float high = (float)argument;
  float e = cpu_exp_parts(high, (float)(argument - (double)high));
  float r = 1.0f / (1.0f + e);
  return x < 0.0f ? x * (e * r) : x * r;
}

/* The argument is rounded: where exp is tiny, so are its digits. */
static inline float cpu_fast_gelu_tanhf(float x) {
  float m = cpu_magnitude(x, 11.0f);
  float e = cpu_exp_near(m * cpu_fmaf(m * m, -0.071354816272600246f, -1.5957691216057308f));
  float r = 1.0f / (1.0f + e);
  return x < 0.0f ? x * (e * r) : x * r;
}

static inline double cpu_bits_double(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static inline uint64_t cpu_double_bits(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/*
 * x to the power of y as 2^(y log2(x)) in double: |x| = m * 2^e with m from sqrt(1/2) to sqrt(2), the
 * logarithm of m by the series of atanh, and 2^f by that of exp for |f| <= 1/2.
 */
static inline float cpu_powf(float x, float y) {
  const double shift = 6755399441055744.0; /* 1.5 * 2^52: adding it rounds to an integer in the low bits */
  const uint64_t root_half = UINT64_C(0x3fe6a09e667f3bcd);
  double base = fabs((double)x);
  double exponent = (double)y;
  uint64_t bits = cpu_double_bits(base) - root_half;
  /* The exponent of m: an arithmetic shift by 52 of what lies around zero, brought to a float through its
   * bits. */
  double e = cpu_bits_double((bits >> 52) ^ UINT64_C(0x4330000000000800)) - 4503599627372544.0;
  e = e >= 2048.0 ? e - 4096.0 : e;
  double m = cpu_bits_double((bits & UINT64_C(0x000fffffffffffff)) + root_half);
  double s = (m - 1.0) / (m + 1.0);
  double z = s * s;
  double p = 1.0 / 15.0;
  p = p * z + 1.0 / 13.0;
  p = p * z + 1.0 / 11.0;
  p = p * z + 1.0 / 9.0;
  p = p * z + 1.0 / 7.0;
  p = p * z + 1.0 / 5.0;
  p = p * z + 1.0 / 3.0;
  p = p * z + 1.0;
  double logarithm = e + 2.8853900817779268 * (s * p);
  logarithm = base == 0.0 ? -(double)INFINITY : base < (double)INFINITY ? logarithm : base;
  double power = exponent * logarithm;
  double clamped = power > 200.0 ? 200.0 : power;
  clamped = clamped < -200.0 ? -200.0 : clamped;
  double shifted = clamped + shift;
  double f = (clamped - (shifted - shift)) * 0.69314718055994531;
  double q = 1.0 / 362880.0;
  q = q * f + 1.0 / 40320.0;
  q = q * f + 1.0 / 5040.0;
  q = q * f + 1.0 / 720.0;
  q = q * f + 1.0 / 120.0;
  q = q * f + 1.0 / 24.0;
  q = q * f + 1.0 / 6.0;
  q = q * f + 0.5;
  q = q * f + 1.0;
  q = q * f + 1.0;
  double scale = cpu_bits_double((cpu_double_bits(shifted) + 1023u) << 52);
  float result = (float)(q * scale);
  result = power != power ? NAN : result;
  /* Even and odd integers; floats of 2^24 and more are even. */
  float magnitude = fabsf(y);
  bool is_integer = magnitude >= 8388608.0f || (magnitude + 8388608.0f) - 8388608.0f == magnitude;
  float half = magnitude * 0.5f;
  bool is_even = magnitude >= 16777216.0f || (half + 8388608.0f) - 8388608.0f == half;
  bool is_negative = (cleave_float_to_bits(x) >> 31) != 0;
  result = is_negative && is_integer && !is_even ? -result : result;
  result = x < 0.0f && x > -INFINITY && !is_integer ? NAN : result;
  result = x == -1.0f && magnitude == INFINITY ? 1.0f : result;
  return x == 1.0f || y == 0.0f ? 1.0f : result;
}

#endif /* CLEAVE_KERNELS_VECTOR_MATH_H */
