// SPDX-License-Identifier: Apache-2.0
// A fuse rule: every anchor's first match waits in a heap, the largest first, then by position. A popped
// match is matched again among the nodes that are still free. If the match is the same, `where`, the backend
// and the contraction decide about it; if it is another one, it goes back into the heap. Refused matches are
// remembered by their hash, so that no match is asked about twice and every anchor terminates.

#include <stdio.h>
#include <string.h>

#include "base/containers/heap.h"
#include "base/containers/key_set.h"
#include "base/hash.h"
#include "partition/grow/partitioner.h"
#include "system/clock.h"

#define STEPS_PER_ANCHOR 100000
#define STEPS_PER_RULE 20000000
#define REFUSALS_PER_ANCHOR 64
/* Limit on the inputs of all matches that a backend is asked about, per rule. A match with at most
 * MANY_INPUTS inputs is always shown. Without a limit, thousands of matches that share one node with
 * thousands of inputs would take quadratic time. */
#define SHOWN_PER_RULE 4000000
#define SHOWN_PER_NODE 64
#define MANY_INPUTS 256

typedef struct candidate {
  uint32_t anchor; /* position */
  uint32_t size;
  uint32_t first; /* position of its first node */
  uint32_t refusals;
  uint64_t hash;
} candidate_t;

typedef struct fuser {
  cleave_partitioner_t *partitioner;
  const cleave_rule_t *rule;
  uint32_t rule_index;
  size_t steps_left;
  size_t shown_left;
  bool is_exhausted; /* none is left, and it was noted */
  CLEAVE_ARRAY(candidate_t) heap;
  cleave_key_set_t refused; /* matches */
  cleave_key_set_t counted; /* their nodes, alone and with the reason */
} fuser_t;

static uint64_t key_of(uint64_t hash, uint32_t anchor) {
  return hash ^ (uint64_t)anchor * UINT64_C(0x9e3779b97f4a7c15);
}

// ---- the heap ----

static bool goes_before(const void *one, const void *other) {
  const candidate_t *a = one;
  const candidate_t *b = other;
  if (a->size != b->size) {
    return a->size > b->size;
  }
  return a->first != b->first ? a->first < b->first : a->anchor < b->anchor;
}

static cleave_status_t heap_push(fuser_t *fuser, candidate_t candidate, cleave_error_t *error) {
  CLEAVE_ARRAY_PUSH(&fuser->heap, candidate, error);
  cleave_heap_add_last(fuser->heap.items, fuser->heap.count, sizeof candidate, goes_before);
  return CLEAVE_OK;
}

static candidate_t heap_pop(fuser_t *fuser) {
  cleave_heap_move_first_to_end(fuser->heap.items, fuser->heap.count, sizeof *fuser->heap.items, goes_before);
  return fuser->heap.items[--fuser->heap.count];
}

// ---- matching ----

typedef struct filter {
  const fuser_t *fuser;
  uint32_t anchor;
} filter_t;

static bool was_not_refused(void *context, const cleave_match_t *match, uint64_t hash) {
  const filter_t *filter = context;
  (void)match;
  return !cleave_key_set_has(&filter->fuser->refused, key_of(hash, filter->anchor));
}

/* The first match at an anchor that was not refused, among nodes with a state below `blocked_from`. */
static cleave_status_t match_at(fuser_t *fuser, uint32_t anchor, uint8_t blocked_from,
                                cleave_match_answer_t *answer, cleave_error_t *error) {
  cleave_partitioner_t *partitioner = fuser->partitioner;
  filter_t filter = {fuser, anchor};
  *answer = (cleave_match_answer_t){0};
  if (fuser->is_exhausted) {
    return CLEAVE_OK;
  }
  cleave_match_request_t request = {
      .anchor = anchor,
      .states = partitioner->states,
      .blocked_from = blocked_from,
      .step_limit = fuser->steps_left < STEPS_PER_ANCHOR ? fuser->steps_left : STEPS_PER_ANCHOR,
      .accept = was_not_refused,
      .context = &filter};
  CLEAVE_TRY(cleave_matcher_match(partitioner->matcher, &request, answer, error));
  fuser->steps_left -= answer->steps < fuser->steps_left ? answer->steps : fuser->steps_left;
  fuser->is_exhausted = fuser->steps_left == 0;
  if (answer->limit || fuser->is_exhausted) {
    char label[128];
    CLEAVE_TRY(cleave_partitioner_note(partitioner, CLEAVE_PLAN_NOTE_LIMIT, anchor, fuser->rule_index, error,
                                       "%s: the pattern was given up here after %zu step%s",
                                       cleave_partitioner_label(partitioner, anchor, label, sizeof label),
                                       answer->steps, CLEAVE_PLURAL(answer->steps)));
  }
  return CLEAVE_OK;
}

static cleave_status_t push_match(fuser_t *fuser, uint32_t anchor, uint32_t refusals,
                                  const cleave_match_answer_t *answer, cleave_error_t *error) {
  if (answer->match == NULL) {
    return CLEAVE_OK;
  }
  fuser->partitioner->plan->rules[fuser->rule_index].structural_hits++;
  uint32_t first = fuser->partitioner->contraction->positions[answer->match->nodes[0].index];
  candidate_t candidate = {anchor, answer->match->node_count, first, refusals, answer->hash};
  return heap_push(fuser, candidate, error);
}

/* Notes which match has the first taken node of the match that a candidate stood for. */
static cleave_status_t note_taken(fuser_t *fuser, const candidate_t *candidate, cleave_error_t *error) {
  cleave_partitioner_t *partitioner = fuser->partitioner;
  cleave_match_answer_t answer;
  if (partitioner->notes.count >= partitioner->max_notes) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(match_at(fuser, candidate->anchor, CLEAVE_NODE_TAKEN, &answer, error));
  for (uint32_t k = 0; answer.match != NULL && k < answer.match->node_count; k++) {
    uint32_t position = partitioner->contraction->positions[answer.match->nodes[k].index];
    uint32_t fusion = partitioner->fusion_of[position];
    if (fusion != CLEAVE_INDEX_NONE) {
      uint32_t winner = partitioner->fusions.items[fusion].rule;
      uint32_t first = partitioner->fusion_nodes.items[partitioner->fusions.items[fusion].first];
      char label[128];
      return cleave_partitioner_note(partitioner, CLEAVE_PLAN_NOTE_TAKEN, position, fuser->rule_index, error,
                                     "taken by fuse '%s' at '%s'", partitioner->plan->rules[winner].name,
                                     cleave_partitioner_label(partitioner, first, label, sizeof label));
    }
  }
  return CLEAVE_OK;
}

// ---- accepting ----

/* Refuses a match. With its inputs in another order it is the same match: it counts once, and each reason is
 * noted once. */
static cleave_status_t refuse(fuser_t *fuser, cleave_plan_note_kind_t kind, uint32_t anchor,
                              const cleave_match_answer_t *answer, const char *reason,
                              cleave_error_t *error) {
  uint64_t nodes = cleave_match_hash_nodes(answer->match->nodes, answer->match->node_count);
  uint64_t noted = cleave_hash_bytes(nodes, reason, strlen(reason));
  bool is_noted = cleave_key_set_has(&fuser->counted, noted);
  fuser->partitioner->plan->rules[fuser->rule_index].refused += !cleave_key_set_has(&fuser->counted, nodes);
  CLEAVE_TRY(cleave_key_set_add(&fuser->counted, nodes, error));
  CLEAVE_TRY(cleave_key_set_add(&fuser->counted, noted, error));
  CLEAVE_TRY(cleave_key_set_add(&fuser->refused, key_of(answer->hash, anchor), error));
  return is_noted ? CLEAVE_OK
                  : cleave_partitioner_note(fuser->partitioner, kind, anchor, fuser->rule_index, error, "%s",
                                            reason);
}

/* Takes the match's inputs out of what the rule may still show to the backend. */
static bool may_be_shown(fuser_t *fuser, const cleave_match_t *match) {
  size_t inputs = 0;
  for (uint32_t k = 0; k < match->node_count; k++) {
    inputs += cleave_node_input_count(fuser->partitioner->graph, match->nodes[k]);
  }
  bool may = inputs <= MANY_INPUTS || inputs <= fuser->shown_left;
  fuser->shown_left -= inputs < fuser->shown_left ? inputs : fuser->shown_left;
  return may;
}

static cleave_status_t ask_backend(fuser_t *fuser, uint32_t anchor, const cleave_match_answer_t *answer,
                                   bool *out_yes, cleave_error_t *error) {
  cleave_partitioner_t *partitioner = fuser->partitioner;
  const cleave_match_t *match = answer->match;
  cleave_reason_t reason = {""};
  if (!may_be_shown(fuser, match)) {
    *out_yes = false;
    return refuse(fuser, CLEAVE_PLAN_NOTE_LIMIT, anchor, answer,
                  "too many matches with thousands of inputs were tried before", error);
  }
  cleave_fusion_set_t set = {.rule = fuser->rule->name,
                             .nodes = match->nodes,
                             .labels = match->node_labels,
                             .node_count = match->node_count,
                             .attributes = fuser->rule->attributes,
                             .attribute_count = fuser->rule->attribute_count};
  CLEAVE_TRY(cleave_partitioner_supports_fusion(partitioner, &set, out_yes, &reason, error));
  return *out_yes ? CLEAVE_OK
                  : refuse(fuser, CLEAVE_PLAN_NOTE_BACKEND, anchor, answer,
                           reason.text[0] == '\0' ? "the backend refused it without a reason" : reason.text,
                           error);
}

/* Puts a match to the stages, `where`, the backend and the contraction; on success its nodes are one group.
 */
static cleave_status_t try_match(fuser_t *fuser, uint32_t anchor, const cleave_match_answer_t *answer,
                                 bool *out_accepted, cleave_error_t *error) {
  cleave_partitioner_t *partitioner = fuser->partitioner;
  const cleave_match_t *match = answer->match;
  cleave_reason_t reason = {""};
  bool yes = true;
  *out_accepted = false;
  if (cleave_partitioner_crosses(partitioner, match->nodes, match->node_count, &reason)) {
    return refuse(fuser, CLEAVE_PLAN_NOTE_STAGE, anchor, answer, reason.text, error);
  }
  if (fuser->rule->where != NULL) {
    CLEAVE_TRY(fuser->rule->where(fuser->rule->context, partitioner->graph, match, &yes, &reason, error));
    if (!yes) {
      return refuse(fuser, CLEAVE_PLAN_NOTE_WHERE, anchor, answer,
                    reason.text[0] == '\0' ? "'where' returned false" : reason.text, error);
    }
  }
  CLEAVE_TRY(ask_backend(fuser, anchor, answer, &yes, error));
  if (!yes) {
    return CLEAVE_OK;
  }
  if (!cleave_partitioner_allows(partitioner, fuser->rule_index, match->nodes, match->node_count)) {
    return refuse(fuser, CLEAVE_PLAN_NOTE_LEFT_OUT, anchor, answer, "left out on request", error);
  }
  cleave_contraction_result_t result;
  partitioner->scratch.count = 0;
  CLEAVE_TRY(cleave_array_reserve(&partitioner->scratch, match->node_count, error));
  for (uint32_t k = 0; k < match->node_count; k++) {
    cleave_array_push_reserved(&partitioner->scratch,
                               partitioner->contraction->positions[match->nodes[k].index]);
  }
  CLEAVE_TRY(cleave_contraction_contract(partitioner->contraction, partitioner->scratch.items,
                                         match->node_count, fuser->steps_left, &result, error));
  fuser->steps_left -= result.steps < fuser->steps_left ? result.steps : fuser->steps_left;
  if (result.outcome == CLEAVE_CONTRACTION_LIMIT) {
    return refuse(fuser, CLEAVE_PLAN_NOTE_LIMIT, anchor, answer, "the search for a cycle took too many steps",
                  error);
  }
  if (result.outcome == CLEAVE_CONTRACTION_CYCLE) {
    char label[128];
    char text[256];
    (void)snprintf(text, sizeof text, "would close a cycle through '%s'",
                   cleave_partitioner_label(partitioner, result.outside, label, sizeof label));
    return refuse(fuser, CLEAVE_PLAN_NOTE_CYCLE, anchor, answer, text, error);
  }
  *out_accepted = true;
  return CLEAVE_OK;
}

/* Keeps the match whose nodes are in partitioner->scratch, even if it was refused in another order. */
static cleave_status_t keep(fuser_t *fuser, const cleave_match_t *match, cleave_error_t *error) {
  cleave_partitioner_t *partitioner = fuser->partitioner;
  uint32_t fusion = (uint32_t)partitioner->fusions.count;
  cleave_found_fusion_t found = {.rule = fuser->rule_index,
                                 .ruleset = partitioner->ruleset_number,
                                 .first = (uint32_t)partitioner->fusion_nodes.count,
                                 .count = match->node_count,
                                 .region = CLEAVE_INDEX_NONE,
                                 .source = fuser->rule,
                                 .attributes = fuser->rule->attributes,
                                 .attribute_count = fuser->rule->attribute_count};
  CLEAVE_TRY(cleave_array_reserve(&partitioner->fusion_nodes, match->node_count, error));
  CLEAVE_TRY(cleave_array_reserve(&partitioner->fusion_labels, match->node_count, error));
  CLEAVE_ARRAY_PUSH(&partitioner->fusions, found, error);
  for (uint32_t k = 0; k < match->node_count; k++) {
    uint32_t position = partitioner->scratch.items[k];
    const char *label = match->node_labels[k];
    if (label[0] != '\0') {
      label = cleave_arena_copy_text(&partitioner->plan->arena, label, strlen(label));
      CLEAVE_TRY_MEMORY(label, error);
    } else {
      label = "";
    }
    cleave_array_push_reserved(&partitioner->fusion_nodes, position);
    cleave_array_push_reserved(&partitioner->fusion_labels, label);
    partitioner->states[position] = CLEAVE_NODE_FUSED;
    partitioner->fusion_of[position] = fusion;
  }
  cleave_plan_rule_t *entry = &partitioner->plan->rules[fuser->rule_index];
  entry->matches++;
  entry->refused -=
      cleave_key_set_has(&fuser->counted, cleave_match_hash_nodes(match->nodes, match->node_count));
  return CLEAVE_OK;
}

static cleave_status_t settle_candidates(fuser_t *fuser, cleave_error_t *error) {
  while (fuser->heap.count > 0) {
    candidate_t candidate = heap_pop(fuser);
    cleave_match_answer_t answer;
    CLEAVE_TRY(match_at(fuser, candidate.anchor, CLEAVE_NODE_FUSED, &answer, error));
    if (answer.match == NULL || answer.hash != candidate.hash) {
      CLEAVE_TRY(push_match(fuser, candidate.anchor, candidate.refusals, &answer, error));
      CLEAVE_TRY(note_taken(fuser, &candidate, error));
      continue;
    }
    bool accepted = false;
    CLEAVE_TRY(try_match(fuser, candidate.anchor, &answer, &accepted, error));
    if (accepted) {
      CLEAVE_TRY(keep(fuser, answer.match, error));
    } else if (++candidate.refusals < REFUSALS_PER_ANCHOR) {
      CLEAVE_TRY(match_at(fuser, candidate.anchor, CLEAVE_NODE_FUSED, &answer, error));
      CLEAVE_TRY(push_match(fuser, candidate.anchor, candidate.refusals, &answer, error));
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t run_rule(fuser_t *fuser, cleave_error_t *error) {
  cleave_partitioner_t *partitioner = fuser->partitioner;
  cleave_plan_rule_t *entry = &partitioner->plan->rules[fuser->rule_index];
  size_t steps = fuser->steps_left;
  const uint32_t *anchors = NULL;
  uint32_t anchor_count = 0;
  CLEAVE_TRY(cleave_pattern_check(fuser->rule->pattern, entry->file, entry->name, error));
  if (partitioner->matcher == NULL) {
    CLEAVE_TRY(cleave_matcher_create(partitioner->contraction, &partitioner->matcher, error));
  }
  CLEAVE_TRY(cleave_matcher_set_pattern(partitioner->matcher, fuser->rule->pattern, error));
  CLEAVE_TRY(cleave_matcher_anchors(partitioner->matcher, &anchors, &anchor_count, error));
  for (uint32_t k = 0; k < anchor_count; k++) {
    uint32_t anchor = anchors[k];
    if (partitioner->states[anchor] == CLEAVE_NODE_TAKEN) {
      continue;
    }
    cleave_match_answer_t answer;
    entry->tries++;
    CLEAVE_TRY(match_at(fuser, anchor, CLEAVE_NODE_TAKEN, &answer, error));
    CLEAVE_TRY(push_match(fuser, anchor, 0, &answer, error));
  }
  // The matches that were found are decided, even if the search for more was given up.
  fuser->steps_left = steps;
  fuser->is_exhausted = false;
  return settle_candidates(fuser, error);
}

cleave_status_t cleave_partitioner_fuse(cleave_partitioner_t *partitioner, const cleave_rule_t *rule,
                                        uint32_t rule_index, cleave_error_t *error) {
  cleave_plan_rule_t *entry = &partitioner->plan->rules[rule_index];
  size_t steps = STEPS_PER_RULE + (size_t)64 * partitioner->contraction->node_count;
  fuser_t fuser = {
      .partitioner = partitioner,
      .rule = rule,
      .rule_index = rule_index,
      .steps_left = steps,
      .shown_left = SHOWN_PER_RULE + (size_t)SHOWN_PER_NODE * partitioner->contraction->node_count};
  uint64_t start = cleave_clock_now();
  uint64_t calls = rule->calls == NULL ? 0 : *rule->calls;
  cleave_status_t status = run_rule(&fuser, error);
  entry->lua_calls += (rule->calls == NULL ? 0 : *rule->calls) - calls;
  entry->nanoseconds += cleave_clock_now() - start;
  cleave_array_free(&fuser.heap);
  cleave_key_set_deinit(&fuser.refused);
  cleave_key_set_deinit(&fuser.counted);
  return status;
}
