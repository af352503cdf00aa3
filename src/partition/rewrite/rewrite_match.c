// SPDX-License-Identifier: Apache-2.0
// The match in hand of a rewrite: its nodes in topological order, their hashes, the values that are read
// outside, and what the pattern read of sizes and constants.
#include "base/hash.h"
#include "graph/compare/structural_hash.h"
#include "partition/pattern/pattern_test.h"
#include "partition/rewrite/rewrite_state.h"

enum { READABLE_CONSTANT = 256 };

/* Are all producers inside of the match among the first `count` nodes in hand? */
static bool is_ready(const cleave_rewriter_t *rewriter, cleave_node_t node, uint32_t count) {
  const cleave_graph_t *graph = rewriter->editor->graph;
  for (uint32_t k = 0; k < cleave_node_input_count(graph, node); k++) {
    cleave_value_t input = cleave_node_input(graph, node, k);
    cleave_node_t producer =
        cleave_value_exists(input) ? cleave_value_producer(graph, input) : CLEAVE_NODE_NONE;
    if (cleave_rewrite_is_inside(rewriter, producer) && rewriter->local.items[producer.index] >= count) {
      return false;
    }
  }
  return true;
}

/* Orders the nodes; they usually are in order already. */
static cleave_status_t order_nodes(cleave_rewriter_t *rewriter, const cleave_match_t *match,
                                   cleave_error_t *error) {
  uint32_t count = match->node_count;
  size_t bound = cleave_graph_node_bound(rewriter->editor->graph);
  while (rewriter->local.count < bound) {
    CLEAVE_ARRAY_PUSH(&rewriter->local, CLEAVE_INDEX_NONE, error);
  }
  rewriter->nodes.count = 0;
  rewriter->labels.count = 0;
  rewriter->hashes.count = 0;
  CLEAVE_TRY(cleave_array_reserve(&rewriter->nodes, count, error));
  CLEAVE_TRY(cleave_array_reserve(&rewriter->labels, count, error));
  CLEAVE_TRY(cleave_array_reserve(&rewriter->hashes, count, error));
  for (uint32_t k = 0; k < count; k++) {
    rewriter->local.items[match->nodes[k].index] = count;  // inside, not placed yet
  }
  uint32_t done = 0;
  for (bool moved = true; moved && done < count;) {
    moved = false;
    for (uint32_t k = 0; k < count; k++) {
      cleave_node_t node = match->nodes[k];
      if (rewriter->local.items[node.index] == count && is_ready(rewriter, node, count)) {
        rewriter->local.items[node.index] = done++;
        cleave_array_push_reserved(&rewriter->nodes, node);
        cleave_array_push_reserved(&rewriter->labels, match->node_labels[k]);
        moved = true;
      }
    }
  }
  for (uint32_t k = 0; k < count && done < count; k++) {  // only if a rule closed a cycle
    cleave_node_t node = match->nodes[k];
    if (rewriter->local.items[node.index] == count) {
      rewriter->local.items[node.index] = done++;
      cleave_array_push_reserved(&rewriter->nodes, node);
      cleave_array_push_reserved(&rewriter->labels, match->node_labels[k]);
    }
  }
  return CLEAVE_OK;
}

static uint64_t hash_leaf(const cleave_rewriter_t *rewriter, cleave_value_t value) {
  const cleave_tensor_t *tensor = cleave_graph_value(rewriter->editor->graph, value)->tensor;
  if (tensor == NULL) {
    return cleave_hash_combine(CLEAVE_HASH_SEED, cleave_rewrite_place(rewriter->loops, value.index));
  }
  uint64_t hash = cleave_hash_combine(CLEAVE_HASH_SEED + 1, (uint64_t)tensor->dtype);
  if (tensor->bytes > READABLE_CONSTANT || tensor->dtype == CLEAVE_DTYPE_STRING) {
    return cleave_hash_combine(hash, tensor->version);
  }
  hash = cleave_hash_bytes(hash, tensor->dims, (size_t)tensor->rank * sizeof *tensor->dims);
  return tensor->bytes == 0 ? hash : cleave_hash_bytes(hash, tensor->data, tensor->bytes);
}

/* Hashes each node together with all nodes of the match that it depends on. */
static void hash_nodes(cleave_rewriter_t *rewriter) {
  const cleave_graph_t *graph = rewriter->editor->graph;
  for (uint32_t k = 0; k < rewriter->nodes.count; k++) {
    cleave_node_t node = rewriter->nodes.items[k];
    uint64_t hash = cleave_node_hash(graph, node, CLEAVE_HASH_SEED);
    for (uint32_t i = 0; i < cleave_node_input_count(graph, node); i++) {
      cleave_value_t input = cleave_node_input(graph, node, i);
      uint64_t part = 0;
      if (cleave_value_exists(input)) {
        cleave_node_t producer = cleave_value_producer(graph, input);
        bool inside =
            cleave_rewrite_is_inside(rewriter, producer) && rewriter->local.items[producer.index] < k;
        part = inside ? cleave_hash_combine(rewriter->hashes.items[rewriter->local.items[producer.index]],
                                            cleave_graph_value(graph, input)->output_index)
                      : hash_leaf(rewriter, input);
      }
      hash = cleave_hash_combine(hash, part);
    }
    cleave_array_push_reserved(&rewriter->hashes, hash);
  }
}

/* Lists the values of the match that other nodes read, or that are graph outputs. */
static cleave_status_t find_outputs(cleave_rewriter_t *rewriter, cleave_error_t *error) {
  const cleave_graph_t *graph = rewriter->editor->graph;
  rewriter->outputs.count = 0;
  for (uint32_t k = 0; k < rewriter->nodes.count; k++) {
    for (uint32_t o = 0; o < cleave_node_output_count(graph, rewriter->nodes.items[k]); o++) {
      cleave_value_t value = cleave_node_output(graph, rewriter->nodes.items[k], o);
      cleave_use_t use = cleave_value_first_use(graph, value);
      while (cleave_use_exists(use) && cleave_rewrite_is_inside(rewriter, cleave_use_node(graph, use))) {
        use = cleave_use_next(graph, use);
      }
      if (cleave_use_exists(use)) {
        CLEAVE_ARRAY_PUSH(&rewriter->outputs, value, error);
      }
    }
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_rewrite_hold(cleave_rewriter_t *rewriter, const cleave_match_t *match,
                                    cleave_error_t *error) {
  CLEAVE_TRY(order_nodes(rewriter, match, error));
  hash_nodes(rewriter);
  return find_outputs(rewriter, error);
}

void cleave_rewrite_release(cleave_rewriter_t *rewriter, const cleave_match_t *match) {
  for (uint32_t k = 0; k < match->node_count; k++) {
    if (match->nodes[k].index < rewriter->local.count) {  // missing if memory was short
      rewriter->local.items[match->nodes[k].index] = CLEAVE_INDEX_NONE;
    }
  }
}

static bool reads_sizes(const cleave_pattern_t *pattern) {
  bool reads = pattern->where != NULL;
  for (uint32_t p = 0; !reads && p < pattern->node_count; p++) {
    reads = pattern->nodes[p].type.dims != NULL || pattern->nodes[p].where != NULL;
  }
  return reads;
}

/* Logs that sizes were read: those of all values of the match, which the pattern may have tested. */
static cleave_status_t note_sizes(const cleave_rewriter_t *rewriter, const cleave_match_t *match,
                                  cleave_error_t *error) {
  const cleave_graph_t *graph = rewriter->editor->graph;
  for (uint32_t k = 0; graph->is_sized && reads_sizes(match->pattern) && k < match->node_count; k++) {
    uint32_t inputs = cleave_node_input_count(graph, match->nodes[k]);
    for (uint32_t p = 0; p < inputs + cleave_node_output_count(graph, match->nodes[k]); p++) {
      cleave_value_t value = p < inputs ? cleave_node_input(graph, match->nodes[k], p)
                                        : cleave_node_output(graph, match->nodes[k], p - inputs);
      if (cleave_value_exists(value) && !cleave_value_is_constant(graph, value)) {
        CLEAVE_TRY(cleave_graph_note_read(graph, value, error));
      }
    }
  }
  return CLEAVE_OK;
}

/* Logs that constants were read: those of the match that meet a content test of the pattern. */
static cleave_status_t note_constants(const cleave_rewriter_t *rewriter, const cleave_match_t *match,
                                      cleave_error_t *error) {
  const cleave_graph_t *graph = rewriter->editor->graph;
  for (uint32_t p = 0; p < match->pattern->node_count; p++) {
    const cleave_pattern_node_t *part = &match->pattern->nodes[p];
    if (part->kind != CLEAVE_PATTERN_CONSTANT || !cleave_pattern_reads_constant(&part->constant)) {
      continue;
    }
    for (uint32_t k = 0; k < match->node_count; k++) {
      for (uint32_t i = 0; i < cleave_node_input_count(graph, match->nodes[k]); i++) {
        cleave_value_t input = cleave_node_input(graph, match->nodes[k], i);
        if (cleave_value_exists(input) && cleave_pattern_test_constant(&part->constant, graph, input)) {
          CLEAVE_TRY(cleave_graph_note_read(graph, input, error));
        }
      }
    }
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_rewrite_note_reads(const cleave_rewriter_t *rewriter, const cleave_match_t *match,
                                          cleave_error_t *error) {
  CLEAVE_TRY(note_constants(rewriter, match, error));
  return note_sizes(rewriter, match, error);
}
