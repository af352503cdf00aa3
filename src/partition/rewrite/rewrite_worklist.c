// SPDX-License-Identifier: Apache-2.0
// Finds the anchors to try again after a change. A new match contains a changed node, so its anchor is within
// the pattern's reach of one. Readers of values with very many readers are not visited; the rule then tries
// the whole graph once more when the worklist is empty.
#include <string.h>

#include "graph/order.h"
#include "partition/rewrite/rewrite_state.h"

enum { MAX_RADIUS = 32, MAX_READERS = 64, MAX_REACHED = 1024 };

// ---- what a pattern reaches ----

static bool same_label(const cleave_pattern_node_t *a, const cleave_pattern_node_t *b) {
  return a->label != NULL && b->label != NULL && strcmp(a->label, b->label) == 0;
}

/* Is a value of the pattern read in two places? */
static bool reads_twice(const cleave_pattern_t *pattern, const uint32_t *references, uint32_t index) {
  const cleave_pattern_node_t *node = &pattern->nodes[index];
  if (!cleave_pattern_is_value(node)) {
    return false;
  }
  bool twice = references[index] > 1;
  for (uint32_t k = 0; k < pattern->node_count && !twice; k++) {
    twice = k != index && same_label(node, &pattern->nodes[k]);
  }
  return twice;
}

static void list_ops(cleave_rule_run_t *run) {
  const cleave_pattern_t *pattern = run->rule->pattern;
  for (uint32_t k = 0; k < pattern->node_count; k++) {
    const cleave_pattern_node_t *node = &pattern->nodes[k];
    run->any_op = run->any_op || (node->kind == CLEAVE_PATTERN_OP && node->op_count == 0);
    for (uint32_t i = 0; node->kind == CLEAVE_PATTERN_OP && i < node->op_count; i++) {
      uint16_t id = node->ops[i]->id;
      if (id < CLEAVE_OP_COUNT) {
        run->ops[id / 64] |= UINT64_C(1) << id % 64;
      } else {
        run->any_op = true;
      }
    }
  }
}

static bool may_match(const cleave_rule_run_t *run, const cleave_op_t *op) {
  return run->any_op || (op->id < CLEAVE_OP_COUNT && (run->ops[op->id / 64] >> op->id % 64 & 1) != 0);
}

cleave_status_t cleave_rewrite_measure(cleave_rule_run_t *run, cleave_error_t *error) {
  const cleave_pattern_t *pattern = run->rule->pattern;
  uint32_t *references = cleave_allocate_zeroed((size_t)pattern->node_count + 1, sizeof *references);
  CLEAVE_TRY_MEMORY(references, error);
  uint64_t radius = 0;
  list_ops(run);
  uint64_t times = 1;
  run->has_siblings = false;
  for (uint32_t k = 0; k < pattern->node_count; k++) {
    const cleave_pattern_node_t *node = &pattern->nodes[k];
    radius += node->kind == CLEAVE_PATTERN_OP;
    if (node->kind == CLEAVE_PATTERN_REPEATED || node->kind == CLEAVE_PATTERN_VARIADIC) {
      times = node->max > times ? node->max : times;
    }
    run->has_siblings = run->has_siblings || node->kind == CLEAVE_PATTERN_GROUP;
    for (uint32_t i = 0; node->kind == CLEAVE_PATTERN_OP && i < node->input_count; i++) {
      references[node->inputs[i].pattern]++;
    }
    for (uint32_t i = 0; cleave_pattern_has_children(node) && i < node->child_count; i++) {
      references[node->children[i]]++;
    }
  }
  for (uint32_t k = 0; k < pattern->node_count; k++) {
    run->has_siblings = run->has_siblings || reads_twice(pattern, references, k);
  }
  radius *= times;
  run->radius = radius > MAX_RADIUS ? MAX_RADIUS : (uint32_t)radius;
  cleave_free(references);
  return CLEAVE_OK;
}

// ---- positions ----

void cleave_rewrite_drop_order(cleave_rewriter_t *rewriter) {
  cleave_matcher_destroy(rewriter->matcher);
  rewriter->matcher = NULL;
}

static cleave_status_t reserve_order(cleave_rewriter_t *rewriter, size_t node_count, size_t position_count,
                                     cleave_error_t *error) {
  cleave_contraction_t *order = &rewriter->order;
  if (node_count > rewriter->node_capacity) {
    CLEAVE_TRY(cleave_array_grow((void **)&order->nodes, &rewriter->node_capacity, node_count,
                                 sizeof *order->nodes, error));
  }
  if (position_count > rewriter->position_capacity) {
    CLEAVE_TRY(cleave_array_grow((void **)&order->positions, &rewriter->position_capacity, position_count,
                                 sizeof *order->positions, error));
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_rewrite_begin_order(cleave_rewriter_t *rewriter, cleave_error_t *error) {
  const cleave_graph_t *graph = rewriter->editor->graph;
  cleave_contraction_t *order = &rewriter->order;
  cleave_rewrite_drop_order(rewriter);
  CLEAVE_TRY(
      reserve_order(rewriter, graph->live_node_count + 1, (size_t)cleave_graph_node_bound(graph) + 1, error));
  CLEAVE_TRY(cleave_graph_topological_order(graph, order->nodes, order->positions, error));
  order->graph = graph;
  order->node_count = (uint32_t)graph->live_node_count;
  rewriter->known_nodes = cleave_graph_node_bound(graph);
  return cleave_matcher_create(order, &rewriter->matcher, error);
}

cleave_status_t cleave_rewrite_grow_order(cleave_rewriter_t *rewriter, cleave_error_t *error) {
  cleave_contraction_t *order = &rewriter->order;
  uint32_t bound = cleave_graph_node_bound(rewriter->editor->graph);
  size_t extra = bound - rewriter->known_nodes;
  CLEAVE_TRY(reserve_order(rewriter, order->node_count + extra + 1, (size_t)bound + 1, error));
  for (uint32_t node = rewriter->known_nodes; node < bound; node++) {
    order->positions[node] = order->node_count;
    order->nodes[order->node_count++].index = node;
  }
  rewriter->known_nodes = bound;
  return cleave_matcher_grow(rewriter->matcher, error);
}

// ---- neighbours ----

typedef struct walk {
  cleave_rewriter_t *rewriter;
  cleave_rule_run_t *run;
  const cleave_graph_t *graph;
} walk_t;

static cleave_status_t reach(walk_t *walk, cleave_node_t node, cleave_error_t *error) {
  cleave_rewriter_t *rewriter = walk->rewriter;
  if (!cleave_node_exists(node) || rewriter->walks.items[node.index] == rewriter->walk) {
    return CLEAVE_OK;
  }
  rewriter->walks.items[node.index] = rewriter->walk;
  CLEAVE_ARRAY_PUSH(&rewriter->reached, node.index, error);
  return CLEAVE_OK;
}

static cleave_status_t reach_readers(walk_t *walk, cleave_value_t value, cleave_error_t *error) {
  if (cleave_graph_value(walk->graph, value)->use_count > MAX_READERS) {
    walk->run->looks_at_all = true;
    return CLEAVE_OK;
  }
  for (cleave_use_t use = cleave_value_first_use(walk->graph, value); cleave_use_exists(use);
       use = cleave_use_next(walk->graph, use)) {
    CLEAVE_TRY(reach(walk, cleave_use_node(walk->graph, use), error));
  }
  return CLEAVE_OK;
}

static cleave_status_t reach_neighbours(walk_t *walk, cleave_node_t node, cleave_error_t *error) {
  for (uint32_t k = 0; k < cleave_node_output_count(walk->graph, node); k++) {
    CLEAVE_TRY(reach_readers(walk, cleave_node_output(walk->graph, node, k), error));
  }
  for (uint32_t k = 0; k < cleave_node_input_count(walk->graph, node); k++) {
    cleave_value_t input = cleave_node_input(walk->graph, node, k);
    if (!cleave_value_exists(input)) {
      continue;
    }
    CLEAVE_TRY(reach(walk, cleave_value_producer(walk->graph, input), error));
    if (walk->run->has_siblings) {
      CLEAVE_TRY(reach_readers(walk, input, error));
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t begin_walk(cleave_rewriter_t *rewriter, cleave_error_t *error) {
  size_t bound = cleave_graph_node_bound(rewriter->editor->graph);
  if (rewriter->walk == UINT32_MAX) {
    memset(rewriter->walks.items, 0, rewriter->walks.count * sizeof *rewriter->walks.items);
    rewriter->walk = 0;
  }
  rewriter->walk++;
  rewriter->reached.count = 0;
  while (rewriter->walks.count < bound) {
    CLEAVE_ARRAY_PUSH(&rewriter->walks, 0, error);
  }
  while (rewriter->is_waiting.count < bound) {
    CLEAVE_ARRAY_PUSH(&rewriter->is_waiting, 0, error);
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_rewrite_extend_worklist(cleave_rewriter_t *rewriter, cleave_rule_run_t *run,
                                               const uint32_t *changed, size_t count, cleave_error_t *error) {
  walk_t walk = {rewriter, run, rewriter->editor->graph};
  CLEAVE_TRY(begin_walk(rewriter, error));
  for (size_t k = 0; k < count; k++) {
    cleave_node_t node = {changed[k]};
    if (cleave_node_is_live(walk.graph, node)) {
      CLEAVE_TRY(reach(&walk, node, error));
    }
  }
  size_t first = 0;
  size_t budget = rewriter->reached.count + MAX_REACHED;
  for (uint32_t distance = 0; distance < run->radius && first < rewriter->reached.count; distance++) {
    size_t end = rewriter->reached.count;
    for (; first < end; first++) {
      if (rewriter->reached.count > budget) {
        run->looks_at_all = true;
        distance = run->radius;
        break;
      }
      CLEAVE_TRY(reach_neighbours(&walk, (cleave_node_t){rewriter->reached.items[first]}, error));
    }
  }
  for (size_t k = rewriter->reached.count; k > 0; k--) {
    uint32_t node = rewriter->reached.items[k - 1];
    if (rewriter->is_waiting.items[node] == 0 && may_match(run, walk.graph->nodes.items[node].op)) {
      rewriter->is_waiting.items[node] = 1;
      CLEAVE_ARRAY_PUSH(&rewriter->worklist, node, error);
    }
  }
  return CLEAVE_OK;
}
