// SPDX-License-Identifier: Apache-2.0
// Programs, which regions that are equal share, and the steps that run them.
#include <stdio.h>
#include <string.h>

#include "backend/registry/extensions.h"
#include "runtime/build/session_build.h"

cleave_status_t cleave_session_add_note(cleave_session_t *session, const char *note, cleave_error_t *error) {
  const char *copy = cleave_arena_copy_text(&session->arena, note, strlen(note));
  CLEAVE_TRY_MEMORY(copy, error);
  CLEAVE_ARRAY_PUSH(&session->notes, copy, error);
  return CLEAVE_OK;
}

cleave_status_t cleave_session_fail_node(const cleave_graph_t *graph, cleave_node_t node, const char *backend,
                                         cleave_status_t status, const cleave_message_t *message,
                                         cleave_error_t *error) {
  char label[128];
  const char *op = cleave_node_op(graph, node)->name;
  const char *text = message->text;
  size_t length = strlen(op);
  if (strncmp(text, op, length) == 0 && text[length] == ':' && text[length + 1] == ' ') {
    text += length + 2;
  }
  (void)cleave_node_label(graph, node, label, sizeof label);
  if (status == CLEAVE_ERROR_UNSUPPORTED) {
    return cleave_error_set(error, status, "operator '%s' (node '%s') is not supported by %s: %s", op, label,
                            backend, text[0] == '\0' ? "no reason given" : text);
  }
  char place[288];
  bool is_cpu = strcmp(backend, "cpu") == 0;
  (void)snprintf(place, sizeof place, "operator '%.64s' (node '%s')%s%.64s", op, label, is_cpu ? "" : " on ",
                 is_cpu ? "" : backend);
  cleave_message_t rest;
  (void)snprintf(rest.text, sizeof rest.text, "%s", text);
  return cleave_registry_fail(error, status, place, &rest);
}

/* ---- programs ---- */

/* Has the region values that cannot be copied to a device? Elements of text are pointers. */
static bool has_text(const cleave_region_view_t *region) {
  for (uint32_t k = 0; k < region->value_count; k++) {
    if (region->values[k].tensor.dtype == CLEAVE_DTYPE_STRING) {
      return true;
    }
  }
  return false;
}

cleave_status_t cleave_build_get_program(cleave_build_t *build, const cleave_build_program_t *request,
                                         cleave_program_t **out_program, cleave_message_t *message,
                                         cleave_error_t *error) {
  cleave_session_t *session = build->session;
  const cleave_target_t *target = &session->targets.items[request->target];
  cleave_compile_options_t options = target->compile_options;
  if (build->unit != NULL && build->unit->is_beside) {
    int32_t share = options.threads / (int32_t)session->workers;
    options.threads = share > 1 ? share : 1;
  }
  options.threads = request->is_single ? 1 : options.threads;
  cleave_program_request_t wanted = {
      .handle = target->handle,
      .view = request->view,
      .options = &options,
      .name = request->node,
      .is_executor = request->is_executor,
      .is_private =
          cleave_extensions_keep_state(build->graph, request->view->nodes, request->view->region.node_count),
      .blobs = session->blobs};
  if (target->place != CLEAVE_PLACE_HOST && has_text(&request->view->region)) {
    (void)snprintf(message->text, sizeof message->text, "tensors of strings are not copied to a device");
    return CLEAVE_ERROR_UNSUPPORTED;
  }
  for (size_t k = 0; request->node[0] == '\0' && !wanted.is_private && k < session->programs.count; k++) {
    if (cleave_program_fits(session->programs.items[k], &wanted)) {
      *out_program = session->programs.items[k];
      return CLEAVE_OK;
    }
  }
  CLEAVE_TRY(cleave_array_reserve(&session->programs, 1, error));
  bool is_reused = false;
  cleave_status_t status = session->cache != NULL ? cleave_program_cache_get(session->cache, &wanted,
                                                                             out_program, &is_reused, message)
                                                  : cleave_program_compile(&wanted, out_program, message);
  CLEAVE_TRY(status);
  session->reused_count += is_reused ? 1 : 0;
  session->loaded_count += !is_reused && (*out_program)->is_loaded ? 1 : 0;
  cleave_array_push_reserved(&session->programs, *out_program);
  return CLEAVE_OK;
}

/* ---- steps ---- */

cleave_status_t cleave_build_add_step(cleave_build_t *build, const cleave_view_t *view, cleave_step_t step,
                                      cleave_error_t *error) {
  cleave_session_t *session = build->session;
  const cleave_region_view_t *region = &view->region;
  const cleave_target_t *target = &session->targets.items[step.target];
  uint32_t place = step.kind == CLEAVE_STEP_DYNAMIC ? CLEAVE_PLACE_HOST : target->place;
  uint32_t *input_slots = cleave_arena_allocate(&session->arena, region->input_count, sizeof *input_slots);
  uint32_t *output_slots = cleave_arena_allocate(&session->arena, region->output_count, sizeof *output_slots);
  step.nodes = cleave_arena_copy(&session->arena, view->nodes, region->node_count * sizeof *view->nodes);
  step.name = cleave_arena_copy_text(&session->arena, region->name, strlen(region->name));
  CLEAVE_TRY_MEMORY(input_slots != NULL && output_slots != NULL && step.nodes != NULL && step.name != NULL,
                    error);
  step.lane = build->unit == NULL ? 0 : build->unit->worker;
  step.backend = target->handle->backend->name;
  step.node_count = region->node_count;
  step.input_count = region->input_count;
  step.output_count = region->output_count;
  step.input_slots = input_slots;
  step.output_slots = output_slots;
  for (uint32_t k = 0; k < region->input_count; k++) {
    CLEAVE_TRY(cleave_build_input_slot(build, view->values[region->inputs[k]], &input_slots[k], error));
  }
  for (uint32_t k = 0; k < region->output_count; k++) {
    cleave_value_t value = view->values[region->outputs[k]];
    bool is_known = cleave_build_is_known(build->graph, value);
    CLEAVE_TRY(cleave_build_add_slot(build, value, is_known ? CLEAVE_SLOT_BLOCK : CLEAVE_SLOT_OWNED, place,
                                     &output_slots[k], error));
  }
  CLEAVE_ARRAY_PUSH(&session->steps, step, error);
  return CLEAVE_OK;
}
