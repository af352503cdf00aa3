// SPDX-License-Identifier: Apache-2.0
// Operators that make or take shapes: Shape, Size, Reshape, Flatten, Squeeze, Unsqueeze, Expand,
// ConstantOfShape, Range, Constant. Their elements are followed, symbolic sizes included.

#include <math.h>

#include "ops/context/infer_context.h"

cleave_status_t cleave_infer_shape_operand(cleave_infer_t *infer, cleave_fact_t *fact, int64_t lowest,
                                           int32_t *out_rank, cleave_dim_t *dims, cleave_error_t *error) {
  *out_rank = -1;
  CLEAVE_TRY(cleave_infer_set_dtype(infer, fact, CLEAVE_DTYPE_I64, error));
  CLEAVE_TRY(cleave_infer_set_rank(infer, fact, 1, error));
  cleave_dim_t count = cleave_fact_dim(fact, 0);
  if (!cleave_dim_is_known(count)) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(cleave_infer_rank_in_range(infer, count, error));
  const cleave_element_t *elements = cleave_infer_elements(infer, fact);
  for (int64_t d = 0; d < count; d++) {
    dims[d] = CLEAVE_DIM_UNKNOWN;
    if (elements != NULL) {
      if (elements[d].kind == CLEAVE_ELEMENT_INT && elements[d].i < lowest) {
        return cleave_infer_fail(infer, error, "expected sizes of %lld or more, found %lld",
                                 (long long)lowest, (long long)elements[d].i);
      }
      dims[d] = cleave_element_dim(&elements[d]);
    }
  }
  *out_rank = (int32_t)count;
  return CLEAVE_OK;
}

cleave_status_t cleave_infer_shape(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *input = cleave_infer_input(infer, 0);
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  CLEAVE_TRY(cleave_infer_set_dtype(infer, output, CLEAVE_DTYPE_I64, error));
  CLEAVE_TRY(cleave_infer_set_rank(infer, output, 1, error));
  int64_t rank = cleave_fact_rank(input);
  if (rank < 0) {
    return CLEAVE_OK;
  }
  int64_t start = cleave_infer_int(infer, "start", 0);
  int64_t end = cleave_infer_int(infer, "end", rank);
  start = start < -rank ? 0 : start < 0 ? start + rank : start > rank ? rank : start;
  end = end < -rank ? 0 : end < 0 ? end + rank : end > rank ? rank : end;
  int64_t count = end > start ? end - start : 0;
  CLEAVE_TRY(cleave_infer_set_dim(infer, output, 0, count, error));
  cleave_element_t elements[CLEAVE_MAX_RANK];
  for (int64_t d = 0; d < count; d++) {
    elements[d] = cleave_element_of_dim(input->dims[start + d]);
  }
  return cleave_infer_set_elements(infer, output, elements, count, error);
}

cleave_status_t cleave_infer_size(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *input = cleave_infer_input(infer, 0);
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  CLEAVE_TRY(cleave_infer_set_dtype(infer, output, CLEAVE_DTYPE_I64, error));
  CLEAVE_TRY(cleave_infer_set_rank(infer, output, 0, error));
  if (cleave_fact_rank(input) < 0) {
    return CLEAVE_OK;
  }
  cleave_element_t count = cleave_element_of_dim(cleave_infer_product(infer, input->dims, input->rank));
  return cleave_infer_set_elements(infer, output, &count, 1, error);
}

/* ---- Reshape ---- */

/* The size that makes the element counts equal: product(input) / product(other dims of output), leaving
 * out the axes that are copied. UNKNOWN if that is not known. */
static cleave_status_t remaining_dim(const cleave_infer_t *infer, const cleave_fact_t *input,
                                     const cleave_fact_t *output, const bool *is_copied, int32_t axis,
                                     cleave_dim_t *out_dim, cleave_error_t *error) {
  cleave_dim_t total = 1;
  cleave_dim_t others = 1;
  *out_dim = CLEAVE_DIM_UNKNOWN;
  for (int32_t d = 0; d < input->rank; d++) {
    if (d >= output->rank || !is_copied[d]) {
      total = cleave_infer_multiply(infer, total, input->dims[d]);
    }
  }
  for (int32_t d = 0; d < output->rank; d++) {
    if (d != axis && !is_copied[d]) {
      others = cleave_infer_multiply(infer, others, output->dims[d]);
    }
  }
  if (total == CLEAVE_DIM_UNKNOWN || others == CLEAVE_DIM_UNKNOWN || others == 0) {
    return CLEAVE_OK;
  }
  if (cleave_dim_is_known(total) && cleave_dim_is_known(others) && total % others != 0) {
    return cleave_infer_fail(infer, error, "%lld element%s cannot be split into rows of %lld",
                             (long long)total, CLEAVE_PLURAL(total), (long long)others);
  }
  *out_dim = cleave_infer_divide(infer, total, others);
  return CLEAVE_OK;
}

static cleave_status_t check_counts(const cleave_infer_t *infer, const cleave_fact_t *input,
                                    const cleave_fact_t *output, cleave_error_t *error) {
  int64_t before = cleave_fact_count(input);
  int64_t after = cleave_fact_count(output);
  if (before >= 0 && after >= 0 && before != after) {
    return cleave_infer_fail(infer, error, "expected %lld element%s, found a shape with %lld",
                             (long long)before, CLEAVE_PLURAL(before), (long long)after);
  }
  return CLEAVE_OK;
}

/* The one open dim of a fact whose element count is that of another. */
static cleave_status_t fill_open_dim(cleave_infer_t *infer, cleave_fact_t *fact, const cleave_fact_t *other,
                                     cleave_error_t *error) {
  static const bool none_copied[CLEAVE_MAX_RANK] = {false};
  int32_t open = -1;
  for (int32_t d = 0; d < cleave_fact_rank(fact); d++) {
    if (fact->dims[d] == CLEAVE_DIM_UNKNOWN) {
      if (open >= 0) {
        return CLEAVE_OK;
      }
      open = d;
    }
  }
  if (open < 0 || cleave_fact_rank(other) < 0) {
    return CLEAVE_OK;
  }
  cleave_dim_t dim = CLEAVE_DIM_UNKNOWN;
  CLEAVE_TRY(remaining_dim(infer, other, fact, none_copied, open, &dim, error));
  return cleave_infer_set_dim(infer, fact, open, dim, error);
}

/* Output dims from the elements of the shape operand: 0 copies, -1 is what remains. */
static cleave_status_t apply_target(cleave_infer_t *infer, const cleave_element_t *target,
                                    cleave_error_t *error) {
  cleave_fact_t *input = cleave_infer_input(infer, 0);
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  bool zero_copies = cleave_infer_int(infer, "allowzero", 0) == 0;
  bool is_copied[CLEAVE_MAX_RANK] = {false};
  cleave_dim_t dims[CLEAVE_MAX_RANK];
  int32_t rank = (int32_t)cleave_fact_dim(cleave_infer_input(infer, 1), 0);
  int32_t rest_axis = -1;
  uint32_t open_count = 0;
  for (int32_t d = 0; d < rank; d++) {
    dims[d] = cleave_element_dim(&target[d]);
    if (target[d].kind == CLEAVE_ELEMENT_INT && target[d].i == -1) {
      if (rest_axis >= 0) {
        return cleave_infer_fail(infer, error, "more than one size of the shape is -1");
      }
      rest_axis = d;
    } else if (dims[d] == 0 && zero_copies) {
      if (input->rank >= 0 && d >= input->rank) {
        return cleave_infer_fail(infer, error, "size %d of the shape is 0, but the input has rank %d", d,
                                 input->rank);
      }
      is_copied[d] = true;
      dims[d] = cleave_fact_dim(input, d);
    }
    open_count += target[d].kind == CLEAVE_ELEMENT_UNKNOWN ? 1 : 0;
  }
  if (input->rank >= 0 && rest_axis >= 0 && open_count == 0) {
    cleave_fact_t wanted = {.rank = (int8_t)rank, .dims = dims};
    CLEAVE_TRY(remaining_dim(infer, input, &wanted, is_copied, rest_axis, &dims[rest_axis], error));
  }
  CLEAVE_TRY(cleave_infer_set_shape(infer, output, rank, dims, error));
  for (int32_t d = 0; d < rank; d++) {
    if (is_copied[d]) {
      CLEAVE_TRY(cleave_infer_same_dim(infer, input, d, output, d, error));
    }
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_infer_reshape(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *input = cleave_infer_input(infer, 0);
  cleave_fact_t *target = cleave_infer_input(infer, 1);
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  cleave_dim_t dims[CLEAVE_MAX_RANK];
  int32_t rank = -1;
  if (input == NULL || output == NULL) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(cleave_infer_same_dtype(infer, input, output, error));
  CLEAVE_TRY(cleave_infer_shape_operand(infer, target, -1, &rank, dims, error));
  if (output->rank >= 0) {
    CLEAVE_TRY(cleave_infer_set_dim(infer, target, 0, output->rank, error));
  }
  CLEAVE_TRY(cleave_infer_set_rank(infer, output, rank, error));
  const cleave_element_t *elements = cleave_infer_elements(infer, target);
  if (elements != NULL) {
    CLEAVE_TRY(apply_target(infer, elements, error));
  }
  CLEAVE_TRY(fill_open_dim(infer, output, input, error));
  CLEAVE_TRY(fill_open_dim(infer, input, output, error));
  CLEAVE_TRY(check_counts(infer, input, output, error));
  return cleave_infer_fold_copy(infer, input, output, error);
}

cleave_status_t cleave_infer_flatten(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *input = cleave_infer_input(infer, 0);
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  CLEAVE_TRY(cleave_infer_same_dtype(infer, input, output, error));
  CLEAVE_TRY(cleave_infer_set_rank(infer, output, 2, error));
  int32_t rank = cleave_fact_rank(input);
  if (rank < 0) {
    return CLEAVE_OK;
  }
  int64_t axis = cleave_infer_int(infer, "axis", 1);
  if (axis < -rank || axis > rank) {
    return cleave_infer_fail(infer, error, "expected an axis from %d to %d, found %lld", -rank, rank,
                             (long long)axis);
  }
  int32_t split = (int32_t)(axis < 0 ? axis + rank : axis);
  cleave_dim_t dims[2] = {cleave_infer_product(infer, input->dims, split),
                          cleave_infer_product(infer, rank > 0 ? input->dims + split : NULL, rank - split)};
  CLEAVE_TRY(cleave_infer_set_shape(infer, output, 2, dims, error));
  CLEAVE_TRY(check_counts(infer, input, output, error));
  return cleave_infer_fold_copy(infer, input, output, error);
}

/* ---- Squeeze and Unsqueeze ---- */

/* `wide` is `narrow` with sizes of 1 put in at `axes`, which count in `wide`. Both ways. */
static cleave_status_t relate_by_axes(cleave_infer_t *infer, cleave_fact_t *wide, cleave_fact_t *narrow,
                                      const int64_t *axes, uint32_t count, cleave_error_t *error) {
  int64_t rank = cleave_fact_rank(wide);
  if (rank < 0 && cleave_fact_rank(narrow) >= 0) {
    rank = (int64_t)narrow->rank + count;
  }
  if (rank < 0) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(cleave_infer_rank_in_range(infer, rank, error));
  bool is_one[CLEAVE_MAX_RANK] = {false};
  for (uint32_t k = 0; k < count; k++) {
    int32_t axis = 0;
    CLEAVE_TRY(cleave_infer_axis(infer, axes[k], (int32_t)rank, &axis, error));
    if (is_one[axis]) {
      return cleave_infer_fail(infer, error, "axis %d is given twice", axis);
    }
    is_one[axis] = true;
  }
  CLEAVE_TRY(cleave_infer_set_rank(infer, wide, (int32_t)rank, error));
  CLEAVE_TRY(cleave_infer_set_rank(infer, narrow, (int32_t)(rank - count), error));
  int32_t place = 0;
  for (int32_t d = 0; d < rank; d++) {
    if (is_one[d]) {
      CLEAVE_TRY(cleave_infer_set_dim(infer, wide, d, 1, error));
    } else {
      CLEAVE_TRY(cleave_infer_same_dim(infer, wide, d, narrow, place++, error));
    }
  }
  return CLEAVE_OK;
}

/* Axes that Squeeze removes when it is given none: all known to be 1; false if a dim is open. */
static bool axes_of_ones(const cleave_fact_t *input, int64_t *axes, uint32_t *out_count) {
  *out_count = 0;
  for (int32_t d = 0; d < cleave_fact_rank(input); d++) {
    if (!cleave_dim_is_known(input->dims[d])) {
      return false;
    }
    if (input->dims[d] == 1) {
      axes[(*out_count)++] = d;
    }
  }
  return cleave_fact_rank(input) >= 0;
}

static cleave_status_t squeeze_or_unsqueeze(cleave_infer_t *infer, cleave_fact_t *wide, cleave_fact_t *narrow,
                                            cleave_error_t *error) {
  cleave_fact_t *axes_fact = cleave_infer_input(infer, 1);
  int64_t axes[CLEAVE_ELEMENT_LIMIT];
  uint32_t count = 0;
  CLEAVE_TRY(cleave_infer_same_dtype(infer, wide, narrow, error));
  CLEAVE_TRY(cleave_infer_set_dtype(infer, axes_fact, CLEAVE_DTYPE_I64, error));
  bool known = axes_fact != NULL ? cleave_infer_ints(infer, axes_fact, axes, &count)
                                 : axes_of_ones(wide, axes, &count);
  if (known) {
    CLEAVE_TRY(relate_by_axes(infer, wide, narrow, axes, count, error));
  }
  return cleave_infer_fold_copy(infer, cleave_infer_input(infer, 0), cleave_infer_output(infer, 0), error);
}

cleave_status_t cleave_infer_squeeze(cleave_infer_t *infer, cleave_error_t *error) {
  return squeeze_or_unsqueeze(infer, cleave_infer_input(infer, 0), cleave_infer_output(infer, 0), error);
}

cleave_status_t cleave_infer_unsqueeze(cleave_infer_t *infer, cleave_error_t *error) {
  return squeeze_or_unsqueeze(infer, cleave_infer_output(infer, 0), cleave_infer_input(infer, 0), error);
}

/* ---- making tensors of a shape ---- */

cleave_status_t cleave_infer_expand(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *input = cleave_infer_input(infer, 0);
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  cleave_dim_t target[CLEAVE_MAX_RANK];
  int32_t rank = -1;
  CLEAVE_TRY(cleave_infer_same_dtype(infer, input, output, error));
  CLEAVE_TRY(cleave_infer_shape_operand(infer, cleave_infer_input(infer, 1), 0, &rank, target, error));
  if (rank < 0 || cleave_fact_rank(input) < 0) {
    return CLEAVE_OK;
  }
  cleave_dim_t dims[CLEAVE_MAX_RANK];
  int32_t wide = cleave_shape_broadcast(input->rank, input->dims, rank, target, dims);
  if (wide < 0) {
    return cleave_infer_fail(infer, error, "the input does not broadcast to the requested shape");
  }
  CLEAVE_TRY(cleave_infer_set_shape(infer, output, wide, dims, error));
  return cleave_infer_fold_pointwise(infer, &input, 1, output, error);
}

cleave_status_t cleave_infer_constant_of_shape(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  const cleave_attribute_t *value = cleave_op_attribute(infer->graph, infer->node, "value");
  const cleave_tensor_t *tensor =
      value != NULL && value->kind == CLEAVE_ATTRIBUTE_TENSOR ? value->held : NULL;
  if (tensor != NULL && tensor->count != 1) {
    return cleave_infer_fail(infer, error, "attribute 'value': expected one element, found %lld",
                             (long long)tensor->count);
  }
  cleave_dtype_t dtype = tensor != NULL ? tensor->dtype : CLEAVE_DTYPE_F32;
  cleave_dim_t dims[CLEAVE_MAX_RANK];
  int32_t rank = -1;
  CLEAVE_TRY(cleave_infer_set_dtype(infer, output, dtype, error));
  CLEAVE_TRY(cleave_infer_shape_operand(infer, cleave_infer_input(infer, 0), 0, &rank, dims, error));
  CLEAVE_TRY(cleave_infer_set_shape(infer, output, rank, dims, error));
  int64_t count = cleave_fact_count(output);
  if (count < 0 || count > CLEAVE_ELEMENT_LIMIT || !cleave_element_follows(dtype)) {
    return CLEAVE_OK;
  }
  cleave_element_t elements[CLEAVE_ELEMENT_LIMIT];
  cleave_element_t zero = cleave_element_of_int(0);
  for (int64_t k = 0; k < count; k++) {
    elements[k] = tensor != NULL ? cleave_element_of_tensor(tensor, 0)
                                 : cleave_element_cast(infer, &zero, CLEAVE_DTYPE_I64, dtype);
  }
  return cleave_infer_set_elements(infer, output, elements, count, error);
}

/* max(ceil((limit - start) / delta), 0) for doubles; -1 if it is absurd. */
static int64_t float_range_count(double start, double limit, double delta) {
  double count = ceil((limit - start) / delta);
  return isfinite(count) && count < 9.0e15 ? (count > 0.0 ? (int64_t)count : 0) : -1;
}

static int64_t int_range_count(int64_t start, int64_t limit, int64_t delta) {
  int64_t span = 0;
  if (__builtin_sub_overflow(limit, start, &span) || span == INT64_MIN || delta == INT64_MIN) {
    return -1;
  }
  if (span == 0 || (span > 0) != (delta > 0)) {
    return 0;
  }
  uint64_t length = (uint64_t)(span > 0 ? span : -span);
  uint64_t step = (uint64_t)(delta > 0 ? delta : -delta);
  return (int64_t)(length / step + (length % step != 0 ? 1 : 0));
}

static bool is_zero(const cleave_element_t *element) {
  return (element->kind == CLEAVE_ELEMENT_INT && element->i == 0) ||
         (element->kind == CLEAVE_ELEMENT_FLOAT && element->f == 0.0);
}

cleave_status_t cleave_infer_range(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  const cleave_element_t *parts[3];
  bool known = true;
  CLEAVE_TRY(cleave_infer_set_rank(infer, output, 1, error));
  for (uint32_t k = 0; k < 3; k++) {
    cleave_fact_t *input = cleave_infer_input(infer, k);
    CLEAVE_TRY(cleave_infer_same_dtype(infer, input, output, error));
    parts[k] = cleave_infer_elements(infer, input);
    known = known && parts[k] != NULL && cleave_fact_count(input) == 1;
  }
  if (!known) {
    return CLEAVE_OK;
  }
  const cleave_element_t *start = parts[0];
  const cleave_element_t *limit = parts[1];
  const cleave_element_t *delta = parts[2];
  if (is_zero(delta)) {
    return cleave_infer_fail(infer, error, "the step is 0");
  }
  if (start->kind == CLEAVE_ELEMENT_FLOAT && limit->kind == CLEAVE_ELEMENT_FLOAT &&
      delta->kind == CLEAVE_ELEMENT_FLOAT) {
    return cleave_infer_set_dim(infer, output, 0, float_range_count(start->f, limit->f, delta->f), error);
  }
  if (delta->kind != CLEAVE_ELEMENT_INT) {
    return CLEAVE_OK;
  }
  if (start->kind == CLEAVE_ELEMENT_INT && limit->kind == CLEAVE_ELEMENT_INT) {
    int64_t count = int_range_count(start->i, limit->i, delta->i);
    CLEAVE_TRY(cleave_infer_set_dim(infer, output, 0, count, error));
    cleave_element_t elements[CLEAVE_ELEMENT_LIMIT];
    for (int64_t k = 0; k < count && count <= CLEAVE_ELEMENT_LIMIT; k++) {
      elements[k] = cleave_element_of_int(start->i + k * delta->i);
    }
    return cleave_infer_set_elements(infer, output, elements, count, error);
  }
  bool is_negative = start->kind == CLEAVE_ELEMENT_INT && start->i < 0;
  if (delta->i <= 0 || (is_negative && start->i == INT64_MIN)) {
    return CLEAVE_OK;
  }
  cleave_dim_t span =
      is_negative ? cleave_infer_offset(infer, cleave_element_dim(limit), -start->i)
                  : cleave_infer_subtract(infer, cleave_element_dim(limit), cleave_element_dim(start));
  return cleave_infer_set_dim(infer, output, 0, cleave_infer_divide_up(infer, span, delta->i), error);
}

/* ---- Constant ---- */

cleave_status_t cleave_infer_constant(cleave_infer_t *infer, cleave_error_t *error) {
  static const struct {
    const char *name;
    cleave_dtype_t dtype;
    int32_t rank;
  } forms[] = {{"value_float", CLEAVE_DTYPE_F32, 0},     {"value_floats", CLEAVE_DTYPE_F32, 1},
               {"value_int", CLEAVE_DTYPE_I64, 0},       {"value_ints", CLEAVE_DTYPE_I64, 1},
               {"value_string", CLEAVE_DTYPE_STRING, 0}, {"value_strings", CLEAVE_DTYPE_STRING, 1}};
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  const cleave_attribute_t *value = cleave_op_attribute(infer->graph, infer->node, "value");
  if (value != NULL && value->kind == CLEAVE_ATTRIBUTE_TENSOR) {
    const cleave_tensor_t *tensor = value->held;
    CLEAVE_TRY(cleave_infer_set_dtype(infer, output, tensor->dtype, error));
    CLEAVE_TRY(cleave_infer_set_shape(infer, output, tensor->rank, tensor->dims, error));
    if (output != NULL && output->tensor == NULL) {
      output->tensor = tensor;
      output->changed = true;
    }
    return CLEAVE_OK;
  }
  for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
    value = cleave_op_attribute(infer->graph, infer->node, forms[k].name);
    if (value == NULL) {
      continue;
    }
    cleave_dim_t dim = value->count;
    CLEAVE_TRY(cleave_infer_set_dtype(infer, output, forms[k].dtype, error));
    CLEAVE_TRY(cleave_infer_set_shape(infer, output, forms[k].rank, &dim, error));
    cleave_element_t element = cleave_element_of_int(value->i);
    if (value->kind == CLEAVE_ATTRIBUTE_FLOAT) {
      element = (cleave_element_t){.kind = CLEAVE_ELEMENT_FLOAT, .divisor = 1, .f = value->f};
    }
    bool is_finite = value->kind == CLEAVE_ATTRIBUTE_FLOAT && isfinite(value->f);
    if (is_finite || value->kind == CLEAVE_ATTRIBUTE_INT) {
      return cleave_infer_set_elements(infer, output, &element, 1, error);
    }
    if (value->kind == CLEAVE_ATTRIBUTE_INTS && value->count <= CLEAVE_ELEMENT_LIMIT) {
      cleave_element_t elements[CLEAVE_ELEMENT_LIMIT];
      for (uint32_t e = 0; e < value->count; e++) {
        elements[e] = cleave_element_of_int(value->ints[e]);
      }
      return cleave_infer_set_elements(infer, output, elements, value->count, error);
    }
    return CLEAVE_OK;
  }
  return cleave_infer_fail(infer, error, "no attribute gives a value");
}
