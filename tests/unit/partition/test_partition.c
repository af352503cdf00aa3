// SPDX-License-Identifier: Apache-2.0
// The graphs of Apache MXNet's own subgraph tests, and those that break a naive partitioner: which regions
// come out, what crosses their borders, and why they end where they end.

#include "plan_case.h"
#include "unit.h"

/* Runs an `ops` rule over a graph and compares the regions. */
static cleave_plan_t *expect_ops(const char *graph_text, const char *ops, const char *regions) {
  cleave_graph_t *graph = plan_case_graph(graph_text);
  const cleave_ruleset_t *ruleset = plan_case_ops(ops);
  cleave_plan_t *plan = plan_case_run(graph, &ruleset, 1, NULL);
  ck_assert_str_eq(plan_case_regions(plan), regions);
  return plan;
}

// ---- the 17 pairs of graph and operator set ----

#define G1 "c1 = Conv(data1, data2); c2 = Conv(data2, weight); -> c1, c2"
#define G2 "e = Exp(data); c = Cos(e); s = Sin(e); a = Add(c, s); "
#define G3                                                      \
  G2 "b1 = BatchNormalization(a, gamma1, beta1, mean1, var1); " \
     "b2 = BatchNormalization(b1, gamma2, beta2, mean2, var2); "
#define G4 "e = Exp(data); -> e, e, e"
#define G5 "a = Add(data, data); -> a"
#define G6 "s = Sin(data2); c = Conv(data1, s, bias); -> c"
#define G7                                                                                             \
  "s = Sin(data); k1 = Cos(s); k2 = Cos(k1); k3 = Cos(k2); k4 = Cos(k3); k5 = Cos(k4); k6 = Cos(k5); " \
  "a = Add(s, k6); -> a"
#define G8 "s1 = Sin(data); s2 = Sin(data); p = Add(s1, s2); c1 = Cos(p); c2 = Cos(p); d = Sub(c1, c2); -> d"

UNIT_TEST(pair_1_two_convolutions_that_share_a_graph_input_are_two_regions) {
  cleave_plan_t *plan = expect_ops(G1, "Conv", "{c1} {c2}");
  ck_assert_str_eq(plan_case_boundary(plan, 0), "data1, data2 -> c1");
  ck_assert_str_eq(plan_case_boundary(plan, 1), "data2, weight -> c2");
}

UNIT_TEST(pair_2_the_sum_stays_out_because_of_the_cosine) {
  cleave_plan_t *plan = expect_ops(G2 "-> a", "Exp,Sin,Add", "{e s} {a}");
  ck_assert_str_eq(plan_case_boundary(plan, 0), "data -> e, s");
  ck_assert_str_eq(plan_case_boundary(plan, 1), "c, s -> a");
  ck_assert_str_eq(plan_case_notes(plan, CLEAVE_PLAN_NOTE_CYCLE),
                   "c: 's' and 'a' stay apart: a path through 'c' would close a cycle\n");
}

UNIT_TEST(pair_3_the_sum_stays_out_because_of_the_sine) {
  cleave_plan_t *plan = expect_ops(G2 "-> a", "Exp,Cos,Add", "{e c} {a}");
  ck_assert_str_eq(plan_case_boundary(plan, 0), "data -> e, c");
}

UNIT_TEST(pairs_4_to_7_batch_norms_go_with_the_sum) {
  expect_ops(G3 "-> b2", "Exp,Sin,Add", "{e s} {a}");
  expect_ops(G3 "-> b2", "Exp,Cos,Add", "{e c} {a}");
  cleave_plan_t *plan = expect_ops(G3 "-> b2", "Exp,Sin,Add,BatchNormalization", "{e s} {a b1 b2}");
  ck_assert_str_eq(plan_case_boundary(plan, 1),
                   "c, s, gamma1, beta1, mean1, var1, gamma2, beta2, mean2, var2 -> b2");
  expect_ops(G3 "-> b2", "Exp,Cos,Add,BatchNormalization", "{e c} {a b1 b2}");
}

UNIT_TEST(pairs_8_and_9_a_value_that_is_used_twice_is_one_output) {
  cleave_plan_t *plan = expect_ops(G3 "-> b2", "Exp,BatchNormalization", "{e} {b1 b2}");
  ck_assert_str_eq(plan_case_boundary(plan, 0), "data -> e");
  expect_ops(G3 "-> b2", "BatchNormalization", "{b1 b2}");
}

UNIT_TEST(pairs_10_and_11_values_cross_a_border_once) {
  cleave_plan_t *plan = expect_ops(G4, "Exp", "{e}");
  ck_assert_str_eq(plan_case_boundary(plan, 0), "data -> e");
  plan = expect_ops(G5, "Add", "{a}");
  ck_assert_str_eq(plan_case_boundary(plan, 0), "data -> a");
}

UNIT_TEST(pairs_12_to_15_sine_and_convolution) {
  cleave_plan_t *plan = expect_ops(G6, "", "");
  ck_assert_uint_eq(plan->step_count, 2);
  ck_assert_uint_eq(plan->region_count, 0);
  expect_ops(G6, "Sin", "{s}");
  plan = expect_ops(G6, "Conv", "{c}");
  ck_assert_str_eq(plan_case_boundary(plan, 0), "data1, s, bias -> c");
  plan = expect_ops(G6, "Sin,Conv", "{s c}");
  ck_assert_str_eq(plan_case_boundary(plan, 0), "data2, data1, bias -> c");
}

UNIT_TEST(pair_16_a_long_way_round_is_a_cycle_too) {
  expect_ops(G7, "Sin,Add", "{s} {a}");
}

UNIT_TEST(pair_17_two_sines_and_their_sum) {
  cleave_plan_t *plan = expect_ops(G8, "Sin,Add", "{s1 s2 p}");
  ck_assert_str_eq(plan_case_boundary(plan, 0), "data -> p");
}

// ---- graphs that break a naive partitioner ----

/* Two `ops`-like rules over disjoint operators, run one after the other. */
static cleave_plan_t *expect_two(const char *graph_text, const char *first, const char *second,
                                 const char *regions) {
  cleave_graph_t *graph = plan_case_graph(graph_text);
  cleave_rule_t rules[2] = {plan_case_rule(CLEAVE_RULE_REGION, "one"),
                            plan_case_rule(CLEAVE_RULE_REGION, "two")};
  rules[0].mode = rules[1].mode = CLEAVE_REGION_OPS;
  rules[0].ops = plan_case_op_list(first, &rules[0].op_count);
  rules[1].ops = plan_case_op_list(second, &rules[1].op_count);
  const cleave_ruleset_t *ruleset = plan_case_ruleset("two", rules, 2);
  cleave_plan_t *plan = plan_case_run(graph, &ruleset, 1, NULL);
  ck_assert_str_eq(plan_case_regions(plan), regions);
  return plan;
}

/* Group numbers by operator: Relu 3, Exp 4, Sin any, others none. */
static cleave_status_t group_by_op(void *context, const cleave_graph_t *graph, cleave_node_t node,
                                   int64_t *out_group, cleave_error_t *error) {
  (void)context;
  (void)error;
  switch (cleave_node_op(graph, node)->id) {
    case CLEAVE_OP_Relu:
    case CLEAVE_OP_Add: *out_group = 3; break;
    case CLEAVE_OP_Exp:
    case CLEAVE_OP_Mul: *out_group = 4; break;
    case CLEAVE_OP_Sin: *out_group = CLEAVE_GROUP_ANY; break;
    default: *out_group = CLEAVE_GROUP_NONE; break;
  }
  return CLEAVE_OK;
}

static cleave_plan_t *expect_groups(const char *graph_text, const char *regions) {
  cleave_graph_t *graph = plan_case_graph(graph_text);
  cleave_rule_t rule = plan_case_rule(CLEAVE_RULE_REGION, "groups");
  rule.mode = CLEAVE_REGION_SUPPORTED;
  rule.supported = group_by_op;
  const cleave_ruleset_t *ruleset = plan_case_ruleset("groups", &rule, 1);
  cleave_plan_t *plan = plan_case_run(graph, &ruleset, 1, NULL);
  ck_assert_str_eq(plan_case_regions(plan), regions);
  return plan;
}

#define MUTUAL "a0 = Relu(x); b1 = Exp(y); a1 = Add(a0, b1); a2 = Relu(a0); b2 = Mul(a2, b1); -> a1, b2"
#define HOLE_A "a0 = Relu(x); s1 = Exp(x); y = Add(a0, s1); s2 = Mul(y, s1); -> s2"

UNIT_TEST(t1_mutual_dependence_cuts_the_later_set) {
  cleave_plan_t *plan = expect_two(MUTUAL, "Relu,Add", "Exp,Mul", "{b1} {a0 a1 a2} {b2}");
  ck_assert_str_eq(plan_case_notes(plan, CLEAVE_PLAN_NOTE_CYCLE),
                   "a2: 'b1' and 'b2' stay apart: a path through 'a2' would close a cycle\n");
  expect_groups(MUTUAL, "{b1} {a0 a1 a2} {b2}");
}

UNIT_TEST(t2_a_set_with_a_hole_is_cut) {
  expect_two(HOLE_A, "Relu,Add", "Exp,Mul", "{s1} {a0 y} {s2}");
  expect_groups(HOLE_A, "{s1} {a0 y} {s2}");
}

#define LADDER                                                                                          \
  "s0 = Relu(x); anc = Cos(s0); d0 = Sub(v, v); d1 = Sub(d0, d0); d2 = Sub(d1, d1); d3 = Sub(d2, d2); " \
  "d4 = Sub(d3, d3); d5 = Sub(d4, d4); d6 = Sub(d5, d5); d7 = Sub(d6, d6); d8 = Sub(d7, d7); "          \
  "d9 = Sub(d8, d8); d10 = Sub(d9, d9); d11 = Sub(d10, d10); "

UNIT_TEST(t3_a_path_around_a_ladder_is_found_whatever_the_order_of_edges) {
  expect_ops(LADDER "desc = Sub(anc, d11); s1 = Add(s0, desc); -> s1", "Relu,Add", "{s0} {s1}");
  expect_ops(LADDER "desc = Sub(d11, anc); s1 = Add(s0, desc); -> s1", "Relu,Add", "{s0} {s1}");
}

UNIT_TEST(t4_every_output_of_a_region_keeps_its_own_value) {
  cleave_plan_t *plan =
      expect_ops("a = Relu(x); b = Relu(a); u = Cos(a); v = Cos(a); w = Cos(b); -> u, v, w", "Relu", "{a b}");
  ck_assert_str_eq(plan_case_boundary(plan, 0), "x -> a, b");
}

UNIT_TEST(t5_values_of_one_name_are_two_inputs) {
  cleave_graph_t *graph = plan_case_graph("p = Cos(x); q = Sin(x); s = Add(p, q); -> s");
  for (uint32_t k = 0; k < 2; k++) {
    cleave_node_t node = plan_case_node(graph, k == 0 ? "p" : "q");
    unit_ok(cleave_graph_set_value_name(graph, cleave_node_output(graph, node, 0), "dup", e));
  }
  const cleave_ruleset_t *ruleset = plan_case_ops("Add");
  cleave_plan_t *plan = plan_case_run(graph, &ruleset, 1, NULL);
  ck_assert_str_eq(plan_case_boundary(plan, 0), "dup, dup -> s");
  ck_assert_uint_ne(plan->regions[0].inputs[0].index, plan->regions[0].inputs[1].index);
}

UNIT_TEST(t7_a_node_of_any_group_joins_on_either_side) {
  expect_groups("a = Relu(x); b = Sin(a); c = Relu(b); -> c", "{a b c}");
  expect_groups("b = Sin(x); c = Relu(b); -> c", "{b c}");
  expect_groups("a = Relu(x); b = Sin(a); c = Exp(b); -> c", "{a b} {c}");
  expect_groups("a = Exp(x); b = Sin(a); b2 = Sin(b); c = Relu(b2); -> c", "{a b b2} {c}");
  expect_groups("b = Sin(x); c = Sin(b); d = Cos(c); -> d", "{b c}");
}

#define FUSION_CYCLE                                                                                 \
  "rx = Relu(x); ry = Relu(y); sx = ReduceSum(rx); sy = ReduceSum(ry); z1 = Abs(sx); z2 = Abs(sy); " \
  "o1 = Add(rx, z2); o2 = Add(ry, z1); -> o1, o2"

UNIT_TEST(the_fusion_cycle_graph_keeps_one_side_apart) {
  cleave_plan_t *plan = expect_ops(FUSION_CYCLE, "Relu,Abs,Add", "{rx} {ry z1 o2} {z2 o1}");
  ck_assert_uint_eq(plan->region_count, 3);
}

UNIT_TEST(exclusion_sets_do_not_miss_the_cycle_of_the_sweep) {
  expect_ops(
      "n1 = Relu(x); n0 = Relu(x); n3 = Cos(n0); n7 = Add(n1, n3); n5 = Relu(n0); n2 = Relu(x); n6 = "
      "Cos(n2); "
      "n8 = Add(n5, n6); n4 = Relu(n2); n9 = Add(n1, n4); -> n7, n8, n9",
      "Relu,Add", "{n0 n5} {n1 n7 n2 n4 n9} {n8}");
}

UNIT_TEST(a_residual_chain_is_one_region_a_block_and_linear) {
  cleave_text_t text = {0};
  cleave_text_t wanted = {0};
  for (int k = 0; k < 400; k++) {
    cleave_text_format(&text, "a%d = Relu(x%d); b%d = Cos(a%d); x%d = Add(x%d, b%d); ", k, k, k, k, k + 1, k,
                       k);
    cleave_text_format(&wanted, k == 0 ? "{a0} " : "{x%d a%d} ", k, k);
  }
  cleave_text_add(&text, "-> x400");
  cleave_text_add(&wanted, "{x400}");
  expect_ops(cleave_text_get(&text), "Relu,Add", cleave_text_get(&wanted));
  cleave_text_deinit(&text);
  cleave_text_deinit(&wanted);
}

UNIT_TEST(outputs_are_in_order_of_their_producers_however_they_are_used) {
  cleave_plan_t *plan = expect_ops(
      "a = Relu(x); b = Relu(a); u = Cos(b); v = Sin(a); w = Cos(b); -> b, a, b, u, v, w", "Relu", "{a b}");
  ck_assert_str_eq(plan_case_boundary(plan, 0), "x -> a, b");
}

UNIT_TEST(neighbouring_regions_share_inputs_without_mixing_them_up) {
  cleave_graph_t *graph = plan_case_graph(
      "a = Relu(x); b = Add(a, y); c = Exp(b); d = Mul(c, y); f = Add(d, x); g = Add(f, y); -> g");
  const cleave_ruleset_t *rulesets[2] = {plan_case_ops("Relu,Add"), plan_case_ops("Exp,Mul")};
  cleave_plan_t *plan = plan_case_run(graph, rulesets, 2, NULL);
  ck_assert_str_eq(plan_case_regions(plan), "{a b} {c d} {f g}");
  ck_assert_str_eq(plan_case_boundary(plan, 0), "x, y -> b");
  ck_assert_str_eq(plan_case_boundary(plan, 1), "b, y -> d");
  ck_assert_str_eq(plan_case_boundary(plan, 2), "d, x, y -> g");
}

// ---- supports, review, min_nodes ----

static cleave_status_t no_cosine(void *context, const char *backend, const cleave_graph_t *graph,
                                 const cleave_fusion_set_t *set, bool *out_yes, cleave_reason_t *reason,
                                 cleave_error_t *error) {
  (void)error;
  ck_assert_str_eq(backend, "test");
  ++*(uint32_t *)context;
  *out_yes = true;
  for (uint32_t k = 0; k < set->node_count; k++) {
    *out_yes = *out_yes && cleave_node_op(graph, set->nodes[k])->id != CLEAVE_OP_Cos;
  }
  strcpy(reason->text, "no cosine here");
  return CLEAVE_OK;
}

UNIT_TEST(a_backend_region_holds_what_the_backend_runs_and_asks_once_a_node) {
  cleave_graph_t *graph = plan_case_graph(G3 "-> b2");
  uint32_t asked = 0;
  cleave_partition_options_t options = {.supports = no_cosine, .backend_context = &asked};
  cleave_rule_t rules[2] = {plan_case_rule(CLEAVE_RULE_REGION, "all"),
                            plan_case_rule(CLEAVE_RULE_REGION, "again")};
  rules[0].mode = rules[1].mode = CLEAVE_REGION_BACKEND;
  const cleave_ruleset_t *ruleset = plan_case_ruleset("all", rules, 2);
  cleave_plan_t *plan = plan_case_run(graph, &ruleset, 1, &options);
  ck_assert_str_eq(plan_case_regions(plan), "{e s} {a b1 b2}");
  ck_assert_uint_eq(asked, 6);
  ck_assert_str_eq(plan_case_notes(plan, CLEAVE_PLAN_NOTE_BACKEND), "c: test: no cosine here\n");
}

static cleave_status_t refuse_small_output(void *context, const cleave_proposal_t *proposal,
                                           cleave_review_t *review, cleave_error_t *error) {
  (void)context;
  (void)error;
  review->accept = proposal->output_count > 1;
  (void)snprintf(review->reason.text, sizeof review->reason.text, "%u nodes, %u inputs, %u fusions",
                 proposal->node_count, proposal->input_count, proposal->fusion_count);
  return CLEAVE_OK;
}

UNIT_TEST(a_refused_region_is_free_for_the_next_rule) {
  cleave_graph_t *graph = plan_case_graph(G3 "-> b2");
  cleave_rule_t rules[2] = {plan_case_rule(CLEAVE_RULE_REGION, "picky"),
                            plan_case_rule(CLEAVE_RULE_REGION, "rest")};
  for (uint32_t k = 0; k < 2; k++) {
    rules[k].mode = CLEAVE_REGION_OPS;
    rules[k].ops = plan_case_op_list("Exp,Sin,Add,BatchNormalization", &rules[k].op_count);
  }
  rules[0].review = refuse_small_output;
  rules[1].ops = plan_case_op_list("BatchNormalization", &rules[1].op_count);
  const cleave_ruleset_t *ruleset = plan_case_ruleset("picky", rules, 2);
  cleave_plan_t *plan = plan_case_run(graph, &ruleset, 1, NULL);
  ck_assert_str_eq(plan_case_regions(plan), "{e s} {b1 b2}");
  ck_assert_str_eq(plan_case_notes(plan, CLEAVE_PLAN_NOTE_REVIEW), "a: 3 nodes, 10 inputs, 0 fusions\n");
  ck_assert_uint_eq(plan->rules[0].matches, 1);
  ck_assert_uint_eq(plan->rules[0].refused, 1);
  ck_assert_str_eq(plan->regions[0].name, "picky_0");
  ck_assert_str_eq(plan->regions[1].name, "rest_0");
}

UNIT_TEST(regions_below_min_nodes_are_refused) {
  cleave_graph_t *graph = plan_case_graph(G3 "-> b2");
  cleave_rule_t rule = plan_case_rule(CLEAVE_RULE_REGION, "island");
  rule.mode = CLEAVE_REGION_OPS;
  rule.ops = plan_case_op_list("Exp,Sin,Add,BatchNormalization", &rule.op_count);
  rule.min_nodes = 3;
  const cleave_ruleset_t *ruleset = plan_case_ruleset("min", &rule, 1);
  cleave_plan_t *plan = plan_case_run(graph, &ruleset, 1, NULL);
  ck_assert_str_eq(plan_case_regions(plan), "{a b1 b2}");
  ck_assert_str_eq(plan_case_notes(plan, CLEAVE_PLAN_NOTE_THRESHOLD),
                   "e: a region of 2 nodes is too small: min_nodes is 3\n");
}

UNIT_TEST(without_rulesets_every_node_is_a_step_of_its_own) {
  cleave_plan_t *plan = plan_case_run(plan_case_graph(G8), NULL, 0, NULL);
  ck_assert_uint_eq(plan->step_count, 6);
  ck_assert_uint_eq(plan->region_count, 0);
}

UNIT_TEST(an_empty_graph_has_an_empty_plan) {
  cleave_plan_t *plan = plan_case_run(plan_case_graph("-> x"), NULL, 0, NULL);
  ck_assert_uint_eq(plan->step_count, 0);
}

UNIT_TEST(priority_orders_region_rules_and_names_of_equal_rules_count_on) {
  cleave_graph_t *graph = plan_case_graph("a = Relu(x); b = Exp(a); c = Relu(b); -> c");
  cleave_rule_t rules[2] = {plan_case_rule(CLEAVE_RULE_REGION, "same"),
                            plan_case_rule(CLEAVE_RULE_REGION, "same")};
  rules[0].mode = rules[1].mode = CLEAVE_REGION_OPS;
  rules[0].ops = plan_case_op_list("Relu,Exp", &rules[0].op_count);
  rules[1].ops = plan_case_op_list("Relu", &rules[1].op_count);
  rules[1].priority = 1;
  const cleave_ruleset_t *ruleset = plan_case_ruleset("prio", rules, 2);
  cleave_plan_t *plan = plan_case_run(graph, &ruleset, 1, NULL);
  ck_assert_str_eq(plan_case_regions(plan), "{a} {b} {c}");
  ck_assert_str_eq(plan->regions[0].name, "same_0");
  ck_assert_str_eq(plan->regions[1].name, "same_1");
  ck_assert_str_eq(plan->regions[2].name, "same_2");
  ck_assert_uint_eq(plan->regions[0].rule, 1);
  ck_assert_uint_eq(plan->regions[1].rule, 0);
}

UNIT_TEST(a_second_ruleset_takes_what_the_first_left) {
  cleave_graph_t *graph = plan_case_graph(G2 "-> a");
  const cleave_ruleset_t *rulesets[2] = {plan_case_ops("Exp,Sin,Add"), plan_case_ops("Exp,Cos")};
  cleave_plan_t *plan = plan_case_run(graph, rulesets, 2, NULL);
  ck_assert_str_eq(plan_case_regions(plan), "{e s} {c} {a}");
  ck_assert_str_eq(plan->regions[1].name, "island_1");
}

UNIT_TEST(a_failing_callback_ends_partitioning_with_its_error) {
  cleave_rule_t rule = plan_case_rule(CLEAVE_RULE_REGION, "nothing");
  rule.mode = CLEAVE_REGION_SUPPORTED;
  rule.line = 7;
  const cleave_ruleset_t *ruleset = plan_case_ruleset("broken", &rule, 1);
  cleave_graph_t *graph = plan_case_graph(G4);
  cleave_plan_t *plan = NULL;
  unit_fails(cleave_partition(graph, &ruleset, 1, NULL, &plan, e), CLEAVE_ERROR_RULE,
             "test.lua:7: region 'nothing': needs a function 'supported'");
}

UNIT_TEST(running_out_of_memory_anywhere_is_an_error_and_leaks_nothing) {
  cleave_graph_t *graph = plan_case_graph(G3 "-> b2");
  const cleave_ruleset_t *ruleset = plan_case_ops("Exp,Sin,Add,BatchNormalization");
  bool succeeded = false;
  for (int64_t countdown = 0; !succeeded; countdown++) {
    cleave_error_t error = CLEAVE_ERROR_INIT;
    cleave_plan_t *plan = NULL;
    ck_assert_int_lt(countdown, 10000);
    (void)cleave_memory_fail_after(countdown);
    cleave_status_t status = cleave_partition(graph, &ruleset, 1, NULL, &plan, &error);
    (void)cleave_memory_fail_after(-1);
    succeeded = status == CLEAVE_OK;
    ck_assert(succeeded || (status == CLEAVE_ERROR_OUT_OF_MEMORY && plan == NULL));
    cleave_plan_destroy(plan);
  }
}

UNIT_SUITE("partition")
