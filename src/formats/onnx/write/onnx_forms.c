// SPDX-License-Identifier: Apache-2.0
/* Does an operator set have an operator, in the form that a record has? Only the table (onnx_forms.inc) is
 * asked: no name of an operator stands here. */
#include <stdio.h>
#include <string.h>

#include "formats/onnx/write/onnx_write.h"
#include "ops/ops.h"
#include "tensor/dtype.h"

typedef struct form {
  uint16_t op;
  int32_t since;
  const char *attributes;
  const char *types;
} form_t;

static const form_t forms[] = {
#define CLEAVE_ONNX_FORM(name, since, attributes, types) {CLEAVE_OP_##name, since, attributes, types},
#include "formats/onnx/write/onnx_forms.inc"
#undef CLEAVE_ONNX_FORM
};

/* The last line that holds; *out_first gets the version in which the operator came. */
static const form_t *find_form(uint16_t op, int32_t opset, int32_t *out_first) {
  const form_t *found = NULL;
  *out_first = 0;
  for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
    if (forms[k].op == op) {
      *out_first = *out_first == 0 ? forms[k].since : *out_first;
      found = forms[k].since <= opset ? &forms[k] : found;
    }
  }
  return found;
}

static char letter_of(cleave_dtype_t dtype) {
  static const char letters[] = {
      [CLEAVE_DTYPE_F32] = 'f', [CLEAVE_DTYPE_U8] = 'B',     [CLEAVE_DTYPE_I8] = 'b',
      [CLEAVE_DTYPE_U16] = 'H', [CLEAVE_DTYPE_I16] = 'h',    [CLEAVE_DTYPE_I32] = 'i',
      [CLEAVE_DTYPE_I64] = 'l', [CLEAVE_DTYPE_STRING] = 'S', [CLEAVE_DTYPE_BOOL] = '?',
      [CLEAVE_DTYPE_F16] = 'e', [CLEAVE_DTYPE_F64] = 'd',    [CLEAVE_DTYPE_U32] = 'I',
      [CLEAVE_DTYPE_U64] = 'L', [CLEAVE_DTYPE_BF16] = 'w',
  };
  return (size_t)dtype < sizeof letters ? letters[dtype] : '\0';
}

/* The next set of a list that ends in '>' or NUL; the last one stays. */
static const char *next_set(const char *sets) {
  const char *at = sets;
  while (*at != ',' && *at != '>' && *at != '\0') {
    at++;
  }
  return *at == ',' ? at + 1 : sets;
}

static bool in_set(const char *set, cleave_dtype_t dtype) {
  char letter = letter_of(dtype);
  for (; *set != ',' && *set != '>' && *set != '\0'; set++) {
    if (*set == '*' || *set == letter) {
      return true;
    }
  }
  return letter == '\0'; /* not known: nothing to refuse */
}

/* How many ports the sets are for. */
static size_t count_sets(const char *sets) {
  size_t count = *sets != '>' && *sets != '\0';
  for (; *sets != '>' && *sets != '\0'; sets++) {
    count += *sets == ',';
  }
  return count;
}

static void refuse_type(cleave_onnx_record_t *record, const char *port, cleave_dtype_t dtype) {
  (void)snprintf(record->refusal, sizeof record->refusal, "it has no form for %s '%s'",
                 cleave_dtype_name(dtype), port);
  record->refused_dtype = dtype;
}

static const char *port_name(const cleave_op_port_t *ports, uint32_t count, size_t index) {
  return count == 0 ? "" : ports[index < count ? index : count - 1].name;
}

static void check_types(cleave_onnx_record_t *record, const form_t *form) {
  const cleave_graph_t *graph = record->writer->graph;
  const cleave_op_t *op = record->op;
  const char *set = form->types;
  bool is_variadic = op->input_count > 0 && op->inputs[op->input_count - 1].kind == CLEAVE_OP_INPUT_VARIADIC;
  size_t most = is_variadic ? SIZE_MAX : count_sets(set);
  for (size_t k = 0; k < record->inputs.count; k++, set = next_set(set)) {
    cleave_value_t value = record->inputs.items[k].value;
    cleave_dtype_t dtype = cleave_value_exists(value)
                               ? (cleave_dtype_t)cleave_graph_value(graph, value)->dtype
                               : CLEAVE_DTYPE_UNKNOWN;
    const char *port = port_name(op->inputs, op->input_count, k);
    if (k >= most && cleave_value_exists(value)) {
      (void)snprintf(record->refusal, sizeof record->refusal, "it has no input '%s'", port);
    } else if (!in_set(set, dtype)) {
      refuse_type(record, port, dtype);
    }
  }
  set = strchr(form->types, '>') + 1;
  for (uint32_t k = 0; k < cleave_node_output_count(graph, record->node); k++, set = next_set(set)) {
    cleave_dtype_t dtype =
        (cleave_dtype_t)cleave_graph_value(graph, cleave_node_output(graph, record->node, k))->dtype;
    if (!in_set(set, dtype)) {
      refuse_type(record, port_name(op->outputs, op->output_count, k), dtype);
    }
  }
}

static bool says_default(const cleave_attribute_t *attribute, const cleave_op_attribute_t *schema) {
  if (schema == NULL || !schema->has_default || attribute->kind != schema->value.kind) {
    return false;
  }
  switch (attribute->kind) {
    case CLEAVE_ATTRIBUTE_INT: return attribute->i == schema->value.i;
    case CLEAVE_ATTRIBUTE_STRING: return strcmp(attribute->s, schema->value.s) == 0;
    default: return false;
  }
}

/* Attributes that came later go, if they say what is the case anyway. */
static void check_attributes(cleave_onnx_record_t *record, const form_t *form) {
  size_t kept = 0;
  for (size_t k = 0; k < record->attributes.count; k++) {
    const cleave_attribute_t *attribute = &record->attributes.items[k];
    if (cleave_text_has_word(form->attributes, attribute->name)) {
      record->attributes.items[kept++] = *attribute;
    } else if (!says_default(attribute, cleave_op_find_attribute(record->op, attribute->name))) {
      (void)snprintf(record->refusal, sizeof record->refusal, "it has no attribute '%s'", attribute->name);
    }
  }
  record->attributes.count = kept;
}

void cleave_onnx_check_form(cleave_onnx_record_t *record) {
  int32_t first = 0;
  const form_t *form = find_form(record->op->id, record->writer->opset_version, &first);
  if (form == NULL) {
    (void)snprintf(record->refusal, sizeof record->refusal, "it came with opset %d", (int)first);
    return;
  }
  check_attributes(record, form);
  check_types(record, form);
}
