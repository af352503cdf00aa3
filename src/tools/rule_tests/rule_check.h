// SPDX-License-Identifier: Apache-2.0
/*
 * Checks of a rule file: its own tests, and lints. Each test loads the file afresh with the test's options,
 * builds the test's graph in the file's interpreter, runs the rules, and compares what came out with what the
 * test expects; with `equal`, the plan is compiled and run, and its outputs are compared with the graph as
 * the test built it, on `cpu`.
 *
 * A test that cannot run here (its backend is not in this program) is skipped with the reason, never passed.
 * Nothing that a rule file does is an error of these functions: a graph function that fails, or runs away,
 * fails its test.
 */
#ifndef CLEAVE_TOOLS_RULE_TESTS_RULE_CHECK_H
#define CLEAVE_TOOLS_RULE_TESTS_RULE_CHECK_H

#include "base/arena.h"
#include "base/containers/array.h"
#include "base/text.h"
#include "partition/plan/plan.h"
#include "runtime/model/rule_list.h"
#include "script/rules/declared.h"

typedef enum cleave_test_verdict {
  CLEAVE_TEST_PASSED,
  CLEAVE_TEST_FAILED,
  CLEAVE_TEST_SKIPPED
} cleave_test_verdict_t;

/* "passed", "failed", "skipped". */
const char *cleave_test_verdict_name(cleave_test_verdict_t verdict);

typedef struct cleave_test_result {
  const char *name;
  const char *file; /* that it stands in: the rule file, or one that it includes */
  int32_t line;
  cleave_test_verdict_t verdict;
  double ms;
  /* FAILED: what was expected and found, one line each, and lines that begin with two spaces for what the
   * rule did instead. SKIPPED: the reason. */
  const char *report;
} cleave_test_result_t;

/* How often a rule was at work over the graphs of all tests and models. */
typedef struct cleave_rule_reach {
  const cleave_declared_rule_t *rule; /* points into `rules` of the check */
  bool ran;                           /* it was switched on at least once */
  bool ran_on_models;
  uint64_t matches;       /* in all graphs */
  uint64_t model_matches; /* in the models */
  uint64_t model_hits;    /* in the models: what its pattern matched, before anybody refused or took it */
  uint64_t model_refused; /* in the models: what was refused */
  const char *refusal;    /* the first of these: by whom, where and why; NULL: none is known */
} cleave_rule_reach_t;

typedef struct cleave_check_model {
  const char *name;
  const cleave_graph_t *graph; /* as models are: inferred and simplified */
} cleave_check_model_t;

typedef struct cleave_rule_check_options {
  cleave_context_t *context;        /* of the models and backends; NULL: the process's own */
  const cleave_setting_t *settings; /* if a test has no options of its own; one that the file does not
                                       declare is passed over */
  size_t setting_count;
  const char *only; /* tests whose name contains this text; NULL: all */
  const cleave_check_model_t *models;
  size_t model_count;
  int32_t threads;                         /* 0: one per usable processor */
  const cleave_session_options_t *session; /* backend options and blobs are taken from it; NULL: none */
  /* Called before each test, for progress; may be NULL. */
  void (*progress)(void *context, const char *test);
  void *progress_context;
} cleave_rule_check_options_t;

/* All about one file. All zero is empty. */
typedef struct cleave_rule_check {
  cleave_arena_t arena;  /* holds the texts */
  cleave_rules_t *rules; /* as loaded with the settings alone; NULL if that failed */
  CLEAVE_ARRAY(cleave_test_result_t) tests;
  CLEAVE_ARRAY(cleave_lint_t) lints; /* by file and line */
  CLEAVE_ARRAY(cleave_rule_reach_t) reach;
  uint32_t passed;
  uint32_t failed;
  uint32_t skipped;
} cleave_rule_check_t;

/* Checks one file. Fails if the file does not load, or memory is short; results so far stay. The check
 * must be deinitialised also then. `options` may be NULL: no settings, one thread. */
CLEAVE_STATUS cleave_rule_check_run(const cleave_rule_source_t *source,
                                    const cleave_rule_check_options_t *options,
                                    cleave_rule_check_t *out_check, cleave_error_t *error);
void cleave_rule_check_deinit(cleave_rule_check_t *check);

/* ---- parts (rule_load.c, rule_count.c, rule_expect.c, rule_equal.c, rule_gradient.c, rule_reach.c):
 * `options` are never NULL there ---- */

/* Compares a plan with what a test expects; appends to `report` what is not met. Nothing: all is. */
CLEAVE_STATUS cleave_rule_expect(const cleave_rule_list_t *list, const cleave_rule_test_t *test,
                                 const cleave_plan_t *plan, cleave_text_t *report, cleave_error_t *error);

/* A tensor for an input of a test's graph, as the test says; open sizes are 2. The caller releases it. */
CLEAVE_STATUS cleave_rule_draw_input(const cleave_rule_test_t *test, const cleave_graph_t *graph,
                                     size_t index, cleave_tensor_t **out_tensor, cleave_error_t *error);

/* Gives the values of a test's graph the ranges of a run on such inputs. */
CLEAVE_STATUS cleave_rule_calibrate(const cleave_rule_test_t *test, cleave_graph_t *graph, int32_t threads,
                                    cleave_error_t *error);

/* Runs a plan and the plan's source, and compares; appends to `report` what differs, or why nothing could be
 * compared. `options` may be NULL. */
CLEAVE_STATUS cleave_rule_equal(const cleave_rule_test_t *test, const cleave_plan_t *plan,
                                const cleave_rule_check_options_t *options, cleave_text_t *report,
                                cleave_error_t *error);

/* Compares the gradients of the test's inputs by the rules of a list, and those that come with cleave, with
 * finite differences; appends to `report` what differs, or why nothing could be compared. */
CLEAVE_STATUS cleave_rule_gradient(const cleave_rule_list_t *list, const cleave_rule_test_t *test,
                                   const cleave_graph_t *graph, int32_t threads, cleave_text_t *report,
                                   cleave_error_t *error);

/* Adds lints about rules that never got a match, on the graphs of the tests and on the models; the counts of
 * `check->reach` for tests are there already. */
CLEAVE_STATUS cleave_rule_lint_reach(cleave_rule_check_t *check, const cleave_rule_source_t *source,
                                     const cleave_rule_check_options_t *options, cleave_error_t *error);

/* A file loaded with settings of which later ones win, and with those of a test (may be NULL) after them;
 * settings that the file does not declare are passed over. The list must be deinitialised. */
CLEAVE_STATUS cleave_rule_check_load(const cleave_rule_source_t *source,
                                     const cleave_rule_check_options_t *options,
                                     const cleave_rule_test_t *test, cleave_rule_list_t *list,
                                     cleave_error_t *error);

/* Graph of a test in `list`, as models are. */
CLEAVE_STATUS cleave_rule_check_build(cleave_rule_list_t *list, uint32_t test_index,
                                      cleave_graph_t **out_graph, cleave_error_t *error);

/* Are all backends in this program that the rules of a list would ask? If not: why. */
bool cleave_rule_check_can_run(const cleave_rule_list_t *list, cleave_error_t *reason);

/* Appends how often the gradients of a list were asked; those that carry none count as asked. */
void cleave_rule_check_count_gradients(cleave_rule_check_t *check, const cleave_rule_list_t *list);

/* Appends to the counts of a check what a plan says. */
CLEAVE_STATUS cleave_rule_check_count(cleave_rule_check_t *check, const cleave_plan_t *plan, bool is_model,
                                      cleave_error_t *error);

#endif /* CLEAVE_TOOLS_RULE_TESTS_RULE_CHECK_H */
