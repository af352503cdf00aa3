// SPDX-License-Identifier: Apache-2.0
// Partitioners and passes of isolated libraries: the same library gives the same plans and hears the same
// answers in this process and in one of its own; and whatever it does there, the model stays as it was, and
// the error says who it was.
#include "base/memory.h"
#include "isolate_case.h"
#include "library_case.h"
#include "partition/plan/plan.h"
#include "runtime/model/model.h"
#include "unit.h"

#define LIBRARY ISOLATE_HOSTILE("bad_rules")

/* Exp first in every order; Abs is nobody's. */
#define MODEL                                                      \
  "local x = g.input('x', 'float32', { 4 })\n"                     \
  "local a = g.Exp(g.Exp(x, { name = 'e1' }), { name = 'e2' })\n"  \
  "local b = g.Log(a, { name = 'l' })\n"                           \
  "local c = g.Exp(g.Abs(b, { name = 'abs' }), { name = 'e3' })\n" \
  "g.output('y', g.Transpose(c, { perm = { 0 }, name = 't' }))\n"

/* The plan as text, with its values in a run, or the message of the failure. */
static char *plan_of(const char *rules, const char *first, const char *second) {
  cleave_model_t *model = library_case_model(MODEL);
  cleave_plan_t *plan = NULL;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_text_t text = {0};
  size_t nodes = cleave_model_graph(model)->live_node_count;
  cleave_status_t status = library_case_partition(model, rules, first, second, &plan, &error);
  if (status != CLEAVE_OK) {
    cleave_text_add(&text, error.message);
    ck_assert_ptr_null(plan);
  } else {
    char *json = NULL;
    unit_ok(cleave_plan_check(plan, e));
    status = cleave_plan_format(plan, CLEAVE_PLAN_JSON, &json, &error);
    cleave_text_add(&text, status == CLEAVE_OK ? json : error.message);
    cleave_text_free(json);
    cleave_session_options_t options = {.size = sizeof options, .threads = 1};
    cleave_session_t *session =
        library_case_session(model, plan, 1, (int64_t[]){4}, (float[]){-9, 1, -2, 0}, &options);
    unit_ok(cleave_session_run(session, e));
    cleave_tensor_view_t view;
    unit_ok(cleave_session_output(session, 0, &view, e));
    for (int64_t k = 0; k < cleave_view_element_count(&view); k++) {
      cleave_text_format(&text, " %a", (double)((const float *)view.data)[k]);
    }
    cleave_session_destroy(session);
  }
  ck_assert_uint_eq(cleave_model_graph(model)->live_node_count, nodes);
  cleave_plan_destroy(plan);
  cleave_model_release(model);
  char *copy = strdup(cleave_text_get(&text));
  cleave_text_deinit(&text);
  return copy;
}

/* The same plan and the same lines, here and in a process of its own. */
static void compare(const char *rules, const char *first, const char *part) {
  char *here_lines = NULL;
  isolate_case_load(LIBRARY, ISOLATE_HERE, NULL);
  isolate_case_listen();
  char *here = plan_of(rules, first, NULL);
  here_lines = strdup(isolate_case_lines());
  isolate_case_unload("bad_rules");
  isolate_case_load(LIBRARY, ISOLATE_APART, NULL);
  isolate_case_listen();
  char *apart = plan_of(rules, first, NULL);
  ck_assert_str_eq(apart, here);
  ck_assert_str_eq(isolate_case_lines(), here_lines);
  ck_assert_msg(strstr(here, part) != NULL || strstr(here_lines, part) != NULL,
                "%s, %s: '%s' is not in\n%s%s", rules, first, part, here, here_lines);
  isolate_case_unload("bad_rules");
  free(here);
  free(apart);
  free(here_lines);
}

/* ---- what is the same ---- */

UNIT_TEST(partitioners_make_the_same_plans_in_both_processes) {
  static const char *const CASES[][3] = {
      {"bad_rules/groups", "part=well", "groups_1"},
      {"bad_rules/groups", "part=group", "has group -9223"},
      {"bad_rules/groups", "part=status", "as asked for"},
      {"bad_rules/groups", "part=attach", "\"8\""},
      {"bad_rules/groups", "part=again", "v4999"},
      {"bad_rules/groups", "part=nameless", "attribute '' expected a name"},
      {"bad_rules/groups", "part=many", "is more than 256 attributes"},
      {"bad_rules/groups", "part=refuse", "one is none"},
      {"bad_rules/groups", "part=drop", "keeps none of its nodes"},
      {"bad_rules/picker", "part=well", "picker_1"},
      {"bad_rules/picker", "part=drop", "dropped by filter"},
      {"bad_rules", "pass=all", "half of it"}};
  for (size_t k = 0; k < sizeof CASES / sizeof CASES[0]; k++) {
    compare(CASES[k][0], CASES[k][1], CASES[k][2]);
  }
  isolate_case_check_no_children();
}

UNIT_TEST(steps_of_a_pass_are_checked_as_in_this_process) {
  static const char *const CASES[][2] = {
      {"pass=all", "add_constant(g->graph, \"half\", &half, &constant, &said): 0"},
      {"pass=input", "the graph has this name already"},
      {"pass=wrong", "node 100000 does not exist"},
      {"pass=removed", "does not exist"},
      {"pass=self", "\"Same\""},
      {"pass=fail", "change' of library 'bad_rules': run: enough of it"},
      {"pass=large", "have more than 64 MiB"},
  };
  for (size_t k = 0; k < sizeof CASES / sizeof CASES[0]; k++) {
    compare("bad_rules/change", CASES[k][0], CASES[k][1]);
  }
  isolate_case_check_no_children();
}

UNIT_TEST(what_is_wrong_with_lists_is_said_as_in_this_process) {
  static const char *const CASES[] = {"operators",         "partitioners",  "passes",       "small",
                                      "many operators",    "many passes",   "no operators", "no partitioners",
                                      "no files",          "null operator", "null pass",    "small operator",
                                      "small partitioner", "small pass",    "texts"};
  for (size_t k = 0; k < sizeof CASES / sizeof CASES[0]; k++) {
    cleave_error_t here = CLEAVE_ERROR_INIT;
    cleave_error_t there = CLEAVE_ERROR_INIT;
    ck_assert_int_eq(setenv("CLEAVE_TEST_MISDEED", CASES[k], 1), 0);
    ck_assert_int_ne(cleave_backend_load(NULL, ISOLATE_HOSTILE("bad_lists"), NULL, &here), CLEAVE_OK);
    ck_assert_int_ne(cleave_backend_load_isolated(NULL, ISOLATE_HOSTILE("bad_lists"), NULL, NULL, &there),
                     CLEAVE_OK);
    ck_assert_str_eq(there.message, here.message);
    ck_assert_int_eq(there.status, here.status);
  }
  isolate_case_load(ISOLATE_HOSTILE("bad_lists"), ISOLATE_APART, NULL);
  isolate_case_unload("bad_lists");
  isolate_case_check_no_children();
}

/* ---- misdeeds ---- */

typedef struct misdeed {
  const char *rules;
  const char *setting;
  const char *message;
} misdeed_t;

static const misdeed_t CRASHES[] = {
    {"bad_rules/groups", "part=crash supported", "while in 'supported' of partitioner 'groups'"},
    {"bad_rules/groups", "part=crash review", "while in 'review' of partitioner 'groups'"},
    {"bad_rules/picker", "part=crash create", "while in 'create_selector' of partitioner 'picker'"},
    {"bad_rules/picker", "part=crash select", "while selecting for partitioner 'picker'"},
    {"bad_rules/picker", "part=crash input", "while selecting for partitioner 'picker'"},
    {"bad_rules/picker", "part=crash output", "while selecting for partitioner 'picker'"},
    {"bad_rules/picker", "part=crash filter", "while in 'filter' of partitioner 'picker'"},
    {"bad_rules/picker", "part=crash destroy", "while in 'destroy_selector' of partitioner 'picker'"},
};

enum { CRASH_COUNT = sizeof CRASHES / sizeof CRASHES[0] };

UNIT_TEST(a_partitioner_that_crashes_is_named_and_ends_the_partitioning) {
  for (size_t k = 0; k < CRASH_COUNT; k++) {
    isolate_case_load(LIBRARY, ISOLATE_APART, NULL);
    char *found = plan_of(CRASHES[k].rules, CRASHES[k].setting, NULL);
    ck_assert_msg(strstr(found, "library 'bad_rules' crashed (segmentation fault at 0x10)") != NULL &&
                      strstr(found, CRASHES[k].message) != NULL,
                  "%s: %s", CRASHES[k].setting, found);
    free(found);
    isolate_case_unload("bad_rules");
  }
  isolate_case_check_no_children();
}

UNIT_TEST(without_a_partitioner_that_crashed_cpu_runs_the_rest) {
  for (size_t k = 0; k < CRASH_COUNT; k++) {
    isolate_case_load(LIBRARY, ISOLATE_FALLING, NULL);
    char *found = plan_of(CRASHES[k].rules, CRASHES[k].setting, NULL);
    ck_assert_msg(strstr(found, "\"regions\"") != NULL, "%s: %s", CRASHES[k].setting, found);
    free(found);
    isolate_case_unload("bad_rules");
  }
  isolate_case_check_no_children();
}

UNIT_TEST(a_partitioner_that_hangs_is_ended) {
  static const misdeed_t HANGS[] = {
      {"bad_rules/groups", "part=hang supported", "while in 'supported' of partitioner 'groups'"},
      {"bad_rules/picker", "part=hang select", "while selecting for partitioner 'picker'"},
      {"bad_rules/change", "pass=hang pass", "while in pass 'change'"},
      {"bad_rules/change", "pass=endless", "while in pass 'change'"},
  };
  for (size_t k = 0; k < sizeof HANGS / sizeof HANGS[0]; k++) {
    isolate_case_load(LIBRARY, ISOLATE_SHORT, NULL);
    char *found = plan_of(HANGS[k].rules, HANGS[k].setting, NULL);
    ck_assert_msg(strstr(found, "library 'bad_rules' did not answer within 0.8 s") != NULL &&
                      strstr(found, HANGS[k].message) != NULL,
                  "%s: %s", HANGS[k].setting, found);
    free(found);
    isolate_case_unload("bad_rules");
  }
  isolate_case_check_no_children();
}

UNIT_TEST(a_pass_that_crashes_leaves_no_plan_with_or_without_fallback) {
  static const misdeed_t CASES[] = {
      {"bad_rules/change", "pass=crash pass", "crashed (segmentation fault at 0x10) while in pass 'change'"},
      {"bad_rules/change", "pass=halfway", "crashed (segmentation fault at 0x10) while in pass 'change'"},
      {"bad_rules/change", "pass=frames", "sent a malformed answer while in pass 'change'"},
  };
  for (size_t k = 0; k < 2 * sizeof CASES / sizeof CASES[0]; k++) {
    const misdeed_t *misdeed = &CASES[k / 2];
    isolate_case_load(LIBRARY, k % 2 == 0 ? ISOLATE_APART : ISOLATE_FALLING, NULL);
    char *found = plan_of(misdeed->rules, misdeed->setting, NULL);
    ck_assert_msg(strstr(found, misdeed->message) != NULL, "%s: %s", misdeed->setting, found);
    free(found);
    isolate_case_unload("bad_rules");
  }
  isolate_case_load(LIBRARY, ISOLATE_APART, "crash within");
  char *found = plan_of("bad_rules/change", "pass=self", NULL);
  ck_assert_msg(
      strstr(found,
             "crashed (segmentation fault at 0x10) while inferring types of operator 'bad.rules.Same'") !=
          NULL,
      "%s", found);
  free(found);
  isolate_case_unload("bad_rules");
  isolate_case_check_no_children();
}

UNIT_TEST(an_editor_is_of_no_use_after_its_pass) {
  isolate_case_load(LIBRARY, ISOLATE_APART, NULL);
  isolate_case_listen();
  char *found = plan_of("bad_rules", "part=late", "pass=late");
  ck_assert_ptr_nonnull(strstr(found, "\"regions\""));
  ck_assert_ptr_nonnull(
      strstr(isolate_case_lines(), "remove_node(kept->graph, 0, &said): 1 the pass is over"));
  ck_assert_ptr_null(strstr(isolate_case_lines(), "INTERNAL): 11"));
  free(found);
  isolate_case_unload("bad_rules");
}

/* ---- memory ---- */

/* Allocation 0, 1, 2, ... of this process fails, and all after it: while the library is loaded, and while its
 * rules are at work. A process that cannot be answered is lost, and started again. */
UNIT_TEST(without_memory_nothing_is_left_and_no_more_goes_wrong) {
  static const char *const CASES[][2] = {
      {"bad_rules/change", "pass=all"}, {"bad_rules/change", "pass=self"}, {"bad_rules", "part=attach"}};
  cleave_status_t status = CLEAVE_ERROR_OUT_OF_MEMORY;
  ck_assert_int_eq(setenv("CLEAVE_TEST_MISDEED", "", 1), 0);
  for (int64_t failures = 0; status != CLEAVE_OK; failures++) {
    (void)cleave_memory_fail_after(failures);
    cleave_error_t error = CLEAVE_ERROR_INIT;
    status = cleave_backend_load_isolated(NULL, LIBRARY, NULL, NULL, &error);
    (void)cleave_memory_fail_after(-1);
    ck_assert_msg(status == CLEAVE_OK || status == CLEAVE_ERROR_OUT_OF_MEMORY, "%s", error.message);
    ck_assert_int_lt(failures, 1000);
  }
  for (size_t k = 0; k < 3; k++) {
    cleave_model_t *model = library_case_model(MODEL);
    status = CLEAVE_ERROR_OUT_OF_MEMORY;
    for (int64_t failures = 0; status != CLEAVE_OK; failures += 1 + failures / 50) {
      cleave_plan_t *plan = NULL;
      (void)cleave_memory_fail_after(failures);
      status = library_case_partition(model, CASES[k][0], CASES[k][1], NULL, &plan, NULL);
      (void)cleave_memory_fail_after(-1);
      ck_assert_int_lt(failures, 100000);
      cleave_plan_destroy(plan);
      isolate_case_revive(LIBRARY, "bad_rules");
    }
    cleave_model_release(model);
  }
  isolate_case_unload("bad_rules");
  isolate_case_check_no_children();
}

UNIT_TEST(a_library_that_was_lost_is_asked_again_when_it_is_loaded_again) {
  isolate_case_load(LIBRARY, ISOLATE_APART, NULL);
  char *before = plan_of("bad_rules/picker", "part=well", NULL);
  char *lost = plan_of("bad_rules/picker", "part=crash select", NULL);
  char *still = plan_of("bad_rules/picker", "part=well", NULL);
  ck_assert_ptr_nonnull(strstr(lost, "while selecting for partitioner 'picker'"));
  ck_assert_ptr_nonnull(strstr(still, "while selecting for partitioner 'picker'"));
  isolate_case_load(LIBRARY, ISOLATE_APART, NULL);
  char *again = plan_of("bad_rules/picker", "part=well", NULL);
  ck_assert_str_eq(again, before);
  isolate_case_unload("bad_rules");
  free(before);
  free(lost);
  free(still);
  free(again);
  isolate_case_check_no_children();
}

UNIT_SUITE("isolate rules")
