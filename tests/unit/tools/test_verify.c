// SPDX-License-Identifier: Apache-2.0
// Verification and bisection of what rewrites do; fusions and regions on wrong backends are in
// test_library.c.
#include <math.h>

#include "graph/verify.h"
#include "session_case.h"
#include "tools/verify/bisect.h"
#include "tools/verify/verify.h"
#include "unit.h"

static const float DATA[4] = {-1.0f, 0.5f, 2.0f, 0.25f};

/* Two rewrites: exp(x) -> 1 / exp(-x) is right, sin(x) -> x is not. */
static const char RULES[] =
    "return ruleset { name = 'r',\n"
    "  rewrite 'right' { pattern = op { 'Exp', as = 'e', inputs = { any 'x' } },\n"
    "    replace = function(m, g) return g.Reciprocal(g.Tan(g.Atan(g.Reciprocal(g.Pow(2.718281828459045, "
    "m.x)))))"
    " end },\n"
    "  rewrite 'wrong' { pattern = op { 'Sin', as = 's', inputs = { any 'x' } },\n"
    "    replace = function(m, g) return g.Abs(m.x) end } }\n";

/* A rewrite that is off by 0.1 %, and one behind it that is right. */
static const char CLOSE_RULES[] =
    "return ruleset { name = 'r',\n"
    "  rewrite 'close' { pattern = op { 'Exp', as = 'e', inputs = { any 'x' } },\n"
    "    replace = function(m, g) return g.Mul(1.001, g.Pow(2.718281828459045, m.x)) end },\n"
    "  rewrite 'behind' { pattern = op { 'Abs', as = 'a', inputs = { any 'x' } },\n"
    "    replace = function(m, g) return g.Sqrt(g.Mul(m.x, m.x)) end } }\n";

/* x -> Exp -> Sin -> Abs. */
static session_case_t make_case_of(cleave_rule_list_t *list, const char *rules) {
  static const int64_t DIMS[1] = {4};
  session_case_t c = session_case_create();
  cleave_value_t none = CLEAVE_VALUE_NONE;
  cleave_value_t x = session_case_input(&c, "x", CLEAVE_DTYPE_F32, 1, DIMS);
  x = session_case_node(&c, "Exp", "exp", x, none, none);
  x = session_case_node(&c, "Sin", "sin", x, none, none);
  session_case_output(&c, session_case_node(&c, "Abs", "abs", x, none, none));
  session_case_infer(&c);
  session_case_feed(&c, 1, DIMS, DATA);
  cleave_rule_source_t source = {.path = "r.lua", .text = rules, .length = strlen(rules)};
  unit_ok(cleave_rule_list_load(
      list, NULL,
      &(cleave_partition_request_t){
          .size = sizeof(cleave_partition_request_t), .sources = &source, .source_count = 1},
      NULL, e));
  return c;
}

static session_case_t make_case(cleave_rule_list_t *list) {
  return make_case_of(list, RULES);
}

static const cleave_verify_item_t *item_of(const cleave_plan_t *plan, const cleave_verify_report_t *report,
                                           const char *rule) {
  for (size_t k = 0; k < report->items.count; k++) {
    if (strcmp(plan->rules[report->items.items[k].rule].name, rule) == 0) {
      return &report->items.items[k];
    }
  }
  return NULL;
}

UNIT_TEST(a_rewrite_that_changes_values_is_named) {
  cleave_rule_list_t list;
  session_case_t c = make_case(&list);
  unit_ok(cleave_rule_list_partition(&list, c.graph, &c.plan, e));
  cleave_verify_options_t options = {
      .inputs = c.inputs, .input_count = c.input_count, .threads = 1, .rtol = -1.0, .atol = -1.0};
  cleave_verify_report_t report;
  unit_ok(cleave_plan_verify(c.plan, &options, &report, e));
  ck_assert_uint_eq(report.items.count, 2);
  ck_assert_uint_eq(report.mismatches, 1);
  const cleave_verify_item_t *right = item_of(c.plan, &report, "right");
  const cleave_verify_item_t *wrong = item_of(c.plan, &report, "wrong");
  ck_assert(right != NULL && wrong != NULL);
  ck_assert(right->kind == CLEAVE_VERIFY_REWRITE && right->verdict == CLEAVE_VERIFY_MATCH);
  ck_assert_uint_eq(right->count, 1);
  ck_assert_int_eq((int)wrong->verdict, (int)CLEAVE_VERIFY_MISMATCH);
  ck_assert_double_eq_tol(wrong->max_absolute, fabs(exp(2.0) - sin(exp(2.0))), 1e-4);
  ck_assert_ptr_nonnull(strstr(cleave_text_get(&wrong->reason), "output 'sin': "));
  cleave_verify_report_deinit(&report);
  cleave_rule_list_deinit(&list);
  session_case_deinit(&c);
}

/* 0.1 % is a thousand times what rounding does. What is behind reads other values than in the source, and is
 * not blamed for it. Tolerances that are asked for are in force. */
UNIT_TEST(a_rewrite_that_is_off_by_a_thousandth_is_named_alone) {
  cleave_rule_list_t list;
  session_case_t c = make_case_of(&list, CLOSE_RULES);
  unit_ok(cleave_rule_list_partition(&list, c.graph, &c.plan, e));
  cleave_verify_options_t options = {
      .inputs = c.inputs, .input_count = c.input_count, .threads = 1, .rtol = -1.0, .atol = -1.0};
  cleave_verify_report_t report;
  unit_ok(cleave_plan_verify(c.plan, &options, &report, e));
  ck_assert_uint_eq(report.mismatches, 1);
  const cleave_verify_item_t *close = item_of(c.plan, &report, "close");
  const cleave_verify_item_t *behind = item_of(c.plan, &report, "behind");
  ck_assert(close != NULL && behind != NULL);
  ck_assert_int_eq((int)close->verdict, (int)CLEAVE_VERIFY_MISMATCH);
  ck_assert_double_eq_tol(close->relative, 1e-3, 1e-5);
  ck_assert_int_eq((int)behind->verdict, (int)CLEAVE_VERIFY_MATCH);
  ck_assert_double_lt(behind->relative, 1e-6);
  cleave_verify_report_deinit(&report);
  options.rtol = 2e-3;
  unit_ok(cleave_plan_verify(c.plan, &options, &report, e));
  ck_assert_uint_eq(report.mismatches, 0);
  cleave_verify_report_deinit(&report);
  cleave_rule_list_deinit(&list);
  session_case_deinit(&c);
}

/* ---- random values ---- */

/* The output of a part on the inputs that were kept. */
static cleave_tensor_t *run_part(const cleave_graph_t *graph, const cleave_verify_item_t *item) {
  cleave_tensor_t *output = NULL;
  ck_assert_uint_eq(graph->inputs.count, item->input_count);
  unit_ok(cleave_graph_verify(graph, e));
  unit_ok(cleave_check_reference(graph, item->inputs, item->input_count, 1, &output, 1, e));
  return output;
}

/* Right on what the model has, wrong beyond: exp(x) is less than 8 there. What made a value narrower is for
 * the model's values alone. */
static const char CHANCE_RULES[] =
    "return ruleset { name = 'r',\n"
    "  rewrite 'chance' { pattern = op { 'Exp', as = 'e', inputs = { any 'x' } },\n"
    "    replace = function(m, g) return g.Clip(g.Pow(2.718281828459045, m.x), 0.0, 8.0) end },\n"
    "  rewrite 'narrow' { pattern = op { 'Abs', as = 'a', inputs = { any 'x' } },\n"
    "    replace = function(m, g)\n"
    "      local half = g.Clip(g.Cast(m.x, { to = 'float16' }), 0.0, 1.0)\n"
    "      return g.Cast(half, { to = 'float32' })\n"
    "    end } }\n";

UNIT_TEST(a_rewrite_that_is_right_by_chance_is_named_by_wider_values) {
  cleave_rule_list_t list;
  session_case_t c = make_case_of(&list, CHANCE_RULES);
  unit_ok(cleave_rule_list_partition(&list, c.graph, &c.plan, e));
  cleave_verify_options_t options = {
      .inputs = c.inputs, .input_count = c.input_count, .threads = 1, .rtol = -1.0, .atol = -1.0};
  cleave_verify_report_t report;
  unit_ok(cleave_plan_verify(c.plan, &options, &report, e)); /* on the model's values alone */
  ck_assert_int_eq((int)item_of(c.plan, &report, "chance")->verdict, (int)CLEAVE_VERIFY_MATCH);
  cleave_verify_report_deinit(&report);
  options.rounds = 2;
  unit_ok(cleave_plan_verify(c.plan, &options, &report, e));
  const cleave_verify_item_t *chance = item_of(c.plan, &report, "chance");
  ck_assert_int_eq((int)chance->verdict, (int)CLEAVE_VERIFY_MISMATCH);
  ck_assert_uint_gt(chance->round, 0);
  ck_assert_ptr_nonnull(strstr(cleave_text_get(&chance->reason), "expected "));
  ck_assert_uint_eq(report.mismatches, 1);
  cleave_tensor_t *before = run_part(chance->graph, chance);
  cleave_tensor_t *after = run_part(chance->after, chance);
  ck_assert_uint_eq(chance->output_count, 1);
  cleave_difference_t difference;
  cleave_tensor_compare(before, chance->outputs[0], 0.0, 0.0, &difference);
  ck_assert_int_eq(difference.mismatches, 0);
  cleave_tensor_compare(after, chance->outputs[0], 1e-3, 0.0, &difference);
  ck_assert_int_gt(difference.mismatches, 0);
  cleave_tensor_release(after);
  cleave_tensor_release(before);
  cleave_verify_report_deinit(&report);
  cleave_rule_list_deinit(&list);
  session_case_deinit(&c);
}

/* ---- what is kept of a rewrite ---- */

/* A rewrite that is off by 0.1 %, and a pass behind it that scales a value by 1 %, and keeps what makes it.
 */
static const char WRAP_RULES[] =
    "return ruleset { name = 'r',\n"
    "  rewrite 'close' { pattern = op { 'Exp', as = 'e', inputs = { any 'x' } },\n"
    "    replace = function(m, g) return g.Mul(1.001, g.Pow(2.718281828459045, m.x)) end },\n"
    "  pass 'wrap' { run = function(graph, options, g)\n"
    "    for node in graph:topological() do\n"
    "      if node.op == 'Sin' then g.replace(node.outputs[1], g.Mul(node.outputs[1], 1.01)) end\n"
    "    end end } }\n";

/* Both parts run on the one input that was kept: what was there gives what was kept, exactly, and what took
 * its place `factor` times that. */
static void check_parts(const cleave_verify_item_t *item, size_t before, size_t after, double factor) {
  ck_assert_int_eq((int)item->verdict, (int)CLEAVE_VERIFY_MISMATCH);
  ck_assert_uint_eq(item->input_count, 1);
  ck_assert_uint_eq(item->output_count, 1);
  ck_assert_uint_eq(item->graph->live_node_count, before);
  ck_assert_uint_eq(item->after->live_node_count, after);
  cleave_tensor_t *old = run_part(item->graph, item);
  cleave_tensor_t *new = run_part(item->after, item);
  for (int64_t k = 0; k < 4; k++) {
    double value = cleave_tensor_get_float(item->outputs[0], k);
    ck_assert_double_eq(cleave_tensor_get_float(old, k), value);
    ck_assert_double_eq_tol(cleave_tensor_get_float(new, k) / value, factor, 1e-5);
  }
  cleave_tensor_release(old);
  cleave_tensor_release(new);
}

UNIT_TEST(what_a_failing_rewrite_took_and_made_is_kept) {
  cleave_rule_list_t list;
  session_case_t c = make_case_of(&list, WRAP_RULES);
  unit_ok(cleave_rule_list_partition(&list, c.graph, &c.plan, e));
  cleave_verify_options_t options = {
      .inputs = c.inputs, .input_count = c.input_count, .threads = 1, .rtol = -1.0, .atol = -1.0};
  cleave_verify_report_t report;
  unit_ok(cleave_plan_verify(c.plan, &options, &report, e));
  ck_assert_uint_eq(report.mismatches, 2);
  check_parts(item_of(c.plan, &report, "close"), 1, 2, 1.001);
  /* The values of 'close' are where this one begins, with what they were in the source. */
  const cleave_verify_item_t *wrap = item_of(c.plan, &report, "wrap");
  check_parts(wrap, 1, 2, 1.01);
  ck_assert_double_eq_tol(cleave_tensor_get_float(wrap->inputs[0], 2), exp(2.0), 1e-5);
  cleave_verify_report_deinit(&report);
  options.rtol = 0.1;
  unit_ok(cleave_plan_verify(c.plan, &options, &report, e));
  ck_assert_uint_eq(report.mismatches, 0);
  for (size_t k = 0; k < report.items.count; k++) {
    ck_assert(report.items.items[k].graph == NULL && report.items.items[k].after == NULL);
  }
  cleave_verify_report_deinit(&report);
  cleave_rule_list_deinit(&list);
  session_case_deinit(&c);
}

/* ---- bisection ---- */

UNIT_TEST(bisection_sees_a_thousandth) {
  cleave_rule_list_t list;
  session_case_t c = make_case_of(&list, CLOSE_RULES);
  cleave_bisect_options_t options = {
      .threshold = -1.0, .inputs = c.inputs, .input_count = c.input_count, .threads = 1};
  cleave_bisect_report_t report;
  unit_ok(cleave_rules_bisect(&list, c.graph, &options, &report, e));
  ck_assert_uint_eq(report.culprits.count, 1);
  ck_assert_str_eq(report.plan->rules[report.culprits.items[0].rule].name, "close");
  cleave_bisect_report_deinit(&report);
  cleave_rule_list_deinit(&list);
  session_case_deinit(&c);
}

UNIT_TEST(bisection_blames_the_rewrite) {
  cleave_rule_list_t list;
  session_case_t c = make_case(&list);
  cleave_bisect_options_t options = {
      .threshold = -1.0, .inputs = c.inputs, .input_count = c.input_count, .threads = 1};
  cleave_bisect_report_t report;
  unit_ok(cleave_rules_bisect(&list, c.graph, &options, &report, e));
  ck_assert_uint_eq(report.application_count, 2);
  ck_assert_uint_eq(report.culprits.count, 1);
  const cleave_bisect_culprit_t *culprit = &report.culprits.items[0];
  ck_assert_int_eq((int)culprit->kind, (int)CLEAVE_BISECT_GRAPH_RULE);
  ck_assert_str_eq(report.plan->rules[culprit->rule].name, "wrong");
  ck_assert_double_gt(report.value_found, 1.0);
  ck_assert_double_lt(report.value_others, 1e-5);
  cleave_bisect_report_deinit(&report);
  cleave_rule_list_deinit(&list);
  session_case_deinit(&c);
}

UNIT_SUITE("verify")
