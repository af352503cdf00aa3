// SPDX-License-Identifier: Apache-2.0
// Runs rewrites until none of them matches anywhere. The worklist holds the nodes to try as anchors: at first
// all of them, after a change those near it. Matches wait in a queue (rewrite_queue.c): those with nodes of
// the newest substitutes first, then the larger, then by position.
#include "partition/rewrite/rewrite_state.h"
#include "system/clock.h"

enum { STEPS_PER_ANCHOR = 100000, STEPS_PER_RULE = 20000000, STEPS_PER_NODE = 64, STEPS_PER_CHANGE = 4096 };
enum { REFUSALS_PER_ANCHOR = 64 };

typedef struct filter {
  const cleave_rewrite_queue_t *queue;
  cleave_node_t anchor;
} filter_t;

static bool was_not_refused(void *context, const cleave_match_t *match, uint64_t hash) {
  const filter_t *filter = context;
  (void)match;
  return !cleave_rewrite_queue_is_refused(filter->queue, filter->anchor, hash);
}

static cleave_status_t note_limit(cleave_rewriter_t *rewriter, const cleave_rule_run_t *run,
                                  cleave_node_t node, cleave_error_t *error) {
  char label[128];
  cleave_edits_t *log = rewriter->editor->log;
  if (log == NULL) {
    return CLEAVE_OK;
  }
  return cleave_edits_refuse(log, run->log_rule,
                             cleave_node_label(rewriter->editor->graph, node, label, sizeof label),
                             "the pattern was given up here: too many ways to match", error);
}

/* Queues the changes of an application for all rules, and looks at them for this one at once. */
static cleave_status_t spread(cleave_rewriter_t *rewriter, cleave_rule_run_t *run, cleave_error_t *error) {
  cleave_editor_t *editor = rewriter->editor;
  cleave_rewrite_queue_applied(rewriter);
  CLEAVE_TRY(cleave_rewrite_grow_order(rewriter, error));
  CLEAVE_TRY(cleave_rewrite_queue_grow(&rewriter->queue, rewriter->known_nodes, error));
  if (rewriter->run_count > 1) {
    CLEAVE_TRY(cleave_array_reserve(&rewriter->changes, editor->changed.count, error));
    for (size_t k = 0; k < editor->changed.count; k++) {
      cleave_array_push_reserved(&rewriter->changes, editor->changed.items[k]);
    }
  }
  CLEAVE_TRY(
      cleave_rewrite_extend_worklist(rewriter, run, editor->changed.items, editor->changed.count, error));
  editor->changed.count = 0;
  editor->removed.count = 0;
  return CLEAVE_OK;
}

/* The first match at an anchor that was not refused. */
static cleave_status_t match_at(cleave_rewriter_t *rewriter, const cleave_rule_run_t *run, cleave_node_t node,
                                cleave_match_answer_t *answer, cleave_error_t *error) {
  *answer = (cleave_match_answer_t){0};
  if (rewriter->steps_left == 0) {
    return CLEAVE_OK;
  }
  filter_t filter = {&rewriter->queue, node};
  cleave_match_request_t request = {
      .anchor = rewriter->order.positions[node.index],
      .step_limit = rewriter->steps_left < STEPS_PER_ANCHOR ? rewriter->steps_left : STEPS_PER_ANCHOR,
      .accept = was_not_refused,
      .context = &filter};
  CLEAVE_TRY(cleave_matcher_match(rewriter->matcher, &request, answer, error));
  rewriter->steps_left -= answer->steps < rewriter->steps_left ? answer->steps : rewriter->steps_left;
  if (answer->limit) {
    answer->match = NULL;
    return note_limit(rewriter, run, node, error);
  }
  return CLEAVE_OK;
}

/* Puts the match at an anchor into the queue; `refusals` matches were refused there before. */
static cleave_status_t find(cleave_rewriter_t *rewriter, const cleave_rule_run_t *run, cleave_node_t node,
                            uint32_t refusals, cleave_error_t *error) {
  cleave_match_answer_t answer;
  CLEAVE_TRY(match_at(rewriter, run, node, &answer, error));
  return answer.match == NULL ? CLEAVE_OK
                              : cleave_rewrite_queue_push(rewriter, node, refusals, &answer, error);
}

/* Applies a candidate if it still matches. Another match at its anchor goes into the queue. */
static cleave_status_t try_candidate(cleave_rewriter_t *rewriter, cleave_rule_run_t *run,
                                     const cleave_rewrite_candidate_t *candidate, bool *out_applied,
                                     cleave_error_t *error) {
  cleave_node_t node = {candidate->anchor};
  cleave_match_answer_t answer;
  CLEAVE_TRY(match_at(rewriter, run, node, &answer, error));
  if (answer.match == NULL || answer.hash != candidate->hash) {
    if (answer.match != NULL) {
      CLEAVE_TRY(cleave_rewrite_queue_push(rewriter, node, candidate->refusals, &answer, error));
    }
    return cleave_rewrite_queue_note_loss(rewriter, run, candidate, error);
  }
  if (rewriter->editor->log != NULL) {
    rewriter->editor->log->rules.items[run->log_rule].structural_hits++;
  }
  CLEAVE_TRY(cleave_rewrite_apply(rewriter, run, answer.match, out_applied, error));
  if (*out_applied) {
    rewriter->steps_left += STEPS_PER_CHANGE;
    return spread(rewriter, run, error);
  }
  CLEAVE_TRY(cleave_rewrite_queue_refuse(&rewriter->queue, node, answer.hash, error));
  return candidate->refusals + 1 < REFUSALS_PER_ANCHOR
             ? find(rewriter, run, node, candidate->refusals + 1, error)
             : CLEAVE_OK;
}

/* Puts all nodes that may be anchors on the worklist, or those near what other rules changed. */
static cleave_status_t fill_worklist(cleave_rewriter_t *rewriter, cleave_rule_run_t *run,
                                     cleave_error_t *error) {
  const uint32_t *anchors = NULL;
  uint32_t count = 0;
  bool all = run->looks_at_all;
  size_t seen = run->changes_seen;
  run->looks_at_all = false;
  run->changes_seen = rewriter->changes.count;
  if (rewriter->matcher == NULL || all) {
    CLEAVE_TRY(cleave_rewrite_begin_order(rewriter, error));
  }
  CLEAVE_TRY(cleave_matcher_set_pattern(rewriter->matcher, run->rule->pattern, error));
  if (!all) {
    return cleave_rewrite_extend_worklist(rewriter, run, rewriter->changes.items + seen,
                                          rewriter->changes.count - seen, error);
  }
  CLEAVE_TRY(cleave_matcher_anchors(rewriter->matcher, &anchors, &count, error));
  CLEAVE_TRY(cleave_rewrite_extend_worklist(rewriter, run, NULL, 0, error));  // room for every node
  CLEAVE_TRY(cleave_array_reserve(&rewriter->worklist, count, error));
  for (uint32_t k = count; k > 0; k--) {
    uint32_t node = rewriter->order.nodes[anchors[k - 1]].index;
    rewriter->is_waiting.items[node] = 1;
    cleave_array_push_reserved(&rewriter->worklist, node);
  }
  return CLEAVE_OK;
}

/* Tries all anchors of the worklist. */
static cleave_status_t process_worklist(cleave_rewriter_t *rewriter, const cleave_rule_run_t *run,
                                        uint32_t *tries, cleave_error_t *error) {
  while (rewriter->worklist.count > 0) {
    cleave_node_t node = {rewriter->worklist.items[--rewriter->worklist.count]};
    rewriter->is_waiting.items[node.index] = 0;
    if (cleave_node_is_live(rewriter->editor->graph, node)) {
      ++*tries;
      cleave_rewrite_queue_look(&rewriter->queue, node);
      CLEAVE_TRY(find(rewriter, run, node, 0, error));
    }
  }
  return CLEAVE_OK;
}

/* Applies the rule until it matches nowhere. */
static cleave_status_t apply_rule(cleave_rewriter_t *rewriter, cleave_rule_run_t *run, uint32_t *out_applied,
                                  cleave_error_t *error) {
  cleave_editor_t *editor = rewriter->editor;
  cleave_rewrite_candidate_t candidate;
  bool is_current = false;
  uint32_t tries = 0;
  *out_applied = 0;
  editor->rule = run->rule->name;
  rewriter->steps_left = (size_t)STEPS_PER_RULE + (size_t)STEPS_PER_NODE * editor->graph->live_node_count;
  cleave_rewrite_queue_clear(&rewriter->queue);
  CLEAVE_TRY(fill_worklist(rewriter, run, error));
  CLEAVE_TRY(cleave_rewrite_queue_grow(&rewriter->queue, rewriter->known_nodes, error));
  CLEAVE_TRY(process_worklist(rewriter, run, &tries, error));
  while (cleave_rewrite_queue_pop(&rewriter->queue, &candidate, &is_current)) {
    bool applied = false;
    if (is_current && cleave_node_is_live(editor->graph, (cleave_node_t){candidate.anchor})) {
      CLEAVE_TRY(try_candidate(rewriter, run, &candidate, &applied, error));
    } else {
      CLEAVE_TRY(cleave_rewrite_queue_note_loss(rewriter, run, &candidate, error));
    }
    *out_applied += applied;
    CLEAVE_TRY(process_worklist(rewriter, run, &tries, error));
  }
  run->changes_seen = rewriter->changes.count;
  if (editor->log != NULL) {
    editor->log->rules.items[run->log_rule].tries += tries;
    editor->log->rules.items[run->log_rule].matches += *out_applied;
  }
  return CLEAVE_OK;
}

/* Folds constants after a run that changed something. All rules look at what folding changed. */
static cleave_status_t fold(cleave_rewriter_t *rewriter, cleave_rule_run_t *run, cleave_error_t *error) {
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
    return cleave_rewrite_fail(run, status, &cause, error);
  }
  if (editor->log != NULL) {
    cleave_edits_end(editor->log);
  }
  if (live != graph->live_node_count || values != cleave_graph_value_bound(graph)) {
    rewriter->changes.count = 0;
    for (uint32_t k = 0; k < rewriter->run_count; k++) {
      rewriter->runs[k].looks_at_all = true;
      rewriter->runs[k].changes_seen = 0;
    }
  }
  return CLEAVE_OK;
}

/* Runs one rule until it matches nowhere, folds constants, and counts what it did. */
static cleave_status_t run_rule(cleave_rewriter_t *rewriter, cleave_rule_run_t *run, cleave_error_t *error) {
  cleave_edits_t *log = rewriter->editor->log;
  uint32_t applied = 0;
  uint64_t start = cleave_clock_now();
  uint64_t calls = run->rule->calls != NULL ? *run->rule->calls : 0;
  CLEAVE_TRY(apply_rule(rewriter, run, &applied, error));
  if (applied > 0) {
    CLEAVE_TRY(fold(rewriter, run, error));
  }
  if (log != NULL) {
    cleave_edit_rule_t *rule = &log->rules.items[run->log_rule];
    rule->lua_calls += run->rule->calls != NULL ? *run->rule->calls - calls : 0;
    rule->nanoseconds += cleave_clock_now() - start;
  }
  return CLEAVE_OK;
}

static cleave_status_t run_rounds(cleave_rewriter_t *rewriter, cleave_error_t *error) {
  for (bool busy = true; busy;) {
    busy = false;
    for (uint32_t k = 0; k < rewriter->run_count; k++) {
      cleave_rule_run_t *run = &rewriter->runs[k];
      if (!run->looks_at_all && run->changes_seen == rewriter->changes.count) {
        continue;
      }
      busy = true;
      CLEAVE_TRY(run_rule(rewriter, run, error));
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
  cleave_array_free(&rewriter->worklist);
  cleave_array_free(&rewriter->is_waiting);
  cleave_array_free(&rewriter->reached);
  cleave_array_free(&rewriter->walks);
  cleave_rewrite_queue_deinit(&rewriter->queue);
  cleave_key_set_deinit(&rewriter->counted);
  cleave_array_free(&rewriter->nodes);
  cleave_array_free(&rewriter->labels);
  cleave_array_free(&rewriter->local);
  cleave_array_free(&rewriter->hashes);
  cleave_array_free(&rewriter->outputs);
}

cleave_status_t cleave_rewrite_group(cleave_editor_t *editor, const cleave_transform_options_t *options,
                                     cleave_rule_run_t *runs, uint32_t run_count, cleave_error_t *error) {
  cleave_rewriter_t rewriter = {.editor = editor, .options = options, .runs = runs, .run_count = run_count};
  cleave_status_t status = CLEAVE_OK;
  editor->changed.count = 0;
  editor->removed.count = 0;
  for (uint32_t k = 0; k < run_count; k++) {
    CLEAVE_TRY_CLEANUP(cleave_pattern_check(runs[k].rule->pattern, runs[k].file, runs[k].rule->name, error));
    CLEAVE_TRY_CLEANUP(cleave_rewrite_measure(&runs[k], error));
    runs[k].looks_at_all = true;
  }
  CLEAVE_TRY_CLEANUP(cleave_rewrite_loops_create(editor->graph, &rewriter.loops, error));
  CLEAVE_TRY_CLEANUP(run_rounds(&rewriter, error));
cleanup:
  deinit(&rewriter);
  return status;
}
