// SPDX-License-Identifier: Apache-2.0
// Overlapping matches of one rewrite. All matches found wait in a heap, the largest first, then by position;
// but matches with nodes of newer applications come before the rest, so that a rule that matches its own
// substitutes is detected early. A candidate is matched again when it is popped. Matches that were refused at
// an anchor are remembered until the anchor is tried again because a node near it has changed.
#include <stdio.h>
#include <string.h>

#include "base/containers/heap.h"
#include "partition/rewrite/rewrite_state.h"

void cleave_rewrite_queue_clear(cleave_rewrite_queue_t *queue) {
  queue->heap.count = 0;
  queue->nodes.count = 0;
  queue->round = 0;
  cleave_key_set_clear(&queue->refused);
  for (size_t k = 0; k < queue->takers.count; k++) {
    queue->takers.items[k] = CLEAVE_INDEX_NONE;
    queue->rounds.items[k] = 0;
  }
}

void cleave_rewrite_queue_deinit(cleave_rewrite_queue_t *queue) {
  cleave_array_free(&queue->heap);
  cleave_array_free(&queue->nodes);
  cleave_array_free(&queue->looks);
  cleave_array_free(&queue->rounds);
  cleave_array_free(&queue->takers);
  cleave_key_set_deinit(&queue->refused);
}

cleave_status_t cleave_rewrite_queue_grow(cleave_rewrite_queue_t *queue, uint32_t bound,
                                          cleave_error_t *error) {
  while (queue->looks.count < bound) {
    CLEAVE_ARRAY_PUSH(&queue->looks, 0, error);
  }
  while (queue->rounds.count < bound) {
    CLEAVE_ARRAY_PUSH(&queue->rounds, queue->round, error);
  }
  while (queue->takers.count < bound) {
    CLEAVE_ARRAY_PUSH(&queue->takers, CLEAVE_INDEX_NONE, error);
  }
  return CLEAVE_OK;
}

void cleave_rewrite_queue_look(cleave_rewrite_queue_t *queue, cleave_node_t anchor) {
  queue->looks.items[anchor.index]++;
}

// ---- refusals ----

static uint64_t key_of(const cleave_rewrite_queue_t *queue, cleave_node_t anchor, uint64_t hash) {
  uint64_t look = (uint64_t)anchor.index << 32 | queue->looks.items[anchor.index];
  return hash ^ look * UINT64_C(0x9e3779b97f4a7c15);
}

bool cleave_rewrite_queue_is_refused(const cleave_rewrite_queue_t *queue, cleave_node_t anchor,
                                     uint64_t hash) {
  return cleave_key_set_has(&queue->refused, key_of(queue, anchor, hash));
}

cleave_status_t cleave_rewrite_queue_refuse(cleave_rewrite_queue_t *queue, cleave_node_t anchor,
                                            uint64_t hash, cleave_error_t *error) {
  return cleave_key_set_add(&queue->refused, key_of(queue, anchor, hash), error);
}

// ---- the heap ----

static bool goes_before(const void *one, const void *other) {
  const cleave_rewrite_candidate_t *a = one;
  const cleave_rewrite_candidate_t *b = other;
  if (a->round != b->round) {
    return a->round > b->round;
  }
  if (a->size != b->size) {
    return a->size > b->size;
  }
  if (a->first != b->first) {
    return a->first < b->first;
  }
  return a->position != b->position ? a->position < b->position : a->look > b->look;
}

cleave_status_t cleave_rewrite_queue_push(cleave_rewriter_t *rewriter, cleave_node_t anchor,
                                          uint32_t refusals, const cleave_match_answer_t *answer,
                                          cleave_error_t *error) {
  cleave_rewrite_queue_t *queue = &rewriter->queue;
  const cleave_match_t *match = answer->match;
  cleave_rewrite_candidate_t candidate = {.anchor = anchor.index,
                                          .look = queue->looks.items[anchor.index],
                                          .size = match->node_count,
                                          .first = rewriter->order.positions[match->nodes[0].index],
                                          .position = rewriter->order.positions[anchor.index],
                                          .refusals = refusals,
                                          .nodes = queue->nodes.count,
                                          .hash = answer->hash};
  CLEAVE_TRY(cleave_array_reserve(&queue->nodes, match->node_count, error));
  CLEAVE_ARRAY_PUSH(&queue->heap, candidate, error);
  for (uint32_t k = 0; k < match->node_count; k++) {
    uint32_t round = queue->rounds.items[match->nodes[k].index];
    cleave_rewrite_candidate_t *added = &queue->heap.items[queue->heap.count - 1];
    added->round = round > added->round ? round : added->round;
    cleave_array_push_reserved(&queue->nodes, match->nodes[k].index);
  }
  cleave_heap_add_last(queue->heap.items, queue->heap.count, sizeof candidate, goes_before);
  return CLEAVE_OK;
}

bool cleave_rewrite_queue_pop(cleave_rewrite_queue_t *queue, cleave_rewrite_candidate_t *out_candidate,
                              bool *out_is_current) {
  if (queue->heap.count == 0) {
    return false;
  }
  cleave_heap_move_first_to_end(queue->heap.items, queue->heap.count, sizeof *out_candidate, goes_before);
  *out_candidate = queue->heap.items[--queue->heap.count];
  *out_is_current = queue->looks.items[out_candidate->anchor] == out_candidate->look;
  return true;
}

// ---- losers ----

void cleave_rewrite_queue_applied(cleave_rewriter_t *rewriter) {
  rewriter->queue.round++;
  const cleave_editor_t *editor = rewriter->editor;
  if (editor->log == NULL || editor->log->groups.count == 0) {
    return;
  }
  for (size_t k = 0; k < editor->removed.count; k++) {
    if (editor->removed.items[k] < rewriter->queue.takers.count) {
      rewriter->queue.takers.items[editor->removed.items[k]] = (uint32_t)editor->log->groups.count - 1;
    }
  }
}

cleave_status_t cleave_rewrite_queue_note_loss(cleave_rewriter_t *rewriter, const cleave_rule_run_t *run,
                                               const cleave_rewrite_candidate_t *candidate,
                                               cleave_error_t *error) {
  const cleave_graph_t *graph = rewriter->editor->graph;
  cleave_edits_t *log = rewriter->editor->log;
  const uint32_t *nodes = rewriter->queue.nodes.items + candidate->nodes;
  uint32_t taker = CLEAVE_INDEX_NONE;
  uint32_t taken = 0;
  for (uint32_t k = 0; log != NULL && k < candidate->size; k++) {
    uint32_t group = rewriter->queue.takers.items[nodes[k]];
    taker = taker == CLEAVE_INDEX_NONE ? group : taker;
    taken += group != CLEAVE_INDEX_NONE && group == taker;
  }
  // A match of the same nodes from another anchor does not count as lost.
  if (taker == CLEAVE_INDEX_NONE ||
      (taken == candidate->size && taken == log->groups.items[taker].nodes_taken)) {
    return CLEAVE_OK;
  }
  char label[128];
  char reason[256];
  const char *place =
      cleave_node_label(graph, (cleave_node_t){nodes[candidate->size - 1]}, label, sizeof label);
  // Neither did a match with more or fewer nodes at the same place.
  if (strcmp(place, log->groups.items[taker].place) == 0) {
    return CLEAVE_OK;
  }
  (void)snprintf(reason, sizeof reason, "taken by %s '%.80s' at '%.100s'",
                 cleave_rule_kind_name(run->rule->kind), run->rule->name, log->groups.items[taker].place);
  return cleave_edits_refuse(log, run->log_rule, place, reason, error);
}
