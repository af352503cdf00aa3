// SPDX-License-Identifier: Apache-2.0
// Answers about nodes and rules of a plan: fates, groups of near misses, names; and the embedding API.

#include "partition/report/explain_report.h"

#include "base/memory.h"
#include "pattern_case.h"
#include "plan_case.h"
#include "unit.h"

static cleave_status_t where_no(void *context, const cleave_graph_t *graph, const cleave_match_t *match,
                                bool *out_accept, cleave_reason_t *reason, cleave_error_t *error) {
  (void)context;
  (void)graph;
  (void)match;
  (void)error;
  *out_accept = false;
  (void)snprintf(reason->text, sizeof reason->text, "not today");
  return CLEAVE_OK;
}

typedef struct scene {
  const cleave_graph_t *graph;
  cleave_pattern_t patterns[3];
  cleave_rule_t rules[3];
  const cleave_ruleset_t *ruleset;
  cleave_plan_t *plan;
} scene_t;

/* "first" takes conv >> relu, "second" relu >> pool loses to it or is refused, "third" wants a Clip. */
static scene_t *make_scene(void) {
  static scene_t scene;
  scene.graph = plan_case_graph(
      "a = Conv(x, $w); b = Relu(a); c = MaxPool(b); d = Relu(y); e = MaxPool(d); "
      "f = Conv(z, $v); h = Sigmoid(f); k = Conv(u, $t); l = Sigmoid(k); -> c, e, h, l");
  uint32_t roots[3] = {SEQUENCE(op("Conv", "conv"), op("Relu", "act")),
                       SEQUENCE(op("Relu", "r"), op("MaxPool", "p")),
                       SEQUENCE(op("Conv", "conv3"), op("Clip", "clip"))};
  static const char *const NAMES[3] = {"first", "second", "third"};
  for (uint32_t k = 0; k < 3; k++) {
    scene.patterns[k] = pattern_of(roots[k]);
    scene.rules[k] = plan_case_rule(CLEAVE_RULE_FUSE, NAMES[k]);
    scene.rules[k].pattern = &scene.patterns[k];
  }
  scene.rules[1].where = where_no;
  scene.ruleset = plan_case_ruleset("set", scene.rules, 3);
  scene.plan = plan_case_run(scene.graph, &scene.ruleset, 1, NULL);
  return &scene;
}

static cleave_why_request_t ask(const scene_t *scene) {
  return (cleave_why_request_t){.plan = scene->plan, .rulesets = &scene->ruleset, .ruleset_count = 1};
}

UNIT_TEST(a_node_has_a_fate_with_every_rule) {
  scene_t *scene = make_scene();
  static const struct {
    const char *node;
    cleave_fate_t fates[3];
  } WANTED[] = {{"a", {CLEAVE_FATE_FUSED, CLEAVE_FATE_OUTSIDE, CLEAVE_FATE_MISSED}},
                {"b", {CLEAVE_FATE_FUSED, CLEAVE_FATE_LOST, CLEAVE_FATE_MISSED}},
                {"c", {CLEAVE_FATE_OUTSIDE, CLEAVE_FATE_LOST, CLEAVE_FATE_OUTSIDE}},
                {"d", {CLEAVE_FATE_OUTSIDE, CLEAVE_FATE_REFUSED, CLEAVE_FATE_OUTSIDE}},
                {"h", {CLEAVE_FATE_MISSED, CLEAVE_FATE_OUTSIDE, CLEAVE_FATE_MISSED}}};
  for (size_t k = 0; k < sizeof WANTED / sizeof WANTED[0]; k++) {
    cleave_why_request_t request = ask(scene);
    cleave_why_t *why = NULL;
    request.nodes = &WANTED[k].node;
    request.node_count = 1;
    unit_ok(cleave_why_create(&request, &why, e));
    ck_assert_uint_eq(why->node_count, 1);
    ck_assert_uint_eq(why->nodes[0].verdict_count, 3);
    for (uint32_t r = 0; r < 3; r++) {
      ck_assert_msg(why->nodes[0].verdicts[r].fate == WANTED[k].fates[r], "node %s, rule %u: %s",
                    WANTED[k].node, r, cleave_fate_name(why->nodes[0].verdicts[r].fate));
    }
    cleave_why_destroy(why);
  }
}

UNIT_TEST(losers_and_refused_matches_name_the_winner_and_the_reason) {
  scene_t *scene = make_scene();
  static const char *const NODES[] = {"c", "d"};
  cleave_why_request_t request = ask(scene);
  cleave_why_t *why = NULL;
  request.nodes = NODES;
  request.node_count = 2;
  unit_ok(cleave_why_create(&request, &why, e));
  const cleave_verdict_t *lost = &why->nodes[0].verdicts[1];
  ck_assert_uint_eq(lost->winner, 0);
  ck_assert_uint_eq(scene->plan->fusions[lost->fusion].node_count, 2);
  ck_assert_uint_eq(lost->finding.node_count, 2);
  const cleave_verdict_t *refused = &why->nodes[1].verdicts[1];
  ck_assert_str_eq(refused->cause, "where");
  ck_assert_str_eq(refused->reason, "not today");
  cleave_why_destroy(why);
}

UNIT_TEST(a_rule_that_is_not_near_names_the_operators_that_the_model_lacks) {
  cleave_pattern_t pattern = pattern_of(SEQUENCE(op("Exp", NULL), op("Log,Abs", NULL), op("Relu", NULL)));
  cleave_rule_t rule = plan_case_rule(CLEAVE_RULE_FUSE, "far");
  rule.pattern = &pattern;
  const cleave_ruleset_t *ruleset = plan_case_ruleset("set", &rule, 1);
  const cleave_graph_t *graph = plan_case_graph("a = Relu(x); b = Relu(a); -> b");
  cleave_plan_t *plan = plan_case_run(graph, &ruleset, 1, NULL);
  static const char *const NAME = "far";
  cleave_why_request_t request = {
      .plan = plan, .rulesets = &ruleset, .ruleset_count = 1, .rules = &NAME, .rule_count = 1};
  cleave_why_t *why = NULL;
  cleave_text_t text = {0};
  unit_ok(cleave_why_create(&request, &why, e));
  unit_ok(cleave_why_print_text(why, &text, e));
  ck_assert_ptr_nonnull(
      strstr(cleave_text_get(&text), "0 fused out of 0 matches, the model has no Exp, no Log or Abs\n"));
  text.length = 0;
  unit_ok(cleave_why_print_json(why, &text, e));
  ck_assert_ptr_nonnull(strstr(cleave_text_get(&text), "\"Log or Abs\""));
  cleave_text_deinit(&text);
  cleave_why_destroy(why);
}

UNIT_TEST(places_with_the_same_lack_are_one_kind) {
  scene_t *scene = make_scene();
  cleave_why_request_t request = ask(scene);
  cleave_why_t *why = NULL;
  static const char *const RULE = "first";
  request.rules = &RULE;
  request.rule_count = 1;
  unit_ok(cleave_why_create(&request, &why, e));
  ck_assert_uint_eq(why->rule_count, 1);
  ck_assert_uint_eq(why->rules[0].match_count, 1);
  ck_assert_uint_eq(why->rules[0].near_miss_count, 1);
  ck_assert_uint_eq(why->rules[0].near_misses[0].count, 2);
  ck_assert(why->rules[0].near_misses[0].finding.is_fixed);
  cleave_why_destroy(why);
}

UNIT_TEST(unknown_names_are_errors_with_the_nearest) {
  scene_t *scene = make_scene();
  cleave_why_request_t request = ask(scene);
  cleave_why_t *why = NULL;
  static const char *const RULE = "frist";
  static const char *const NODES[] = {"nobody", "#400", "#-1", "#", "op:Conf"};
  request.rules = &RULE;
  request.rule_count = 1;
  unit_fails_with(cleave_why_create(&request, &why, e), CLEAVE_ERROR_INVALID_ARGUMENT,
                  "did you mean 'first'?");
  request.rule_count = 0;
  request.node_count = 1;
  for (size_t k = 0; k < sizeof NODES / sizeof NODES[0]; k++) {
    request.nodes = &NODES[k];
    unit_fails_with(cleave_why_create(&request, &why, e), CLEAVE_ERROR_INVALID_ARGUMENT, "the model has no");
  }
}

UNIT_TEST(every_allocation_may_fail) {
  scene_t *scene = make_scene();
  static const char *const NODE = "op:Conv";
  for (uint32_t mode = 0; mode < 2; mode++) {
    cleave_why_request_t request = ask(scene);
    cleave_status_t status = CLEAVE_ERROR_OUT_OF_MEMORY;
    request.nodes = &NODE;
    request.node_count = mode;
    for (int64_t k = 0; status != CLEAVE_OK && k < 20000; k += 1 + k / 100) {
      cleave_why_t *why = NULL;
      cleave_text_t text = {0};
      (void)cleave_memory_fail_after(k);
      status = cleave_why_create(&request, &why, NULL);
      if (status == CLEAVE_OK) {
        status = cleave_why_print_text(why, &text, NULL);
      }
      (void)cleave_memory_fail_after(-1);
      ck_assert(status == CLEAVE_OK || status == CLEAVE_ERROR_OUT_OF_MEMORY);
      cleave_text_deinit(&text);
      cleave_why_destroy(why);
    }
    ck_assert_int_eq(status, CLEAVE_OK);
  }
}

UNIT_TEST(the_embedding_api_answers_in_words_and_json) {
  cleave_model_t *model = NULL;
  char *text = NULL;
  static const char RULES[] =
      "return ruleset { name = 'r', backend = 'cpu', fuse 'pair' {\n"
      "  pattern = op { 'Conv', as = 'conv', attrs = { group = 7 } } >> op 'BatchNormalization' } }";
  const cleave_rule_source_t source = {.path = "inline.lua", .text = RULES, .length = sizeof RULES - 1};
  unit_ok(cleave_model_load(NULL, CLEAVE_SOURCE_DIR "/examples/models/resnet50.lua", NULL, &model, e));
  unit_ok(cleave_model_why(
      model,
      &(cleave_partition_request_t){
          .size = sizeof(cleave_partition_request_t), .sources = &source, .source_count = 1},
      &(cleave_why_options_t){
          .size = sizeof(cleave_why_options_t), .node = NULL, .rule = "pair", .format = CLEAVE_PLAN_TEXT},
      &text, e));
  ck_assert_ptr_nonnull(strstr(text, "1 of 2 nodes x 53, first at Conv 'stem'"));
  ck_assert_ptr_nonnull(strstr(text, "try: attrs = { group = one_of { 7, 1 } }"));
  cleave_text_free(text);
  unit_ok(cleave_model_why(
      model,
      &(cleave_partition_request_t){
          .size = sizeof(cleave_partition_request_t), .sources = &source, .source_count = 1},
      &(cleave_why_options_t){
          .size = sizeof(cleave_why_options_t), .node = "stem", .rule = NULL, .format = CLEAVE_PLAN_JSON},
      &text, e));
  ck_assert_ptr_nonnull(strstr(text, "\"fate\": \"missed\""));
  cleave_text_free(text);
  unit_fails_with(
      cleave_model_why(model,
                       &(cleave_partition_request_t){
                           .size = sizeof(cleave_partition_request_t), .sources = &source, .source_count = 1},
                       &(cleave_why_options_t){.size = sizeof(cleave_why_options_t),
                                               .node = "nobody",
                                               .rule = NULL,
                                               .format = CLEAVE_PLAN_TEXT},
                       &text, e),
      CLEAVE_ERROR_INVALID_ARGUMENT, "no node 'nobody'");
  ck_assert_ptr_null(text);
  cleave_model_release(model);
}

UNIT_SUITE("explain_report")
