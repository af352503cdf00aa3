// SPDX-License-Identifier: Apache-2.0
// Time of region rules whose decisions are Lua functions, over a random layered graph: a selector,
// `supported`, and for comparison the same as data (`ops`). With arguments: the sizes to run instead of 10^5
// and 10^6.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "partition/grow/partition.h"
#include "script/rules/rules.h"
#include "system/clock.h"

enum { WIDTH = 1000 };

static uint64_t random_state = 1;

static uint32_t random_below(uint32_t bound) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return (uint32_t)(random_state % bound);
}

static void check(cleave_status_t status, const cleave_error_t *error) {
  if (status != CLEAVE_OK) {
    (void)fprintf(stderr, "bench_selector: %s\n", error->message);
    exit(EXIT_FAILURE);
  }
}

/* Layers of 1000 nodes; each reads two of the layer before. One node in `cosines` is a Cos. */
static cleave_graph_t *layered(uint32_t nodes, uint32_t cosines) {
  static const cleave_op_id_t ops[4] = {CLEAVE_OP_Add, CLEAVE_OP_Mul, CLEAVE_OP_Sub, CLEAVE_OP_Max};
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_graph_t *graph = NULL;
  cleave_value_t input;
  cleave_value_t layers[2][WIDTH];
  check(cleave_graph_create(&graph, &error), &error);
  check(cleave_graph_add_input(graph, "x", CLEAVE_DTYPE_F32, 2, (cleave_dim_t[]){2, 2}, &input, &error),
        &error);
  for (uint32_t k = 0; k < WIDTH; k++) {
    layers[1][k] = input;
  }
  for (uint32_t n = 0; n < nodes; n++) {
    uint32_t layer = n / WIDTH % 2;
    cleave_value_t inputs[2] = {layers[1 - layer][random_below(WIDTH)],
                                layers[1 - layer][random_below(WIDTH)]};
    bool is_cosine = random_below(cosines) == 0;
    const cleave_op_t *op = cleave_op_get(is_cosine ? CLEAVE_OP_Cos : ops[random_below(4)]);
    cleave_node_t node;
    check(cleave_graph_add_node(graph, op, NULL, inputs, is_cosine ? 1 : 2, 1, &node, &error), &error);
    layers[layer][n % WIDTH] = cleave_node_output(graph, node, 0);
  }
  for (uint32_t k = 0; k < WIDTH; k++) {
    check(cleave_graph_add_output(graph, "y", layers[(nodes - 1) / WIDTH % 2][k], &error), &error);
  }
  return graph;
}

static void run(const char *name, const char *text, const cleave_graph_t *graph, uint32_t nodes) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_rules_t *rules = NULL;
  cleave_plan_t *plan = NULL;
  uint32_t count = 0;
  check(cleave_rules_load(NULL,
                          &(cleave_rule_source_t){.path = "bench.lua", .text = text, .length = strlen(text)},
                          NULL, NULL, &rules, &error),
        &error);
  const cleave_ruleset_t *rulesets[1] = {cleave_rules_rulesets(rules, &count)};
  uint64_t start = cleave_clock_now();
  check(cleave_partition(graph, rulesets, 1, NULL, &plan, &error), &error);
  double milliseconds = cleave_clock_ms(start, cleave_clock_now());
  printf("%-24s %8u nodes: %8.1f ms, %8llu calls of Lua, %7.1f ns each, %u regions\n", name, nodes,
         milliseconds, (unsigned long long)plan->rules[0].lua_calls,
         milliseconds * 1e6 / (double)(plan->rules[0].lua_calls + 1), plan->region_count);
  (void)fflush(stdout);
  cleave_plan_destroy(plan);
  cleave_rules_destroy(rules);
}

int main(int argc, char **argv) {
  static const uint32_t sizes[2] = {100000, 1000000};
  static const uint32_t cosines[2] = {10, 1000};
  int count = argc > 1 ? argc - 1 : 2;
  for (int k = 0; k < 2 * count; k++) {
    uint32_t nodes = argc > 1 ? (uint32_t)strtoul(argv[k / 2 + 1], NULL, 10) : sizes[k / 2];
    if (nodes == 0) {
      (void)fprintf(stderr, "bench_selector: '%s' is not a number of nodes\n", argv[k / 2 + 1]);
      return EXIT_FAILURE;
    }
    printf("one Cos in %u\n", cosines[k % 2]);
    cleave_graph_t *graph = layered(nodes, cosines[k % 2]);
    run("ops", "return ruleset { name = 'b', region 'g' { ops = { 'Add', 'Mul', 'Sub', 'Max' } } }", graph,
        nodes);
    run("supported",
        "return ruleset { name = 'b', region 'g' { supported = function(node)\n"
        "  return node.op ~= 'Cos' end } }",
        graph, nodes);
    run("selector",
        "local function wanted(node) return node.op ~= 'Cos' end\n"
        "return ruleset { name = 'b', region 'g' { selector = function() return {\n"
        "  select = wanted,\n"
        "  select_input = function(_, input) return wanted(input) end,\n"
        "  select_output = function(_, output) return wanted(output) end } end } }",
        graph, nodes);
    run("selector with state",
        "return ruleset { name = 'b', region 'g' { selector = function()\n"
        "  local size = 0\n"
        "  local function grow(_, node) size = size + 1 return size < 8 and node.op ~= 'Cos' end\n"
        "  return { select = function(node) size = 1 return node.op ~= 'Cos' end,\n"
        "    select_input = grow, select_output = grow, reset = function() size = 0 end } end } }",
        graph, nodes);
    cleave_graph_destroy(graph);
  }
  return EXIT_SUCCESS;
}
