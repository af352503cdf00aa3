// SPDX-License-Identifier: Apache-2.0
/* Errors travel from variable to variable, to those who wait: serial, one worker, several, with and without
 * bulks. Operations that cannot be are refused, and short memory is an error. */
#include "base/memory.h"
#include "engine_case.h"

typedef struct setting {
  uint32_t workers;
  uint32_t bulk;
} setting_t;
static const setting_t settings[] = {{0, 0}, {1, 0}, {2, 0}, {0, 8}, {1, 8}, {2, 8}};
enum { SETTING_COUNT = sizeof settings / sizeof settings[0] };

static cleave_engine_t *create(int k) {
  cleave_engine_t *engine = engine_case_create(settings[k].workers);
  (void)cleave_engine_set_bulk(engine, settings[k].bulk);
  return engine;
}

#define FAILED "operation 'bad': expected sigma >= 0, found -1"

static void expect_failure(cleave_variable_t *variable) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  ck_assert_int_eq(cleave_variable_wait(variable, &error), CLEAVE_ERROR_INVALID_ARGUMENT);
  ck_assert_str_eq(error.message, FAILED);
}

static void expect_any_failure(cleave_engine_t *engine) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  ck_assert_int_eq(cleave_engine_wait(engine, &error), CLEAVE_ERROR_INVALID_ARGUMENT);
  ck_assert_str_eq(error.message, FAILED);
}

UNIT_TEST(an_error_is_silent_until_somebody_waits) {
  for (int k = 0; k < SETTING_COUNT; k++) {
    cleave_engine_t *engine = create(k);
    cleave_variable_t *x = engine_case_variable(engine);
    engine_case_push(engine, "bad", engine_case_fail, NULL, NULL, 0, x);
    expect_failure(x);
    engine_case_push(engine, "bad", engine_case_fail, NULL, NULL, 0, x);
    cleave_variable_release(x, NULL, NULL);
    cleave_engine_destroy(engine); /* nobody asked */
  }
}

UNIT_TEST(an_error_taints_what_depends_on_it_and_nothing_else) {
  for (int k = 0; k < SETTING_COUNT; k++) {
    cleave_engine_t *engine = create(k);
    cleave_variable_t *v[5];
    for (int n = 0; n < 5; n++) {
      v[n] = engine_case_variable(engine);
    }
    int run = 0;
    int other = 0;
    engine_case_push(engine, "bad", engine_case_fail, NULL, NULL, 0, v[0]);
    engine_case_push(engine, "reads it", engine_case_add_one, &run, &v[0], 1, v[1]);
    engine_case_push(engine, "reads that", engine_case_add_one, &run, &v[1], 1, v[2]);
    engine_case_push(engine, "writes it", engine_case_add_one, &run, NULL, 0, v[0]);
    engine_case_push(engine, "other", engine_case_add_one, &other, &v[4], 1, v[3]);
    engine_case_wait(v[3]);
    ck_assert_int_eq(other, 1);
    expect_failure(v[2]);
    ck_assert_int_eq(run, 0);
    /* All have the same error, and that was reported. */
    engine_case_wait(v[0]);
    engine_case_wait(v[1]);
    engine_case_wait_all(engine);
    engine_case_push(engine, "again", engine_case_add_one, &run, &v[0], 1, v[1]);
    engine_case_wait(v[1]);
    ck_assert_int_eq(run, 1);
    cleave_engine_counters_t counters = engine_case_counters(engine);
    ck_assert_uint_eq(counters.failed, 1);
    ck_assert_uint_eq(counters.skipped, 3);
    ck_assert_uint_eq(counters.ended, 6);
    for (int n = 0; n < 5; n++) {
      cleave_variable_release(v[n], NULL, NULL);
    }
    engine_case_end(engine);
  }
}

UNIT_TEST(waiting_for_all_reports_the_first_error_once) {
  for (int k = 0; k < SETTING_COUNT; k++) {
    cleave_engine_t *engine = create(k);
    cleave_variable_t *x = engine_case_variable(engine);
    cleave_variable_t *y = engine_case_variable(engine);
    engine_case_push(engine, "bad", engine_case_fail, NULL, NULL, 0, x);
    expect_any_failure(engine);
    engine_case_wait_all(engine);
    engine_case_wait(x);
    /* Each wait of several gets its own operation's error. */
    engine_case_push(engine, "bad", engine_case_fail, NULL, NULL, 0, x);
    expect_failure(x);
    engine_case_push(engine, "bad", engine_case_fail, NULL, NULL, 0, y);
    expect_failure(y);
    /* More errors than an engine remembers: all count as reported afterwards. */
    for (int n = 0; n < 200; n++) {
      engine_case_push(engine, "bad", engine_case_fail, NULL, NULL, 0, NULL);
    }
    engine_case_push(engine, "bad", engine_case_fail, NULL, NULL, 0, x);
    expect_any_failure(engine);
    engine_case_wait(x);
    engine_case_wait_all(engine);
    cleave_variable_release(x, NULL, NULL);
    cleave_variable_release(y, NULL, NULL);
    engine_case_end(engine);
  }
}

UNIT_TEST(in_a_bulk_each_operation_fails_for_itself) {
  cleave_engine_t *engine = engine_case_create(1);
  (void)cleave_engine_set_bulk(engine, 100);
  cleave_variable_t *v[4];
  for (int n = 0; n < 4; n++) {
    v[n] = engine_case_variable(engine);
  }
  int runs[4] = {0, 0, 0, 0};
  engine_case_push(engine, "first", engine_case_add_one, &runs[0], NULL, 0, v[0]);
  engine_case_push(engine, "bad", engine_case_fail, NULL, NULL, 0, v[1]);
  engine_case_push(engine, "after it", engine_case_add_one, &runs[1], &v[1], 1, v[2]);
  engine_case_push(engine, "beside it", engine_case_add_one, &runs[3], &v[0], 1, v[3]);
  engine_case_wait(v[3]);
  ck_assert_uint_eq(engine_case_counters(engine).bulks, 1);
  engine_case_wait(v[0]);
  expect_failure(v[2]);
  engine_case_wait(v[1]); /* the same error */
  ck_assert_int_eq(runs[0], 1);
  ck_assert_int_eq(runs[1], 0);
  ck_assert_int_eq(runs[3], 1);
  for (int n = 0; n < 4; n++) {
    cleave_variable_release(v[n], NULL, NULL);
  }
  engine_case_end(engine);
}

UNIT_TEST(operations_that_always_run_make_a_variable_whole_again) {
  for (int k = 0; k < SETTING_COUNT; k++) {
    cleave_engine_t *engine = create(k);
    cleave_variable_t *x = engine_case_variable(engine);
    int run = 0;
    engine_case_push(engine, "bad", engine_case_fail, NULL, NULL, 0, x);
    const cleave_operation_info_t info = {.size = sizeof info,
                                          .name = "always",
                                          .run = engine_case_add_one,
                                          .self = &run,
                                          .writes = &x,
                                          .write_count = 1,
                                          .flags = CLEAVE_OPERATION_ALWAYS};
    ck_assert_int_eq(cleave_engine_push(engine, &info, NULL), CLEAVE_OK);
    engine_case_push(engine, "after", engine_case_add_one, &run, NULL, 0, x);
    engine_case_wait(x);
    ck_assert_int_eq(run, 2);
    expect_any_failure(engine); /* which nobody was told of */
    cleave_variable_release(x, NULL, NULL);
    engine_case_end(engine);
  }
}

UNIT_TEST(a_program_that_fails_for_ever_does_not_grow) {
  cleave_engine_t *engine = engine_case_create(0);
  cleave_variable_t *x = engine_case_variable(engine);
  for (int n = 0; n < 1000; n++) {
    engine_case_push(engine, "bad", engine_case_fail, NULL, NULL, 0, x);
    expect_failure(x);
  }
  (void)cleave_memory_fail_after(-1);
  engine_case_push(engine, "bad", engine_case_fail, NULL, NULL, 0, x);
  ck_assert_int_eq(cleave_memory_fail_after(-1), 1); /* the error itself */
  expect_failure(x);
  cleave_variable_release(x, NULL, NULL);
  engine_case_end(engine);
}

/* ---- wrong use, short memory ---- */

static void start_nothing(void *self, const cleave_engine_run_t *run, cleave_completion_t *completion) {
  (void)self;
  (void)run;
  (void)completion;
}

UNIT_TEST(wrong_operations_are_refused_by_name) {
  cleave_engine_t *engine = engine_case_create(1);
  cleave_engine_t *other = engine_case_create(0);
  cleave_variable_t *foreign = engine_case_variable(other);
  cleave_variable_t *none = NULL;
  int value = 0;
#define OP .size = sizeof(cleave_operation_info_t), .name = "op", .self = &value
  const struct {
    cleave_operation_info_t info;
    const char *message;
  } CASES[] = {
      {{OP}, "operation 'op': expected either `run` or `start`, found neither"},
      {{OP, .run = engine_case_add_one, .start = start_nothing},
       "operation 'op': expected either `run` or `start`, found both"},
      {{OP, .run = engine_case_add_one, .device = 1},
       "operation 'op': expected one of 1 device, found number 1"},
      {{OP, .run = engine_case_add_one, .reads = &foreign, .read_count = 1},
       "operation 'op': variable 0 to read: expected a variable of this engine, found one of another"},
      {{OP, .run = engine_case_add_one, .writes = &none, .write_count = 1},
       "operation 'op': variable 0 to write: expected a variable of this engine, found NULL"},
      {{OP, .run = engine_case_add_one, .write_count = 2},
       "operation 'op': expected an array of 2 variables to write, found NULL"}};
#undef OP
  for (size_t k = 0; k < sizeof CASES / sizeof CASES[0]; k++) {
    cleave_operation_t *operation = NULL;
    unit_fails(cleave_engine_push(engine, &CASES[k].info, e), CLEAVE_ERROR_INVALID_ARGUMENT,
               CASES[k].message);
    ck_assert_int_eq(cleave_operation_create(engine, &CASES[k].info, &operation, NULL),
                     CLEAVE_ERROR_INVALID_ARGUMENT);
  }
  const cleave_engine_options_t no_device = {
      .size = sizeof no_device, .devices = (cleave_engine_device_t[1]){{0}}, .device_count = 0};
  cleave_engine_t *refused = NULL;
  unit_fails(cleave_engine_create(&no_device, &refused, e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "engine: expected at least one device, found 0");
  cleave_variable_release(foreign, NULL, NULL);
  engine_case_end(other);
  engine_case_end(engine);
}

/* What an engine does, up to the first failure, which the last wait is in any case. */
static cleave_status_t use(cleave_engine_t **engine, cleave_variable_t **variable,
                           cleave_operation_t **operation) {
  static int value;
  const cleave_engine_options_t serial = {.size = sizeof serial, .is_serial = true};
  cleave_operation_info_t info = {.size = sizeof info,
                                  .name = "op",
                                  .run = engine_case_add_one,
                                  .self = &value,
                                  .writes = variable,
                                  .write_count = 1};
  CLEAVE_TRY(cleave_engine_create(&serial, engine, NULL));
  CLEAVE_TRY(cleave_variable_create(*engine, "x", variable, NULL));
  (void)cleave_engine_set_bulk(*engine, 4);
  for (int n = 0; n < 9; n++) {
    CLEAVE_TRY(cleave_engine_push(*engine, &info, NULL));
  }
  CLEAVE_TRY(cleave_operation_create(*engine, &info, operation, NULL));
  info.run = engine_case_fail;
  CLEAVE_TRY(cleave_engine_push(*engine, &info, NULL));
  return cleave_variable_wait(*variable, NULL); /* fails by the operation, or by memory for its error */
}

UNIT_TEST(every_failing_allocation_is_an_error_and_no_leak) {
  for (int64_t countdown = 0; countdown < 40; countdown++) {
    cleave_engine_t *engine = NULL;
    cleave_variable_t *variable = NULL;
    cleave_operation_t *operation = NULL;
    (void)cleave_memory_fail_after(countdown);
    cleave_status_t status = use(&engine, &variable, &operation);
    (void)cleave_memory_fail_after(-1);
    cleave_operation_release(operation);
    cleave_variable_release(variable, NULL, NULL);
    cleave_engine_destroy(engine);
    ck_assert_int_ne(status, CLEAVE_OK);
  }
}

UNIT_SUITE("engine errors")
