// SPDX-License-Identifier: Apache-2.0
// Checks one node against the schema of its operator, so that inference and backends may rely on it.

#include <stdio.h>

#include "ops/ops.h"

enum { LABEL_SIZE = 128, TEXT_SIZE = 512 };

static const char *kind_name(cleave_attribute_kind_t kind) {
  switch (kind) {
    case CLEAVE_ATTRIBUTE_INT: return "an int";
    case CLEAVE_ATTRIBUTE_FLOAT: return "a float";
    case CLEAVE_ATTRIBUTE_STRING: return "a string";
    case CLEAVE_ATTRIBUTE_INTS: return "a list of ints";
    case CLEAVE_ATTRIBUTE_FLOATS: return "a list of floats";
    case CLEAVE_ATTRIBUTE_STRINGS: return "a list of strings";
    case CLEAVE_ATTRIBUTE_TENSOR: return "a tensor";
  }
  return "something else";
}

typedef struct check {
  const cleave_graph_t *graph;
  cleave_node_t node;
  cleave_status_t fault; /* of what the schema does not allow */
  cleave_error_t *error;
} check_t;

/* "node 'x': <text>" */
static cleave_status_t fail(const check_t *check, const char *format, ...) CLEAVE_PRINTF(2, 3);

static cleave_status_t fail(const check_t *check, const char *format, ...) {
  char label[LABEL_SIZE];
  char text[TEXT_SIZE];
  va_list arguments;
  va_start(arguments, format);
  (void)vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return cleave_error_set(check->error, check->fault, "node '%s': %s",
                          cleave_node_label(check->graph, check->node, label, sizeof label), text);
}

static bool is_variadic(const cleave_op_port_t *ports, uint32_t count) {
  return count > 0 && ports[count - 1].kind == CLEAVE_OP_INPUT_VARIADIC;
}

/* Ports that must be there; a variadic one needs one value at least. */
static uint32_t required_count(const cleave_op_port_t *ports, uint32_t count) {
  uint32_t required = 0;
  for (uint32_t k = 0; k < count; k++) {
    if (ports[k].kind != CLEAVE_OP_INPUT_OPTIONAL) {
      required = k + 1;
    }
  }
  return required;
}

static cleave_status_t check_count(const check_t *check, const char *what, const cleave_op_port_t *ports,
                                   uint32_t port_count, uint32_t count) {
  const cleave_op_t *op = cleave_node_op(check->graph, check->node);
  uint32_t required = required_count(ports, port_count);
  if (!is_variadic(ports, port_count) && count > port_count) {
    return fail(check, "%s has at most %u %s%s, found %u", op->name, port_count, what,
                CLEAVE_PLURAL(port_count), count);
  }
  if (count < required) {
    return fail(check, "%s needs %u %s%s ('%s'), found %u", op->name, required, what, CLEAVE_PLURAL(required),
                ports[required - 1].name, count);
  }
  return CLEAVE_OK;
}

static cleave_status_t check_inputs(const check_t *check) {
  const cleave_op_t *op = cleave_node_op(check->graph, check->node);
  uint32_t count = cleave_node_input_count(check->graph, check->node);
  CLEAVE_TRY(check_count(check, "input", op->inputs, op->input_count, count));
  for (uint32_t k = 0; k < count; k++) {
    const cleave_op_port_t *port = &op->inputs[k < op->input_count ? k : op->input_count - 1];
    if (port->kind != CLEAVE_OP_INPUT_OPTIONAL &&
        !cleave_value_exists(cleave_node_input(check->graph, check->node, k))) {
      return fail(check, "input %u ('%s') of %s is left out", k, port->name, op->name);
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t check_attributes(const check_t *check) {
  const cleave_op_t *op = cleave_node_op(check->graph, check->node);
  const cleave_node_record_t *record = cleave_graph_node(check->graph, check->node);
  for (uint32_t k = 0; k < record->attribute_count; k++) {
    const cleave_attribute_t *own = &record->attributes[k];
    const cleave_op_attribute_t *schema = cleave_op_find_attribute(op, own->name);
    if (schema == NULL) {
      cleave_nearest_t nearest = {0};
      for (uint32_t a = 0; a < op->attribute_count; a++) {
        cleave_nearest_offer(&nearest, own->name, op->attributes[a].value.name);
      }
      return fail(check, "%s has no attribute '%s'%s", op->name, own->name, cleave_nearest_hint(&nearest));
    }
    if (own->kind != schema->value.kind) {
      return fail(check, "attribute '%s' of %s is %s, found %s", own->name, op->name,
                  kind_name(schema->value.kind), kind_name(own->kind));
    }
  }
  for (uint32_t a = 0; a < op->attribute_count; a++) {
    const char *name = op->attributes[a].value.name;
    if (op->attributes[a].required && cleave_node_attribute(check->graph, check->node, name) == NULL) {
      return fail(check, "%s needs the attribute '%s'", op->name, name);
    }
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_op_check(const cleave_graph_t *graph, cleave_node_t node, cleave_status_t fault,
                                cleave_error_t *error) {
  const check_t check = {.graph = graph, .node = node, .fault = fault, .error = error};
  const cleave_op_t *op = cleave_node_op(graph, node);
  if (!cleave_op_has_schema(op)) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(check_inputs(&check));
  CLEAVE_TRY(
      check_count(&check, "output", op->outputs, op->output_count, cleave_node_output_count(graph, node)));
  return check_attributes(&check);
}
