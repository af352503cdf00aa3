// SPDX-License-Identifier: Apache-2.0
// Quantization: the shape stays, dtypes follow from zero points and scales. Packed integers: the rows stay.
#include <string.h>

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

/* Rows of so many bytes hold so many numbers at most. */
static cleave_status_t check_count(const cleave_infer_t *infer, int64_t bits, int64_t count,
                                   cleave_dim_t bytes, cleave_error_t *error) {
  if (bits != 2 && bits != 4 && bits != 8) {
    return cleave_infer_fail(infer, error, "attribute 'bits': expected 2, 4 or 8, found %lld",
                             (long long)bits);
  }
  if (count < 1) {
    return cleave_infer_fail(infer, error, "attribute 'count': expected at least 1, found %lld",
                             (long long)count);
  }
  if (cleave_dim_is_known(bytes) && (count - 1) / (8 / bits) >= bytes) {
    return cleave_infer_fail(infer, error,
                             "attribute 'count': expected at most %lld for each of %lld byte%s, found %lld",
                             (long long)(8 / bits), (long long)bytes, CLEAVE_PLURAL(bytes), (long long)count);
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_infer_unpack_bits(cleave_infer_t *infer, cleave_error_t *error) {
  const cleave_fact_t *input = cleave_infer_input(infer, 0);
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  int32_t rank = cleave_fact_rank(input);
  int64_t bits = cleave_infer_int(infer, "bits", 0);
  int64_t count = cleave_infer_int(infer, "count", 0);
  bool is_signed = cleave_infer_int(infer, "signed", 0) != 0;
  bool is_transposed = cleave_infer_int(infer, "transposed", 0) != 0;
  cleave_dim_t dims[CLEAVE_MAX_RANK];
  int32_t axis = 0;
  CLEAVE_TRY(cleave_infer_types(infer, "U > -", error));
  CLEAVE_TRY(cleave_infer_set_dtype(infer, output, is_signed ? CLEAVE_DTYPE_I8 : CLEAVE_DTYPE_U8, error));
  CLEAVE_TRY(check_count(infer, bits, count, CLEAVE_DIM_UNKNOWN, error));
  if (rank < 0) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(cleave_infer_axis(infer, cleave_infer_int(infer, "axis", 1), rank, &axis, error));
  if (is_transposed && axis == 0) {
    return cleave_infer_fail(infer, error, "expected rows to transpose, found axis 0");
  }
  cleave_dim_t bytes = cleave_infer_product(infer, input->dims + axis, rank - axis);
  CLEAVE_TRY(check_count(infer, bits, count, bytes, error));
  memcpy(dims, input->dims, (size_t)axis * sizeof *dims);
  dims[axis] = count;
  if (is_transposed) {
    dims[axis] = dims[axis - 1];
    dims[axis - 1] = count;
  }
  return cleave_infer_set_shape(infer, output, axis + 1, dims, error);
}
