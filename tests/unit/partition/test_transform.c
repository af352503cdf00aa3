// SPDX-License-Identifier: Apache-2.0
// Graph rules written in C: their order, what is looked at again, the editor's refusals, failing allocations.
#include "base/memory.h"
#include "edits_case.h"
#include "graph/compare/structural_hash.h"
#include "graph/verify.h"
#include "partition/rewrite/transform.h"
#include "pattern_case.h"
#include "plan_case.h"
#include "unit.h"

// ---- rules ----

static const cleave_op_t *find_op(const char *name) {
  const cleave_op_t *found = cleave_op_find("", name);
  ck_assert_ptr_nonnull(found);
  return found;
}

/* A node of one input, in the editor's graph; its output. */
static cleave_status_t add_unary(cleave_editor_t *editor, const char *name, cleave_value_t x,
                                 cleave_value_t *out_value, cleave_error_t *error) {
  cleave_node_t node = CLEAVE_NODE_NONE;
  CLEAVE_TRY(cleave_editor_add_node(editor, find_op(name),
                                    &(cleave_edit_t){.inputs = &x, .input_count = 1, .output_count = 1},
                                    &node, error));
  *out_value = cleave_node_output(editor->graph, node, 0);
  return CLEAVE_OK;
}

static cleave_status_t answer(cleave_substitute_t *substitute, cleave_value_t to, cleave_error_t *error) {
  CLEAVE_ARRAY_PUSH(&substitute->from, CLEAVE_VALUE_NONE, error);
  CLEAVE_ARRAY_PUSH(&substitute->to, to, error);
  return CLEAVE_OK;
}

/* The input of the first node of the match. */
static cleave_value_t entry(const cleave_editor_t *editor, const cleave_match_t *match) {
  return cleave_node_input(editor->graph, match->nodes[0], 0);
}

static cleave_status_t drop(void *context, cleave_editor_t *editor, const cleave_match_t *match,
                            cleave_substitute_t *substitute, cleave_error_t *error) {
  (void)context;
  return answer(substitute, entry(editor, match), error);
}

/* One node of the operator in the context. */
static cleave_status_t substitute_one(void *context, cleave_editor_t *editor, const cleave_match_t *match,
                                      cleave_substitute_t *substitute, cleave_error_t *error) {
  cleave_value_t y = CLEAVE_VALUE_NONE;
  CLEAVE_TRY(add_unary(editor, context, entry(editor, match), &y, error));
  return answer(substitute, y, error);
}

/* f(g(x)) -> g'(f'(x)), operators of the match the other way round. */
static cleave_status_t swap(void *context, cleave_editor_t *editor, const cleave_match_t *match,
                            cleave_substitute_t *substitute, cleave_error_t *error) {
  cleave_value_t y = entry(editor, match);
  (void)context;
  CLEAVE_TRY(add_unary(editor, cleave_node_op(editor->graph, match->nodes[1])->name, y, &y, error));
  CLEAVE_TRY(add_unary(editor, cleave_node_op(editor->graph, match->nodes[0])->name, y, &y, error));
  return answer(substitute, y, error);
}

typedef cleave_status_t (*replace_t)(void *context, cleave_editor_t *editor, const cleave_match_t *match,
                                     cleave_substitute_t *substitute, cleave_error_t *error);

static cleave_rule_t rewrite(const char *name, const cleave_pattern_t *pattern, replace_t replace,
                             const char *context) {
  cleave_rule_t rule = plan_case_rule(CLEAVE_RULE_REWRITE, name);
  rule.pattern = pattern;
  rule.replace = replace;
  rule.context = (void *)(uintptr_t)context;
  return rule;
}

static cleave_transformation_t transform(const cleave_graph_t *graph, const cleave_rule_t *rules,
                                         uint32_t count, const cleave_transform_options_t *options) {
  const cleave_ruleset_t ruleset = {
      .name = "r", .backend = "cpu", .file = "r.lua", .rules = rules, .rule_count = count};
  const cleave_ruleset_t *pointer = &ruleset;
  cleave_transformation_t result;
  uint64_t before = 0;
  uint64_t after = 0;
  unit_ok(cleave_graph_hash(graph, &before, e));
  unit_ok(cleave_transform(graph, &pointer, 1, options, &result, e));
  unit_ok(cleave_graph_hash(graph, &after, e));
  ck_assert(before == after);
  if (result.graph != NULL) {
    unit_ok(cleave_graph_verify(result.graph, e));
  }
  return result;
}

static const char *failure(const cleave_graph_t *graph, const cleave_rule_t *rules, uint32_t count) {
  const cleave_ruleset_t ruleset = {
      .name = "r", .backend = "cpu", .file = "r.lua", .rules = rules, .rule_count = count};
  const cleave_ruleset_t *pointer = &ruleset;
  cleave_transformation_t result;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  ck_assert_int_eq(cleave_transform(graph, &pointer, 1, NULL, &result, &error), CLEAVE_ERROR_RULE);
  ck_assert_ptr_null(result.graph);
  ck_assert_ptr_null(result.edits);
  unit_ok(cleave_graph_verify(graph, e));
  return plan_case_keep(cleave_copy_text(error.message, strlen(error.message)));
}

// ---- order, and what is looked at again ----

UNIT_TEST(without_graph_rules_there_is_nothing) {
  cleave_rule_t rule = plan_case_rule(CLEAVE_RULE_FUSE, "fuse");
  cleave_transformation_t t = transform(plan_case_graph("y = Relu(x); -> y"), &rule, 1, NULL);
  ck_assert_ptr_null(t.graph);
  ck_assert_ptr_null(t.edits);
}

UNIT_TEST(rules_run_by_priority_then_in_their_order) {
  cleave_pattern_t pattern = pattern_of(op("Relu", "r"));
  cleave_rule_t rules[3] = {rewrite("late", &pattern, substitute_one, "Abs"),
                            rewrite("soon", &pattern, substitute_one, "Neg"),
                            rewrite("after", &pattern, substitute_one, "Exp")};
  rules[1].priority = 7;
  cleave_transformation_t t = transform(plan_case_graph("y = Relu(x); -> y"), rules, 3, NULL);
  ck_assert_str_eq(edits_case_ops(t.graph), "Neg");
  ck_assert_uint_eq(t.edits->rules.items[0].number, 1);
  ck_assert_uint_eq(t.edits->rules.items[0].matches, 1);
  ck_assert_uint_eq(t.edits->rules.items[1].matches, 0);
  cleave_transformation_deinit(&t);
}

/* A chain of `count` nodes of two operators in turns, from input x to output y. */
static cleave_graph_t *chain(uint32_t count, const char *even, const char *odd) {
  cleave_graph_t *graph = NULL;
  cleave_value_t x;
  cleave_dim_t dims[1] = {2};
  unit_ok(cleave_graph_create(&graph, e));
  unit_ok(cleave_graph_add_input(graph, "x", CLEAVE_DTYPE_F32, 1, dims, &x, e));
  for (uint32_t k = 0; k < count; k++) {
    cleave_node_t node;
    unit_ok(cleave_graph_add_node(graph, find_op(k % 2 == 0 ? even : odd), NULL, &x, 1, 1, &node, e));
    x = cleave_node_output(graph, node, 0);
    unit_ok(cleave_graph_set_type(graph, x, CLEAVE_DTYPE_F32, 1, dims, e));
  }
  unit_ok(cleave_graph_add_output(graph, "y", x, e));
  return graph;
}

UNIT_TEST(a_long_chain_takes_as_many_looks_as_it_has_nodes) {
  enum { NODES = 100000 };
  cleave_pattern_t pattern = pattern_of(SEQUENCE(op("Neg", "a"), op("Neg", "b")));
  cleave_rule_t rule = rewrite("cancel", &pattern, drop, NULL);
  cleave_graph_t *graph = chain(NODES, "Neg", "Neg");
  cleave_transformation_t t = transform(graph, &rule, 1, NULL);
  ck_assert_uint_eq(t.graph->live_node_count, 0);
  ck_assert_uint_eq(t.edits->rules.items[0].matches, NODES / 2);
  ck_assert_uint_le(t.edits->rules.items[0].tries, 4 * NODES);
  cleave_transformation_deinit(&t);
  cleave_graph_destroy(graph);
}

UNIT_TEST(what_moves_along_a_long_chain_stays_linear) {
  enum { NODES = 50000 };
  uint32_t sin = op("Sin", "s");
  cleave_pattern_t pattern = pattern_of(SEQUENCE(sin, op("Neg", "n")));
  cleave_rule_t rule = rewrite("push", &pattern, swap, NULL);
  cleave_graph_t *graph = chain(NODES, "Neg", "Neg");
  graph->nodes.items[0].op = find_op("Sin");
  cleave_transformation_t t = transform(graph, &rule, 1, NULL);
  ck_assert_uint_eq(t.edits->rules.items[0].matches, NODES - 1);
  ck_assert_uint_le(t.edits->rules.items[0].tries, 8 * NODES);
  cleave_value_t y = cleave_graph_output(t.graph, 0);
  ck_assert_str_eq(cleave_node_op(t.graph, cleave_value_producer(t.graph, y))->name, "Sin");
  cleave_transformation_deinit(&t);
  cleave_graph_destroy(graph);
}

UNIT_TEST(a_value_with_many_readers_is_looked_at_in_the_end) {
  // Neg >> Abs at every one of 200 readers; the change of the first touches the value that all read.
  cleave_text_t text = {0};
  for (int k = 0; k < 200; k++) {
    cleave_text_format(&text, "a%d = Neg(h); b%d = Abs(a%d); ", k, k, k);
  }
  cleave_graph_t *graph = NULL;
  char whole[8192];
  cleave_text_t outputs = {0};
  for (int k = 0; k < 200; k++) {
    cleave_text_format(&outputs, "%sb%d", k == 0 ? "" : ", ", k);
  }
  (void)snprintf(whole, sizeof whole, "h = Exp(x); %s-> %s", cleave_text_get(&text),
                 cleave_text_get(&outputs));
  graph = plan_case_graph(whole);
  cleave_text_deinit(&text);
  cleave_text_deinit(&outputs);
  cleave_pattern_t pattern = pattern_of(SEQUENCE(op("Neg", "a"), op("Abs", "b")));
  cleave_rule_t rule = rewrite("abs", &pattern, substitute_one, "Abs");
  cleave_transformation_t t = transform(graph, &rule, 1, NULL);
  ck_assert_uint_eq(t.edits->rules.items[0].matches, 200);
  ck_assert_uint_eq(t.graph->live_node_count, 201);
  ck_assert_uint_le(t.edits->rules.items[0].tries, 2000);
  cleave_transformation_deinit(&t);
}

static bool allow_none(void *context, const cleave_graph_t *graph, const cleave_plan_rule_t *rule,
                       const cleave_node_t *nodes, uint32_t node_count) {
  (void)graph;
  (void)nodes;
  ck_assert_str_eq(rule->name, "abs");
  *(uint32_t *)context += node_count;
  return false;
}

UNIT_TEST(who_asks_for_it_may_leave_applications_out) {
  uint32_t asked = 0;
  cleave_transform_options_t options = {.allow = allow_none, .allow_context = &asked};
  cleave_pattern_t pattern = pattern_of(op("Neg", "a"));
  cleave_rule_t rule = rewrite("abs", &pattern, substitute_one, "Abs");
  cleave_transformation_t t = transform(plan_case_graph("a = Neg(x); y = Neg(a); -> y"), &rule, 1, &options);
  ck_assert_ptr_null(t.graph);
  ck_assert_uint_eq(asked, 2);
  ck_assert_uint_eq(t.edits->rules.items[0].refused, 2);
  ck_assert_str_eq(t.edits->refusals.items[0].reason, "left out");
  cleave_transformation_deinit(&t);
}

// ---- loops ----

UNIT_TEST(loops_are_found_in_large_graphs_too) {
  cleave_pattern_t neg = pattern_of(op("Neg", "a"));
  cleave_rule_t rules[2] = {rewrite("same", &neg, substitute_one, "Neg")};
  cleave_graph_t *graph = chain(20000, "Neg", "Neg");
  ck_assert_str_eq(
      failure(graph, rules, 1),
      "test.lua:1: rewrite 'same': loops at 'Neg#20001': its result is rewritten back to what it was");
  cleave_graph_destroy(graph);
}

UNIT_TEST(three_rules_in_a_ring_are_found) {
  static cleave_pattern_t patterns[3];
  static const char *const names[3] = {"Neg", "Abs", "Exp"};
  cleave_rule_t rules[3];
  cleave_pattern_node_t copies[3];
  for (int k = 0; k < 3; k++) {
    cleave_pattern_t made = pattern_of(op(names[k], NULL));
    copies[k] = made.nodes[made.root];
    patterns[k] = (cleave_pattern_t){.nodes = &copies[k], .node_count = 1};
    rules[k] = rewrite(names[k], &patterns[k], substitute_one, names[(k + 1) % 3]);
  }
  const char *message = failure(plan_case_graph("y = Neg(x); -> y"), rules, 3);
  ck_assert_msg(strstr(message, "rewrite 'Neg': loops at 'y'") != NULL, "%s", message);
  ck_assert_msg(strstr(message, "with rewrite 'Exp'") != NULL, "%s", message);
}

// ---- the editor ----

static cleave_editor_t start(cleave_graph_t *graph) {
  cleave_editor_t editor;
  cleave_editor_init(&editor, graph, NULL);
  editor.first_node = cleave_graph_node_bound(graph);
  return editor;
}

static cleave_value_t value_of(const cleave_graph_t *graph, const char *name) {
  return cleave_node_output(graph, plan_case_node(graph, name), 0);
}

UNIT_TEST(a_step_that_fails_changes_nothing) {
  cleave_graph_t *graph = plan_case_graph("a = Relu(x); b = Exp(a); -> b");
  cleave_editor_t editor = start(graph);
  uint32_t nodes = cleave_graph_node_bound(graph);
  uint32_t values = cleave_graph_value_bound(graph);
  cleave_value_t a = value_of(graph, "a");
  cleave_value_t wrong = {values + 5};
  cleave_node_t node;
  unit_fails(
      cleave_editor_add_node(
          &editor, find_op("Relu"),
          &(cleave_edit_t){.name = "n", .inputs = &wrong, .input_count = 1, .output_count = 1}, &node, e),
      CLEAVE_ERROR_INVALID_ARGUMENT, "operator 'Relu': input 0 is value 8, which does not exist");
  cleave_value_t two[2] = {a, a};
  ck_assert_int_ne(
      cleave_editor_add_node(
          &editor, find_op("Relu"),
          &(cleave_edit_t){.name = "n", .inputs = two, .input_count = 2, .output_count = 1}, &node, NULL),
      CLEAVE_OK);
  cleave_attribute_t attribute = {.name = "axis", .kind = CLEAVE_ATTRIBUTE_INT, .i = 1};
  ck_assert_int_ne(cleave_editor_add_node(&editor, find_op("Relu"),
                                          &(cleave_edit_t){.name = "n",
                                                           .inputs = &a,
                                                           .input_count = 1,
                                                           .output_count = 1,
                                                           .attributes = &attribute,
                                                           .attribute_count = 1},
                                          &node, NULL),
                   CLEAVE_OK);
  unit_fails(cleave_editor_set_input(&editor, plan_case_node(graph, "a"), 0, value_of(graph, "b"), e),
             CLEAVE_ERROR_INVALID_ARGUMENT,
             "reading value 'b' here would close a cycle: it depends on the node that is to read it");
  unit_fails(cleave_editor_set_input(&editor, plan_case_node(graph, "a"), 1, a, e),
             CLEAVE_ERROR_INVALID_ARGUMENT, "operator 'Relu' has 1 input here: there is no input 1");
  unit_fails(cleave_editor_remove_node(&editor, plan_case_node(graph, "a"), e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "node 'a' cannot be removed: 'b' reads it");
  unit_fails(cleave_editor_set_output(&editor, 1, a, e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "the graph has 1 output: there is no output 1");
  unit_fails(cleave_editor_replace_uses(&editor, wrong, a, e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "value 8 does not exist");
  unit_fails(cleave_editor_remove_node(&editor, (cleave_node_t){99}, e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "node 99 does not exist");
  ck_assert_uint_eq(cleave_graph_node_bound(graph), nodes);
  ck_assert_uint_eq(cleave_graph_value_bound(graph), values);
  unit_ok(cleave_graph_verify(graph, e));
  ck_assert_str_eq(edits_case_ops(graph), "Relu Exp");
  cleave_editor_deinit(&editor);
}

UNIT_TEST(rolling_back_gives_ids_again) {
  cleave_graph_t *graph = plan_case_graph("a = Relu(x); b = Exp(a); -> b");
  cleave_editor_t editor = start(graph);
  cleave_tensor_t *tensor = NULL;
  cleave_value_t constant_value;
  cleave_value_t first;
  cleave_value_t second;
  unit_ok(cleave_tensor_create_float(3.0F, &tensor, e));
  for (int round = 0; round < 3; round++) {
    cleave_editor_mark_t mark = cleave_editor_mark(&editor);
    unit_ok(cleave_editor_add_constant(&editor, "three", tensor, &constant_value, e));
    unit_ok(add_unary(&editor, "Neg", value_of(graph, "a"), &first, e));
    unit_ok(add_unary(&editor, "Neg", first, &second, e));
    ck_assert_uint_eq(second.index, first.index + 1);
    ck_assert_uint_eq(cleave_graph_value(graph, value_of(graph, "a"))->use_count, 2);
    cleave_editor_roll_back(&editor, mark);
    ck_assert_uint_eq(cleave_graph_value(graph, value_of(graph, "a"))->use_count, 1);
    unit_ok(cleave_graph_verify(graph, e));
  }
  ck_assert_int_eq(tensor->references, 1);
  cleave_tensor_release(tensor);
  cleave_editor_deinit(&editor);
}

UNIT_TEST(readers_that_the_value_is_made_of_keep_reading) {
  cleave_graph_t *graph = plan_case_graph("a = Relu(x); b = Exp(a); c = Abs(a); -> b, c");
  cleave_editor_t editor = start(graph);
  cleave_value_t a = value_of(graph, "a");
  cleave_value_t wrapped;
  unit_ok(add_unary(&editor, "Neg", a, &wrapped, e));
  unit_ok(cleave_editor_replace_uses(&editor, a, wrapped, e));
  ck_assert_uint_eq(cleave_node_input(graph, plan_case_node(graph, "b"), 0).index, wrapped.index);
  ck_assert_uint_eq(cleave_node_input(graph, plan_case_node(graph, "c"), 0).index, wrapped.index);
  ck_assert_uint_eq(cleave_node_input(graph, cleave_value_producer(graph, wrapped), 0).index, a.index);
  unit_ok(cleave_graph_verify(graph, e));
  cleave_editor_deinit(&editor);
}

UNIT_TEST(a_cycle_far_away_is_found_when_the_changes_end) {
  enum { NODES = 5000 };
  cleave_graph_t *graph = chain(NODES, "Neg", "Neg");
  cleave_editor_t editor = start(graph);
  cleave_value_t last = cleave_graph_output(graph, 0);
  unit_ok(cleave_editor_set_input(&editor, (cleave_node_t){0}, 0, last, e));
  ck_assert(editor.is_unproved);
  unit_fails_with(cleave_editor_settle(&editor, e), CLEAVE_ERROR_FORMAT, "cycle");
  cleave_editor_deinit(&editor);
  cleave_graph_destroy(graph);
}

// ---- failing allocations ----

UNIT_TEST(every_allocation_may_fail) {
  cleave_pattern_t pattern = pattern_of(SEQUENCE(op("Neg", "a"), op("Abs", "b")));
  cleave_rule_t rules[2] = {rewrite("abs", &pattern, substitute_one, "Abs"),
                            rewrite("swap", &pattern, swap, NULL)};
  const cleave_ruleset_t ruleset = {
      .name = "r", .backend = "cpu", .file = "r.lua", .rules = rules, .rule_count = 2};
  const cleave_ruleset_t *pointer = &ruleset;
  cleave_graph_t *graph = plan_case_graph("a = Neg(x); b = Abs(a); c = Neg(b); d = Abs(c); -> d");
  long failures = 0;
  for (;; failures++) {
    cleave_transformation_t t;
    cleave_graph_t *again = NULL;
    (void)cleave_memory_fail_after((int64_t)failures);
    cleave_status_t status = cleave_transform(graph, &pointer, 1, NULL, &t, NULL);
    if (status == CLEAVE_OK) {
      status = cleave_transform_replay(graph, t.edits, NULL, &again, NULL);
    }
    (void)cleave_memory_fail_after(-1);
    if (status == CLEAVE_OK) {
      ck_assert_str_eq(edits_case_ops(t.graph), "Abs Abs");
      edits_case_check_same(t.graph, again);
    } else {
      ck_assert_int_eq(status, CLEAVE_ERROR_OUT_OF_MEMORY);
      ck_assert_ptr_null(again);
    }
    cleave_graph_destroy(again);
    cleave_transformation_deinit(&t);
    unit_ok(cleave_graph_verify(graph, e));
    if (status == CLEAVE_OK) {
      break;
    }
    ck_assert_int_lt(failures, 5000);
  }
  ck_assert_int_gt(failures, 50);
}

UNIT_SUITE("transform")
