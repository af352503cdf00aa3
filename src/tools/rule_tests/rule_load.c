// SPDX-License-Identifier: Apache-2.0
// A rule file with the options of one of its tests, and the graph of that test.
#include "backend/registry/registry.h"
#include "runtime/model/bind.h"
#include "tools/rule_tests/rule_check.h"

cleave_status_t cleave_rule_check_load(const cleave_rule_source_t *source,
                                       const cleave_rule_check_options_t *options,
                                       const cleave_rule_test_t *test, cleave_rule_list_t *list,
                                       cleave_error_t *error) {
  *list = (cleave_rule_list_t){0};
  size_t given = options->setting_count;
  size_t count = given + (test == NULL ? 0 : test->setting_count);
  cleave_setting_t *settings = cleave_allocate_zeroed(count, sizeof *settings);
  bool *known = cleave_allocate_zeroed(count, sizeof *known);
  cleave_status_t status = CLEAVE_OK;
  CLEAVE_TRY_MEMORY_CLEANUP(settings != NULL && known != NULL, error);
  for (size_t k = 0; k < count; k++) {
    settings[k] = k < given ? options->settings[k] : test->settings[k - given];
    known[k] = true;
  }
  cleave_partition_request_t request = {.size = sizeof request,
                                        .sources = source,
                                        .source_count = 1,
                                        .settings = settings,
                                        .setting_count = count};
  cleave_rule_list_options_t load = {.known = known, .stops_at_mistakes = true};
  status = cleave_rule_list_load(list, options->context, &request, &load, error);
cleanup:
  cleave_free(settings);
  cleave_free(known);
  return status;
}

cleave_status_t cleave_rule_check_build(cleave_rule_list_t *list, uint32_t test_index,
                                        cleave_graph_t **out_graph, cleave_error_t *error) {
  cleave_rules_t *rules = list->files[0];
  const cleave_rule_test_t *test = &cleave_rules_declared(rules)->tests[test_index];
  CLEAVE_TRY(cleave_rules_build_test(rules, test, out_graph, error));
  cleave_status_t status = cleave_graph_simplify(*out_graph, NULL, 0, NULL, error);
  if (status != CLEAVE_OK) {
    cleave_graph_destroy(*out_graph);
    *out_graph = NULL;
  }
  return status;
}

bool cleave_rule_check_can_run(const cleave_rule_list_t *list, cleave_error_t *reason) {
  for (uint32_t k = 0; k < list->count; k++) {
    const cleave_ruleset_t *ruleset = &list->rulesets[k];
    const cleave_backend_handle_t *handle = NULL;
    bool asks = false;
    for (uint32_t r = 0; r < ruleset->rule_count; r++) {
      asks = asks || !cleave_rule_kind_changes_graph(ruleset->rules[r].kind);
    }
    if (asks && cleave_registry_find(list->context, ruleset->backend, &handle, reason) != CLEAVE_OK) {
      return false;
    }
  }
  return true;
}
