// SPDX-License-Identifier: Apache-2.0
// Why regions end where they end: the reason behind every edge, for every way that growth can stop; and what
// one more operator would change, with numbers.
#include "partition/report/boundary_report.h"
#include "plan_case.h"
#include "unit.h"

/* Edges as "region in|out value: cause reason" lines, the model's own ends left out. */
static const char *describe(const cleave_boundary_report_t *report) {
  cleave_text_t text = {0};
  for (size_t k = 0; k < report->edges.count; k++) {
    const cleave_boundary_edge_t *edge = &report->edges.items[k];
    if (edge->cause == CLEAVE_STOP_MODEL) {
      ck_assert(!cleave_node_exists(edge->outside));
      continue;
    }
    cleave_text_format(&text, "%s %s %s: %s: %s\n", report->plan->regions[edge->region].name,
                       edge->is_input ? "in" : "out", cleave_value_name(report->plan->graph, edge->value),
                       cleave_stop_cause_name(edge->cause), edge->reason);
  }
  char *kept = plan_case_keep(cleave_copy_text(cleave_text_get(&text), strlen(cleave_text_get(&text))));
  cleave_text_deinit(&text);
  return kept;
}

/* "Cos: 1 outside, 2 merged, 1 regions, 24 bytes" lines. */
static const char *describe_what_ifs(const cleave_boundary_report_t *report) {
  cleave_text_t text = {0};
  for (size_t k = 0; k < report->what_ifs.count; k++) {
    const cleave_what_if_t *w = &report->what_ifs.items[k];
    cleave_text_format(&text, "%s: %u outside, %u merged, %u regions, %g bytes\n", w->op->name,
                       (unsigned)w->node_count, (unsigned)w->merged_count, (unsigned)w->region_count,
                       w->bytes_less);
  }
  char *kept = plan_case_keep(cleave_copy_text(cleave_text_get(&text), strlen(cleave_text_get(&text))));
  cleave_text_deinit(&text);
  return kept;
}

/* Every value gets a size: 2 x 2 floats, 16 bytes. */
static cleave_graph_t *sized(const char *text) {
  static const cleave_dim_t DIMS[2] = {2, 2};
  cleave_graph_t *graph = plan_case_graph(text);
  for (uint32_t k = 0; k < cleave_graph_value_bound(graph); k++) {
    if (cleave_graph_value(graph, (cleave_value_t){k})->tensor == NULL) {
      unit_ok(cleave_graph_set_type(graph, (cleave_value_t){k}, CLEAVE_DTYPE_F32, 2, DIMS, e));
    }
  }
  return graph;
}

static cleave_boundary_report_t *report_on(const cleave_graph_t *graph, const cleave_rule_t *rules,
                                           uint32_t count, const cleave_partition_options_t *options) {
  cleave_boundary_report_t *report = NULL;
  const cleave_ruleset_t *ruleset = plan_case_ruleset("test", rules, count);
  unit_ok(cleave_boundary_report_create(graph, &ruleset, 1, options, &report, e));
  unit_ok(cleave_plan_check(report->plan, e));
  return report;
}

static cleave_rule_t by_ops(const char *name, const char *ops) {
  cleave_rule_t rule = plan_case_rule(CLEAVE_RULE_REGION, name);
  rule.mode = CLEAVE_REGION_OPS;
  rule.ops = plan_case_op_list(ops, &rule.op_count);
  return rule;
}

#define DIAMOND "e = Exp(x); c = Cos(e); s = Sin(e); a = Add(c, s) -> a"

UNIT_TEST(an_operator_that_is_not_named_and_a_cycle_stop_growth) {
  cleave_rule_t rule = by_ops("g", "Exp,Sin,Add");
  cleave_boundary_report_t *report = report_on(sized(DIAMOND), &rule, 1, NULL);
  ck_assert_str_eq(describe(report),
                   "g_0 out e: ops: not in 'ops'\n"
                   "g_0 out s: cycle: in 'g_1': together they would close a cycle through 'c'\n"
                   "g_1 in c: ops: not in 'ops'\n"
                   "g_1 in s: cycle: in 'g_0': together they would close a cycle through 'c'\n");
  ck_assert_double_eq(report->bytes, 48.0);
  ck_assert_uint_eq(report->unknown_count, 0);
  ck_assert_str_eq(describe_what_ifs(report), "Cos: 1 outside, 2 merged, 1 regions, 48 bytes\n");
  cleave_boundary_report_destroy(report);
}

UNIT_TEST(the_report_is_about_the_plan_that_partitioning_makes) {
  cleave_graph_t *graph = sized(DIAMOND);
  cleave_rule_t rule = by_ops("g", "Exp,Sin,Add");
  const cleave_ruleset_t *ruleset = plan_case_ruleset("test", &rule, 1);
  cleave_plan_t *plan = plan_case_run(graph, &ruleset, 1, NULL);
  cleave_boundary_report_t *report = report_on(graph, &rule, 1, NULL);
  ck_assert_str_eq(plan_case_regions(report->plan), plan_case_regions(plan));
  ck_assert_uint_eq(report->plan->note_count, plan->note_count);
  cleave_boundary_report_destroy(report);
}

UNIT_TEST(values_of_unknown_size_are_counted_apart) {
  cleave_rule_t rule = by_ops("g", "Exp,Sin,Add");
  cleave_graph_t *graph = sized(DIAMOND);
  const cleave_dim_t dims[2] = {2, CLEAVE_DIM_UNKNOWN};
  for (uint32_t k = 0; k < cleave_graph_value_bound(graph); k++) {
    if (cleave_node_exists(cleave_value_producer(graph, (cleave_value_t){k}))) {
      unit_ok(cleave_graph_set_type(graph, (cleave_value_t){k}, CLEAVE_DTYPE_F32, 2, dims, e));
    }
  }
  cleave_boundary_report_t *report = report_on(graph, &rule, 1, NULL);
  ck_assert_double_eq(report->bytes, 0.0);
  ck_assert_uint_eq(report->unknown_count, 3);
  ck_assert_uint_eq(report->groups.items[0].unknown_count, 0); /* x has a size */
  ck_assert_uint_eq(report->groups.items[1].unknown_count, 1);
  cleave_boundary_report_destroy(report);
}

UNIT_TEST(edges_of_one_reason_and_operator_are_one_group_and_count_a_value_once) {
  cleave_rule_t rule = by_ops("g", "Exp");
  cleave_boundary_report_t *report =
      report_on(sized("e = Exp(x); a = Cos(e); b = Cos(e); c = Sin(e) -> a, b, c"), &rule, 1, NULL);
  ck_assert_uint_eq(report->edges.count, 4);
  ck_assert_uint_eq(report->groups.count, 3);
  const cleave_boundary_group_t *cosines = &report->groups.items[1];
  ck_assert_str_eq(cosines->op->name, "Cos");
  ck_assert_uint_eq(cosines->edge_count, 2);
  ck_assert_uint_eq(cosines->value_count, 1);
  ck_assert_double_eq(cosines->bytes, 16.0);
  ck_assert_str_eq(report->groups.items[2].op->name, "Sin");
  cleave_boundary_report_destroy(report);
}

static cleave_status_t no_cosine(void *context, const char *backend, const cleave_graph_t *graph,
                                 const cleave_fusion_set_t *set, bool *out_yes, cleave_reason_t *reason,
                                 cleave_error_t *error) {
  (void)context;
  (void)backend;
  (void)error;
  *out_yes = set->node_count > 1 || strcmp(cleave_node_op(graph, set->nodes[0])->name, "Cos") != 0;
  (void)snprintf(reason->text, sizeof reason->text, "shapes are not known");
  return CLEAVE_OK;
}

UNIT_TEST(a_backend_stops_growth_in_its_own_words_for_every_rule) {
  cleave_partition_options_t options = {.supports = no_cosine};
  cleave_rule_t rules[2] = {by_ops("first", "Exp,Cos"), by_ops("second", "Cos,Sin")};
  cleave_boundary_report_t *report =
      report_on(sized("e = Exp(x); c = Cos(e); s = Sin(c) -> s"), rules, 2, &options);
  ck_assert_str_eq(describe(report),
                   "first_0 out e: backend: test: shapes are not known\n"
                   "second_0 in c: backend: test: shapes are not known\n");
  ck_assert_str_eq(describe_what_ifs(report), "Cos: 1 outside, 0 merged, 2 regions, 16 bytes\n");
  cleave_boundary_report_destroy(report);
}

static cleave_status_t by_name(void *context, const cleave_graph_t *graph, cleave_node_t node,
                               int64_t *out_group, cleave_error_t *error) {
  (void)context;
  (void)error;
  const char *name = cleave_value_name(graph, cleave_node_output(graph, node, 0));
  *out_group = name[0] == 'u' ? CLEAVE_GROUP_NONE : name[1] == 'x' ? CLEAVE_GROUP_ANY : name[1] - '0';
  return CLEAVE_OK;
}

UNIT_TEST(groups_and_refusals_of_supported_stop_growth) {
  cleave_rule_t rule = plan_case_rule(CLEAVE_RULE_REGION, "g");
  rule.mode = CLEAVE_REGION_SUPPORTED;
  rule.supported = by_name;
  cleave_boundary_report_t *report =
      report_on(sized("a1 = Relu(x); b2 = Relu(a1); u = Relu(b2); c2 = Relu(u) -> c2"), &rule, 1, NULL);
  ck_assert_str_eq(describe(report),
                   "g_0 out a1: group: in group 2 ('g_1'), this region is in group 1\n"
                   "g_1 in a1: group: in group 1 ('g_0'), this region is in group 2\n"
                   "g_1 out b2: supported: 'supported' returned false\n"
                   "g_2 in u: supported: 'supported' returned false\n");
  ck_assert_str_eq(describe_what_ifs(report), "Relu: 1 outside, 3 merged, 1 regions, 48 bytes\n");
  cleave_boundary_report_destroy(report);
}

UNIT_TEST(a_region_that_was_there_before_stops_growth) {
  cleave_rule_t rules[2] = {by_ops("first", "Cos"), by_ops("second", "Exp,Cos,Sin")};
  cleave_boundary_report_t *report =
      report_on(sized("e = Exp(x); c = Cos(e); s = Sin(c) -> s"), rules, 2, NULL);
  ck_assert_str_eq(describe(report),
                   "second_0 out e: region: in 'first_0' on test already\n"
                   "first_0 in e: ops: not in 'ops'\n"
                   "first_0 out c: ops: not in 'ops'\n"
                   "second_1 in c: region: in 'first_0' on test already\n");
  ck_assert_uint_eq(report->what_ifs.count, 0);
  cleave_boundary_report_destroy(report);
}

UNIT_TEST(thresholds_that_refuse_a_neighbour_are_its_reason) {
  cleave_rule_t rule = by_ops("g", "Exp,Sin,Add");
  rule.min_nodes = 2;
  cleave_boundary_report_t *report = report_on(sized(DIAMOND), &rule, 1, NULL);
  ck_assert_str_eq(describe(report),
                   "g_0 out e: ops: not in 'ops'\n"
                   "g_0 out s: threshold: a region of 1 node is too small: min_nodes is 2\n");
  ck_assert_str_eq(describe_what_ifs(report),
                   "Cos: 1 outside, 0 merged, 1 regions, 32 bytes\n"
                   "Add: 1 outside, 0 merged, 1 regions, 0 bytes\n");
  cleave_boundary_report_destroy(report);
}

/* ---- selectors ---- */

static cleave_status_t make_selector(void *context, const cleave_graph_t *graph, void **out_selector,
                                     cleave_error_t *error) {
  (void)context;
  (void)error;
  *out_selector = (void *)(uintptr_t)graph;
  return CLEAVE_OK;
}

static bool has_op(const void *selector, cleave_node_t node, const char *op) {
  return strcmp(cleave_node_op((const cleave_graph_t *)selector, node)->name, op) == 0;
}

static cleave_status_t select_exp(void *selector, cleave_node_t node, bool *out_yes, cleave_error_t *error) {
  (void)error;
  *out_yes = has_op(selector, node, "Exp");
  return CLEAVE_OK;
}

static cleave_status_t take_all_but_sin(void *selector, cleave_node_t node, cleave_node_t other,
                                        bool *out_yes, cleave_error_t *error) {
  (void)node;
  (void)error;
  *out_yes = !has_op(selector, other, "Sin");
  return CLEAVE_OK;
}

static cleave_status_t drop_add(void *selector, const cleave_node_t *candidates, uint32_t count, bool *keep,
                                cleave_error_t *error) {
  (void)error;
  for (uint32_t k = 0; k < count; k++) {
    keep[k] = !has_op(selector, candidates[k], "Add");
  }
  return CLEAVE_OK;
}

UNIT_TEST(a_selector_and_its_filter_stop_growth) {
  static const cleave_selector_functions_t SELECTOR = {
      .create = make_selector, .select = select_exp, .select_output = take_all_but_sin, .filter = drop_add};
  cleave_rule_t rule = plan_case_rule(CLEAVE_RULE_REGION, "g");
  rule.mode = CLEAVE_REGION_SELECTOR;
  rule.selector = &SELECTOR;
  cleave_boundary_report_t *report =
      report_on(sized("n = Neg(x); e = Exp(n); c = Cos(e); s = Sin(e); a = Add(c, s) -> a"), &rule, 1, NULL);
  ck_assert_str_eq(plan_case_regions(report->plan), "{e c}");
  ck_assert_str_eq(describe(report),
                   "g_0 in n: selector: 'select_input' returned false\n"
                   "g_0 out e: selector: 'select_output' returned false\n"
                   "g_0 out c: filter: dropped by 'filter'\n");
  ck_assert_str_eq(describe_what_ifs(report),
                   "Neg: 1 outside, 0 merged, 1 regions, 16 bytes\n"
                   "Add: 1 outside, 0 merged, 1 regions, 0 bytes\n"
                   "Sin: 1 outside, 0 merged, 1 regions, 0 bytes\n");
  cleave_boundary_report_destroy(report);
}

UNIT_TEST(nothing_to_report_about_a_plan_without_regions) {
  cleave_rule_t rule = by_ops("g", "MatMul");
  cleave_boundary_report_t *report = report_on(sized(DIAMOND), &rule, 1, NULL);
  ck_assert_uint_eq(report->edges.count, 0);
  ck_assert_uint_eq(report->groups.count, 0);
  ck_assert_uint_eq(report->what_ifs.count, 0);
  ck_assert_double_eq(report->bytes, 0.0);
  cleave_boundary_report_destroy(report);
}

UNIT_TEST(an_assumed_operator_joins_in_a_selectors_search_but_starts_none) {
  static const cleave_selector_functions_t SELECTOR = {.create = make_selector, .select = select_exp};
  cleave_rule_t rule = plan_case_rule(CLEAVE_RULE_REGION, "g");
  rule.mode = CLEAVE_REGION_SELECTOR;
  rule.selector = &SELECTOR;
  const cleave_ruleset_t *ruleset = plan_case_ruleset("test", &rule, 1);
  cleave_partition_options_t options = {.assume = cleave_op_find("", "Cos")};
  cleave_plan_t *plan =
      plan_case_run(sized("c = Cos(x); e = Exp(x); d = Cos(e); s = Sin(d) -> c, s"), &ruleset, 1, &options);
  ck_assert_str_eq(plan_case_regions(plan), "{e d}");
}

UNIT_SUITE("boundary report")
