// SPDX-License-Identifier: Apache-2.0
// Adds to a graph, finds unused names, and groups steps into series. Invariant: a step that fails leaves
// graph and log unchanged; the log has exactly the steps that were performed.
#include "partition/rewrite/editor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/containers/numbers.h"
#include "graph/order.h"

enum { NAME_SIZE = 160 };

void cleave_editor_init(cleave_editor_t *editor, cleave_graph_t *graph, cleave_edits_t *log) {
  *editor = (cleave_editor_t){.graph = graph, .log = log, .rule = ""};
}

void cleave_editor_deinit(cleave_editor_t *editor) {
  if (editor->notes_reads && editor->graph != NULL) {
    editor->graph->reads = NULL;
  }
  cleave_array_free(&editor->reads);
  cleave_array_free(&editor->changed);
  cleave_array_free(&editor->removed);
  cleave_array_free(&editor->facts);
  cleave_array_free(&editor->facts_made);
  cleave_array_free(&editor->ports);
  cleave_array_free(&editor->stamps);
  cleave_array_free(&editor->front);
  cleave_array_free(&editor->back);
  cleave_array_free(&editor->readers);
  cleave_array_free(&editor->retyped);
  cleave_arena_deinit(&editor->arena);
}

static bool is_taken(const cleave_graph_t *graph, const char *name) {
  return cleave_strings_find(&graph->strings, name, strlen(name)).index != CLEAVE_STRING_NONE.index;
}

const char *cleave_editor_unique_name(cleave_editor_t *editor, const char *base, char *buffer, size_t size) {
  (void)snprintf(buffer, size, "%.100s", base);
  while (buffer[0] == '\0' || is_taken(editor->graph, buffer)) {
    (void)snprintf(buffer, size, "%.100s_%u", base, (unsigned)++editor->name_counter);
  }
  return buffer;
}

static cleave_status_t log_edit(cleave_editor_t *editor, cleave_edit_t edit, cleave_error_t *error) {
  editor->has_changed = edit.kind != CLEAVE_EDIT_FOLD;
  if (editor->log == NULL) {
    return CLEAVE_OK;
  }
  edit.line = editor->line;
  return cleave_edits_add(editor->log, &edit, error);
}

// ---- adding ----

static bool is_live(const cleave_graph_t *graph, cleave_value_t value) {
  return value.index < graph->values.count && !graph->values.items[value.index].is_removed;
}

static cleave_status_t name_outputs(cleave_graph_t *graph, cleave_node_t node, const char *name,
                                    cleave_error_t *error) {
  char text[NAME_SIZE];
  for (uint32_t k = 0; name != NULL && name[0] != '\0' && k < cleave_node_output_count(graph, node); k++) {
    (void)snprintf(text, sizeof text, k == 0 ? "%.120s" : "%.120s:%u", name, (unsigned)k);
    CLEAVE_TRY(cleave_graph_set_value_name(graph, cleave_node_output(graph, node, k), text, error));
  }
  return CLEAVE_OK;
}

static cleave_status_t add_node(cleave_editor_t *editor, const cleave_edit_t *edit, const cleave_op_t *op,
                                cleave_node_t *out_node, cleave_error_t *error) {
  cleave_graph_t *graph = editor->graph;
  CLEAVE_TRY(cleave_graph_add_node(graph, op, edit->name, edit->inputs, edit->input_count, edit->output_count,
                                   out_node, error));
  for (uint32_t k = 0; k < edit->attribute_count; k++) {
    if (cleave_node_attribute(graph, *out_node, edit->attributes[k].name) != NULL) {
      return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                              "operator '%s': attribute '%s' is given twice", op->name,
                              edit->attributes[k].name);
    }
    CLEAVE_TRY(cleave_graph_set_attribute(graph, *out_node, &edit->attributes[k], error));
  }
  graph->nodes.items[out_node->index].line = editor->line;
  CLEAVE_TRY(name_outputs(graph, *out_node, edit->name, error));
  CLEAVE_TRY(cleave_op_check(graph, *out_node, CLEAVE_ERROR_INVALID_ARGUMENT, error));
  CLEAVE_TRY(cleave_editor_infer(editor, *out_node, error));
  CLEAVE_ARRAY_PUSH(&editor->changed, out_node->index, error);
  cleave_edit_t own = *edit;
  own.node = *out_node;
  return log_edit(editor, own, error);
}

cleave_status_t cleave_editor_add_node(cleave_editor_t *editor, const cleave_op_t *op,
                                       const cleave_edit_t *node, cleave_node_t *out_node,
                                       cleave_error_t *error) {
  if (node->input_count > UINT16_MAX || node->output_count > UINT16_MAX ||
      node->attribute_count > UINT16_MAX) {
    return cleave_error_set(error, CLEAVE_ERROR_LIMIT,
                            "operator '%s': more than %d inputs, outputs or attributes", op->name,
                            UINT16_MAX);
  }
  for (uint32_t k = 0; k < node->input_count; k++) {
    if (cleave_value_exists(node->inputs[k]) && !is_live(editor->graph, node->inputs[k])) {
      return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                              "operator '%s': input %u is value %u, which does not exist", op->name,
                              (unsigned)k, (unsigned)node->inputs[k].index);
    }
  }
  cleave_edit_t edit = {.kind = CLEAVE_EDIT_ADD_NODE,
                        .name = node->name,
                        .value = CLEAVE_VALUE_NONE,
                        .other = CLEAVE_VALUE_NONE,
                        .op = op->name,
                        .domain = op->domain,
                        .input_count = node->input_count,
                        .inputs = node->inputs,
                        .output_count = node->output_count,
                        .attribute_count = node->attribute_count,
                        .attributes = node->attributes};
  cleave_editor_mark_t mark = cleave_editor_mark(editor);
  cleave_status_t status = add_node(editor, &edit, op, out_node, error);
  if (status != CLEAVE_OK) {
    cleave_editor_roll_back(editor, mark);
  }
  return status;
}

cleave_status_t cleave_editor_add_constant(cleave_editor_t *editor, const char *name, cleave_tensor_t *tensor,
                                           cleave_value_t *out_value, cleave_error_t *error) {
  if (tensor->bytes > CLEAVE_EDITOR_DATA_LIMIT - editor->data_bytes) {
    return cleave_error_set(error, CLEAVE_ERROR_LIMIT, "constants of rules: more than %d MiB in all",
                            (int)(CLEAVE_EDITOR_DATA_LIMIT >> 20));
  }
  cleave_editor_mark_t mark = cleave_editor_mark(editor);
  cleave_status_t status = cleave_graph_add_constant(editor->graph, name, tensor, out_value, error);
  if (status == CLEAVE_OK) {
    cleave_edit_t edit = {.kind = CLEAVE_EDIT_ADD_CONSTANT,
                          .node = CLEAVE_NODE_NONE,
                          .value = *out_value,
                          .other = CLEAVE_VALUE_NONE,
                          .name = name,
                          .tensor = tensor};
    status = log_edit(editor, edit, error);
  }
  CLEAVE_TRY_OR(status, cleave_editor_roll_back(editor, mark));
  editor->data_bytes += tensor->bytes;
  return CLEAVE_OK;
}

cleave_status_t cleave_editor_add_input(cleave_editor_t *editor, const char *name, cleave_dtype_t dtype,
                                        int32_t rank, const cleave_edit_dim_t *dims,
                                        cleave_value_t *out_value, cleave_error_t *error) {
  cleave_dim_t sizes[CLEAVE_MAX_RANK];
  cleave_graph_t *graph = editor->graph;
  if (rank > CLEAVE_MAX_RANK) {
    return cleave_error_set(error, CLEAVE_ERROR_LIMIT, "input '%s': expected a rank of at most %d, found %d",
                            name, CLEAVE_MAX_RANK, (int)rank);
  }
  for (size_t k = 0; k < graph->inputs.count; k++) {
    if (strcmp(cleave_value_name(graph, graph->inputs.items[k]), name) == 0) {
      return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "input '%s': the graph has one already",
                              name);
    }
  }
  for (int32_t d = 0; d < rank; d++) {
    sizes[d] = dims[d].symbol != NULL
                   ? cleave_dims_symbol(graph->dims, dims[d].symbol, strlen(dims[d].symbol))
                   : dims[d].size;
    sizes[d] = sizes[d] < 0 && dims[d].symbol == NULL ? CLEAVE_DIM_UNKNOWN : sizes[d];
  }
  CLEAVE_TRY(cleave_graph_add_input(graph, name, dtype, rank, sizes, out_value, error));
  cleave_edit_t edit = {.kind = CLEAVE_EDIT_ADD_INPUT,
                        .node = CLEAVE_NODE_NONE,
                        .value = *out_value,
                        .other = CLEAVE_VALUE_NONE,
                        .name = name,
                        .dtype = dtype,
                        .rank = rank,
                        .dims = dims};
  return log_edit(editor, edit, error);
}

// ---- names ----

cleave_status_t cleave_editor_name_node(cleave_editor_t *editor, cleave_node_t node, const char *name,
                                        cleave_error_t *error) {
  if (!cleave_node_is_live(editor->graph, node)) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "name '%s': node %u does not exist", name,
                            (unsigned)node.index);
  }
  cleave_string_t text;
  CLEAVE_TRY(cleave_strings_add(&editor->graph->strings, name, strlen(name), &text, error));
  editor->graph->nodes.items[node.index].name = text.index;
  cleave_edit_t edit = {.kind = CLEAVE_EDIT_NAME_NODE,
                        .node = node,
                        .value = CLEAVE_VALUE_NONE,
                        .other = CLEAVE_VALUE_NONE,
                        .name = name};
  return log_edit(editor, edit, error);
}

cleave_status_t cleave_editor_name_value(cleave_editor_t *editor, cleave_value_t value, const char *name,
                                         cleave_error_t *error) {
  if (!is_live(editor->graph, value)) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "name '%s': value %u does not exist", name,
                            (unsigned)value.index);
  }
  CLEAVE_TRY(cleave_graph_set_value_name(editor->graph, value, name, error));
  cleave_edit_t edit = {.kind = CLEAVE_EDIT_NAME_VALUE,
                        .node = CLEAVE_NODE_NONE,
                        .value = value,
                        .other = CLEAVE_VALUE_NONE,
                        .name = name};
  return log_edit(editor, edit, error);
}

// ---- series of steps ----

cleave_editor_mark_t cleave_editor_mark(const cleave_editor_t *editor) {
  return (cleave_editor_mark_t){.graph = cleave_graph_mark(editor->graph),
                                .edit_count = editor->log == NULL ? 0 : editor->log->items.count,
                                .changed_count = editor->changed.count,
                                .data_bytes = editor->data_bytes};
}

void cleave_editor_roll_back(cleave_editor_t *editor, cleave_editor_mark_t mark) {
  // The next value may get the id of a removed one and must not inherit its facts.
  for (size_t k = mark.graph.value_count; k < editor->facts.count; k++) {
    editor->facts.items[k] = NULL;
  }
  cleave_graph_roll_back(editor->graph, mark.graph);
  if (editor->log != NULL) {
    cleave_edits_truncate(editor->log, mark.edit_count);
  }
  editor->changed.count =
      mark.changed_count < editor->changed.count ? mark.changed_count : editor->changed.count;
  editor->data_bytes = mark.data_bytes;
}

static cleave_status_t check_order(const cleave_graph_t *graph, cleave_error_t *error) {
  cleave_node_t *order = cleave_allocate(graph->live_node_count + 1, sizeof *order);
  CLEAVE_TRY_MEMORY(order, error);
  cleave_status_t status = cleave_graph_topological_order(graph, order, NULL, error);
  cleave_free(order);
  return status;
}

cleave_status_t cleave_editor_settle(cleave_editor_t *editor, cleave_error_t *error) {
  if (editor->is_unproved) {
    editor->is_unproved = false;
    CLEAVE_TRY(check_order(editor->graph, error));
  }
  return cleave_editor_retype(editor, error);
}

cleave_status_t cleave_editor_fold(cleave_editor_t *editor, cleave_error_t *error) {
  CLEAVE_TRY(cleave_editor_settle(editor, error));
  if (!editor->has_changed) {
    return CLEAVE_OK;
  }
  cleave_editor_forget_facts(editor);
  editor->work += editor->graph->live_node_count;
  if (editor->fold != NULL) {
    CLEAVE_TRY(editor->fold(editor->fold_context, editor->graph, error));
  } else {
    cleave_infer_options_t options = {.fold = true};
    CLEAVE_TRY(cleave_graph_infer(editor->graph, &options, NULL, error));
  }
  CLEAVE_TRY(cleave_graph_remove_dead(editor->graph, NULL, error));
  return log_edit(editor,
                  (cleave_edit_t){.kind = CLEAVE_EDIT_FOLD,
                                  .node = CLEAVE_NODE_NONE,
                                  .value = CLEAVE_VALUE_NONE,
                                  .other = CLEAVE_VALUE_NONE},
                  error);
}

// ---- reading ----

void cleave_editor_note_reads(cleave_editor_t *editor) {
  editor->graph->reads = &editor->reads;
  editor->notes_reads = true;
}

cleave_status_t cleave_editor_log_reads(cleave_editor_t *editor, cleave_error_t *error) {
  cleave_graph_reads_t *reads = &editor->reads;
  if (reads->count > 0) {
    qsort(reads->items, reads->count, sizeof *reads->items, cleave_compare_u32);
  }
  for (size_t k = 0; k < reads->count; k++) {
    cleave_value_t value = {reads->items[k]};
    bool is_new = k == 0 || reads->items[k - 1] != reads->items[k];
    bool is_there = editor->log != NULL && is_new && value.index < editor->graph->values.count;
    bool is_constant = is_there && cleave_value_is_constant(editor->graph, value);
    if (is_constant || (is_there && editor->graph->is_sized)) {
      cleave_edit_t edit = {.kind = is_constant ? CLEAVE_EDIT_READ_CONSTANT : CLEAVE_EDIT_READ_SIZES,
                            .node = CLEAVE_NODE_NONE,
                            .value = value,
                            .other = CLEAVE_VALUE_NONE,
                            .line = editor->line};
      CLEAVE_TRY(cleave_edits_add(editor->log, &edit, error));
    }
  }
  reads->count = 0;
  return CLEAVE_OK;
}
