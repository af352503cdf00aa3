// SPDX-License-Identifier: Apache-2.0
// What libraries are told and asked, and the options that their programs are compiled with; with
// tests/accelerators/blobs.c, which answers what it was given.
#include <pthread.h>

#include "backend/program/backend_options.h"
#include "backend/registry/registry.h"
#include "runtime/session/session.h"
#include "session_case.h"
#include "unit.h"

#define LIBRARY(name) CLEAVE_BINARY_DIR "/tests/accelerators/lib" name ".so"

static const int64_t DIMS[1] = {4};
static const float X[4] = {-1.0f, 2.0f, -3.0f, 4.0f};

static void start(void) {
  unit_ok(cleave_registry_load(NULL, LIBRARY("blobs"), NULL, e));
}

static cleave_status_t set(const char *key, const char *value, cleave_error_t *error) {
  cleave_key_value_t setting = {.key = key, .value = value};
  return cleave_backend_configure(NULL, "blobs", &setting, 1, NULL, NULL, error);
}

/* The one answer to one question. */
static void check_answer(const char *key, const char *expected) {
  cleave_key_value_t setting = {.key = key};
  cleave_key_value_t *answers = NULL;
  uint32_t count = 7;
  unit_ok(cleave_backend_configure(NULL, "blobs", &setting, 1, &answers, &count, e));
  ck_assert_uint_eq(count, 1);
  ck_assert_str_eq(answers[0].key, key);
  ck_assert_str_eq(answers[0].value, expected);
  cleave_answers_free(answers);
}

/* ---- configure ---- */

UNIT_TEST(settings_go_in_and_answers_come_out) {
  start();
  check_answer("mood", "fair");
  unit_ok(set("mood", "a=b", e));
  check_answer("mood", "a=b");
  unit_ok(set("mood", "", e));
  check_answer("mood", "");
  const cleave_key_value_t settings[] = {{"mood", "good"}, {"compiles", NULL}, {"mood", NULL}};
  cleave_key_value_t *answers = NULL;
  uint32_t count = 0;
  unit_ok(cleave_backend_configure(NULL, "blobs", settings, 3, &answers, &count, e));
  ck_assert_uint_eq(count, 3);
  ck_assert_str_eq(answers[0].value, "good");
  ck_assert_str_eq(answers[1].key, "compiles");
  ck_assert_str_eq(answers[1].value, "0");
  ck_assert_str_eq(answers[2].value, "good");
  unit_ok(set("mood", "changed", e)); /* answers are copies */
  ck_assert_str_eq(answers[2].value, "good");
  cleave_answers_free(answers);
  answers = (void *)X;
  unit_ok(cleave_backend_configure(NULL, "blobs", NULL, 0, &answers, &count, e));
  ck_assert_uint_eq(count, 0);
  cleave_answers_free(answers);
  cleave_answers_free(NULL);
}

UNIT_TEST(what_is_wrong_with_a_setting_is_said) {
  start();
  unit_fails(set("moood", "x", e), CLEAVE_ERROR_UNSUPPORTED, "backend 'blobs': key 'moood' is unknown");
  unit_fails(set("compiles", "3", e), CLEAVE_ERROR_UNSUPPORTED,
             "backend 'blobs': key 'compiles' is for asking only");
  unit_fails(set("", "x", e), CLEAVE_ERROR_INVALID_ARGUMENT, "backend 'blobs': setting 0 has no key");
  unit_fails(set(NULL, "x", e), CLEAVE_ERROR_INVALID_ARGUMENT, "backend 'blobs': setting 0 has no key");
  unit_ok(cleave_registry_load(NULL, LIBRARY("good"), NULL, e));
  cleave_key_value_t setting = {.key = "a", .value = "b"};
  unit_fails(cleave_backend_configure(NULL, "good", &setting, 1, NULL, NULL, e), CLEAVE_ERROR_UNSUPPORTED,
             "backend 'good' has nothing to configure");
  unit_fails_with(cleave_backend_configure(NULL, "gut", &setting, 1, NULL, NULL, e), CLEAVE_ERROR_UNSUPPORTED,
                  "backend 'gut' is unknown");
}

UNIT_TEST(answers_that_make_no_sense_are_the_librarys_failure) {
  static const struct {
    const char *kind;
    const char *message;
  } CASES[] = {
      {"no key", "backend 'blobs': answer 0 has no key"},
      {"no value", "backend 'blobs': answer 0 has no value"},
      {"no array", "backend 'blobs': it says it has 1 answer, and gives none"},
      {"many", "backend 'blobs': it says it has 4294967295 answers, expected at most 4096"},
      {"long", "backend 'blobs': answer 0 is longer than 1 MiB"},
  };
  start();
  for (size_t k = 0; k < sizeof CASES / sizeof CASES[0]; k++) {
    cleave_key_value_t setting = {.key = "answers", .value = CASES[k].kind};
    cleave_key_value_t *answers = (void *)X;
    uint32_t count = 9;
    unit_fails(cleave_backend_configure(NULL, "blobs", &setting, 1, &answers, &count, e),
               CLEAVE_ERROR_BACKEND, CASES[k].message);
    ck_assert(answers == NULL && count == 0);
  }
  unit_ok(set("answers", "many", e)); /* nobody looks */
  unit_ok(set("answers", "good", e));
  check_answer("mood", "fair");
}

enum { THREADS = 4, ROUNDS = 500 };

static void *ask_often(void *context) {
  const char *mine = context;
  for (int k = 0; k < ROUNDS; k++) {
    const cleave_key_value_t settings[] = {{"mood", mine}, {"mood", NULL}};
    cleave_key_value_t *answers = NULL;
    uint32_t count = 0;
    if (cleave_backend_configure(NULL, "blobs", settings, 2, &answers, &count, NULL) != CLEAVE_OK ||
        count != 2 || strcmp(answers[1].value, mine) != 0) {
      return context;
    }
    cleave_answers_free(answers);
  }
  return NULL;
}

UNIT_TEST(threads_get_the_answers_to_their_own_questions) {
  static char names[THREADS][2] = {"a", "b", "c", "d"};
  pthread_t threads[THREADS];
  start();
  for (int k = 0; k < THREADS; k++) {
    ck_assert_int_eq(pthread_create(&threads[k], NULL, ask_often, names[k]), 0);
  }
  for (int k = 0; k < THREADS; k++) {
    void *result = NULL;
    ck_assert_int_eq(pthread_join(threads[k], &result), 0);
    ck_assert_ptr_null(result);
  }
}

/* ---- options ---- */

UNIT_TEST(options_are_sorted_by_backend_and_key) {
  start();
  const cleave_backend_option_t options[] = {{"blobs", "z", "1"},      {"cpu", "device", "0"},
                                             {"blobs", "a", "3"},      {"blobs", "m", ""},
                                             {"blobs", "device", "1"}, {"blobs", "z", "4"}};
  cleave_arena_t arena = {0};
  cleave_backend_option_table_t table;
  cleave_compile_options_t compile = {.size = sizeof compile, .threads = 3, .device = 9};
  unit_ok(cleave_backend_option_table_build(NULL, options, 6, &arena, &table, e));
  ck_assert_uint_eq(table.count, 2);
  cleave_backend_option_table_apply(&table, "blobs", &compile);
  ck_assert(compile.device == 1 && compile.option_count == 3 && compile.threads == 3);
  static const char *const KEYS[] = {"a", "m", "z"};
  static const char *const VALUES[] = {"3", "", "4"};
  for (size_t k = 0; k < 3; k++) {
    ck_assert_str_eq(compile.options[k].key, KEYS[k]);
    ck_assert_str_eq(compile.options[k].value, VALUES[k]);
  }
  ck_assert(table.items[0].is_used && !table.items[1].is_used);
  cleave_backend_option_table_apply(&table, "onednn", &compile);
  ck_assert(compile.device == 0 && compile.option_count == 0 && compile.options == NULL);
  cleave_arena_deinit(&arena);
}

UNIT_TEST(options_that_cannot_be_meant_are_refused) {
  static const struct {
    cleave_backend_option_t option;
    cleave_status_t status;
    const char *message;
  } CASES[] = {
      {{"blobs", "device", "2"},
       CLEAVE_ERROR_INVALID_ARGUMENT,
       "option 'blobs.device': backend 'blobs' has 2 devices, there is no device 2"},
      {{"blobs", "device", "99999999999999999999"}, CLEAVE_ERROR_INVALID_ARGUMENT, "there is no device 1844"},
      {{"blobs", "device", "-1"}, CLEAVE_ERROR_INVALID_ARGUMENT, "the number of a device, found '-1'"},
      {{"blobs", "device", " 1"}, CLEAVE_ERROR_INVALID_ARGUMENT, "the number of a device, found ' 1'"},
      {{"blobs", "device", "1x"}, CLEAVE_ERROR_INVALID_ARGUMENT, "the number of a device, found '1x'"},
      {{"blobs", "device", ""}, CLEAVE_ERROR_INVALID_ARGUMENT, "the number of a device, found ''"},
      {{"cpu", "device", "1"},
       CLEAVE_ERROR_INVALID_ARGUMENT,
       "backend 'cpu' has 1 device, there is no device 1"},
      {{"blob", "a", "1"}, CLEAVE_ERROR_UNSUPPORTED, "option 'blob.a': backend 'blob' is unknown"},
      {{"blobs", "", "1"}, CLEAVE_ERROR_INVALID_ARGUMENT, "has no backend, key or value"},
      {{"blobs", NULL, "1"}, CLEAVE_ERROR_INVALID_ARGUMENT, "has no backend, key or value"},
      {{"blobs", "a", NULL}, CLEAVE_ERROR_INVALID_ARGUMENT, "has no backend, key or value"},
      {{NULL, "a", "1"}, CLEAVE_ERROR_INVALID_ARGUMENT, "has no backend, key or value"},
      {{"blobs", "levle", "1"},
       CLEAVE_ERROR_INVALID_ARGUMENT,
       "option 'blobs.levle': backend 'blobs' has no such option (did you mean 'level'?); there are: device, "
       "a, "
       "b, level, level.of, m, z"},
      {{"cpu", "fast", "1"},
       CLEAVE_ERROR_INVALID_ARGUMENT,
       "option 'cpu.fast': backend 'cpu' has no such option; there are: device"},
      {{"blobs", "a=b", "1"}, CLEAVE_ERROR_INVALID_ARGUMENT, "option 'blobs.a=b': there is '=' in its key"},
  };
  start();
  for (size_t k = 0; k < sizeof CASES / sizeof CASES[0]; k++) {
    cleave_arena_t arena = {0};
    cleave_backend_option_table_t table;
    unit_fails_with(cleave_backend_option_table_build(NULL, &CASES[k].option, 1, &arena, &table, e),
                    CASES[k].status, CASES[k].message);
    cleave_arena_deinit(&arena);
  }
}

UNIT_TEST(everything_a_program_is_compiled_with_is_in_its_hash) {
  const cleave_key_value_t pairs[] = {{"a", "b"}, {"c", "d"}};
  const cleave_key_value_t moved[] = {{"ab", ""}, {"c", "d"}};
  const cleave_compile_options_t options[] = {
      {.threads = 1},
      {.threads = 2},
      {.threads = 1, .profile = true},
      {.threads = 1, .device = 1},
      {.threads = 1, .option_count = 1, .options = pairs},
      {.threads = 1, .option_count = 2, .options = pairs},
      {.threads = 1, .option_count = 2, .options = moved},
  };
  for (size_t a = 0; a < 7; a++) {
    for (size_t b = 0; b < 7; b++) {
      bool same = cleave_compile_options_hash(&options[a]) == cleave_compile_options_hash(&options[b]);
      ck_assert_int_eq(same, a == b);
    }
  }
}

/* A session over y = Relu(x) on `blobs`. */
static session_case_t make_case(const cleave_session_options_t *options) {
  session_case_t c = session_case_create();
  cleave_value_t x = session_case_input(&c, "x", CLEAVE_DTYPE_F32, 1, DIMS);
  session_case_output(&c, session_case_node(&c, "Relu", "y", x, CLEAVE_VALUE_NONE, CLEAVE_VALUE_NONE));
  session_case_infer(&c);
  session_case_partition(&c, "Relu", "blobs");
  session_case_feed(&c, 1, DIMS, X);
  session_case_compile(&c, options);
  session_case_run(&c);
  for (int64_t k = 0; k < 4; k++) {
    ck_assert_float_eq(session_case_value(&c, 0, k), X[k] > 0.0f ? X[k] : 0.0f);
  }
  return c;
}

UNIT_TEST(options_of_a_session_reach_the_compiler) {
  start();
  const cleave_backend_option_t given[] = {
      {"blobs", "b", "x y"}, {"cpu", "device", "0"}, {"blobs", "device", "1"}, {"blobs", "a", "1"}};
  cleave_session_options_t options = {
      .size = sizeof options, .threads = 1, .backend_options = given, .backend_option_count = 4};
  session_case_t c = make_case(&options);
  check_answer("options", "device 1 a=1 b=x y");
  session_case_deinit(&c);
  options.backend_option_count = 0;
  c = make_case(&options);
  check_answer("options", "device 0");
  session_case_deinit(&c);
}

UNIT_TEST(programs_with_other_options_devices_or_settings_are_not_shared) {
  start();
  cleave_program_cache_t *cache = NULL;
  unit_ok(cleave_program_cache_create(&cache, e));
  const cleave_backend_option_t device = {"blobs", "device", "1"};
  const cleave_backend_option_t level = {"blobs", "level", "1"};
  cleave_session_options_t options = {
      .size = sizeof options, .threads = 1, .programs = cache, .backend_options = &device};
  session_case_t cases[6];
  cases[0] = make_case(&options);
  options.backend_option_count = 1;
  cases[1] = make_case(&options);
  options.backend_options = &level;
  cases[2] = make_case(&options);
  check_answer("compiles", "3");
  cases[3] = make_case(&options);
  ck_assert_uint_eq(cleave_session_reused_count(cases[3].session), 1);
  unit_ok(set("mood", "bad", e));
  cases[4] = make_case(&options);
  ck_assert_uint_eq(cleave_session_reused_count(cases[4].session), 0);
  check_answer("mood", "bad"); /* asking changes nothing */
  cases[5] = make_case(&options);
  ck_assert_uint_eq(cleave_session_reused_count(cases[5].session), 1);
  check_answer("compiles", "4");
  for (size_t k = 0; k < 6; k++) {
    session_case_deinit(&cases[k]);
  }
  cleave_program_cache_release(cache);
}

UNIT_SUITE("configure")
