// SPDX-License-Identifier: Apache-2.0
// Parses the texts of op_list.inc into cleave_op_t entries, once. All memory is static, so that the first
// lookup cannot fail and threads need no lock afterwards. The list is ours: what does not parse is a bug and
// stops the program in the first test that looks an operator up.

#include "ops/schema.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
  PORT_LIMIT = 768,
  ATTRIBUTE_LIMIT = 512,
  TEXT_LIMIT = 16384, /* bytes of names and string defaults */
  INT_LIMIT = 16      /* elements of list defaults */
};

/* Flags as the list writes them. */
enum {
  NONE = 0,
  COMMUTATIVE = CLEAVE_OP_COMMUTATIVE,
  POINTWISE = CLEAVE_OP_POINTWISE,
  VIEW = CLEAVE_OP_VIEW,
  RANDOM = CLEAVE_OP_RANDOM,
  DATA_SHAPE = CLEAVE_OP_DATA_SHAPE,
  SPATIAL = CLEAVE_OP_SPATIAL
};

typedef struct line {
  const char *name;
  const char *domain;
  int32_t since_version;
  const char *inputs;
  const char *outputs;
  const char *attributes;
  uint32_t flags;
} line_t;

static const line_t LINES[CLEAVE_OP_COUNT] = {
#define CLEAVE_OP(name, domain, since, inputs, outputs, attributes, infer, flops, flags) \
  {#name, domain, since, inputs, outputs, attributes, flags},
#include "ops/op_list.inc"
#undef CLEAVE_OP
};

static cleave_op_t table[CLEAVE_OP_COUNT];
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static struct {
  cleave_op_port_t ports[PORT_LIMIT];
  cleave_op_attribute_t attributes[ATTRIBUTE_LIMIT];
  char text[TEXT_LIMIT];
  int64_t ints[INT_LIMIT];
  size_t port_count;
  size_t attribute_count;
  size_t text_length;
  size_t int_count;
} pool;

static const char *add_text(const char *text, size_t length) {
  assert(pool.text_length + length + 1 <= TEXT_LIMIT);
  char *copy = pool.text + pool.text_length;
  memcpy(copy, text, length);
  copy[length] = '\0';
  pool.text_length += length + 1;
  return copy;
}

/* The next word of `*cursor`, up to a blank; false at the end. */
static bool next_word(const char **cursor, const char **out_word, size_t *out_length) {
  const char *word = *cursor + strspn(*cursor, " ");
  *out_length = strcspn(word, " ");
  *out_word = word;
  *cursor = word + *out_length;
  return *out_length > 0;
}

static const cleave_op_port_t *parse_ports(const char *text, uint32_t *out_count) {
  const cleave_op_port_t *first = pool.ports + pool.port_count;
  const char *word = NULL;
  size_t length = 0;
  *out_count = 0;
  while (next_word(&text, &word, &length)) {
    assert(pool.port_count < PORT_LIMIT);
    cleave_op_port_t *port = &pool.ports[pool.port_count++];
    port->kind = CLEAVE_OP_INPUT_REQUIRED;
    if (word[length - 1] == '?') {
      port->kind = CLEAVE_OP_INPUT_OPTIONAL;
      length--;
    } else if (word[length - 1] == '*') {
      port->kind = CLEAVE_OP_INPUT_VARIADIC;
      length--;
    }
    port->name = add_text(word, length);
    (*out_count)++;
  }
  return first;
}

static cleave_attribute_kind_t kind_of_letter(char letter) {
  switch (letter) {
    case 'i': return CLEAVE_ATTRIBUTE_INT;
    case 'f': return CLEAVE_ATTRIBUTE_FLOAT;
    case 's': return CLEAVE_ATTRIBUTE_STRING;
    case 'I': return CLEAVE_ATTRIBUTE_INTS;
    case 'F': return CLEAVE_ATTRIBUTE_FLOATS;
    case 'S': return CLEAVE_ATTRIBUTE_STRINGS;
    default: break;
  }
  assert(letter == 't');
  return CLEAVE_ATTRIBUTE_TENSOR;
}

/* Ints, separated by commas, of a text that ends in NUL. */
static void parse_ints(cleave_attribute_t *value, const char *text) {
  value->ints = pool.ints + pool.int_count;
  while (*text != '\0') {
    size_t length = strcspn(text, ",");
    assert(value->kind == CLEAVE_ATTRIBUTE_INTS && pool.int_count < INT_LIMIT);
    pool.ints[pool.int_count++] = strtoll(text, NULL, 10);
    value->count++;
    text += length + (text[length] == ',' ? 1 : 0);
  }
}

static void parse_default(cleave_attribute_t *value, const char *text) {
  switch (value->kind) {
    case CLEAVE_ATTRIBUTE_INT: value->i = strtoll(text, NULL, 10); break;
    case CLEAVE_ATTRIBUTE_FLOAT: value->f = (double)strtof(text, NULL); break;
    case CLEAVE_ATTRIBUTE_STRING:
      value->s = text;
      value->count = (uint32_t)strlen(text);
      break;
    default: parse_ints(value, text); break;
  }
}

/* A default that depends on the shapes of a node: "1/axis", "0/side", "kernel", "reversed". */
static bool parse_shaped(cleave_op_attribute_t *attribute, const char *text) {
  const char *slash = strchr(text, '/');
  const char *form = slash == NULL ? text : slash;
  static const struct {
    const char *form;
    cleave_op_shaped_default_t shaped;
  } FORMS[] = {{"/axis", CLEAVE_OP_SHAPED_PER_AXIS},
               {"/side", CLEAVE_OP_SHAPED_PER_SIDE},
               {"kernel", CLEAVE_OP_SHAPED_KERNEL},
               {"reversed", CLEAVE_OP_SHAPED_REVERSED}};
  for (size_t k = 0; k < sizeof FORMS / sizeof FORMS[0]; k++) {
    if (attribute->value.kind == CLEAVE_ATTRIBUTE_INTS && strcmp(form, FORMS[k].form) == 0) {
      attribute->shaped = (uint8_t)FORMS[k].shaped;
      attribute->fill = (uint8_t)(slash == NULL ? 0 : strtoul(text, NULL, 10));
      return true;
    }
  }
  return false;
}

static const cleave_op_attribute_t *parse_attributes(const char *text, uint32_t *out_count) {
  const cleave_op_attribute_t *first = pool.attributes + pool.attribute_count;
  const char *word = NULL;
  size_t length = 0;
  *out_count = 0;
  while (next_word(&text, &word, &length)) {
    assert(pool.attribute_count < ATTRIBUTE_LIMIT);
    cleave_op_attribute_t *attribute = &pool.attributes[pool.attribute_count++];
    size_t name_length = strcspn(word, ":");
    assert(name_length + 1 < length);
    attribute->value.name = add_text(word, name_length);
    attribute->value.kind = kind_of_letter(word[name_length + 1]);
    const char *rest = word + name_length + 2;
    size_t rest_length = length - name_length - 2;
    attribute->required = rest_length > 0 && rest[0] == '!';
    if (rest_length > 0 && rest[0] == '=') {
      const char *given = add_text(rest + 1, rest_length - 1);
      attribute->has_default = !parse_shaped(attribute, given);
      if (attribute->has_default) {
        parse_default(&attribute->value, given);
      }
    }
    (*out_count)++;
  }
  return first;
}

static void build_table(void) {
  for (uint16_t id = 0; id < CLEAVE_OP_COUNT; id++) {
    const line_t *line = &LINES[id];
    cleave_op_t *op = &table[id];
    op->name = line->name;
    op->domain = line->domain;
    op->id = id;
    op->since_version = line->since_version;
    op->flags = line->flags;
    op->inputs = parse_ports(line->inputs, &op->input_count);
    op->outputs = parse_ports(line->outputs, &op->output_count);
    op->attributes = parse_attributes(line->attributes, &op->attribute_count);
  }
}

const cleave_op_t *cleave_op_table(void) {
  (void)pthread_once(&table_once, build_table);
  return table;
}
