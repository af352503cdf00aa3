// SPDX-License-Identifier: Apache-2.0
// Everything comes from one line of random numbers; callbacks answer by what they are asked, or by how often.
#include "random_rules.h"

#include "graph/order.h"
#include "random_case.h"
#include "unit.h"

enum { MAX_NODES = RANDOM_RULES_MAX_NODES, MAX_PARTS = 256 };

/* A number that depends on its arguments only, for callbacks. */
static uint32_t mix(uint64_t seed, uint32_t a, uint32_t b) {
  uint64_t x = seed * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)a * 0x85ebca6b + b;
  x ^= x >> 31;
  x *= UINT64_C(0xbf58476d1ce4e5b9);
  x ^= x >> 29;
  return (uint32_t)(x & 0x7fffffff);
}

static const cleave_op_id_t op_ids[] = {CLEAVE_OP_Add, CLEAVE_OP_Mul, CLEAVE_OP_Relu,
                                        CLEAVE_OP_Exp, CLEAVE_OP_Cos, CLEAVE_OP_TopK};
enum { OP_COUNT = sizeof op_ids / sizeof op_ids[0] };

static const cleave_op_t *random_op(void) {
  return cleave_op_get(op_ids[random_below(OP_COUNT)]);
}

static cleave_graph_t *random_graph(void) {
  cleave_graph_t *graph = NULL;
  cleave_value_t values[2 * MAX_NODES + 2];
  uint32_t count = 2;
  uint32_t nodes = 1 + random_below(MAX_NODES);
  uint32_t reach = random_chance(50) ? 4 : 2 * MAX_NODES; /* how far back inputs are taken from */
  cleave_dim_t dims[2] = {2, 2};
  unit_ok(cleave_graph_create(&graph, e));
  unit_ok(cleave_graph_add_input(graph, "x", CLEAVE_DTYPE_F32, 2, dims, &values[0], e));
  unit_ok(cleave_graph_add_input(graph, "y", CLEAVE_DTYPE_F32, 2, dims, &values[1], e));
  for (uint32_t n = 0; n < nodes; n++) {
    const cleave_op_t *op = random_op();
    uint32_t outputs = op->id == CLEAVE_OP_TopK ? 2 : 1;
    cleave_value_t inputs[2];
    for (uint32_t k = 0; k < 2; k++) {
      inputs[k] = values[count - 1 - random_below(reach < count ? reach : count)];
    }
    cleave_node_t node;
    unit_ok(cleave_graph_add_node(graph, op, NULL, inputs, op->input_count, outputs, &node, e));
    for (uint32_t k = 0; k < outputs; k++) {
      values[count++] = cleave_node_output(graph, node, k);
    }
  }
  for (uint32_t k = 2; k < count; k++) {
    if (cleave_graph_value(graph, values[k])->use_count == 0 || random_chance(8)) {
      unit_ok(cleave_graph_add_output(graph, "out", values[k], e));
    }
  }
  return graph;
}

// ---- rules ----

static cleave_status_t answer_supported(void *context, const cleave_graph_t *graph, cleave_node_t node,
                                        int64_t *out_group, cleave_error_t *error) {
  uint32_t number = mix((uint64_t)(uintptr_t)context, node.index, 1) % 6;
  (void)graph;
  (void)error;
  *out_group = number == 0 ? CLEAVE_GROUP_NONE : number == 1 ? CLEAVE_GROUP_ANY : (int64_t)number % 3;
  return CLEAVE_OK;
}

typedef struct selector {
  uint64_t seed;
  uint32_t asked;
} selector_t;

static cleave_status_t selector_create(void *context, const cleave_graph_t *graph, void **out_selector,
                                       cleave_error_t *error) {
  selector_t *selector = calloc(1, sizeof *selector);
  (void)graph;
  (void)error;
  selector->seed = (uint64_t)(uintptr_t)context;
  *out_selector = selector;
  return CLEAVE_OK;
}

static void selector_destroy(void *context, void *selector) {
  (void)context;
  free(selector);
}

static cleave_status_t selector_select(void *object, cleave_node_t node, bool *out_yes,
                                       cleave_error_t *error) {
  selector_t *selector = object;
  (void)error;
  *out_yes = mix(selector->seed, node.index, 2) % 3 != 0;
  return CLEAVE_OK;
}

/* Depends on how often it was asked: a selector with state. */
static cleave_status_t selector_neighbour(void *object, cleave_node_t node, cleave_node_t other,
                                          bool *out_yes, cleave_error_t *error) {
  selector_t *selector = object;
  (void)error;
  selector->asked++;
  *out_yes = mix(selector->seed, node.index * 64 + other.index, selector->asked) % 4 != 0;
  return CLEAVE_OK;
}

static cleave_status_t selector_filter(void *object, const cleave_node_t *candidates, uint32_t count,
                                       bool *keep, cleave_error_t *error) {
  selector_t *selector = object;
  (void)error;
  for (uint32_t k = 0; k < count; k++) {
    keep[k] = mix(selector->seed, candidates[k].index, 3) % 5 != 0;
  }
  return CLEAVE_OK;
}

static cleave_status_t selector_reset(void *object, cleave_error_t *error) {
  selector_t *selector = object;
  (void)error;
  selector->asked = 0;
  return CLEAVE_OK;
}

static const cleave_selector_functions_t selectors[2] = {
    {selector_create, selector_destroy, selector_select, selector_neighbour, selector_neighbour, NULL,
     selector_filter},
    {selector_create, selector_destroy, selector_select, selector_neighbour, selector_neighbour,
     selector_reset, NULL}};

/* Refuses, takes, or trims (the first time, or always), and gives an attribute. */
static cleave_status_t review(void *context, const cleave_proposal_t *proposal, cleave_review_t *review,
                              cleave_error_t *error) {
  static const cleave_attribute_t attribute = {.name = "lucky", .kind = CLEAVE_ATTRIBUTE_INT, .i = 7};
  (void)error;
  uint64_t random = mix((uint64_t)(uintptr_t)context, proposal->nodes[0].index, proposal->node_count);
  review->accept = random % 3 != 0;
  (void)snprintf(review->reason.text, sizeof review->reason.text, "%u inputs", proposal->input_count);
  for (uint32_t k = 0; random % 5 < 2 && k < proposal->node_count; k++) {
    review->keep[k] = mix(random, proposal->nodes[k].index, k) % 4 != 0;
  }
  review->attributes = &attribute;
  review->attribute_count = random % 2;
  return CLEAVE_OK;
}

static cleave_status_t where(void *context, const cleave_graph_t *graph, const cleave_match_t *match,
                             bool *out_accept, cleave_reason_t *reason, cleave_error_t *error) {
  (void)graph;
  (void)reason;
  (void)error;
  *out_accept = mix((uint64_t)(uintptr_t)context, match->nodes[0].index, match->node_count) % 4 != 0;
  return CLEAVE_OK;
}

static cleave_status_t supports(void *context, const char *backend, const cleave_graph_t *graph,
                                const cleave_fusion_set_t *set, bool *out_yes, cleave_reason_t *reason,
                                cleave_error_t *error) {
  (void)graph;
  (void)reason;
  (void)error;
  *out_yes =
      mix((uint64_t)(uintptr_t)context, set->nodes[0].index, set->node_count + (unsigned char)backend[0]) %
          6 !=
      0;
  return CLEAVE_OK;
}

typedef struct pattern_builder {
  cleave_pattern_t pattern;
  cleave_pattern_node_t nodes[MAX_PARTS];
  const cleave_op_t *ops[MAX_PARTS][2];
  cleave_pattern_input_t inputs[MAX_PARTS][2];
  uint32_t children[MAX_PARTS][4];
  uint32_t finished[MAX_PARTS]; /* operators and values that may be used again: no part contains itself */
  uint32_t finished_count;
  bool shared; /* some operator is */
} pattern_builder_t;

static uint32_t add_part(pattern_builder_t *builder, cleave_pattern_kind_t kind) {
  uint32_t index = builder->pattern.node_count++;
  ck_assert_uint_lt(index, MAX_PARTS);
  cleave_pattern_node_t *node = &builder->nodes[index];
  node->kind = kind;
  node->type.rank = -1;
  node->children = builder->children[index];
  node->inputs = builder->inputs[index];
  node->ops = builder->ops[index];
  return index;
}

static uint32_t random_pattern_op(pattern_builder_t *builder, uint32_t depth);

static uint32_t random_input(pattern_builder_t *builder, uint32_t depth) {
  static const char *const value_label = "v";
  if (builder->finished_count > 0 && random_chance(20)) {
    return builder->finished[random_below(builder->finished_count)];
  }
  if (depth > 1 || random_chance(50)) {
    uint32_t value = add_part(builder, CLEAVE_PATTERN_VALUE);
    builder->nodes[value].label = random_chance(20) ? value_label : NULL;
    builder->pattern.labels = &value_label;
    builder->pattern.label_count = 1;
    builder->finished[builder->finished_count++] = value;
    return value;
  }
  if (random_chance(40)) {
    uint32_t sequence = add_part(builder, CLEAVE_PATTERN_SEQUENCE);
    builder->nodes[sequence].child_count = 2;
    for (uint32_t k = 0; k < 2; k++) {
      uint32_t op = random_pattern_op(builder, depth + 2);
      if (random_chance(40)) {
        uint32_t maybe = add_part(builder, CLEAVE_PATTERN_MAYBE);
        builder->nodes[maybe].child_count = 1;
        builder->children[maybe][0] = op;
        op = maybe;
      }
      builder->children[sequence][k] = op;
    }
    return sequence;
  }
  return random_pattern_op(builder, depth + 1);
}

static uint32_t random_pattern_op(pattern_builder_t *builder, uint32_t depth) {
  uint32_t index = add_part(builder, CLEAVE_PATTERN_OP);
  cleave_pattern_node_t *node = &builder->nodes[index];
  node->op_count = random_below(3);
  for (uint32_t k = 0; k < node->op_count; k++) {
    builder->ops[index][k] = random_op();
  }
  node->shared = random_chance(8);
  builder->shared |= node->shared;
  uint32_t input_count = random_chance(35) ? 1 + random_below(2) : 0;
  for (uint32_t k = 0; k < input_count; k++) {
    uint32_t input = random_input(builder, depth);
    builder->inputs[index][k] =
        (cleave_pattern_input_t){random_chance(50) ? CLEAVE_PATTERN_PORT_ANY : k, input};
  }
  node->input_count = input_count;
  builder->finished[builder->finished_count++] = index;
  return index;
}

static void random_pattern(pattern_builder_t *builder) {
  memset(builder, 0, sizeof *builder);
  uint32_t root = add_part(builder, CLEAVE_PATTERN_SEQUENCE);
  uint32_t count = 1 + random_below(3);
  for (uint32_t k = 0; k < count; k++) {
    uint32_t part = random_pattern_op(builder, 0);
    uint32_t kind = random_below(6);
    if (kind < 3 && (k > 0 || kind != 0)) {
      uint32_t wrap = add_part(builder, kind == 0   ? CLEAVE_PATTERN_MAYBE
                                        : kind == 1 ? CLEAVE_PATTERN_REPEATED
                                                    : CLEAVE_PATTERN_ONEOF);
      builder->nodes[wrap].child_count = 1;
      builder->children[wrap][0] = part;
      builder->nodes[wrap].min = k == 0 ? 1 : random_below(2);
      builder->nodes[wrap].max = 1 + random_below(3);
      if (kind == 2) {
        builder->nodes[wrap].child_count = 2;
        builder->children[wrap][1] = random_pattern_op(builder, 1);
      }
      part = wrap;
    }
    builder->children[root][k] = part;
  }
  builder->nodes[root].child_count = count;
  builder->pattern.root = root;
  builder->pattern.nodes = builder->nodes;
}

static random_rules_t all;
static cleave_rule_t rules[2][RANDOM_RULES_MAX];
static pattern_builder_t patterns[2][RANDOM_RULES_MAX];
static const cleave_op_t *ops[2][RANDOM_RULES_MAX][3];

static void random_rule(uint32_t s, uint32_t r) {
  cleave_rule_t *rule = &rules[s][r];
  *rule = (cleave_rule_t){
      .name = r % 2 == 0 ? "even" : "odd", .doc = "", .file = "random", .line = (int32_t)(s * 10 + r)};
  rule->priority = (int32_t)random_below(3);
  rule->context = (void *)(uintptr_t)(1 + random_below(1000000));
  rule->kind = random_chance(50) ? CLEAVE_RULE_FUSE : CLEAVE_RULE_REGION;
  bool grows = rule->kind == CLEAVE_RULE_REGION || random_chance(30);
  all.is_closed[s][r] = false;
  if (!grows) {
    random_pattern(&patterns[s][r]);
    all.is_closed[s][r] = !patterns[s][r].shared;
    rule->pattern = &patterns[s][r].pattern;
    rule->where = random_chance(40) ? where : NULL;
    return;
  }
  rule->mode = (cleave_region_mode_t)random_below(4);
  if (rule->kind == CLEAVE_RULE_FUSE && rule->mode == CLEAVE_REGION_BACKEND) {
    rule->mode = CLEAVE_REGION_OPS;
  }
  rule->ops = ops[s][r];
  rule->op_count = 1 + random_below(3);
  for (uint32_t k = 0; k < rule->op_count; k++) {
    ops[s][r][k] = random_op();
  }
  rule->supported = answer_supported;
  rule->selector = &selectors[random_below(2)];
  rule->review = random_chance(25) ? review : NULL;
  rule->min_nodes = random_chance(25) ? random_below(4) : 0;
}

/* Up to four stages in topological order; nodes of the first have no number, which says the same. */
static cleave_status_t assign(void *context, const cleave_graph_t *graph, uint32_t *stages,
                              cleave_error_t *error) {
  cleave_node_t order[MAX_NODES];
  uint32_t n = (uint32_t)graph->live_node_count;
  uint32_t count = 1 + (uint32_t)(uintptr_t)context % (n < 4 ? n : 4);
  CLEAVE_TRY(cleave_graph_topological_order(graph, order, NULL, error));
  for (uint32_t k = 0; k < n; k++) {
    stages[order[k].index] = k * count / n > 0 ? k * count / n : CLEAVE_INDEX_NONE;
  }
  return CLEAVE_OK;
}

const random_rules_t *random_rules_draw(uint64_t seed) {
  random_state = seed;
  all.graph = random_graph();
  all.count = 1 + random_below(2);
  for (uint32_t s = 0; s < all.count; s++) {
    uint32_t count = 1 + random_below(RANDOM_RULES_MAX);
    for (uint32_t r = 0; r < count; r++) {
      random_rule(s, r);
    }
    if (s == 0 && (uintptr_t)rules[0][0].context % 5 == 0) {
      rules[0][0].kind = CLEAVE_RULE_STAGE;
      rules[0][0].assign = assign;
    }
    all.rulesets[s] = (cleave_ruleset_t){.name = s == 0 ? "first" : "second",
                                         .backend = random_chance(50) ? "alpha" : "beta",
                                         .file = "random",
                                         .rules = rules[s],
                                         .rule_count = count};
    all.list[s] = &all.rulesets[s];
  }
  all.options = (cleave_partition_options_t){.supports = random_chance(50) ? supports : NULL};
  all.options.backend_context = (void *)(uintptr_t)(1 + random_below(1000000));
  return &all;
}
