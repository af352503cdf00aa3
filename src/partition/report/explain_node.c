// SPDX-License-Identifier: Apache-2.0
// What a rule did with one node. If the plan does not say it, the pattern is tried at the anchors around the
// node, the nearest first.

#include <string.h>

#include "partition/report/explain_report.h"

enum { MAX_AROUND = 512, MAX_SEARCHES = 96, MAX_STRANGERS = 24, MAX_OPTIONAL_PARTS = 16, MAX_USES = 32 };

typedef struct case_t {
  cleave_why_builder_t *builder;
  cleave_explainer_t *explainer;
  const cleave_graph_t *graph;
  const cleave_rule_t *source;
  cleave_node_t node;
  uint32_t rule;
  cleave_arena_t scratch;
  uint32_t around[MAX_AROUND]; /* positions, the node itself first, then by distance */
  uint32_t around_count;
} case_t;

// ---- the neighbourhood ----

static void add_around(case_t *c, cleave_node_t node) {
  if (!cleave_node_exists(node) || c->around_count == MAX_AROUND) {
    return;
  }
  uint32_t position = cleave_explainer_position(c->explainer, node);
  for (uint32_t k = 0; k < c->around_count; k++) {
    if (c->around[k] == position) {
      return;
    }
  }
  c->around[c->around_count++] = position;
}

/* Collects the nodes within reach of the pattern: as many edges away as it has parts. */
static void look_around(case_t *c) {
  uint32_t depth = c->source->pattern->node_count < 24 ? c->source->pattern->node_count : 24;
  uint32_t from = 0;
  c->around_count = 0;
  add_around(c, c->node);
  for (uint32_t step = 0; step < depth; step++) {
    uint32_t to = c->around_count;
    for (uint32_t k = from; k < to; k++) {
      cleave_node_t node = cleave_explainer_node(c->explainer, c->around[k]);
      for (uint32_t i = 0; i < cleave_node_input_count(c->graph, node); i++) {
        cleave_value_t value = cleave_node_input(c->graph, node, i);
        add_around(c, cleave_value_exists(value) ? cleave_value_producer(c->graph, value) : CLEAVE_NODE_NONE);
      }
      for (uint32_t o = 0; o < cleave_node_output_count(c->graph, node); o++) {
        uint32_t uses = 0;
        for (cleave_use_t use = cleave_value_first_use(c->graph, cleave_node_output(c->graph, node, o));
             cleave_use_exists(use) && uses < MAX_USES; use = cleave_use_next(c->graph, use), uses++) {
          add_around(c, cleave_use_node(c->graph, use));
        }
      }
    }
    from = to;
  }
}

static bool is_anchor(const uint32_t *anchors, uint32_t count, uint32_t position) {
  uint32_t low = 0;
  while (low < count) {
    uint32_t middle = low + (count - low) / 2;
    if (anchors[middle] == position) {
      return true;
    }
    if (anchors[middle] < position) {
      low = middle + 1;
    } else {
      count = middle;
    }
  }
  return false;
}

// ---- pattern rules ----

static bool is_about(const cleave_finding_t *finding, cleave_node_t node) {
  for (uint32_t k = 0; k < finding->node_count; k++) {
    if (finding->nodes[k].index == node.index) {
      return true;
    }
  }
  for (uint32_t k = 0; k < finding->mismatch_count; k++) {
    if (finding->mismatches[k].node.index == node.index) {
      return true;
    }
  }
  return false;
}

static bool is_better(const cleave_finding_t *a, const cleave_finding_t *b) {
  uint64_t left = (uint64_t)a->matched * (b->total == 0 ? 1 : b->total);
  uint64_t right = (uint64_t)b->matched * (a->total == 0 ? 1 : a->total);
  if (left != right) {
    return left > right;
  }
  return a->mismatch_count != b->mismatch_count ? a->mismatch_count < b->mismatch_count
                                                : a->matched > b->matched;
}

/* Keeps a finding that is about the node, if it is better than the one before. */
static void offer(const case_t *c, const cleave_finding_t *finding, cleave_finding_t *best) {
  if (finding->mismatch_count > 0 && finding->matched > 0 && is_about(finding, c->node) &&
      (best->mismatch_count == 0 || is_better(finding, best))) {
    *best = *finding;
  }
}

/* The best partial match that would have the node. */
static cleave_status_t find_partial(case_t *c, const uint32_t *anchors, uint32_t anchor_count,
                                    cleave_finding_t *best, cleave_error_t *error) {
  cleave_arena_t *arena = c->builder->arena;
  uint32_t parts[MAX_OPTIONAL_PARTS];
  uint32_t part_count = cleave_explainer_optional_parts(c->explainer, parts, MAX_OPTIONAL_PARTS);
  uint32_t searches = 0;
  uint32_t strangers = 0;
  *best = (cleave_finding_t){0};
  for (uint32_t k = 0; k < c->around_count && searches < MAX_SEARCHES; k++) {
    cleave_finding_t finding;
    uint32_t position = c->around[k];
    if (!is_anchor(anchors, anchor_count, position)) {
      continue;
    }
    searches++;
    CLEAVE_TRY(cleave_why_go_on(c->builder, error));
    CLEAVE_TRY(cleave_explainer_explain(c->explainer, position, CLEAVE_INDEX_NONE, CLEAVE_EXPLAIN_ALL, arena,
                                        &finding, error));
    offer(c, &finding, best);
    for (uint32_t p = 0; finding.matches && p < part_count && searches < MAX_SEARCHES; p++, searches++) {
      CLEAVE_TRY(cleave_explainer_explain(c->explainer, position, parts[p], CLEAVE_EXPLAIN_ALL, arena,
                                          &finding, error));
      offer(c, &finding, best);
      finding.matches = true;
    }
  }
  for (uint32_t k = 0; k < c->around_count && strangers < MAX_STRANGERS; k++) {
    cleave_finding_t finding;
    if (is_anchor(anchors, anchor_count, c->around[k])) {
      continue;
    }
    strangers++;
    CLEAVE_TRY(cleave_why_go_on(c->builder, error));
    CLEAVE_TRY(cleave_explainer_explain(c->explainer, c->around[k], CLEAVE_INDEX_NONE, CLEAVE_EXPLAIN_ANCHOR,
                                        arena, &finding, error));
    offer(c, &finding, best);
  }
  return CLEAVE_OK;
}

static const cleave_plan_note_t *find_note(const case_t *c, cleave_node_t anchor) {
  const cleave_plan_t *plan = c->builder->request->plan;
  for (uint32_t k = 0; c->graph == plan->graph && k < plan->note_count; k++) {
    const cleave_plan_note_t *note = &plan->notes[k];
    if (note->rule == c->rule && note->node.index == anchor.index && note->kind != CLEAVE_PLAN_NOTE_TAKEN) {
      return note;
    }
  }
  return NULL;
}

/* A graph rule left the match: for a recorded reason, or because it had lost a node before. */
static void judge_left(const case_t *c, const cleave_finding_t *match, cleave_verdict_t *verdict) {
  const cleave_history_t *history = c->builder->history;
  const char *reason = cleave_history_refusal(history, c->rule, c->graph, match->nodes, match->node_count);
  verdict->fate = CLEAVE_FATE_REFUSED;
  verdict->reason = reason == NULL ? "" : reason;
  for (uint32_t k = 0; k < match->node_count && reason == NULL; k++) {
    uint32_t taker = cleave_history_taker(history, match->nodes[k]);
    if (taker != CLEAVE_INDEX_NONE && taker != c->rule) {
      verdict->fate = CLEAVE_FATE_LOST;
      verdict->cause = cleave_rule_kind_name(c->builder->request->plan->rules[taker].kind);
      verdict->winner = taker;
      return;
    }
  }
}

/* A structural match that did not become a fusion: it was refused, or another rule took its nodes. */
static void judge_match(const case_t *c, const cleave_finding_t *match, cleave_verdict_t *verdict) {
  const cleave_plan_t *plan = c->builder->request->plan;
  const cleave_plan_note_t *note = find_note(c, match->anchor);
  verdict->finding = *match;
  verdict->fate = CLEAVE_FATE_LOST;
  verdict->reason = "";
  if (cleave_rule_kind_changes_graph(plan->rules[c->rule].kind) || c->graph != plan->graph) {
    judge_left(c, match, verdict);
    return;
  }
  if (note != NULL) {
    verdict->fate = CLEAVE_FATE_REFUSED;
    verdict->cause = cleave_plan_note_name(note->kind);
    verdict->reason = note->reason;
    return;
  }
  for (uint32_t k = 0; k < match->node_count; k++) {
    uint32_t fusion = plan->node_fusion[match->nodes[k].index];
    if (fusion != CLEAVE_INDEX_NONE) {
      verdict->cause = "fuse";
      verdict->winner = plan->fusions[fusion].rule;
      verdict->fusion = fusion;
      return;
    }
  }
  for (uint32_t k = 0; k < match->node_count; k++) {
    uint32_t region = plan->node_region[match->nodes[k].index];
    if (region != CLEAVE_INDEX_NONE) {
      verdict->cause = "region";
      verdict->winner = plan->regions[region].rule;
      verdict->region = region;
      return;
    }
  }
  verdict->fate = CLEAVE_FATE_REFUSED;
  verdict->reason = "another match was taken before";
}

static cleave_status_t judge_pattern(case_t *c, cleave_verdict_t *verdict, cleave_error_t *error) {
  const uint32_t *anchors = NULL;
  uint32_t anchor_count = 0;
  cleave_finding_t found;
  CLEAVE_TRY(cleave_why_set_rule(c->builder, c->rule, c->explainer, error));
  CLEAVE_TRY(cleave_explainer_anchors(c->explainer, &anchors, &anchor_count, error));
  look_around(c);
  for (uint32_t k = 0; k < c->around_count; k++) {
    if (is_anchor(anchors, anchor_count, c->around[k])) {
      CLEAVE_TRY(cleave_why_go_on(c->builder, error));
      CLEAVE_TRY(
          cleave_explainer_match(c->explainer, c->around[k], c->node, c->builder->arena, &found, error));
      if (found.matches) {
        judge_match(c, &found, verdict);
        return CLEAVE_OK;
      }
    }
  }
  CLEAVE_TRY(find_partial(c, anchors, anchor_count, &found, error));
  if (found.mismatch_count > 0) {
    verdict->fate = CLEAVE_FATE_MISSED;
    verdict->finding = found;
  }
  return CLEAVE_OK;
}

// ---- region rules, and fuse rules that grow ----

static cleave_status_t judge_region(const case_t *c, cleave_verdict_t *verdict, cleave_error_t *error) {
  const cleave_plan_t *plan = c->builder->request->plan;
  const cleave_stop_t *stop = c->builder->request->log == NULL
                                  ? NULL
                                  : cleave_boundary_log_find(c->builder->request->log, c->node, c->rule);
  uint32_t region = plan->node_region[c->node.index];
  uint32_t fusion = plan->node_fusion[c->node.index];
  if (stop != NULL && stop->cause != CLEAVE_STOP_REGION) {
    verdict->fate = CLEAVE_FATE_REFUSED;
    verdict->cause = cleave_stop_cause_name(stop->cause);
    // The log may be destroyed before the answer, so the text is copied.
    verdict->reason = cleave_arena_copy_text(c->builder->arena, stop->text, strlen(stop->text));
    CLEAVE_TRY_MEMORY(verdict->reason, error);
  } else if (plan->rules[c->rule].kind == CLEAVE_RULE_FUSE && fusion != CLEAVE_INDEX_NONE) {
    verdict->fate = CLEAVE_FATE_LOST;
    verdict->cause = "fuse";
    verdict->winner = plan->fusions[fusion].rule;
    verdict->fusion = fusion;
  } else if (region != CLEAVE_INDEX_NONE) {
    verdict->fate = CLEAVE_FATE_LOST;
    verdict->cause = "region";
    verdict->winner = plan->regions[region].rule;
    verdict->region = region;
  } else {
    const cleave_plan_note_t *note = find_note(c, c->node);
    verdict->fate = note == NULL ? CLEAVE_FATE_OUTSIDE : CLEAVE_FATE_REFUSED;
    verdict->cause = note == NULL ? "" : cleave_plan_note_name(note->kind);
    verdict->reason = note == NULL ? "" : note->reason;
  }
  return CLEAVE_OK;
}

// ---- rules that change the graph ----

/* Fills in the nodes that were taken and made by the application in which the rule made or took the node. */
static cleave_status_t tell_application(const case_t *c, uint32_t group, size_t before,
                                        cleave_verdict_t *verdict, cleave_error_t *error) {
  cleave_history_t *history = c->builder->history;
  cleave_arena_t *arena = c->builder->arena;
  const cleave_history_state_t *state = NULL;
  CLEAVE_TRY(cleave_history_state(history, before, &state, error));
  verdict->graph = state->graph;
  CLEAVE_TRY(cleave_history_taken_by(history, group, state->graph, arena, &verdict->finding.nodes,
                                     &verdict->finding.node_count, error));
  return cleave_history_made_by(history, group, c->builder->request->plan->graph, arena, &verdict->made,
                                &verdict->made_count, error);
}

/* Did the rule make or take the node? */
static cleave_status_t judge_work(const case_t *c, cleave_verdict_t *verdict, cleave_error_t *error) {
  const cleave_history_t *history = c->builder->history;
  if (cleave_history_taker(history, c->node) == c->rule) {
    verdict->fate = CLEAVE_FATE_REWRITTEN;
    return tell_application(c, history->taken[c->node.index], cleave_history_before_taken(history, c->node),
                            verdict, error);
  }
  if (cleave_history_maker(history, c->node) == c->rule) {
    verdict->fate = CLEAVE_FATE_MADE;
    return tell_application(c, history->made[c->node.index], cleave_history_before_made(history, c->node),
                            verdict, error);
  }
  return CLEAVE_OK;
}

/* The graph in which the rule is asked about the node: as the rule left it or, if the node is not in that
 * graph, as it was before another rule (*out_taker, or NONE) took the node. No graph: the rule never saw the
 * node. */
static cleave_status_t choose_state(case_t *c, uint32_t *out_taker, cleave_verdict_t *verdict,
                                    cleave_error_t *error) {
  cleave_history_t *history = c->builder->history;
  const cleave_history_state_t *state = NULL;
  size_t end = cleave_history_end(history, c->rule);
  CLEAVE_TRY(cleave_history_state(history, end, &state, error));
  *out_taker = CLEAVE_INDEX_NONE;
  if (!cleave_node_is_live(state->graph, c->node)) {
    uint32_t group = history->made[c->node.index];
    if (group != CLEAVE_INDEX_NONE && history->edits->groups.items[group].first_edit >= end) {
      verdict->reason = "was done before this node was made";
      return CLEAVE_OK;
    }
    *out_taker = cleave_history_taker(history, c->node);
    if (*out_taker == CLEAVE_INDEX_NONE) {
      verdict->reason = "was left with a constant in its place";
      return CLEAVE_OK;
    }
    CLEAVE_TRY(cleave_history_state(history, cleave_history_before_taken(history, c->node), &state, error));
    if (!cleave_node_is_live(state->graph, c->node)) {
      return CLEAVE_OK;
    }
  }
  c->explainer = state->explainer;
  c->graph = verdict->graph = state->graph;
  return CLEAVE_OK;
}

/* Rules with patterns. A rule that does not change the graph never saw nodes that were taken before it ran.
 */
static cleave_status_t judge_by_pattern(case_t *c, cleave_verdict_t *verdict, cleave_error_t *error) {
  uint32_t taker = CLEAVE_INDEX_NONE;
  CLEAVE_TRY(choose_state(c, &taker, verdict, error));
  if (c->graph != NULL) {
    CLEAVE_TRY(judge_pattern(c, verdict, error));
  }
  if (verdict->fate == CLEAVE_FATE_MISSED && taker != CLEAVE_INDEX_NONE &&
      !cleave_rule_kind_changes_graph(c->builder->request->plan->rules[c->rule].kind)) {
    verdict->fate = CLEAVE_FATE_OUTSIDE;
    verdict->finding = (cleave_finding_t){.node_count = 0};
  }
  if (verdict->winner == CLEAVE_INDEX_NONE && verdict->fate != CLEAVE_FATE_REFUSED) {
    verdict->winner = taker;
  }
  return CLEAVE_OK;
}

// ---- one rule ----

cleave_status_t cleave_why_judge(cleave_why_builder_t *builder, uint32_t rule, cleave_node_t node,
                                 cleave_verdict_t *out_verdict, cleave_error_t *error) {
  const cleave_plan_t *plan = builder->request->plan;
  case_t *c = cleave_arena_allocate(builder->arena, 1, sizeof *c);
  *out_verdict = (cleave_verdict_t){.rule = rule,
                                    .fate = CLEAVE_FATE_OUTSIDE,
                                    .cause = "",
                                    .reason = "",
                                    .winner = CLEAVE_INDEX_NONE,
                                    .fusion = CLEAVE_INDEX_NONE,
                                    .region = CLEAVE_INDEX_NONE,
                                    .graph = plan->graph};
  CLEAVE_TRY_MEMORY(c, error);
  *c = (case_t){.builder = builder, .source = builder->rules[rule], .node = node, .rule = rule};
  bool is_there = cleave_node_is_live(plan->graph, node);
  if (plan->rules[rule].kind == CLEAVE_RULE_STAGE) {
    out_verdict->fate = is_there && plan->node_stage != NULL ? CLEAVE_FATE_STAGE : CLEAVE_FATE_OUTSIDE;
    return CLEAVE_OK;
  }
  if (is_there) {
    uint32_t fusion = plan->node_fusion[node.index];
    uint32_t region = plan->node_region[node.index];
    if (fusion != CLEAVE_INDEX_NONE && plan->fusions[fusion].rule == rule) {
      out_verdict->fate = CLEAVE_FATE_FUSED;
      out_verdict->fusion = fusion;
      out_verdict->region = region;
      return CLEAVE_OK;
    }
    if (region != CLEAVE_INDEX_NONE && plan->regions[region].rule == rule) {
      out_verdict->fate = CLEAVE_FATE_REGION;
      out_verdict->region = region;
      return CLEAVE_OK;
    }
  }
  CLEAVE_TRY(judge_work(c, out_verdict, error));
  if (out_verdict->fate != CLEAVE_FATE_OUTSIDE || c->source == NULL) {
    return CLEAVE_OK;
  }
  if (c->source->pattern != NULL) {
    return judge_by_pattern(c, out_verdict, error);
  }
  if (is_there && !cleave_rule_kind_changes_graph(plan->rules[rule].kind)) {
    c->graph = plan->graph;
    return judge_region(c, out_verdict, error);
  }
  out_verdict->winner = is_there ? CLEAVE_INDEX_NONE : cleave_history_taker(builder->history, node);
  return CLEAVE_OK;
}
