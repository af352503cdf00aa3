// SPDX-License-Identifier: Apache-2.0
// Processes of isolated libraries: several threads share one, copies of this process get none, they end with
// it however it ends; and programs in their place that are no workers, or lie.
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/registry/registry.h"
#include "isolate_case.h"
#include "unit.h"

#define GOOD CLEAVE_BINARY_DIR "/tests/accelerators/libgood.so"

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
  isolate_case_load(GOOD, ISOLATE_APART, NULL);
  for (int k = 0; k < THREADS; k++) {
    cases[k] = isolate_case_compiled("good");
  }
  for (int k = 0; k < THREADS; k++) {
    ck_assert_int_eq(pthread_create(&threads[k], NULL, run_often, &cases[k]), 0);
  }
  for (int k = 0; k < THREADS; k++) {
    void *failed = NULL;
    ck_assert_int_eq(pthread_join(threads[k], &failed), 0);
    ck_assert_ptr_null(failed);
    isolate_case_check(&cases[k]);
    session_case_deinit(&cases[k]);
  }
}

UNIT_TEST(a_copy_of_this_process_gets_a_library_of_its_own) {
  isolate_case_load(GOOD, ISOLATE_APART, NULL);
  session_case_t c = isolate_case_compiled("good");
  pid_t copy = fork();
  if (copy == 0) {
    cleave_error_t error = CLEAVE_ERROR_INIT;
    bool is_refused = cleave_session_run(c.session, &error) == CLEAVE_ERROR_BACKEND &&
                      strstr(error.message, "library 'good' is isolated for another process") != NULL;
    session_case_deinit(&c);
    session_case_t own = isolate_case_compiled("good");
    isolate_case_run(&own);
    session_case_deinit(&own);
    bool is_unloaded = cleave_registry_unload(NULL, "good", NULL) == CLEAVE_OK;
    _exit(is_refused && is_unloaded ? 0 : 1);
  }
  int status = -1;
  ck_assert_int_eq(waitpid(copy, &status, 0), copy);
  ck_assert_int_eq(status, 0);
  isolate_case_run(&c);
  session_case_deinit(&c);
}

UNIT_TEST(a_library_does_not_outlive_a_process_that_is_killed) {
  int ends[2];
  ck_assert_int_eq(pipe(ends), 0);
  pid_t parent = fork();
  if (parent == 0) {
    cleave_isolation_t isolation = {.size = sizeof isolation};
    if (cleave_backend_load_isolated(NULL, ISOLATE_HOSTILE("hang_run"), NULL, NULL, NULL) == CLEAVE_OK &&
        cleave_backend_isolation(NULL, "hang_run", &isolation, NULL) == CLEAVE_OK) {
      ssize_t written = write(ends[1], &isolation.process, sizeof isolation.process);
      session_case_t c = isolate_case_compiled("hang_run");
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
  unit_fails(cleave_backend_load_isolated(NULL, GOOD, NULL, NULL, e), CLEAVE_ERROR_IO,
             "/nowhere/worker: no program (from CLEAVE_WORKER)");
  (void)setenv("CLEAVE_WORKER", "/bin/true", 1);
  unit_fails_with(cleave_backend_load_isolated(NULL, GOOD, NULL, NULL, e), CLEAVE_ERROR_BACKEND,
                  "ended its process (exit status 0) while being loaded");
  (void)setenv("CLEAVE_WORKER", "/bin/cat", 1);
  unit_fails_with(cleave_backend_load_isolated(NULL, GOOD, NULL, NULL, e), CLEAVE_ERROR_BACKEND,
                  "ended its process (exit status 1) while being loaded");
  (void)setenv("CLEAVE_WORKER", "", 1);
  unit_ok(cleave_backend_load_isolated(NULL, GOOD, NULL, NULL, e));
  isolate_case_unload("good");
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
  const cleave_isolation_options_t options = {.size = sizeof options, .ask_ms = 200};
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
    unit_fails_with(cleave_backend_load_isolated(NULL, GOOD, NULL, &options, e), CLEAVE_ERROR_BACKEND,
                    CASES[k].part);
  }
  (void)unlink(path);
  isolate_case_check_no_children();
}

UNIT_SUITE("isolated processes")
