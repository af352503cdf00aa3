// SPDX-License-Identifier: Apache-2.0
// The explainer against the matcher, over random graphs and patterns: it says "matches" exactly where the
// matcher matches, what it names as the only cause is one (without that constraint the pattern matches), and
// an edit that it shows has matched.

#include "partition/explain/explain.h"
#include "partition/match/match.h"
#include "plan_case.h"
#include "random_case.h"
#include "unit.h"

enum { MAX_NODES = 24, MAX_PARTS = 24, GRAPHS = 400, PATTERNS = 6 };

static const cleave_op_id_t op_ids[] = {CLEAVE_OP_Add, CLEAVE_OP_Mul, CLEAVE_OP_Relu, CLEAVE_OP_Softmax,
                                        CLEAVE_OP_Sub};
enum { OP_COUNT = sizeof op_ids / sizeof op_ids[0] };

// ---- graphs ----

static cleave_graph_t *random_graph(void) {
  cleave_graph_t *graph = NULL;
  cleave_value_t values[MAX_NODES + 3];
  cleave_tensor_t *tensor = NULL;
  cleave_dim_t dims[2] = {2, 2};
  uint32_t count = 3;
  unit_ok(cleave_graph_create(&graph, e));
  unit_ok(cleave_graph_add_input(graph, "x", CLEAVE_DTYPE_F32, 2, dims, &values[0], e));
  unit_ok(cleave_graph_add_input(graph, "y", CLEAVE_DTYPE_F32, 2, dims, &values[1], e));
  unit_ok(cleave_tensor_create_float(0.5F, &tensor, e));
  unit_ok(cleave_graph_add_constant(graph, "half", tensor, &values[2], e));
  cleave_tensor_release(tensor);
  uint32_t nodes = 2 + random_below(MAX_NODES - 1);
  for (uint32_t n = 0; n < nodes; n++) {
    const cleave_op_t *op = cleave_op_get(op_ids[random_below(OP_COUNT)]);
    cleave_value_t inputs[2];
    for (uint32_t k = 0; k < 2; k++) {
      inputs[k] = random_chance(20) ? values[random_below(3)]
                                    : values[count - 1 - random_below(count < 4 ? count : 4)];
    }
    cleave_node_t node;
    unit_ok(cleave_graph_add_node(graph, op, NULL, inputs, op->input_count, 1, &node, e));
    if (op->id == CLEAVE_OP_Softmax) {
      unit_ok(cleave_graph_set_int(graph, node, "axis", (int64_t)random_below(3), e));
    }
    unit_ok(cleave_graph_set_type(graph, cleave_node_output(graph, node, 0),
                                  random_chance(85) ? CLEAVE_DTYPE_F32 : CLEAVE_DTYPE_F16, 2, dims, e));
    values[count++] = cleave_node_output(graph, node, 0);
  }
  for (uint32_t k = 3; k < count; k++) {
    if (cleave_graph_value(graph, values[k])->use_count == 0 || random_chance(5)) {
      unit_ok(cleave_graph_add_output(graph, "out", values[k], e));
    }
  }
  return graph;
}

// ---- patterns ----

static struct {
  cleave_pattern_node_t parts[MAX_PARTS];
  cleave_pattern_input_t inputs[MAX_PARTS][2];
  uint32_t children[MAX_PARTS][4];
  const cleave_op_t *ops[MAX_PARTS][2];
  cleave_attribute_test_t tests[MAX_PARTS];
  cleave_pattern_literal_t literals[MAX_PARTS];
  double numbers[MAX_PARTS];
  uint32_t count;
} made;

static uint32_t add_part(cleave_pattern_kind_t kind) {
  uint32_t part = made.count++;
  ck_assert_uint_lt(part, MAX_PARTS);
  made.parts[part] = (cleave_pattern_node_t){.kind = kind,
                                             .line = (int32_t)part + 1,
                                             .type.rank = -1,
                                             .inputs = made.inputs[part],
                                             .children = made.children[part]};
  return part;
}

static uint32_t random_op(uint32_t depth);

static void add_input(uint32_t part, uint32_t pattern) {
  made.inputs[part][made.parts[part].input_count++] =
      (cleave_pattern_input_t){CLEAVE_PATTERN_PORT_ANY, pattern};
}

static uint32_t random_op(uint32_t depth) {
  uint32_t part = add_part(CLEAVE_PATTERN_OP);
  cleave_pattern_node_t *node = &made.parts[part];
  node->op_count = 1 + random_below(2);
  node->ops = made.ops[part];
  for (uint32_t k = 0; k < node->op_count; k++) {
    made.ops[part][k] = cleave_op_get(op_ids[random_below(OP_COUNT)]);
  }
  node->shared = random_chance(10);
  if (made.ops[part][0]->id == CLEAVE_OP_Softmax && node->op_count == 1) {
    made.numbers[part] = random_below(3);
    made.literals[part] = (cleave_pattern_literal_t){.numbers = &made.numbers[part], .count = 1};
    made.tests[part] = (cleave_attribute_test_t){.name = "axis",
                                                 .kind = CLEAVE_ATTRIBUTE_TEST_EQUAL,
                                                 .values = &made.literals[part],
                                                 .value_count = 1};
    node->attributes = &made.tests[part];
    node->attribute_count = 1;
  }
  if (random_chance(15)) {
    node->type.dtypes = UINT32_C(1) << CLEAVE_DTYPE_F32;
  }
  if (depth > 0 && made.count + 4 < MAX_PARTS) {
    if (random_chance(25)) {
      add_input(part, add_part(random_chance(50) ? CLEAVE_PATTERN_CONSTANT : CLEAVE_PATTERN_VALUE));
    } else if (random_chance(25)) {
      add_input(part, random_op(depth - 1));
    }
  }
  return part;
}

static uint32_t random_pattern(void) {
  made.count = 0;
  uint32_t sequence = add_part(CLEAVE_PATTERN_SEQUENCE);
  uint32_t length = 1 + random_below(4);
  for (uint32_t k = 0; k < length; k++) {
    uint32_t child = random_op(1);
    if (k > 0 && random_chance(25) && made.count + 6 < MAX_PARTS) {
      uint32_t group = add_part(random_chance(50) ? CLEAVE_PATTERN_MAYBE : CLEAVE_PATTERN_ONEOF);
      made.children[group][0] = child;
      made.parts[group].child_count = 1;
      if (made.parts[group].kind == CLEAVE_PATTERN_ONEOF) {
        made.children[group][1] = random_op(0);
        made.parts[group].child_count = 2;
      }
      child = group;
    }
    made.children[sequence][k] = child;
    made.parts[sequence].child_count = k + 1;
    if (made.count + 8 >= MAX_PARTS) {
      break;
    }
  }
  return sequence;
}

// ---- checks ----

static bool matches(const cleave_graph_t *graph, const cleave_pattern_t *pattern, cleave_node_t anchor) {
  cleave_contraction_t *contraction = NULL;
  cleave_matcher_t *matcher = NULL;
  cleave_match_answer_t answer;
  unit_ok(cleave_contraction_create(graph, &contraction, e));
  unit_ok(cleave_matcher_create(contraction, &matcher, e));
  unit_ok(cleave_matcher_set_pattern(matcher, pattern, e));
  cleave_match_request_t request = {.anchor = contraction->positions[anchor.index], .step_limit = 100000};
  unit_ok(cleave_matcher_match(matcher, &request, &answer, e));
  bool found = answer.match != NULL;
  ck_assert(!answer.limit);
  cleave_matcher_destroy(matcher);
  cleave_contraction_destroy(contraction);
  return found;
}

/* The pattern without the one constraint that is at fault; false where this test has no way to say it. */
static bool without(const cleave_pattern_t *pattern, const cleave_mismatch_t *mismatch, cleave_pattern_t *out,
                    cleave_pattern_node_t *parts) {
  memcpy(parts, pattern->nodes, pattern->node_count * sizeof *parts);
  *out = *pattern;
  out->nodes = parts;
  if (mismatch->part == CLEAVE_INDEX_NONE) {
    return false;
  }
  cleave_pattern_node_t *part = &parts[mismatch->part];
  if (strcmp(mismatch->kind, "operator") == 0) {
    part->op_count = 0;
  } else if (strcmp(mismatch->kind, "attribute") == 0) {
    part->attribute_count = 0;
  } else if (strcmp(mismatch->kind, "dtype") == 0) {
    part->type.dtypes = 0;
  } else if (strcmp(mismatch->kind, "shared") == 0) {
    part->shared = true;
  } else if (strcmp(mismatch->kind, "constant") == 0) {
    part->kind = CLEAVE_PATTERN_VALUE;
  } else {
    return false;
  }
  return true;
}

UNIT_TEST(agrees_with_the_matcher_and_names_true_causes) {
  uint32_t agreed[2] = {0, 0};
  uint32_t flipped = 0;
  uint32_t fixed = 0;
  uint32_t single = 0;
  cleave_arena_t arena = {0};
  random_state = UINT64_C(88172645463325252);
  for (uint32_t g = 0; g < GRAPHS; g++) {
    cleave_graph_t *graph = random_graph();
    cleave_explainer_t *explainer = NULL;
    unit_ok(cleave_explainer_create(graph, &explainer, e));
    for (uint32_t p = 0; p < PATTERNS; p++) {
      uint32_t root = random_pattern();
      cleave_pattern_t pattern = {.nodes = made.parts, .node_count = made.count, .root = root};
      unit_ok(cleave_pattern_check(&pattern, "test.lua", "test", e));
      unit_ok(cleave_explainer_set_pattern(explainer, &pattern, e));
      for (uint32_t n = 0; n < cleave_graph_node_bound(graph); n++) {
        cleave_node_t node = {n};
        cleave_finding_t finding;
        cleave_pattern_node_t parts[MAX_PARTS];
        cleave_pattern_t other;
        uint32_t position = cleave_explainer_position(explainer, node);
        cleave_arena_reset(&arena);
        unit_ok(cleave_explainer_explain(explainer, position, CLEAVE_INDEX_NONE, CLEAVE_EXPLAIN_ALL, &arena,
                                         &finding, e));
        ck_assert(finding.is_complete);
        bool expected = matches(graph, &pattern, node);
        ck_assert_msg(finding.matches == expected, "graph %u, pattern %u, node %u: the matcher says %d", g, p,
                      n, (int)expected);
        agreed[expected]++;
        ck_assert_uint_le(finding.matched, finding.total);
        if (finding.mismatch_count != 1) {
          continue;
        }
        single++;
        fixed += finding.is_fixed;
        ck_assert(finding.is_fixed == (finding.mismatches[0].fix != NULL));
        if (without(&pattern, &finding.mismatches[0], &other, parts)) {
          flipped++;
          ck_assert_msg(matches(graph, &other, node), "graph %u, pattern %u, node %u: %s at %s is no cause",
                        g, p, n, finding.mismatches[0].kind, finding.mismatches[0].path);
        }
      }
    }
    cleave_explainer_destroy(explainer);
    cleave_graph_destroy(graph);
  }
  cleave_arena_deinit(&arena);
  ck_assert_uint_gt(agreed[0], 1000);
  ck_assert_uint_gt(agreed[1], 1000);
  ck_assert_uint_gt(flipped, 1000);
  ck_assert_uint_gt(fixed * 10, single * 9);  // most single causes have an edit
}

UNIT_SUITE("explain_random")
