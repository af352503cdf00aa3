// SPDX-License-Identifier: Apache-2.0
// Rewrites written in Lua: what they make of a model, that values stay what they were, what is refused and
// why, loops, and what cannot happen. Every log is performed once more from its JSON.
#include "graph/verify.h"
#include "rewrite_case.h"

// ---- rewrites ----

#define GELU                                                                           \
  "local x = any 'x' "                                                                 \
  "local e = op { 'Add', inputs = { op { 'Erf', inputs = { op { 'Div', inputs = { x, " \
  "  constant { value = 1.4142135623730951 } } } } }, 1 } } "                          \
  "local half = op { 'Mul', inputs = { x, 0.5 } } "
#define GELU_MODEL INPUT "local h = g.Relu(x) return h * 0.5 * (g.Erf(h / 1.4142135623730951) + 1)"

UNIT_TEST(a_substitute_computes_what_the_match_computed) {
  rule_case_t c = run(GELU_MODEL, GELU RULESET("rewrite 'gelu' { "
                                               "pattern = op { 'Mul', as = 'out', inputs = { half, e } }, "
                                               "replace = function(m, g) return g.Gelu(m.x) end }"));
  check_ops(&c, "Relu Gelu");
  check_rule(&c, 0, 1, 0);
  ck_assert_ptr_eq(c.plan->graph, c.plan->rewritten);
  ck_assert_uint_eq(c.plan->edits->groups.items[0].nodes_taken, 5);
  ck_assert_uint_eq(c.plan->edits->groups.items[0].nodes_made, 1);
  rule_case_check_values(&c, 1e-6);
  rule_case_deinit(&c);
}

UNIT_TEST(what_is_not_matched_leaves_the_graph_itself) {
  rule_case_t c = run(INPUT "return g.Tanh(x)",
                      RULESET("rewrite 'none' { pattern = 'Relu', replace = function(m, g) end }"));
  ck_assert_ptr_null(c.plan->rewritten);
  ck_assert_ptr_eq(c.plan->graph, c.plan->source);
  check_rule(&c, 0, 0, 0);
  rule_case_check_values(&c, 0);
  rule_case_deinit(&c);
}

UNIT_TEST(names_of_values_and_outputs_survive) {
  rule_case_t c = run(INPUT "g.output('y', g.Relu(x, { name = 'first' })) g.output('z', g.Exp(x))",
                      RULESET("rewrite 'clip' { pattern = op { 'Relu', as = 'r' }, "
                              "replace = function(m, g) return g.Max(m.r.inputs.X, 0.0) end }"));
  const cleave_graph_t *graph = c.plan->graph;
  check_ops(&c, "Exp Max");
  ck_assert_str_eq(cleave_strings_text(&graph->strings, graph->output_names.items[0]), "y");
  cleave_value_t y = cleave_graph_output(graph, 0);
  ck_assert_str_eq(cleave_value_name(graph, y), "first");
  ck_assert_str_eq(cleave_node_name(graph, cleave_value_producer(graph, y)), "first");
  rule_case_check_values(&c, 0);
  rule_case_deinit(&c);
}

UNIT_TEST(generated_names_are_new_ones) {
  rule_case_t c =
      run(INPUT "local a = g.Relu(x, { name = 'two/Neg' }) return g.Relu(a)",
          RULESET("rewrite 'two' { pattern = op { 'Relu', as = 'r' }, "
                  "replace = function(m, g) return g.Neg(g.Min(g.Neg(m.r.inputs.X), 0.0)) end }"));
  const cleave_graph_t *graph = c.plan->graph;
  check_ops(&c, "Neg Min Neg Neg Min Neg");
  for (uint32_t a = 0; a < cleave_graph_node_bound(graph); a++) {
    for (uint32_t b = 0; b < a; b++) {
      if (cleave_node_is_live(graph, (cleave_node_t){a}) && cleave_node_is_live(graph, (cleave_node_t){b})) {
        ck_assert_str_ne(cleave_node_name(graph, (cleave_node_t){a}),
                         cleave_node_name(graph, (cleave_node_t){b}));
      }
    }
  }
  rule_case_check_values(&c, 0);
  rule_case_deinit(&c);
}

UNIT_TEST(what_is_constant_folds) {
  rule_case_t c =
      run(INPUT "return g.MatMul(x, g.weight { 8, 4, name = 'w' }) * 2.0",
          RULESET("rewrite 'scale' { pattern = op { 'MatMul', as = 'mm', inputs = { B = constant 'w' } } "
                  ">> op { 'Mul', as = 'out', inputs = { constant { as = 's', scalar = true } } }, "
                  "replace = function(m, g) return g.MatMul(m.mm.inputs.A, m.w * m.s) end }"));
  check_ops(&c, "MatMul");
  const cleave_graph_t *graph = c.plan->graph;
  cleave_node_t product = cleave_value_producer(graph, cleave_graph_output(graph, 0));
  ck_assert(cleave_value_is_constant(graph, cleave_node_input(graph, product, 1)));
  rule_case_check_values(&c, 1e-6);
  rule_case_deinit(&c);
}

UNIT_TEST(a_rule_runs_until_nothing_of_it_matches) {
  rule_case_t c = run(INPUT "for k = 1, 30 do x = g.Neg(x) end return g.Exp(x)",
                      RULESET("rewrite 'cancel' { pattern = op { 'Neg', as = 'a' } >> 'Neg', "
                              "replace = function(m, g) return m.a.inputs.X end }"));
  check_ops(&c, "Exp");
  check_rule(&c, 0, 15, 0);
  rule_case_check_values(&c, 0);
  rule_case_deinit(&c);
}

UNIT_TEST(rules_that_make_work_for_each_other_run_together) {
  // `there` makes pairs that only `cancel`, before it in the file, takes away.
  rule_case_t c =
      run(INPUT "return g.Exp(g.Sub(0.0, g.Neg(x)))",
          RULESET("rewrite 'cancel' { pattern = op { 'Neg', as = 'a' } >> 'Neg', "
                  "  replace = function(m, g) return m.a.inputs.X end }, "
                  "rewrite 'there' { pattern = op { 'Sub', inputs = { A = constant(0), B = any 'b' } }, "
                  "  replace = function(m, g) return g.Neg(m.b) end }"));
  check_ops(&c, "Exp");
  check_rule(&c, 0, 1, 0);
  check_rule(&c, 1, 1, 0);
  rule_case_check_values(&c, 0);
  rule_case_deinit(&c);
}

UNIT_TEST(the_same_operator_takes_another_input) {
  rule_case_t c =
      run(INPUT
          "local h = g.Cast(x, { to = 'float64' }) local k = g.Cast(g.Relu(x), { to = 'float64' }) "
          "return g.Transpose(h, { perm = { 1, 0 } }), g.Slice(k, { 0 }, { 4 }, nil, { 2 })",
          RULESET("rewrite 'move' { "
                  "  pattern = op { 'Cast', as = 'cast', inputs = { any 'x' } } >> "
                  "    op { 'Transpose', 'Slice', as = 'view' }, "
                  "  replace = function(m, g) "
                  "    local arguments, last = { table.unpack(m.view.inputs) }, #m.view.inputs + 1 "
                  "    arguments[1], arguments[last] = m.x, m.view.attrs "
                  "    return g.Cast(g[m.view.op](table.unpack(arguments, 1, last)), m.cast.attrs) end }"));
  check_ops(&c, "Relu Transpose Cast Slice Cast");
  rule_case_check_values(&c, 0);
  rule_case_deinit(&c);
}

UNIT_TEST(several_outputs_are_replaced_by_label) {
  const char *model = INPUT
      "local a = g.Relu(x, { name = 'a' }) g.output('y', g.Exp(a, { name = 'b' })) "
      "g.output('z', g.Abs(a))";
  rule_case_t c =
      run(model, RULESET("rewrite 'both' { "
                         "  pattern = op { 'Relu', as = 'a', shared = true } >> op { 'Exp', as = 'b' }, "
                         "  replace = function(m, g) local y = g.Max(m.a.inputs.X, 0.0) "
                         "    return { a = y, b = g.Exp(g.Identity(y)) } end }"));
  check_ops(&c, "Max Abs Identity Exp");
  check_rule(&c, 0, 1, 0);
  rule_case_check_values(&c, 0);
  rule_case_deinit(&c);
  ck_assert_str_eq(
      failure(model, RULESET("rewrite 'one' { "
                             "  pattern = op { 'Relu', as = 'a', shared = true } >> op { 'Exp', as = 'b' }, "
                             "  replace = function(m, g) return g.Tanh(m.a) end }")),
      "r.lua:1: rewrite 'one': the match has 2 values that are read outside: replace has to return a table, "
      "label = value; at Relu 'a'");
}

UNIT_TEST(a_value_may_be_wrapped) {
  // Once: the rule tells by the reader that it has been there.
  rule_case_t c = run(INPUT "return g.Exp(g.Relu(x))",
                      RULESET("rewrite 'wrap' { pattern = op { 'Relu', as = 'r', shared = true }, "
                              "  where = function(m) return m.r.users[1].op ~= 'Abs', 'wrapped' end, "
                              "  replace = function(m, g) return g.Abs(m.r) end }"));
  check_ops(&c, "Relu Abs Exp");
  check_rule(&c, 0, 1, 1);
  ck_assert_str_eq(c.plan->edits->refusals.items[0].reason, "wrapped");
  rule_case_check_values(&c, 0);
  rule_case_deinit(&c);
}

UNIT_TEST(what_a_rule_leaves_is_on_record_and_leaves_no_trace) {
  rule_case_t c =
      run(INPUT "return g.Exp(g.Relu(x, { name = 'here' }))",
          RULESET("rewrite 'not_now' { pattern = op { 'Relu', as = 'r' }, "
                  "  replace = function(m, g) local y = g.Abs(m.r) return nil, 'not today' end }, "
                  "rewrite 'same' { pattern = op { 'Exp', as = 'r' }, "
                  "  replace = function(m, g) return m.r end }"));
  const cleave_edits_t *edits = c.plan->edits;
  ck_assert_ptr_null(c.plan->rewritten);
  ck_assert_uint_eq(edits->items.count, 0);
  ck_assert_uint_eq(edits->refusals.count, 2);
  ck_assert_str_eq(edits->refusals.items[0].place, "here");
  ck_assert_str_eq(edits->refusals.items[0].reason, "not today");
  ck_assert_str_eq(edits->refusals.items[1].reason, "replace returned the matched values");
  check_rule(&c, 0, 0, 1);
  check_rule(&c, 1, 0, 1);
  rule_case_deinit(&c);
}

UNIT_TEST(a_match_that_is_refused_in_both_orders_of_its_inputs_is_one_refusal) {
  static const char MODEL[] = INPUT "return g.Add(x, g.Exp(x), { name = 'sum' })";
#define ADD(body)                                                                         \
  RULESET(                                                                                \
      "rewrite 'add' { pattern = op { 'Add', as = 's', inputs = { any 'x', any 'y' } }, " \
      "replace = function(m, g) " body " end }")
  rule_case_t c = run(MODEL, ADD("return nil, 'no'"));
  check_rule(&c, 0, 0, 1);
  ck_assert_uint_eq(c.plan->edits->refusals.count, 1);
  rule_case_deinit(&c);
  c = run(MODEL, ADD("return nil, m.x.producer and 'one order' or 'the other'"));
  check_rule(&c, 0, 0, 1);
  ck_assert_uint_eq(c.plan->edits->refusals.count, 2);
  rule_case_deinit(&c);
  // What is replaced in the second order was not refused.
  c = run(MODEL, ADD("if not m.x.producer then return nil, 'no' end return g.Sum(m.x, m.y)"));
  check_rule(&c, 0, 1, 0);
  rule_case_deinit(&c);
#undef ADD
}

UNIT_TEST(rewrites_come_before_fusions_and_regions) {
  rule_case_t c =
      run(INPUT "return g.Exp(g.Max(x, 0.0))",
          RULESET("fuse 'pair' { pattern = op 'Relu' >> 'Exp' }, "
                  "rewrite 'relu' { priority = -5, pattern = op { 'Max', inputs = { any 'x', 0 } }, "
                  "  replace = function(m, g) return g.Relu(m.x) end }, region 'all' {}"));
  ck_assert_str_eq(rule_case_fusions(&c), "pair(Relu Exp)");
  ck_assert_uint_eq(c.plan->rules[1].kind, CLEAVE_RULE_REWRITE);
  check_rule(&c, 1, 1, 0);
  rule_case_check_values(&c, 0);
  rule_case_deinit(&c);
}

UNIT_TEST(options_are_seen_and_switch) {
  const char *rules =
      "local deep = option.integer(1, 'how often', { 1, 9 }) "
      "return ruleset { name = 'r', options = { deep = deep, on = option.boolean(true) }, "
      "  rewrite 'off' { enabled = function(o) return not o.on end, pattern = 'Exp', "
      "    replace = function(m, g) error('never') end }, "
      "  rewrite 'relu' { pattern = op { 'Relu', as = 'r' }, "
      "    replace = function(m, g, options) local y = m.r.inputs.X "
      "      for k = 1, options.deep do y = g.Abs(y) end return y end } }";
  rule_case_t c = rule_case_create(&(rule_case_request_t){
      .model = INPUT "return g.Exp(g.Relu(x))", .rules = {rules}, .settings = {"deep=3"}});
  check_ops(&c, "Abs Abs Abs Exp");
  ck_assert_uint_eq(c.plan->rule_count, 1);
  rule_case_deinit(&c);
}

UNIT_TEST(a_symbolic_size_stays_what_it_is) {
  rule_case_t c =
      run("local x = g.input('x', 'float32', {'N', 8}) "
          "return g.Exp(g.MatMul(g.Max(x, 0.0), g.weight { 8, 4 }))",
          RULESET("rewrite 'relu' { pattern = op { 'Max', inputs = { any 'x', 0 } }, "
                  "replace = function(m, g) return g.Relu(m.x) end }"));
  const cleave_graph_t *graph = c.plan->graph;
  cleave_text_t text = {0};
  const cleave_value_record_t *out = cleave_graph_value(graph, cleave_graph_output(graph, 0));
  cleave_shape_print(graph->dims, out->rank, out->dims, &text);
  ck_assert_str_eq(cleave_text_get(&text), "[N, 4]");
  cleave_text_deinit(&text);
  rule_case_deinit(&c);
}

// ---- what is wrong with a substitute ----

#define ONE_RULE(replace) \
  RULESET("\nrewrite 'one' { pattern = op { 'Relu', as = 'r' }, replace = function(m, g) " replace " end }")
#define ONE_MODEL INPUT "return g.Exp(g.Relu(x, { name = 'here' }))"

UNIT_TEST(a_substitute_has_to_fit) {
  ck_assert_str_eq(failure(ONE_MODEL, ONE_RULE("return g.Cast(m.r.inputs.X, { to = 'float16' })")),
                   "r.lua:2: rewrite 'one': value 'here' is float32[2, 8], its replacement is float16[2, 8]; "
                   "at Relu 'here'");
  ck_assert_str_eq(failure(ONE_MODEL, ONE_RULE("return g.Transpose(m.r.inputs.X)")),
                   "r.lua:2: rewrite 'one': value 'here' is float32[2, 8], its replacement is float32[8, 2]; "
                   "at Relu 'here'");
}

UNIT_TEST(replace_returns_values) {
  ck_assert_str_eq(
      failure(ONE_MODEL, ONE_RULE("return 'x'")),
      "r.lua:2: rewrite 'one': replace returned a string, expected a value, a table label = value, "
      "or nil (and why) to leave the match; at Relu 'here'");
  ck_assert_str_eq(
      failure(ONE_MODEL, ONE_RULE("return {}")),
      "r.lua:2: rewrite 'one': replace returned an empty table, expected a value, or nil to leave "
      "the match; at Relu 'here'");
  ck_assert_str_eq(
      failure(ONE_MODEL, ONE_RULE("return { rr = m.r }")),
      "r.lua:2: rewrite 'one': replace returned a value for 'rr', which is not a label of the pattern "
      "(did you mean 'r'?); at Relu 'here'");
  ck_assert_str_eq(
      failure(ONE_MODEL, ONE_RULE("return g.Reluu(m.r)")),
      "r.lua:2: rewrite 'one': operator 'Reluu' is unknown (did you mean 'Relu'?); at Relu 'here'");
  ck_assert_str_eq(failure(ONE_MODEL, ONE_RULE("return g.MatMul(m.r, m.r)")),
                   "r.lua:2: rewrite 'one': node 'one/MatMul' (MatMul): input 'A': expected shape [8, 8], "
                   "found [2, 8]; at Relu 'here'");
}

UNIT_TEST(a_mistake_at_one_match_is_a_refusal_on_record) {
  rule_case_t c =
      run(INPUT "return g.Exp(g.Relu(g.Transpose(g.Relu(x, { name = 'here' })), { name = 'there' }))",
          RULESET("\nrewrite 'one' { pattern = op { 'Relu', as = 'r' }, "
                  "\n  replace = function(m, g) "
                  "\n    return g.Max(m.r.inputs.X, m.r.shape[1] == 2 and 0.0 or nothing.at_all)"
                  "\n  end }"));
  check_ops(&c, "Max Transpose Relu Exp");
  check_rule(&c, 0, 1, 1);
  ck_assert_str_eq(c.plan->edits->refusals.items[0].place, "there");
  ck_assert_ptr_nonnull(strstr(c.plan->edits->refusals.items[0].reason, "line 4: "));
  rule_case_check_values(&c, 0);
  rule_case_deinit(&c);
}

UNIT_TEST(a_substitute_that_fits_in_part_leaves_the_graph_as_it_was) {
  rule_case_t c = run(INPUT
                      "local a = g.Relu(x, { name = 'a' }) local b = g.Exp(a, { name = 'b' }) "
                      "g.output('y', g.Sub(a, b)) g.output('z', a) g.output('w', b)",
                      RULESET("rewrite 'both' { "
                              "  pattern = op { 'Relu', as = 'a', shared = true } >> op { 'Exp', as = 'b' }, "
                              "  replace = function(m, g) local y = g.Max(m.a.inputs.X, 0.0) "
                              "    return { a = y, b = g.Transpose(y) } end }"));
  check_ops(&c, "Relu Exp Sub");
  check_rule(&c, 0, 0, 1);
  ck_assert_ptr_nonnull(strstr(c.plan->edits->refusals.items[0].reason, "its replacement is "));
  unit_ok(cleave_graph_verify(c.plan->graph, e));
  rule_case_check_values(&c, 0);
  rule_case_deinit(&c);
}

UNIT_TEST(a_mistake_everywhere_ends_nothing_and_lack_of_time_does) {
  rule_case_t c = run(ONE_MODEL, ONE_RULE("return nothing.at.all"));
  check_ops(&c, "Relu Exp");
  check_rule(&c, 0, 0, 1);
  ck_assert_ptr_nonnull(strstr(c.plan->edits->refusals.items[0].reason, "line 2: "));
  rule_case_deinit(&c);
  ck_assert_ptr_nonnull(strstr(failure(ONE_MODEL, ONE_RULE("while true do end")), "the time budget of"));
}

UNIT_TEST(dead_nodes_go_before_any_rule_and_are_left_alone_later) {
  rule_case_t c = run(INPUT "local dead = g.Relu(g.Relu(x)) return g.Exp(x)", ONE_RULE("return g.Abs(m.r)"));
  check_ops(&c, "Exp");
  check_rule(&c, 0, 0, 0);
  rule_case_deinit(&c);
  c = run(INPUT "return g.Exp(x)", RULESET("pass 'leaves' { run = function(graph, options, g) "
                                           "g.Relu(g.input('q', 'float32', {2})) end }, "
                                           "rewrite 'one' { pattern = op { 'Relu', as = 'r' }, "
                                           "  replace = function(m, g) return g.Abs(m.r) end }"));
  check_ops(&c, "Exp");
  rule_case_deinit(&c);
}

UNIT_TEST(a_cycle_is_refused) {
  ck_assert_str_eq(failure(ONE_MODEL, ONE_RULE("return g.Abs(m.r.users[1].outputs[1])")),
                   "r.lua:2: rewrite 'one': reading value 'one/Abs' here would close a cycle: it depends on "
                   "the node that is to read it; at Relu 'here'");
}

UNIT_TEST(nothing_is_no_answer_of_replace) {
  ck_assert_str_eq(failure("local x = g.input('x', 'float32', {2, 8})\n"
                           "return g.Relu(x, { name = 'here' })",
                           "return ruleset { name = 'r', rewrite 'one' { pattern = op 'Relu',\n"
                           "replace = function(m, g) local y = g.Exp(m.nodes[1]) end } }"),
                   "r.lua:1: rewrite 'one': replace returned nothing, expected a value, a table label = "
                   "value, or nil (and why) to leave the match; at Relu 'here'");
}

UNIT_TEST(a_substitute_only_adds) {
  ck_assert_str_eq(
      failure(ONE_MODEL, ONE_RULE("g.remove(m.r)")),
      "r.lua:2: rewrite 'one': g.remove is for passes: a rewrite builds from new nodes, and returns "
      "what takes the place of the match; at Relu 'here'");
  ck_assert_str_eq(failure(ONE_MODEL, ONE_RULE("g.input('y', 'float32', {})")),
                   "r.lua:2: rewrite 'one': a substitute cannot have a new input of the graph: that is for a "
                   "pass; at Relu 'here'");
  ck_assert_str_eq(
      failure(ONE_MODEL, ONE_RULE("g.output('y', m.r)")),
      "r.lua:2: rewrite 'one': g.output is for model scripts (g.set_output changes what an output "
      "of the graph is); at Relu 'here'");
}

UNIT_TEST(g_and_handles_do_not_outlive_their_call) {
  ck_assert_str_eq(
      failure(INPUT "return g.Relu(g.Exp(g.Relu(x)))",
              "local kept\n" RULESET(
                  "rewrite 'keep' { pattern = op { 'Relu', as = 'r' }, replace = function(m, g) "
                  "if kept then return g.Abs(kept) end kept = m.r.inputs.X return nil end }")),
      "r.lua:2: rewrite 'keep': this value is no longer valid: it is of another graph, or was removed; at "
      "Relu 'Relu_1'");
  ck_assert_str_eq(
      failure(ONE_MODEL,
              "local kept\n" RULESET("rewrite 'keep' { pattern = op { 'Relu', as = 'r' }, "
                                     "where = function(m) if kept then kept.Abs(m.r) end return true end, "
                                     "replace = function(m, g) kept = g return g.Relu(m.r) end }")),
      "r.lua:2: rewrite 'keep': no graph is being built here; at Relu 'keep/Relu'");
}

UNIT_TEST(a_runaway_replace_ends) {
  const char *message = failure(ONE_MODEL, ONE_RULE("while true do g.Abs(m.r) end"));
  ck_assert_msg(strstr(message, "r.lua:2: rewrite 'one':") == message, "%s", message);
}

UNIT_TEST(a_rewrite_needs_its_parts) {
  ck_assert_str_eq(failure(ONE_MODEL, RULESET("rewrite 'x' { pattern = 'Relu' }")),
                   "r.lua:1: rewrite 'x': no function replace");
  ck_assert_str_eq(failure(ONE_MODEL, RULESET("rewrite 'x' { replace = function() end }")),
                   "r.lua:1: rewrite 'x': no pattern");
  ck_assert_str_eq(failure(ONE_MODEL, RULESET("pass 'x' { }")), "r.lua:1: pass 'x': no function run");
  ck_assert_str_eq(failure(ONE_MODEL, RULESET("pass 'x' { run = 1 }")),
                   "r.lua:1: pass 'x': run: expected a function, found 1");
  ck_assert_str_eq(failure(ONE_MODEL, RULESET("pass 'x' { pattern = 'Relu', run = function() end }")),
                   "r.lua:1: pass 'x': pass has no key 'pattern'");
}

// ---- loops ----

UNIT_TEST(rules_that_undo_each_other_are_named) {
  ck_assert_str_eq(
      failure(ONE_MODEL, RULESET("\nrewrite 'there' { pattern = op { 'Relu', as = 'r' }, "
                                 "replace = function(m, g) return g.Max(m.r.inputs.X, 0.0) end },"
                                 "\nrewrite 'back' { pattern = op { 'Max', inputs = { any 'x', 0 } }, "
                                 "replace = function(m, g) return g.Relu(m.x) end }")),
      "r.lua:2: rewrite 'there': loops at 'here' with rewrite 'back' (r.lua:3), which undoes "
      "what it makes");
}

UNIT_TEST(a_rule_that_undoes_itself_is_named) {
  ck_assert_str_eq(failure(ONE_MODEL, ONE_RULE("return g.Relu(m.r.inputs.X)")),
                   "r.lua:2: rewrite 'one': loops at 'here': its result is rewritten back to what it was");
  ck_assert_str_eq(failure(ONE_MODEL, ONE_RULE("return g.Abs(m.r)")),
                   "r.lua:2: rewrite 'one': loops at 'here': its result is rewritten back to what it was");
}

/* "place: reason" lines of what a rule left. */
static const char *left(const rule_case_t *c) {
  static char said[1024];
  const cleave_edits_t *edits = c->plan->edits;
  said[0] = '\0';
  for (size_t k = 0; k < edits->refusals.count; k++) {
    size_t used = strlen(said);
    (void)snprintf(said + used, sizeof said - used, "%s: %s\n", edits->refusals.items[k].place,
                   edits->refusals.items[k].reason);
  }
  return said;
}

#define NAMED(op, of) "g." op "(" of ", { name = '" op "' })"

UNIT_TEST(of_overlapping_matches_the_largest_is_replaced) {
  rule_case_t c = run(INPUT "return " NAMED("Sin", NAMED("Exp", NAMED("Abs", NAMED("Neg", "x")))),
                      RULESET("rewrite 'r' { pattern = (op 'Neg' >> op 'Abs') | "
                              "  (op 'Abs' >> op 'Exp' >> op 'Sin'), "
                              "  replace = function(m, g) return g.Relu(m.nodes[1].inputs[1]) end }"));
  check_ops(&c, "Neg Relu");
  check_rule(&c, 0, 1, 0);
  ck_assert_str_eq(left(&c), "Abs: taken by rewrite 'r' at 'Sin'\n");
  rule_case_deinit(&c);
}

UNIT_TEST(of_equal_matches_the_one_that_begins_first_is_replaced) {
  rule_case_t c = run(INPUT
                      "local a = g.Neg(x, { name = 'a' }) local b = g.Neg(a, { name = 'b' }) "
                      "return g.Neg(b, { name = 'c' })",
                      RULESET("rewrite 'pair' { pattern = op { 'Neg', as = 'first' } >> op 'Neg', "
                              "  replace = function(m, g) return m.first.inputs.X end }"));
  check_ops(&c, "Neg");
  check_rule(&c, 0, 1, 0);
  ck_assert_str_eq(cleave_node_name(c.plan->graph, (cleave_node_t){2}), "c");
  ck_assert(cleave_node_is_live(c.plan->graph, (cleave_node_t){2}));
  ck_assert_str_eq(left(&c), "c: taken by rewrite 'pair' at 'b'\n");
  rule_case_check_values(&c, 0);
  rule_case_deinit(&c);
}

/* Three nodes go first; what they became, a match again, comes before the pair that begins before both. */
UNIT_TEST(what_an_application_made_goes_before_what_was_there) {
  rule_case_t c = run(INPUT
                      "g.output('p', g.Relu(g.Abs(x, { name = 'a' }))) "
                      "g.output('q', g.Neg(g.Neg(g.Neg(x, { name = 'n' }))))",
                      RULESET("rewrite 'r' { pattern = (op 'Neg' >> op 'Neg' >> op 'Neg') | "
                              "  (op 'Exp' >> op 'Sin') | (op 'Abs' >> op 'Relu'), "
                              "  replace = function(m, g) local x = m.nodes[1].inputs[1] "
                              "    if m.nodes[1].op == 'Neg' then return g.Sin(g.Exp(x)) end "
                              "    return g.Tanh(x) end }"));
  check_rule(&c, 0, 3, 0);
  const cleave_edits_t *edits = c.plan->edits;
  ck_assert_uint_eq(edits->groups.items[0].nodes_taken, 3);
  ck_assert_uint_eq(edits->groups.items[1].nodes_taken, 2);
  ck_assert_str_eq(edits->groups.items[1].place, edits->groups.items[0].place);
  ck_assert_str_eq(left(&c), "");
  rule_case_deinit(&c);
}

UNIT_TEST(a_rule_that_matches_its_substitute_is_named) {
  ck_assert_str_eq(failure(ONE_MODEL, ONE_RULE("return g.Relu(g.Relu(m.r.inputs.X))")),
                   "r.lua:2: rewrite 'one': matches its own substitute, and makes more of it each time");
  // As many nodes as before, but another one each time.
  ck_assert_str_eq(
      failure(
          INPUT "return g.Clip(x, -1.0, 1.0)",
          RULESET("rewrite 'more' { pattern = op { 'Clip', as = 'c', inputs = { max = constant 'm' } }, "
                  "replace = function(m, g) return g.Clip(m.c.inputs.input, -1.0, m.m:value() + 1.0) end }")),
      "r.lua:1: rewrite 'more': does not terminate: it has changed one place more than 10000 times");
}

UNIT_TEST(work_that_moves_along_is_no_loop) {
  rule_case_t c =
      run(INPUT "x = g.Transpose(x) for k = 1, 300 do x = g.Relu(x) end return g.Exp(x)",
          RULESET("rewrite 'push' { pattern = op { 'Transpose', as = 't' } >> op { 'Relu', as = 'r' }, "
                  "replace = function(m, g) return g.Transpose(g.Relu(m.t.inputs.data), "
                  "{ perm = m.t.attrs.perm }) end }"));
  check_rule(&c, 0, 300, 0);
  ck_assert_uint_eq(c.plan->graph->live_node_count, 302);
  rule_case_check_values(&c, 0);
  rule_case_deinit(&c);
}

UNIT_SUITE("script_rewrite")
