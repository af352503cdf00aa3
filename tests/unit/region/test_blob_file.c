// SPDX-License-Identifier: Apache-2.0
// What becomes of files that are not what they should be, and of saving that fails.
#include "backend/program/blob_store.h"
#include "backend/registry/context.h"

#include <limits.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "blob_case.h"
#include "runtime/session/session.h"
#include "unit.h"

/* ---- broken files ---- */

/* With `data` in the place of the file: compiled anew, and put right. */
static void check_replaced(const char *path, const char *data, size_t length, const char *reason) {
  int compiles = blob_case_ask("compiles");
  blob_case_write(path, data, length);
  blob_case_log[0] = '\0';
  ck_assert_msg(!blob_case_run(1.0f), "%zu bytes were loaded", length);
  ck_assert_int_eq(blob_case_ask("compiles"), compiles + 1);
  ck_assert_msg(
      strstr(blob_case_log, "the region is compiled again") != NULL && strstr(blob_case_log, reason) != NULL,
      "log: %s", blob_case_log);
  ck_assert(blob_case_run(1.0f));
  ck_assert_int_eq(blob_case_count_files(NULL), 1);
}

UNIT_TEST(a_file_that_is_cut_anywhere_is_compiled_anew) {
  static char data[8192];
  char path[PATH_MAX];
  blob_case_start();
  ck_assert(!blob_case_run(1.0f));
  ck_assert_int_eq(blob_case_count_files(path), 1);
  size_t length = blob_case_read(path, data, sizeof data);
  for (size_t cut = 0; cut < length; cut++) {
    check_replaced(path, data, cut, cut < 48 ? "it is truncated" : "bytes, which is not what it says");
  }
  data[length] = 0;
  check_replaced(path, data, length + 1, "bytes, which is not what it says");
  blob_case_finish();
}

UNIT_TEST(a_file_with_any_bit_flipped_is_compiled_anew) {
  static char data[8192];
  char path[PATH_MAX];
  blob_case_start();
  ck_assert(!blob_case_run(1.0f));
  ck_assert_int_eq(blob_case_count_files(path), 1);
  size_t length = blob_case_read(path, data, sizeof data);
  for (size_t k = 0; k < length; k++) {
    data[k] ^= (char)(1 << k % 8);
    check_replaced(path, data, length, "");
    data[k] ^= (char)(1 << k % 8);
  }
  data[8] = 1;
  check_replaced(path, data, length, "format version 1, expected 2");
  data[8] = 2;
  const char mark[4] = {data[15], data[14], data[13], data[12]};
  memcpy(data + 12, mark, 4);
  check_replaced(path, data, length, "another byte order");
  data[0] = 'X';
  check_replaced(path, data, length, "it is not a compiled region");
  blob_case_finish();
}

UNIT_TEST(a_whole_file_of_another_region_is_compiled_anew) {
  static char data[8192];
  char path[PATH_MAX];
  blob_case_start();
  ck_assert(!blob_case_run(2.0f));
  ck_assert_int_eq(blob_case_count_files(path), 1);
  size_t length = blob_case_read(path, data, sizeof data);
  ck_assert_int_eq(unlink(path), 0);
  ck_assert(!blob_case_run(1.0f));
  ck_assert_int_eq(blob_case_count_files(path), 1);
  check_replaced(path, data, length, "it is another region");
  blob_case_finish();
}

UNIT_TEST(what_is_no_file_of_ours_is_not_used) {
  static char data[8192];
  char path[PATH_MAX];
  char elsewhere[PATH_MAX];
  blob_case_start();
  ck_assert(!blob_case_run(1.0f));
  ck_assert_int_eq(blob_case_count_files(path), 1);
  size_t length = blob_case_read(path, data, sizeof data);
  /* A folder in its place stays, and so the region is compiled every time. */
  ck_assert(unlink(path) == 0 && mkdir(path, 0700) == 0);
  blob_case_log[0] = '\0';
  ck_assert(!blob_case_run(1.0f) && !blob_case_run(1.0f));
  ck_assert_ptr_nonnull(strstr(blob_case_log, "not used: not a regular file; the region is compiled again"));
  ck_assert_ptr_nonnull(strstr(blob_case_log, "not written: Is a directory"));
  ck_assert_int_eq(blob_case_count_files(NULL), 1);
  ck_assert_int_eq(rmdir(path), 0);
  /* A pipe does not make it wait; a link is not followed, and replaced. */
  ck_assert_int_eq(mkfifo(path, 0600), 0);
  ck_assert(!blob_case_run(1.0f) && blob_case_run(1.0f));
  (void)snprintf(elsewhere, sizeof elsewhere, "%.60s/elsewhere", blob_case_folder);
  blob_case_write(elsewhere, data, length);
  ck_assert(unlink(path) == 0 && symlink(elsewhere, path) == 0);
  ck_assert(!blob_case_run(1.0f) && blob_case_run(1.0f));
  static char untouched[8192];
  ck_assert_uint_eq(blob_case_read(elsewhere, untouched, sizeof untouched), length);
  ck_assert_mem_eq(untouched, data, length);
  ck_assert_int_eq(unlink(elsewhere), 0);
  /* Others might have written it. */
  ck_assert_int_eq(chmod(path, 0622), 0);
  blob_case_log[0] = '\0';
  ck_assert(!blob_case_run(1.0f) && blob_case_run(1.0f));
  ck_assert_ptr_nonnull(strstr(blob_case_log, "other users may write to it"));
  if (geteuid() == 0) {
    ck_assert_int_eq(chown(path, 12345, 12345), 0);
    ck_assert(!blob_case_run(1.0f) && blob_case_run(1.0f));
    ck_assert_ptr_nonnull(strstr(blob_case_log, "it belongs to another user"));
  } else {
    ck_assert_int_eq(chmod(path, 0), 0);
    ck_assert(!blob_case_run(1.0f) && blob_case_run(1.0f));
    ck_assert_ptr_nonnull(strstr(blob_case_log, "not used: Permission denied"));
  }
  blob_case_finish();
}

UNIT_TEST(what_the_library_refuses_is_compiled_anew) {
  blob_case_start();
  ck_assert(!blob_case_run(1.0f));
  (void)setenv("CLEAVE_TEST_CHECK", "refuses", 1);
  ck_assert(!blob_case_run(1.0f));
  ck_assert_ptr_nonnull(
      strstr(blob_case_log, "refused by blobs: made on a Tuesday; the region is compiled again"));
  (void)unsetenv("CLEAVE_TEST_CHECK");
  (void)setenv("CLEAVE_TEST_LOAD", "refuses", 1);
  ck_assert(!blob_case_run(1.0f));
  ck_assert_ptr_nonnull(
      strstr(blob_case_log, "refused by blobs: no reason given; the region is compiled again"));
  (void)unsetenv("CLEAVE_TEST_LOAD");
  ck_assert(blob_case_run(1.0f));
  ck_assert_int_eq(blob_case_ask("compiles"), 3);
  blob_case_finish();
}

/* ---- saving ---- */

UNIT_TEST(saving_that_fails_leaves_nothing_behind) {
  static const struct {
    const char *mode;
    const char *reason;
    bool is_kept;
  } CASES[] = {{"never", "3 ", false},
               {"fails", "not written: not this one", false},
               {"null", "not written: the backend gave 24 bytes at a NULL pointer", false},
               {"ignores", "bytes at a NULL pointer", false},
               {"much", "not written: it is larger than 1000000 bytes", false},
               {"nothing", "", true}};
  blob_case_start();
  cleave_session_options_t options = blob_case_options(1000000);
  for (size_t k = 0; k < sizeof CASES / sizeof CASES[0]; k++) {
    blob_case_log[0] = '\0';
    (void)setenv("CLEAVE_TEST_SAVE", CASES[k].mode, 1);
    ck_assert(!blob_case_run_with(1.0f, &options));
    ck_assert_msg(strstr(blob_case_log, CASES[k].reason) != NULL, "%s: log: %s", CASES[k].mode,
                  blob_case_log);
    ck_assert_int_eq(blob_case_count_files(NULL), CASES[k].is_kept ? 1 : 0);
  }
  (void)unsetenv("CLEAVE_TEST_SAVE");
  ck_assert(!blob_case_run_with(1.0f, &options)); /* of no bytes: refused by `check` */
  ck_assert(blob_case_run_with(1.0f, &options));
  blob_case_finish();
}

UNIT_TEST(a_full_disk_is_no_failure_and_no_signal) {
  blob_case_start();
  struct rlimit limit;
  session_case_t c = blob_case_make(1.0f);
  cleave_session_options_t options = blob_case_options(0);
  ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
  rlim_t bytes = 0;
  for (; blob_case_count_files(NULL) == 0 && bytes < 1000; bytes += 50) {
    struct rlimit small = {.rlim_cur = bytes, .rlim_max = limit.rlim_max};
    cleave_session_t *session = NULL;
    blob_case_log[0] = '\0';
    /* No assertions here: Check writes them to a file. */
    (void)setrlimit(RLIMIT_FSIZE, &small);
    cleave_status_t status =
        cleave_session_create_planned(c.graph, c.plan, c.pointers, c.input_count, &options, &session, NULL);
    (void)setrlimit(RLIMIT_FSIZE, &limit);
    ck_assert_int_eq((int)status, (int)CLEAVE_OK);
    ck_assert_uint_eq(cleave_session_loaded_count(session), 0);
    cleave_session_destroy(session);
    ck_assert(strstr(blob_case_log,
                     "not written: the file would exceed the file size limit of the process") != NULL ||
              blob_case_count_files(NULL) == 1);
  }
  ck_assert(bytes > 400 && bytes < 1000);
  session_case_deinit(&c);
  ck_assert(blob_case_run(1.0f));
  blob_case_finish();
}

UNIT_TEST(a_folder_is_made_and_one_that_cannot_be_is_an_error) {
  blob_case_start();
  char deep[PATH_MAX];
  (void)snprintf(deep, sizeof deep, "%.60s/a/b/c", blob_case_folder);
  cleave_session_options_t options = blob_case_options(0);
  options.blob_folder = deep;
  ck_assert(!blob_case_run_with(1.0f, &options) && blob_case_run_with(1.0f, &options));
  struct stat info;
  ck_assert(stat(deep, &info) == 0 && (info.st_mode & 0777) == 0700);
  session_case_t c = blob_case_make(1.0f);
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
  c = blob_case_make(3.0f);
  cleave_blob_store_t *store = NULL;
  unit_ok(cleave_blob_store_open(deep, 0, cleave_context_log(NULL), &store, e));
  cleave_blob_t blob;
  unit_ok(cleave_blob_store_clear(store, e));
  ck_assert_int_eq(rmdir(deep), 0);
  ck_assert(!cleave_blob_store_read(store, "key", 1, &blob));
  unit_fails_with(cleave_blob_store_clear(store, e), CLEAVE_ERROR_IO, "No such file or directory");
  cleave_blob_store_close(store);
  session_case_deinit(&c);
  blob_case_finish();
}

UNIT_SUITE("blob_file")
