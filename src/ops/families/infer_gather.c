// SPDX-License-Identifier: Apache-2.0
// Gather and Scatter in all their forms, Transpose and other operators that move elements about.

#include <string.h>

#include "ops/context/infer_context.h"

/* Indices may be int32 or int64, nothing else. */
static cleave_status_t check_index_dtype(const cleave_infer_t *infer, const cleave_fact_t *indices,
                                         cleave_error_t *error) {
  cleave_dtype_t dtype = cleave_fact_dtype(indices);
  if (dtype != CLEAVE_DTYPE_UNKNOWN && dtype != CLEAVE_DTYPE_I64 && dtype != CLEAVE_DTYPE_I32) {
    return cleave_infer_fail(infer, error, "indices are %s, expected int32 or int64",
                             cleave_dtype_name(dtype));
  }
  return CLEAVE_OK;
}

/* ---- Gather ---- */

static cleave_status_t fold_gather(cleave_infer_t *infer, int32_t axis, cleave_error_t *error) {
  cleave_fact_t *data = cleave_infer_input(infer, 0);
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  int64_t indices[CLEAVE_ELEMENT_LIMIT];
  uint32_t index_count = 0;
  if (!cleave_infer_can_fold(infer, data, output) ||
      !cleave_infer_ints(infer, cleave_infer_input(infer, 1), indices, &index_count)) {
    return CLEAVE_OK;
  }
  int64_t size = data->dims[axis];
  int64_t inner = 1;
  for (int32_t d = axis + 1; d < data->rank; d++) {
    inner *= data->dims[d];
  }
  int64_t places[CLEAVE_ELEMENT_LIMIT];
  int64_t count = cleave_fact_count(output);
  for (int64_t k = 0; k < count; k++) {
    int64_t column = k % inner;
    int64_t row = k / inner / index_count;
    int64_t index = indices[k / inner % index_count];
    index += index < 0 ? size : 0;
    if (index < 0 || index >= size) {
      return cleave_infer_fail(infer, error, "index %lld is outside of an axis of size %lld",
                               (long long)indices[k / inner % index_count], (long long)size);
    }
    places[k] = (row * size + index) * inner + column;
  }
  return cleave_infer_fold_places(infer, data, output, places, count, error);
}

cleave_status_t cleave_infer_gather(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *data = cleave_infer_input(infer, 0);
  cleave_fact_t *indices = cleave_infer_input(infer, 1);
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  CLEAVE_TRY(cleave_infer_same_dtype(infer, data, output, error));
  CLEAVE_TRY(check_index_dtype(infer, indices, error));
  int32_t rank = cleave_fact_rank(data);
  int32_t index_rank = cleave_fact_rank(indices);
  int32_t axis = 0;
  if (rank >= 0) {
    CLEAVE_TRY(cleave_infer_axis(infer, cleave_infer_int(infer, "axis", 0), rank, &axis, error));
  }
  if (rank < 0 || index_rank < 0) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(cleave_infer_rank_in_range(infer, (int64_t)rank - 1 + index_rank, error));
  CLEAVE_TRY(cleave_infer_set_rank(infer, output, rank - 1 + index_rank, error));
  for (int32_t d = 0; d < axis; d++) {
    CLEAVE_TRY(cleave_infer_same_dim(infer, data, d, output, d, error));
  }
  for (int32_t d = 0; d < index_rank; d++) {
    CLEAVE_TRY(cleave_infer_same_dim(infer, indices, d, output, axis + d, error));
  }
  for (int32_t d = axis + 1; d < rank; d++) {
    CLEAVE_TRY(cleave_infer_same_dim(infer, data, d, output, d - 1 + index_rank, error));
  }
  return fold_gather(infer, axis, error);
}

cleave_status_t cleave_infer_gather_elements(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *data = cleave_infer_input(infer, 0);
  cleave_fact_t *indices = cleave_infer_input(infer, 1);
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  int32_t axis = 0;
  CLEAVE_TRY(cleave_infer_same_dtype(infer, data, output, error));
  CLEAVE_TRY(check_index_dtype(infer, indices, error));
  CLEAVE_TRY(cleave_infer_same_shape(infer, indices, output, error));
  CLEAVE_TRY(cleave_infer_set_rank(infer, data, cleave_fact_rank(indices), error));
  CLEAVE_TRY(cleave_infer_set_rank(infer, output, cleave_fact_rank(data), error));
  CLEAVE_TRY(cleave_infer_same_shape(infer, indices, output, error));
  if (cleave_fact_rank(data) >= 0) {
    CLEAVE_TRY(cleave_infer_axis(infer, cleave_infer_int(infer, "axis", 0), data->rank, &axis, error));
  }
  return CLEAVE_OK;
}

/* GatherND's output and ScatterND's updates: a part of the data for each tuple of indices, whose first
 * `batch` axes the data has too. */
static cleave_status_t tuple_shape(cleave_infer_t *infer, int32_t batch, cleave_fact_t *parts,
                                   cleave_error_t *error) {
  cleave_fact_t *data = cleave_infer_input(infer, 0);
  cleave_fact_t *indices = cleave_infer_input(infer, 1);
  int32_t rank = cleave_fact_rank(data);
  int32_t tuples = cleave_fact_rank(indices) - 1;
  cleave_dim_t depth = cleave_fact_dim(indices, tuples);
  if (rank < 0 || tuples < 0 || !cleave_dim_is_known(depth)) {
    return CLEAVE_OK;
  }
  if (depth < 1 || depth > rank - batch) {
    return cleave_infer_fail(infer, error, "index tuples of %lld do not fit data of rank %d",
                             (long long)depth, rank);
  }
  int32_t first = batch + (int32_t)depth;
  CLEAVE_TRY(cleave_infer_rank_in_range(infer, (int64_t)tuples + rank - first, error));
  CLEAVE_TRY(cleave_infer_set_rank(infer, parts, tuples + rank - first, error));
  for (int32_t d = 0; d < tuples; d++) {
    CLEAVE_TRY(cleave_infer_same_dim(infer, indices, d, parts, d, error));
  }
  for (int32_t d = first; d < rank; d++) {
    CLEAVE_TRY(cleave_infer_same_dim(infer, data, d, parts, tuples + d - first, error));
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_infer_gather_nd(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *data = cleave_infer_input(infer, 0);
  cleave_fact_t *indices = cleave_infer_input(infer, 1);
  CLEAVE_TRY(cleave_infer_types(infer, "x L > x", error));
  CLEAVE_TRY(cleave_infer_check_rank(infer, data, 1, CLEAVE_MAX_RANK, error));
  CLEAVE_TRY(cleave_infer_check_rank(infer, indices, 1, CLEAVE_MAX_RANK, error));
  int32_t rank = cleave_fact_rank(data);
  int32_t index_rank = cleave_fact_rank(indices);
  int64_t batch = cleave_infer_int(infer, "batch_dims", 0);
  if (rank < 0 || index_rank < 0) {
    return CLEAVE_OK;
  }
  if (batch < 0 || batch >= rank || batch >= index_rank) {
    return cleave_infer_fail(infer, error, "batch_dims %lld does not fit ranks %d and %d", (long long)batch,
                             rank, index_rank);
  }
  for (int32_t d = 0; d < batch; d++) {
    CLEAVE_TRY(cleave_infer_same_dim(infer, data, d, indices, d, error));
  }
  return tuple_shape(infer, (int32_t)batch, cleave_infer_output(infer, 0), error);
}

/* ---- Scatter ---- */

cleave_status_t cleave_infer_scatter_elements(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *data = cleave_infer_input(infer, 0);
  cleave_fact_t *indices = cleave_infer_input(infer, 1);
  cleave_fact_t *updates = cleave_infer_input(infer, 2);
  int32_t axis = 0;
  CLEAVE_TRY(cleave_infer_types(infer, "x:s - x > x:s", error));
  CLEAVE_TRY(check_index_dtype(infer, indices, error));
  CLEAVE_TRY(cleave_infer_same_shape(infer, indices, updates, error));
  CLEAVE_TRY(cleave_infer_set_rank(infer, indices, cleave_fact_rank(data), error));
  if (cleave_fact_rank(data) >= 0) {
    CLEAVE_TRY(cleave_infer_axis(infer, cleave_infer_int(infer, "axis", 0), data->rank, &axis, error));
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_infer_scatter_nd(cleave_infer_t *infer, cleave_error_t *error) {
  CLEAVE_TRY(cleave_infer_types(infer, "x:s L x > x:s", error));
  CLEAVE_TRY(cleave_infer_check_rank(infer, cleave_infer_input(infer, 1), 1, CLEAVE_MAX_RANK, error));
  return tuple_shape(infer, 0, cleave_infer_input(infer, 2), error);
}

/* Rows of `update` go into a cache of the same shape but for the axis, from write_indices on, a number for
 * each batch. */
cleave_status_t cleave_infer_tensor_scatter(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *cache = cleave_infer_input(infer, 0);
  cleave_fact_t *update = cleave_infer_input(infer, 1);
  cleave_fact_t *indices = cleave_infer_input(infer, 2);
  int32_t axis = 0;
  CLEAVE_TRY(cleave_infer_same_type(infer, cache, cleave_infer_output(infer, 0), error));
  CLEAVE_TRY(cleave_infer_same_dtype(infer, cache, update, error));
  CLEAVE_TRY(cleave_infer_check_rank(infer, cache, 2, CLEAVE_MAX_RANK, error));
  CLEAVE_TRY(cleave_infer_set_rank(infer, update, cleave_fact_rank(cache), error));
  CLEAVE_TRY(cleave_infer_set_rank(infer, cache, cleave_fact_rank(update), error));
  if (indices != NULL) {
    CLEAVE_TRY(cleave_infer_set_dtype(infer, indices, CLEAVE_DTYPE_I64, error));
    CLEAVE_TRY(cleave_infer_set_rank(infer, indices, 1, error));
  }
  int32_t rank = cleave_fact_rank(cache);
  if (rank < 0) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(cleave_infer_axis(infer, cleave_infer_int(infer, "axis", -2), rank, &axis, error));
  if (axis == 0) {
    return cleave_infer_fail(infer, error, "axis 0 is the batch, expected another one");
  }
  for (int32_t d = 0; d < rank; d++) {
    if (d != axis) {
      CLEAVE_TRY(cleave_infer_same_dim(infer, cache, d, update, d, error));
    }
  }
  if (indices != NULL) {
    CLEAVE_TRY(cleave_infer_same_dim(infer, cache, 0, indices, 0, error));
  }
  int64_t room = cleave_fact_dim(cache, axis);
  int64_t rows = cleave_fact_dim(update, axis);
  if (cleave_dim_is_known(room) && cleave_dim_is_known(rows) && rows > room) {
    return cleave_infer_fail(infer, error, "%lld row%s cannot fit into a cache of %lld", (long long)rows,
                             CLEAVE_PLURAL(rows), (long long)room);
  }
  return CLEAVE_OK;
}

/* ---- Transpose ---- */

typedef struct axes {
  int32_t rank;
  int32_t of[CLEAVE_MAX_RANK]; /* per axis of the output: that of the input */
} axes_t;

static bool find_transposed(const void *context, int64_t *at) {
  const axes_t *axes = context;
  int64_t from[CLEAVE_MAX_RANK];
  memcpy(from, at, sizeof from);
  for (int32_t d = 0; d < axes->rank; d++) {
    at[axes->of[d]] = from[d];
  }
  return true;
}

cleave_status_t cleave_infer_transpose(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *input = cleave_infer_input(infer, 0);
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  uint32_t count = 0;
  const int64_t *permutation = cleave_infer_int_list(infer, "perm", &count);
  CLEAVE_TRY(cleave_infer_same_dtype(infer, input, output, error));
  if (permutation != NULL && count > 0) {
    CLEAVE_TRY(cleave_infer_rank_in_range(infer, count, error));
    CLEAVE_TRY(cleave_infer_set_rank(infer, input, (int32_t)count, error));
  }
  CLEAVE_TRY(cleave_infer_set_rank(infer, output, cleave_fact_rank(input), error));
  CLEAVE_TRY(cleave_infer_set_rank(infer, input, cleave_fact_rank(output), error));
  int32_t rank = cleave_fact_rank(input);
  axes_t axes = {.rank = rank};
  bool is_taken[CLEAVE_MAX_RANK] = {false};
  for (int32_t d = 0; d < rank; d++) {
    int32_t *axis = &axes.of[d];
    *axis = rank - 1 - d;
    if (permutation != NULL && count > 0) {
      CLEAVE_TRY(cleave_infer_axis(infer, permutation[d], rank, axis, error));
    }
    if (is_taken[*axis]) {
      return cleave_infer_fail(infer, error, "perm names axis %d twice", *axis);
    }
    is_taken[*axis] = true;
    CLEAVE_TRY(cleave_infer_same_dim(infer, input, *axis, output, d, error));
  }
  return cleave_infer_fold_from(infer, input, output, find_transposed, &axes, error);
}

/* ---- others ---- */

static cleave_status_t block_size(const cleave_infer_t *infer, int64_t *out_size, cleave_error_t *error) {
  *out_size = cleave_infer_int(infer, "blocksize", 0);
  if (*out_size < 1 || *out_size > INT32_MAX) {
    return cleave_infer_fail(infer, error, "blocksize is %lld", (long long)*out_size);
  }
  return CLEAVE_OK;
}

/* `dense` [N, C b^2, H, W] and `wide` [N, C, H b, W b]. */
static cleave_status_t relate_blocks(cleave_infer_t *infer, cleave_fact_t *dense, cleave_fact_t *wide,
                                     cleave_error_t *error) {
  int64_t block = 0;
  CLEAVE_TRY(block_size(infer, &block, error));
  CLEAVE_TRY(cleave_infer_same_dtype(infer, dense, wide, error));
  CLEAVE_TRY(cleave_infer_set_rank(infer, dense, 4, error));
  CLEAVE_TRY(cleave_infer_set_rank(infer, wide, 4, error));
  CLEAVE_TRY(cleave_infer_same_dim(infer, dense, 0, wide, 0, error));
  for (int32_t axis = 1; axis < 4; axis++) {
    int64_t factor = axis == 1 ? block * block : block;
    cleave_fact_t *large = axis == 1 ? dense : wide;
    cleave_fact_t *small = axis == 1 ? wide : dense;
    cleave_dim_t size = cleave_fact_dim(large, axis);
    if (cleave_dim_is_known(size) && size % factor != 0) {
      return cleave_infer_fail(infer, error, "axis %d of size %lld is not a multiple of %lld", axis,
                               (long long)size, (long long)factor);
    }
    CLEAVE_TRY(cleave_infer_set_dim(infer, small, axis, cleave_infer_divide(infer, size, factor), error));
    CLEAVE_TRY(cleave_infer_set_dim(
        infer, large, axis, cleave_infer_multiply(infer, cleave_fact_dim(small, axis), factor), error));
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_infer_depth_to_space(cleave_infer_t *infer, cleave_error_t *error) {
  return relate_blocks(infer, cleave_infer_input(infer, 0), cleave_infer_output(infer, 0), error);
}

cleave_status_t cleave_infer_space_to_depth(cleave_infer_t *infer, cleave_error_t *error) {
  return relate_blocks(infer, cleave_infer_output(infer, 0), cleave_infer_input(infer, 0), error);
}

cleave_status_t cleave_infer_trilu(cleave_infer_t *infer, cleave_error_t *error) {
  CLEAVE_TRY(cleave_infer_check_rank(infer, cleave_infer_input(infer, 0), 2, CLEAVE_MAX_RANK, error));
  return cleave_infer_types(infer, "x:s L > x:s", error);
}

cleave_status_t cleave_infer_reverse_sequence(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *input = cleave_infer_input(infer, 0);
  cleave_fact_t *lengths = cleave_infer_input(infer, 1);
  int64_t batch_axis = cleave_infer_int(infer, "batch_axis", 1);
  int64_t time_axis = cleave_infer_int(infer, "time_axis", 0);
  CLEAVE_TRY(cleave_infer_check_rank(infer, input, 2, CLEAVE_MAX_RANK, error));
  CLEAVE_TRY(cleave_infer_types(infer, "x:s L[?] > x:s", error));
  if (batch_axis < 0 || batch_axis > 1 || time_axis < 0 || time_axis > 1 || batch_axis == time_axis) {
    return cleave_infer_fail(infer, error, "batch_axis %lld and time_axis %lld: expected 0 and 1",
                             (long long)batch_axis, (long long)time_axis);
  }
  return cleave_infer_same_dim(infer, input, (int32_t)batch_axis, lengths, 0, error);
}
