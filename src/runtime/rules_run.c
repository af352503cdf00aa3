// SPDX-License-Identifier: Apache-2.0
// A graph partitioned by rule files, or, without any, by what one backend supports.
#include <string.h>

#include "base/clock.h"
#include "runtime/model.h"
#include "runtime/registry.h"
#include "runtime/rule_list.h"

cleave_status_t cleave_graph_partition(const cleave_graph_t *graph, const cleave_rule_source_t *sources,
                                       size_t source_count, const cleave_setting_t *settings,
                                       size_t setting_count, const bool *known, const char *backend,
                                       cleave_plan_t **out_plan, double *out_script_ms,
                                       cleave_error_t *error) {
  *out_plan = NULL;
  uint64_t start = cleave_clock_now();
  cleave_status_t status = CLEAVE_OK;
  cleave_rule_list_t list = {0};
  if (backend != NULL) {
    const cleave_backend_handle_t *handle = NULL;
    CLEAVE_TRY_CLEANUP(cleave_registry_find(backend, &handle, error));
  }
  CLEAVE_TRY_CLEANUP(
      cleave_rule_list_load(&list, sources, source_count, settings, setting_count, known, backend, error));
  if (out_script_ms != NULL) {
    *out_script_ms = cleave_clock_ms(start, cleave_clock_now());
  }
  CLEAVE_TRY_CLEANUP(cleave_rule_list_partition(&list, graph, out_plan, error));
cleanup:
  cleave_rule_list_deinit(&list);
  return status;
}
