// SPDX-License-Identifier: Apache-2.0
// Differences of plans: what moved, what became of regions, rules, settings; plans of different graphs.

#include "partition/plan_diff/plan_diff.h"

#include <jansson.h>

#include "plan_case.h"
#include "unit.h"

static const char chain[] =
    "a = Relu(x); b = Cos(a); c = Relu(b); d = Cos(c); e = Sin(d); f = Softmax(e); -> f";

static cleave_plan_document_t *document_of(const char *graph, const char *ops) {
  cleave_plan_document_t *document = NULL;
  const cleave_ruleset_t *ruleset = plan_case_ops(ops);
  cleave_plan_t *plan = plan_case_run(plan_case_graph(graph), &ruleset, 1, NULL);
  unit_ok(cleave_plan_document_create(plan, &document, e));
  return plan_case_keep(document);
}

static cleave_plan_diff_t *diff_of(const char *before, const char *before_ops, const char *after,
                                   const char *after_ops) {
  cleave_plan_diff_t *diff = NULL;
  unit_ok(cleave_plan_diff_create(document_of(before, before_ops), document_of(after, after_ops), &diff, e));
  return plan_case_keep(diff);
}

static const char *text_of(const cleave_plan_diff_t *diff) {
  cleave_text_t text = {0};
  unit_ok(cleave_plan_diff_print_text(diff, &text, e));
  return plan_case_keep(text.data);
}

UNIT_TEST(equal_plans_have_no_difference) {
  cleave_plan_diff_t *diff = diff_of(chain, "Relu,Cos", chain, "Relu,Cos");
  ck_assert(diff->same);
  ck_assert_uint_eq(diff->matched_count, 6);
  ck_assert_str_eq(text_of(diff), "the plans are the same: 1 region, 0 fusions\n");
}

UNIT_TEST(a_split_region_and_the_nodes_that_left_it_are_told) {
  cleave_plan_diff_t *diff = diff_of(chain, "Relu,Cos,Sin", chain, "Relu,Sin");
  ck_assert(!diff->same);
  ck_assert_uint_eq(diff->region_count, 1);
  ck_assert_int_eq(diff->regions[0].kind, CLEAVE_DIFF_REGION_SPLIT);
  ck_assert_uint_eq(diff->regions[0].after_count, 3);
  ck_assert_uint_eq(diff->moved_count, 4);
  ck_assert_str_eq(
      text_of(diff),
      "  rule    kind            made before  after  refused before  after\n"
      "  island  region on test            1      3               0      0\n"
      "\n"
      "  region  before                      after\n"
      "  split   island_0 on test (5 nodes)  island_0 on test (1 node), island_1 on test (1 node), "
      "island_2 on test (1 node)\n"
      "\n"
      "  nodes  operator  before            after             first\n"
      "      2  Cos       island_0 on test  cpu               b\n"
      "      1  Relu      island_0 on test  island_1 on test  c\n"
      "      1  Sin       island_0 on test  island_2 on test  e\n");
}

UNIT_TEST(merging_is_splitting_backwards) {
  cleave_plan_diff_t *diff = diff_of(chain, "Relu,Sin", chain, "Relu,Cos,Sin");
  ck_assert_int_eq(diff->regions[0].kind, CLEAVE_DIFF_REGION_MERGED);
  ck_assert_uint_eq(diff->moved_count, 2); /* the others are in the heir of their region */
}

UNIT_TEST(regions_come_go_and_change) {
  cleave_plan_diff_t *diff = diff_of(chain, "Relu", chain, "Sin");
  ck_assert_uint_eq(diff->region_count, 3);
  ck_assert_int_eq(diff->regions[0].kind, CLEAVE_DIFF_REGION_GONE);
  ck_assert_int_eq(diff->regions[1].kind, CLEAVE_DIFF_REGION_GONE);
  ck_assert_int_eq(diff->regions[2].kind, CLEAVE_DIFF_REGION_NEW);
  diff = diff_of(chain, "Sin", chain, "Sin,Softmax");
  ck_assert_uint_eq(diff->region_count, 1);
  ck_assert_int_eq(diff->regions[0].kind, CLEAVE_DIFF_REGION_CHANGED);
  ck_assert_str_eq(diff->regions[0].why, "nodes");
}

UNIT_TEST(attributes_backends_and_settings_count) {
  cleave_plan_document_t *before = document_of(chain, "Relu,Cos");
  cleave_plan_document_t *after = document_of(chain, "Relu,Cos");
  cleave_plan_diff_t *diff = NULL;
  static const cleave_attribute_t one = {.name = "n", .kind = CLEAVE_ATTRIBUTE_INT, .i = 1};
  static const cleave_attribute_t two = {.name = "n", .kind = CLEAVE_ATTRIBUTE_INT, .i = 2};
  static const cleave_setting_t settings[2] = {{"size", "1"}, {"size", "2"}};
  before->regions[0].attributes = &one;
  before->regions[0].attribute_count = 1;
  after->regions[0].attributes = &two;
  after->regions[0].attribute_count = 1;
  unit_ok(cleave_plan_diff_create(before, after, &diff, e));
  (void)plan_case_keep(diff);
  ck_assert_uint_eq(diff->region_count, 1);
  ck_assert_str_eq(diff->regions[0].why, "attributes");
  ck_assert_uint_eq(diff->moved_count, 0);
  after->regions[0].attributes = &one;
  after->settings = settings;
  after->setting_count = 2;
  unit_ok(cleave_plan_diff_create(before, after, &diff, e));
  (void)plan_case_keep(diff);
  ck_assert_uint_eq(diff->region_count, 0);
  ck_assert_uint_eq(diff->setting_count, 1);
  ck_assert_str_eq(text_of(diff), "  setting  before     after\n  size     (not set)  2\n");
  after->setting_count = 0;
  after->regions[0].backend = "other";
  unit_ok(cleave_plan_diff_create(before, after, &diff, e));
  (void)plan_case_keep(diff);
  ck_assert_str_eq(diff->regions[0].why, "backend");
  ck_assert_uint_eq(diff->moved_count, 4);
}

/* As a stage rule cuts it: steps from `second` on are in stage 1. */
static cleave_plan_document_t *cut_at(uint32_t second) {
  cleave_plan_document_t *document = document_of(chain, "Softmax");
  document->stage_count = 2;
  for (uint32_t s = 0; s < document->step_count; s++) {
    document->steps[s].stage = s >= second ? 1 : 0;
  }
  return document;
}

UNIT_TEST(nodes_that_move_to_another_stage_are_told) {
  cleave_plan_diff_t *diff = NULL;
  cleave_text_t text = {0};
  unit_ok(cleave_plan_diff_create(cut_at(2), cut_at(2), &diff, e));
  (void)plan_case_keep(diff);
  ck_assert(diff->same);
  unit_ok(cleave_plan_diff_create(cut_at(2), cut_at(4), &diff, e));
  (void)plan_case_keep(diff);
  ck_assert(!diff->same);
  ck_assert_uint_eq(diff->moved_count, 2);
  ck_assert_str_eq(text_of(diff),
                   "  nodes  operator  before          after           first\n"
                   "      1  Relu      cpu in stage 1  cpu in stage 0  c\n"
                   "      1  Cos       cpu in stage 1  cpu in stage 0  d\n");
  unit_ok(cleave_plan_diff_print_json(diff, &text, e));
  ck_assert_ptr_nonnull(strstr(cleave_text_get(&text), "\"fusion\":\"\",\"stage\":1},\"after\""));
  cleave_text_deinit(&text);
  /* A plan that is cut, and one that is not: every node has another place. */
  unit_ok(cleave_plan_diff_create(document_of(chain, "Softmax"), cut_at(5), &diff, e));
  (void)plan_case_keep(diff);
  ck_assert_uint_eq(diff->moved_count, 6);
  ck_assert_ptr_nonnull(strstr(text_of(diff), "island_0 on test  island_0 on test in stage 1"));
}

UNIT_TEST(plans_of_different_graphs_match_by_name_then_by_order) {
  cleave_plan_diff_t *diff = diff_of("a = Relu(x); b = Cos(a); c = Sin(b); -> c", "Relu",
                                     "a = Relu(x); n = Exp(a); b = Cos(n); -> b", "Relu");
  ck_assert(!diff->same_graph);
  ck_assert_uint_eq(diff->matched_count, 2);
  ck_assert_uint_eq(diff->by_name_count, 2);
  ck_assert_uint_eq(diff->moved_count, 0);
  ck_assert_uint_eq(diff->node_count, 2);
  ck_assert_str_eq(diff->nodes[0].op, "Sin");
  ck_assert_uint_eq(diff->nodes[0].after, CLEAVE_INDEX_NONE);
  ck_assert_str_eq(diff->nodes[1].op, "Exp");
  ck_assert_uint_eq(diff->nodes[1].before, CLEAVE_INDEX_NONE);
  ck_assert_ptr_nonnull(strstr(text_of(diff),
                               "the plans are of different graphs: 3 nodes before, 3 after; 2 "
                               "matched, 2 of them by operator and name\n"));
  diff = diff_of("a = Relu(x); b = Relu(a); -> b", "Relu", "p = Relu(x); q = Relu(p); r = Relu(q); -> r",
                 "Relu");
  ck_assert_uint_eq(diff->matched_count, 2);
  ck_assert_uint_eq(diff->by_name_count, 0);
  ck_assert_uint_eq(diff->nodes[0].after, 2);
}

UNIT_TEST(the_json_has_every_node_and_is_one_line) {
  cleave_plan_diff_t *diff = diff_of(chain, "Relu,Cos,Sin", chain, "Relu,Sin");
  cleave_text_t text = {0};
  unit_ok(cleave_plan_diff_print_json(diff, &text, e));
  ck_assert_ptr_null(strchr(cleave_text_get(&text), '\n'));
  json_t *json = json_loads(cleave_text_get(&text), 0, NULL);
  ck_assert_ptr_nonnull(json);
  ck_assert(json_is_false(json_object_get(json, "same")));
  ck_assert_int_eq(json_integer_value(json_object_get(json, "moved")), 4);
  ck_assert_uint_eq(json_array_size(json_object_get(json, "nodes")), 4);
  json_t *node = json_array_get(json_object_get(json, "nodes"), 0);
  char *line = json_dumps(node, JSON_COMPACT);
  ck_assert_str_eq(
      line,
      "{\"op\":\"Cos\",\"name\":\"b\",\"before\":{\"position\":1,\"backend\":\"test\","
      "\"region\":\"island_0\",\"fusion\":\"\",\"stage\":null},\"after\":{\"position\":1,\"backend\":"
      "\"cpu\",\"region\":\"\",\"fusion\":\"\",\"stage\":null}}");
  free(line);
  json_decref(json);
  cleave_text_deinit(&text);
}

UNIT_SUITE("plan_diff")
