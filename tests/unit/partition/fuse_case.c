// SPDX-License-Identifier: Apache-2.0
// Loads models and rules from text; graphs, rules and plans stay until the process ends.

#include "fuse_case.h"

#include <unistd.h>

#include "partition/grow/partition.h"
#include "plan_case.h"
#include "script/model_script.h"
#include "script/rules/rules.h"
#include "system/file.h"
#include "unit.h"

cleave_graph_t *fuse_case_graph(const char *model) {
  char path[64];
  cleave_graph_t *graph = NULL;
  (void)snprintf(path, sizeof path, "/tmp/cleave_fuse_case_%ld.lua", (long)getpid());
  unit_ok(cleave_file_write(path, model, strlen(model), e));
  unit_ok(cleave_model_script_load(NULL, path, NULL, 0, &graph, e));
  (void)unlink(path);
  return plan_case_keep(graph);
}

static cleave_status_t load(const char *before, const char *rules, cleave_rules_t **out_rules,
                            cleave_error_t *error) {
  cleave_text_t text = {0};
  cleave_text_format(&text, "%s return ruleset { name = \"case\", backend = \"cpu\", %s }", before, rules);
  const char *all = cleave_text_get(&text);
  cleave_status_t status =
      cleave_rules_load(NULL, &(cleave_rule_source_t){.path = "r.lua", .text = all, .length = strlen(all)},
                        NULL, NULL, out_rules, error);
  cleave_text_deinit(&text);
  return status;
}

/* Patterns of thousands of parts take long under a sanitizer: on a machine that is busy then, a load may run
 * out of its time by the clock. */
static cleave_status_t load_patiently(const char *before, const char *rules, cleave_rules_t **out_rules,
                                      cleave_error_t *error) {
  for (int tries = 0; tries < 4; tries++) {
    cleave_status_t status = load(before, rules, out_rules, NULL);
    if (status != CLEAVE_ERROR_LIMIT) {
      break;
    }
  }
  return *out_rules != NULL ? CLEAVE_OK : load(before, rules, out_rules, error);
}

cleave_plan_t *fuse_case_plan(const char *model, const char *before, const char *rules) {
  cleave_rules_t *loaded = NULL;
  cleave_plan_t *plan = NULL;
  cleave_graph_t *graph = fuse_case_graph(model);
  uint32_t count = 0;
  unit_ok(load_patiently(before, rules, &loaded, e));
  const cleave_ruleset_t *ruleset = cleave_rules_rulesets(loaded, &count);
  ck_assert_uint_eq(count, 1);
  unit_ok(cleave_partition(graph, &ruleset, 1, NULL, &plan, e));
  unit_ok(cleave_plan_check(plan, e));
  cleave_rules_destroy(loaded);
  return plan_case_keep(plan);
}

uint32_t fuse_case_starve(const char *model, const char *before, const char *rules) {
  cleave_rules_t *loaded = NULL;
  cleave_graph_t *graph = fuse_case_graph(model);
  uint32_t count = 0;
  uint32_t failures = 0;
  unit_ok(load(before, rules, &loaded, e));
  const cleave_ruleset_t *ruleset = cleave_rules_rulesets(loaded, &count);
  for (bool is_done = false; !is_done; failures += !is_done) {
    cleave_plan_t *plan = NULL;
    (void)cleave_memory_fail_after((int64_t)failures);
    cleave_status_t status = cleave_partition(graph, &ruleset, 1, NULL, &plan, NULL);
    (void)cleave_memory_fail_after(-1);
    is_done = status == CLEAVE_OK;
    ck_assert(is_done || (status == CLEAVE_ERROR_OUT_OF_MEMORY && plan == NULL));
    if (is_done) {
      unit_ok(cleave_plan_check(plan, e));
      ck_assert_uint_gt(plan->fusion_count, 0);
    }
    cleave_plan_destroy(plan);
  }
  cleave_rules_destroy(loaded);
  return failures;
}

const char *fuse_case_fusions(const char *model, const char *before, const char *fields) {
  static char found[4096];
  cleave_text_t rules = {0};
  cleave_text_format(&rules, "fuse \"f\" { %s }", fields);
  const cleave_plan_t *plan = fuse_case_plan(model, before, cleave_text_get(&rules));
  cleave_text_deinit(&rules);
  size_t length = 0;
  found[0] = '\0';
  for (uint32_t f = 0; f < plan->fusion_count; f++) {
    const cleave_plan_fusion_t *fusion = &plan->fusions[f];
    length += (size_t)snprintf(found + length, sizeof found - length, "%s[", f == 0 ? "" : " ");
    for (uint32_t k = 0; k < fusion->node_count; k++) {
      length += (size_t)snprintf(found + length, sizeof found - length, "%s%s", k == 0 ? "" : " ",
                                 cleave_node_name(plan->graph, fusion->nodes[k]));
    }
    length += (size_t)snprintf(found + length, sizeof found - length, "]");
    ck_assert_uint_lt(length, sizeof found);
  }
  return found;
}

const char *fuse_case_mistake(const char *before, const char *fields) {
  static cleave_error_t error;
  cleave_rules_t *loaded = NULL;
  cleave_text_t rules = {0};
  error = (cleave_error_t)CLEAVE_ERROR_INIT;
  cleave_text_format(&rules, "fuse \"f\" { %s }", fields);
  ck_assert_int_eq(load(before, cleave_text_get(&rules), &loaded, &error), CLEAVE_ERROR_RULE);
  cleave_text_deinit(&rules);
  return error.message;
}
