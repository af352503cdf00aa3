// SPDX-License-Identifier: Apache-2.0
// Times of building and partitioning random layered graphs, residual chains and chains of convolutions, of
// growing size, under one fuse rule and one `ops` rule. Each line:
// nodes, milliseconds to build the graph, peak memory so far, milliseconds to partition, regions.
// With arguments: the sizes to run instead of 10^4, 10^5 and 10^6.

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "partition/grow/partition.h"
#include "system/clock.h"

static uint64_t random_state = 1;

static uint32_t random_below(uint32_t bound) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return (uint32_t)(random_state % bound);
}

static void check(cleave_status_t status, const cleave_error_t *error) {
  if (status != CLEAVE_OK) {
    (void)fprintf(stderr, "bench_partition: %s\n", error->message);
    exit(EXIT_FAILURE);
  }
}

static cleave_value_t add_node(cleave_graph_t *graph, const cleave_op_t *op, const cleave_value_t *inputs,
                               size_t count) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_node_t node;
  check(cleave_graph_add_node(graph, op, NULL, inputs, count, 1, &node, &error), &error);
  return cleave_node_output(graph, node, 0);
}

static cleave_graph_t *start_graph(cleave_value_t *out_input) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_graph_t *graph = NULL;
  cleave_dim_t dims[2] = {2, 2};
  check(cleave_graph_create(&graph, &error), &error);
  check(cleave_graph_add_input(graph, "x", CLEAVE_DTYPE_F32, 2, dims, out_input, &error), &error);
  return graph;
}

/* Layers of 1000 nodes; each reads two of the layer before. A node in `unsupported_every` is a Cos, which no
 * rule has. */
static cleave_graph_t *layered(uint32_t nodes, uint32_t unsupported_every) {
  enum { WIDTH = 1000 };
  static const cleave_op_id_t ops[4] = {CLEAVE_OP_Add, CLEAVE_OP_Mul, CLEAVE_OP_Sub, CLEAVE_OP_Max};
  cleave_value_t input;
  cleave_graph_t *graph = start_graph(&input);
  cleave_value_t layers[2][WIDTH];
  for (uint32_t k = 0; k < WIDTH; k++) {
    layers[1][k] = input;
  }
  for (uint32_t n = 0; n < nodes; n++) {
    uint32_t layer = n / WIDTH % 2;
    cleave_value_t inputs[2] = {layers[1 - layer][random_below(WIDTH)],
                                layers[1 - layer][random_below(WIDTH)]};
    bool unsupported = random_below(unsupported_every) == 0;
    const cleave_op_t *op = cleave_op_get(unsupported ? CLEAVE_OP_Cos : ops[random_below(4)]);
    layers[layer][n % WIDTH] = add_node(graph, op, inputs, unsupported ? 1 : 2);
  }
  cleave_error_t error = CLEAVE_ERROR_INIT;
  for (uint32_t k = 0; k < WIDTH; k++) {
    check(cleave_graph_add_output(graph, "y", layers[(nodes - 1) / WIDTH % 2][k], &error), &error);
  }
  return graph;
}

/* Blocks x + Relu(Mul(Cos(Relu(x)))): the Cos is not supported. */
static cleave_graph_t *residual(uint32_t nodes, uint32_t unused) {
  (void)unused;
  cleave_value_t x;
  cleave_graph_t *graph = start_graph(&x);
  for (uint32_t n = 0; n + 5 <= nodes; n += 5) {
    cleave_value_t a = add_node(graph, cleave_op_get(CLEAVE_OP_Relu), &x, 1);
    cleave_value_t b = add_node(graph, cleave_op_get(CLEAVE_OP_Cos), &a, 1);
    cleave_value_t c = add_node(graph, cleave_op_get(CLEAVE_OP_Mul), (cleave_value_t[]){b, b}, 2);
    cleave_value_t d = add_node(graph, cleave_op_get(CLEAVE_OP_Relu), &c, 1);
    x = add_node(graph, cleave_op_get(CLEAVE_OP_Add), (cleave_value_t[]){x, d}, 2);
  }
  cleave_error_t error = CLEAVE_ERROR_INIT;
  check(cleave_graph_add_output(graph, "y", x, &error), &error);
  return graph;
}

/* Blocks Relu(x + BatchNormalization(Conv(x))). */
static cleave_graph_t *convolutions(uint32_t nodes, uint32_t unused) {
  (void)unused;
  cleave_value_t x;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_graph_t *graph = start_graph(&x);
  cleave_tensor_t *tensor = NULL;
  cleave_value_t w;
  check(cleave_tensor_create_float(1.0F, &tensor, &error), &error);
  check(cleave_graph_add_constant(graph, "w", tensor, &w, &error), &error);
  cleave_tensor_release(tensor);
  for (uint32_t n = 0; n + 4 <= nodes; n += 4) {
    cleave_value_t a = add_node(graph, cleave_op_get(CLEAVE_OP_Conv), (cleave_value_t[]){x, w}, 2);
    cleave_value_t b =
        add_node(graph, cleave_op_get(CLEAVE_OP_BatchNormalization), (cleave_value_t[]){a, w, w, w, w}, 5);
    cleave_value_t c = add_node(graph, cleave_op_get(CLEAVE_OP_Add), (cleave_value_t[]){x, b}, 2);
    x = add_node(graph, cleave_op_get(CLEAVE_OP_Relu), &c, 1);
  }
  check(cleave_graph_add_output(graph, "y", x, &error), &error);
  return graph;
}

/* Conv >> maybe(BatchNormalization) >> maybe(Add) >> maybe(Relu). */
static const cleave_pattern_t *convolution_pattern(void) {
  static const cleave_op_t *ops[4];
  static cleave_pattern_node_t nodes[8];
  static const uint32_t children[4] = {1, 5, 6, 7};
  static const uint32_t inner[4] = {1, 2, 3, 4};
  static const cleave_pattern_t pattern = {nodes, 8, 0, NULL, 0, NULL};
  static const cleave_op_id_t ids[4] = {CLEAVE_OP_Conv, CLEAVE_OP_BatchNormalization, CLEAVE_OP_Add,
                                        CLEAVE_OP_Relu};
  nodes[0] = (cleave_pattern_node_t){
      .kind = CLEAVE_PATTERN_SEQUENCE, .type.rank = -1, .child_count = 4, .children = children};
  for (uint32_t k = 0; k < 4; k++) {
    ops[k] = cleave_op_get(ids[k]);
    nodes[1 + k] =
        (cleave_pattern_node_t){.kind = CLEAVE_PATTERN_OP, .type.rank = -1, .op_count = 1, .ops = &ops[k]};
    if (k > 0) {
      nodes[4 + k] = (cleave_pattern_node_t){
          .kind = CLEAVE_PATTERN_MAYBE, .type.rank = -1, .child_count = 1, .children = &inner[k]};
    }
  }
  return &pattern;
}

static void run(const char *name, cleave_graph_t *(*build)(uint32_t, uint32_t), uint32_t nodes,
                uint32_t argument) {
  uint64_t start = cleave_clock_now();
  cleave_graph_t *graph = build(nodes, argument);
  uint64_t built = cleave_clock_now();
  struct rusage usage;
  (void)getrusage(RUSAGE_SELF, &usage);
  const cleave_op_t *ops[5] = {cleave_op_get(CLEAVE_OP_Add), cleave_op_get(CLEAVE_OP_Mul),
                               cleave_op_get(CLEAVE_OP_Sub), cleave_op_get(CLEAVE_OP_Max),
                               cleave_op_get(CLEAVE_OP_Relu)};
  cleave_rule_t rules[2] = {
      {.kind = CLEAVE_RULE_REGION,
       .name = "island",
       .file = "bench",
       .mode = CLEAVE_REGION_OPS,
       .ops = ops,
       .op_count = 5},
      {.kind = CLEAVE_RULE_FUSE, .name = "convolution", .file = "bench", .pattern = convolution_pattern()}};
  cleave_ruleset_t ruleset = {
      .name = "bench", .backend = "bench", .file = "bench", .rules = rules, .rule_count = 2};
  const cleave_ruleset_t *rulesets[1] = {&ruleset};
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_plan_t *plan = NULL;
  uint64_t begin = cleave_clock_now();
  check(cleave_partition(graph, rulesets, 1, NULL, &plan, &error), &error);
  uint64_t end = cleave_clock_now();
  double milliseconds = cleave_clock_ms(begin, end);
  printf(
      "%-14s %9u nodes: built in %8.1f ms (peak %5ld MB), partitioned in %8.1f ms (%6.1f ns a node), %u "
      "regions, %u fusions\n",
      name, nodes, cleave_clock_ms(start, built), usage.ru_maxrss / 1024, milliseconds,
      milliseconds * 1e6 / nodes, plan->region_count, plan->fusion_count);
  (void)fflush(stdout);
  cleave_plan_destroy(plan);
  cleave_graph_destroy(graph);
}

int main(int argc, char **argv) {
  static const uint32_t sizes[3] = {10000, 100000, 1000000};
  int count = argc > 1 ? argc - 1 : 3;
  for (int k = 0; k < count; k++) {
    uint32_t nodes = argc > 1 ? (uint32_t)strtoul(argv[k + 1], NULL, 10) : sizes[k];
    if (nodes == 0) {
      (void)fprintf(stderr, "bench_partition: '%s' is not a number of nodes\n", argv[k + 1]);
      return EXIT_FAILURE;
    }
    run("layered 1/2", layered, nodes, 2);
    run("layered 1/10", layered, nodes, 10);
    run("layered 1/1000", layered, nodes, 1000);
    run("residual", residual, nodes, 0);
    run("convolutions", convolutions, nodes, 0);
  }
  return EXIT_SUCCESS;
}
