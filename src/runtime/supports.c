// SPDX-License-Identifier: Apache-2.0
// Whether a backend runs some nodes: a view is made, the backend is asked, the memory is used again for the
// next question.
#include <stdio.h>
#include <string.h>

#include "runtime/registry.h"
#include "runtime/view.h"

void cleave_supports_init(cleave_supports_t *supports, const cleave_graph_t *graph) {
  *supports = (cleave_supports_t){0};
  cleave_view_builder_init(&supports->builder, graph);
}

void cleave_supports_deinit(cleave_supports_t *supports) {
  cleave_view_builder_deinit(&supports->builder);
  cleave_arena_deinit(&supports->arena);
}

static cleave_status_t ask(cleave_supports_t *supports, const cleave_view_request_t *request, bool *out_yes,
                           cleave_reason_t *reason, cleave_error_t *error) {
  cleave_view_t view;
  CLEAVE_TRY(cleave_view_build(&supports->builder, request, &supports->arena, &view, error));
  cleave_message_t message = {.text = ""};
  const cleave_backend_handle_t *handle = supports->handle;
  cleave_status_t status = handle->backend->supports(handle->state, &view.region, &message);
  *out_yes = status == CLEAVE_OK;
  if (status == CLEAVE_ERROR_OUT_OF_MEMORY) {
    return cleave_error_out_of_memory(error);
  }
  if (status != CLEAVE_OK) {
    message.text[sizeof message.text - 1] = '\0';
    (void)snprintf(reason->text, sizeof reason->text, "%s", message.text);
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_supports_ask(void *context, const char *backend, const cleave_graph_t *graph,
                                    const cleave_node_t *nodes, const char *const *labels,
                                    uint32_t node_count, const char *rule, bool *out_yes,
                                    cleave_reason_t *reason, cleave_error_t *error) {
  cleave_supports_t *supports = context;
  *out_yes = false;
  reason->text[0] = '\0';
  if (graph != supports->builder.graph) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "the backends were asked about another graph than announced");
  }
  if (supports->handle == NULL || strcmp(supports->handle->backend->name, backend) != 0) {
    CLEAVE_TRY(cleave_registry_find(backend, &supports->handle, error));
  }
  cleave_view_fusion_t fusion = {
      .rule = rule == NULL ? "" : rule, .nodes = nodes, .labels = labels, .node_count = node_count};
  bool is_fusion = labels != NULL;
  cleave_view_request_t request = {.name = "",
                                   .rule = rule,
                                   .nodes = nodes,
                                   .node_count = node_count,
                                   .fusions = is_fusion ? &fusion : NULL,
                                   .fusion_count = is_fusion ? 1 : 0};
  cleave_status_t status = ask(supports, &request, out_yes, reason, error);
  cleave_arena_reset(&supports->arena);
  return status;
}
