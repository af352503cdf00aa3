// SPDX-License-Identifier: Apache-2.0
// Tests a complete match (only allowed outputs are used outside, and the pattern names every edge inside) and
// fills in what callers see of it.

#include <stdlib.h>

#include "base/containers/numbers.h"
#include "base/hash.h"
#include "partition/match/match_state.h"

static bool is_matched(const cleave_matcher_t *m, cleave_node_t node) {
  return cleave_node_exists(node) && m->owners[m->contraction->positions[node.index]] != CLEAVE_INDEX_NONE;
}

enum { MANY_USES = 64 };

/* Counts the uses of a value by nodes of the match: from the value's uses, or, if these are many, from the
 * match's inputs. */
static uint32_t count_uses_inside(const cleave_matcher_t *m, cleave_value_t value) {
  uint32_t count = 0;
  if (cleave_graph_value(m->graph, value)->use_count <= MANY_USES) {
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

static bool is_exit(const cleave_matcher_t *m, cleave_value_t value) {
  for (size_t k = 0; k < m->exits.count; k++) {
    if (m->exits.items[k].index == value.index) {
      return true;
    }
  }
  return false;
}

/* Does the pattern say that a matched node makes the input? A label counts only if it is on a node. */
static bool is_internal(const cleave_matcher_t *m, uint32_t link) {
  if (link == CLEAVE_INDEX_NONE || !m->links.items[link].internal) {
    return false;
  }
  uint32_t label = m->links.items[link].label;
  return label == CLEAVE_INDEX_NONE || m->label_nodes[label] != CLEAVE_INDEX_NONE;
}

static bool takes_all_inputs(const cleave_pattern_node_t *part) {
  return part->input_count > 0 && part->inputs[part->input_count - 1].port == CLEAVE_PATTERN_PORT_VARIADIC;
}

/* Are only those outputs of the node used outside that may be? */
static bool output_is_closed(const cleave_matcher_t *m, const taken_t *taken) {
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
    outside = outside && !is_exit(m, value);
    leaves = leaves || (outside && k == part->output);
    if (outside && k != part->output) {
      return false;
    }
  }
  return !leaves || is_sink;
}

/* If a pattern node has a variadic input: does the pattern name all inputs of the node? */
static bool inputs_are_covered(const cleave_matcher_t *m, const taken_t *taken) {
  cleave_node_t node = m->contraction->nodes[taken->node];
  if (!takes_all_inputs(&m->pattern->nodes[taken->pattern])) {
    return true;
  }
  for (uint32_t k = 0; k < cleave_node_input_count(m->graph, node); k++) {
    if (cleave_value_exists(cleave_node_input(m->graph, node, k)) &&
        cleave_matcher_find_link(m, taken->node, k) == CLEAVE_INDEX_NONE) {
      return false;
    }
  }
  return true;
}

/* Does the pattern name the edge, or does the request allow unnamed ones? */
static bool edge_is_named(cleave_matcher_t *m, cleave_node_t user, uint32_t index) {
  if (is_internal(m, cleave_matcher_find_link(m, m->contraction->positions[user.index], index))) {
    return true;
  }
  if (!m->passes_unnamed || m->unnamed_count == CLEAVE_MATCH_MAX_UNNAMED) {
    return false;
  }
  m->unnamed[m->unnamed_count++] = (cleave_match_edge_t){user, index};
  return true;
}

/* Inputs of a node of the match that are made inside and have very many readers, one by one. */
static bool inputs_are_named(cleave_matcher_t *m, const taken_t *taken) {
  cleave_node_t node = m->contraction->nodes[taken->node];
  for (uint32_t k = 0; k < cleave_node_input_count(m->graph, node); k++) {
    cleave_value_t value = cleave_node_input(m->graph, node, k);
    if (cleave_value_exists(value) && cleave_graph_value(m->graph, value)->use_count > MANY_USES &&
        is_matched(m, cleave_value_producer(m->graph, value)) && !edge_is_named(m, node, k)) {
      return false;
    }
  }
  return true;
}

/* Is every edge inside one that the pattern names? Looks from what makes values, which may be one of
 * thousands of inputs; if a value has very many readers, from what reads. */
static bool edges_are_named(cleave_matcher_t *m) {
  bool looks_from_readers = false;
  for (size_t k = 0; k < m->taken.count; k++) {
    cleave_node_t node = m->contraction->nodes[m->taken.items[k].node];
    for (uint32_t o = 0; o < cleave_node_output_count(m->graph, node); o++) {
      cleave_value_t value = cleave_node_output(m->graph, node, o);
      if (cleave_graph_value(m->graph, value)->use_count > MANY_USES) {
        looks_from_readers = true;
        continue;
      }
      for (cleave_use_t use = cleave_value_first_use(m->graph, value); cleave_use_exists(use);
           use = cleave_use_next(m->graph, use)) {
        cleave_node_t user = cleave_use_node(m->graph, use);
        if (is_matched(m, user) && !edge_is_named(m, user, cleave_use_input_index(m->graph, use))) {
          return false;
        }
      }
    }
  }
  for (size_t k = 0; looks_from_readers && k < m->taken.count; k++) {
    if (!inputs_are_named(m, &m->taken.items[k])) {
      return false;
    }
  }
  return true;
}

bool cleave_matcher_is_closed(cleave_matcher_t *m) {
  m->unnamed_count = 0;
  for (size_t k = 0; k < m->taken.count; k++) {
    if (!output_is_closed(m, &m->taken.items[k]) || !inputs_are_covered(m, &m->taken.items[k])) {
      return false;
    }
  }
  return edges_are_named(m);
}

uint64_t cleave_match_hash_nodes(const cleave_node_t *nodes, uint32_t count) {
  uint64_t hash = CLEAVE_HASH_SEED;
  for (uint32_t k = 0; k < count; k++) {
    hash = cleave_hash_combine(hash, nodes[k].index);
  }
  return hash;
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
    qsort(m->sorted.items, count, sizeof *m->sorted.items, cleave_compare_u32);
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
