// SPDX-License-Identifier: Apache-2.0
// Why a pattern does not match: each kind of constraint, the numbers of what matched, the words and the
// edits.

#include "partition/explain/explain.h"

#include "base/memory.h"
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
  unit_ok(cleave_explainer_explain(explainer, position, focus, CLEAVE_EXPLAIN_ALL, &arena, &finding, e));
  ck_assert(finding.is_complete);
  size_t length = (size_t)snprintf(text, sizeof text, "%u/%u", finding.matched, finding.total);
  ck_assert_int_eq(finding.matches, finding.mismatch_count == 0 && finding.total > 0);
  for (uint32_t k = 0; k < finding.mismatch_count; k++) {
    const cleave_mismatch_t *mismatch = &finding.mismatches[k];
    length += (size_t)snprintf(text + length, sizeof text - length, "\n%s: %s is %s, wanted %s%s%s => %s",
                               mismatch->path, mismatch->subject, mismatch->found, mismatch->expected,
                               mismatch->detail[0] == '\0' ? "" : " ", mismatch->detail,
                               mismatch->fix == NULL ? "-" : mismatch->fix);
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

UNIT_TEST(several_faults_are_told_in_the_order_of_the_pattern) {
  uint32_t conv = op("Conv", "conv");
  uint32_t sequence = SEQUENCE(conv, op("Relu", "act"), op("MaxPool", "pool"), op("Softmax", "end"));
  test_attribute(conv, "group", 1);
  expect_why("c = Conv{group=4}(x, $w); r = Gelu(c); p = MaxPool(r); s = Softmax(p); -> s", sequence, "c",
             "2/4\nconv >> act: operator is Gelu, wanted Relu => op { { \"Relu\", \"Gelu\" }, as = \"act\" }"
             "\nconv: attribute group is 4, wanted 1 => attrs = { group = one_of { 1, 4 } }");
}

UNIT_TEST(what_is_not_there_at_all_ends_the_count) {
  uint32_t sequence = SEQUENCE(op("Conv", "conv"), op("Relu", "act"), op("MaxPool", "pool"));
  expect_why(
      "c = Conv(x, $w); -> c", sequence, "c",
      "1/3\nconv >> act: what reads conv is nothing: it is an output of the model, wanted Relu => maybe(act)"
      "\nact >> pool: what reads act is nothing: it is an output of the model, wanted MaxPool => "
      "maybe(pool)");
}

UNIT_TEST(the_anchor_may_be_of_another_operator) {
  uint32_t sequence = SEQUENCE(op("Conv", "conv"), op("Relu", "act"));
  expect_why("c = ConvTranspose(x, $w); r = Relu(c); -> r", sequence, "c",
             "1/2\nconv: operator is ConvTranspose, wanted Conv => "
             "op { { \"Conv\", \"ConvTranspose\" }, as = \"conv\" }");
}

UNIT_TEST(types_and_shapes_say_what_is_there) {
  uint32_t conv = op("Conv", "conv");
  uint32_t sequence = SEQUENCE(conv, op("Relu", "act"));
  cleave_graph_t *graph = plan_case_graph("c = Conv(x, $w); r = Relu(c); -> r");
  cleave_value_t output = cleave_node_output(graph, plan_case_node(graph, "c"), 0);
  unit_ok(cleave_graph_set_type(graph, output, CLEAVE_DTYPE_F16, 2, (cleave_dim_t[]){2, 24}, e));
  parts[conv].type.dtypes = UINT32_C(1) << CLEAVE_DTYPE_F32;
  ck_assert_str_eq(explain_at(graph, sequence, "c", CLEAVE_INDEX_NONE),
                   "1/2\nconv: dtype is float16, wanted float32 => dtype = { \"float32\", \"float16\" }");
  parts[conv].type = (cleave_type_test_t){.rank = 4};
  ck_assert_str_eq(explain_at(graph, sequence, "c", CLEAVE_INDEX_NONE),
                   "1/2\nconv: rank is 2, wanted 4 => -- without rank");
  const cleave_dim_test_t dims[2] = {{.size = -1, .symbol = "N"}, {.size = 32}};
  parts[conv].type = (cleave_type_test_t){.rank = 2, .dims = dims};
  ck_assert_str_eq(explain_at(graph, sequence, "c", CLEAVE_INDEX_NONE),
                   "1/2\nconv: dimension 2 is 24, wanted 32 => shape = { \"N\", \"?\" }");
}

UNIT_TEST(symbols_and_conditions_are_told_with_their_sizes) {
  uint32_t conv = op("Conv", "conv");
  uint32_t act = op("Relu", "act");
  uint32_t sequence = SEQUENCE(conv, act);
  cleave_arena_t memory = {0};
  cleave_graph_t *graph = plan_case_graph("c = Conv(x, $w); r = Relu(c); -> r");
  cleave_value_t output = cleave_node_output(graph, plan_case_node(graph, "c"), 0);
  cleave_value_t last = cleave_node_output(graph, plan_case_node(graph, "r"), 0);
  unit_ok(cleave_graph_set_type(graph, output, CLEAVE_DTYPE_F32, 2, (cleave_dim_t[]){2, 24}, e));
  unit_ok(cleave_graph_set_type(graph, last, CLEAVE_DTYPE_F32, 2, (cleave_dim_t[]){2, 25}, e));
  const cleave_dim_test_t dims[2] = {{.size = -1, .symbol = "N"}, {.size = -1, .symbol = "C"}};
  parts[conv].type = (cleave_type_test_t){.rank = 2, .dims = dims};
  parts[act].type = (cleave_type_test_t){.rank = 2, .dims = dims};
  ck_assert_str_eq(explain_at(graph, sequence, "c", CLEAVE_INDEX_NONE),
                   "1/2\nconv >> act: dimension 2 is 25, wanted C, which is 24 => shape = { \"N\", \"?\" }");
  parts[act].type = (cleave_type_test_t){.rank = -1};
  unit_ok(cleave_expression_compile(&memory, "C % 16 == 0", 7, CLEAVE_EXPRESSION_CONDITION,
                                    &parts[conv].where, e));
  ck_assert_str_eq(
      explain_at(graph, sequence, "c", CLEAVE_INDEX_NONE),
      "1/2\nconv: condition is C = 24, wanted C % 16 == 0 => -- without where = \"C % 16 == 0\"");
  plan_case_keep(memory.blocks);
}

/* x * sigmoid(x) */
static uint32_t silu(void) {
  uint32_t x = value("x");
  uint32_t sigmoid = input(op("Sigmoid", "sigmoid"), 0, x);
  return input(input(op("Mul", "act"), ANY, x), ANY, sigmoid);
}

UNIT_TEST(a_part_that_is_read_twice_must_be_one_value) {
  expect_why(
      "c = Conv(x, $w); s = Sigmoid(d); m = Mul(c, s); -> m", silu(), "m",
      "2/2\nact.inputs[1] > any x: input X of sigmoid is an input of the model, wanted the same as any x => "
      "oneof { any \"x\", any() }");
}

UNIT_TEST(a_producer_that_is_missing_is_told_by_what_is_there) {
  expect_why("m = Mul(x, y); -> m", silu(), "m",
             "1/2\nact.inputs[2] > sigmoid: input 2 of act is an input of the model, wanted Sigmoid => "
             "oneof { sigmoid, any() }");
}

UNIT_TEST(one_label_is_one_value) {
  uint32_t first = input(op("Add", "first"), ANY, value("r"));
  uint32_t second = input(op("Mul", "second"), ANY, value("r"));
  expect_why(
      "a = Add(x, y); m = Mul(a, z); -> m", SEQUENCE(first, second), "a",
      "2/2\nfirst >> second.inputs[1] > any r: value is another one, wanted the same 'r' everywhere => "
      "as = \"r_2\"");
}

UNIT_TEST(repetitions_are_counted) {
  uint32_t sequence = SEQUENCE(op("Conv", "conv"), repeated(op("Relu", "act"), 3, 5), op("MaxPool", "pool"));
  expect_why("c = Conv(x, $w); a = Relu(c); b = Relu(a); p = MaxPool(b); -> p", sequence, "c",
             "3/3\nconv >> act: repetitions is fewer, wanted at least 3 => min = 2");
  uint32_t few = SEQUENCE(op("Conv", "conv"), repeated(op("Relu", "act"), 1, 1), op("MaxPool", "pool"));
  expect_why("c = Conv(x, $w); a = Relu(c); b = Relu(a); p = MaxPool(b); -> p", few, "c",
             "3/3\nconv >> act: repetitions is more, wanted at most 1 => max = 2");
}

UNIT_TEST(alternatives_are_opened_where_none_fits) {
  uint32_t choice = ONEOF(op("Relu", "relu"), SEQUENCE(op("Sigmoid", "sigmoid"), op("Mul", "mul")));
  uint32_t sequence = SEQUENCE(op("Conv", "conv"), choice, op("MaxPool", "pool"));
  expect_why("c = Conv(x, $w); s = Sigmoid(c); m = Add(s, y); p = MaxPool(m); -> p", sequence, "c",
             "3/4\nconv >> sigmoid >> mul: operator is Add, wanted Mul => op { { \"Mul\", \"Add\" }, as = "
             "\"mul\" }");
}

UNIT_TEST(an_optional_part_in_focus_must_be_there) {
  uint32_t act = op("Relu", "act");
  uint32_t sequence = SEQUENCE(op("Conv", "conv"), maybe(act));
  cleave_graph_t *graph = plan_case_graph("c = Conv(x, $w); g = Gelu(c); -> g");
  ck_assert_str_eq(explain_at(graph, sequence, "c", CLEAVE_INDEX_NONE), "1/1");
  ck_assert_str_eq(
      explain_at(graph, sequence, "c", act),
      "1/2\nconv >> act: operator is Gelu, wanted Relu => op { { \"Relu\", \"Gelu\" }, as = \"act\" }");
}

UNIT_TEST(commutative_inputs_are_tried_in_both_orders) {
  uint32_t conv = op("Conv", "conv");
  uint32_t mul = input(input(op("Mul", "mul"), ANY, conv), ANY, op("Sigmoid", "sigmoid"));
  expect_why("c = Conv(x, $w); t = Tanh(y); m = Mul(t, c); -> m", mul, "m",
             "2/3\nmul.inputs[2] > sigmoid: operator is Tanh, wanted Sigmoid => "
             "op { { \"Sigmoid\", \"Tanh\" }, as = \"sigmoid\" }");
}

UNIT_TEST(an_edge_that_the_pattern_lacks_is_named) {
  static const char DIAMOND[] = "c = Conv(x, $w); s = Sigmoid(c); m = Mul(c, s); -> m";
  expect_why(DIAMOND, SEQUENCE(op("Conv", "conv"), op("Sigmoid", "s"), op("Mul", "mul")), "c",
             "3/3\ns >> mul: input 1 of Mul is Conv of the same match, wanted one that the pattern names => "
             "op { \"Mul\", inputs = { any \"conv\" } }");
  expect_why(
      DIAMOND, SEQUENCE(op("Conv", NULL), op("Sigmoid", NULL), op("Mul", NULL)), "c",
      "3/3\nSigmoid >> Mul: input 1 of Mul is Conv of the same match, wanted one that the pattern names "
      "=> op { \"Conv\", as = \"conv_2\" } and op { \"Mul\", inputs = { any \"conv_2\" } }");
  // The label "conv" is the other pattern's, which is in the same list. The inputs of MatMul have names; what
  // stands before it takes the other one.
  expect_why(
      "c = Conv(x, $w); s = Sigmoid(c); m = MatMul(s, c); -> m",
      SEQUENCE(op("Conv", "conv"), op("Sigmoid", "s"), op("MatMul", "mul")), "c",
      "3/3\ns >> mul: input B of MatMul is Conv of the same match, wanted one that the pattern names => "
      "op { \"MatMul\", inputs = { B = any \"conv\" } }");
  // What is used elsewhere, too, is a second fault.
  expect_why("c = Conv(x, $w); s = Sigmoid(c); m = Mul(c, s); e = Exp(c); -> m, e",
             SEQUENCE(op("Conv", "conv"), op("Sigmoid", "s"), op("Mul", "mul")), "c",
             "2/3\nconv: what conv makes is read outside of the match, wanted read inside only by Exp 'e' => "
             "shared = true\ns >> mul: input 1 of Mul is Conv of the same match, wanted one that the pattern "
             "names => op { \"Mul\", inputs = { any \"conv\" } }");
}

UNIT_TEST(two_parts_for_one_node_are_told) {
  uint32_t sigmoid = input(op("Sigmoid", "s"), 0, op("Conv", NULL));
  uint32_t mul = input(input(op("Mul", "mul"), ANY, op("Conv", "c")), ANY, sigmoid);
  expect_why("c = Conv(x, $w); s = Sigmoid(c); m = Mul(c, s); -> m", mul, "m",
             "3/4\nmul.inputs[1] > c: input 1 of mul is the one that Conv stands for, wanted another Conv => "
             "op { \"Conv\", as = \"conv\" } and op { \"Mul\", inputs = { ..., any \"conv\" } }");
}

/* An output of an operator, as the rule word `output` makes it. */
static uint32_t output(uint32_t part, uint32_t index) {
  uint32_t made = group(CLEAVE_PATTERN_OUTPUT, 1, &part);
  parts[made].output = index;
  return made;
}

UNIT_TEST(readers_of_another_output_are_no_obstacle_to_what_reads_this_one) {
  uint32_t sequence = SEQUENCE(output(op("TopK", NULL), 1), op("Cast", NULL));
  expect_why("v, i = TopK(x, k); r = Relu(v); c = Cast{to=1}(i); -> r, c", sequence, "v",
             "1/2\nTopK: what TopK makes is read outside of the match, wanted read inside only by Relu 'r' "
             "=> shared = true");
  expect_why(
      "v, i = TopK(x, k); n = Neg(i); r = Relu(v); -> r, n", sequence, "v",
      "1/2\nTopK >> Cast: what reads output Indices of TopK is Neg, wanted Cast => maybe(op \"Cast\")");
}

UNIT_TEST(the_output_that_is_read_is_told_from_the_one_that_the_pattern_means) {
  static const char VALUES[] = "v, i = TopK(x, k); c = Cast{to=1}(v); -> c";
  expect_why(VALUES, SEQUENCE(output(op("TopK", NULL), 1), op("Cast", NULL)), "v",
             "1/2\nTopK >> Cast: output of TopK that Cast reads is Values, wanted Indices => "
             "output(op \"TopK\", \"Values\")");
  uint32_t top = op("TopK", "top");
  parts[top].output = 1;
  expect_why(VALUES, SEQUENCE(top, op("Cast", NULL)), "v",
             "0/2\ntop >> Cast: output of TopK that Cast reads is Values, wanted Indices => "
             "output = \"Values\"");
  expect_why("a, b = Split(x); s = Sigmoid(b); -> s",
             input(op("Sigmoid", "s"), 0, output(op("Split", NULL), 0)), "s",
             "1/2\ns.inputs[X] > Split: output of Split that s reads is 2, wanted 1 => "
             "output(op \"Split\", 2)");
}

/* Concat of at least two Relus >> Conv. */
static uint32_t concat_of_relus(void) {
  uint32_t relu = op("Relu", NULL);
  uint32_t relus = group(CLEAVE_PATTERN_VARIADIC, 1, &relu);
  parts[relus].min = 2;
  parts[relus].max = UINT32_MAX;
  return SEQUENCE(input(op("Concat", "cat"), CLEAVE_PATTERN_PORT_VARIADIC, relus), op("Conv", NULL));
}

UNIT_TEST(inputs_of_a_variadic_part_are_told_apart) {
  uint32_t sequence = concat_of_relus();
  expect_why("r = Relu(x); s = Relu(y); c = Concat{axis=1}(r, s, r); v = Conv(c, $w); -> v", sequence, "c",
             "2/3\ncat.inputs[variadic] > Relu: what makes inputs 1 and 3 of cat is one Relu, wanted one for "
             "each => variadic(oneof { op \"Relu\", any() })");
  expect_why("r = Relu(x); c = Concat{axis=1}(r, x); v = Conv(c, $w); -> v", sequence, "c",
             "2/3\ncat.inputs[variadic] > Relu: input 2 of cat is an input of the model, wanted Relu => "
             "variadic(oneof { op \"Relu\", any() })");
}

UNIT_TEST(a_trial_that_no_pattern_can_be_is_passed_over) {
  uint32_t conv = input(op("Conv", "conv"), 0, value("z"));
  uint32_t relu = input(op("Relu", "relu"), 0, value("z"));
  uint32_t both = group(CLEAVE_PATTERN_GROUP, 2, (uint32_t[]){conv, relu});
  expect_why("c = Conv(x, $w); s = Sigmoid(y); -> c, s", both, "c",
             "1/2\nrelu: what stands beside conv is nothing: it is an output of the model, wanted Relu => -");
  expect_why("c = Conv(x, $w); r = Relu(x); -> c, r", both, "c", "2/2");
  test_attribute(conv, "group", 1);
  expect_why("c = Conv{group=4}(x, $w); r = Relu(x); -> c, r", both, "c",
             "1/2\nconv: attribute group is 4, wanted 1 => attrs = { group = one_of { 1, 4 } }");
}

/* What the pattern needs and the graph has none of. */
static const char *needs_of(const cleave_graph_t *graph, uint32_t root) {
  static char text[256];
  cleave_pattern_t pattern = pattern_of(root);
  cleave_explainer_t *explainer = NULL;
  const char *const *needs = NULL;
  uint32_t count = 0;
  unit_ok(cleave_explainer_create(graph, &explainer, e));
  unit_ok(cleave_explainer_set_pattern(explainer, &pattern, e));
  unit_ok(cleave_explainer_needs(explainer, &arena, &needs, &count, e));
  text[0] = '\0';
  for (uint32_t k = 0; k < count; k++) {
    size_t length = strlen(text);
    (void)snprintf(text + length, sizeof text - length, "%s%s", k == 0 ? "" : ", ", needs[k]);
  }
  cleave_explainer_destroy(explainer);
  cleave_arena_deinit(&arena);
  return text;
}

UNIT_TEST(operators_that_the_graph_lacks_are_listed_once) {
  cleave_graph_t *graph = plan_case_graph("c = Conv(x, $w); r = Relu(c); -> r");
  ck_assert_str_eq(needs_of(graph, SEQUENCE(op("Conv", NULL), op("Relu,Clip", NULL))), "");
  ck_assert_str_eq(needs_of(graph, silu()), "Mul, Sigmoid");
  ck_assert_str_eq(
      needs_of(graph, SEQUENCE(op("Exp,Log", NULL), op("Conv", NULL), op("Exp,Log", NULL), op("Abs", NULL))),
      "Exp or Log, Abs");
  ck_assert_str_eq(needs_of(graph, SEQUENCE(op("Conv", NULL), maybe(op("Exp", NULL)))), "");
  ck_assert_str_eq(needs_of(graph, SEQUENCE(op("Conv", NULL), ONEOF(op("Exp", NULL), op("Abs", NULL)))),
                   "Exp or Abs");
  ck_assert_str_eq(needs_of(graph, SEQUENCE(op("Conv", NULL), ONEOF(op("Exp", NULL), op("Relu", NULL)))), "");
  ck_assert_str_eq(needs_of(graph, SEQUENCE(op("Conv", NULL), repeated(op("Exp", NULL), 0, 2))), "");
  ck_assert_str_eq(needs_of(graph, SEQUENCE(op("Conv", NULL), repeated(op("Exp", NULL), 1, 2))), "Exp");
}

/* Refuses a match of more than two nodes. */
static cleave_status_t judge_by_size(void *context, const cleave_graph_t *graph, const cleave_match_t *match,
                                     const char **out_refuser, cleave_reason_t *reason,
                                     cleave_error_t *error) {
  (void)context;
  (void)graph;
  (void)error;
  if (match->node_count > 2) {
    *out_refuser = "backend";
    (void)snprintf(reason->text, sizeof reason->text, "%u nodes are too many", (unsigned)match->node_count);
  }
  return CLEAVE_OK;
}

static cleave_finding_t judge_at(const cleave_graph_t *graph, uint32_t root, const char *anchor) {
  cleave_pattern_t pattern = pattern_of(root);
  cleave_explainer_t *explainer = NULL;
  cleave_finding_t finding;
  unit_ok(cleave_explainer_create(graph, &explainer, e));
  cleave_explainer_set_judge(explainer, judge_by_size, NULL);
  unit_ok(cleave_explainer_set_pattern(explainer, &pattern, e));
  unit_ok(cleave_explainer_explain(explainer,
                                   cleave_explainer_position(explainer, plan_case_node(graph, anchor)),
                                   CLEAVE_INDEX_NONE, CLEAVE_EXPLAIN_ALL, &arena, &finding, e));
  cleave_explainer_destroy(explainer);
  return finding;
}

UNIT_TEST(edits_are_put_to_who_has_a_say) {
  cleave_graph_t *graph = plan_case_graph("c = Conv(x, $w); r = Gelu(c); p = MaxPool(r); -> p");
  uint32_t sequence = SEQUENCE(op("Conv", "conv"), op("Relu", "act"), op("MaxPool", "pool"));
  cleave_finding_t finding = judge_at(graph, sequence, "c");
  ck_assert(finding.is_fixed);
  ck_assert_str_eq(finding.refuser, "backend");
  ck_assert_str_eq(finding.refusal, "3 nodes are too many");
  finding = judge_at(graph, SEQUENCE(op("Conv", "conv"), op("Relu", "act")), "c");
  ck_assert(finding.is_fixed);
  ck_assert_ptr_null(finding.refuser);
  // Conv and Mul without the Sigmoid between them would close a cycle.
  graph = plan_case_graph("c = Conv(x, $w); s = Sigmoid(c); m = Mul(c, s); -> m");
  finding = judge_at(graph, SEQUENCE(op("Conv", "conv"), op("Mul", "mul")), "c");
  ck_assert(finding.is_fixed);
  ck_assert_str_eq(finding.refuser, "cycle");
  ck_assert_str_eq(finding.refusal, "would close a cycle through 's'");
  cleave_arena_deinit(&arena);
}

UNIT_TEST(long_patterns_and_dense_graphs_end_within_the_budget) {
  char text[16384] = "a0 = Add(x, y);";
  size_t length = strlen(text);
  for (int k = 1; k < 200; k++) {
    length += (size_t)snprintf(text + length, sizeof text - length, "a%d = Add(a%d, a%d);", k, k - 1,
                               k > 1 ? k - 2 : 0);
  }
  (void)snprintf(text + length, sizeof text - length, "-> a199");
  cleave_graph_t *graph = plan_case_graph(text);
  uint32_t sequence =
      SEQUENCE(repeated(op("Add", NULL), 1, 4096), op("Relu", "act"), repeated(op("Add", NULL), 1, 4096));
  cleave_pattern_t pattern = pattern_of(sequence);
  cleave_explainer_t *explainer = NULL;
  unit_ok(cleave_explainer_create(graph, &explainer, e));
  unit_ok(cleave_explainer_set_pattern(explainer, &pattern, e));
  for (uint32_t k = 0; k < 200; k += 50) {
    cleave_finding_t finding;
    unit_ok(
        cleave_explainer_explain(explainer, k, CLEAVE_INDEX_NONE, CLEAVE_EXPLAIN_ALL, &arena, &finding, e));
    ck_assert(!finding.matches);
  }
  cleave_explainer_destroy(explainer);
  cleave_arena_deinit(&arena);
}

UNIT_TEST(every_allocation_may_fail) {
  cleave_graph_t *graph = plan_case_graph("c = Conv(x, $w); r = Gelu(c); p = MaxPool(r); -> p");
  uint32_t sequence = SEQUENCE(op("Conv", "conv"), op("Relu,Clip", "act"), op("MaxPool", "pool"));
  cleave_pattern_t pattern = pattern_of(sequence);
  cleave_status_t status = CLEAVE_ERROR_OUT_OF_MEMORY;
  for (int64_t k = 0; status != CLEAVE_OK && k < 2000; k++) {
    cleave_explainer_t *explainer = NULL;
    cleave_finding_t finding;
    (void)cleave_memory_fail_after(k);
    status = cleave_explainer_create(graph, &explainer, NULL);
    if (status == CLEAVE_OK) {
      status = cleave_explainer_set_pattern(explainer, &pattern, NULL);
    }
    if (status == CLEAVE_OK) {
      status = cleave_explainer_explain(explainer, 0, CLEAVE_INDEX_NONE, CLEAVE_EXPLAIN_ALL, &arena, &finding,
                                        NULL);
    }
    (void)cleave_memory_fail_after(-1);
    ck_assert(status == CLEAVE_OK || status == CLEAVE_ERROR_OUT_OF_MEMORY);
    cleave_explainer_destroy(explainer);
    cleave_arena_deinit(&arena);
  }
  ck_assert_int_eq(status, CLEAVE_OK);
}

UNIT_SUITE("explain")
