// SPDX-License-Identifier: Apache-2.0
// Tests of a rule file, each with an interpreter of its own, so that no test sees what another one did.
#include "tools/rule_tests/rule_check.h"

#include <string.h>

#include "backend/registry/registry.h"
#include "runtime/model/bind.h"
#include "system/clock.h"

const char *cleave_test_verdict_name(cleave_test_verdict_t verdict) {
  switch (verdict) {
    case CLEAVE_TEST_PASSED: return "passed";
    case CLEAVE_TEST_FAILED: return "failed";
    case CLEAVE_TEST_SKIPPED: return "skipped";
  }
  return "";
}

// ---- one test ----

/* A failure that is the rule file's: it fails the test. Lack of memory is the caller's. */
static cleave_status_t fail_test(const cleave_error_t *failure, cleave_text_t *report,
                                 cleave_error_t *error) {
  if (failure->status == CLEAVE_ERROR_OUT_OF_MEMORY) {
    return cleave_error_out_of_memory(error);
  }
  cleave_text_show(report, "%s\n", failure->message);
  return CLEAVE_OK;
}

typedef struct test_run {
  const cleave_rule_source_t *source;
  const cleave_rule_check_options_t *options;
  cleave_rule_check_t *check;
  uint32_t index;
  cleave_test_verdict_t verdict;
  cleave_text_t report;
} test_run_t;

/* The rules over the test's graph, and what is expected of the plan. `failure` is for what the file does. */
static cleave_status_t judge(test_run_t *run, cleave_rule_list_t *list, cleave_error_t *failure,
                             cleave_error_t *error) {
  const cleave_rule_test_t *test = &cleave_rules_declared(list->files[0])->tests[run->index];
  cleave_graph_t *graph = NULL;
  cleave_plan_t *plan = NULL;
  cleave_status_t status = CLEAVE_OK;
  if (cleave_rule_check_build(list, run->index, &graph, failure) == CLEAVE_OK &&
      (!test->calibrate || cleave_rule_calibrate(test, graph, run->options->threads, failure) == CLEAVE_OK) &&
      cleave_rule_list_partition(list, graph, &plan, failure) == CLEAVE_OK &&
      cleave_plan_check(plan, failure) == CLEAVE_OK) {
    CLEAVE_TRY_CLEANUP(cleave_rule_check_count(run->check, plan, false, error));
    CLEAVE_TRY_CLEANUP(cleave_rule_expect(list, test, plan, &run->report, error));
    if (test->equal) {
      CLEAVE_TRY_CLEANUP(cleave_rule_equal(test, plan, run->options, &run->report, error));
    }
    if (test->gradient > 0) {
      CLEAVE_TRY_CLEANUP(cleave_rule_gradient(list, test, graph, run->options->threads, &run->report, error));
      cleave_rule_check_count_gradients(run->check, list);
    }
  }
cleanup:
  cleave_plan_destroy(plan);
  cleave_graph_destroy(graph);
  return status;
}

static cleave_status_t run_test(test_run_t *run, const cleave_rule_test_t *test, cleave_error_t *error) {
  cleave_rule_list_t list;
  cleave_error_t failure = CLEAVE_ERROR_INIT;
  cleave_status_t status = CLEAVE_OK;
  if (cleave_rule_check_load(run->source, run->options, test, &list, &failure) == CLEAVE_OK) {
    cleave_error_t missing = CLEAVE_ERROR_INIT;
    if (!cleave_rule_check_can_run(&list, &missing)) {
      run->verdict = CLEAVE_TEST_SKIPPED;
      cleave_text_add(&run->report, missing.message);
    } else if (run->index >= cleave_rules_declared(list.files[0])->test_count) {
      cleave_text_show(&run->report, "with these options the file has no test of this name\n");
    } else {
      status = judge(run, &list, &failure, error);
    }
  }
  cleave_rule_list_deinit(&list);
  if (status == CLEAVE_OK && failure.status != CLEAVE_OK) {
    status = fail_test(&failure, &run->report, error);
  }
  if (run->verdict != CLEAVE_TEST_SKIPPED) {
    run->verdict = run->report.length == 0 ? CLEAVE_TEST_PASSED : CLEAVE_TEST_FAILED;
  }
  return status;
}

static cleave_status_t add_test(const cleave_rule_source_t *source,
                                const cleave_rule_check_options_t *options, cleave_rule_check_t *check,
                                uint32_t index, cleave_error_t *error) {
  const cleave_rule_test_t *test = &cleave_rules_declared(check->rules)->tests[index];
  test_run_t run = {.source = source, .options = options, .check = check, .index = index};
  if (options->progress != NULL) {
    options->progress(options->progress_context, test->name);
  }
  uint64_t start = cleave_clock_now();
  cleave_status_t status = run_test(&run, test, error);
  cleave_test_result_t result = {.name = test->name,
                                 .file = test->file,
                                 .line = test->line,
                                 .verdict = run.verdict,
                                 .ms = cleave_clock_ms(start, cleave_clock_now())};
  CLEAVE_THEN(status, cleave_text_check(&run.report, error));
  result.report = cleave_arena_copy_text(&check->arena, cleave_text_get(&run.report), run.report.length);
  cleave_text_deinit(&run.report);
  CLEAVE_TRY(status);
  CLEAVE_TRY_MEMORY(result.report, error);
  CLEAVE_ARRAY_PUSH(&check->tests, result, error);
  check->passed += result.verdict == CLEAVE_TEST_PASSED;
  check->failed += result.verdict == CLEAVE_TEST_FAILED;
  check->skipped += result.verdict == CLEAVE_TEST_SKIPPED;
  return CLEAVE_OK;
}

// ---- the file ----

static cleave_status_t add_lints(cleave_rule_check_t *check, cleave_error_t *error) {
  const cleave_lint_t *lints = NULL;
  uint32_t count = 0;
  CLEAVE_TRY(cleave_rules_lint(check->rules, &check->arena, &lints, &count, error));
  for (uint32_t k = 0; k < count; k++) {
    CLEAVE_ARRAY_PUSH(&check->lints, lints[k], error);
  }
  return CLEAVE_OK;
}

/* Files in the order of their names. */
static bool is_after(const cleave_lint_t *a, const cleave_lint_t *b) {
  int order = strcmp(a->file, b->file);
  return order != 0 ? order > 0 : a->line > b->line;
}

static void sort_lints(cleave_rule_check_t *check) {
  cleave_lint_t *lints = check->lints.items;
  for (size_t k = 1; k < check->lints.count; k++) {
    cleave_lint_t lint = lints[k];
    size_t at = k;
    for (; at > 0 && is_after(&lints[at - 1], &lint); at--) {
      lints[at] = lints[at - 1];
    }
    lints[at] = lint;
  }
}

cleave_status_t cleave_rule_check_run(const cleave_rule_source_t *source,
                                      const cleave_rule_check_options_t *options,
                                      cleave_rule_check_t *out_check, cleave_error_t *error) {
  static const cleave_rule_check_options_t DEFAULTS = {.threads = 1};
  cleave_rule_check_t *check = out_check;
  *check = (cleave_rule_check_t){0};
  options = options == NULL ? &DEFAULTS : options;
  cleave_rule_list_t list;
  cleave_status_t status = cleave_rule_check_load(source, options, NULL, &list, error);
  if (status == CLEAVE_OK) {
    check->rules = list.files[0];
    list.file_count = 0;
  }
  cleave_rule_list_deinit(&list);
  CLEAVE_TRY(status);
  const cleave_declared_t *declared = cleave_rules_declared(check->rules);
  for (uint32_t k = 0; k < declared->rule_count; k++) {
    CLEAVE_ARRAY_PUSH(&check->reach, ((cleave_rule_reach_t){.rule = &declared->rules[k]}), error);
  }
  bool all = options->only == NULL;
  for (uint32_t k = 0; k < declared->test_count; k++) {
    if (all || strstr(declared->tests[k].name, options->only) != NULL) {
      CLEAVE_TRY(add_test(source, options, check, k, error));
    }
  }
  CLEAVE_TRY(add_lints(check, error));
  if (all) {
    CLEAVE_TRY(cleave_rule_lint_reach(check, source, options, error));
  }
  sort_lints(check);
  return CLEAVE_OK;
}

void cleave_rule_check_deinit(cleave_rule_check_t *check) {
  cleave_array_free(&check->tests);
  cleave_array_free(&check->lints);
  cleave_array_free(&check->reach);
  cleave_rules_destroy(check->rules);
  cleave_arena_deinit(&check->arena);
  *check = (cleave_rule_check_t){0};
}
