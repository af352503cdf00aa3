// SPDX-License-Identifier: Apache-2.0
// Changes existing nodes: inputs, attributes, outputs, removal. All checks come before the first change. The
// type of a value that replaces another one must fit; types that depend on a changed input or attribute are
// inferred when the series of changes ends.

#include "graph/print.h"
#include "partition/rewrite/editor.h"

static cleave_status_t refuse(cleave_error_t *error, const char *what, uint32_t index) {
  return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "%s %u does not exist", what,
                          (unsigned)index);
}

static bool value_is_live(const cleave_graph_t *graph, cleave_value_t value) {
  return value.index < graph->values.count && !graph->values.items[value.index].is_removed;
}

static cleave_status_t check_may_change(const cleave_editor_t *editor, cleave_error_t *error) {
  return editor->only_adds ? cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                                              "a substitute is built from new nodes and constants only: the "
                                              "graph stays as it is until it is returned")
                           : CLEAVE_OK;
}

static cleave_status_t log_edit(cleave_editor_t *editor, cleave_edit_t edit, cleave_error_t *error) {
  editor->has_changed = true;
  edit.line = editor->line;
  return editor->log == NULL ? CLEAVE_OK : cleave_edits_add(editor->log, &edit, error);
}

static cleave_status_t note_changed(cleave_editor_t *editor, cleave_node_t node, cleave_error_t *error) {
  if (cleave_node_exists(node)) {
    CLEAVE_ARRAY_PUSH(&editor->changed, node.index, error);
  }
  return CLEAVE_OK;
}

// ---- types ----

cleave_status_t cleave_editor_check_fit(const cleave_editor_t *editor, cleave_value_t from, cleave_value_t to,
                                        cleave_error_t *error) {
  const cleave_graph_t *graph = editor->graph;
  const cleave_value_record_t *old = cleave_graph_value(graph, from);
  const cleave_value_record_t *new = cleave_graph_value(graph, to);
  bool fits =
      old->dtype == CLEAVE_DTYPE_UNKNOWN || new->dtype == CLEAVE_DTYPE_UNKNOWN || old->dtype == new->dtype;
  fits = fits && (old->rank < 0 || new->rank < 0 || old->rank == new->rank);
  for (int32_t d = 0; fits && old->rank > 0 && new->rank > 0 && d < old->rank; d++) {
    fits = !cleave_dim_is_known(old->dims[d]) || !cleave_dim_is_known(new->dims[d]) ||
           old->dims[d] == new->dims[d];
  }
  if (fits) {
    return CLEAVE_OK;
  }
  cleave_text_t text = {0};
  cleave_text_format(&text, "value '%.100s' is ", cleave_value_name(graph, from));
  cleave_value_type_print(graph, from, &text);
  cleave_text_add(&text, ", its replacement is ");
  cleave_value_type_print(graph, to, &text);
  cleave_status_t status = cleave_text_check(&text, error);
  CLEAVE_THEN(status, cleave_error_set(error, CLEAVE_ERROR_SHAPE, "%s", cleave_text_get(&text)));
  cleave_text_deinit(&text);
  return status;
}

// ---- uses ----

/* Nodes that will read `to` instead of `from`, into editor->readers. */
static cleave_status_t collect_readers(cleave_editor_t *editor, cleave_value_t from, cleave_value_t to,
                                       cleave_error_t *error) {
  const cleave_graph_t *graph = editor->graph;
  editor->readers.count = 0;
  CLEAVE_TRY(cleave_editor_mark_new_sources(editor, to, error));
  for (cleave_use_t use = cleave_value_first_use(graph, from); cleave_use_exists(use);
       use = cleave_use_next(graph, use)) {
    cleave_node_t user = cleave_use_node(graph, use);
    editor->work++;
    if (cleave_node_exists(user) && !cleave_editor_is_marked(editor, user)) {
      CLEAVE_ARRAY_PUSH(&editor->readers, user, error);
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t fail_cycle(const cleave_editor_t *editor, cleave_value_t value,
                                  cleave_error_t *error) {
  return cleave_error_set(
      error, CLEAVE_ERROR_INVALID_ARGUMENT,
      "reading value '%.100s' here would close a cycle: it depends on the node that is to read it",
      cleave_value_name(editor->graph, value));
}

cleave_status_t cleave_editor_replace_uses(cleave_editor_t *editor, cleave_value_t from, cleave_value_t to,
                                           cleave_error_t *error) {
  cleave_graph_t *graph = editor->graph;
  bool closes = false;
  CLEAVE_TRY(check_may_change(editor, error));
  if (!value_is_live(graph, from) || !value_is_live(graph, to)) {
    return refuse(error, "value", value_is_live(graph, from) ? to.index : from.index);
  }
  if (from.index == to.index) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(cleave_editor_check_fit(editor, from, to, error));
  CLEAVE_TRY(collect_readers(editor, from, to, error));
  CLEAVE_TRY(cleave_editor_closes_cycle(editor, to, editor->readers.items, editor->readers.count,
                                        cleave_value_producer(graph, from), &closes, error));
  if (closes) {
    return fail_cycle(editor, to, error);
  }
  CLEAVE_TRY(cleave_editor_mark_new_sources(editor, to, error));
  CLEAVE_TRY(log_edit(editor,
                      (cleave_edit_t){.kind = CLEAVE_EDIT_REPLACE_USES,
                                      .node = CLEAVE_NODE_NONE,
                                      .value = to,
                                      .other = from,
                                      .index = editor->first_node},
                      error));
  for (size_t k = 0; k < editor->readers.count; k++) {
    CLEAVE_TRY(note_changed(editor, editor->readers.items[k], error));
  }
  CLEAVE_TRY(note_changed(editor, cleave_value_producer(graph, from), error));
  CLEAVE_TRY(note_changed(editor, cleave_value_producer(graph, to), error));
  for (cleave_use_t use = cleave_value_first_use(graph, from); cleave_use_exists(use);) {
    cleave_use_t next = cleave_use_next(graph, use);
    cleave_node_t user = cleave_use_node(graph, use);
    if (!cleave_node_exists(user) || !cleave_editor_is_marked(editor, user)) {
      cleave_graph_set_use(graph, use, to);
    }
    use = next;
  }
  const cleave_value_record_t *source = cleave_graph_value(graph, from);
  if (source->has_range && !cleave_graph_value(graph, to)->has_range) {
    cleave_graph_set_range(graph, to, source->low, source->high);
  }
  return CLEAVE_OK;
}

/* Does the operator's schema require the input? */
static bool is_required(const cleave_op_t *op, uint32_t index) {
  return cleave_op_has_schema(op) &&
         (index >= op->input_count || op->inputs[index].kind != CLEAVE_OP_INPUT_OPTIONAL);
}

cleave_status_t cleave_editor_set_input(cleave_editor_t *editor, cleave_node_t node, uint32_t index,
                                        cleave_value_t value, cleave_error_t *error) {
  cleave_graph_t *graph = editor->graph;
  bool closes = false;
  CLEAVE_TRY(check_may_change(editor, error));
  if (!cleave_node_is_live(graph, node)) {
    return refuse(error, "node", node.index);
  }
  const cleave_op_t *op = cleave_node_op(graph, node);
  if (index >= cleave_node_input_count(graph, node)) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "operator '%s' has %u input%s here: there is no input %u", op->name,
                            (unsigned)cleave_node_input_count(graph, node),
                            CLEAVE_PLURAL(cleave_node_input_count(graph, node)), (unsigned)index);
  }
  if (!cleave_value_exists(value)) {
    if (is_required(op, index)) {
      return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                              "operator '%s': input '%s' cannot be left out", op->name,
                              op->inputs[index < op->input_count ? index : op->input_count - 1].name);
    }
  } else if (!value_is_live(graph, value)) {
    return refuse(error, "value", value.index);
  } else {
    CLEAVE_TRY(cleave_editor_closes_cycle(editor, value, &node, 1, node, &closes, error));
  }
  if (closes) {
    return fail_cycle(editor, value, error);
  }
  CLEAVE_TRY(log_edit(editor,
                      (cleave_edit_t){.kind = CLEAVE_EDIT_SET_INPUT,
                                      .node = node,
                                      .value = value,
                                      .other = CLEAVE_VALUE_NONE,
                                      .index = index},
                      error));
  CLEAVE_TRY(note_changed(editor, node, error));
  CLEAVE_ARRAY_PUSH(&editor->retyped, node.index, error);
  cleave_graph_set_input(graph, node, index, value);
  return CLEAVE_OK;
}

cleave_status_t cleave_editor_set_output(cleave_editor_t *editor, uint32_t index, cleave_value_t value,
                                         cleave_error_t *error) {
  cleave_graph_t *graph = editor->graph;
  CLEAVE_TRY(check_may_change(editor, error));
  if (index >= graph->outputs.count) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "the graph has %zu output%s: there is no output %u", graph->outputs.count,
                            CLEAVE_PLURAL(graph->outputs.count), (unsigned)index);
  }
  if (!value_is_live(graph, value)) {
    return refuse(error, "value", value.index);
  }
  cleave_value_t old = cleave_graph_output(graph, index);
  CLEAVE_TRY(log_edit(editor,
                      (cleave_edit_t){.kind = CLEAVE_EDIT_SET_OUTPUT,
                                      .node = CLEAVE_NODE_NONE,
                                      .value = value,
                                      .other = CLEAVE_VALUE_NONE,
                                      .index = index},
                      error));
  CLEAVE_TRY(note_changed(editor, cleave_value_producer(graph, old), error));
  CLEAVE_TRY(note_changed(editor, cleave_value_producer(graph, value), error));
  cleave_graph_set_use(graph, graph->outputs.items[index], value);
  return CLEAVE_OK;
}

// ---- attributes ----

cleave_status_t cleave_editor_set_attribute(cleave_editor_t *editor, cleave_node_t node,
                                            const cleave_attribute_t *attribute, cleave_error_t *error) {
  cleave_graph_t *graph = editor->graph;
  CLEAVE_TRY(check_may_change(editor, error));
  if (!cleave_node_is_live(graph, node)) {
    return refuse(error, "node", node.index);
  }
  const cleave_op_t *op = cleave_node_op(graph, node);
  const cleave_op_attribute_t *schema = cleave_op_find_attribute(op, attribute->name);
  if (cleave_op_has_schema(op) && (schema == NULL || schema->value.kind != attribute->kind)) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            schema == NULL ? "operator '%s' has no attribute '%s'"
                                           : "operator '%s': attribute '%s' is of another kind",
                            op->name, attribute->name);
  }
  CLEAVE_TRY(log_edit(editor,
                      (cleave_edit_t){.kind = CLEAVE_EDIT_SET_ATTRIBUTE,
                                      .node = node,
                                      .value = CLEAVE_VALUE_NONE,
                                      .other = CLEAVE_VALUE_NONE,
                                      .attribute_count = 1,
                                      .attributes = attribute},
                      error));
  CLEAVE_TRY(note_changed(editor, node, error));
  CLEAVE_ARRAY_PUSH(&editor->retyped, node.index, error);
  return cleave_graph_set_attribute(graph, node, attribute, error);
}

// ---- removal ----

/* The first use of an output, or NONE. */
static cleave_use_t find_use(const cleave_graph_t *graph, cleave_node_t node) {
  for (uint32_t k = 0; k < cleave_node_output_count(graph, node); k++) {
    cleave_use_t use = cleave_value_first_use(graph, cleave_node_output(graph, node, k));
    if (cleave_use_exists(use)) {
      return use;
    }
  }
  return CLEAVE_USE_NONE;
}

cleave_status_t cleave_editor_remove_node(cleave_editor_t *editor, cleave_node_t node,
                                          cleave_error_t *error) {
  cleave_graph_t *graph = editor->graph;
  char label[128];
  char reader[128];
  CLEAVE_TRY(check_may_change(editor, error));
  if (!cleave_node_is_live(graph, node)) {
    return refuse(error, "node", node.index);
  }
  cleave_use_t use = find_use(graph, node);
  if (cleave_use_exists(use)) {
    cleave_node_t user = cleave_use_node(graph, use);
    (void)cleave_node_label(graph, node, label, sizeof label);
    if (!cleave_node_exists(user)) {
      return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                              "node '%s' cannot be removed: it makes an output of the graph", label);
    }
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "node '%s' cannot be removed: '%s' reads it", label,
                            cleave_node_label(graph, user, reader, sizeof reader));
  }
  CLEAVE_ARRAY_PUSH(&editor->removed, node.index, error);
  CLEAVE_TRY(log_edit(editor,
                      (cleave_edit_t){.kind = CLEAVE_EDIT_REMOVE_NODE,
                                      .node = node,
                                      .value = CLEAVE_VALUE_NONE,
                                      .other = CLEAVE_VALUE_NONE},
                      error));
  for (uint32_t k = 0; k < cleave_node_input_count(graph, node); k++) {
    cleave_value_t input = cleave_node_input(graph, node, k);
    if (cleave_value_exists(input)) {
      CLEAVE_TRY(note_changed(editor, cleave_value_producer(graph, input), error));
    }
  }
  cleave_graph_remove_node(graph, node);
  return CLEAVE_OK;
}

cleave_status_t cleave_editor_remove_unused(cleave_editor_t *editor, cleave_node_t node,
                                            cleave_error_t *error) {
  cleave_graph_t *graph = editor->graph;
  editor->front.count = 0;
  CLEAVE_ARRAY_PUSH(&editor->front, node.index, error);
  while (editor->front.count > 0) {
    node.index = editor->front.items[--editor->front.count];
    if (!cleave_node_is_live(graph, node) || cleave_use_exists(find_use(graph, node))) {
      continue;
    }
    for (uint32_t k = 0; k < cleave_node_input_count(graph, node); k++) {
      cleave_value_t input = cleave_node_input(graph, node, k);
      cleave_node_t producer =
          cleave_value_exists(input) ? cleave_value_producer(graph, input) : CLEAVE_NODE_NONE;
      if (cleave_node_exists(producer)) {
        CLEAVE_ARRAY_PUSH(&editor->front, producer.index, error);
      }
    }
    CLEAVE_TRY(cleave_editor_remove_node(editor, node, error));
  }
  return CLEAVE_OK;
}
