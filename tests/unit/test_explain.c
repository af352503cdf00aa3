// SPDX-License-Identifier: Apache-2.0
// Why a pattern does not match: each kind of demand, the numbers of what matched, the words and the edits.

#include "partition/explain.h"

#include "pattern_case.h"
#include "plan_case.h"
#include "unit.h"

static cleave_arena_t arena;

/* "2/3 path: subject is found, wanted expected => edit" lines, for the node that produces `anchor`. */
static const char *explain_at(const cleave_graph_t *graph, uint32_t root, const char *anchor,
                              uint32_t focus) {
  static char text[4096];
  cleave_pattern_t pattern = pattern_of(root);
  cleave_explainer_t *explainer = NULL;
  cleave_finding_t finding;
  unit_ok(cleave_pattern_check(&pattern, "test.lua", "test", e));
  unit_ok(cleave_explainer_create(graph, &explainer, e));
  unit_ok(cleave_explainer_set_pattern(explainer, &pattern, e));
  uint32_t position = cleave_explainer_position(explainer, plan_case_node(graph, anchor));
  unit_ok(cleave_explainer_explain(explainer, position, focus, &arena, &finding, e));
  ck_assert(finding.is_complete);
  size_t length = (size_t)snprintf(text, sizeof text, "%u/%u", finding.matched, finding.total);
  ck_assert_int_eq(finding.matches, finding.miss_count == 0 && finding.total > 0);
  for (uint32_t k = 0; k < finding.miss_count; k++) {
    const cleave_miss_t *miss = &finding.misses[k];
    length += (size_t)snprintf(text + length, sizeof text - length, "\n%s: %s is %s, wanted %s%s%s => %s",
                               miss->path, miss->subject, miss->found, miss->expected,
                               miss->detail[0] == '\0' ? "" : " ", miss->detail,
                               miss->edit == NULL ? "-" : miss->edit);
  }
  cleave_explainer_destroy(explainer);
  cleave_arena_deinit(&arena);
  return text;
}

#define expect_why(graph_text, root, anchor, wanted)                                   \
  do {                                                                                 \
    cleave_graph_t *graph_ = plan_case_graph(graph_text);                              \
    ck_assert_str_eq(explain_at(graph_, (root), (anchor), CLEAVE_INDEX_NONE), wanted); \
  } while (0)

static void test_attribute(uint32_t part, const char *name, double number) {
  static cleave_attribute_test_t test;
  static cleave_pattern_literal_t literal;
  static double numbers[1];
  numbers[0] = number;
  literal = (cleave_pattern_literal_t){.numbers = numbers, .count = 1};
  test = (cleave_attribute_test_t){
      .name = name, .kind = CLEAVE_ATTRIBUTE_TEST_EQUAL, .values = &literal, .value_count = 1};
  parts[part].attributes = &test;
  parts[part].attribute_count = 1;
}

UNIT_TEST(a_match_has_no_misses) {
  uint32_t chain = conv_chain();
  expect_why("c = Conv(x, $w); r = Relu(c); -> r", chain, "c", "1/1");
}

UNIT_TEST(another_operator_is_named_and_added) {
  uint32_t sequence = SEQUENCE(op("Conv", "conv"), op("Relu,Clip", "act"), op("MaxPool", "pool"));
  expect_why("c = Conv(x, $w); r = Gelu(c); p = MaxPool(r); -> p", sequence, "c",
             "2/3\nconv >> act: operator is Gelu, wanted Relu or Clip => "
             "op { { \"Relu\", \"Clip\", \"Gelu\" }, as = \"act\" }");
}

UNIT_TEST(what_is_missing_becomes_optional) {
  uint32_t sequence = SEQUENCE(op("Conv", "conv"), op("Relu", "act"), op("MaxPool", "pool"));
  expect_why("c = Conv(x, $w); p = MaxPool(c); -> p", sequence, "c",
             "2/3\nconv >> act: what reads conv is MaxPool, wanted Relu => maybe(act)");
}

UNIT_TEST(what_stands_in_between_is_let_pass) {
  uint32_t sequence = SEQUENCE(op("Conv", "conv"), op("Relu", "act"));
  expect_why(
      "c = Conv(x, $w); k = Cast{to=1}(c); r = Relu(k); -> r", sequence, "c",
      "2/2\nconv >> act: what stands before act is Cast, wanted nothing => >> maybe(op \"Cast\") >> act");
}

UNIT_TEST(attributes_are_compared_and_widened) {
  uint32_t conv = op("Conv", "conv");
  uint32_t sequence = SEQUENCE(conv, op("Relu", "act"));
  test_attribute(conv, "group", 1);
  expect_why("c = Conv{group=4}(x, $w); r = Relu(c); -> r", sequence, "c",
             "1/2\nconv: attribute group is 4, wanted 1 => attrs = { group = one_of { 1, 4 } }");
}

UNIT_TEST(users_outside_are_named) {
  uint32_t sequence = SEQUENCE(op("Conv", "conv"), op("Relu", "act"));
  expect_why("c = Conv(x, $w); r = Relu(c); p = MaxPool(c); -> r, p, c", sequence, "c",
             "1/2\nconv: what conv makes is read outside of the match, wanted read inside only "
             "by MaxPool 'p', the caller, as an output of the model => shared = true");
}

UNIT_TEST(a_constant_that_is_none_and_one_of_another_value) {
  uint32_t factor = constant(NULL);
  uint32_t mul = input(op("Mul", "mul"), ANY, factor);
  uint32_t sequence = SEQUENCE(op("Relu", "act"), mul);
  expect_why(
      "r = Relu(x); m = Mul(r, y); -> m", sequence, "r",
      "2/2\nact >> mul.inputs[1] > constant: constant is an input of the model, wanted a constant => any()");
  parts[factor].constant = (cleave_constant_test_t){.has_value = true, .value = 0.044715, .tolerance = 1e-5};
  expect_why(
      "r = Relu(x); m = Mul(r, #0.5); -> m", sequence, "r",
      "2/2\nact >> mul.inputs[1] > 0.044715: 0.044715 is 0.5, wanted 0.044715 within 1e-05 => constant()");
  expect_why(
      "r = Relu(x); m = Mul(r, #0.0448); -> m", sequence, "r",
      "2/2\nact >> mul.inputs[1] > 0.044715: 0.044715 is 0.0447999984, wanted 0.044715 within 1e-05 => "
      "value = 0.044715, tolerance = 9.3e-05");
}

UNIT_MAIN("explain")
