// SPDX-License-Identifier: Apache-2.0
// Pad, Tile and CenterCropPad: what changes the size of axes by an operand.

#include "ops/context/infer_context.h"

/* Axes that an operand with `count` entries speaks of: those of `axes_fact` or of the attribute, else all.
 * *out_known is false if they are not known yet. */
static cleave_status_t read_axes(cleave_infer_t *infer, cleave_fact_t *axes_fact, int32_t rank, int32_t *axes,
                                 uint32_t *out_count, bool *out_known, cleave_error_t *error) {
  int64_t values[CLEAVE_ELEMENT_LIMIT];
  uint32_t count = 0;
  const int64_t *given = NULL;
  *out_known = true;
  if (axes_fact != NULL) {
    *out_known = cleave_infer_ints(infer, axes_fact, values, &count);
    given = values;
  } else {
    given = cleave_infer_int_list(infer, "axes", &count);
  }
  if (!*out_known) {
    return CLEAVE_OK;
  }
  *out_count = given != NULL ? count : (uint32_t)rank;
  CLEAVE_TRY(cleave_infer_rank_in_range(infer, *out_count, error));
  for (uint32_t k = 0; k < *out_count; k++) {
    CLEAVE_TRY(cleave_infer_axis(infer, given != NULL ? given[k] : k, rank, &axes[k], error));
  }
  return CLEAVE_OK;
}

/* size + begin + end, if these may be negative (cropping) or symbolic. */
static cleave_dim_t padded_size(const cleave_infer_t *infer, cleave_dim_t size, const cleave_element_t *begin,
                                const cleave_element_t *end) {
  const cleave_element_t *pads[2] = {begin, end};
  int64_t known = 0;
  for (int k = 0; k < 2; k++) {
    if (pads[k]->kind == CLEAVE_ELEMENT_INT) {
      if (__builtin_add_overflow(known, pads[k]->i, &known)) {
        return CLEAVE_DIM_UNKNOWN;
      }
    } else {
      size = cleave_infer_add(infer, size, cleave_element_dim(pads[k]));
    }
  }
  return cleave_infer_offset(infer, size, known);
}

cleave_status_t cleave_infer_pad(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *input = cleave_infer_input(infer, 0);
  cleave_fact_t *pads = cleave_infer_input(infer, 1);
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  CLEAVE_TRY(cleave_infer_types(infer, "x L[?] x > x", error));
  CLEAVE_TRY(cleave_infer_set_rank(infer, output, cleave_fact_rank(input), error));
  CLEAVE_TRY(cleave_infer_set_rank(infer, input, cleave_fact_rank(output), error));
  int32_t rank = cleave_fact_rank(input);
  int32_t axes[CLEAVE_MAX_RANK];
  uint32_t count = 0;
  bool known = false;
  if (rank < 0) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(read_axes(infer, cleave_infer_input(infer, 3), rank, axes, &count, &known, error));
  if (!known) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(cleave_infer_set_dim(infer, pads, 0, 2 * (int64_t)count, error));
  const cleave_element_t *elements = cleave_infer_elements(infer, pads);
  bool is_padded[CLEAVE_MAX_RANK] = {false};
  for (uint32_t k = 0; k < count; k++) {
    is_padded[axes[k]] = true;
    if (elements != NULL) {
      const cleave_element_t *begin = &elements[k];
      const cleave_element_t *end = &elements[count + k];
      cleave_dim_t size = input->dims[axes[k]];
      cleave_dim_t padded = padded_size(infer, size, begin, end);
      bool numbers =
          cleave_dim_is_known(size) && begin->kind == CLEAVE_ELEMENT_INT && end->kind == CLEAVE_ELEMENT_INT;
      if (numbers && padded == CLEAVE_DIM_UNKNOWN) {
        return cleave_infer_fail(infer, error, "axis %d of size %lld cannot be padded by %lld and %lld",
                                 axes[k], (long long)size, (long long)begin->i, (long long)end->i);
      }
      CLEAVE_TRY(cleave_infer_set_dim(infer, output, axes[k], padded, error));
    }
  }
  for (int32_t d = 0; d < rank; d++) {
    if (!is_padded[d]) {
      CLEAVE_TRY(cleave_infer_same_dim(infer, input, d, output, d, error));
    }
  }
  return CLEAVE_OK;
}

static bool find_repeated(const void *context, int64_t *at) {
  const cleave_fact_t *input = context;
  for (int32_t d = 0; d < input->rank; d++) {
    at[d] %= input->dims[d];
  }
  return true;
}

cleave_status_t cleave_infer_tile(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *input = cleave_infer_input(infer, 0);
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  cleave_dim_t repeats[CLEAVE_MAX_RANK];
  int32_t rank = -1;
  CLEAVE_TRY(cleave_infer_same_dtype(infer, input, output, error));
  CLEAVE_TRY(cleave_infer_shape_operand(infer, cleave_infer_input(infer, 1), 0, &rank, repeats, error));
  CLEAVE_TRY(cleave_infer_set_rank(infer, output, rank, error));
  CLEAVE_TRY(cleave_infer_set_rank(infer, input, cleave_fact_rank(output), error));
  CLEAVE_TRY(cleave_infer_set_rank(infer, output, cleave_fact_rank(input), error));
  if (rank < 0 || cleave_fact_rank(input) < 0) {
    return CLEAVE_OK;
  }
  if (input->rank != rank) {
    return cleave_infer_fail(infer, error, "expected %d repeat%s, found %d", input->rank,
                             CLEAVE_PLURAL(input->rank), rank);
  }
  for (int32_t d = 0; d < rank; d++) {
    cleave_dim_t size = cleave_infer_multiply(infer, input->dims[d], repeats[d]);
    CLEAVE_TRY(cleave_infer_set_dim(infer, output, d, size, error));
  }
  return cleave_infer_fold_from(infer, input, output, find_repeated, input, error);
}

cleave_status_t cleave_infer_center_crop_pad(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *input = cleave_infer_input(infer, 0);
  cleave_fact_t *target = cleave_infer_input(infer, 1);
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  CLEAVE_TRY(cleave_infer_same_dtype(infer, input, output, error));
  CLEAVE_TRY(cleave_infer_set_rank(infer, output, cleave_fact_rank(input), error));
  CLEAVE_TRY(cleave_infer_set_rank(infer, target, 1, error));
  int32_t rank = cleave_fact_rank(input);
  int32_t axes[CLEAVE_MAX_RANK];
  uint32_t count = 0;
  bool known = false;
  if (rank < 0) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(read_axes(infer, NULL, rank, axes, &count, &known, error));
  CLEAVE_TRY(cleave_infer_set_dim(infer, target, 0, count, error));
  const cleave_element_t *elements = cleave_infer_elements(infer, target);
  bool is_set[CLEAVE_MAX_RANK] = {false};
  for (uint32_t k = 0; k < count; k++) {
    is_set[axes[k]] = true;
    if (elements != NULL) {
      if (elements[k].kind == CLEAVE_ELEMENT_INT && elements[k].i < 0) {
        return cleave_infer_fail(infer, error, "expected a size of 0 or more, found %lld",
                                 (long long)elements[k].i);
      }
      CLEAVE_TRY(cleave_infer_set_dim(infer, output, axes[k], cleave_element_dim(&elements[k]), error));
    }
  }
  for (int32_t d = 0; d < rank; d++) {
    if (!is_set[d]) {
      CLEAVE_TRY(cleave_infer_same_dim(infer, input, d, output, d, error));
    }
  }
  return CLEAVE_OK;
}
