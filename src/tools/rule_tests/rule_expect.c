// SPDX-License-Identifier: Apache-2.0
// What a rule test expects of a plan, and, if that is not met, what the rule did instead: what it made,
// the reasons that are on record, or that its pattern fits nowhere.
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tools/rule_tests/rule_check.h"
#include "tools/rule_tests/why.h"

enum { MAX_LINES = 3, MAX_NODES = 8 };

// ---- counting ----

static const cleave_plan_rule_t *find_rule(const cleave_plan_t *plan, const char *name, uint32_t *out_index) {
  for (uint32_t k = 0; k < plan->rule_count; k++) {
    if (strcmp(plan->rules[k].name, name) == 0) {
      *out_index = k;
      return &plan->rules[k];
    }
  }
  *out_index = CLEAVE_INDEX_NONE;
  return NULL;
}

static int64_t count_label(const cleave_plan_t *plan, uint32_t rule, const char *label) {
  int64_t count = 0;
  for (uint32_t k = 0; k < plan->fusion_count; k++) {
    const cleave_plan_fusion_t *fusion = &plan->fusions[k];
    for (uint32_t n = 0; fusion->rule == rule && n < fusion->node_count; n++) {
      count += strcmp(fusion->labels[n], label) == 0;
    }
  }
  return count;
}

/* "Gemm" is ONNX's; those of libraries have their domain before the name. */
static int64_t count_op(const cleave_graph_t *graph, const char *name) {
  int64_t count = 0;
  const cleave_op_t *wanted = cleave_op_find_full(name);
  for (uint32_t k = 0; wanted != NULL && k < cleave_graph_node_bound(graph); k++) {
    cleave_node_t node = {k};
    const cleave_op_t *op = cleave_node_is_live(graph, node) ? cleave_node_op(graph, node) : NULL;
    count += op != NULL && strcmp(op->name, wanted->name) == 0 && strcmp(op->domain, wanted->domain) == 0;
  }
  return count;
}

static int64_t count_left(const cleave_plan_t *plan) {
  int64_t count = 0;
  for (uint32_t k = 0; k < plan->step_count; k++) {
    count += plan->steps[k].region == CLEAVE_INDEX_NONE;
  }
  return count;
}

static int64_t count_reasons(const cleave_plan_t *plan, uint32_t rule, const char *part) {
  int64_t count = 0;
  for (uint32_t k = 0; k < plan->note_count; k++) {
    const cleave_plan_note_t *note = &plan->notes[k];
    count += note->rule == rule && note->reason != NULL && strstr(note->reason, part) != NULL;
  }
  for (size_t k = 0; plan->edits != NULL && k < plan->edits->refusals.count; k++) {
    const cleave_edit_refusal_t *refusal = &plan->edits->refusals.items[k];
    count += plan->edits->rules.items[refusal->rule].number == rule && strstr(refusal->reason, part) != NULL;
  }
  return count;
}

/* Is this refusal, which the log of changes holds, one of the rule? */
static bool is_refusal_of(const cleave_plan_t *plan, uint32_t rule, const cleave_edit_refusal_t *refusal) {
  return plan->edits->rules.items[refusal->rule].number == rule;
}

static int64_t count_refusals(const cleave_plan_t *plan, uint32_t rule, const char *part) {
  int64_t count = 0;
  for (size_t k = 0; plan->edits != NULL && k < plan->edits->refusals.count; k++) {
    const cleave_edit_refusal_t *refusal = &plan->edits->refusals.items[k];
    count += is_refusal_of(plan, rule, refusal) && strstr(refusal->reason, part) != NULL;
  }
  return count;
}

static int64_t count(const cleave_expectation_t *expectation, const cleave_plan_t *plan) {
  uint32_t index = CLEAVE_INDEX_NONE;
  const cleave_plan_rule_t *rule =
      expectation->rule == NULL ? NULL : find_rule(plan, expectation->rule, &index);
  switch (expectation->kind) {
    case CLEAVE_EXPECT_RULE: return rule == NULL ? 0 : rule->matches;
    case CLEAVE_EXPECT_LABEL: return rule == NULL ? 0 : count_label(plan, index, expectation->text);
    case CLEAVE_EXPECT_OP: return count_op(plan->graph, expectation->text);
    case CLEAVE_EXPECT_REGIONS: return plan->region_count;
    case CLEAVE_EXPECT_FUSIONS: return plan->fusion_count;
    case CLEAVE_EXPECT_LEFT: return count_left(plan);
    case CLEAVE_EXPECT_REFUSED:
      return rule == NULL ? 0
                          : count_reasons(plan, index, expectation->text) +
                                count_refusals(plan, index, expectation->text);
  }
  return 0;
}

// ---- saying what is not met ----

static void print_wanted(const cleave_expectation_t *expectation, cleave_text_t *report) {
  if (expectation->high == 0) {
    cleave_text_add(report, "none");
  } else if (expectation->high == expectation->low) {
    cleave_text_show(report, "%d", (int)expectation->low);
  } else if (expectation->high == INT32_MAX) {
    cleave_text_show(report, "at least %d", (int)expectation->low);
  } else {
    cleave_text_show(report, "%d to %d", (int)expectation->low, (int)expectation->high);
  }
}

static const char *kind_of(const cleave_rule_list_t *list, const char *name) {
  const cleave_declared_t *declared = cleave_rules_declared(list->files[0]);
  for (uint32_t k = 0; k < declared->rule_count; k++) {
    if (strcmp(declared->rules[k].name, name) == 0) {
      return declared->rules[k].kind;
    }
  }
  return "rule";
}

static void print_subject(const cleave_rule_list_t *list, const cleave_expectation_t *expectation,
                          cleave_text_t *report) {
  const char *kind = expectation->rule == NULL ? "" : kind_of(list, expectation->rule);
  switch (expectation->kind) {
    case CLEAVE_EXPECT_RULE:
      cleave_text_show(report, "%s '%s'%s", kind, expectation->rule,
                       strcmp(kind, "region") == 0 ? "" : ", matches");
      return;
    case CLEAVE_EXPECT_LABEL:
      cleave_text_show(report, "%s '%s', nodes as '%s'", kind, expectation->rule, expectation->text);
      return;
    case CLEAVE_EXPECT_OP: cleave_text_show(report, "%s nodes after the rules", expectation->text); return;
    case CLEAVE_EXPECT_REGIONS: cleave_text_add(report, "regions"); return;
    case CLEAVE_EXPECT_FUSIONS: cleave_text_add(report, "fusions"); return;
    case CLEAVE_EXPECT_LEFT: cleave_text_add(report, "nodes in no region"); return;
    case CLEAVE_EXPECT_REFUSED:
      cleave_text_show(report, "%s '%s', refusals with '%s'", kind, expectation->rule, expectation->text);
      return;
  }
}

static void print_nodes(const cleave_graph_t *graph, const cleave_node_t *nodes, uint32_t node_count,
                        cleave_text_t *report) {
  char label[128];
  for (uint32_t k = 0; k < node_count && k < MAX_NODES; k++) {
    cleave_text_show(report, "%s%s", k == 0 ? "" : ", ",
                     cleave_node_label(graph, nodes[k], label, sizeof label));
  }
  if (node_count > MAX_NODES) {
    cleave_text_show(report, " and %u more", (unsigned)(node_count - MAX_NODES));
  }
}

/* Fusions or regions of one rule, or, for CLEAVE_INDEX_NONE, of all. */
static void print_made(const cleave_plan_t *plan, uint32_t rule, cleave_text_t *report) {
  uint32_t shown = 0;
  for (uint32_t k = 0; k < plan->fusion_count && shown < MAX_LINES; k++) {
    const cleave_plan_fusion_t *fusion = &plan->fusions[k];
    if (rule == CLEAVE_INDEX_NONE || fusion->rule == rule) {
      cleave_text_show(report, "  fused by '%s': ", plan->rules[fusion->rule].name);
      print_nodes(plan->graph, fusion->nodes, fusion->node_count, report);
      cleave_text_add(report, "\n");
      shown++;
    }
  }
  for (uint32_t k = 0; k < plan->region_count && shown < 2 * MAX_LINES; k++) {
    const cleave_plan_region_t *region = &plan->regions[k];
    bool is_fusion = plan->rules[region->rule].kind == CLEAVE_RULE_FUSE;
    if (!is_fusion && (rule == CLEAVE_INDEX_NONE || region->rule == rule)) {
      cleave_text_show(report, "  region %s: ", region->name);
      print_nodes(plan->graph, region->nodes, region->node_count, report);
      cleave_text_add(report, "\n");
      shown++;
    }
  }
}

static bool is_shown(const cleave_plan_t *plan, uint32_t index) {
  const cleave_plan_note_t *note = &plan->notes[index];
  for (uint32_t k = 0; k < index; k++) {
    if (plan->notes[k].rule == note->rule && plan->notes[k].kind == note->kind &&
        strcmp(plan->notes[k].reason, note->reason) == 0) {
      return true;
    }
  }
  return false;
}

static uint32_t print_reasons(const cleave_plan_t *plan, uint32_t rule, cleave_text_t *report) {
  uint32_t shown = 0;
  for (uint32_t k = 0; k < plan->note_count && shown < MAX_LINES; k++) {
    const cleave_plan_note_t *note = &plan->notes[k];
    if (note->rule != rule || note->reason == NULL || is_shown(plan, k)) {
      continue;
    }
    char label[128] = "";
    if (cleave_node_exists(note->node) && note->node.index < cleave_graph_node_bound(plan->graph) &&
        cleave_node_is_live(plan->graph, note->node)) {
      (void)cleave_node_label(plan->graph, note->node, label, sizeof label);
    }
    cleave_text_show(report, "  %s%s%s: %s\n", label, label[0] == '\0' ? "" : ": ",
                     cleave_plan_note_name(note->kind), note->reason);
    shown++;
  }
  return shown;
}

static bool is_refusal_told(const cleave_plan_t *plan, size_t index) {
  const cleave_edit_refusal_t *refusals = plan->edits->refusals.items;
  for (size_t k = 0; k < index; k++) {
    if (refusals[k].rule == refusals[index].rule && strcmp(refusals[k].reason, refusals[index].reason) == 0) {
      return true;
    }
  }
  return false;
}

static uint32_t print_refusals(const cleave_plan_t *plan, uint32_t rule, uint32_t shown,
                               cleave_text_t *report) {
  for (size_t k = 0; plan->edits != NULL && k < plan->edits->refusals.count && shown < MAX_LINES; k++) {
    const cleave_edit_refusal_t *refusal = &plan->edits->refusals.items[k];
    if (is_refusal_of(plan, rule, refusal) && !is_refusal_told(plan, k)) {
      bool is_pass = refusal->place[0] == '\0';
      cleave_text_show(report, "  %s%s%s\n", refusal->place,
                       is_pass ? "it changed nothing: " : ": left: ", refusal->reason);
      shown++;
    }
  }
  return shown;
}

static void print_graph(const cleave_graph_t *graph, cleave_text_t *report) {
  uint32_t shown = 0;
  for (uint32_t k = 0; k < cleave_graph_node_bound(graph); k++) {
    cleave_node_t node = {k};
    if (!cleave_node_is_live(graph, node)) {
      continue;
    }
    if (shown++ == 2 * MAX_NODES) {
      cleave_text_add(report, " ...");
      break;
    }
    cleave_text_show(report, "%s%s", shown == 1 ? "  the graph has: " : ", ",
                     cleave_node_op(graph, node)->name);
  }
  cleave_text_add(report, shown == 0 ? "  the graph has no nodes: all was constant\n" : "\n");
}

/* An answer about the rule; NULL if there is none. */
static cleave_status_t ask(const cleave_rule_list_t *list, const cleave_plan_t *plan,
                           const cleave_why_question_t *question, cleave_why_t **out_why,
                           cleave_error_t *error) {
  cleave_error_t failure = CLEAVE_ERROR_INIT;
  *out_why = NULL;
  bool failed = cleave_rule_list_why(list, plan, question, out_why, &failure) != CLEAVE_OK;
  return failed && failure.status == CLEAVE_ERROR_OUT_OF_MEMORY ? cleave_error_out_of_memory(error)
                                                                : CLEAVE_OK;
}

/* The place where most of the pattern is, and what is missing there; or the operators that the graph lacks.
 */
static cleave_status_t print_nearest(const cleave_rule_list_t *list, const cleave_plan_t *plan,
                                     const char *name, bool *out_said, cleave_text_t *report,
                                     cleave_error_t *error) {
  cleave_why_question_t question = {.rules = &name, .rule_count = 1, .limit = 1};
  cleave_why_t *why = NULL;
  CLEAVE_TRY(ask(list, plan, &question, &why, error));
  const cleave_why_rule_t *rule = why != NULL && why->rule_count == 1 ? &why->rules[0] : NULL;
  if (rule != NULL && rule->near_miss_count > 0) {
    const cleave_finding_t *finding = &rule->near_misses[0].finding;
    char label[128];
    cleave_text_show(report, "  nearest: %u of %u node%s at %s\n", (unsigned)finding->matched,
                     (unsigned)finding->total, CLEAVE_PLURAL(finding->total),
                     cleave_node_label(rule->near_misses[0].graph, finding->anchor, label, sizeof label));
    for (uint32_t k = 0; k < finding->mismatch_count && k < MAX_LINES; k++) {
      const cleave_mismatch_t *mismatch = &finding->mismatches[k];
      cleave_text_show(report, "    %s is %s, wanted %s", mismatch->subject, mismatch->found,
                       mismatch->expected);
      bool has_fix = mismatch->fix != NULL && mismatch->fix[0] != '\0';
      cleave_text_show(report, "%s%s\n", has_fix ? "; try: " : "", has_fix ? mismatch->fix : "");
    }
    *out_said = true;
  } else if (rule != NULL && rule->need_count > 0) {
    for (uint32_t k = 0; k < rule->need_count; k++) {
      cleave_text_show(report, "%s%s", k == 0 ? "  its pattern needs " : ", ", rule->needs[k]);
    }
    cleave_text_add(report, "\n");
    print_graph(plan->graph, report);
    *out_said = true;
  }
  cleave_why_destroy(why);
  return CLEAVE_OK;
}

static bool is_same_verdict(const cleave_verdict_t *a, const cleave_verdict_t *b) {
  return a->fate == b->fate && a->winner == b->winner && strcmp(a->cause, b->cause) == 0 &&
         strcmp(a->reason, b->reason) == 0;
}

/* Why the rule did not take the nodes of the graph: each reason with the first node. */
static void print_verdicts(const cleave_why_t *why, const cleave_plan_t *plan, bool *out_said,
                           cleave_text_t *report) {
  uint32_t shown = 0;
  for (uint32_t k = 0; k < why->node_count && shown < MAX_LINES; k++) {
    const cleave_verdict_t *verdict = &why->nodes[k].verdicts[0];
    bool is_told = verdict->fate != CLEAVE_FATE_LOST && verdict->fate != CLEAVE_FATE_REFUSED;
    for (uint32_t before = 0; before < k && !is_told; before++) {
      is_told = is_same_verdict(verdict, &why->nodes[before].verdicts[0]);
    }
    if (is_told) {
      continue;
    }
    char label[128];
    cleave_text_show(
        report, "  %s: ", cleave_node_label(why->nodes[k].graph, why->nodes[k].node, label, sizeof label));
    if (verdict->fate == CLEAVE_FATE_LOST) {
      const cleave_plan_rule_t *winner = &plan->rules[verdict->winner];
      cleave_text_show(report, "taken by %s '%s'\n", cleave_rule_kind_name(winner->kind), winner->name);
    } else {
      cleave_text_show(report, "%s%s%s\n", verdict->cause, verdict->cause[0] == '\0' ? "" : ": ",
                       verdict->reason);
    }
    shown++;
  }
  *out_said = shown > 0;
}

/* Asks about the first nodes of the graph one by one. */
static cleave_status_t print_left(const cleave_rule_list_t *list, const cleave_plan_t *plan, const char *name,
                                  bool *out_said, cleave_text_t *report, cleave_error_t *error) {
  char numbers[2 * MAX_NODES][16];
  const char *nodes[2 * MAX_NODES];
  cleave_why_question_t question = {.nodes = nodes, .rules = &name, .rule_count = 1, .limit = 1};
  cleave_why_t *why = NULL;
  for (uint32_t k = 0; k < cleave_graph_node_bound(plan->graph) && question.node_count < 2 * MAX_NODES; k++) {
    if (cleave_node_is_live(plan->graph, (cleave_node_t){k})) {
      char *number = numbers[question.node_count];
      (void)snprintf(number, sizeof numbers[0], "#%u", (unsigned)k);
      nodes[question.node_count++] = number;
    }
  }
  if (question.node_count > 0) {
    CLEAVE_TRY(ask(list, plan, &question, &why, error));
  }
  if (why != NULL) {
    print_verdicts(why, plan, out_said, report);
  }
  cleave_why_destroy(why);
  return CLEAVE_OK;
}

static cleave_status_t explain_rule(const cleave_rule_list_t *list, const cleave_plan_t *plan,
                                    const char *name, cleave_text_t *report, cleave_error_t *error) {
  uint32_t index = CLEAVE_INDEX_NONE;
  const cleave_plan_rule_t *rule = find_rule(plan, name, &index);
  if (rule == NULL) {
    cleave_text_add(report, "  it is switched off (enabled) with the options of this test\n");
    return CLEAVE_OK;
  }
  print_made(plan, index, report);
  uint32_t shown = print_refusals(plan, index, print_reasons(plan, index, report), report);
  bool is_said = rule->matches > 0 || shown > 0;
  if (!is_said && rule->kind == CLEAVE_RULE_PASS) {
    cleave_text_add(report, "  it changed nothing\n");
    return CLEAVE_OK;
  }
  if (!is_said && rule->kind != CLEAVE_RULE_REGION) {
    CLEAVE_TRY(print_nearest(list, plan, name, &is_said, report, error));
  }
  if (!is_said && !cleave_rule_kind_changes_graph(rule->kind)) {
    CLEAVE_TRY(print_left(list, plan, name, &is_said, report, error));
  }
  if (is_said) {
    return CLEAVE_OK;
  }
  cleave_text_show(report, "  it began at %u %s, and none led to a match\n", (unsigned)rule->tries,
                   CLEAVE_BY_COUNT(rule->tries, "node", "nodes"));
  print_graph(plan->graph, report);
  return CLEAVE_OK;
}

static bool is_met(const cleave_expectation_t *expectation, const cleave_plan_t *plan) {
  int64_t found = count(expectation, plan);
  return found >= expectation->low && found <= expectation->high;
}

/* Did an expectation before this one explain the same rule, or the plan as a whole? */
static bool was_explained(const cleave_rule_test_t *test, uint32_t index, const cleave_plan_t *plan) {
  const char *rule = test->expectations[index].rule;
  for (uint32_t k = 0; k < index; k++) {
    const cleave_expectation_t *other = &test->expectations[k];
    bool same = rule == NULL || other->rule == NULL ? rule == other->rule : strcmp(rule, other->rule) == 0;
    if (same && !is_met(other, plan)) {
      return true;
    }
  }
  return false;
}

cleave_status_t cleave_rule_expect(const cleave_rule_list_t *list, const cleave_rule_test_t *test,
                                   const cleave_plan_t *plan, cleave_text_t *report, cleave_error_t *error) {
  for (uint32_t k = 0; k < test->expectation_count; k++) {
    const cleave_expectation_t *expectation = &test->expectations[k];
    if (is_met(expectation, plan)) {
      continue;
    }
    print_subject(list, expectation, report);
    cleave_text_add(report, ": expected ");
    print_wanted(expectation, report);
    cleave_text_show(report, ", found %lld\n", (long long)count(expectation, plan));
    if (was_explained(test, k, plan)) {
      continue;
    }
    if (expectation->rule != NULL) {
      CLEAVE_TRY(explain_rule(list, plan, expectation->rule, report, error));
    } else if (expectation->kind == CLEAVE_EXPECT_OP) {
      print_graph(plan->graph, report);
    } else {
      print_made(plan, CLEAVE_INDEX_NONE, report);
    }
  }
  return cleave_text_check(report, error);
}
