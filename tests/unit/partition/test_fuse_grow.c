// SPDX-License-Identifier: Apache-2.0
// Fuse rules without a pattern: their fusions grow as regions do, from nodes that are in no fusion yet.
#include <stdio.h>
#include <string.h>

#include "pattern_case.h"
#include "plan_case.h"
#include "rule_case.h"
#include "unit.h"

static cleave_rule_t grown(const char *name, const char *ops) {
  cleave_rule_t rule = plan_case_rule(CLEAVE_RULE_FUSE, name);
  rule.mode = CLEAVE_REGION_OPS;
  rule.ops = plan_case_op_list(ops, &rule.op_count);
  return rule;
}

static cleave_plan_t *run_one(const char *graph, const cleave_rule_t *rule,
                              const cleave_partition_options_t *options) {
  const cleave_ruleset_t *ruleset = plan_case_ruleset("grown", rule, 1);
  return plan_case_run(plan_case_graph(graph), &ruleset, 1, options);
}

UNIT_TEST(connected_nodes_are_one_fusion) {
  static const cleave_attribute_t attribute = {.name = "kernel", .kind = CLEAVE_ATTRIBUTE_INT, .i = 1};
  cleave_rule_t rule = grown("pointwise", "Exp,Sin");
  rule.attributes = &attribute;
  rule.attribute_count = 1;
  cleave_plan_t *plan =
      run_one("a = Exp(x); b = Sin(a); c = Sin(a); p = Softmax(c); q = Exp(p); -> b, q", &rule, NULL);
  ck_assert_str_eq(plan_case_regions(plan), "{[a b c]} {[q]}");
  ck_assert_uint_eq(plan->rules[0].matches, 2);
  ck_assert_str_eq(plan->regions[0].name, "pointwise_0");
  ck_assert_str_eq(plan_case_boundary(plan, 0), "x -> b, c");
  ck_assert_uint_eq(plan->fusions[0].attribute_count, 1);
  ck_assert_int_eq(plan->fusions[0].attributes[0].i, 1);
  ck_assert_str_eq(plan->fusions[0].labels[2], "");
}

UNIT_TEST(what_would_close_a_cycle_is_split) {
  cleave_rule_t rule = grown("pointwise", "Exp,Add");
  cleave_plan_t *plan = run_one("a = Exp(x); s = Softmax(a); b = Add(a, s); -> b", &rule, NULL);
  ck_assert_str_eq(plan_case_regions(plan), "{[a]} {[b]}");
}

UNIT_TEST(no_node_of_another_fusion_is_taken) {
  cleave_pattern_t pattern = pattern_of(SEQUENCE(op("Conv", "conv"), op("Relu", "act")));
  cleave_rule_t rules[3] = {grown("pointwise", "Relu,Exp"), plan_case_rule(CLEAVE_RULE_FUSE, "product"),
                            plan_case_rule(CLEAVE_RULE_REGION, "all")};
  rules[0].priority = -1;
  rules[1].pattern = &pattern;
  const cleave_ruleset_t *ruleset = plan_case_ruleset("both", rules, 2);
  const char *text =
      "c = Conv(x, $w); r = Relu(c); e = Exp(r); f = Relu(e); m = MaxPool(f); g = Exp(m); -> g";
  cleave_plan_t *plan = plan_case_run(plan_case_graph(text), &ruleset, 1, NULL);
  ck_assert_str_eq(plan_case_regions(plan), "{[c r]} {[e f]} {[g]}");
  ruleset = plan_case_ruleset("all", rules, 3);
  plan = plan_case_run(plan_case_graph(text), &ruleset, 1, NULL);
  ck_assert_str_eq(plan_case_regions(plan), "{[c r] [e f] m [g]}");
  rules[0].priority = 1;
  ruleset = plan_case_ruleset("first", rules, 3);
  plan = plan_case_run(plan_case_graph(text), &ruleset, 1, NULL);
  ck_assert_str_eq(plan_case_regions(plan), "{c [r e f] m [g]}");
}

UNIT_TEST(thresholds_refuse_fusions) {
  cleave_rule_t rule = grown("pointwise", "Exp,Sin");
  rule.min_nodes = 2;
  cleave_plan_t *plan = run_one("a = Exp(x); b = Sin(a); m = Softmax(b); c = Exp(m); -> c", &rule, NULL);
  ck_assert_str_eq(plan_case_regions(plan), "{[a b]}");
  ck_assert_str_eq(plan_case_notes(plan, CLEAVE_PLAN_NOTE_THRESHOLD),
                   "c: a fusion of 1 node is too small: min_nodes is 2\n");
  ck_assert_uint_eq(plan->rules[0].refused, 1);
}

typedef struct backend_case {
  size_t fusions;
  size_t nodes;
} backend_case_t;

/* Runs every node, and no fusion of more than two. */
static cleave_status_t small_fusions(void *context, const char *backend, const cleave_graph_t *graph,
                                     const cleave_fusion_set_t *set, bool *out_yes, cleave_reason_t *reason,
                                     cleave_error_t *error) {
  backend_case_t *self = context;
  (void)backend;
  (void)graph;
  (void)error;
  *(set->labels == NULL ? &self->nodes : &self->fusions) += 1;
  *out_yes = set->labels == NULL || set->node_count < 3;
  (void)snprintf(reason->text, sizeof reason->text, "%u are too many", set->node_count);
  return CLEAVE_OK;
}

UNIT_TEST(the_backend_decides_about_the_whole_set) {
  backend_case_t backend = {0};
  const cleave_partition_options_t options = {.supports = small_fusions, .backend_context = &backend};
  cleave_rule_t rule = grown("pointwise", "Exp,Sin");
  cleave_plan_t *plan = run_one(
      "a = Exp(x); b = Sin(a); m = Softmax(b); c = Exp(m); d = Sin(c); f = Exp(d); -> f", &rule, &options);
  ck_assert_str_eq(plan_case_regions(plan), "{[a b]}");
  ck_assert_str_eq(plan_case_notes(plan, CLEAVE_PLAN_NOTE_BACKEND), "c: 3 are too many\n");
  ck_assert_uint_eq(backend.fusions, 2);
  ck_assert_uint_eq(backend.nodes, 5);
  ck_assert_uint_eq(plan->rules[0].refused, 1);
}

/* Keeps all but nodes of Sin, and gives the rest an attribute of its own. */
static cleave_status_t without_sin(void *context, const cleave_proposal_t *proposal, cleave_review_t *review,
                                   cleave_error_t *error) {
  (void)context;
  (void)error;
  cleave_attribute_t *attribute = cleave_arena_allocate(review->arena, 1, sizeof *attribute);
  *attribute =
      (cleave_attribute_t){.name = "nodes", .kind = CLEAVE_ATTRIBUTE_INT, .i = (int64_t)proposal->node_count};
  review->attributes = attribute;
  review->attribute_count = 1;
  for (uint32_t k = 0; k < proposal->node_count; k++) {
    review->keep[k] = strcmp(cleave_node_op(proposal->graph, proposal->nodes[k])->name, "Sin") != 0;
  }
  return CLEAVE_OK;
}

UNIT_TEST(review_trims_a_set_and_gives_it_attributes) {
  cleave_rule_t rule = grown("pointwise", "Exp,Sin");
  rule.review = without_sin;
  cleave_plan_t *plan = run_one("a = Exp(x); b = Exp(a); s = Sin(b); c = Exp(s); -> c", &rule, NULL);
  ck_assert_str_eq(plan_case_regions(plan), "{[a b]} {[c]}");
  ck_assert_int_eq(plan->fusions[0].attributes[0].i, 2);
  ck_assert_int_eq(plan->fusions[1].attributes[0].i, 1);
}

UNIT_TEST(a_rule_that_says_neither_is_refused) {
  cleave_rule_t rule = plan_case_rule(CLEAVE_RULE_FUSE, "nothing");
  const cleave_ruleset_t *ruleset = plan_case_ruleset("nothing", &rule, 1);
  cleave_plan_t *plan = NULL;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  ck_assert_int_eq(cleave_partition(plan_case_graph("a = Exp(x); -> a"), &ruleset, 1, NULL, &plan, &error),
                   CLEAVE_ERROR_RULE);
  ck_assert_str_eq(error.message,
                   "test.lua:1: fuse 'nothing': needs a pattern, 'ops', 'supported' or 'selector'");
}

/* A chain on one number, of which no part is worth a kernel. */
UNIT_TEST(a_long_chain_that_is_refused_is_not_grown_from_each_of_its_nodes) {
  enum { NODES = 2000 };
  const rule_case_request_t request = {.model =
                                           "local y = g.input('x', 'float32', { 8 })\n"
                                           "for k = 1, 1000 do y = g.Neg(g.Relu(y)) end\n"
                                           "g.output('y', y)",
                                       .rules = {CLEAVE_SOURCE_DIR "/rules/pointwise.lua"}};
  rule_case_t c = rule_case_create(&request);
  ck_assert_uint_eq(c.plan->fusion_count, 0);
  for (uint32_t k = 0; k < c.plan->rule_count; k++) {
    if (strcmp(c.plan->rules[k].name, "pointwise") == 0) {
      ck_assert_uint_gt(c.plan->rules[k].refused, 0);
      ck_assert_uint_lt(c.plan->rules[k].lua_calls, 4 * NODES);
    }
  }
  rule_case_deinit(&c);
}

UNIT_SUITE("fusions that grow")
