// SPDX-License-Identifier: Apache-2.0
// Goals over the inputs of one node: which input each input pattern takes, in which order, and which inputs
// are left for the part that precedes the node in a sequence. Inputs that the filter excludes are never
// tried.

#include "partition/match/match_state.h"

/* The next input from `port` on that a pattern may take: present, not named by another one, and not excluded
 * by the filter. */
static uint32_t next_free_port(cleave_matcher_t *m, uint32_t position, uint32_t pattern, uint32_t port) {
  cleave_node_t node = m->contraction->nodes[position];
  uint32_t count = cleave_node_input_count(m->graph, node);
  for (; port < count; port++) {
    cleave_value_t value = cleave_node_input(m->graph, node, port);
    if (cleave_value_exists(value) && cleave_matcher_port_is_free(m, position, port) &&
        cleave_matcher_may_match(m, pattern, value)) {
      return port;
    }
  }
  return CLEAVE_INDEX_NONE;
}

/* ---- SWAP ---- */

static bool has_input_among_first_two(const cleave_pattern_node_t *part) {
  for (uint32_t k = 0; k < part->input_count; k++) {
    if (part->inputs[k].port < 2) {
      return true;
    }
  }
  return false;
}

/* May the input patterns for ports 0 and 1 be those of the node's inputs, in this order? */
static bool order_fits(cleave_matcher_t *m, const cleave_pattern_node_t *part, cleave_node_t node,
                       bool swapped) {
  for (uint32_t k = 0; k < part->input_count; k++) {
    uint32_t port = part->inputs[k].port;
    if (port < 2 && !cleave_matcher_may_match(m, part->inputs[k].pattern,
                                              cleave_node_input(m->graph, node, swapped ? port ^ 1 : port))) {
      return false;
    }
  }
  return true;
}

/* Do both ports ask for the same? */
static bool is_symmetric(const cleave_matcher_t *m, uint32_t pattern) {
  const cleave_pattern_node_t *part = &m->pattern->nodes[pattern];
  for (uint32_t k = 0; k < part->input_count; k++) {
    uint32_t previous = m->interchangeable[m->input_starts[pattern] + k].before;
    if (part->inputs[k].port < 2 && previous != CLEAVE_INDEX_NONE && part->inputs[previous].port < 2) {
      return true;
    }
  }
  return false;
}

static cleave_status_t run_swap(cleave_matcher_t *m, step_t *step, const goal_t *goal,
                                cleave_error_t *error) {
  const cleave_pattern_node_t *part = &m->pattern->nodes[goal->pattern];
  cleave_node_t node = m->contraction->nodes[goal->node];
  goal_t inputs = *goal;
  inputs.kind = GOAL_INPUT;
  inputs.swapped = step->alternative == 1;
  inputs.k = 0;
  bool may_swap = (cleave_node_op(m->graph, node)->flags & CLEAVE_OP_COMMUTATIVE) != 0 &&
                  cleave_node_input_count(m->graph, node) > 1 && has_input_among_first_two(part);
  if (may_swap && step->alternative == 0) {
    bool as_given = order_fits(m, part, node, false);
    bool as_swapped = order_fits(m, part, node, true);
    if (as_given && as_swapped && !is_symmetric(m, goal->pattern)) {
      CLEAVE_TRY(cleave_matcher_leave_choice(m, step->index, 1, error));
    }
    inputs.swapped = !as_given;
    step->fits = as_given || as_swapped;
  }
  return cleave_matcher_push_goal(m, inputs, &step->next, error);
}

/* ---- INPUT ---- */

/* The input that input pattern `input` of a node took, or NONE. */
static uint32_t port_of_input(const cleave_matcher_t *m, uint32_t node, uint32_t input) {
  uint32_t link = m->taken.items[m->owners[node]].links;
  while (link != CLEAVE_INDEX_NONE && m->links.items[link].input != input) {
    link = m->links.items[link].previous;
  }
  return link == CLEAVE_INDEX_NONE ? CLEAVE_INDEX_NONE : m->links.items[link].port;
}

/* The next port for an input pattern that leaves one behind it for each interchangeable one that comes after.
 */
static uint32_t next_port_of(cleave_matcher_t *m, const goal_t *goal, uint32_t from) {
  uint32_t pattern = m->pattern->nodes[goal->pattern].inputs[goal->k].pattern;
  uint32_t port = next_free_port(m, goal->node, pattern, from);
  uint32_t last = port;
  for (uint32_t k = 0; k < m->interchangeable[m->input_starts[goal->pattern] + goal->k].after; k++) {
    last = last == CLEAVE_INDEX_NONE ? last : next_free_port(m, goal->node, pattern, last + 1);
  }
  return last == CLEAVE_INDEX_NONE ? CLEAVE_INDEX_NONE : port;
}

/* Any free input; alternatives are ports. Interchangeable input patterns take ascending ports, because other
 * orders are equivalent. */
static cleave_status_t choose_port(cleave_matcher_t *m, step_t *step, const goal_t *goal, uint32_t *out_port,
                                   cleave_error_t *error) {
  uint32_t from = step->alternative;
  uint32_t previous = m->interchangeable[m->input_starts[goal->pattern] + goal->k].before;
  if (from == 0 && previous != CLEAVE_INDEX_NONE) {
    uint32_t before = port_of_input(m, goal->node, previous);
    from = before == CLEAVE_INDEX_NONE ? 0 : before + 1;
  }
  *out_port = next_port_of(m, goal, from);
  if (*out_port != CLEAVE_INDEX_NONE) {
    uint32_t following = next_port_of(m, goal, *out_port + 1);
    if (following != CLEAVE_INDEX_NONE) {
      return cleave_matcher_leave_choice(m, step->index, following, error);
    }
  }
  return CLEAVE_OK;
}

/* One input pattern of an OP. */
cleave_status_t cleave_matcher_run_input(cleave_matcher_t *m, step_t *step, cleave_error_t *error) {
  goal_t goal = m->goals.items[step->index];
  if (goal.kind == GOAL_SWAP) {
    return run_swap(m, step, &goal, error);
  }
  const cleave_pattern_node_t *part = &m->pattern->nodes[goal.pattern];
  if (goal.k >= part->input_count) {
    return CLEAVE_OK;
  }
  uint32_t port = part->inputs[goal.k].port;
  if (port == CLEAVE_PATTERN_PORT_VARIADIC) {
    goal_t variadic = cleave_matcher_goal(GOAL_VARIADIC, part->inputs[goal.k].pattern, goal.next);
    variadic.node = goal.node;
    variadic.swapped = goal.output != CLEAVE_INDEX_NONE;
    return cleave_matcher_push_goal(m, variadic, &step->next, error);
  }
  if (port == CLEAVE_PATTERN_PORT_ANY) {
    CLEAVE_TRY(choose_port(m, step, &goal, &port, error));
  } else if (port < 2 && goal.swapped) {
    port ^= 1;
  }
  goal_t rest = goal;
  goal_t inner = cleave_matcher_goal(GOAL_BACKWARD, part->inputs[goal.k].pattern, goal.next);
  rest.k++;
  CLEAVE_TRY(cleave_matcher_push_goal(m, rest, &inner.next, error));
  if (port != CLEAVE_INDEX_NONE) {
    inner.value = cleave_node_input(m->graph, m->contraction->nodes[goal.node], port);
  }
  if (cleave_value_exists(inner.value)) {
    uint32_t link = cleave_matcher_find_link(m, goal.node, port);
    // Two operators of one label may name one edge each.
    bool is_named = link != CLEAVE_INDEX_NONE && m->links.items[link].internal &&
                    m->taken.items[m->owners[goal.node]].pattern != goal.pattern;
    if (link != CLEAVE_INDEX_NONE) {
      cleave_matcher_depend(m, m->links.items[link].trail);
    }
    if (link != CLEAVE_INDEX_NONE && !is_named) {
      step->fits = false;
      return CLEAVE_OK;
    }
    if (is_named) {
      inner.link = link;
    } else {
      CLEAVE_TRY(cleave_matcher_add_link(m, goal.node, port, goal.k, false, &inner.link, error));
    }
  }
  return cleave_matcher_push_goal(m, inner, &step->next, error);
}

/* ---- VARIADIC ---- */

/* The next of the remaining inputs; each is matched on its own. If the operator was reached backwards, one
 * may be left for the part that precedes it: a complete match has no free input left. */
cleave_status_t cleave_matcher_run_variadic(cleave_matcher_t *m, step_t *step, cleave_error_t *error) {
  goal_t goal = m->goals.items[step->index];
  const cleave_pattern_node_t *part = &m->pattern->nodes[goal.pattern];
  cleave_node_t node = m->contraction->nodes[goal.node];
  uint32_t count = cleave_node_input_count(m->graph, node);
  uint32_t port = 0;
  while (port < count &&
         (port == goal.output || !cleave_value_exists(cleave_node_input(m->graph, node, port)) ||
          !cleave_matcher_port_is_free(m, goal.node, port))) {
    port++;
  }
  if (port == count) {
    step->fits = goal.k >= part->min;
    return CLEAVE_OK;
  }
  bool fits = goal.k < part->max &&
              cleave_matcher_may_match(m, part->children[0], cleave_node_input(m->graph, node, port));
  if (goal.swapped && (step->alternative == 1 || !fits)) {
    goal.swapped = false;
    goal.output = port;
    return cleave_matcher_push_goal(m, goal, &step->next, error);
  }
  step->fits = fits;
  if (!fits) {
    return CLEAVE_OK;
  }
  if (goal.swapped) {
    CLEAVE_TRY(cleave_matcher_leave_choice(m, step->index, 1, error));
  }
  if (goal.k > 0) {
    CLEAVE_TRY(cleave_matcher_forget(m, goal.pattern, error));
  }
  goal_t rest = goal;
  goal_t inner = cleave_matcher_goal(GOAL_BACKWARD, part->children[0], goal.next);
  rest.k++;
  CLEAVE_TRY(cleave_matcher_push_goal(m, rest, &inner.next, error));
  inner.value = cleave_node_input(m->graph, node, port);
  CLEAVE_TRY(cleave_matcher_add_link(m, goal.node, port, CLEAVE_INDEX_NONE, false, &inner.link, error));
  return cleave_matcher_push_goal(m, inner, &step->next, error);
}

/* ---- ENTRY ---- */

/* A free input of a node, as the value that a part matches backwards; alternatives are ports. If the value is
 * known, it is the input that reads it, even if the pattern named that edge before. */
cleave_status_t cleave_matcher_run_entry(cleave_matcher_t *m, step_t *step, cleave_error_t *error) {
  goal_t goal = m->goals.items[step->index];
  cleave_value_t known = cleave_matcher_known_value(m, goal.pattern);
  goal_t inner = cleave_matcher_goal(GOAL_BACKWARD, goal.pattern, goal.next);
  uint32_t port = CLEAVE_INDEX_NONE;
  if (cleave_value_exists(known)) {
    port = cleave_matcher_port_of(m, goal.node, known);
    cleave_matcher_depend(m, 0);
  } else {
    port = next_free_port(m, goal.node, goal.pattern, step->alternative);
    uint32_t following =
        port == CLEAVE_INDEX_NONE ? CLEAVE_INDEX_NONE : next_free_port(m, goal.node, goal.pattern, port + 1);
    if (following != CLEAVE_INDEX_NONE) {
      CLEAVE_TRY(cleave_matcher_leave_choice(m, step->index, following, error));
    }
  }
  step->fits = port != CLEAVE_INDEX_NONE;
  if (!step->fits) {
    return CLEAVE_OK;
  }
  inner.value = cleave_node_input(m->graph, m->contraction->nodes[goal.node], port);
  inner.link = cleave_matcher_find_link(m, goal.node, port);
  if (inner.link == CLEAVE_INDEX_NONE) {
    CLEAVE_TRY(cleave_matcher_add_link(m, goal.node, port, CLEAVE_INDEX_NONE, false, &inner.link, error));
  }
  return cleave_matcher_push_goal(m, inner, &step->next, error);
}
