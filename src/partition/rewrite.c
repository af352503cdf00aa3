// SPDX-License-Identifier: Apache-2.0
// Rewrites to their common end. A stack of nodes to look at: at first all anchors, the first in topological
// order on top; after a change what lies near it, so that whatever a substitute sets off happens at once.
#include "base/clock.h"
#include "partition/rewrite_state.h"

enum { STEPS_PER_ANCHOR = 100000, STEPS_PER_RULE = 20000000, STEPS_PER_NODE = 64, STEPS_PER_CHANGE = 4096 };
enum { REFUSALS_PER_ANCHOR = 64 };

static bool was_not_refused(void *context, const cleave_match_t *match, uint64_t hash) {
  const cleave_rewriter_t *rewriter = context;
  (void)match;
  for (size_t k = 0; k < rewriter->refused.count; k++) {
    if (rewriter->refused.items[k] == hash) {
      return false;
    }
  }
  return true;
}

static cleave_status_t note_limit(cleave_rewriter_t *rewriter, const cleave_graph_turn_t *turn,
                                  cleave_node_t node, cleave_error_t *error) {
  char label[128];
  cleave_edits_t *log = rewriter->editor->log;
  if (log == NULL) {
    return CLEAVE_OK;
  }
  return cleave_edits_refuse(log, turn->log_rule,
                             cleave_node_label(rewriter->editor->graph, node, label, sizeof label),
                             "the pattern was given up here: too many ways to match", error);
}

/* Tells all turns of the changes of an application, and this one at once. */
static cleave_status_t spread(cleave_rewriter_t *rewriter, cleave_graph_turn_t *turn, cleave_error_t *error) {
  cleave_editor_t *editor = rewriter->editor;
  CLEAVE_TRY(cleave_rewrite_grow_order(rewriter, error));
  if (rewriter->turn_count > 1) {
    CLEAVE_TRY(cleave_array_reserve(&rewriter->changes, editor->changed.count, error));
    for (size_t k = 0; k < editor->changed.count; k++) {
      cleave_array_push_reserved(&rewriter->changes, editor->changed.items[k]);
    }
  }
  CLEAVE_TRY(cleave_rewrite_push_near(rewriter, turn, editor->changed.items, editor->changed.count, error));
  editor->changed.count = 0;
  editor->removed.count = 0;
  return CLEAVE_OK;
}

/* Applies the rule at an anchor, once at most. */
static cleave_status_t look_at(cleave_rewriter_t *rewriter, cleave_graph_turn_t *turn, cleave_node_t node,
                               bool *out_applied, cleave_error_t *error) {
  *out_applied = false;
  rewriter->refused.count = 0;
  while (rewriter->refused.count < REFUSALS_PER_ANCHOR && rewriter->steps_left > 0) {
    cleave_match_request_t request = {
        .anchor = rewriter->order.positions[node.index],
        .step_limit = rewriter->steps_left < STEPS_PER_ANCHOR ? rewriter->steps_left : STEPS_PER_ANCHOR,
        .accept = was_not_refused,
        .context = rewriter};
    cleave_match_answer_t answer;
    CLEAVE_TRY(cleave_matcher_match(rewriter->matcher, &request, &answer, error));
    rewriter->steps_left -= answer.steps < rewriter->steps_left ? answer.steps : rewriter->steps_left;
    if (answer.limit || answer.match == NULL) {
      return answer.limit ? note_limit(rewriter, turn, node, error) : CLEAVE_OK;
    }
    if (rewriter->editor->log != NULL) {
      rewriter->editor->log->rules.items[turn->log_rule].structural_hits++;
    }
    CLEAVE_TRY(cleave_rewrite_apply(rewriter, turn, answer.match, out_applied, error));
    if (*out_applied) {
      rewriter->steps_left += STEPS_PER_CHANGE;
      return spread(rewriter, turn, error);
    }
    CLEAVE_ARRAY_PUSH(&rewriter->refused, answer.hash, error);
  }
  return CLEAVE_OK;
}

/* Puts all nodes that may be anchors on the stack, or what lies near what others changed. */
static cleave_status_t fill_stack(cleave_rewriter_t *rewriter, cleave_graph_turn_t *turn,
                                  cleave_error_t *error) {
  const uint32_t *anchors = NULL;
  uint32_t count = 0;
  bool all = turn->looks_at_all;
  size_t seen = turn->changes_seen;
  turn->looks_at_all = false;
  turn->changes_seen = rewriter->changes.count;
  if (rewriter->matcher == NULL || all) {
    CLEAVE_TRY(cleave_rewrite_begin_order(rewriter, error));
  }
  CLEAVE_TRY(cleave_matcher_set_pattern(rewriter->matcher, turn->rule->pattern, error));
  if (!all) {
    return cleave_rewrite_push_near(rewriter, turn, rewriter->changes.items + seen,
                                    rewriter->changes.count - seen, error);
  }
  CLEAVE_TRY(cleave_matcher_anchors(rewriter->matcher, &anchors, &count, error));
  CLEAVE_TRY(cleave_rewrite_push_near(rewriter, turn, NULL, 0, error));  // room for every node
  CLEAVE_TRY(cleave_array_reserve(&rewriter->stack, count, error));
  for (uint32_t k = count; k > 0; k--) {
    uint32_t node = rewriter->order.nodes[anchors[k - 1]].index;
    rewriter->is_waiting.items[node] = 1;
    cleave_array_push_reserved(&rewriter->stack, node);
  }
  return CLEAVE_OK;
}

static cleave_status_t run_turn(cleave_rewriter_t *rewriter, cleave_graph_turn_t *turn, uint32_t *out_applied,
                                cleave_error_t *error) {
  cleave_editor_t *editor = rewriter->editor;
  uint32_t tries = 0;
  *out_applied = 0;
  editor->rule = turn->rule->name;
  rewriter->steps_left = (size_t)STEPS_PER_RULE + (size_t)STEPS_PER_NODE * editor->graph->live_node_count;
  CLEAVE_TRY(fill_stack(rewriter, turn, error));
  while (rewriter->stack.count > 0) {
    cleave_node_t node = {rewriter->stack.items[--rewriter->stack.count]};
    bool applied = false;
    rewriter->is_waiting.items[node.index] = 0;
    if (cleave_node_is_live(editor->graph, node)) {
      tries++;
      CLEAVE_TRY(look_at(rewriter, turn, node, &applied, error));
      *out_applied += applied;
    }
  }
  turn->changes_seen = rewriter->changes.count;
  if (editor->log != NULL) {
    editor->log->rules.items[turn->log_rule].tries += tries;
    editor->log->rules.items[turn->log_rule].matches += *out_applied;
  }
  return CLEAVE_OK;
}

/* Folds after a turn that changed something. What folding does is a change to all turns. */
static cleave_status_t fold(cleave_rewriter_t *rewriter, cleave_graph_turn_t *turn, cleave_error_t *error) {
  cleave_editor_t *editor = rewriter->editor;
  const cleave_graph_t *graph = editor->graph;
  size_t live = graph->live_node_count;
  uint32_t values = cleave_graph_value_bound(graph);
  cleave_error_t cause = CLEAVE_ERROR_INIT;
  if (editor->log != NULL) {
    CLEAVE_TRY(cleave_edits_begin(editor->log, CLEAVE_INDEX_NONE, "", error));
  }
  cleave_status_t status = cleave_editor_fold(editor, &cause);
  if (status != CLEAVE_OK) {
    return cleave_rewrite_fail(turn, status, &cause, error);
  }
  if (editor->log != NULL) {
    cleave_edits_end(editor->log);
  }
  if (live != graph->live_node_count || values != cleave_graph_value_bound(graph)) {
    rewriter->changes.count = 0;
    for (uint32_t k = 0; k < rewriter->turn_count; k++) {
      rewriter->turns[k].looks_at_all = true;
      rewriter->turns[k].changes_seen = 0;
    }
  }
  return CLEAVE_OK;
}

/* One look at a turn, with its statistics. */
static cleave_status_t take_turn(cleave_rewriter_t *rewriter, cleave_graph_turn_t *turn,
                                 cleave_error_t *error) {
  cleave_edits_t *log = rewriter->editor->log;
  uint32_t applied = 0;
  uint64_t start = cleave_clock_now();
  uint64_t calls = turn->rule->calls != NULL ? *turn->rule->calls : 0;
  CLEAVE_TRY(run_turn(rewriter, turn, &applied, error));
  if (applied > 0) {
    CLEAVE_TRY(fold(rewriter, turn, error));
  }
  if (log != NULL) {
    cleave_edit_rule_t *rule = &log->rules.items[turn->log_rule];
    rule->lua_calls += turn->rule->calls != NULL ? *turn->rule->calls - calls : 0;
    rule->nanoseconds += cleave_clock_now() - start;
  }
  return CLEAVE_OK;
}

static cleave_status_t run_turns(cleave_rewriter_t *rewriter, cleave_error_t *error) {
  for (bool busy = true; busy;) {
    busy = false;
    for (uint32_t k = 0; k < rewriter->turn_count; k++) {
      cleave_graph_turn_t *turn = &rewriter->turns[k];
      if (!turn->looks_at_all && turn->changes_seen == rewriter->changes.count) {
        continue;
      }
      busy = true;
      CLEAVE_TRY(take_turn(rewriter, turn, error));
    }
  }
  return CLEAVE_OK;
}

static void deinit(cleave_rewriter_t *rewriter) {
  cleave_rewrite_drop_order(rewriter);
  cleave_rewrite_loops_destroy(rewriter->loops);
  cleave_free(rewriter->order.nodes);
  cleave_free(rewriter->order.positions);
  cleave_array_free(&rewriter->changes);
  cleave_array_free(&rewriter->stack);
  cleave_array_free(&rewriter->is_waiting);
  cleave_array_free(&rewriter->near);
  cleave_array_free(&rewriter->walks);
  cleave_array_free(&rewriter->refused);
  cleave_array_free(&rewriter->nodes);
  cleave_array_free(&rewriter->labels);
  cleave_array_free(&rewriter->local);
  cleave_array_free(&rewriter->hashes);
  cleave_array_free(&rewriter->outputs);
}

cleave_status_t cleave_rewrite_group(cleave_editor_t *editor, const cleave_transform_options_t *options,
                                     cleave_graph_turn_t *turns, uint32_t turn_count, cleave_error_t *error) {
  cleave_rewriter_t rewriter = {
      .editor = editor, .options = options, .turns = turns, .turn_count = turn_count};
  cleave_status_t status = CLEAVE_OK;
  editor->changed.count = 0;
  editor->removed.count = 0;
  for (uint32_t k = 0; k < turn_count; k++) {
    CLEAVE_TRY_CLEANUP(
        cleave_pattern_check(turns[k].rule->pattern, turns[k].file, turns[k].rule->name, error));
    CLEAVE_TRY_CLEANUP(cleave_rewrite_measure(&turns[k], error));
    turns[k].looks_at_all = true;
  }
  CLEAVE_TRY_CLEANUP(cleave_rewrite_loops_create(editor->graph, &rewriter.loops, error));
  CLEAVE_TRY_CLEANUP(run_turns(&rewriter, error));
cleanup:
  deinit(&rewriter);
  return status;
}
