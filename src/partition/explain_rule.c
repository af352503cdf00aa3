// SPDX-License-Identifier: Apache-2.0
// A rule over the whole graph: where its pattern matches and what became of that, and where it nearly
// matches, places with the same lack together. Linear in the graph: a bounded search for every anchor.

#include <stdlib.h>
#include <string.h>

#include "partition/explain_report.h"

enum {
  MOST_OPTIONAL_PARTS = 8,
  MOST_OPTIONAL_SEARCHES = 20000,
  MOST_STRANGERS = 20000, /* nodes of other operators that are tried as anchors */
  MOST_GROUPS = 256
};

typedef struct survey {
  cleave_why_builder_t *builder;
  cleave_explainer_t *explainer;
  const cleave_pattern_t *pattern;
  uint32_t rule;
  cleave_arena_t scratch; /* of one finding */
  CLEAVE_ARRAY(cleave_near_miss_t) groups;
  CLEAVE_ARRAY(const char *) keys; /* per group */
  CLEAVE_ARRAY(cleave_why_refusal_t) refusals;
  cleave_why_rule_t *report;
} survey_t;

// ---- near misses ----

/* What makes two findings the same: everything but the names of the graph. */
static void write_key(const cleave_finding_t *finding, bool is_optional, cleave_text_t *text) {
  cleave_text_format(text, "%d %u/%u", (int)is_optional, (unsigned)finding->matched,
                     (unsigned)finding->total);
  for (uint32_t k = 0; k < finding->miss_count; k++) {
    const cleave_miss_t *miss = &finding->misses[k];
    cleave_text_format(text, "\n%s\t%s\t%s\t%s\t%s", miss->path, miss->subject, miss->expected, miss->found,
                       miss->edit == NULL ? "" : miss->edit);
  }
}

/* Copies a finding out of the scratch arena. */
static cleave_status_t keep_finding(cleave_arena_t *arena, const cleave_finding_t *from, cleave_finding_t *to,
                                    cleave_error_t *error) {
  *to = *from;
  cleave_miss_t *misses = cleave_arena_copy(arena, from->misses, from->miss_count * sizeof *misses);
  to->nodes = cleave_arena_copy(arena, from->nodes, from->node_count * sizeof *to->nodes);
  to->misses = misses;
  bool kept = misses != NULL && to->nodes != NULL;
  for (uint32_t k = 0; kept && k < from->miss_count; k++) {
    const char **texts[] = {&misses[k].path,  &misses[k].subject, &misses[k].expected,
                            &misses[k].found, &misses[k].detail,  &misses[k].edit};
    for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++) {
      if (*texts[t] != NULL) {
        *texts[t] = cleave_arena_copy_text(arena, *texts[t], strlen(*texts[t]));
        kept = kept && *texts[t] != NULL;
      }
    }
  }
  return kept ? CLEAVE_OK : cleave_error_out_of_memory(error);
}

static cleave_status_t add_miss(survey_t *survey, const cleave_finding_t *finding, bool is_optional,
                                cleave_error_t *error) {
  cleave_text_t key = {0};
  cleave_status_t status = CLEAVE_OK;
  write_key(finding, is_optional, &key);
  CLEAVE_TRY_CLEANUP(cleave_text_check(&key, error));
  for (size_t k = 0; k < survey->groups.count; k++) {
    if (strcmp(survey->keys.items[k], cleave_text_get(&key)) == 0) {
      survey->groups.items[k].count++;
      goto cleanup;
    }
  }
  if (survey->groups.count < MOST_GROUPS) {
    cleave_near_miss_t group = {.count = 1, .is_optional = is_optional};
    char *text = cleave_arena_copy_text(survey->builder->arena, cleave_text_get(&key), key.length);
    CLEAVE_TRY_CLEANUP(text == NULL ? cleave_error_out_of_memory(error) : CLEAVE_OK);
    CLEAVE_TRY_CLEANUP(keep_finding(survey->builder->arena, finding, &group.finding, error));
    CLEAVE_TRY_CLEANUP(cleave_array_reserve(&survey->groups, 1, error));
    CLEAVE_TRY_CLEANUP(cleave_array_reserve(&survey->keys, 1, error));
    cleave_array_push_reserved(&survey->groups, group);
    cleave_array_push_reserved(&survey->keys, text);
  } else {
    survey->report->far_count++;
  }
cleanup:
  cleave_text_deinit(&key);
  return status;
}

/* Is a finding worth telling: half of the pattern, or all of its operators? */
static bool is_near(const cleave_finding_t *finding) {
  bool structural = false;
  for (uint32_t k = 0; k < finding->miss_count; k++) {
    const char *kind = finding->misses[k].kind;
    structural = structural || strcmp(kind, "operator") == 0 || strcmp(kind, "missing") == 0 ||
                 strcmp(kind, "extra") == 0;
  }
  return !structural || (finding->matched > 0 && 2 * finding->matched >= finding->total);
}

static cleave_status_t explain_anchor(survey_t *survey, uint32_t anchor, cleave_error_t *error) {
  cleave_finding_t finding;
  CLEAVE_TRY(cleave_explainer_explain(survey->explainer, anchor, CLEAVE_INDEX_NONE, CLEAVE_EXPLAIN_ALL,
                                      &survey->scratch, &finding, error));
  if (!finding.is_complete) {
    survey->report->is_complete = false;
  } else if (finding.miss_count == 0 || !is_near(&finding)) {
    survey->report->far_count++;
  } else {
    return add_miss(survey, &finding, false, error);
  }
  return CLEAVE_OK;
}

/* Where the pattern matches: are optional parts there, too, but for an attribute or the like? */
static cleave_status_t explain_optional(survey_t *survey, uint32_t anchor, cleave_node_t *match_nodes,
                                        uint32_t match_count, uint32_t *searches_left,
                                        cleave_error_t *error) {
  uint32_t parts[MOST_OPTIONAL_PARTS];
  uint32_t count = cleave_explainer_optional_parts(survey->explainer, parts, MOST_OPTIONAL_PARTS);
  for (uint32_t k = 0; k<count && * searches_left> 0; k++) {
    cleave_finding_t finding;
    --*searches_left;
    cleave_arena_reset(&survey->scratch);
    CLEAVE_TRY(cleave_explainer_explain(survey->explainer, anchor, parts[k], CLEAVE_EXPLAIN_DETAILS,
                                        &survey->scratch, &finding, error));
    bool larger = finding.is_complete && finding.miss_count > 0 && finding.node_count > match_count;
    for (uint32_t m = 0; larger && m < match_count; m++) {
      // It must hold what matched, and more.
      bool has = false;
      for (uint32_t n = 0; n < finding.node_count && !has; n++) {
        has = finding.nodes[n].index == match_nodes[m].index;
      }
      larger = has;
    }
    if (larger) {
      CLEAVE_TRY(add_miss(survey, &finding, true, error));
    }
  }
  return CLEAVE_OK;
}

/* Nodes that are no anchors only because of their operator. */
static cleave_status_t explain_strangers(survey_t *survey, const uint32_t *anchors, uint32_t anchor_count,
                                         cleave_error_t *error) {
  uint32_t next = 0;
  uint32_t tried = 0;
  uint32_t total = (uint32_t)survey->report->graph->live_node_count;
  for (uint32_t position = 0; position < total && tried < MOST_STRANGERS; position++) {
    if (next < anchor_count && anchors[next] == position) {
      next++;
      continue;
    }
    cleave_finding_t finding;
    tried++;
    cleave_arena_reset(&survey->scratch);
    CLEAVE_TRY(cleave_explainer_explain(survey->explainer, position, CLEAVE_INDEX_NONE, CLEAVE_EXPLAIN_ANCHOR,
                                        &survey->scratch, &finding, error));
    if (finding.is_complete && finding.miss_count > 0 && finding.total > 1 && is_near(&finding)) {
      CLEAVE_TRY(add_miss(survey, &finding, false, error));
    }
  }
  return CLEAVE_OK;
}

// ---- matches ----

static cleave_status_t count_refusals(survey_t *survey, cleave_error_t *error) {
  const cleave_plan_t *plan = survey->builder->request->plan;
  for (uint32_t k = 0; k < plan->note_count; k++) {
    const cleave_plan_note_t *note = &plan->notes[k];
    if (note->rule != survey->rule || note->kind == CLEAVE_PLAN_NOTE_TAKEN) {
      continue;
    }
    const char *cause = cleave_plan_note_name(note->kind);
    size_t known = 0;
    while (known < survey->refusals.count &&
           (strcmp(survey->refusals.items[known].cause, cause) != 0 ||
            strcmp(survey->refusals.items[known].reason, note->reason) != 0)) {
      known++;
    }
    if (known < survey->refusals.count) {
      survey->refusals.items[known].count++;
    } else if (known < MOST_GROUPS) {
      CLEAVE_ARRAY_PUSH(&survey->refusals, ((cleave_why_refusal_t){cause, note->reason, 1, note->node}),
                        error);
    }
  }
  return CLEAVE_OK;
}

/* Did other rules take a node of the match? */
static bool was_taken(const survey_t *survey, const cleave_finding_t *match) {
  const cleave_plan_t *plan = survey->builder->request->plan;
  if (survey->report->graph != plan->graph) {
    return false;
  }
  for (uint32_t k = 0; k < match->node_count; k++) {
    uint32_t fusion = plan->node_fusion[match->nodes[k].index];
    if (fusion != CLEAVE_INDEX_NONE && plan->fusions[fusion].rule != survey->rule) {
      return true;
    }
  }
  return false;
}

static cleave_status_t survey_anchors(survey_t *survey, cleave_error_t *error) {
  const uint32_t *anchors = NULL;
  uint32_t count = 0;
  uint32_t searches_left = MOST_OPTIONAL_SEARCHES;
  cleave_why_rule_t *report = survey->report;
  CLEAVE_TRY(cleave_explainer_anchors(survey->explainer, &anchors, &count, error));
  report->anchor_count = count;
  for (uint32_t k = 0; k < count; k++) {
    cleave_finding_t match;
    cleave_arena_reset(&survey->scratch);
    CLEAVE_TRY(cleave_explainer_match(survey->explainer, anchors[k], CLEAVE_NODE_NONE, &survey->scratch,
                                      &match, error));
    report->is_complete = report->is_complete && match.is_complete;
    if (!match.matches) {
      CLEAVE_TRY(explain_anchor(survey, anchors[k], error));
      continue;
    }
    report->match_count++;
    report->lost_count += was_taken(survey, &match);
    cleave_node_t nodes[64];
    uint32_t node_count = match.node_count < 64 ? match.node_count : 64;
    memcpy(nodes, match.nodes, node_count * sizeof *nodes);
    CLEAVE_TRY(explain_optional(survey, anchors[k], nodes, node_count, &searches_left, error));
  }
  return explain_strangers(survey, anchors, count, error);
}

// ---- the report ----

static int compare_misses(const void *a, const void *b) {
  const cleave_near_miss_t *x = a;
  const cleave_near_miss_t *y = b;
  if (x->is_optional != y->is_optional) {
    return x->is_optional ? 1 : -1;
  }
  uint64_t left = (uint64_t)x->finding.matched * y->finding.total;
  uint64_t right = (uint64_t)y->finding.matched * x->finding.total;
  if (left != right) {
    return left > right ? -1 : 1;
  }
  if (x->finding.miss_count != y->finding.miss_count) {
    return x->finding.miss_count < y->finding.miss_count ? -1 : 1;
  }
  if (x->finding.matched != y->finding.matched) {
    return x->finding.matched > y->finding.matched ? -1 : 1;
  }
  if (x->count != y->count) {
    return x->count > y->count ? -1 : 1;
  }
  return (x->finding.anchor.index > y->finding.anchor.index) -
         (x->finding.anchor.index < y->finding.anchor.index);
}

static int compare_refusals(const void *a, const void *b) {
  const cleave_why_refusal_t *x = a;
  const cleave_why_refusal_t *y = b;
  if (x->count != y->count) {
    return x->count > y->count ? -1 : 1;
  }
  return (x->first.index > y->first.index) - (x->first.index < y->first.index);
}

cleave_status_t cleave_why_report_rule(cleave_why_builder_t *builder, uint32_t rule,
                                       cleave_why_rule_t *out_report, cleave_error_t *error) {
  cleave_status_t status = CLEAVE_OK;
  const cleave_rule_t *source = builder->rules[rule];
  survey_t survey = {.builder = builder, .rule = rule, .report = out_report};
  *out_report =
      (cleave_why_rule_t){.rule = rule, .graph = builder->request->plan->graph, .is_complete = true};
  CLEAVE_TRY_CLEANUP(count_refusals(&survey, error));
  if (source != NULL && source->pattern != NULL) {
    survey.pattern = source->pattern;
    CLEAVE_TRY_CLEANUP(cleave_why_explainer(builder, rule, &survey.explainer, &out_report->graph, error));
    CLEAVE_TRY_CLEANUP(cleave_explainer_set_pattern(survey.explainer, source->pattern, error));
    CLEAVE_TRY_CLEANUP(survey_anchors(&survey, error));
  }
  if (survey.groups.count > 1) {
    qsort(survey.groups.items, survey.groups.count, sizeof *survey.groups.items, compare_misses);
  }
  if (survey.refusals.count > 1) {
    qsort(survey.refusals.items, survey.refusals.count, sizeof *survey.refusals.items, compare_refusals);
  }
  out_report->miss_count = (uint32_t)survey.groups.count;
  out_report->refusal_count = (uint32_t)survey.refusals.count;
  out_report->misses = cleave_arena_copy(builder->arena, survey.groups.items,
                                         survey.groups.count * sizeof *survey.groups.items);
  out_report->refusals = cleave_arena_copy(builder->arena, survey.refusals.items,
                                           survey.refusals.count * sizeof *survey.refusals.items);
  if (out_report->misses == NULL || out_report->refusals == NULL) {
    status = cleave_error_out_of_memory(error);
  }
cleanup:
  cleave_arena_deinit(&survey.scratch);
  cleave_array_free(&survey.groups);
  cleave_array_free(&survey.keys);
  cleave_array_free(&survey.refusals);
  return status;
}
