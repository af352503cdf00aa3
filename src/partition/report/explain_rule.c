// SPDX-License-Identifier: Apache-2.0
// A rule over the whole graph: where its pattern matches and what became of these matches, and where it
// nearly matches, grouped by mismatches. Linear in the graph: one bounded search per anchor. Other graph
// rules may have taken nodes that were present when the rule began to run; the graph at that point is
// searched, too.
// Long file: one report, in the order in which it is made.

#include <string.h>

#include "partition/report/explain_report.h"

enum {
  MAX_OPTIONAL_PARTS = 8,
  MAX_OPTIONAL_SEARCHES = 20000,
  MAX_STRANGERS = 20000, /* nodes of other operators that are tried as anchors */
  MAX_GROUPS = 256,
  MAX_MISMATCHES = 3, /* of one place that is still near */
  MAX_NAMED = 8       /* operators of a match */
};

typedef struct survey {
  cleave_why_builder_t *builder;
  const cleave_history_state_t *state; /* that is looked at */
  bool is_past;                        /* the graph as the rule found it, to see what other rules took
                                          since */
  uint32_t rule;
  uint8_t *covered;       /* per node index: in a match of this rule */
  cleave_arena_t scratch; /* of one finding */
  CLEAVE_ARRAY(cleave_near_miss_t) groups;
  CLEAVE_ARRAY(const char *) keys; /* per group */
  cleave_why_refusals_t refusals;
  cleave_why_refusals_t losses;
  cleave_why_rule_t *report;
} survey_t;

// ---- near misses ----

/* Each mismatch costs a node at least: 23 of 24 is 23 / 24, 2 of 2 with one node in between is 2 / 3. */
static uint32_t cost_of(const cleave_finding_t *finding) {
  uint32_t lost = finding->total - finding->matched;
  return finding->total + (finding->mismatch_count > lost ? finding->mismatch_count - lost : 0);
}

int cleave_near_miss_compare(const cleave_near_miss_t *a, const cleave_near_miss_t *b) {
  if (a->is_taken != b->is_taken) {
    return a->is_taken ? 1 : -1;
  }
  if (a->is_optional != b->is_optional) {
    return a->is_optional ? 1 : -1;
  }
  uint64_t left = (uint64_t)a->finding.matched * cost_of(&b->finding);
  uint64_t right = (uint64_t)b->finding.matched * cost_of(&a->finding);
  if (left != right) {
    return left > right ? -1 : 1;
  }
  if (a->finding.matched != b->finding.matched) {
    return a->finding.matched > b->finding.matched ? -1 : 1;
  }
  if (a->count != b->count) {
    return a->count > b->count ? -1 : 1;
  }
  return (a->finding.anchor.index > b->finding.anchor.index) -
         (a->finding.anchor.index < b->finding.anchor.index);
}

static int compare_near_misses(const void *a, const void *b) {
  return cleave_near_miss_compare(a, b);
}

/* Writes a reason without the names in it. */
static void write_words(const char *reason, cleave_text_t *text) {
  bool quoted = false;
  for (const char *at = reason; *at != '\0'; at++) {
    quoted = *at == '\'' ? !quoted : quoted;
    if (!quoted) {
      cleave_text_format(text, "%c", *at);
    }
  }
}

/* Writes what two findings must share to be the same: everything but the names of the graph. */
static void write_key(const cleave_near_miss_t *near_miss, cleave_text_t *text) {
  const cleave_finding_t *finding = &near_miss->finding;
  cleave_text_format(text, "%d%d %u/%u", (int)near_miss->is_optional, (int)near_miss->is_taken,
                     (unsigned)finding->matched, (unsigned)finding->total);
  for (uint32_t k = 0; k < finding->mismatch_count; k++) {
    const cleave_mismatch_t *fault = &finding->mismatches[k];
    cleave_text_format(text, "\n%s\t%s\t%s\t%s\t%s", fault->path, fault->subject, fault->expected,
                       fault->found, fault->fix == NULL ? "" : fault->fix);
  }
  if (finding->refuser != NULL) {
    cleave_text_format(text, "\n%s\t", finding->refuser);
    write_words(finding->refusal, text);
  }
}

/* Copies a finding out of the scratch arena. */
static cleave_status_t keep_finding(cleave_arena_t *arena, const cleave_finding_t *from, cleave_finding_t *to,
                                    cleave_error_t *error) {
  *to = *from;
  cleave_mismatch_t *mismatches =
      cleave_arena_copy(arena, from->mismatches, from->mismatch_count * sizeof *mismatches);
  to->nodes = cleave_arena_copy(arena, from->nodes, from->node_count * sizeof *to->nodes);
  to->mismatches = mismatches;
  bool kept = mismatches != NULL && to->nodes != NULL;
  if (kept && from->refusal != NULL) {
    to->refusal = cleave_arena_copy_text(arena, from->refusal, strlen(from->refusal));
    kept = to->refusal != NULL;
  }
  for (uint32_t k = 0; kept && k < from->mismatch_count; k++) {
    const char **texts[] = {&mismatches[k].path,  &mismatches[k].subject, &mismatches[k].expected,
                            &mismatches[k].found, &mismatches[k].detail,  &mismatches[k].fix};
    for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++) {
      if (*texts[t] != NULL) {
        *texts[t] = cleave_arena_copy_text(arena, *texts[t], strlen(*texts[t]));
        kept = kept && *texts[t] != NULL;
      }
    }
  }
  return kept ? CLEAVE_OK : cleave_error_out_of_memory(error);
}

/* Did another rule that changes the model take the node? */
static bool was_rewritten(const survey_t *survey, cleave_node_t node) {
  uint32_t taker = cleave_history_taker(survey->builder->history, node);
  return taker != CLEAVE_INDEX_NONE && taker != survey->rule;
}

/* Are all nodes of a finding in fusions of other rules? */
static bool is_taken(const survey_t *survey, const cleave_finding_t *finding) {
  const cleave_plan_t *plan = survey->builder->request->plan;
  bool taken = survey->state->graph == plan->graph;
  if (survey->is_past || cleave_rule_kind_changes_graph(plan->rules[survey->rule].kind)) {
    return survey->is_past;
  }
  for (uint32_t k = 0; k < finding->node_count && taken; k++) {
    uint32_t fusion = plan->node_fusion[finding->nodes[k].index];
    taken = fusion != CLEAVE_INDEX_NONE && plan->fusions[fusion].rule != survey->rule;
  }
  return taken;
}

static cleave_status_t add_near_miss(survey_t *survey, const cleave_finding_t *finding, bool is_optional,
                                     cleave_error_t *error) {
  cleave_text_t key = {0};
  cleave_status_t status = CLEAVE_OK;
  cleave_near_miss_t near_miss = {.graph = survey->state->graph,
                                  .finding = *finding,
                                  .count = 1,
                                  .is_optional = is_optional,
                                  .is_taken = is_taken(survey, finding)};
  write_key(&near_miss, &key);
  CLEAVE_TRY_CLEANUP(cleave_text_check(&key, error));
  for (size_t k = 0; k < survey->groups.count; k++) {
    if (strcmp(survey->keys.items[k], cleave_text_get(&key)) == 0) {
      survey->groups.items[k].count++;
      goto cleanup;
    }
  }
  if (survey->groups.count < MAX_GROUPS) {
    char *text = cleave_arena_copy_text(survey->builder->arena, cleave_text_get(&key), key.length);
    CLEAVE_TRY_CLEANUP(text == NULL ? cleave_error_out_of_memory(error) : CLEAVE_OK);
    CLEAVE_TRY_CLEANUP(keep_finding(survey->builder->arena, finding, &near_miss.finding, error));
    CLEAVE_TRY_CLEANUP(cleave_array_reserve(&survey->groups, 1, error));
    CLEAVE_TRY_CLEANUP(cleave_array_reserve(&survey->keys, 1, error));
    cleave_array_push_reserved(&survey->groups, near_miss);
    cleave_array_push_reserved(&survey->keys, text);
  } else {
    survey->report->far_count++;
  }
cleanup:
  cleave_text_deinit(&key);
  return status;
}

/* Is a finding worth reporting: more than half of the pattern, or all of its operators, and not mostly nodes
 * that the rule matches anyway? */
static bool is_near(const survey_t *survey, const cleave_finding_t *finding) {
  bool structural = false;
  uint32_t covered = 0;
  for (uint32_t k = 0; k < finding->mismatch_count; k++) {
    const char *kind = finding->mismatches[k].kind;
    structural = structural || strcmp(kind, "operator") == 0 || strcmp(kind, "missing") == 0 ||
                 strcmp(kind, "extra") == 0;
  }
  for (uint32_t k = 0; k < finding->node_count; k++) {
    covered += survey->covered[finding->nodes[k].index];
  }
  if (finding->mismatch_count == 0 || finding->mismatch_count > MAX_MISMATCHES ||
      2 * covered >= finding->node_count) {
    return false;
  }
  return !structural || (finding->matched > 0 && 2 * finding->matched >= cost_of(finding));
}

static cleave_status_t explain_anchor(survey_t *survey, uint32_t anchor, cleave_error_t *error) {
  cleave_finding_t finding;
  cleave_arena_reset(&survey->scratch);
  CLEAVE_TRY(cleave_explainer_explain(survey->state->explainer, anchor, CLEAVE_INDEX_NONE, CLEAVE_EXPLAIN_ALL,
                                      &survey->scratch, &finding, error));
  survey->report->limit_count += !finding.is_complete && !survey->is_past;
  if (is_near(survey, &finding)) {
    return add_near_miss(survey, &finding, false, error);
  }
  survey->report->far_count += !survey->is_past;
  return CLEAVE_OK;
}

/* For a match: are optional parts present that fail only by an attribute or the like? */
static cleave_status_t explain_optional(survey_t *survey, uint32_t anchor, uint32_t *searches_left,
                                        cleave_error_t *error) {
  uint32_t parts[MAX_OPTIONAL_PARTS];
  uint32_t count = cleave_explainer_optional_parts(survey->state->explainer, parts, MAX_OPTIONAL_PARTS);
  for (uint32_t k = 0; k<count && * searches_left> 0; k++) {
    cleave_finding_t finding;
    --*searches_left;
    cleave_arena_reset(&survey->scratch);
    CLEAVE_TRY(cleave_explainer_explain(survey->state->explainer, anchor, parts[k], CLEAVE_EXPLAIN_DETAILS,
                                        &survey->scratch, &finding, error));
    bool outside = false;
    for (uint32_t n = 0; n < finding.node_count && !outside; n++) {
      outside = survey->covered[finding.nodes[n].index] == 0;
    }
    if (outside && finding.is_complete && finding.mismatch_count > 0 &&
        finding.mismatch_count <= MAX_MISMATCHES) {
      CLEAVE_TRY(add_near_miss(survey, &finding, true, error));
    }
  }
  return CLEAVE_OK;
}

/* Tries nodes that are not anchors only because of their operator. */
static cleave_status_t explain_strangers(survey_t *survey, const uint32_t *anchors, uint32_t anchor_count,
                                         cleave_error_t *error) {
  uint32_t next = 0;
  uint32_t tried = 0;
  const cleave_pattern_t *pattern = survey->builder->rules[survey->rule]->pattern;
  bool is_group =
      pattern->nodes[pattern->root].kind == CLEAVE_PATTERN_GROUP;  // any member could be the first
  uint32_t total = is_group ? 0 : (uint32_t)survey->state->graph->live_node_count;
  for (uint32_t position = 0;
       position < total && tried < MAX_STRANGERS && !cleave_explainer_is_spent(survey->state->explainer);
       position++) {
    if (next < anchor_count && anchors[next] == position) {
      next++;
      continue;
    }
    if (survey->is_past &&
        !was_rewritten(survey, cleave_explainer_node(survey->state->explainer, position))) {
      continue;
    }
    cleave_finding_t finding;
    tried++;
    CLEAVE_TRY(cleave_why_go_on(survey->builder, error));
    cleave_arena_reset(&survey->scratch);
    CLEAVE_TRY(cleave_explainer_explain(survey->state->explainer, position, CLEAVE_INDEX_NONE,
                                        CLEAVE_EXPLAIN_ANCHOR, &survey->scratch, &finding, error));
    if (finding.is_complete && finding.mismatch_count > 0 && finding.total > 1 && is_near(survey, &finding)) {
      CLEAVE_TRY(add_near_miss(survey, &finding, false, error));
    }
  }
  return CLEAVE_OK;
}

// ---- matches ----

/* Operators of a match, in topological order. */
static cleave_status_t write_structure(const survey_t *survey, const cleave_finding_t *match,
                                       const char **out_text, cleave_error_t *error) {
  cleave_text_t text = {0};
  for (uint32_t k = 0; k < match->node_count && k < MAX_NAMED; k++) {
    cleave_text_format(&text, "%s%s", k == 0 ? "" : ", ",
                       cleave_node_op(survey->state->graph, match->nodes[k])->name);
  }
  if (match->node_count > MAX_NAMED) {
    cleave_text_format(&text, " and %u more", (unsigned)(match->node_count - MAX_NAMED));
  }
  cleave_text_add(&text, "");
  *out_text = text.failed
                  ? NULL
                  : cleave_arena_copy_text(survey->builder->arena, cleave_text_get(&text), text.length);
  cleave_text_deinit(&text);
  return *out_text == NULL ? cleave_error_out_of_memory(error) : CLEAVE_OK;
}

/* Refusals of fuse rules are in the plan's notes, by the first node of the match. */
static cleave_status_t group_notes(survey_t *survey, cleave_error_t *error) {
  const cleave_plan_t *plan = survey->builder->request->plan;
  for (uint32_t k = 0; k < plan->note_count; k++) {
    const cleave_plan_note_t *note = &plan->notes[k];
    if (note->rule != survey->rule || note->kind == CLEAVE_PLAN_NOTE_TAKEN) {
      continue;
    }
    cleave_why_refusal_t refusal = {.cause = cleave_plan_note_name(note->kind),
                                    .reason = note->reason,
                                    .winner = CLEAVE_INDEX_NONE,
                                    .structure = "",
                                    .count = 1,
                                    .graph = plan->graph,
                                    .first = note->node};
    if (survey->state != NULL && survey->state->graph == plan->graph) {
      cleave_finding_t match;
      cleave_explainer_t *explainer = survey->state->explainer;
      cleave_arena_reset(&survey->scratch);
      CLEAVE_TRY(cleave_why_go_on(survey->builder, error));
      CLEAVE_TRY(cleave_explainer_match(explainer, cleave_explainer_position(explainer, note->node),
                                        CLEAVE_NODE_NONE, &survey->scratch, &match, error));
      CLEAVE_TRY(match.matches ? write_structure(survey, &match, &refusal.structure, error) : CLEAVE_OK);
    }
    CLEAVE_TRY(cleave_why_group(&survey->refusals, &refusal, error));
  }
  return CLEAVE_OK;
}

/* Groups the refusals of graph rules, which are in the log of changes. */
static cleave_status_t group_log(survey_t *survey, cleave_error_t *error) {
  const cleave_plan_t *plan = survey->builder->request->plan;
  const cleave_edits_t *edits = plan->edits;
  if (edits == NULL) {
    return CLEAVE_OK;
  }
  cleave_edit_refusals_t groups[MAX_GROUPS];
  uint32_t count = 0;
  uint32_t more = 0;
  CLEAVE_TRY(cleave_edits_group_refusals(edits, groups, MAX_GROUPS, &count, &more, error));
  for (uint32_t k = 0; k < count; k++) {
    if (edits->rules.items[groups[k].rule].number == survey->rule) {
      const cleave_why_refusal_t refusal = {.cause = "",
                                            .reason = groups[k].reason,
                                            .winner = CLEAVE_INDEX_NONE,
                                            .structure = "",
                                            .count = groups[k].count,
                                            .graph = plan->graph,
                                            .first = CLEAVE_NODE_NONE,
                                            .place = groups[k].place};
      CLEAVE_TRY(cleave_why_group(&survey->refusals, &refusal, error));
    }
  }
  return CLEAVE_OK;
}

/* A match whose nodes another rule took. */
static cleave_status_t add_loss(survey_t *survey, const cleave_finding_t *match, uint32_t winner,
                                cleave_error_t *error) {
  cleave_why_refusal_t loss = {.cause = "",
                               .reason = "",
                               .winner = winner,
                               .count = 1,
                               .graph = survey->state->graph,
                               .first = match->anchor};
  survey->report->lost_count++;
  CLEAVE_TRY(write_structure(survey, match, &loss.structure, error));
  return cleave_why_group(&survey->losses, &loss, error);
}

/* The other rule that has a node of the match in its fusion, or NONE. */
static uint32_t find_winner(const survey_t *survey, const cleave_finding_t *match) {
  const cleave_plan_t *plan = survey->builder->request->plan;
  for (uint32_t k = 0; k < match->node_count && survey->state->graph == plan->graph; k++) {
    uint32_t fusion = plan->node_fusion[match->nodes[k].index];
    if (fusion != CLEAVE_INDEX_NONE && plan->fusions[fusion].rule != survey->rule) {
      return plan->fusions[fusion].rule;
    }
  }
  return CLEAVE_INDEX_NONE;
}

/* Counts a match. In the graph at the end of the rule, all remaining matches count. In the graph as the rule
 * found it, those count that lost a node to another rule, and none to this rule. */
static cleave_status_t count_match(survey_t *survey, const cleave_finding_t *match, cleave_error_t *error) {
  cleave_why_rule_t *report = survey->report;
  const cleave_history_t *history = survey->builder->history;
  bool changes = cleave_rule_kind_changes_graph(survey->builder->request->plan->rules[survey->rule].kind);
  uint32_t winner = CLEAVE_INDEX_NONE;
  if (!survey->is_past) {
    report->match_count++;
    winner = changes ? CLEAVE_INDEX_NONE : find_winner(survey, match);
    return winner == CLEAVE_INDEX_NONE ? CLEAVE_OK : add_loss(survey, match, winner, error);
  }
  for (uint32_t k = 0; k < match->node_count; k++) {
    uint32_t taker = cleave_history_taker(history, match->nodes[k]);
    if (taker == survey->rule) {
      return CLEAVE_OK;
    }
    winner = winner == CLEAVE_INDEX_NONE ? taker : winner;
  }
  report->before_count += winner != CLEAVE_INDEX_NONE && !changes;
  report->match_count += winner != CLEAVE_INDEX_NONE && changes;
  if (winner != CLEAVE_INDEX_NONE && changes &&
      cleave_history_refusal(history, survey->rule, survey->state->graph, match->nodes, match->node_count) ==
          NULL) {
    return add_loss(survey, match, winner, error);
  }
  return CLEAVE_OK;
}

/* Matches come first, because nodes of a match are not near misses. */
static cleave_status_t survey_matches(survey_t *survey, const uint32_t *anchors, uint32_t count,
                                      uint8_t *is_match, cleave_error_t *error) {
  for (uint32_t k = 0; k < count; k++) {
    cleave_finding_t match;
    CLEAVE_TRY(cleave_why_go_on(survey->builder, error));
    cleave_arena_reset(&survey->scratch);
    CLEAVE_TRY(cleave_explainer_match(survey->state->explainer, anchors[k], CLEAVE_NODE_NONE,
                                      &survey->scratch, &match, error));
    survey->report->limit_count += !match.is_complete && !survey->is_past;
    is_match[k] = match.matches;
    if (match.matches) {
      CLEAVE_TRY(count_match(survey, &match, error));
    }
    for (uint32_t n = 0; match.matches && n < match.node_count; n++) {
      survey->covered[match.nodes[n].index] = 1;
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t survey_anchors(survey_t *survey, cleave_error_t *error) {
  const uint32_t *anchors = NULL;
  uint32_t count = 0;
  uint32_t searches_left = MAX_OPTIONAL_SEARCHES;
  cleave_status_t status = CLEAVE_OK;
  cleave_explainer_t *explainer = survey->state->explainer;
  bool changes = cleave_rule_kind_changes_graph(survey->builder->request->plan->rules[survey->rule].kind);
  CLEAVE_TRY(cleave_explainer_anchors(explainer, &anchors, &count, error));
  uint8_t *is_match = cleave_allocate_zeroed((size_t)count + 1, 1);
  CLEAVE_TRY_MEMORY(is_match, error);
  survey->report->anchor_count += survey->is_past ? 0 : count;
  CLEAVE_TRY_CLEANUP(survey_matches(survey, anchors, count, is_match, error));
  for (uint32_t k = 0; k < count; k++) {
    CLEAVE_TRY_CLEANUP(cleave_why_go_on(survey->builder, error));
    if (cleave_explainer_is_spent(explainer)) {
      survey->report->limit_count += survey->is_past ? 0 : count - k;
      goto cleanup;
    }
    if (survey->is_past) {
      bool gone =
          changes && is_match[k] == 0 && was_rewritten(survey, cleave_explainer_node(explainer, anchors[k]));
      CLEAVE_TRY_CLEANUP(gone ? explain_anchor(survey, anchors[k], error) : CLEAVE_OK);
      continue;
    }
    CLEAVE_TRY_CLEANUP(is_match[k] != 0 ? explain_optional(survey, anchors[k], &searches_left, error)
                                        : explain_anchor(survey, anchors[k], error));
  }
  if (changes || !survey->is_past) {
    CLEAVE_TRY_CLEANUP(explain_strangers(survey, anchors, count, error));
  }
cleanup:
  cleave_free(is_match);
  return status;
}

/* Surveys the graph after a step of the log. */
static cleave_status_t survey_state(survey_t *survey, size_t step, bool is_past, cleave_error_t *error) {
  survey->is_past = is_past;
  CLEAVE_TRY(cleave_history_state(survey->builder->history, step, &survey->state, error));
  cleave_free(survey->covered);
  survey->covered = cleave_allocate_zeroed((size_t)cleave_graph_node_bound(survey->state->graph) + 1, 1);
  CLEAVE_TRY_MEMORY(survey->covered, error);
  CLEAVE_TRY(cleave_why_set_rule(survey->builder, survey->rule, survey->state->explainer, error));
  return survey_anchors(survey, error);
}

// ---- the report ----

cleave_status_t cleave_why_report_rule(cleave_why_builder_t *builder, uint32_t rule,
                                       cleave_why_rule_t *out_report, cleave_error_t *error) {
  cleave_status_t status = CLEAVE_OK;
  const cleave_rule_t *source = builder->rules[rule];
  survey_t survey = {.builder = builder, .rule = rule, .report = out_report};
  *out_report = (cleave_why_rule_t){.rule = rule,
                                    .grows = source != NULL && source->pattern == NULL,
                                    .graph = builder->request->plan->graph};
  if (source != NULL && source->pattern != NULL) {
    const cleave_plan_rule_t *entry = &builder->request->plan->rules[rule];
    size_t begin = cleave_history_begin(builder->history, rule);
    size_t end = cleave_history_end(builder->history, rule);
    CLEAVE_TRY_CLEANUP(survey_state(&survey, end, false, error));
    out_report->graph = survey.state->graph;
    out_report->match_count += cleave_rule_kind_changes_graph(entry->kind) ? entry->matches : 0;
    CLEAVE_TRY_CLEANUP(group_notes(&survey, error));
    if (begin != end) {
      CLEAVE_TRY_CLEANUP(survey_state(&survey, begin, true, error));
    }
    CLEAVE_TRY_CLEANUP(cleave_explainer_needs(survey.state->explainer, builder->arena, &out_report->needs,
                                              &out_report->need_count, error));
  } else {
    CLEAVE_TRY_CLEANUP(group_notes(&survey, error));
  }
  CLEAVE_TRY_CLEANUP(group_log(&survey, error));
  cleave_array_sort(&survey.groups, compare_near_misses);
  CLEAVE_TRY_CLEANUP(cleave_why_end_groups(&survey.refusals, builder->arena, &out_report->refusals,
                                           &out_report->refusal_count, error));
  CLEAVE_TRY_CLEANUP(cleave_why_end_groups(&survey.losses, builder->arena, &out_report->losses,
                                           &out_report->loss_count, error));
  out_report->near_miss_count = (uint32_t)survey.groups.count;
  out_report->near_misses = cleave_arena_copy(builder->arena, survey.groups.items,
                                              survey.groups.count * sizeof *survey.groups.items);
  if (out_report->near_misses == NULL) {
    status = cleave_error_out_of_memory(error);
  }
cleanup:
  cleave_arena_deinit(&survey.scratch);
  cleave_free(survey.covered);
  cleave_array_free(&survey.groups);
  cleave_array_free(&survey.keys);
  cleave_array_free(&survey.refusals);
  cleave_array_free(&survey.losses);
  return status;
}
