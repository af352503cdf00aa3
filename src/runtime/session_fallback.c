// SPDX-License-Identifier: Apache-2.0
// `cpu` in the place of a library whose process is lost. Its inputs are whole, since the process had copies:
// the step at which it was lost, and all later ones, compute the same values from them, in this very run.
#include <stdio.h>

#include "backend/context.h"
#include "runtime/session_internal.h"

typedef struct cleave_step_fallback {
  cleave_program_t *program;
  void *workspace;
  cleave_tensor_view_t *inputs;  /* room for those that change from run to run; NULL: the step's are these */
  cleave_tensor_view_t *outputs; /* of the step; those that are added to lie in memory of their own */
} cleave_step_fallback_t;

bool cleave_session_is_lost(const cleave_session_t *session, uint32_t target) {
  bool falls_back = false;
  return cleave_registry_is_lost(session->targets.items[target].handle, &falls_back) && !falls_back;
}

bool cleave_session_falls_back(const cleave_session_t *session, uint32_t target) {
  bool falls_back = false;
  return cleave_registry_is_lost(session->targets.items[target].handle, &falls_back) && falls_back;
}

static void destroy(cleave_step_fallback_t *fallback, uint32_t output_count) {
  for (uint32_t k = 0; fallback->outputs != NULL && k < output_count; k++) {
    cleave_free((void *)(uintptr_t)fallback->outputs[k].data);
  }
  cleave_free(fallback->inputs);
  cleave_free(fallback->outputs);
  cleave_free(fallback->workspace);
  cleave_program_release(fallback->program);
  cleave_free(fallback);
}

void cleave_session_destroy_fallback(cleave_step_t *step) {
  if (step->fallback != NULL) {
    destroy(step->fallback, step->output_count);
    step->fallback = NULL;
  }
}

/* Constants are among the inputs of executors, and of no program of `cpu`. */
static uint32_t list_inputs(const cleave_session_t *session, const cleave_step_t *step,
                            cleave_tensor_view_t *inputs) {
  uint32_t count = 0;
  for (uint32_t k = 0; k < step->input_count; k++) {
    if (!step->program->is_executor ||
        session->slots.items[step->input_slots[k]].kind != CLEAVE_SLOT_CONSTANT) {
      if (inputs != NULL) {
        inputs[count] = step->inputs[k];
      }
      count++;
    }
  }
  return count;
}

/* The step's nodes as a region for `cpu`; fusions are of no use there. */
static cleave_status_t compile(cleave_session_t *session, const cleave_step_t *step,
                               cleave_program_t **out_program, cleave_error_t *error) {
  cleave_view_builder_t builder;
  cleave_arena_t arena = {0};
  cleave_view_t view;
  cleave_message_t message = {.text = ""};
  cleave_view_request_t wanted = {
      .name = step->name, .rule = "", .nodes = step->nodes, .node_count = step->node_count};
  cleave_view_builder_init(&builder, session->graph);
  cleave_status_t status = cleave_view_build(&builder, &wanted, &arena, &view, error);
  if (status == CLEAVE_OK && (view.region.input_count != list_inputs(session, step, NULL) ||
                              view.region.output_count != step->output_count)) {
    status = cleave_error_set(error, CLEAVE_ERROR_INTERNAL, "region '%s': cpu sees other inputs or outputs",
                              step->name);
  } else if (status == CLEAVE_OK) {
    cleave_program_request_t request = {.handle = session->cpu,
                                        .view = &view,
                                        .options = &session->targets.items[0].compile_options,
                                        .name = ""};
    status = cleave_program_compile(&request, out_program, &message);
    if (status != CLEAVE_OK) {
      char place[224];
      (void)snprintf(place, sizeof place, "region '%.128s' on cpu", step->name);
      status = cleave_registry_fail(error, status, place, &message);
    }
  }
  cleave_arena_deinit(&arena);
  cleave_view_builder_deinit(&builder);
  return status;
}

static cleave_status_t note(cleave_session_t *session, const cleave_step_t *step,
                            const cleave_message_t *reason, cleave_error_t *error) {
  char text[768];
  (void)snprintf(text, sizeof text, "region '%s': runs on cpu from run %llu on, not on %s: %.*s", step->name,
                 (unsigned long long)session->run_number, session->targets.items[step->target].label,
                 (int)sizeof reason->text - 1, reason->text);
  cleave_log(cleave_context_log(session->graph->context), CLEAVE_LOG_WARNING, "%s", text);
  return cleave_session_add_note(session, text, error);
}

/* Nobody but its library runs an operator of a library. */
static bool has_library_operator(const cleave_session_t *session, const cleave_step_t *step) {
  for (uint32_t k = 0; k < step->node_count; k++) {
    if ((cleave_node_op(session->graph, step->nodes[k])->flags & CLEAVE_OP_FROM_LIBRARY) != 0) {
      return true;
    }
  }
  return false;
}

static cleave_status_t make(cleave_session_t *session, cleave_step_t *step, const cleave_message_t *reason,
                            cleave_error_t *error) {
  if (has_library_operator(session, step)) {
    return cleave_session_fail_node(session->graph, step->nodes[0],
                                    session->targets.items[step->target].label, CLEAVE_ERROR_BACKEND, reason,
                                    error);
  }
  cleave_step_fallback_t *fallback = cleave_allocate_zeroed(1, sizeof *fallback);
  if (fallback == NULL) {
    return cleave_error_out_of_memory(error);
  }
  cleave_status_t status = compile(session, step, &fallback->program, error);
  if (status == CLEAVE_OK) {
    fallback->outputs = cleave_allocate_zeroed(step->output_count, sizeof *fallback->outputs);
    fallback->workspace = cleave_allocate_aligned(fallback->program->info->workspace_bytes);
    bool has_inputs = true;
    if (step->program->is_executor) {
      fallback->inputs = cleave_allocate_zeroed(step->input_count, sizeof *fallback->inputs);
      has_inputs = fallback->inputs != NULL;
    }
    status = fallback->outputs == NULL || fallback->workspace == NULL || !has_inputs
                 ? cleave_error_out_of_memory(error)
                 : note(session, step, reason, error);
  }
  if (status != CLEAVE_OK) {
    destroy(fallback, step->output_count);
    return status;
  }
  step->fallback = fallback;
  return CLEAVE_OK;
}

/* Where the step was to add to an output, `cpu` writes elsewhere first. */
static cleave_status_t divert(cleave_session_t *session, const cleave_step_t *step, uint32_t output,
                              cleave_tensor_view_t *view, cleave_error_t *error) {
  cleave_tensor_view_t *own = &step->fallback->outputs[output];
  size_t bytes = session->slots.items[step->output_slots[output]].bytes;
  if (own->data == NULL) {
    own->data = cleave_allocate_aligned(bytes);
  }
  view->data = own->data;
  return own->data == NULL ? cleave_error_out_of_memory(error) : CLEAVE_OK;
}

/* Calls `cpu` with the outputs given, or with others where something is to be added. */
static cleave_status_t call(cleave_session_t *session, cleave_step_t *step, cleave_run_args_t *args,
                            cleave_error_t *error) {
  cleave_message_t message = {.text = ""};
  cleave_status_t status = cleave_program_run(step->fallback->program, args, &message);
  if (status == CLEAVE_OK) {
    return CLEAVE_OK;
  }
  char place[224];
  message.text[sizeof message.text - 1] = '\0';
  (void)snprintf(place, sizeof place, "region '%.128s' on %s", step->name, session->targets.items[0].label);
  return cleave_registry_fail(error, status, place, &message);
}

static cleave_status_t call_adding(cleave_session_t *session, cleave_step_t *step, cleave_run_args_t *args,
                                   cleave_error_t *error) {
  cleave_tensor_view_t *outputs = cleave_allocate(step->output_count, sizeof *outputs);
  if (outputs == NULL) {
    return cleave_error_out_of_memory(error);
  }
  cleave_status_t status = CLEAVE_OK;
  for (uint32_t k = 0; k < step->output_count; k++) {
    outputs[k] = args->outputs[k];
    if (status == CLEAVE_OK && step->requests[k] != CLEAVE_REQUEST_WRITE) {
      status = divert(session, step, k, &outputs[k], error);
    }
  }
  args->outputs = outputs;
  if (status == CLEAVE_OK) {
    status = call(session, step, args, error);
  }
  for (uint32_t k = 0; k < step->output_count && status == CLEAVE_OK; k++) {
    if (step->requests[k] == CLEAVE_REQUEST_ADD) {
      cleave_session_add_values(outputs[k].dtype, (void *)(uintptr_t)step->outputs[k].data, outputs[k].data,
                                session->slots.items[step->output_slots[k]].bytes);
    }
  }
  cleave_free(outputs);
  return status;
}

cleave_status_t cleave_session_run_fallback(cleave_session_t *session, cleave_step_t *step,
                                            const cleave_message_t *reason, cleave_error_t *error) {
  if (step->fallback == NULL) {
    CLEAVE_TRY(make(session, step, reason, error));
  }
  step->part_count = 0;
  if (step->fallback->inputs != NULL) {
    (void)list_inputs(session, step, step->fallback->inputs);
  }
  cleave_run_args_t args = {.size = sizeof args,
                            .inputs = step->fallback->inputs != NULL ? step->fallback->inputs : step->inputs,
                            .outputs = step->outputs,
                            .workspace = step->fallback->workspace};
  return step->requests != NULL ? call_adding(session, step, &args, error)
                                : call(session, step, &args, error);
}
