// SPDX-License-Identifier: Apache-2.0
// Pointwise operators: unary ones keep the shape both ways, the others broadcast. All of them also carry
// the elements of small tensors along, as shape arithmetic needs.

#include "ops/context/infer_context.h"

static cleave_status_t fold_unary(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *input = cleave_infer_input(infer, 0);
  return cleave_infer_fold_pointwise(infer, &input, 1, cleave_infer_output(infer, 0), error);
}

cleave_status_t cleave_infer_unary(cleave_infer_t *infer, cleave_error_t *error) {
  CLEAVE_TRY(
      cleave_infer_same_type(infer, cleave_infer_input(infer, 0), cleave_infer_output(infer, 0), error));
  return fold_unary(infer, error);
}

/* dX has the type of both dY and Y. */
cleave_status_t cleave_infer_relu_grad(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *gradient = cleave_infer_input(infer, 0);
  CLEAVE_TRY(cleave_infer_same_type(infer, gradient, cleave_infer_input(infer, 1), error));
  return cleave_infer_same_type(infer, gradient, cleave_infer_output(infer, 0), error);
}

cleave_status_t cleave_infer_unary_bool(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  CLEAVE_TRY(cleave_infer_set_dtype(infer, output, CLEAVE_DTYPE_BOOL, error));
  return cleave_infer_same_shape(infer, cleave_infer_input(infer, 0), output, error);
}

cleave_status_t cleave_infer_identity(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *input = cleave_infer_input(infer, 0);
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  CLEAVE_TRY(cleave_infer_same_type(infer, input, output, error));
  return cleave_infer_fold_copy(infer, input, output, error);
}

/* The elements of the input in the dtype of the output. */
static cleave_status_t fold_cast(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *input = cleave_infer_input(infer, 0);
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  const cleave_element_t *elements = cleave_infer_elements(infer, input);
  if (elements == NULL || output == NULL) {
    return CLEAVE_OK;
  }
  cleave_element_t results[CLEAVE_ELEMENT_LIMIT];
  int64_t count = cleave_fact_count(input);
  for (int64_t k = 0; k < count; k++) {
    results[k] =
        cleave_element_cast(infer, &elements[k], cleave_fact_dtype(input), cleave_fact_dtype(output));
  }
  return cleave_infer_set_elements(infer, output, results, count, error);
}

cleave_status_t cleave_infer_cast(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_dtype_t to = CLEAVE_DTYPE_UNKNOWN;
  CLEAVE_TRY(cleave_infer_dtype_attribute(infer, "to", CLEAVE_DTYPE_UNKNOWN, &to, error));
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  CLEAVE_TRY(cleave_infer_set_dtype(infer, output, to, error));
  CLEAVE_TRY(cleave_infer_same_shape(infer, cleave_infer_input(infer, 0), output, error));
  return fold_cast(infer, error);
}

cleave_status_t cleave_infer_cast_like(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  CLEAVE_TRY(cleave_infer_same_dtype(infer, cleave_infer_input(infer, 1), output, error));
  CLEAVE_TRY(cleave_infer_same_shape(infer, cleave_infer_input(infer, 0), output, error));
  return fold_cast(infer, error);
}

cleave_status_t cleave_infer_clip(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *input = cleave_infer_input(infer, 0);
  for (uint32_t k = 1; k <= 2; k++) {
    CLEAVE_TRY(cleave_infer_same_dtype(infer, input, cleave_infer_input(infer, k), error));
  }
  return cleave_infer_same_type(infer, input, cleave_infer_output(infer, 0), error);
}

cleave_status_t cleave_infer_prelu(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *input = cleave_infer_input(infer, 0);
  cleave_fact_t *slope = cleave_infer_input(infer, 1);
  CLEAVE_TRY(cleave_infer_same_type(infer, input, cleave_infer_output(infer, 0), error));
  CLEAVE_TRY(cleave_infer_same_dtype(infer, input, slope, error));
  if (cleave_fact_rank(input) >= 0 && cleave_fact_rank(slope) >= 0) {
    cleave_fact_t *operands[2] = {input, slope};
    return cleave_infer_broadcast(infer, operands, 2, cleave_infer_output(infer, 0), error);
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_infer_dropout(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *input = cleave_infer_input(infer, 0);
  cleave_fact_t *mask = cleave_infer_output(infer, 1);
  CLEAVE_TRY(cleave_infer_set_dtype(infer, cleave_infer_input(infer, 2), CLEAVE_DTYPE_BOOL, error));
  CLEAVE_TRY(cleave_infer_set_dtype(infer, mask, CLEAVE_DTYPE_BOOL, error));
  CLEAVE_TRY(cleave_infer_same_shape(infer, input, mask, error));
  return cleave_infer_same_type(infer, input, cleave_infer_output(infer, 0), error);
}

/* ---- broadcasting ---- */

static cleave_status_t broadcast_and_fold(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  CLEAVE_TRY(cleave_infer_broadcast(infer, infer->inputs, infer->input_count, output, error));
  if (infer->input_count == 1) { /* Max, Min, Sum, Mean of one operand */
    return cleave_infer_fold_copy(infer, infer->inputs[0], output, error);
  }
  return cleave_infer_fold_pointwise(infer, infer->inputs, infer->input_count, output, error);
}

/* All operands, from the first one given, have one dtype. */
static cleave_status_t same_operand_dtype(cleave_infer_t *infer, uint32_t first, cleave_error_t *error) {
  for (uint32_t k = first + 1; k < infer->input_count; k++) {
    CLEAVE_TRY(cleave_infer_same_dtype(infer, infer->inputs[k - 1], infer->inputs[k], error));
  }
  for (uint32_t k = infer->input_count; k > first + 1; k--) {
    CLEAVE_TRY(cleave_infer_same_dtype(infer, infer->inputs[k - 1], infer->inputs[k - 2], error));
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_infer_variadic(cleave_infer_t *infer, cleave_error_t *error) {
  CLEAVE_TRY(same_operand_dtype(infer, 0, error));
  CLEAVE_TRY(
      cleave_infer_same_dtype(infer, cleave_infer_input(infer, 0), cleave_infer_output(infer, 0), error));
  CLEAVE_TRY(same_operand_dtype(infer, 0, error));
  return broadcast_and_fold(infer, error);
}

cleave_status_t cleave_infer_binary(cleave_infer_t *infer, cleave_error_t *error) {
  return cleave_infer_variadic(infer, error);
}

/* The exponent may have a dtype of its own. */
cleave_status_t cleave_infer_pow(cleave_infer_t *infer, cleave_error_t *error) {
  CLEAVE_TRY(
      cleave_infer_same_dtype(infer, cleave_infer_input(infer, 0), cleave_infer_output(infer, 0), error));
  return cleave_infer_broadcast(infer, infer->inputs, infer->input_count, cleave_infer_output(infer, 0),
                                error);
}

cleave_status_t cleave_infer_logical(cleave_infer_t *infer, cleave_error_t *error) {
  for (uint32_t k = 0; k < infer->input_count; k++) {
    CLEAVE_TRY(cleave_infer_set_dtype(infer, infer->inputs[k], CLEAVE_DTYPE_BOOL, error));
  }
  CLEAVE_TRY(cleave_infer_set_dtype(infer, cleave_infer_output(infer, 0), CLEAVE_DTYPE_BOOL, error));
  return broadcast_and_fold(infer, error);
}

cleave_status_t cleave_infer_compare(cleave_infer_t *infer, cleave_error_t *error) {
  CLEAVE_TRY(same_operand_dtype(infer, 0, error));
  CLEAVE_TRY(cleave_infer_set_dtype(infer, cleave_infer_output(infer, 0), CLEAVE_DTYPE_BOOL, error));
  return broadcast_and_fold(infer, error);
}

cleave_status_t cleave_infer_where(cleave_infer_t *infer, cleave_error_t *error) {
  CLEAVE_TRY(cleave_infer_set_dtype(infer, cleave_infer_input(infer, 0), CLEAVE_DTYPE_BOOL, error));
  CLEAVE_TRY(same_operand_dtype(infer, 1, error));
  CLEAVE_TRY(
      cleave_infer_same_dtype(infer, cleave_infer_input(infer, 1), cleave_infer_output(infer, 0), error));
  CLEAVE_TRY(same_operand_dtype(infer, 1, error));
  return broadcast_and_fold(infer, error);
}
