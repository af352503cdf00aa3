// SPDX-License-Identifier: Apache-2.0
// Libraries in processes of their own: they compute what they compute here, and whatever they do there, what
// comes back is an error that says so, or the values of cpu. Each library of tests/hostile does one thing.
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/program/supports.h"
#include "backend/registry/registry.h"
#include "isolate_case.h"
#include "session_case.h"
#include "system/clock.h"
#include "unit.h"

#define HOSTILE(name) ISOLATE_HOSTILE(name)
#define LIBRARY(name) CLEAVE_BINARY_DIR "/tests/accelerators/lib" name ".so"

enum { COUNT = 6 };

static const float DATA[COUNT] = {-1.0f, 2.0f, -3.0f, 4.0f, 0.0f, 0.5f};
static const int64_t DIMS[2] = {2, 3};

static const cleave_isolation_options_t FAST = {
    .size = sizeof FAST, .ask_ms = 3000, .compile_ms = 3000, .run_ms = 3000};
static const cleave_isolation_options_t FALLING = {
    .size = sizeof FALLING, .ask_ms = 3000, .compile_ms = 3000, .run_ms = 3000, .fallback = true};
static const cleave_isolation_options_t SHORT = {
    .size = sizeof SHORT, .ask_ms = 200, .compile_ms = 200, .run_ms = 200};

static void load(const char *path, const cleave_isolation_options_t *options) {
  unit_ok(cleave_backend_load_isolated(NULL, path, NULL, options, e));
}

/* x -> Relu -> Neg -> Relu (0 everywhere) and the first Relu as a second output, on `backend`. */
static session_case_t make_case(const char *backend) {
  session_case_t c = session_case_create();
  cleave_value_t x = session_case_input(&c, "x", CLEAVE_DTYPE_F32, 2, DIMS);
  cleave_value_t first = session_case_node(&c, "Relu", "first", x, CLEAVE_VALUE_NONE, CLEAVE_VALUE_NONE);
  cleave_value_t neg = session_case_node(&c, "Neg", "neg", first, CLEAVE_VALUE_NONE, CLEAVE_VALUE_NONE);
  session_case_output(&c, session_case_node(&c, "Relu", "last", neg, CLEAVE_VALUE_NONE, CLEAVE_VALUE_NONE));
  session_case_output(&c, first);
  session_case_infer(&c);
  session_case_partition(&c, "Relu", backend);
  session_case_feed(&c, 2, DIMS, DATA);
  return c;
}

static void check_values(const session_case_t *c) {
  for (int64_t k = 0; k < COUNT; k++) {
    ck_assert_float_eq(session_case_value(c, 1, k), DATA[k] > 0.0f ? DATA[k] : 0.0f);
    ck_assert_float_eq(session_case_value(c, 0, k), 0.0f);
  }
}

static cleave_isolation_t isolation_of(const char *name) {
  cleave_isolation_t isolation;
  unit_ok(cleave_backend_isolation(NULL, name, &isolation, e));
  return isolation;
}

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
  load(LIBRARY("good"), &FAST);
  cleave_isolation_t isolation = isolation_of("good");
  ck_assert(isolation.is_isolated && !isolation.is_lost);
  ck_assert_int_gt(isolation.process, 0);
  ck_assert_int_ne(isolation.process, getpid());
  ck_assert(!isolation_of("cpu").is_isolated);
  session_case_t c = make_case("good");
  session_case_compile(&c, NULL);
  for (int run = 0; run < 3; run++) {
    session_case_run(&c);
    check_values(&c);
  }
  unit_fails(cleave_registry_unload(NULL, "good", e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "backend 'good' is in use: 1 compiled program of it live");
  session_case_deinit(&c);
  unit_ok(cleave_registry_unload(NULL, "good", e));
  isolate_case_check_no_children();
}

UNIT_TEST(other_values_are_those_of_the_library) {
  load(LIBRARY("wrong"), NULL);
  session_case_t c = make_case("wrong");
  session_case_compile(&c, NULL);
  session_case_run(&c);
  ck_assert_float_eq(session_case_value(&c, 1, 1), 2.25f);
  session_case_deinit(&c);
}

UNIT_TEST(older_and_newer_minor_versions_run_isolated) {
  static const char *const NAMES[] = {"required_only", "newer_minor"};
  load(LIBRARY("required_only"), &FAST);
  load(LIBRARY("newer_minor"), &FAST);
  for (size_t k = 0; k < 2; k++) {
    session_case_t c = make_case(NAMES[k]);
    session_case_compile(&c, NULL);
    session_case_run(&c);
    check_values(&c);
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
    ck_assert_int_ne(cleave_backend_load_isolated(NULL, PATHS[k], NULL, &FAST, &there), CLEAVE_OK);
    ck_assert_str_eq(there.message, here.message);
    ck_assert_int_eq(there.status, here.status);
  }
  isolate_case_check_no_children();
}

UNIT_TEST(libraries_are_isolated_by_name_whoever_loads_them) {
  unit_fails(cleave_backend_isolate(NULL, "cpu", NULL, e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "backend 'cpu' is linked in: it cannot be isolated");
  unit_ok(cleave_backend_isolate(NULL, "good", &FAST, e));
  unit_ok(cleave_backend_isolate(NULL, "second", &FAST, e));
  unit_ok(cleave_backend_load(NULL, LIBRARY("good"), NULL, e));
  unit_ok(cleave_backend_load(NULL, LIBRARY("wrong"), NULL, e));
  unit_ok(cleave_backend_load(NULL, LIBRARY("wrong"), "second", e));
  ck_assert(isolation_of("good").is_isolated);
  ck_assert(!isolation_of("wrong").is_isolated);
  ck_assert(isolation_of("second").is_isolated);
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
    load(IN_RUN[k].path, &FAST);
    int64_t process = isolation_of(IN_RUN[k].name).process;
    session_case_t c = make_case(IN_RUN[k].name);
    session_case_compile(&c, NULL);
    float before[COUNT];
    memcpy(before, c.inputs[0]->data, sizeof before);
    unit_fails_with(cleave_session_run(c.session, e), CLEAVE_ERROR_BACKEND, IN_RUN[k].message);
    unit_fails_with(cleave_session_run(c.session, e), CLEAVE_ERROR_BACKEND, "region 'island_0' on ");
    ck_assert_int_eq(memcmp(before, c.inputs[0]->data, sizeof before), 0);
    cleave_isolation_t isolation = isolation_of(IN_RUN[k].name);
    ck_assert(isolation.is_lost && isolation.process == -1);
    ck_assert_msg(strstr(isolation.reason, IN_RUN[k].message) != NULL, "%s", isolation.reason);
    ck_assert(has_ended(process));
    session_case_deinit(&c);
    unit_ok(cleave_registry_unload(NULL, IN_RUN[k].name, e));
    isolate_case_check_no_children();
  }
}

UNIT_TEST(cpu_takes_over_from_a_library_that_misbehaves_in_a_run) {
  for (size_t k = 0; k < IN_RUN_COUNT; k++) {
    load(IN_RUN[k].path, &FALLING);
    session_case_t c = make_case(IN_RUN[k].name);
    session_case_compile(&c, NULL);
    for (int run = 0; run < 3; run++) {
      session_case_run(&c);
      check_values(&c);
    }
    ck_assert_uint_eq(cleave_session_note_count(c.session), 2);
    ck_assert_ptr_nonnull(strstr(cleave_session_note(c.session, 0), "runs on cpu from run 1 on, not on "));
    ck_assert_ptr_nonnull(strstr(cleave_session_note(c.session, 1), IN_RUN[k].message));
    session_case_deinit(&c);
    unit_ok(cleave_registry_unload(NULL, IN_RUN[k].name, e));
  }
  isolate_case_check_no_children();
}

UNIT_TEST(a_library_may_crash_in_a_later_run) {
  load(HOSTILE("crash_later"), &FALLING);
  session_case_t c = make_case("crash_later");
  session_case_compile(&c, NULL);
  for (int run = 0; run < 4; run++) {
    session_case_run(&c);
    check_values(&c);
    ck_assert_uint_eq(cleave_session_note_count(c.session), run == 0 ? 0 : 2);
  }
  session_case_deinit(&c);
}

UNIT_TEST(outputs_are_added_to_in_the_process_and_on_cpu_after_it) {
  static _Alignas(64) float sums[COUNT];
  load(HOSTILE("adds_later"), &FALLING);
  session_case_t c = session_case_create();
  cleave_value_t x = session_case_input(&c, "x", CLEAVE_DTYPE_F32, 2, DIMS);
  session_case_output(&c, session_case_node(&c, "Relu", "y", x, CLEAVE_VALUE_NONE, CLEAVE_VALUE_NONE));
  session_case_infer(&c);
  session_case_partition(&c, "Relu", "adds_later");
  session_case_feed(&c, 2, DIMS, DATA);
  session_case_compile(&c, NULL);
  cleave_tensor_view_t view = c.views[0];
  view.data = sums;
  unit_ok(cleave_session_set_output(c.session, 0, &view, CLEAVE_REQUEST_ADD, e));
  for (int run = 1; run <= 4; run++) {
    session_case_run(&c);
    for (int k = 0; k < COUNT; k++) {
      ck_assert_float_eq(sums[k], DATA[k] > 0.0f ? (float)run * DATA[k] : 0.0f);
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
  load(HOSTILE("hang_run"), &SHORT);
  int64_t process = isolation_of("hang_run").process;
  session_case_t c = make_case("hang_run");
  session_case_compile(&c, NULL);
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
  load(HOSTILE("crash_supports"), &FAST);
  session_case_t c = session_case_create();
  cleave_value_t x = session_case_input(&c, "x", CLEAVE_DTYPE_F32, 2, DIMS);
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

  load(HOSTILE("crash_compile"), &FAST);
  session_case_t d = make_case("crash_compile");
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
    load(PATHS[k], &FALLING);
    session_case_t c = make_case(NAMES[k]);
    ck_assert_uint_eq(c.plan->region_count, k == 2 ? 2 : 0);
    session_case_compile(&c, NULL);
    session_case_run(&c);
    check_values(&c);
    session_case_deinit(&c);
  }
}

UNIT_TEST(nonsense_from_a_library_is_an_error_and_no_more) {
  load(HOSTILE("bad_status"), &FAST);
  session_case_t c = make_case("bad_status");
  session_case_compile(&c, NULL);
  unit_fails_with(cleave_session_run(c.session, e), CLEAVE_ERROR_BACKEND,
                  "region 'island_0' on bad_status: xxx");
  ck_assert(!isolation_of("bad_status").is_lost);
  session_case_deinit(&c);
  load(HOSTILE("huge_info"), &FAST);
  session_case_t d = make_case("huge_info");
  session_case_compile(&d, NULL);
  ck_assert_ptr_nonnull(strstr(cleave_session_note(d.session, 0), "bytes of workspace: there is no memory"));
  session_case_run(&d);
  check_values(&d);
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
  load(HOSTILE("prints"), &FAST);
  session_case_t c = make_case("prints");
  session_case_compile(&c, NULL);
  session_case_run(&c);
  check_values(&c);
  session_case_deinit(&c);
  unit_ok(cleave_registry_unload(NULL, "prints", e));
  ck_assert_uint_eq(lines.printed, 2 * 2000);
  load(HOSTILE("threads"), &FAST);
  session_case_t d = make_case("threads");
  session_case_compile(&d, NULL);
  for (int run = 0; run < 20; run++) {
    session_case_run(&d);
    (void)usleep(1000);
  }
  check_values(&d);
  session_case_deinit(&d);
  unit_ok(cleave_registry_unload(NULL, "threads", e));
  ck_assert_uint_gt(lines.said, 5);
  cleave_context_set_log(NULL, NULL, NULL);
  isolate_case_check_no_children();
}

/* ---- again and again ---- */

UNIT_TEST(loading_again_starts_a_new_process_for_new_sessions) {
  cleave_session_options_t options = {.size = sizeof options};
  unit_ok(cleave_program_cache_create(&options.programs, e));
  load(HOSTILE("crash_later"), &FAST);
  session_case_t old = make_case("crash_later");
  session_case_compile(&old, &options);
  session_case_run(&old);
  unit_fails_with(cleave_session_run(old.session, e), CLEAVE_ERROR_BACKEND, "crashed");
  load(HOSTILE("crash_later"), &FAST);
  ck_assert(!isolation_of("crash_later").is_lost);
  unit_fails_with(cleave_session_run(old.session, e), CLEAVE_ERROR_BACKEND, "crashed");
  session_case_t fresh = make_case("crash_later");
  session_case_compile(&fresh, &options);
  session_case_run(&fresh);
  check_values(&fresh);
  session_case_deinit(&fresh);
  session_case_deinit(&old);
  cleave_program_cache_release(options.programs);
  unit_ok(cleave_registry_unload(NULL, "crash_later", e));
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
    load(is_good ? LIBRARY("good") : misdeed->path, &FALLING);
    session_case_t c = make_case(is_good ? "good" : misdeed->name);
    session_case_compile(&c, NULL);
    session_case_run(&c);
    check_values(&c);
    session_case_deinit(&c);
    unit_ok(cleave_registry_unload(NULL, is_good ? "good" : misdeed->name, e));
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
    status = cleave_backend_load_isolated(NULL, LIBRARY("good"), NULL, &FAST, NULL);
    (void)cleave_memory_fail_after(-1);
    ck_assert(status == CLEAVE_OK || status == CLEAVE_ERROR_OUT_OF_MEMORY);
    ck_assert_int_lt(failures, 1000);
  }
  ck_assert_int_gt(failures, 5);
  session_case_t c = make_case("good");
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
  ck_assert(!isolation_of("good").is_lost);
  session_case_compile(&c, NULL);
  session_case_run(&c);
  check_values(&c);
  session_case_deinit(&c);
  unit_ok(cleave_registry_unload(NULL, "good", e));
  isolate_case_check_no_children();
}

/* ---- threads and processes ---- */

static void *run_often(void *context) {
  session_case_t *c = context;
  for (int run = 0; run < 100; run++) {
    cleave_error_t error = CLEAVE_ERROR_INIT;
    if (cleave_session_run(c->session, &error) != CLEAVE_OK) {
      return context;
    }
  }
  return NULL;
}

UNIT_TEST(sessions_on_several_threads_share_a_process) {
  enum { THREADS = 3 };
  session_case_t cases[THREADS];
  pthread_t threads[THREADS];
  load(LIBRARY("good"), &FAST);
  for (int k = 0; k < THREADS; k++) {
    cases[k] = make_case("good");
    session_case_compile(&cases[k], NULL);
  }
  for (int k = 0; k < THREADS; k++) {
    ck_assert_int_eq(pthread_create(&threads[k], NULL, run_often, &cases[k]), 0);
  }
  for (int k = 0; k < THREADS; k++) {
    void *failed = NULL;
    ck_assert_int_eq(pthread_join(threads[k], &failed), 0);
    ck_assert_ptr_null(failed);
    check_values(&cases[k]);
    session_case_deinit(&cases[k]);
  }
}

UNIT_TEST(a_copy_of_this_process_gets_a_library_of_its_own) {
  load(LIBRARY("good"), &FAST);
  session_case_t c = make_case("good");
  session_case_compile(&c, NULL);
  pid_t copy = fork();
  if (copy == 0) {
    cleave_error_t error = CLEAVE_ERROR_INIT;
    bool is_refused = cleave_session_run(c.session, &error) == CLEAVE_ERROR_BACKEND &&
                      strstr(error.message, "library 'good' is isolated for another process") != NULL;
    session_case_deinit(&c);
    session_case_t own = make_case("good");
    session_case_compile(&own, NULL);
    session_case_run(&own);
    check_values(&own);
    session_case_deinit(&own);
    bool is_unloaded = cleave_registry_unload(NULL, "good", NULL) == CLEAVE_OK;
    _exit(is_refused && is_unloaded ? 0 : 1);
  }
  int status = -1;
  ck_assert_int_eq(waitpid(copy, &status, 0), copy);
  ck_assert_int_eq(status, 0);
  session_case_run(&c);
  check_values(&c);
  session_case_deinit(&c);
}

UNIT_TEST(a_library_does_not_outlive_a_process_that_is_killed) {
  int ends[2];
  ck_assert_int_eq(pipe(ends), 0);
  pid_t parent = fork();
  if (parent == 0) {
    cleave_isolation_t isolation = {.process = -1};
    if (cleave_backend_load_isolated(NULL, HOSTILE("hang_run"), NULL, NULL, NULL) == CLEAVE_OK &&
        cleave_backend_isolation(NULL, "hang_run", &isolation, NULL) == CLEAVE_OK) {
      ssize_t written = write(ends[1], &isolation.process, sizeof isolation.process);
      session_case_t c = make_case("hang_run");
      session_case_compile(&c, NULL);
      bool has_run = cleave_session_run(c.session, NULL) == CLEAVE_OK;
      _exit(has_run && written > 0 ? 0 : 1);
    }
    _exit(1);
  }
  int64_t process = -1;
  ck_assert_int_eq(read(ends[0], &process, sizeof process), sizeof process);
  (void)usleep(300000);
  ck_assert_int_eq(kill((pid_t)process, 0), 0);
  ck_assert_int_eq(kill(parent, SIGKILL), 0);
  ck_assert_int_eq(waitpid(parent, NULL, 0), parent);
  bool ended = false;
  for (int k = 0; k < 500 && !ended; k++) {
    char path[64];
    char text[256] = "";
    (void)snprintf(path, sizeof path, "/proc/%lld/stat", (long long)process);
    FILE *file = fopen(path, "r");
    ended = file == NULL || fgets(text, sizeof text, file) == NULL || strstr(text, ") Z") != NULL;
    if (file != NULL) {
      (void)fclose(file);
    }
    (void)usleep(10000);
  }
  ck_assert(ended);
}

UNIT_TEST(a_worker_that_is_not_there_is_an_error) {
  (void)setenv("CLEAVE_WORKER", "/nowhere/worker", 1);
  unit_fails(cleave_backend_load_isolated(NULL, LIBRARY("good"), NULL, NULL, e), CLEAVE_ERROR_IO,
             "/nowhere/worker: no program (from CLEAVE_WORKER)");
  (void)setenv("CLEAVE_WORKER", "/bin/true", 1);
  unit_fails_with(cleave_backend_load_isolated(NULL, LIBRARY("good"), NULL, NULL, e), CLEAVE_ERROR_BACKEND,
                  "ended its process (exit status 0) while being loaded");
  (void)setenv("CLEAVE_WORKER", "/bin/cat", 1);
  unit_fails_with(cleave_backend_load_isolated(NULL, LIBRARY("good"), NULL, NULL, e), CLEAVE_ERROR_BACKEND,
                  "ended its process (exit status 1) while being loaded");
  (void)setenv("CLEAVE_WORKER", "", 1);
  unit_ok(cleave_backend_load_isolated(NULL, LIBRARY("good"), NULL, NULL, e));
  unit_ok(cleave_registry_unload(NULL, "good", e));
  isolate_case_check_no_children();
}

/* Workers that say something else: noise, a reply that ends too early, a table that does, one without end,
 * and nothing at all. 1 is the kind of a reply, 3 of a line. */
UNIT_TEST(a_worker_that_lies_is_not_believed) {
  static const struct {
    const char *says;
    const char *part;
  } CASES[] = {
      {"printf '%0128d' 0 >&3", "sent a malformed answer while being loaded"},
      {"printf 'CLVW\\001\\0\\0\\0\\010\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0' >&3",
       "sent a malformed answer while being loaded"},
      {"printf "
       "'CLVW\\001\\0\\0\\0\\020\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0' >&3",
       "sent a malformed answer while being loaded"},
      {"printf 'CLVW\\001\\0\\0\\0\\377\\377\\377\\377\\377\\377\\377\\377' >&3",
       "sent a malformed answer while being loaded"},
      {"printf 'CLVW\\003\\0\\0\\0\\001\\0\\0\\0\\0\\0\\0\\0x' >&3",
       "did not answer within 0.2 s while being loaded"},
      {"exec 3>&-", "closed its connection while being loaded"},
  };
  char path[] = "/tmp/cleave_answers_XXXXXX";
  int made = mkstemp(path);
  ck_assert_int_ge(made, 0);
  (void)close(made);
  for (size_t k = 0; k < sizeof CASES / sizeof CASES[0]; k++) {
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    (void)fprintf(file, "#!/bin/sh\n%s\nsleep 10\n", CASES[k].says);
    (void)fclose(file);
    ck_assert_int_eq(chmod(path, 0700), 0);
    (void)setenv("CLEAVE_WORKER", path, 1);
    unit_fails_with(cleave_backend_load_isolated(NULL, LIBRARY("good"), NULL, &SHORT, e),
                    CLEAVE_ERROR_BACKEND, CASES[k].part);
  }
  (void)unlink(path);
  isolate_case_check_no_children();
}

UNIT_MAIN("isolate")
