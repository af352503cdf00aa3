// SPDX-License-Identifier: Apache-2.0
// The matcher: forwards, backwards, alternatives, labels, attributes, types, constants, and what blocks a
// match. And the check of patterns.

#include "partition/match/match.h"

#include "pattern_case.h"
#include "plan_case.h"
#include "unit.h"

/* The first match at the node that produces `anchor`: "label=node ..." in topological order, then values of
 * labels that are no nodes; "" for none. */
static const char *match_at(const cleave_graph_t *graph, uint32_t root, const char *anchor) {
  static char text[1024];
  cleave_pattern_t pattern = pattern_of(root);
  cleave_contraction_t *contraction = NULL;
  cleave_matcher_t *matcher = NULL;
  unit_ok(cleave_pattern_check(&pattern, "test.lua", "test", e));
  unit_ok(cleave_contraction_create(graph, &contraction, e));
  unit_ok(cleave_matcher_create(contraction, &matcher, e));
  unit_ok(cleave_matcher_set_pattern(matcher, &pattern, e));
  cleave_match_request_t request = {.anchor = contraction->positions[plan_case_node(graph, anchor).index],
                                    .step_limit = 100000};
  cleave_match_answer_t answer;
  unit_ok(cleave_matcher_match(matcher, &request, &answer, e));
  ck_assert(!answer.limit);
  text[0] = '\0';
  size_t length = 0;
  for (uint32_t k = 0; answer.match != NULL && k < answer.match->node_count; k++) {
    const char *name = cleave_value_name(graph, cleave_node_output(graph, answer.match->nodes[k], 0));
    const char *label = answer.match->node_labels[k];
    length += (size_t)snprintf(text + length, sizeof text - length, "%s%s%s%s", k == 0 ? "" : " ", label,
                               label[0] == '\0' ? "" : "=", name);
  }
  for (uint32_t k = 0; answer.match != NULL && k < pattern.label_count; k++) {
    if (cleave_value_exists(answer.match->label_values[k]) &&
        !cleave_node_exists(answer.match->label_nodes[k])) {
      length += (size_t)snprintf(text + length, sizeof text - length, " %s:%s", pattern.labels[k],
                                 cleave_value_name(graph, answer.match->label_values[k]));
    }
  }
  cleave_matcher_destroy(matcher);
  cleave_contraction_destroy(contraction);
  return text;
}

#define expect_match(graph_text, root, anchor, wanted)            \
  do {                                                            \
    cleave_graph_t *graph_ = plan_case_graph(graph_text);         \
    ck_assert_str_eq(match_at(graph_, (root), (anchor)), wanted); \
  } while (0)

// ---- sequences ----

UNIT_TEST(a_sequence_takes_the_longest_match) {
  uint32_t chain = conv_chain();
  expect_match("c = Conv(x, $w); -> c", chain, "c", "conv=c");
  expect_match("c = Conv(x, $w); r = Relu(c); -> r", chain, "c", "conv=c act=r");
  expect_match("c = Conv(x, $w); b = BatchNormalization(c, $s, $b, $m, $v); r = Clip(b); -> r", chain, "c",
               "conv=c bn=b act=r");
  expect_match("c = Conv(x, $w); a = Add(c, y); r = Relu(a); s = Sigmoid(r); -> s", chain, "c",
               "conv=c sum=a act=r residual:y");
  expect_match("c = Conv(x, $w); a = Add(y, c); -> a", chain, "c", "conv=c sum=a residual:y");
  expect_match("c = Conv(x, $w); e = Exp(c); -> e", chain, "c", "conv=c");
}

UNIT_TEST(a_value_used_elsewhere_or_leaving_the_graph_ends_the_sequence) {
  uint32_t chain = conv_chain();
  expect_match("c = Conv(x, $w); r = Relu(c); p = MaxPool(c); -> r, p", chain, "c", "conv=c");
  expect_match("c = Conv(x, $w); r = Relu(c); -> c, r", chain, "c", "conv=c");
  expect_match("c = Conv(x, $w); r = Relu(c); -> r, c", chain, "c", "conv=c");
  expect_match(
      "c = Conv(x, $w); b = BatchNormalization(c, $s, $b, $m, $v); r = Relu(b); p = MaxPool(b); -> r, p",
      chain, "c", "conv=c bn=b");
  // z = c, b or s of the sum
  expect_match(
      "c = Conv(x, $w); b = BatchNormalization(c, $s, $b, $m, $v); s = Add(b, y); r = Relu(s); "
      "p = MaxPool(s); -> r, p",
      chain, "c", "conv=c bn=b sum=s residual:y");
  uint32_t strict = SEQUENCE(op("Conv", "conv"), op("Relu", "act"));
  expect_match("c = Conv(x, $w); r = Relu(c); p = MaxPool(c); -> r, p", strict, "c", "");
}

UNIT_TEST(statistics_of_a_batch_norm_that_are_used_block_it) {
  uint32_t chain = conv_chain();
  expect_match("c = Conv(x, $w); b, m = BatchNormalization(c, $s, $b, $m, $v); r = Relu(b); -> r", chain, "c",
               "conv=c bn=b act=r");
  expect_match("c = Conv(x, $w); b, m = BatchNormalization(c, $s, $b, $m, $v); r = Relu(b); -> r, m", chain,
               "c", "conv=c");
}

UNIT_TEST(an_edge_that_the_pattern_does_not_name_blocks_a_match) {
  uint32_t chain = conv_chain();
  // add(c, c): the residual would be the convolution itself.
  expect_match("c = Conv(x, $w); a = Add(c, c); -> a", chain, "c", "conv=c");
  // bn(c) + c
  expect_match("c = Conv(x, $w); b = BatchNormalization(c, $s, $b, $m, $v); a = Add(b, c); -> a", chain, "c",
               "conv=c");
  uint32_t open = SEQUENCE(op("Conv", "conv"), op("Add", "sum"));
  expect_match("c = Conv(x, $w); a = Add(c, c); -> a", open, "c", "");
  expect_match("c = Conv(x, $w); d = Conv(x, $w); a = Add(c, d); -> a", open, "c", "conv=c sum=a");
  expect_match("c = Conv(x, $w); d = Conv(x, $w); a = Add(c, d); -> a", open, "d", "conv=d sum=a");
}

UNIT_TEST(a_residual_may_be_what_the_product_reads_and_a_result_may_be_used_twice) {
  uint32_t chain = SEQUENCE(op("Gemm", "fc"), input(op("Add", "sum"), ANY, value("residual")));
  expect_match("c = Gemm(x, $w); a = Add(c, x); -> a", chain, "c", "fc=c sum=a residual:x");
  expect_match("c = Gemm(x, $w); a = Add(x, c); p = Mul(a, a); -> p, a", chain, "c", "fc=c sum=a residual:x");
  uint32_t power = SEQUENCE(op("Pow", "pow"), input(op("Mul", "mul"), ANY, constant("factor")));
  expect_match("p = Pow(x, $e); m = Mul(p, $f); u = Relu(m); v = Exp(m); -> u, v", power, "p",
               "pow=p mul=m factor:f");
  expect_match("p = Pow(x, $e); m = Mul(p, $f); u = Relu(p); -> u, m", power, "p", "");
}

UNIT_TEST(a_shared_operator_may_be_used_outside) {
  uint32_t conv = op("Conv", "conv");
  uint32_t sequence = SEQUENCE(conv, op("Relu", "act"));
  parts[conv].shared = true;
  expect_match("c = Conv(x, $w); r = Relu(c); p = MaxPool(c); -> r, p, c", sequence, "c", "conv=c act=r");
}

UNIT_TEST(repetitions_are_longest_first_and_bounded) {
  uint32_t sequence = SEQUENCE(op("Conv", "conv"), repeated(op("Relu", "act"), 1, 3));
  expect_match("c = Conv(x, $w); -> c", sequence, "c", "");
  expect_match("c = Conv(x, $w); a = Relu(c); -> a", sequence, "c", "conv=c act=a");
  expect_match("c = Conv(x, $w); a = Relu(c); b = Relu(a); d = Relu(b); f = Relu(d); -> f", sequence, "c",
               "conv=c act=a act=b act=d");
  uint32_t chain = SEQUENCE(repeated(op("Add,Mul", NULL), 1, 1000), op("Relu", "act"));
  expect_match("a = Add(x, y); b = Mul(a, z); c = Add(w, b); r = Relu(c); -> r", chain, "a", "a b c act=r");
}

UNIT_TEST(oneof_takes_the_first_way_that_lets_all_match) {
  uint32_t sequence = SEQUENCE(op("Conv", "conv"), ONEOF(op("Relu", "first"), op("Relu,Exp", "second")),
                               op("MaxPool", "pool"));
  expect_match("c = Conv(x, $w); r = Relu(c); p = MaxPool(r); -> p", sequence, "c", "conv=c first=r pool=p");
  expect_match("c = Conv(x, $w); r = Exp(c); p = MaxPool(r); -> p", sequence, "c", "conv=c second=r pool=p");
  uint32_t anchors = ONEOF(SEQUENCE(op("Conv", "conv"), op("Relu", "act")), op("Gemm", "gemm"));
  expect_match("c = Conv(x, $w); r = Relu(c); g = Gemm(r, $w); -> g", anchors, "g", "gemm=g");
  expect_match("c = Conv(x, $w); r = Relu(c); g = Gemm(r, $w); -> g", anchors, "c", "conv=c act=r");
}

UNIT_TEST(a_value_can_lead_a_sequence) {
  uint32_t sequence = SEQUENCE(constant("w"), input(op("Add", "add"), ANY, value("x")), op("Relu", "act"));
  expect_match("a = Add(x, $w); r = Relu(a); -> r", sequence, "a", "add=a act=r w:w x:x");
  expect_match("a = Add(x, y); r = Relu(a); -> r", sequence, "a", "");
}

// ---- inputs ----

/* x * sigmoid(x) */
static uint32_t swish(void) {
  uint32_t x = value("x");
  return input(input(op("Mul", "mul"), 0, x), 1, input(op("Sigmoid", "sigmoid"), 0, x));
}

UNIT_TEST(a_part_that_is_reached_twice_is_one_value) {
  uint32_t pattern = swish();
  expect_match("s = Sigmoid(x); m = Mul(x, s); -> m", pattern, "m", "sigmoid=s mul=m x:x");
  expect_match("s = Sigmoid(x); m = Mul(s, x); -> m", pattern, "m", "sigmoid=s mul=m x:x");
  expect_match("s = Sigmoid(x); m = Mul(s, y); -> m", pattern, "m", "");
}

UNIT_TEST(an_operator_that_is_reached_twice_is_one_node) {
  uint32_t conv = op("Conv", "conv");
  uint32_t sigmoid = input(op("Sigmoid", "sigmoid"), 0, conv);
  uint32_t pattern = input(input(op("Mul", "mul"), 0, conv), 1, sigmoid);
  expect_match("c = Conv(x, $w); s = Sigmoid(c); m = Mul(c, s); -> m", pattern, "m",
               "conv=c sigmoid=s mul=m");
  expect_match("c = Conv(x, $w); d = Conv(x, $w); s = Sigmoid(d); m = Mul(c, s); -> m", pattern, "m", "");
  expect_match("c = Conv(x, $w); s = Sigmoid(c); m = Mul(c, s); -> m, c", pattern, "m", "");
}

UNIT_TEST(a_label_used_twice_is_the_same_value) {
  uint32_t sigmoid = input(op("Sigmoid", NULL), 0, value("x"));
  uint32_t pattern = input(input(op("Mul", "mul"), ANY, value("x")), ANY, sigmoid);
  expect_match("s = Sigmoid(x); m = Mul(x, s); -> m", pattern, "m", "s mul=m x:x");
  expect_match("s = Sigmoid(x); m = Mul(s, x); -> m", pattern, "m", "s mul=m x:x");
  expect_match("s = Sigmoid(x); m = Mul(y, s); -> m", pattern, "m", "");
}

UNIT_TEST(a_value_may_name_the_output_of_an_operator) {
  uint32_t pattern = SEQUENCE(op("Conv", "c"), op("Sigmoid", NULL), input(op("Mul", NULL), ANY, value("c")));
  expect_match("c = Conv(x, $w); s = Sigmoid(c); m = Mul(s, c); -> m", pattern, "c", "c=c s m");
  expect_match("c = Conv(x, $w); s = Sigmoid(c); m = Mul(c, s); -> m", pattern, "c", "c=c s m");
  expect_match("c = Conv(x, $w); s = Sigmoid(c); m = Mul(y, s); -> m", pattern, "c", "");
}

UNIT_TEST(different_operators_of_a_pattern_take_different_nodes) {
  uint32_t pattern = input(input(op("Add", "add"), 0, op("Relu", "a")), 1, op("Relu", "b"));
  expect_match("p = Relu(x); q = Relu(y); s = Add(p, q); -> s", pattern, "s", "a=p b=q add=s");
  expect_match("p = Relu(x); s = Add(p, p); -> s", pattern, "s", "");
}

UNIT_TEST(only_commutative_operators_match_in_both_orders) {
  uint32_t c = constant("c");
  uint32_t x = value("x");
  uint32_t add = input(input(op("Add", "op"), 0, c), 1, x);
  uint32_t sub = input(input(op("Sub", "op"), 0, c), 1, x);
  expect_match("a = Add(x, $w); -> a", add, "a", "op=a c:w x:x");
  expect_match("a = Add($w, x); -> a", add, "a", "op=a c:w x:x");
  expect_match("a = Sub($w, x); -> a", sub, "a", "op=a c:w x:x");
  expect_match("a = Sub(x, $w); -> a", sub, "a", "");
}

UNIT_TEST(ports_are_named_and_optional_ones_may_be_left_out) {
  uint32_t weight = constant("w");
  uint32_t bias = maybe(constant("b"));
  uint32_t conv = input(input(op("Conv", "conv"), 1, weight), 2, bias);
  expect_match("c = Conv(x, $w); -> c", conv, "c", "conv=c w:w");
  expect_match("c = Conv(x, $w, $v); -> c", conv, "c", "conv=c w:w b:v");
  expect_match("c = Conv(x, $w, y); -> c", conv, "c", "conv=c w:w");
  expect_match("c = Conv(x, y, $v); -> c", conv, "c", "");
  uint32_t clip = op("Clip", "clip");
  uint32_t strict = input(clip, 2, constant("max"));
  expect_match("c = Clip(x, $l, $h); -> c", strict, "c", "clip=c max:h");
  expect_match("c = Clip(x, _, $h); -> c", strict, "c", "clip=c max:h");
  expect_match("c = Clip(x, $l); -> c", strict, "c", "");
}

/* Gelu as exporters spell it: 0.5 * x * (1 + erf(x / sqrt 2)). */
UNIT_TEST(gelu_matches_backwards_from_its_last_product) {
  uint32_t x = value("x");
  uint32_t sqrt2 = constant(NULL);
  uint32_t one = constant(NULL);
  uint32_t half = constant(NULL);
  parts[sqrt2].constant =
      (cleave_constant_test_t){.scalar = true, .has_value = true, .value = 1.41421356, .tolerance = 1e-4};
  parts[one].constant = (cleave_constant_test_t){.scalar = true, .has_value = true, .value = 1.0};
  parts[half].constant = (cleave_constant_test_t){.scalar = true, .has_value = true, .value = 0.5};
  uint32_t div = input(input(op("Div", NULL), 0, x), 1, sqrt2);
  uint32_t sum = input(input(op("Add", NULL), 0, input(op("Erf", NULL), 0, div)), 1, one);
  uint32_t product = input(input(op("Mul", NULL), 0, x), 1, sum);
  uint32_t gelu = input(input(op("Mul", "gelu"), 0, product), 1, half);
  const char *text =
      "d = Div(x, #1.4142135); f = Erf(d); a = Add(f, #1.0); m = Mul(x, a); g = Mul(m, #0.5); -> g";
  expect_match(text, gelu, "g", "d f a m gelu=g x:x");
  expect_match("d = Div(x, #1.4142135); f = Erf(d); a = Add(#1.0, f); m = Mul(a, x); g = Mul(#0.5, m); -> g",
               gelu, "g", "d f a m gelu=g x:x");
  expect_match("d = Div(x, #1.4142135); f = Erf(d); a = Add(f, #1.0); m = Mul(x, a); g = Mul(m, #0.6); -> g",
               gelu, "g", "");
  expect_match("d = Div(y, #1.4142135); f = Erf(d); a = Add(f, #1.0); m = Mul(x, a); g = Mul(m, #0.5); -> g",
               gelu, "g", "");
  expect_match(
      "d = Div(x, #1.4142135); f = Erf(d); a = Add(f, #1.0); m = Mul(x, a); g = Mul(m, #0.5); -> g, a", gelu,
      "g", "");
}

UNIT_TEST(a_sequence_matches_backwards_as_an_input) {
  uint32_t branch = SEQUENCE(op("Conv", "conv"), maybe(op("BatchNormalization", "bn")), op("Relu", "act"));
  uint32_t add = input(op("Add", "add"), 0, branch);
  expect_match("c = Conv(x, $w); r = Relu(c); a = Add(y, r); -> a", add, "a", "conv=c act=r add=a");
  expect_match("c = Conv(x, $w); b = BatchNormalization(c, $s, $b, $m, $v); r = Relu(b); a = Add(r, y); -> a",
               add, "a", "conv=c bn=b act=r add=a");
  expect_match("b = BatchNormalization(x, $s, $b, $m, $v); r = Relu(b); a = Add(r, y); -> a", add, "a", "");
  uint32_t many =
      input(op("Concat", "concat"), ANY, SEQUENCE(repeated(op("Exp", NULL), 0, 4), op("Mul", "mul")));
  expect_match("p = Exp(x); q = Exp(p); m = Mul(z, q); k = Concat{axis=0}(y, m); -> k", many, "k",
               "p q mul=m concat=k");
  expect_match("m = Mul(z, q); k = Concat{axis=0}(y, m); -> k", many, "k", "mul=m concat=k");
}

UNIT_TEST(a_choice_that_is_reached_twice_ends_in_one_value) {
  uint32_t conv = op("Conv", "conv");
  uint32_t normed = ONEOF(input(op("BatchNormalization", "bn"), 0, conv), conv);
  uint32_t swish_of = input(input(op("Mul", "mul"), 0, normed), 1, input(op("Sigmoid", NULL), 0, normed));
  expect_match("c = Conv(x, $w); s = Sigmoid(c); m = Mul(c, s); -> m", swish_of, "m", "conv=c s mul=m");
  expect_match(
      "c = Conv(x, $w); b = BatchNormalization(c, $p, $q, $r, $v); s = Sigmoid(b); m = Mul(s, b); -> m",
      swish_of, "m", "conv=c bn=b s mul=m");
  expect_match(
      "c = Conv(x, $w); b = BatchNormalization(c, $p, $q, $r, $v); s = Sigmoid(b); m = Mul(c, s); -> m",
      swish_of, "m", "");
  expect_match(
      "c = Conv(x, $w); b = BatchNormalization(c, $p, $q, $r, $v); s = Sigmoid(c); m = Mul(b, s); -> m",
      swish_of, "m", "");
}

UNIT_TEST(a_part_before_that_may_be_missing_is_looked_for_on_every_input) {
  uint32_t sum = input(op("Concat", "concat"), ANY, SEQUENCE(maybe(op("Exp", "exp")), op("Mul", "mul")));
  expect_match("p = Exp(x); m = Mul(z, p); k = Concat{axis=0}(y, m); -> k", sum, "k", "exp=p mul=m concat=k");
}

// ---- tests of nodes and values ----

UNIT_TEST(attributes_are_compared_with_schema_defaults) {
  static const double one = 1.0;
  static const double strides[2] = {2.0, 2.0};
  static const double alpha = 0.01;
  static const cleave_pattern_literal_t literals[4] = {{.numbers = &one, .count = 1},
                                                       {.numbers = strides, .count = 2, .is_list = true},
                                                       {.numbers = &alpha, .count = 1},
                                                       {.text = "NOTSET"}};
  cleave_attribute_test_t test = {
      .name = "group", .kind = CLEAVE_ATTRIBUTE_TEST_EQUAL, .values = literals, .value_count = 1};
  uint32_t conv = op("Conv,LeakyRelu", "op");
  parts[conv].attributes = &test;
  parts[conv].attribute_count = 1;
  expect_match("c = Conv(x, $w); -> c", conv, "c", "op=c");
  expect_match("c = Conv{group=1}(x, $w); -> c", conv, "c", "op=c");
  expect_match("c = Conv{group=2}(x, $w); -> c", conv, "c", "");
  test = (cleave_attribute_test_t){.name = "strides", .values = literals, .value_count = 2};
  expect_match("c = Conv{strides=[2,2]}(x, $w); -> c", conv, "c", "op=c");
  expect_match("c = Conv{strides=[2,1]}(x, $w); -> c", conv, "c", "");
  expect_match("c = Conv(x, $w); -> c", conv, "c", "");
  test.or_absent = true;
  expect_match("c = Conv(x, $w); -> c", conv, "c", "op=c");
  expect_match("c = Conv{strides=[2,2]}(x, $w); -> c", conv, "c", "op=c");
  expect_match("c = Conv{strides=[2,1]}(x, $w); -> c", conv, "c", "");
  test = (cleave_attribute_test_t){.name = "alpha", .values = literals + 2, .value_count = 1};
  expect_match("c = LeakyRelu(x); -> c", conv, "c", "op=c");
  expect_match("c = LeakyRelu{alpha=0.02}(x); -> c", conv, "c", "");
  test = (cleave_attribute_test_t){.name = "auto_pad", .values = literals, .value_count = 4};
  expect_match("c = Conv(x, $w); -> c", conv, "c", "op=c");
  expect_match("c = Conv{auto_pad=VALID}(x, $w); -> c", conv, "c", "");
  test = (cleave_attribute_test_t){
      .name = "alpha", .kind = CLEAVE_ATTRIBUTE_TEST_RANGE, .low = 0.0, .high = 0.5};
  expect_match("c = LeakyRelu(x); -> c", conv, "c", "op=c");
  expect_match("c = LeakyRelu{alpha=0.6}(x); -> c", conv, "c", "");
  test = (cleave_attribute_test_t){.name = "strides", .kind = CLEAVE_ATTRIBUTE_TEST_ABSENT};
  expect_match("c = Conv(x, $w); -> c", conv, "c", "op=c");
  expect_match("c = Conv{strides=[2,2]}(x, $w); -> c", conv, "c", "");
}

UNIT_TEST(types_shapes_and_symbols_are_tested) {
  cleave_dim_test_t dims[2] = {{-1, "N", NULL}, {-1, "N", NULL}};
  uint32_t relu = op("Relu", "op");
  parts[relu].type = (cleave_type_test_t){.dtypes = 1u << CLEAVE_DTYPE_F32, .rank = 2, .dims = dims};
  expect_match("r = Relu(x); -> r", relu, "r", "op=r");
  dims[1] = (cleave_dim_test_t){3, NULL, NULL};
  expect_match("r = Relu(x); -> r", relu, "r", "");
  dims[1] = (cleave_dim_test_t){2, NULL, NULL};
  expect_match("r = Relu(x); -> r", relu, "r", "op=r");
  parts[relu].type.dtypes = 1u << CLEAVE_DTYPE_F16;
  expect_match("r = Relu(x); -> r", relu, "r", "");
  parts[relu].type = (cleave_type_test_t){.rank = 3};
  expect_match("r = Relu(x); -> r", relu, "r", "");
  // One symbol over two values: sizes that are not known cannot be known to agree.
  cleave_graph_t *graph = plan_case_graph("r = Relu(x); s = Exp(r); -> s");
  uint32_t first = op("Relu", "a");
  uint32_t second = op("Exp", "b");
  cleave_dim_test_t symbol[1] = {{-1, "C", NULL}};
  parts[first].type = parts[second].type = (cleave_type_test_t){.rank = 1, .dims = symbol};
  uint32_t pair = SEQUENCE(first, second);
  const int64_t sizes[4][2] = {{4, 4}, {4, 5}, {-1, -1}, {-1, 4}};
  for (uint32_t k = 0; k < 4; k++) {
    cleave_value_t r = cleave_node_output(graph, plan_case_node(graph, "r"), 0);
    cleave_value_t s = cleave_node_output(graph, plan_case_node(graph, "s"), 0);
    unit_ok(cleave_graph_set_type(graph, r, CLEAVE_DTYPE_F32, 1, &sizes[k][0], e));
    unit_ok(cleave_graph_set_type(graph, s, CLEAVE_DTYPE_F32, 1, &sizes[k][1], e));
    ck_assert_str_eq(match_at(graph, pair, "r"), k == 0 ? "a=r b=s" : "");
  }
}

UNIT_TEST(constants_are_tested_by_content) {
  uint32_t c = constant("c");
  uint32_t mul = input(op("Mul", "op"), ANY, c);
  parts[c].constant = (cleave_constant_test_t){.all_equal = true};
  expect_match("m = Mul(x, #3.0); -> m", mul, "m", "op=m c:3.0");
  expect_match("m = Mul(x, $w); -> m", mul, "m", "");
  parts[c].constant = (cleave_constant_test_t){.scalar = true};
  expect_match("m = Mul(x, $w); -> m", mul, "m", "");
  parts[c].constant = (cleave_constant_test_t){.has_value = true, .value = 3.01, .tolerance = 0.02};
  expect_match("m = Mul(x, #3.0); -> m", mul, "m", "op=m c:3.0");
  expect_match("m = Mul(x, #2.9); -> m", mul, "m", "");
}

// ---- structure ----

static const char *check_message(uint32_t root) {
  static cleave_error_t error;
  error = (cleave_error_t)CLEAVE_ERROR_INIT;
  cleave_pattern_t pattern = pattern_of(root);
  ck_assert_int_eq(cleave_pattern_check(&pattern, "test.lua", "f", &error), CLEAVE_ERROR_RULE);
  return error.message;
}

UNIT_TEST(broken_patterns_are_refused_with_their_line) {
  uint32_t loop = op("Relu", NULL);
  input(loop, 0, loop);
  ck_assert_str_eq(check_message(loop), "test.lua:1: fuse 'f': pattern contains itself");
  ck_assert_str_eq(check_message(maybe(op("Relu", NULL))),
                   "test.lua:3: fuse 'f': pattern must begin with an operator");
  ck_assert_str_eq(check_message(repeated(maybe(op("Relu", NULL)), 1, 2)),
                   "test.lua:6: fuse 'f': 'repeated' needs an operator in it");
  ck_assert_str_eq(check_message(repeated(op("Relu", NULL), 3, 2)),
                   "test.lua:8: fuse 'f': 'repeated' needs 1 <= max and min <= max");
  ck_assert_str_eq(check_message(SEQUENCE(op("Relu", NULL), value(NULL))),
                   "test.lua:11: fuse 'f': only the first part of a sequence can be a value");
  uint32_t deep = op("Relu", NULL);
  for (uint32_t k = 0; k < PATTERN_CASE_MAX_PARTS / 2; k++) {
    deep = group(CLEAVE_PATTERN_SEQUENCE, 1, &deep);
  }
  cleave_pattern_t pattern = pattern_of(deep);
  unit_ok(cleave_pattern_check(&pattern, "test.lua", "f", e));
  ck_assert_str_eq(check_message(input(op("Relu", NULL), 0, 4000)),
                   "test.lua:45: fuse 'f': pattern refers to a part that does not exist");
}

UNIT_SUITE("match")
