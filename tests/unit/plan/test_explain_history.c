// SPDX-License-Identifier: Apache-2.0
// Answers about rules that change the model: each is asked about the graph that it saw in the end, nodes that
// rules made say who made them, and what others took is no near miss of the rest.
#include "base/memory.h"
#include "partition/report/explain_report.h"
#include "partition/rewrite/transform.h"
#include "pattern_case.h"
#include "plan_case.h"
#include "unit.h"

static cleave_status_t add_unary(cleave_editor_t *editor, const char *name, const char *node_name,
                                 cleave_value_t x, cleave_value_t *out_value, cleave_error_t *error) {
  cleave_node_t node = CLEAVE_NODE_NONE;
  CLEAVE_TRY(cleave_editor_add_node(
      editor, cleave_op_find("", name),
      &(cleave_edit_t){.name = node_name, .inputs = &x, .input_count = 1, .output_count = 1}, &node, error));
  *out_value = cleave_node_output(editor->graph, node, 0);
  return CLEAVE_OK;
}

/* The operator in the context, over the input of the first node of the match; no operator: left as it is. */
static cleave_status_t substitute_one(void *context, cleave_editor_t *editor, const cleave_match_t *match,
                                      cleave_substitute_t *substitute, cleave_error_t *error) {
  cleave_value_t y = CLEAVE_VALUE_NONE;
  if (context == NULL) {
    (void)snprintf(substitute->reason.text, sizeof substitute->reason.text, "not this one");
    return CLEAVE_OK;
  }
  CLEAVE_TRY(
      add_unary(editor, context, NULL, cleave_node_input(editor->graph, match->nodes[0], 0), &y, error));
  CLEAVE_ARRAY_PUSH(&substitute->from, CLEAVE_VALUE_NONE, error);
  CLEAVE_ARRAY_PUSH(&substitute->to, y, error);
  return CLEAVE_OK;
}

/* Another node behind the first output of the model. */
static cleave_status_t append_node(void *context, cleave_editor_t *editor, cleave_error_t *error) {
  cleave_value_t y = CLEAVE_VALUE_NONE;
  (void)context;
  CLEAVE_TRY(add_unary(editor, "Floor", "late", cleave_graph_output(editor->graph, 0), &y, error));
  return cleave_editor_set_output(editor, 0, y, error);
}

enum { FIRST, SECOND, THIRD, FOURTH, PASS, FIFTH, FUSE, RULE_COUNT };

typedef struct scene {
  const cleave_graph_t *graph;
  cleave_pattern_t patterns[RULE_COUNT];
  cleave_rule_t rules[RULE_COUNT];
  const cleave_ruleset_t *ruleset;
  cleave_plan_t *plan;
} scene_t;

/* What "first" makes is nearly what "second" wants; it takes what "third" wants; "fourth" leaves its match. A
 * pass comes before "fifth". */
static scene_t *make_scene(void) {
  static scene_t scene;
  static const char *const NAMES[] = {"first", "second", "third", "fourth", "pass", "fifth", "fuse"};
  static const char *const MADE[] = {"Relu", "Tanh", "Ceil", NULL, NULL, "Sin", NULL};
  scene.graph = plan_case_graph("a = Neg(x); b = Abs(a); c = Exp(b); d = Sqrt(y); -> c, d");
  uint32_t roots[RULE_COUNT] = {SEQUENCE(op("Neg", "n"), op("Abs", "a")),
                                SEQUENCE(op("Relu", "r"), op("Clip", "c")),
                                SEQUENCE(op("Abs", "a3"), op("Exp", "e3")),
                                op("Sqrt", "s"),
                                op("Identity", "i"),
                                SEQUENCE(op("Floor", "f"), op("Erf", "e5")),
                                SEQUENCE(op("Neg", "n6"), op("Abs", "a6"))};
  for (uint32_t k = 0; k < RULE_COUNT; k++) {
    cleave_rule_kind_t kind = k == PASS   ? CLEAVE_RULE_PASS
                              : k == FUSE ? CLEAVE_RULE_FUSE
                                          : CLEAVE_RULE_REWRITE;
    scene.patterns[k] = pattern_of(roots[k]);
    scene.rules[k] = plan_case_rule(kind, NAMES[k]);
    scene.rules[k].pattern = k == PASS ? NULL : &scene.patterns[k];
    scene.rules[k].replace = kind == CLEAVE_RULE_REWRITE ? substitute_one : NULL;
    scene.rules[k].run = k == PASS ? append_node : NULL;
    scene.rules[k].context = (void *)(uintptr_t)MADE[k];
  }
  scene.ruleset = plan_case_ruleset("set", scene.rules, RULE_COUNT);
  cleave_transformation_t t;
  unit_ok(cleave_transform(scene.graph, &scene.ruleset, 1, NULL, &t, e));
  ck_assert_ptr_nonnull(t.graph);
  scene.plan = plan_case_run(t.graph, &scene.ruleset, 1, NULL);
  unit_ok(cleave_transformation_move(&t, scene.graph, scene.plan, e));
  return &scene;
}

static cleave_why_t *ask(const scene_t *scene, const char *node, const char *rule) {
  cleave_why_t *why = NULL;
  cleave_why_request_t request = {.plan = scene->plan,
                                  .rulesets = &scene->ruleset,
                                  .ruleset_count = 1,
                                  .nodes = &node,
                                  .node_count = node != NULL,
                                  .rules = &rule,
                                  .rule_count = rule != NULL};
  unit_ok(cleave_why_create(&request, &why, e));
  return why;
}

/* The text of the answer; stays. */
static const char *say(const scene_t *scene, const char *node, const char *rule) {
  cleave_why_t *why = ask(scene, node, rule);
  cleave_text_t text = {0};
  unit_ok(cleave_why_print_text(why, &text, e));
  cleave_why_destroy(why);
  return plan_case_keep(text.data);
}

UNIT_TEST(a_near_miss_on_what_another_rewrite_made_is_found) {
  scene_t *scene = make_scene();
  cleave_why_t *why = ask(scene, NULL, "second");
  const cleave_why_rule_t *rule = &why->rules[0];
  ck_assert_uint_eq(rule->match_count, 0);
  ck_assert_uint_eq(rule->lost_count, 0);
  ck_assert_uint_eq(rule->near_miss_count, 1);
  const cleave_near_miss_t *near_miss = &rule->near_misses[0];
  ck_assert(!near_miss->is_taken);
  ck_assert_ptr_eq(near_miss->graph, rule->graph);
  ck_assert_ptr_ne(rule->graph, scene->plan->graph); /* the pass came later */
  ck_assert_ptr_ne(rule->graph, scene->graph);
  ck_assert_str_eq(cleave_node_op(near_miss->graph, near_miss->finding.anchor)->name, "Relu");
  ck_assert_uint_eq(cleave_history_maker(why->history, near_miss->finding.anchor), FIRST);
  cleave_why_destroy(why);
  ck_assert_str_eq(say(scene, NULL, "second"),
                   "rewrite 'second' (test.lua:2): 0 rewritten out of 0 matches, 1 near miss\n"
                   "  near misses:\n"
                   "    1 of 2 nodes at Exp 'c'\n"
                   "      operator is Exp, wanted Clip\n"
                   "        test.lua:5: r >> c\n"
                   "        try: op { { \"Clip\", \"Exp\" }, as = \"c\" }\n");
}

UNIT_TEST(what_a_rewrite_made_says_of_what_and_by_whom) {
  scene_t *scene = make_scene();
  cleave_why_t *why = ask(scene, "b", NULL);
  ck_assert_ptr_eq(why->nodes[0].graph, scene->plan->graph);
  const cleave_verdict_t *made = &why->nodes[0].verdicts[FIRST];
  ck_assert_int_eq(made->fate, CLEAVE_FATE_MADE);
  ck_assert_uint_eq(made->finding.node_count, 2);
  ck_assert_ptr_eq(made->graph, scene->graph);
  ck_assert_uint_eq(made->made_count, 1);
  ck_assert_uint_eq(made->made[0].index, why->nodes[0].node.index);
  ck_assert_int_eq(why->nodes[0].verdicts[SECOND].fate, CLEAVE_FATE_MISSED);
  ck_assert_uint_eq(why->nodes[0].verdicts[SECOND].winner, CLEAVE_INDEX_NONE);
  ck_assert_int_eq(why->nodes[0].verdicts[THIRD].fate, CLEAVE_FATE_MISSED);
  cleave_why_destroy(why);
  const char *text = say(scene, "b", "first");
  ck_assert_msg(strstr(text, "Relu 'b' (made by rewrite 'first'), number ") == text, "%s", text);
  ck_assert_msg(strstr(text, "made it\n    in place of Neg 'a', Abs 'b'\n") != NULL, "%s", text);
}

UNIT_TEST(a_node_that_was_taken_is_judged_as_it_was_before) {
  scene_t *scene = make_scene();
  cleave_why_t *why = ask(scene, "a", NULL);
  ck_assert_ptr_eq(why->nodes[0].graph, scene->graph);
  const cleave_verdict_t *verdicts = why->nodes[0].verdicts;
  ck_assert_int_eq(verdicts[FIRST].fate, CLEAVE_FATE_REWRITTEN);
  ck_assert_uint_eq(verdicts[FIRST].made_count, 1);
  ck_assert_int_eq(verdicts[FUSE].fate, CLEAVE_FATE_LOST);
  ck_assert_uint_eq(verdicts[FUSE].winner, FIRST);
  ck_assert_uint_eq(verdicts[FUSE].finding.node_count, 2);
  ck_assert_ptr_eq(verdicts[FUSE].graph, scene->graph);
  ck_assert_int_eq(verdicts[FIFTH].fate, CLEAVE_FATE_OUTSIDE);
  cleave_why_destroy(why);
  const char *text = say(scene, "a", "first");
  ck_assert_msg(strstr(text, "took it\n    out of Neg 'a', Abs 'b'\n    made Relu 'b'\n") != NULL, "%s",
                text);
  ck_assert_msg(strstr(text, "before the model was rewritten by rewrite 'first'") != NULL, "%s", text);
}

UNIT_TEST(matches_that_others_took_are_lost) {
  scene_t *scene = make_scene();
  cleave_why_t *why = ask(scene, NULL, NULL);
  ck_assert_uint_eq(why->rules[FIRST].match_count, 1);
  ck_assert_uint_eq(why->rules[FIRST].lost_count, 0);
  ck_assert_uint_eq(why->rules[THIRD].match_count, 1);
  ck_assert_uint_eq(why->rules[THIRD].lost_count, 1);
  ck_assert_uint_eq(why->rules[FUSE].match_count, 0);
  ck_assert_uint_eq(why->rules[FUSE].before_count, 1);
  cleave_why_destroy(why);
}

UNIT_TEST(a_rewrite_that_leaves_its_match_says_why) {
  scene_t *scene = make_scene();
  cleave_why_t *why = ask(scene, "d", NULL);
  const cleave_verdict_t *left = &why->nodes[0].verdicts[FOURTH];
  ck_assert_int_eq(left->fate, CLEAVE_FATE_REFUSED);
  ck_assert_str_eq(left->reason, "not this one");
  cleave_why_destroy(why);
  ck_assert_str_eq(say(scene, NULL, "fourth"),
                   "rewrite 'fourth' (test.lua:4): 0 rewritten out of 1 match, 1 refused\n"
                   "  left at 'd': not this one\n");
}

UNIT_TEST(rules_that_were_done_know_nothing_of_what_came_later) {
  scene_t *scene = make_scene();
  cleave_why_t *why = ask(scene, "late", NULL);
  const cleave_verdict_t *verdicts = why->nodes[0].verdicts;
  ck_assert_int_eq(verdicts[PASS].fate, CLEAVE_FATE_MADE);
  ck_assert_uint_eq(verdicts[PASS].finding.node_count, 0);
  ck_assert_int_eq(verdicts[SECOND].fate, CLEAVE_FATE_OUTSIDE);
  ck_assert_str_eq(verdicts[SECOND].reason, "was done before this node was made");
  ck_assert_int_eq(verdicts[FIFTH].fate, CLEAVE_FATE_MISSED);
  ck_assert_ptr_eq(verdicts[FIFTH].graph, scene->plan->graph);
  cleave_why_destroy(why);
}

UNIT_TEST(an_answer_may_be_interrupted) {
  scene_t *scene = make_scene();
  static const char *const NODE = "b";
  atomic_bool is_interrupted = true;
  for (uint32_t mode = 0; mode < 2; mode++) {
    cleave_why_t *why = NULL;
    cleave_why_request_t request = {.plan = scene->plan,
                                    .rulesets = &scene->ruleset,
                                    .ruleset_count = 1,
                                    .nodes = &NODE,
                                    .node_count = mode,
                                    .is_interrupted = &is_interrupted};
    unit_fails_with(cleave_why_create(&request, &why, e), CLEAVE_ERROR_LIMIT, "why: interrupted");
    ck_assert_ptr_null(why);
    is_interrupted = false;
    unit_ok(cleave_why_create(&request, &why, e));
    is_interrupted = true;
    cleave_why_destroy(why);
  }
}

UNIT_TEST(every_allocation_may_fail) {
  scene_t *scene = make_scene();
  static const char *const NODES[] = {"a", "b", "late"};
  for (uint32_t mode = 0; mode < 2; mode++) {
    cleave_why_request_t request = {.plan = scene->plan,
                                    .rulesets = &scene->ruleset,
                                    .ruleset_count = 1,
                                    .nodes = NODES,
                                    .node_count = mode * 3};
    cleave_status_t status = CLEAVE_ERROR_OUT_OF_MEMORY;
    int64_t k = 0;
    for (; status != CLEAVE_OK && k < 20000; k += 1 + k / 100) {
      cleave_why_t *why = NULL;
      cleave_text_t text = {0};
      (void)cleave_memory_fail_after(k);
      status = cleave_why_create(&request, &why, NULL);
      if (status == CLEAVE_OK) {
        status = cleave_why_print_text(why, &text, NULL);
      }
      if (status == CLEAVE_OK) {
        status = cleave_why_print_json(why, &text, NULL);
      }
      (void)cleave_memory_fail_after(-1);
      ck_assert(status == CLEAVE_OK || status == CLEAVE_ERROR_OUT_OF_MEMORY);
      cleave_text_deinit(&text);
      cleave_why_destroy(why);
    }
    ck_assert_int_gt(k, 50);
    ck_assert_int_eq(status, CLEAVE_OK);
  }
}

UNIT_SUITE("explain history")
