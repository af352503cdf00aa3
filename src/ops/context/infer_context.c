// SPDX-License-Identifier: Apache-2.0
// Facts and how they grow. Precision only rises: unknown, then symbolic, then a number. Of two symbolic
// dims the first stays, so that every dim changes at most twice.

#include "ops/context/infer_context.h"

#include <stdio.h>
#include <string.h>

enum { LABEL_SIZE = 128, TEXT_SIZE = 512 };

/* ---- messages ---- */

cleave_status_t cleave_infer_fail(const cleave_infer_t *infer, cleave_error_t *error, const char *format,
                                  ...) {
  char label[LABEL_SIZE];
  char text[TEXT_SIZE];
  va_list arguments;
  va_start(arguments, format);
  (void)vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  (void)cleave_node_label(infer->graph, infer->node, label, sizeof label);
  return cleave_error_set(error, CLEAVE_ERROR_SHAPE, "node '%s' (%s): %s", label, infer->op->name, text);
}

/* "input 'W'", from the port where the fact is found first. */
static const char *port_label(const cleave_infer_t *infer, const cleave_fact_t *fact, char *buffer,
                              size_t size) {
  for (uint32_t k = 0; k < infer->input_count; k++) {
    if (infer->inputs[k] == fact) {
      uint32_t last = infer->op->input_count - 1;
      uint32_t port = k < last ? k : last;
      if (infer->op->inputs[port].kind == CLEAVE_OP_INPUT_VARIADIC) {
        (void)snprintf(buffer, size, "input %u", k);
      } else {
        (void)snprintf(buffer, size, "input '%s'", infer->op->inputs[port].name);
      }
      return buffer;
    }
  }
  for (uint32_t k = 0; k < infer->output_count; k++) {
    if (infer->outputs[k] == fact) {
      uint32_t last = infer->op->output_count - 1;
      (void)snprintf(buffer, size, "output '%s'", infer->op->outputs[k < last ? k : last].name);
      return buffer;
    }
  }
  (void)snprintf(buffer, size, "value");
  return buffer;
}

static cleave_status_t fail_shape(const cleave_infer_t *infer, const cleave_fact_t *fact, int32_t rank,
                                  const cleave_dim_t *dims, cleave_error_t *error) {
  char port[LABEL_SIZE];
  cleave_text_t expected = {0};
  cleave_text_t found = {0};
  cleave_shape_print(infer->dims, rank, dims, &expected);
  cleave_shape_print(infer->dims, fact->rank, fact->dims, &found);
  cleave_status_t status = cleave_infer_fail(infer, error, "%s: expected shape %s, found %s",
                                             port_label(infer, fact, port, sizeof port),
                                             cleave_text_get(&expected), cleave_text_get(&found));
  cleave_text_deinit(&expected);
  cleave_text_deinit(&found);
  return status;
}

/* ---- reading ---- */

int64_t cleave_fact_count(const cleave_fact_t *fact) {
  int64_t count = 0;
  if (cleave_fact_rank(fact) < 0 || !cleave_shape_element_count(fact->rank, fact->dims, &count)) {
    return -1;
  }
  return count;
}

const cleave_element_t *cleave_infer_elements(cleave_infer_t *infer, cleave_fact_t *fact) {
  int64_t count = cleave_fact_count(fact);
  if (count < 0 || count > CLEAVE_ELEMENT_LIMIT || !cleave_element_follows(cleave_fact_dtype(fact))) {
    return NULL;
  }
  if (fact->elements == NULL && fact->tensor != NULL && fact->tensor->count == count) {
    fact->elements = cleave_arena_allocate(infer->arena, (size_t)count + 1, sizeof *fact->elements);
    for (int64_t k = 0; fact->elements != NULL && k < count; k++) {
      fact->elements[k] = cleave_element_of_tensor(fact->tensor, k);
    }
  }
  return fact->elements;
}

bool cleave_infer_ints(cleave_infer_t *infer, cleave_fact_t *fact, int64_t *values, uint32_t *out_count) {
  const cleave_element_t *elements = cleave_infer_elements(infer, fact);
  if (elements == NULL) {
    return false;
  }
  uint32_t count = (uint32_t)cleave_fact_count(fact);
  for (uint32_t k = 0; k < count; k++) {
    if (elements[k].kind != CLEAVE_ELEMENT_INT) {
      return false;
    }
    values[k] = elements[k].i;
  }
  *out_count = count;
  return true;
}

bool cleave_infer_scalar_int(cleave_infer_t *infer, cleave_fact_t *fact, int64_t *out_value) {
  const cleave_element_t *elements = cleave_infer_elements(infer, fact);
  if (elements == NULL || cleave_fact_count(fact) != 1 || elements[0].kind != CLEAVE_ELEMENT_INT) {
    return false;
  }
  *out_value = elements[0].i;
  return true;
}

int64_t cleave_infer_int(const cleave_infer_t *infer, const char *name, int64_t fallback) {
  return cleave_op_int(infer->graph, infer->node, name, fallback);
}

const char *cleave_infer_text(const cleave_infer_t *infer, const char *name, const char *fallback) {
  return cleave_op_text(infer->graph, infer->node, name, fallback);
}

const int64_t *cleave_infer_int_list(const cleave_infer_t *infer, const char *name, uint32_t *out_count) {
  return cleave_op_ints(infer->graph, infer->node, name, out_count);
}

cleave_status_t cleave_infer_dtype_attribute(const cleave_infer_t *infer, const char *name,
                                             cleave_dtype_t fallback, cleave_dtype_t *out_dtype,
                                             cleave_error_t *error) {
  *out_dtype = fallback;
  if (cleave_op_attribute(infer->graph, infer->node, name) == NULL) {
    return CLEAVE_OK;
  }
  int64_t number = cleave_infer_int(infer, name, 0);
  if (!cleave_dtype_is_valid(number)) {
    return cleave_infer_fail(infer, error, "attribute '%s': %lld is not a dtype", name, (long long)number);
  }
  *out_dtype = (cleave_dtype_t)number;
  return CLEAVE_OK;
}

/* ---- stating ---- */

cleave_status_t cleave_infer_set_dtype(cleave_infer_t *infer, cleave_fact_t *fact, cleave_dtype_t dtype,
                                       cleave_error_t *error) {
  if (fact == NULL || dtype == CLEAVE_DTYPE_UNKNOWN || fact->dtype == (uint8_t)dtype) {
    return CLEAVE_OK;
  }
  if (fact->dtype != CLEAVE_DTYPE_UNKNOWN) {
    char port[LABEL_SIZE];
    return cleave_infer_fail(infer, error, "%s: expected dtype %s, found %s",
                             port_label(infer, fact, port, sizeof port), cleave_dtype_name(dtype),
                             cleave_dtype_name((cleave_dtype_t)fact->dtype));
  }
  fact->dtype = (uint8_t)dtype;
  fact->changed = true;
  return CLEAVE_OK;
}

cleave_status_t cleave_infer_rank_in_range(const cleave_infer_t *infer, int64_t rank, cleave_error_t *error) {
  if (rank < 0 || rank > CLEAVE_MAX_RANK) {
    return cleave_infer_fail(infer, error, "expected a rank from 0 to %d, found %lld", CLEAVE_MAX_RANK,
                             (long long)rank);
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_infer_set_rank(cleave_infer_t *infer, cleave_fact_t *fact, int32_t rank,
                                      cleave_error_t *error) {
  if (fact == NULL || fact->rank == rank || rank == -1) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(cleave_infer_rank_in_range(infer, rank, error));
  if (fact->rank >= 0) {
    char port[LABEL_SIZE];
    cleave_text_t found = {0};
    cleave_shape_print(infer->dims, fact->rank, fact->dims, &found);
    cleave_status_t status = cleave_infer_fail(infer, error, "%s: expected rank %d, found %d: %s",
                                               port_label(infer, fact, port, sizeof port), rank, fact->rank,
                                               cleave_text_get(&found));
    cleave_text_deinit(&found);
    return status;
  }
  if (rank > 0 && fact->dims == NULL) {
    fact->dims = cleave_arena_allocate(infer->arena, (size_t)rank, sizeof *fact->dims);
    CLEAVE_TRY_MEMORY(fact->dims, error);
  }
  for (int32_t d = 0; d < rank; d++) {
    fact->dims[d] = CLEAVE_DIM_UNKNOWN;
  }
  fact->rank = (int8_t)rank;
  fact->changed = true;
  return CLEAVE_OK;
}

/* Raises the precision of one dim; false if two numbers differ. */
static bool merge_dim(cleave_fact_t *fact, int32_t axis, cleave_dim_t dim) {
  cleave_dim_t *own = &fact->dims[axis];
  if (*own == dim || dim == CLEAVE_DIM_UNKNOWN) {
    return true;
  }
  if (cleave_dim_is_known(*own)) {
    return !cleave_dim_is_known(dim);
  }
  if (*own == CLEAVE_DIM_UNKNOWN || cleave_dim_is_known(dim)) {
    *own = dim;
    fact->changed = true;
  }
  return true;
}

cleave_status_t cleave_infer_set_dim(cleave_infer_t *infer, cleave_fact_t *fact, int32_t axis,
                                     cleave_dim_t dim, cleave_error_t *error) {
  if (axis < 0 || axis >= cleave_fact_rank(fact) || merge_dim(fact, axis, dim)) {
    return CLEAVE_OK;
  }
  cleave_dim_t expected[CLEAVE_MAX_RANK];
  memcpy(expected, fact->dims, (size_t)fact->rank * sizeof *expected);
  expected[axis] = dim;
  return fail_shape(infer, fact, fact->rank, expected, error);
}

cleave_status_t cleave_infer_set_shape(cleave_infer_t *infer, cleave_fact_t *fact, int32_t rank,
                                       const cleave_dim_t *dims, cleave_error_t *error) {
  if (fact == NULL || rank < 0) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(cleave_infer_rank_in_range(infer, rank, error));
  if (fact->rank >= 0 && fact->rank != rank) {
    return fail_shape(infer, fact, rank, dims, error);
  }
  CLEAVE_TRY(cleave_infer_set_rank(infer, fact, rank, error));
  for (int32_t d = 0; d < rank; d++) {
    if (!merge_dim(fact, d, dims[d])) {
      return fail_shape(infer, fact, rank, dims, error);
    }
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_infer_same_dtype(cleave_infer_t *infer, cleave_fact_t *a, cleave_fact_t *b,
                                        cleave_error_t *error) {
  CLEAVE_TRY(cleave_infer_set_dtype(infer, b, cleave_fact_dtype(a), error));
  return cleave_infer_set_dtype(infer, a, cleave_fact_dtype(b), error);
}

cleave_status_t cleave_infer_same_shape(cleave_infer_t *infer, cleave_fact_t *a, cleave_fact_t *b,
                                        cleave_error_t *error) {
  if (a == NULL || b == NULL) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(cleave_infer_set_shape(infer, b, a->rank, a->dims, error));
  return cleave_infer_set_shape(infer, a, b->rank, b->dims, error);
}

cleave_status_t cleave_infer_same_dim(cleave_infer_t *infer, cleave_fact_t *a, int32_t a_axis,
                                      cleave_fact_t *b, int32_t b_axis, cleave_error_t *error) {
  CLEAVE_TRY(cleave_infer_set_dim(infer, b, b_axis, cleave_fact_dim(a, a_axis), error));
  return cleave_infer_set_dim(infer, a, a_axis, cleave_fact_dim(b, b_axis), error);
}

cleave_status_t cleave_infer_same_type(cleave_infer_t *infer, cleave_fact_t *a, cleave_fact_t *b,
                                       cleave_error_t *error) {
  CLEAVE_TRY(cleave_infer_same_dtype(infer, a, b, error));
  return cleave_infer_same_shape(infer, a, b, error);
}

cleave_status_t cleave_infer_set_elements(cleave_infer_t *infer, cleave_fact_t *fact,
                                          const cleave_element_t *elements, int64_t count,
                                          cleave_error_t *error) {
  if (fact == NULL || fact->tensor != NULL || count > CLEAVE_ELEMENT_LIMIT ||
      cleave_fact_count(fact) != count || !cleave_element_follows(cleave_fact_dtype(fact))) {
    return CLEAVE_OK;
  }
  bool knows_some = count == 0;
  for (int64_t k = 0; k < count; k++) {
    knows_some = knows_some || elements[k].kind != CLEAVE_ELEMENT_UNKNOWN;
  }
  if (!knows_some) {
    return CLEAVE_OK;
  }
  if (fact->elements == NULL) {
    fact->elements = cleave_arena_allocate(infer->arena, (size_t)count + 1, sizeof *fact->elements);
    CLEAVE_TRY_MEMORY(fact->elements, error);
    fact->changed = true;
  }
  for (int64_t k = 0; k < count; k++) {
    cleave_element_t *own = &fact->elements[k];
    bool is_finer = own->kind == CLEAVE_ELEMENT_UNKNOWN
                        ? elements[k].kind != CLEAVE_ELEMENT_UNKNOWN
                        : own->kind == CLEAVE_ELEMENT_SYMBOL && (elements[k].kind == CLEAVE_ELEMENT_INT ||
                                                                 elements[k].kind == CLEAVE_ELEMENT_FLOAT);
    if (is_finer) {
      *own = elements[k];
      fact->changed = true;
    }
  }
  return CLEAVE_OK;
}

/* ---- checking ---- */

cleave_status_t cleave_infer_axis(const cleave_infer_t *infer, int64_t axis, int32_t rank, int32_t *out_axis,
                                  cleave_error_t *error) {
  if (axis < -(int64_t)rank || axis >= (int64_t)rank) {
    return cleave_infer_fail(infer, error, "expected an axis from %d to %d, found %lld", -rank, rank - 1,
                             (long long)axis);
  }
  *out_axis = (int32_t)(axis < 0 ? axis + rank : axis);
  return CLEAVE_OK;
}

cleave_status_t cleave_infer_check_rank(const cleave_infer_t *infer, const cleave_fact_t *fact, int32_t low,
                                        int32_t high, cleave_error_t *error) {
  int32_t rank = cleave_fact_rank(fact);
  if (rank < 0 || (rank >= low && rank <= high)) {
    return CLEAVE_OK;
  }
  char port[LABEL_SIZE];
  return cleave_infer_fail(infer, error, "%s: expected rank %d%s, found %d",
                           port_label(infer, fact, port, sizeof port), rank < low ? low : high,
                           low == high  ? ""
                           : rank < low ? " or more"
                                        : " or less",
                           rank);
}
