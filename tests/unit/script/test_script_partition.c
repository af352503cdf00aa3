// SPDX-License-Identifier: Apache-2.0
/* Rules written in Lua at work: where, supported, selectors and review over small graphs, and what the
 * handles that they get can and cannot do. */
#include "base/text.h"
#include "cleave/context.h"
#include "rule_case.h"
#include "script_case.h"
#include "unit.h"

/* MXNet's ContainOpSelector as a selector. */
#define CONTAINS(list)                                                         \
  REGION(                                                                      \
      "selector = function()\n"                                                \
      "  local wanted = {}\n"                                                  \
      "  for _, name in ipairs {" list                                         \
      "} do wanted[name] = true end\n"                                         \
      "  local function is_wanted(node) return wanted[node.op] or false end\n" \
      "  return { select = is_wanted,\n"                                       \
      "    select_input = function(_, node) return is_wanted(node) end,\n"     \
      "    select_output = function(_, node) return is_wanted(node) end }\n"   \
      "end")

/* ---- operators and selectors agree ---- */

UNIT_TEST(splits_a_set_that_would_close_a_cycle) {
  script_case_expect(script_case_diamond(), REGION("ops = { 'Exp', 'Sin', 'Add' }"), "exp sin|add");
  script_case_expect(script_case_diamond(), CONTAINS("'Exp', 'Sin', 'Add'"), "exp sin|add");
  script_case_expect(script_case_diamond(), REGION("ops = { 'Exp', 'Cos', 'Add' }"), "exp cos|add");
  script_case_expect(script_case_diamond(), CONTAINS("'Exp', 'Cos', 'Add'"), "exp cos|add");
}

UNIT_TEST(takes_whole_graphs_and_nothing) {
  script_case_expect(script_case_diamond(), CONTAINS("'Exp', 'Sin', 'Cos', 'Add'"), "exp cos sin add");
  script_case_expect(script_case_diamond(), REGION("ops = {}"), "");
  script_case_expect(script_case_diamond(), CONTAINS(""), "");
  script_case_expect(script_case_diamond(), REGION(""), "exp cos sin add");
}

UNIT_TEST(groups_by_number) {
  script_case_expect(script_case_row(4),
                     REGION("supported = function(node) return node.name == 'r3' and 1 or 0 end"),
                     "r1 r2|r3|r4");
  script_case_expect(script_case_row(4), REGION("supported = function(node) return node.name ~= 'r2' end"),
                     "r1|r3 r4");
  script_case_expect(script_case_row(3), REGION("supported = function() end"), "");
}

/* ---- selectors with state ---- */

UNIT_TEST(makes_a_fresh_selector_for_every_seed) {
  /* each takes two nodes: its state is a local of the function */
  script_case_expect(script_case_row(5),
                     REGION("selector = function()\n"
                            "  local taken = 0\n"
                            "  local function take()\n"
                            "    if taken == 2 then return false end\n"
                            "    taken = taken + 1\n"
                            "    return true\n"
                            "  end\n"
                            "  return { select = take, select_output = take }\n"
                            "end"),
                     "r1 r2|r3 r4|r5");
}

UNIT_TEST(filters_what_the_selector_drops) {
  script_case_expect(script_case_row(4),
                     REGION("selector = function()\n"
                            "  local function yes() return true end\n"
                            "  return { select = yes, select_input = yes, select_output = yes,\n"
                            "    filter = function(nodes)\n"
                            "      local kept = {}\n"
                            "      for _, node in ipairs(nodes) do\n"
                            "        if node.name ~= 'r3' then kept[#kept + 1] = node end\n"
                            "      end\n"
                            "      return kept\n"
                            "    end }\n"
                            "end"),
                     "r1 r2|r4");
}

UNIT_TEST(asks_about_neighbours_of_nodes_that_are_in) {
  script_case_expect(
      script_case_diamond(),
      REGION("selector = function(graph)\n"
             "  assert(graph.node_count == 4 and #graph.nodes == 4)\n"
             "  local inside = {}\n"
             "  return {\n"
             "    select = function(node) inside[node] = node.op == 'Cos' return inside[node] end,\n"
             "    select_input = function(node, input)\n"
             "      assert(inside[node] and node.inputs[1].producer == input\n"
             "        or node.inputs[2].producer == input)\n"
             "      return false\n"
             "    end,\n"
             "    select_output = function(node, output)\n"
             "      assert(inside[node] and node.users[1] == output)\n"
             "      inside[output] = true\n"
             "      return output.op == 'Add'\n"
             "    end }\n"
             "end"),
      "cos add");
}

UNIT_TEST(reports_what_is_wrong_with_a_selector) {
  script_case_fails(script_case_row(2), REGION("selector = function() return 7 end"), CLEAVE_ERROR_RULE,
                    "r.lua:1: region 'g': selector returned a number, expected a table with select");
  script_case_fails(script_case_row(2), REGION("selector = function() return {} end"), CLEAVE_ERROR_RULE,
                    "r.lua:1: region 'g': the selector has no function 'select'");
  script_case_fails(
      script_case_row(2), REGION("selector = function() return { selct = function() end } end"),
      CLEAVE_ERROR_RULE,
      "r.lua:1: region 'g': the selector has an unknown function 'selct' (did you mean 'select'?)");
  script_case_fails(script_case_row(2),
                    REGION("selector = function() return { select = function() end } end"), CLEAVE_ERROR_RULE,
                    "r.lua:1: region 'g': select returned nothing, expected true or false; at Relu 'r1'");
  script_case_fails(script_case_row(2),
                    REGION("selector = function() return { select = function() return true end,\n"
                           " filter = function() return 3 end } end"),
                    CLEAVE_ERROR_RULE,
                    "r.lua:1: region 'g': filter returned a number, expected a list of nodes; at Relu 'r1'");
  script_case_fails(script_case_row(3),
                    REGION("selector = function(graph) return { select = function() return true end,\n"
                           " filter = function() return graph.nodes end } end"),
                    CLEAVE_ERROR_RULE,
                    "r.lua:1: region 'g': filter returned a node that is not a candidate; at Relu 'r1'");
  script_case_fails(script_case_row(3),
                    REGION("selector = function() return { select = function() return true end,\n"
                           " select_output = function(node)\n  return node.nme end } end"),
                    CLEAVE_ERROR_RULE,
                    "r.lua:4: region 'g': a node has no field 'nme' (did you mean 'name'?); at Relu 'r2'");
}

UNIT_TEST(runs_the_state_machine_of_convolutions) {
  char found[512];
  cleave_rules_t *rules = NULL;
  cleave_plan_t *plan = NULL;
  unit_ok(cleave_rules_load(
      NULL, &(cleave_rule_source_t){.path = CLEAVE_SOURCE_DIR "/tests/lua/rules_stateful.lua"}, NULL, NULL,
      &rules, e));
  cleave_graph_t *graph = script_case_graph();
  cleave_value_t x = script_case_input(graph, "x", 3);
  static const int64_t KERNEL[4] = {3, 3, 1, 1};
  cleave_value_t w = script_case_constant(graph, "w", 4, KERNEL, 1);
  /* c1 -> a1 -> relu r1 -> c2 (read by r2 and s2): c1 a1 r1 are a region; c2 stands alone and is dropped */
  const cleave_value_t first[2] = {x, w};
  cleave_value_t r1 =
      script_case_unary(graph, "Relu", "r1",
                        script_case_sum(graph, "a1", script_case_node(graph, "Conv", "c1", first, 2, 3), x));
  const cleave_value_t second[2] = {r1, w};
  cleave_value_t c2 = script_case_node(graph, "Conv", "c2", second, 2, 3);
  cleave_value_t r2 = script_case_unary(graph, "Relu", "r2", c2);
  cleave_value_t s2 = script_case_unary(graph, "Sigmoid", "s2", c2);
  /* c3 -> sigmoid s3 -> relu r3: nothing after an activation */
  const cleave_value_t third[2] = {s2, w};
  cleave_value_t c3 = script_case_node(graph, "Conv", "c3", third, 2, 3);
  cleave_value_t r3 = script_case_unary(graph, "Relu", "r3", script_case_unary(graph, "Sigmoid", "s3", c3));
  script_case_finish(graph, script_case_sum(graph, "end", r2, r3));
  unit_ok(script_case_partition(graph, rules, &plan, e));
  script_case_describe(plan, found, sizeof found);
  ck_assert_str_eq(found, "c1 a1 r1|c3 s3");
  cleave_plan_destroy(plan);
  cleave_rules_destroy(rules);
  cleave_graph_destroy(graph);
}

/* ---- errors and budgets ---- */

UNIT_TEST(an_error_in_a_helper_tells_who_called_it_and_for_which_node) {
  script_case_fails(
      script_case_convolution(),
      "local function size(node)\n  return node.shape[9] > 2\nend\n"
      "local function fits(node)\n  local yes = size(node)\n  return yes\nend\n" FUSE(
          "pattern = op { 'Conv', as = 'c' }, where = function(m)\n"
          "  local yes = fits(m.c)\n  return yes\nend"),
      CLEAVE_ERROR_RULE,
      "r.lua:2: fuse 'x': attempt to compare number with nil; called at line 5, from line 10; at "
      "Conv 'conv'");
}

static void keep_lines(void *context, cleave_log_level_t level, const char *line) {
  cleave_text_t *text = context;
  ck_assert_int_eq(level, CLEAVE_LOG_INFORMATION);
  cleave_text_format(text, "%s\n", line);
}

UNIT_TEST(print_goes_to_the_log_with_rule_and_node) {
  cleave_text_t log = {0};
  cleave_rules_t *rules = NULL;
  cleave_plan_t *plan = NULL;
  static const char TEXT[] = "print('loading', 1, nil)\n" FUSE(
      "pattern = op { 'Conv', as = 'c' }, where = function(m)\n"
      "  print(m.c, m.c.dtype, {})\n  print('two\\nlines\\27[0m')\n"
      "  return true\nend");
  cleave_context_set_log(NULL, keep_lines, &log);
  cleave_graph_t *graph = script_case_convolution();
  unit_ok(cleave_rules_load(NULL,
                            &(cleave_rule_source_t){.path = "r.lua", .text = TEXT, .length = sizeof TEXT - 1},
                            NULL, NULL, &rules, e));
  unit_ok(script_case_partition(graph, rules, &plan, e));
  cleave_context_set_log(NULL, NULL, NULL);
  ck_assert_str_eq(cleave_text_get(&log),
                   "r.lua:1: loading 1 nil\n"
                   "r.lua:4: fuse 'x', at Conv 'conv': Conv 'conv' float32 table\n"
                   "r.lua:5: fuse 'x', at Conv 'conv': two\n"
                   "r.lua:5: fuse 'x', at Conv 'conv': lines [0m\n");
  cleave_text_deinit(&log);
  cleave_plan_destroy(plan);
  cleave_rules_destroy(rules);
  cleave_graph_destroy(graph);
}

UNIT_TEST(ends_with_the_error_of_a_callback) {
  script_case_fails(script_case_convolution(),
                    FUSE("pattern = op { 'Conv', as = 'c' },\nwhere = function(m)\nreturn m.d end"),
                    CLEAVE_ERROR_RULE,
                    "r.lua:4: fuse 'x': the pattern has no label 'd' (did you mean 'c'?); at Conv 'conv'");
  script_case_fails(script_case_convolution(), FUSE("pattern = op 'Conv', where = function() end"),
                    CLEAVE_ERROR_RULE,
                    "r.lua:1: fuse 'x': where returned nothing, expected true or false; at Conv 'conv'");
  script_case_fails(
      script_case_convolution(), FUSE("pattern = op 'Conv', where = function() return 'yes' end"),
      CLEAVE_ERROR_RULE,
      "r.lua:1: fuse 'x': where returned a string, expected true or false (and why not); at Conv 'conv'");
  script_case_fails(
      script_case_row(2), REGION("review = function() return 5 end"), CLEAVE_ERROR_RULE,
      "r.lua:1: region 'g': review returned a number, expected true, false or nodes to keep; at "
      "Relu 'r1'");
  script_case_fails(script_case_row(2),
                    REGION("selector = function() return { select = function() return 'yes' end } end"),
                    CLEAVE_ERROR_RULE,
                    "r.lua:1: region 'g': select returned a string, expected true or false; at Relu 'r1'");
  script_case_fails(
      script_case_convolution(), FUSE("pattern = op 'Conv', where = function() return false, 3 end"),
      CLEAVE_ERROR_RULE,
      "r.lua:1: fuse 'x': where returned a number as the reason, expected a string; at Conv 'conv'");
  script_case_fails(
      script_case_row(2), REGION("supported = function() return 'yes' end"), CLEAVE_ERROR_RULE,
      "r.lua:1: region 'g': supported returned a string, expected false, true, -1 (any group) or "
      "a group from 0; at Relu 'r1'");
  script_case_fails(script_case_row(2), REGION("supported = function() return -3 end"), CLEAVE_ERROR_RULE,
                    "r.lua:1: region 'g': supported returned -3, expected false, true, -1 (any group) or a "
                    "group from 0; at Relu 'r1'");
  script_case_fails(
      script_case_row(2), REGION("review = function(sub)\n return sub.flop end"), CLEAVE_ERROR_RULE,
      "r.lua:3: region 'g': a subgraph has no field 'flop' (did you mean 'flops'?); at Relu 'r1'");
  script_case_fails(script_case_row(2), REGION("supported = function() error({}) end"), CLEAVE_ERROR_RULE,
                    "r.lua:2: region 'g': raised a table value instead of a message; at Relu 'r1'");
}

UNIT_TEST(ends_runaway_callbacks) {
  script_case_fails(script_case_row(2), REGION("supported = function()\n while true do pcall(error) end end"),
                    CLEAVE_ERROR_LIMIT,
                    "r.lua:3: region 'g': the time budget of 100 ms is spent; at Relu 'r1'");
  script_case_fails(script_case_convolution(),
                    FUSE("pattern = op 'Conv', where = function() while true do end end"), CLEAVE_ERROR_LIMIT,
                    "r.lua:2: fuse 'x': the time budget of 100 ms is spent; at Conv 'conv'");
}

/* ---- reasons ---- */

UNIT_TEST(keeps_the_reasons_of_where_and_review) {
  cleave_rules_t *rules = script_case_load(
      "return ruleset { name = 'r', backend = 'b',\n"
      "  fuse 'x' { pattern = op { 'Conv', as = 'c' } >> op 'Relu', where = function(m, o)\n"
      "    return m.c.flops > o.least, 'too little to do' end },\n"
      "  region 'g' { ops = { 'Relu' }, review = function(sub)\n"
      "    return sub.node_count > 1, 'only ' .. sub.nodes[1].name end },\n"
      "  options = { least = option.number(1e9) } }");
  cleave_graph_t *graph = script_case_convolution();
  cleave_plan_t *plan = NULL;
  unit_ok(script_case_partition(graph, rules, &plan, e));
  ck_assert_uint_eq(plan->fusion_count, 0);
  ck_assert_uint_eq(plan->region_count, 0);
  ck_assert_uint_eq(plan->note_count, 2);
  ck_assert_int_eq(plan->notes[0].kind, CLEAVE_PLAN_NOTE_WHERE);
  ck_assert_str_eq(plan->notes[0].reason, "too little to do");
  ck_assert_int_eq(plan->notes[1].kind, CLEAVE_PLAN_NOTE_REVIEW);
  ck_assert_str_eq(plan->notes[1].reason, "only relu");
  ck_assert_uint_eq(plan->rules[0].refused, 1);
  ck_assert_uint_eq(plan->rules[1].refused, 1);
  cleave_plan_destroy(plan);
  cleave_rules_destroy(rules);
  cleave_graph_destroy(graph);
}

UNIT_TEST(a_match_that_is_refused_in_both_orders_of_its_inputs_counts_once) {
#define ADD(where)                                                                             \
  "return ruleset { name = 'r', fuse 'x' { pattern = op { 'Add', inputs = { any 'x', any 'y' " \
  "} }, where = function(m) return " where " end } }"
  rule_case_request_t request = {.model =
                                     "local x = g.input('x', 'float32', { 2 })\n"
                                     "g.output('y', g.Add(x, g.Exp(x), { name = 'sum' }))",
                                 .rules = {ADD("false, 'no'")}};
  rule_case_t c = rule_case_create(&request);
  ck_assert_uint_eq(c.plan->rules[0].refused, 1);
  ck_assert_str_eq(rule_case_notes(&c, CLEAVE_PLAN_NOTE_WHERE), "sum: no\n");
  rule_case_deinit(&c);
  request.rules[0] = ADD("m.x.producer ~= nil");
  c = rule_case_create(&request);
  ck_assert_uint_eq(c.plan->rules[0].matches, 1);
  ck_assert_uint_eq(c.plan->rules[0].refused, 0);
  rule_case_deinit(&c);
#undef ADD
}

/* ---- handles ---- */

UNIT_TEST(shows_nodes_values_and_attributes) {
  script_case_expect(
      script_case_convolution(),
      FUSE("pattern = op { 'Conv', as = 'c', inputs = { x = any 'x', w = constant 'w' } } >> op { 'Relu', as "
           "= 'a' }\n"
           "  >> maybe(op { 'Tanh', as = 't' }),\n"
           "where = function(m)\n"
           "  local c, x, w = m.c, m.x, m.w\n"
           "  assert(c.op == 'Conv' and c.name == 'conv' and c.domain == '' and c.index == 0)\n"
           "  assert(c.dtype == 'float32' and c.rank == 4 and #c.shape == 4 and c.shape[2] == 3)\n"
           "  assert(m.t == nil and m.a.op == 'Relu' and #m.nodes == 2 and m.nodes[1] == c)\n"
           "  assert(#c.inputs == 3 and #c.outputs == 1 and c.inputs[4] == nil and c.inputs[0] == nil)\n"
           "  assert(c.inputs.X == x and c.inputs.w == w and c.inputs[2] == w and c.inputs[1] ~= w)\n"
           "  assert(c.outputs.y == c.outputs[1] and c.outputs[1].producer == c)\n"
           "  assert(table.concat(c.attrs.pads, ' ') == '1 1 1 1' and c.attrs.group == 1)\n"
           "  assert(c:attr('auto_pad') == 'NOTSET' and c.attrs.strides[2] == 1)\n"
           "  assert(#c.users == 1 and c.users[1] == m.a and c.flops > 1000)\n"
           "  assert(x.is_input and not x.is_constant and x.producer == nil and x.uses_count == 2)\n"
           "  assert(x.name == 'x' and x.dtype == 'float32' and x.rank == 4 and #x.users == 2)\n"
           "  assert(x:value() == nil and w.is_constant and #w:value() == 81 and w:value()[81] == 0.25)\n"
           "  assert(not x.is_output and m.a.outputs[1].users[1].outputs[1].is_output)\n"
           "  assert(tostring(c) == \"Conv 'conv'\" and tostring(x) == \"value 'x'\")\n"
           "  local set = { [c] = 1, [x] = 2, [m.a] = 3 }\n"
           "  assert(set[m.nodes[1]] == 1 and set[c.inputs.x] == 2 and set[c.users[1]] == 3)\n"
           "  local order = {}\n"
           "  for key in pairs(set) do order[#order + 1] = tostring(key) end\n"
           "  assert(table.concat(order, ',') == \"Conv 'conv',Relu 'relu',value 'x'\")\n"
           "  return true\n"
           "end"),
      "conv relu");
}

UNIT_TEST(shows_the_graph_and_the_subgraph) {
  script_case_expect(
      script_case_convolution(),
      REGION("ops = { 'Conv', 'Relu' }, review = function(sub)\n"
             "  assert(#sub.nodes == 2 and sub.nodes[2].op == 'Relu' and sub.node_count == 2)\n"
             "  assert(#sub.inputs == 1 and sub.inputs[1].name == 'x' and sub.fusion_count == 0)\n"
             "  assert(#sub.outputs == 1 and sub.outputs[1].name == 'relu' and sub.flops > 1000)\n"
             "  return true\n"
             "end"),
      "conv relu");
  script_case_expect(script_case_convolution(),
                     REGION("selector = function(graph)\n"
                            "  local names = {}\n"
                            "  for node in graph:topological() do names[#names + 1] = node.name end\n"
                            "  assert(table.concat(names, ' ') == 'conv relu add')\n"
                            "  assert(#graph.inputs == 1 and graph.outputs[1].producer.op == 'Add')\n"
                            "  assert(graph.name == '')\n"
                            "  return { select = function() return false end }\n"
                            "end"),
                     "");
}

UNIT_TEST(refuses_misused_handles) {
  static const struct {
    const char *code;
    const char *message;
  } CASES[] = {
      {"m.c.x = 1", "r.lua:2: fuse 'x': a node cannot be changed; at Conv 'conv'"},
      {"local y = m.c.inputs.weight",
       "r.lua:2: fuse 'x': operator 'Conv' has no input 'weight'; at Conv 'conv'"},
      {"local y = m.c.attrs.stride",
       "r.lua:2: fuse 'x': operator 'Conv' has no attribute 'stride' (did you mean 'strides'?); at Conv "
       "'conv'"},
      {"local y = m.c[1]",
       "r.lua:2: fuse 'x': a node has named fields, found a number as the name; at Conv 'conv'"},
      {"m.c.attr(m.x, 'pads')", "r.lua:2: fuse 'x': expected a node, found a value; at Conv 'conv'"},
      {"m.x.value(3)", "r.lua:2: fuse 'x': expected a value, found a number; at Conv 'conv'"},
      {"setmetatable(m.c, {})",
       "r.lua:2: fuse 'x': bad argument #1 to 'setmetatable' (table expected, got node); at Conv 'conv'"},
      {"m.x.shape = {}", "r.lua:2: fuse 'x': a value cannot be changed; at Conv 'conv'"},
  };
  for (size_t k = 0; k < sizeof CASES / sizeof CASES[0]; k++) {
    char text[512];
    (void)snprintf(text, sizeof text,
                   FUSE("pattern = op { 'Conv', as = 'c', inputs = { x = any 'x' } }, where = function(m) %s "
                        "return true end"),
                   CASES[k].code);
    script_case_fails(script_case_convolution(), text, CLEAVE_ERROR_RULE, CASES[k].message);
  }
}

UNIT_TEST(refuses_handles_that_outlived_their_graph) {
  cleave_rules_t *rules = script_case_load(
      "local kept, match\n"
      "return ruleset { name = 'r', fuse 'x' { pattern = op { 'Conv', as = 'c' }, where = function(m)\n"
      "  if match and m.c.index == 7 then\n"
      "    return match.c\n"
      "  end\n"
      "  if kept then return kept.op == 'Conv' end\n"
      "  kept, match = m.c, m\n"
      "  return true\n"
      "end } }");
  cleave_plan_t *plan = NULL;
  cleave_graph_t *first = script_case_convolution();
  unit_ok(script_case_partition(first, rules, &plan, e));
  cleave_plan_destroy(plan);
  plan = NULL;
  unit_ok(script_case_partition(first, rules, &plan, e)); /* the same graph: the handle is good */
  cleave_plan_destroy(plan);
  plan = NULL;
  cleave_graph_t *second = script_case_row(1);
  static const int64_t KERNEL[4] = {3, 3, 1, 1};
  const cleave_value_t inputs[2] = {cleave_graph_output(second, 0),
                                    script_case_constant(second, "kernel", 4, KERNEL, 1)};
  script_case_finish(second, script_case_node(second, "Conv", "late", inputs, 2, 3));
  unit_fails(script_case_partition(second, rules, &plan, e), CLEAVE_ERROR_RULE,
             "r.lua:6: fuse 'x': this node is no longer valid: it is of another graph, or was removed; at "
             "Conv 'late'");
  cleave_rules_destroy(rules);
  cleave_graph_destroy(first);
  cleave_graph_destroy(second);
}

UNIT_TEST(refuses_matches_that_outlived_their_call) {
  cleave_graph_t *graph = script_case_graph();
  cleave_value_t x = script_case_input(graph, "x", 3);
  script_case_finish(graph, script_case_unary(graph, "Relu", "a", x));
  script_case_finish(graph, script_case_unary(graph, "Relu", "b", x));
  script_case_fails(
      graph,
      "local kept\nreturn ruleset { name = 'r', fuse 'x' { pattern = op { 'Relu', as = 'c' },\n"
      "where = function(m)\n  if kept then return kept.c end\n  kept = m\n  return false\nend } }",
      CLEAVE_ERROR_RULE,
      "r.lua:4: fuse 'x': this match is no longer valid: it lives as long as the call that it was made for; "
      "at Relu 'b'");
}

/* ---- memory ---- */

UNIT_TEST(survives_every_failing_allocation) {
  static const char TEXT[] =
      "return ruleset { name = 'r', fuse 'x' { pattern = op { 'Conv', as = 'c' } >> op 'Relu', where = "
      "function(m)\n"
      "  local t = { m.c, m.c.inputs.W, m.c.shape, tostring(m.c), m.c.attrs.pads } return #t == 5 end },\n"
      "region 'g' { selector = function(graph) local n = graph.nodes return { select = function(a) return a "
      "== n[1] end,\n"
      "  select_output = function() return true end, filter = function(nodes) return nodes end } end,\n"
      "  review = function(sub) return #sub.nodes == 3 end } }";
  cleave_graph_t *graph = script_case_convolution();
  cleave_status_t status = CLEAVE_ERROR_OUT_OF_MEMORY;
  for (int64_t k = 0; status != CLEAVE_OK; k++) {
    cleave_rules_t *rules = script_case_load(TEXT); /* fresh, so that nothing is cached */
    cleave_plan_t *plan = NULL;
    cleave_error_t error = CLEAVE_ERROR_INIT;
    (void)cleave_memory_fail_after(k);
    status = script_case_partition(graph, rules, &plan, &error);
    (void)cleave_memory_fail_after(-1);
    ck_assert_msg(status == CLEAVE_OK || status == CLEAVE_ERROR_OUT_OF_MEMORY, "%s", error.message);
    ck_assert((plan != NULL) == (status == CLEAVE_OK));
    ck_assert(status == CLEAVE_OK || k < 20000);
    if (plan != NULL) {
      ck_assert_int_gt(k, 50);
      ck_assert_uint_eq(plan->fusion_count, 1);
      ck_assert_uint_eq(plan->region_count, 1);
      ck_assert_uint_eq(plan->regions[0].node_count, 3);
    }
    cleave_plan_destroy(plan);
    cleave_rules_destroy(rules);
  }
  cleave_graph_destroy(graph);
}

UNIT_SUITE("script partition")
