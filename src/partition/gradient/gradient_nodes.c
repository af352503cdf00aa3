// SPDX-License-Identifier: Apache-2.0
// Nodes of ai.onnx.preview.training.Gradient as what they mean: y, computed again from the node's inputs in
// the places of the values that xs and zs name, and the gradients of that by xs. The inputs are independent
// of each other, even if one is computed from another: each is read through an Identity of its own.
#include "partition/gradient/gradient_nodes.h"

#include <string.h>

#include "graph/order.h"
#include "ops/infer.h"
#include "ops/ops.h"
#include "partition/gradient/gradient.h"

enum { LABEL_SIZE = 160, NAME_SIZE = 200 };

typedef struct resolving {
  cleave_editor_t editor;
  cleave_gradient_rules_t rules;
  cleave_node_t node;
  const cleave_attribute_t *xs;
  const cleave_attribute_t *zs; /* or NULL */
  cleave_value_t *copies;       /* by value: what stands for it, or NONE */
  bool *is_needed;              /* by node */
  cleave_node_t *order;
  size_t order_count;
  uint32_t value_count; /* before anything was added */
} resolving_t;

static bool is_gradient(const cleave_graph_t *graph, cleave_node_t node) {
  const cleave_op_t *op = cleave_node_op(graph, node);
  return op != NULL && op->id == (uint16_t)CLEAVE_OP_Gradient;
}

static cleave_status_t fail(const resolving_t *resolving, const char *attribute, const char *name,
                            const char *why, cleave_error_t *error) {
  char label[LABEL_SIZE];
  return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "Gradient '%.100s': %s: '%.100s' %s",
                          cleave_node_label(resolving->editor.graph, resolving->node, label, sizeof label),
                          attribute, name, why);
}

static cleave_status_t find_value(const resolving_t *resolving, const char *attribute, const char *name,
                                  cleave_value_t *out_value, cleave_error_t *error) {
  const cleave_graph_t *graph = resolving->editor.graph;
  cleave_string_t string = cleave_strings_find(&graph->strings, name, strlen(name));
  for (uint32_t k = 0; k < resolving->value_count && name[0] != '\0'; k++) {
    const cleave_value_record_t *record = &graph->values.items[k];
    if (!record->is_removed && record->name == string.index) {
      *out_value = (cleave_value_t){k};
      return CLEAVE_OK;
    }
  }
  return fail(resolving, attribute, name, "is no value of the graph", error);
}

/* Puts the node's inputs, from `first` on, in the place of the values that a list names. */
static cleave_status_t place_inputs(resolving_t *resolving, const char *attribute,
                                    const cleave_attribute_t *names, uint32_t first, cleave_error_t *error) {
  static const char *const REPEATED = "is named twice";
  for (uint32_t k = 0; names != NULL && k < names->count; k++) {
    cleave_value_t value = CLEAVE_VALUE_NONE;
    cleave_node_t identity = CLEAVE_NODE_NONE;
    CLEAVE_TRY(find_value(resolving, attribute, names->strings[k], &value, error));
    if (cleave_value_exists(resolving->copies[value.index])) {
      return fail(resolving, attribute, names->strings[k], REPEATED, error);
    }
    const cleave_value_t input = cleave_node_input(resolving->editor.graph, resolving->node, first + k);
    const cleave_edit_t edit = {.name = "", .inputs = &input, .input_count = 1, .output_count = 1};
    CLEAVE_TRY(cleave_editor_add_node(&resolving->editor, cleave_op_get(CLEAVE_OP_Identity), &edit, &identity,
                                      error));
    resolving->copies[value.index] = cleave_node_output(resolving->editor.graph, identity, 0);
  }
  return CLEAVE_OK;
}

static bool is_placed(const resolving_t *resolving, cleave_value_t value) {
  return value.index < resolving->value_count && cleave_value_exists(resolving->copies[value.index]);
}

/* The nodes between y and the values that are named. */
static void mark_needed(resolving_t *resolving, cleave_value_t y) {
  const cleave_graph_t *graph = resolving->editor.graph;
  cleave_node_t producer = cleave_value_producer(graph, y);
  if (cleave_node_exists(producer) && !is_placed(resolving, y)) {
    resolving->is_needed[producer.index] = true;
  }
  for (size_t k = resolving->order_count; k-- > 0;) {
    cleave_node_t node = resolving->order[k];
    uint32_t count = resolving->is_needed[node.index] ? cleave_node_input_count(graph, node) : 0;
    for (uint32_t s = 0; s < count; s++) {
      cleave_value_t input = cleave_node_input(graph, node, s);
      producer = cleave_value_exists(input) ? cleave_value_producer(graph, input) : CLEAVE_NODE_NONE;
      if (cleave_node_exists(producer) && !is_placed(resolving, input)) {
        resolving->is_needed[producer.index] = true;
      }
    }
  }
}

/* The node once more, from what stands for its inputs; nothing if none of them has a copy. */
static cleave_status_t copy_node(resolving_t *resolving, cleave_node_t node, cleave_error_t *error) {
  cleave_graph_t *graph = resolving->editor.graph;
  uint32_t inputs = cleave_node_input_count(graph, node);
  uint32_t outputs = cleave_node_output_count(graph, node);
  bool has_copy = false;
  cleave_value_t *from = cleave_allocate(inputs + 1, sizeof *from);
  cleave_node_t made = CLEAVE_NODE_NONE;
  CLEAVE_TRY_MEMORY(from, error);
  for (uint32_t k = 0; k < inputs; k++) {
    from[k] = cleave_node_input(graph, node, k);
    if (cleave_value_exists(from[k]) && is_placed(resolving, from[k])) {
      from[k] = resolving->copies[from[k].index];
      has_copy = true;
    }
  }
  cleave_status_t status = CLEAVE_OK;
  if (has_copy) {
    char label[LABEL_SIZE];
    char name[NAME_SIZE];
    const cleave_node_record_t *record = cleave_graph_node(graph, node);
    (void)cleave_editor_unique_name(&resolving->editor, cleave_node_label(graph, node, label, sizeof label),
                                    name, sizeof name);
    const cleave_edit_t edit = {.name = name,
                                .inputs = from,
                                .input_count = inputs,
                                .output_count = outputs,
                                .attributes = record->attributes,
                                .attribute_count = record->attribute_count};
    status = cleave_editor_add_node(&resolving->editor, cleave_node_op(graph, node), &edit, &made, error);
  }
  for (uint32_t k = 0; status == CLEAVE_OK && has_copy && k < outputs; k++) {
    cleave_value_t output = cleave_node_output(graph, node, k);
    if (cleave_value_exists(output) && !is_placed(resolving, output)) {
      resolving->copies[output.index] = cleave_node_output(graph, made, k);
    }
  }
  cleave_free(from);
  return status;
}

/* The gradient takes over the output's name, which another Gradient may have as its y. */
static cleave_status_t replace_output(resolving_t *resolving, uint32_t index, cleave_value_t gradient,
                                      cleave_error_t *error) {
  cleave_graph_t *graph = resolving->editor.graph;
  cleave_value_t output = cleave_node_output(graph, resolving->node, index);
  const cleave_edit_t edit = {.name = "", .inputs = &gradient, .input_count = 1, .output_count = 1};
  cleave_node_t identity = CLEAVE_NODE_NONE;
  cleave_string_t name = {cleave_graph_value(graph, output)->name};
  CLEAVE_TRY(
      cleave_editor_add_node(&resolving->editor, cleave_op_get(CLEAVE_OP_Identity), &edit, &identity, error));
  CLEAVE_TRY(
      cleave_editor_replace_uses(&resolving->editor, output, cleave_node_output(graph, identity, 0), error));
  return cleave_editor_name_value(&resolving->editor, cleave_node_output(graph, identity, 0),
                                  cleave_strings_text(&graph->strings, name), error);
}

static cleave_status_t differentiate(resolving_t *resolving, const char *name, cleave_value_t y,
                                     cleave_error_t *error) {
  uint32_t count = resolving->xs->count;
  cleave_value_t *values = cleave_allocate(2 * (size_t)count + 1, sizeof *values);
  cleave_status_t status = values == NULL ? cleave_error_out_of_memory(error) : CLEAVE_OK;
  for (uint32_t k = 0; status == CLEAVE_OK && k < count; k++) {
    cleave_value_t value = CLEAVE_VALUE_NONE;
    status = find_value(resolving, "xs", resolving->xs->strings[k], &value, error);
    values[k] = status == CLEAVE_OK ? resolving->copies[value.index] : value;
  }
  if (status == CLEAVE_OK && !is_placed(resolving, y)) {
    status = fail(resolving, "y", name, "depends on none of the values that xs and zs name", error);
  }
  if (status == CLEAVE_OK) {
    const cleave_gradient_request_t request = {
        .rules = &resolving->rules, .loss = resolving->copies[y.index], .wrt = values, .wrt_count = count};
    status = cleave_gradient_build(&resolving->editor, &request, values + count, error);
  }
  for (uint32_t k = 0; status == CLEAVE_OK && k < count; k++) {
    status = cleave_value_exists(values[count + k])
                 ? replace_output(resolving, k, values[count + k], error)
                 : fail(resolving, "xs", resolving->xs->strings[k], "has no influence on y", error);
  }
  cleave_free(values);
  return status;
}

static cleave_status_t resolve(resolving_t *resolving, cleave_error_t *error) {
  cleave_graph_t *graph = resolving->editor.graph;
  cleave_node_t node = resolving->node;
  const cleave_attribute_t *y_name = cleave_node_attribute(graph, node, "y");
  cleave_value_t y = CLEAVE_VALUE_NONE;
  resolving->xs = cleave_node_attribute(graph, node, "xs");
  resolving->zs = cleave_node_attribute(graph, node, "zs");
  CLEAVE_TRY(place_inputs(resolving, "xs", resolving->xs, 0, error));
  CLEAVE_TRY(place_inputs(resolving, "zs", resolving->zs, resolving->xs->count, error));
  CLEAVE_TRY(find_value(resolving, "y", y_name->s, &y, error));
  mark_needed(resolving, y);
  for (size_t k = 0; k < resolving->order_count; k++) {
    if (resolving->is_needed[resolving->order[k].index]) {
      CLEAVE_TRY(copy_node(resolving, resolving->order[k], error));
    }
  }
  CLEAVE_TRY(differentiate(resolving, y_name->s, y, error));
  return cleave_editor_remove_node(&resolving->editor, node, error);
}

/* One Gradient: its own memory, since the graph grows with each. */
static cleave_status_t resolve_one(cleave_graph_t *graph, const cleave_gradient_rules_t *rules,
                                   cleave_node_t node, cleave_error_t *error) {
  resolving_t resolving = {.rules = *rules, .node = node, .value_count = cleave_graph_value_bound(graph)};
  uint32_t nodes = cleave_graph_node_bound(graph);
  resolving.order = cleave_allocate((size_t)nodes + 1, sizeof *resolving.order);
  resolving.copies = cleave_allocate((size_t)resolving.value_count + 1, sizeof *resolving.copies);
  resolving.is_needed = cleave_allocate_zeroed((size_t)nodes + 1, sizeof *resolving.is_needed);
  cleave_status_t status = resolving.order == NULL || resolving.copies == NULL || resolving.is_needed == NULL
                               ? cleave_error_out_of_memory(error)
                               : cleave_graph_topological_order(graph, resolving.order, NULL, error);
  if (status == CLEAVE_OK) {
    for (uint32_t k = 0; k < resolving.value_count; k++) {
      resolving.copies[k] = CLEAVE_VALUE_NONE;
    }
    resolving.order_count = graph->live_node_count;
    cleave_editor_init(&resolving.editor, graph, NULL);
    resolving.editor.rule = "Gradient";
    status = resolve(&resolving, error);
    if (status == CLEAVE_OK) {
      status = cleave_editor_settle(&resolving.editor, error);
    }
    cleave_editor_deinit(&resolving.editor);
  }
  cleave_free(resolving.order);
  cleave_free(resolving.copies);
  cleave_free(resolving.is_needed);
  return status;
}

cleave_status_t cleave_gradient_nodes_resolve(cleave_graph_t *graph, const cleave_gradient_rules_t *rules,
                                              cleave_error_t *error) {
  const cleave_infer_options_t infer = {.fold = false};
  cleave_node_t *order = cleave_allocate((size_t)graph->live_node_count + 1, sizeof *order);
  size_t count = graph->live_node_count;
  cleave_status_t status =
      order == NULL ? cleave_error_out_of_memory(error) : cleave_graph_infer(graph, &infer, NULL, error);
  CLEAVE_THEN(status, cleave_graph_topological_order(graph, order, NULL, error));
  /* One may differentiate what another one made. */
  for (size_t k = 0; status == CLEAVE_OK && k < count; k++) {
    if (is_gradient(graph, order[k])) {
      status = resolve_one(graph, rules, order[k], error);
    }
  }
  cleave_free(order);
  return status;
}

bool cleave_gradient_nodes_exist(const cleave_graph_t *graph) {
  for (uint32_t k = 0; k < cleave_graph_node_bound(graph); k++) {
    if (is_gradient(graph, (cleave_node_t){k})) {
      return true;
    }
  }
  return false;
}
