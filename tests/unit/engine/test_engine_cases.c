// SPDX-License-Identifier: Apache-2.0
/* Cases of MXNet's tests of its engine that the other files do not have; README.md has the table. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine_case.h"

/* E4: five values; what is read is added up, and the sum added to what is written. */
typedef struct split {
  int64_t *values;
  unsigned written; /* a bit each */
} split_t;

static cleave_status_t add_up(void *self, const cleave_engine_run_t *run, cleave_error_t *error) {
  const split_t *split = self;
  int64_t sum = 1;
  (void)run;
  (void)error;
  for (int k = 0; k < 5; k++) {
    sum += (split->written >> k & 1U) == 0 ? split->values[k] : 0;
  }
  for (int k = 0; k < 5; k++) {
    split->values[k] += (split->written >> k & 1U) != 0 ? sum : 0;
  }
  return CLEAVE_OK;
}

ENGINE_TEST(five_variables_are_read_or_written_in_every_way) {
  cleave_variable_t *variables[5];
  int64_t values[5] = {1, 2, 3, 4, 5};
  int64_t expected[5] = {1, 2, 3, 4, 5};
  split_t splits[32];
  for (int k = 0; k < 5; k++) {
    variables[k] = engine_case_variable(engine);
  }
  for (unsigned mask = 0; mask < 32; mask++) {
    cleave_variable_t *reads[5];
    cleave_variable_t *writes[5];
    cleave_operation_info_t info = {
        .size = sizeof info, .run = add_up, .self = &splits[mask], .reads = reads, .writes = writes};
    splits[mask] = (split_t){values, mask};
    for (int k = 0; k < 5; k++) {
      bool is_written = (mask >> k & 1U) != 0;
      (is_written ? writes : reads)[is_written ? info.write_count++ : info.read_count++] = variables[k];
    }
    engine_case_push_info(engine, info);
    (void)add_up(&(split_t){expected, mask}, NULL, NULL);
  }
  engine_case_wait_all(engine);
  ck_assert_mem_eq(values, expected, sizeof values);
  for (int k = 0; k < 5; k++) {
    ck_assert_uint_eq(cleave_variable_version(variables[k]), 16);
    cleave_variable_release(variables[k], NULL, NULL);
  }
}

/* E5, E6: who is inside of a slow operation. */
typedef struct inside {
  _Atomic int now;
  _Atomic int most;
} inside_t;

static cleave_status_t stay(void *self, const cleave_engine_run_t *run, cleave_error_t *error) {
  inside_t *inside = self;
  int now = atomic_fetch_add(&inside->now, 1) + 1;
  int most = inside->most;
  (void)run;
  (void)error;
  while (most < now && !atomic_compare_exchange_weak(&inside->most, &most, now)) {
  }
  engine_case_sleep(5);
  (void)atomic_fetch_sub(&inside->now, 1);
  return CLEAVE_OK;
}

static void slow_operations(bool writes, int *out_most) {
  cleave_engine_t *engine = engine_case_create(4);
  cleave_variable_t *x = engine_case_variable(engine);
  inside_t inside = {0};
  for (int n = 0; n < 10; n++) {
    engine_case_push(engine, "stay", stay, &inside, writes ? NULL : &x, writes ? 0 : 1, writes ? x : NULL);
  }
  engine_case_wait_all(engine);
  ck_assert_uint_eq(engine_case_counters(engine).ended, 10);
  ck_assert_int_eq(inside.now, 0);
  *out_most = inside.most;
  cleave_variable_release(x, NULL, NULL);
  engine_case_end(engine);
}

UNIT_TEST(slow_reads_of_a_variable_overlap_and_slow_writes_do_not) {
  int most = 0;
  slow_operations(false, &most);
  ck_assert_int_gt(most, 1);
  slow_operations(true, &most);
  ck_assert_int_eq(most, 1);
}

UNIT_TEST(a_wait_covers_writes_by_copy_workers) { /* E8 */
  for (uint32_t copy_workers = 0; copy_workers < 2; copy_workers++) {
    const cleave_engine_device_t device = {
        .size = sizeof device, .name = "host", .workers = 1, .copy_workers = copy_workers};
    const cleave_engine_options_t options = {.size = sizeof options, .devices = &device, .device_count = 1};
    cleave_engine_t *engine = NULL;
    int time = 60;
    ck_assert_int_eq(cleave_engine_create(&options, &engine, NULL), CLEAVE_OK);
    cleave_variable_t *x = engine_case_variable(engine);
    const cleave_operation_info_t info = {.size = sizeof info,
                                          .name = "copy",
                                          .run = engine_case_sleep_for,
                                          .self = &time,
                                          .writes = &x,
                                          .write_count = 1,
                                          .flags = CLEAVE_OPERATION_COPY};
    double start = engine_case_now();
    ck_assert_int_eq(cleave_engine_push(engine, &info, NULL), CLEAVE_OK);
    engine_case_wait(x);
    ck_assert_double_ge(engine_case_now() - start, 59);
    ck_assert_uint_eq(cleave_variable_version(x), 1);
    cleave_variable_release(x, NULL, NULL);
    engine_case_end(engine);
  }
}

/* E12: what a program has in static variables when it ends. */
static cleave_engine_t *left_engine;
static cleave_variable_t *left_variable;
static int left_count;

UNIT_TEST(a_program_may_end_without_an_end_of_its_engine) {
  pid_t child = fork();
  if (child == 0) {
    left_engine = engine_case_create(2);
    left_variable = engine_case_variable(left_engine);
    for (int n = 0; n < 100; n++) {
      engine_case_push(left_engine, "op", engine_case_add_one, &left_count, NULL, 0, left_variable);
    }
    engine_case_wait(left_variable);
    exit(left_count == 100 ? 0 : 1);
  }
  int status = 0;
  ck_assert_int_eq(waitpid(child, &status, 0), child);
#ifdef __SANITIZE_THREAD__
  ck_assert(WIFEXITED(status)); /* the sanitizer tells of threads that are left */
#else
  ck_assert_int_eq(status, 0);
#endif
}

UNIT_TEST(a_forked_process_is_told_that_the_engine_is_not_its_own) { /* E13 */
  cleave_engine_t *engine = engine_case_create(2);
  int value = 0;
  engine_gate_t gates[2] = {0};
  engine_case_push(engine, "op", engine_case_add_one, &value, NULL, 0, NULL);
  for (int k = 0; k < 2; k++) { /* both workers have begun: a thread that begins holds locks of a sanitizer */
    engine_case_push(engine, "gate", engine_case_gate, &gates[k], NULL, 0, NULL);
    engine_case_reach(&gates[k]);
  }
  atomic_store(&gates[0].is_open, true);
  atomic_store(&gates[1].is_open, true);
  engine_case_wait_all(engine);
  engine_case_sleep(20); /* and sleep again */
  pid_t child = fork();
  if (child == 0) {
    const cleave_operation_info_t info = {
        .size = sizeof info, .name = "op", .run = engine_case_add_one, .self = &value};
    cleave_error_t error = CLEAVE_ERROR_INIT;
    bool is_refused = cleave_engine_push(engine, &info, &error) == CLEAVE_ERROR_INVALID_ARGUMENT &&
                      strstr(error.message, "forked") != NULL;
    cleave_engine_destroy(engine);
#if defined __SANITIZE_THREAD__ || defined __SANITIZE_ADDRESS__
    _exit(is_refused ? 0 : 1); /* the sanitizers' locks do not allow threads to begin after a fork */
#endif
    cleave_engine_t *own = engine_case_create(2);
    engine_case_push(own, "op", engine_case_add_one, &value, NULL, 0, NULL);
    engine_case_end(own);
    _exit(is_refused && value == 2 ? 0 : 1);
  }
  int status = 0;
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_int_eq(status, 0);
  engine_case_push(engine, "op", engine_case_add_one, &value, NULL, 0, NULL);
  engine_case_end(engine);
  ck_assert_int_eq(value, 2);
}

typedef struct holder {
  cleave_engine_t *engine;
  uint32_t bulk;
  _Atomic bool *goes;
  int value;
} holder_t;

static void *hold(void *self) {
  holder_t *holder = self;
  cleave_variable_t *x = engine_case_variable(holder->engine);
  (void)cleave_engine_set_bulk(holder->engine, holder->bulk);
  while (!*holder->goes) {
    engine_case_sleep(1);
  }
  for (int n = 0; n < 50; n++) {
    engine_case_push(holder->engine, "op", engine_case_add_one, &holder->value, NULL, 0, x);
  }
  engine_case_wait(x);
  ck_assert_uint_eq(cleave_engine_set_bulk(holder->engine, 0), holder->bulk);
  cleave_variable_release(x, NULL, NULL);
  return NULL;
}

UNIT_TEST(what_belongs_to_a_thread_stays_with_it) { /* E14 */
  cleave_engine_t *engine = engine_case_create(2);
  _Atomic bool goes = false;
  holder_t holders[10];
  pthread_t threads[10];
  for (uint32_t k = 0; k < 10; k++) {
    holders[k] = (holder_t){engine, k + 2, &goes, 0};
    ck_assert_int_eq(pthread_create(&threads[k], NULL, hold, &holders[k]), 0);
  }
  goes = true;
  for (int k = 0; k < 10; k++) {
    ck_assert_int_eq(pthread_join(threads[k], NULL), 0);
    ck_assert_int_eq(holders[k].value, 50);
  }
  ck_assert_uint_eq(cleave_engine_set_bulk(engine, 0), 0); /* of this thread */
  engine_case_end(engine);
}

UNIT_SUITE("engine, more cases")
