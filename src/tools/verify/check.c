// SPDX-License-Identifier: Apache-2.0
// Comparing outputs. Tolerances may be scaled to the size of an output, because a network adds up errors of
// the size of its largest values.
#include "tools/verify/check.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "backend/region/view.h"
#include "tensor/compare.h"

static cleave_tensor_t borrow(const cleave_tensor_view_t *view) {
  int64_t count = cleave_view_element_count(view);
  cleave_tensor_t tensor = {.dtype = view->dtype,
                            .rank = view->rank,
                            .count = count < 0 ? 0 : count,
                            .data = (void *)(uintptr_t)view->data,
                            .references = 1};
  tensor.bytes = (size_t)tensor.count * cleave_dtype_size(view->dtype);
  for (int32_t d = 0; d < view->rank && d < CLEAVE_MAX_RANK; d++) {
    tensor.dims[d] = view->dims[d];
  }
  return tensor;
}

static double largest(const cleave_tensor_t *tensor) {
  double most = 0.0;
  for (int64_t k = 0; tensor->dtype != CLEAVE_DTYPE_STRING && k < tensor->count; k++) {
    double size = fabs(cleave_tensor_get_float(tensor, k));
    most = isfinite(size) && size > most ? size : most;
  }
  return most;
}

enum { FIRST_EXPONENT = -149 };

uint32_t cleave_check_size(double value) {
  int exponent = FIRST_EXPONENT;
  if (value != 0.0) {
    (void)frexp(value, &exponent);
  }
  int size = exponent - FIRST_EXPONENT;
  size = size < 0 ? 0 : size;
  return (uint32_t)(size < CLEAVE_CHECK_SIZES ? size : CLEAVE_CHECK_SIZES - 1);
}

double cleave_check_size_bound(uint32_t size) {
  return ldexp(1.0, (int)size + FIRST_EXPONENT);
}

typedef struct allowance {
  const cleave_check_tolerance_t *tolerance;
  double scale;
} allowance_t;

static double allowed(const void *context, double expected) {
  const allowance_t *allowance = context;
  const cleave_check_tolerance_t *tolerance = allowance->tolerance;
  double by_size = tolerance->by_size == NULL || !isfinite(expected)
                       ? 0.0
                       : tolerance->by_size[cleave_check_size(expected)];
  return tolerance->atol * allowance->scale + tolerance->rtol * fabs(expected) + by_size;
}

/* The reference as it is meant: 16-bit words that stand for bfloat16. */
static cleave_tensor_t read_reference(const cleave_tensor_view_t *actual, const cleave_tensor_t *expected) {
  cleave_tensor_t reference = *expected;
  if (actual->dtype == CLEAVE_DTYPE_BF16 && expected->dtype == CLEAVE_DTYPE_U16) {
    reference.dtype = CLEAVE_DTYPE_BF16;
  }
  return reference;
}

cleave_check_tolerance_t cleave_check_tolerance_of(cleave_dtype_t dtype) {
  switch (dtype) {
    case CLEAVE_DTYPE_F64: return (cleave_check_tolerance_t){.rtol = 1e-9, .atol = 1e-9, .scaled = true};
    case CLEAVE_DTYPE_F32: return (cleave_check_tolerance_t){.rtol = 1e-3, .atol = 1e-4, .scaled = true};
    case CLEAVE_DTYPE_F16: return (cleave_check_tolerance_t){.rtol = 1e-2, .atol = 1e-2, .scaled = true};
    case CLEAVE_DTYPE_BF16: return (cleave_check_tolerance_t){.rtol = 4e-2, .atol = 4e-2, .scaled = true};
    default: return (cleave_check_tolerance_t){0};
  }
}

cleave_status_t cleave_check_tensor(const cleave_tensor_view_t *actual, const cleave_tensor_t *expected,
                                    const cleave_check_tolerance_t *tolerance,
                                    cleave_check_result_t *out_result, cleave_error_t *error) {
  *out_result = (cleave_check_result_t){.matches = false};
  if (actual->rank > CLEAVE_MAX_RANK || (actual->data == NULL && cleave_view_element_count(actual) != 0)) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "a tensor without data cannot be compared");
  }
  cleave_tensor_t found = borrow(actual);
  cleave_tensor_t reference = read_reference(actual, expected);
  double scale = 1.0;
  if (tolerance->scaled) {
    double most = largest(&reference);
    scale = most > 1.0 ? most : 1.0;
  }
  allowance_t allowance = {tolerance, scale};
  cleave_tensor_compare_by(&found, &reference, allowed, &allowance, &out_result->difference);
  const cleave_difference_t *difference = &out_result->difference;
  out_result->matches = difference->same_type && difference->mismatches == 0;
  out_result->relative =
      difference->max_absolute / (difference->max_expected > 0.0 ? difference->max_expected : 1.0);
  return CLEAVE_OK;
}

static void print_index(const cleave_tensor_t *tensor, int64_t index, cleave_text_t *text) {
  int64_t place[CLEAVE_MAX_RANK] = {0};
  for (int32_t d = tensor->rank - 1; d >= 0; d--) {
    place[d] = tensor->dims[d] > 0 ? index % tensor->dims[d] : 0;
    index = tensor->dims[d] > 0 ? index / tensor->dims[d] : 0;
  }
  cleave_text_add(text, "[");
  for (int32_t d = 0; d < tensor->rank; d++) {
    cleave_text_show(text, "%s%" PRId64, d == 0 ? "" : ", ", place[d]);
  }
  cleave_text_add(text, "]");
}

void cleave_check_explain(const char *name, const cleave_tensor_view_t *actual,
                          const cleave_tensor_t *expected, const cleave_check_result_t *result,
                          cleave_text_t *text) {
  if (result->matches) {
    return;
  }
  const cleave_difference_t *difference = &result->difference;
  if (!difference->same_type) {
    cleave_text_show(text, "output '%s': found %s", name, cleave_dtype_name(actual->dtype));
    cleave_shape_print(NULL, actual->rank, actual->dims, text);
    cleave_text_show(text, ", expected %s", cleave_dtype_name(expected->dtype));
    cleave_shape_print(NULL, expected->rank, expected->dims, text);
    return;
  }
  cleave_text_show(text, "output '%s': %" PRId64 " of %" PRId64 " value%s %s, first at ", name,
                   difference->mismatches, expected->count, CLEAVE_PLURAL(expected->count),
                   CLEAVE_BY_COUNT(difference->mismatches, "differs", "differ"));
  print_index(expected, difference->first, text);
  if (expected->dtype == CLEAVE_DTYPE_STRING) {
    cleave_text_show(text, ": found '%.80s', expected '%.80s'",
                     ((const char *const *)actual->data)[difference->first],
                     ((const char *const *)expected->data)[difference->first]);
    return;
  }
  cleave_text_show(text, ": found %.9g, expected %.9g", difference->first_actual, difference->first_expected);
}

cleave_status_t cleave_check_copy(const cleave_tensor_view_t *view, cleave_tensor_t **out_tensor,
                                  cleave_error_t *error) {
  cleave_tensor_t *tensor = NULL;
  *out_tensor = NULL;
  CLEAVE_TRY(cleave_tensor_create(view->dtype, view->rank, view->dims, &tensor, error));
  if (view->dtype != CLEAVE_DTYPE_STRING && tensor->bytes > 0) {
    memcpy(tensor->data, view->data, tensor->bytes);
  }
  for (int64_t k = 0; view->dtype == CLEAVE_DTYPE_STRING && k < tensor->count; k++) {
    const char *text = ((const char *const *)view->data)[k];
    CLEAVE_TRY_OR(cleave_tensor_set_string(tensor, k, text, strlen(text), error),
                  cleave_tensor_release(tensor));
  }
  *out_tensor = tensor;
  return CLEAVE_OK;
}

cleave_status_t cleave_check_reference(const cleave_graph_t *graph, cleave_tensor_t *const *inputs,
                                       size_t input_count, int32_t threads, cleave_tensor_t **outputs,
                                       size_t output_count, cleave_error_t *error) {
  cleave_status_t status = CLEAVE_OK;
  cleave_session_t *session = NULL;
  cleave_session_options_t options = {.size = sizeof options, .threads = threads};
  cleave_tensor_view_t *views = cleave_allocate_zeroed(input_count, sizeof *views);
  const cleave_tensor_view_t **pointers = cleave_allocate_zeroed(input_count, sizeof *pointers);
  for (size_t k = 0; k < output_count; k++) {
    outputs[k] = NULL;
  }
  CLEAVE_TRY_MEMORY_CLEANUP(views != NULL && pointers != NULL, error);
  for (size_t k = 0; k < input_count; k++) {
    views[k] = cleave_tensor_view(inputs[k]);
    pointers[k] = &views[k];
  }
  CLEAVE_TRY_CLEANUP(
      cleave_session_create_planned(graph, NULL, pointers, input_count, &options, &session, error));
  for (size_t k = 0; k < input_count; k++) {
    CLEAVE_TRY_CLEANUP(cleave_session_set_input(session, (uint32_t)k, &views[k], error));
  }
  CLEAVE_TRY_CLEANUP(cleave_session_run(session, error));
  for (size_t k = 0; k < output_count; k++) {
    cleave_tensor_view_t view;
    CLEAVE_TRY_CLEANUP(cleave_session_output(session, (uint32_t)k, &view, error));
    CLEAVE_TRY_CLEANUP(cleave_check_copy(&view, &outputs[k], error));
  }
cleanup:
  cleave_session_destroy(session);
  cleave_free((void *)pointers);
  cleave_free(views);
  return status;
}
