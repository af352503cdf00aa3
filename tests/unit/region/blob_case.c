// SPDX-License-Identifier: Apache-2.0
// The folder, the graph, and what the library and the log say.
#include "blob_case.h"

#include <dirent.h>
#include <limits.h>
#include <math.h>

#include "backend/registry/registry.h"
#include "unit.h"

const float blob_case_x[BLOB_CASE_COUNT] = {-1.0f, 2.0f, -3.0f, 4.0f, 0.0f, 0.5f};
char blob_case_folder[64];
char blob_case_log[BLOB_CASE_LOG_SIZE];
static const int64_t DIMS[2] = {2, 3};

static void keep_line(void *context, cleave_log_level_t level, const char *line) {
  (void)context;
  size_t used = strlen(blob_case_log);
  (void)snprintf(blob_case_log + used, sizeof blob_case_log - used, "%d %s\n", (int)level, line);
}

void blob_case_start(void) {
  (void)snprintf(blob_case_folder, sizeof blob_case_folder, "/tmp/cleave-blobs-XXXXXX");
  ck_assert_ptr_nonnull(mkdtemp(blob_case_folder));
  unit_ok(cleave_registry_load(NULL, BLOB_CASE_LIBRARY("blobs"), NULL, e));
  cleave_context_set_log(NULL, keep_line, NULL);
}

void blob_case_finish(void) {
  char command[128];
  cleave_context_set_log(NULL, NULL, NULL);
  (void)snprintf(command, sizeof command, "rm -rf '%s'", blob_case_folder);
  ck_assert_int_eq(system(command), 0);
}

int blob_case_ask(const char *key) {
  cleave_key_value_t setting = {.key = key};
  cleave_key_value_t *answers = NULL;
  uint32_t count = 0;
  unit_ok(cleave_backend_configure(NULL, "blobs", &setting, 1, &answers, &count, e));
  int value = atoi(answers[0].value);
  cleave_answers_free(answers);
  return value;
}

session_case_t blob_case_make_on(const char *backend, float w) {
  float weights[BLOB_CASE_COUNT];
  for (size_t k = 0; k < BLOB_CASE_COUNT; k++) {
    weights[k] = w;
  }
  session_case_t c = session_case_create();
  cleave_value_t x = session_case_input(&c, "x", CLEAVE_DTYPE_F32, 2, DIMS);
  cleave_value_t constant = session_case_floats(&c, "w", 2, DIMS, weights);
  cleave_value_t sum = session_case_node(&c, "Add", "sum", x, constant, CLEAVE_VALUE_NONE);
  session_case_output(&c, session_case_node(&c, "Sigmoid", "end", sum, CLEAVE_VALUE_NONE, CLEAVE_VALUE_NONE));
  session_case_infer(&c);
  session_case_partition(&c, "Add", backend);
  session_case_feed(&c, 2, DIMS, blob_case_x);
  return c;
}

session_case_t blob_case_make(float w) {
  return blob_case_make_on("blobs", w);
}

cleave_session_options_t blob_case_options(uint64_t limit) {
  return (cleave_session_options_t){.size = sizeof(cleave_session_options_t),
                                    .threads = 1,
                                    .blob_folder = blob_case_folder,
                                    .blob_limit = limit};
}

void blob_case_check(session_case_t *c, float w) {
  session_case_run(c);
  for (int64_t k = 0; k < BLOB_CASE_COUNT; k++) {
    float expected = 1.0f / (1.0f + expf(-(blob_case_x[k] + w)));
    ck_assert_float_eq_tol(session_case_value(c, 0, k), expected, 1e-6f);
  }
}

bool blob_case_run_with(float w, const cleave_session_options_t *options) {
  session_case_t c = blob_case_make(w);
  session_case_compile(&c, options);
  blob_case_check(&c, w);
  uint32_t loaded = cleave_session_loaded_count(c.session);
  session_case_deinit(&c);
  ck_assert_uint_le(loaded, 1);
  return loaded == 1;
}

bool blob_case_run(float w) {
  cleave_session_options_t options = blob_case_options(0);
  return blob_case_run_with(w, &options);
}

/* Names of the blob_case_folder; *out_last is a path among them. */
int blob_case_count_files(char *out_last) {
  DIR *stream = opendir(blob_case_folder);
  int count = 0;
  ck_assert_ptr_nonnull(stream);
  for (const struct dirent *entry = readdir(stream); entry != NULL; entry = readdir(stream)) {
    if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
      count++;
      if (out_last != NULL) {
        (void)snprintf(out_last, PATH_MAX, "%s/%s", blob_case_folder, entry->d_name);
      }
    }
  }
  (void)closedir(stream);
  return count;
}

size_t blob_case_read(const char *path, char *data, size_t size) {
  FILE *file = fopen(path, "rb");
  ck_assert_ptr_nonnull(file);
  size_t length = fread(data, 1, size, file);
  (void)fclose(file);
  ck_assert_uint_lt(length, size);
  return length;
}

void blob_case_write(const char *path, const char *data, size_t length) {
  FILE *file = fopen(path, "wb");
  ck_assert_ptr_nonnull(file);
  ck_assert_uint_eq(fwrite(data, 1, length, file), length);
  ck_assert_int_eq(fclose(file), 0);
}
