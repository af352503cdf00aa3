// SPDX-License-Identifier: Apache-2.0
/*
 * Handles that a rule keeps: of a graph that is gone, of a call that is over, of a node that was removed.
 * Each use is an error with file and line, or gives what it always gave.
 */
#include "runtime/model/rule_list.h"
#include "script/rules/declared.h"
#include "unit.h"

/* Rules, and the graph of their one test. */
typedef struct fixture {
  cleave_rule_list_t list;
  cleave_graph_t *graph;
} fixture_t;

#define TEST_GRAPH                                                                                     \
  "  test 'graph' { graph = function(g, x) kept_g = kept_g or g return g.Relu(g.Exp(g.Relu(x))) end, " \
  "inputs = { { 4 } }, expect = {} },\n"
#define HEAD "local kept, kept_g, calls = nil, nil, 0\n"

/* `head` begins in line 2, the rule in line 4. */
static fixture_t load(const char *head, const char *rule) {
  char text[4096];
  fixture_t fixture = {.graph = NULL};
  (void)snprintf(text, sizeof text,
                 HEAD "%s\nreturn ruleset { name = 'a', backend = 'cpu',\n%s\n" TEST_GRAPH "}\n", head, rule);
  cleave_rule_source_t source = {.path = "a.lua", .text = text, .length = strlen(text)};
  unit_ok(cleave_rule_list_load(
      &fixture.list, NULL,
      &(cleave_partition_request_t){
          .size = sizeof(cleave_partition_request_t), .sources = &source, .source_count = 1},
      NULL, e));
  return fixture;
}

static void build(fixture_t *fixture) {
  cleave_graph_destroy(fixture->graph);
  fixture->graph = NULL;
  const cleave_declared_t *declared = cleave_rules_declared(fixture->list.files[0]);
  unit_ok(cleave_rules_build_test(fixture->list.files[0], &declared->tests[0], &fixture->graph, e));
}

static cleave_status_t run(const fixture_t *fixture, cleave_error_t *error) {
  cleave_plan_t *plan = NULL;
  cleave_status_t status = cleave_rule_list_partition(&fixture->list, fixture->graph, &plan, error);
  cleave_plan_destroy(plan);
  return status;
}

static void close_fixture(fixture_t *fixture) {
  cleave_rule_list_deinit(&fixture->list);
  cleave_graph_destroy(fixture->graph);
}

/* Runs once over one graph, and then over another that took its place in memory. */
static void expect_gone(const char *head, const char *rule, const char *message) {
  fixture_t fixture = load(head, rule);
  build(&fixture);
  unit_ok(run(&fixture, e));
  build(&fixture);
  unit_fails(run(&fixture, e), CLEAVE_ERROR_RULE, message);
  /* And a graph later. */
  unit_fails(run(&fixture, e), CLEAVE_ERROR_RULE, message);
  close_fixture(&fixture);
}

/* ---- graphs that are gone ---- */

#define WHERE(body) "  fuse 'r' { pattern = op { 'Exp', as = 'x' }, where = function(m, o) " body " end },"

UNIT_TEST(a_node_of_a_graph_that_is_gone_is_refused) {
  expect_gone("", WHERE("if kept then return kept.op == 'Exp' end kept = m.x return true"),
              "a.lua:4: fuse 'r': this node is no longer valid: it is of another graph, or was removed; at "
              "Exp 'Exp_0'");
}

UNIT_TEST(a_value_of_a_graph_that_is_gone_is_refused) {
  expect_gone("", WHERE("if kept then return kept.rank == 1 end kept = m.x.outputs[1] return true"),
              "a.lua:4: fuse 'r': this value is no longer valid: it is of another graph, or was removed; at "
              "Exp 'Exp_0'");
}

UNIT_TEST(views_of_a_node_that_is_gone_are_refused) {
  expect_gone("", WHERE("if kept then return kept[1] end kept = m.x.inputs return true"),
              "a.lua:4: fuse 'r': this inputs is no longer valid: it is of another graph, or was removed; at "
              "Exp 'Exp_0'");
  expect_gone("", WHERE("if kept then return #kept == 1 end kept = m.x.outputs return true"),
              "a.lua:4: fuse 'r': this outputs is no longer valid: it is of another graph, or was removed; "
              "at Exp 'Exp_0'");
}

UNIT_TEST(a_graph_that_is_gone_is_refused) {
  expect_gone(
      "",
      "  region 'r' { selector = function(graph) if kept then local n = kept.node_count end kept = graph "
      "return { select = function() return true end } end, ops = nil },",
      "a.lua:4: region 'r': this graph is no longer valid: it is of another graph, or was removed");
}

UNIT_TEST(nodes_of_a_list_of_a_graph_that_is_gone_are_refused) {
  expect_gone("",
              "  region 'r' { selector = function(graph) kept = kept or graph.nodes local op = kept[1].op "
              "return { select = function() return true end } end },",
              "a.lua:4: region 'r': this node is no longer valid: it is of another graph, or was removed");
}

UNIT_TEST(a_method_of_a_node_that_is_gone_is_refused) {
  expect_gone("", WHERE("if kept then return kept[1](kept[2], 'x') end kept = { m.x.attr, m.x } return true"),
              "a.lua:4: fuse 'r': this node is no longer valid: it is of another graph, or was removed; at "
              "Exp 'Exp_0'");
}

UNIT_TEST(a_coroutine_that_holds_a_handle_is_refused_too) {
  expect_gone(
      "local function read(x) while true do coroutine.yield(select(2, pcall(function() return x.op end))) "
      "end end",
      WHERE("kept = kept or coroutine.wrap(read) local op = kept(m.x) if op ~= 'Exp' then error(op, 0) end "
            "return true"),
      "a.lua:2: fuse 'r': this node is no longer valid: it is of another graph, or was removed; at Exp "
      "'Exp_0'");
}

UNIT_TEST(comparing_and_showing_what_is_gone_is_harmless) {
  fixture_t fixture = load("", WHERE("local same = kept == m.x kept = kept or m.x "
                                     "return tostring(kept) ~= '' and not (same and calls > 0)"));
  for (int k = 0; k < 3; k++) {
    build(&fixture);
    unit_ok(run(&fixture, e));
  }
  close_fixture(&fixture);
}

UNIT_TEST(handles_of_gone_graphs_stay_keys_of_tables) {
  fixture_t fixture =
      load("kept = {}", WHERE("kept[m.x] = true local n = 0 for node in pairs(kept) do n = n + 1 end "
                              "calls = calls + 1 assert(n == calls) return true"));
  for (int k = 0; k < 5; k++) {
    build(&fixture);
    unit_ok(run(&fixture, e));
  }
  close_fixture(&fixture);
}

/* ---- calls that are over ---- */

UNIT_TEST(a_match_lives_for_one_call) {
  expect_gone("", WHERE("if kept then return kept.x end kept = m return true"),
              "a.lua:4: fuse 'r': this match is no longer valid: it lives as long as the call that it was "
              "made for; at "
              "Exp 'Exp_0'");
}

UNIT_TEST(a_proposed_region_lives_for_one_call) {
  expect_gone(
      "",
      "  region 'r' { ops = { 'Exp' }, review = function(sub) if kept then return kept.flops > 0 end "
      "kept = sub return true end },",
      "a.lua:4: region 'r': this subgraph is no longer valid: it lives as long as the call that it was made "
      "for; at Exp 'Exp_0'");
}

UNIT_TEST(a_match_is_no_region_and_no_node) {
  fixture_t fixture = load("", WHERE("return m.x.attr(m, 'x')"));
  build(&fixture);
  unit_fails(run(&fixture, e), CLEAVE_ERROR_RULE,
             "a.lua:4: fuse 'r': expected a node, found a match; at Exp 'Exp_0'");
  close_fixture(&fixture);
}

/* ---- changing graphs ---- */

UNIT_TEST(handles_change_nothing) {
  static const struct {
    const char *body;
    const char *message;
  } CASES[] = {
      {"m.x.op = 'Sin' return true", "a.lua:4: fuse 'r': a node cannot be changed; at Exp 'Exp_0'"},
      {"m.x.inputs[1] = nil return true", "a.lua:4: fuse 'r': a inputs cannot be changed; at Exp 'Exp_0'"},
      {"m.x.attrs.alpha = 2 return true",
       "a.lua:4: fuse 'r': a attributes cannot be changed; at Exp 'Exp_0'"},
      {"m.y = m.x return true", "a.lua:4: fuse 'r': a match cannot be changed; at Exp 'Exp_0'"},
      {"o.x = 1 return true", "a.lua:4: fuse 'r': options cannot be changed; at Exp 'Exp_0'"},
      {"setmetatable(m, {}) return true", NULL},
      {"return getmetatable(m).__index(m.x, 'op') end, enabled = function() return true", NULL}};
  for (size_t k = 0; k < sizeof CASES / sizeof CASES[0]; k++) {
    char rule[512];
    (void)snprintf(rule, sizeof rule, WHERE("%s"), CASES[k].body);
    fixture_t fixture = load("", rule);
    build(&fixture);
    if (CASES[k].message != NULL) {
      unit_fails(run(&fixture, e), CLEAVE_ERROR_RULE, CASES[k].message);
    } else {
      unit_fails_with(run(&fixture, e), CLEAVE_ERROR_RULE, "a.lua:4: fuse 'r': ");
    }
    close_fixture(&fixture);
  }
}

UNIT_TEST(lists_that_a_rule_gets_are_its_own) {
  fixture_t fixture =
      load("", WHERE("for k = 1, #m.nodes do m.nodes[k] = nil end m.x.users[1] = nil m.x.shape[1] = 7 "
                     "return #m.nodes == 1 and #m.x.users == 1 and m.x.shape[1] == 4"));
  build(&fixture);
  cleave_plan_t *plan = NULL;
  unit_ok(cleave_rule_list_partition(&fixture.list, fixture.graph, &plan, e));
  ck_assert_uint_eq(plan->rules[0].matches, 1);
  cleave_plan_destroy(plan);
  close_fixture(&fixture);
}

UNIT_TEST(the_builder_of_a_test_builds_nothing_later) {
  fixture_t fixture = load("", WHERE("kept_g.Relu(m.x.outputs[1]) return true"));
  build(&fixture);
  uint64_t count = fixture.graph->nodes.count;
  unit_fails_with(run(&fixture, e), CLEAVE_ERROR_RULE, "a.lua:4: fuse 'r': ");
  ck_assert_uint_eq(fixture.graph->nodes.count, count);
  close_fixture(&fixture);
}

UNIT_TEST(the_builder_of_a_rewrite_builds_nothing_while_matching) {
  fixture_t fixture = load("",
                           "  rewrite 'w' { pattern = op { 'Exp', inputs = { any 'x' } },\n"
                           "    replace = function(m, g) kept = g return g.Sin(m.x) end },\n"
                           "  fuse 'r' { pattern = op { 'Sin', as = 'x' },\n"
                           "    where = function(m) kept.Relu(m.x.outputs[1]) return true end },");
  build(&fixture);
  unit_fails_with(run(&fixture, e), CLEAVE_ERROR_RULE, "a.lua:7: fuse 'r': ");
  close_fixture(&fixture);
}

UNIT_TEST(a_pass_that_changes_the_graph_keeps_old_handles_out) {
  fixture_t fixture = load(
      "",
      "  pass 'p' { run = function(graph, o, g) for node in graph:topological() do\n"
      "    if node.op == 'Exp' then kept = node g.replace(node.outputs[1], g.Sin(node.inputs[1])) end end\n"
      "    local _ = kept.op end },");
  build(&fixture);
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_status_t status = run(&fixture, &error);
  /* The node may be there until dead ones are removed; it may not be read once it is not. */
  ck_assert_msg(status == CLEAVE_OK || strstr(error.message, "this node is no longer valid") != NULL, "%s",
                error.message);
  close_fixture(&fixture);
}

/* ---- other interpreters ---- */

UNIT_TEST(two_rule_files_share_nothing) {
  static const char TEXT[] =
      "local kept\n"
      "return ruleset { name = 'a', backend = 'cpu', fuse 'r' { pattern = op { 'Exp', as = 'x' },\n"
      "  where = function(m) assert(kept == nil) kept = m.x return false, kept.op end } }\n";
  fixture_t fixture = load("", "  fuse 'none' { pattern = op 'Conv' },");
  build(&fixture);
  cleave_rule_source_t sources[2] = {{"1.lua", TEXT, sizeof TEXT - 1}, {"2.lua", TEXT, sizeof TEXT - 1}};
  cleave_rule_list_t list = {0};
  unit_ok(cleave_rule_list_load(
      &list, NULL,
      &(cleave_partition_request_t){
          .size = sizeof(cleave_partition_request_t), .sources = sources, .source_count = 2},
      NULL, e));
  cleave_plan_t *plan = NULL;
  unit_ok(cleave_rule_list_partition(&list, fixture.graph, &plan, e));
  cleave_plan_destroy(plan);
  cleave_rule_list_deinit(&list);
  close_fixture(&fixture);
}

UNIT_SUITE("attacks with handles")
