// SPDX-License-Identifier: Apache-2.0
// Creating, running and reading sessions. A run walks the steps and passes each the arguments that were made
// when the session was: no allocation, no lookup.
#include "runtime/session.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/threads.h"
#include "runtime/bind.h"
#include "runtime/blob_store.h"
#include "runtime/session_internal.h"

enum { MOST_THREADS = 1024 };

/* ---- creation ---- */

/* Nodes of fusions stay, so that fusions stay whole. NULL where there are none. */
static cleave_status_t find_fused_nodes(const cleave_graph_t *graph, const cleave_plan_t *plan,
                                        bool **out_keep, cleave_error_t *error) {
  *out_keep = NULL;
  if (plan == NULL || plan->fusion_count == 0) {
    return CLEAVE_OK;
  }
  bool *keep = cleave_allocate_zeroed(cleave_graph_node_bound(graph), sizeof *keep);
  if (keep == NULL) {
    return cleave_error_out_of_memory(error);
  }
  for (uint32_t k = 0; k < plan->fusion_count; k++) {
    for (uint32_t n = 0; n < plan->fusions[k].node_count; n++) {
      keep[plan->fusions[k].nodes[n].index] = true;
    }
  }
  *out_keep = keep;
  return CLEAVE_OK;
}

static cleave_status_t set_options(cleave_session_t *session, const cleave_session_options_t *options,
                                   cleave_error_t *error) {
  int32_t threads = options == NULL ? 0 : options->threads;
  if (threads < 0 || threads > MOST_THREADS) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "%d threads, expected 1 to %d, or 0 for all", (int)threads, MOST_THREADS);
  }
  /* Callers may know an older and shorter struct. */
  size_t known = options == NULL ? 0 : options->size;
  session->profile = options != NULL && options->profile;
  if (known >= offsetof(cleave_session_options_t, programs) + sizeof options->programs &&
      options->programs != NULL) {
    session->cache = cleave_program_cache_retain(options->programs);
  }
  if (known >= offsetof(cleave_session_options_t, blob_limit) + sizeof options->blob_limit &&
      options->blob_folder != NULL) {
    CLEAVE_TRY(cleave_blob_store_open(options->blob_folder, options->blob_limit, &session->blobs, error));
  }
  session->strict =
      known >= offsetof(cleave_session_options_t, strict) + sizeof options->strict && options->strict;
  session->compile_options =
      (cleave_compile_options_t){.size = sizeof session->compile_options,
                                 .threads = threads == 0 ? cleave_threads_available() : threads,
                                 .profile = session->profile};
  return CLEAVE_OK;
}

/* Binds the graph of the plan. Inputs that rules added to the model's may be left out where they are fixed.
 */
static cleave_status_t bind_graph(cleave_session_t *session, const cleave_graph_t *graph,
                                  const cleave_plan_t *plan, const cleave_tensor_view_t *const *inputs,
                                  size_t input_count, cleave_error_t *error) {
  bool *keep = NULL;
  const cleave_tensor_view_t **padded = NULL;
  cleave_status_t status = CLEAVE_OK;
  CLEAVE_TRY_CLEANUP(find_fused_nodes(graph, plan, &keep, error));
  if (plan != NULL && inputs != NULL && input_count == plan->source->inputs.count &&
      input_count < graph->inputs.count) {
    padded = cleave_allocate_zeroed(graph->inputs.count, sizeof *padded);
    if (padded == NULL) {
      CLEAVE_TRY_CLEANUP(cleave_error_out_of_memory(error));
    }
    for (size_t k = 0; k < input_count; k++) {
      padded[k] = inputs[k];
    }
    inputs = padded;
    input_count = graph->inputs.count;
  }
  status = cleave_graph_bind(graph, inputs, input_count, keep, &session->bound, error);
cleanup:
  cleave_free((void *)padded);
  cleave_free(keep);
  return status;
}

static cleave_status_t create(cleave_session_t *session, const cleave_graph_t *graph,
                              const cleave_plan_t *plan, const cleave_tensor_view_t *const *inputs,
                              size_t input_count, const cleave_session_options_t *options,
                              cleave_error_t *error) {
  if (plan != NULL && plan->source != graph) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "the plan is of another model");
  }
  graph = plan != NULL ? plan->graph : graph;
  CLEAVE_TRY(set_options(session, options, error));
  CLEAVE_TRY(cleave_registry_find("cpu", &session->cpu, error));
  CLEAVE_TRY(bind_graph(session, graph, plan, inputs, input_count, error));
  session->graph = session->bound != NULL ? session->bound : graph;
  session->plan = plan;
  CLEAVE_TRY(cleave_session_build(session, error));
  return cleave_session_plan_memory(session, error);
}

cleave_status_t cleave_session_create_planned(const cleave_graph_t *graph, const cleave_plan_t *plan,
                                              const cleave_tensor_view_t *const *inputs, size_t input_count,
                                              const cleave_session_options_t *options,
                                              cleave_session_t **out_session, cleave_error_t *error) {
  *out_session = NULL;
  cleave_session_t *session = cleave_allocate_zeroed(1, sizeof *session);
  if (session == NULL) {
    return cleave_error_out_of_memory(error);
  }
  cleave_status_t status = create(session, graph, plan, inputs, input_count, options, error);
  if (status != CLEAVE_OK) {
    cleave_session_destroy(session);
    return status;
  }
  *out_session = session;
  return CLEAVE_OK;
}

void cleave_session_destroy(cleave_session_t *session) {
  if (session == NULL) {
    return;
  }
  for (size_t s = 0; s < session->steps.count; s++) {
    cleave_step_t *step = &session->steps.items[s];
    for (uint32_t k = 0; step->programs != NULL && k < CLEAVE_DYNAMIC_PROGRAMS; k++) {
      cleave_program_release(step->programs[k].program);
    }
    cleave_free(step->parts);
  }
  for (size_t k = 0; k < session->programs.count; k++) {
    cleave_program_release(session->programs.items[k]);
  }
  for (size_t k = 0; k < session->slots.count; k++) {
    if (session->slots.items[k].kind == CLEAVE_SLOT_OWNED) {
      cleave_free((void *)(uintptr_t)session->slots.items[k].view.data);
    }
  }
  cleave_array_free(&session->slots);
  cleave_array_free(&session->steps);
  cleave_array_free(&session->blocks);
  cleave_array_free(&session->programs);
  cleave_array_free(&session->patches);
  cleave_array_free(&session->notes);
  cleave_free(session->memory);
  cleave_free(session->output_memory);
  cleave_free(session->dynamic_workspace);
  cleave_arena_deinit(&session->dynamic_arena);
  cleave_arena_deinit(&session->arena);
  cleave_graph_destroy(session->bound);
  cleave_program_cache_release(session->cache);
  cleave_blob_store_release(session->blobs);
  cleave_model_release(session->model);
  cleave_free(session);
}

/* ---- running ---- */

static bool same_shape(const cleave_tensor_view_t *a, const cleave_tensor_view_t *b) {
  return a->rank == b->rank &&
         (a->rank <= 0 || memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0);
}

static cleave_status_t fail_input_type(const cleave_session_t *session, uint32_t index,
                                       const cleave_tensor_view_t *expected,
                                       const cleave_tensor_view_t *found, cleave_error_t *error) {
  cleave_text_t text = {0};
  cleave_text_add(&text, cleave_dtype_name(expected->dtype));
  cleave_shape_print(NULL, expected->rank, expected->dims, &text);
  cleave_text_format(&text, ", found %s", cleave_dtype_name(found->dtype));
  if (found->rank >= 0 && found->rank <= CLEAVE_MAX_RANK) {
    cleave_shape_print(NULL, found->rank, found->dims, &text);
  }
  cleave_status_t status =
      cleave_error_set(error, CLEAVE_ERROR_SHAPE, "input '%s' (number %u): expected %s",
                       cleave_value_name(session->graph, session->graph->inputs.items[index]),
                       (unsigned)index, cleave_text_get(&text));
  cleave_text_deinit(&text);
  return status;
}

cleave_status_t cleave_session_set_input(cleave_session_t *session, uint32_t index,
                                         const cleave_tensor_view_t *tensor, cleave_error_t *error) {
  if (index >= session->input_count) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "input %u: the model has %u inputs",
                            (unsigned)index, (unsigned)session->input_count);
  }
  uint32_t slot_index = session->input_slots[index];
  cleave_slot_t *slot = &session->slots.items[slot_index];
  if (tensor->dtype != slot->view.dtype || !same_shape(tensor, &slot->view)) {
    return fail_input_type(session, index, &slot->view, tensor, error);
  }
  if (tensor->data == NULL && slot->bytes > 0) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "input %u has no data", (unsigned)index);
  }
  slot->view.data = tensor->data != NULL ? tensor->data : (const void *)session->memory;
  slot->is_set = true;
  cleave_session_patch(session, slot_index);
  return CLEAVE_OK;
}

static cleave_status_t fail_step(const cleave_session_t *session, const cleave_step_t *step,
                                 cleave_status_t status, const cleave_message_t *message,
                                 cleave_error_t *error) {
  if (cleave_node_exists(step->node)) {
    return cleave_session_fail_node(session->graph, step->node, status, message, error);
  }
  char place[224];
  (void)snprintf(place, sizeof place, "region '%.128s' on %.64s", step->name, step->backend);
  return cleave_registry_fail(error, status, place, message);
}

/* Copies what the backend says about its steps: the same program may run again for another step. */
static cleave_status_t keep_parts(cleave_step_t *step, const cleave_program_t *program,
                                  cleave_error_t *error) {
  const cleave_backend_t *backend = program->handle->backend;
  const cleave_step_time_t *parts = NULL;
  uint32_t count = backend->profile == NULL ? 0 : backend->profile(program->program, &parts);
  step->part_count = 0;
  if (count > step->part_capacity) {
    cleave_step_time_t *grown = cleave_reallocate(step->parts, count, sizeof *grown);
    if (grown == NULL) {
      return cleave_error_out_of_memory(error);
    }
    step->parts = grown;
    step->part_capacity = count;
  }
  if (count > 0) {
    memcpy(step->parts, parts, count * sizeof *parts);
  }
  step->part_count = count;
  return CLEAVE_OK;
}

static cleave_status_t run_step(cleave_session_t *session, cleave_step_t *step, cleave_error_t *error) {
  if (step->program == NULL) {
    return cleave_session_run_dynamic(session, step, error);
  }
  cleave_message_t message;
  message.text[0] = '\0';
  cleave_program_t *program = step->program;
  cleave_program_lock(program);
  cleave_status_t status = program->handle->backend->run(program->program, &step->args, &message);
  cleave_status_t kept =
      status == CLEAVE_OK && session->profile ? keep_parts(step, program, error) : CLEAVE_OK;
  cleave_program_unlock(program);
  if (status != CLEAVE_OK) {
    message.text[sizeof message.text - 1] = '\0';
    return fail_step(session, step, status, &message, error);
  }
  return kept;
}

static cleave_status_t check_inputs(const cleave_session_t *session, cleave_error_t *error) {
  for (uint32_t k = 0; k < session->input_count; k++) {
    if (!session->slots.items[session->input_slots[k]].is_set) {
      return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "input '%s' (number %u) is not set",
                              cleave_value_name(session->graph, session->graph->inputs.items[k]),
                              (unsigned)k);
    }
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_session_run(cleave_session_t *session, cleave_error_t *error) {
  if (session->run_number == 0) {
    CLEAVE_TRY(check_inputs(session, error));
  }
  session->has_run = false;
  session->run_number++;
  for (size_t s = 0; s < session->steps.count; s++) {
    cleave_step_t *step = &session->steps.items[s];
    if (!session->profile) {
      CLEAVE_TRY(run_step(session, step, error));
      continue;
    }
    step->start_ns = cleave_clock_now();
    CLEAVE_TRY(run_step(session, step, error));
    step->end_ns = cleave_clock_now();
  }
  session->has_run = true;
  return CLEAVE_OK;
}

/* ---- reading ---- */

cleave_status_t cleave_session_output(const cleave_session_t *session, uint32_t index,
                                      cleave_tensor_view_t *out_tensor, cleave_error_t *error) {
  if (index >= session->output_count) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "output %u: the model has %u outputs",
                            (unsigned)index, (unsigned)session->output_count);
  }
  if (!session->has_run) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "output %u: no run has succeeded yet",
                            (unsigned)index);
  }
  *out_tensor = session->slots.items[session->output_slots[index]].view;
  return CLEAVE_OK;
}

const cleave_graph_t *cleave_session_graph(const cleave_session_t *session) {
  return session->graph;
}

cleave_session_memory_t cleave_session_memory(const cleave_session_t *session) {
  return session->statistics;
}

uint32_t cleave_session_step_count(const cleave_session_t *session) {
  return (uint32_t)session->steps.count;
}

cleave_session_step_t cleave_session_step(const cleave_session_t *session, uint32_t index) {
  const cleave_step_t *step = &session->steps.items[index];
  return (cleave_session_step_t){.name = step->name,
                                 .op = step->op,
                                 .backend = step->backend,
                                 .region = step->region,
                                 .node = step->node,
                                 .is_dynamic = step->program == NULL,
                                 .start_ns = step->start_ns,
                                 .end_ns = step->end_ns,
                                 .part_count = step->part_count,
                                 .parts = step->parts,
                                 .nodes = step->nodes,
                                 .node_count = step->node_count};
}

uint32_t cleave_session_note_count(const cleave_session_t *session) {
  return (uint32_t)session->notes.count;
}

const char *cleave_session_note(const cleave_session_t *session, uint32_t index) {
  return session->notes.items[index];
}

uint32_t cleave_session_reused_count(const cleave_session_t *session) {
  return session->reused_count;
}

uint32_t cleave_session_loaded_count(const cleave_session_t *session) {
  return session->loaded_count;
}

uint32_t cleave_session_program_count(const cleave_session_t *session) {
  return (uint32_t)session->programs.count + session->dynamic_program_count;
}
