// SPDX-License-Identifier: Apache-2.0
/*
 * A thin layer over Check: tests and suites register themselves, so that none is forgotten in a list. A file
 * is a suite; one program (unit.c) has them all.
 *
 *   UNIT_TEST(refuses_a_cycle) { ck_assert_int_eq(1, 1); }
 *   UNIT_SUITE("partition")
 *
 * A test that not every machine can run names a function that says why this one cannot; the program then
 * prints "skipped: refuses_a_cycle: REASON" and leaves the test out.
 *
 *   UNIT_TEST_UNLESS(refuses_a_cycle, lacks_avx2) { ck_assert_int_eq(1, 1); }
 */
#ifndef CLEAVE_TESTS_UNIT_H
#define CLEAVE_TESTS_UNIT_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

/* Check writes to a file at every assertion that holds, so that it can say "after this point" of a test that
 * crashes. Here it does so while lines go up in a file: loops over elements cost what they compute. */
static inline void unit_mark(const char *file, int line) {
  static _Thread_local int highest;
  if (line > highest) {
    highest = line;
    _mark_point(file, line);
  }
}
#define _mark_point(file, line) unit_mark(file, line)

enum { UNIT_MAX_TESTS = 512 };

typedef struct unit_test {
  const TTest *test;
  const char *(*hindrance)(void); /* returns NULL if this machine can run it; NULL: every machine can */
} unit_test_t;

__attribute__((unused)) static unit_test_t unit_tests[UNIT_MAX_TESTS];
__attribute__((unused)) static int unit_test_count;

#define UNIT_TEST_UNLESS(name, hindrance)                                   \
  static void name(int _i);                                                 \
  static const TTest name##_test = {#name, name, __FILE__, __LINE__};       \
  __attribute__((constructor)) static void name##_register(void) {          \
    unit_tests[unit_test_count++] = (unit_test_t){&name##_test, hindrance}; \
  }                                                                         \
  static void name(int _i CK_ATTRIBUTE_UNUSED)

#define UNIT_TEST(name) UNIT_TEST_UNLESS(name, NULL)

/* Fails if `work` for ten times the size takes thirty times the processor's time, and a fifth of a second. */
void unit_is_linear(void (*work)(int size), int size);

/* The tests of a file. */
typedef struct unit_suite {
  const char *title;
  const char *file;
  const unit_test_t *tests;
  const int *count;
  struct unit_suite *next;
} unit_suite_t;

void unit_suite_add(unit_suite_t *suite);

/* Ends a file of tests. */
#define UNIT_SUITE(title)                                                                 \
  static unit_suite_t unit_suite = {title, __FILE__, unit_tests, &unit_test_count, NULL}; \
  __attribute__((constructor)) static void unit_suite_register(void) {                    \
    unit_suite_add(&unit_suite);                                                          \
  }

/* The call succeeds; its message is shown if not. Inside `call`, the error to pass is `e`. */
#define unit_ok(call)                                                                                   \
  do {                                                                                                  \
    cleave_error_t unit_error_ = CLEAVE_ERROR_INIT;                                                     \
    cleave_error_t *e = &unit_error_;                                                                   \
    cleave_status_t status_ = (call);                                                                   \
    ck_assert_msg(status_ == CLEAVE_OK, "%s: status %d: %s", #call, (int)status_, unit_error_.message); \
    (void)e;                                                                                            \
  } while (0)

/* The call, which passes `e` as its error, fails with `expected_status` and exactly `expected_message`. */
#define unit_fails(call, expected_status, expected_message)    \
  do {                                                         \
    cleave_error_t unit_error_ = CLEAVE_ERROR_INIT;            \
    cleave_error_t *e = &unit_error_;                          \
    cleave_status_t status_ = (call);                          \
    (void)e;                                                   \
    ck_assert_int_eq((int)status_, (int)(expected_status));    \
    ck_assert_str_eq(unit_error_.message, (expected_message)); \
  } while (0)

/* The same where the message only has to contain a text. */
#define unit_fails_with(call, expected_status, part)                                          \
  do {                                                                                        \
    cleave_error_t unit_error_ = CLEAVE_ERROR_INIT;                                           \
    cleave_error_t *e = &unit_error_;                                                         \
    cleave_status_t status_ = (call);                                                         \
    (void)e;                                                                                  \
    ck_assert_msg(status_ == (expected_status), "%s: status %d: %s", #call, (int)status_,     \
                  unit_error_.message);                                                       \
    ck_assert_msg(strstr(unit_error_.message, (part)) != NULL, "'%s' is not in '%s'", (part), \
                  unit_error_.message);                                                       \
  } while (0)

#endif /* CLEAVE_TESTS_UNIT_H */
