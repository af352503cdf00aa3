// SPDX-License-Identifier: Apache-2.0
// Selection and search. Sizes that depend on data stay unknown until a run.

#include "ops/context/infer_context.h"

/* Output with one axis of data-dependent size, or a vector if there is no axis attribute. */
static cleave_status_t one_open_axis(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *input = cleave_infer_input(infer, 0);
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  CLEAVE_TRY(cleave_infer_same_dtype(infer, input, output, error));
  if (cleave_op_attribute(infer->graph, infer->node, "axis") == NULL) {
    return cleave_infer_set_rank(infer, output, 1, error);
  }
  int32_t axis = 0;
  if (cleave_fact_rank(input) < 0) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(cleave_infer_axis(infer, cleave_infer_int(infer, "axis", 0), input->rank, &axis, error));
  CLEAVE_TRY(cleave_infer_set_rank(infer, output, input->rank, error));
  for (int32_t d = 0; d < input->rank; d++) {
    if (d != axis) {
      CLEAVE_TRY(cleave_infer_same_dim(infer, input, d, output, d, error));
    }
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_infer_compress(cleave_infer_t *infer, cleave_error_t *error) {
  CLEAVE_TRY(cleave_infer_types(infer, "- B[?]", error));
  return one_open_axis(infer, error);
}

cleave_status_t cleave_infer_unique(cleave_infer_t *infer, cleave_error_t *error) {
  CLEAVE_TRY(cleave_infer_types(infer, "> - L[?] L[?] L[?]", error));
  return one_open_axis(infer, error);
}

cleave_status_t cleave_infer_non_zero(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  int32_t rank = cleave_fact_rank(cleave_infer_input(infer, 0));
  CLEAVE_TRY(cleave_infer_types(infer, "> L[??]", error));
  return rank > 0 ? cleave_infer_set_dim(infer, output, 0, rank, error) : CLEAVE_OK;
}

/* boxes [B, N, 4], scores [B, C, N] -> [selected, 3]. */
cleave_status_t cleave_infer_non_max_suppression(cleave_infer_t *infer, cleave_error_t *error) {
  return cleave_infer_types(infer, "F[bn4] F[b?n] > L[?3]", error);
}

cleave_status_t cleave_infer_top_k(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *input = cleave_infer_input(infer, 0);
  cleave_fact_t *count = cleave_infer_input(infer, 1);
  CLEAVE_TRY(cleave_infer_types(infer, "x L > x L", error));
  int32_t rank = cleave_fact_rank(input);
  int32_t axis = 0;
  if (rank < 0) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(cleave_infer_axis(infer, cleave_infer_int(infer, "axis", -1), rank, &axis, error));
  const cleave_element_t *elements = cleave_infer_elements(infer, count);
  cleave_dim_t selected = CLEAVE_DIM_UNKNOWN;
  if (elements != NULL && cleave_fact_count(count) == 1) {
    selected = cleave_element_dim(&elements[0]);
    bool is_negative = elements[0].kind == CLEAVE_ELEMENT_INT && elements[0].i < 0;
    if (is_negative || (cleave_dim_is_known(selected) && cleave_dim_is_known(input->dims[axis]) &&
                        selected > input->dims[axis])) {
      return cleave_infer_fail(infer, error, "cannot take %lld of axis %d", (long long)elements[0].i, axis);
    }
  }
  for (uint32_t k = 0; k < 2; k++) {
    cleave_fact_t *output = cleave_infer_output(infer, k);
    CLEAVE_TRY(cleave_infer_set_rank(infer, output, rank, error));
    for (int32_t d = 0; d < rank; d++) {
      CLEAVE_TRY(cleave_infer_set_dim(infer, output, d, d == axis ? selected : input->dims[d], error));
    }
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_infer_one_hot(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *indices = cleave_infer_input(infer, 0);
  cleave_fact_t *depth = cleave_infer_input(infer, 1);
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  CLEAVE_TRY(cleave_infer_types(infer, "- - v[2] > v", error));
  int32_t rank = cleave_fact_rank(indices);
  int32_t axis = 0;
  if (rank < 0) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(cleave_infer_rank_in_range(infer, (int64_t)rank + 1, error));
  CLEAVE_TRY(cleave_infer_axis(infer, cleave_infer_int(infer, "axis", -1), rank + 1, &axis, error));
  CLEAVE_TRY(cleave_infer_set_rank(infer, output, rank + 1, error));
  const cleave_element_t *elements = cleave_infer_elements(infer, depth);
  if (elements != NULL && cleave_fact_count(depth) == 1) {
    cleave_element_t size =
        cleave_element_cast(infer, &elements[0], cleave_fact_dtype(depth), CLEAVE_DTYPE_I64);
    if (size.kind == CLEAVE_ELEMENT_INT && size.i < 0) {
      return cleave_infer_fail(infer, error, "depth is %lld", (long long)size.i);
    }
    CLEAVE_TRY(cleave_infer_set_dim(infer, output, axis, cleave_element_dim(&size), error));
  }
  for (int32_t d = 0; d < rank; d++) {
    CLEAVE_TRY(cleave_infer_same_dim(infer, indices, d, output, d < axis ? d : d + 1, error));
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_infer_eye_like(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *input = cleave_infer_input(infer, 0);
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  cleave_dtype_t dtype = CLEAVE_DTYPE_UNKNOWN;
  CLEAVE_TRY(cleave_infer_dtype_attribute(infer, "dtype", cleave_fact_dtype(input), &dtype, error));
  CLEAVE_TRY(cleave_infer_set_dtype(infer, output, dtype, error));
  CLEAVE_TRY(cleave_infer_set_rank(infer, input, 2, error));
  return cleave_infer_same_shape(infer, input, output, error);
}
