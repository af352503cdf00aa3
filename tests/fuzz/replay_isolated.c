// SPDX-License-Identifier: Apache-2.0
// Libraries in processes of their own whose answers are changed on the way, by fuzz/corrupting_worker.c:
// whatever comes, it is an error or a result, in bounded time, and no process or descriptor is left.
#include "isolate_case.h"
#include "library_case.h"
#include "partition/plan/plan.h"
#include "system/clock.h"
#include "unit.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SEEDS = 60 };
#else
enum { SEEDS = 200 };
#endif

static const cleave_isolation_options_t LIMITS = {
    .size = sizeof LIMITS, .ask_ms = 600, .compile_ms = 600, .run_ms = 600};

/* All that a library may be asked, until something fails. Returns how far it came. */
static int use(cleave_model_t *model, cleave_model_t *other) {
  static const char *const PARTS[][2] = {{"bad_rules/groups", "part=attach"},
                                         {"bad_rules/picker", "part=drop"},
                                         {"bad_rules/change", "pass=all"},
                                         {"bad_rules/change", "pass=self"}};
  static const char REGIONS[] =
      "return ruleset { name = 'r', backend = 'bad_programs', region 'part' { ops = { 'Relu' } } }";
  static const float DATA[6] = {1, 2, 3, 4, 5, 6};
  static const int64_t DIMS[1] = {6};
  const cleave_tensor_view_t view = {
      .size = sizeof view, .dtype = CLEAVE_DTYPE_F32, .rank = 1, .dims = DIMS, .data = DATA};
  const cleave_tensor_view_t *inputs[1] = {&view};
  int steps = 0;
  for (int k = 0; k < 4; k++) {
    cleave_plan_t *plan = NULL;
    steps += library_case_partition(model, PARTS[k][0], PARTS[k][1], NULL, &plan, NULL) == CLEAVE_OK;
    cleave_plan_destroy(plan);
  }
  for (int imperative = 0; imperative < 2; imperative++) {
    const cleave_session_options_t options = {
        .size = sizeof options, .threads = 1, .profile = true, .imperative = imperative == 1};
    cleave_plan_t *plan = NULL;
    cleave_session_t *session = NULL;
    cleave_status_t status = library_case_partition(other, REGIONS, NULL, NULL, &plan, NULL);
    status = status == CLEAVE_OK ? cleave_session_create(other, plan, inputs, 1, &options, &session, NULL)
                                 : status;
    status = status == CLEAVE_OK ? cleave_session_set_input(session, 0, &view, NULL) : status;
    for (int run = 0; run < 3 && status == CLEAVE_OK; run++) {
      status = cleave_session_run(session, NULL);
    }
    steps += status == CLEAVE_OK;
    cleave_session_destroy(session);
    cleave_plan_destroy(plan);
  }
  return steps;
}

UNIT_TEST(answers_that_were_changed_on_the_way_are_errors_or_results) {
  static const char *const NAMES[] = {"bad_rules", "bad_operators", "bad_programs"};
  static const char *const PATHS[] = {ISOLATE_HOSTILE("bad_rules"), ISOLATE_HOSTILE("bad_operators"),
                                      ISOLATE_HOSTILE("bad_programs")};
  int steps = 0;
  int loaded = 0;
  uint64_t start = cleave_clock_now();
  ck_assert_int_eq(setenv("CLEAVE_TEST_WORKER", CLEAVE_BINARY_DIR "/libexec/cleave/cleave_worker", 1), 0);
  ck_assert_int_eq(setenv("CLEAVE_WORKER", CLEAVE_BINARY_DIR "/tests/corrupting_worker", 1), 0);
  size_t descriptors = isolate_case_descriptors();
  for (int seed = 0; seed < SEEDS && cleave_clock_ms(start, cleave_clock_now()) < 60e3; seed++) {
    char text[32];
    bool is_loaded[3];
    (void)snprintf(text, sizeof text, "%d", seed);
    ck_assert_int_eq(setenv("CLEAVE_TEST_SEED", text, 1), 0);
    (void)snprintf(text, sizeof text, "%d", seed % 5 * (seed % 7));
    ck_assert_int_eq(setenv("CLEAVE_TEST_HONEST", text, 1), 0);
    for (int k = 0; k < 3; k++) {
      is_loaded[k] = cleave_backend_load_isolated(NULL, PATHS[k], NAMES[k], &LIMITS, NULL) == CLEAVE_OK;
      loaded += is_loaded[k];
    }
    cleave_model_t *model = library_case_model(
        "local x = g.input('x', 'float32', { 6 })\ng.output('y', g.Abs(g.Exp(g.Log(g.Exp(x)))))");
    cleave_model_t *other = NULL;
    if (is_loaded[1] && is_loaded[2]) {
      other = library_case_model_or_none(
          "local x = g.input('x', 'float32', { 6 })\n"
          "g.output('y', g['bad.op.Twice'](g.Relu(g['bad.op.Places'](g.Relu(x)))))");
    }
    steps += is_loaded[0] && other != NULL ? use(model, other) : 0;
    cleave_model_release(model);
    cleave_model_release(other);
    for (int k = 0; k < 3; k++) {
      if (is_loaded[k]) {
        isolate_case_unload(NAMES[k]);
      }
    }
    isolate_case_check_no_children();
  }
  ck_assert_uint_eq(isolate_case_descriptors(), descriptors);
  ck_assert_int_gt(loaded, SEEDS / 4);
  ck_assert_int_gt(steps, SEEDS / 20);
}

UNIT_SUITE("replay_isolated")
