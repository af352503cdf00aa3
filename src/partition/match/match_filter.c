// SPDX-License-Identifier: Apache-2.0
// The filter: whether a part could match somewhere if nothing were bound. Its answers hold for every anchor
// and every way of matching, and are computed once per node for operators with inputs. The search skips what
// the filter excludes; so trees of commutative operators are not tried in all orders.

#include <string.h>

#include "base/hash.h"
#include "partition/match/match_state.h"
#include "partition/pattern/pattern_test.h"

enum { MAX_PORTS = 16 }; /* up to which inputs are assigned exactly */

// ---- answers that are known ----

static size_t slot_of(const cleave_matcher_t *m, const verdict_t *slots, size_t slot_count, uint32_t pattern,
                      uint32_t node) {
  size_t k = (size_t)cleave_hash_combine(pattern, node) & (slot_count - 1);
  while (slots[k].generation == m->generation && (slots[k].pattern != pattern || slots[k].node != node)) {
    k = (k + 1) & (slot_count - 1);
  }
  return k;
}

/* If memory is short, the answer is computed again the next time. */
static void remember(cleave_matcher_t *m, uint32_t pattern, uint32_t node, bool fits) {
  if (m->verdict_generation != m->generation) {
    m->verdict_generation = m->generation;
    m->verdict_count = 0;
  }
  if (m->verdict_count * 2 >= m->verdict_slots) {
    size_t slot_count = m->verdict_slots == 0 ? 256 : m->verdict_slots * 2;
    verdict_t *slots = cleave_allocate_zeroed(slot_count, sizeof *slots);
    if (slots == NULL) {
      return;
    }
    for (size_t k = 0; k < m->verdict_slots; k++) {
      const verdict_t *old = &m->verdicts[k];
      if (old->generation == m->generation) {
        slots[slot_of(m, slots, slot_count, old->pattern, old->node)] = *old;
      }
    }
    cleave_free(m->verdicts);
    m->verdicts = slots;
    m->verdict_slots = slot_count;
  }
  size_t slot = slot_of(m, m->verdicts, m->verdict_slots, pattern, node);
  m->verdict_count += m->verdicts[slot].generation != m->generation;
  m->verdicts[slot] = (verdict_t){m->generation, pattern, node, fits};
}

/* Work counts against the search that asks. Once its limit is exceeded, the answer is always yes. */
static bool is_exhausted(cleave_matcher_t *m) {
  return ++m->filter_work > m->filter_limit;
}

// ---- inputs ----

typedef struct assignment {
  uint32_t port_count;
  uint32_t owners[MAX_PORTS];      /* per port: input pattern, or NONE */
  bool fits[MAX_PORTS][MAX_PORTS]; /* per input pattern, per port */
  bool seen[MAX_PORTS];
} assignment_t;

/* Finds a port for an input pattern, moving others to other ports (an augmenting path, at most 16 deep). */
static bool assign(assignment_t *assignment, uint32_t input) {
  for (uint32_t port = 0; port < assignment->port_count; port++) {
    if (!assignment->fits[input][port] || assignment->seen[port]) {
      continue;
    }
    assignment->seen[port] = true;
    if (assignment->owners[port] == CLEAVE_INDEX_NONE || assign(assignment, assignment->owners[port])) {
      assignment->owners[port] = input;
      return true;
    }
  }
  return false;
}

/* Is there a separate port for each input pattern that accepts any port? */
static bool any_inputs_fit(cleave_matcher_t *m, const cleave_pattern_node_t *part, cleave_node_t node) {
  assignment_t assignment;
  uint32_t count = cleave_node_input_count(m->graph, node);
  assignment.port_count = count;
  if (count > MAX_PORTS || part->input_count > MAX_PORTS) {
    return true;
  }
  memset(assignment.owners, 0xff, sizeof assignment.owners);
  for (uint32_t k = 0; k < part->input_count; k++) {
    if (part->inputs[k].port != CLEAVE_PATTERN_PORT_ANY) {
      continue;
    }
    for (uint32_t port = 0; port < count; port++) {
      cleave_value_t value = cleave_node_input(m->graph, node, port);
      assignment.fits[k][port] =
          cleave_value_exists(value) && cleave_matcher_may_match(m, part->inputs[k].pattern, value);
    }
    memset(assignment.seen, 0, sizeof assignment.seen);
    if (!assign(&assignment, k) && !cleave_matcher_may_match(m, part->inputs[k].pattern, CLEAVE_VALUE_NONE)) {
      return false;
    }
  }
  return true;
}

static bool named_inputs_fit(cleave_matcher_t *m, const cleave_pattern_node_t *part, cleave_node_t node,
                             bool swapped) {
  for (uint32_t k = 0; k < part->input_count; k++) {
    uint32_t port = part->inputs[k].port;
    if (port >= CLEAVE_PATTERN_PORT_VARIADIC) {
      continue;
    }
    port = swapped && port < 2 ? port ^ 1 : port;
    if (!cleave_matcher_may_match(m, part->inputs[k].pattern, cleave_node_input(m->graph, node, port))) {
      return false;
    }
  }
  return true;
}

// ---- parts ----

bool cleave_matcher_node_may_match(cleave_matcher_t *m, uint32_t pattern, cleave_node_t node) {
  const cleave_pattern_node_t *part = &m->pattern->nodes[pattern];
  pattern = m->classes[pattern];
  if (!cleave_pattern_test_op(part, m->graph, node)) {
    return false;
  }
  uint32_t position = m->contraction->positions[node.index];
  if (m->verdict_slots > 0) {
    const verdict_t *known = &m->verdicts[slot_of(m, m->verdicts, m->verdict_slots, pattern, position)];
    if (known->generation == m->generation) {
      return known->fits;
    }
  }
  bool fits =
      cleave_pattern_test_node(part, m->graph, node) &&
      part->output < cleave_node_output_count(m->graph, node) &&
      cleave_pattern_test_type(&part->type, m->graph, cleave_node_output(m->graph, node, part->output));
  if (fits && part->input_count > 0) {
    bool may_swap = (cleave_node_op(m->graph, node)->flags & CLEAVE_OP_COMMUTATIVE) != 0;
    fits = (named_inputs_fit(m, part, node, false) || (may_swap && named_inputs_fit(m, part, node, true))) &&
           any_inputs_fit(m, part, node);
  }
  remember(m, pattern, position, fits);
  return fits;
}

/* The last parts of a sequence that end in a value, from child `count - 1` down. */
static bool sequence_may_match(cleave_matcher_t *m, const cleave_pattern_node_t *part, cleave_value_t value) {
  for (uint32_t k = part->child_count; k > 0; k--) {
    const cleave_pattern_node_t *child = &m->pattern->nodes[part->children[k - 1]];
    bool may_be_left_out =
        child->kind == CLEAVE_PATTERN_MAYBE || (child->kind == CLEAVE_PATTERN_REPEATED && child->min == 0);
    uint32_t inner = may_be_left_out ? child->children[0] : part->children[k - 1];
    if (cleave_matcher_may_match(m, inner, value)) {
      return true;
    }
    if (!may_be_left_out) {
      return false;
    }
  }
  return true;
}

static bool any_child_may_match(cleave_matcher_t *m, const cleave_pattern_node_t *part,
                                cleave_value_t value) {
  for (uint32_t k = 0; k < part->child_count; k++) {
    if (cleave_matcher_may_match(m, part->children[k], value)) {
      return true;
    }
  }
  return false;
}

/* The answer for a choice or sequence, computed once per value. */
static bool children_may_match(cleave_matcher_t *m, uint32_t pattern, cleave_value_t value) {
  const cleave_pattern_node_t *part = &m->pattern->nodes[pattern];
  pattern = m->classes[pattern];
  if (m->verdict_slots > 0) {
    const verdict_t *known = &m->verdicts[slot_of(m, m->verdicts, m->verdict_slots, pattern, value.index)];
    if (known->generation == m->generation) {
      return known->fits;
    }
  }
  if (is_exhausted(m)) {
    return true;
  }
  bool fits = part->kind == CLEAVE_PATTERN_ONEOF ? any_child_may_match(m, part, value)
                                                 : sequence_may_match(m, part, value);
  remember(m, pattern, value.index, fits);
  return fits;
}

bool cleave_matcher_may_match(cleave_matcher_t *m, uint32_t pattern, cleave_value_t value) {
  const cleave_pattern_node_t *part = &m->pattern->nodes[pattern];
  bool exists = cleave_value_exists(value);
  cleave_node_t producer = exists ? cleave_value_producer(m->graph, value) : CLEAVE_NODE_NONE;
  switch (part->kind) {
    case CLEAVE_PATTERN_ABSENT: return !exists;
    case CLEAVE_PATTERN_MAYBE: return true;
    case CLEAVE_PATTERN_VALUE: return exists && cleave_pattern_test_type(&part->type, m->graph, value);
    case CLEAVE_PATTERN_CONSTANT: return exists && cleave_value_is_constant(m->graph, value);
    case CLEAVE_PATTERN_ONEOF:
    case CLEAVE_PATTERN_SEQUENCE: return children_may_match(m, pattern, value);
    case CLEAVE_PATTERN_REPEATED:
      return part->min == 0 || cleave_matcher_may_match(m, part->children[0], value);
    case CLEAVE_PATTERN_OP:
      return cleave_node_exists(producer) &&
             cleave_graph_value(m->graph, value)->output_index == part->output &&
             !cleave_matcher_has_other_uses(m, pattern, value) &&
             cleave_matcher_node_may_match(m, pattern, producer);
    case CLEAVE_PATTERN_OUTPUT:
      return cleave_node_exists(producer) &&
             cleave_graph_value(m->graph, value)->output_index == part->output &&
             cleave_matcher_node_may_match(m, part->children[0], producer);
    case CLEAVE_PATTERN_VARIADIC:
    case CLEAVE_PATTERN_GROUP: return false;
  }
  return false;
}
