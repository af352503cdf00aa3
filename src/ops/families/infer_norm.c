// SPDX-License-Identifier: Apache-2.0
// Normalizations and softmaxes: the output has the type of the input; parameters follow from channels or
// from the normalized axes, both ways.

#include "ops/context/infer_context.h"

cleave_status_t cleave_infer_same_as_input(cleave_infer_t *infer, cleave_error_t *error) {
  return cleave_infer_same_type(infer, cleave_infer_input(infer, 0), cleave_infer_output(infer, 0), error);
}

cleave_status_t cleave_infer_same_axis(cleave_infer_t *infer, cleave_error_t *error) {
  int32_t axis = 0;
  CLEAVE_TRY(cleave_infer_same_as_input(infer, error));
  int32_t rank = cleave_fact_rank(cleave_infer_input(infer, 0));
  return rank < 0 ? CLEAVE_OK
                  : cleave_infer_axis(infer, cleave_infer_int(infer, "axis", -1), rank, &axis, error);
}

cleave_status_t cleave_infer_batch_normalization(cleave_infer_t *infer, cleave_error_t *error) {
  bool is_training = infer->output_count > 3 || cleave_infer_int(infer, "training_mode", 0) != 0;
  if (!is_training && infer->output_count > 1) {
    return cleave_infer_fail(infer, error, "%u output%s, but training_mode is 0", infer->output_count,
                             CLEAVE_PLURAL(infer->output_count));
  }
  CLEAVE_TRY(cleave_infer_same_as_input(infer, error));
  CLEAVE_TRY(cleave_infer_check_rank(infer, cleave_infer_input(infer, 0), 1, CLEAVE_MAX_RANK, error));
  return cleave_infer_types(infer, "-[?c*] s[c] s[c] m[c] m[c] > - m[c] m[c]", error);
}

cleave_status_t cleave_infer_batch_normalization_training(cleave_infer_t *infer, cleave_error_t *error) {
  CLEAVE_TRY(cleave_infer_batch_normalization(infer, error));
  return cleave_infer_types(infer, "-[?c*] - - m > - - - m[c] m[c]", error);
}

/* From dY and X of one type, and scale, mean and var per channel: dX, and the gradients of scale and bias. */
cleave_status_t cleave_infer_batch_normalization_grad(cleave_infer_t *infer, cleave_error_t *error) {
  CLEAVE_TRY(cleave_infer_types(infer, "x:s x:s > x:s", error));
  CLEAVE_TRY(cleave_infer_check_rank(infer, cleave_infer_input(infer, 1), 2, CLEAVE_MAX_RANK, error));
  return cleave_infer_types(infer, "- -[?c*] s[c] -[c] -[c] > - s[c] s[c]", error);
}

/* InstanceNormalization and GroupNormalization (scale and bias per channel since opset 21). */
cleave_status_t cleave_infer_channel_normalization(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *input = cleave_infer_input(infer, 0);
  int64_t groups = cleave_infer_int(infer, "num_groups", 1);
  cleave_dim_t channels = cleave_fact_dim(input, 1);
  if (groups < 1 || (cleave_dim_is_known(channels) && channels % groups != 0)) {
    return cleave_infer_fail(infer, error, "%lld channel%s cannot be split into %lld group%s",
                             (long long)channels, CLEAVE_PLURAL(channels), (long long)groups,
                             CLEAVE_PLURAL(groups));
  }
  CLEAVE_TRY(cleave_infer_same_as_input(infer, error));
  CLEAVE_TRY(cleave_infer_check_rank(infer, input, 3, CLEAVE_MAX_RANK, error));
  return cleave_infer_types(infer, "x[?c*] x[c] x[c]", error);
}

/* Mean and InvStdDev have sizes of 1 from the axis on. */
static cleave_status_t statistics(cleave_infer_t *infer, const cleave_fact_t *input, int32_t axis,
                                  cleave_fact_t *output, cleave_error_t *error) {
  cleave_dim_t dims[CLEAVE_MAX_RANK];
  for (int32_t d = 0; d < input->rank; d++) {
    dims[d] = d < axis ? input->dims[d] : 1;
  }
  CLEAVE_TRY(cleave_infer_set_dtype(infer, output, CLEAVE_DTYPE_F32, error));
  return cleave_infer_set_shape(infer, output, input->rank, dims, error);
}

/* Scale and bias broadcast to the axes that are normalized. */
static cleave_status_t check_parameter(cleave_infer_t *infer, const cleave_fact_t *input,
                                       cleave_fact_t *parameter, cleave_error_t *error) {
  cleave_dim_t dims[CLEAVE_MAX_RANK];
  if (cleave_fact_rank(parameter) < 0) {
    return CLEAVE_OK;
  }
  int32_t rank = cleave_shape_broadcast(input->rank, input->dims, parameter->rank, parameter->dims, dims);
  bool fits = rank == input->rank;
  for (int32_t d = 0; fits && d < rank; d++) {
    fits = !cleave_dim_is_known(input->dims[d]) || dims[d] == input->dims[d];
  }
  if (fits) {
    return CLEAVE_OK;
  }
  cleave_text_t found = {0};
  cleave_shape_print(infer->dims, parameter->rank, parameter->dims, &found);
  cleave_status_t status = cleave_infer_fail(
      infer, error, "a parameter of shape %s does not broadcast to the input", cleave_text_get(&found));
  cleave_text_deinit(&found);
  return status;
}

/* LayerNormalization and RMSNormalization. */
cleave_status_t cleave_infer_layer_normalization(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *input = cleave_infer_input(infer, 0);
  int64_t given_axis = cleave_infer_int(infer, "axis", -1);
  int32_t axis = 0;
  CLEAVE_TRY(cleave_infer_same_as_input(infer, error));
  for (uint32_t k = 1; k < 3; k++) {
    cleave_fact_t *parameter = cleave_infer_input(infer, k);
    CLEAVE_TRY(cleave_infer_same_dtype(infer, input, parameter, error));
    if (given_axis == -1 && cleave_fact_rank(parameter) == 1 && parameter->dims[0] != 1) {
      int32_t last = cleave_fact_rank(input) - 1;
      CLEAVE_TRY(cleave_infer_set_dim(infer, input, last, parameter->dims[0], error));
    }
  }
  if (cleave_fact_rank(input) < 0) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(cleave_infer_axis(infer, given_axis, input->rank, &axis, error));
  for (uint32_t k = 1; k < 3; k++) {
    CLEAVE_TRY(check_parameter(infer, input, cleave_infer_input(infer, k), error));
    CLEAVE_TRY(statistics(infer, input, axis, cleave_infer_output(infer, k), error));
  }
  return CLEAVE_OK;
}
