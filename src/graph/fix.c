// SPDX-License-Identifier: Apache-2.0
/* Inputs that become constants: one element each, read from a text as the input's type has it. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/print.h"

/* ---- a number from a text ---- */

static bool read_bool(const char *text, cleave_tensor_t *tensor) {
  bool is_true = strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
  cleave_tensor_set_float(tensor, 0, is_true ? 1.0 : 0.0);
  return is_true || strcmp(text, "false") == 0 || strcmp(text, "0") == 0;
}

/* A double does not hold every integer of 64 bits. */
static bool read_integer(const char *text, cleave_tensor_t *tensor) {
  char *end = NULL;
  errno = 0;
  if (tensor->dtype == CLEAVE_DTYPE_U64) {
    *(uint64_t *)tensor->data = strtoull(text, &end, 10);
    return errno == 0 && *end == '\0' && text[0] != '-';
  }
  int64_t number = strtoll(text, &end, 10);
  if (tensor->dtype == CLEAVE_DTYPE_I64) {
    *(int64_t *)tensor->data = number;
  } else {
    cleave_tensor_set_float(tensor, 0, (double)number);
  }
  return errno == 0 && *end == '\0' && cleave_tensor_get_int(tensor, 0) == number;
}

/* Infinity has to be written as such. */
static bool read_float(const char *text, cleave_tensor_t *tensor) {
  char *end = NULL;
  double number = strtod(text, &end);
  cleave_tensor_set_float(tensor, 0, number);
  bool is_written = strpbrk(text, "fF") != NULL;
  return *end == '\0' && (is_written || !isinf(cleave_tensor_get_float(tensor, 0)));
}

static bool read_number(const char *text, cleave_tensor_t *tensor) {
  if (text[0] == '\0' || text[0] == ' ') {
    return false;
  }
  if (tensor->dtype == CLEAVE_DTYPE_BOOL) {
    return read_bool(text, tensor);
  }
  return cleave_dtype_is_float(tensor->dtype) ? read_float(text, tensor) : read_integer(text, tensor);
}

/* ---- inputs ---- */

/* The position of the input; the count of inputs: there is none. */
static size_t find_input(const cleave_graph_t *graph, const char *name) {
  size_t k = 0;
  while (k < graph->inputs.count && strcmp(cleave_value_name(graph, graph->inputs.items[k]), name) != 0) {
    k++;
  }
  return k;
}

static cleave_status_t fail_unknown(const cleave_graph_t *graph, const char *name, cleave_error_t *error) {
  cleave_nearest_t nearest = {0};
  cleave_text_t names = {0};
  for (size_t k = 0; k < graph->inputs.count; k++) {
    const char *other = cleave_value_name(graph, graph->inputs.items[k]);
    cleave_nearest_offer(&nearest, name, other);
    cleave_text_show(&names, "%s%s", k == 0 ? "" : ", ", other);
  }
  cleave_status_t status =
      cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                       "expected an input to fix, found '%s'%s; the model's inputs are: %s", name,
                       cleave_nearest_hint(&nearest), cleave_text_get(&names));
  cleave_text_deinit(&names);
  return status;
}

bool cleave_value_is_single(const cleave_graph_t *graph, cleave_value_t value) {
  const cleave_value_record_t *record = cleave_graph_value(graph, value);
  bool is_single =
      record->rank >= 0 && record->dtype != CLEAVE_DTYPE_UNKNOWN && record->dtype != CLEAVE_DTYPE_STRING;
  for (int32_t d = 0; d < record->rank; d++) {
    is_single = is_single && record->dims[d] == 1;
  }
  return is_single;
}

/* The tensor that a text says for an input. */
static cleave_status_t make_tensor(const cleave_graph_t *graph, cleave_value_t input, const char *text,
                                   cleave_tensor_t **out_tensor, cleave_error_t *error) {
  const cleave_value_record_t *record = cleave_graph_value(graph, input);
  if (!cleave_value_is_single(graph, input)) {
    cleave_text_t type = {0};
    cleave_value_type_print(graph, input, &type);
    cleave_status_t status = cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                                              "input '%s': expected one number or bool to fix it, found %s",
                                              cleave_value_name(graph, input), cleave_text_get(&type));
    cleave_text_deinit(&type);
    return status;
  }
  CLEAVE_TRY(cleave_tensor_create(record->dtype, record->rank, record->dims, out_tensor, error));
  if (!read_number(text, *out_tensor)) {
    cleave_tensor_release(*out_tensor);
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "input '%s': expected a value of %s to fix it, found '%s'",
                            cleave_value_name(graph, input), cleave_dtype_name(record->dtype), text);
  }
  return CLEAVE_OK;
}

/* "name=value", for reports. */
static cleave_status_t note(cleave_graph_t *graph, const cleave_fixed_input_t *fixed, cleave_error_t *error) {
  cleave_text_t text = {0};
  cleave_text_format(&text, "%s=%s", fixed->name, fixed->value);
  cleave_status_t status = cleave_text_check(&text, error);
  CLEAVE_THEN(status, cleave_strings_add(&graph->strings, text.data, text.length,
                                         &graph->fixed_inputs[graph->fixed_input_count], error));
  graph->fixed_input_count += status == CLEAVE_OK ? 1 : 0;
  cleave_text_deinit(&text);
  return status;
}

static cleave_status_t fix(cleave_graph_t *graph, const cleave_fixed_input_t *fixed, cleave_error_t *error) {
  size_t index = find_input(graph, fixed->name);
  cleave_tensor_t *tensor = NULL;
  if (index == graph->inputs.count) {
    return fixed->is_optional ? CLEAVE_OK : fail_unknown(graph, fixed->name, error);
  }
  CLEAVE_TRY(make_tensor(graph, graph->inputs.items[index], fixed->value, &tensor, error));
  cleave_status_t status = cleave_graph_close_input(graph, index, tensor, error);
  cleave_tensor_release(tensor);
  return status == CLEAVE_OK ? note(graph, fixed, error) : status;
}

cleave_status_t cleave_graph_fix_inputs(cleave_graph_t *graph, const cleave_fixed_input_t *fixed,
                                        size_t count, cleave_error_t *error) {
  graph->fixed_inputs = cleave_arena_allocate(&graph->arena, count + 1, sizeof *graph->fixed_inputs);
  CLEAVE_TRY_MEMORY(graph->fixed_inputs, error);
  for (size_t k = 0; k < count; k++) {
    size_t last = count - 1;
    while (strcmp(fixed[last].name, fixed[k].name) != 0) {
      last--;
    }
    if (last == k) {
      CLEAVE_TRY(fix(graph, &fixed[k], error));
    }
  }
  return CLEAVE_OK;
}
