// SPDX-License-Identifier: Apache-2.0
// A pass of an isolated library at work. What it asks of the editor comes as callbacks, which this process's
// own editor answers: every step is checked like that of a pass in this process. The library sees copies.
#include <stdio.h>

#include "backend/isolate/isolate_internal.h"
#include "backend/region/region_wire.h"

enum { MAX_OUTPUTS = 65535 };

typedef struct passing {
  cleave_worker_t *worker;
  const cleave_graph_editor_t *editor;
  cleave_arena_t arena; /* of the step at hand */
  uint32_t *constants;  /* ids that the view keeps */
  uint32_t constant_count;
} passing_t;

/* ---- the view ---- */

/* The library may look at a view until it has the next one. */
static cleave_status_t keep_constants(passing_t *passing) {
  uint32_t *before = passing->constants;
  uint32_t count = passing->constant_count;
  passing->constants = NULL;
  passing->constant_count = 0;
  cleave_status_t status =
      cleave_worker_constants_keep(passing->worker, &passing->constants, &passing->constant_count);
  cleave_worker_constants_release(passing->worker, before, count);
  cleave_free(before);
  return status;
}

static cleave_status_t put_view(passing_t *passing, cleave_wire_out_t *out, cleave_message_t *message) {
  const cleave_graph_editor_t *editor = passing->editor;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  const cleave_region_view_t *view = editor->view(editor->graph);
  if (view == NULL) {
    return CLEAVE_ERROR_INVALID_ARGUMENT;
  }
  cleave_wire_put_u32(out, view->value_count);
  cleave_wire_put_u32(out, view->node_count);
  for (uint32_t k = 0; k < view->value_count; k++) {
    cleave_wire_put_u32(out, editor->value_of(editor->graph, k));
  }
  for (uint32_t k = 0; k < view->node_count; k++) {
    cleave_wire_put_u32(out, editor->node_of(editor->graph, k));
  }
  cleave_worker_constants_begin(passing->worker);
  cleave_status_t status =
      cleave_region_write(view, cleave_worker_constants_share, passing->worker, out, &error);
  CLEAVE_TRY_OR(status, (void)snprintf(message->text, sizeof message->text, "%.255s", error.message));
  return keep_constants(passing);
}

/* ---- steps ---- */

static cleave_status_t fail_reading(cleave_wire_in_t *in) {
  in->failed = true;
  return CLEAVE_ERROR_FORMAT;
}

static cleave_status_t add_value(passing_t *passing, bool is_input, cleave_wire_in_t *in,
                                 cleave_wire_out_t *out, cleave_message_t *message) {
  const cleave_graph_editor_t *editor = passing->editor;
  const char *name = NULL;
  const cleave_tensor_view_t *tensor = NULL;
  uint32_t value = CLEAVE_INDEX_NONE;
  cleave_edit_wire_value(&(cleave_edit_wire_t){.in = in, .arena = &passing->arena}, &name, &tensor);
  if (!cleave_wire_is_done(in)) {
    return fail_reading(in);
  }
  CLEAVE_TRY(is_input ? editor->add_input(editor->graph, name, tensor, &value, message)
                      : editor->add_constant(editor->graph, name, tensor, &value, message));
  cleave_wire_put_u32(out, value);
  return CLEAVE_OK;
}

static cleave_status_t add_node(passing_t *passing, cleave_wire_in_t *in, cleave_wire_out_t *out,
                                cleave_message_t *message) {
  const cleave_graph_editor_t *editor = passing->editor;
  cleave_new_node_t node = {.size = sizeof node};
  cleave_edit_wire_node(&(cleave_edit_wire_t){.in = in, .arena = &passing->arena}, &node);
  if (!cleave_wire_is_done(in)) {
    return fail_reading(in);
  }
  uint32_t room = node.output_count > MAX_OUTPUTS ? 0 : node.output_count; /* the editor refuses more */
  uint32_t *values = cleave_arena_allocate(&passing->arena, room, sizeof *values);
  if (values == NULL) {
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  CLEAVE_TRY(editor->add_node(editor->graph, &node, values, message));
  cleave_wire_put(out, values, room * sizeof *values, sizeof *values);
  return CLEAVE_OK;
}

static cleave_status_t set_attribute(passing_t *passing, cleave_wire_in_t *in, cleave_message_t *message) {
  const cleave_graph_editor_t *editor = passing->editor;
  uint32_t node = 0;
  const cleave_attribute_view_t *attribute = NULL;
  cleave_edit_wire_attribute(&(cleave_edit_wire_t){.in = in, .arena = &passing->arena}, &node, &attribute);
  return cleave_wire_is_done(in) ? editor->set_attribute(editor->graph, node, attribute, message)
                                 : fail_reading(in);
}

/* SET_INPUT, REPLACE_USES and REMOVE_NODE are numbers and nothing else. */
static cleave_status_t do_numbers(const cleave_graph_editor_t *editor, uint32_t kind, cleave_wire_in_t *in,
                                  cleave_message_t *message) {
  uint32_t count = kind == CLEAVE_FRAME_SET_INPUT ? 3 : kind == CLEAVE_FRAME_REPLACE_USES ? 2 : 1;
  uint32_t n[3] = {0};
  for (uint32_t k = 0; k < count; k++) {
    n[k] = cleave_wire_u32(in);
  }
  return !cleave_wire_is_done(in) ? fail_reading(in)
         : count == 3             ? editor->set_input(editor->graph, n[0], n[1], n[2], message)
         : count == 2             ? editor->replace_uses(editor->graph, n[0], n[1], message)
                                  : editor->remove_node(editor->graph, n[0], message);
}

static cleave_status_t answer(void *context, uint32_t kind, cleave_wire_in_t *in, cleave_wire_out_t *out,
                              int *out_fd, cleave_message_t *message) {
  passing_t *passing = context;
  (void)out_fd;
  cleave_arena_reset(&passing->arena);
  switch (kind) {
    case CLEAVE_FRAME_VIEW: return put_view(passing, out, message);
    case CLEAVE_FRAME_ADD_INPUT: return add_value(passing, true, in, out, message);
    case CLEAVE_FRAME_ADD_CONSTANT: return add_value(passing, false, in, out, message);
    case CLEAVE_FRAME_ADD_NODE: return add_node(passing, in, out, message);
    case CLEAVE_FRAME_SET_ATTRIBUTE: return set_attribute(passing, in, message);
    case CLEAVE_FRAME_SET_INPUT:
    case CLEAVE_FRAME_REPLACE_USES:
    case CLEAVE_FRAME_REMOVE_NODE: return do_numbers(passing->editor, kind, in, message);
    default: return fail_reading(in);
  }
}

/* ---- the pass ---- */

static cleave_status_t ask(passing_t *passing, const cleave_isolated_pass_t *pass,
                           const cleave_key_value_t *options, uint32_t option_count,
                           cleave_message_t *message) {
  cleave_worker_t *worker = passing->worker;
  cleave_worker_call_t call = cleave_isolate_call(pass->isolate, CLEAVE_FRAME_PASS, pass->definition.name);
  cleave_wire_in_t reply;
  call.answer = answer;
  call.context = passing;
  call.most_bytes = CLEAVE_EDIT_LIMIT;
  CLEAVE_TRY(cleave_isolate_begin(worker, &pass->number, 1, message));
  cleave_wire_put_pairs(&worker->request, options, option_count);
  cleave_status_t status = cleave_worker_ask(worker, &call, &reply, message);
  cleave_worker_constants_release(worker, passing->constants, passing->constant_count);
  cleave_worker_end(worker);
  return status;
}

static cleave_status_t run(void *self, const cleave_graph_editor_t *editor, const cleave_key_value_t *options,
                           uint32_t option_count, cleave_message_t *message) {
  const cleave_isolated_pass_t *own = self;
  passing_t passing = {.worker = cleave_isolate_worker(own->isolate), .editor = editor};
  cleave_status_t status = ask(&passing, own, options, option_count, message);
  cleave_worker_release(passing.worker);
  cleave_arena_deinit(&passing.arena);
  cleave_free(passing.constants);
  return status;
}

void cleave_isolate_fill_pass(cleave_isolated_pass_t *pass, uint32_t has) {
  pass->definition.self = pass;
  pass->definition.run = has & CLEAVE_PASS_HAS_RUN ? run : NULL;
}
