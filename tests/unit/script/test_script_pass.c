// SPDX-License-Identifier: Apache-2.0
// Passes written in Lua: what they make of a model, what is refused and why; and plans with rewrites and
// passes in them, saved and loaded. Every log is performed once more from its JSON.
#include "rewrite_case.h"

// ---- passes ----

#define PASS(body) RULESET("\npass 'p' { run = function(graph, options, g) " body " end }")

UNIT_TEST(a_pass_changes_what_it_likes) {
  rule_case_t c =
      run(INPUT
          "local a = g.Relu(x, { name = 'a' }) local b = g.LeakyRelu(a, { name = 'b' }) "
          "g.output('y', g.Exp(b)) g.output('z', g.Abs(a))",
          PASS("for node in graph:topological() do "
               "  if node.op == 'Relu' then "
               "    local y = g.Max(node.inputs.X, 0.0) g.replace(node.outputs[1], y) g.remove(node) "
               "  elseif node.op == 'LeakyRelu' then g.set_attribute(node, 'alpha', 0.25) "
               "  elseif node.op == 'Abs' then g.set_output('z', node.inputs.X) "
               "    g.set_input(graph.outputs[1].producer, 'input', node.inputs.X) end "
               "end"));
  check_ops(&c, "Max Exp");
  check_rule(&c, 0, 1, 0);
  ck_assert_uint_eq(c.plan->rules[0].tries, 1);
  rule_case_deinit(&c);
}

UNIT_TEST(a_pass_adds_inputs_that_sessions_have) {
  rule_case_t c = run(INPUT "return g.Relu(x)", PASS("local scale = g.input('scale', 'float32', { 8 }) "
                                                     "g.set_output(1, graph.outputs[1] * scale)"));
  check_ops(&c, "Relu Mul");
  ck_assert_uint_eq(cleave_model_input_count(c.model), 1);
  ck_assert_uint_eq(cleave_plan_input_count(c.plan), 2);
  ck_assert_uint_eq(cleave_plan_find_input(c.plan, "scale"), 1);
  ck_assert_uint_eq(cleave_plan_find_input(c.plan, "scales"), CLEAVE_INDEX_NONE);
  cleave_port_t port = {.size = sizeof port};
  unit_ok(cleave_plan_input(c.plan, 1, &port, e));
  ck_assert_str_eq(port.name, "scale");
  ck_assert_int_eq(port.tensor.rank, 1);
  ck_assert_int_eq(port.tensor.dims[0], 8);
  unit_fails(cleave_plan_input(c.plan, 2, &port, e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "input 2: the plan has 2 inputs");
  float x[16];
  float scale[8];
  const int64_t x_dims[2] = {2, 8};
  const int64_t scale_dims[1] = {8};
  for (int k = 0; k < 16; k++) {
    x[k] = (float)k - 8.0F;
    scale[k % 8] = (float)(k % 8) * 0.5F;
  }
  cleave_tensor_view_t views[2] = {
      {.size = sizeof views[0], .dtype = CLEAVE_DTYPE_F32, .rank = 2, .dims = x_dims, .data = x},
      {.size = sizeof views[0], .dtype = CLEAVE_DTYPE_F32, .rank = 1, .dims = scale_dims, .data = scale}};
  const cleave_tensor_view_t *pointers[2] = {&views[0], &views[1]};
  for (size_t count = 1; count <= 2; count++) {  // a fixed shape need not be given
    cleave_session_t *session = NULL;
    cleave_tensor_view_t out;
    unit_ok(cleave_session_create(c.model, c.plan, pointers, count, NULL, &session, e));
    unit_ok(cleave_session_set_input(session, 0, &views[0], e));
    unit_fails(cleave_session_run(session, e), CLEAVE_ERROR_INVALID_ARGUMENT,
               "input 'scale' (number 1) is not set");
    unit_ok(cleave_session_set_input(session, 1, &views[1], e));
    unit_ok(cleave_session_run(session, e));
    unit_ok(cleave_session_output(session, 0, &out, e));
    for (int k = 0; k < 16; k++) {
      ck_assert_float_eq(((const float *)out.data)[k], (x[k] > 0.0F ? x[k] : 0.0F) * scale[k % 8]);
    }
    cleave_session_destroy(session);
  }
  rule_case_deinit(&c);
}

UNIT_TEST(types_follow_what_a_pass_changes) {
  rule_case_t c =
      run(INPUT "local c = g.Cast(x, { to = 'float64' }) return g.Cast(g.Exp(c), { to = 'float32' })",
          PASS("for node in graph:topological() do if node.op == 'Cast' then "
               "g.set_attribute(node, 'to', 'float16') end end"));
  const cleave_graph_t *graph = c.plan->graph;
  cleave_value_t y = cleave_graph_output(graph, 0);
  ck_assert_uint_eq(cleave_graph_value(graph, y)->dtype, CLEAVE_DTYPE_F16);
  cleave_node_t cast = cleave_value_producer(graph, y);
  ck_assert_uint_eq(cleave_graph_value(graph, cleave_node_input(graph, cast, 0))->dtype, CLEAVE_DTYPE_F16);
  rule_case_deinit(&c);
}

UNIT_TEST(a_walk_goes_by_the_graph_as_it_was) {
  rule_case_t c = run(INPUT "return g.Exp(g.Relu(g.Relu(g.Relu(x))))",
                      PASS("local seen = 0 "
                           "for node in graph:topological() do "
                           "  seen = seen + 1 "
                           "  if node.op == 'Relu' then "
                           "    local reader = node.users[1] "
                           "    g.replace(node.outputs[1], node.inputs.X) g.remove(node) "
                           "    if reader.op == 'Relu' then "
                           "      g.replace(reader.outputs[1], reader.inputs.X) g.remove(reader) end "
                           "  end "
                           "end "
                           "assert(seen == 3, seen) assert(graph.node_count == 1) "
                           "assert(#graph.nodes == 1)"));
  check_ops(&c, "Exp");
  rule_case_deinit(&c);
}

UNIT_TEST(passes_and_rewrites_keep_their_order) {
  rule_case_t c =
      run(INPUT "return g.Relu(x)",
          RULESET("pass 'count' { run = function(graph) assert(graph.nodes[1].op == 'Abs') end }, "
                  "rewrite 'first' { priority = 1, pattern = op { 'Relu', as = 'r' }, "
                  "  replace = function(m, g) return g.Abs(m.r.inputs.X) end }, "
                  "rewrite 'last' { pattern = op { 'Abs', as = 'r' }, "
                  "  replace = function(m, g) return g.Neg(m.r.inputs.X) end }"));
  check_ops(&c, "Neg");
  rule_case_deinit(&c);
}

UNIT_TEST(a_pass_cannot_break_the_graph) {
  const char *model =
      INPUT "local a = g.Relu(x, { name = 'a' }) return g.Exp(g.Abs(a, { name = 'b' }), { name = 'c' })";
  ck_assert_str_eq(failure(model, PASS("g.remove(graph.nodes[1])")),
                   "r.lua:2: pass 'p': node 'a' cannot be removed: 'b' reads it");
  ck_assert_str_eq(failure(model, PASS("g.remove(graph.nodes[3])")),
                   "r.lua:2: pass 'p': node 'c' cannot be removed: it makes an output of the graph");
  ck_assert_str_eq(failure(model, PASS("g.set_input(graph.nodes[1], 'X', graph.outputs[1])")),
                   "r.lua:2: pass 'p': reading value 'c' here would close a cycle: it depends on the node "
                   "that is to read it");
  ck_assert_str_eq(failure(model, PASS("g.set_input(graph.nodes[1], 'Y', graph.inputs[1])")),
                   "r.lua:2: pass 'p': operator 'Relu' has no input 'Y' (did you mean 'X'?)");
  ck_assert_str_eq(failure(model, PASS("g.set_input(graph.nodes[1], 'X', nil)")),
                   "r.lua:2: pass 'p': operator 'Relu': input 'X' cannot be left out");
  ck_assert_str_eq(failure(model, PASS("g.set_input(graph.nodes[1], 2, graph.inputs[1])")),
                   "r.lua:2: pass 'p': g.set_input: operator 'Relu' has 1 input here: there is no input 2");
  ck_assert_str_eq(failure(model, PASS("g.set_attribute(graph.nodes[1], 'alpha', 1)")),
                   "r.lua:2: pass 'p': operator 'Relu' has no attribute 'alpha'");
  ck_assert_str_eq(
      failure(model, PASS("g.set_output('outptu', graph.inputs[1])")),
      "r.lua:2: pass 'p': g.set_output: the graph has no output 'outptu' (did you mean 'output'?)");
  ck_assert_str_eq(failure(model, PASS("g.input('x', 'float32', {})")),
                   "r.lua:2: pass 'p': input 'x': the graph has one already");
  ck_assert_str_eq(
      failure(model, PASS("local n = graph.nodes[1] g.replace(n, n.inputs.X) g.remove(n) n.op()")),
      "r.lua:2: pass 'p': this node is no longer valid: it is of another graph, or was removed");
  ck_assert_str_eq(failure(model, PASS("g.set_output(1, graph.inputs[1]) return nil, 'no'")),
                   "r.lua:2: pass 'p': run returned nil and a reason, but it changed the graph");
  ck_assert_str_eq(failure(model, PASS("g.replace(graph.nodes[1], g.Transpose(graph.inputs[1]))")),
                   "r.lua:2: pass 'p': value 'a' is float32[2, 8], its replacement is float32[8, 2]");
}

UNIT_TEST(a_failed_pass_leaves_the_model) {
  rule_case_t c =
      rule_case_create(&(rule_case_request_t){.model = INPUT "return g.Relu(x)", .rules = {NULL}});
  const cleave_rule_source_t source = {
      .path = "r.lua", .text = PASS("g.set_output(1, graph.inputs[1]) error('changed my mind')")};
  cleave_rule_source_t sources[1] = {source};
  sources[0].length = strlen(source.text);
  cleave_plan_t *plan = NULL;
  unit_fails(cleave_model_partition(
                 c.model,
                 &(cleave_partition_request_t){
                     .size = sizeof(cleave_partition_request_t), .sources = sources, .source_count = 1},
                 &plan, e),
             CLEAVE_ERROR_RULE, "r.lua:2: pass 'p': changed my mind");
  ck_assert_ptr_null(plan);
  ck_assert_uint_eq(c.plan->graph->live_node_count, 1);
  rule_case_check_values(&c, 0);
  rule_case_deinit(&c);
}

UNIT_TEST(a_pass_that_does_not_end_is_ended) {
  const char *message = failure(INPUT "return g.Relu(x)", PASS("while true do g.Abs(graph.inputs[1]) end"));
  ck_assert_msg(strstr(message, "r.lua:2: pass 'p':") == message, "%s", message);
}

// ---- saved plans ----

#define SAVED                                                                                    \
  "return ruleset { name = 'r', region 'all' {}, "                                               \
  "  rewrite 'relu' { pattern = op { 'Max', inputs = { any 'x', 0 } }, "                         \
  "    replace = function(m, g) return g.Relu(m.x) end }, "                                      \
  "  pass 'scale' { run = function(graph, options, g) local s = g.input('s', 'float32', { 4 }) " \
  "    g.set_output(1, graph.outputs[1] * s + g.constant({ 1.0, 2.0, 3.0, 4.0 }, 'float32')) end } }"
#define SAVED_MODEL INPUT "return g.Exp(g.MatMul(g.Max(x, 0.0), g.weight { 8, 4 }))"

UNIT_TEST(a_saved_plan_rewrites_again_without_lua) {
  rule_case_t c = run(SAVED_MODEL, SAVED);
  char *text = NULL;
  char *again = NULL;
  cleave_plan_t *plan = NULL;
  unit_ok(cleave_plan_format(c.plan, CLEAVE_PLAN_JSON, &text, e));
  unit_ok(
      cleave_plan_load(c.model, "saved.json",
                       &(cleave_plan_load_options_t){
                           .size = sizeof(cleave_plan_load_options_t), .text = text, .length = strlen(text)},
                       &plan, e));
  ck_assert_ptr_eq(plan->source, c.plan->source);
  ck_assert_ptr_eq(plan->graph, plan->rewritten);
  edits_case_check_same(c.plan->graph, plan->graph);
  ck_assert_uint_eq(cleave_plan_input_count(plan), 2);
  unit_ok(cleave_plan_format(plan, CLEAVE_PLAN_JSON, &again, e));
  ck_assert_str_eq(text, again);
  cleave_text_free(again);
  cleave_plan_destroy(plan);
  plan = NULL;
  rule_case_t other = run(INPUT "return g.Abs(g.MatMul(g.Max(x, 0.0), g.weight { 8, 4 }))", SAVED);
  unit_fails(
      cleave_plan_load(other.model, "saved.json",
                       &(cleave_plan_load_options_t){
                           .size = sizeof(cleave_plan_load_options_t), .text = text, .length = strlen(text)},
                       &plan, e),
      CLEAVE_ERROR_MISMATCH,
      "saved.json: the plan is of another model: the changes were made to another graph than this one");
  ck_assert_ptr_null(plan);
  char *number = strstr(text, "\"edits\"");
  number = strstr(number, "\"number\":");
  number[strlen("\"number\":")] = '7';
  unit_fails(
      cleave_plan_load(c.model, "saved.json",
                       &(cleave_plan_load_options_t){
                           .size = sizeof(cleave_plan_load_options_t), .text = text, .length = strlen(text)},
                       &plan, e),
      CLEAVE_ERROR_FORMAT, "saved.json: edits.rules[0].number: rule 7 is not a rewrite or pass");
  cleave_text_free(text);
  rule_case_deinit(&other);
  rule_case_deinit(&c);
}

UNIT_SUITE("script_pass")
