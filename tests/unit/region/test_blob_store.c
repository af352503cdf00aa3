// SPDX-License-Identifier: Apache-2.0
// Compiled regions in a folder: when they are found again, limits, and several at once.
#include "backend/program/blob_store.h"

#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/program/blob_key.h"
#include "backend/registry/context.h"
#include "backend/registry/registry.h"
#include "base/memory.h"
#include "blob_case.h"
#include "runtime/session/session.h"
#include "system/clock.h"
#include "unit.h"

/* ---- found again ---- */

UNIT_TEST(what_was_compiled_once_is_loaded_from_then_on) {
  blob_case_start();
  ck_assert(!blob_case_run(1.0f));
  ck_assert_int_eq(blob_case_ask("compiles"), 1);
  ck_assert_int_eq(blob_case_ask("saves"), 1);
  for (int k = 1; k < 5; k++) {
    ck_assert(blob_case_run(1.0f));
    ck_assert_int_eq(blob_case_ask("compiles"), 1);
    ck_assert_int_eq(blob_case_ask("loads"), k);
  }
  ck_assert_int_eq(blob_case_ask("saves"), 1);
  ck_assert_str_eq(blob_case_log, "");
  struct stat info;
  char path[PATH_MAX];
  ck_assert_int_eq(blob_case_count_files(path), 1);
  ck_assert_int_eq(stat(path, &info), 0);
  ck_assert_uint_eq(info.st_mode & 0777, 0600);
  blob_case_finish();
}

UNIT_TEST(another_process_does_not_compile) {
  blob_case_start();
  pid_t child = fork();
  if (child == 0) {
    _exit(!blob_case_run(1.0f) && blob_case_ask("compiles") == 1 ? 0 : 1);
  }
  int status = 0;
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_int_eq(status, 0);
  ck_assert(blob_case_run(1.0f));
  ck_assert_int_eq(blob_case_ask("compiles"), 0);
  blob_case_finish();
}

UNIT_TEST(without_a_folder_nothing_is_saved) {
  blob_case_start();
  cleave_session_options_t options = {.size = sizeof options, .threads = 1};
  ck_assert(!blob_case_run_with(1.0f, &options) && !blob_case_run_with(1.0f, &options));
  ck_assert_int_eq(blob_case_ask("compiles"), 2);
  ck_assert_int_eq(blob_case_ask("saves"), 0);
  ck_assert_int_eq(blob_case_count_files(NULL), 0);
  blob_case_finish();
}

UNIT_TEST(weights_by_content_threads_profile_options_and_settings_are_part_of_it) {
  blob_case_start();
  cleave_session_options_t options = blob_case_options(0);
  ck_assert(!blob_case_run(1.0f));
  ck_assert(blob_case_run(1.0f)); /* another model with other tensors of the same content */
  ck_assert(!blob_case_run(2.0f));
  ck_assert(blob_case_run(2.0f));
  options.threads = 2;
  ck_assert(!blob_case_run_with(1.0f, &options) && blob_case_run_with(1.0f, &options));
  options.profile = true;
  ck_assert(!blob_case_run_with(1.0f, &options) && blob_case_run_with(1.0f, &options));
  cleave_key_value_t mood = {.key = "mood", .value = "good"};
  unit_ok(cleave_backend_configure(NULL, "blobs", &mood, 1, NULL, NULL, e));
  ck_assert(!blob_case_run(1.0f));
  mood.value = NULL; /* asks, tells nothing */
  unit_ok(cleave_backend_configure(NULL, "blobs", &mood, 1, NULL, NULL, e));
  ck_assert(blob_case_run(1.0f));
  ck_assert_int_eq(blob_case_count_files(NULL), 5);
  blob_case_finish();
}

UNIT_TEST(another_version_and_another_name_compile) {
  blob_case_start();
  ck_assert(!blob_case_run(1.0f));
  unit_ok(cleave_registry_unload(NULL, "blobs", e));
  (void)setenv("CLEAVE_TEST_VERSION", "2\nsettings 0", 1);
  unit_ok(cleave_registry_load(NULL, BLOB_CASE_LIBRARY("blobs"), NULL, e));
  ck_assert(!blob_case_run(1.0f));
  ck_assert(blob_case_run(1.0f));
  unit_ok(cleave_registry_unload(NULL, "blobs", e));
  (void)unsetenv("CLEAVE_TEST_VERSION");
  unit_ok(cleave_registry_load(NULL, BLOB_CASE_LIBRARY("blobs"), NULL, e));
  ck_assert(blob_case_run(1.0f));
  unit_ok(cleave_registry_load(NULL, BLOB_CASE_LIBRARY("blobs"), "other", e));
  session_case_t c = blob_case_make_on("other", 1.0f);
  cleave_session_options_t options = blob_case_options(0);
  session_case_compile(&c, &options);
  ck_assert_uint_eq(cleave_session_loaded_count(c.session), 0);
  blob_case_check(&c, 1.0f);
  session_case_deinit(&c);
  ck_assert_int_eq(blob_case_count_files(NULL), 3);
  blob_case_finish();
}

UNIT_TEST(the_code_of_a_library_has_a_digest) {
  blob_case_start();
  const cleave_backend_handle_t *handles[4] = {NULL};
  unit_ok(cleave_registry_load(NULL, BLOB_CASE_LIBRARY("blobs"), "other", e));
  unit_ok(cleave_registry_load(NULL, BLOB_CASE_LIBRARY("good"), NULL, e));
  static const char *const NAMES[4] = {"blobs", "other", "good", "cpu"};
  cleave_digest_t digests[4];
  for (size_t k = 0; k < 4; k++) {
    unit_ok(cleave_registry_find(NULL, NAMES[k], &handles[k], e));
    digests[k] = cleave_registry_digest(handles[k]);
    ck_assert(cleave_digest_equal(digests[k], cleave_registry_digest(handles[k])));
    ck_assert(digests[k].words[0] != 0 && digests[k].words[1] != 0);
  }
  ck_assert(cleave_digest_equal(digests[0], digests[1]));
  ck_assert(!cleave_digest_equal(digests[0], digests[2]) && !cleave_digest_equal(digests[0], digests[3]));
  blob_case_finish();
}

/* A key for a request that differs from the plain one in options. */
static cleave_text_t key_of(const cleave_view_t *view, const cleave_compile_options_t *options,
                            const char *name) {
  const cleave_backend_handle_t *handle = NULL;
  cleave_text_t key = {0};
  unit_ok(cleave_registry_find(NULL, "blobs", &handle, e));
  cleave_program_request_t request = {.handle = handle, .view = view, .options = options, .name = name};
  ck_assert(cleave_blob_key_build(&request, &key));
  return key;
}

UNIT_TEST(device_options_and_name_are_in_the_key_each_on_its_line) {
  blob_case_start();
  session_case_t c = blob_case_make(1.0f);
  cleave_view_builder_t builder;
  cleave_arena_t arena = {0};
  cleave_view_t view;
  cleave_view_builder_init(&builder, c.graph);
  cleave_view_request_t request = {
      .name = "r", .nodes = c.plan->regions[0].nodes, .node_count = c.plan->regions[0].node_count};
  unit_ok(cleave_view_build(&builder, &request, &arena, &view, e));
  const cleave_key_value_t pairs[] = {{"a", "b\ndevice x\\"}, {"c", "d"}};
  const cleave_compile_options_t plain = {.size = sizeof plain, .threads = 3};
  cleave_compile_options_t other = {
      .size = sizeof other, .threads = 3, .device = 1, .option_count = 2, .options = pairs};
  cleave_text_t first = key_of(&view, &plain, "");
  cleave_text_t second = key_of(&view, &other, "node");
  cleave_text_t again = key_of(&view, &plain, "");
  ck_assert_str_eq(cleave_text_get(&first), cleave_text_get(&again));
  static const char *const LINES[] = {
      "\ndevice abacus 1\nthreads 3, profile 0\noption a=b\\x0adevice x\\x5c\noption c=d\nregion ",
      "\nbackend blobs\ninterface 2.2\nversion 1\ncode ", "\nname node\n"};
  for (size_t k = 0; k < 3; k++) {
    ck_assert_ptr_nonnull(strstr(cleave_text_get(&second), LINES[k]));
  }
  ck_assert_ptr_nonnull(strstr(cleave_text_get(&first), "\ndevice abacus 0\nthreads 3, profile 0\nregion "));
  size_t length = 0;
  ck_assert(strncmp(cleave_blob_key_find(cleave_text_get(&second), "device", &length), "abacus 1\n", 9) == 0);
  ck_assert_uint_eq(length, 8);
  ck_assert_str_eq(cleave_blob_key_find(cleave_text_get(&second), "dev", &length), "");
  cleave_text_deinit(&first);
  cleave_text_deinit(&second);
  cleave_text_deinit(&again);
  cleave_view_builder_deinit(&builder);
  cleave_arena_deinit(&arena);
  session_case_deinit(&c);
  blob_case_finish();
}

/* ---- the limit ---- */

static cleave_status_t save_bytes(const void *program,
                                  cleave_status_t (*write)(void *context, const void *data, size_t bytes),
                                  void *context, cleave_message_t *message) {
  static const char zeros[4096];
  size_t bytes = *(const size_t *)program;
  (void)message;
  return write(context, zeros, bytes);
}

/* Adds a file of exactly this size, with a key of one letter. */
static void add(cleave_blob_store_t *store, const char *key, size_t size) {
  size_t content = size - 64;
  cleave_blob_store_write(store, key, save_bytes, &content);
  struct timespec pause = {.tv_nsec = 20000000};
  (void)nanosleep(&pause, NULL); /* so that times of use differ */
}

static bool has(cleave_blob_store_t *store, const char *key) {
  cleave_blob_t blob;
  bool found = cleave_blob_store_read(store, key, 1, &blob);
  cleave_blob_deinit(&blob);
  struct timespec pause = {.tv_nsec = 20000000};
  (void)nanosleep(&pause, NULL);
  return found;
}

UNIT_TEST(beyond_the_limit_what_was_not_used_for_the_longest_time_goes) {
  cleave_blob_store_t *store = NULL;
  cleave_blob_list_t list;
  blob_case_start();
  unit_ok(cleave_blob_store_open(blob_case_folder, 3000, cleave_context_log(NULL), &store, e));
  add(store, "a", 1000);
  add(store, "b", 1000);
  add(store, "c", 1000);
  ck_assert(has(store, "a")); /* used now */
  add(store, "d", 1000);      /* b goes */
  unit_ok(cleave_blob_store_list(store, true, &list, e));
  ck_assert_uint_eq(list.count, 3);
  static const char *const LEFT[3] = {"d", "a", "c"}; /* used last first */
  for (size_t k = 0; k < 3; k++) {
    ck_assert_str_eq(list.items[k].key, LEFT[k]);
    ck_assert_uint_eq(list.items[k].bytes, 1000);
  }
  cleave_blob_list_deinit(&list);
  add(store, "e", 2500); /* all others go */
  unit_ok(cleave_blob_store_list(store, true, &list, e));
  ck_assert(list.count == 1 && strcmp(list.items[0].key, "e") == 0);
  cleave_blob_list_deinit(&list);
  add(store, "f", 3001); /* never fits */
  ck_assert(has(store, "e") && !has(store, "f"));
  add(store, "f", 3000);
  ck_assert(has(store, "f") && !has(store, "e"));
  cleave_blob_store_close(store);
  /* Another store over the same folder counts what is there. */
  unit_ok(cleave_blob_store_open(blob_case_folder, 2999, cleave_context_log(NULL), &store, e));
  ck_assert(!has(store, "f")); /* larger than it may be here */
  add(store, "g", 100);
  ck_assert_int_eq(blob_case_count_files(NULL), 1);
  ck_assert(has(store, "g"));
  cleave_blob_store_close(store);
  blob_case_finish();
}

UNIT_TEST(clearing_takes_only_what_is_ours) {
  cleave_blob_store_t *store = NULL;
  cleave_blob_list_t list;
  char path[PATH_MAX];
  blob_case_start();
  unit_ok(cleave_blob_store_open(blob_case_folder, 0, cleave_context_log(NULL), &store, e));
  static const char *const OTHERS[] = {"notes.txt", "0123456789abcdef0123456789abcdeg.blob",
                                       "0123456789abcdef0123456789abcdef.blob.old", "a.blob", ".hidden"};
  for (size_t k = 0; k < 5; k++) {
    (void)snprintf(path, sizeof path, "%.60s/%s", blob_case_folder, OTHERS[k]);
    blob_case_write(path, "mine", 4);
  }
  add(store, "a", 100);
  add(store, "b", 200);
  (void)snprintf(path, sizeof path, "%.60s/0123456789abcdef0123456789abcdef.blob", blob_case_folder);
  blob_case_write(path, "broken", 6);
  (void)snprintf(path, sizeof path, "%.60s/.writing-77-1-2", blob_case_folder);
  blob_case_write(path, "half", 4);
  unit_ok(cleave_blob_store_list(store, true, &list, e));
  ck_assert_uint_eq(list.count, 3);
  ck_assert_ptr_null(list.items[0].key);
  ck_assert_str_eq(list.items[1].key, "b");
  cleave_blob_list_deinit(&list);
  unit_ok(cleave_blob_store_clear(store, e));
  ck_assert_int_eq(blob_case_count_files(NULL), 5);
  cleave_blob_store_close(store);
  blob_case_finish();
}

/* A process that goes on saving while another clears: what comes back is no failure. */
UNIT_TEST(clearing_beside_a_process_that_saves_is_no_failure) {
  cleave_blob_store_t *store = NULL;
  char path[PATH_MAX];
  blob_case_start();
  unit_ok(cleave_blob_store_open(blob_case_folder, 0, cleave_context_log(NULL), &store, e));
  pid_t child = fork();
  if (child == 0) {
    for (unsigned k = 0;; k++) {
      (void)snprintf(path, sizeof path, "%.60s/%032x.blob", blob_case_folder, k % 64);
      blob_case_write(path, "saved", 5);
    }
  }
  size_t cleared = 0;
  uint64_t start = cleave_clock_now();
  while (cleared < 200 && cleave_clock_ms(start, cleave_clock_now()) < 60000) {
    cleared += blob_case_count_files(NULL) > 0 ? 1 : 0;
    unit_ok(cleave_blob_store_clear(store, e));
  }
  ck_assert_uint_eq(cleared, 200);
  int status = 0;
  (void)kill(child, SIGKILL);
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  cleave_blob_store_close(store);
  blob_case_finish();
}

UNIT_TEST(what_a_process_left_half_written_goes_after_an_hour) {
  cleave_blob_store_t *store = NULL;
  char path[PATH_MAX];
  blob_case_start();
  unit_ok(cleave_blob_store_open(blob_case_folder, 0, cleave_context_log(NULL), &store, e));
  for (int k = 0; k < 2; k++) {
    (void)snprintf(path, sizeof path, "%.60s/.writing-77-1-%d", blob_case_folder, k);
    blob_case_write(path, "half", 4);
  }
  struct timespec old[2] = {{.tv_sec = time(NULL) - 3700}, {.tv_sec = time(NULL) - 3700}};
  ck_assert_int_eq(utimensat(AT_FDCWD, path, old, 0), 0);
  add(store, "a", 100);
  ck_assert_int_eq(blob_case_count_files(NULL), 2);
  ck_assert_int_ne(access(path, F_OK), 0);
  cleave_blob_store_close(store);
  blob_case_finish();
}

/* ---- several at once ---- */

enum { THREADS = 4, ROUNDS = 40 };

static void *work(void *context) {
  const session_case_t *cases = context;
  cleave_session_options_t options = blob_case_options(3000);
  for (int round = 0; round < ROUNDS; round++) {
    const session_case_t *c = &cases[round % 4];
    cleave_session_t *session = NULL;
    cleave_tensor_view_t output;
    bool good = cleave_session_create_planned(c->graph, c->plan, c->pointers, c->input_count, &options,
                                              &session, NULL) == CLEAVE_OK &&
                cleave_session_set_input(session, 0, &c->views[0], NULL) == CLEAVE_OK &&
                cleave_session_run(session, NULL) == CLEAVE_OK &&
                cleave_session_output(session, 0, &output, NULL) == CLEAVE_OK;
    for (int k = 0; k < BLOB_CASE_COUNT && good; k++) {
      float expected = 1.0f / (1.0f + expf(-(blob_case_x[k] + (float)(round % 4))));
      good = fabsf(((const float *)output.data)[k] - expected) < 1e-6f;
    }
    cleave_session_destroy(session);
    if (!good) {
      return context;
    }
  }
  return NULL;
}

UNIT_TEST(threads_and_processes_share_a_folder_that_is_too_small) {
  session_case_t cases[4];
  blob_case_start();
  cleave_context_set_log(NULL, NULL, NULL);
  pid_t children[2];
  for (int p = 0; p < 2; p++) {
    children[p] = fork();
    if (children[p] == 0) {
      for (int k = 0; k < 4; k++) {
        cases[k] = blob_case_make((float)k);
      }
      _exit(work(cases) == NULL ? 0 : 1);
    }
  }
  for (int k = 0; k < 4; k++) {
    cases[k] = blob_case_make((float)k);
  }
  pthread_t threads[THREADS];
  for (int k = 0; k < THREADS; k++) {
    ck_assert_int_eq(pthread_create(&threads[k], NULL, work, cases), 0);
  }
  for (int k = 0; k < THREADS; k++) {
    void *result = cases;
    ck_assert_int_eq(pthread_join(threads[k], &result), 0);
    ck_assert_ptr_null(result);
  }
  for (int p = 0; p < 2; p++) {
    int status = 0;
    ck_assert_int_eq(waitpid(children[p], &status, 0), children[p]);
    ck_assert_int_eq(status, 0);
  }
  for (int k = 0; k < 4; k++) {
    session_case_deinit(&cases[k]);
  }
  ck_assert_int_gt(blob_case_ask("loads"), 0);
  ck_assert_int_le(blob_case_count_files(NULL), 4);
  blob_case_finish();
}

UNIT_TEST(sessions_are_made_or_not_whatever_allocation_fails) {
  blob_case_start();
  ck_assert(!blob_case_run(1.0f));
  session_case_t c = blob_case_make(1.0f);
  cleave_session_options_t options = blob_case_options(0);
  cleave_status_t status = CLEAVE_ERROR_OUT_OF_MEMORY;
  int64_t allocation = 0;
  for (; status != CLEAVE_OK && allocation < 10000; allocation++) {
    cleave_session_t *session = NULL;
    (void)cleave_memory_fail_after(allocation);
    status =
        cleave_session_create_planned(c.graph, c.plan, c.pointers, c.input_count, &options, &session, NULL);
    (void)cleave_memory_fail_after(-1);
    cleave_session_destroy(session);
  }
  ck_assert_int_gt(allocation, 5);
  ck_assert_int_eq((int)status, (int)CLEAVE_OK);
  session_case_deinit(&c);
  blob_case_finish();
}

UNIT_SUITE("blob_store")
