// SPDX-License-Identifier: Apache-2.0
// For tests: a failure fails the test.
#include "script_case.h"

#include "unit.h"

/* ---- graphs ---- */

cleave_value_t script_case_input(cleave_graph_t *graph, const char *name, int64_t channels) {
  const cleave_dim_t dims[4] = {2, channels, 10, 10};
  cleave_value_t value = CLEAVE_VALUE_NONE;
  unit_ok(cleave_graph_add_input(graph, name, CLEAVE_DTYPE_F32, 4, dims, &value, e));
  return value;
}

cleave_value_t script_case_constant(cleave_graph_t *graph, const char *name, int32_t rank,
                                    const int64_t *dims, double value) {
  cleave_tensor_t *tensor = NULL;
  cleave_value_t out = CLEAVE_VALUE_NONE;
  unit_ok(cleave_tensor_create(CLEAVE_DTYPE_F32, rank, dims, &tensor, e));
  for (int64_t k = 0; k < tensor->count; k++) {
    cleave_tensor_set_float(tensor, k, value);
  }
  unit_ok(cleave_graph_add_constant(graph, name, tensor, &out, e));
  cleave_tensor_release(tensor);
  return out;
}

cleave_value_t script_case_node(cleave_graph_t *graph, const char *op, const char *name,
                                const cleave_value_t *inputs, size_t input_count, int64_t channels) {
  const cleave_dim_t dims[4] = {2, channels, 10, 10};
  cleave_node_t node = CLEAVE_NODE_NONE;
  ck_assert_ptr_nonnull(cleave_op_find("", op));
  unit_ok(cleave_graph_add_node(graph, cleave_op_find("", op), name, inputs, input_count, 1, &node, e));
  cleave_value_t value = cleave_node_output(graph, node, 0);
  unit_ok(cleave_graph_set_type(graph, value, CLEAVE_DTYPE_F32, 4, dims, e));
  unit_ok(cleave_graph_set_value_name(graph, value, name, e));
  return value;
}

cleave_value_t script_case_unary(cleave_graph_t *graph, const char *op, const char *name, cleave_value_t x) {
  return script_case_node(graph, op, name, &x, 1, 3);
}

cleave_value_t script_case_sum(cleave_graph_t *graph, const char *name, cleave_value_t a, cleave_value_t b) {
  const cleave_value_t inputs[2] = {a, b};
  return script_case_node(graph, "Add", name, inputs, 2, 3);
}

cleave_graph_t *script_case_graph(void) {
  cleave_graph_t *graph = NULL;
  unit_ok(cleave_graph_create(&graph, e));
  return graph;
}

void script_case_finish(cleave_graph_t *graph, cleave_value_t output) {
  unit_ok(cleave_graph_add_output(graph, "out", output, e));
}

cleave_graph_t *script_case_diamond(void) {
  cleave_graph_t *graph = script_case_graph();
  cleave_value_t exp = script_case_unary(graph, "Exp", "exp", script_case_input(graph, "x", 3));
  cleave_value_t cos = script_case_unary(graph, "Cos", "cos", exp);
  cleave_value_t sin = script_case_unary(graph, "Sin", "sin", exp);
  script_case_finish(graph, script_case_sum(graph, "add", cos, sin));
  return graph;
}

cleave_graph_t *script_case_row(int count) {
  cleave_graph_t *graph = script_case_graph();
  cleave_value_t value = script_case_input(graph, "x", 3);
  for (int k = 1; k <= count; k++) {
    char name[16];
    (void)snprintf(name, sizeof name, "r%d", k);
    value = script_case_unary(graph, "Relu", name, value);
  }
  script_case_finish(graph, value);
  return graph;
}

cleave_graph_t *script_case_convolution(void) {
  static const int64_t KERNEL[4] = {3, 3, 3, 3};
  static const int64_t BIAS[1] = {3};
  static const int64_t PADS[4] = {1, 1, 1, 1};
  cleave_graph_t *graph = script_case_graph();
  cleave_value_t x = script_case_input(graph, "x", 3);
  const cleave_value_t inputs[3] = {x, script_case_constant(graph, "kernel", 4, KERNEL, 0.25),
                                    script_case_constant(graph, "bias", 1, BIAS, 1.5)};
  cleave_value_t conv = script_case_node(graph, "Conv", "conv", inputs, 3, 3);
  cleave_node_t node = cleave_value_producer(graph, conv);
  unit_ok(cleave_graph_set_ints(graph, node, "pads", PADS, 4, e));
  unit_ok(cleave_graph_set_text(graph, node, "auto_pad", "NOTSET", e));
  script_case_finish(graph, script_case_sum(graph, "add", script_case_unary(graph, "Relu", "relu", conv), x));
  return graph;
}

/* ---- running rules ---- */

cleave_rules_t *script_case_load(const char *text) {
  cleave_rules_t *rules = NULL;
  unit_ok(cleave_rules_load(NULL,
                            &(cleave_rule_source_t){.path = "r.lua", .text = text, .length = strlen(text)},
                            NULL, NULL, &rules, e));
  return rules;
}

cleave_status_t script_case_partition(const cleave_graph_t *graph, const cleave_rules_t *rules,
                                      cleave_plan_t **plan, cleave_error_t *error) {
  uint32_t set_count = 0;
  const cleave_ruleset_t *sets[1] = {cleave_rules_rulesets(rules, &set_count)};
  cleave_partition_options_t options = {0};
  return cleave_partition(graph, sets, 1, &options, plan, error);
}

void script_case_describe(const cleave_plan_t *plan, char *out, size_t size) {
  size_t used = 0;
  out[0] = '\0';
  for (uint32_t r = 0; r < plan->region_count; r++) {
    for (uint32_t k = 0; k < plan->regions[r].node_count; k++) {
      used += (size_t)snprintf(out + used, size - used, "%s%s", k > 0 ? " " : (r > 0 ? "|" : ""),
                               cleave_node_name(plan->graph, plan->regions[r].nodes[k]));
    }
  }
}

void script_case_expect(cleave_graph_t *graph, const char *text, const char *expected) {
  char found[512];
  cleave_rules_t *rules = script_case_load(text);
  cleave_plan_t *plan = NULL;
  unit_ok(script_case_partition(graph, rules, &plan, e));
  script_case_describe(plan, found, sizeof found);
  ck_assert_str_eq(found, expected);
  cleave_plan_destroy(plan);
  cleave_rules_destroy(rules);
  cleave_graph_destroy(graph);
}

void script_case_fails(cleave_graph_t *graph, const char *text, cleave_status_t status, const char *message) {
  cleave_rules_t *rules = script_case_load(text);
  cleave_plan_t *plan = NULL;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  ck_assert_int_eq(script_case_partition(graph, rules, &plan, &error), status);
  ck_assert_ptr_null(plan);
  ck_assert_str_eq(error.message, message);
  ck_assert_str_eq(error.rule, strstr(message, "fuse") != NULL ? "x" : "g");
  cleave_rules_destroy(rules);
  cleave_graph_destroy(graph);
}
