// SPDX-License-Identifier: Apache-2.0
// Elementwise functions by the loops of kernels/, a block at a time, and copies and extremes of two tensors.
#include <math.h>

#include "kernels/loops/loops.h"
#include "onednn/loops/loops.h"

enum { GRAIN = 8192, BLOCK = 2048 };

kernel_op_t onednn_loop_operator(dnnl_alg_kind_t algorithm, float alpha) {
  switch ((int)algorithm) {
    case dnnl_eltwise_abs: return KERNEL_Abs;
    case dnnl_eltwise_elu: return KERNEL_Elu;
    case dnnl_eltwise_exp: return KERNEL_Exp;
    case dnnl_eltwise_gelu_erf: return KERNEL_GeluErf;
    case dnnl_eltwise_gelu_tanh: return KERNEL_GeluTanh;
    case dnnl_eltwise_hardswish: return KERNEL_HardSwish;
    case dnnl_eltwise_logistic: return KERNEL_Sigmoid;
    case dnnl_eltwise_mish: return KERNEL_Mish;
    case dnnl_eltwise_relu: return alpha == 0.0F ? KERNEL_Relu : KERNEL_LeakyRelu;
    case dnnl_eltwise_round: return KERNEL_Round;
    case dnnl_eltwise_soft_relu: return KERNEL_Softplus;
    case dnnl_eltwise_sqrt: return KERNEL_Sqrt;
    case dnnl_eltwise_swish: return KERNEL_Swish;
    case dnnl_eltwise_tanh: return KERNEL_Tanh;
    default: return KERNEL_OP_COUNT;
  }
}

static void with_number(kernel_op_t op, const float *x, float number, float *y, int64_t count) {
  const int second_is_number = 2;
  kernel_loops_choose(2)->binary[op][CLEAVE_DTYPE_F32][second_is_number](y, x, &number, count);
}

static void apply(const onednn_loop_t *loop, const float *x, float *y, int64_t count) {
  const kernel_loops_t *loops = kernel_loops_choose(2);
  kernel_op_t op = onednn_loop_operator(loop->algorithm, loop->alpha);
  if (op != KERNEL_OP_COUNT) {
    loops->unary[op][CLEAVE_DTYPE_F32](y, x, count, (double)loop->alpha, (double)loop->beta);
    return;
  }
  switch ((int)loop->algorithm) {
    case dnnl_eltwise_clip:
      with_number(KERNEL_AtLeast, x, loop->alpha, y, count);
      with_number(KERNEL_AtMost, y, loop->beta, y, count);
      break;
    case dnnl_eltwise_square: loops->binary[KERNEL_Mul][CLEAVE_DTYPE_F32][0](y, x, x, count); break;
    case dnnl_eltwise_pow:
      with_number(KERNEL_Pow, x, loop->beta, y, count);
      with_number(KERNEL_Mul, y, loop->alpha, y, count);
      break;
    default:  // dnnl_eltwise_linear
      with_number(KERNEL_Mul, x, loop->alpha, y, count);
      with_number(KERNEL_Add, y, loop->beta, y, count);
      break;
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
  for (int64_t k = 0; k < count; k += BLOCK) {
    apply(loop, x + k, y + k, count - k < BLOCK ? count - k : BLOCK);
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
