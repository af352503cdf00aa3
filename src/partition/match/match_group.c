// SPDX-License-Identifier: Apache-2.0
// Goals of a group. Each member after the first is found by climbing from what it shares with the members
// before it to one of its operators (pattern_path.h); from there it is matched like any pattern.

#include "partition/match/match_state.h"

/* The member at a node: forwards from its first operator, or backwards from its last one. */
static cleave_status_t begin_member(cleave_matcher_t *m, step_t *step, const cleave_pattern_path_t *path,
                                    uint32_t member, uint32_t node, uint32_t next, cleave_error_t *error) {
  goal_t goal = cleave_matcher_goal(path->is_backward ? GOAL_BACKWARD : GOAL_ANCHOR, member, next);
  if (path->is_backward) {
    const cleave_pattern_hop_t *last = &path->hops[path->hop_count - 1];
    goal.value = cleave_node_output(m->graph, m->contraction->nodes[node], last->output);
    goal_t flow = cleave_matcher_goal(GOAL_FLOW, member, next);
    flow.value = goal.value;
    step->fits = cleave_value_exists(goal.value);
    CLEAVE_TRY(cleave_matcher_push_goal(m, flow, &goal.next, error));
  } else {
    goal.node = node;
  }
  return cleave_matcher_push_goal(m, goal, &step->next, error);
}

/* The value that a path starts from, or NONE. */
static cleave_value_t start_of(const cleave_matcher_t *m, const cleave_pattern_path_t *path) {
  cleave_value_t value = cleave_matcher_known_value(m, path->start);
  if (!cleave_value_exists(value) || path->output == CLEAVE_INDEX_NONE) {
    return value;
  }
  return cleave_node_output(m->graph, cleave_value_producer(m->graph, value), path->output);
}

/* The first path from `k` on whose start is known, or `end`. */
static uint32_t next_path(const cleave_matcher_t *m, const cleave_pattern_path_t *paths, uint32_t k,
                          uint32_t end) {
  while (k < end && !cleave_value_exists(start_of(m, &paths[k]))) {
    k++;
  }
  return k;
}

/* Alternatives are paths. */
cleave_status_t cleave_matcher_run_member(cleave_matcher_t *m, step_t *step, cleave_error_t *error) {
  goal_t goal = m->goals.items[step->index];
  const cleave_pattern_node_t *part = &m->pattern->nodes[goal.pattern];
  const cleave_pattern_paths_t *paths = &m->paths[goal.pattern];
  uint32_t next = goal.next;
  // The flow continues at the end of the member before.
  CLEAVE_TRY(step->alternative == 0 ? cleave_matcher_run_exit(m, error) : CLEAVE_OK);
  if (goal.k >= part->child_count) {
    return CLEAVE_OK;
  }
  uint32_t end = paths->starts[goal.k + 1];
  uint32_t k = next_path(m, paths->items, paths->starts[goal.k] + step->alternative, end);
  if (k == end) {
    step->fits = false;
    return CLEAVE_OK;
  }
  uint32_t following = next_path(m, paths->items, k + 1, end);
  if (following < end) {
    CLEAVE_TRY(cleave_matcher_leave_choice(m, step->index, following - paths->starts[goal.k], error));
  }
  goal_t rest = goal;
  rest.k++;
  CLEAVE_TRY(cleave_matcher_push_goal(m, rest, &next, error));
  const cleave_pattern_path_t *path = &paths->items[k];
  cleave_value_t start = start_of(m, path);
  if (path->hop_count == 0) {
    uint32_t node = m->contraction->positions[cleave_value_producer(m->graph, start).index];
    return begin_member(m, step, path, part->children[goal.k], node, next, error);
  }
  goal_t climb = cleave_matcher_goal(GOAL_CLIMB, part->children[goal.k], next);
  climb.output = goal.pattern;
  climb.node = k;
  climb.value = start;
  return cleave_matcher_push_goal(m, climb, &step->next, error);
}

/* Alternatives are the uses of the value by the operator of the hop. */
cleave_status_t cleave_matcher_run_climb(cleave_matcher_t *m, step_t *step, cleave_error_t *error) {
  goal_t goal = m->goals.items[step->index];
  const cleave_pattern_path_t *path = &m->paths[goal.output].items[goal.node];
  const cleave_pattern_hop_t *hop = &path->hops[goal.k];
  cleave_use_t use = {step->alternative};
  if (step->alternative == 0) {
    use = cleave_matcher_next_use(m, step, hop->pattern, cleave_value_first_use(m->graph, goal.value));
  } else {
    use.index--;
  }
  step->fits = cleave_use_exists(use);
  if (!step->fits) {
    return CLEAVE_OK;
  }
  cleave_use_t following = cleave_matcher_next_use(m, step, hop->pattern, cleave_use_next(m->graph, use));
  if (cleave_use_exists(following)) {
    CLEAVE_TRY(cleave_matcher_leave_choice(m, step->index, following.index + 1, error));
  }
  cleave_node_t user = cleave_use_node(m->graph, use);
  if (goal.k + 1 == path->hop_count) {
    return begin_member(m, step, path, goal.pattern, m->contraction->positions[user.index], goal.next, error);
  }
  goal_t above = goal;
  above.k++;
  above.value = cleave_node_output(m->graph, user, hop->output);
  step->fits = cleave_value_exists(above.value);
  return cleave_matcher_push_goal(m, above, &step->next, error);
}

cleave_status_t cleave_matcher_run_exit(cleave_matcher_t *m, cleave_error_t *error) {
  if (!cleave_value_exists(m->flow.value)) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(cleave_array_reserve(&m->exits, 1, error));
  CLEAVE_TRY(cleave_matcher_push_trail(m, TRAIL_EXIT, 0, 0, error));
  cleave_array_push_reserved(&m->exits, m->flow.value);
  return CLEAVE_OK;
}
