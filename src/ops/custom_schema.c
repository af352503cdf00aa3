// SPDX-License-Identifier: Apache-2.0
// The texts of a library's operator, "X W B?" and "alpha:f=1 mode:s=linear axis:i", into ports and
// attributes. They come from outside: everything is bounded and checked, and a refusal quotes the word at
// fault.
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/custom.h"

enum { WORD_LIMIT = 255, WORD_COUNT_LIMIT = 64, LIST_LIMIT = 64 };

typedef struct parser {
  const char *place;
  const char *what; /* "inputs" */
  cleave_arena_t *arena;
  cleave_error_t *error;
  char word[WORD_LIMIT + 1]; /* at hand */
} parser_t;

static cleave_status_t fail(const parser_t *parser, const char *expected) {
  return cleave_error_set(parser->error, CLEAVE_ERROR_BACKEND, "%s: %s: '%.80s': expected %s", parser->place,
                          parser->what, parser->word, expected);
}

/* The next word of the text into parser->word; *out_found: there was one. */
static cleave_status_t next_word(parser_t *parser, const char **text, bool *out_found) {
  *text += strspn(*text, " ");
  size_t length = strcspn(*text, " ");
  *out_found = length > 0;
  size_t kept = length > WORD_LIMIT ? WORD_LIMIT : length;
  memcpy(parser->word, *text, kept);
  parser->word[kept] = '\0';
  *text += length;
  return length > WORD_LIMIT ? fail(parser, "a word of at most 255 bytes") : CLEAVE_OK;
}

static cleave_status_t count_words(parser_t *parser, const char *text, uint32_t *out_count) {
  bool found = true;
  *out_count = 0;
  while (found) {
    CLEAVE_TRY(next_word(parser, &text, &found));
    *out_count += found ? 1 : 0;
    if (*out_count > WORD_COUNT_LIMIT) {
      return fail(parser, "at most 64 words");
    }
  }
  return CLEAVE_OK;
}

/* The first `length` bytes of the word are a name. */
static cleave_status_t read_name(const parser_t *parser, size_t length, const char **out_name) {
  bool is_name = length > 0 && !(parser->word[0] >= '0' && parser->word[0] <= '9');
  for (size_t k = 0; k < length && is_name; k++) {
    char c = parser->word[k];
    is_name = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  }
  if (!is_name) {
    return fail(parser, "a name of letters, digits and '_'");
  }
  *out_name = cleave_arena_copy_text(parser->arena, parser->word, length);
  return *out_name == NULL ? cleave_error_out_of_memory(parser->error) : CLEAVE_OK;
}

/* ---- ports ---- */

static cleave_status_t read_port(parser_t *parser, bool is_last, cleave_op_port_t *ports, uint32_t index) {
  size_t length = strlen(parser->word);
  char end = parser->word[length - 1];
  cleave_op_port_t *port = &ports[index];
  port->kind = end == '?'   ? CLEAVE_OP_INPUT_OPTIONAL
               : end == '*' ? CLEAVE_OP_INPUT_VARIADIC
                            : CLEAVE_OP_INPUT_REQUIRED;
  if (port->kind == CLEAVE_OP_INPUT_VARIADIC && !is_last) {
    return fail(parser, "'*' for the last one only");
  }
  CLEAVE_TRY(read_name(parser, port->kind == CLEAVE_OP_INPUT_REQUIRED ? length : length - 1, &port->name));
  for (uint32_t k = 0; k < index; k++) {
    if (strcmp(ports[k].name, port->name) == 0) {
      return fail(parser, "a name that is not there yet");
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t read_ports(parser_t *parser, const char *what, const char *text,
                                  const cleave_op_port_t **out_ports, uint32_t *out_count) {
  bool found = false;
  parser->what = what;
  CLEAVE_TRY(count_words(parser, text, out_count));
  cleave_op_port_t *ports = cleave_arena_allocate(parser->arena, *out_count, sizeof *ports);
  CLEAVE_TRY_MEMORY(ports, parser->error);
  *out_ports = ports;
  for (uint32_t k = 0; k < *out_count; k++) {
    CLEAVE_TRY(next_word(parser, &text, &found));
    CLEAVE_TRY(read_port(parser, k + 1 == *out_count, ports, k));
  }
  return CLEAVE_OK;
}

/* ---- attributes ---- */

static bool find_kind(const char *text, size_t length, cleave_attribute_kind_t *out_kind) {
  static const struct {
    const char *text;
    cleave_attribute_kind_t kind;
  } KINDS[] = {{"i", CLEAVE_ATTRIBUTE_INT},     {"f", CLEAVE_ATTRIBUTE_FLOAT},
               {"s", CLEAVE_ATTRIBUTE_STRING},  {"is", CLEAVE_ATTRIBUTE_INTS},
               {"fs", CLEAVE_ATTRIBUTE_FLOATS}, {"ss", CLEAVE_ATTRIBUTE_STRINGS},
               {"t", CLEAVE_ATTRIBUTE_TENSOR}};
  for (size_t k = 0; k < sizeof KINDS / sizeof KINDS[0]; k++) {
    if (strlen(KINDS[k].text) == length && strncmp(KINDS[k].text, text, length) == 0) {
      *out_kind = KINDS[k].kind;
      return true;
    }
  }
  return false;
}

static cleave_status_t read_int(const parser_t *parser, const char *text, int64_t *out_value) {
  char *end = NULL;
  errno = 0;
  long long value = strtoll(text, &end, 10);
  *out_value = value;
  return errno != 0 || end == text || *end != '\0' ? fail(parser, "an integer as default") : CLEAVE_OK;
}

static cleave_status_t read_float(const parser_t *parser, const char *text, float *out_value) {
  char *end = NULL;
  *out_value = strtof(text, &end);
  return end == text || *end != '\0' || !isfinite(*out_value) ? fail(parser, "a number as default")
                                                              : CLEAVE_OK;
}

/* Elements separated by commas; "" has none. Takes the text apart. */
static cleave_status_t read_list(const parser_t *parser, char *text, cleave_attribute_t *value) {
  int64_t *ints = cleave_arena_allocate(parser->arena, LIST_LIMIT, sizeof *ints);
  float *floats = cleave_arena_allocate(parser->arena, LIST_LIMIT, sizeof *floats);
  const char **strings = cleave_arena_allocate(parser->arena, LIST_LIMIT, sizeof *strings);
  CLEAVE_TRY_MEMORY(ints != NULL && floats != NULL && strings != NULL, parser->error);
  for (char *item = text; text[0] != '\0' && item != NULL;) {
    char *comma = strchr(item, ',');
    char *next = comma == NULL ? NULL : comma + 1;
    if (comma != NULL) {
      *comma = '\0';
    }
    if (value->count == LIST_LIMIT) {
      return fail(parser, "a default of at most 64 elements");
    }
    uint32_t index = value->count++;
    if (value->kind == CLEAVE_ATTRIBUTE_INTS) {
      CLEAVE_TRY(read_int(parser, item, &ints[index]));
    } else if (value->kind == CLEAVE_ATTRIBUTE_FLOATS) {
      CLEAVE_TRY(read_float(parser, item, &floats[index]));
    }
    strings[index] = item;
    item = next;
  }
  cleave_attribute_set_list(value, value->kind == CLEAVE_ATTRIBUTE_INTS     ? (const void *)ints
                                   : value->kind == CLEAVE_ATTRIBUTE_FLOATS ? (const void *)floats
                                                                            : (const void *)strings);
  return CLEAVE_OK;
}

static cleave_status_t read_default(const parser_t *parser, const char *text, cleave_attribute_t *value) {
  char *own = cleave_arena_copy_text(parser->arena, text, strlen(text));
  float number = 0.0f;
  CLEAVE_TRY_MEMORY(own, parser->error);
  switch (value->kind) {
    case CLEAVE_ATTRIBUTE_INT: return read_int(parser, own, &value->i);
    case CLEAVE_ATTRIBUTE_FLOAT:
      CLEAVE_TRY(read_float(parser, own, &number));
      value->f = (double)number;
      return CLEAVE_OK;
    case CLEAVE_ATTRIBUTE_STRING:
      value->s = own;
      value->count = (uint32_t)strlen(own);
      return CLEAVE_OK;
    case CLEAVE_ATTRIBUTE_TENSOR: return fail(parser, "no default for a tensor");
    default: return read_list(parser, own, value);
  }
}

/* "name:kind", "name:kind!", "name:kind=default". */
static cleave_status_t read_attribute(const parser_t *parser, cleave_op_attribute_t *attribute) {
  size_t length = strcspn(parser->word, ":");
  CLEAVE_TRY(read_name(parser, length, &attribute->value.name));
  const char *kind = parser->word + length + (parser->word[length] == ':' ? 1 : 0);
  size_t kind_length = strcspn(kind, "=!");
  const char *rest = kind + kind_length;
  if (!find_kind(kind, kind_length, &attribute->value.kind)) {
    return fail(parser, "name:kind with one of the kinds i, f, s, is, fs, ss and t");
  }
  attribute->required = rest[0] == '!';
  attribute->has_default = rest[0] == '=';
  if (attribute->required && rest[1] != '\0') {
    return fail(parser, "nothing behind '!'");
  }
  return attribute->has_default ? read_default(parser, rest + 1, &attribute->value) : CLEAVE_OK;
}

static cleave_status_t read_attributes(parser_t *parser, const char *text, cleave_op_t *op) {
  bool found = false;
  parser->what = "attributes";
  CLEAVE_TRY(count_words(parser, text, &op->attribute_count));
  cleave_op_attribute_t *attributes =
      cleave_arena_allocate(parser->arena, op->attribute_count, sizeof *attributes);
  CLEAVE_TRY_MEMORY(attributes, parser->error);
  op->attributes = attributes;
  for (uint32_t k = 0; k < op->attribute_count; k++) {
    CLEAVE_TRY(next_word(parser, &text, &found));
    CLEAVE_TRY(read_attribute(parser, &attributes[k]));
    bool is_new = true;
    for (uint32_t n = 0; n < k; n++) {
      is_new = is_new && strcmp(attributes[n].value.name, attributes[k].value.name) != 0;
    }
    for (uint32_t n = 0; n < op->input_count; n++) { /* scripts give both by name, in one table */
      is_new = is_new && strcmp(op->inputs[n].name, attributes[k].value.name) != 0;
    }
    if (!is_new) {
      return fail(parser, "a name that no input or attribute has yet");
    }
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_custom_op_parse(const cleave_custom_operator_t *definition, const char *place,
                                       cleave_arena_t *arena, cleave_op_t *out_op, cleave_error_t *error) {
  parser_t parser = {.place = place, .arena = arena, .error = error};
  const char *inputs = definition->inputs == NULL ? "" : definition->inputs;
  const char *outputs = definition->outputs == NULL ? "" : definition->outputs;
  const char *attributes = definition->attributes == NULL ? "" : definition->attributes;
  CLEAVE_TRY(read_ports(&parser, "inputs", inputs, &out_op->inputs, &out_op->input_count));
  CLEAVE_TRY(read_ports(&parser, "outputs", outputs, &out_op->outputs, &out_op->output_count));
  if (out_op->output_count == 0) {
    return cleave_error_set(error, CLEAVE_ERROR_BACKEND, "%s: outputs: expected one at least", place);
  }
  bool can_swap = out_op->input_count >= 2 && out_op->inputs[0].kind == CLEAVE_OP_INPUT_REQUIRED &&
                  out_op->inputs[1].kind != CLEAVE_OP_INPUT_OPTIONAL;
  if (definition->is_commutative && !can_swap) {
    return cleave_error_set(error, CLEAVE_ERROR_BACKEND,
                            "%s: is commutative: expected two inputs that must be there", place);
  }
  return read_attributes(&parser, attributes, out_op);
}
