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
  ck_assert_str_eq(plan_case_borders(plan, 0), "data1, data2 -> c1");
  ck_assert_str_eq(plan_case_borders(plan, 1), "data2, weight -> c2");
}

UNIT_TEST(pair_2_the_sum_stays_out_because_of_the_cosine) {
  cleave_plan_t *plan = expect_ops(G2 "-> a", "Exp,Sin,Add", "{e s} {a}");
  ck_assert_str_eq(plan_case_borders(plan, 0), "data -> e, s");
  ck_assert_str_eq(plan_case_borders(plan, 1), "c, s -> a");
  ck_assert_str_eq(plan_case_notes(plan, CLEAVE_PLAN_NOTE_CYCLE),
                   "c: 's' and 'a' stay apart: a path through 'c' would close a cycle\n");
}

UNIT_TEST(pair_3_the_sum_stays_out_because_of_the_sine) {
  cleave_plan_t *plan = expect_ops(G2 "-> a", "Exp,Cos,Add", "{e c} {a}");
  ck_assert_str_eq(plan_case_borders(plan, 0), "data -> e, c");
}

UNIT_TEST(pairs_4_to_7_batch_norms_go_with_the_sum) {
  expect_ops(G3 "-> b2", "Exp,Sin,Add", "{e s} {a}");
  expect_ops(G3 "-> b2", "Exp,Cos,Add", "{e c} {a}");
  cleave_plan_t *plan = expect_ops(G3 "-> b2", "Exp,Sin,Add,BatchNormalization", "{e s} {a b1 b2}");
  ck_assert_str_eq(plan_case_borders(plan, 1),
                   "c, s, gamma1, beta1, mean1, var1, gamma2, beta2, mean2, var2 -> b2");
  expect_ops(G3 "-> b2", "Exp,Cos,Add,BatchNormalization", "{e c} {a b1 b2}");
}

UNIT_TEST(pairs_8_and_9_a_value_that_is_used_twice_is_one_output) {
  cleave_plan_t *plan = expect_ops(G3 "-> b2", "Exp,BatchNormalization", "{e} {b1 b2}");
  ck_assert_str_eq(plan_case_borders(plan, 0), "data -> e");
  expect_ops(G3 "-> b2", "BatchNormalization", "{b1 b2}");
}

UNIT_TEST(pairs_10_and_11_values_cross_a_border_once) {
  cleave_plan_t *plan = expect_ops(G4, "Exp", "{e}");
  ck_assert_str_eq(plan_case_borders(plan, 0), "data -> e");
  plan = expect_ops(G5, "Add", "{a}");
  ck_assert_str_eq(plan_case_borders(plan, 0), "data -> a");
}

UNIT_TEST(pairs_12_to_15_sine_and_convolution) {
  cleave_plan_t *plan = expect_ops(G6, "", "");
  ck_assert_uint_eq(plan->step_count, 2);
  ck_assert_uint_eq(plan->region_count, 0);
  expect_ops(G6, "Sin", "{s}");
  plan = expect_ops(G6, "Conv", "{c}");
  ck_assert_str_eq(plan_case_borders(plan, 0), "data1, s, bias -> c");
  plan = expect_ops(G6, "Sin,Conv", "{s c}");
  ck_assert_str_eq(plan_case_borders(plan, 0), "data2, data1, bias -> c");
}

UNIT_TEST(pair_16_a_long_way_round_is_a_cycle_too) {
  expect_ops(G7, "Sin,Add", "{s} {a}");
}

UNIT_TEST(pair_17_two_sines_and_their_sum) {
  cleave_plan_t *plan = expect_ops(G8, "Sin,Add", "{s1 s2 p}");
  ck_assert_str_eq(plan_case_borders(plan, 0), "data -> p");
}

UNIT_MAIN("partition")
