// SPDX-License-Identifier: Apache-2.0
// Thousands of random graphs under random rules of every kind: every plan is acyclic when its regions are
// contracted (by reachability over all pairs, which shares nothing with the partitioner), regions are
// disjoint and connected, fusions are closed, and the same input gives the same bytes.

#include "partition/report/boundary_report.h"
#include "plan_case.h"
#include "random_case.h"
#include "random_rules.h"
#include "unit.h"

/* Contracts regions and asks for every pair of different groups whether each reaches the other. */
static void check_acyclic(const cleave_plan_t *plan) {
  enum { MOST = RANDOM_RULES_MAX_NODES };
  static bool reaches[MOST][MOST];
  const cleave_graph_t *graph = plan->graph;
  uint32_t n = cleave_graph_node_bound(graph);
  uint32_t group[MOST];
  memset(reaches, 0, sizeof reaches);
  for (uint32_t k = 0; k < n; k++) {
    uint32_t region = plan->node_region[k];
    group[k] = region == CLEAVE_INDEX_NONE ? k : plan->regions[region].nodes[0].index;
  }
  for (uint32_t k = 0; k < n; k++) {
    for (uint32_t i = 0; i < cleave_node_input_count(graph, (cleave_node_t){k}); i++) {
      cleave_node_t producer = cleave_value_producer(graph, cleave_node_input(graph, (cleave_node_t){k}, i));
      if (cleave_node_exists(producer) && group[producer.index] != group[k]) {
        reaches[group[producer.index]][group[k]] = true;
      }
    }
  }
  for (uint32_t m = 0; m < n; m++) {
    for (uint32_t a = 0; a < n; a++) {
      for (uint32_t b = 0; b < n && reaches[a][m]; b++) {
        reaches[a][b] |= reaches[m][b];
      }
    }
  }
  for (uint32_t k = 0; k < n; k++) {
    if (reaches[k][k]) {
      ck_abort_msg("the region of node %u is on a cycle", k);
    }
  }
}

/* What a fusion computes leaves it only through outputs of nodes that nothing in it reads, through output 0.
 */
static void check_closed(const cleave_plan_t *plan, uint32_t f) {
  const cleave_plan_fusion_t *fusion = &plan->fusions[f];
  const cleave_graph_t *graph = plan->graph;
  for (uint32_t k = 0; k < fusion->node_count; k++) {
    bool inside = false;
    bool outside = false;
    for (uint32_t o = 0; o < cleave_node_output_count(graph, fusion->nodes[k]); o++) {
      cleave_value_t value = cleave_node_output(graph, fusion->nodes[k], o);
      for (cleave_use_t use = cleave_value_first_use(graph, value); cleave_use_exists(use);
           use = cleave_use_next(graph, use)) {
        cleave_node_t user = cleave_use_node(graph, use);
        bool same = cleave_node_exists(user) && plan->node_fusion[user.index] == f;
        inside |= same;
        outside |= !same;
        if (!same && o > 0) {
          ck_abort_msg("a second output of a fused node is used outside");
        }
      }
    }
    if (inside && outside) {
      ck_abort_msg("a fused node is used inside and outside");
    }
  }
}

static void check_plan(const cleave_plan_t *plan, const random_rules_t *rules) {
  unit_ok(cleave_plan_check(plan, e));
  check_acyclic(plan);
  uint32_t matches[2 * RANDOM_RULES_MAX] = {0};
  for (uint32_t r = 0; r < plan->region_count; r++) {
    matches[plan->regions[r].rule] += plan->rules[plan->regions[r].rule].kind == CLEAVE_RULE_REGION;
  }
  for (uint32_t f = 0; f < plan->fusion_count; f++) {
    uint32_t index = plan->fusions[f].rule;
    uint32_t s = index < rules->rulesets[0].rule_count ? 0 : 1;
    matches[index]++;
    if (rules->is_closed[s][s == 0 ? index : index - rules->rulesets[0].rule_count]) {
      check_closed(plan, f);
    }
  }
  for (uint32_t k = 0; k < plan->rule_count; k++) {
    bool is_stage = plan->rules[k].kind == CLEAVE_RULE_STAGE;
    uint32_t stages = plan->stage_count > 0 ? plan->stage_count : 1;
    ck_assert_uint_eq(plan->rules[k].matches, is_stage ? stages : matches[k]);
  }
}

static cleave_status_t partition(const random_rules_t *rules, cleave_plan_t **out_plan,
                                 cleave_error_t *error) {
  return cleave_partition(rules->graph, rules->list, rules->count, &rules->options, out_plan, error);
}

static cleave_status_t report(const random_rules_t *rules, cleave_boundary_report_t **out_report,
                              cleave_error_t *error) {
  return cleave_boundary_report_create(rules->graph, rules->list, rules->count, &rules->options, out_report,
                                       error);
}

static void check_same_text(const cleave_plan_t *a, const cleave_plan_t *b) {
  cleave_text_t texts[2] = {{0}, {0}};
  unit_ok(cleave_plan_print_json(a, &texts[0], e));
  unit_ok(cleave_plan_print_json(b, &texts[1], e));
  ck_assert_str_eq(cleave_text_get(&texts[0]), cleave_text_get(&texts[1]));
  cleave_text_deinit(&texts[0]);
  cleave_text_deinit(&texts[1]);
}

UNIT_TEST(random_graphs_under_random_rules_give_plans_that_hold) {
  /* Counts over all plans, so that a test that tests nothing is seen. */
  uint32_t fusions = 0;
  uint32_t large_fusions = 0;
  uint32_t regions = 0;
  uint32_t notes[CLEAVE_PLAN_NOTE_OUTPUT + 1] = {0};
  for (uint32_t seed = 1; seed <= 6000; seed++) {
    const random_rules_t *rules = random_rules_draw(UINT64_C(0x1234567) * seed);
    cleave_plan_t *plans[2] = {NULL, NULL};
    unit_ok(partition(rules, &plans[0], e));
    check_plan(plans[0], rules);
    fusions += plans[0]->fusion_count;
    for (uint32_t f = 0; f < plans[0]->fusion_count; f++) {
      large_fusions += plans[0]->fusions[f].node_count > 2;
    }
    regions += plans[0]->region_count;
    for (uint32_t k = 0; k < plans[0]->note_count; k++) {
      notes[plans[0]->notes[k].kind]++;
    }
    unit_ok(partition(rules, &plans[1], e));
    check_same_text(plans[0], plans[1]);
    cleave_plan_destroy(plans[0]);
    cleave_plan_destroy(plans[1]);
    cleave_graph_destroy(rules->graph);
  }
  ck_assert_uint_gt(fusions, 1000);
  ck_assert_uint_gt(large_fusions, 200);
  ck_assert_uint_gt(regions, 10000);
  for (uint32_t kind = 0; kind < CLEAVE_PLAN_NOTE_LIMIT; kind++) {
    ck_assert_msg(notes[kind] > 100, "only %u notes '%s'", notes[kind],
                  cleave_plan_note_name((cleave_plan_note_kind_t)kind));
  }
}

/* Every value of every border is in the report, with a neighbour outside and a reason. */
static void check_report(const cleave_boundary_report_t *report) {
  const cleave_plan_t *plan = report->plan;
  size_t edge = 0;
  size_t grouped = 0;
  for (uint32_t r = 0; r < plan->region_count; r++) {
    const cleave_plan_region_t *region = &plan->regions[r];
    for (uint32_t k = 0; k < region->input_count + region->output_count; k++) {
      bool is_input = k < region->input_count;
      cleave_value_t value = is_input ? region->inputs[k] : region->outputs[k - region->input_count];
      bool found = false;
      for (; edge < report->edges.count; edge++) {
        const cleave_boundary_edge_t *e = &report->edges.items[edge];
        if (e->region != r || e->is_input != is_input || e->value.index != value.index) {
          break;
        }
        found = true;
        ck_assert_uint_eq(plan->node_region[e->inside.index], r);
        ck_assert(e->reason[0] != '\0');
        bool is_model = !cleave_node_exists(e->outside);
        ck_assert_int_eq(is_model, e->cause == CLEAVE_STOP_MODEL);
        ck_assert(is_model || plan->node_region[e->outside.index] != r);
        ck_assert(is_model || plan->node_region[e->outside.index] == e->other);
      }
      ck_assert(found);
    }
  }
  ck_assert_uint_eq(edge, report->edges.count);
  for (size_t g = 0; g < report->groups.count; g++) {
    grouped += report->groups.items[g].edge_count;
  }
  ck_assert_uint_eq(grouped, report->edges.count);
}

UNIT_TEST(reports_tell_every_border_of_the_same_plan) {
  uint32_t causes[CLEAVE_STOP_NO_RULE + 1] = {0};
  uint32_t merged = 0;
  for (uint32_t seed = 1; seed <= 700; seed++) {
    const random_rules_t *rules = random_rules_draw(UINT64_C(0x2345678) * seed);
    cleave_plan_t *plan = NULL;
    cleave_boundary_report_t *borders = NULL;
    unit_ok(partition(rules, &plan, e));
    unit_ok(report(rules, &borders, e));
    check_same_text(plan, borders->plan);
    check_report(borders);
    for (size_t k = 0; k < borders->edges.count; k++) {
      causes[borders->edges.items[k].cause]++;
    }
    for (size_t k = 0; k < borders->what_ifs.count; k++) {
      merged += borders->what_ifs.items[k].merged_count;
    }
    cleave_boundary_report_destroy(borders);
    cleave_plan_destroy(plan);
    cleave_graph_destroy(rules->graph);
  }
  for (uint32_t k = 0; k <= CLEAVE_STOP_NO_RULE; k++) {
    bool may_be_absent = k == CLEAVE_STOP_LIMIT || k == CLEAVE_STOP_CALLER;
    ck_assert_msg(may_be_absent || causes[k] > 20, "only %u edges '%s'", causes[k],
                  cleave_stop_cause_name((cleave_stop_cause_t)k));
  }
  ck_assert_uint_lt(causes[CLEAVE_STOP_LIMIT], 20);
  ck_assert_uint_gt(merged, 100);
}

/* Makes plans, or reports, in memory that soon runs out, half of the time later, at most after `late` pieces.
 * Returns how many failed. Leaks are found by the address sanitizer at the end of the process. */
static uint32_t starve(uint32_t seeds, uint32_t early, uint32_t late, bool is_report) {
  uint32_t failures = 0;
  for (uint32_t seed = 1; seed <= seeds; seed++) {
    const random_rules_t *rules = random_rules_draw(UINT64_C(0x7654321) * seed);
    for (uint32_t turn = 0; turn < 8; turn++) {
      cleave_plan_t *plan = NULL;
      cleave_boundary_report_t *borders = NULL;
      (void)cleave_memory_fail_after((int64_t)random_below(turn < 4 ? early : late));
      cleave_error_t error = CLEAVE_ERROR_INIT;
      cleave_status_t status = is_report ? report(rules, &borders, &error) : partition(rules, &plan, &error);
      (void)cleave_memory_fail_after(-1);
      ck_assert(status == CLEAVE_OK ||
                (status == CLEAVE_ERROR_OUT_OF_MEMORY && plan == NULL && borders == NULL));
      failures += status != CLEAVE_OK;
      if (plan != NULL) {
        unit_ok(cleave_plan_check(plan, e));
      }
      cleave_boundary_report_destroy(borders);
      cleave_plan_destroy(plan);
    }
    cleave_graph_destroy(rules->graph);
  }
  return failures;
}

UNIT_TEST(reports_survive_running_out_of_memory) {
  ck_assert_uint_gt(starve(100, 60, 1000, true), 100);
}

UNIT_TEST(running_out_of_memory_anywhere_is_an_error) {
  ck_assert_uint_gt(starve(400, 40, 200, false), 1000);
}

UNIT_SUITE("partition_random")
