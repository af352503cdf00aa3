// SPDX-License-Identifier: Apache-2.0
// Writes the parts of patterns, the paths to them, and the nodes and values of graphs.

#include <math.h>

#include "graph/print.h"
#include "partition/explain/explain_find.h"

enum { MAX_NAMES = 4, MAX_DEPTH = 80 };

// ---- parts ----

void cleave_explain_ops(const cleave_pattern_node_t *part, const char *between, const char *last,
                        cleave_text_t *text) {
  if (part->op_count == 0) {
    cleave_text_add(text, "any operator");
  }
  for (uint32_t k = 0; k < part->op_count; k++) {
    if (k == MAX_NAMES && part->op_count > MAX_NAMES + 1) {
      cleave_text_format(text, "%s%u more", last, (unsigned)(part->op_count - k));
      return;
    }
    cleave_text_format(text, "%s%s",
                       k == 0                    ? ""
                       : k + 1 == part->op_count ? last
                                                 : between,
                       part->ops[k]->name);
  }
}

/* Operators in a path: short. */
static void write_names(const cleave_pattern_node_t *node, cleave_text_t *text) {
  if (node->op_count <= 3) {
    cleave_explain_ops(node, "|", "|", text);
  } else {
    cleave_text_format(text, "%s|%s|...", node->ops[0]->name, node->ops[1]->name);
  }
}

/* The number that a constant must equal; false if its test is anything but one number. */
static bool add_number(const cleave_pattern_node_t *part, cleave_text_t *text) {
  bool is_number = part->kind == CLEAVE_PATTERN_CONSTANT && part->label == NULL && part->constant.has_value;
  if (is_number) {
    cleave_text_format(text, "%.9g", part->constant.value);
  }
  return is_number;
}

void cleave_explain_part(const cleave_explainer_t *x, uint32_t part, cleave_text_t *text) {
  const cleave_pattern_node_t *node = &x->pattern->nodes[part];
  switch (node->kind) {
    case CLEAVE_PATTERN_OP:
      if (node->label != NULL) {
        cleave_text_add(text, node->label);
      } else {
        write_names(node, text);
      }
      break;
    case CLEAVE_PATTERN_VALUE:
      cleave_text_format(text, "any%s%s", node->label == NULL ? "" : " ",
                         node->label == NULL ? "" : node->label);
      break;
    case CLEAVE_PATTERN_CONSTANT:
      if (!add_number(node, text)) {
        cleave_text_format(text, "constant%s%s", node->label == NULL ? "" : " ",
                           node->label == NULL ? "" : node->label);
      }
      break;
    case CLEAVE_PATTERN_ABSENT: cleave_text_add(text, "absent"); break;
    case CLEAVE_PATTERN_SEQUENCE: cleave_explain_part(x, node->children[node->child_count - 1], text); break;
    case CLEAVE_PATTERN_MAYBE:
      cleave_text_add(text, "maybe(");
      cleave_explain_part(x, node->children[0], text);
      cleave_text_add(text, ")");
      break;
    case CLEAVE_PATTERN_ONEOF:
      for (uint32_t k = 0; k < node->child_count && k < MAX_NAMES; k++) {
        cleave_text_add(text, k == 0 ? "" : " | ");
        cleave_explain_part(x, node->children[k], text);
      }
      break;
    case CLEAVE_PATTERN_REPEATED:
    case CLEAVE_PATTERN_OUTPUT:
    case CLEAVE_PATTERN_VARIADIC:
    case CLEAVE_PATTERN_GROUP: cleave_explain_part(x, node->children[0], text); break;
  }
}

// ---- paths ----

typedef struct chain {
  uint32_t parts[MAX_DEPTH];
  uint32_t edges[MAX_DEPTH]; /* from part k to part k + 1: input or child */
  uint32_t length;
} chain_t;

static bool find_chain(const cleave_explainer_t *x, const trial_t *trial, uint32_t part, uint32_t target,
                       uint8_t *visited, chain_t *chain) {
  part = cleave_explainer_resolve(x, trial, part);
  const cleave_pattern_node_t *node = &x->pattern->nodes[part];
  if (visited[part] != 0 || chain->length + 1 >= MAX_DEPTH) {
    return false;
  }
  visited[part] = 1;
  uint32_t at = chain->length++;
  chain->parts[at] = part;
  if (part == target) {
    return true;
  }
  uint32_t count = node->kind == CLEAVE_PATTERN_OP ? node->input_count : node->child_count;
  for (uint32_t k = 0; k < count; k++) {
    chain->edges[at] = k;
    uint32_t next = node->kind == CLEAVE_PATTERN_OP ? node->inputs[k].pattern : node->children[k];
    if (find_chain(x, trial, next, target, visited, chain)) {
      return true;
    }
  }
  chain->length = at;
  return false;
}

void cleave_explain_input(const cleave_op_t *op, uint32_t index, cleave_text_t *text) {
  if ((op->flags & CLEAVE_OP_COMMUTATIVE) == 0 && index < op->input_count) {
    cleave_text_add(text, op->inputs[index].name);
  } else {
    cleave_text_format(text, "%u", (unsigned)index + 1);
  }
}

void cleave_explain_output(const cleave_op_t *op, uint32_t index, const char *quote, cleave_text_t *text) {
  if (index < op->output_count && op->outputs[index].kind != CLEAVE_OP_INPUT_VARIADIC) {
    cleave_text_format(text, "%s%s%s", quote, op->outputs[index].name, quote);
  } else {
    cleave_text_format(text, "%u", (unsigned)index + 1);
  }
}

void cleave_explain_port(const cleave_pattern_node_t *part, uint32_t index, cleave_text_t *text) {
  uint32_t port = part->inputs[index].port;
  if (port == CLEAVE_PATTERN_PORT_VARIADIC) {
    cleave_text_add(text, "variadic");
  } else if (port == CLEAVE_PATTERN_PORT_ANY) {
    cleave_text_format(text, "%u", (unsigned)index + 1);
  } else if (part->op_count > 0) {
    cleave_explain_input(part->ops[0], port, text);
  } else {
    cleave_text_format(text, "%u", (unsigned)port + 1);
  }
}

void cleave_explain_path(const cleave_explainer_t *x, const trial_t *trial, uint32_t part,
                         cleave_text_t *text) {
  chain_t chain = {.length = 0};
  uint8_t *visited = cleave_allocate_zeroed(x->pattern->node_count, 1);
  bool found = visited != NULL && find_chain(x, trial, x->pattern->root, part, visited, &chain);
  bool backwards = false;  // set once the path goes through an input
  for (uint32_t k = 0; found && k + 1 < chain.length; k++) {
    const cleave_pattern_node_t *node = &x->pattern->nodes[chain.parts[k]];
    uint32_t edge = chain.edges[k];
    if (node->kind == CLEAVE_PATTERN_OP) {
      cleave_explain_part(x, chain.parts[k], text);
      cleave_text_add(text, ".inputs[");
      cleave_explain_port(node, edge, text);
      cleave_text_add(text, "] > ");
      backwards = true;
    } else if (node->kind == CLEAVE_PATTERN_SEQUENCE && !backwards && edge > 0) {
      cleave_explain_part(x, node->children[edge - 1], text);
      cleave_text_add(text, " >> ");
    } else if (node->kind == CLEAVE_PATTERN_SEQUENCE && backwards && edge + 1 < node->child_count) {
      cleave_explain_part(x, node->children[edge + 1], text);
      cleave_text_add(text, " > ");
    }
  }
  cleave_explain_part(x, part, text);
  cleave_free(visited);
}

// ---- the graph ----

void cleave_explain_node(const cleave_graph_t *graph, cleave_node_t node, cleave_text_t *text) {
  char label[128];
  cleave_text_format(text, "%s '%s'", cleave_node_op(graph, node)->name,
                     cleave_node_label(graph, node, label, sizeof label));
}

/* Says what makes a value, without names. */
void cleave_explain_origin(const cleave_graph_t *graph, cleave_value_t value, cleave_text_t *text) {
  if (!cleave_value_exists(value)) {
    cleave_text_add(text, "nothing");
  } else if (cleave_value_is_constant(graph, value)) {
    cleave_text_add(text, "a constant");
  } else if (cleave_graph_value(graph, value)->is_input) {
    cleave_text_add(text, "an input of the model");
  } else if (cleave_node_exists(cleave_value_producer(graph, value))) {
    cleave_text_add(text, cleave_node_op(graph, cleave_value_producer(graph, value))->name);
  } else {
    cleave_text_add(text, "another value");
  }
}

void cleave_explain_value(const cleave_graph_t *graph, cleave_value_t value, cleave_text_t *text) {
  cleave_explain_origin(graph, value, text);
  if (cleave_value_exists(value)) {
    cleave_text_format(text, " '%s'", cleave_value_name(graph, value));
  }
}

void cleave_explain_number(double number, cleave_text_t *text) {
  if (isfinite(number)) {
    cleave_text_format(text, "%.9g", number);
  } else {
    cleave_text_add(text, isnan(number) ? "nan" : number > 0 ? "math.huge" : "-math.huge");
  }
}

void cleave_explain_content(const cleave_constant_test_t *test, cleave_text_t *text) {
  if (test->has_value) {
    cleave_explain_number(test->value, text);
  }
  for (uint32_t k = 0; test->values != NULL && k < test->value_count && k < 8; k++) {
    cleave_text_add(text, k == 0 ? "" : test->is_list ? ", " : " or ");
    cleave_explain_number(test->values[k], text);
  }
  if ((test->has_value || test->values != NULL) && test->tolerance > 0) {
    cleave_text_format(text, " within %.3g", test->tolerance);
  }
  if (test->has_range) {
    cleave_text_add(text, "from ");
    cleave_explain_number(test->low, text);
    cleave_text_add(text, " to ");
    cleave_explain_number(test->high, text);
  }
}

void cleave_explain_literal(const cleave_pattern_literal_t *literal, cleave_text_t *text) {
  if (literal->text != NULL) {
    cleave_text_format(text, "\"%s\"", literal->text);
    return;
  }
  cleave_text_add(text, literal->is_list ? "{" : "");
  for (uint32_t k = 0; k < literal->count; k++) {
    cleave_text_add(text, k == 0 ? "" : ", ");
    cleave_explain_number(literal->numbers[k], text);
  }
  cleave_text_add(text, literal->is_list ? "}" : "");
}

bool cleave_explain_attribute(const cleave_attribute_t *attribute, cleave_text_t *text) {
  bool is_list = attribute->kind == CLEAVE_ATTRIBUTE_INTS || attribute->kind == CLEAVE_ATTRIBUTE_FLOATS;
  if (attribute->kind == CLEAVE_ATTRIBUTE_TENSOR || attribute->kind == CLEAVE_ATTRIBUTE_STRINGS) {
    cleave_attribute_print(attribute, text);
    return false;
  }
  if (!is_list) {
    cleave_attribute_print(attribute, text);
    return true;
  }
  cleave_text_add(text, "{");
  for (uint32_t k = 0; k < attribute->count; k++) {
    cleave_text_add(text, k == 0 ? "" : ", ");
    if (attribute->kind == CLEAVE_ATTRIBUTE_INTS) {
      cleave_text_format(text, "%lld", (long long)attribute->ints[k]);
    } else {
      cleave_explain_number((double)attribute->floats[k], text);
    }
  }
  cleave_text_add(text, "}");
  return true;
}
