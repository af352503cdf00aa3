// SPDX-License-Identifier: Apache-2.0
// A graph partitioned by rule files, or, without any, by what one backend supports.
#include <string.h>

#include "backend/registry.h"
#include "base/clock.h"
#include "runtime/model.h"
#include "runtime/rule_list.h"

/* What was set is part of the plan: it explains why two plans differ. */
static cleave_status_t keep_settings(cleave_plan_t *plan, const cleave_setting_t *settings, size_t count,
                                     cleave_error_t *error) {
  cleave_setting_t *copies = cleave_arena_allocate(&plan->arena, count, sizeof *copies);
  bool is_complete = copies != NULL;
  for (size_t k = 0; is_complete && k < count; k++) {
    copies[k].name = cleave_arena_copy_text(&plan->arena, settings[k].name, strlen(settings[k].name));
    copies[k].value = cleave_arena_copy_text(&plan->arena, settings[k].value, strlen(settings[k].value));
    is_complete = copies[k].name != NULL && copies[k].value != NULL;
  }
  plan->settings = copies;
  plan->setting_count = (uint32_t)count;
  return is_complete ? CLEAVE_OK : cleave_error_out_of_memory(error);
}

cleave_status_t cleave_graph_partition_by(const cleave_graph_t *graph,
                                          const cleave_partition_request_t *request, cleave_plan_t **out_plan,
                                          double *out_script_ms, cleave_error_t *error) {
  *out_plan = NULL;
  uint64_t start = cleave_clock_now();
  cleave_status_t status = CLEAVE_OK;
  cleave_rule_list_t list = {0};
  if (request->backend != NULL) {
    const cleave_backend_handle_t *handle = NULL;
    CLEAVE_TRY_CLEANUP(cleave_registry_find(request->backend, &handle, error));
  }
  CLEAVE_TRY_CLEANUP(cleave_rule_list_load_watched(&list, request->sources, request->source_count,
                                                   request->settings, request->setting_count, request->known,
                                                   request->backend, request->listener, error));
  if (out_script_ms != NULL) {
    *out_script_ms = cleave_clock_ms(start, cleave_clock_now());
  }
  CLEAVE_TRY_CLEANUP(cleave_rule_list_partition(&list, graph, out_plan, error));
  CLEAVE_TRY_CLEANUP(keep_settings(*out_plan, request->settings, request->setting_count, error));
cleanup:
  if (status != CLEAVE_OK) {
    cleave_plan_destroy(*out_plan);
    *out_plan = NULL;
  }
  cleave_rule_list_deinit(&list);
  return status;
}

cleave_status_t cleave_graph_partition(const cleave_graph_t *graph, const cleave_rule_source_t *sources,
                                       size_t source_count, const cleave_setting_t *settings,
                                       size_t setting_count, const bool *known, const char *backend,
                                       cleave_plan_t **out_plan, double *out_script_ms,
                                       cleave_error_t *error) {
  cleave_partition_request_t request = {.sources = sources,
                                        .source_count = source_count,
                                        .settings = settings,
                                        .setting_count = setting_count,
                                        .known = known,
                                        .backend = backend};
  return cleave_graph_partition_by(graph, &request, out_plan, out_script_ms, error);
}
