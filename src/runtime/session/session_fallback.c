// SPDX-License-Identifier: Apache-2.0
// `cpu` in the place of a backend that fails. Its inputs are whole, since a process of its own had copies,
// and programs in this one do not write over them if a session may fall back: the step that failed, and
// all later runs of it, compute the same values from them. What lies on a device is copied to the host and
// back.
#include <stdio.h>

#include "backend/registry/context.h"
#include "ops/custom.h"
#include "runtime/build/session_internal.h"

typedef struct cleave_step_fallback {
  cleave_program_t *program;
  void *workspace;
  cleave_tensor_view_t *inputs;  /* as `cpu` reads them; of the step's first, those that are not constants */
  cleave_tensor_view_t *outputs; /* as `cpu` writes them */
  void **input_memory;           /* of those on a device: on the host; NULL: not yet, or not needed */
  void **output_memory;          /* of those on a device, and of those that are added to */
} cleave_step_fallback_t;

bool cleave_session_falls_back(const cleave_session_t *session, uint32_t target) {
  bool falls_back = false;
  bool is_lost = cleave_registry_is_lost(session->targets.items[target].handle, &falls_back);
  return target != 0 && (session->fallback || (is_lost && falls_back));
}

static void free_all(void **memory, uint32_t count) {
  for (uint32_t k = 0; memory != NULL && k < count; k++) {
    cleave_free(memory[k]);
  }
  cleave_free((void *)memory);
}

static void destroy(cleave_step_fallback_t *fallback, const cleave_step_t *step) {
  free_all(fallback->input_memory, step->input_count);
  free_all(fallback->output_memory, step->output_count);
  cleave_free(fallback->inputs);
  cleave_free(fallback->outputs);
  cleave_free(fallback->workspace);
  cleave_program_release(fallback->program);
  cleave_free(fallback);
}

void cleave_session_destroy_fallback(cleave_step_t *step) {
  if (step->fallback != NULL) {
    destroy(step->fallback, step);
    step->fallback = NULL;
  }
}

/* Constants are among the inputs of executors, and of no program of `cpu`. */
static bool is_read(const cleave_session_t *session, const cleave_step_t *step, uint32_t input) {
  return !step->program->is_executor ||
         session->slots.items[step->input_slots[input]].kind != CLEAVE_SLOT_CONSTANT;
}

static uint32_t count_inputs(const cleave_session_t *session, const cleave_step_t *step) {
  uint32_t count = 0;
  for (uint32_t k = 0; k < step->input_count; k++) {
    count += is_read(session, step, k) ? 1 : 0;
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
  if (status == CLEAVE_OK && (view.region.input_count != count_inputs(session, step) ||
                              view.region.output_count != step->output_count)) {
    status = cleave_error_set(error, CLEAVE_ERROR_INTERNAL, "region '%s': cpu found other inputs or outputs",
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
                 (int)sizeof reason->text - 1, reason->text[0] == '\0' ? "no reason given" : reason->text);
  cleave_log(cleave_context_log(session->graph->context), CLEAVE_LOG_WARNING, "%s", text);
  return cleave_session_add_note(session, text, error);
}

/* Nobody but its library runs an operator of a library: the first of them, or NONE. */
static cleave_node_t find_library_operator(const cleave_session_t *session, const cleave_step_t *step) {
  for (uint32_t k = 0; k < step->node_count; k++) {
    if ((cleave_node_op(session->graph, step->nodes[k])->flags & CLEAVE_OP_FROM_LIBRARY) != 0) {
      return step->nodes[k];
    }
  }
  return CLEAVE_NODE_NONE;
}

static cleave_status_t fail_operator(const cleave_session_t *session, const cleave_step_t *step,
                                     cleave_node_t node, const cleave_message_t *reason,
                                     cleave_error_t *error) {
  char label[128];
  const cleave_op_t *op = cleave_node_op(session->graph, node);
  cleave_message_t message = *reason;
  cleave_error_t failed = CLEAVE_ERROR_INIT;
  cleave_status_t status = cleave_session_fail_step(session, step, CLEAVE_ERROR_BACKEND, &message, &failed);
  return cleave_error_set(
      error, status, "%.480s; cpu cannot take over from operator '%s.%s' (node '%s') of library '%s'",
      failed.message, op->domain, op->name, cleave_node_label(session->graph, node, label, sizeof label),
      cleave_custom_op_library(op));
}

/* Views, and places for memory that is made when it is needed. */
static cleave_status_t allocate(cleave_step_fallback_t *fallback, const cleave_step_t *step,
                                cleave_error_t *error) {
  fallback->inputs = cleave_allocate_zeroed(step->input_count, sizeof *fallback->inputs);
  fallback->outputs = cleave_allocate_zeroed(step->output_count, sizeof *fallback->outputs);
  fallback->input_memory = cleave_allocate_zeroed(step->input_count, sizeof *fallback->input_memory);
  fallback->output_memory = cleave_allocate_zeroed(step->output_count, sizeof *fallback->output_memory);
  fallback->workspace = cleave_allocate_aligned(fallback->program->info->workspace_bytes);
  bool is_complete = fallback->inputs != NULL && fallback->outputs != NULL &&
                     fallback->input_memory != NULL && fallback->output_memory != NULL &&
                     fallback->workspace != NULL;
  return is_complete ? CLEAVE_OK : cleave_error_out_of_memory(error);
}

cleave_status_t cleave_session_make_fallback(cleave_session_t *session, cleave_step_t *step,
                                             const cleave_message_t *reason, cleave_error_t *error) {
  cleave_node_t node = find_library_operator(session, step);
  if (cleave_node_exists(node)) {
    return fail_operator(session, step, node, reason, error);
  }
  cleave_step_fallback_t *fallback = cleave_allocate_zeroed(1, sizeof *fallback);
  CLEAVE_TRY_MEMORY(fallback, error);
  cleave_status_t status = compile(session, step, &fallback->program, error);
  CLEAVE_THEN(status, allocate(fallback, step, error));
  CLEAVE_THEN(status, note(session, step, reason, error));
  CLEAVE_TRY_OR(status, destroy(fallback, step));
  step->fallback = fallback;
  session->fallback_count++;
  return CLEAVE_OK;
}

/* Memory of the host in the place of `view`'s, made once. */
static cleave_status_t move_to_host(cleave_tensor_view_t *view, void **memory, size_t bytes,
                                    cleave_error_t *error) {
  if (*memory == NULL) {
    *memory = cleave_allocate_aligned(bytes);
  }
  view->data = *memory;
  view->memory = CLEAVE_MEMORY_HOST;
  return *memory == NULL ? cleave_error_out_of_memory(error) : CLEAVE_OK;
}

static cleave_status_t take_inputs(cleave_session_t *session, const cleave_step_t *step,
                                   cleave_error_t *error) {
  cleave_step_fallback_t *fallback = step->fallback;
  uint32_t count = 0;
  for (uint32_t k = 0; k < step->input_count; k++) {
    if (!is_read(session, step, k)) {
      continue;
    }
    cleave_tensor_view_t *view = &fallback->inputs[count++];
    size_t bytes = session->slots.items[step->input_slots[k]].bytes;
    *view = step->inputs[k];
    if (view->memory != CLEAVE_MEMORY_HOST) {
      CLEAVE_TRY(move_to_host(view, &fallback->input_memory[k], bytes, error));
      CLEAVE_TRY_OR(cleave_device_copy(session->targets.items[step->target].device, false, view,
                                       &step->inputs[k], bytes, NULL, error),
                    session->broken = step->target);
    }
  }
  return CLEAVE_OK;
}

/* `cpu` writes to a buffer of its own first, unless the step overwrites an output in host memory. */
static cleave_status_t place_outputs(const cleave_session_t *session, const cleave_step_t *step,
                                     cleave_error_t *error) {
  cleave_step_fallback_t *fallback = step->fallback;
  for (uint32_t k = 0; k < step->output_count; k++) {
    bool is_written = step->requests == NULL || step->requests[k] == CLEAVE_REQUEST_WRITE;
    fallback->outputs[k] = step->outputs[k];
    if (!is_written || step->outputs[k].memory != CLEAVE_MEMORY_HOST) {
      CLEAVE_TRY(move_to_host(&fallback->outputs[k], &fallback->output_memory[k],
                              session->slots.items[step->output_slots[k]].bytes, error));
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t hand_out_outputs(cleave_session_t *session, const cleave_step_t *step,
                                        cleave_error_t *error) {
  for (uint32_t k = 0; k < step->output_count; k++) {
    const cleave_tensor_view_t *found = &step->fallback->outputs[k];
    size_t bytes = session->slots.items[step->output_slots[k]].bytes;
    if (step->outputs[k].memory != CLEAVE_MEMORY_HOST) {
      CLEAVE_TRY_OR(cleave_device_copy(session->targets.items[step->target].device, true, &step->outputs[k],
                                       found, bytes, NULL, error),
                    session->broken = step->target);
    } else if (step->requests != NULL && step->requests[k] == CLEAVE_REQUEST_ADD) {
      cleave_session_add_values(found->dtype, (void *)(uintptr_t)step->outputs[k].data, found->data, bytes);
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t call(cleave_session_t *session, cleave_step_t *step, cleave_error_t *error) {
  cleave_message_t message = {.text = ""};
  cleave_run_args_t args = {.size = sizeof args,
                            .inputs = step->fallback->inputs,
                            .outputs = step->fallback->outputs,
                            .workspace = step->fallback->workspace};
  cleave_status_t status = cleave_program_run(step->fallback->program, &args, &message);
  if (status == CLEAVE_OK) {
    return CLEAVE_OK;
  }
  char place[224];
  message.text[sizeof message.text - 1] = '\0';
  (void)snprintf(place, sizeof place, "region '%.128s' on %s", step->name, session->targets.items[0].label);
  return cleave_registry_fail(error, status, place, &message);
}

cleave_status_t cleave_session_run_fallback(cleave_session_t *session, cleave_step_t *step,
                                            const cleave_message_t *reason, cleave_error_t *error) {
  if (step->fallback == NULL) {
    CLEAVE_TRY(cleave_session_make_fallback(session, step, reason, error));
    if (session->targets.items[step->target].stream != NULL) { /* one that failed is not used again */
      CLEAVE_TRY(cleave_session_renew_streams(session, error));
    }
  }
  step->part_count = 0;
  CLEAVE_TRY(take_inputs(session, step, error));
  CLEAVE_TRY(place_outputs(session, step, error));
  CLEAVE_TRY(call(session, step, error));
  return hand_out_outputs(session, step, error);
}
