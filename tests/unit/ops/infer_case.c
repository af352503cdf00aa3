// SPDX-License-Identifier: Apache-2.0
// Parses the texts of inference cases and compares what comes out.

#include "infer_case.h"

#include "case_text.h"
#include "unit.h"

enum { MAX_INPUTS = 16, MAX_VALUES = 64, TEXT_SIZE = 1024 };

static cleave_dim_t dim_of(cleave_graph_t *graph, const char *text, size_t length) {
  if (text[0] == '?') {
    return CLEAVE_DIM_UNKNOWN;
  }
  if (text[0] >= '0' && text[0] <= '9') {
    return strtoll(text, NULL, 10);
  }
  return cleave_dims_symbol(graph->dims, text, length);
}

cleave_value_t infer_case_input(cleave_graph_t *graph, const char *text) {
  cleave_dim_t dims[CLEAVE_MAX_RANK];
  int32_t rank = 0;
  cleave_value_t value = CLEAVE_VALUE_NONE;
  const char *cursor = text;
  cleave_dtype_t dtype = case_text_dtype(&cursor);
  case_text_expect(&cursor, '[');
  if (strncmp(cursor, "...", 3) == 0) {
    rank = -1;
  } else {
    while (*cursor != ']') {
      size_t word = strcspn(cursor, ",]");
      ck_assert(rank < CLEAVE_MAX_RANK);
      dims[rank++] = dim_of(graph, cursor, word);
      cursor += word + (cursor[word] == ',' ? 1 : 0);
    }
  }
  cleave_status_t status = cleave_graph_add_input(graph, "", dtype, rank, dims, &value, NULL);
  ck_assert_int_eq(status, CLEAVE_OK);
  return value;
}

static cleave_value_t add_constant(cleave_graph_t *graph, const char *text) {
  cleave_dtype_t dtype = case_text_dtype(&text);
  bool is_scalar = *text == ':';
  double values[MAX_VALUES];
  int64_t count = 0;
  char *cursor = (char *)(uintptr_t)text + 1;
  while (*cursor != '\0' && *cursor != ')' && *cursor != ' ') {
    values[count++] = strtod(cursor, &cursor);
    cursor += *cursor == ',' ? 1 : 0;
  }
  cleave_tensor_t *tensor = NULL;
  cleave_value_t value = CLEAVE_VALUE_NONE;
  ck_assert_int_eq(cleave_tensor_create(dtype, is_scalar ? 0 : 1, &count, &tensor, NULL), CLEAVE_OK);
  for (int64_t k = 0; k < count; k++) {
    cleave_tensor_set_float(tensor, k, values[k]);
  }
  ck_assert_int_eq(cleave_graph_add_constant(graph, "", tensor, &value, NULL), CLEAVE_OK);
  cleave_tensor_release(tensor);
  return value;
}

static size_t add_inputs(cleave_graph_t *graph, const char *text, cleave_value_t *inputs) {
  size_t count = 0;
  while (*text != '\0') {
    char word[256];
    size_t length = strcspn(text, " ");
    ck_assert(length < sizeof word && count < MAX_INPUTS);
    memcpy(word, text, length);
    word[length] = '\0';
    inputs[count++] = strcmp(word, "-") == 0      ? CLEAVE_VALUE_NONE
                      : strchr(word, '[') != NULL ? infer_case_input(graph, word)
                                                  : add_constant(graph, word);
    text += length + (text[length] == ' ' ? 1 : 0);
  }
  return count;
}

static void set_attribute(cleave_graph_t *graph, cleave_node_t node, const char *word) {
  char name[64];
  size_t length = strcspn(word, "=");
  ck_assert(length < sizeof name);
  memcpy(name, word, length);
  name[length] = '\0';
  const char *value = word + length + 1;
  const cleave_op_attribute_t *schema = cleave_op_find_attribute(cleave_node_op(graph, node), name);
  int64_t ints[MAX_VALUES];
  size_t count = 0;
  char *cursor = (char *)(uintptr_t)value;
  cleave_status_t status = CLEAVE_OK;
  switch (schema != NULL ? schema->value.kind : CLEAVE_ATTRIBUTE_INT) {
    case CLEAVE_ATTRIBUTE_INT:
      status = cleave_graph_set_int(graph, node, name, strtoll(value, NULL, 10), NULL);
      break;
    case CLEAVE_ATTRIBUTE_FLOAT:
      status = cleave_graph_set_float(graph, node, name, strtod(value, NULL), NULL);
      break;
    case CLEAVE_ATTRIBUTE_STRING: status = cleave_graph_set_text(graph, node, name, value, NULL); break;
    case CLEAVE_ATTRIBUTE_INTS:
      while (*cursor != '\0') {
        ints[count++] = strtoll(cursor, &cursor, 10);
        cursor += *cursor == ',' ? 1 : 0;
      }
      status = cleave_graph_set_ints(graph, node, name, ints, count, NULL);
      break;
    default: ck_abort_msg("attribute '%s' cannot be given as text", name);
  }
  ck_assert_int_eq(status, CLEAVE_OK);
}

cleave_node_t infer_case_add(cleave_graph_t *graph, const char *op, const char *inputs,
                             const char *attributes, size_t output_count) {
  cleave_value_t values[MAX_INPUTS];
  size_t count = add_inputs(graph, inputs, values);
  cleave_node_t node = CLEAVE_NODE_NONE;
  const cleave_op_t *entry = cleave_op_find_full(op);
  ck_assert_msg(entry != NULL, "no operator '%s'", op);
  ck_assert_int_eq(cleave_graph_add_node(graph, entry, "", values, count, output_count, &node, NULL),
                   CLEAVE_OK);
  while (*attributes != '\0') {
    char word[256];
    size_t length = strcspn(attributes, " ");
    ck_assert(length < sizeof word);
    memcpy(word, attributes, length);
    word[length] = '\0';
    set_attribute(graph, node, word);
    attributes += length + (attributes[length] == ' ' ? 1 : 0);
  }
  for (uint32_t k = 0; k < output_count; k++) {
    ck_assert_int_eq(cleave_graph_add_output(graph, "", cleave_node_output(graph, node, k), NULL), CLEAVE_OK);
  }
  return node;
}

const char *infer_case_types(const cleave_graph_t *graph, const cleave_value_t *values, size_t count,
                             char *buffer, size_t size) {
  cleave_text_t text = {0};
  for (size_t k = 0; k < count; k++) {
    cleave_text_add(&text, k > 0 ? " " : "");
    if (!cleave_value_exists(values[k])) {
      cleave_text_add(&text, "-");
      continue;
    }
    const cleave_value_record_t *record = cleave_graph_value(graph, values[k]);
    cleave_text_add(&text, case_text_of_dtype((cleave_dtype_t)record->dtype));
    cleave_text_add(&text, record->rank < 0 ? "[...]" : "[");
    for (int32_t d = 0; d < record->rank; d++) {
      cleave_text_t dim = {0};
      cleave_dim_print(graph->dims, record->dims[d], &dim);
      cleave_text_add(&text, d > 0 ? "," : "");
      for (const char *c = cleave_text_get(&dim); *c != '\0'; c++) { /* "T + 1" as "T+1" */
        cleave_text_append(&text, c, *c != ' ' ? 1 : 0);
      }
      cleave_text_deinit(&dim);
    }
    cleave_text_add(&text, record->rank < 0 ? "" : "]");
  }
  (void)snprintf(buffer, size, "%s", cleave_text_get(&text));
  cleave_text_deinit(&text);
  return buffer;
}

static size_t count_words(const char *text) {
  size_t count = *text != '\0' ? 1 : 0;
  for (; *text != '\0'; text++) {
    count += *text == ' ' ? 1 : 0;
  }
  return count;
}

static void check_case(const infer_case_t *c) {
  cleave_graph_t *graph = NULL;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  char found[TEXT_SIZE];
  ck_assert_int_eq(cleave_graph_create(&graph, NULL), CLEAVE_OK);
  bool fails = c->expected[0] == '!';
  size_t outputs = fails ? strspn(c->expected, "!") : count_words(c->expected);
  const char *text = c->expected + (fails ? outputs : 0);
  cleave_node_t node = infer_case_add(graph, c->op, c->inputs, c->attributes, outputs);
  cleave_status_t status = cleave_graph_infer(graph, NULL, NULL, &error);
  if (fails) {
    ck_assert_msg(status != CLEAVE_OK, "%s(%s){%s}: no error", c->op, c->inputs, c->attributes);
    ck_assert_msg(strstr(error.message, text) != NULL, "%s(%s){%s}: expected '%s', found '%s'", c->op,
                  c->inputs, c->attributes, text, error.message);
  } else {
    cleave_value_t values[MAX_INPUTS];
    ck_assert_msg(status == CLEAVE_OK, "%s(%s){%s}: %s", c->op, c->inputs, c->attributes, error.message);
    for (uint32_t k = 0; k < outputs; k++) {
      values[k] = cleave_node_output(graph, node, k);
    }
    infer_case_types(graph, values, outputs, found, sizeof found);
    ck_assert_msg(strcmp(found, c->expected) == 0, "%s(%s){%s}: expected %s, found %s", c->op, c->inputs,
                  c->attributes, c->expected, found);
    if (c->expected_inputs != NULL) {
      uint32_t count = cleave_node_input_count(graph, node);
      for (uint32_t k = 0; k < count; k++) {
        values[k] = cleave_node_input(graph, node, k);
      }
      infer_case_types(graph, values, count, found, sizeof found);
      ck_assert_msg(strcmp(found, c->expected_inputs) == 0, "%s(%s){%s}: expected inputs %s, found %s", c->op,
                    c->inputs, c->attributes, c->expected_inputs, found);
    }
  }
  cleave_graph_destroy(graph);
}

void infer_case_check(const infer_case_t *cases, size_t count) {
  for (size_t k = 0; k < count; k++) {
    check_case(&cases[k]);
  }
}
