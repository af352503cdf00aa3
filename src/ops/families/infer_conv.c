// SPDX-License-Identifier: Apache-2.0
// Convolutions: the output from data and kernel, the kernel's shape from data and attributes, the data's
// channels from the kernel. Spatial sizes follow the ONNX formulas; see window.h.

#include "ops/context/window.h"

/* Kernel sizes from the attribute, and what of them the weight knows; and the weight's from the attribute. */
static cleave_status_t relate_kernel(cleave_infer_t *infer, cleave_fact_t *weight, cleave_window_t *window,
                                     cleave_error_t *error) {
  for (int32_t axis = 0; axis < window->spatial_rank; axis++) {
    CLEAVE_TRY(cleave_infer_set_dim(infer, weight, 2 + axis, window->kernel[axis], error));
    if (window->kernel[axis] == CLEAVE_DIM_UNKNOWN) {
      window->kernel[axis] = cleave_fact_dim(weight, 2 + axis);
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t read_group(const cleave_infer_t *infer, int64_t *out_group, cleave_error_t *error) {
  *out_group = cleave_infer_int(infer, "group", 1);
  if (*out_group < 1) {
    return cleave_infer_fail(infer, error, "group is %lld", (long long)*out_group);
  }
  return CLEAVE_OK;
}

/* large == small * group, if `large` is a number that must divide. */
static cleave_status_t relate_groups(cleave_infer_t *infer, cleave_fact_t *large, int32_t large_axis,
                                     cleave_fact_t *small, int32_t small_axis, int64_t group,
                                     cleave_error_t *error) {
  cleave_dim_t size = cleave_fact_dim(large, large_axis);
  if (cleave_dim_is_known(size) && size % group != 0) {
    return cleave_infer_fail(infer, error, "%lld channel%s cannot be split into %lld group%s",
                             (long long)size, CLEAVE_PLURAL(size), (long long)group, CLEAVE_PLURAL(group));
  }
  CLEAVE_TRY(cleave_infer_set_dim(infer, small, small_axis, cleave_infer_divide(infer, size, group), error));
  return cleave_infer_set_dim(infer, large, large_axis,
                              cleave_infer_multiply(infer, cleave_fact_dim(small, small_axis), group), error);
}

/* All three have the same rank, of 3 or more: batch, channels and spatial axes. */
static cleave_status_t relate_ranks(cleave_infer_t *infer, cleave_fact_t *data, cleave_fact_t *weight,
                                    cleave_fact_t *output, cleave_error_t *error) {
  cleave_fact_t *facts[3] = {data, weight, output};
  int32_t rank = -1;
  for (int k = 0; k < 3 && rank < 0; k++) {
    rank = cleave_fact_rank(facts[k]);
  }
  if (rank < 0) {
    uint32_t count = 0;
    rank = cleave_infer_int_list(infer, "kernel_shape", &count) != NULL && count < CLEAVE_MAX_RANK - 1
               ? (int32_t)count + 2
               : -1;
  }
  for (int k = 0; k < 3; k++) {
    CLEAVE_TRY(cleave_infer_set_rank(infer, facts[k], rank, error));
    CLEAVE_TRY(cleave_infer_check_rank(infer, facts[k], 3, CLEAVE_MAX_RANK, error));
  }
  return CLEAVE_OK;
}

/* Shapes of X [N, C, D...], W [M, C / group, k...], B [M], Y [N, M, D'...]. */
static cleave_status_t conv_shapes(cleave_infer_t *infer, cleave_fact_t *data, cleave_fact_t *weight,
                                   cleave_fact_t *bias, cleave_error_t *error) {
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  int64_t group = 1;
  CLEAVE_TRY(read_group(infer, &group, error));
  CLEAVE_TRY(relate_ranks(infer, data, weight, output, error));
  CLEAVE_TRY(cleave_infer_set_rank(infer, bias, 1, error));
  if (cleave_fact_rank(data) < 0) {
    return CLEAVE_OK;
  }
  cleave_dim_t outputs = cleave_fact_dim(weight, 0);
  if (cleave_dim_is_known(outputs) && outputs % group != 0) {
    return cleave_infer_fail(infer, error, "%lld kernel%s cannot be split into %lld group%s",
                             (long long)outputs, CLEAVE_PLURAL(outputs), (long long)group,
                             CLEAVE_PLURAL(group));
  }
  CLEAVE_TRY(relate_groups(infer, data, 1, weight, 1, group, error));
  CLEAVE_TRY(cleave_infer_same_dim(infer, weight, 0, output, 1, error));
  CLEAVE_TRY(cleave_infer_same_dim(infer, weight, 0, bias, 0, error));
  CLEAVE_TRY(cleave_infer_same_dim(infer, output, 1, bias, 0, error));
  CLEAVE_TRY(cleave_infer_same_dim(infer, data, 0, output, 0, error));
  cleave_window_t window;
  CLEAVE_TRY(cleave_window_read(infer, data->rank - 2, &window, error));
  CLEAVE_TRY(relate_kernel(infer, weight, &window, error));
  for (int32_t axis = 0; axis < window.spatial_rank; axis++) {
    cleave_dim_t size = CLEAVE_DIM_UNKNOWN;
    CLEAVE_TRY(cleave_window_size(infer, &window, axis, cleave_fact_dim(data, 2 + axis), &size, error));
    CLEAVE_TRY(cleave_infer_set_dim(infer, output, 2 + axis, size, error));
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_infer_conv(cleave_infer_t *infer, cleave_error_t *error) {
  CLEAVE_TRY(cleave_infer_types(infer, "x x x > x", error));
  return conv_shapes(infer, cleave_infer_input(infer, 0), cleave_infer_input(infer, 1),
                     cleave_infer_input(infer, 2), error);
}

cleave_status_t cleave_infer_conv_integer(cleave_infer_t *infer, cleave_error_t *error) {
  CLEAVE_TRY(cleave_infer_types(infer, "x w x w > I", error));
  return conv_shapes(infer, cleave_infer_input(infer, 0), cleave_infer_input(infer, 1), NULL, error);
}

cleave_status_t cleave_infer_qlinear_conv(cleave_infer_t *infer, cleave_error_t *error) {
  CLEAVE_TRY(cleave_infer_types(infer, "x F x w F w F y I > y", error));
  return conv_shapes(infer, cleave_infer_input(infer, 0), cleave_infer_input(infer, 3),
                     cleave_infer_input(infer, 8), error);
}

/* X, W as Conv; offset [N, offset_group * 2 * kernel size, D'...]; mask with half of those channels. */
cleave_status_t cleave_infer_deform_conv(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *data = cleave_infer_input(infer, 0);
  cleave_fact_t *weight = cleave_infer_input(infer, 1);
  cleave_fact_t *offset = cleave_infer_input(infer, 2);
  cleave_fact_t *bias = cleave_infer_input(infer, 3);
  cleave_fact_t *mask = cleave_infer_input(infer, 4);
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  CLEAVE_TRY(cleave_infer_types(infer, "x x x x x > x", error));
  CLEAVE_TRY(conv_shapes(infer, data, weight, bias, error));
  cleave_fact_t *maps[2] = {offset, mask};
  for (int k = 0; k < 2; k++) {
    CLEAVE_TRY(cleave_infer_set_rank(infer, maps[k], cleave_fact_rank(data), error));
    CLEAVE_TRY(cleave_infer_same_dim(infer, data, 0, maps[k], 0, error));
    for (int32_t d = 2; d < cleave_fact_rank(output); d++) {
      CLEAVE_TRY(cleave_infer_same_dim(infer, output, d, maps[k], d, error));
    }
  }
  return CLEAVE_OK;
}

/* ---- ConvTranspose ---- */

/* stride (size - 1) + output_padding + dilation (kernel - 1) + 1 - pads, or what output_shape or auto_pad
 * say. */
static cleave_status_t transposed_size(const cleave_infer_t *infer, const cleave_window_t *window,
                                       int32_t axis, cleave_dim_t size, int64_t output_padding,
                                       cleave_dim_t *out_size, cleave_error_t *error) {
  *out_size = CLEAVE_DIM_UNKNOWN;
  if (window->padding == CLEAVE_PADDING_SAME_UPPER || window->padding == CLEAVE_PADDING_SAME_LOWER) {
    *out_size = cleave_infer_multiply(infer, size, window->strides[axis]);
    return CLEAVE_OK;
  }
  cleave_dim_t extent = cleave_window_extent(window, axis);
  if (extent == CLEAVE_DIM_UNKNOWN || size == CLEAVE_DIM_UNKNOWN) {
    return CLEAVE_OK;
  }
  cleave_dim_t full = cleave_infer_multiply(infer, size, window->strides[axis]);
  int64_t rest =
      extent - window->strides[axis] + output_padding - window->pads_begin[axis] - window->pads_end[axis];
  *out_size = cleave_infer_offset(infer, full, rest);
  if (cleave_dim_is_known(size) && *out_size == CLEAVE_DIM_UNKNOWN) {
    return cleave_infer_fail(infer, error, "spatial axis %d of size %lld leaves no output", axis,
                             (long long)size);
  }
  return CLEAVE_OK;
}

/* X [N, C, D...], W [C, M / group, k...], B [M], Y [N, M, D'...]. */
cleave_status_t cleave_infer_conv_transpose(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *data = cleave_infer_input(infer, 0);
  cleave_fact_t *weight = cleave_infer_input(infer, 1);
  cleave_fact_t *bias = cleave_infer_input(infer, 2);
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  int64_t group = 1;
  CLEAVE_TRY(cleave_infer_types(infer, "x x x > x", error));
  CLEAVE_TRY(read_group(infer, &group, error));
  CLEAVE_TRY(relate_ranks(infer, data, weight, output, error));
  CLEAVE_TRY(cleave_infer_set_rank(infer, bias, 1, error));
  int32_t rank = cleave_fact_rank(data);
  if (rank < 0) {
    return CLEAVE_OK;
  }
  cleave_dim_t channels = cleave_fact_dim(data, 1);
  if (cleave_dim_is_known(channels) && channels % group != 0) {
    return cleave_infer_fail(infer, error, "%lld channel%s cannot be split into %lld group%s",
                             (long long)channels, CLEAVE_PLURAL(channels), (long long)group,
                             CLEAVE_PLURAL(group));
  }
  CLEAVE_TRY(cleave_infer_same_dim(infer, data, 1, weight, 0, error));
  CLEAVE_TRY(relate_groups(infer, output, 1, weight, 1, group, error));
  CLEAVE_TRY(cleave_infer_same_dim(infer, output, 1, bias, 0, error));
  CLEAVE_TRY(cleave_infer_same_dim(infer, data, 0, output, 0, error));
  cleave_window_t window;
  CLEAVE_TRY(cleave_window_read(infer, rank - 2, &window, error));
  CLEAVE_TRY(relate_kernel(infer, weight, &window, error));
  int64_t paddings[CLEAVE_MAX_RANK];
  CLEAVE_TRY(cleave_window_list(infer, "output_padding", rank - 2, 0, paddings, error));
  uint32_t given_count = 0;
  const int64_t *given = cleave_infer_int_list(infer, "output_shape", &given_count);
  bool is_given = given != NULL && given_count > 0;
  if (is_given && given_count != (uint32_t)rank - 2 && given_count != (uint32_t)rank) {
    return cleave_infer_fail(infer, error, "output_shape has %u size%s for %d spatial ax%s", given_count,
                             CLEAVE_PLURAL(given_count), rank - 2, CLEAVE_BY_COUNT(rank - 2, "is", "es"));
  }
  for (int32_t axis = 0; axis < rank - 2; axis++) {
    cleave_dim_t size = is_given ? given[given_count - (uint32_t)(rank - 2) + (uint32_t)axis] : -1;
    if (is_given && size < 0) {
      return cleave_infer_fail(infer, error, "output_shape: expected sizes of 0 or more, found %lld",
                               (long long)size);
    }
    if (!is_given) {
      CLEAVE_TRY(transposed_size(infer, &window, axis, cleave_fact_dim(data, 2 + axis), paddings[axis], &size,
                                 error));
    }
    CLEAVE_TRY(cleave_infer_set_dim(infer, output, 2 + axis, size, error));
  }
  return CLEAVE_OK;
}

/* ---- Col2Im ---- */

/* input [N, C * block size, L], image_shape and block_shape [spatial rank], output [N, C, image...]. */
cleave_status_t cleave_infer_col2im(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *input = cleave_infer_input(infer, 0);
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  cleave_dim_t image[CLEAVE_MAX_RANK];
  cleave_dim_t block[CLEAVE_MAX_RANK];
  int32_t image_rank = -1;
  int32_t block_rank = -1;
  CLEAVE_TRY(cleave_infer_types(infer, "x[???] > x", error));
  CLEAVE_TRY(cleave_infer_shape_operand(infer, cleave_infer_input(infer, 1), 0, &image_rank, image, error));
  CLEAVE_TRY(cleave_infer_shape_operand(infer, cleave_infer_input(infer, 2), 1, &block_rank, block, error));
  if (image_rank < 0) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(cleave_infer_rank_in_range(infer, (int64_t)image_rank + 2, error));
  CLEAVE_TRY(cleave_infer_set_rank(infer, output, image_rank + 2, error));
  CLEAVE_TRY(cleave_infer_same_dim(infer, input, 0, output, 0, error));
  for (int32_t d = 0; d < image_rank; d++) {
    CLEAVE_TRY(cleave_infer_set_dim(infer, output, 2 + d, image[d], error));
  }
  cleave_dim_t block_size = block_rank >= 0 ? cleave_infer_product(infer, block, block_rank) : -1;
  cleave_dim_t columns = cleave_fact_dim(input, 1);
  if (cleave_dim_is_known(block_size) && cleave_dim_is_known(columns) && columns % block_size != 0) {
    return cleave_infer_fail(infer, error, "%lld row%s: not a multiple of a block of %lld",
                             (long long)columns, CLEAVE_PLURAL(columns), (long long)block_size);
  }
  return cleave_infer_set_dim(infer, output, 1, cleave_infer_divide(infer, columns, block_size), error);
}

/* From X [N, C, D...] and dY [N, M, D'...], the weights [M, C / group, k...] of the convolution between the
 * two. */
cleave_status_t cleave_infer_conv_grad_weight(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *data = cleave_infer_input(infer, 0);
  cleave_fact_t *gradient = cleave_infer_input(infer, 1);
  cleave_fact_t *weight = cleave_infer_output(infer, 0);
  int64_t group = 1;
  cleave_window_t window;
  CLEAVE_TRY(cleave_infer_types(infer, "x x > x", error));
  CLEAVE_TRY(read_group(infer, &group, error));
  CLEAVE_TRY(relate_ranks(infer, data, weight, gradient, error));
  if (cleave_fact_rank(data) < 0) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(relate_groups(infer, data, 1, weight, 1, group, error));
  CLEAVE_TRY(cleave_infer_same_dim(infer, gradient, 1, weight, 0, error));
  CLEAVE_TRY(cleave_infer_same_dim(infer, data, 0, gradient, 0, error));
  CLEAVE_TRY(cleave_window_read(infer, data->rank - 2, &window, error));
  return relate_kernel(infer, weight, &window, error);
}
