// SPDX-License-Identifier: Apache-2.0
#include "engine_case.h"

#include <stdatomic.h>
#include <time.h>

cleave_engine_t *engine_case_create(uint32_t workers) {
  cleave_engine_t *engine = NULL;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  const cleave_engine_device_t device = {.size = sizeof device, .name = "host", .workers = workers};
  const cleave_engine_options_t options = {
      .size = sizeof options, .is_serial = workers == 0, .devices = &device, .device_count = 1};
  ck_assert_msg(cleave_engine_create(&options, &engine, &error) == CLEAVE_OK, "%s", error.message);
  return engine;
}

cleave_variable_t *engine_case_variable(cleave_engine_t *engine) {
  cleave_variable_t *variable = NULL;
  ck_assert_int_eq(cleave_variable_create(engine, "v", &variable, NULL), CLEAVE_OK);
  return variable;
}

void engine_case_end(cleave_engine_t *engine) {
  engine_case_wait_all(engine);
  cleave_engine_destroy(engine);
}

void engine_case_each(engine_body_t body) {
  static const uint32_t KINDS[] = {0, 1, 2, 8};
  for (size_t k = 0; k < sizeof KINDS / sizeof KINDS[0]; k++) {
    cleave_engine_t *engine = engine_case_create(KINDS[k]);
    cleave_variable_t *x = engine_case_variable(engine);
    body(engine, KINDS[k], x);
    cleave_variable_release(x, NULL, NULL);
    engine_case_end(engine);
  }
}

void engine_case_push_info(cleave_engine_t *engine, cleave_operation_info_t info) {
  info.size = sizeof info;
  info.name = info.name == NULL ? "op" : info.name;
  unit_ok(cleave_engine_push(engine, &info, e));
}

void engine_case_push(cleave_engine_t *engine, const char *name, cleave_operation_run_t run, void *self,
                      cleave_variable_t *const *reads, uint32_t read_count, cleave_variable_t *write) {
  engine_case_push_info(engine, (cleave_operation_info_t){.name = name,
                                                          .run = run,
                                                          .self = self,
                                                          .reads = reads,
                                                          .read_count = read_count,
                                                          .writes = &write,
                                                          .write_count = write != NULL});
}

void engine_case_wait(cleave_variable_t *variable) {
  unit_ok(cleave_variable_wait(variable, e));
}

void engine_case_wait_all(cleave_engine_t *engine) {
  unit_ok(cleave_engine_wait(engine, e));
}

void engine_case_sleep(uint32_t milliseconds) {
  const struct timespec time = {milliseconds / 1000, (long)(milliseconds % 1000) * 1000000};
  nanosleep(&time, NULL);
}

double engine_case_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

cleave_status_t engine_case_add_one(void *self, const cleave_engine_run_t *run, cleave_error_t *error) {
  (void)run;
  (void)error;
  ++*(int *)self;
  return CLEAVE_OK;
}

cleave_status_t engine_case_fail(void *self, const cleave_engine_run_t *run, cleave_error_t *error) {
  (void)self;
  (void)run;
  return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "expected sigma >= 0, found -1");
}

cleave_status_t engine_case_sleep_for(void *self, const cleave_engine_run_t *run, cleave_error_t *error) {
  (void)run;
  (void)error;
  engine_case_sleep((uint32_t) * (int *)self);
  return CLEAVE_OK;
}

cleave_status_t engine_case_gate(void *self, const cleave_engine_run_t *run, cleave_error_t *error) {
  (void)run;
  (void)error;
  engine_gate_t *gate = self;
  atomic_store(&gate->has_started, true);
  while (!atomic_load(&gate->is_open)) {
    engine_case_sleep(1);
  }
  return CLEAVE_OK;
}

void engine_case_reach(engine_gate_t *gate) {
  while (!atomic_load(&gate->has_started)) {
    engine_case_sleep(1);
  }
}

cleave_engine_counters_t engine_case_counters(cleave_engine_t *engine) {
  cleave_engine_counters_t counters = {.size = sizeof counters};
  cleave_engine_count(engine, &counters);
  return counters;
}
