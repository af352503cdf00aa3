// SPDX-License-Identifier: Apache-2.0
// Goals that follow the data flow: forwards from the value that a part made to its readers, backwards from a
// value to its producer. A part that is used in several places is matched once; when it is met again, it must
// begin and end as before.

#include "partition/match/match_state.h"

static const flow_t NO_FLOW = {{CLEAVE_INDEX_NONE}, CLEAVE_INDEX_NONE, CLEAVE_INDEX_NONE};

static flow_t flow_at(cleave_value_t value) {
  return (flow_t){value, CLEAVE_INDEX_NONE, CLEAVE_INDEX_NONE};
}

/* Names the edge into an input of a taken node. If the node was taken before, the same edge may be named
 * twice. */
static cleave_status_t enter(cleave_matcher_t *m, uint32_t node, uint32_t port, bool was_taken,
                             bool *out_fits, cleave_error_t *error) {
  uint32_t link = cleave_matcher_find_link(m, node, port);
  if (link == CLEAVE_INDEX_NONE) {
    return cleave_matcher_add_link(m, node, port, CLEAVE_INDEX_NONE, true, &link, error);
  }
  cleave_matcher_depend(m, m->links.items[link].trail);
  *out_fits = was_taken && m->links.items[link].internal;
  return CLEAVE_OK;
}

/* Adds the goals for an OP at a node: the inputs that it names, then those of its neighbours in a sequence.
 */
static cleave_status_t match_op(cleave_matcher_t *m, step_t *step, const goal_t *goal, uint32_t node,
                                uint32_t entry_port, cleave_error_t *error) {
  const cleave_pattern_node_t *part = &m->pattern->nodes[goal->pattern];
  bool is_new = false;
  bool was_taken = m->owners[node] != CLEAVE_INDEX_NONE;
  if (part->input_count > 1 &&
      !cleave_matcher_node_may_match(m, goal->pattern, m->contraction->nodes[node])) {
    step->fits = false;
    return CLEAVE_OK;
  }
  CLEAVE_TRY(cleave_matcher_take_node(m, step->request, goal->pattern, node, &is_new, &step->fits, error));
  if (step->fits && entry_port != CLEAVE_INDEX_NONE) {
    CLEAVE_TRY(enter(m, node, entry_port, was_taken, &step->fits, error));
  }
  if (!step->fits) {
    return CLEAVE_OK;
  }
  uint32_t next = goal->next;
  goal_t flow = cleave_matcher_goal(GOAL_FLOW, goal->pattern, next);
  if (goal->kind == GOAL_BACKWARD) {
    flow.node = node;
  } else {
    uint32_t output = goal->output == CLEAVE_INDEX_NONE ? part->output : goal->output;
    flow.value = cleave_node_output(m->graph, m->contraction->nodes[node], output);
    if (!cleave_value_exists(flow.value)) {
      step->fits = false;
      return CLEAVE_OK;
    }
  }
  CLEAVE_TRY(cleave_matcher_push_goal(m, flow, &next, error));
  if (goal->entry_pattern != CLEAVE_INDEX_NONE) {
    goal_t entry = cleave_matcher_goal(GOAL_ENTRY, goal->entry_pattern, next);
    entry.node = node;
    CLEAVE_TRY(cleave_matcher_push_goal(m, entry, &next, error));
  }
  if (is_new && part->input_count > 0) {
    goal_t inputs = cleave_matcher_goal(GOAL_SWAP, goal->pattern, next);
    inputs.node = node;
    bool is_open = goal->kind == GOAL_BACKWARD || goal->entry_pattern != CLEAVE_INDEX_NONE;
    inputs.output = is_open && m->is_entered[goal->pattern] ? 0 : CLEAVE_INDEX_NONE;
    CLEAVE_TRY(cleave_matcher_push_goal(m, inputs, &next, error));
  }
  step->next = next;
  return CLEAVE_OK;
}

/* Forwards into an OP: alternatives are the uses of the flow. */
static cleave_status_t forward_op(cleave_matcher_t *m, step_t *step, const goal_t *goal,
                                  cleave_error_t *error) {
  step->fits = false;
  if (!cleave_value_exists(m->flow.value)) {
    return CLEAVE_OK;
  }
  cleave_use_t use = {step->alternative};
  if (step->alternative == 0) {
    cleave_node_t producer = cleave_value_producer(m->graph, m->flow.value);
    uint32_t owner = cleave_node_exists(producer) ? m->owners[m->contraction->positions[producer.index]]
                                                  : CLEAVE_INDEX_NONE;
    if (owner != CLEAVE_INDEX_NONE &&
        cleave_matcher_has_other_uses(m, m->taken.items[owner].pattern, m->flow.value)) {
      // Another part that made the flow might share it.
      cleave_matcher_depend(m, m->taken.items[owner].trail);
      return CLEAVE_OK;
    }
    use = cleave_matcher_next_use(m, step, goal->pattern, cleave_value_first_use(m->graph, m->flow.value));
  } else {
    use.index--;
  }
  if (!cleave_use_exists(use)) {
    return CLEAVE_OK;
  }
  cleave_use_t following = cleave_matcher_next_use(m, step, goal->pattern, cleave_use_next(m->graph, use));
  if (cleave_use_exists(following)) {
    CLEAVE_TRY(cleave_matcher_leave_choice(m, step->index, following.index + 1, error));
  }
  uint32_t node = m->contraction->positions[cleave_use_node(m->graph, use).index];
  return match_op(m, step, goal, node, cleave_use_input_index(m->graph, use), error);
}

// ---- parts that are used again ----

/* Forwards: a part that is already bound must begin at the flow, and keeps its end. */
static cleave_status_t rejoin_forward(cleave_matcher_t *m, step_t *step, const goal_t *goal,
                                      cleave_error_t *error) {
  flow_t start =
      m->starts[goal->pattern] == CLEAVE_INDEX_NONE ? NO_FLOW : m->flows.items[m->starts[goal->pattern]];
  cleave_matcher_depend(m, 0);
  if (goal->kind == GOAL_ANCHOR || cleave_value_exists(start.value)) {
    step->fits = goal->kind == GOAL_ANCHOR || start.value.index == m->flow.value.index;
  } else {
    // The part was matched backwards: some input of its first node is still free.
    uint32_t port = start.node == CLEAVE_INDEX_NONE || !cleave_value_exists(m->flow.value)
                        ? CLEAVE_INDEX_NONE
                        : cleave_matcher_port_of(m, start.node, m->flow.value);
    step->fits = port != CLEAVE_INDEX_NONE;
    if (step->fits) {
      CLEAVE_TRY(enter(m, start.node, port, true, &step->fits, error));
    }
  }
  m->flow = flow_at(m->bound_values[goal->pattern]);
  return CLEAVE_OK;
}

/* Backwards: a part that was matched before ends in the value of the goal; it begins where it began. */
static cleave_status_t rejoin_backward(cleave_matcher_t *m, const goal_t *goal, cleave_error_t *error) {
  cleave_matcher_depend(m, 0);
  if (m->starts[goal->pattern] != CLEAVE_INDEX_NONE) {
    m->flow = m->flows.items[m->starts[goal->pattern]];
  }
  cleave_node_t producer = cleave_value_producer(m->graph, goal->value);
  bool is_inside = cleave_node_exists(producer) &&
                   m->owners[m->contraction->positions[producer.index]] != CLEAVE_INDEX_NONE;
  return is_inside ? cleave_matcher_mark_internal(m, goal->link, CLEAVE_INDEX_NONE, error) : CLEAVE_OK;
}

cleave_status_t cleave_matcher_run_end(cleave_matcher_t *m, step_t *step, cleave_error_t *error) {
  goal_t goal = m->goals.items[step->index];
  if (goal.kind == GOAL_END_BACKWARD) {
    return cleave_matcher_bind_start(m, goal.pattern, m->flow, error);
  }
  CLEAVE_TRY(cleave_matcher_bind_start(m, goal.pattern, flow_at(goal.value), error));
  return cleave_matcher_bind_value(m, goal.pattern, m->flow.value, &step->fits, error);
}

// ---- forwards ----

static bool may_be_skipped(const cleave_pattern_node_t *part) {
  return part->kind == CLEAVE_PATTERN_MAYBE || (part->kind == CLEAVE_PATTERN_REPEATED && part->min == 0);
}

/* A sequence from its first part on. Its anchor may be any part that those before it may leave out. */
static cleave_status_t forward_sequence(cleave_matcher_t *m, step_t *step, const goal_t *goal,
                                        cleave_error_t *error) {
  const cleave_pattern_node_t *part = &m->pattern->nodes[goal->pattern];
  bool anchored = goal->kind == GOAL_ANCHOR;
  bool has_value = cleave_pattern_is_value(&m->pattern->nodes[part->children[0]]);
  uint32_t at = (has_value ? 1 : 0) + step->alternative;
  if (!anchored && has_value) {
    step->fits = false;
    return CLEAVE_OK;
  }
  if (anchored && at + 1 < part->child_count && may_be_skipped(&m->pattern->nodes[part->children[at]])) {
    CLEAVE_TRY(cleave_matcher_leave_choice(m, step->index, step->alternative + 1, error));
  }
  goal_t first = *goal;
  goal_t rest = cleave_matcher_goal(GOAL_FORWARD_NEXT, goal->pattern, goal->next);
  rest.k = at + 1;
  CLEAVE_TRY(cleave_matcher_push_goal(m, rest, &first.next, error));
  first.pattern = part->children[at];
  first.entry_pattern = has_value ? part->children[0] : goal->entry_pattern;
  return cleave_matcher_push_goal(m, first, &step->next, error);
}

static cleave_status_t forward_repeated(cleave_matcher_t *m, step_t *step, const goal_t *goal,
                                        cleave_error_t *error) {
  goal_t rest = cleave_matcher_goal(GOAL_FORWARD_REPEAT, goal->pattern, goal->next);
  if (goal->kind != GOAL_ANCHOR) {
    return cleave_matcher_push_goal(m, rest, &step->next, error);
  }
  goal_t first = *goal;
  rest.k = 1;
  CLEAVE_TRY(cleave_matcher_push_goal(m, rest, &first.next, error));
  first.pattern = m->pattern->nodes[goal->pattern].children[0];
  return cleave_matcher_push_goal(m, first, &step->next, error);
}

cleave_status_t cleave_matcher_run_forward(cleave_matcher_t *m, step_t *step, cleave_error_t *error) {
  goal_t goal = m->goals.items[step->index];
  const cleave_pattern_node_t *part = &m->pattern->nodes[goal.pattern];
  bool anchored = goal.kind == GOAL_ANCHOR;
  if (m->is_reused[goal.pattern] && cleave_pattern_has_children(part)) {
    if (cleave_value_exists(m->bound_values[goal.pattern])) {
      return rejoin_forward(m, step, &goal, error);
    }
    goal_t end = cleave_matcher_goal(GOAL_END_FORWARD, goal.pattern, goal.next);
    end.value = anchored ? CLEAVE_VALUE_NONE : m->flow.value;
    CLEAVE_TRY(cleave_matcher_push_goal(m, end, &goal.next, error));
  }
  goal_t first = goal;
  switch (part->kind) {
    case CLEAVE_PATTERN_OP:
      return anchored ? match_op(m, step, &goal, goal.node, CLEAVE_INDEX_NONE, error)
                      : forward_op(m, step, &goal, error);
    case CLEAVE_PATTERN_SEQUENCE: return forward_sequence(m, step, &goal, error);
    case CLEAVE_PATTERN_REPEATED: return forward_repeated(m, step, &goal, error);
    case CLEAVE_PATTERN_MAYBE:
      if (step->alternative == 1) {
        step->next = goal.next;
        return CLEAVE_OK;
      }
      if (!anchored) {
        CLEAVE_TRY(cleave_matcher_leave_choice(m, step->index, 1, error));
      }
      first.pattern = part->children[0];
      break;
    case CLEAVE_PATTERN_ONEOF:
      if (step->alternative + 1 < part->child_count) {
        CLEAVE_TRY(cleave_matcher_leave_choice(m, step->index, step->alternative + 1, error));
      }
      first.pattern = part->children[step->alternative];
      break;
    case CLEAVE_PATTERN_OUTPUT: {
      goal_t value = cleave_matcher_goal(GOAL_OUTPUT, goal.pattern, goal.next);
      CLEAVE_TRY(cleave_matcher_push_goal(m, value, &first.next, error));
      first.pattern = part->children[0];
      first.output = part->output;
      break;
    }
    case CLEAVE_PATTERN_GROUP: {
      goal_t members = cleave_matcher_goal(GOAL_MEMBER, goal.pattern, goal.next);
      members.k = 1;
      CLEAVE_TRY(cleave_matcher_push_goal(m, members, &first.next, error));
      first.pattern = part->children[0];
      break;
    }
    case CLEAVE_PATTERN_VALUE:
    case CLEAVE_PATTERN_CONSTANT:
    case CLEAVE_PATTERN_ABSENT:
    case CLEAVE_PATTERN_VARIADIC: step->fits = false; return CLEAVE_OK;
  }
  return cleave_matcher_push_goal(m, first, &step->next, error);
}

/* Decides whether goal.k repetitions are enough, with a choice point if more may follow. *out_goes_on: there
 * is to be another one. */
static cleave_status_t decide_repetition(cleave_matcher_t *m, step_t *step, const goal_t *goal,
                                         bool *out_goes_on, cleave_error_t *error) {
  const cleave_pattern_node_t *part = &m->pattern->nodes[goal->pattern];
  bool may_stop = goal->k >= part->min;
  *out_goes_on = step->alternative != 1 && goal->k < part->max;
  if (!*out_goes_on) {
    step->fits = may_stop;
    return CLEAVE_OK;
  }
  if (may_stop) {
    CLEAVE_TRY(cleave_matcher_leave_choice(m, step->index, 1, error));
  }
  return goal->k > 0 ? cleave_matcher_forget(m, goal->pattern, error) : CLEAVE_OK;
}

/* The next part of a sequence, or the next repetition. */
cleave_status_t cleave_matcher_run_forward_next(cleave_matcher_t *m, step_t *step, cleave_error_t *error) {
  goal_t goal = m->goals.items[step->index];
  const cleave_pattern_node_t *part = &m->pattern->nodes[goal.pattern];
  goal_t rest = goal;
  rest.k++;
  uint32_t next = goal.next;
  if (goal.kind == GOAL_FORWARD_NEXT) {
    if (goal.k >= part->child_count) {
      return CLEAVE_OK;
    }
    CLEAVE_TRY(cleave_matcher_push_goal(m, rest, &next, error));
    return cleave_matcher_push_goal(m, cleave_matcher_goal(GOAL_FORWARD, part->children[goal.k], next),
                                    &step->next, error);
  }
  bool goes_on = false;
  CLEAVE_TRY(decide_repetition(m, step, &goal, &goes_on, error));
  if (!goes_on) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(cleave_matcher_push_goal(m, rest, &next, error));
  return cleave_matcher_push_goal(m, cleave_matcher_goal(GOAL_FORWARD, part->children[0], next), &step->next,
                                  error);
}

// ---- backwards ----

/* Output `output` of the node that an OP matches is the value of the goal. */
static cleave_status_t backward_op(cleave_matcher_t *m, step_t *step, goal_t *goal, uint32_t output,
                                   cleave_error_t *error) {
  cleave_node_t producer = cleave_value_producer(m->graph, goal->value);
  if (!cleave_node_exists(producer) || cleave_graph_value(m->graph, goal->value)->output_index != output ||
      cleave_matcher_has_other_uses(m, goal->pattern, goal->value)) {
    step->fits = false;
    return CLEAVE_OK;
  }
  CLEAVE_TRY(cleave_matcher_mark_internal(m, goal->link, CLEAVE_INDEX_NONE, error));
  return match_op(m, step, goal, m->contraction->positions[producer.index], CLEAVE_INDEX_NONE, error);
}

static cleave_status_t backward_output(cleave_matcher_t *m, step_t *step, goal_t *goal,
                                       cleave_error_t *error) {
  const cleave_pattern_node_t *part = &m->pattern->nodes[goal->pattern];
  CLEAVE_TRY(cleave_matcher_take_value(m, goal->pattern, goal->value, CLEAVE_INDEX_NONE, &step->fits, error));
  if (!step->fits) {
    return CLEAVE_OK;
  }
  goal->pattern = part->children[0];
  return backward_op(m, step, goal, part->output, error);
}

/* A part with children, from the value that it ends in, or from a free input of a node. */
static cleave_status_t backward_children(cleave_matcher_t *m, step_t *step, const goal_t *goal,
                                         cleave_error_t *error) {
  const cleave_pattern_node_t *part = &m->pattern->nodes[goal->pattern];
  goal_t inner = *goal;
  bool is_missing = !cleave_value_exists(goal->value) && goal->node == CLEAVE_INDEX_NONE;
  step->fits = true;
  if (part->kind == CLEAVE_PATTERN_ONEOF) {
    if (step->alternative + 1 < part->child_count) {
      CLEAVE_TRY(cleave_matcher_leave_choice(m, step->index, step->alternative + 1, error));
    }
    inner.pattern = part->children[step->alternative];
  } else if (part->kind == CLEAVE_PATTERN_MAYBE) {
    if (step->alternative == 1 || is_missing) {
      m->flow = (flow_t){goal->value, goal->link, goal->node};
      step->next = goal->next;
      return CLEAVE_OK;
    }
    CLEAVE_TRY(cleave_matcher_leave_choice(m, step->index, 1, error));
    inner.pattern = part->children[0];
  } else if (part->kind == CLEAVE_PATTERN_SEQUENCE || part->kind == CLEAVE_PATTERN_REPEATED) {
    m->flow = (flow_t){goal->value, goal->link, goal->node};
    inner.kind = part->kind == CLEAVE_PATTERN_SEQUENCE ? GOAL_BACKWARD_NEXT : GOAL_BACKWARD_REPEAT;
    inner.k = part->kind == CLEAVE_PATTERN_SEQUENCE ? part->child_count : 0;
    inner.value = CLEAVE_VALUE_NONE;
    inner.link = CLEAVE_INDEX_NONE;
    inner.node = CLEAVE_INDEX_NONE;
  } else {
    step->fits = false;
    return CLEAVE_OK;
  }
  return cleave_matcher_push_goal(m, inner, &step->next, error);
}

cleave_status_t cleave_matcher_run_backward(cleave_matcher_t *m, step_t *step, cleave_error_t *error) {
  goal_t goal = m->goals.items[step->index];
  const cleave_pattern_node_t *part = &m->pattern->nodes[goal.pattern];
  bool exists = cleave_value_exists(goal.value);
  bool is_open = !exists && goal.node != CLEAVE_INDEX_NONE;
  bool has_children = cleave_pattern_has_children(part);
  bool is_reused = m->is_reused[goal.pattern];
  if (is_open && (!has_children || is_reused || part->kind == CLEAVE_PATTERN_OUTPUT)) {
    goal.kind = GOAL_ENTRY;
    return cleave_matcher_push_goal(m, goal, &step->next, error);
  }
  if (exists && has_children && part->kind != CLEAVE_PATTERN_OUTPUT && step->alternative == 0) {
    // A part of several operators that is reached twice must end in the same value both times.
    bool was_bound = cleave_value_exists(m->bound_values[goal.pattern]);
    CLEAVE_TRY(cleave_matcher_bind_value(m, goal.pattern, goal.value, &step->fits, error));
    if (was_bound || !step->fits) {
      return step->fits ? rejoin_backward(m, &goal, error) : CLEAVE_OK;
    }
  }
  if (exists && has_children && is_reused && part->kind != CLEAVE_PATTERN_OUTPUT) {
    goal_t end = cleave_matcher_goal(GOAL_END_BACKWARD, goal.pattern, goal.next);
    CLEAVE_TRY(cleave_matcher_push_goal(m, end, &goal.next, error));
  }
  switch (part->kind) {
    case CLEAVE_PATTERN_OP:
      step->fits = exists;
      return exists ? backward_op(m, step, &goal, part->output, error) : CLEAVE_OK;
    case CLEAVE_PATTERN_OUTPUT:
      step->fits = exists;
      return exists ? backward_output(m, step, &goal, error) : CLEAVE_OK;
    case CLEAVE_PATTERN_VALUE:
    case CLEAVE_PATTERN_CONSTANT:
      step->fits = exists;
      return exists ? cleave_matcher_take_value(m, goal.pattern, goal.value, goal.link, &step->fits, error)
                    : CLEAVE_OK;
    case CLEAVE_PATTERN_ABSENT: step->fits = !exists; return CLEAVE_OK;
    case CLEAVE_PATTERN_SEQUENCE:
    case CLEAVE_PATTERN_MAYBE:
    case CLEAVE_PATTERN_ONEOF:
    case CLEAVE_PATTERN_REPEATED: return backward_children(m, step, &goal, error);
    case CLEAVE_PATTERN_VARIADIC:
    case CLEAVE_PATTERN_GROUP: step->fits = false; return CLEAVE_OK;
  }
  return CLEAVE_OK;
}

/* The part before in a sequence (goal.k parts are left), or one repetition more, which ends in the flow. */
cleave_status_t cleave_matcher_run_backward_next(cleave_matcher_t *m, step_t *step, cleave_error_t *error) {
  goal_t goal = m->goals.items[step->index];
  const cleave_pattern_node_t *part = &m->pattern->nodes[goal.pattern];
  goal_t rest = goal;
  goal_t inner = cleave_matcher_goal(GOAL_BACKWARD, part->children[0], goal.next);
  if (goal.kind == GOAL_BACKWARD_NEXT) {
    rest.k--;
    inner.pattern = part->children[rest.k];
    if (rest.k > 0) {
      CLEAVE_TRY(cleave_matcher_push_goal(m, rest, &inner.next, error));
    }
  } else {
    bool goes_on = false;
    CLEAVE_TRY(decide_repetition(m, step, &goal, &goes_on, error));
    if (!goes_on) {
      return CLEAVE_OK;
    }
    rest.k++;
    CLEAVE_TRY(cleave_matcher_push_goal(m, rest, &inner.next, error));
  }
  inner.value = m->flow.value;
  inner.link = m->flow.link;
  inner.node = m->flow.node;
  return cleave_matcher_push_goal(m, inner, &step->next, error);
}
