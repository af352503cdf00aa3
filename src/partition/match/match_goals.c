// SPDX-License-Identifier: Apache-2.0
// What goals do to the search: they add goals, leave choice points, and record which earlier
// bindings a failure depends on.

#include "base/hash.h"
#include "partition/match/match_state.h"
#include "partition/pattern/pattern_test.h"

goal_t cleave_matcher_goal(goal_kind_t kind, uint32_t pattern, uint32_t next) {
  return (goal_t){.kind = (uint8_t)kind,
                  .pattern = pattern,
                  .entry_pattern = CLEAVE_INDEX_NONE,
                  .output = CLEAVE_INDEX_NONE,
                  .node = CLEAVE_INDEX_NONE,
                  .link = CLEAVE_INDEX_NONE,
                  .value = CLEAVE_VALUE_NONE,
                  .next = next};
}

uint64_t cleave_matcher_sign_goal(const cleave_matcher_t *m, const goal_t *goal) {
  uint64_t hash = goal->next == CLEAVE_INDEX_NONE ? CLEAVE_HASH_SEED : m->goals.items[goal->next].signature;
  hash =
      cleave_hash_combine(hash, (uint64_t)goal->kind << 33 | (uint64_t)goal->swapped << 32 | goal->pattern);
  hash = cleave_hash_combine(hash, (uint64_t)goal->entry_pattern << 32 | goal->output);
  hash = cleave_hash_combine(hash, (uint64_t)goal->node << 32 | goal->k);
  return cleave_hash_combine(hash, goal->value.index);
}

cleave_status_t cleave_matcher_push_goal(cleave_matcher_t *m, goal_t goal, uint32_t *out,
                                         cleave_error_t *error) {
  *out = (uint32_t)m->goals.count;
  if (m->remembers) {
    goal.signature = cleave_matcher_sign_goal(m, &goal);
  }
  CLEAVE_ARRAY_PUSH(&m->goals, goal, error);
  return CLEAVE_OK;
}

cleave_status_t cleave_matcher_leave_choice(cleave_matcher_t *m, uint32_t index, uint32_t alternative,
                                            cleave_error_t *error) {
  choice_t choice = {index, alternative, (uint32_t)m->goals.count, (uint32_t)m->trail.count, m->flow};
  CLEAVE_ARRAY_PUSH(&m->choices, choice, error);
  return CLEAVE_OK;
}

cleave_use_t cleave_matcher_next_use(const cleave_matcher_t *m, step_t *step, uint32_t pattern,
                                     cleave_use_t use) {
  const cleave_pattern_node_t *part = &m->pattern->nodes[pattern];
  while (cleave_use_exists(use)) {
    cleave_node_t user = cleave_use_node(m->graph, use);
    if (cleave_node_exists(user) && cleave_pattern_test_op(part, m->graph, user)) {
      break;
    }
    step->work++;
    use = cleave_use_next(m->graph, use);
  }
  return use;
}

void cleave_matcher_depend(cleave_matcher_t *m, uint32_t trail) {
  if (trail == 0) {
    m->depending = m->frames.count;
    return;
  }
  for (size_t k = m->frames.count; k > m->depending && m->frames.items[k - 1].trail_count > trail; k--) {
    m->frames.items[k - 1].depends = true;
  }
}
