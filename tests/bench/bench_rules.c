// SPDX-License-Identifier: Apache-2.0
// Time of matching the 100 rules of tests/lua/hundred.lua. Over ONNX models given as arguments (as read:
// nothing is folded), or over transformer blocks of about 10^4, 10^5 and 10^6 nodes. --rules prints the time
// of every rule.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/onnx/onnx.h"
#include "ops/infer.h"
#include "partition/grow/partition.h"
#include "script/rules/rules.h"
#include "system/clock.h"

enum { RUNS = 7 };

static void check(cleave_status_t status, const cleave_error_t *error) {
  if (status != CLEAVE_OK) {
    (void)fprintf(stderr, "bench_rules: %s\n", error->message);
    exit(EXIT_FAILURE);
  }
}

// ---- transformer blocks ----

static cleave_value_t add_node(cleave_graph_t *graph, cleave_op_id_t op, cleave_value_t a, cleave_value_t b) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_node_t node;
  const cleave_value_t inputs[2] = {a, b};
  check(cleave_graph_add_node(graph, cleave_op_get(op), NULL, inputs, cleave_value_exists(b) ? 2 : 1, 1,
                              &node, &error),
        &error);
  cleave_value_t value = cleave_node_output(graph, node, 0);
  const cleave_dim_t dims[3] = {1, 64, 64};
  check(cleave_graph_set_type(graph, value, CLEAVE_DTYPE_F32, 3, dims, &error), &error);
  return value;
}

static cleave_value_t add_constant(cleave_graph_t *graph, int32_t rank, double number) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  static const int64_t dims[2] = {64, 64};
  cleave_tensor_t *tensor = NULL;
  cleave_value_t value;
  check(cleave_tensor_create(CLEAVE_DTYPE_F32, rank, dims, &tensor, &error), &error);
  for (int64_t k = 0; k < tensor->count; k++) {
    cleave_tensor_set_float(tensor, k, number);
  }
  check(cleave_graph_add_constant(graph, NULL, tensor, &value, &error), &error);
  cleave_tensor_release(tensor);
  return value;
}

typedef struct weights {
  cleave_value_t matrix, row, half, one, two, root, epsilon;
} weights_t;

static cleave_value_t add_norm(cleave_graph_t *graph, const weights_t *w, cleave_value_t x) {
  cleave_value_t mean = add_node(graph, CLEAVE_OP_ReduceMean, x, CLEAVE_VALUE_NONE);
  cleave_value_t c = add_node(graph, CLEAVE_OP_Sub, x, mean);
  cleave_value_t variance =
      add_node(graph, CLEAVE_OP_ReduceMean, add_node(graph, CLEAVE_OP_Pow, c, w->two), CLEAVE_VALUE_NONE);
  cleave_value_t sum = add_node(graph, CLEAVE_OP_Add, variance, w->epsilon);
  cleave_value_t y =
      add_node(graph, CLEAVE_OP_Div, c, add_node(graph, CLEAVE_OP_Sqrt, sum, CLEAVE_VALUE_NONE));
  return add_node(graph, CLEAVE_OP_Add, add_node(graph, CLEAVE_OP_Mul, y, w->row), w->row);
}

static cleave_value_t add_linear(cleave_graph_t *graph, const weights_t *w, cleave_value_t x) {
  return add_node(graph, CLEAVE_OP_Add, add_node(graph, CLEAVE_OP_MatMul, x, w->matrix), w->row);
}

/* 43 nodes: norm, attention, norm, two products with gelu between. */
static cleave_value_t add_block(cleave_graph_t *graph, const weights_t *w, cleave_value_t x) {
  cleave_value_t n = add_norm(graph, w, x);
  cleave_value_t q = add_linear(graph, w, n);
  cleave_value_t k = add_linear(graph, w, n);
  cleave_value_t v = add_linear(graph, w, n);
  cleave_value_t scores =
      add_node(graph, CLEAVE_OP_MatMul, q, add_node(graph, CLEAVE_OP_Transpose, k, CLEAVE_VALUE_NONE));
  scores =
      add_node(graph, CLEAVE_OP_Softmax, add_node(graph, CLEAVE_OP_Div, scores, w->two), CLEAVE_VALUE_NONE);
  x = add_node(graph, CLEAVE_OP_Add, x, add_linear(graph, w, add_node(graph, CLEAVE_OP_MatMul, scores, v)));
  cleave_value_t h = add_linear(graph, w, add_norm(graph, w, x));
  cleave_value_t erf =
      add_node(graph, CLEAVE_OP_Erf, add_node(graph, CLEAVE_OP_Div, h, w->root), CLEAVE_VALUE_NONE);
  h = add_node(graph, CLEAVE_OP_Mul, h, add_node(graph, CLEAVE_OP_Add, erf, w->one));
  h = add_node(graph, CLEAVE_OP_Mul, h, w->half);
  return add_node(graph, CLEAVE_OP_Add, x, add_linear(graph, w, h));
}

static cleave_graph_t *blocks(size_t node_count) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_graph_t *graph = NULL;
  cleave_value_t x;
  const cleave_dim_t dims[3] = {1, 64, 64};
  check(cleave_graph_create(&graph, &error), &error);
  check(cleave_graph_add_input(graph, "x", CLEAVE_DTYPE_F32, 3, dims, &x, &error), &error);
  weights_t w = {add_constant(graph, 2, 0.01), add_constant(graph, 1, 0.02),
                 add_constant(graph, 0, 0.5),  add_constant(graph, 0, 1.0),
                 add_constant(graph, 0, 2.0),  add_constant(graph, 0, 1.41421356),
                 add_constant(graph, 0, 1e-5)};
  while (graph->live_node_count < node_count) {
    x = add_block(graph, &w, x);
  }
  check(cleave_graph_add_output(graph, "y", x, &error), &error);
  return graph;
}

// ---- measuring ----

static double matching_ms(const cleave_plan_t *plan) {
  double ms = 0.0;
  for (uint32_t k = 0; k < plan->rule_count; k++) {
    ms += (double)plan->rules[k].nanoseconds * 1e-6;
  }
  return ms;
}

static void print_rules(const cleave_plan_t *plan) {
  (void)printf("  %-6s %8s %8s %8s %10s\n", "rule", "tries", "hits", "matches", "ms");
  for (uint32_t k = 0; k < plan->rule_count; k++) {
    const cleave_plan_rule_t *rule = &plan->rules[k];
    (void)printf("  %-6s %8u %8llu %8u %10.4f\n", rule->name, rule->tries,
                 (unsigned long long)rule->structural_hits, rule->matches, (double)rule->nanoseconds * 1e-6);
  }
}

static void measure(const char *name, cleave_graph_t *graph, bool with_rules) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_rules_t *rules = NULL;
  uint32_t count = 0;
  check(cleave_rules_load(NULL, &(cleave_rule_source_t){.path = CLEAVE_SOURCE_DIR "/tests/lua/hundred.lua"},
                          NULL, NULL, &rules, &error),
        &error);
  const cleave_ruleset_t *ruleset = cleave_rules_rulesets(rules, &count);
  double best = 1e30;
  double best_matching = 1e30;
  uint32_t fusions = 0;
  for (int run = 0; run < RUNS && (run == 0 || best < 2000.0); run++) {
    cleave_plan_t *plan = NULL;
    uint64_t start = cleave_clock_now();
    check(cleave_partition(graph, &ruleset, 1, NULL, &plan, &error), &error);
    double ms = cleave_clock_ms(start, cleave_clock_now());
    best = ms < best ? ms : best;
    best_matching = matching_ms(plan) < best_matching ? matching_ms(plan) : best_matching;
    fusions = plan->fusion_count;
    if (run == 0 && with_rules) {
      print_rules(plan);
    }
    cleave_plan_destroy(plan);
  }
  (void)printf("%-40s %8zu nodes %4u rules %7u fusions %9.2f ms matching %9.2f ms whole plan\n", name,
               graph->live_node_count, ruleset->rule_count, fusions, best_matching, best);
  cleave_rules_destroy(rules);
  cleave_graph_destroy(graph);
}

int main(int argc, char **argv) {
  bool with_rules = false;
  int models = 0;
  for (int a = 1; a < argc; a++) {
    if (strcmp(argv[a], "--rules") == 0) {
      with_rules = true;
      continue;
    }
    cleave_error_t error = CLEAVE_ERROR_INIT;
    cleave_graph_t *graph = NULL;
    check(cleave_onnx_read(argv[a], NULL, &graph, &error), &error);
    check(cleave_graph_infer(graph, NULL, NULL, &error), &error);
    measure(argv[a], graph, with_rules);
    models++;
  }
  for (size_t nodes = 10000; models == 0 && nodes <= 1000000; nodes *= 10) {
    measure("transformer blocks", blocks(nodes), with_rules);
  }
  return EXIT_SUCCESS;
}
