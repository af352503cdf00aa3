// SPDX-License-Identifier: Apache-2.0
// Quantization: the shape stays, dtypes follow from zero points and scales.

#include "ops/context/infer_context.h"

/* Scale and zero point: a scalar, or one entry per index of the axis, or (blocked) the rank of the data. */
static cleave_status_t check_scale(cleave_infer_t *infer, cleave_fact_t *data, cleave_fact_t *scale,
                                   cleave_fact_t *zero_point, cleave_error_t *error) {
  int64_t block_size = cleave_infer_int(infer, "block_size", 0);
  int32_t axis = 0;
  if (block_size < 0) {
    return cleave_infer_fail(infer, error, "block_size is %lld", (long long)block_size);
  }
  CLEAVE_TRY(cleave_infer_same_shape(infer, scale, zero_point, error));
  if (block_size > 0 || cleave_fact_rank(data) < 1 || cleave_fact_rank(scale) != 1 || scale->dims[0] == 1) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(cleave_infer_axis(infer, cleave_infer_int(infer, "axis", 1), data->rank, &axis, error));
  return cleave_infer_same_dim(infer, scale, 0, data, axis, error);
}

cleave_status_t cleave_infer_quantize_linear(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *data = cleave_infer_input(infer, 0);
  cleave_fact_t *zero_point = cleave_infer_input(infer, 2);
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  int64_t wanted = cleave_infer_int(infer, "output_dtype", 0);
  if (wanted != 0 && !cleave_dtype_is_valid(wanted)) {
    return cleave_infer_fail(infer, error, "attribute 'output_dtype': %lld is not a dtype",
                             (long long)wanted);
  }
  if (wanted == 0 && zero_point == NULL) {
    wanted = CLEAVE_DTYPE_U8;
  }
  CLEAVE_TRY(cleave_infer_set_dtype(infer, output, (cleave_dtype_t)wanted, error));
  CLEAVE_TRY(cleave_infer_types(infer, "-:s - z > z:s", error));
  return check_scale(infer, data, cleave_infer_input(infer, 1), zero_point, error);
}

cleave_status_t cleave_infer_dequantize_linear(cleave_infer_t *infer, cleave_error_t *error) {
  CLEAVE_TRY(cleave_infer_types(infer, "x:s c x > c:s", error));
  return check_scale(infer, cleave_infer_input(infer, 0), cleave_infer_input(infer, 1),
                     cleave_infer_input(infer, 2), error);
}

cleave_status_t cleave_infer_dynamic_quantize_linear(cleave_infer_t *infer, cleave_error_t *error) {
  return cleave_infer_types(infer, "F:s > U:s F[] U[]", error);
}
