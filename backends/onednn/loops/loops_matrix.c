// SPDX-License-Identifier: Apache-2.0
// Products by the tiles of kernels/matrix, on the threads of the host.
#include "onednn/loops/loops.h"

typedef struct matrix_body {
  const onednn_matrix_loop_t *loop;
  const float *x;
  const void *weights;
  const float *scale;
  const float *bias;
  const float *sum;
  const float *x_sums;
  float *y;
} matrix_body_t;

static void plain_range(void *opaque, int64_t begin, int64_t end) {
  const matrix_body_t *body = opaque;
  const kernel_matrix_data_t data = {
      .x = body->x, .weights = body->weights, .bias = body->bias, .sum = body->sum, .y = body->y};
  kernel_matrix_run(&body->loop->plain, &data, begin, end);
}

static void narrow_range(void *opaque, int64_t begin, int64_t end) {
  const matrix_body_t *body = opaque;
  const kernel_narrow_data_t data = {.x = body->x,
                                     .packed = body->weights,
                                     .bias = body->bias,
                                     .sum = body->sum,
                                     .x_sums = body->x_sums,
                                     .y = body->y};
  kernel_narrow_run(&body->loop->narrow, &data, begin, end);
}

static void amx_range(void *opaque, int64_t begin, int64_t end) {
  const matrix_body_t *body = opaque;
  const kernel_amx_data_t data = {.x = body->x,
                                  .weights = body->weights,
                                  .scale = body->scale,
                                  .bias = body->bias,
                                  .sum = body->sum,
                                  .y = body->y};
  kernel_amx_run(&body->loop->amx, &data, begin, end);
}

static void run_thirds(const matrix_body_t *body, const onednn_crew_t *crew, float *scratch) {
  const kernel_thirds_data_t data = {
      .x = body->x, .weights = body->weights, .bias = body->bias, .sum = body->sum, .y = body->y};
  onednn_thirds_run(&body->loop->thirds, crew, &data, scratch);
}

bool onednn_loop_matrix(const onednn_loop_t *loop, const onednn_crew_t *crew, float *const *data) {
  const onednn_matrix_loop_t *context = loop->context;
  matrix_body_t body = {.loop = context};
  int next = 0;
  body.x = data[next++];
  body.weights = data[next++];
  body.scale = context->has_scale ? data[next++] : NULL;
  body.bias = context->has_bias ? data[next++] : NULL;
  body.sum = context->has_sum ? data[next++] : NULL;
  bool has_scratch = context->kind == ONEDNN_MATRIX_NARROW || context->kind == ONEDNN_MATRIX_THIRDS;
  float *scratch = has_scratch ? data[next++] : NULL;
  body.x_sums = scratch;
  body.y = data[next];
  switch (context->kind) {
    case ONEDNN_MATRIX_NARROW:
      kernel_narrow_sum(&context->narrow, body.x, scratch);
      crew->host->parallel_for(crew->threads, kernel_narrow_units(&context->narrow),
                               kernel_narrow_grain(&context->narrow), narrow_range, &body);
      break;
    case ONEDNN_MATRIX_AMX:
      crew->host->parallel_for(crew->threads, kernel_amx_units(&context->amx),
                               kernel_amx_grain(&context->amx), amx_range, &body);
      break;
    case ONEDNN_MATRIX_THIRDS: run_thirds(&body, crew, scratch); break;
    default:
      crew->host->parallel_for(crew->threads, kernel_matrix_units(&context->plain),
                               kernel_matrix_grain(&context->plain), plain_range, &body);
      break;
  }
  return true;
}
