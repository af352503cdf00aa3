// SPDX-License-Identifier: Apache-2.0
// Passes of the library at work: the editor that they get asks the parent for every step. What it says of
// numbers of the view is here already.
#include <stdio.h>
#include <string.h>

#include "backend/region/region_wire.h"
#include "worker/worker.h"

/* The library has this as `graph`. It outlives the pass, so that calls with a pointer that it kept are
 * refused. */
typedef struct editing {
  worker_t *worker;
  bool is_open;
  bool has_view;
  bool has_changed; /* since the view was made */
  cleave_region_view_t view;
  worker_answer_t answer; /* that holds it */
  cleave_arena_t arena;
  const uint32_t *values; /* numbers of the view's values and nodes in the graph */
  const uint32_t *nodes;
} editing_t;

static editing_t editing;

/* ---- reading ---- */

static void drop_view(void) {
  worker_answer_free(&editing.answer);
  cleave_arena_reset(&editing.arena);
  editing.has_view = false;
}

static bool read_view(cleave_wire_in_t *in) {
  cleave_message_t message = {.text = ""};
  uint32_t value_count = cleave_wire_u32(in);
  uint32_t node_count = cleave_wire_u32(in);
  editing.values = cleave_wire_take(in, value_count, sizeof *editing.values, sizeof *editing.values);
  editing.nodes = cleave_wire_take(in, node_count, sizeof *editing.nodes, sizeof *editing.nodes);
  return worker_read_region(editing.worker, in, &editing.arena, &editing.view, &message) == CLEAVE_OK &&
         editing.view.value_count == value_count && editing.view.node_count == node_count;
}

static const cleave_region_view_t *view(void *graph) {
  (void)graph;
  if (!editing.is_open) {
    return NULL;
  }
  if (editing.has_view && !editing.has_changed) {
    return &editing.view;
  }
  cleave_wire_out_t out = {0};
  worker_answer_t answer;
  cleave_status_t status = worker_call_back(editing.worker, CLEAVE_FRAME_VIEW, &out, &answer, NULL);
  drop_view();
  editing.answer = answer;
  editing.has_view = status == CLEAVE_OK && read_view(&editing.answer.in);
  editing.has_changed = false;
  return editing.has_view ? &editing.view : NULL;
}

static uint32_t value_of(void *graph, uint32_t view_value) {
  (void)graph;
  return editing.has_view && view_value < editing.view.value_count ? editing.values[view_value]
                                                                   : CLEAVE_INDEX_NONE;
}

static uint32_t node_of(void *graph, uint32_t view_node) {
  (void)graph;
  return editing.has_view && view_node < editing.view.node_count ? editing.nodes[view_node]
                                                                 : CLEAVE_INDEX_NONE;
}

/* ---- steps ---- */

/* Asks for a step, whose message is freed; the answer is the caller's to read and to free. */
static cleave_status_t ask(uint32_t kind, cleave_wire_out_t *out, worker_answer_t *answer,
                           cleave_message_t *message) {
  const char *problem = !editing.is_open                  ? "the pass is over"
                        : out->length > CLEAVE_EDIT_LIMIT ? "a step of more than 1 GiB"
                                                          : NULL;
  cleave_status_t status = CLEAVE_ERROR_INVALID_ARGUMENT;
  *answer = (worker_answer_t){.frame = {.fd = -1}};
  if (out->failed) {
    status = CLEAVE_ERROR_OUT_OF_MEMORY;
  } else if (problem == NULL) {
    editing.has_changed = true;
    status = worker_call_back(editing.worker, kind, out, answer, message);
  } else if (message != NULL) {
    (void)snprintf(message->text, sizeof message->text, "%s", problem);
  }
  cleave_wire_deinit(out);
  return status;
}

static cleave_status_t add_value(uint32_t kind, const char *name, const cleave_tensor_view_t *tensor,
                                 uint32_t *out_value, cleave_message_t *message) {
  cleave_wire_out_t out = {0};
  worker_answer_t answer;
  cleave_edit_wire_value(&(cleave_edit_wire_t){.out = &out}, &name, &tensor);
  cleave_status_t status = ask(kind, &out, &answer, message);
  if (status == CLEAVE_OK) {
    *out_value = cleave_wire_u32(&answer.in);
  }
  worker_answer_free(&answer);
  return status;
}

static cleave_status_t add_input(void *graph, const char *name, const cleave_tensor_view_t *type,
                                 uint32_t *out_value, cleave_message_t *message) {
  cleave_tensor_view_t copy = {0};
  (void)graph;
  if (type != NULL) {
    copy = *type;
    copy.data = NULL;
  }
  return add_value(CLEAVE_FRAME_ADD_INPUT, name, type == NULL ? NULL : &copy, out_value, message);
}

static cleave_status_t add_constant(void *graph, const char *name, const cleave_tensor_view_t *tensor,
                                    uint32_t *out_value, cleave_message_t *message) {
  (void)graph;
  return add_value(CLEAVE_FRAME_ADD_CONSTANT, name, tensor, out_value, message);
}

static cleave_status_t add_node(void *graph, const cleave_new_node_t *node, uint32_t *out_values,
                                cleave_message_t *message) {
  cleave_wire_out_t out = {0};
  worker_answer_t answer;
  (void)graph;
  cleave_new_node_t copy = {.size = sizeof copy}; /* without an operator: the host refuses it */
  if (node != NULL && node->size >= sizeof copy) {
    copy = *node;
  }
  cleave_edit_wire_node(&(cleave_edit_wire_t){.out = &out}, &copy);
  cleave_status_t status = ask(CLEAVE_FRAME_ADD_NODE, &out, &answer, message);
  if (status == CLEAVE_OK) {
    const uint32_t *values = cleave_wire_take(&answer.in, copy.output_count, sizeof *values, sizeof *values);
    if (values != NULL) {
      memcpy(out_values, values, copy.output_count * sizeof *values);
    }
  }
  worker_answer_free(&answer);
  return status;
}

static cleave_status_t ask_only(uint32_t kind, cleave_wire_out_t *out, cleave_message_t *message) {
  worker_answer_t answer;
  cleave_status_t status = ask(kind, out, &answer, message);
  worker_answer_free(&answer);
  return status;
}

static cleave_status_t set_attribute(void *graph, uint32_t node, const cleave_attribute_view_t *attribute,
                                     cleave_message_t *message) {
  cleave_wire_out_t out = {0};
  (void)graph;
  cleave_edit_wire_attribute(&(cleave_edit_wire_t){.out = &out}, &node, &attribute);
  return ask_only(CLEAVE_FRAME_SET_ATTRIBUTE, &out, message);
}

/* A step that is numbers and nothing else. */
static cleave_status_t ask_numbers(uint32_t kind, const uint32_t *numbers, size_t count,
                                   cleave_message_t *message) {
  cleave_wire_out_t out = {0};
  for (size_t k = 0; k < count; k++) {
    cleave_wire_put_u32(&out, numbers[k]);
  }
  return ask_only(kind, &out, message);
}

static cleave_status_t set_input(void *graph, uint32_t node, uint32_t port, uint32_t value,
                                 cleave_message_t *message) {
  (void)graph;
  return ask_numbers(CLEAVE_FRAME_SET_INPUT, (uint32_t[]){node, port, value}, 3, message);
}

static cleave_status_t replace_uses(void *graph, uint32_t from, uint32_t to, cleave_message_t *message) {
  (void)graph;
  return ask_numbers(CLEAVE_FRAME_REPLACE_USES, (uint32_t[]){from, to}, 2, message);
}

static cleave_status_t remove_node(void *graph, uint32_t node, cleave_message_t *message) {
  (void)graph;
  return ask_numbers(CLEAVE_FRAME_REMOVE_NODE, &node, 1, message);
}

/* ---- the pass ---- */

cleave_status_t worker_pass(worker_t *worker, cleave_wire_in_t *in, cleave_message_t *message) {
  static const cleave_graph_editor_t words = {.size = sizeof words,
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
  const cleave_custom_pass_t *pass = worker_custom_pass(worker, cleave_wire_u32(in));
  const cleave_key_value_t *options = NULL;
  uint32_t option_count = 0;
  if (pass == NULL || pass->run == NULL || editing.is_open ||
      !worker_read_pairs(&worker->arena, in, &options, &option_count)) {
    return worker_fail_request(message);
  }
  editing = (editing_t){.worker = worker, .is_open = true, .answer = {.frame = {.fd = -1}}};
  cleave_status_t status = pass->run(pass->self, &words, options, option_count, message);
  drop_view();
  cleave_arena_deinit(&editing.arena);
  editing = (editing_t){.answer = {.frame = {.fd = -1}}};
  return status;
}
