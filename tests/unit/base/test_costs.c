// SPDX-License-Identifier: Apache-2.0
// What a library says that its regions cost, borders included, decides by the rule's min_gain; each border is
// paid once. With tests/accelerators/costs.c: 20 us, and 1 ns for 8 bytes over the border.
#include "backend/registry/registry.h"
#include "rule_case.h"
#include "unit.h"

#define LIBRARY CLEAVE_BINARY_DIR "/tests/accelerators/libcosts.so"

#define RULES(gain) \
  "return ruleset { name = 'r', backend = 'costs', region 'g' { ops = { 'Relu' }, min_gain = " gain " } }"

/* `relus` in a row over `elements` numbers. */
static rule_case_t make_case(int64_t elements, int relus, const char *rules) {
  static char model[256];
  (void)snprintf(model, sizeof model,
                 "local x = g.input('x', 'float32', { %lld })\n"
                 "for k = 1, %d do x = g.Relu(x, { name = 'r' .. k }) end\n"
                 "g.output('y', x)",
                 (long long)elements, relus);
  rule_case_request_t request = {.model = model, .rules = {rules}};
  unit_ok(cleave_registry_load(NULL, LIBRARY, NULL, e));
  return rule_case_create(&request);
}

/* The number before " us on costs" in the reason of a refusal. */
static double own_us(const rule_case_t *c) {
  const char *reason = strstr(rule_case_notes(c, CLEAVE_PLAN_NOTE_THRESHOLD), "no gain: ");
  ck_assert_msg(reason != NULL, "'%s'", rule_case_notes(c, CLEAVE_PLAN_NOTE_THRESHOLD));
  double us = 0.0;
  ck_assert_int_eq(sscanf(reason, "no gain: %lf us on costs", &us), 1);
  return us;
}

UNIT_TEST(a_region_pays_for_its_border_once_and_not_for_its_inside) {
  for (int relus = 1; relus <= 5; relus += 2) {
    rule_case_t c = make_case(1000000, relus, RULES("1e6"));
    ck_assert_uint_eq(c.plan->region_count, 0);
    ck_assert_double_eq_tol(own_us(&c), 1020.0, 0.5); /* 20 us, and 8 MB */
    rule_case_deinit(&c);
  }
}

UNIT_TEST(what_gains_depends_on_how_much_is_inside) {
  rule_case_t small = make_case(1000, 1, RULES("1"));
  ck_assert_str_eq(rule_case_regions(&small), "");
  ck_assert_double_eq_tol(own_us(&small), 21.0, 0.01);
  rule_case_deinit(&small);
  rule_case_t one = make_case(1000000, 1, RULES("2"));
  rule_case_t many = make_case(1000000, 40, RULES("2"));
  ck_assert_uint_eq(one.plan->region_count, 0);
  ck_assert_uint_eq(many.plan->region_count, 1);
  ck_assert_uint_eq(many.plan->regions[0].node_count, 40);
  rule_case_deinit(&one);
  rule_case_deinit(&many);
}

UNIT_TEST(costs_that_make_no_sense_are_not_known) {
  for (int64_t elements = 1; elements <= 6; elements++) {
    rule_case_t c = make_case(elements, 1, RULES("100"));
    ck_assert_uint_eq(c.plan->region_count, 1);
    const char *note = rule_case_notes(&c, CLEAVE_PLAN_NOTE_LIMIT);
    const char *expected = elements == 5 ? "r1: min_gain is not checked: costs: xxx"
                                         : "r1: min_gain is not checked: costs: no cost given\n";
    ck_assert_msg(strncmp(note, expected, strlen(expected)) == 0, "%lld: '%s'", (long long)elements, note);
    rule_case_deinit(&c);
  }
}

UNIT_SUITE("costs")
