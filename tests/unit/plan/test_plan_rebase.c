// SPDX-License-Identifier: Apache-2.0
// Plans for models with other constants: what rules relied on and is no more so is refused, also of plans
// that were saved. That they compute the same is tested with constants of models (test_model_constants).
#include "library_case.h"
#include "partition/plan/plan.h"
#include "unit.h"

#define INPUT "local x = g.input('x', 'float32', { 2, 4, 4, 4 }) "

static cleave_plan_t *partition(cleave_model_t *model, const char *rules) {
  cleave_plan_t *plan = NULL;
  unit_ok(library_case_partition(model, rules, NULL, NULL, &plan, e));
  return plan;
}

/* The model where a constant of `count` elements, or a scalar where that is 0, has other ones. */
static cleave_model_t *change(cleave_model_t *model, const char *name, int64_t count) {
  static const float data[4] = {1.5F, 3, 4.5F, 6};
  const cleave_tensor_view_t view = {
      .size = sizeof view, .dtype = CLEAVE_DTYPE_F32, .rank = count > 0, .dims = &count, .data = data};
  const cleave_tensor_view_t *views[1] = {&view};
  cleave_model_t *changed = NULL;
  unit_ok(cleave_model_set_constants(model, &name, views, 1, &changed, e));
  return changed;
}

UNIT_TEST(a_plan_of_another_model_is_refused) {
  cleave_model_t *model = library_case_model(INPUT "g.output('y', g.Relu(g.Exp(x)))");
  cleave_model_t *other = library_case_model(INPUT "g.output('y', g.Relu(x))");
  cleave_plan_t *plan = partition(model, "return ruleset { name = 'r', region 'all' { ops = { 'Relu' } } }");
  cleave_plan_t *moved = NULL;
  unit_fails_with(cleave_plan_rebase(plan, other, &moved, e), CLEAVE_ERROR_MISMATCH,
                  "the plan is of another model: node 'Relu_0' is");
  ck_assert_ptr_null(moved);
  cleave_plan_destroy(plan);
  cleave_model_release(other);
  cleave_model_release(model);
}

static void check_refused(const char *text, const char *rules, const char *name, int64_t count,
                          const char *message) {
  cleave_model_t *model = library_case_model(text);
  cleave_plan_t *plan = partition(model, rules);
  cleave_model_t *changed = change(model, name, count);
  cleave_plan_t *moved = NULL;
  unit_fails_with(cleave_plan_rebase(plan, changed, &moved, e), CLEAVE_ERROR_UNSUPPORTED, message);
  ck_assert_ptr_null(moved);
  // What was saved knows as much.
  char *json = NULL;
  cleave_plan_t *read = NULL;
  unit_ok(cleave_plan_format(plan, CLEAVE_PLAN_JSON, &json, e));
  unit_ok(
      cleave_plan_load(model, "p",
                       &(cleave_plan_load_options_t){
                           .size = sizeof(cleave_plan_load_options_t), .text = json, .length = strlen(json)},
                       &read, e));
  unit_fails_with(cleave_plan_rebase(read, changed, &moved, e), CLEAVE_ERROR_UNSUPPORTED, message);
  cleave_text_free(json);
  cleave_plan_destroy(read);
  cleave_plan_destroy(plan);
  cleave_model_release(changed);
  cleave_model_release(model);
}

UNIT_TEST(a_pattern_that_asked_for_a_value_holds_no_more) {
  check_refused(INPUT
                "local half = g.constant(0.5, 'float32', 'half') "
                "local root = g.constant(math.sqrt(2), 'float32', 'root') "
                "local one = g.constant(1, 'float32', 'one') "
                "g.output('y', x * half * (g.Erf(x / root) + one))",
                CLEAVE_SOURCE_DIR "/rules/canonical.lua", "half", 0,
                "constant 'half' has changed, and rewrite 'gelu");
}

UNIT_TEST(a_constant_that_the_substitute_reads_but_the_pattern_judged_is_refused) {
  const char *rule =
      "return ruleset { name = 'r', rewrite 'swap' {\n"
      "  pattern = op { 'Mul', as = 'y', inputs = { op { 'Relu', as = 'r', inputs = { any 'x' } },\n"
      "    constant { as = 'c', value = range { min = 0, max = 10 } } } },\n"
      "  replace = function(m, g) return g.Relu(m.x * m.c) end } }";
  check_refused(INPUT "g.output('y', g.Relu(x) * g.constant({ 1, 2, 3, 4 }, 'float32', 'c'))", rule, "c", 4,
                "rewrite 'swap' at 'Mul_0' relied on what it was");
}

UNIT_TEST(a_number_that_lua_read_does_not_follow) {
  const char *rule =
      "return ruleset { name = 'r', rewrite 'bake' {\n"
      "  pattern = op { 'Mul', as = 'y', inputs = { any 'x', constant { as = 'c', scalar = true } } },\n"
      "  where = function(m) return m.y.inputs.B.is_constant end,\n"
      "  replace = function(m, g) return g.LeakyRelu(m.x, { alpha = m.c:value() }) end } }";
  check_refused(INPUT "g.output('y', x * g.constant(0.5, 'float32', 'c'))", rule, "c", 0,
                "constant 'c' has changed, and rewrite 'bake'");
  const char *pass =
      "return ruleset { name = 'r', pass 'mark' {\n"
      "  run = function(graph, options, g)\n"
      "    for _, n in ipairs(graph.nodes) do\n"
      "      if n.op == 'LeakyRelu' then g.set_attribute(n, 'alpha', n.inputs.X.producer.inputs.B:value()) "
      "end\n"
      "    end\n"
      "  end } }";
  check_refused(INPUT "g.output('y', g.LeakyRelu(x * g.constant(0.5, 'float32', 'c')))", pass, "c", 0,
                "constant 'c' has changed, and pass 'mark' relied on what it was");
}

UNIT_TEST(constants_that_no_rule_looked_at_may_change_beside_it) {
  const char *rule =
      "return ruleset { name = 'r', rewrite 'bake' {\n"
      "  pattern = op { 'Mul', as = 'y', inputs = { any 'x', constant { as = 'c', scalar = true } } },\n"
      "  replace = function(m, g) return g.LeakyRelu(m.x, { alpha = m.c:value() }) end } }";
  const int64_t dims[4] = {2, 4, 4, 4};
  cleave_model_t *model = library_case_model(INPUT
                                             "local w = g.constant({ 1, 2, 3, 4 }, 'float32', 'w') "
                                             "g.output('y', (x + w) * g.constant(0.5, 'float32', 'c'))");
  cleave_plan_t *plan = partition(model, rule);
  cleave_model_t *changed = change(model, "w", 4);
  cleave_plan_t *moved = NULL;
  unit_ok(cleave_plan_rebase(plan, changed, &moved, e));
  const cleave_graph_t *graph = moved->graph;
  ck_assert_mem_eq(dims, cleave_graph_value(graph, cleave_graph_output(graph, 0))->dims, sizeof dims);
  cleave_plan_destroy(moved);
  cleave_plan_destroy(plan);
  cleave_model_release(changed);
  cleave_model_release(model);
}

UNIT_SUITE("plan_rebase")
