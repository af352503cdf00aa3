// SPDX-License-Identifier: Apache-2.0
// Slice, Split, Concat, Pad, Tile and CenterCropPad: what cuts, joins and grows along axes.

#include <string.h>

#include "ops/context/infer_context.h"

/* ---- Slice ---- */

typedef struct slice_axis {
  bool is_cut;
  bool exact; /* start and step are numbers: elements can be followed */
  int64_t start;
  int64_t step;
  cleave_dim_t length;
} slice_axis_t;

static int64_t clamp(int64_t value, int64_t low, int64_t high) {
  return value < low ? low : value > high ? high : value;
}

static int64_t slice_count(int64_t start, int64_t end, int64_t step) {
  uint64_t span = step > 0 ? (uint64_t)(end - start) : (uint64_t)(start - end);
  uint64_t stride = step > 0 ? (uint64_t)step : (uint64_t)0 - (uint64_t)step;
  if (step > 0 ? end <= start : start <= end) {
    return 0;
  }
  return (int64_t)(span / stride + (span % stride != 0 ? 1 : 0));
}

/* All numbers: NumPy's rules. */
static void slice_known(int64_t size, int64_t start, int64_t end, slice_axis_t *out) {
  start = start < 0 ? (start < -size ? -1 : start + size) : start;
  end = end < 0 ? (end < -size ? -1 : end + size) : end;
  if (out->step > 0) {
    start = clamp(start, 0, size);
    end = clamp(end, 0, size);
  } else {
    start = clamp(start, -1, size - 1);
    end = clamp(end, -1, size - 1);
    start = start < 0 ? -1 : start;
  }
  out->start = start;
  out->exact = true;
  out->length = slice_count(start, end, out->step);
}

/* A size that is not a polynomial, as a symbol of its own: "min(T, 512)". Equal ones have equal names. */
static cleave_dim_t smaller_of(const cleave_infer_t *infer, cleave_dim_t symbolic, int64_t number) {
  cleave_text_t text = {0};
  cleave_dim_t dim = CLEAVE_DIM_UNKNOWN;
  if (cleave_dim_is_known(symbolic)) {
    return symbolic < number ? symbolic : number;
  }
  if (infer->dims != NULL && cleave_dim_is_symbolic(symbolic)) {
    cleave_text_add(&text, "min(");
    cleave_dim_print(infer->dims, symbolic, &text);
    cleave_text_format(&text, ", %lld)", (long long)number);
    if (!text.failed && text.length < 96) {
      dim = cleave_dims_symbol(infer->dims, text.data, text.length);
    }
  }
  cleave_text_deinit(&text);
  return dim;
}

/* End of a slice with step > 0 as a size. A symbolic end is taken to lie within the axis, as in
 * position_ids[:, :T]; binding sizes infers it again. */
static cleave_dim_t slice_end(const cleave_infer_t *infer, cleave_dim_t size, const cleave_element_t *end) {
  if (size == CLEAVE_DIM_UNKNOWN) {
    return CLEAVE_DIM_UNKNOWN;
  }
  if (end->kind != CLEAVE_ELEMENT_INT) {
    return cleave_element_dim(end);
  }
  if (end->i >= INT32_MAX) {
    return size;
  }
  if (end->i < 0) {
    return cleave_infer_offset(infer, size, end->i);
  }
  return end->i == 0 ? 0 : smaller_of(infer, size, end->i);
}

static cleave_dim_t slice_symbolic(const cleave_infer_t *infer, cleave_dim_t size,
                                   const cleave_element_t *start, const cleave_element_t *end, int64_t step) {
  bool reverses = step < 0 && start->kind == CLEAVE_ELEMENT_INT && end->kind == CLEAVE_ELEMENT_INT &&
                  (start->i == -1 || start->i >= INT32_MAX) && end->i <= -INT32_MAX;
  if (reverses) {
    return step > INT64_MIN ? cleave_infer_divide_up(infer, size, -step) : CLEAVE_DIM_UNKNOWN;
  }
  if (step < 0) {
    return CLEAVE_DIM_UNKNOWN;
  }
  cleave_dim_t last = slice_end(infer, size, end);
  bool from_end = start->kind == CLEAVE_ELEMENT_INT && start->i < 0 && start->i > -INT32_MAX;
  cleave_dim_t length = CLEAVE_DIM_UNKNOWN;
  if (from_end && end->kind == CLEAVE_ELEMENT_INT && end->i < 0) {
    /* x[-3:-1]: what is there of the last 3, less the last 1. */
    length = start->i < end->i ? cleave_infer_offset(infer, smaller_of(infer, size, -start->i), end->i) : 0;
  } else if (from_end && last == size) {
    length = smaller_of(infer, size, -start->i);
  } else {
    cleave_dim_t first = start->kind == CLEAVE_ELEMENT_INT && start->i < 0
                             ? cleave_infer_offset(infer, size, start->i)
                             : cleave_element_dim(start);
    length = cleave_infer_subtract(infer, last, first);
  }
  return cleave_infer_divide_up(infer, length, step);
}

static void slice_axis(const cleave_infer_t *infer, cleave_dim_t size, const cleave_element_t *start,
                       const cleave_element_t *end, slice_axis_t *axis) {
  axis->length = CLEAVE_DIM_UNKNOWN;
  axis->exact = false;
  if (cleave_dim_is_known(size) && start->kind == CLEAVE_ELEMENT_INT && end->kind == CLEAVE_ELEMENT_INT) {
    slice_known(size, start->i, end->i, axis);
  } else if (start->kind != CLEAVE_ELEMENT_UNKNOWN && end->kind != CLEAVE_ELEMENT_UNKNOWN) {
    axis->length = slice_symbolic(infer, size, start, end, axis->step);
  }
}

typedef struct slice {
  int32_t rank;
  slice_axis_t axes[CLEAVE_MAX_RANK];
} slice_t;

static bool find_sliced(const void *context, int64_t *at) {
  const slice_t *slice = context;
  for (int32_t d = 0; d < slice->rank; d++) {
    const slice_axis_t *axis = &slice->axes[d];
    if (axis->is_cut && !axis->exact) {
      return false;
    }
    at[d] = axis->is_cut ? axis->start + at[d] * axis->step : at[d];
  }
  return true;
}

/* Number of entries of starts, ends, axes, steps: from whichever tells; -1 if none does. */
static cleave_status_t slice_entry_count(cleave_infer_t *infer, int64_t *out_count, cleave_error_t *error) {
  *out_count = -1;
  for (uint32_t k = 1; k < 5; k++) {
    cleave_fact_t *operand = cleave_infer_input(infer, k);
    CLEAVE_TRY(cleave_infer_set_rank(infer, operand, 1, error));
    cleave_dim_t dim = cleave_fact_dim(operand, 0);
    if (cleave_dim_is_known(dim) && *out_count >= 0 && dim != *out_count) {
      return cleave_infer_fail(infer, error, "starts, ends, axes and steps differ in length: %lld and %lld",
                               (long long)*out_count, (long long)dim);
    }
    *out_count = cleave_dim_is_known(dim) ? dim : *out_count;
  }
  return *out_count >= 0 ? cleave_infer_rank_in_range(infer, *out_count, error) : CLEAVE_OK;
}

cleave_status_t cleave_infer_slice(cleave_infer_t *infer, cleave_error_t *error) {
  static const cleave_element_t unknown = {.kind = CLEAVE_ELEMENT_UNKNOWN, .divisor = 1};
  cleave_fact_t *input = cleave_infer_input(infer, 0);
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  cleave_fact_t *axes_fact = cleave_infer_input(infer, 3);
  cleave_fact_t *steps_fact = cleave_infer_input(infer, 4);
  int64_t count = -1;
  CLEAVE_TRY(cleave_infer_same_dtype(infer, input, output, error));
  CLEAVE_TRY(slice_entry_count(infer, &count, error));
  CLEAVE_TRY(cleave_infer_set_rank(infer, output, cleave_fact_rank(input), error));
  CLEAVE_TRY(cleave_infer_set_rank(infer, input, cleave_fact_rank(output), error));
  int32_t rank = cleave_fact_rank(input);
  int64_t axes[CLEAVE_ELEMENT_LIMIT];
  uint32_t axis_count = 0;
  if (rank < 0 || count < 0 ||
      (axes_fact != NULL && !cleave_infer_ints(infer, axes_fact, axes, &axis_count))) {
    return CLEAVE_OK;
  }
  const cleave_element_t *starts = cleave_infer_elements(infer, cleave_infer_input(infer, 1));
  const cleave_element_t *ends = cleave_infer_elements(infer, cleave_infer_input(infer, 2));
  const cleave_element_t *steps = cleave_infer_elements(infer, steps_fact);
  slice_t slice = {.rank = rank};
  slice_axis_t *cuts = slice.axes;
  for (int64_t k = 0; k < count; k++) {
    int32_t axis = 0;
    CLEAVE_TRY(cleave_infer_axis(infer, axes_fact != NULL ? axes[k] : k, rank, &axis, error));
    cuts[axis].is_cut = true;
    cuts[axis].length = CLEAVE_DIM_UNKNOWN;
    cuts[axis].step = 1;
    if (steps_fact != NULL) {
      if (steps == NULL || steps[k].kind != CLEAVE_ELEMENT_INT) {
        continue;
      }
      cuts[axis].step = steps[k].i;
      if (steps[k].i == 0) {
        return cleave_infer_fail(infer, error, "the step of axis %d is 0", axis);
      }
    }
    slice_axis(infer, input->dims[axis], starts != NULL ? &starts[k] : &unknown,
               ends != NULL ? &ends[k] : &unknown, &cuts[axis]);
  }
  for (int32_t d = 0; d < rank; d++) {
    if (cuts[d].is_cut) {
      CLEAVE_TRY(cleave_infer_set_dim(infer, output, d, cuts[d].length, error));
    } else {
      CLEAVE_TRY(cleave_infer_same_dim(infer, input, d, output, d, error));
    }
  }
  return cleave_infer_fold_from(infer, input, output, find_sliced, &slice, error);
}

/* ---- Concat and Split ---- */

/* `whole` has along `axis` the sum of the parts, and all other dims in common. Both ways. */
static cleave_status_t relate_parts(cleave_infer_t *infer, cleave_fact_t *whole, cleave_fact_t *const *parts,
                                    uint32_t count, int64_t given_axis, cleave_error_t *error) {
  int32_t rank = cleave_fact_rank(whole);
  int32_t axis = 0;
  for (uint32_t k = 0; k < count && rank < 0; k++) {
    rank = cleave_fact_rank(parts[k]);
  }
  if (rank < 0) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(cleave_infer_axis(infer, given_axis, rank, &axis, error));
  CLEAVE_TRY(cleave_infer_set_rank(infer, whole, rank, error));
  for (uint32_t k = 0; k < count; k++) {
    CLEAVE_TRY(cleave_infer_set_rank(infer, parts[k], rank, error));
    CLEAVE_TRY(cleave_infer_same_dtype(infer, whole, parts[k], error));
    for (int32_t d = 0; d < rank; d++) {
      if (d != axis) {
        CLEAVE_TRY(cleave_infer_same_dim(infer, whole, d, parts[k], d, error));
      }
    }
  }
  cleave_dim_t sum = 0;
  cleave_fact_t *open = NULL;
  uint32_t open_count = 0;
  for (uint32_t k = 0; k < count; k++) {
    for (int32_t d = 0; d < rank; d++) { /* known from later parts */
      if (d != axis) {
        CLEAVE_TRY(cleave_infer_set_dim(infer, parts[k], d, cleave_fact_dim(whole, d), error));
      }
    }
    CLEAVE_TRY(cleave_infer_set_dtype(infer, parts[k], cleave_fact_dtype(whole), error));
    cleave_dim_t dim = cleave_fact_dim(parts[k], axis);
    if (dim == CLEAVE_DIM_UNKNOWN) {
      open = parts[k];
      open_count++;
    } else {
      sum = cleave_infer_add(infer, sum, dim);
    }
  }
  if (open_count == 0) {
    return cleave_infer_set_dim(infer, whole, axis, sum, error);
  }
  cleave_dim_t dim = cleave_fact_dim(whole, axis);
  if (cleave_dim_is_known(dim) && cleave_dim_is_known(sum) && sum > dim) {
    return cleave_infer_fail(infer, error, "axis %d: parts of %lld in a whole of %lld", axis, (long long)sum,
                             (long long)dim);
  }
  return open_count == 1
             ? cleave_infer_set_dim(infer, open, axis, cleave_infer_subtract(infer, dim, sum), error)
             : CLEAVE_OK;
}

static cleave_status_t fold_concat(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  int64_t total = cleave_fact_count(output);
  if (total < 0 || total > CLEAVE_ELEMENT_LIMIT) {
    return CLEAVE_OK;
  }
  int32_t axis = 0;
  CLEAVE_TRY(cleave_infer_axis(infer, cleave_infer_int(infer, "axis", 0), output->rank, &axis, error));
  cleave_element_t results[CLEAVE_ELEMENT_LIMIT];
  int64_t offset = 0;
  memset(results, 0, sizeof results);
  for (uint32_t k = 0; k < infer->input_count && total > 0; k++) {
    cleave_fact_t *part = infer->inputs[k];
    const cleave_element_t *elements = cleave_infer_elements(infer, part);
    int64_t count = cleave_fact_count(part);
    if (count < 0) {
      return CLEAVE_OK;
    }
    for (int64_t e = 0; elements != NULL && e < count; e++) {
      int64_t at[CLEAVE_MAX_RANK];
      cleave_infer_unravel(e, part->rank, part->dims, at);
      at[axis] += offset;
      int64_t place = cleave_infer_ravel(output->rank, output->dims, at);
      if (place < total) {
        results[place] = elements[e];
      }
    }
    offset += part->dims[axis];
  }
  return cleave_infer_set_elements(infer, output, results, total, error);
}

cleave_status_t cleave_infer_concat(cleave_infer_t *infer, cleave_error_t *error) {
  CLEAVE_TRY(relate_parts(infer, cleave_infer_output(infer, 0), infer->inputs, infer->input_count,
                          cleave_infer_int(infer, "axis", 0), error));
  return fold_concat(infer, error);
}

/* Sizes of the parts if no operand tells: equal ones, the last smaller. */
static cleave_status_t split_evenly(cleave_infer_t *infer, int32_t axis, cleave_error_t *error) {
  int64_t parts = cleave_infer_int(infer, "num_outputs", infer->output_count);
  cleave_dim_t size = cleave_fact_dim(cleave_infer_input(infer, 0), axis);
  if (parts != (int64_t)infer->output_count) {
    return cleave_infer_fail(infer, error, "num_outputs is %lld, but there are %u output%s", (long long)parts,
                             infer->output_count, CLEAVE_PLURAL(infer->output_count));
  }
  cleave_dim_t chunk = cleave_infer_divide_up(infer, size, parts);
  for (uint32_t k = 0; k < infer->output_count; k++) {
    cleave_dim_t part = chunk;
    if (cleave_dim_is_known(size)) {
      int64_t left = size - (int64_t)k * chunk;
      part = left < 0 ? 0 : left < chunk ? left : chunk;
    } else if (k + 1 == infer->output_count && cleave_infer_multiply(infer, chunk, parts) != size) {
      part = cleave_infer_subtract(infer, size, cleave_infer_multiply(infer, chunk, parts - 1));
    }
    CLEAVE_TRY(cleave_infer_set_dim(infer, cleave_infer_output(infer, k), axis, part, error));
  }
  return CLEAVE_OK;
}

typedef struct part {
  int32_t axis;
  int64_t offset;
  cleave_dim_t size; /* of the input */
} part_t;

static bool find_in_whole(const void *context, int64_t *at) {
  const part_t *part = context;
  at[part->axis] += part->offset;
  return at[part->axis] < part->size;
}

static cleave_status_t fold_split(cleave_infer_t *infer, int32_t axis, cleave_error_t *error) {
  cleave_fact_t *input = cleave_infer_input(infer, 0);
  part_t part = {.axis = axis, .size = cleave_fact_dim(input, axis)};
  for (uint32_t k = 0; k < infer->output_count && cleave_infer_can_fold(infer, input, infer->outputs[k]);
       k++) {
    CLEAVE_TRY(cleave_infer_fold_from(infer, input, infer->outputs[k], find_in_whole, &part, error));
    part.offset += infer->outputs[k]->dims[axis];
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_infer_split(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *input = cleave_infer_input(infer, 0);
  cleave_fact_t *sizes = cleave_infer_input(infer, 1);
  int64_t given_axis = cleave_infer_int(infer, "axis", 0);
  int32_t rank = cleave_fact_rank(input);
  int32_t axis = 0;
  for (uint32_t k = 0; k < infer->output_count; k++) {
    CLEAVE_TRY(cleave_infer_same_dtype(infer, input, infer->outputs[k], error));
    CLEAVE_TRY(cleave_infer_set_rank(infer, infer->outputs[k], rank, error));
  }
  if (rank < 0) {
    return relate_parts(infer, input, infer->outputs, infer->output_count, given_axis, error);
  }
  CLEAVE_TRY(cleave_infer_axis(infer, given_axis, rank, &axis, error));
  int32_t size_rank = -1;
  cleave_dim_t count = CLEAVE_DIM_UNKNOWN;
  if (sizes == NULL) {
    CLEAVE_TRY(split_evenly(infer, axis, error));
  } else {
    CLEAVE_TRY(cleave_infer_set_dtype(infer, sizes, CLEAVE_DTYPE_I64, error));
    CLEAVE_TRY(cleave_infer_set_rank(infer, sizes, 1, error));
    CLEAVE_TRY(cleave_infer_set_dim(infer, sizes, 0, infer->output_count, error));
    size_rank = 1;
    count = infer->output_count;
  }
  const cleave_element_t *elements = size_rank == 1 ? cleave_infer_elements(infer, sizes) : NULL;
  for (int64_t k = 0; elements != NULL && k < count; k++) {
    if (elements[k].kind == CLEAVE_ELEMENT_INT && elements[k].i < 0) {
      return cleave_infer_fail(infer, error, "part %lld: expected a size of 0 or more, found %lld",
                               (long long)k, (long long)elements[k].i);
    }
    CLEAVE_TRY(cleave_infer_set_dim(infer, infer->outputs[k], axis, cleave_element_dim(&elements[k]), error));
  }
  CLEAVE_TRY(relate_parts(infer, input, infer->outputs, infer->output_count, given_axis, error));
  return fold_split(infer, axis, error);
}
