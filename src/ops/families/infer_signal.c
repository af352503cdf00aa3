// SPDX-License-Identifier: Apache-2.0
// Windows, Fourier transforms and mel weights.

#include "ops/context/infer_context.h"

/* A scalar operand as a size; UNKNOWN if it is not known. An error below `lowest`. */
static cleave_status_t scalar_size(cleave_infer_t *infer, uint32_t index, int64_t lowest,
                                   cleave_dim_t *out_size, cleave_error_t *error) {
  cleave_fact_t *fact = cleave_infer_input(infer, index);
  const cleave_element_t *elements = cleave_infer_elements(infer, fact);
  *out_size = CLEAVE_DIM_UNKNOWN;
  if (elements == NULL || cleave_fact_count(fact) != 1) {
    return CLEAVE_OK;
  }
  if (elements[0].kind == CLEAVE_ELEMENT_INT && elements[0].i < lowest) {
    return cleave_infer_fail(infer, error, "input '%s': expected %lld or more, found %lld",
                             infer->op->inputs[index].name, (long long)lowest, (long long)elements[0].i);
  }
  *out_size = cleave_element_dim(&elements[0]);
  return CLEAVE_OK;
}

cleave_status_t cleave_infer_window(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  cleave_dtype_t dtype = CLEAVE_DTYPE_F32;
  cleave_dim_t size = CLEAVE_DIM_UNKNOWN;
  CLEAVE_TRY(cleave_infer_dtype_attribute(infer, "output_datatype", dtype, &dtype, error));
  CLEAVE_TRY(scalar_size(infer, 0, 0, &size, error));
  CLEAVE_TRY(cleave_infer_set_dtype(infer, output, dtype, error));
  return cleave_infer_set_shape(infer, output, 1, &size, error);
}

cleave_status_t cleave_infer_mel_weight_matrix(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  cleave_dtype_t dtype = CLEAVE_DTYPE_F32;
  cleave_dim_t bins = CLEAVE_DIM_UNKNOWN;
  cleave_dim_t length = CLEAVE_DIM_UNKNOWN;
  CLEAVE_TRY(cleave_infer_dtype_attribute(infer, "output_datatype", dtype, &dtype, error));
  CLEAVE_TRY(scalar_size(infer, 0, 0, &bins, error));
  CLEAVE_TRY(scalar_size(infer, 1, 0, &length, error));
  cleave_dim_t dims[2] = {cleave_infer_offset(infer, cleave_infer_divide(infer, length, 2), 1), bins};
  CLEAVE_TRY(cleave_infer_set_dtype(infer, output, dtype, error));
  return cleave_infer_set_shape(infer, output, 2, dims, error);
}

/* Elements of a transform without dft_length: what the axis has, or, of a half of a spectrum alone, the even
 * number that has such a half. */
static cleave_status_t default_length(cleave_infer_t *infer, cleave_dim_t given, bool is_half,
                                      cleave_dim_t *out_length, cleave_error_t *error) {
  *out_length = given;
  if (!is_half) {
    return CLEAVE_OK;
  }
  if (cleave_dim_is_known(given) && given < 2) {
    return cleave_infer_fail(infer, error, "half a spectrum of %lld needs dft_length", (long long)given);
  }
  *out_length = cleave_infer_multiply(infer, cleave_infer_offset(infer, given, -1), 2);
  return CLEAVE_OK;
}

/* input [..., 1 or 2] -> [..., 2]; the transformed axis gets dft_length, halved if one-sided. The inverse of
 * a one-sided one is real: [..., 1], of all dft_length elements. */
cleave_status_t cleave_infer_dft(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *input = cleave_infer_input(infer, 0);
  cleave_fact_t *length = cleave_infer_input(infer, 1);
  cleave_fact_t *axis_fact = cleave_infer_input(infer, 2);
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  int64_t given_axis = -2;
  int32_t axis = 0;
  CLEAVE_TRY(cleave_infer_same_dtype(infer, input, output, error));
  CLEAVE_TRY(cleave_infer_check_rank(infer, input, 2, CLEAVE_MAX_RANK, error));
  CLEAVE_TRY(cleave_infer_set_rank(infer, output, cleave_fact_rank(input), error));
  int32_t rank = cleave_fact_rank(input);
  if (rank < 0) {
    return CLEAVE_OK;
  }
  bool is_inverse = cleave_infer_int(infer, "inverse", 0) != 0;
  bool is_onesided = cleave_infer_int(infer, "onesided", 0) != 0;
  CLEAVE_TRY(cleave_infer_set_dim(infer, output, rank - 1, is_inverse && is_onesided ? 1 : 2, error));
  if (axis_fact != NULL && !cleave_infer_scalar_int(infer, axis_fact, &given_axis)) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(cleave_infer_axis(infer, given_axis, rank, &axis, error));
  if (axis == rank - 1) {
    return cleave_infer_fail(infer, error, "axis %d holds real and imaginary parts", axis);
  }
  cleave_dim_t size = CLEAVE_DIM_UNKNOWN;
  if (length != NULL) {
    CLEAVE_TRY(scalar_size(infer, 1, 1, &size, error));
  } else {
    CLEAVE_TRY(default_length(infer, cleave_fact_dim(input, axis), is_inverse && is_onesided, &size, error));
  }
  if (is_onesided && !is_inverse) {
    size = cleave_infer_offset(infer, cleave_infer_divide(infer, size, 2), 1);
  }
  for (int32_t d = 0; d < rank - 1; d++) {
    CLEAVE_TRY(cleave_infer_set_dim(infer, output, d, d == axis ? size : input->dims[d], error));
  }
  return CLEAVE_OK;
}

/* signal [N, L, 1 or 2] -> [N, frames, bins, 2]. */
cleave_status_t cleave_infer_stft(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *signal = cleave_infer_input(infer, 0);
  cleave_fact_t *window = cleave_infer_input(infer, 2);
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  cleave_dim_t step = CLEAVE_DIM_UNKNOWN;
  cleave_dim_t frame = CLEAVE_DIM_UNKNOWN;
  CLEAVE_TRY(cleave_infer_types(infer, "x - x[?] > x", error));
  CLEAVE_TRY(cleave_infer_check_rank(infer, signal, 2, 3, error));
  CLEAVE_TRY(scalar_size(infer, 1, 1, &step, error));
  CLEAVE_TRY(scalar_size(infer, 3, 1, &frame, error));
  frame = frame == CLEAVE_DIM_UNKNOWN ? cleave_fact_dim(window, 0) : frame;
  cleave_dim_t length = cleave_fact_dim(signal, 1);
  if (cleave_dim_is_known(length) && cleave_dim_is_known(frame) && frame > length) {
    return cleave_infer_fail(infer, error, "a frame of %lld in a signal of %lld", (long long)frame,
                             (long long)length);
  }
  cleave_dim_t bins = frame;
  if (cleave_infer_int(infer, "onesided", 1) != 0) {
    bins = cleave_infer_offset(infer, cleave_infer_divide(infer, frame, 2), 1);
  }
  cleave_dim_t frames = cleave_infer_offset(
      infer, cleave_infer_divide(infer, cleave_infer_subtract(infer, length, frame), step), 1);
  cleave_dim_t dims[4] = {cleave_fact_dim(signal, 0), frames, bins, 2};
  return cleave_infer_set_shape(infer, output, 4, dims, error);
}
