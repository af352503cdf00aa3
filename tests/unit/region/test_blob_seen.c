// SPDX-License-Identifier: Apache-2.0
// Large files that were looked through once, and what makes them be looked through again.
#include "backend/blob/blob_seen.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "backend/program/blob_store.h"
#include "backend/registry/context.h"
#include "unit.h"

enum { BYTES = 5 << 20 };
static char folder[64];
static char path[128];  /* of the large file */
static char small[160]; /* of the one beside it */
static unsigned char content[BYTES];

static void make_folder(void) {
  (void)snprintf(folder, sizeof folder, "/tmp/cleave-seen-XXXXXX");
  ck_assert_ptr_nonnull(mkdtemp(folder));
  (void)snprintf(path, sizeof path, "%.60s/0123456789abcdef0123456789abcdef.blob", folder);
  (void)snprintf(small, sizeof small, "%s" CLEAVE_BLOB_SEEN_EXTENSION, path);
}

static void remove_folder(void) {
  char command[128];
  (void)snprintf(command, sizeof command, "rm -rf '%s'", folder);
  ck_assert_int_eq(system(command), 0);
}

static bool exists(const char *name) {
  struct stat info;
  return lstat(name, &info) == 0;
}

static void write_blob(unsigned char first, size_t bytes) {
  cleave_blob_writer_t writer;
  uint64_t size = 0;
  for (size_t k = 0; k < bytes; k++) {
    content[k] = (unsigned char)(first + k * 7);
  }
  cleave_blob_writer_start(&writer, folder, "key", UINT64_C(1) << 30);
  ck_assert_int_eq((int)cleave_blob_writer_write(&writer, content, bytes), (int)CLEAVE_OK);
  unit_ok(cleave_blob_writer_end(&writer, path, &size, e));
}

/* Past the time in which a file may change without that its times do. */
static void let_it_settle(void) {
  struct timespec pause = {.tv_sec = 2, .tv_nsec = 100000000};
  (void)nanosleep(&pause, NULL);
}

/* Reads it with the right content; was it known without a look? */
static bool is_known(size_t bytes) {
  const cleave_blob_reading_t reading = {.key = "key", .limit = UINT64_C(1) << 30, .threads = 2};
  cleave_blob_t blob;
  bool is_there = false;
  unit_ok(cleave_blob_read(path, &reading, &blob, &is_there, e));
  ck_assert(is_there && blob.bytes == bytes && memcmp(blob.data, content, bytes) == 0);
  bool known = blob.is_known;
  cleave_blob_deinit(&blob);
  return known;
}

static void check_refused(const char *reason) {
  const cleave_blob_reading_t reading = {.key = "key", .limit = UINT64_C(1) << 30, .threads = 2};
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_blob_t blob;
  bool is_there = false;
  ck_assert_int_ne((int)cleave_blob_read(path, &reading, &blob, &is_there, &error), (int)CLEAVE_OK);
  ck_assert_msg(is_there && strstr(error.message, reason) != NULL, "%s", error.message);
  ck_assert(blob.memory == NULL && !blob.is_known);
}

/* Changes bytes of a file, and sets its times back to what they were as far as that can be done. */
static void damage(const char *name, off_t at) {
  struct stat info;
  unsigned char byte = 0;
  int descriptor = open(name, O_RDWR);
  ck_assert(descriptor >= 0 && fstat(descriptor, &info) == 0);
  ck_assert_int_eq(pread(descriptor, &byte, 1, at), 1);
  byte ^= 1;
  ck_assert_int_eq(pwrite(descriptor, &byte, 1, at), 1);
  const struct timespec times[2] = {info.st_atim, info.st_mtim};
  ck_assert(futimens(descriptor, times) == 0 && close(descriptor) == 0);
}

/* ---- the large file ---- */

UNIT_TEST(a_large_file_is_looked_through_once_and_after_it_was_touched) {
  make_folder();
  write_blob(1, BYTES);
  ck_assert(!is_known(BYTES));
  ck_assert_msg(!exists(small), "a file that may still change within a tick of the clock is remembered");
  let_it_settle();
  ck_assert(!is_known(BYTES) && exists(small));
  ck_assert(is_known(BYTES) && is_known(BYTES));
  /* Until it is touched. */
  damage(path, BYTES / 2);
  check_refused("its content was changed after it was written");
  damage(path, BYTES / 2); /* right again, but not the file that was looked through */
  ck_assert(!is_known(BYTES));
  ck_assert_int_eq(truncate(path, BYTES), 0);
  check_refused("bytes, which is not what it says it has");
  remove_folder();
}

UNIT_TEST(files_in_its_place_are_looked_through) {
  make_folder();
  write_blob(1, BYTES);
  let_it_settle();
  ck_assert(!is_known(BYTES) && is_known(BYTES));
  write_blob(2, BYTES);
  ck_assert(!is_known(BYTES));
  write_blob(3, 1000); /* a small one: each time */
  ck_assert_int_eq(unlink(small), 0);
  let_it_settle();
  ck_assert(!is_known(1000) && !is_known(1000) && !exists(small));
  remove_folder();
}

/* ---- the small file beside it ---- */

UNIT_TEST(what_is_wrong_beside_it_is_put_right) {
  make_folder();
  write_blob(1, BYTES);
  let_it_settle();
  ck_assert(!is_known(BYTES) && is_known(BYTES));
  for (off_t k = 0; k < (off_t)sizeof(cleave_blob_seen_t); k += 3) { /* the boot is among it */
    damage(small, k);
    ck_assert_msg(!is_known(BYTES), "byte %d", (int)k);
    ck_assert(is_known(BYTES));
  }
  ck_assert_int_eq(truncate(small, 50), 0);
  ck_assert(!is_known(BYTES) && is_known(BYTES));
  ck_assert_int_eq(chmod(small, 0622), 0); /* others might have written it */
  ck_assert(!is_known(BYTES) && is_known(BYTES));
  ck_assert(unlink(small) == 0 && symlink("/dev/zero", small) == 0);
  ck_assert(!is_known(BYTES) && is_known(BYTES));
  ck_assert(unlink(small) == 0 && mkdir(small, 0700) == 0); /* nothing can take its place */
  ck_assert(!is_known(BYTES) && !is_known(BYTES));
  remove_folder();
}

UNIT_TEST(it_goes_with_the_large_one_and_tells_when_that_was_used) {
  cleave_blob_store_t *store = NULL;
  cleave_blob_list_t list;
  make_folder();
  write_blob(1, BYTES);
  unit_ok(cleave_blob_store_open(folder, 0, cleave_context_log(NULL), &store, e));
  let_it_settle();
  ck_assert(!is_known(BYTES) && is_known(BYTES));
  struct stat info;
  ck_assert_int_eq(stat(path, &info), 0);
  unit_ok(cleave_blob_store_list(store, true, &list, e));
  ck_assert_uint_eq(list.count, 1);
  ck_assert_int_ge(list.items[0].used_ns - (int64_t)info.st_mtim.tv_sec * INT64_C(1000000000),
                   INT64_C(2000000000));
  cleave_blob_list_deinit(&list);
  unit_ok(cleave_blob_store_clear(store, e));
  ck_assert(!exists(path) && !exists(small));
  int descriptor = open(small, O_WRONLY | O_CREAT, 0600); /* as a process that was killed leaves it */
  ck_assert(descriptor >= 0 && close(descriptor) == 0);
  unit_ok(cleave_blob_store_list(store, false, &list, e));
  ck_assert(list.count == 0 && !exists(small));
  cleave_blob_list_deinit(&list);
  cleave_blob_store_close(store);
  remove_folder();
}

UNIT_SUITE("blob_seen")
