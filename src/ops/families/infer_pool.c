// SPDX-License-Identifier: Apache-2.0
// Poolings over windows, over whole images and over regions of interest.

#include "ops/context/window.h"

/* X [N, C, D...] -> Y [N, C, D'...]. */
cleave_status_t cleave_infer_pool(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *input = cleave_infer_input(infer, 0);
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  uint32_t kernel_rank = 0;
  CLEAVE_TRY(cleave_infer_same_dtype(infer, input, output, error));
  if (cleave_infer_int_list(infer, "kernel_shape", &kernel_rank) == NULL || kernel_rank == 0 ||
      kernel_rank > CLEAVE_MAX_RANK - 2) {
    return cleave_infer_fail(infer, error, "kernel_shape has %u number%s", kernel_rank,
                             CLEAVE_PLURAL(kernel_rank));
  }
  int32_t spatial_rank = (int32_t)kernel_rank;
  CLEAVE_TRY(cleave_infer_set_rank(infer, input, spatial_rank + 2, error));
  CLEAVE_TRY(cleave_infer_set_rank(infer, output, spatial_rank + 2, error));
  CLEAVE_TRY(cleave_infer_types(infer, "-[nc*] > -[nc*]", error));
  cleave_window_t window;
  CLEAVE_TRY(cleave_window_read(infer, spatial_rank, &window, error));
  for (int32_t axis = 0; axis < spatial_rank; axis++) {
    cleave_dim_t size = CLEAVE_DIM_UNKNOWN;
    CLEAVE_TRY(cleave_window_size(infer, &window, axis, cleave_fact_dim(input, 2 + axis), &size, error));
    CLEAVE_TRY(cleave_infer_set_dim(infer, output, 2 + axis, size, error));
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_infer_max_pool(cleave_infer_t *infer, cleave_error_t *error) {
  CLEAVE_TRY(cleave_infer_pool(infer, error));
  return cleave_infer_types(infer, "- > -:s L:s", error);
}

cleave_status_t cleave_infer_global_pool(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *input = cleave_infer_input(infer, 0);
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  CLEAVE_TRY(cleave_infer_check_rank(infer, input, 2, CLEAVE_MAX_RANK, error));
  CLEAVE_TRY(cleave_infer_set_rank(infer, output, cleave_fact_rank(input), error));
  CLEAVE_TRY(cleave_infer_set_rank(infer, input, cleave_fact_rank(output), error));
  CLEAVE_TRY(cleave_infer_types(infer, "x[nc*] > x[nc*]", error));
  for (int32_t d = 2; d < cleave_fact_rank(output); d++) {
    CLEAVE_TRY(cleave_infer_set_dim(infer, output, d, 1, error));
  }
  return CLEAVE_OK;
}

/* Y = stride (X - 1) + kernel - pads, unless output_shape says all. */
cleave_status_t cleave_infer_max_unpool(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *input = cleave_infer_input(infer, 0);
  cleave_fact_t *shape = cleave_infer_input(infer, 2);
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  CLEAVE_TRY(cleave_infer_types(infer, "x:s L:s > x", error));
  CLEAVE_TRY(cleave_infer_check_rank(infer, input, 3, CLEAVE_MAX_RANK, error));
  int32_t rank = cleave_fact_rank(input);
  CLEAVE_TRY(cleave_infer_set_rank(infer, output, rank, error));
  if (rank < 0) {
    return CLEAVE_OK;
  }
  if (shape != NULL) {
    cleave_dim_t dims[CLEAVE_MAX_RANK];
    int32_t given = -1;
    CLEAVE_TRY(cleave_infer_shape_operand(infer, shape, 0, &given, dims, error));
    return cleave_infer_set_shape(infer, output, given, dims, error);
  }
  CLEAVE_TRY(cleave_infer_same_dim(infer, input, 0, output, 0, error));
  CLEAVE_TRY(cleave_infer_same_dim(infer, input, 1, output, 1, error));
  cleave_window_t window;
  CLEAVE_TRY(cleave_window_read(infer, rank - 2, &window, error));
  for (int32_t axis = 0; axis < rank - 2; axis++) {
    cleave_dim_t size = cleave_fact_dim(input, 2 + axis);
    cleave_dim_t kernel = window.kernel[axis];
    if (size == CLEAVE_DIM_UNKNOWN || kernel == CLEAVE_DIM_UNKNOWN) {
      continue;
    }
    int64_t rest = kernel - window.strides[axis] - window.pads_begin[axis] - window.pads_end[axis];
    cleave_dim_t full = cleave_infer_multiply(infer, size, window.strides[axis]);
    CLEAVE_TRY(cleave_infer_set_dim(infer, output, 2 + axis, cleave_infer_offset(infer, full, rest), error));
  }
  return CLEAVE_OK;
}

/* X [N, C, H, W], rois [R, columns] -> Y [R, C, height, width]. */
static cleave_status_t roi_shapes(cleave_infer_t *infer, int64_t columns, int64_t height, int64_t width,
                                  cleave_error_t *error) {
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  if (height < 1 || width < 1) {
    return cleave_infer_fail(infer, error, "the output would be %lld by %lld", (long long)height,
                             (long long)width);
  }
  CLEAVE_TRY(cleave_infer_types(infer, "x[?c??] x[r?] > x[rc??]", error));
  CLEAVE_TRY(cleave_infer_set_dim(infer, cleave_infer_input(infer, 1), 1, columns, error));
  CLEAVE_TRY(cleave_infer_set_dim(infer, output, 2, height, error));
  return cleave_infer_set_dim(infer, output, 3, width, error);
}

cleave_status_t cleave_infer_roi_align(cleave_infer_t *infer, cleave_error_t *error) {
  CLEAVE_TRY(roi_shapes(infer, 4, cleave_infer_int(infer, "output_height", 1),
                        cleave_infer_int(infer, "output_width", 1), error));
  return cleave_infer_types(infer, "- -[r?] L[r]", error);
}

cleave_status_t cleave_infer_max_roi_pool(cleave_infer_t *infer, cleave_error_t *error) {
  uint32_t count = 0;
  const int64_t *shape = cleave_infer_int_list(infer, "pooled_shape", &count);
  if (shape == NULL || count != 2) {
    return cleave_infer_fail(infer, error, "pooled_shape has %u size%s, expected 2", count,
                             CLEAVE_PLURAL(count));
  }
  return roi_shapes(infer, 5, shape[0], shape[1], error);
}

/* dX has the shape that the second input says, and batch, channels and dtype of dY. */
cleave_status_t cleave_infer_average_pool_grad(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *gradient = cleave_infer_input(infer, 0);
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  cleave_dim_t dims[CLEAVE_MAX_RANK];
  int32_t rank = -1;
  CLEAVE_TRY(cleave_infer_same_dtype(infer, gradient, output, error));
  CLEAVE_TRY(cleave_infer_shape_operand(infer, cleave_infer_input(infer, 1), 0, &rank, dims, error));
  CLEAVE_TRY(cleave_infer_set_shape(infer, output, rank, dims, error));
  CLEAVE_TRY(cleave_infer_set_rank(infer, output, cleave_fact_rank(gradient), error));
  CLEAVE_TRY(cleave_infer_check_rank(infer, output, 3, CLEAVE_MAX_RANK, error));
  return cleave_infer_types(infer, "-[nc*] > -[nc*]", error);
}

/* dX has the type of X, which was pooled. */
cleave_status_t cleave_infer_max_pool_grad(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *gradient = cleave_infer_input(infer, 0);
  cleave_fact_t *data = cleave_infer_input(infer, 1);
  CLEAVE_TRY(cleave_infer_types(infer, "x x:s > x:s", error));
  CLEAVE_TRY(cleave_infer_check_rank(infer, data, 3, CLEAVE_MAX_RANK, error));
  CLEAVE_TRY(cleave_infer_set_rank(infer, gradient, cleave_fact_rank(data), error));
  CLEAVE_TRY(cleave_infer_set_rank(infer, data, cleave_fact_rank(gradient), error));
  if (cleave_fact_rank(data) < 0) {
    return CLEAVE_OK;
  }
  cleave_window_t window;
  CLEAVE_TRY(cleave_window_read(infer, data->rank - 2, &window, error));
  return cleave_infer_types(infer, "-[nc*] -[nc*]", error);
}
