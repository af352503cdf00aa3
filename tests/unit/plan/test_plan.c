// SPDX-License-Identifier: Apache-2.0
// Plans as text and JSON, byte for byte; and the check of plans, which must find every kind of damage.

#include "partition/plan/plan.h"

#include <jansson.h>

#include "plan_case.h"
#include "unit.h"

static cleave_plan_t *small_plan(void) {
  static const cleave_op_t *conv_ops[1];
  static const cleave_op_t *relu_ops[1];
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
  cleave_rule_t rules[2] = {plan_case_rule(CLEAVE_RULE_FUSE, "conv_act"),
                            plan_case_rule(CLEAVE_RULE_REGION, "island")};
  rules[0].pattern = &pattern;
  rules[1].mode = CLEAVE_REGION_OPS;
  rules[1].ops = plan_case_op_list("MaxPool,Add", &rules[1].op_count);
  rules[0].line = 3;
  rules[1].line = 9;
  const cleave_ruleset_t *ruleset = plan_case_ruleset("demo", rules, 2);
  cleave_graph_t *graph =
      plan_case_graph("c = Conv(x, $w); r = Relu(c); p = MaxPool(r); s = Softmax(p); a = Add(p, s); -> a, s");
  return plan_case_run(graph, &ruleset, 1, NULL);
}

static const char *text_of(const cleave_plan_t *plan, bool json) {
  cleave_text_t text = {0};
  if (json) {
    unit_ok(cleave_plan_print_json(plan, &text, e));
  } else {
    unit_ok(cleave_plan_print_text(plan, &text, e));
  }
  return plan_case_keep(text.data);
}

UNIT_TEST(the_text_says_what_runs_where_and_why) {
  cleave_plan_t *plan = small_plan();
  char wanted[2048];
  (void)snprintf(wanted, sizeof wanted,
                 "plan of '' (5 nodes, hash %016llx): 2 regions, 1 fusion, 1 node on cpu\n"
                 "rules:\n"
                 "  fuse 'conv_act' (test.lua:3) of 'demo' for test: 1 fusion from 1 anchor, 0 refused\n"
                 "  region 'island' (test.lua:9) of 'demo' for test: 2 regions from 2 seeds, 0 refused\n"
                 "regions, in order of execution:\n"
                 "  island_0 on test: 3 nodes, 1 fusion, by region 'island' (test.lua:9)\n"
                 "    in  %%x\n"
                 "    out %%p\n"
                 "    [conv_act] conv=Conv 'c' + act=Relu 'r'\n"
                 "    MaxPool 'p'\n"
                 "  island_1 on test: 1 node, 0 fusions, by region 'island' (test.lua:9)\n"
                 "    in  %%p, %%s\n"
                 "    out %%a\n"
                 "    Add 'a'\n"
                 "left to cpu:\n"
                 "  Softmax 's'\n"
                 "notes:\n"
                 "  cycle at Softmax 's': 'p' and 'a' stay apart: a path through 's' would close a cycle, "
                 "region 'island' (test.lua:9)\n",
                 (unsigned long long)plan->graph_hash);
  ck_assert_str_eq(text_of(plan, false), wanted);
}

UNIT_TEST(the_json_names_nodes_by_position_and_values_by_producer) {
  cleave_plan_t *plan = small_plan();
  json_error_t error;
  json_t *json = json_loads(text_of(plan, true), JSON_REJECT_DUPLICATES, &error);
  ck_assert_msg(json != NULL, "%s at line %d", error.text, error.line);
  ck_assert_str_eq(json_string_value(json_object_get(json, "format")), "cleave-plan");
  ck_assert_int_eq(json_integer_value(json_object_get(json, "version")), 1);
  ck_assert_int_eq(json_integer_value(json_object_get(json_object_get(json, "graph"), "nodes")), 5);
  json_t *rule = json_array_get(json_object_get(json, "rules"), 1);
  ck_assert_str_eq(json_string_value(json_object_get(rule, "kind")), "region");
  ck_assert_str_eq(json_string_value(json_object_get(rule, "file")), "test.lua");
  ck_assert_int_eq(json_integer_value(json_object_get(rule, "line")), 9);
  ck_assert_int_eq(json_integer_value(json_object_get(rule, "matches")), 2);
  json_t *regions = json_object_get(json, "regions");
  ck_assert_uint_eq(json_array_size(regions), 2);
  json_t *region = json_array_get(regions, 0);
  ck_assert_str_eq(json_string_value(json_object_get(region, "name")), "island_0");
  char *inputs = json_dumps(json_object_get(region, "inputs"), JSON_COMPACT);
  char *outputs = json_dumps(json_object_get(region, "outputs"), JSON_COMPACT);
  char *fusions = json_dumps(json_object_get(region, "fusions"), JSON_COMPACT);
  char *steps = json_dumps(json_object_get(json, "steps"), JSON_COMPACT);
  char *notes = json_dumps(json_object_get(json, "notes"), JSON_COMPACT);
  ck_assert_str_eq(inputs, "[{\"input\":0,\"name\":\"x\"}]");
  ck_assert_str_eq(outputs, "[{\"position\":2,\"output\":0,\"name\":\"p\"}]");
  ck_assert_str_eq(
      fusions,
      "[{\"rule\":0,\"nodes\":[{\"position\":0,\"op\":\"Conv\",\"name\":\"c\",\"label\":\"conv\"},"
      "{\"position\":1,\"op\":\"Relu\",\"name\":\"r\",\"label\":\"act\"}]}]");
  ck_assert_str_eq(steps,
                   "[{\"region\":\"island_0\"},{\"position\":3,\"op\":\"Softmax\",\"name\":\"s\"},"
                   "{\"region\":\"island_1\"}]");
  ck_assert_str_eq(
      notes,
      "[{\"kind\":\"cycle\",\"rule\":1,\"node\":{\"position\":3,\"op\":\"Softmax\",\"name\":\"s\"},"
      "\"reason\":\"'p' and 'a' stay apart: a path through 's' would close a cycle\"}]");
  free(inputs);
  free(outputs);
  free(fusions);
  free(steps);
  free(notes);
  json_decref(json);
}

UNIT_TEST(names_from_outside_cannot_break_the_output) {
  cleave_graph_t *graph = plan_case_graph("a = Relu(x); -> a");
  cleave_value_t a = cleave_node_output(graph, plan_case_node(graph, "a"), 0);
  cleave_node_t node = {0};
  unit_ok(cleave_graph_set_value_name(graph, a, "bad\n\xff\"name", e));
  cleave_value_t b;
  unit_ok(cleave_graph_add_node(graph, cleave_op_get(CLEAVE_OP_Relu), "q\xff\n\"", &a, 1, 1, &node, e));
  b = cleave_node_output(graph, node, 0);
  unit_ok(cleave_graph_add_output(graph, "b", b, e));
  const cleave_ruleset_t *ruleset = plan_case_ops("Relu");
  cleave_plan_t *plan = plan_case_run(graph, &ruleset, 1, NULL);
  json_error_t error;
  json_t *json = json_loads(text_of(plan, true), 0, &error);
  ck_assert_msg(json != NULL, "%s at line %d", error.text, error.line);
  json_decref(json);
  ck_assert_ptr_null(strstr(text_of(plan, false), "bad\n"));
}

UNIT_TEST(an_empty_plan_prints) {
  cleave_plan_t *plan = plan_case_run(plan_case_graph("-> x"), NULL, 0, NULL);
  json_error_t error;
  json_t *json = json_loads(text_of(plan, true), 0, &error);
  ck_assert_msg(json != NULL, "%s at line %d", error.text, error.line);
  json_decref(json);
  ck_assert_ptr_nonnull(strstr(text_of(plan, false), "(0 nodes, "));
}

UNIT_TEST(a_hundred_plans_of_one_graph_are_the_same_bytes) {
  const char *first = text_of(small_plan(), true);
  for (uint32_t k = 0; k < 100; k++) {
    void *elsewhere = malloc(1 + 977 * k % 4096);
    ck_assert_str_eq(text_of(small_plan(), true), first);
    free(elsewhere);
  }
}

// ---- damage ----

#define expect_damage(change, what)                                                \
  do {                                                                             \
    cleave_plan_t *plan = small_plan();                                            \
    cleave_plan_region_t *regions = (cleave_plan_region_t *)(void *)plan->regions; \
    (void)regions;                                                                 \
    change;                                                                        \
    unit_fails_with(cleave_plan_check(plan, e), CLEAVE_ERROR_INTERNAL, what);      \
  } while (0)

/* Plans are immutable to all but this test. */
#define writable(type, pointer) ((type *)(uintptr_t)(pointer))

UNIT_TEST(the_check_finds_damage) {
  expect_damage(plan->step_count--, "a region is in no step");
  expect_damage(writable(cleave_plan_step_t, plan->steps)[1].node = regions[0].nodes[0],
                "a node is in two steps");
  expect_damage(writable(cleave_plan_step_t, plan->steps)[1].node.index = 77, "a node that does not exist");
  expect_damage(writable(uint32_t, plan->node_region)[regions[0].nodes[1].index] = 1,
                "node_region disagrees");
  expect_damage(writable(uint32_t, plan->node_region)[plan->steps[1].node.index] = 1, "outside all regions");
  expect_damage(regions[0].input_count = 0, "inputs of a region are not in order");
  expect_damage(writable(cleave_value_t, regions[1].inputs)[0] = regions[1].inputs[1], "inputs of a region");
  expect_damage(regions[1].output_count = 0, "outputs of a region are not in order");
  expect_damage(regions[0].fusion_count = 0, "a fusion is in no region");
  expect_damage(writable(uint32_t, plan->node_fusion)[regions[0].nodes[2].index] = 0,
                "node_fusion disagrees");
  expect_damage(writable(cleave_plan_fusion_t, plan->fusions)[0].region = 1,
                "a region's list of fusions is wrong");
  expect_damage(regions[1].name = "island_0", "two regions have one name");
  expect_damage(
      {
        cleave_plan_step_t *steps = writable(cleave_plan_step_t, plan->steps);
        cleave_plan_step_t swap = steps[0];
        steps[0] = steps[1];
        steps[1] = swap;
      },
      "a step comes before one that feeds it");
  expect_damage(
      {
        cleave_node_t *nodes = writable(cleave_node_t, regions[0].nodes);
        cleave_node_t swap = nodes[0];
        nodes[0] = nodes[1];
        nodes[1] = swap;
      },
      "not in topological order");
}

UNIT_TEST(the_check_finds_a_cycle_and_a_region_in_pieces) {
  cleave_graph_t *graph = plan_case_graph("a = Relu(x); b = Cos(a); c = Relu(b); d = Relu(y); -> c, d");
  const cleave_ruleset_t *ruleset = plan_case_ops("Relu");
  cleave_plan_t *plan = plan_case_run(graph, &ruleset, 1, NULL);
  ck_assert_str_eq(plan_case_regions(plan), "{a} {c} {d}");
  // {a c}: the cosine is on a way around.
  cleave_node_t pair[2] = {plan_case_node(graph, "a"), plan_case_node(graph, "c")};
  cleave_plan_region_t *regions = writable(cleave_plan_region_t, plan->regions);
  cleave_plan_step_t *steps = writable(cleave_plan_step_t, plan->steps);
  cleave_plan_region_t all[3] = {regions[0], regions[1], regions[2]};
  regions[0].nodes = pair;
  regions[0].node_count = 2;
  regions[1] = all[2];
  plan->region_count = 2;
  writable(uint32_t, plan->node_region)[pair[1].index] = 0;
  writable(uint32_t, plan->node_region)[plan_case_node(graph, "d").index] = 1;
  steps[0] = (cleave_plan_step_t){0, CLEAVE_NODE_NONE};
  steps[1] = (cleave_plan_step_t){CLEAVE_INDEX_NONE, plan_case_node(graph, "b")};
  steps[2] = (cleave_plan_step_t){1, CLEAVE_NODE_NONE};
  plan->step_count = 3;
  unit_fails_with(cleave_plan_check(plan, e), CLEAVE_ERROR_INTERNAL, "a step comes before one that feeds it");
  // {a d}: nothing ties them.
  pair[1] = plan_case_node(graph, "d");
  regions[1] = all[1];
  writable(uint32_t, plan->node_region)[pair[1].index] = 0;
  writable(uint32_t, plan->node_region)[plan_case_node(graph, "c").index] = 1;
  unit_fails_with(cleave_plan_check(plan, e), CLEAVE_ERROR_INTERNAL, "a region is not connected");
}

UNIT_SUITE("plan")
