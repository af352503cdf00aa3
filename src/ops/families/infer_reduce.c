// SPDX-License-Identifier: Apache-2.0
// Reductions over axes, ArgMax and ArgMin, CumSum.

#include "ops/context/infer_context.h"

/* Output shape if the axes in `is_reduced` go, or become 1. */
static cleave_status_t reduce_shape(cleave_infer_t *infer, const bool *is_reduced, bool keep,
                                    cleave_error_t *error) {
  cleave_fact_t *input = cleave_infer_input(infer, 0);
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  int32_t rank = 0;
  for (int32_t d = 0; d < input->rank; d++) {
    rank += keep || !is_reduced[d] ? 1 : 0;
  }
  CLEAVE_TRY(cleave_infer_set_rank(infer, output, rank, error));
  int32_t place = 0;
  for (int32_t d = 0; d < input->rank; d++) {
    if (!is_reduced[d]) {
      CLEAVE_TRY(cleave_infer_same_dim(infer, input, d, output, place++, error));
    } else if (keep) {
      CLEAVE_TRY(cleave_infer_set_dim(infer, output, place++, 1, error));
    }
  }
  return CLEAVE_OK;
}

/* Product of a whole shape vector: sizes, symbols among them. */
static cleave_status_t fold_product(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *input = cleave_infer_input(infer, 0);
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  const cleave_element_t *elements = cleave_infer_elements(infer, input);
  if (elements == NULL || cleave_fact_count(output) != 1 || cleave_fact_rank(input) != 1 ||
      !cleave_dtype_is_integer(cleave_fact_dtype(input))) {
    return CLEAVE_OK;
  }
  cleave_dim_t product = 1;
  for (int64_t k = 0; k < cleave_fact_count(input); k++) {
    product = cleave_infer_multiply(infer, product, cleave_element_dim(&elements[k]));
  }
  cleave_element_t result = cleave_element_of_dim(product);
  return cleave_infer_set_elements(infer, output, &result, 1, error);
}

static cleave_status_t fold_sum_or_extreme(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  int64_t values[CLEAVE_ELEMENT_LIMIT];
  uint32_t count = 0;
  if (cleave_fact_count(output) != 1 ||
      !cleave_infer_ints(infer, cleave_infer_input(infer, 0), values, &count) || count == 0) {
    return CLEAVE_OK;
  }
  int64_t result = values[0];
  for (uint32_t k = 1; k < count; k++) {
    switch (infer->op->id) {
      case CLEAVE_OP_ReduceMax: result = values[k] > result ? values[k] : result; break;
      case CLEAVE_OP_ReduceMin: result = values[k] < result ? values[k] : result; break;
      default:
        if (__builtin_add_overflow(result, values[k], &result)) {
          return CLEAVE_OK;
        }
    }
  }
  cleave_element_t element = cleave_element_of_int(result);
  element = cleave_element_cast(infer, &element, CLEAVE_DTYPE_I64, cleave_fact_dtype(output));
  return cleave_infer_set_elements(infer, output, &element, 1, error);
}

static cleave_status_t fold_reduction(cleave_infer_t *infer, cleave_error_t *error) {
  switch (infer->op->id) {
    case CLEAVE_OP_ReduceProd: return fold_product(infer, error);
    case CLEAVE_OP_ReduceSum:
    case CLEAVE_OP_ReduceMax:
    case CLEAVE_OP_ReduceMin: return fold_sum_or_extreme(infer, error);
    default: return CLEAVE_OK;
  }
}

cleave_status_t cleave_infer_reduce(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *input = cleave_infer_input(infer, 0);
  cleave_fact_t *axes_fact = cleave_infer_input(infer, 1);
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  bool keep = cleave_infer_int(infer, "keepdims", 1) != 0;
  bool is_reduced[CLEAVE_MAX_RANK] = {false};
  int64_t axes[CLEAVE_ELEMENT_LIMIT];
  uint32_t count = 0;
  CLEAVE_TRY(cleave_infer_same_dtype(infer, input, output, error));
  CLEAVE_TRY(cleave_infer_set_dtype(infer, axes_fact, CLEAVE_DTYPE_I64, error));
  if (keep) {
    CLEAVE_TRY(cleave_infer_set_rank(infer, output, cleave_fact_rank(input), error));
    CLEAVE_TRY(cleave_infer_set_rank(infer, input, cleave_fact_rank(output), error));
  }
  bool known = axes_fact == NULL || cleave_infer_ints(infer, axes_fact, axes, &count);
  if (!known && cleave_fact_dim(axes_fact, 0) == 0) {
    known = true;
  }
  if (cleave_fact_rank(input) < 0 || !known) {
    return CLEAVE_OK;
  }
  if (count == 0 && cleave_infer_int(infer, "noop_with_empty_axes", 0) != 0) {
    return cleave_infer_same_shape(infer, input, output, error);
  }
  for (int32_t d = 0; d < input->rank; d++) {
    is_reduced[d] = count == 0;
  }
  for (uint32_t k = 0; k < count; k++) {
    int32_t axis = 0;
    CLEAVE_TRY(cleave_infer_axis(infer, axes[k], input->rank, &axis, error));
    is_reduced[axis] = true;
  }
  CLEAVE_TRY(reduce_shape(infer, is_reduced, keep, error));
  return fold_reduction(infer, error);
}

cleave_status_t cleave_infer_arg_reduce(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *input = cleave_infer_input(infer, 0);
  bool is_reduced[CLEAVE_MAX_RANK] = {false};
  int32_t axis = 0;
  CLEAVE_TRY(cleave_infer_set_dtype(infer, cleave_infer_output(infer, 0), CLEAVE_DTYPE_I64, error));
  if (cleave_fact_rank(input) < 0) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(cleave_infer_axis(infer, cleave_infer_int(infer, "axis", 0), input->rank, &axis, error));
  is_reduced[axis] = true;
  return reduce_shape(infer, is_reduced, cleave_infer_int(infer, "keepdims", 1) != 0, error);
}

cleave_status_t cleave_infer_cumsum(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *input = cleave_infer_input(infer, 0);
  int64_t given = 0;
  int32_t axis = 0;
  CLEAVE_TRY(cleave_infer_same_type(infer, input, cleave_infer_output(infer, 0), error));
  if (cleave_fact_rank(input) >= 0 && cleave_infer_scalar_int(infer, cleave_infer_input(infer, 1), &given)) {
    CLEAVE_TRY(cleave_infer_axis(infer, given, input->rank, &axis, error));
  }
  return CLEAVE_OK;
}
