// SPDX-License-Identifier: Apache-2.0
// Binds and unbinds nodes and values of the pattern, labels, taken nodes and the inputs that the pattern
// names. Every change is recorded on the trail.

#include "partition/match/match_state.h"
#include "partition/pattern/pattern_test.h"

// ---- bindings ----

void cleave_matcher_undo(cleave_matcher_t *m, size_t count) {
  while (m->trail.count > count) {
    trail_t entry = m->trail.items[--m->trail.count];
    switch ((trail_kind_t)entry.kind) {
      case TRAIL_NODE: m->bound_nodes[entry.index] = entry.old; break;
      case TRAIL_VALUE: m->bound_values[entry.index].index = entry.old; break;
      case TRAIL_START: m->starts[entry.index] = entry.old; break;
      case TRAIL_LABEL_NODE: m->label_nodes[entry.index] = entry.old; break;
      case TRAIL_LABEL_VALUE: m->label_values[entry.index].index = entry.old; break;
      case TRAIL_SYMBOL: m->symbols[entry.index].is_bound = false; break;
      case TRAIL_TAKE: m->owners[m->taken.items[--m->taken.count].node] = CLEAVE_INDEX_NONE; break;
      case TRAIL_LINK: {
        link_t *link = &m->links.items[--m->links.count];
        m->taken.items[link->taken].links = link->previous;
        break;
      }
      case TRAIL_LINK_INTERNAL:
        m->links.items[entry.index].internal = false;
        m->links.items[entry.index].label = CLEAVE_INDEX_NONE;
        break;
      case TRAIL_PENDING: m->pending.count--; break;
      case TRAIL_EXIT: m->exits.count--; break;
    }
  }
}

static cleave_status_t set_node(cleave_matcher_t *m, uint32_t pattern, uint32_t node, cleave_error_t *error) {
  CLEAVE_TRY(cleave_matcher_push_trail(m, TRAIL_NODE, pattern, m->bound_nodes[pattern], error));
  m->bound_nodes[pattern] = node;
  return CLEAVE_OK;
}

static cleave_status_t set_value(cleave_matcher_t *m, uint32_t pattern, cleave_value_t value,
                                 cleave_error_t *error) {
  CLEAVE_TRY(cleave_matcher_push_trail(m, TRAIL_VALUE, pattern, m->bound_values[pattern].index, error));
  m->bound_values[pattern] = value;
  return CLEAVE_OK;
}

static cleave_status_t set_label(cleave_matcher_t *m, uint32_t label, uint32_t node, cleave_value_t value,
                                 cleave_error_t *error) {
  if (label == CLEAVE_INDEX_NONE) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(cleave_matcher_push_trail(m, TRAIL_LABEL_NODE, label, m->label_nodes[label], error));
  m->label_nodes[label] = node;
  CLEAVE_TRY(cleave_matcher_push_trail(m, TRAIL_LABEL_VALUE, label, m->label_values[label].index, error));
  m->label_values[label] = value;
  return CLEAVE_OK;
}

cleave_status_t cleave_matcher_bind_value(cleave_matcher_t *m, uint32_t pattern, cleave_value_t value,
                                          bool *out_fits, cleave_error_t *error) {
  bool is_bound = cleave_value_exists(m->bound_values[pattern]);
  *out_fits = !is_bound || m->bound_values[pattern].index == value.index;
  if (is_bound) {
    cleave_matcher_depend(m, 0);
    return CLEAVE_OK;
  }
  return set_value(m, pattern, value, error);
}

cleave_status_t cleave_matcher_bind_start(cleave_matcher_t *m, uint32_t pattern, flow_t start,
                                          cleave_error_t *error) {
  CLEAVE_TRY(cleave_matcher_push_trail(m, TRAIL_START, pattern, m->starts[pattern], error));
  m->starts[pattern] = (uint32_t)m->flows.count;
  CLEAVE_ARRAY_PUSH(&m->flows, start, error);
  return CLEAVE_OK;
}

cleave_value_t cleave_matcher_known_value(const cleave_matcher_t *m, uint32_t pattern) {
  const cleave_pattern_node_t *part = &m->pattern->nodes[pattern];
  uint32_t label = m->labels[pattern];
  if (part->kind == CLEAVE_PATTERN_OP && m->bound_nodes[pattern] != CLEAVE_INDEX_NONE) {
    return cleave_node_output(m->graph, m->contraction->nodes[m->bound_nodes[pattern]], part->output);
  }
  if (cleave_value_exists(m->bound_values[pattern]) || label == CLEAVE_INDEX_NONE) {
    return m->bound_values[pattern];
  }
  return m->label_values[label];
}

/* Unbinds the parts of a repetition before the next one. */
cleave_status_t cleave_matcher_forget(cleave_matcher_t *m, uint32_t repeated, cleave_error_t *error) {
  for (uint32_t k = m->repeat_starts[repeated]; k < m->repeat_starts[repeated + 1]; k++) {
    uint32_t pattern = m->exclusive[k];
    CLEAVE_TRY(set_node(m, pattern, CLEAVE_INDEX_NONE, error));
    CLEAVE_TRY(set_value(m, pattern, CLEAVE_VALUE_NONE, error));
    if (m->starts[pattern] != CLEAVE_INDEX_NONE) {
      CLEAVE_TRY(cleave_matcher_push_trail(m, TRAIL_START, pattern, m->starts[pattern], error));
      m->starts[pattern] = CLEAVE_INDEX_NONE;
    }
    CLEAVE_TRY(set_label(m, m->labels[pattern], CLEAVE_INDEX_NONE, CLEAVE_VALUE_NONE, error));
  }
  return CLEAVE_OK;
}

uint32_t cleave_matcher_find_link(const cleave_matcher_t *m, uint32_t node, uint32_t port) {
  uint32_t link = m->taken.items[m->owners[node]].links;
  while (link != CLEAVE_INDEX_NONE && m->links.items[link].port != port) {
    link = m->links.items[link].previous;
  }
  return link;
}

bool cleave_matcher_port_is_free(cleave_matcher_t *m, uint32_t node, uint32_t port) {
  uint32_t link = cleave_matcher_find_link(m, node, port);
  if (link != CLEAVE_INDEX_NONE) {
    cleave_matcher_depend(m, m->links.items[link].trail);
  }
  return link == CLEAVE_INDEX_NONE;
}

uint32_t cleave_matcher_port_of(cleave_matcher_t *m, uint32_t node, cleave_value_t value) {
  cleave_node_t user = m->contraction->nodes[node];
  uint32_t named = CLEAVE_INDEX_NONE;
  for (uint32_t port = 0; port < cleave_node_input_count(m->graph, user); port++) {
    if (cleave_node_input(m->graph, user, port).index != value.index) {
      continue;
    }
    uint32_t link = cleave_matcher_find_link(m, node, port);
    if (link == CLEAVE_INDEX_NONE) {
      return port;
    }
    named = m->links.items[link].internal && named == CLEAVE_INDEX_NONE ? port : named;
  }
  return named;
}

cleave_status_t cleave_matcher_add_link(cleave_matcher_t *m, uint32_t node, uint32_t port, uint32_t input,
                                        bool internal, uint32_t *out_link, cleave_error_t *error) {
  uint32_t owner = m->owners[node];
  uint32_t trail = (uint32_t)m->trail.count;
  CLEAVE_TRY(cleave_array_reserve(&m->links, 1, error));
  CLEAVE_TRY(cleave_matcher_push_trail(m, TRAIL_LINK, 0, 0, error));
  *out_link = (uint32_t)m->links.count;
  link_t link = {owner, port, m->taken.items[owner].links, input, CLEAVE_INDEX_NONE, trail, internal};
  cleave_array_push_reserved(&m->links, link);
  m->taken.items[owner].links = *out_link;
  return CLEAVE_OK;
}

cleave_status_t cleave_matcher_mark_internal(cleave_matcher_t *m, uint32_t link, uint32_t label,
                                             cleave_error_t *error) {
  if (link == CLEAVE_INDEX_NONE || m->links.items[link].internal) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(cleave_matcher_push_trail(m, TRAIL_LINK_INTERNAL, link, 0, error));
  m->links.items[link].internal = true;
  m->links.items[link].label = label;
  return CLEAVE_OK;
}

// ---- nodes and values ----

/* Binds an OP to a node, with all tests that need no other node. */
cleave_status_t cleave_matcher_take_node(cleave_matcher_t *m, const cleave_match_request_t *request,
                                         uint32_t pattern, uint32_t node, bool *out_is_new, bool *out_fits,
                                         cleave_error_t *error) {
  const cleave_pattern_node_t *part = &m->pattern->nodes[pattern];
  uint32_t label = m->labels[pattern];
  *out_fits = false;
  *out_is_new = false;
  if (m->bound_nodes[pattern] != CLEAVE_INDEX_NONE) {
    cleave_matcher_depend(m, 0);
    *out_fits = m->bound_nodes[pattern] == node;
    return CLEAVE_OK;
  }
  cleave_node_t handle = m->contraction->nodes[node];
  if (!cleave_pattern_test_node(part, m->graph, handle) ||
      part->output >= cleave_node_output_count(m->graph, handle)) {
    return CLEAVE_OK;
  }
  cleave_value_t main_output = cleave_node_output(m->graph, handle, part->output);
  bool labelled = label != CLEAVE_INDEX_NONE && cleave_value_exists(m->label_values[label]);
  if (labelled && m->label_values[label].index != main_output.index) {
    return CLEAVE_OK;
  }
  bool same_label = labelled && m->label_nodes[label] == node;
  if (m->owners[node] != CLEAVE_INDEX_NONE) {
    cleave_matcher_depend(m, m->taken.items[m->owners[node]].trail);
  }
  if ((m->owners[node] != CLEAVE_INDEX_NONE && !same_label) ||
      (request->states != NULL && request->states[node] >= request->blocked_from) ||
      !cleave_pattern_test_type(&part->type, m->graph, main_output)) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(cleave_matcher_bind_sizes(m, pattern, main_output, out_fits, error));
  if (!*out_fits) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(set_node(m, pattern, node, error));
  CLEAVE_TRY(set_label(m, label, node, main_output, error));
  if (m->owners[node] == CLEAVE_INDEX_NONE) {
    taken_t taken = {node, pattern, CLEAVE_INDEX_NONE, (uint32_t)m->trail.count};
    CLEAVE_TRY(cleave_array_reserve(&m->taken, 1, error));
    CLEAVE_TRY(cleave_matcher_push_trail(m, TRAIL_TAKE, 0, 0, error));
    m->owners[node] = (uint32_t)m->taken.count;
    cleave_array_push_reserved(&m->taken, taken);
  }
  *out_is_new = true;
  return CLEAVE_OK;
}

cleave_status_t cleave_matcher_take_value(cleave_matcher_t *m, uint32_t pattern, cleave_value_t value,
                                          uint32_t link, bool *out_fits, cleave_error_t *error) {
  const cleave_pattern_node_t *part = &m->pattern->nodes[pattern];
  uint32_t label = m->labels[pattern];
  *out_fits = false;
  if (cleave_value_exists(m->bound_values[pattern])) {
    cleave_matcher_depend(m, 0);
    *out_fits = m->bound_values[pattern].index == value.index;
    return CLEAVE_OK;
  }
  bool labelled = label != CLEAVE_INDEX_NONE && cleave_value_exists(m->label_values[label]);
  if ((labelled && m->label_values[label].index != value.index) ||
      !cleave_pattern_test_type(&part->type, m->graph, value) ||
      (part->kind == CLEAVE_PATTERN_CONSTANT &&
       !cleave_pattern_test_constant(&part->constant, m->graph, value))) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(cleave_matcher_bind_sizes(m, pattern, value, out_fits, error));
  if (!*out_fits) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(set_value(m, pattern, value, error));
  if (label != CLEAVE_INDEX_NONE && m->label_is_op[label]) {
    // The main output of an operator of the pattern, by its name.
    CLEAVE_TRY(cleave_matcher_mark_internal(m, link, label, error));
  }
  return labelled ? CLEAVE_OK : set_label(m, label, CLEAVE_INDEX_NONE, value, error);
}

/* If the pattern allows one reader only, an output that is not shared must have one use. */
bool cleave_matcher_has_other_uses(const cleave_matcher_t *m, uint32_t pattern, cleave_value_t value) {
  return m->is_single[pattern] && !m->passes_unnamed && !m->pattern->nodes[pattern].shared &&
         cleave_graph_value(m->graph, value)->use_count != 1;
}
