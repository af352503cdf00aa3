// SPDX-License-Identifier: Apache-2.0
/* Models that rewrites and passes change, in a line each, for their tests. Any failure fails the test. */
#ifndef CLEAVE_TESTS_REWRITE_CASE_H
#define CLEAVE_TESTS_REWRITE_CASE_H

#include "edits_case.h"
#include "rule_case.h"
#include "unit.h"

/* Runs the rules; the log of changes is performed once more from its JSON. */
static inline rule_case_t run(const char *model, const char *rules) {
  rule_case_t c = rule_case_create(&(rule_case_request_t){.model = model, .rules = {rules}});
  if (c.plan->edits != NULL) {
    edits_case_check_replay(c.plan->source, c.plan->edits, c.plan->rewritten);
  }
  return c;
}

/* What a request that fails says. */
static inline const char *failure(const char *model, const char *rules) {
  return rule_case_failure(&(rule_case_request_t){.model = model, .rules = {rules}});
}

#define RULESET(body) "return ruleset { name = 'r', " body " }"
#define INPUT "local x = g.input('x', 'float32', {2, 8}) "

/* The operators in order: "Relu Exp". */
static inline void check_ops(const rule_case_t *c, const char *ops) {
  ck_assert_str_eq(edits_case_ops(c->plan->graph), ops);
}

static inline void check_rule(const rule_case_t *c, uint32_t rule, uint32_t matches, uint32_t refused) {
  ck_assert_uint_eq(c->plan->rules[rule].matches, matches);
  ck_assert_uint_eq(c->plan->rules[rule].refused, refused);
}

#endif /* CLEAVE_TESTS_REWRITE_CASE_H */
