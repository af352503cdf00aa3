// SPDX-License-Identifier: Apache-2.0
// Reads graphs from texts: a recursive descent over expressions. Texts are written by this test, so what is
// wrong in them is reported, not repaired.
#include "sweep_graph.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "ops/infer.h"
#include "ops/ops.h"

enum { MAX_NAMES = 256, LONGEST_NAME = 32, MAX_OPERANDS = 16, MAX_DIMS = 32 };

typedef struct reader {
  const char *text;
  const char *next;
  sweep_form_t form;
  sweep_graph_t *out;
  cleave_error_t *error;
  char names[MAX_NAMES][LONGEST_NAME];
  cleave_value_t values[MAX_NAMES];
  size_t count;
} reader_t;

static cleave_status_t wrong(reader_t *reader, const char *expected) {
  return cleave_error_set(reader->error, CLEAVE_ERROR_FORMAT, "case '%s': expected %s at '%.24s'",
                          reader->text, expected, reader->next);
}

static bool take(reader_t *reader, const char *mark) {
  while (*reader->next == ' ') {
    reader->next++;
  }
  size_t length = strlen(mark);
  bool found = strncmp(reader->next, mark, length) == 0;
  reader->next += found ? length : 0;
  return found;
}

static cleave_status_t expect(reader_t *reader, const char *mark) {
  return take(reader, mark) ? CLEAVE_OK : wrong(reader, mark);
}

static cleave_status_t read_word(reader_t *reader, char *word) {
  size_t length = 0;
  (void)take(reader, "");
  while ((isalnum((unsigned char)*reader->next) || *reader->next == '_') && length + 1 < LONGEST_NAME) {
    word[length++] = *reader->next++;
  }
  word[length] = '\0';
  return length > 0 ? CLEAVE_OK : wrong(reader, "a name");
}

/* A word, or any text between quotation marks. */
static cleave_status_t read_text(reader_t *reader, char *text) {
  if (!take(reader, "\"")) {
    return read_word(reader, text);
  }
  size_t length = strcspn(reader->next, "\"");
  if (reader->next[length] == '\0' || length >= LONGEST_NAME) {
    return wrong(reader, "a shorter text");
  }
  memcpy(text, reader->next, length);
  text[length] = '\0';
  reader->next += length + 1;
  return CLEAVE_OK;
}

static cleave_status_t read_number(reader_t *reader, double *out) {
  char *end = NULL;
  *out = strtod(reader->next, &end);
  if (end == reader->next) {
    return wrong(reader, "a number");
  }
  reader->next = end;
  return CLEAVE_OK;
}

/* "[1,2,3]" */
static cleave_status_t read_list(reader_t *reader, int64_t *list, size_t *count) {
  *count = 0;
  CLEAVE_TRY(expect(reader, "["));
  if (take(reader, "]")) {
    return CLEAVE_OK;
  }
  do {
    double number = 0.0;
    if (*count == MAX_DIMS) {
      return wrong(reader, "fewer numbers");
    }
    CLEAVE_TRY(read_number(reader, &number));
    list[(*count)++] = (int64_t)number;
  } while (take(reader, ","));
  return expect(reader, "]");
}

static cleave_status_t define(reader_t *reader, const char *name, cleave_value_t value) {
  if (reader->count == MAX_NAMES) {
    return wrong(reader, "fewer names");
  }
  (void)strcpy(reader->names[reader->count], name);
  reader->values[reader->count++] = value;
  return CLEAVE_OK;
}

static cleave_value_t find(const reader_t *reader, const char *name) {
  for (size_t k = reader->count; k-- > 0;) {
    if (strcmp(reader->names[k], name) == 0) {
      return reader->values[k];
    }
  }
  return CLEAVE_VALUE_NONE;
}

/* ---- tensors ---- */

static void fill(cleave_tensor_t *tensor, char content, uint64_t seed, double deviation) {
  static const double wild[] = {INFINITY, -INFINITY, 0.0,  -0.0, 1e30, -1e30, 1e-30, -1e-30, 88.5, -88.5,
                                104.0,    -104.0,    20.0, -20., 1.0,  -1.0,  0.5,   -0.5,   1e-6, -1e-6};
  const size_t wild_count = sizeof wild / sizeof wild[0];
  if (content == '\0' || content == '!') {
    cleave_tensor_fill_normal(tensor, seed, 0.0, deviation);
    for (int64_t k = (int64_t)(seed % 3); content == '!' && k < tensor->count; k += 5) {
      cleave_tensor_set_float(tensor, k, NAN);
    }
  } else if (content == '^') {
    int64_t summed = tensor->rank > 0 && tensor->dims[0] > 0 ? tensor->count / tensor->dims[0] : 1;
    cleave_tensor_fill_normal(tensor, seed, 0.0, 1.0 / sqrt((double)(summed > 0 ? summed : 1)));
  } else if (content == '+') {
    cleave_tensor_fill_uniform(tensor, seed, 0.25, 2.0);
  } else if (content == '&') {
    cleave_tensor_fill_uniform(tensor, seed, 0.05, 0.95);
  } else {
    cleave_tensor_fill_uniform(tensor, seed, 0.0, 1.0);
    for (int64_t k = 0; k < tensor->count; k++) {
      double uniform = cleave_tensor_get_float(tensor, k);
      double number = content == '~' ? wild[(size_t)(uniform * 0.999999 * (double)wild_count)]
                                     : floor(uniform * 17.0) * 0.5 - 4.0;
      cleave_tensor_set_float(tensor, k, number);
    }
  }
  cleave_tensor_touch(tensor);
}

static uint64_t seed_of(const char *name, uint32_t round) {
  return cleave_hash_bytes(CLEAVE_HASH_SEED, name, strlen(name)) +
         (uint64_t)round * UINT64_C(0x9e3779b97f4a7c15);
}

cleave_status_t sweep_graph_feed(const sweep_graph_t *graph, size_t index, uint32_t round,
                                 cleave_tensor_t **out_tensor, cleave_error_t *error) {
  const cleave_value_record_t *record = cleave_graph_value(graph->graph, graph->graph->inputs.items[index]);
  const sweep_input_t *input = &graph->inputs[index];
  CLEAVE_TRY(
      cleave_tensor_create((cleave_dtype_t)record->dtype, input->rank, input->dims, out_tensor, error));
  if ((*out_tensor)->dtype == CLEAVE_DTYPE_F32 || (*out_tensor)->dtype == CLEAVE_DTYPE_F64 ||
      (*out_tensor)->dtype == CLEAVE_DTYPE_F16 || (*out_tensor)->dtype == CLEAVE_DTYPE_BF16) {
    fill(*out_tensor, input->content, seed_of(input->name, round), 1.0);
  } else {
    cleave_dtype_t dtype = (*out_tensor)->dtype;
    bool is_signed = dtype == CLEAVE_DTYPE_I8 || dtype == CLEAVE_DTYPE_I16;
    /* Numbers of the common types may be indices. */
    bool is_wide = is_signed || dtype == CLEAVE_DTYPE_U8 || dtype == CLEAVE_DTYPE_U16 ||
                   dtype == CLEAVE_DTYPE_U32 || dtype == CLEAVE_DTYPE_U64;
    cleave_tensor_fill_uniform(*out_tensor, seed_of(input->name, round), is_signed ? -20.0 : 0.0,
                               is_wide ? 20.0 : 2.0);
  }
  return CLEAVE_OK;
}

static cleave_status_t read_dtype(reader_t *reader, cleave_dtype_t *dtype) {
  static const struct {
    const char *name;
    cleave_dtype_t dtype;
  } names[] = {{"f32", CLEAVE_DTYPE_F32},   {"f64", CLEAVE_DTYPE_F64},   {"f16", CLEAVE_DTYPE_F16},
               {"i64", CLEAVE_DTYPE_I64},   {"bool", CLEAVE_DTYPE_BOOL}, {"i32", CLEAVE_DTYPE_I32},
               {"bf16", CLEAVE_DTYPE_BF16}, {"i8", CLEAVE_DTYPE_I8},     {"i16", CLEAVE_DTYPE_I16},
               {"u8", CLEAVE_DTYPE_U8},     {"u16", CLEAVE_DTYPE_U16},   {"u32", CLEAVE_DTYPE_U32},
               {"u64", CLEAVE_DTYPE_U64}};
  char word[LONGEST_NAME];
  CLEAVE_TRY(read_word(reader, word));
  for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
    if (strcmp(word, names[k].name) == 0) {
      *dtype = names[k].dtype;
      return CLEAVE_OK;
    }
  }
  return wrong(reader, "a dtype before");
}

/* What follows the name of a new tensor. */
static cleave_status_t read_new(reader_t *reader, const char *name, bool constant, cleave_value_t *out) {
  char content = strchr("+&~%^!", *reader->next) != NULL ? *reader->next : '\0';
  cleave_dtype_t dtype = CLEAVE_DTYPE_F32;
  int64_t dims[MAX_DIMS];
  size_t rank = 0;
  sweep_graph_t *graph = reader->out;
  reader->next += content != '\0' ? 1 : 0;
  if (take(reader, ":")) {
    CLEAVE_TRY(read_dtype(reader, &dtype));
  }
  CLEAVE_TRY(read_list(reader, dims, &rank));
  if (rank > CLEAVE_MAX_RANK || graph->input_count == SWEEP_MAX_INPUTS) {
    return wrong(reader, "fewer dimensions or inputs");
  }
  bool is_double = reader->form == SWEEP_DOUBLE && cleave_dtype_is_float(dtype);
  dtype = is_double ? CLEAVE_DTYPE_F64 : dtype;
  if (constant && !is_double) {
    cleave_tensor_t *tensor = NULL;
    CLEAVE_TRY(cleave_tensor_create(dtype, (int32_t)rank, dims, &tensor, reader->error));
    fill(tensor, content, seed_of(name, 0), 0.5);
    cleave_status_t status = cleave_graph_add_constant(graph->graph, name, tensor, out, reader->error);
    cleave_tensor_release(tensor);
    return status;
  }
  sweep_input_t *input = &graph->inputs[graph->input_count++];
  input->rank = (int32_t)rank;
  for (size_t d = 0; d < rank; d++) {
    char symbol[LONGEST_NAME + 8];
    int length = snprintf(symbol, sizeof symbol, "%s_%zu", name, d);
    input->dims[d] = dims[d];
    dims[d] = reader->form == SWEEP_SYMBOLIC ? cleave_dims_symbol(graph->graph->dims, symbol, (size_t)length)
                                             : dims[d];
  }
  CLEAVE_TRY(cleave_graph_add_input(graph->graph, name, dtype, (int32_t)rank, dims, out, reader->error));
  (void)strcpy(input->name, name);
  input->content = content;
  input->is_constant = constant;
  return CLEAVE_OK;
}

/* "#0.5", "#0.5:f16", "#[1,2]" */
static cleave_status_t read_literal(reader_t *reader, cleave_value_t *out) {
  cleave_tensor_t *tensor = NULL;
  if (*reader->next == '[') {
    int64_t list[MAX_DIMS];
    size_t count = 0;
    CLEAVE_TRY(read_list(reader, list, &count));
    CLEAVE_TRY(cleave_tensor_create_ints(1, list, (int64_t)count, &tensor, reader->error));
  } else {
    double number = 0.0;
    cleave_dtype_t dtype = CLEAVE_DTYPE_F32;
    CLEAVE_TRY(read_number(reader, &number));
    if (take(reader, ":")) {
      CLEAVE_TRY(read_dtype(reader, &dtype));
    }
    dtype = reader->form == SWEEP_DOUBLE && cleave_dtype_is_float(dtype) ? CLEAVE_DTYPE_F64 : dtype;
    CLEAVE_TRY(cleave_tensor_create(dtype, 0, NULL, &tensor, reader->error));
    cleave_tensor_set_float(tensor, 0, (double)(float)number);
    cleave_tensor_touch(tensor);
  }
  cleave_status_t status = cleave_graph_add_constant(reader->out->graph, "c", tensor, out, reader->error);
  cleave_tensor_release(tensor);
  return status;
}

/* ---- operators ---- */

/* An attribute, of the kind that the schema says. */
static cleave_status_t read_attribute(reader_t *reader, const cleave_op_t *op, cleave_attribute_t *attribute,
                                      char *name, int64_t *list, char *text) {
  CLEAVE_TRY(read_word(reader, name));
  CLEAVE_TRY(expect(reader, "="));
  const cleave_op_attribute_t *schema = cleave_op_find_attribute(op, name);
  if (schema == NULL) {
    return wrong(reader, "a known attribute before");
  }
  *attribute = (cleave_attribute_t){.name = name, .kind = schema->value.kind};
  if (attribute->kind == CLEAVE_ATTRIBUTE_INTS) {
    size_t count = 0;
    CLEAVE_TRY(read_list(reader, list, &count));
    attribute->count = (uint32_t)count;
    attribute->ints = list;
  } else if (attribute->kind == CLEAVE_ATTRIBUTE_STRING) {
    CLEAVE_TRY(read_text(reader, text));
    attribute->count = (uint32_t)strlen(text);
    attribute->s = text;
  } else {
    double number = 0.0;
    CLEAVE_TRY(read_number(reader, &number));
    if (attribute->kind == CLEAVE_ATTRIBUTE_INT) {
      attribute->i = (int64_t)number;
      if (reader->form == SWEEP_DOUBLE && strcmp(name, "to") == 0 &&
          cleave_dtype_is_float((cleave_dtype_t)attribute->i)) {
        attribute->i = CLEAVE_DTYPE_F64;
      }
    } else {
      attribute->f = (double)(float)number;
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t read_expression(reader_t *reader, size_t output_count, cleave_value_t *outputs);

static cleave_status_t read_operator(reader_t *reader, const cleave_op_t *op, size_t output_count,
                                     cleave_value_t *outputs) {
  cleave_graph_t *graph = reader->out->graph;
  const char *attributes = NULL;
  cleave_value_t inputs[MAX_OPERANDS];
  size_t count = 0;
  cleave_node_t node;
  if (take(reader, "{")) {
    attributes = reader->next;
    while (*reader->next != '\0' && *reader->next != '}') {
      reader->next++;
    }
    CLEAVE_TRY(expect(reader, "}"));
  }
  CLEAVE_TRY(expect(reader, "("));
  for (bool is_done = take(reader, ")"); !is_done;) {
    if (count == MAX_OPERANDS) {
      return wrong(reader, "fewer operands");
    }
    CLEAVE_TRY(read_expression(reader, 1, &inputs[count++]));
    is_done = !take(reader, ",");
    CLEAVE_TRY(is_done ? expect(reader, ")") : CLEAVE_OK);
  }
  CLEAVE_TRY(cleave_graph_add_node(graph, op, NULL, inputs, count, output_count, &node, reader->error));
  const char *after = reader->next;
  reader->next = attributes;
  while (attributes != NULL && !take(reader, "}")) {
    cleave_attribute_t attribute;
    char name[LONGEST_NAME];
    char text[LONGEST_NAME];
    int64_t list[MAX_DIMS];
    CLEAVE_TRY(read_attribute(reader, op, &attribute, name, list, text));
    CLEAVE_TRY(cleave_graph_set_attribute(graph, node, &attribute, reader->error));
    (void)take(reader, ",");
  }
  reader->next = after;
  for (size_t k = 0; k < output_count; k++) {
    outputs[k] = cleave_node_output(graph, node, (uint32_t)k);
  }
  return cleave_op_check(graph, node, CLEAVE_ERROR_FORMAT, reader->error);
}

static cleave_status_t read_expression(reader_t *reader, size_t output_count, cleave_value_t *outputs) {
  char word[LONGEST_NAME];
  if (take(reader, "#")) {
    return read_literal(reader, &outputs[0]);
  }
  bool constant = take(reader, "$");
  CLEAVE_TRY(read_word(reader, word));
  if (strcmp(word, "_") == 0) {
    outputs[0] = CLEAVE_VALUE_NONE;
    return CLEAVE_OK;
  }
  if (*reader->next == '{' || *reader->next == '(') {
    const cleave_op_t *op = cleave_op_find("", word);
    op = op != NULL ? op : cleave_op_find("cleave", word);
    return op == NULL ? wrong(reader, "a known operator before")
                      : read_operator(reader, op, output_count, outputs);
  }
  outputs[0] = find(reader, word);
  if (cleave_value_exists(outputs[0])) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(read_new(reader, word, constant, &outputs[0]));
  return define(reader, word, outputs[0]);
}

/* "a, b = Op(...)" or an expression; `*out_anonymous` is its value if it has no name. */
static cleave_status_t read_statement(reader_t *reader, cleave_value_t *out_anonymous) {
  char names[MAX_OPERANDS][LONGEST_NAME];
  cleave_value_t values[MAX_OPERANDS];
  size_t count = 0;
  const char *start = reader->next;
  *out_anonymous = CLEAVE_VALUE_NONE;
  do {
    if (count == MAX_OPERANDS || read_word(reader, names[count++]) != CLEAVE_OK) {
      count = 0;
      break;
    }
  } while (take(reader, ","));
  if (count == 0 || !take(reader, "=")) {
    reader->next = start;
    cleave_error_clear(reader->error);
    return read_expression(reader, 1, out_anonymous);
  }
  CLEAVE_TRY(read_expression(reader, count, values));
  for (size_t k = 0; k < count; k++) {
    if (strcmp(names[k], "_") != 0) {
      CLEAVE_TRY(define(reader, names[k], values[k]));
      CLEAVE_TRY(cleave_graph_set_value_name(reader->out->graph, values[k], names[k], reader->error));
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t read_graph(reader_t *reader) {
  cleave_graph_t *graph = reader->out->graph;
  cleave_value_t last = CLEAVE_VALUE_NONE;
  do {
    CLEAVE_TRY(read_statement(reader, &last));
  } while (take(reader, ";"));
  if (cleave_value_exists(last)) {
    CLEAVE_TRY(cleave_graph_add_output(graph, "out", last, reader->error));
  }
  if (take(reader, "->")) {
    do {
      char word[LONGEST_NAME];
      CLEAVE_TRY(read_word(reader, word));
      cleave_value_t value = find(reader, word);
      if (!cleave_value_exists(value)) {
        return wrong(reader, "a known name before");
      }
      CLEAVE_TRY(cleave_graph_add_output(graph, word, value, reader->error));
    } while (take(reader, ","));
  }
  return *reader->next == '\0' ? CLEAVE_OK : wrong(reader, "the end");
}

cleave_status_t sweep_graph_read(const char *text, sweep_form_t form, sweep_graph_t *out_graph,
                                 cleave_error_t *error) {
  cleave_error_t own = CLEAVE_ERROR_INIT;
  *out_graph = (sweep_graph_t){0};
  reader_t reader = {
      .text = text, .next = text, .form = form, .out = out_graph, .error = error == NULL ? &own : error};
  cleave_infer_options_t options = {0};
  cleave_status_t status = CLEAVE_OK;
  CLEAVE_TRY_CLEANUP(cleave_graph_create(&out_graph->graph, error));
  CLEAVE_TRY_CLEANUP(read_graph(&reader));
  CLEAVE_TRY_CLEANUP(cleave_graph_infer(out_graph->graph, &options, NULL, error));
cleanup:
  if (status != CLEAVE_OK) {
    sweep_graph_deinit(out_graph);
  }
  return status;
}

void sweep_graph_deinit(sweep_graph_t *graph) {
  cleave_graph_destroy(graph->graph);
  *graph = (sweep_graph_t){0};
}
