// SPDX-License-Identifier: Apache-2.0
// What tests of isolated libraries share.
#include "isolate_case.h"
#include "library_case.h"

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

cleave_isolation_t isolate_case_isolation(const char *name) {
  cleave_isolation_t isolation = {.size = sizeof isolation};
  unit_ok(cleave_backend_isolation(NULL, name, &isolation, e));
  return isolation;
}

const float isolate_case_data[ISOLATE_COUNT] = {-1.0f, 2.0f, -3.0f, 4.0f, 0.0f, 0.5f};
const int64_t isolate_case_dims[2] = {2, 3};

session_case_t isolate_case_graph(const char *backend) {
  const cleave_value_t none = CLEAVE_VALUE_NONE;
  session_case_t c = session_case_create();
  cleave_value_t x = session_case_input(&c, "x", CLEAVE_DTYPE_F32, 2, isolate_case_dims);
  cleave_value_t first = session_case_node(&c, "Relu", "first", x, none, none);
  cleave_value_t neg = session_case_node(&c, "Neg", "neg", first, none, none);
  session_case_output(&c, session_case_node(&c, "Relu", "last", neg, none, none));
  session_case_output(&c, first);
  session_case_infer(&c);
  session_case_partition(&c, "Relu", backend);
  session_case_feed(&c, 2, isolate_case_dims, isolate_case_data);
  return c;
}

session_case_t isolate_case_compiled(const char *backend) {
  session_case_t c = isolate_case_graph(backend);
  session_case_compile(&c, NULL);
  return c;
}

void isolate_case_check(const session_case_t *c) {
  for (int64_t k = 0; k < ISOLATE_COUNT; k++) {
    const float x = isolate_case_data[k];
    ck_assert_float_eq(session_case_value(c, 1, k), x > 0.0f ? x : 0.0f);
    ck_assert_float_eq(session_case_value(c, 0, k), 0.0f);
  }
}

void isolate_case_run(session_case_t *c) {
  session_case_run(c);
  isolate_case_check(c);
}

void isolate_case_revive(const char *path, const char *name) {
  if (isolate_case_isolation(name).is_lost) {
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

const char *isolate_case_operate(const char *text, int32_t rank, const int64_t *dims, const float *expected,
                                 int64_t count) {
  static const float DATA[6] = {-1.0f, 2.0f, -3.0f, 4.0f, 0.0f, 0.5f};
  static char message[1024];
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_session_t *session = NULL;
  cleave_model_t *model = library_case_model(text);
  cleave_tensor_view_t view = {
      .size = sizeof view, .dtype = CLEAVE_DTYPE_F32, .rank = rank, .dims = dims, .data = DATA};
  const cleave_tensor_view_t *inputs[1] = {&view};
  cleave_status_t status = cleave_session_create(model, NULL, inputs, 1, NULL, &session, &error);
  if (status == CLEAVE_OK) {
    unit_ok(cleave_session_set_input(session, 0, &view, e));
    status = cleave_session_run(session, &error);
  }
  if (status == CLEAVE_OK && expected != NULL) {
    library_case_run(session, 0, expected, count);
  }
  (void)snprintf(message, sizeof message, "%s", status == CLEAVE_OK ? "" : error.message);
  cleave_session_destroy(session);
  cleave_model_release(model);
  return message;
}

void isolate_case_expect(const char *found, const char *part) {
  ck_assert_msg(part[0] == '\0' ? found[0] == '\0' : strstr(found, part) != NULL, "'%s' is not in '%s'", part,
                found);
}
