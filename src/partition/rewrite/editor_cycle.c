// SPDX-License-Identifier: Apache-2.0
// Searches in a changing graph whether a value depends on some nodes. Two searches alternate, backwards from
// the value and forwards from the nodes; if either of them is exhausted, there is no path. Nodes shortly
// before the change cannot come after it, and are not visited.
#include <string.h>

#include "partition/rewrite/editor.h"

enum { EDGES_PER_SEARCH = 512, SAFE_NODES = 64, MAX_SOURCES = 1024 };

/* Stamps of one search. */
enum { BEHIND = 0, AHEAD = 1, SAFE = 2, STAMPS = 3 };

static bool has_stamp(const cleave_editor_t *editor, uint32_t node, uint32_t kind) {
  return editor->stamps.items[node] == editor->stamp + kind;
}

static cleave_status_t begin_search(cleave_editor_t *editor, cleave_error_t *error) {
  size_t bound = cleave_graph_node_bound(editor->graph);
  if (editor->stamp > UINT32_MAX - 2 * STAMPS) {
    if (editor->stamps.count > 0) {
      memset(editor->stamps.items, 0, editor->stamps.count * sizeof *editor->stamps.items);
    }
    editor->stamp = 0;
  }
  if (editor->stamps.count < bound) {
    size_t extra = bound - editor->stamps.count;
    CLEAVE_TRY(cleave_array_reserve(&editor->stamps, extra, error));
    memset(editor->stamps.items + editor->stamps.count, 0, extra * sizeof *editor->stamps.items);
    editor->stamps.count = bound;
  }
  editor->stamp += STAMPS;
  editor->front.count = 0;
  editor->back.count = 0;
  return CLEAVE_OK;
}

static cleave_node_t input_producer(const cleave_graph_t *graph, cleave_node_t node, uint32_t index) {
  cleave_value_t input = cleave_node_input(graph, node, index);
  return cleave_value_exists(input) ? cleave_value_producer(graph, input) : CLEAVE_NODE_NONE;
}

/* Stamps a few of the nodes that `node` depends on, nearest first. */
static cleave_status_t stamp_safe(cleave_editor_t *editor, cleave_node_t node, cleave_error_t *error) {
  const cleave_graph_t *graph = editor->graph;
  editor->back.count = 0;
  CLEAVE_ARRAY_PUSH(&editor->back, node.index, error);
  for (size_t next = 0; next < editor->back.count && editor->back.count < SAFE_NODES; next++) {
    cleave_node_t user = {editor->back.items[next]};
    for (uint32_t k = 0; k < cleave_node_input_count(graph, user) && k < SAFE_NODES; k++) {
      cleave_node_t producer = input_producer(graph, user, k);
      if (cleave_node_exists(producer) && !has_stamp(editor, producer.index, SAFE)) {
        editor->stamps.items[producer.index] = editor->stamp + SAFE;
        CLEAVE_ARRAY_PUSH(&editor->back, producer.index, error);
      }
    }
  }
  editor->back.count = 0;
  return CLEAVE_OK;
}

static cleave_status_t step_back(cleave_editor_t *editor, size_t *edges, bool *out_found,
                                 cleave_error_t *error) {
  const cleave_graph_t *graph = editor->graph;
  cleave_node_t node = {editor->back.items[--editor->back.count]};
  for (uint32_t k = 0; k < cleave_node_input_count(graph, node); k++) {
    cleave_node_t producer = input_producer(graph, node, k);
    (*edges)++;
    if (!cleave_node_exists(producer) || has_stamp(editor, producer.index, BEHIND) ||
        has_stamp(editor, producer.index, SAFE)) {
      continue;
    }
    *out_found = *out_found || has_stamp(editor, producer.index, AHEAD);
    editor->stamps.items[producer.index] = editor->stamp + BEHIND;
    CLEAVE_ARRAY_PUSH(&editor->back, producer.index, error);
  }
  return CLEAVE_OK;
}

static cleave_status_t step_forward(cleave_editor_t *editor, size_t *edges, bool *out_found,
                                    cleave_error_t *error) {
  const cleave_graph_t *graph = editor->graph;
  cleave_node_t node = {editor->front.items[--editor->front.count]};
  for (uint32_t k = 0; k < cleave_node_output_count(graph, node); k++) {
    cleave_use_t use = cleave_value_first_use(graph, cleave_node_output(graph, node, k));
    for (; cleave_use_exists(use) && *edges <= EDGES_PER_SEARCH; use = cleave_use_next(graph, use)) {
      cleave_node_t user = cleave_use_node(graph, use);
      (*edges)++;
      if (!cleave_node_exists(user) || has_stamp(editor, user.index, AHEAD)) {
        continue;
      }
      *out_found = *out_found || has_stamp(editor, user.index, BEHIND);
      editor->stamps.items[user.index] = editor->stamp + AHEAD;
      CLEAVE_ARRAY_PUSH(&editor->front, user.index, error);
    }
  }
  return CLEAVE_OK;
}

/* Both ends are stamped and in their lists. */
static cleave_status_t search(cleave_editor_t *editor, bool *out_found, cleave_error_t *error) {
  size_t edges = 0;
  while (!*out_found) {
    if (edges > EDGES_PER_SEARCH) {
      editor->is_unproved = true;
      return CLEAVE_OK;
    }
    if (editor->back.count == 0 || editor->front.count == 0) {
      return CLEAVE_OK;
    }
    CLEAVE_TRY(step_back(editor, &edges, out_found, error));
    if (!*out_found) {
      CLEAVE_TRY(step_forward(editor, &edges, out_found, error));
    }
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_editor_closes_cycle(cleave_editor_t *editor, cleave_value_t value,
                                           const cleave_node_t *nodes, size_t node_count, cleave_node_t after,
                                           bool *out_closes, cleave_error_t *error) {
  cleave_node_t source = cleave_value_producer(editor->graph, value);
  *out_closes = false;
  if (!cleave_node_exists(source)) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(begin_search(editor, error));
  if (cleave_node_exists(after)) {
    CLEAVE_TRY(stamp_safe(editor, after, error));
  }
  for (size_t k = 0; k < node_count; k++) {
    *out_closes = *out_closes || nodes[k].index == source.index;
    editor->stamps.items[nodes[k].index] = editor->stamp + AHEAD;
    CLEAVE_ARRAY_PUSH(&editor->front, nodes[k].index, error);
  }
  if (*out_closes || has_stamp(editor, source.index, SAFE)) {
    return CLEAVE_OK;
  }
  editor->stamps.items[source.index] = editor->stamp + BEHIND;
  CLEAVE_ARRAY_PUSH(&editor->back, source.index, error);
  return search(editor, out_closes, error);
}

cleave_status_t cleave_editor_mark_new_sources(cleave_editor_t *editor, cleave_value_t value,
                                               cleave_error_t *error) {
  const cleave_graph_t *graph = editor->graph;
  CLEAVE_TRY(begin_search(editor, error));
  cleave_node_t node = cleave_value_producer(graph, value);
  if (cleave_node_exists(node) && node.index >= editor->first_node) {
    editor->stamps.items[node.index] = editor->stamp + BEHIND;
    CLEAVE_ARRAY_PUSH(&editor->back, node.index, error);
  }
  for (uint32_t count = 0; editor->back.count > 0 && count < MAX_SOURCES; count++) {
    node.index = editor->back.items[--editor->back.count];
    editor->work += cleave_node_input_count(graph, node);
    for (uint32_t k = 0; k < cleave_node_input_count(graph, node); k++) {
      cleave_node_t producer = input_producer(graph, node, k);
      if (cleave_node_exists(producer) && producer.index >= editor->first_node &&
          !has_stamp(editor, producer.index, BEHIND)) {
        editor->stamps.items[producer.index] = editor->stamp + BEHIND;
        CLEAVE_ARRAY_PUSH(&editor->back, producer.index, error);
      }
    }
  }
  return CLEAVE_OK;
}

bool cleave_editor_is_marked(const cleave_editor_t *editor, cleave_node_t node) {
  return node.index < editor->stamps.count && has_stamp(editor, node.index, BEHIND);
}
