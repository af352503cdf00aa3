// SPDX-License-Identifier: Apache-2.0
// Fuse rules: which of several matches wins, what a refusal leads to, and budgets.

#include "pattern_case.h"
#include "plan_case.h"
#include "unit.h"

/* Forty sums of the same eight values. */
static cleave_graph_t *sums(void) {
  cleave_text_t text = {0};
  for (int k = 0; k < 40; k++) {
    cleave_text_format(&text, "a%d = Sum(x0, x1, x2, x3, x4, x5, x6, x7); ", k);
  }
  cleave_text_add(&text, "-> a0");
  cleave_graph_t *graph = plan_case_graph(cleave_text_get(&text));
  cleave_text_deinit(&text);
  return graph;
}

static cleave_plan_t *run_over_sums(const cleave_pattern_t *pattern) {
  static cleave_rule_t rule;
  rule = plan_case_rule(CLEAVE_RULE_FUSE, "sums");
  rule.pattern = pattern;
  const cleave_ruleset_t *ruleset = plan_case_ruleset("budget", &rule, 1);
  return plan_case_run(sums(), &ruleset, 1, NULL);
}

UNIT_TEST(inputs_that_ask_for_the_same_are_not_tried_in_all_orders) {
  uint32_t sum = op("Sum", NULL);
  for (uint32_t k = 0; k < 8; k++) {
    input(sum, ANY, k < 7 ? value(NULL) : constant(NULL));
  }
  cleave_pattern_t pattern = pattern_of(sum);
  cleave_plan_t *plan = run_over_sums(&pattern);
  ck_assert_uint_eq(plan->fusion_count, 0);
  ck_assert_uint_eq(plan->note_count, 0);
}

/* Eight values with names in all orders, and a condition that none of them meets. */
UNIT_TEST(a_pathological_pattern_ends_with_a_note) {
  static const char *const labels[8] = {"a", "b", "c", "d", "e", "f", "g", "h"};
  cleave_arena_t arena = {0};
  uint32_t sum = op("Sum", NULL);
  for (uint32_t k = 0; k < 8; k++) {
    input(sum, ANY, value(labels[k]));
  }
  cleave_pattern_t pattern = pattern_of(sum);
  unit_ok(cleave_expression_compile(&arena, "1 == 2", 1, CLEAVE_EXPRESSION_CONDITION, &pattern.where, e));
  cleave_plan_t *plan = run_over_sums(&pattern);
  ck_assert_uint_eq(plan->fusion_count, 0);
  ck_assert_uint_eq(plan->note_count, 40);
  ck_assert_int_eq(plan->notes[0].kind, CLEAVE_PLAN_NOTE_LIMIT);
  ck_assert_str_eq(plan->notes[0].reason, "a0: the pattern was given up here after 100001 steps");
  cleave_arena_deinit(&arena);
}

UNIT_TEST(a_long_chain_needs_no_recursion) {
  cleave_graph_t *graph = NULL;
  cleave_value_t x;
  cleave_dim_t dims[1] = {2};
  unit_ok(cleave_graph_create(&graph, e));
  unit_ok(cleave_graph_add_input(graph, "x", CLEAVE_DTYPE_F32, 1, dims, &x, e));
  for (uint32_t k = 0; k < 2500; k++) {
    cleave_node_t node;
    unit_ok(cleave_graph_add_node(graph, cleave_op_get(CLEAVE_OP_Relu), NULL, &x, 1, 1, &node, e));
    x = cleave_node_output(graph, node, 0);
  }
  unit_ok(cleave_graph_add_output(graph, "y", x, e));
  cleave_pattern_t pattern = pattern_of(repeated(op("Relu", NULL), 1, UINT32_MAX));
  cleave_rule_t rule = plan_case_rule(CLEAVE_RULE_FUSE, "chain");
  rule.pattern = &pattern;
  const cleave_ruleset_t *ruleset = plan_case_ruleset("chain", &rule, 1);
  // Every anchor begins a match to the end of the chain; the first is the longest.
  cleave_plan_t *plan = plan_case_run(graph, &ruleset, 1, &(cleave_partition_options_t){.max_notes = 1});
  ck_assert_uint_eq(plan->fusion_count, 1);
  ck_assert_uint_eq(plan->fusions[0].node_count, 2500);
  plan_case_keep(graph);
}

// ---- fuse rules ----

static cleave_plan_t *run_patterns(const char *graph_text, const uint32_t *roots, uint32_t count) {
  static cleave_pattern_t patterns[4];
  static const char *const names[4] = {"first", "second", "third", "fourth"};
  cleave_rule_t rules[4];
  for (uint32_t k = 0; k < count; k++) {
    patterns[k] = pattern_of(roots[k]);
    rules[k] = plan_case_rule(CLEAVE_RULE_FUSE, names[k]);
    rules[k].pattern = &patterns[k];
  }
  const cleave_ruleset_t *ruleset = plan_case_ruleset("patterns", rules, count);
  return plan_case_run(plan_case_graph(graph_text), &ruleset, 1, NULL);
}

UNIT_TEST(of_two_convolutions_into_one_sum_the_first_takes_it) {
  uint32_t chain = conv_chain();
  cleave_plan_t *plan = run_patterns("c = Conv(x, $w); d = Conv(x, $w); a = Add(c, d); -> a", &chain, 1);
  ck_assert_str_eq(plan_case_regions(plan), "{[d]} {[c a]}");
  ck_assert_str_eq(plan_case_notes(plan, CLEAVE_PLAN_NOTE_TAKEN), "a: taken by fuse 'first' at 'c'\n");
  ck_assert_uint_eq(plan->rules[0].matches, 2);
  ck_assert_uint_eq(plan->rules[0].tries, 2);
  ck_assert_uint_eq(plan->rules[0].refused, 0);
}

UNIT_TEST(the_larger_match_wins_within_a_rule_and_the_first_rule_between_rules) {
  uint32_t chain = SEQUENCE(op("Relu", "a"), maybe(op("Exp", "b")), op("Add", "c"));
  cleave_plan_t *plan = run_patterns("p = Relu(x); q = Relu(y); r = Exp(q); s = Add(p, r); -> s", &chain, 1);
  ck_assert_str_eq(plan_case_regions(plan), "{[q r s]}");
  uint32_t roots[2] = {SEQUENCE(op("Relu", "a"), op("Add", "c")), chain};
  plan = run_patterns("p = Relu(x); q = Relu(y); r = Exp(q); s = Add(p, r); -> s", roots, 2);
  ck_assert_str_eq(plan_case_regions(plan), "{[p s]}");
  ck_assert_str_eq(plan_case_notes(plan, CLEAVE_PLAN_NOTE_TAKEN),
                   "s: taken by fuse 'first' at 'p'\np: taken by fuse 'first' at 'p'\n");
}

UNIT_TEST(a_constant_may_be_in_many_matches) {
  uint32_t mul = input(op("Mul", "mul"), ANY, constant("c"));
  cleave_plan_t *plan = run_patterns("a = Mul(x, $w); b = Mul(a, $w); -> b", &mul, 1);
  ck_assert_str_eq(plan_case_regions(plan), "{[a]} {[b]}");
}

static cleave_status_t short_ones_only(void *context, const cleave_graph_t *graph,
                                       const cleave_match_t *match, bool *out_accept, cleave_reason_t *reason,
                                       cleave_error_t *error) {
  (void)context;
  (void)graph;
  (void)error;
  *out_accept = match->node_count < 3;
  (void)snprintf(reason->text, sizeof reason->text, "%u nodes", match->node_count);
  return CLEAVE_OK;
}

UNIT_TEST(where_refuses_and_the_next_way_to_match_is_tried) {
  cleave_pattern_t pattern = pattern_of(conv_chain());
  cleave_rule_t rule = plan_case_rule(CLEAVE_RULE_FUSE, "short");
  rule.pattern = &pattern;
  rule.where = short_ones_only;
  const cleave_ruleset_t *ruleset = plan_case_ruleset("short", &rule, 1);
  cleave_plan_t *plan = plan_case_run(
      plan_case_graph("c = Conv(x, $w); b = BatchNormalization(c, $s, $b, $m, $v); a = Add(b, y); "
                      "r = Relu(a); -> r"),
      &ruleset, 1, NULL);
  ck_assert_str_eq(plan_case_regions(plan), "{[c b]}");
  ck_assert_str_eq(plan_case_notes(plan, CLEAVE_PLAN_NOTE_WHERE), "c: 4 nodes\nc: 3 nodes\n");
  ck_assert_uint_eq(plan->rules[0].refused, 2);
}

UNIT_TEST(a_fusion_with_several_ways_out_that_would_close_a_cycle_is_refused) {
  uint32_t relu = op("Relu", "a");
  uint32_t add = input(op("Add", "b"), 0, relu);
  parts[relu].shared = true;
  cleave_plan_t *plan = run_patterns("a = Relu(x); c = Cos(a); b = Add(a, c); -> b", &add, 1);
  ck_assert_uint_eq(plan->fusion_count, 0);
  ck_assert_str_eq(plan_case_notes(plan, CLEAVE_PLAN_NOTE_CYCLE), "b: would close a cycle through 'c'\n");
  ck_assert_uint_eq(plan->rules[0].refused, 1);
}

static cleave_status_t count_inputs(void *context, const char *backend, const cleave_graph_t *graph,
                                    const cleave_fusion_set_t *set, bool *out_yes, cleave_reason_t *reason,
                                    cleave_error_t *error) {
  (void)backend;
  (void)reason;
  (void)error;
  for (uint32_t k = 0; k < set->node_count; k++) {
    *(size_t *)context += cleave_node_input_count(graph, set->nodes[k]);
  }
  *out_yes = false;
  return CLEAVE_OK;
}

UNIT_TEST(a_node_with_thousands_of_inputs_is_not_shown_for_each_of_them) {
  enum { COUNT = 4000 };
  static cleave_value_t relus[COUNT];
  cleave_graph_t *graph = plan_case_graph("s = Sum(x); p = Exp(s); q = Sin(p); -> q");
  cleave_value_t x = graph->inputs.items[0];
  cleave_node_t node;
  for (int k = 0; k < COUNT; k++) {
    unit_ok(cleave_graph_add_node(graph, cleave_op_find("", "Relu"), "", &x, 1, 1, &node, e));
    relus[k] = cleave_node_output(graph, node, 0);
  }
  unit_ok(cleave_graph_add_node(graph, cleave_op_find("", "Sum"), "", relus, COUNT, 1, &node, e));
  cleave_graph_set_input(graph, plan_case_node(graph, "p"), 0, cleave_node_output(graph, node, 0));
  unit_ok(cleave_graph_remove_dead(graph, NULL, e));
  cleave_pattern_t pattern = pattern_of(repeated(op("Relu,Sum,Exp,Sin", NULL), 2, 2));
  cleave_rule_t rule = plan_case_rule(CLEAVE_RULE_FUSE, "chain");
  rule.pattern = &pattern;
  const cleave_ruleset_t *ruleset = plan_case_ruleset("chains", &rule, 1);
  size_t shown = 0;
  cleave_partition_options_t options = {.supports = count_inputs, .backend_context = &shown};
  cleave_plan_t *plan = plan_case_run(graph, &ruleset, 1, &options);
  ck_assert_uint_eq(plan->rules[0].refused, 4002);
  ck_assert_uint_gt(shown, 4000000);
  ck_assert_uint_lt(shown, 6000000); /* of 16 million */
  const char *refused = plan_case_notes(plan, CLEAVE_PLAN_NOTE_BACKEND);
  ck_assert_ptr_nonnull(strstr(refused, "p: ")); /* what is small is shown in any case */
}

UNIT_SUITE("fuse")
