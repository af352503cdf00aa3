// SPDX-License-Identifier: Apache-2.0
// The built-in modules are compiled once per process, whoever needs them first, and are the same afterwards.
#include "script/state/module_code.h"

#include <pthread.h>

#include "script/rules/rules.h"
#include "unit.h"

static const char TEXT[] = "return ruleset { name = 'r', fuse 'x' { pattern = op 'Conv' >> op 'Relu' } }";

static cleave_status_t load(const char *text, cleave_error_t *error) {
  cleave_rules_t *rules = NULL;
  cleave_status_t status =
      cleave_rules_load(NULL, &(cleave_rule_source_t){.path = "r.lua", .text = text, .length = strlen(text)},
                        NULL, NULL, &rules, error);
  cleave_rules_destroy(rules);
  return status;
}

/* Allocations of one load. */
static int64_t allocations(void) {
  (void)cleave_memory_fail_after(-1);
  unit_ok(load(TEXT, e));
  return cleave_memory_fail_after(-1);
}

UNIT_TEST(the_second_load_does_not_parse_the_modules) {
  int64_t first = allocations();
  int64_t second = allocations();
  ck_assert_int_gt(second, 100);
  ck_assert_msg(second * 4 < first * 3, "%ld allocations, then %ld", (long)first, (long)second);
  ck_assert_int_le(allocations(), second);
}

UNIT_TEST(messages_are_those_of_the_first_load) {
  static const char BROKEN[] = "return ruleset {\n  name = 'r', fuse 'x' { pattern = op 'Convv' } }";
  for (int k = 0; k < 3; k++) {
    unit_fails(load(BROKEN, e), CLEAVE_ERROR_RULE,
               "r.lua:2: fuse 'x': operator 'Convv' is unknown (did you mean 'Conv'?)");
  }
}

UNIT_TEST(a_first_load_without_memory_spoils_nothing) {
  bool failed = true;
  for (int64_t countdown = 0; failed; countdown += 37) {
    cleave_error_t error = CLEAVE_ERROR_INIT;
    (void)cleave_memory_fail_after(countdown);
    failed = load(TEXT, &error) != CLEAVE_OK;
    (void)cleave_memory_fail_after(-1);
  }
  unit_ok(load(TEXT, e));
}

static void *load_in_thread(void *context) {
  (void)context;
  for (int k = 0; k < 3; k++) {
    unit_ok(load(TEXT, e));
  }
  return NULL;
}

UNIT_TEST(threads_may_load_first_together) {
  pthread_t threads[4];
  for (int k = 0; k < 4; k++) {
    ck_assert_int_eq(pthread_create(&threads[k], NULL, load_in_thread, NULL), 0);
  }
  for (int k = 0; k < 4; k++) {
    ck_assert_int_eq(pthread_join(threads[k], NULL), 0);
  }
}

UNIT_MAIN("module_code")
