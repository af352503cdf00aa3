// SPDX-License-Identifier: Apache-2.0
/* Order, waiting, versions, priorities, asynchronous operations, deletion, descriptions, forks: for one
 * worker, several, and serial engines. */
#include <pthread.h>
#include <stdatomic.h>

#include "engine_case.h"

UNIT_TEST(engines_start_and_stop) {
  for (uint32_t k = 0; k < 12; k++) {
    engine_case_end(engine_case_create((const uint32_t[]){0, 1, 2, 8}[k % 4]));
  }
  cleave_engine_t *engine = NULL;
  unit_ok(cleave_engine_create(NULL, &engine, e));
  cleave_engine_destroy(engine);
  cleave_engine_destroy(NULL);
}

/* Appends its number to a list. */
typedef struct step {
  int number;
  int *list;
  _Atomic int *count;
} step_t;

static cleave_status_t note(void *self, const cleave_engine_run_t *run, cleave_error_t *error) {
  (void)run;
  (void)error;
  step_t *step = self;
  step->list[atomic_fetch_add(step->count, 1)] = step->number;
  return CLEAVE_OK;
}

static void check_list(const int *list, int first, int count) {
  for (int n = 0; n < count; n++) {
    if (list[n] != first + n) {
      ck_abort_msg("place %d has %d, expected %d", n, list[n], first + n);
    }
  }
}

ENGINE_TEST(writes_of_a_variable_run_in_order_of_pushes) {
  static int list[1000];
  static step_t steps[1000];
  _Atomic int count = 0;
  memset(list, 0xff, sizeof list);
  for (int n = 0; n < 1000; n++) {
    steps[n] = (step_t){n, list, &count};
    engine_case_push(engine, "note", note, &steps[n], NULL, 0, x);
  }
  engine_case_wait(x);
  check_list(list, 0, 1000);
  ck_assert_uint_eq(cleave_variable_version(x), 1000);
}

ENGINE_TEST(reads_do_not_count_as_versions_and_writes_do) {
  int sum[20] = {0};
  for (int n = 0; n < 10; n++) {
    engine_case_push(engine, "read", engine_case_add_one, &sum[n], &x, 1, NULL);
  }
  engine_case_wait_all(engine);
  ck_assert_uint_eq(cleave_variable_version(x), 0);
  for (int n = 10; n < 20; n++) {
    engine_case_push(engine, "write", engine_case_add_one, &sum[n], NULL, 0, x);
  }
  engine_case_wait_all(engine);
  ck_assert_uint_eq(cleave_variable_version(x), 10);
  for (int n = 0; n < 20; n++) {
    ck_assert_int_eq(sum[n], 1);
  }
}

UNIT_TEST(reads_run_side_by_side_and_writes_do_not) {
  cleave_engine_t *engine = engine_case_create(2);
  cleave_variable_t *x = engine_case_variable(engine);
  /* Each gate waits until the other has started: only side by side do both end. */
  engine_gate_t gates[2] = {{0}, {0}};
  engine_case_push(engine, "a", engine_case_gate, &gates[0], &x, 1, NULL);
  engine_case_push(engine, "b", engine_case_gate, &gates[1], &x, 1, NULL);
  engine_case_reach(&gates[0]);
  engine_case_reach(&gates[1]);
  engine_gate_t writes[2] = {{0}, {0}};
  engine_case_push(engine, "c", engine_case_gate, &writes[0], NULL, 0, x);
  engine_case_push(engine, "d", engine_case_gate, &writes[1], NULL, 0, x);
  engine_case_sleep(20);
  ck_assert(!writes[0].has_started);
  gates[0].is_open = true;
  engine_case_sleep(20);
  ck_assert(!writes[0].has_started); /* the other read still runs */
  gates[1].is_open = true;
  engine_case_reach(&writes[0]);
  engine_case_sleep(20);
  ck_assert(!writes[1].has_started);
  writes[0].is_open = true;
  engine_case_reach(&writes[1]);
  writes[1].is_open = true;
  cleave_variable_release(x, NULL, NULL);
  engine_case_end(engine);
}

UNIT_TEST(waiting_for_a_variable_waits_for_writes_and_not_for_reads) {
  cleave_engine_t *engine = engine_case_create(2);
  cleave_variable_t *x = engine_case_variable(engine);
  engine_case_wait(x); /* a fresh one */
  int time = 60;
  double start = engine_case_now();
  engine_case_push(engine, "write", engine_case_sleep_for, &time, NULL, 0, x);
  engine_case_wait(x);
  ck_assert_double_ge(engine_case_now() - start, 59);
  engine_gate_t gate = {0};
  engine_case_push(engine, "read", engine_case_gate, &gate, &x, 1, NULL);
  engine_case_wait(x);
  ck_assert(!gate.is_open);
  ck_assert_uint_eq(engine_case_counters(engine).ended, 1); /* the read has not */
  gate.is_open = true;
  engine_case_wait_all(engine);
  ck_assert_uint_eq(engine_case_counters(engine).ended, 2);
  cleave_variable_release(x, NULL, NULL);
  engine_case_end(engine);
}

ENGINE_TEST(a_variable_given_twice_counts_once) {
  cleave_variable_t *y = engine_case_variable(engine);
  cleave_variable_t *reads[] = {x, y, x, x, y};
  cleave_variable_t *writes[] = {y, y};
  int count = 0;
  for (int n = 0; n < 3; n++) {
    engine_case_push_info(engine, (cleave_operation_info_t){.run = engine_case_add_one,
                                                            .self = &count,
                                                            .reads = reads,
                                                            .read_count = 5,
                                                            .writes = writes,
                                                            .write_count = 2});
  }
  engine_case_wait_all(engine);
  ck_assert_int_eq(count, 3);
  ck_assert_uint_eq(cleave_variable_version(x), 0);
  ck_assert_uint_eq(cleave_variable_version(y), 3);
  cleave_variable_release(y, NULL, NULL);
}

UNIT_TEST(operations_with_many_variables) {
  enum { COUNT = 300 };
  cleave_engine_t *engine = engine_case_create(2);
  cleave_variable_t *all[COUNT];
  for (int k = 0; k < COUNT; k++) {
    all[k] = engine_case_variable(engine);
  }
  int count = 0;
  for (uint32_t n = 0; n < 100; n++) {
    engine_case_push(engine, "wide", engine_case_add_one, &count, all, COUNT - n % 7, all[n]);
    engine_case_push(engine, "narrow", engine_case_add_one, &count, all, COUNT - 1, all[COUNT - 1]);
  }
  engine_case_wait_all(engine);
  ck_assert_int_eq(count, 200);
  for (int k = 0; k < COUNT; k++) {
    cleave_variable_release(all[k], NULL, NULL);
  }
  engine_case_end(engine);
}

/* ---- priorities ---- */

UNIT_TEST(the_highest_priority_that_is_ready_runs_first) {
  cleave_engine_t *engine = engine_case_create(1);
  engine_gate_t gate = {0};
  engine_case_push(engine, "gate", engine_case_gate, &gate, NULL, 0, NULL);
  engine_case_reach(&gate);
  int list[40];
  step_t steps[40];
  _Atomic int count = 0;
  for (int n = 0; n < 40; n++) {
    steps[n] = (step_t){n, list, &count};
    engine_case_push_info(
        engine, (cleave_operation_info_t){.run = note, .self = &steps[n], .priority = n * 7 % 5 - 2});
  }
  ck_assert_uint_eq(engine_case_counters(engine).ready, 40);
  gate.is_open = true;
  engine_case_wait_all(engine);
  for (int n = 1; n < 40; n++) {
    int before = list[n - 1] * 7 % 5;
    int after = list[n] * 7 % 5;
    ck_assert_msg(before > after || (before == after && list[n - 1] < list[n]), "%d before %d", list[n - 1],
                  list[n]);
  }
  cleave_engine_destroy(engine);
}

UNIT_TEST(a_serial_engine_keeps_the_order_of_pushes) {
  cleave_engine_t *engine = engine_case_create(0);
  int list[20];
  step_t steps[20];
  _Atomic int count = 0;
  for (int n = 0; n < 20; n++) {
    steps[n] = (step_t){n, list, &count};
    engine_case_push_info(engine, (cleave_operation_info_t){.run = note, .self = &steps[n], .priority = n});
    ck_assert_int_eq(count, n + 1); /* it has run when the push returns */
  }
  check_list(list, 0, 20);
  cleave_engine_destroy(engine);
}

/* ---- operations that push ---- */

typedef struct pusher {
  cleave_engine_t *engine;
  cleave_variable_t *variable;
  int depth;
  int list[8];
  int count;
} pusher_t;

static cleave_status_t push_next(void *self, const cleave_engine_run_t *run, cleave_error_t *error) {
  (void)run;
  (void)error;
  pusher_t *pusher = self;
  if (pusher->depth++ < 5) {
    engine_case_push(pusher->engine, "next", push_next, pusher, NULL, 0, pusher->variable);
  }
  pusher->list[pusher->count++] = pusher->depth;
  return CLEAVE_OK;
}

ENGINE_TEST(operations_may_push_others) {
  pusher_t pusher = {.engine = engine, .variable = x};
  engine_case_push(engine, "first", push_next, &pusher, NULL, 0, x);
  engine_case_wait_all(engine);
  ck_assert_int_eq(pusher.count, 6);
  check_list(pusher.list, 1, 6);
}

typedef struct waiter {
  cleave_variable_t *variable;
  cleave_engine_t *engine;
} waiter_t;

static cleave_status_t wait_inside(void *self, const cleave_engine_run_t *run, cleave_error_t *error) {
  (void)run;
  (void)error;
  const waiter_t *waiter = self;
  unit_fails(cleave_variable_wait(waiter->variable, e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "engine: an operation waits for variable 'v': it must read it instead");
  unit_fails(cleave_engine_wait(waiter->engine, e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "engine: an operation waits for all operations, itself included");
  return CLEAVE_OK;
}

ENGINE_TEST(an_operation_that_waits_gets_an_error_and_no_deadlock) {
  waiter_t waiter = {x, engine};
  engine_case_push(engine, "waits", wait_inside, &waiter, NULL, 0, x);
  engine_case_wait_all(engine);
  ck_assert_uint_eq(engine_case_counters(engine).ended, 1);
}

/* ---- several threads that push ---- */

typedef struct crossing {
  cleave_engine_t *engine;
  cleave_variable_t *writes[2];
  int *sums;
} crossing_t;

static cleave_status_t add_both(void *self, const cleave_engine_run_t *run, cleave_error_t *error) {
  (void)run;
  (void)error;
  int *sums = self;
  sums[0]++;
  sums[1]++;
  return CLEAVE_OK;
}

static void *push_crossing(void *self) {
  crossing_t *crossing = self;
  for (int k = 0; k < 20000; k++) {
    engine_case_push_info(
        crossing->engine,
        (cleave_operation_info_t){
            .run = add_both, .self = crossing->sums, .writes = crossing->writes, .write_count = 2});
  }
  return NULL;
}

ENGINE_TEST(threads_that_push_the_same_variables_in_other_orders_do_not_lock_up) {
  int sums[2] = {0, 0};
  cleave_variable_t *y = engine_case_variable(engine);
  crossing_t crossings[2] = {{engine, {x, y}, sums}, {engine, {y, x}, sums}};
  pthread_t threads[2];
  for (int k = 0; k < 2; k++) {
    ck_assert_int_eq(pthread_create(&threads[k], NULL, push_crossing, &crossings[k]), 0);
  }
  for (int k = 0; k < 2; k++) {
    ck_assert_int_eq(pthread_join(threads[k], NULL), 0);
  }
  engine_case_wait_all(engine);
  ck_assert_int_eq(sums[0], 40000);
  ck_assert_int_eq(sums[1], 40000);
  cleave_variable_release(y, NULL, NULL);
}

/* ---- asynchronous operations ---- */

typedef struct later {
  pthread_t thread;
  cleave_completion_t *completion;
  cleave_status_t status;
  int *value;
  bool is_immediate;
} later_t;

static void *complete_later(void *self) {
  later_t *later = self;
  engine_case_sleep(5);
  ++*later->value;
  cleave_operation_complete(later->completion, later->status, later->status == CLEAVE_OK ? NULL : "lost");
  return NULL;
}

static void start_later(void *self, const cleave_engine_run_t *run, cleave_completion_t *completion) {
  (void)run;
  later_t *later = self;
  later->completion = completion;
  if (later->is_immediate) {
    ++*later->value;
    cleave_operation_complete(completion, later->status, "lost");
    return;
  }
  pthread_create(&later->thread, NULL, complete_later, later);
}

static void push_later(cleave_engine_t *engine, const char *name, later_t *later, cleave_variable_t *x) {
  engine_case_push_info(
      engine, (cleave_operation_info_t){
                  .name = name, .start = start_later, .self = later, .writes = &x, .write_count = 1});
}

ENGINE_TEST(asynchronous_operations_end_when_they_say_so) {
  int value = 0;
  later_t laters[7];
  for (int n = 0; n < 6; n++) {
    laters[n] = (later_t){.status = CLEAVE_OK, .value = &value, .is_immediate = n % 3 == 2};
    push_later(engine, "later", &laters[n], x);
  }
  engine_case_wait(x);
  ck_assert_int_eq(value, 6);
  laters[6] = (later_t){.status = CLEAVE_ERROR_BACKEND, .value = &value};
  push_later(engine, "fails", &laters[6], x);
  unit_fails(cleave_variable_wait(x, e), CLEAVE_ERROR_BACKEND, "operation 'fails': lost");
  for (int n = 0; n < 7; n++) {
    if (!laters[n].is_immediate) {
      ck_assert_int_eq(pthread_join(laters[n].thread, NULL), 0);
    }
  }
}

/* ---- operations that are kept, and ends ---- */

static void count_end(void *self) {
  atomic_fetch_add((_Atomic int *)self, 1);
}

ENGINE_TEST(an_operation_is_pushed_again_and_again_and_ends_once) {
  _Atomic int ended = 0;
  int list[100];
  _Atomic int count = 0;
  int value = 0;
  step_t step = {7, list, &count};
  cleave_operation_info_t info = {
      .size = sizeof info, .name = "kept", .run = note, .self = &step, .writes = &x, .write_count = 1};
  cleave_operation_t *operation = NULL;
  unit_ok(cleave_operation_create(engine, &info, &operation, e));
  for (int n = 0; n < 100; n++) {
    unit_ok(cleave_operation_push(operation, e));
  }
  cleave_operation_release(operation);
  engine_case_push(engine, "once", engine_case_add_one, &value, NULL, 0, x);
  info.self = (void *)&ended;
  info.run = engine_case_fail;
  info.end = count_end;
  unit_ok(cleave_operation_create(engine, &info, &operation, e));
  unit_ok(cleave_operation_push(operation, e));
  unit_ok(cleave_operation_push(operation, e)); /* skipped */
  cleave_operation_release(operation);
  ck_assert_int_eq(cleave_variable_wait(x, NULL), CLEAVE_ERROR_INVALID_ARGUMENT);
  ck_assert_int_eq(count, 100);
  ck_assert_int_eq(value, 1);
  ck_assert_int_eq(ended, 1);
  cleave_operation_release(NULL);
}

ENGINE_TEST(a_released_variable_ends_after_its_last_use) {
  cleave_variable_t *y = engine_case_variable(engine);
  _Atomic int ended = 0;
  engine_gate_t gate = {.is_open = workers == 0};
  int value = 0;
  engine_case_push(engine, "gate", engine_case_gate, &gate, &y, 1, NULL);
  engine_case_push(engine, "write", engine_case_add_one, &value, NULL, 0, y);
  cleave_variable_release(y, count_end, (void *)&ended);
  if (workers != 0) {
    engine_case_reach(&gate);
    ck_assert_int_eq(ended, 0);
    ck_assert_uint_eq(engine_case_counters(engine).variables, 2); /* x, too */
    gate.is_open = true;
  }
  engine_case_wait_all(engine);
  ck_assert_int_eq(ended, 1);
  ck_assert_int_eq(value, 1);
  ck_assert_uint_eq(engine_case_counters(engine).variables, 1);
  cleave_variable_release(NULL, NULL, NULL);
}

/* ---- counters, traces, descriptions ---- */

static _Atomic int traced;
static void check_trace(void *self, const cleave_engine_trace_t *entry) {
  ck_assert_ptr_eq(self, (void *)&traced);
  ck_assert_str_eq(entry->name, "traced");
  ck_assert_str_eq(entry->device, "one");
  ck_assert_uint_le(entry->pushed, entry->started);
  ck_assert_uint_le(entry->started, entry->ended);
  ck_assert_uint_gt(entry->pushed, 0);
  ck_assert_int_eq(entry->status, entry->priority == 3 ? CLEAVE_ERROR_INVALID_ARGUMENT : CLEAVE_OK);
  atomic_fetch_add(&traced, 1);
}

UNIT_TEST(a_trace_has_every_operation) {
  for (uint32_t bulk = 0; bulk < 2; bulk++) {
    traced = 0;
    const cleave_engine_device_t device = {.size = sizeof device, .name = "one", .workers = 2};
    const cleave_engine_options_t options = {.size = sizeof options,
                                             .devices = &device,
                                             .device_count = 1,
                                             .trace = check_trace,
                                             .trace_self = (void *)&traced};
    cleave_engine_t *engine = NULL;
    unit_ok(cleave_engine_create(&options, &engine, e));
    ck_assert_uint_eq(cleave_engine_set_bulk(engine, bulk * 16), 0);
    int values[50] = {0};
    for (int n = 0; n < 50; n++) {
      engine_case_push(engine, "traced", engine_case_add_one, &values[n], NULL, 0, NULL);
    }
    engine_case_push_info(
        engine, (cleave_operation_info_t){.name = "traced", .run = engine_case_fail, .priority = 3});
    ck_assert_int_eq(cleave_engine_wait(engine, NULL), CLEAVE_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(traced, 51);
    cleave_engine_counters_t counters = engine_case_counters(engine);
    ck_assert_uint_eq(counters.pushed, 51);
    ck_assert_uint_eq(counters.ended, 51);
    ck_assert_uint_eq(counters.failed, 1);
    ck_assert_uint_eq(counters.bulks, bulk * 4); /* 3 x 16 and 2 */
    cleave_engine_destroy(engine);
  }
}

UNIT_TEST(a_description_says_who_waits_for_whom) {
  cleave_engine_t *engine = engine_case_create(1);
  cleave_variable_t *x = NULL;
  unit_ok(cleave_variable_create(engine, "weights", &x, e));
  engine_gate_t gate = {0};
  int value = 0;
  engine_case_push(engine, "load", engine_case_gate, &gate, NULL, 0, x);
  engine_case_reach(&gate);
  engine_case_push(engine, "conv", engine_case_add_one, &value, &x, 1, NULL);
  engine_case_push(engine, "other", engine_case_add_one, &value, NULL, 0, NULL);
  char *text = NULL;
  unit_ok(cleave_engine_describe(engine, &text, e));
  ck_assert_str_eq(text,
                   "'load' on host: runs\n'conv' on host: waits to read 'weights' (after 'load')\n"
                   "'other' on host: is ready\n");
  cleave_text_free(text);
  gate.is_open = true;
  engine_case_wait_all(engine);
  unit_ok(cleave_engine_describe(engine, &text, e));
  ck_assert_str_eq(text, "");
  cleave_text_free(text);
  cleave_variable_release(x, NULL, NULL);
  engine_case_end(engine);
}

UNIT_SUITE("engine")
