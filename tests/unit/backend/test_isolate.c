// SPDX-License-Identifier: Apache-2.0
// Libraries in processes of their own: they compute what they compute here, and whatever they do there, what
// comes back is an error that says so, or the values of cpu. Each library of tests/hostile does one thing.
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "backend/program/supports.h"
#include "backend/registry/registry.h"
#include "isolate_case.h"
#include "system/clock.h"
#include "unit.h"

#define HOSTILE(name) ISOLATE_HOSTILE(name)
#define LIBRARY(name) CLEAVE_BINARY_DIR "/tests/accelerators/lib" name ".so"

static const cleave_isolation_options_t SHORT = {
    .size = sizeof SHORT, .ask_ms = 200, .compile_ms = 200, .run_ms = 200};

static bool has_ended(int64_t process) {
  for (int k = 0; k < 200; k++) {
    if (kill((pid_t)process, 0) != 0) {
      return true;
    }
    (void)usleep(10000);
  }
  return false;
}

/* ---- what works ---- */

UNIT_TEST(an_isolated_library_runs_regions) {
  isolate_case_load(LIBRARY("good"), ISOLATE_APART, NULL);
  cleave_isolation_t isolation = isolate_case_isolation("good");
  ck_assert(isolation.is_isolated && !isolation.is_lost);
  ck_assert_int_gt(isolation.process, 0);
  ck_assert_int_ne(isolation.process, getpid());
  ck_assert(!isolate_case_isolation("cpu").is_isolated);
  session_case_t c = isolate_case_compiled("good");
  for (int run = 0; run < 3; run++) {
    isolate_case_run(&c);
  }
  unit_fails(cleave_registry_unload(NULL, "good", e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "backend 'good' is in use: 1 compiled program of it live");
  session_case_deinit(&c);
  isolate_case_unload("good");
  isolate_case_check_no_children();
}

UNIT_TEST(other_values_are_those_of_the_library) {
  isolate_case_load(LIBRARY("wrong"), ISOLATE_APART, NULL);
  session_case_t c = isolate_case_compiled("wrong");
  session_case_run(&c);
  ck_assert_float_eq(session_case_value(&c, 1, 1), 2.25f);
  session_case_deinit(&c);
}

UNIT_TEST(older_and_newer_minor_versions_run_isolated) {
  static const char *const NAMES[] = {"required_only", "newer_minor"};
  isolate_case_load(LIBRARY("required_only"), ISOLATE_APART, NULL);
  isolate_case_load(LIBRARY("newer_minor"), ISOLATE_APART, NULL);
  for (size_t k = 0; k < 2; k++) {
    session_case_t c = isolate_case_compiled(NAMES[k]);
    isolate_case_run(&c);
    session_case_deinit(&c);
  }
}

UNIT_TEST(refusals_read_as_they_do_in_this_process) {
  static const char *const PATHS[] = {LIBRARY("other_major"),
                                      LIBRARY("half"),
                                      LIBRARY("no_device"),
                                      LIBRARY("refuses"),
                                      LIBRARY("no_entry"),
                                      LIBRARY("missing"),
                                      LIBRARY("bad_name"),
                                      CLEAVE_SOURCE_DIR "/README.md",
                                      "/dev/null"};
  for (size_t k = 0; k < sizeof PATHS / sizeof PATHS[0]; k++) {
    cleave_error_t here = CLEAVE_ERROR_INIT;
    cleave_error_t there = CLEAVE_ERROR_INIT;
    ck_assert_int_ne(cleave_backend_load(NULL, PATHS[k], NULL, &here), CLEAVE_OK);
    ck_assert_int_ne(cleave_backend_load_isolated(NULL, PATHS[k], NULL, NULL, &there), CLEAVE_OK);
    ck_assert_str_eq(there.message, here.message);
    ck_assert_int_eq(there.status, here.status);
  }
  isolate_case_check_no_children();
}

UNIT_TEST(libraries_are_isolated_by_name_whoever_loads_them) {
  unit_fails(cleave_backend_isolate(NULL, "cpu", NULL, e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "backend 'cpu' is linked in: it cannot be isolated");
  unit_ok(cleave_backend_isolate(NULL, "good", NULL, e));
  unit_ok(cleave_backend_isolate(NULL, "second", NULL, e));
  unit_ok(cleave_backend_load(NULL, LIBRARY("good"), NULL, e));
  unit_ok(cleave_backend_load(NULL, LIBRARY("wrong"), NULL, e));
  unit_ok(cleave_backend_load(NULL, LIBRARY("wrong"), "second", e));
  ck_assert(isolate_case_isolation("good").is_isolated);
  ck_assert(!isolate_case_isolation("wrong").is_isolated);
  ck_assert(isolate_case_isolation("second").is_isolated);
  unit_fails(cleave_backend_isolate(NULL, "wrong", NULL, e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "backend 'wrong' is loaded already: isolate it before");
  unit_fails_with(cleave_backend_load_isolated(NULL, LIBRARY("wrong"), NULL, NULL, e),
                  CLEAVE_ERROR_INVALID_ARGUMENT, "is loaded already, and not isolated: unload 'wrong' first");
}

/* ---- what does not ---- */

typedef struct misdeed {
  const char *path;
  const char *name;
  const char *message; /* of the run */
} misdeed_t;

#define MISDEED(name, message) \
  { HOSTILE(name), name, "library '" name "' " message }

static const misdeed_t IN_RUN[] = {
    MISDEED("crash_run", "crashed (segmentation fault at 0x10) while running region '"),
    MISDEED("abort_run", "crashed (abort) while running region '"),
    MISDEED("exit_run", "ended its process (exit status "),
    MISDEED("closes", "closed the descriptors of its process while running region '"),
    MISDEED("forks_crash", "crashed (segmentation fault at 0x10) while running region '"),
    MISDEED("prints_on", "crashed (segmentation fault at 0x10) while running region '"),
    MISDEED("writes_behind", "wrote 16 bytes behind the end of output 0 while running region '"),
    MISDEED("writes_before", "wrote 16 bytes before output 0 while running region '"),
    MISDEED("writes_far", "wrote byte "),
    MISDEED("writes_input", "wrote into input 0 (segmentation fault at 0x"),
    MISDEED("writes_workspace", "wrote 8 bytes behind the end of the workspace while running region '"),
};

enum { IN_RUN_COUNT = sizeof IN_RUN / sizeof IN_RUN[0] };

UNIT_TEST(a_library_that_misbehaves_in_a_run_is_named_with_its_region) {
  for (size_t k = 0; k < IN_RUN_COUNT; k++) {
    isolate_case_load(IN_RUN[k].path, ISOLATE_APART, NULL);
    int64_t process = isolate_case_isolation(IN_RUN[k].name).process;
    session_case_t c = isolate_case_compiled(IN_RUN[k].name);
    float before[ISOLATE_COUNT];
    memcpy(before, c.inputs[0]->data, sizeof before);
    unit_fails_with(cleave_session_run(c.session, e), CLEAVE_ERROR_BACKEND, IN_RUN[k].message);
    unit_fails_with(cleave_session_run(c.session, e), CLEAVE_ERROR_BACKEND, "region 'island_0' on ");
    ck_assert_int_eq(memcmp(before, c.inputs[0]->data, sizeof before), 0);
    cleave_isolation_t isolation = isolate_case_isolation(IN_RUN[k].name);
    ck_assert(isolation.is_lost && isolation.process == -1);
    ck_assert_msg(strstr(isolation.reason, IN_RUN[k].message) != NULL, "%s", isolation.reason);
    ck_assert(has_ended(process));
    session_case_deinit(&c);
    isolate_case_unload(IN_RUN[k].name);
    isolate_case_check_no_children();
  }
}

UNIT_TEST(cpu_takes_over_from_a_library_that_misbehaves_in_a_run) {
  for (size_t k = 0; k < IN_RUN_COUNT; k++) {
    isolate_case_load(IN_RUN[k].path, ISOLATE_FALLING, NULL);
    session_case_t c = isolate_case_compiled(IN_RUN[k].name);
    for (int run = 0; run < 3; run++) {
      isolate_case_run(&c);
    }
    ck_assert_uint_eq(cleave_session_note_count(c.session), 2);
    ck_assert_ptr_nonnull(strstr(cleave_session_note(c.session, 0), "runs on cpu from run 1 on, not on "));
    ck_assert_ptr_nonnull(strstr(cleave_session_note(c.session, 1), IN_RUN[k].message));
    session_case_deinit(&c);
    isolate_case_unload(IN_RUN[k].name);
  }
  isolate_case_check_no_children();
}

UNIT_TEST(a_library_may_crash_in_a_later_run) {
  isolate_case_load(HOSTILE("crash_later"), ISOLATE_FALLING, NULL);
  session_case_t c = isolate_case_compiled("crash_later");
  for (int run = 0; run < 4; run++) {
    isolate_case_run(&c);
    ck_assert_uint_eq(cleave_session_note_count(c.session), run == 0 ? 0 : 2);
  }
  session_case_deinit(&c);
}

UNIT_TEST(outputs_are_added_to_in_the_process_and_on_cpu_after_it) {
  static _Alignas(64) float sums[ISOLATE_COUNT];
  isolate_case_load(HOSTILE("adds_later"), ISOLATE_FALLING, NULL);
  session_case_t c = session_case_create();
  cleave_value_t x = session_case_input(&c, "x", CLEAVE_DTYPE_F32, 2, isolate_case_dims);
  session_case_output(&c, session_case_node(&c, "Relu", "y", x, CLEAVE_VALUE_NONE, CLEAVE_VALUE_NONE));
  session_case_infer(&c);
  session_case_partition(&c, "Relu", "adds_later");
  session_case_feed(&c, 2, isolate_case_dims, isolate_case_data);
  session_case_compile(&c, NULL);
  cleave_tensor_view_t view = c.views[0];
  view.data = sums;
  unit_ok(cleave_session_set_output(c.session, 0, &view, CLEAVE_REQUEST_ADD, e));
  for (int run = 1; run <= 4; run++) {
    session_case_run(&c);
    for (int k = 0; k < ISOLATE_COUNT; k++) {
      ck_assert_float_eq(sums[k], isolate_case_data[k] > 0.0f ? (float)run * isolate_case_data[k] : 0.0f);
    }
    ck_assert_uint_eq(cleave_session_note_count(c.session), run == 1 ? 0 : 1);
  }
  session_case_deinit(&c);
}

UNIT_TEST(a_library_that_hangs_is_ended) {
  uint64_t start = cleave_clock_now();
  unit_fails_with(cleave_backend_load_isolated(NULL, HOSTILE("hang_start"), NULL, &SHORT, e),
                  CLEAVE_ERROR_BACKEND,
                  "library 'hang_start' did not answer within 0.2 s while initialising");
  unit_ok(cleave_backend_load_isolated(NULL, HOSTILE("hang_run"), NULL, &SHORT, e));
  int64_t process = isolate_case_isolation("hang_run").process;
  session_case_t c = isolate_case_compiled("hang_run");
  unit_fails_with(cleave_session_run(c.session, e), CLEAVE_ERROR_BACKEND,
                  "library 'hang_run' did not answer within 0.2 s while running region 'island_0'");
  uint64_t lost = cleave_clock_now();
  unit_fails_with(cleave_session_run(c.session, e), CLEAVE_ERROR_BACKEND, "did not answer within 0.2 s");
  ck_assert_double_lt(cleave_clock_ms(lost, cleave_clock_now()), 100.0);
  ck_assert_double_lt(cleave_clock_ms(start, cleave_clock_now()), 20000.0);
  ck_assert(has_ended(process));
  session_case_deinit(&c);
  isolate_case_check_no_children();
}

UNIT_TEST(a_library_that_crashes_while_it_is_asked_or_compiles_is_named) {
  isolate_case_load(HOSTILE("crash_supports"), ISOLATE_APART, NULL);
  session_case_t c = session_case_create();
  cleave_value_t x = session_case_input(&c, "x", CLEAVE_DTYPE_F32, 2, isolate_case_dims);
  session_case_output(&c, session_case_node(&c, "Relu", "relu", x, CLEAVE_VALUE_NONE, CLEAVE_VALUE_NONE));
  session_case_infer(&c);
  cleave_supports_t supports;
  cleave_supports_init(&supports, c.graph);
  cleave_node_t node = {0};
  cleave_fusion_set_t set = {.nodes = &node, .node_count = 1};
  bool yes = false;
  cleave_reason_t reason;
  unit_fails(cleave_supports_ask(&supports, "crash_supports", c.graph, &set, &yes, &reason, e),
             CLEAVE_ERROR_BACKEND,
             "library 'crash_supports' crashed (segmentation fault at 0x10) while asked about 'Relu'");
  cleave_supports_deinit(&supports);
  session_case_deinit(&c);

  isolate_case_load(HOSTILE("crash_compile"), ISOLATE_APART, NULL);
  session_case_t d = isolate_case_graph("crash_compile");
  d.pointers[0] = &d.views[0];
  unit_fails(
      cleave_session_create_planned(d.graph, d.plan, d.pointers, 1, NULL, &d.session, e),
      CLEAVE_ERROR_BACKEND,
      "region 'island_0' on crash_compile: library 'crash_compile' crashed (segmentation fault at 0x10) "
      "while compiling region 'island_0'");
  session_case_deinit(&d);
}

UNIT_TEST(cpu_takes_over_from_a_library_that_does_not_even_start) {
  static const char *const NAMES[] = {"crash_start", "crash_supports", "crash_compile"};
  static const char *const PATHS[] = {HOSTILE("crash_start"), HOSTILE("crash_supports"),
                                      HOSTILE("crash_compile")};
  for (size_t k = 0; k < 3; k++) {
    unit_fails_with(cleave_backend_unload(NULL, NAMES[k], e), CLEAVE_ERROR_INVALID_ARGUMENT,
                    "is not a loaded library");
    isolate_case_load(PATHS[k], ISOLATE_FALLING, NULL);
    session_case_t c = isolate_case_graph(NAMES[k]);
    ck_assert_uint_eq(c.plan->region_count, k == 2 ? 2 : 0);
    session_case_compile(&c, NULL);
    isolate_case_run(&c);
    session_case_deinit(&c);
  }
}

UNIT_TEST(nonsense_from_a_library_is_an_error_and_no_more) {
  isolate_case_load(HOSTILE("bad_status"), ISOLATE_APART, NULL);
  session_case_t c = isolate_case_compiled("bad_status");
  unit_fails_with(cleave_session_run(c.session, e), CLEAVE_ERROR_BACKEND,
                  "region 'island_0' on bad_status: xxx");
  ck_assert(!isolate_case_isolation("bad_status").is_lost);
  session_case_deinit(&c);
  isolate_case_load(HOSTILE("huge_info"), ISOLATE_APART, NULL);
  session_case_t d = isolate_case_compiled("huge_info");
  ck_assert_ptr_nonnull(strstr(cleave_session_note(d.session, 0), "bytes of workspace: there is no memory"));
  isolate_case_run(&d);
  session_case_deinit(&d);
}

/* ---- what a library says ---- */

typedef struct log_lines {
  pthread_mutex_t lock;
  uint32_t printed;
  uint32_t said;
  char last[512];
} log_lines_t;

static void take_line(void *context, cleave_log_level_t level, const char *line) {
  log_lines_t *lines = context;
  (void)pthread_mutex_lock(&lines->lock);
  lines->printed += level == CLEAVE_LOG_DETAIL && strstr(line, "library 'prints' prints: line ") != NULL;
  lines->said += level == CLEAVE_LOG_INFORMATION && strcmp(line, "still here") == 0;
  (void)snprintf(lines->last, sizeof lines->last, "%s", line);
  (void)pthread_mutex_unlock(&lines->lock);
}

UNIT_TEST(what_a_library_prints_and_logs_goes_to_the_log) {
  static log_lines_t lines = {.lock = PTHREAD_MUTEX_INITIALIZER};
  cleave_context_set_log(NULL, take_line, &lines);
  isolate_case_load(HOSTILE("prints"), ISOLATE_APART, NULL);
  session_case_t c = isolate_case_compiled("prints");
  isolate_case_run(&c);
  session_case_deinit(&c);
  isolate_case_unload("prints");
  ck_assert_uint_eq(lines.printed, 2 * 2000);
  isolate_case_load(HOSTILE("threads"), ISOLATE_APART, NULL);
  session_case_t d = isolate_case_compiled("threads");
  for (int run = 0; run < 20; run++) {
    session_case_run(&d);
    (void)usleep(1000);
  }
  isolate_case_check(&d);
  session_case_deinit(&d);
  isolate_case_unload("threads");
  ck_assert_uint_gt(lines.said, 5);
  cleave_context_set_log(NULL, NULL, NULL);
  isolate_case_check_no_children();
}

/* ---- again and again ---- */

UNIT_TEST(loading_again_starts_a_new_process_for_new_sessions) {
  cleave_session_options_t options = {.size = sizeof options};
  unit_ok(cleave_program_cache_create(&options.programs, e));
  isolate_case_load(HOSTILE("crash_later"), ISOLATE_APART, NULL);
  session_case_t old = isolate_case_graph("crash_later");
  session_case_compile(&old, &options);
  session_case_run(&old);
  unit_fails_with(cleave_session_run(old.session, e), CLEAVE_ERROR_BACKEND, "crashed");
  isolate_case_load(HOSTILE("crash_later"), ISOLATE_APART, NULL);
  ck_assert(!isolate_case_isolation("crash_later").is_lost);
  unit_fails_with(cleave_session_run(old.session, e), CLEAVE_ERROR_BACKEND, "crashed");
  session_case_t fresh = isolate_case_graph("crash_later");
  session_case_compile(&fresh, &options);
  isolate_case_run(&fresh);
  session_case_deinit(&fresh);
  session_case_deinit(&old);
  cleave_program_cache_release(options.programs);
  isolate_case_unload("crash_later");
  isolate_case_check_no_children();
}

/* Sanitizers keep what is freed for a while. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { MAX_GROWTH = 1 << 16 };
#else
enum { MAX_GROWTH = 256 };
#endif

UNIT_TEST(nothing_is_left_of_many_processes) {
  enum { ROUNDS = 60, SETTLED = 20 };
  size_t before = 0;
  long pages = 0;
  for (int round = 0; round < ROUNDS; round++) {
    const misdeed_t *misdeed = &IN_RUN[round % IN_RUN_COUNT];
    bool is_good = round % 2 == 0;
    isolate_case_load(is_good ? LIBRARY("good") : misdeed->path, ISOLATE_FALLING, NULL);
    session_case_t c = isolate_case_compiled(is_good ? "good" : misdeed->name);
    isolate_case_run(&c);
    session_case_deinit(&c);
    isolate_case_unload(is_good ? "good" : misdeed->name);
    if (round == SETTLED) {
      before = isolate_case_descriptors();
      pages = isolate_case_pages();
    }
  }
  ck_assert_uint_eq(isolate_case_descriptors(), before);
  ck_assert_int_lt(isolate_case_pages() - pages, MAX_GROWTH);
  isolate_case_check_no_children();
}

/* Allocation 0, 1, 2, ... of this process fails, and all after it. */
UNIT_TEST(without_memory_nothing_is_left_and_no_more_goes_wrong) {
  cleave_status_t status = CLEAVE_ERROR_OUT_OF_MEMORY;
  int64_t failures = 0;
  while (status != CLEAVE_OK) {
    (void)cleave_memory_fail_after(failures++);
    status = cleave_backend_load_isolated(NULL, LIBRARY("good"), NULL, NULL, NULL);
    (void)cleave_memory_fail_after(-1);
    ck_assert(status == CLEAVE_OK || status == CLEAVE_ERROR_OUT_OF_MEMORY);
    ck_assert_int_lt(failures, 1000);
  }
  ck_assert_int_gt(failures, 5);
  session_case_t c = isolate_case_graph("good");
  c.pointers[0] = &c.views[0];
  status = CLEAVE_ERROR_OUT_OF_MEMORY;
  for (failures = 0; status != CLEAVE_OK; failures++) {
    cleave_session_t *session = NULL;
    (void)cleave_memory_fail_after(failures);
    status = cleave_session_create_planned(c.graph, c.plan, c.pointers, 1, NULL, &session, NULL);
    (void)cleave_memory_fail_after(-1);
    ck_assert(status == CLEAVE_OK || status == CLEAVE_ERROR_OUT_OF_MEMORY);
    ck_assert_int_lt(failures, 1000);
    cleave_session_destroy(session);
  }
  ck_assert(!isolate_case_isolation("good").is_lost);
  session_case_compile(&c, NULL);
  isolate_case_run(&c);
  session_case_deinit(&c);
  isolate_case_unload("good");
  isolate_case_check_no_children();
}

UNIT_SUITE("isolate")
