// SPDX-License-Identifier: Apache-2.0
// Compiled regions in a folder: when they are found again, what becomes of files that are not what they
// should be, limits, and several at once. The library tests/accelerators/blobs.c counts what it does.
#include "backend/blob_store.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/blob_key.h"
#include "backend/registry.h"
#include "base/memory.h"
#include "runtime/session.h"
#include "session_case.h"
#include "unit.h"

#define LIBRARY(name) CLEAVE_BINARY_DIR "/tests/accelerators/lib" name ".so"

enum { COUNT = 6 };

static const float X[COUNT] = {-1.0f, 2.0f, -3.0f, 4.0f, 0.0f, 0.5f};
static const int64_t DIMS[2] = {2, 3};
static char folder[64];
static char log_text[65536]; /* what was logged, line by line */

static void keep_line(void *context, cleave_log_level_t level, const char *line) {
  (void)context;
  size_t used = strlen(log_text);
  (void)snprintf(log_text + used, sizeof log_text - used, "%d %s\n", (int)level, line);
}

/* A fresh folder for the process of this test. */
static void start(void) {
  (void)snprintf(folder, sizeof folder, "/tmp/cleave-blobs-XXXXXX");
  ck_assert_ptr_nonnull(mkdtemp(folder));
  unit_ok(cleave_registry_load(LIBRARY("blobs"), NULL, e));
  cleave_set_log(keep_line, NULL);
}

static void finish(void) {
  char command[128];
  cleave_set_log(NULL, NULL);
  (void)snprintf(command, sizeof command, "rm -rf '%s'", folder);
  ck_assert_int_eq(system(command), 0);
}

/* How often the library did it: "compiles", "loads", "saves". */
static int ask(const char *key) {
  cleave_key_value_t setting = {.key = key};
  cleave_key_value_t *answers = NULL;
  uint32_t count = 0;
  unit_ok(cleave_backend_configure("blobs", &setting, 1, &answers, &count, e));
  int value = atoi(answers[0].value);
  cleave_answers_free(answers);
  return value;
}

/* y = Relu(x + w), on `backend`; both nodes are regions. */
static session_case_t make_case_on(const char *backend, float w) {
  float weights[COUNT];
  for (size_t k = 0; k < COUNT; k++) {
    weights[k] = w;
  }
  session_case_t c = session_case_create();
  cleave_value_t x = session_case_input(&c, "x", CLEAVE_DTYPE_F32, 2, DIMS);
  cleave_value_t constant = session_case_floats(&c, "w", 2, DIMS, weights);
  cleave_value_t sum = session_case_node(&c, "Add", "sum", x, constant, CLEAVE_VALUE_NONE);
  session_case_output(&c, session_case_node(&c, "Sigmoid", "end", sum, CLEAVE_VALUE_NONE, CLEAVE_VALUE_NONE));
  session_case_infer(&c);
  session_case_partition(&c, "Add", backend);
  session_case_feed(&c, 2, DIMS, X);
  return c;
}

static session_case_t make_case(float w) {
  return make_case_on("blobs", w);
}

static cleave_session_options_t options_of(uint64_t limit) {
  return (cleave_session_options_t){
      .size = sizeof(cleave_session_options_t), .threads = 1, .blob_folder = folder, .blob_limit = limit};
}

static void check_value(session_case_t *c, float w) {
  session_case_run(c);
  for (int64_t k = 0; k < COUNT; k++) {
    float expected = 1.0f / (1.0f + expf(-(X[k] + w)));
    ck_assert_float_eq_tol(session_case_value(c, 0, k), expected, 1e-6f);
  }
}

/* A session that runs right; true where its region was loaded. */
static bool run_with(float w, const cleave_session_options_t *options) {
  session_case_t c = make_case(w);
  session_case_compile(&c, options);
  check_value(&c, w);
  uint32_t loaded = cleave_session_loaded_count(c.session);
  session_case_deinit(&c);
  ck_assert_uint_le(loaded, 1);
  return loaded == 1;
}

static bool run(float w) {
  cleave_session_options_t options = options_of(0);
  return run_with(w, &options);
}

/* Names of the folder; *out_last is a path among them. */
static int count_files(char *out_last) {
  DIR *stream = opendir(folder);
  int count = 0;
  ck_assert_ptr_nonnull(stream);
  for (const struct dirent *entry = readdir(stream); entry != NULL; entry = readdir(stream)) {
    if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
      count++;
      if (out_last != NULL) {
        (void)snprintf(out_last, PATH_MAX, "%s/%s", folder, entry->d_name);
      }
    }
  }
  (void)closedir(stream);
  return count;
}

static size_t read_file(const char *path, char *data, size_t size) {
  FILE *file = fopen(path, "rb");
  ck_assert_ptr_nonnull(file);
  size_t length = fread(data, 1, size, file);
  (void)fclose(file);
  ck_assert_uint_lt(length, size);
  return length;
}

static void write_file(const char *path, const char *data, size_t length) {
  FILE *file = fopen(path, "wb");
  ck_assert_ptr_nonnull(file);
  ck_assert_uint_eq(fwrite(data, 1, length, file), length);
  ck_assert_int_eq(fclose(file), 0);
}

/* ---- found again ---- */

UNIT_TEST(what_was_compiled_once_is_loaded_from_then_on) {
  start();
  ck_assert(!run(1.0f));
  ck_assert_int_eq(ask("compiles"), 1);
  ck_assert_int_eq(ask("saves"), 1);
  for (int k = 1; k < 5; k++) {
    ck_assert(run(1.0f));
    ck_assert_int_eq(ask("compiles"), 1);
    ck_assert_int_eq(ask("loads"), k);
  }
  ck_assert_int_eq(ask("saves"), 1);
  ck_assert_str_eq(log_text, "");
  struct stat info;
  char path[PATH_MAX];
  ck_assert_int_eq(count_files(path), 1);
  ck_assert_int_eq(stat(path, &info), 0);
  ck_assert_uint_eq(info.st_mode & 0777, 0600);
  finish();
}

UNIT_TEST(another_process_does_not_compile) {
  start();
  pid_t child = fork();
  if (child == 0) {
    _exit(!run(1.0f) && ask("compiles") == 1 ? 0 : 1);
  }
  int status = 0;
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_int_eq(status, 0);
  ck_assert(run(1.0f));
  ck_assert_int_eq(ask("compiles"), 0);
  finish();
}

UNIT_TEST(without_a_folder_nothing_is_saved) {
  start();
  cleave_session_options_t options = {.size = sizeof options, .threads = 1};
  ck_assert(!run_with(1.0f, &options) && !run_with(1.0f, &options));
  options = options_of(0);
  options.size = offsetof(cleave_session_options_t, backend_options); /* of an older caller */
  ck_assert(!run_with(1.0f, &options));
  ck_assert_int_eq(ask("compiles"), 3);
  ck_assert_int_eq(ask("saves"), 0);
  ck_assert_int_eq(count_files(NULL), 0);
  finish();
}

UNIT_TEST(weights_by_content_threads_profile_options_and_settings_are_part_of_it) {
  start();
  cleave_session_options_t options = options_of(0);
  ck_assert(!run(1.0f));
  ck_assert(run(1.0f)); /* another model with other tensors of the same content */
  ck_assert(!run(2.0f));
  ck_assert(run(2.0f));
  options.threads = 2;
  ck_assert(!run_with(1.0f, &options) && run_with(1.0f, &options));
  options.profile = true;
  ck_assert(!run_with(1.0f, &options) && run_with(1.0f, &options));
  cleave_key_value_t mood = {.key = "mood", .value = "good"};
  unit_ok(cleave_backend_configure("blobs", &mood, 1, NULL, NULL, e));
  ck_assert(!run(1.0f));
  mood.value = NULL; /* asks, tells nothing */
  unit_ok(cleave_backend_configure("blobs", &mood, 1, NULL, NULL, e));
  ck_assert(run(1.0f));
  ck_assert_int_eq(count_files(NULL), 5);
  finish();
}

UNIT_TEST(another_version_and_another_name_compile) {
  start();
  ck_assert(!run(1.0f));
  unit_ok(cleave_registry_unload("blobs", e));
  (void)setenv("CLEAVE_TEST_VERSION", "2\nsettings 0", 1);
  unit_ok(cleave_registry_load(LIBRARY("blobs"), NULL, e));
  ck_assert(!run(1.0f));
  ck_assert(run(1.0f));
  unit_ok(cleave_registry_unload("blobs", e));
  (void)unsetenv("CLEAVE_TEST_VERSION");
  unit_ok(cleave_registry_load(LIBRARY("blobs"), NULL, e));
  ck_assert(run(1.0f));
  unit_ok(cleave_registry_load(LIBRARY("blobs"), "other", e));
  session_case_t c = make_case_on("other", 1.0f);
  cleave_session_options_t options = options_of(0);
  session_case_compile(&c, &options);
  ck_assert_uint_eq(cleave_session_loaded_count(c.session), 0);
  check_value(&c, 1.0f);
  session_case_deinit(&c);
  ck_assert_int_eq(count_files(NULL), 3);
  finish();
}

UNIT_TEST(the_code_of_a_library_has_a_digest) {
  start();
  const cleave_backend_handle_t *handles[4] = {NULL};
  unit_ok(cleave_registry_load(LIBRARY("blobs"), "other", e));
  unit_ok(cleave_registry_load(LIBRARY("good"), NULL, e));
  static const char *const NAMES[4] = {"blobs", "other", "good", "cpu"};
  cleave_digest_t digests[4];
  for (size_t k = 0; k < 4; k++) {
    unit_ok(cleave_registry_find(NAMES[k], &handles[k], e));
    digests[k] = cleave_registry_digest(handles[k]);
    ck_assert(cleave_digest_equal(digests[k], cleave_registry_digest(handles[k])));
    ck_assert(digests[k].words[0] != 0 && digests[k].words[1] != 0);
  }
  ck_assert(cleave_digest_equal(digests[0], digests[1]));
  ck_assert(!cleave_digest_equal(digests[0], digests[2]) && !cleave_digest_equal(digests[0], digests[3]));
  finish();
}

/* A key for a request that differs from the plain one in options. */
static cleave_text_t key_of(const cleave_view_t *view, const cleave_compile_options_t *options,
                            const char *name) {
  const cleave_backend_handle_t *handle = NULL;
  cleave_text_t key = {0};
  unit_ok(cleave_registry_find("blobs", &handle, e));
  cleave_program_request_t request = {.handle = handle, .view = view, .options = options, .name = name};
  ck_assert(cleave_blob_key_build(&request, &key));
  return key;
}

UNIT_TEST(device_options_and_name_are_in_the_key_each_on_its_line) {
  start();
  session_case_t c = make_case(1.0f);
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
      "\nbackend blobs\ninterface 1.1\nversion 1\ncode ", "\nname node\n"};
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
  finish();
}

/* ---- broken files ---- */

/* With `data` in the place of the file: compiled anew, and put right. */
static void check_replaced(const char *path, const char *data, size_t length, const char *reason) {
  int compiles = ask("compiles");
  write_file(path, data, length);
  log_text[0] = '\0';
  ck_assert_msg(!run(1.0f), "%zu bytes were loaded", length);
  ck_assert_int_eq(ask("compiles"), compiles + 1);
  ck_assert_msg(strstr(log_text, "the region is compiled anew") != NULL && strstr(log_text, reason) != NULL,
                "log: %s", log_text);
  ck_assert(run(1.0f));
  ck_assert_int_eq(count_files(NULL), 1);
}

UNIT_TEST(a_file_that_is_cut_anywhere_is_compiled_anew) {
  static char data[8192];
  char path[PATH_MAX];
  start();
  ck_assert(!run(1.0f));
  ck_assert_int_eq(count_files(path), 1);
  size_t length = read_file(path, data, sizeof data);
  for (size_t cut = 0; cut < length; cut++) {
    check_replaced(path, data, cut, cut < 48 ? "it is cut" : "bytes, which is not what it says");
  }
  data[length] = 0;
  check_replaced(path, data, length + 1, "bytes, which is not what it says");
  finish();
}

UNIT_TEST(a_file_with_any_bit_flipped_is_compiled_anew) {
  static char data[8192];
  char path[PATH_MAX];
  start();
  ck_assert(!run(1.0f));
  ck_assert_int_eq(count_files(path), 1);
  size_t length = read_file(path, data, sizeof data);
  for (size_t k = 0; k < length; k++) {
    data[k] ^= (char)(1 << k % 8);
    check_replaced(path, data, length, "");
    data[k] ^= (char)(1 << k % 8);
  }
  data[8] = 2;
  check_replaced(path, data, length, "format version 2, expected 1");
  data[8] = 1;
  const char mark[4] = {data[15], data[14], data[13], data[12]};
  memcpy(data + 12, mark, 4);
  check_replaced(path, data, length, "another byte order");
  data[0] = 'X';
  check_replaced(path, data, length, "it is no compiled region");
  finish();
}

UNIT_TEST(a_whole_file_of_another_region_is_compiled_anew) {
  static char data[8192];
  char path[PATH_MAX];
  start();
  ck_assert(!run(2.0f));
  ck_assert_int_eq(count_files(path), 1);
  size_t length = read_file(path, data, sizeof data);
  ck_assert_int_eq(unlink(path), 0);
  ck_assert(!run(1.0f));
  ck_assert_int_eq(count_files(path), 1);
  check_replaced(path, data, length, "it is another region");
  finish();
}

UNIT_TEST(what_is_no_file_of_ours_is_not_used) {
  static char data[8192];
  char path[PATH_MAX];
  char elsewhere[PATH_MAX];
  start();
  ck_assert(!run(1.0f));
  ck_assert_int_eq(count_files(path), 1);
  size_t length = read_file(path, data, sizeof data);
  /* A folder in its place stays, and so the region is compiled every time. */
  ck_assert(unlink(path) == 0 && mkdir(path, 0700) == 0);
  log_text[0] = '\0';
  ck_assert(!run(1.0f) && !run(1.0f));
  ck_assert_ptr_nonnull(strstr(log_text, "not used: not a regular file; the region is compiled anew"));
  ck_assert_ptr_nonnull(strstr(log_text, "not written: Is a directory"));
  ck_assert_int_eq(count_files(NULL), 1);
  ck_assert_int_eq(rmdir(path), 0);
  /* A pipe does not make it wait; a link is not followed, and replaced. */
  ck_assert_int_eq(mkfifo(path, 0600), 0);
  ck_assert(!run(1.0f) && run(1.0f));
  (void)snprintf(elsewhere, sizeof elsewhere, "%.60s/elsewhere", folder);
  write_file(elsewhere, data, length);
  ck_assert(unlink(path) == 0 && symlink(elsewhere, path) == 0);
  ck_assert(!run(1.0f) && run(1.0f));
  static char untouched[8192];
  ck_assert_uint_eq(read_file(elsewhere, untouched, sizeof untouched), length);
  ck_assert_mem_eq(untouched, data, length);
  ck_assert_int_eq(unlink(elsewhere), 0);
  /* Others might have written it. */
  ck_assert_int_eq(chmod(path, 0622), 0);
  log_text[0] = '\0';
  ck_assert(!run(1.0f) && run(1.0f));
  ck_assert_ptr_nonnull(strstr(log_text, "other users may write to it"));
  if (geteuid() == 0) {
    ck_assert_int_eq(chown(path, 12345, 12345), 0);
    ck_assert(!run(1.0f) && run(1.0f));
    ck_assert_ptr_nonnull(strstr(log_text, "it belongs to another user"));
  } else {
    ck_assert_int_eq(chmod(path, 0), 0);
    ck_assert(!run(1.0f) && run(1.0f));
    ck_assert_ptr_nonnull(strstr(log_text, "not used: Permission denied"));
  }
  finish();
}

UNIT_TEST(what_the_library_refuses_is_compiled_anew) {
  start();
  ck_assert(!run(1.0f));
  (void)setenv("CLEAVE_TEST_CHECK", "refuses", 1);
  ck_assert(!run(1.0f));
  ck_assert_ptr_nonnull(strstr(log_text, "refused by blobs: made on a Tuesday; the region is compiled anew"));
  (void)unsetenv("CLEAVE_TEST_CHECK");
  (void)setenv("CLEAVE_TEST_LOAD", "refuses", 1);
  ck_assert(!run(1.0f));
  ck_assert_ptr_nonnull(strstr(log_text, "refused by blobs: no reason given; the region is compiled anew"));
  (void)unsetenv("CLEAVE_TEST_LOAD");
  ck_assert(run(1.0f));
  ck_assert_int_eq(ask("compiles"), 3);
  finish();
}

/* ---- saving ---- */

UNIT_TEST(saving_that_fails_leaves_nothing_behind) {
  static const struct {
    const char *mode;
    const char *reason;
    bool is_kept;
  } CASES[] = {{"never", "3 ", false},
               {"fails", "not written: not this one", false},
               {"null", "not written: 24 bytes from nowhere", false},
               {"ignores", "bytes from nowhere", false},
               {"much", "not written: it is larger than 1000000 bytes", false},
               {"nothing", "", true}};
  start();
  cleave_session_options_t options = options_of(1000000);
  for (size_t k = 0; k < sizeof CASES / sizeof CASES[0]; k++) {
    log_text[0] = '\0';
    (void)setenv("CLEAVE_TEST_SAVE", CASES[k].mode, 1);
    ck_assert(!run_with(1.0f, &options));
    ck_assert_msg(strstr(log_text, CASES[k].reason) != NULL, "%s: log: %s", CASES[k].mode, log_text);
    ck_assert_int_eq(count_files(NULL), CASES[k].is_kept ? 1 : 0);
  }
  (void)unsetenv("CLEAVE_TEST_SAVE");
  ck_assert(!run_with(1.0f, &options)); /* of no bytes: refused by `check` */
  ck_assert(run_with(1.0f, &options));
  finish();
}

UNIT_TEST(a_full_disk_is_no_failure_and_no_signal) {
  start();
  struct rlimit limit;
  session_case_t c = make_case(1.0f);
  cleave_session_options_t options = options_of(0);
  ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
  rlim_t bytes = 0;
  for (; count_files(NULL) == 0 && bytes < 1000; bytes += 50) {
    struct rlimit small = {.rlim_cur = bytes, .rlim_max = limit.rlim_max};
    cleave_session_t *session = NULL;
    log_text[0] = '\0';
    /* No assertions here: Check writes them to a file. */
    (void)setrlimit(RLIMIT_FSIZE, &small);
    cleave_status_t status =
        cleave_session_create_planned(c.graph, c.plan, c.pointers, c.input_count, &options, &session, NULL);
    (void)setrlimit(RLIMIT_FSIZE, &limit);
    ck_assert_int_eq((int)status, (int)CLEAVE_OK);
    ck_assert_uint_eq(cleave_session_loaded_count(session), 0);
    cleave_session_destroy(session);
    ck_assert(strstr(log_text, "not written: the process may not write so large a file") != NULL ||
              count_files(NULL) == 1);
  }
  ck_assert(bytes > 400 && bytes < 1000);
  session_case_deinit(&c);
  ck_assert(run(1.0f));
  finish();
}

UNIT_TEST(a_folder_is_made_and_one_that_cannot_be_is_an_error) {
  start();
  char deep[PATH_MAX];
  (void)snprintf(deep, sizeof deep, "%.60s/a/b/c", folder);
  cleave_session_options_t options = options_of(0);
  options.blob_folder = deep;
  ck_assert(!run_with(1.0f, &options) && run_with(1.0f, &options));
  struct stat info;
  ck_assert(stat(deep, &info) == 0 && (info.st_mode & 0777) == 0700);
  session_case_t c = make_case(1.0f);
  static const struct {
    const char *folder;
    const char *part;
  } CASES[] = {{"", "folder for compiled regions '': No such file"},
               {"/dev/null", "folder for compiled regions '/dev/null': Not a directory"},
               {"/dev/null/x", "folder for compiled regions '/dev/null/x': Not a directory"}};
  for (size_t k = 0; k < 3; k++) {
    cleave_session_t *session = NULL;
    options.blob_folder = CASES[k].folder;
    unit_fails_with(
        cleave_session_create_planned(c.graph, c.plan, c.pointers, c.input_count, &options, &session, e),
        CLEAVE_ERROR_IO, CASES[k].part);
    ck_assert_ptr_null(session);
  }
  session_case_deinit(&c);
  /* A folder that goes away while it is in use. */
  c = make_case(3.0f);
  cleave_blob_store_t *store = NULL;
  unit_ok(cleave_blob_store_open(deep, 0, &store, e));
  cleave_blob_t blob;
  unit_ok(cleave_blob_store_clear(store, e));
  ck_assert_int_eq(rmdir(deep), 0);
  ck_assert(!cleave_blob_store_read(store, "key", &blob));
  unit_fails_with(cleave_blob_store_clear(store, e), CLEAVE_ERROR_IO, "No such file or directory");
  cleave_blob_store_release(store);
  session_case_deinit(&c);
  finish();
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
  bool found = cleave_blob_store_read(store, key, &blob);
  cleave_blob_deinit(&blob);
  struct timespec pause = {.tv_nsec = 20000000};
  (void)nanosleep(&pause, NULL);
  return found;
}

UNIT_TEST(beyond_the_limit_what_was_not_used_for_the_longest_time_goes) {
  cleave_blob_store_t *store = NULL;
  cleave_blob_list_t list;
  start();
  unit_ok(cleave_blob_store_open(folder, 3000, &store, e));
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
  cleave_blob_store_release(store);
  /* Another store over the same folder counts what is there. */
  unit_ok(cleave_blob_store_open(folder, 2999, &store, e));
  ck_assert(!has(store, "f")); /* larger than it may be here */
  add(store, "g", 100);
  ck_assert_int_eq(count_files(NULL), 1);
  ck_assert(has(store, "g"));
  cleave_blob_store_release(store);
  finish();
}

UNIT_TEST(clearing_takes_only_what_is_ours) {
  cleave_blob_store_t *store = NULL;
  cleave_blob_list_t list;
  char path[PATH_MAX];
  start();
  unit_ok(cleave_blob_store_open(folder, 0, &store, e));
  static const char *const OTHERS[] = {"notes.txt", "0123456789abcdef0123456789abcdeg.blob",
                                       "0123456789abcdef0123456789abcdef.blob.old", "a.blob", ".hidden"};
  for (size_t k = 0; k < 5; k++) {
    (void)snprintf(path, sizeof path, "%.60s/%s", folder, OTHERS[k]);
    write_file(path, "mine", 4);
  }
  add(store, "a", 100);
  add(store, "b", 200);
  (void)snprintf(path, sizeof path, "%.60s/0123456789abcdef0123456789abcdef.blob", folder);
  write_file(path, "broken", 6);
  (void)snprintf(path, sizeof path, "%.60s/.writing-77-1-2", folder);
  write_file(path, "half", 4);
  unit_ok(cleave_blob_store_list(store, true, &list, e));
  ck_assert_uint_eq(list.count, 3);
  ck_assert_ptr_null(list.items[0].key);
  ck_assert_str_eq(list.items[1].key, "b");
  cleave_blob_list_deinit(&list);
  unit_ok(cleave_blob_store_clear(store, e));
  ck_assert_int_eq(count_files(NULL), 5);
  cleave_blob_store_release(store);
  finish();
}

UNIT_TEST(what_a_process_left_half_written_goes_after_an_hour) {
  cleave_blob_store_t *store = NULL;
  char path[PATH_MAX];
  start();
  unit_ok(cleave_blob_store_open(folder, 0, &store, e));
  for (int k = 0; k < 2; k++) {
    (void)snprintf(path, sizeof path, "%.60s/.writing-77-1-%d", folder, k);
    write_file(path, "half", 4);
  }
  struct timespec old[2] = {{.tv_sec = time(NULL) - 3700}, {.tv_sec = time(NULL) - 3700}};
  ck_assert_int_eq(utimensat(AT_FDCWD, path, old, 0), 0);
  add(store, "a", 100);
  ck_assert_int_eq(count_files(NULL), 2);
  ck_assert_int_ne(access(path, F_OK), 0);
  cleave_blob_store_release(store);
  finish();
}

/* ---- several at once ---- */

enum { THREADS = 4, ROUNDS = 40 };

static void *work(void *context) {
  const session_case_t *cases = context;
  cleave_session_options_t options = options_of(3000);
  for (int round = 0; round < ROUNDS; round++) {
    const session_case_t *c = &cases[round % 4];
    cleave_session_t *session = NULL;
    cleave_tensor_view_t output;
    bool good = cleave_session_create_planned(c->graph, c->plan, c->pointers, c->input_count, &options,
                                              &session, NULL) == CLEAVE_OK &&
                cleave_session_set_input(session, 0, &c->views[0], NULL) == CLEAVE_OK &&
                cleave_session_run(session, NULL) == CLEAVE_OK &&
                cleave_session_output(session, 0, &output, NULL) == CLEAVE_OK;
    for (int k = 0; k < COUNT && good; k++) {
      float expected = 1.0f / (1.0f + expf(-(X[k] + (float)(round % 4))));
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
  start();
  cleave_set_log(NULL, NULL);
  pid_t children[2];
  for (int p = 0; p < 2; p++) {
    children[p] = fork();
    if (children[p] == 0) {
      for (int k = 0; k < 4; k++) {
        cases[k] = make_case((float)k);
      }
      _exit(work(cases) == NULL ? 0 : 1);
    }
  }
  for (int k = 0; k < 4; k++) {
    cases[k] = make_case((float)k);
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
  ck_assert_int_gt(ask("loads"), 0);
  ck_assert_int_le(count_files(NULL), 4);
  finish();
}

UNIT_TEST(sessions_are_made_or_not_whatever_allocation_fails) {
  start();
  ck_assert(!run(1.0f));
  session_case_t c = make_case(1.0f);
  cleave_session_options_t options = options_of(0);
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
  finish();
}

UNIT_MAIN("blob_store")
