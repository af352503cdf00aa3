// SPDX-License-Identifier: Apache-2.0
/*
 * Products by kernels/matrix, on processors for which oneDNN has only its older code. The first sum with a
 * tensor of the result's shape, and bounds behind it, are part of the step.
 */
#ifndef ONEDNN_EMIT_MATRIX_H
#define ONEDNN_EMIT_MATRIX_H

#include "onednn/emit/emit.h"

typedef struct onednn_matrix_request {
  kernel_matrix_t matrix;  /* without bounds and strides of what is added and of the result */
  onednn_tensor_t source;  /* rows of the matrix */
  onednn_tensor_t weights; /* constant: [columns, 1, depth], in any layout */
  onednn_tensor_t bias;    /* if `has_bias` */
  bool has_bias;
  onednn_shape_t shape;   /* of the result, as the graph sees it */
  onednn_layout_t result; /* with one stride for all rows, and no gap between columns */
  const onednn_post_t *posts;
  uint32_t post_count;
  const char *label;
} onednn_matrix_request_t;

/* Adds the steps and binds the result of the kernel. */
CLEAVE_MUST_USE cleave_status_t onednn_emit_matrix(onednn_plan_t *plan, const onednn_kernel_t *kernel,
                                                   const onednn_matrix_request_t *request);

#endif /* ONEDNN_EMIT_MATRIX_H */
