// SPDX-License-Identifier: Apache-2.0
// What tests of isolated libraries share.
#include "isolate_case.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>

#include "unit.h"

static struct {
  pthread_mutex_t lock;
  char text[1 << 16];
  size_t length;
} lines = {.lock = PTHREAD_MUTEX_INITIALIZER};

void isolate_case_load(const char *path, isolate_way_t way, const char *misdeed) {
  uint32_t limit = way == ISOLATE_SHORT ? 800 : 60000;
  const cleave_isolation_options_t options = {.size = sizeof options,
                                              .ask_ms = limit,
                                              .compile_ms = limit,
                                              .run_ms = limit,
                                              .fallback = way == ISOLATE_FALLING};
  ck_assert_int_eq(setenv("CLEAVE_TEST_MISDEED", misdeed == NULL ? "" : misdeed, 1), 0);
  if (way == ISOLATE_HERE) {
    unit_ok(cleave_backend_load(NULL, path, NULL, e));
  } else {
    unit_ok(cleave_backend_load_isolated(NULL, path, NULL, &options, e));
  }
}

void isolate_case_unload(const char *name) {
  unit_ok(cleave_backend_unload(NULL, name, e));
}

void isolate_case_revive(const char *path, const char *name) {
  cleave_isolation_t isolation = {.size = sizeof isolation};
  unit_ok(cleave_backend_isolation(NULL, name, &isolation, e));
  if (isolation.is_lost) {
    unit_ok(cleave_backend_load_isolated(NULL, path, NULL, NULL, e));
  }
}

void isolate_case_check_no_children(void) {
  ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
  ck_assert_int_eq(errno, ECHILD);
}

static void take_line(void *context, cleave_log_level_t level, const char *line) {
  (void)context;
  (void)pthread_mutex_lock(&lines.lock);
  if (level <= CLEAVE_LOG_INFORMATION && lines.length < sizeof lines.text) {
    int length = snprintf(lines.text + lines.length, sizeof lines.text - lines.length, "%s\n", line);
    lines.length += length > 0 ? (size_t)length : 0;
  }
  (void)pthread_mutex_unlock(&lines.lock);
}

void isolate_case_listen(void) {
  lines.length = 0;
  lines.text[0] = '\0';
  cleave_context_set_log(NULL, take_line, NULL);
}

const char *isolate_case_lines(void) {
  return lines.text;
}

long isolate_case_pages(void) {
  long total = 0;
  long resident = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  ck_assert_ptr_nonnull(file);
  ck_assert_int_eq(fscanf(file, "%ld %ld", &total, &resident), 2);
  (void)fclose(file);
  return resident;
}

size_t isolate_case_descriptors(void) {
  size_t count = 0;
  DIR *folder = opendir("/proc/self/fd");
  ck_assert_ptr_nonnull(folder);
  while (readdir(folder) != NULL) {
    count++;
  }
  (void)closedir(folder);
  return count;
}
