// SPDX-License-Identifier: Apache-2.0
// Products by the tiles of kernels/matrix, on the threads of the host.
#include "onednn/loops/loops.h"

typedef struct matrix_body {
  const kernel_narrow_t *narrow;
  kernel_matrix_data_t data;
  const void *packed;
  const float *x_sums;
} matrix_body_t;

static void matrix_range(void *opaque, int64_t begin, int64_t end) {
  const matrix_body_t *body = opaque;
  kernel_matrix_run(&body->narrow->matrix, &body->data, begin, end);
}

static void narrow_range(void *opaque, int64_t begin, int64_t end) {
  const matrix_body_t *body = opaque;
  const kernel_narrow_data_t data = {.x = body->data.x,
                                     .packed = body->packed,
                                     .bias = body->data.bias,
                                     .sum = body->data.sum,
                                     .x_sums = body->x_sums,
                                     .y = body->data.y};
  kernel_narrow_run(body->narrow, &data, begin, end);
}

bool onednn_loop_matrix(const onednn_loop_t *loop, const onednn_crew_t *crew, float *const *data) {
  const onednn_matrix_loop_t *context = loop->context;
  const kernel_matrix_t *matrix = &context->narrow.matrix;
  matrix_body_t body = {.narrow = &context->narrow};
  int next = 0;
  body.data.x = data[next++];
  body.data.weights = data[next++];
  body.packed = body.data.weights;
  body.data.bias = context->has_bias ? data[next++] : NULL;
  body.data.sum = context->has_sum ? data[next++] : NULL;
  if (context->is_narrow) {
    float *sums = data[next++];
    kernel_narrow_sum(body.narrow, body.data.x, sums);
    body.x_sums = sums;
    body.data.y = data[next];
    crew->host->parallel_for(crew->threads, kernel_narrow_units(body.narrow),
                             kernel_narrow_grain(body.narrow), narrow_range, &body);
  } else {
    body.data.y = data[next];
    crew->host->parallel_for(crew->threads, kernel_matrix_units(matrix), kernel_matrix_grain(matrix),
                             matrix_range, &body);
  }
  return true;
}
