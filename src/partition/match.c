// SPDX-License-Identifier: Apache-2.0
// The search: a stack of goals with choice points and an undo trail, as in a Prolog machine. A goal that has
// alternatives left leaves a choice point before it runs; a failure goes back to the last of them. Invariant:
// whatever a goal binds is on the trail, and a finished search undoes all.

#include "partition/match.h"

#include "partition/match_state.h"

// ---- goals ----

static goal_t goal_of(goal_kind_t kind, uint32_t pattern, uint32_t next) {
  return (goal_t){.kind = (uint8_t)kind,
                  .pattern = pattern,
                  .entry_pattern = CLEAVE_INDEX_NONE,
                  .node = CLEAVE_INDEX_NONE,
                  .link = CLEAVE_INDEX_NONE,
                  .value = CLEAVE_VALUE_NONE,
                  .next = next};
}

/* Adds a goal in front of goal->next; returns its index, through *out. */
static cleave_status_t push_goal(cleave_matcher_t *m, goal_t goal, uint32_t *out, cleave_error_t *error) {
  *out = (uint32_t)m->goals.count;
  CLEAVE_ARRAY_PUSH(&m->goals, goal, error);
  return CLEAVE_OK;
}

/* Leaves a choice point: `goal` again with `alternative`, from the state as it is now. */
static cleave_status_t leave_choice(cleave_matcher_t *m, uint32_t goal, uint32_t alternative,
                                    cleave_error_t *error) {
  choice_t choice = {.goal = goal,
                     .alternative = alternative,
                     .goal_count = (uint32_t)m->goals.count,
                     .trail_count = (uint32_t)m->trail.count,
                     .flow = m->flow,
                     .flow_link = m->flow_link,
                     .flow_node = m->flow_node};
  CLEAVE_ARRAY_PUSH(&m->choices, choice, error);
  return CLEAVE_OK;
}

/* Goals for an OP at a node: the inputs that it names, then what the neighbours in a sequence need. */
static cleave_status_t match_op(cleave_matcher_t *m, const cleave_match_request_t *request,
                                const goal_t *goal, uint32_t node, uint32_t entry_port, uint32_t *out_next,
                                bool *out_fits, cleave_error_t *error) {
  bool is_new = false;
  CLEAVE_TRY(cleave_matcher_take_node(m, request, goal->pattern, node, &is_new, out_fits, error));
  if (!*out_fits) {
    return CLEAVE_OK;
  }
  if (entry_port != CLEAVE_INDEX_NONE) {
    uint32_t link = CLEAVE_INDEX_NONE;
    if (!cleave_matcher_port_is_free(m, node, entry_port)) {
      *out_fits = false;
      return CLEAVE_OK;
    }
    CLEAVE_TRY(cleave_matcher_add_link(m, node, entry_port, true, &link, error));
  }
  uint32_t next = goal->next;
  const cleave_pattern_node_t *part = &m->pattern->nodes[goal->pattern];
  goal_t flow = goal_of(GOAL_FLOW, goal->pattern, next);
  if (goal->kind == GOAL_BACKWARD) {
    flow.node = node;
  } else {
    flow.value = cleave_node_output(m->graph, m->contraction->nodes[node], part->output);
  }
  CLEAVE_TRY(push_goal(m, flow, &next, error));
  if (goal->entry_pattern != CLEAVE_INDEX_NONE) {
    goal_t entry = goal_of(GOAL_ENTRY, goal->entry_pattern, next);
    entry.node = node;
    CLEAVE_TRY(push_goal(m, entry, &next, error));
  }
  if (is_new && part->input_count > 0) {
    goal_t inputs = goal_of(GOAL_SWAP, goal->pattern, next);
    inputs.node = node;
    CLEAVE_TRY(push_goal(m, inputs, &next, error));
  }
  *out_next = next;
  return CLEAVE_OK;
}

/* Forwards into an OP: alternatives are the uses of the flow. */
static cleave_status_t forward_op(cleave_matcher_t *m, const cleave_match_request_t *request, uint32_t index,
                                  uint32_t alternative, uint32_t *out_next, bool *out_fits,
                                  cleave_error_t *error) {
  goal_t goal = m->goals.items[index];
  *out_fits = false;
  if (!cleave_value_exists(m->flow)) {
    return CLEAVE_OK;
  }
  cleave_use_t use = {alternative};
  if (alternative == 0) {
    cleave_node_t producer = cleave_value_producer(m->graph, m->flow);
    uint32_t owner = cleave_node_exists(producer) ? m->owners[m->contraction->positions[producer.index]]
                                                  : CLEAVE_INDEX_NONE;
    if (owner != CLEAVE_INDEX_NONE &&
        cleave_matcher_has_other_uses(m, m->taken.items[owner].pattern, m->flow)) {
      return CLEAVE_OK;
    }
    use = cleave_value_first_use(m->graph, m->flow);
  } else {
    use.index--;
  }
  while (cleave_use_exists(use) && !cleave_node_exists(cleave_use_node(m->graph, use))) {
    use = cleave_use_next(m->graph, use);
  }
  if (!cleave_use_exists(use)) {
    return CLEAVE_OK;
  }
  cleave_use_t following = cleave_use_next(m->graph, use);
  if (cleave_use_exists(following)) {
    CLEAVE_TRY(leave_choice(m, index, following.index + 1, error));
  }
  uint32_t node = m->contraction->positions[cleave_use_node(m->graph, use).index];
  return match_op(m, request, &goal, node, cleave_use_input_index(m->graph, use), out_next, out_fits, error);
}

static cleave_status_t run_forward(cleave_matcher_t *m, const cleave_match_request_t *request, uint32_t index,
                                   uint32_t alternative, uint32_t *out_next, bool *out_fits,
                                   cleave_error_t *error) {
  goal_t goal = m->goals.items[index];
  const cleave_pattern_node_t *part = &m->pattern->nodes[goal.pattern];
  bool anchored = goal.kind == GOAL_ANCHOR;
  goal_t first = goal;
  *out_fits = true;
  switch (part->kind) {
    case CLEAVE_PATTERN_OP:
      return anchored ? match_op(m, request, &goal, goal.node, CLEAVE_INDEX_NONE, out_next, out_fits, error)
                      : forward_op(m, request, index, alternative, out_next, out_fits, error);
    case CLEAVE_PATTERN_SEQUENCE: {
      const cleave_pattern_node_t *head = &m->pattern->nodes[part->children[0]];
      bool is_value = head->kind == CLEAVE_PATTERN_VALUE || head->kind == CLEAVE_PATTERN_CONSTANT;
      goal_t rest = goal_of(GOAL_FORWARD_NEXT, goal.pattern, goal.next);
      rest.k = is_value ? 2 : 1;
      *out_fits = anchored || !is_value;
      CLEAVE_TRY(push_goal(m, rest, &first.next, error));
      first.pattern = part->children[is_value ? 1 : 0];
      first.entry_pattern = is_value ? part->children[0] : goal.entry_pattern;
      break;
    }
    case CLEAVE_PATTERN_MAYBE:
      if (alternative == 0 && !anchored) {
        CLEAVE_TRY(leave_choice(m, index, 1, error));
      }
      if (alternative == 1) {
        *out_next = goal.next;
        return CLEAVE_OK;
      }
      first.pattern = part->children[0];
      break;
    case CLEAVE_PATTERN_ONEOF:
      if (alternative + 1 < part->child_count) {
        CLEAVE_TRY(leave_choice(m, index, alternative + 1, error));
      }
      first.pattern = part->children[alternative];
      break;
    case CLEAVE_PATTERN_REPEATED: {
      goal_t rest = goal_of(GOAL_FORWARD_REPEAT, goal.pattern, goal.next);
      if (!anchored) {
        return push_goal(m, rest, out_next, error);
      }
      rest.k = 1;
      CLEAVE_TRY(push_goal(m, rest, &first.next, error));
      first.pattern = part->children[0];
      break;
    }
    case CLEAVE_PATTERN_VALUE:
    case CLEAVE_PATTERN_CONSTANT:
    case CLEAVE_PATTERN_ABSENT:
    case CLEAVE_PATTERN_OUTPUT:
    case CLEAVE_PATTERN_EVERY:
    case CLEAVE_PATTERN_GROUP: *out_fits = false; return CLEAVE_OK;
  }
  return push_goal(m, first, out_next, error);
}

/* The next part of a sequence, or the next repetition. */
static cleave_status_t run_forward_next(cleave_matcher_t *m, uint32_t index, uint32_t alternative,
                                        uint32_t *out_next, bool *out_fits, cleave_error_t *error) {
  goal_t goal = m->goals.items[index];
  const cleave_pattern_node_t *part = &m->pattern->nodes[goal.pattern];
  goal_t rest = goal;
  rest.k++;
  uint32_t next = goal.next;
  *out_next = next;
  *out_fits = true;
  if (goal.kind == GOAL_FORWARD_NEXT) {
    if (goal.k >= part->child_count) {
      return CLEAVE_OK;
    }
    CLEAVE_TRY(push_goal(m, rest, &next, error));
    return push_goal(m, goal_of(GOAL_FORWARD, part->children[goal.k], next), out_next, error);
  }
  bool may_stop = goal.k >= part->min;
  if (alternative == 1 || goal.k >= part->max) {
    *out_fits = may_stop;
    return CLEAVE_OK;
  }
  if (may_stop) {
    CLEAVE_TRY(leave_choice(m, index, 1, error));
  }
  if (goal.k > 0) {
    CLEAVE_TRY(cleave_matcher_forget(m, goal.pattern, error));
  }
  CLEAVE_TRY(push_goal(m, rest, &next, error));
  return push_goal(m, goal_of(GOAL_FORWARD, part->children[0], next), out_next, error);
}

static void set_flow(cleave_matcher_t *m, const goal_t *goal) {
  m->flow = goal->value;
  m->flow_link = goal->link;
  m->flow_node = goal->node;
}

static cleave_status_t run_backward(cleave_matcher_t *m, const cleave_match_request_t *request,
                                    uint32_t index, uint32_t alternative, uint32_t *out_next, bool *out_fits,
                                    cleave_error_t *error) {
  goal_t goal = m->goals.items[index];
  const cleave_pattern_node_t *part = &m->pattern->nodes[goal.pattern];
  bool exists = cleave_value_exists(goal.value);
  bool is_open = !exists && goal.node != CLEAVE_INDEX_NONE;
  goal_t inner = goal;
  *out_next = goal.next;
  *out_fits = exists || is_open;
  if (is_open && !cleave_pattern_has_children(part)) {
    inner.kind = GOAL_ENTRY;
    return push_goal(m, inner, out_next, error);
  }
  if (exists && cleave_pattern_has_children(part)) {
    // Reached twice, a part of several operators ends in one value both times, too.
    CLEAVE_TRY(cleave_matcher_bind_value(m, goal.pattern, goal.value, out_fits, error));
    if (!*out_fits) {
      return CLEAVE_OK;
    }
  }
  switch (part->kind) {
    case CLEAVE_PATTERN_OP: {
      cleave_node_t producer = exists ? cleave_value_producer(m->graph, goal.value) : CLEAVE_NODE_NONE;
      if (!cleave_node_exists(producer) ||
          cleave_graph_value(m->graph, goal.value)->output_index != part->output ||
          cleave_matcher_has_other_uses(m, goal.pattern, goal.value)) {
        *out_fits = false;
        return CLEAVE_OK;
      }
      CLEAVE_TRY(cleave_matcher_mark_internal(m, goal.link, error));
      uint32_t node = m->contraction->positions[producer.index];
      return match_op(m, request, &goal, node, CLEAVE_INDEX_NONE, out_next, out_fits, error);
    }
    case CLEAVE_PATTERN_VALUE:
    case CLEAVE_PATTERN_CONSTANT:
      return exists ? cleave_matcher_take_value(m, goal.pattern, goal.value, goal.link, out_fits, error)
                    : CLEAVE_OK;
    case CLEAVE_PATTERN_MAYBE:
      if (alternative == 1 || !*out_fits) {
        set_flow(m, &goal);
        *out_fits = true;
        return CLEAVE_OK;
      }
      CLEAVE_TRY(leave_choice(m, index, 1, error));
      inner.pattern = part->children[0];
      break;
    case CLEAVE_PATTERN_ONEOF:
      if (alternative + 1 < part->child_count) {
        CLEAVE_TRY(leave_choice(m, index, alternative + 1, error));
      }
      inner.pattern = part->children[alternative];
      break;
    case CLEAVE_PATTERN_SEQUENCE:
    case CLEAVE_PATTERN_REPEATED:
      set_flow(m, &goal);
      inner.kind = part->kind == CLEAVE_PATTERN_SEQUENCE ? GOAL_BACKWARD_NEXT : GOAL_BACKWARD_REPEAT;
      inner.k = part->kind == CLEAVE_PATTERN_SEQUENCE ? part->child_count : 0;
      break;
    case CLEAVE_PATTERN_ABSENT:
    case CLEAVE_PATTERN_OUTPUT:
    case CLEAVE_PATTERN_EVERY:
    case CLEAVE_PATTERN_GROUP: *out_fits = false; return CLEAVE_OK;
  }
  *out_fits = true;
  return push_goal(m, inner, out_next, error);
}

/* The part before in a sequence (goal.k parts are left), or one repetition more, which ends in the flow. */
static cleave_status_t run_backward_next(cleave_matcher_t *m, uint32_t index, uint32_t alternative,
                                         uint32_t *out_next, bool *out_fits, cleave_error_t *error) {
  goal_t goal = m->goals.items[index];
  const cleave_pattern_node_t *part = &m->pattern->nodes[goal.pattern];
  goal_t rest = goal;
  goal_t inner = goal_of(GOAL_BACKWARD, part->children[0], goal.next);
  *out_fits = true;
  *out_next = goal.next;
  if (goal.kind == GOAL_BACKWARD_NEXT) {
    rest.k--;
    inner.pattern = part->children[rest.k];
    if (rest.k > 0) {
      CLEAVE_TRY(push_goal(m, rest, &inner.next, error));
    }
  } else {
    bool may_stop = goal.k >= part->min;
    if (alternative == 1 || goal.k >= part->max) {
      *out_fits = may_stop;
      return CLEAVE_OK;
    }
    if (may_stop) {
      CLEAVE_TRY(leave_choice(m, index, 1, error));
    }
    if (goal.k > 0) {
      CLEAVE_TRY(cleave_matcher_forget(m, goal.pattern, error));
    }
    rest.k++;
    CLEAVE_TRY(push_goal(m, rest, &inner.next, error));
  }
  inner.value = m->flow;
  inner.link = m->flow_link;
  inner.node = m->flow_node;
  return push_goal(m, inner, out_next, error);
}

static bool has_input_among_first_two(const cleave_pattern_node_t *part) {
  for (uint32_t k = 0; k < part->input_count; k++) {
    if (part->inputs[k].port < 2) {
      return true;
    }
  }
  return false;
}

/* The first input from `port` on that is there and that the pattern does not speak of yet, or NONE. */
static uint32_t next_free_port(const cleave_matcher_t *m, uint32_t position, uint32_t port) {
  cleave_node_t node = m->contraction->nodes[position];
  for (; port < cleave_node_input_count(m->graph, node); port++) {
    if (cleave_value_exists(cleave_node_input(m->graph, node, port)) &&
        cleave_matcher_port_is_free(m, position, port)) {
      return port;
    }
  }
  return CLEAVE_INDEX_NONE;
}

/* One input pattern of an OP; alternatives are free ports where it may be any. */
static cleave_status_t run_input(cleave_matcher_t *m, uint32_t index, uint32_t alternative,
                                 uint32_t *out_next, bool *out_fits, cleave_error_t *error) {
  goal_t goal = m->goals.items[index];
  const cleave_pattern_node_t *part = &m->pattern->nodes[goal.pattern];
  cleave_node_t node = m->contraction->nodes[goal.node];
  goal_t rest = goal;
  goal_t inner = goal_of(GOAL_BACKWARD, CLEAVE_INDEX_NONE, goal.next);
  *out_next = goal.next;
  *out_fits = true;
  if (goal.kind == GOAL_SWAP) {
    rest.kind = GOAL_INPUT;
    rest.swapped = alternative == 1;
    rest.k = 0;
    if (alternative == 0 && (cleave_node_op(m->graph, node)->flags & CLEAVE_OP_COMMUTATIVE) != 0 &&
        cleave_node_input_count(m->graph, node) > 1 && has_input_among_first_two(part)) {
      CLEAVE_TRY(leave_choice(m, index, 1, error));
    }
    return push_goal(m, rest, out_next, error);
  }
  if (goal.k >= part->input_count) {
    return CLEAVE_OK;
  }
  rest.k++;
  CLEAVE_TRY(push_goal(m, rest, &inner.next, error));
  inner.pattern = part->inputs[goal.k].pattern;
  uint32_t port = part->inputs[goal.k].port;
  if (port == CLEAVE_PATTERN_PORT_ANY) {
    port = next_free_port(m, goal.node, alternative);
    uint32_t following = next_free_port(m, goal.node, port == CLEAVE_INDEX_NONE ? port : port + 1);
    if (following != CLEAVE_INDEX_NONE) {
      CLEAVE_TRY(leave_choice(m, index, following, error));
    }
  } else if (port < 2 && goal.swapped) {
    port ^= 1;
  }
  inner.value = port == CLEAVE_INDEX_NONE ? CLEAVE_VALUE_NONE : cleave_node_input(m->graph, node, port);
  if (cleave_value_exists(inner.value)) {
    if (!cleave_matcher_port_is_free(m, goal.node, port)) {
      *out_fits = false;
      return CLEAVE_OK;
    }
    CLEAVE_TRY(cleave_matcher_add_link(m, goal.node, port, false, &inner.link, error));
  }
  return push_goal(m, inner, out_next, error);
}

/* A free input of a node as the value that a part matches backwards; alternatives are ports. */
static cleave_status_t run_entry(cleave_matcher_t *m, uint32_t index, uint32_t alternative,
                                 uint32_t *out_next, bool *out_fits, cleave_error_t *error) {
  goal_t goal = m->goals.items[index];
  uint32_t port = next_free_port(m, goal.node, alternative);
  uint32_t following = next_free_port(m, goal.node, port == CLEAVE_INDEX_NONE ? port : port + 1);
  *out_fits = port != CLEAVE_INDEX_NONE;
  if (!*out_fits) {
    return CLEAVE_OK;
  }
  if (following != CLEAVE_INDEX_NONE) {
    CLEAVE_TRY(leave_choice(m, index, following, error));
  }
  goal_t inner = goal_of(GOAL_BACKWARD, goal.pattern, goal.next);
  inner.value = cleave_node_input(m->graph, m->contraction->nodes[goal.node], port);
  CLEAVE_TRY(cleave_matcher_add_link(m, goal.node, port, false, &inner.link, error));
  return push_goal(m, inner, out_next, error);
}

static cleave_status_t run_goal(cleave_matcher_t *m, const cleave_match_request_t *request, uint32_t index,
                                uint32_t alternative, uint32_t *out_next, bool *out_fits,
                                cleave_error_t *error) {
  goal_t goal = m->goals.items[index];
  *out_next = goal.next;
  switch ((goal_kind_t)goal.kind) {
    case GOAL_ANCHOR:
    case GOAL_FORWARD: return run_forward(m, request, index, alternative, out_next, out_fits, error);
    case GOAL_FORWARD_NEXT:
    case GOAL_FORWARD_REPEAT: return run_forward_next(m, index, alternative, out_next, out_fits, error);
    case GOAL_BACKWARD: return run_backward(m, request, index, alternative, out_next, out_fits, error);
    case GOAL_BACKWARD_NEXT:
    case GOAL_BACKWARD_REPEAT: return run_backward_next(m, index, alternative, out_next, out_fits, error);
    case GOAL_SWAP:
    case GOAL_INPUT: return run_input(m, index, alternative, out_next, out_fits, error);
    case GOAL_ENTRY: return run_entry(m, index, alternative, out_next, out_fits, error);
    case GOAL_FLOW:
      set_flow(m, &goal);
      *out_fits = true;
      return CLEAVE_OK;
  }
  return cleave_error_set(error, CLEAVE_ERROR_INTERNAL, "matcher: goal %u is unknown", (unsigned)goal.kind);
}

// ---- the search ----

/* Runs goals until a match is complete and accepted, or there is no choice left. */
static cleave_status_t search(cleave_matcher_t *m, const cleave_match_request_t *request,
                              cleave_match_answer_t *answer, cleave_error_t *error) {
  goal_t anchor = goal_of(GOAL_ANCHOR, m->pattern->root, CLEAVE_INDEX_NONE);
  anchor.node = request->anchor;
  uint32_t next = CLEAVE_INDEX_NONE;
  uint32_t alternative = 0;
  CLEAVE_TRY(push_goal(m, anchor, &next, error));
  for (;;) {
    bool fits = true;
    if (next == CLEAVE_INDEX_NONE) {
      if (cleave_matcher_is_closed(m)) {
        CLEAVE_TRY(cleave_matcher_describe(m, &answer->hash, error));
        if (request->accept == NULL || request->accept(request->context, &m->match, answer->hash)) {
          answer->match = &m->match;
          return CLEAVE_OK;
        }
      }
      fits = false;
      answer->steps += m->taken.count;
    } else {
      uint32_t index = next;
      CLEAVE_TRY(run_goal(m, request, index, alternative, &next, &fits, error));
    }
    alternative = 0;
    if (++answer->steps > request->step_limit) {
      answer->limit = true;
      return CLEAVE_OK;
    }
    if (!fits) {
      if (m->choices.count == 0) {
        return CLEAVE_OK;
      }
      choice_t choice = m->choices.items[--m->choices.count];
      cleave_matcher_undo(m, choice.trail_count);
      m->goals.count = choice.goal_count;
      m->flow = choice.flow;
      m->flow_link = choice.flow_link;
      m->flow_node = choice.flow_node;
      next = choice.goal;
      alternative = choice.alternative;
    }
  }
}

cleave_status_t cleave_matcher_match(cleave_matcher_t *matcher, const cleave_match_request_t *request,
                                     cleave_match_answer_t *answer, cleave_error_t *error) {
  *answer = (cleave_match_answer_t){0};
  matcher->goals.count = 0;
  matcher->choices.count = 0;
  matcher->flow = CLEAVE_VALUE_NONE;
  matcher->flow_link = CLEAVE_INDEX_NONE;
  matcher->flow_node = CLEAVE_INDEX_NONE;
  cleave_status_t status = search(matcher, request, answer, error);
  cleave_matcher_undo(matcher, 0);
  return status;
}
