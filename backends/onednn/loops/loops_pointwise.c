// SPDX-License-Identifier: Apache-2.0
// Elementwise loops. Those that run for finite values too (softplus, mish) have neither branches nor calls,
// so that they are vectorised; the others run only after special values turned up, and call the C library.
#include <math.h>
#include <string.h>

#include "onednn/loops/loops.h"

enum { GRAIN = 8192 };

// 2^n for -300 < n < 0, in two factors so that denormal results come out right.
static inline float scale_by_power(float y, int32_t n) {
  int32_t half = n >> 1;
  uint32_t bits[2] = {((uint32_t)half + 127U) << 23, ((uint32_t)(n - half) + 127U) << 23};
  float factors[2];
  memcpy(factors, bits, sizeof(factors));
  return y * factors[0] * factors[1];
}

// exp(x) for x <= 0 or NaN, within two units in the last place.
static inline float exp_of_negative(float x) {
  const float shift = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer in the low bits
  float clamped = x < -105.0F ? -105.0F : x;
  float shifted = clamped * 1.44269504088896341F + shift;
  float n = shifted - shift;
  float r = (clamped - n * 0.693359375F) - n * -2.12194440e-4F;
  float p = 1.9875691500e-4F;
  uint32_t bits = 0;
  uint32_t zero = 0;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  memcpy(&bits, &shifted, sizeof(bits));
  memcpy(&zero, &shift, sizeof(zero));
  return scale_by_power(p * (r * r) + r + 1.0F, (int32_t)(bits - zero));
}

// log(1 + u) for 0 <= u <= 1: 2 atanh(s) with s = u / (2 + u) <= 1/3, as a series.
static inline float log1p_of_unit(float u) {
  float s = u / (2.0F + u);
  float q = s * s;
  float p = 1.0F / 15.0F;
  p = p * q + 1.0F / 13.0F;
  p = p * q + 1.0F / 11.0F;
  p = p * q + 1.0F / 9.0F;
  p = p * q + 1.0F / 7.0F;
  p = p * q + 1.0F / 5.0F;
  p = p * q + 1.0F / 3.0F;
  return 2.0F * (s + s * q * p);
}

ONEDNN_VECTOR static void softplus(const float *x, float *y, int64_t count) {
  for (int64_t k = 0; k < count; k++) {
    float u = exp_of_negative(-fabsf(x[k]));
    y[k] = (x[k] > 0.0F ? x[k] : 0.0F) + log1p_of_unit(u);
  }
}

// x tanh(log(1 + e^x)) = x p / (p + 2 w), where p = e^2x + 2 e^x and w = 1, or both times e^-2x.
ONEDNN_VECTOR static void mish(const float *x, float *y, int64_t count) {
  for (int64_t k = 0; k < count; k++) {
    float u = exp_of_negative(-fabsf(x[k]));
    bool positive = x[k] > 0.0F;
    float p = positive ? 1.0F + 2.0F * u : u * u + 2.0F * u;
    float w = positive ? 2.0F * u * u : 2.0F;
    y[k] = x[k] * (p / (p + w));
  }
}

ONEDNN_VECTOR static void relu(const float *x, float *y, int64_t count, float alpha) {
  for (int64_t k = 0; k < count; k++) {
    float low = alpha == 0.0F && x[k] == x[k] ? 0.0F : alpha * x[k];
    y[k] = x[k] > 0.0F ? x[k] : low;
  }
}

ONEDNN_VECTOR static void clip(const float *x, float *y, int64_t count, float low, float high) {
  for (int64_t k = 0; k < count; k++) {
    float above = x[k] < low ? low : x[k];
    y[k] = above > high ? high : above;
  }
}

static float logistic(float x) {
  return 1.0F / (1.0F + expf(-x));
}

static float hard_swish(float x) {
  float ramp = x / 6.0F + 0.5F;
  return x * (ramp < 0.0F ? 0.0F : ramp > 1.0F ? 1.0F : ramp);
}

static float one(dnnl_alg_kind_t algorithm, float x, float alpha, float beta) {
  switch ((int)algorithm) {
    case dnnl_eltwise_exp: return expf(x);
    case dnnl_eltwise_elu: return x > 0.0F ? x : alpha * expm1f(x);
    case dnnl_eltwise_tanh: return tanhf(x);
    case dnnl_eltwise_logistic: return logistic(x);
    case dnnl_eltwise_gelu_erf: return 0.5F * x * (1.0F + erff(x * 0.70710678F));
    case dnnl_eltwise_gelu_tanh: return 0.5F * x * (1.0F + tanhf(0.79788456F * (x + 0.044715F * x * x * x)));
    case dnnl_eltwise_swish: return x * logistic(alpha * x);
    case dnnl_eltwise_hardswish: return hard_swish(x);
    case dnnl_eltwise_sqrt: return sqrtf(x);
    case dnnl_eltwise_abs: return fabsf(x);
    case dnnl_eltwise_square: return x * x;
    case dnnl_eltwise_pow: return alpha * powf(x, beta);
    case dnnl_eltwise_round: return nearbyintf(x);
    default: return alpha * x + beta;  // dnnl_eltwise_linear
  }
}

typedef struct eltwise_body {
  const onednn_loop_t *loop;
  float *const *data;
} eltwise_body_t;

static void eltwise_range(void *opaque, int64_t begin, int64_t end) {
  const eltwise_body_t *body = opaque;
  const onednn_loop_t *loop = body->loop;
  const float *x = body->data[0] + begin;
  float *y = body->data[1] + begin;
  int64_t count = end - begin;
  switch ((int)loop->algorithm) {
    case dnnl_eltwise_soft_relu: softplus(x, y, count); return;
    case dnnl_eltwise_mish: mish(x, y, count); return;
    case dnnl_eltwise_relu: relu(x, y, count, loop->alpha); return;
    case dnnl_eltwise_clip: clip(x, y, count, loop->alpha, loop->beta); return;
    default: break;
  }
  for (int64_t k = 0; k < count; k++) {
    y[k] = one(loop->algorithm, x[k], loop->alpha, loop->beta);
  }
}

bool onednn_loop_eltwise(const onednn_loop_t *loop, const onednn_crew_t *crew, float *const *data) {
  eltwise_body_t body = {.loop = loop, .data = data};
  crew->host->parallel_for(crew->threads, loop->dims[0], GRAIN, eltwise_range, &body);
  return true;
}

// Rows [begin, end): all dimensions but the last one.
static void copy_range(void *opaque, int64_t begin, int64_t end) {
  const eltwise_body_t *body = opaque;
  const onednn_loop_t *loop = body->loop;
  int32_t last = loop->rank - 1;
  int64_t step = loop->strides[0][last];
  for (int64_t row = begin; row < end; row++) {
    int64_t rest = row;
    int64_t at = 0;
    for (int32_t d = last; d-- > 0;) {
      at += rest % loop->dims[d] * loop->strides[0][d];
      rest /= loop->dims[d];
    }
    for (int64_t k = 0; k < loop->dims[last]; k++) {
      body->data[1][at + k * step] = body->data[0][at + k * step];
    }
  }
}

bool onednn_loop_copy(const onednn_loop_t *loop, const onednn_crew_t *crew, float *const *data) {
  eltwise_body_t body = {.loop = loop, .data = data};
  int64_t rows = 1;
  for (int32_t d = 0; d + 1 < loop->rank; d++) {
    rows *= loop->dims[d];
  }
  crew->host->parallel_for(crew->threads, rows, GRAIN / loop->dims[loop->rank - 1] + 1, copy_range, &body);
  return true;
}

static float extreme(bool maximum, float a, float b) {
  if (isnan(a) || isnan(b)) {
    return NAN;
  }
  return (maximum ? a > b : a < b) ? a : b;
}

static void binary_range(void *opaque, int64_t begin, int64_t end) {
  const eltwise_body_t *body = opaque;
  const onednn_loop_t *loop = body->loop;
  bool maximum = loop->algorithm == dnnl_binary_max;
  for (int64_t k = begin; k < end; k++) {
    int64_t rest = k;
    int64_t at[2] = {0, 0};
    for (int32_t d = loop->rank; d-- > 0;) {
      at[0] += rest % loop->dims[d] * loop->strides[0][d];
      at[1] += rest % loop->dims[d] * loop->strides[1][d];
      rest /= loop->dims[d];
    }
    body->data[2][k] = extreme(maximum, body->data[0][at[0]], body->data[1][at[1]]);
  }
}

bool onednn_loop_binary(const onednn_loop_t *loop, const onednn_crew_t *crew, float *const *data) {
  eltwise_body_t body = {.loop = loop, .data = data};
  int64_t count = 1;
  for (int32_t d = 0; d < loop->rank; d++) {
    count *= loop->dims[d];
  }
  crew->host->parallel_for(crew->threads, count, GRAIN, binary_range, &body);
  return true;
}
