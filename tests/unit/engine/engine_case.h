// SPDX-License-Identifier: Apache-2.0
/* Engines and small operations for tests. Every function fails the test on an error. */
#ifndef CLEAVE_TESTS_ENGINE_CASE_H
#define CLEAVE_TESTS_ENGINE_CASE_H

#include "cleave/engine.h"
#include "unit.h"

/* With `workers` threads on one device; 0: a serial engine. */
cleave_engine_t *engine_case_create(uint32_t workers);
cleave_variable_t *engine_case_variable(cleave_engine_t *engine);

/* Waits until nothing fails, and destroys it. */
void engine_case_end(cleave_engine_t *engine);

/* A test that runs once with an engine of each kind: serial, with one worker, two, and eight. The body sees
 * `engine`, its number of `workers`, and `x`, a variable of it; both end behind it, as engine_case_end does.
 */
typedef void (*engine_body_t)(cleave_engine_t *engine, uint32_t workers, cleave_variable_t *x);
void engine_case_each(engine_body_t body);
#define ENGINE_TEST(name)                                                                                    \
  static void name##_with(cleave_engine_t *engine, uint32_t workers, cleave_variable_t *x);                  \
  UNIT_TEST(name) {                                                                                          \
    engine_case_each(name##_with);                                                                           \
  }                                                                                                          \
  static void name##_with(cleave_engine_t *engine CK_ATTRIBUTE_UNUSED, uint32_t workers CK_ATTRIBUTE_UNUSED, \
                          cleave_variable_t *x CK_ATTRIBUTE_UNUSED)

/* Pushes what the fields say; the size is set here, and a name where there is none: "op". */
void engine_case_push_info(cleave_engine_t *engine, cleave_operation_info_t info);
/* Pushes with `reads`, and `write` unless that is NULL. */
void engine_case_push(cleave_engine_t *engine, const char *name, cleave_operation_run_t run, void *self,
                      cleave_variable_t *const *reads, uint32_t read_count, cleave_variable_t *write);
void engine_case_wait(cleave_variable_t *variable);
void engine_case_wait_all(cleave_engine_t *engine);

void engine_case_sleep(uint32_t milliseconds);
double engine_case_now(void); /* milliseconds */

/* An operation that adds 1 to the int that is `self`; one that fails with "expected sigma >= 0, found -1". */
cleave_status_t engine_case_add_one(void *self, const cleave_engine_run_t *run, cleave_error_t *error);
cleave_status_t engine_case_fail(void *self, const cleave_engine_run_t *run, cleave_error_t *error);
/* Sleeps as many milliseconds as the int that is `self` says. */
cleave_status_t engine_case_sleep_for(void *self, const cleave_engine_run_t *run, cleave_error_t *error);

/* An operation that runs until the gate is opened. */
typedef struct engine_gate {
  _Atomic bool has_started;
  _Atomic bool is_open;
} engine_gate_t;
cleave_status_t engine_case_gate(void *self, const cleave_engine_run_t *run, cleave_error_t *error);
/* Until an operation stands at the gate. */
void engine_case_reach(engine_gate_t *gate);

cleave_engine_counters_t engine_case_counters(cleave_engine_t *engine);

#endif /* CLEAVE_TESTS_ENGINE_CASE_H */
