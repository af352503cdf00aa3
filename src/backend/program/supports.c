// SPDX-License-Identifier: Apache-2.0
// What a backend says of some nodes, whether it runs them and how long it would take: a view is made, the
// backend is asked, the memory is used again for the next question.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backend/program/supports.h"
#include "backend/registry/registry.h"

void cleave_supports_init(cleave_supports_t *supports, const cleave_graph_t *graph) {
  *supports = (cleave_supports_t){0};
  cleave_view_builder_init(&supports->builder, graph);
}

void cleave_supports_deinit(cleave_supports_t *supports) {
  cleave_view_builder_deinit(&supports->builder);
  cleave_arena_deinit(&supports->arena);
}

static cleave_status_t find_backend(cleave_supports_t *supports, const char *backend,
                                    const cleave_graph_t *graph, cleave_error_t *error) {
  if (graph != supports->builder.graph) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "the backends were asked about another graph than announced");
  }
  if (supports->handle == NULL || strcmp(supports->handle->backend->name, backend) != 0) {
    CLEAVE_TRY(cleave_registry_find(graph->context, backend, &supports->handle, error));
  }
  return CLEAVE_OK;
}

/* A library in a process of its own that is lost ends the partitioning, unless `cpu` is to take over: then
 * it refuses everything. */
static cleave_status_t check_lost(const cleave_backend_handle_t *handle, cleave_message_t *message,
                                  cleave_error_t *error) {
  bool falls_back = false;
  message->text[sizeof message->text - 1] = '\0';
  return cleave_registry_is_lost(handle, &falls_back) && !falls_back
             ? cleave_error_set(error, CLEAVE_ERROR_BACKEND, "%s", message->text)
             : CLEAVE_OK;
}

/* A question that ran out of memory ends the partitioning. */
static cleave_status_t check_memory(const cleave_backend_handle_t *handle, const char *function,
                                    cleave_status_t status, cleave_message_t *message,
                                    cleave_error_t *error) {
  char place[128];
  message->text[sizeof message->text - 1] = '\0';
  (void)snprintf(place, sizeof place, "backend '%.64s': '%s'", handle->backend->name, function);
  return status == CLEAVE_ERROR_OUT_OF_MEMORY ? cleave_registry_fail(error, status, place, message)
                                              : CLEAVE_OK;
}

static cleave_status_t ask(cleave_supports_t *supports, const cleave_view_request_t *request, bool *out_yes,
                           cleave_reason_t *reason, cleave_error_t *error) {
  cleave_view_t view;
  CLEAVE_TRY(cleave_view_build(&supports->builder, request, &supports->arena, &view, error));
  if (view.region.output_count == 0) { /* dead nodes that were kept: backends say what is missing, not why */
    *out_yes = false;
    (void)snprintf(reason->text, sizeof reason->text, "nothing reads what it makes");
    return CLEAVE_OK;
  }
  cleave_message_t message = {.text = ""};
  const cleave_backend_handle_t *handle = supports->handle;
  cleave_status_t status = handle->backend->supports(handle->state, &view.region, &message);
  *out_yes = status == CLEAVE_OK;
  CLEAVE_TRY(check_memory(handle, "supports", status, &message, error));
  if (status != CLEAVE_OK) {
    CLEAVE_TRY(check_lost(handle, &message, error));
    (void)snprintf(reason->text, sizeof reason->text, "%s", message.text);
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_supports_ask(void *context, const char *backend, const cleave_graph_t *graph,
                                    const cleave_fusion_set_t *set, bool *out_yes, cleave_reason_t *reason,
                                    cleave_error_t *error) {
  cleave_supports_t *supports = context;
  *out_yes = false;
  reason->text[0] = '\0';
  CLEAVE_TRY(find_backend(supports, backend, graph, error));
  bool is_fusion = set->labels != NULL;
  cleave_view_request_t request = {.name = "",
                                   .rule = set->rule,
                                   .nodes = set->nodes,
                                   .node_count = set->node_count,
                                   .fusions = is_fusion ? set : NULL,
                                   .fusion_count = is_fusion ? 1 : 0,
                                   .takes_sparse = supports->handle->backend->takes_sparse};
  cleave_status_t status = ask(supports, &request, out_yes, reason, error);
  cleave_arena_reset(&supports->arena);
  return status;
}

static cleave_status_t ask_cost(cleave_supports_t *supports, const cleave_view_request_t *request,
                                double *out_nanoseconds, bool *out_known, cleave_reason_t *reason,
                                cleave_error_t *error) {
  cleave_view_t view;
  const cleave_backend_handle_t *handle = supports->handle;
  const cleave_backend_t *backend = handle->backend;
  if (backend->size <= CLEAVE_BACKEND_SIZE_REQUIRED || backend->cost == NULL) {
    (void)snprintf(reason->text, sizeof reason->text, "backend '%.100s' estimates no costs", backend->name);
    return CLEAVE_OK;
  }
  CLEAVE_TRY(cleave_view_build(&supports->builder, request, &supports->arena, &view, error));
  cleave_message_t message = {.text = ""};
  cleave_status_t status = backend->cost(handle->state, &view.region, out_nanoseconds, &message);
  CLEAVE_TRY(check_memory(handle, "cost", status, &message, error));
  *out_known = status == CLEAVE_OK && *out_nanoseconds > 0.0 && isfinite(*out_nanoseconds);
  if (!*out_known) {
    CLEAVE_TRY(check_lost(handle, &message, error));
    (void)snprintf(reason->text, sizeof reason->text, "%.60s: %.180s", backend->name,
                   message.text[0] == '\0' ? "no cost given" : message.text);
  }
  return CLEAVE_OK;
}

/* The set as a view request, for the backend asked last. */
static cleave_view_request_t request_of(const cleave_supports_t *supports, const cleave_region_set_t *set) {
  return (cleave_view_request_t){.nodes = set->nodes,
                                 .node_count = set->node_count,
                                 .fusions = set->fusions,
                                 .fusion_count = set->fusion_count,
                                 .attributes = set->attributes,
                                 .attribute_count = set->attribute_count,
                                 .takes_sparse = supports->handle->backend->takes_sparse};
}

cleave_status_t cleave_supports_cost(void *context, const cleave_region_set_t *set, double *out_nanoseconds,
                                     bool *out_known, cleave_reason_t *reason, cleave_error_t *error) {
  cleave_supports_t *supports = context;
  *out_known = false;
  *out_nanoseconds = 0.0;
  reason->text[0] = '\0';
  CLEAVE_TRY(find_backend(supports, set->backend, set->graph, error));
  cleave_view_request_t request = request_of(supports, set);
  cleave_status_t status = ask_cost(supports, &request, out_nanoseconds, out_known, reason, error);
  cleave_arena_reset(&supports->arena);
  return status;
}

static cleave_status_t ask_review(cleave_supports_t *supports, const cleave_view_request_t *request,
                                  bool *keep, bool *out_yes, cleave_reason_t *reason, cleave_error_t *error) {
  cleave_view_t view;
  const cleave_backend_handle_t *handle = supports->handle;
  CLEAVE_TRY(cleave_view_build(&supports->builder, request, &supports->arena, &view, error));
  cleave_message_t message = {.text = ""};
  cleave_status_t status = handle->backend->review(handle->state, &view.region, keep, &message);
  CLEAVE_TRY(check_memory(handle, "review", status, &message, error));
  *out_yes = status == CLEAVE_OK;
  if (!*out_yes) {
    CLEAVE_TRY(check_lost(handle, &message, error));
  }
  message.text[sizeof message.text - 1] = '\0';
  (void)snprintf(reason->text, sizeof reason->text, "%.60s: %.180s", handle->backend->name,
                 message.text[0] == '\0' ? "no reason given" : message.text);
  return CLEAVE_OK;
}

cleave_status_t cleave_supports_review(void *context, const cleave_region_set_t *set, bool *keep,
                                       bool *out_yes, cleave_reason_t *reason, cleave_error_t *error) {
  cleave_supports_t *supports = context;
  CLEAVE_TRY(find_backend(supports, set->backend, set->graph, error));
  *out_yes = supports->handle->backend->review != NULL;
  if (set->nodes == NULL || !*out_yes) {
    *out_yes = *out_yes || set->nodes != NULL;
    return CLEAVE_OK;
  }
  cleave_view_request_t request = request_of(supports, set);
  cleave_status_t status = ask_review(supports, &request, keep, out_yes, reason, error);
  cleave_arena_reset(&supports->arena);
  return status;
}
