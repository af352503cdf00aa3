// SPDX-License-Identifier: Apache-2.0
// What MXNet's own tests ask of its default partitioner (test_subgraph_op.py, test_subgraph.py,
// test_extensions.py), through rules in Lua: 17 pairs of a graph and a set of operators, three ways to say
// the set, values and the order of inputs and outputs unchanged; named rulesets, selectors, review, chaining.
#include "rule_case.h"
#include "unit.h"

#define GOLDEN CLEAVE_SOURCE_DIR "/tests/golden/"
#define G1 GOLDEN "g1_two_convolutions/model.lua"
#define G2 GOLDEN "g2_diamond/model.lua"
#define G3 GOLDEN "g3_norms/model.lua"
#define G4 GOLDEN "g4_three_outputs/model.lua"
#define G5 GOLDEN "g5_twice/model.lua"
#define G6 GOLDEN "g6_weight_from_a_node/model.lua"
#define G7 GOLDEN "g7_long_cycle/model.lua"
#define G8 GOLDEN "g8_equal_nodes/model.lua"
#define CONTAIN_OPS CLEAVE_SOURCE_DIR "/rules/contain_ops.lua"

/* contain_ops by `supported`: a group for all, or any group. */
#define BY_SUPPORTED(value)                                                              \
  "local ops = option.list({}, 'operators')\n"                                           \
  "return ruleset { name = 'by_supported', options = { ops = ops }, region 'listed' {\n" \
  "  supported = function(node, options)\n"                                              \
  "    for _, name in ipairs(options.ops) do\n"                                          \
  "      if name == node.op then return " value                                          \
  " end\n"                                                                               \
  "    end\n"                                                                            \
  "    return false\n"                                                                   \
  "  end } }"

typedef struct pair {
  const char *model;
  const char *ops;
  const char *regions;
  const char *borders[3];
} pair_t;

/* Table 6.1 of MXNet's tests: members | outer inputs -> outputs. */
static const pair_t PAIRS[17] = {
    {G1, "Conv", "cpu{c1} cpu{c2}", {"data1, data2 -> c1", "data2 -> c2"}},
    {G2, "Exp,Sin,Add", "cpu{e s} cpu{a}", {"data -> e, s", "c, s -> a"}},
    {G2, "Exp,Cos,Add", "cpu{e c} cpu{a}", {"data -> e, c", "c, s -> a"}},
    {G3, "Exp,Sin,Add", "cpu{e s} cpu{a}", {"data -> e, s", "c, s -> a"}},
    {G3, "Exp,Cos,Add", "cpu{e c} cpu{a}", {"data -> e, c", "c, s -> a"}},
    {G3, "Exp,Sin,Add,BatchNormalization", "cpu{e s} cpu{a b1 b2}", {"data -> e, s", "c, s -> b2"}},
    {G3, "Exp,Cos,Add,BatchNormalization", "cpu{e c} cpu{a b1 b2}", {"data -> e, c", "c, s -> b2"}},
    {G3, "Exp,BatchNormalization", "cpu{e} cpu{b1 b2}", {"data -> e", "a -> b2"}},
    {G3, "BatchNormalization", "cpu{b1 b2}", {"a -> b2"}},
    {G4, "Exp", "cpu{e}", {"data -> e"}},
    {G5, "Add", "cpu{sum}", {"data -> sum"}},
    {G6, "", "", {NULL}},
    {G6, "Sin", "cpu{s}", {"data2 -> s"}},
    {G6, "Conv", "cpu{conv}", {"data1, s -> conv"}},
    {G6, "Sin,Conv", "cpu{s conv}", {"data2, data1 -> conv"}},
    {G7, "Sin,Add", "cpu{s} cpu{sum}", {"data -> s", "s, k6 -> sum"}},
    {G8, "Sin,Add", "cpu{s1 s2 p}", {"data -> p"}},
};

static void check_pair(const pair_t *pair, const char *rules, const char *by) {
  char ops[128];
  (void)snprintf(ops, sizeof ops, "ops=%s", pair->ops);
  rule_case_request_t request = {.model = pair->model, .rules = {rules}, .settings = {ops, by}};
  rule_case_t c = rule_case_create(&request);
  ck_assert_str_eq(rule_case_regions(&c), pair->regions);
  for (uint32_t k = 0; k < c.plan->region_count; k++) {
    ck_assert_str_eq(rule_case_boundary(&c, k), pair->borders[k]);
  }
  rule_case_check_values(&c, 0.0);
  rule_case_deinit(&c);
}

UNIT_TEST(seventeen_pairs_by_a_list_of_operators) {
  for (uint32_t k = 0; k < 17; k++) {
    check_pair(&PAIRS[k], CONTAIN_OPS, "by=list");
  }
}

UNIT_TEST(seventeen_pairs_by_a_selector) {
  for (uint32_t k = 0; k < 17; k++) {
    check_pair(&PAIRS[k], CONTAIN_OPS, "by=selector");
  }
}

UNIT_TEST(seventeen_pairs_by_supported_with_one_group_and_with_any) {
  for (uint32_t k = 0; k < 17; k++) {
    check_pair(&PAIRS[k], BY_SUPPORTED("7"), NULL);
    check_pair(&PAIRS[k], BY_SUPPORTED("-1"), NULL);
    check_pair(&PAIRS[k], BY_SUPPORTED("true"), NULL);
  }
}

UNIT_TEST(an_output_of_the_model_keeps_its_place_whatever_it_is_made_of) {
  rule_case_request_t request = {.model =
                                     "local x = g.input('x', 'float32', { 2, 3 })\n"
                                     "local a = g.Exp(x, { name = 'a' })\n"
                                     "local b = g.Sin(a, { name = 'b' })\n"
                                     "g.output('first', a) g.output('second', b) g.output('third', a)",
                                 .rules = {CONTAIN_OPS},
                                 .settings = {"ops=Exp,Sin"}};
  rule_case_t c = rule_case_create(&request);
  ck_assert_str_eq(rule_case_regions(&c), "cpu{a b}");
  ck_assert_str_eq(rule_case_boundary(&c, 0), "x -> a, b");
  rule_case_check_values(&c, 0.0);
  rule_case_deinit(&c);
}

/* ---- Gluon's networks ---- */

UNIT_TEST(dense_layers_are_regions_of_their_own_where_only_they_are_named) {
  static const char *const MODELS[2] = {
      /* HybridSequential: Dense(256, relu), Dense(128, relu), Dense(2) */
      "local x = g.input('x', 'float32', { 1, 512 })\n"
      "local function dense(x, out, inn, name)\n"
      "  return g.Gemm(x, g.weight { out, inn }, g.normal { out }, { transB = 1, name = name })\n"
      "end\n"
      "x = g.Relu(dense(x, 256, 512, 'fc1'))\n"
      "x = g.Relu(dense(x, 128, 256, 'fc2'))\n"
      "g.output('y', dense(x, 2, 128, 'fc3'))",
      /* HybridBlock: the same with a relu after the first only */
      "local x = g.input('x', 'float32', { 1, 512 })\n"
      "local function dense(x, out, inn, name)\n"
      "  return g.Gemm(x, g.weight { out, inn }, g.normal { out }, { transB = 1, name = name })\n"
      "end\n"
      "x = g.Relu(dense(x, 256, 512, 'fc1'))\n"
      "x = dense(x, 128, 256, 'fc2')\n"
      "g.output('y', dense(x, 2, 128, 'fc3'))"};
  static const char *const REGIONS[2] = {"cpu{fc1} cpu{fc2} cpu{fc3}", "cpu{fc1} cpu{fc2 fc3}"};
  for (uint32_t k = 0; k < 2; k++) {
    rule_case_request_t request = {.model = MODELS[k], .rules = {CONTAIN_OPS}, .settings = {"ops=Gemm"}};
    rule_case_t c = rule_case_create(&request);
    ck_assert_str_eq(rule_case_regions(&c), REGIONS[k]);
    rule_case_check_values(&c, 0.0);
    rule_case_deinit(&c);
  }
}

/* make_subgraph's nets: the whole graph as one region, and every node one. */
UNIT_TEST(whole_networks_and_single_nodes_as_regions) {
  static const char *const MODELS[4] = {
      "local a, b = g.input('a', 'float32', { 10, 10 }), g.input('b', 'float32', { 10, 10 })\n"
      "g.output('y', g.Mul(g.Mul(a, b), 2.0))",
      "g.output('y', g.batch_norm(g.input('x', 'float32', { 10, 10 })))",
      "local x = g.input('x', 'float32', { 1, 3, 32, 32 })\n"
      "local function block()\n"
      "  return g.batch_norm(g.Conv(x, g.weight { 16, 3, 3, 3 }))\n"
      "end\n"
      "g.output('y', block() + block())",
      "local x = g.input('x', 'float32', { 1, 3, 32, 32 })\n"
      "local function conv(x, i, o, stride)\n"
      "  return g.batch_norm(g.Conv(x, g.weight { o, i, 3, 3 }, { pads = { 1, 1, 1, 1 },\n"
      "    strides = { stride, stride } }))\n"
      "end\n"
      "x = g.Relu(conv(x, 3, 16, 2))\n"
      "for k = 1, 3 do\n"
      "  x = g.Relu(x + conv(g.Relu(conv(x, 16, 16, 1)), 16, 16, 1))\n"
      "end\n"
      "g.output('y', g.GlobalAveragePool(x))"};
  static const char EVERY_NODE[] =
      "return ruleset { name = 'r', region 'one' { selector = function()\n"
      "  return { select = function() return true end } end } }";
  for (uint32_t k = 0; k < 4; k++) {
    rule_case_request_t request = {.model = MODELS[k],
                                   .rules = {"return ruleset { name = 'r', region 'all' {} }"}};
    rule_case_t c = rule_case_create(&request);
    ck_assert_uint_eq(c.plan->region_count, 1);
    ck_assert_uint_eq(c.plan->step_count, 1);
    rule_case_check_values(&c, 0.0);
    rule_case_deinit(&c);
    request.rules[0] = EVERY_NODE;
    c = rule_case_create(&request);
    ck_assert_uint_eq(c.plan->region_count, (uint32_t)c.plan->graph->live_node_count);
    rule_case_check_values(&c, 0.0);
    rule_case_deinit(&c);
  }
}

/* ---- a partitioner with options, as an extension library has it ---- */

/* c = a + b; d = exp(c); y = log(d) */
#define GRAPH_P                                                                         \
  "local a, b = g.input('a', 'float32', { 3, 2 }), g.input('b', 'float32', { 3, 2 })\n" \
  "local c = g.Add(a, b, { name = 'c' })\n"                                             \
  "g.output('y', g.Log(g.Exp(c, { name = 'd' }), { name = 'y' }))"

/* supportedOps with options, reviewSubgraph with reject and an attribute for the run. */
#define MY_PROP                                                                            \
  "local reject = option.boolean(false, 'review refuses')\n"                               \
  "local my_opt = option.string('', 'goes to the backend')\n"                              \
  "return ruleset { name = 'myProp', options = { reject = reject, myOpt = my_opt },\n"     \
  "  ruleset 'strategy1' { region 'strategy1' {\n"                                         \
  "    supported = function(node) return node.op == 'Exp' or node.op == 'Log' end,\n"      \
  "    review = function(sub, options)\n"                                                  \
  "      if options.reject then return false, 'rejected on request' end\n"                 \
  "      return true, { myKey = 'myVal', myOpt = options.myOpt, nodes = sub.node_count,\n" \
  "        accurate = true, ratio = 0.5, sizes = { 1, 2 }, names = { 'a', 'b' } }\n"       \
  "    end } } }"

UNIT_TEST(a_partitioner_with_options_makes_its_region) {
  rule_case_request_t request = {.model = GRAPH_P, .rules = {MY_PROP}, .settings = {"myOpt=yello"}};
  rule_case_t c = rule_case_create(&request);
  ck_assert_str_eq(rule_case_regions(&c), "cpu{d y}");
  ck_assert_str_eq(rule_case_boundary(&c, 0), "c -> y");
  ck_assert_str_eq(rule_case_attributes(&c, 0),
                   "accurate=1 myKey='myVal' myOpt='yello' names=['a','b'] nodes=2 ratio=0.5 sizes=[1,2]");
  rule_case_check_values(&c, 0.0);
  rule_case_deinit(&c);
}

UNIT_TEST(review_rejects_a_region_and_the_graph_runs_as_it_was) {
  rule_case_request_t request = {.model = GRAPH_P, .rules = {MY_PROP}, .settings = {"reject=true"}};
  rule_case_t c = rule_case_create(&request);
  ck_assert_uint_eq(c.plan->region_count, 0);
  ck_assert_str_eq(rule_case_notes(&c, CLEAVE_PLAN_NOTE_REVIEW), "d: rejected on request\n");
  rule_case_check_values(&c, 0.0);
  rule_case_deinit(&c);
}

UNIT_TEST(a_region_may_eat_an_input_of_the_model_directly) {
  rule_case_request_t request = {.model =
                                     "local a = g.input('a', 'float32', { 3, 2 })\n"
                                     "g.output('y', g.Log(g.Exp(a, { name = 'd' }), { name = 'y' }))",
                                 .rules = {MY_PROP}};
  rule_case_t c = rule_case_create(&request);
  ck_assert_str_eq(rule_case_regions(&c), "cpu{d y}");
  ck_assert_str_eq(rule_case_boundary(&c, 0), "a -> y");
  rule_case_check_values(&c, 0.0);
  rule_case_deinit(&c);
}

/* CustomOpSelector: state in the closure, filter, reset. */
#define MY_SELECT                                                                                        \
  "return ruleset { name = 'mySelect', region 'selected' { selector = function(graph, options)\n"        \
  "  local wanted = {}\n"                                                                                \
  "  for node in graph:topological() do wanted[node] = node.op == 'Exp' or node.op == 'Log' end\n"       \
  "  local taken = 0\n"                                                                                  \
  "  return {\n"                                                                                         \
  "    select = function(node) return wanted[node] end,\n"                                               \
  "    select_input = function(_, input) taken = taken + 1 return wanted[input] and taken < 3 end,\n"    \
  "    select_output = function(_, output) taken = taken + 1 return wanted[output] and taken < 3 end,\n" \
  "    filter = function(nodes) return nodes end,\n"                                                     \
  "    reset = function() taken = 0 end }\n"                                                             \
  "end } }"

UNIT_TEST(a_selector_class_with_state_grows_both_ways) {
  rule_case_request_t request = {.model = GRAPH_P, .rules = {MY_SELECT}};
  rule_case_t c = rule_case_create(&request);
  ck_assert_str_eq(rule_case_regions(&c), "cpu{d y}");
  rule_case_check_values(&c, 0.0);
  rule_case_deinit(&c);
}

UNIT_TEST(named_rulesets_run_one_after_the_other_over_what_is_left) {
  rule_case_request_t request = {
      .model = GRAPH_P,
      .rules = {"return ruleset { name = 's', backend = 'cpu',\n"
                "  ruleset 'sums' { region 'sums' { ops = { 'Add', 'Exp' } } },\n"
                "  ruleset 'logs' { region 'logs' { ops = { 'Exp', 'Log' } } } }"}};
  rule_case_t c = rule_case_create(&request);
  ck_assert_str_eq(rule_case_regions(&c), "cpu{c d} cpu{y}");
  ck_assert_str_eq(c.plan->rules[0].ruleset, "s/sums");
  ck_assert_str_eq(c.plan->rules[1].ruleset, "s/logs");
  ck_assert_str_eq(c.plan->regions[0].name, "sums_0");
  ck_assert_str_eq(c.plan->regions[1].name, "logs_0");
  rule_case_check_values(&c, 0.0);
  rule_case_deinit(&c);
}

UNIT_TEST(rule_files_chain_and_the_order_decides) {
  static const char SUMS[] = "return ruleset { name = 'sums', region 'sums' { ops = { 'Add', 'Exp' } } }";
  static const char LOGS[] = "return ruleset { name = 'logs', region 'logs' { ops = { 'Exp', 'Log' } } }";
  rule_case_request_t request = {.model = GRAPH_P, .rules = {SUMS, LOGS}};
  rule_case_t c = rule_case_create(&request);
  ck_assert_str_eq(rule_case_regions(&c), "cpu{c d} cpu{y}");
  rule_case_deinit(&c);
  request.rules[0] = LOGS;
  request.rules[1] = SUMS;
  c = rule_case_create(&request);
  ck_assert_str_eq(rule_case_regions(&c), "cpu{c} cpu{d y}");
  rule_case_check_values(&c, 0.0);
  rule_case_deinit(&c);
}

#ifdef CLEAVE_TEST_ONEDNN
UNIT_TEST(one_model_runs_on_two_backends) {
  rule_case_request_t request = {
      .model =
          "local x = g.input('x', 'float32', { 1, 4, 8, 8 })\n"
          "x = g.Relu(g.Conv(x, g.weight { 4, 4, 3, 3 }, { name = 'conv1' }), { name = 'relu1' })\n"
          "x = g.Sin(g.Cos(x, { name = 'cos' }), { name = 'sin' })\n"
          "g.output('y', g.Relu(g.Conv(x, g.weight { 4, 4, 3, 3 }, { name = 'conv2' }), "
          "{ name = 'relu2' }))",
      .rules = {"return ruleset { name = 'two',\n"
                "  ruleset 'products' { backend = 'onednn',\n"
                "    fuse 'conv_relu' { pattern = op { 'Conv', as = 'conv' } >> op 'Relu' },\n"
                "    region 'products' { ops = { 'Conv', 'Relu' } } },\n"
                "  ruleset 'rest' { backend = 'cpu', region 'rest' {} } }"}};
  rule_case_t c = rule_case_create(&request);
  ck_assert_str_eq(rule_case_regions(&c), "onednn{conv1 relu1} cpu{cos sin} onednn{conv2 relu2}");
  ck_assert_str_eq(rule_case_fusions(&c), "conv_relu(conv=Conv Relu) conv_relu(conv=Conv Relu)");
  rule_case_check_values(&c, 1e-5);
  rule_case_deinit(&c);
}
#endif

/* Whatever the heap looks like, in a process that has done other things before. */
UNIT_TEST(a_hundred_partitions_of_one_graph_are_the_same_bytes) {
  rule_case_request_t request = {
      .model = G3, .rules = {CONTAIN_OPS}, .settings = {"ops=Exp,Cos,Add,BatchNormalization", "by=selector"}};
  void *noise[100];
  char *first = NULL;
  for (uint32_t k = 0; k < 100; k++) {
    noise[k] = malloc(1 + (k * 7919u) % 4001u);
    if (k % 3 == 2) {
      free(noise[k / 2]);
      noise[k / 2] = NULL;
    }
    rule_case_t c = rule_case_create(&request);
    char *text = NULL;
    unit_ok(cleave_plan_format(c.plan, CLEAVE_PLAN_JSON, &text, e));
    if (first == NULL) {
      first = text;
    } else {
      ck_assert_str_eq(text, first);
      cleave_text_free(text);
    }
    rule_case_deinit(&c);
  }
  cleave_text_free(first);
  for (uint32_t k = 0; k < 100; k++) {
    free(noise[k]);
  }
}

/* The first ruleset takes what reads the inputs of the model in reverse order. `strategy` is another word
 * for a ruleset with a name. */
UNIT_TEST(a_first_ruleset_that_reorders_inputs_does_not_confuse_the_second) {
  rule_case_request_t request = {
      .model =
          "local a, b = g.input('a', 'float32', { 2, 3 }), g.input('b', 'float32', { 2, 4 })\n"
          "local x = g.Concat(g.Neg(b, { name = 'nb' }), g.Exp(a, { name = 'ea' }), { axis = 1, name = 'cat' "
          "})\n"
          "local y = g.Slice(x, { 0 }, { 3 }, { 1 })\n"
          "g.output('y', g.Sub(y, g.Sin(a, { name = 'sa' }), { name = 'y' }))",
      .rules = {"return ruleset { name = 's',\n"
                "  strategy 'one' { region 'one' { ops = { 'Concat', 'Neg', 'Exp' } } },\n"
                "  strategy 'two' { region 'two' { ops = { 'Sub', 'Sin' } } } }"}};
  rule_case_t c = rule_case_create(&request);
  ck_assert_str_eq(rule_case_boundary(&c, 0), "b, a -> cat");
  ck_assert_uint_eq(c.plan->region_count, 2);
  rule_case_check_values(&c, 0.0);
  rule_case_deinit(&c);
}

UNIT_TEST(unknown_backends_and_options_are_errors) {
  rule_case_request_t request = {
      .model = GRAPH_P, .rules = {"return ruleset { name = 'x', backend = 'nobody', region 'r' {} }"}};
  ck_assert_ptr_nonnull(strstr(rule_case_failure(&request), "backend 'nobody' is unknown"));
  request.rules[0] = MY_PROP;
  request.settings[0] = "rejekt=true";
  ck_assert_ptr_nonnull(strstr(rule_case_failure(&request), "rejekt"));
}

UNIT_SUITE("contain ops")
