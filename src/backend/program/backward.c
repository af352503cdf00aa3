// SPDX-License-Identifier: Apache-2.0
// A view of a region is made while the graph is as it was, all gradients of other regions being behind it;
// what the backend adds is checked by who asks.
#include "backend/program/backward.h"

#include <string.h>

#include "backend/registry/registry_entry.h"

typedef struct question {
  const cleave_backend_handle_t *handle;
  const cleave_gradient_region_call_t *call;
  cleave_arena_t arena;
  cleave_view_builder_t builder;
  cleave_view_t view;
} question_t;

/* `reason` NULL: the backend made the gradients. */
static cleave_status_t record(cleave_backward_t *backward, const cleave_plan_region_t *region,
                              const char *backend, const char *reason, cleave_error_t *error) {
  cleave_backward_region_t entry = {.backend =
                                        cleave_arena_copy_text(&backward->arena, backend, strlen(backend))};
  bool is_there = entry.backend != NULL;
  if (region != NULL) {
    entry.node_count = region->node_count;
    entry.name = cleave_arena_copy_text(&backward->arena, region->name, strlen(region->name));
    is_there = is_there && entry.name != NULL;
  }
  if (reason != NULL) {
    reason = reason[0] == '\0' ? "no reason given" : reason;
    entry.reason = cleave_arena_copy_text(&backward->arena, reason, strlen(reason));
    is_there = is_there && entry.reason != NULL;
  }
  CLEAVE_TRY_MEMORY(is_there, error);
  CLEAVE_ARRAY_PUSH(&backward->records, entry, error);
  return CLEAVE_OK;
}

static const char HAS_NONE[] = "it has no gradients of its own";

cleave_status_t cleave_backward_has(cleave_backward_t *backward, const cleave_graph_t *graph,
                                    const char *backend, bool *out_has, cleave_error_t *error) {
  const cleave_backend_handle_t *handle = NULL;
  *out_has = false;
  if (cleave_registry_find(graph->context, backend, &handle, NULL) != CLEAVE_OK) {
    return CLEAVE_OK; /* partitioning says so */
  }
  *out_has = handle->backend->backward != NULL;
  for (size_t k = 0; k < backward->records.count; k++) {
    if (strcmp(backward->records.items[k].backend, backend) == 0) {
      return CLEAVE_OK;
    }
  }
  return *out_has ? CLEAVE_OK : record(backward, NULL, backend, HAS_NONE, error);
}

/* Asks, and hands over the results of all that is wanted. CLEAVE_ERROR_UNSUPPORTED: refused. */
static cleave_status_t ask_backend(question_t *question, cleave_editor_t *editor, cleave_message_t *reason,
                                   cleave_error_t *error) {
  const cleave_region_view_t *region = &question->view.region;
  uint32_t *values = cleave_arena_allocate(&question->arena, (size_t)region->value_count + 1, sizeof *values);
  uint32_t *results =
      cleave_arena_allocate(&question->arena, (size_t)region->value_count + 1, sizeof *results);
  bool *wanted = cleave_arena_allocate(&question->arena, (size_t)region->value_count + 1, sizeof *wanted);
  uint32_t *gradients =
      cleave_arena_allocate(&question->arena, (size_t)region->output_count + 1, sizeof *gradients);
  CLEAVE_TRY_MEMORY(values != NULL && results != NULL && wanted != NULL && gradients != NULL, error);
  for (uint32_t k = 0; k < region->value_count; k++) {
    values[k] = question->view.values[k].index;
    results[k] = CLEAVE_INDEX_NONE;
    wanted[k] = question->call->wanted[values[k]];
  }
  for (uint32_t k = 0; k < region->output_count; k++) {
    gradients[k] = question->call->gradients[values[region->outputs[k]]].index;
  }
  cleave_backward_request_t request = {.size = sizeof request,
                                       .forward = region,
                                       .values = values,
                                       .gradients = gradients,
                                       .wanted = wanted,
                                       .results = results};
  CLEAVE_TRY(cleave_library_backward(question->handle, editor, &request, reason, error));
  const cleave_graph_t *graph = editor->graph;
  for (uint32_t k = 0; k < region->value_count; k++) {
    bool exists = results[k] < cleave_graph_value_bound(graph) && !graph->values.items[results[k]].is_removed;
    if (wanted[k] && !exists) {
      return cleave_error_set(error, CLEAVE_ERROR_BACKEND,
                              "%.60s: %.60s: the gradient of '%.100s' is missing, or no value", region->name,
                              question->handle->backend->name, region->values[k].name);
    }
    if (wanted[k]) {
      question->call->results[values[k]] = (cleave_value_t){results[k]};
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t ask(void *context, cleave_editor_t *editor, const cleave_gradient_region_call_t *call,
                           bool *out_done, cleave_error_t *error) {
  cleave_backward_t *backward = context;
  const cleave_plan_region_t *region = &backward->plan->regions[call->region];
  question_t question = {.call = call};
  cleave_message_t reason = {.text = ""};
  *out_done = false;
  CLEAVE_TRY(cleave_registry_find(editor->graph->context, region->backend, &question.handle, error));
  if (question.handle->backend->backward == NULL) {
    return record(backward, region, region->backend, HAS_NONE, error);
  }
  cleave_view_builder_init(&question.builder, editor->graph);
  cleave_status_t status =
      cleave_view_build_part(&question.builder, backward->plan, call->region, CLEAVE_INDEX_NONE,
                             question.handle->backend->takes_sparse, &question.arena, &question.view, error);
  status = status == CLEAVE_OK ? ask_backend(&question, editor, &reason, error) : status;
  cleave_view_builder_deinit(&question.builder);
  cleave_arena_deinit(&question.arena);
  *out_done = status == CLEAVE_OK;
  return status == CLEAVE_OK || status == CLEAVE_ERROR_UNSUPPORTED
             ? record(backward, region, region->backend, *out_done ? NULL : reason.text, error)
             : status;
}

cleave_status_t cleave_backward_start_take(cleave_backward_t *backward, cleave_plan_t *plan,
                                           cleave_error_t *error) {
  uint32_t count = 0;
  backward->plan = plan;
  backward->order =
      cleave_allocate((size_t)cleave_graph_node_bound(plan->graph) + 1, sizeof *backward->order);
  CLEAVE_TRY_MEMORY(backward->order, error);
  for (uint32_t k = 0; k < plan->step_count; k++) {
    const cleave_plan_step_t *step = &plan->steps[k];
    const cleave_plan_region_t *region =
        step->region == CLEAVE_INDEX_NONE ? NULL : &plan->regions[step->region];
    for (uint32_t n = 0; n < (region == NULL ? 1 : region->node_count); n++) {
      backward->order[count++] = region == NULL ? step->node : region->nodes[n];
    }
  }
  backward->regions = (cleave_gradient_regions_t){.node_region = plan->node_region,
                                                  .order = backward->order,
                                                  .node_count = count,
                                                  .ask = ask,
                                                  .context = backward};
  return CLEAVE_OK;
}

void cleave_backward_deinit(cleave_backward_t *backward) {
  cleave_plan_destroy(backward->plan);
  cleave_free(backward->order);
  cleave_array_free(&backward->records);
  cleave_arena_deinit(&backward->arena);
}
