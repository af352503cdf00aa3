// SPDX-License-Identifier: Apache-2.0
/* Tests in rule files as they are declared: what is read from them, which mistakes are errors of loading, and
 * the graphs that their functions build, with weights that were left out. */
#include "script/rules/declared.h"
#include "unit.h"

#define HEAD                                                                                                 \
  "local conv = op { 'Conv', as = 'conv', inputs = { w = constant 'w' } }\n"                                 \
  "local act = op { { 'Relu', 'Tanh' }, as = 'act' }\n"                                                      \
  "return ruleset { name = 'r', backend = 'cpu',\n"                                                          \
  "  options = { wide = option.boolean(true, 'take act along'), least = option.integer(2, '', { min = 1 }) " \
  "},\n"                                                                                                     \
  "  fuse 'conv_act' { doc = 'both', pattern = conv >> maybe { act, when = option.boolean(true, '') } },\n"  \
  "  region 'rest' { ops = { 'Relu' }, enabled = false },\n"
#define TAIL "\n}"

static cleave_status_t load(const char *text, cleave_rules_t **rules, cleave_error_t *error) {
  return cleave_rules_load(NULL,
                           &(cleave_rule_source_t){.path = "r.lua", .text = text, .length = strlen(text)},
                           NULL, NULL, rules, error);
}

/* A file with one test of this content in line 7. */
static cleave_status_t load_test(const char *content, cleave_rules_t **rules, cleave_error_t *error) {
  char text[4096];
  (void)snprintf(text, sizeof text, HEAD "  test 'it works' { %s }," TAIL, content);
  return load(text, rules, error);
}

static void refuses(const char *content, const char *message) {
  cleave_rules_t *rules = NULL;
  unit_fails(load_test(content, &rules, e), CLEAVE_ERROR_RULE, message);
  ck_assert_ptr_null(rules);
}

/* ---- what is declared ---- */

UNIT_TEST(tells_rules_and_options_of_a_file) {
  cleave_rules_t *rules = NULL;
  unit_ok(load(HEAD TAIL, &rules, e));
  const cleave_declared_t *declared = cleave_rules_declared(rules);
  ck_assert_uint_eq(declared->rule_count, 2);
  ck_assert_str_eq(declared->rules[0].kind, "fuse");
  ck_assert_str_eq(declared->rules[0].name, "conv_act");
  ck_assert_str_eq(declared->rules[0].doc, "both");
  ck_assert_str_eq(declared->rules[0].backend, "cpu");
  ck_assert_int_eq(declared->rules[0].line, 5);
  ck_assert(declared->rules[0].enabled);
  ck_assert_str_eq(declared->rules[1].name, "rest");
  ck_assert(!declared->rules[1].enabled);
  ck_assert_uint_eq(declared->option_count, 3);
  ck_assert_str_eq(declared->options[0].name, "wide");
  ck_assert_str_eq(declared->options[0].type, "boolean");
  ck_assert_str_eq(declared->options[0].fallback, "true");
  ck_assert_str_eq(declared->options[1].name, "least");
  ck_assert_str_eq(declared->options[1].range, "at least 1");
  ck_assert_ptr_null(declared->options[2].name); /* in no list of options */
  cleave_rules_destroy(rules);
}

UNIT_TEST(tells_what_a_test_expects) {
  cleave_rules_t *rules = NULL;
  unit_ok(load_test(
      "doc = 'why', graph = function(g, x, ids) return x end,\n"
      "inputs = { ids = { 2, 'N', dtype = 'int64', low = 0, high = 7 } }, options = { least = 3 },\n"
      "expect = { conv_act = 2, ['conv_act.act'] = true, regions = range { max = 4 }, Add = 0 },\n"
      "expect_not = { 'rest' }, refused = { conv_act = 'too' }, equal = { rtol = 1e-2 }",
      &rules, e));
  const cleave_declared_t *declared = cleave_rules_declared(rules);
  ck_assert_uint_eq(declared->test_count, 1);
  const cleave_rule_test_t *test = &declared->tests[0];
  ck_assert_str_eq(test->name, "it works");
  ck_assert_str_eq(test->doc, "why");
  ck_assert_int_eq(test->line, 7);
  ck_assert_uint_eq(test->setting_count, 1);
  ck_assert_str_eq(test->settings[0].name, "least");
  ck_assert_str_eq(test->settings[0].value, "3");
  ck_assert(test->equal);
  ck_assert_double_eq(test->rtol, 1e-2);
  ck_assert(test->atol < 0.0);
  ck_assert_uint_eq(test->input_count, 2);
  ck_assert_str_eq(test->inputs[0].name, "x");
  ck_assert(!test->inputs[0].has_range);
  ck_assert_str_eq(test->inputs[1].name, "ids");
  ck_assert(test->inputs[1].has_range);
  ck_assert_double_eq(test->inputs[1].high, 7.0);
  static const struct {
    cleave_expectation_kind_t kind;
    const char *rule;
    const char *text;
    int32_t low, high;
  } EXPECTED[] = {{CLEAVE_EXPECT_OP, NULL, "Add", 0, 0},
                  {CLEAVE_EXPECT_RULE, "conv_act", NULL, 2, 2},
                  {CLEAVE_EXPECT_LABEL, "conv_act", "act", 1, INT32_MAX},
                  {CLEAVE_EXPECT_REGIONS, NULL, NULL, 0, 4},
                  {CLEAVE_EXPECT_RULE, "rest", NULL, 0, 0},
                  {CLEAVE_EXPECT_REFUSED, "conv_act", "too", 1, INT32_MAX}};
  ck_assert_uint_eq(test->expectation_count, sizeof EXPECTED / sizeof EXPECTED[0]);
  for (uint32_t k = 0; k < test->expectation_count; k++) {
    const cleave_expectation_t *expectation = &test->expectations[k];
    ck_assert_int_eq((int)expectation->kind, (int)EXPECTED[k].kind);
    ck_assert_pstr_eq(expectation->rule, EXPECTED[k].rule);
    ck_assert_pstr_eq(expectation->text, EXPECTED[k].text);
    ck_assert_int_eq(expectation->low, EXPECTED[k].low);
    ck_assert_int_eq(expectation->high, EXPECTED[k].high);
  }
  cleave_rules_destroy(rules);
}

UNIT_TEST(refuses_tests_that_do_not_make_sense) {
  refuses("expect = { conv_act = 1 }", "r.lua:7: test 'it works': graph: expected a function, found nothing");
  refuses("graph = function() end",
          "r.lua:7: test 'it works': nothing is expected: give expect, expect_not, refused, equal = true or "
          "gradient = true");
  refuses("graph = function() end, expct = { conv_act = 1 }",
          "r.lua:7: test 'it works': test has no key 'expct' (did you mean 'expect'?)");
  refuses("graph = function() end, expect = { conv_akt = 1 }",
          "r.lua:7: test 'it works': expect: no rule is called 'conv_akt' (did you mean 'conv_act'?)");
  refuses("graph = function() end, expect = { ['conv_act.cnv'] = 1 }",
          "r.lua:7: test 'it works': expect: rule 'conv_act' labels no node 'cnv' (did you mean 'conv'?)");
  refuses(
      "graph = function() end, expect = { conv_act = -1 }",
      "r.lua:7: test 'it works': expect: 'conv_act': expected a count, true (at least one) or range { min, "
      "max }, found -1");
  refuses("graph = function() end, expect_not = { 'rst' }",
          "r.lua:7: test 'it works': expect_not: entry 1: no rule is called 'rst' (did you mean 'rest'?)");
  refuses("graph = function() end, expect_not = { conv_act = 1 }",
          "r.lua:7: test 'it works': expect_not: expected a list of names, like { 'conv_act' }");
  refuses("graph = function() end, refused = { conv_act = 3 }",
          "r.lua:7: test 'it works': refused: 'conv_act': expected a string, found 3");
  refuses("graph = function() end, expect_not = { 'rest' }, options = { lest = 1 }",
          "r.lua:7: test 'it works': options: 'lest' is not an option of this file (did you mean 'least'?)");
  refuses("graph = function() end, expect_not = { 'rest' }, options = { least = 0 }",
          "r.lua:7: test 'it works': options: 'least' is 0, expected 1 to infinity");
  refuses("graph = function(g, x) end, expect_not = { 'rest' }, inputs = { y = { 1 } }",
          "r.lua:7: test 'it works': inputs: graph has no parameter 'y' (did you mean 'x'?)");
  refuses("graph = function(g, x) end, expect_not = { 'rest' }, inputs = { { 1 }, { 2 } }",
          "r.lua:7: test 'it works': inputs: entry 2, but graph takes 1 after g");
  refuses("graph = function(g, x) end, expect_not = { 'rest' }, inputs = { x = { 1, low = 2 } }",
          "r.lua:7: test 'it works': inputs: 'x': low and high go together");
  refuses("graph = function(g, x) end, equal = { rtol = -1 }",
          "r.lua:7: test 'it works': equal: rtol is negative");
}

/* ---- graphs ---- */

static cleave_status_t build(const char *content, cleave_graph_t **graph, cleave_error_t *error) {
  cleave_rules_t *rules = NULL;
  char text[2048];
  (void)snprintf(text, sizeof text, "%s, expect_not = { 'rest' }", content);
  CLEAVE_TRY(load_test(text, &rules, error));
  cleave_status_t status =
      cleave_rules_build_test(rules, &cleave_rules_declared(rules)->tests[0], graph, error);
  cleave_rules_destroy(rules);
  return status;
}

/* "name: dtype[dims]" of an output. */
static const char *describe(const cleave_graph_t *graph, size_t output, char *buffer, size_t size) {
  const cleave_value_record_t *value = cleave_graph_value(graph, cleave_graph_output(graph, output));
  cleave_text_t text = {0};
  cleave_text_format(&text, "%s: %s", cleave_strings_text(&graph->strings, graph->output_names.items[output]),
                     cleave_dtype_name((cleave_dtype_t)value->dtype));
  cleave_shape_print(graph->dims, value->rank, value->dims, &text);
  (void)snprintf(buffer, size, "%s", cleave_text_get(&text));
  cleave_text_deinit(&text);
  return buffer;
}

static void builds(const char *content, size_t node_count, const char *output) {
  cleave_graph_t *graph = NULL;
  char text[256];
  unit_ok(build(content, &graph, e));
  ck_assert_uint_eq(graph->live_node_count, node_count);
  ck_assert_str_eq(describe(graph, 0, text, sizeof text), output);
  cleave_graph_destroy(graph);
}

UNIT_TEST(draws_weights_that_are_left_out) {
  builds("graph = function(g, x) return g.Relu(g.BatchNormalization(g.Conv(x))) end", 3,
         "output: float32[1, 3, 8, 8]");
  builds("graph = function(g, x) return g.Conv(x, { kernel_shape = { 5, 3 } }) end", 1,
         "output: float32[1, 3, 4, 6]");
  builds("graph = function(g, x) return g.Conv(x, { strides = { 2, 2 } }) end", 1,
         "output: float32[1, 3, 4, 4]");
  builds("graph = function(g, x) return g.Conv(x, { dilations = { 2, 2 }, group = 3 }) end", 1,
         "output: float32[1, 3, 8, 8]");
  builds("graph = function(g, x) return g.Conv(x, g.weight { 6, 3, 1, 1 }) end", 1,
         "output: float32[1, 6, 8, 8]");
  builds("graph = function(g, x) return g.Conv(x, { W = g.weight { 6, 3, 1, 1 } }) end", 1,
         "output: float32[1, 6, 8, 8]");
  builds("graph = function(g, x) return g.ConvTranspose(x) end", 1, "output: float32[1, 3, 8, 8]");
  builds("graph = function(g, x) return g.MatMul(x) end, inputs = { x = { 2, 'T', 6, dtype = 'float64' } }",
         1, "output: float64[2, T, 6]");
  builds("graph = function(g, x) return g.Gemm(x, { transB = 1 }) end, inputs = { { 4, 6 } }", 1,
         "output: float32[4, 6]");
  builds("graph = function(g, x) return g.LayerNormalization(x) end", 1, "output: float32[1, 3, 8, 8]");
}

UNIT_TEST(weights_that_are_drawn_are_the_same_each_time) {
  cleave_graph_t *graphs[2] = {NULL, NULL};
  const cleave_tensor_t *weights[2] = {NULL, NULL};
  for (int k = 0; k < 2; k++) {
    unit_ok(build("graph = function(g, x) return g.Conv(x) end", &graphs[k], e));
    cleave_node_t node = cleave_value_producer(graphs[k], cleave_graph_output(graphs[k], 0));
    weights[k] = cleave_graph_value(graphs[k], cleave_node_input(graphs[k], node, 1))->tensor;
    ck_assert_ptr_nonnull(weights[k]);
    ck_assert_int_eq(weights[k]->count, 81);
  }
  ck_assert_mem_eq(weights[0]->data, weights[1]->data, weights[0]->bytes);
  ck_assert_double_ne(cleave_tensor_get_float(weights[0], 0), 0.0);
  cleave_graph_destroy(graphs[0]);
  cleave_graph_destroy(graphs[1]);
}

UNIT_TEST(inputs_come_by_name_by_place_and_by_default) {
  cleave_graph_t *graph = NULL;
  char text[256];
  unit_ok(
      build("graph = function(g, a, b, ...) return { one = a + 1, two = -b, three = (...) } end,\n"
            "inputs = { b = { 4, dtype = 'float64' }, [3] = { 'N', 2 } }",
            &graph, e));
  ck_assert_uint_eq(graph->inputs.count, 3);
  ck_assert_str_eq(cleave_value_name(graph, graph->inputs.items[0]), "a");
  ck_assert_str_eq(cleave_value_name(graph, graph->inputs.items[2]), "input_3");
  ck_assert_uint_eq(graph->outputs.count, 3);
  ck_assert_str_eq(describe(graph, 0, text, sizeof text), "one: float32[1, 3, 8, 8]");
  ck_assert_str_eq(describe(graph, 1, text, sizeof text), "three: float32[N, 2]");
  ck_assert_str_eq(describe(graph, 2, text, sizeof text), "two: float64[4]");
  cleave_graph_destroy(graph);
}

static void fails_to_build(const char *content, const char *message) {
  cleave_graph_t *graph = NULL;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  ck_assert_int_ne((int)build(content, &graph, &error), CLEAVE_OK);
  ck_assert_str_eq(error.message, message);
  ck_assert_ptr_null(graph);
}

UNIT_TEST(tells_what_is_wrong_with_a_graph) {
  fails_to_build("graph = function(g, x) return g.Convv(x) end",
                 "r.lua:7: test 'it works': operator 'Convv' is unknown (did you mean 'Conv'?)");
  fails_to_build("graph = function(g, x)\n  local y = g.Relu(x, x)\n  return y\nend",
                 "r.lua:8: test 'it works': Relu: expected at most 1 input, found 2");
  fails_to_build("graph = function(g, x) return 3 end",
                 "r.lua:7: test 'it works': graph: expected values to be returned, found 3");
  fails_to_build("graph = function(g, x) end",
                 "r.lua:7: test 'it works': graph: expected values to be returned, found nothing");
  fails_to_build("graph = function(g, x) error('no luck') end", "r.lua:7: test 'it works': no luck");
  fails_to_build("graph = function(g, x) return g.Conv(x) end, inputs = { x = { 1, 'C', 4, 4 } }",
                 "r.lua:7: test 'it works': Conv: the channels of its input are not known: give the weights");
  fails_to_build("graph = function(g, x) return g.Conv(x, { group = 2 }) end",
                 "r.lua:7: test 'it works': Conv: 3 channels in groups of 2: give the weights");
  fails_to_build("graph = function(g, x) g.Relu = 1 end", "r.lua:7: test 'it works': g cannot be changed");
}

UNIT_TEST(a_runaway_graph_ends_with_the_budget) {
  cleave_graph_t *graph = NULL;
  unit_fails_with(build("graph = function(g, x)\n  while true do x = pcall(g.Relu, x) end\nend", &graph, e),
                  CLEAVE_ERROR_LIMIT, "r.lua:8: test 'it works': the time budget of 2000 ms is spent");
}

UNIT_TEST(nothing_is_built_after_the_graph) {
  static const char TEXT[] =
      "local kept\n"
      "return ruleset { name = 'r', backend = 'cpu',\n"
      "  fuse 'late' { pattern = op { 'Relu', as = 'r' }, where = function(m) kept.Relu(m.r) return true end "
      "},\n"
      "  test 'keeps g' { graph = function(g, x) kept = g return g.Relu(x) end, expect = { late = 1 } },\n"
      "}";
  cleave_rules_t *rules = NULL;
  cleave_graph_t *graph = NULL;
  uint32_t count = 0;
  bool accept = false;
  cleave_reason_t reason = {""};
  unit_ok(load(TEXT, &rules, e));
  unit_ok(cleave_rules_build_test(rules, &cleave_rules_declared(rules)->tests[0], &graph, e));
  const cleave_rule_t *rule = &cleave_rules_rulesets(rules, &count)->rules[0];
  cleave_node_t node = cleave_value_producer(graph, cleave_graph_output(graph, 0));
  cleave_value_t value = cleave_graph_output(graph, 0);
  const char *label = "r";
  cleave_match_t match = {.pattern = rule->pattern,
                          .label_nodes = &node,
                          .label_values = &value,
                          .nodes = &node,
                          .node_labels = &label,
                          .node_count = 1};
  unit_fails_with(rule->where(rule->context, graph, &match, &accept, &reason, e), CLEAVE_ERROR_RULE,
                  "no graph is being built here");
  cleave_graph_destroy(graph);
  cleave_rules_destroy(rules);
}

/* ---- lints ---- */

/* Codes and lines of the lints of a level and above: "unused-option:4 ". */
static void lints(const char *text, cleave_lint_level_t least, const char *expected) {
  cleave_rules_t *rules = NULL;
  cleave_arena_t arena = {0};
  const cleave_lint_t *found = NULL;
  uint32_t count = 0;
  cleave_text_t line = {0};
  unit_ok(load(text, &rules, e));
  unit_ok(cleave_rules_lint(rules, &arena, &found, &count, e));
  for (uint32_t k = 0; k < count; k++) {
    if (found[k].level >= least) {
      cleave_text_format(&line, "%s%s:%d", line.length == 0 ? "" : " ", found[k].code, (int)found[k].line);
    }
  }
  ck_assert_str_eq(cleave_text_get(&line), expected);
  cleave_text_deinit(&line);
  cleave_arena_deinit(&arena);
  cleave_rules_destroy(rules);
}

#define SET "return ruleset { name = 'r', backend = 'cpu',\n"

UNIT_TEST(finds_rulesets_without_rules) {
  lints(SET "}", CLEAVE_LINT_WARNING, "no-rules:1");
  lints(
      "local lost = { region 'a' {},\nregion 'b' {}, test 't' { graph = function(g, x) return x end } }\n" SET
      "table.unpack(lost, 1, 1) }",
      CLEAVE_LINT_NOTE, "untested:1 no-negative-test:1 lost-rule:2");
  lints("local a = option.boolean(false, '')\n" SET "options = { a = a }, region 'x' { enabled = a } }",
        CLEAVE_LINT_WARNING, "");
}

UNIT_TEST(finds_options_that_nothing_reads) {
  lints(
      "local a, b = option.boolean(true, ''), option.boolean(true, '')\n"
      "local c = option.boolean(true, '')\n-- options.b is not read here\n" SET
      "options = { a = a, b = b }, region 'x' { enabled = c, review = function(_, options) return options.a "
      "end } }",
      CLEAVE_LINT_WARNING, "unused-option:1 undeclared-option:2");
}

UNIT_TEST(finds_captures_that_are_misspelt_or_unused) {
  lints(SET
        "fuse 'x' { pattern = op { 'Conv', as = 'conv', inputs = { w = constant 'w' } },\n"
        "where = function(m) return m.cnov.rank == 4, 'rank' end } }",
        CLEAVE_LINT_WARNING, "unknown-capture:3");
  lints(SET
        "fuse 'x' { pattern = op { 'Conv', as = 'conv', inputs = { w = constant 'w' } },\n"
        "where = function(m) local function f(m) return m.cnov end return f, 'rank' end } }",
        CLEAVE_LINT_WARNING, "");
  lints(SET
        "fuse 'x' { pattern = op { 'Conv', as = 'conv', inputs = { w = constant 'w', x = any 'x' } },\n"
        "where = function(m) return m.w.rank == 4, 'rank' end } }",
        CLEAVE_LINT_NOTE, "unused-capture:2 untested:2 no-negative-test:2");
  lints(SET
        "fuse 'x' { pattern = op { 'Mul', inputs = { any 'x', op { 'Sigmoid', inputs = { any 'x' } } } } } }",
        CLEAVE_LINT_NOTE, "untested:2 no-negative-test:2");
}

UNIT_TEST(finds_functions_that_could_be_data) {
  // A label that the pattern does not have cannot get a dtype.
  lints(SET
        "fuse 'x' { pattern = op { 'Conv', as = 'c' },\n"
        "where = function(m) return m.cc.dtype == 'float32' end } }",
        CLEAVE_LINT_WARNING, "unknown-capture:3");
  lints(SET
        "fuse 'x' { pattern = op { 'Conv', as = 'c' },\n"
        "where = function(m)\n  return m.c.dtype == 'float32' and m.c.attrs.group >= 2\nend } }",
        CLEAVE_LINT_WARNING, "where-as-data:3");
  lints(SET
        "fuse 'x' { pattern = op { 'Conv', as = 'c' },\n"
        "where = function(m) return m.c.dtype == 'float32', 'only float32' end } }",
        CLEAVE_LINT_WARNING, "");
  lints(SET
        "fuse 'x' { pattern = op { 'Conv', as = 'c' },\n"
        "where = function(m) return m.c.flops >= 1000 end } }",
        CLEAVE_LINT_WARNING, "");
  lints(SET
        "fuse 'x' { pattern = op { 'Conv', as = 'c' },\n"
        "where = function(m) return m.c.rank == 4 or m.c.dtype == 'float32' end } }",
        CLEAVE_LINT_WARNING, "");
}

UNIT_TEST(finds_patterns_that_are_there_twice) {
  lints(SET "fuse 'a' { pattern = op 'Exp' >> op 'Sin' },\nfuse 'b' { pattern = op 'Exp' >> op 'Sin' } }",
        CLEAVE_LINT_WARNING, "unreachable:3");
  lints(SET
        "fuse 'a' { pattern = op 'Exp' >> op 'Sin' },\n"
        "fuse 'b' { pattern = op 'Exp' >> op 'Sin', priority = 1 } }",
        CLEAVE_LINT_WARNING, "unreachable:2");
  lints(SET
        "fuse 'a' { pattern = op 'Exp' >> op 'Sin', where = function(m) return m.nodes[1].rank > 2 end },\n"
        "fuse 'b' { pattern = op 'Exp' >> op 'Sin' }, fuse 'c' { pattern = op 'Exp' >> op 'Cos' } }",
        CLEAVE_LINT_WARNING, "");
}

UNIT_TEST(counts_tests_and_negative_ones) {
  lints(SET
        "region 'x' { ops = { 'Exp' } },\n"
        "test 'a' { graph = function(g, x) return x end, expect = { x = 1 } },\n"
        "test 'b' { graph = function(g, x) return x end, expect_not = { 'x' } } }",
        CLEAVE_LINT_NOTE, "");
  lints(SET
        "region 'x' { ops = { 'Exp' } },\n"
        "test 'a' { graph = function(g, x) return x end, expect = { x = 1 } } }",
        CLEAVE_LINT_NOTE, "untested:2 no-negative-test:2");
  lints(SET "stage 'x' { of = function() return 0 end } }", CLEAVE_LINT_NOTE, "untested:2");
}

UNIT_SUITE("rule_tests")
