// SPDX-License-Identifier: Apache-2.0
// Joins neighbouring groups: for each group in order, the groups of its producers, the nearest first. Each
// pair is tried once. The search for a cycle is bounded per try and in total; groups that are not known to be
// acyclic together when the budget is spent stay apart.

#include "partition/grow/partitioner.h"

/* Steps per try, and per edge of the graph over all tries. */
#define STEPS_PER_TRY 20000
#define STEPS_PER_EDGE ((size_t)8)

typedef struct merger {
  cleave_partitioner_t *partitioner;
  uint32_t rule_index;
  const int64_t *numbers;
  size_t steps_left;
  bool limit_noted;
  CLEAVE_ARRAY(uint32_t) neighbours;
} merger_t;

static cleave_status_t note_cut(merger_t *merger, uint32_t group, uint32_t other,
                                const cleave_contraction_result_t *result, cleave_error_t *error) {
  cleave_partitioner_t *partitioner = merger->partitioner;
  bool is_limit = result->outcome == CLEAVE_CONTRACTION_LIMIT;
  const cleave_node_t *nodes = partitioner->contraction->nodes;
  if (partitioner->options != NULL) {
    cleave_cut_t cut = {.nodes = {nodes[other], nodes[group]},
                        .outside = is_limit ? CLEAVE_NODE_NONE : nodes[result->outside],
                        .rule = merger->rule_index};
    CLEAVE_TRY(cleave_boundary_log_cut(partitioner->options->log, &cut, error));
  }
  if (partitioner->notes.count >= partitioner->max_notes || (is_limit && merger->limit_noted)) {
    return CLEAVE_OK;
  }
  char a[128];
  char b[128];
  char c[128];
  (void)cleave_partitioner_label(partitioner, other, a, sizeof a);
  (void)cleave_partitioner_label(partitioner, group, b, sizeof b);
  if (is_limit) {
    merger->limit_noted = true;
    return cleave_partitioner_note(partitioner, CLEAVE_PLAN_NOTE_LIMIT, group, merger->rule_index, error,
                                   "'%s' and '%s' stay apart: the search for a cycle took too many steps", a,
                                   b);
  }
  return cleave_partitioner_note(partitioner, CLEAVE_PLAN_NOTE_CYCLE, result->outside, merger->rule_index,
                                 error, "'%s' and '%s' stay apart: a path through '%s' would close a cycle",
                                 a, b, cleave_partitioner_label(partitioner, result->outside, c, sizeof c));
}

static int compare_later_first(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a;
  uint32_t y = *(const uint32_t *)b;
  return (x < y) - (x > y);
}

/* Producers of a group's members that are outside and have its number: one position each, latest first. */
static cleave_status_t find_neighbours(merger_t *merger, uint32_t group, cleave_error_t *error) {
  const cleave_contraction_t *c = merger->partitioner->contraction;
  merger->neighbours.count = 0;
  uint32_t member = group;
  do {
    for (uint32_t e = c->producer_start[member]; e < c->producer_start[member + 1]; e++) {
      uint32_t producer = c->producers[e];
      if (cleave_contraction_group(c, producer) != group &&
          merger->numbers[producer] == merger->numbers[group]) {
        CLEAVE_ARRAY_PUSH(&merger->neighbours, producer, error);
      }
    }
    member = c->next_member[member];
  } while (member != group);
  cleave_array_sort(&merger->neighbours, compare_later_first);
  return CLEAVE_OK;
}

static cleave_status_t merge_group(merger_t *merger, uint32_t group, cleave_error_t *error) {
  cleave_partitioner_t *partitioner = merger->partitioner;
  cleave_contraction_t *c = partitioner->contraction;
  CLEAVE_TRY(find_neighbours(merger, group, error));
  uint32_t failed = CLEAVE_INDEX_NONE; /* the group that was tried last, to skip edges from the same one */
  for (size_t k = 0; k < merger->neighbours.count; k++) {
    uint32_t pair[2] = {merger->neighbours.items[k], group};
    uint32_t other = cleave_contraction_group(c, pair[0]);
    if (other == cleave_contraction_group(c, group) || other == failed) {
      continue;
    }
    cleave_contraction_result_t result;
    size_t limit = merger->steps_left < STEPS_PER_TRY ? merger->steps_left : STEPS_PER_TRY;
    CLEAVE_TRY(cleave_contraction_contract(c, pair, 2, limit, &result, error));
    merger->steps_left -= result.steps < merger->steps_left ? result.steps : merger->steps_left;
    if (result.outcome != CLEAVE_CONTRACTION_DONE) {
      failed = other;
      CLEAVE_TRY(note_cut(merger, group, pair[0], &result, error));
    }
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_partitioner_merge(cleave_partitioner_t *partitioner, uint32_t rule_index,
                                         const uint32_t *groups, uint32_t count, const int64_t *numbers,
                                         size_t edge_count, cleave_error_t *error) {
  merger_t merger = {.partitioner = partitioner,
                     .rule_index = rule_index,
                     .numbers = numbers,
                     .steps_left = STEPS_PER_TRY + STEPS_PER_EDGE * edge_count};
  cleave_status_t status = CLEAVE_OK;
  for (uint32_t k = 0; k < count && status == CLEAVE_OK; k++) {
    status = merge_group(&merger, groups[k], error);
  }
  cleave_array_free(&merger.neighbours);
  return status;
}
