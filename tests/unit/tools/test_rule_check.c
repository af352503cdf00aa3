// SPDX-License-Identifier: Apache-2.0
/* Running the tests of rule files: what passes, what must fail and what is said then, what is skipped; values
 * against cpu; lints that look at graphs. */
#include "tools/rule_tests/rule_check.h"
#include "unit.h"

#define RULES                                                                      \
  "return ruleset { name = 'r', backend = 'cpu',\n"                                \
  "  options = { least = option.integer(1, 'nodes of a region', { min = 1 }) },\n" \
  "  fuse 'pair' { pattern = op { 'Exp', as = 'e' } >> op { 'Sin', as = 's' },\n"  \
  "    where = function(m) return m.e.rank == 2, 'only matrices' end },\n"         \
  "  region 'rest' { ops = { 'Exp', 'Sin', 'Add' },\n"                             \
  "    review = function(sub, options) return sub.node_count >= options.least, 'small' end },\n"

static cleave_rule_check_t check;

/* Checks the rules with one test of this content, in line 7. */
static const cleave_test_result_t *run_with(const char *content, const cleave_rule_check_options_t *options) {
  static char text[4096];
  (void)snprintf(text, sizeof text, RULES "  test 'it' { %s },\n}", content);
  cleave_rule_source_t source = {.path = "r.lua", .text = text, .length = strlen(text)};
  unit_ok(cleave_rule_check_run(&source, options, &check, e));
  ck_assert_uint_eq(check.tests.count, 1);
  ck_assert_uint_eq(check.passed + check.failed + check.skipped, 1);
  return &check.tests.items[0];
}

static void passes(const char *content) {
  const cleave_test_result_t *result = run_with(content, NULL);
  ck_assert_str_eq(result->report, "");
  ck_assert_int_eq((int)result->verdict, (int)CLEAVE_TEST_PASSED);
  ck_assert_int_eq(result->line, 7);
  cleave_rule_check_deinit(&check);
}

static void fails(const char *content, const char *report) {
  const cleave_test_result_t *result = run_with(content, NULL);
  ck_assert_int_eq((int)result->verdict, (int)CLEAVE_TEST_FAILED);
  ck_assert_str_eq(result->report, report);
  cleave_rule_check_deinit(&check);
}

static void fails_with(const char *text, const char *report) {
  cleave_rule_source_t source = {.path = "r.lua", .text = text, .length = strlen(text)};
  unit_ok(cleave_rule_check_run(&source, NULL, &check, e));
  ck_assert_uint_eq(check.failed, 1);
  ck_assert_str_eq(check.tests.items[0].report, report);
  cleave_rule_check_deinit(&check);
}

#define PAIR "graph = function(g, x) return g.Sin(g.Exp(x)) end, inputs = { x = { 2, 3 } }"

UNIT_TEST(passes_what_is_as_expected) {
  passes(PAIR ", expect = { pair = 1 }");
  passes(PAIR
         ", expect = { pair = true, rest = range { min = 1, max = 2 }, regions = 1, fusions = 1, left = 0 }");
  passes(PAIR ", expect = { ['pair.e'] = 1, ['pair.s'] = 1, Exp = 1, Cos = 0 }, equal = true");
  passes("graph = function(g, x) return g.Exp(g.Sin(x)) end, expect_not = { 'pair' }");
  passes("graph = function(g, x) return g.Sin(g.Exp(x)) end, refused = { pair = 'matrices' }");
  passes(PAIR ", options = { least = 3 }, expect_not = { 'rest' }, refused = { rest = 'small' }");
}

UNIT_TEST(fails_what_is_not_and_says_what_was_made) {
  fails(PAIR ", expect = { pair = 2 }",
        "fuse 'pair', matches: expected 2, found 1\n"
        "  fused by 'pair': Exp_0, Sin_0\n");
  fails(PAIR ", expect_not = { 'rest' }",
        "region 'rest': expected none, found 1\n"
        "  region rest_0: Exp_0, Sin_0\n");
  fails(PAIR ", expect = { Exp = 0, left = 5, ['pair.e'] = 3 }",
        "Exp nodes after the rules: expected none, found 1\n"
        "  the graph has: Exp, Sin\n"
        "nodes in no region: expected 5, found 0\n"
        "fuse 'pair', nodes as 'e': expected 3, found 1\n"
        "  fused by 'pair': Exp_0, Sin_0\n");
}

UNIT_TEST(says_why_a_rule_did_nothing) {
  fails("graph = function(g, x) return g.Sin(g.Exp(x)) end, expect = { pair = 1 }",
        "fuse 'pair', matches: expected 1, found 0\n"
        "  Exp_0: where: only matrices\n");
  fails("graph = function(g, x) return g.Cos(x) end, expect = { pair = true }",
        "fuse 'pair', matches: expected at least 1, found 0\n"
        "  its pattern needs Exp, Sin\n"
        "  the graph has: Cos\n");
  fails(PAIR ", refused = { pair = 'too deep' }",
        "fuse 'pair', refusals with 'too deep': expected at least 1, found 0\n"
        "  fused by 'pair': Exp_0, Sin_0\n");
}

UNIT_TEST(says_why_a_rule_without_a_pattern_did_nothing) {
  fails("graph = function(g, x) return g.Cos(x) end, expect = { rest = 1 }",
        "region 'rest': expected 1, found 0\n"
        "  Cos_0: ops: not in 'ops'\n");
  fails_with(
      "return ruleset { name = 'r', backend = 'cpu',\n"
      "  fuse 'grown' { ops = { 'Relu' } }, fuse 'late' { ops = { 'Relu' } }, region 'early' {},\n"
      "  region 'rest' {}, ruleset 'more' { backend = 'cpu', fuse 'relu' { pattern = 'Relu' } },\n"
      "  test 'it' { graph = function(g, x) return g.Exp(g.Relu(x)) end,\n"
      "    expect = { late = 1, relu = 1, rest = 1 } } }",
      "fuse 'late', matches: expected 1, found 0\n"
      "  Relu_0: taken by fuse 'grown'\n"
      "  Exp_0: ops: not in 'ops'\n"
      "fuse 'relu', matches: expected 1, found 0\n"
      "  Relu_0: taken by fuse 'grown'\n"
      "region 'rest': expected 1, found 0\n"
      "  Relu_0: taken by region 'early'\n");
  fails_with(
      "return ruleset { name = 'r', backend = 'cpu',\n"
      "  region 'g' { supported = function() return nil end },\n"
      "  test 'it' { graph = function(g, x) return g.Relu(x) end, expect = { g = 1 } } }",
      "region 'g': expected 1, found 0\n"
      "  Relu_0: supported: 'supported' returned false\n");
}

UNIT_TEST(says_why_a_pass_changed_nothing) {
  fails_with(
      "return ruleset { name = 'r', pass 'quiet' { run = function() end },\n"
      "  pass 'no' { run = function() return nil, 'it is small' end },\n"
      "  test 'it' { graph = function(g, x) return g.Relu(x) end, expect = { quiet = 1, no = 1 } } }",
      "pass 'no', matches: expected 1, found 0\n"
      "  it changed nothing: it is small\n"
      "pass 'quiet', matches: expected 1, found 0\n"
      "  it changed nothing\n");
}

UNIT_TEST(says_what_a_pattern_lacks_where_it_nearly_fits) {
  fails_with(
      "return ruleset { name = 'r', backend = 'cpu',\n"
      "  fuse 'pair' { pattern = op { 'Conv', attrs = { group = 1 } } >> op 'Relu' },\n"
      "  test 'it' { graph = function(g, x) return g.Relu(g.Conv(x, { group = 3 })) end, expect = { pair = 1 "
      "} } }",
      "fuse 'pair', matches: expected 1, found 0\n"
      "  nearest: 1 of 2 nodes at Conv_0\n"
      "    attribute group is 3, wanted 1; try: attrs = { group = one_of { 1, 3 } }\n");
}

#define REWRITE(substitute)                                                                        \
  "local x = any 'x'\n"                                                                            \
  "return ruleset { name = 'r', backend = 'cpu',\n"                                                \
  "  rewrite 'silu' { pattern = op { 'Mul', inputs = { x, op { 'Sigmoid', inputs = { x } } } },\n" \
  "    replace = function(m, g) return " substitute                                                \
  " end },\n"                                                                                      \
  "  test 'it' { graph = function(g, x) return x * g.Sigmoid(x) end, inputs = { x = { 2 } },\n"    \
  "    expect = { silu = 1, Mul = 0 }, equal = true } }"

UNIT_TEST(compares_what_rewrites_made_with_the_graph_as_it_was) {
  static const char RIGHT[] = REWRITE("g.Swish(m.x)");
  cleave_rule_source_t source = {.path = "r.lua", .text = RIGHT, .length = sizeof RIGHT - 1};
  unit_ok(cleave_rule_check_run(&source, NULL, &check, e));
  ck_assert_uint_eq(check.passed, 1);
  cleave_rule_check_deinit(&check);
  static const char WRONG[] = REWRITE("g.Relu(m.x)");
  source = (cleave_rule_source_t){.path = "r.lua", .text = WRONG, .length = sizeof WRONG - 1};
  unit_ok(cleave_rule_check_run(&source, NULL, &check, e));
  ck_assert_uint_eq(check.failed, 1);
  ck_assert_ptr_nonnull(strstr(check.tests.items[0].report, "equal: output 'output': "));
  ck_assert_ptr_nonnull(strstr(check.tests.items[0].report, " of 2 values differ"));
  cleave_rule_check_deinit(&check);
}

/* Clip to [-8, 8] changes no normal number; integers that are not few may be any. A range of the test is
 * kept. */
UNIT_TEST(equal_tries_wider_values_too) {
  static const char *const TESTS[3] = {
      "return ruleset { name = 'r', backend = 'cpu', rewrite 'r' { pattern = op { 'Clip', as = 'c', inputs = "
      "{ any 'x' } }, replace = function(m, g) return m.x end },\n"
      "test 'it' { graph = function(g, x) return g.Clip(x, -8.0, 8.0) end, inputs = { x = { 4, 8 } },\n"
      "  expect = { r = 1 }, equal = true } }",
      "return ruleset { name = 'r', backend = 'cpu', rewrite 'r' { pattern = op { 'Abs', as = 'c', inputs = "
      "{ any 'x' } }, replace = function(m, g) return m.x end },\n"
      "test 'it' { graph = function(g, x) return g.Abs(x) end, inputs = { x = { 4, 8, dtype = 'int64' } },\n"
      "  expect = { r = 1 }, equal = true } }",
      "return ruleset { name = 'r', backend = 'cpu', rewrite 'r' { pattern = op { 'Abs', as = 'c', inputs = "
      "{ any 'x' } }, replace = function(m, g) return m.x end },\n"
      "test 'it' { graph = function(g, x) return g.Abs(x) end,\n"
      "  inputs = { x = { 4, 8, dtype = 'int64', low = 0, high = 5 } }, expect = { r = 1 }, equal = true } "
      "}"};
  for (size_t k = 0; k < 3; k++) {
    cleave_rule_source_t source = {.path = "r.lua", .text = TESTS[k], .length = strlen(TESTS[k])};
    unit_ok(cleave_rule_check_run(&source, NULL, &check, e));
    ck_assert_uint_eq(check.failed, k < 2 ? 1 : 0);
    const char *at =
        strstr(check.tests.items[0].report, "equal: on wider values than normal ones: output 'output': ");
    ck_assert(k < 2 ? at != NULL : at == NULL);
    cleave_rule_check_deinit(&check);
  }
}

/* ---- refusals of rewrites ---- */

static const cleave_test_result_t *check_refusal(const char *expectations) {
  static char text[1024];
  (void)snprintf(text, sizeof text,
                 "return ruleset { name = 'r', backend = 'cpu',\n"
                 "  rewrite 'never' { pattern = op { 'Exp', as = 'e' },\n"
                 "    replace = function(m, g) return nil, 'not on a Monday' end },\n"
                 "  rewrite 'picky' { pattern = op { 'Exp', as = 'e' },\n"
                 "    where = function(m) return m.e.rank == 3, 'rank is ' .. m.e.rank end,\n"
                 "    replace = function(m, g) return g.Neg(m.e) end },\n"
                 "  test 'it' { graph = function(g, x) return g.Exp(x) end, inputs = { x = { 4, 8 } },\n"
                 "    %s } }",
                 expectations);
  cleave_rule_source_t source = {.path = "r.lua", .text = text, .length = strlen(text)};
  unit_ok(cleave_rule_check_run(&source, NULL, &check, e));
  ck_assert_uint_eq(check.tests.count, 1);
  return &check.tests.items[0];
}

UNIT_TEST(sees_what_a_rewrite_refuses) {
  ck_assert_str_eq(check_refusal("refused = { never = 'Monday', picky = 'rank is 2' }")->report, "");
  ck_assert_uint_eq(check.passed, 1);
  cleave_rule_check_deinit(&check);
  ck_assert_str_eq(check_refusal("refused = { never = 'Tuesday' }, expect = { picky = 1 }")->report,
                   "rewrite 'picky', matches: expected 1, found 0\n"
                   "  Exp_0: left: rank is 2\n"
                   "rewrite 'never', refusals with 'Tuesday': expected at least 1, found 0\n"
                   "  Exp_0: left: not on a Monday\n");
  cleave_rule_check_deinit(&check);
}

/* A rewrite that is off by 0.05 %, which is a thousand times what rounding does here. */
static cleave_test_verdict_t compare_close(const char *equal) {
  char text[1024];
  (void)snprintf(text, sizeof text,
                 "return ruleset { name = 'r', backend = 'cpu',\n"
                 "  rewrite 'close' { pattern = op { 'Exp', as = 'e', inputs = { any 'x' } },\n"
                 "    replace = function(m, g) return g.Mul(1.0005, g.Pow(2.718281828459045, m.x)) end },\n"
                 "  test 'it' { graph = function(g, x) return g.Exp(x) end, inputs = { x = { 4, 8 } },\n"
                 "    expect = { close = 1 }, equal = %s } }",
                 equal);
  cleave_rule_source_t source = {.path = "r.lua", .text = text, .length = strlen(text)};
  unit_ok(cleave_rule_check_run(&source, NULL, &check, e));
  ck_assert_uint_eq(check.tests.count, 1);
  cleave_test_verdict_t verdict = check.tests.items[0].verdict;
  cleave_rule_check_deinit(&check);
  return verdict;
}

UNIT_TEST(equal_is_what_rounding_leaves_unless_the_test_says_otherwise) {
  ck_assert_int_eq((int)compare_close("true"), (int)CLEAVE_TEST_FAILED);
  ck_assert_int_eq((int)compare_close("{}"), (int)CLEAVE_TEST_FAILED);
  ck_assert_int_eq((int)compare_close("{ rtol = 1e-3 }"), (int)CLEAVE_TEST_PASSED);
  ck_assert_int_eq((int)compare_close("{ rtol = 1e-5, atol = 1e-5 }"), (int)CLEAVE_TEST_FAILED);
}

UNIT_TEST(fails_graphs_that_do_not_build) {
  fails("graph = function(g, x) return g.Sofmax(x) end, equal = true",
        "r.lua:7: test 'it': operator 'Sofmax' is unknown (did you mean 'Softmax'?)\n");
  fails("graph = function(g, x) while true do end end, equal = true",
        "r.lua:7: test 'it': the time budget of 2000 ms is spent\n");
}

UNIT_TEST(fails_rules_that_fail) {
  static const char TEXT[] =
      "return ruleset { name = 'r', backend = 'cpu',\n"
      "  fuse 'pair' { pattern = op 'Exp' >> op 'Sin', where = function(m) return m.nodes[9].rank > 1 end "
      "},\n"
      "  test 'it' { graph = function(g, x) return g.Sin(g.Exp(x)) end, expect = { pair = 1 } },\n}";
  cleave_rule_source_t source = {.path = "r.lua", .text = TEXT, .length = sizeof TEXT - 1};
  unit_ok(cleave_rule_check_run(&source, NULL, &check, e));
  ck_assert_uint_eq(check.failed, 1);
  ck_assert_ptr_nonnull(strstr(check.tests.items[0].report, "r.lua:2: fuse 'pair': attempt to index a nil"));
  cleave_rule_check_deinit(&check);
}

UNIT_TEST(does_not_compare_what_is_too_large) {
  fails("graph = function(g, x) return g.Exp(x) end, inputs = { x = { 100000, 100000 } }, equal = true",
        "equal: the graph has values of more than 1024 MiB, too many to compare\n");
}

UNIT_TEST(skips_what_has_no_backend_here_with_the_reason) {
  static const char TEXT[] =
      "return ruleset { name = 'r', backend = 'elsewhere', region 'x' { ops = { 'Exp' } },\n"
      "  test 'it' { graph = function(g, x) return g.Exp(x) end, expect = { x = 1 } } }";
  cleave_rule_source_t source = {.path = "r.lua", .text = TEXT, .length = sizeof TEXT - 1};
  unit_ok(cleave_rule_check_run(&source, NULL, &check, e));
  ck_assert_uint_eq(check.skipped, 1);
  ck_assert_uint_eq(check.passed, 0);
  ck_assert_ptr_nonnull(strstr(check.tests.items[0].report, "backend 'elsewhere' is unknown"));
  cleave_rule_check_deinit(&check);
}

UNIT_TEST(a_file_that_does_not_load_is_an_error) {
  cleave_rule_source_t source = {.path = "r.lua", .text = "return 1", .length = 8};
  unit_fails_with(cleave_rule_check_run(&source, NULL, &check, e), CLEAVE_ERROR_RULE,
                  "r.lua:1: the file returns 1");
  ck_assert_ptr_null(check.rules);
  cleave_rule_check_deinit(&check);
}

UNIT_TEST(settings_of_the_caller_give_way_to_those_of_the_test) {
  cleave_setting_t settings[2] = {{"least", "3"}, {"unknown_here", "1"}};
  cleave_rule_check_options_t options = {.settings = settings, .setting_count = 2, .threads = 1};
  ck_assert_int_eq((int)run_with(PAIR ", expect_not = { 'rest' }", &options)->verdict,
                   (int)CLEAVE_TEST_PASSED);
  cleave_rule_check_deinit(&check);
  ck_assert_int_eq((int)run_with(PAIR ", options = { least = 1 }, expect = { rest = 1 }", &options)->verdict,
                   (int)CLEAVE_TEST_PASSED);
  cleave_rule_check_deinit(&check);
}

UNIT_TEST(picks_tests_by_a_part_of_their_name) {
  static const char TEXT[] =
      "return ruleset { name = 'r', backend = 'cpu', region 'x' { ops = { 'Exp' } },\n"
      "  test 'one thing' { graph = function(g, x) return g.Exp(x) end, expect = { x = 1 } },\n"
      "  test 'another' { graph = function(g, x) return g.Sin(x) end, expect_not = { 'x' } } }";
  cleave_rule_source_t source = {.path = "r.lua", .text = TEXT, .length = sizeof TEXT - 1};
  cleave_rule_check_options_t options = {.only = "thing", .threads = 1};
  unit_ok(cleave_rule_check_run(&source, &options, &check, e));
  ck_assert_uint_eq(check.tests.count, 1);
  ck_assert_str_eq(check.tests.items[0].name, "one thing");
  cleave_rule_check_deinit(&check);
}

UNIT_TEST(symbols_of_inputs_have_a_size_when_values_are_compared) {
  passes(
      "graph = function(g, x) return g.Sin(g.Exp(x)) end, inputs = { x = { 'N', 'T' } },\n"
      "expect = { pair = 1 }, equal = true");
}

UNIT_TEST(inputs_are_drawn_from_the_range_that_a_test_gives) {
  passes(
      "graph = function(g, x, i) return g.Exp(g.Gather(x, i)) end,\n"
      "inputs = { x = { 20, 4 }, i = { 6, dtype = 'int64', low = 10, high = 20 } }, equal = true");
}

/* ---- lints that look at graphs ---- */

static const cleave_lint_t *find_lint(const char *code) {
  for (size_t k = 0; k < check.lints.count; k++) {
    if (strcmp(check.lints.items[k].code, code) == 0) {
      return &check.lints.items[k];
    }
  }
  return NULL;
}

UNIT_TEST(warns_of_a_rule_whose_matches_others_take) {
  static const char TEXT[] =
      "return ruleset { name = 'r', backend = 'cpu',\n"
      "  fuse 'long' { pattern = op 'Exp' >> op { 'Sin', 'Cos' } },\n"
      "  fuse 'short' { pattern = op 'Exp' >> op 'Sin' },\n"
      "  test 'it' { graph = function(g, x) return g.Sin(g.Exp(x)) end, expect = { long = 1 } } }";
  cleave_rule_source_t source = {.path = "r.lua", .text = TEXT, .length = sizeof TEXT - 1};
  unit_ok(cleave_rule_check_run(&source, NULL, &check, e));
  const cleave_lint_t *lint = find_lint("unreachable");
  ck_assert_ptr_nonnull(lint);
  ck_assert_int_eq(lint->line, 3);
  ck_assert_int_eq((int)lint->level, (int)CLEAVE_LINT_WARNING);
  ck_assert_str_eq(
      lint->message,
      "fuse 'short' never gets a match: alone it has 1, but 'long' takes them (first at Exp_0 of "
      "'it')");
  cleave_rule_check_deinit(&check);
}

UNIT_TEST(says_nothing_of_a_rule_that_matches_once) {
  static const char TEXT[] =
      "return ruleset { name = 'r', backend = 'cpu',\n"
      "  fuse 'long' { pattern = op 'Exp' >> op { 'Sin', 'Cos' } },\n"
      "  fuse 'other' { pattern = op 'Abs' >> op 'Sin' },\n"
      "  test 'it' { graph = function(g, x) return g.Sin(g.Exp(x)) end, expect = { long = 1 } },\n"
      "  test 'more' { graph = function(g, x) return g.Sin(g.Abs(x)) end, expect = { other = 1 } } }";
  cleave_rule_source_t source = {.path = "r.lua", .text = TEXT, .length = sizeof TEXT - 1};
  unit_ok(cleave_rule_check_run(&source, NULL, &check, e));
  ck_assert_ptr_null(find_lint("unreachable"));
  ck_assert_ptr_null(find_lint("never-matches"));
  cleave_rule_check_deinit(&check);
}

UNIT_TEST(warns_of_a_rule_that_matches_in_no_model) {
  const cleave_dim_t dims[1] = {4};
  cleave_graph_t *graph = NULL;
  cleave_value_t x = CLEAVE_VALUE_NONE;
  cleave_node_t node = CLEAVE_NODE_NONE;
  unit_ok(cleave_graph_create(&graph, e));
  unit_ok(cleave_graph_add_input(graph, "x", CLEAVE_DTYPE_F32, 1, dims, &x, e));
  unit_ok(cleave_graph_add_node(graph, cleave_op_find("", "Exp"), "exp", &x, 1, 1, &node, e));
  unit_ok(cleave_graph_set_type(graph, cleave_node_output(graph, node, 0), CLEAVE_DTYPE_F32, 1, dims, e));
  unit_ok(cleave_graph_add_output(graph, "y", cleave_node_output(graph, node, 0), e));
  cleave_check_model_t model = {"m.onnx", graph};
  cleave_rule_check_options_t options = {.models = &model, .model_count = 1, .threads = 1};
  ck_assert_int_eq((int)run_with(PAIR ", expect = { pair = 1 }", &options)->verdict, (int)CLEAVE_TEST_PASSED);
  const cleave_lint_t *lint = find_lint("never-matches");
  ck_assert_ptr_nonnull(lint);
  ck_assert_str_eq(lint->message, "fuse 'pair' matches nowhere in the 1 model given");
  ck_assert_uint_eq(check.reach.count, 2);
  ck_assert_uint_eq(check.reach.items[0].matches, 1);
  ck_assert_uint_eq(check.reach.items[0].model_matches, 0);
  ck_assert_uint_eq(check.reach.items[1].model_matches, 1);
  cleave_rule_check_deinit(&check);
  cleave_graph_destroy(graph);
}

/* exp >> sin over one dimension. */
static cleave_graph_t *make_pair(void) {
  const cleave_dim_t dims[1] = {4};
  cleave_graph_t *graph = NULL;
  cleave_value_t value = CLEAVE_VALUE_NONE;
  unit_ok(cleave_graph_create(&graph, e));
  unit_ok(cleave_graph_add_input(graph, "x", CLEAVE_DTYPE_F32, 1, dims, &value, e));
  for (uint32_t k = 0; k < 2; k++) {
    cleave_node_t node = CLEAVE_NODE_NONE;
    unit_ok(cleave_graph_add_node(graph, cleave_op_find("", k == 0 ? "Exp" : "Sin"), k == 0 ? "exp" : "sin",
                                  &value, 1, 1, &node, e));
    value = cleave_node_output(graph, node, 0);
    unit_ok(cleave_graph_set_type(graph, value, CLEAVE_DTYPE_F32, 1, dims, e));
  }
  unit_ok(cleave_graph_add_output(graph, "y", value, e));
  return graph;
}

UNIT_TEST(a_rule_whose_matches_were_all_refused_did_match) {
  cleave_graph_t *graph = make_pair();
  cleave_check_model_t model = {"m.onnx", graph};
  cleave_rule_check_options_t options = {.models = &model, .model_count = 1, .threads = 1};
  ck_assert_int_eq((int)run_with(PAIR ", expect = { pair = 1 }", &options)->verdict, (int)CLEAVE_TEST_PASSED);
  ck_assert_ptr_null(find_lint("never-matches"));
  const cleave_lint_t *lint = find_lint("always-refused");
  ck_assert_ptr_nonnull(lint);
  ck_assert_str_eq(lint->message,
                   "fuse 'pair' matches in the 1 model given, but all of it was refused: by where at 'exp': "
                   "only matrices");
  cleave_rule_check_deinit(&check);
  cleave_graph_destroy(graph);
}

UNIT_TEST(a_rule_whose_nodes_others_take_did_match) {
  static const char TEXT[] =
      "return ruleset { name = 'r', backend = 'cpu',\n"
      "  fuse 'one' { pattern = op 'Exp' >> op 'Sin' },\n"
      "  fuse 'two' { pattern = op 'Sin' >> maybe 'Cos' },\n"
      "  test 'it' { graph = function(g, x) return g.Sin(x) end, expect = { two = 1 } } }";
  cleave_graph_t *graph = make_pair();
  cleave_check_model_t model = {"m.onnx", graph};
  cleave_rule_source_t source = {.path = "r.lua", .text = TEXT, .length = sizeof TEXT - 1};
  cleave_rule_check_options_t options = {.models = &model, .model_count = 1, .threads = 1};
  unit_ok(cleave_rule_check_run(&source, &options, &check, e));
  ck_assert_ptr_null(find_lint("never-matches"));
  const cleave_lint_t *lint = find_lint("always-lost");
  ck_assert_ptr_nonnull(lint);
  ck_assert_str_eq(lint->message,
                   "fuse 'two' matches in the 1 model given, but other rules take all of its nodes");
  cleave_rule_check_deinit(&check);
  cleave_graph_destroy(graph);
}

UNIT_TEST(a_rule_that_fails_on_a_model_is_named) {
  static const char TEXT[] =
      "return ruleset { name = 'r', backend = 'cpu',\n"
      "  region 'x' { supported = function(node) return 'yes' end } }";
  cleave_graph_t *graph = NULL;
  cleave_value_t x = CLEAVE_VALUE_NONE;
  cleave_node_t node = CLEAVE_NODE_NONE;
  unit_ok(cleave_graph_create(&graph, e));
  unit_ok(cleave_graph_add_input(graph, "x", CLEAVE_DTYPE_F32, 0, NULL, &x, e));
  unit_ok(cleave_graph_add_node(graph, cleave_op_find("", "Exp"), "exp", &x, 1, 1, &node, e));
  unit_ok(cleave_graph_add_output(graph, "y", cleave_node_output(graph, node, 0), e));
  cleave_check_model_t model = {"m.onnx", graph};
  cleave_rule_source_t source = {.path = "r.lua", .text = TEXT, .length = sizeof TEXT - 1};
  cleave_rule_check_options_t options = {.models = &model, .model_count = 1, .threads = 1};
  unit_ok(cleave_rule_check_run(&source, &options, &check, e));
  const cleave_lint_t *lint = find_lint("fails-on-model");
  ck_assert_ptr_nonnull(lint);
  ck_assert_int_eq((int)lint->level, (int)CLEAVE_LINT_ERROR);
  ck_assert_int_eq(lint->line, 2);
  cleave_rule_check_deinit(&check);
  cleave_graph_destroy(graph);
}

UNIT_TEST(ends_without_leaks_wherever_memory_runs_out) {
  static const char TEXT[] =
      "return ruleset { name = 'r', backend = 'cpu', region 'x' { ops = { 'Exp' } },\n"
      "  test 'it' { graph = function(g, x) return g.Exp(g.Conv(x)) end, expect = { x = 1 }, equal = true } "
      "}";
  cleave_rule_source_t source = {.path = "r.lua", .text = TEXT, .length = sizeof TEXT - 1};
  unit_ok(cleave_rule_check_run(&source, NULL, &check, e));
  cleave_rule_check_deinit(&check);
  for (int64_t countdown = 0;; countdown += 1 + countdown / 16) {
    cleave_error_t error = CLEAVE_ERROR_INIT;
    (void)cleave_memory_fail_after(countdown);
    cleave_status_t status = cleave_rule_check_run(&source, NULL, &check, &error);
    int64_t passed = cleave_memory_fail_after(-1);
    bool all = status == CLEAVE_OK && check.passed == 1;
    cleave_rule_check_deinit(&check);
    if (all && passed <= countdown) {
      break;
    }
    ck_assert(countdown < 1000000);
  }
}

UNIT_SUITE("rule_check")
