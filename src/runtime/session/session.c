// SPDX-License-Identifier: Apache-2.0
// Creating and reading sessions.
#include "runtime/session/session.h"

#include <string.h>

#include "backend/program/blob_store.h"
#include "backend/registry/context.h"
#include "base/sized.h"
#include "runtime/build/session_internal.h"
#include "runtime/model/bind.h"
#include "runtime/model/model_internal.h"
#include "system/contention.h"
#include "system/threads.h"

enum { MAX_THREADS = 1024, MAX_WORKERS = 64 };

/* Begins work whose contention is measured for at most `threads` threads. */
static void enter(const cleave_session_t *session, int32_t threads) {
  if (session->compile_options.threads > 1) {
    cleave_contention_enter(threads);
  }
}

void cleave_session_enter(const cleave_session_t *session) {
  enter(session, session->compile_options.threads);
}

void cleave_session_leave(const cleave_session_t *session) {
  if (session->compile_options.threads > 1) {
    cleave_contention_leave();
  }
}

/* ---- creation ---- */

/* Nodes of fusions stay, so that fusions stay whole. NULL if there are none. */
static cleave_status_t find_fused_nodes(const cleave_graph_t *graph, const cleave_plan_t *plan,
                                        bool **out_keep, cleave_error_t *error) {
  *out_keep = NULL;
  uint32_t bound = cleave_graph_node_bound(graph);
  bool *keep = cleave_allocate_zeroed((size_t)bound + 1, sizeof *keep);
  CLEAVE_TRY_MEMORY(keep, error);
  for (uint32_t k = 0; plan != NULL && k < plan->fusion_count; k++) {
    for (uint32_t n = 0; n < plan->fusions[k].node_count; n++) {
      keep[plan->fusions[k].nodes[n].index] = true;
    }
  }
  /* Without fusions, only weights that wait for a session are not folded yet. */
  if ((plan == NULL || plan->fusion_count == 0) && !cleave_graph_has_foldable(graph, keep, bound)) {
    cleave_free(keep);
    keep = NULL;
  }
  *out_keep = keep;
  return CLEAVE_OK;
}

static cleave_status_t set_workers(cleave_session_t *session, int32_t workers, cleave_error_t *error) {
  if (workers < 0 || workers > MAX_WORKERS) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "%d worker%s, expected 1 to %d, or 0 for as many as are of use", (int)workers,
                            CLEAVE_PLURAL(workers), MAX_WORKERS);
  }
  session->workers = (uint32_t)workers;
  return CLEAVE_OK;
}

static cleave_status_t set_options(cleave_session_t *session, cleave_context_t *context,
                                   const cleave_session_options_t *given, cleave_error_t *error) {
  cleave_session_options_t options = {.size = sizeof options};
  CLEAVE_TRY(CLEAVE_SIZED_IN(cleave_session_options_t, given, &options, error));
  CLEAVE_TRY(
      cleave_list_check("backend_options", options.backend_options, options.backend_option_count, error));
  int32_t threads = options.threads;
  if (threads < 0 || threads > MAX_THREADS) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "%d thread%s, expected 1 to %d, or 0 for all", (int)threads,
                            CLEAVE_PLURAL(threads), MAX_THREADS);
  }
  session->profile = options.profile;
  if (options.programs != NULL) {
    session->cache = cleave_program_cache_retain(options.programs);
  }
  if (options.blob_folder != NULL) {
    CLEAVE_TRY(cleave_blob_store_open(options.blob_folder, options.blob_limit, cleave_context_log(context),
                                      &session->blobs, error));
  }
  session->strict = options.strict;
  session->imperative = options.imperative;
  session->fallback = options.fallback;
  session->is_careful = session->profile;
  CLEAVE_TRY(set_workers(session, options.workers, error));
  session->compile_options =
      (cleave_compile_options_t){.size = sizeof session->compile_options,
                                 .threads = threads == 0 ? cleave_threads_available() : threads,
                                 .profile = session->profile};
  if (session->compile_options.threads > 1) {
    cleave_contention_retain();
  }
  return cleave_backend_option_table_build(context, options.backend_options, options.backend_option_count,
                                           &session->arena, &session->options, error);
}

/* A session is made of these. */
typedef struct source {
  const cleave_graph_t *graph;
  const cleave_plan_t *plan; /* of the graph, or NULL */
  const cleave_tensor_view_t *const *inputs;
  size_t input_count;
  const cleave_session_options_t *options;
} source_t;

/* Binds `graph`, which is that of the plan. Inputs that rules added to the model's may be left out if they
 * are fixed. */
static cleave_status_t bind_graph(cleave_session_t *session, const cleave_graph_t *graph,
                                  const source_t *source, cleave_error_t *error) {
  const cleave_plan_t *plan = source->plan;
  const cleave_tensor_view_t *const *inputs = source->inputs;
  size_t input_count = source->input_count;
  bool *keep = NULL;
  const cleave_tensor_view_t **padded = NULL;
  cleave_status_t status = CLEAVE_OK;
  CLEAVE_TRY_CLEANUP(find_fused_nodes(graph, plan, &keep, error));
  if (plan != NULL && inputs != NULL && input_count == plan->source->inputs.count &&
      input_count < graph->inputs.count) {
    padded = cleave_allocate_zeroed(graph->inputs.count, sizeof *padded);
    CLEAVE_TRY_MEMORY_CLEANUP(padded, error);
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

static cleave_status_t create(cleave_session_t *session, const source_t *source, cleave_error_t *error) {
  const cleave_plan_t *plan = source->plan;
  if (plan != NULL && plan->source != source->graph) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "the plan is of another model");
  }
  const cleave_graph_t *graph = plan != NULL ? plan->graph : source->graph;
  CLEAVE_TRY(set_options(session, graph->context, source->options, error));
  CLEAVE_TRY(cleave_registry_find(graph->context, "cpu", &session->cpu, error));
  CLEAVE_TRY(bind_graph(session, graph, source, error));
  session->graph = session->bound != NULL ? session->bound : graph;
  session->plan = plan;
  // Programs that were kept are made without OpenMP's threads. They would spin for milliseconds after they
  // were asked for, on processors that a backend's own threads are to have.
  enter(session, session->blobs != NULL ? 1 : session->compile_options.threads);
  cleave_status_t status = cleave_session_build(session, error);
  cleave_session_leave(session);
  CLEAVE_TRY(status);
  CLEAVE_TRY(cleave_session_plan_memory(session, error));
  return cleave_session_start_lanes(session, error);
}

/* Creates the session without the backends in `without`, whose devices have failed. If the device of another
 * one fails, and `cpu` may take its regions, that backend is added to them and *out_again is true. */
static cleave_status_t try_create(const source_t *source, cleave_without_t *without, bool *out_again,
                                  cleave_session_t **out_session, cleave_error_t *error) {
  cleave_error_t reason = CLEAVE_ERROR_INIT;
  cleave_session_t *session = cleave_allocate_zeroed(1, sizeof *session);
  CLEAVE_TRY_MEMORY(session, error);
  session->without = without;
  cleave_status_t status = create(session, source, &reason);
  session->without = NULL;
  if (status == CLEAVE_OK) {
    *out_session = session;
    return CLEAVE_OK;
  }
  *out_again = session->fallback && session->failed != NULL && without->count < CLEAVE_MAX_WITHOUT;
  if (*out_again) {
    without->handles[without->count] = session->failed;
    without->reasons[without->count++] = reason;
    cleave_log(cleave_context_log(source->graph->context), CLEAVE_LOG_WARNING, "regions of %s run on cpu: %s",
               session->failed->backend->name, reason.message);
  }
  cleave_session_destroy(session);
  return *out_again ? CLEAVE_OK : cleave_error_take(error, &reason);
}

cleave_status_t cleave_session_create_planned(const cleave_graph_t *graph, const cleave_plan_t *plan,
                                              const cleave_tensor_view_t *const *inputs, size_t input_count,
                                              const cleave_session_options_t *options,
                                              cleave_session_t **out_session, cleave_error_t *error) {
  source_t source = {graph, plan, inputs, input_count, options};
  cleave_without_t without = {.count = 0};
  *out_session = NULL;
  for (bool again = true; again;) {
    again = false;
    CLEAVE_TRY(try_create(&source, &without, &again, out_session, error));
  }
  return CLEAVE_OK;
}

void cleave_session_destroy(cleave_session_t *session) {
  if (session == NULL) {
    return;
  }
  if (session->compile_options.threads > 1) {
    cleave_contention_release();
  }
  cleave_session_destroy_lanes(session);
  cleave_session_destroy_targets(session);
  for (size_t s = 0; s < session->steps.count; s++) {
    cleave_step_t *step = &session->steps.items[s];
    for (uint32_t k = 0; step->programs != NULL && k < CLEAVE_DYNAMIC_PROGRAMS; k++) {
      cleave_program_release(step->programs[k].program);
    }
    cleave_free(step->parts);
    cleave_session_destroy_fallback(step);
  }
  for (size_t k = 0; k < session->programs.count; k++) {
    cleave_program_release(session->programs.items[k]);
  }
  for (size_t k = 0; k < session->slots.count; k++) {
    if (session->slots.items[k].kind == CLEAVE_SLOT_OWNED) {
      cleave_free((void *)(uintptr_t)session->slots.items[k].view.data);
    }
  }
  cleave_session_free_states(session);
  cleave_array_free(&session->slots);
  cleave_array_free(&session->steps);
  cleave_array_free(&session->blocks);
  cleave_array_free(&session->programs);
  cleave_array_free(&session->patches);
  cleave_array_free(&session->notes);
  cleave_free(session->memory);
  cleave_free(session->single.workspace);
  cleave_free(session->output_memory);
  cleave_free(session->dynamic_workspace);
  cleave_arena_deinit(&session->dynamic_arena);
  cleave_arena_deinit(&session->arena);
  cleave_graph_destroy(session->bound);
  cleave_program_cache_release(session->cache);
  cleave_blob_store_close(session->blobs);
  cleave_model_release(session->model);
  cleave_free(session);
}

void cleave_session_touch(cleave_session_t *session) {
  const cleave_session_memory_t *statistics = &session->statistics;
  memset(session->memory, 0, statistics->values_bytes + statistics->workspace_bytes);
  memset(session->output_memory, 0, statistics->outputs_bytes);
}

/* ---- reading ---- */

const cleave_graph_t *cleave_session_graph(const cleave_session_t *session) {
  return session->graph;
}

cleave_session_memory_t cleave_session_memory(const cleave_session_t *session) {
  return session->statistics;
}

/* The target of device `index`, or as many as there are. */
static size_t find_device(const cleave_session_t *session, uint32_t index) {
  size_t k = 1;
  for (uint32_t found = 0; k < session->targets.count; k++) {
    if (session->targets.items[k].place != CLEAVE_PLACE_HOST && found++ == index) {
      return k;
    }
  }
  return session->targets.count;
}

uint32_t cleave_session_device_count(const cleave_session_t *session) {
  uint32_t count = 0;
  while (find_device(session, count) < session->targets.count) {
    count++;
  }
  return count;
}

cleave_session_device_t cleave_session_device(const cleave_session_t *session, uint32_t index) {
  return session->targets.items[find_device(session, index)].statistics;
}

uint32_t cleave_session_step_count(const cleave_session_t *session) {
  return (uint32_t)session->steps.count;
}

cleave_session_step_t cleave_session_step(const cleave_session_t *session, uint32_t index) {
  const cleave_step_t *step = &session->steps.items[index];
  return (cleave_session_step_t){.name = step->name,
                                 .op = step->op,
                                 .target = session->targets.items[step->target].label,
                                 .backend = step->backend,
                                 .region = step->region,
                                 .node = step->node,
                                 .is_dynamic = step->kind == CLEAVE_STEP_DYNAMIC,
                                 .is_copy = step->kind == CLEAVE_STEP_COPY,
                                 .copied_bytes = step->copied_bytes,
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
  return index < session->notes.count ? session->notes.items[index] : "";
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

cleave_status_t cleave_session_create(cleave_model_t *model, const cleave_plan_t *plan,
                                      const cleave_tensor_view_t *const *inputs, size_t input_count,
                                      const cleave_session_options_t *options, cleave_session_t **out_session,
                                      cleave_error_t *error) {
  CLEAVE_TRY(
      cleave_session_create_planned(model->graph, plan, inputs, input_count, options, out_session, error));
  (*out_session)->model = cleave_model_retain(model);
  return CLEAVE_OK;
}
