// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>

#include "base/memory.h"
#include "engine_case.h"

static cleave_status_t twice(void *self, const cleave_engine_run_t *run, cleave_error_t *error) {
  (void)run;
  (void)error;
  *(int *)self *= 2;
  return CLEAVE_OK;
}

UNIT_TEST(what_is_waited_for_in_a_bulk_has_run) {
  for (uint32_t workers = 0; workers < 3; workers++) {
    cleave_engine_t *engine = engine_case_create(workers);
    cleave_variable_t *x = engine_case_variable(engine);
    int value = 1;
    ck_assert_uint_eq(cleave_engine_set_bulk(engine, 10), 0);
    engine_case_push(engine, "twice", twice, &value, NULL, 0, x);
    engine_case_push(engine, "add", engine_case_add_one, &value, NULL, 0, x);
    engine_case_wait(x);
    ck_assert_int_eq(value, 3);
    engine_case_push(engine, "add", engine_case_add_one, &value, NULL, 0, x);
    engine_case_wait(x);
    ck_assert_int_eq(value, 4);
    for (int n = 0; n < 100; n++) {
      engine_case_push(engine, "add", engine_case_add_one, &value, NULL, 0, x);
    }
    ck_assert_uint_eq(cleave_engine_set_bulk(engine, 0), 10);
    engine_case_wait(x);
    ck_assert_int_eq(value, 104);
    cleave_engine_counters_t counters = engine_case_counters(engine);
    ck_assert_uint_eq(counters.pushed, 103);
    ck_assert_uint_eq(counters.ended, 103);
    ck_assert_uint_eq(counters.bulks, 11);
    cleave_variable_release(x, NULL, NULL);
    engine_case_end(engine);
  }
}

UNIT_TEST(a_bulk_is_pushed_when_it_is_full_flushed_or_passed) {
  cleave_engine_t *engine = engine_case_create(1);
  int value = 0;
  (void)cleave_engine_set_bulk(engine, 4);
  for (int n = 0; n < 3; n++) {
    engine_case_push(engine, "add", engine_case_add_one, &value, NULL, 0, NULL);
  }
  ck_assert_uint_eq(engine_case_counters(engine).pushed, 0);
  cleave_engine_flush(engine);
  ck_assert_uint_eq(engine_case_counters(engine).pushed, 3);
  for (int n = 0; n < 4; n++) {
    engine_case_push(engine, "add", engine_case_add_one, &value, NULL, 0, NULL);
  }
  ck_assert_uint_eq(engine_case_counters(engine).pushed, 7);
  engine_case_push(engine, "add", engine_case_add_one, &value, NULL, 0, NULL);
  const cleave_operation_info_t info = {
      .size = sizeof info, .name = "first", .run = engine_case_add_one, .self = &value, .priority = 1};
  ck_assert_int_eq(cleave_engine_push(engine, &info, NULL), CLEAVE_OK); /* pushes the one before it, too */
  ck_assert_uint_eq(engine_case_counters(engine).pushed, 9);
  engine_case_push(engine, "add", engine_case_add_one, &value, NULL, 0, NULL);
  engine_case_push(engine, "add", engine_case_add_one, &value, NULL, 0, NULL);
  ck_assert_uint_eq(cleave_engine_set_bulk(engine, 2), 4); /* is full with these */
  ck_assert_uint_eq(engine_case_counters(engine).pushed, 11);
  engine_case_wait_all(engine);
  cleave_engine_flush(engine);
  engine_case_end(engine);
}

UNIT_TEST(a_bulk_has_one_device) {
  const cleave_engine_device_t devices[] = {{.size = sizeof devices[0], .name = "a", .workers = 1},
                                            {.size = sizeof devices[0], .name = "b", .workers = 1}};
  const cleave_engine_options_t options = {.size = sizeof options, .devices = devices, .device_count = 2};
  cleave_engine_t *engine = NULL;
  ck_assert_int_eq(cleave_engine_create(&options, &engine, NULL), CLEAVE_OK);
  cleave_variable_t *x = engine_case_variable(engine);
  (void)cleave_engine_set_bulk(engine, 8);
  int value = 0;
  for (uint32_t n = 0; n < 16; n++) {
    const cleave_operation_info_t info = {.size = sizeof info,
                                          .name = "add",
                                          .run = engine_case_add_one,
                                          .self = &value,
                                          .writes = &x,
                                          .write_count = 1,
                                          .device = n / 3 % 2};
    ck_assert_int_eq(cleave_engine_push(engine, &info, NULL), CLEAVE_OK);
  }
  engine_case_wait(x);
  ck_assert_int_eq(value, 16);
  ck_assert_uint_eq(engine_case_counters(engine).bulks, 5); /* of 3, and the last alone */
  cleave_variable_release(x, NULL, NULL);
  engine_case_end(engine);
}

typedef struct pusher {
  cleave_engine_t *engine;
  cleave_variable_t *variable;
  int value;
} pusher_t;

static void *push_and_end(void *self) {
  pusher_t *pusher = self;
  (void)cleave_engine_set_bulk(pusher->engine, 100);
  for (int n = 0; n < 5; n++) {
    engine_case_push(pusher->engine, "add", engine_case_add_one, &pusher->value, NULL, 0, pusher->variable);
  }
  return NULL;
}

UNIT_TEST(a_thread_that_ends_pushes_what_it_has_begun) {
  cleave_engine_t *engine = engine_case_create(2);
  pusher_t pusher = {.engine = engine, .variable = engine_case_variable(engine)};
  for (int n = 1; n <= 10; n++) {
    pthread_t thread;
    pthread_create(&thread, NULL, push_and_end, &pusher);
    pthread_join(thread, NULL);
    engine_case_wait(pusher.variable);
    ck_assert_int_eq(pusher.value, n * 5);
  }
  cleave_variable_release(pusher.variable, NULL, NULL);
  engine_case_end(engine);
}

static cleave_status_t push_from_inside(void *self, const cleave_engine_run_t *run, cleave_error_t *error) {
  (void)run;
  (void)error;
  pusher_t *pusher = self;
  (void)cleave_engine_set_bulk(pusher->engine, 100);
  engine_case_push(pusher->engine, "add", engine_case_add_one, &pusher->value, NULL, 0, pusher->variable);
  return CLEAVE_OK;
}

UNIT_TEST(what_an_operation_pushes_is_never_held_back) {
  for (uint32_t workers = 0; workers < 3; workers++) {
    cleave_engine_t *engine = engine_case_create(workers);
    pusher_t pusher = {.engine = engine, .variable = engine_case_variable(engine)};
    engine_case_push(engine, "push", push_from_inside, &pusher, NULL, 0, NULL);
    engine_case_wait_all(engine);
    ck_assert_int_eq(pusher.value, 1);
    cleave_variable_release(pusher.variable, NULL, NULL);
    engine_case_end(engine);
  }
}

UNIT_TEST(in_the_steady_state_nothing_is_allocated) {
  for (uint32_t bulk = 0; bulk < 2; bulk++) {
    cleave_engine_t *engine = engine_case_create(0);
    cleave_variable_t *x[3];
    for (int k = 0; k < 3; k++) {
      x[k] = engine_case_variable(engine);
    }
    (void)cleave_engine_set_bulk(engine, bulk * 16);
    int value = 0;
    for (int round = 0; round < 3; round++) {
      (void)cleave_memory_fail_after(-1);
      for (int n = 0; n < 1000; n++) {
        engine_case_push(engine, "add", engine_case_add_one, &value, x, 2, x[2]);
      }
      engine_case_wait(x[2]);
      if (round > 0) {
        ck_assert_int_eq(cleave_memory_fail_after(-1), 0);
      }
    }
    for (int k = 0; k < 3; k++) {
      cleave_variable_release(x[k], NULL, NULL);
    }
    engine_case_end(engine);
  }
}

UNIT_SUITE("engine bulks")
