// SPDX-License-Identifier: Apache-2.0
// Products by the tiles of kernels/matrix, on the threads of the host.
#include "onednn/loops/loops.h"

typedef struct matrix_body {
  const kernel_matrix_t *matrix;
  kernel_matrix_data_t data;
} matrix_body_t;

static void matrix_range(void *opaque, int64_t begin, int64_t end) {
  const matrix_body_t *body = opaque;
  kernel_matrix_run(body->matrix, &body->data, begin, end);
}

bool onednn_loop_matrix(const onednn_loop_t *loop, const onednn_crew_t *crew, float *const *data) {
  const onednn_matrix_loop_t *context = loop->context;
  matrix_body_t body = {.matrix = &context->matrix};
  int next = 0;
  body.data.x = data[next++];
  body.data.weights = data[next++];
  body.data.bias = context->has_bias ? data[next++] : NULL;
  body.data.sum = context->has_sum ? data[next++] : NULL;
  body.data.y = data[next];
  crew->host->parallel_for(crew->threads, kernel_matrix_units(body.matrix), kernel_matrix_grain(body.matrix),
                           matrix_range, &body);
  return true;
}
