// SPDX-License-Identifier: Apache-2.0
// Passes and gradients of libraries: cleave_graph_editor_t over the editor of rules, which checks every step
// and keeps the log. A step that cannot be done is an error to the library, which may go on. What leaves the
// graph in doubt (memory, types that contradict each other) ends the pass whatever the library says.
#include <stdio.h>
#include <string.h>

#include "backend/region/tensor_copy.h"
#include "backend/region/view.h"
#include "backend/registry/registry_entry.h"
#include "graph/order.h"
#include "partition/rewrite/editor.h"

enum { NAME_SIZE = 128, PORT_LIMIT = 65535, LIST_LIMIT = 65536, TEXT_LIMIT = 1 << 20 };

typedef struct editing {
  cleave_editor_t *editor;
  cleave_arena_t arena;   /* of the view */
  cleave_arena_t scratch; /* of the call at hand */
  cleave_view_builder_t builder;
  cleave_view_t view;
  cleave_node_t *order; /* nodes of the view */
  bool has_view;
  bool has_changed;       /* since the view was made */
  bool notes_constants;   /* they are noted as read */
  cleave_error_t error;   /* of the call at hand */
  cleave_error_t failure; /* that ends the pass */
} editing_t;

/* ---- outcomes ---- */

/* Begins a function of the editor that changes the graph. */
static editing_t *begin(void *graph) {
  editing_t *editing = graph;
  cleave_error_clear(&editing->error);
  editing->has_changed = true;
  return editing;
}

/* Ends a function of the editor: the library gets the status, and the message without place. */
static cleave_status_t finish(editing_t *editing, cleave_status_t status, cleave_message_t *message) {
  cleave_arena_reset(&editing->scratch);
  if (status == CLEAVE_ERROR_OUT_OF_MEMORY && editing->failure.status == CLEAVE_OK) {
    (void)cleave_error_out_of_memory(&editing->failure);
  }
  if (status != CLEAVE_OK && message != NULL) {
    (void)snprintf(message->text, sizeof message->text, "%.255s", editing->error.message);
  }
  return status;
}

static cleave_status_t refuse(cleave_error_t *error, const char *text) {
  return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "%s", text);
}

static cleave_value_t value_of_number(uint32_t number) {
  return (cleave_value_t){number};
}

/* ---- reading ---- */

static void drop_view(editing_t *editing) {
  cleave_view_builder_deinit(&editing->builder);
  cleave_arena_reset(&editing->arena);
  cleave_free(editing->order);
  editing->order = NULL;
  editing->has_view = false;
}

/* The library sees all constants and sizes, and may act on any of them; sizes all come from the inputs. */
static cleave_status_t note_constants(editing_t *editing, cleave_error_t *error) {
  const cleave_graph_t *graph = editing->editor->graph;
  for (uint32_t k = 0; !editing->notes_constants && k < cleave_graph_value_bound(graph); k++) {
    if (!graph->values.items[k].is_removed && cleave_value_is_constant(graph, value_of_number(k))) {
      CLEAVE_TRY(cleave_graph_note_read(graph, value_of_number(k), error));
    }
  }
  for (size_t k = 0; !editing->notes_constants && graph->is_sized && k < graph->inputs.count; k++) {
    CLEAVE_TRY(cleave_graph_note_read(graph, graph->inputs.items[k], error));
  }
  editing->notes_constants = true;
  return CLEAVE_OK;
}

static cleave_status_t make_view(editing_t *editing, cleave_error_t *error) {
  const cleave_graph_t *graph = editing->editor->graph;
  CLEAVE_TRY(cleave_editor_settle(editing->editor, error));
  CLEAVE_TRY(note_constants(editing, error));
  drop_view(editing);
  editing->order = cleave_allocate(graph->live_node_count, sizeof *editing->order);
  CLEAVE_TRY_MEMORY(editing->order, error);
  CLEAVE_TRY(cleave_graph_topological_order(graph, editing->order, NULL, error));
  cleave_view_builder_init(&editing->builder, graph);
  cleave_view_request_t request = {.nodes = editing->order, .node_count = (uint32_t)graph->live_node_count};
  CLEAVE_TRY(cleave_view_build(&editing->builder, &request, &editing->arena, &editing->view, error));
  editing->has_view = true;
  editing->has_changed = false;
  return CLEAVE_OK;
}

static const cleave_region_view_t *view(void *graph) {
  editing_t *editing = graph;
  if (editing->has_view && !editing->has_changed) {
    return &editing->view.region;
  }
  return make_view(editing, &editing->failure) == CLEAVE_OK ? &editing->view.region : NULL;
}

static uint32_t value_of(void *graph, uint32_t view_value) {
  const editing_t *editing = graph;
  bool is_there = editing->has_view && view_value < editing->view.region.value_count;
  return is_there ? editing->view.values[view_value].index : CLEAVE_INDEX_NONE;
}

static uint32_t node_of(void *graph, uint32_t view_node) {
  const editing_t *editing = graph;
  bool is_there = editing->has_view && view_node < editing->view.region.node_count;
  return is_there ? editing->view.nodes[view_node].index : CLEAVE_INDEX_NONE;
}

/* ---- adding ---- */

/* A name that nothing has yet: `proposed` by the library, or made from `fallback`. */
static cleave_status_t choose_name(editing_t *editing, const char *proposed, const char *fallback, char *name,
                                   cleave_error_t *error) {
  char base[NAME_SIZE];
  if (proposed != NULL && strnlen(proposed, NAME_SIZE) >= NAME_SIZE - 16) {
    return refuse(error, "the name is longer than 111 bytes");
  }
  (void)snprintf(base, sizeof base, "%.50s/%.60s", editing->editor->rule, fallback);
  (void)cleave_editor_unique_name(editing->editor, proposed != NULL && proposed[0] != '\0' ? proposed : base,
                                  name, NAME_SIZE);
  return CLEAVE_OK;
}

/* The name of an open size that a value of the graph has, too; NULL: no name. */
static const char *symbol_of(const cleave_graph_t *graph, int64_t dim) {
  size_t symbol = cleave_dims_symbol_of(graph->dims, dim);
  return symbol < cleave_dims_symbol_count(graph->dims) ? cleave_dims_symbol_name(graph->dims, symbol) : NULL;
}

static cleave_status_t do_add_input(editing_t *editing, const char *name, const cleave_tensor_view_t *type,
                                    uint32_t *out_value, cleave_error_t *error) {
  cleave_edit_dim_t dims[CLEAVE_MAX_RANK];
  cleave_value_t value = CLEAVE_VALUE_NONE;
  char unique[NAME_SIZE];
  if (name == NULL || name[0] == '\0') {
    return refuse(error, "an input needs a name");
  }
  CLEAVE_TRY(choose_name(editing, name, "", unique, error));
  if (strcmp(unique, name) != 0) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "input '%s': the graph has this name already", name);
  }
  if (type == NULL || !cleave_dtype_is_valid((int64_t)type->dtype) || type->rank < -1 ||
      type->rank > CLEAVE_MAX_RANK || (type->rank > 0 && type->dims == NULL)) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "input '%s': expected a dtype, and a shape of at most %d dimensions", name,
                            CLEAVE_MAX_RANK);
  }
  for (int32_t d = 0; d < type->rank; d++) {
    dims[d] = (cleave_edit_dim_t){.size = type->dims[d] < 0 ? -1 : type->dims[d],
                                  .symbol = symbol_of(editing->editor->graph, type->dims[d])};
  }
  CLEAVE_TRY(cleave_editor_add_input(editing->editor, name, type->dtype, type->rank, dims, &value, error));
  *out_value = value.index;
  return CLEAVE_OK;
}

static cleave_status_t add_input(void *graph, const char *name, const cleave_tensor_view_t *type,
                                 uint32_t *out_value, cleave_message_t *message) {
  editing_t *editing = begin(graph);
  return finish(editing, do_add_input(editing, name, type, out_value, &editing->error), message);
}

static cleave_status_t copy_tensor(const editing_t *editing, const cleave_tensor_view_t *view_,
                                   cleave_tensor_t **out_tensor, cleave_error_t *error) {
  return cleave_tensor_copy_view(view_, CLEAVE_EDITOR_DATA_LIMIT - editing->editor->data_bytes, out_tensor,
                                 error);
}

static cleave_status_t do_add_constant(editing_t *editing, const char *name,
                                       const cleave_tensor_view_t *tensor, uint32_t *out_value,
                                       cleave_error_t *error) {
  cleave_value_t value = CLEAVE_VALUE_NONE;
  cleave_tensor_t *copy = NULL;
  char unique[NAME_SIZE];
  CLEAVE_TRY(choose_name(editing, name, "constant", unique, error));
  CLEAVE_TRY(copy_tensor(editing, tensor, &copy, error));
  cleave_status_t status = cleave_editor_add_constant(editing->editor, unique, copy, &value, error);
  cleave_tensor_release(copy);
  *out_value = value.index;
  return status;
}

static cleave_status_t add_constant(void *graph, const char *name, const cleave_tensor_view_t *tensor,
                                    uint32_t *out_value, cleave_message_t *message) {
  editing_t *editing = begin(graph);
  return finish(editing, do_add_constant(editing, name, tensor, out_value, &editing->error), message);
}

/* ---- attributes ---- */

static cleave_status_t read_text(editing_t *editing, const char *text, const char **out_text,
                                 uint32_t *out_length, cleave_error_t *error) {
  size_t length = text == NULL ? 0 : strnlen(text, TEXT_LIMIT + 1);
  if (text == NULL || length > TEXT_LIMIT) {
    return refuse(error, text == NULL ? "an attribute's text is missing" : "an attribute's text is too long");
  }
  *out_text = cleave_arena_copy_text(&editing->scratch, text, length);
  *out_length = (uint32_t)length;
  return *out_text == NULL ? cleave_error_out_of_memory(error) : CLEAVE_OK;
}

static cleave_status_t read_texts(editing_t *editing, const cleave_attribute_view_t *given,
                                  cleave_attribute_t *attribute, cleave_error_t *error) {
  const char **texts = cleave_arena_allocate(&editing->scratch, given->count, sizeof *texts);
  uint32_t length = 0;
  CLEAVE_TRY_MEMORY(texts, error);
  for (uint32_t k = 0; k < given->count; k++) {
    CLEAVE_TRY(read_text(editing, given->strings[k], &texts[k], &length, error));
  }
  attribute->strings = texts;
  return CLEAVE_OK;
}

/* A tensor among them is the caller's to release. */
static cleave_status_t read_attribute(editing_t *editing, const cleave_attribute_view_t *given,
                                      cleave_attribute_t *attribute, cleave_error_t *error) {
  uint32_t length = 0;
  if (given == NULL || given->name == NULL || given->name[0] == '\0') {
    return refuse(error, "an attribute without a name");
  }
  *attribute = (cleave_attribute_t){.kind = given->kind};
  CLEAVE_TRY(read_text(editing, given->name, &attribute->name, &length, error));
  bool is_list = cleave_attribute_is_list(given);
  bool has_list = given->kind == CLEAVE_ATTRIBUTE_INTS     ? given->ints != NULL
                  : given->kind == CLEAVE_ATTRIBUTE_FLOATS ? given->floats != NULL
                                                           : given->strings != NULL;
  if (is_list && (given->count > LIST_LIMIT || (given->count > 0 && !has_list))) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "attribute '%.64s': expected a list of at most %d elements", given->name,
                            LIST_LIMIT);
  }
  attribute->count = is_list ? given->count : 0;
  switch (given->kind) {
    case CLEAVE_ATTRIBUTE_INT: attribute->i = given->i; return CLEAVE_OK;
    case CLEAVE_ATTRIBUTE_FLOAT: attribute->f = given->f; return CLEAVE_OK;
    case CLEAVE_ATTRIBUTE_STRING:
      return read_text(editing, given->s, &attribute->s, &attribute->count, error);
    case CLEAVE_ATTRIBUTE_INTS: attribute->ints = given->ints; return CLEAVE_OK;
    case CLEAVE_ATTRIBUTE_FLOATS: attribute->floats = given->floats; return CLEAVE_OK;
    case CLEAVE_ATTRIBUTE_STRINGS: return read_texts(editing, given, attribute, error);
    case CLEAVE_ATTRIBUTE_TENSOR: return copy_tensor(editing, given->tensor, &attribute->held, error);
  }
  return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "attribute '%.64s': no kind has number %d",
                          given->name, (int)given->kind);
}

static void release_attributes(const cleave_attribute_t *attributes, uint32_t count) {
  for (uint32_t k = 0; k < count; k++) {
    if (attributes[k].kind == CLEAVE_ATTRIBUTE_TENSOR) {
      cleave_tensor_release(attributes[k].held);
    }
  }
}

/* ---- nodes ---- */

static cleave_status_t find_op(const cleave_new_node_t *wanted, const cleave_op_t **out_op,
                               cleave_error_t *error) {
  const char *domain = wanted->domain == NULL ? "" : wanted->domain;
  char hint[128];
  if (wanted->op == NULL) {
    return refuse(error, "a node without an operator");
  }
  *out_op = cleave_op_find(domain, wanted->op);
  if (*out_op != NULL) {
    return CLEAVE_OK;
  }
  return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "operator '%.64s%s%.64s' is unknown%s",
                          domain, domain[0] == '\0' ? "" : ".", wanted->op,
                          cleave_op_hint(wanted->op, hint, sizeof hint));
}

static cleave_status_t insert_node(editing_t *editing, const cleave_new_node_t *wanted, const cleave_op_t *op,
                                   const cleave_attribute_t *attributes, cleave_node_t *out_node,
                                   cleave_error_t *error) {
  char name[NAME_SIZE];
  cleave_value_t *inputs = cleave_arena_allocate(&editing->scratch, wanted->input_count, sizeof *inputs);
  CLEAVE_TRY_MEMORY(inputs, error);
  for (uint32_t k = 0; k < wanted->input_count; k++) {
    inputs[k] = value_of_number(wanted->inputs[k]);
  }
  CLEAVE_TRY(choose_name(editing, wanted->name, op->name, name, error));
  cleave_edit_t edit = {.name = name,
                        .inputs = inputs,
                        .input_count = wanted->input_count,
                        .output_count = wanted->output_count,
                        .attributes = attributes,
                        .attribute_count = wanted->attribute_count};
  return cleave_editor_add_node(editing->editor, op, &edit, out_node, error);
}

static cleave_status_t do_add_node(editing_t *editing, const cleave_new_node_t *wanted, uint32_t *out_values,
                                   cleave_error_t *error) {
  const cleave_op_t *op = NULL;
  cleave_node_t node = CLEAVE_NODE_NONE;
  if (wanted == NULL || wanted->size < sizeof *wanted) {
    return refuse(error, "a node that is not there, or of another version of the interface");
  }
  CLEAVE_TRY(find_op(wanted, &op, error));
  bool has_lists = (wanted->input_count == 0 || wanted->inputs != NULL) &&
                   (wanted->attribute_count == 0 || wanted->attributes != NULL);
  if (!has_lists || wanted->input_count > PORT_LIMIT || wanted->output_count > PORT_LIMIT ||
      wanted->attribute_count > PORT_LIMIT || wanted->output_count == 0) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "operator '%s': expected an output at least, and lists of inputs and attributes",
                            op->name);
  }
  cleave_attribute_t *attributes =
      cleave_arena_allocate(&editing->scratch, wanted->attribute_count, sizeof *attributes);
  CLEAVE_TRY_MEMORY(attributes, error);
  cleave_status_t status = CLEAVE_OK;
  uint32_t count = 0;
  while (count < wanted->attribute_count && status == CLEAVE_OK) {
    status = read_attribute(editing, &wanted->attributes[count], &attributes[count], error);
    count += status == CLEAVE_OK ? 1 : 0;
  }
  CLEAVE_THEN(status, insert_node(editing, wanted, op, attributes, &node, error));
  release_attributes(attributes, count);
  for (uint32_t k = 0; status == CLEAVE_OK && k < wanted->output_count; k++) {
    out_values[k] = cleave_node_output(editing->editor->graph, node, k).index;
  }
  return status;
}

static cleave_status_t add_node(void *graph, const cleave_new_node_t *node, uint32_t *out_values,
                                cleave_message_t *message) {
  editing_t *editing = begin(graph);
  return finish(editing, do_add_node(editing, node, out_values, &editing->error), message);
}

/* ---- changing ---- */

static cleave_status_t set_attribute(void *graph, uint32_t node, const cleave_attribute_view_t *attribute,
                                     cleave_message_t *message) {
  editing_t *editing = begin(graph);
  cleave_attribute_t own;
  cleave_status_t status = read_attribute(editing, attribute, &own, &editing->error);
  if (status == CLEAVE_OK) {
    status = cleave_editor_set_attribute(editing->editor, (cleave_node_t){node}, &own, &editing->error);
    release_attributes(&own, 1);
  }
  return finish(editing, status, message);
}

static cleave_status_t set_input(void *graph, uint32_t node, uint32_t port, uint32_t value,
                                 cleave_message_t *message) {
  editing_t *editing = begin(graph);
  cleave_status_t status = cleave_editor_set_input(editing->editor, (cleave_node_t){node}, port,
                                                   value_of_number(value), &editing->error);
  return finish(editing, status, message);
}

static cleave_status_t replace_uses(void *graph, uint32_t from, uint32_t to, cleave_message_t *message) {
  editing_t *editing = begin(graph);
  cleave_status_t status = cleave_editor_replace_uses(editing->editor, value_of_number(from),
                                                      value_of_number(to), &editing->error);
  return finish(editing, status, message);
}

static cleave_status_t remove_node(void *graph, uint32_t node, cleave_message_t *message) {
  editing_t *editing = begin(graph);
  cleave_status_t status = cleave_editor_remove_node(editing->editor, (cleave_node_t){node}, &editing->error);
  return finish(editing, status, message);
}

/* ---- the pass ---- */

static cleave_status_t run(void *context, cleave_editor_t *editor, cleave_error_t *error) {
  const cleave_named_rule_use_t *use = context;
  cleave_library_rule_t rule;
  CLEAVE_TRY(cleave_library_rule_enter(CLEAVE_RULE_PASS, use, &rule, error));
  editing_t editing = {.editor = editor, .failure = CLEAVE_ERROR_INIT};
  cleave_graph_editor_t words = {.size = sizeof words,
                                 .graph = &editing,
                                 .view = view,
                                 .value_of = value_of,
                                 .node_of = node_of,
                                 .add_input = add_input,
                                 .add_constant = add_constant,
                                 .add_node = add_node,
                                 .set_attribute = set_attribute,
                                 .set_input = set_input,
                                 .replace_uses = replace_uses,
                                 .remove_node = remove_node};
  cleave_message_t message = {.text = ""};
  editor->line = use->line;
  cleave_status_t status = rule.pass->run(rule.pass->self, &words, use->options, use->option_count, &message);
  if (editing.failure.status != CLEAVE_OK) {
    status = editing.failure.status;
    (void)snprintf(message.text, sizeof message.text, "%.255s", editing.failure.message);
  }
  if (status != CLEAVE_OK) {
    status = cleave_library_rule_fail(&rule, use, "run", status, &message, error);
  }
  drop_view(&editing);
  cleave_arena_deinit(&editing.arena);
  cleave_arena_deinit(&editing.scratch);
  cleave_library_rule_leave(&rule);
  return status;
}

/* ---- gradients of a region ---- */

cleave_status_t cleave_library_backward(const cleave_backend_handle_t *library, cleave_editor_t *editor,
                                        cleave_backward_request_t *request, cleave_message_t *reason,
                                        cleave_error_t *error) {
  editing_t editing = {.editor = editor, .failure = CLEAVE_ERROR_INIT};
  const cleave_graph_editor_t words = {
      .size = sizeof words, .graph = &editing, .add_constant = add_constant, .add_node = add_node};
  request->editor = &words;
  cleave_status_t status = library->backend->backward(library->state, request, reason);
  reason->text[sizeof reason->text - 1] = '\0';
  cleave_arena_deinit(&editing.scratch);
  if (editing.failure.status != CLEAVE_OK) {
    return cleave_error_set(error, editing.failure.status, "%s", editing.failure.message);
  }
  if (status == CLEAVE_OK || status == CLEAVE_ERROR_UNSUPPORTED) {
    return status;
  }
  char place[256];
  (void)snprintf(place, sizeof place, "backend '%.64s': 'backward' of region '%.128s'",
                 library->backend->name, request->forward->name);
  return cleave_registry_fail(error, status, place, reason);
}

void cleave_library_pass_bind(const cleave_named_rule_t *named, cleave_rule_t *rule) {
  (void)named;
  rule->run = run;
}
