// SPDX-License-Identifier: Apache-2.0
// What a search binds, and how it is undone: nodes and values of the pattern, labels, symbols, taken nodes
// and the inputs that the pattern speaks of. Every change goes on the trail. And the test of a complete
// match.

#include <stdlib.h>

#include "base/hash.h"
#include "partition/match_state.h"
#include "partition/pattern_test.h"

// ---- bindings ----

static cleave_status_t push_trail(cleave_matcher_t *m, trail_kind_t kind, uint32_t index, uint32_t old,
                                  cleave_error_t *error) {
  CLEAVE_ARRAY_PUSH(&m->trail, ((trail_t){(uint32_t)kind, index, old}), error);
  return CLEAVE_OK;
}

void cleave_matcher_undo(cleave_matcher_t *m, size_t count) {
  while (m->trail.count > count) {
    trail_t entry = m->trail.items[--m->trail.count];
    switch ((trail_kind_t)entry.kind) {
      case TRAIL_NODE: m->bound_nodes[entry.index] = entry.old; break;
      case TRAIL_VALUE: m->bound_values[entry.index].index = entry.old; break;
      case TRAIL_LABEL_NODE: m->label_nodes[entry.index] = entry.old; break;
      case TRAIL_LABEL_VALUE: m->label_values[entry.index].index = entry.old; break;
      case TRAIL_SYMBOL: m->symbols[entry.index].is_bound = false; break;
      case TRAIL_TAKE: m->owners[m->taken.items[--m->taken.count].node] = CLEAVE_INDEX_NONE; break;
      case TRAIL_LINK: {
        link_t *link = &m->links.items[--m->links.count];
        m->taken.items[link->taken].links = link->previous;
        break;
      }
      case TRAIL_LINK_INTERNAL: m->links.items[entry.index].internal = false; break;
    }
  }
}

static cleave_status_t set_node(cleave_matcher_t *m, uint32_t pattern, uint32_t node, cleave_error_t *error) {
  CLEAVE_TRY(push_trail(m, TRAIL_NODE, pattern, m->bound_nodes[pattern], error));
  m->bound_nodes[pattern] = node;
  return CLEAVE_OK;
}

static cleave_status_t set_value(cleave_matcher_t *m, uint32_t pattern, cleave_value_t value,
                                 cleave_error_t *error) {
  CLEAVE_TRY(push_trail(m, TRAIL_VALUE, pattern, m->bound_values[pattern].index, error));
  m->bound_values[pattern] = value;
  return CLEAVE_OK;
}

static cleave_status_t set_label(cleave_matcher_t *m, uint32_t label, uint32_t node, cleave_value_t value,
                                 cleave_error_t *error) {
  if (label == CLEAVE_INDEX_NONE) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(push_trail(m, TRAIL_LABEL_NODE, label, m->label_nodes[label], error));
  m->label_nodes[label] = node;
  CLEAVE_TRY(push_trail(m, TRAIL_LABEL_VALUE, label, m->label_values[label].index, error));
  m->label_values[label] = value;
  return CLEAVE_OK;
}

cleave_status_t cleave_matcher_bind_value(cleave_matcher_t *m, uint32_t pattern, cleave_value_t value,
                                          bool *out_fits, cleave_error_t *error) {
  bool is_bound = cleave_value_exists(m->bound_values[pattern]);
  *out_fits = !is_bound || m->bound_values[pattern].index == value.index;
  return is_bound ? CLEAVE_OK : set_value(m, pattern, value, error);
}

/* What a repetition bound is free again for the next one. */
cleave_status_t cleave_matcher_forget(cleave_matcher_t *m, uint32_t repeated, cleave_error_t *error) {
  for (uint32_t k = m->repeat_starts[repeated]; k < m->repeat_starts[repeated + 1]; k++) {
    uint32_t pattern = m->exclusive[k];
    CLEAVE_TRY(set_node(m, pattern, CLEAVE_INDEX_NONE, error));
    CLEAVE_TRY(set_value(m, pattern, CLEAVE_VALUE_NONE, error));
    CLEAVE_TRY(set_label(m, m->labels[pattern], CLEAVE_INDEX_NONE, CLEAVE_VALUE_NONE, error));
  }
  return CLEAVE_OK;
}

/* Symbols of a shape: bound at first sight; later sizes must be known to be the same. */
static cleave_status_t bind_symbols(cleave_matcher_t *m, uint32_t pattern, cleave_value_t value,
                                    bool *out_fits, cleave_error_t *error) {
  const cleave_type_test_t *type = &m->pattern->nodes[pattern].type;
  const cleave_value_record_t *record = cleave_graph_value(m->graph, value);
  *out_fits = true;
  for (int32_t d = 0; type->dims != NULL && d < type->rank; d++) {
    uint32_t index = m->symbols_of[m->symbol_starts[pattern] + (uint32_t)d];
    if (index == CLEAVE_INDEX_NONE) {
      continue;
    }
    symbol_t *symbol = &m->symbols[index];
    if (!symbol->is_bound) {
      CLEAVE_TRY(push_trail(m, TRAIL_SYMBOL, index, 0, error));
      symbol->is_bound = true;
      symbol->dim = record->dims[d];
    } else if (symbol->dim == CLEAVE_DIM_UNKNOWN || symbol->dim != record->dims[d]) {
      *out_fits = false;
    }
  }
  return CLEAVE_OK;
}

bool cleave_matcher_port_is_free(const cleave_matcher_t *m, uint32_t node, uint32_t port) {
  uint32_t link = m->taken.items[m->owners[node]].links;
  while (link != CLEAVE_INDEX_NONE) {
    if (m->links.items[link].port == port) {
      return false;
    }
    link = m->links.items[link].previous;
  }
  return true;
}

cleave_status_t cleave_matcher_add_link(cleave_matcher_t *m, uint32_t node, uint32_t port, bool internal,
                                        uint32_t *out_link, cleave_error_t *error) {
  uint32_t owner = m->owners[node];
  CLEAVE_TRY(cleave_array_reserve(&m->links, 1, error));
  CLEAVE_TRY(push_trail(m, TRAIL_LINK, 0, 0, error));
  *out_link = (uint32_t)m->links.count;
  cleave_array_push_reserved(&m->links, ((link_t){owner, port, m->taken.items[owner].links, internal}));
  m->taken.items[owner].links = *out_link;
  return CLEAVE_OK;
}

cleave_status_t cleave_matcher_mark_internal(cleave_matcher_t *m, uint32_t link, cleave_error_t *error) {
  if (link == CLEAVE_INDEX_NONE || m->links.items[link].internal) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(push_trail(m, TRAIL_LINK_INTERNAL, link, 0, error));
  m->links.items[link].internal = true;
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
  if ((m->owners[node] != CLEAVE_INDEX_NONE && !same_label) ||
      (request->states != NULL && request->states[node] >= request->blocked_from) ||
      !cleave_pattern_test_type(&part->type, m->graph, main_output)) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(bind_symbols(m, pattern, main_output, out_fits, error));
  if (!*out_fits) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(set_node(m, pattern, node, error));
  CLEAVE_TRY(set_label(m, label, node, main_output, error));
  if (m->owners[node] == CLEAVE_INDEX_NONE) {
    CLEAVE_TRY(cleave_array_reserve(&m->taken, 1, error));
    CLEAVE_TRY(push_trail(m, TRAIL_TAKE, 0, 0, error));
    m->owners[node] = (uint32_t)m->taken.count;
    cleave_array_push_reserved(&m->taken, ((taken_t){node, pattern, CLEAVE_INDEX_NONE}));
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
  CLEAVE_TRY(bind_symbols(m, pattern, value, out_fits, error));
  if (!*out_fits) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(set_value(m, pattern, value, error));
  if (label != CLEAVE_INDEX_NONE && m->label_is_op[label]) {
    // The main output of an operator of the pattern, by its name.
    CLEAVE_TRY(cleave_matcher_mark_internal(m, link, error));
  }
  return labelled ? CLEAVE_OK : set_label(m, label, CLEAVE_INDEX_NONE, value, error);
}

/* Where every part of the pattern is used once, an output that is not shared has one use. */
bool cleave_matcher_has_other_uses(const cleave_matcher_t *m, uint32_t pattern, cleave_value_t value) {
  return m->is_tree && !m->pattern->nodes[pattern].shared &&
         cleave_graph_value(m->graph, value)->use_count != 1;
}

// ---- a complete match ----

static bool is_matched(const cleave_matcher_t *m, cleave_node_t node) {
  return cleave_node_exists(node) && m->owners[m->contraction->positions[node.index]] != CLEAVE_INDEX_NONE;
}

/* Uses of a value by nodes of the match: from its uses, or where those are many from the match's inputs. */
static uint32_t count_uses_inside(const cleave_matcher_t *m, cleave_value_t value) {
  const uint32_t many = 64;
  uint32_t count = 0;
  if (cleave_graph_value(m->graph, value)->use_count <= many) {
    for (cleave_use_t use = cleave_value_first_use(m->graph, value); cleave_use_exists(use);
         use = cleave_use_next(m->graph, use)) {
      count += is_matched(m, cleave_use_node(m->graph, use));
    }
    return count;
  }
  for (size_t k = 0; k < m->taken.count; k++) {
    cleave_node_t user = m->contraction->nodes[m->taken.items[k].node];
    for (uint32_t i = 0; i < cleave_node_input_count(m->graph, user); i++) {
      count += cleave_node_input(m->graph, user, i).index == value.index;
    }
  }
  return count;
}

/* What leaves a node, and what the pattern does not say of its inputs. */
static bool node_is_closed(const cleave_matcher_t *m, const taken_t *taken) {
  const cleave_graph_t *graph = m->graph;
  cleave_node_t node = m->contraction->nodes[taken->node];
  const cleave_pattern_node_t *part = &m->pattern->nodes[taken->pattern];
  bool is_sink = true;
  bool leaves = false; /* through the main output */
  for (uint32_t k = 0; k < cleave_node_output_count(graph, node) && !part->shared; k++) {
    cleave_value_t value = cleave_node_output(graph, node, k);
    uint32_t inside = count_uses_inside(m, value);
    bool outside = inside < cleave_graph_value(graph, value)->use_count;
    is_sink = is_sink && inside == 0;
    leaves = leaves || (outside && k == part->output);
    if (outside && k != part->output) {
      return false;
    }
  }
  if (leaves && !is_sink) {
    return false;
  }
  for (uint32_t k = 0; k < cleave_node_input_count(graph, node); k++) {
    cleave_value_t value = cleave_node_input(graph, node, k);
    cleave_node_t producer =
        cleave_value_exists(value) ? cleave_value_producer(graph, value) : CLEAVE_NODE_NONE;
    if (!is_matched(m, producer)) {
      continue;
    }
    uint32_t link = taken->links;
    while (link != CLEAVE_INDEX_NONE && m->links.items[link].port != k) {
      link = m->links.items[link].previous;
    }
    if (link == CLEAVE_INDEX_NONE || !m->links.items[link].internal) {
      return false;
    }
  }
  return true;
}

bool cleave_matcher_is_closed(const cleave_matcher_t *m) {
  for (size_t k = 0; k < m->taken.count; k++) {
    if (!node_is_closed(m, &m->taken.items[k])) {
      return false;
    }
  }
  return true;
}

static int compare_positions(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a;
  uint32_t y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

cleave_status_t cleave_matcher_describe(cleave_matcher_t *m, uint64_t *out_hash, cleave_error_t *error) {
  const cleave_pattern_t *pattern = m->pattern;
  size_t count = m->taken.count;
  m->sorted.count = 0;
  m->nodes.count = 0;
  m->names.count = 0;
  CLEAVE_TRY(cleave_array_reserve(&m->sorted, count, error));
  CLEAVE_TRY(cleave_array_reserve(&m->nodes, count, error));
  CLEAVE_TRY(cleave_array_reserve(&m->names, count, error));
  for (size_t k = 0; k < count; k++) {
    cleave_array_push_reserved(&m->sorted, m->taken.items[k].node);
  }
  if (count > 1) {
    qsort(m->sorted.items, count, sizeof *m->sorted.items, compare_positions);
  }
  uint64_t hash = CLEAVE_HASH_SEED;
  for (size_t k = 0; k < count; k++) {
    uint32_t node = m->sorted.items[k];
    uint32_t part = m->taken.items[m->owners[node]].pattern;
    const char *label = pattern->nodes[part].label;
    cleave_array_push_reserved(&m->nodes, m->contraction->nodes[node]);
    cleave_array_push_reserved(&m->names, label == NULL ? "" : label);
    hash = cleave_hash_combine(hash, (uint64_t)node << 32 | part);
  }
  for (uint32_t k = 0; k < pattern->label_count; k++) {
    uint32_t node = m->label_nodes[k];
    m->out_label_nodes[k] = node == CLEAVE_INDEX_NONE ? CLEAVE_NODE_NONE : m->contraction->nodes[node];
    hash = cleave_hash_combine(hash, m->label_values[k].index);
  }
  m->match = (cleave_match_t){.pattern = pattern,
                              .label_nodes = m->out_label_nodes,
                              .label_values = m->out_label_values,
                              .nodes = m->nodes.items,
                              .node_labels = m->names.items,
                              .node_count = (uint32_t)count};
  for (uint32_t k = 0; k < pattern->label_count; k++) {
    m->out_label_values[k] = m->label_values[k];
  }
  *out_hash = hash;
  return CLEAVE_OK;
}
