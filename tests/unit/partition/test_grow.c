// SPDX-License-Identifier: Apache-2.0
// Growth of regions: the selector protocol call by call, filters, fusions that come along, and what happens
// to sets that would close a cycle.

#include "plan_case.h"
#include "unit.h"

// ---- a selector that writes down what it is asked ----

typedef struct recorder {
  cleave_text_t calls;
  const char *seeds;   /* names of first outputs, "a,b" */
  const char *accepts; /* of neighbours to take */
  const char *drops;   /* of candidates that filter drops */
  const cleave_graph_t *graph;
} recorder_t;

static recorder_t recorder;

static const char *name_of(cleave_node_t node) {
  return cleave_value_name(recorder.graph, cleave_node_output(recorder.graph, node, 0));
}

static bool is_listed(const char *list, const char *name) {
  size_t length = strlen(name);
  for (const char *p = list; (p = strstr(p, name)) != NULL; p += length) {
    if ((p == list || p[-1] == ',') && (p[length] == ',' || p[length] == '\0')) {
      return true;
    }
  }
  return false;
}

static cleave_status_t record_create(void *context, const cleave_graph_t *graph, void **out_selector,
                                     cleave_error_t *error) {
  (void)context;
  (void)error;
  recorder.graph = graph;
  cleave_text_add(&recorder.calls, "new ");
  *out_selector = &recorder;
  return CLEAVE_OK;
}

static void record_destroy(void *context, void *selector) {
  (void)context;
  (void)selector;
  cleave_text_add(&recorder.calls, "end ");
}

static cleave_status_t record_select(void *selector, cleave_node_t node, bool *out_yes,
                                     cleave_error_t *error) {
  (void)selector;
  (void)error;
  cleave_text_format(&recorder.calls, "%s? ", name_of(node));
  *out_yes = is_listed(recorder.seeds, name_of(node));
  return CLEAVE_OK;
}

static cleave_status_t record_input(void *selector, cleave_node_t node, cleave_node_t input, bool *out_yes,
                                    cleave_error_t *error) {
  (void)selector;
  (void)error;
  cleave_text_format(&recorder.calls, "%s<%s ", name_of(node), name_of(input));
  *out_yes = is_listed(recorder.accepts, name_of(input));
  return CLEAVE_OK;
}

static cleave_status_t record_output(void *selector, cleave_node_t node, cleave_node_t output, bool *out_yes,
                                     cleave_error_t *error) {
  (void)selector;
  (void)error;
  cleave_text_format(&recorder.calls, "%s>%s ", name_of(node), name_of(output));
  *out_yes = is_listed(recorder.accepts, name_of(output));
  return CLEAVE_OK;
}

static cleave_status_t record_reset(void *selector, cleave_error_t *error) {
  (void)selector;
  (void)error;
  cleave_text_add(&recorder.calls, "reset ");
  return CLEAVE_OK;
}

static cleave_status_t record_filter(void *selector, const cleave_node_t *candidates, uint32_t count,
                                     bool *keep, cleave_error_t *error) {
  (void)selector;
  (void)error;
  cleave_text_add(&recorder.calls, "filter(");
  for (uint32_t k = 0; k < count; k++) {
    cleave_text_format(&recorder.calls, "%s%s", k == 0 ? "" : " ", name_of(candidates[k]));
    keep[k] = !is_listed(recorder.drops, name_of(candidates[k]));
  }
  cleave_text_add(&recorder.calls, ") ");
  return CLEAVE_OK;
}

static const cleave_selector_functions_t with_filter = {
    record_create, record_destroy, record_select, record_input, record_output, NULL, record_filter};
static const cleave_selector_functions_t with_reset = {
    record_create, record_destroy, record_select, record_input, record_output, record_reset, NULL};
static const cleave_selector_functions_t seeds_only = {record_create, record_destroy, record_select, NULL,
                                                       NULL,          NULL,           NULL};

static cleave_plan_t *run_selector(const char *graph_text, const cleave_selector_functions_t *functions,
                                   const char *seeds, const char *accepts, const char *drops) {
  cleave_rule_t rule = plan_case_rule(CLEAVE_RULE_REGION, "select");
  rule.mode = CLEAVE_REGION_SELECTOR;
  rule.selector = functions;
  cleave_text_deinit(&recorder.calls);
  recorder = (recorder_t){.seeds = seeds, .accepts = accepts, .drops = drops};
  const cleave_ruleset_t *ruleset = plan_case_ruleset("select", &rule, 1);
  return plan_case_run(plan_case_graph(graph_text), &ruleset, 1, NULL);
}

#define DIAMOND "a = Relu(x); b = Exp(a); c = Cos(a); d = Add(c, b); e = Relu(d); -> e"

UNIT_TEST(a_search_asks_inputs_then_users_of_each_node_from_a_queue) {
  cleave_plan_t *plan = run_selector(DIAMOND, &with_filter, "d", "a,b,c,d,e", "");
  ck_assert_str_eq(cleave_text_get(&recorder.calls),
                   "new a? end new b? end new c? end "
                   "new d? d<c d<b d>e c<a filter(a b c d e) end ");
  ck_assert_str_eq(plan_case_regions(plan), "{a b c d e}");
  ck_assert_uint_eq(plan->rules[0].tries, 4);
  ck_assert_uint_eq(plan->rules[0].matches, 1);
}

UNIT_TEST(a_neighbour_is_asked_again_from_another_node_until_it_is_accepted) {
  run_selector(DIAMOND, &with_filter, "a", "b,c,d", "");
  ck_assert_str_eq(cleave_text_get(&recorder.calls),
                   "new a? a>b a>c b>d d>e filter(a b c d) end new e? end ");
  run_selector(DIAMOND, &with_filter, "a", "b,c", "");
  ck_assert_str_eq(cleave_text_get(&recorder.calls),
                   "new a? a>b a>c b>d c>d filter(a b c) end new d? end new e? end ");
}

UNIT_TEST(a_node_that_reads_a_value_twice_is_asked_about_it_once) {
  run_selector("a = Relu(x); b = Add(a, a); -> b", &with_filter, "a", "", "");
  ck_assert_str_eq(cleave_text_get(&recorder.calls), "new a? a>b filter(a) end new b? end ");
}

UNIT_TEST(a_selector_with_reset_serves_until_it_takes_a_seed) {
  run_selector(DIAMOND, &with_reset, "c", "", "");
  ck_assert_str_eq(cleave_text_get(&recorder.calls),
                   "new a? reset b? reset c? c<a c>d end new d? reset e? reset end ");
}

UNIT_TEST(the_nodes_of_a_refused_set_are_no_seeds_if_the_rule_grows_once) {
  const char *text = "a = Relu(x); b = Exp(a); c = Relu(b); d = Exp(a); -> c, d";
  for (int once = 0; once < 2; once++) {
    cleave_rule_t rule = plan_case_rule(CLEAVE_RULE_REGION, "select");
    rule.mode = CLEAVE_REGION_SELECTOR;
    rule.selector = &with_filter;
    rule.min_nodes = 3;
    rule.grows_once = once == 1;
    cleave_text_deinit(&recorder.calls);
    recorder = (recorder_t){.seeds = "a,b,d", .accepts = "b", .drops = ""};
    const cleave_ruleset_t *ruleset = plan_case_ruleset("select", &rule, 1);
    cleave_plan_t *plan = plan_case_run(plan_case_graph(text), &ruleset, 1, NULL);
    ck_assert_str_eq(cleave_text_get(&recorder.calls),
                     once ? "new a? a>b a>d b>c filter(a b) end new c? end new d? d<a filter(d) end "
                          : "new a? a>b a>d b>c filter(a b) end new b? b<a b>c filter(b) end "
                            "new c? end new d? d<a filter(d) end ");
    ck_assert_uint_eq(plan->rules[0].refused, once ? 2 : 3);
  }
}

UNIT_TEST(the_nodes_that_a_taken_set_left_are_seeds_if_the_rule_grows_once) {
  cleave_rule_t rule = plan_case_rule(CLEAVE_RULE_REGION, "select");
  rule.mode = CLEAVE_REGION_SELECTOR;
  rule.selector = &with_filter;
  rule.grows_once = true;
  cleave_text_deinit(&recorder.calls);
  recorder = (recorder_t){.seeds = "a,b", .accepts = "b,c", .drops = "b"};
  const cleave_ruleset_t *ruleset = plan_case_ruleset("select", &rule, 1);
  cleave_plan_t *plan =
      plan_case_run(plan_case_graph("a = Relu(x); b = Exp(a); c = Relu(b); -> c"), &ruleset, 1, NULL);
  ck_assert_str_eq(cleave_text_get(&recorder.calls),
                   "new a? a>b b>c filter(a b c) end new b? filter(b) end ");
  ck_assert_str_eq(plan_case_regions(plan), "{a} {c}");
}

UNIT_TEST(without_functions_for_neighbours_every_seed_stands_alone) {
  cleave_plan_t *plan = run_selector(DIAMOND, &seeds_only, "a,b,e", "a,b,c,d,e", "");
  ck_assert_str_eq(plan_case_regions(plan), "{a} {b} {e}");
}

UNIT_TEST(t6_what_filter_keeps_is_cut_where_it_would_close_a_cycle) {
  cleave_plan_t *plan =
      run_selector("s0 = Relu(x); s1 = Exp(s0); s2 = Add(s1, s0); -> s2", &with_filter, "s0", "s1,s2", "s1");
  ck_assert_str_eq(plan_case_regions(plan), "{s0} {s2}");
  ck_assert_str_eq(plan_case_notes(plan, CLEAVE_PLAN_NOTE_FILTER), "s1: dropped by filter\n");
  ck_assert_str_eq(plan_case_notes(plan, CLEAVE_PLAN_NOTE_CYCLE),
                   "s1: 's0' and 's2' stay apart: a path through 's1' would close a cycle\n");
}

UNIT_TEST(what_filter_keeps_is_split_into_connected_parts) {
  cleave_plan_t *plan = run_selector("a = Relu(x); b = Exp(a); c = Relu(b); d = Exp(c); e = Relu(d); -> e",
                                     &with_filter, "a", "b,c,d,e", "c");
  ck_assert_str_eq(plan_case_regions(plan), "{a b} {d e}");
  ck_assert_uint_eq(plan->rules[0].matches, 2);
}

UNIT_TEST(a_dropped_node_can_be_a_later_seed) {
  cleave_plan_t *plan =
      run_selector("a = Relu(x); b = Exp(a); c = Relu(b); -> c", &with_filter, "a,b", "b,c", "b");
  ck_assert_str_eq(cleave_text_get(&recorder.calls),
                   "new a? a>b b>c filter(a b c) end new b? filter(b) end ");
  ck_assert_str_eq(plan_case_regions(plan), "{a} {c}");
}

// ---- fusions in regions ----

static const cleave_op_t *conv_ops[1];
static const cleave_op_t *relu_ops[1];

/* Conv >> Relu. */
static cleave_rule_t conv_relu_rule(void) {
  static const uint32_t children[2] = {1, 2};
  static const char *const labels[2] = {"conv", "act"};
  static cleave_pattern_node_t nodes[3];
  static cleave_pattern_t pattern;
  conv_ops[0] = cleave_op_get(CLEAVE_OP_Conv);
  relu_ops[0] = cleave_op_get(CLEAVE_OP_Relu);
  nodes[0] = (cleave_pattern_node_t){
      .kind = CLEAVE_PATTERN_SEQUENCE, .type.rank = -1, .child_count = 2, .children = children};
  nodes[1] = (cleave_pattern_node_t){
      .kind = CLEAVE_PATTERN_OP, .label = labels[0], .type.rank = -1, .op_count = 1, .ops = conv_ops};
  nodes[2] = (cleave_pattern_node_t){
      .kind = CLEAVE_PATTERN_OP, .label = labels[1], .type.rank = -1, .op_count = 1, .ops = relu_ops};
  pattern = (cleave_pattern_t){nodes, 3, 0, labels, 2, NULL};
  cleave_rule_t rule = plan_case_rule(CLEAVE_RULE_FUSE, "conv_relu");
  rule.pattern = &pattern;
  return rule;
}

UNIT_TEST(fusions_come_along_whole_and_what_is_left_is_a_region_of_its_own) {
  cleave_rule_t rules[2] = {conv_relu_rule(), plan_case_rule(CLEAVE_RULE_REGION, "island")};
  rules[1].mode = CLEAVE_REGION_OPS;
  rules[1].ops = plan_case_op_list("MaxPool", &rules[1].op_count);
  const cleave_ruleset_t *ruleset = plan_case_ruleset("both", rules, 2);
  cleave_graph_t *graph = plan_case_graph(
      "c1 = Conv(x, $w); r1 = Relu(c1); p = MaxPool(r1); s = Softmax(p); c2 = Conv(s, $w); r2 = Relu(c2); -> "
      "r2");
  cleave_plan_t *plan = plan_case_run(graph, &ruleset, 1, NULL);
  ck_assert_str_eq(plan_case_regions(plan), "{[c1 r1] p} {[c2 r2]}");
  ck_assert_str_eq(plan->regions[0].name, "island_0");
  ck_assert_str_eq(plan->regions[1].name, "island_1");
  plan = plan_case_run(graph, (const cleave_ruleset_t *[]){plan_case_ruleset("fuse", rules, 1)}, 1, NULL);
  ck_assert_str_eq(plan_case_regions(plan), "{[c1 r1]} {[c2 r2]}");
  ck_assert_str_eq(plan->regions[1].name, "conv_relu_1");
  ck_assert(plan->rules[plan->regions[1].rule].kind == CLEAVE_RULE_FUSE);
  ck_assert_str_eq(plan->fusions[1].labels[0], "conv");
  ck_assert_str_eq(plan->fusions[1].labels[1], "act");
}

UNIT_TEST(a_fusion_of_another_ruleset_is_not_taken) {
  cleave_rule_t rules[2] = {conv_relu_rule(), plan_case_rule(CLEAVE_RULE_REGION, "island")};
  rules[1].mode = CLEAVE_REGION_OPS;
  rules[1].ops = plan_case_op_list("MaxPool,Conv,Relu", &rules[1].op_count);
  const cleave_ruleset_t *rulesets[2] = {plan_case_ruleset("fuse", rules, 1),
                                         plan_case_ruleset("grow", &rules[1], 1)};
  cleave_plan_t *plan = plan_case_run(
      plan_case_graph("c1 = Conv(x, $w); r1 = Relu(c1); p = MaxPool(r1); -> p"), rulesets, 2, NULL);
  ck_assert_str_eq(plan_case_regions(plan), "{[c1 r1]} {p}");
}

UNIT_TEST(a_selector_is_asked_about_the_node_of_a_fusion_that_it_met) {
  cleave_rule_t rules[2] = {conv_relu_rule(), plan_case_rule(CLEAVE_RULE_REGION, "select")};
  rules[1].mode = CLEAVE_REGION_SELECTOR;
  rules[1].selector = &with_filter;
  const cleave_ruleset_t *ruleset = plan_case_ruleset("both", rules, 2);
  const char *text = "p = MaxPool(x); c1 = Conv(p, $w); r1 = Relu(c1); q = MaxPool(r1); -> q";
  cleave_text_deinit(&recorder.calls);
  recorder = (recorder_t){.seeds = "p", .accepts = "c1,q", .drops = ""};
  cleave_plan_t *plan = plan_case_run(plan_case_graph(text), &ruleset, 1, NULL);
  ck_assert_str_eq(cleave_text_get(&recorder.calls), "new p? p>c1 r1>q filter(p c1 r1 q) end ");
  ck_assert_str_eq(plan_case_regions(plan), "{p [c1 r1] q}");
  cleave_text_deinit(&recorder.calls);
  recorder = (recorder_t){.seeds = "p", .accepts = "c1,q", .drops = "r1"};
  plan = plan_case_run(plan_case_graph(text), &ruleset, 1, NULL);
  ck_assert_str_eq(plan_case_regions(plan), "{p} {[c1 r1]} {q}");
}

UNIT_TEST(a_refused_region_gives_its_fusions_back_whole) {
  cleave_rule_t rules[3] = {conv_relu_rule(), plan_case_rule(CLEAVE_RULE_REGION, "large"),
                            plan_case_rule(CLEAVE_RULE_REGION, "small")};
  rules[1].mode = rules[2].mode = CLEAVE_REGION_OPS;
  rules[1].ops = plan_case_op_list("MaxPool", &rules[1].op_count);
  rules[1].min_nodes = 9;
  rules[2].ops = plan_case_op_list("Softmax", &rules[2].op_count);
  const cleave_ruleset_t *ruleset = plan_case_ruleset("three", rules, 3);
  cleave_plan_t *plan = plan_case_run(
      plan_case_graph("c1 = Conv(x, $w); r1 = Relu(c1); p = MaxPool(r1); c2 = Conv(p, $w); r2 = Relu(c2); "
                      "s = Softmax(r2); -> s"),
      &ruleset, 1, NULL);
  ck_assert_str_eq(plan_case_regions(plan), "{[c1 r1]} {[c2 r2] s}");
}

// ---- a residual chain through a selector ----

static cleave_status_t take_create(void *context, const cleave_graph_t *graph, void **out_selector,
                                   cleave_error_t *error) {
  (void)context;
  (void)error;
  *out_selector = (void *)(uintptr_t)graph;
  return CLEAVE_OK;
}

static cleave_status_t take_node(void *selector, cleave_node_t node, bool *out_yes, cleave_error_t *error) {
  (void)error;
  *out_yes = cleave_node_op(selector, node)->id != CLEAVE_OP_Cos;
  return CLEAVE_OK;
}

static cleave_status_t take_neighbour(void *selector, cleave_node_t node, cleave_node_t other, bool *out_yes,
                                      cleave_error_t *error) {
  (void)node;
  return take_node(selector, other, out_yes, error);
}

UNIT_TEST(a_selector_over_a_residual_chain_is_cut_in_one_sweep) {
  static const cleave_selector_functions_t functions = {take_create,    NULL, take_node, take_neighbour,
                                                        take_neighbour, NULL, NULL};
  cleave_rule_t rule = plan_case_rule(CLEAVE_RULE_REGION, "select");
  rule.mode = CLEAVE_REGION_SELECTOR;
  rule.selector = &functions;
  cleave_text_t text = {0};
  for (int k = 0; k < 400; k++) {
    cleave_text_format(&text, "a%d = Relu(x%d); b%d = Cos(a%d); x%d = Add(x%d, b%d); ", k, k, k, k, k + 1, k,
                       k);
  }
  cleave_text_add(&text, "-> x400");
  const cleave_ruleset_t *ruleset = plan_case_ruleset("select", &rule, 1);
  cleave_plan_t *plan = plan_case_run(plan_case_graph(cleave_text_get(&text)), &ruleset, 1, NULL);
  cleave_text_deinit(&text);
  ck_assert_uint_eq(plan->region_count, 401);
  // Seeds: a0, x1 with all that hangs together, and the cosines.
  ck_assert_uint_eq(plan->rules[0].tries, 402);
}

UNIT_SUITE("grow")
