// SPDX-License-Identifier: Apache-2.0
// What a choice is made from: sizes, who reads what and when, what repeating a node costs.

#include "graph/order.h"
#include "ops/ops.h"
#include "partition/gradient/recompute_state.h"

/* An output that has less than this part of the largest one (statistics of a norm) is kept: repeating the
 * node for it alone would not pay. */
enum { SMALL_PART = 64 };

bool cleave_recompute_reads_elements(const cleave_graph_t *graph, cleave_node_t node) {
  const cleave_op_t *op = cleave_node_op(graph, node);
  return op->id != (uint16_t)CLEAVE_OP_Shape && op->id != (uint16_t)CLEAVE_OP_Size;
}

uint32_t cleave_recompute_set(recompute_t *state, uint32_t node) {
  while (state->nodes[node].set != node) {
    state->nodes[node].set = state->nodes[state->nodes[node].set].set;
    node = state->nodes[node].set;
  }
  return node;
}

static bool is_view(const cleave_graph_t *graph, cleave_node_t node) {
  return (cleave_node_op(graph, node)->flags & CLEAVE_OP_VIEW) != 0 &&
         cleave_node_input_count(graph, node) > 0 && cleave_value_exists(cleave_node_input(graph, node, 0));
}

// ---- values ----

static cleave_status_t measure(recompute_t *state, cleave_value_t value, cleave_error_t *error) {
  const cleave_value_record_t *record = cleave_graph_value(state->graph, value);
  int64_t count = 0;
  if (record->dtype == CLEAVE_DTYPE_UNKNOWN ||
      !cleave_shape_element_count(record->rank, record->dims, &count)) {
    return cleave_error_set(
        error, CLEAVE_ERROR_SHAPE,
        "recompute: the size of value '%.100s' is not known: give the sizes of the inputs",
        cleave_value_name(state->graph, value));
  }
  size_t bytes = 0;
  if (!cleave_size_multiply((size_t)count, cleave_dtype_size((cleave_dtype_t)record->dtype), &bytes) ||
      bytes > INT64_MAX / 1024) {
    return cleave_error_set(error, CLEAVE_ERROR_LIMIT, "recompute: value '%.100s' is too large",
                            cleave_value_name(state->graph, value));
  }
  state->values[value.index].bytes = (int64_t)bytes;
  return CLEAVE_OK;
}

/* Sizes of the outputs of a node, and whose memory they are. */
static cleave_status_t add_outputs(recompute_t *state, cleave_node_t node, uint32_t position,
                                   cleave_error_t *error) {
  const cleave_graph_t *graph = state->graph;
  for (uint32_t k = 0; k < cleave_node_output_count(graph, node); k++) {
    cleave_value_t value = cleave_node_output(graph, node, k);
    recompute_value_t *entry = &state->values[value.index];
    entry->last = position;
    if (k == 0 && is_view(graph, node)) {
      entry->root = state->values[cleave_node_input(graph, node, 0).index].root;
    } else if (cleave_graph_value(graph, value)->use_count > 0) {
      CLEAVE_TRY(measure(state, value, error));
    }
  }
  return CLEAVE_OK;
}

static void add_reads(recompute_t *state, cleave_node_t node, uint32_t position) {
  const cleave_graph_t *graph = state->graph;
  bool is_backward = position >= state->forward_count;
  if (is_backward && !cleave_recompute_reads_elements(graph, node)) {
    return;
  }
  for (uint32_t k = 0; k < cleave_node_input_count(graph, node); k++) {
    cleave_value_t value = cleave_node_input(graph, node, k);
    if (!cleave_value_exists(value)) {
      continue;
    }
    recompute_value_t *root = &state->values[state->values[value.index].root];
    if (is_backward) {
      state->values[value.index].backward = true;
      root->first_in = root->first_in == CLEAVE_INDEX_NONE ? position : root->first_in;
      root->last_in = position;
    } else {
      root->last = position;
    }
  }
}

/* Values that users read have memory of their own, which this is not about. */
static void except_outputs(recompute_t *state) {
  for (size_t k = 0; k < state->graph->outputs.count; k++) {
    cleave_value_t value = cleave_graph_output(state->graph, k);
    state->values[state->values[value.index].root].bytes = 0;
  }
}

// ---- nodes ----

/* Which outputs may be dropped. */
static void choose_outputs(recompute_t *state, cleave_node_t node, recompute_node_t *entry) {
  const cleave_graph_t *graph = state->graph;
  int64_t largest = 0;
  for (uint32_t k = 0; k < cleave_node_output_count(graph, node); k++) {
    int64_t bytes = state->values[cleave_node_output(graph, node, k).index].bytes;
    largest = bytes > largest ? bytes : largest;
  }
  for (uint32_t k = 0; k < cleave_node_output_count(graph, node); k++) {
    recompute_value_t *value = &state->values[cleave_node_output(graph, node, k).index];
    value->may_drop = value->bytes > largest / SMALL_PART;
    if (value->may_drop) {
      entry->bytes += value->bytes;
      entry->first = value->first_in < entry->first ? value->first_in : entry->first;
    }
  }
}

/* Does it read something that forward computed, or that the user gives? And is that no more than twice as
 * large as what it makes? */
static bool pays(const recompute_t *state, cleave_node_t node, const recompute_node_t *entry) {
  const cleave_graph_t *graph = state->graph;
  bool reads = false;
  for (uint32_t k = 0; k < cleave_node_input_count(graph, node); k++) {
    cleave_value_t value = cleave_node_input(graph, node, k);
    if (cleave_value_exists(value) && !cleave_value_is_constant(graph, value)) {
      reads = true;
      if (state->values[state->values[value.index].root].bytes > 2 * entry->bytes) {
        return false;
      }
    }
  }
  return reads;
}

static void add_node(recompute_t *state, cleave_node_t node) {
  const uint32_t forbidden = CLEAVE_OP_RANDOM | CLEAVE_OP_STATEFUL | CLEAVE_OP_DATA_SHAPE;
  const cleave_op_t *op = cleave_node_op(state->graph, node);
  recompute_node_t *entry = &state->nodes[node.index];
  entry->first = CLEAVE_INDEX_NONE;
  entry->is_view = is_view(state->graph, node);
  if (entry->is_view || (op->flags & forbidden) != 0 || op->id == CLEAVE_OP_ID_CUSTOM) {
    return;
  }
  choose_outputs(state, node, entry);
  entry->flops = cleave_op_flops(state->graph, node);
  entry->ratio = entry->bytes > 0 ? entry->flops / (double)entry->bytes : 0.0;
  entry->is_eligible = entry->bytes > 0 && entry->flops >= 0.0 && pays(state, node, entry) &&
                       (entry->first == CLEAVE_INDEX_NONE || state->late[entry->first] != CLEAVE_INDEX_NONE);
}

// ---- backward ----

/* By position: of the nodes of backward before it, the last one of those that depend on the most of forward.
 * A node that waits for it runs when backward has come there, however a backend orders what is ready. */
static void find_late(recompute_t *state) {
  const cleave_graph_t *graph = state->graph;
  uint32_t best = CLEAVE_INDEX_NONE;
  uint32_t most = 0;
  for (uint32_t p = 0; p < state->node_count; p++) {
    cleave_node_t node = state->order[p];
    uint32_t reach = p < state->forward_count ? p : 0;
    state->late[p] = best;
    for (uint32_t k = 0; p >= state->forward_count && k < cleave_node_input_count(graph, node); k++) {
      cleave_value_t value = cleave_node_input(graph, node, k);
      cleave_node_t producer =
          cleave_value_exists(value) ? cleave_value_producer(graph, value) : CLEAVE_NODE_NONE;
      if (cleave_node_exists(producer) && state->depth[producer.index] > reach) {
        reach = state->depth[producer.index];
      }
    }
    state->depth[node.index] = reach;
    cleave_value_t output =
        cleave_node_output_count(graph, node) > 0 ? cleave_node_output(graph, node, 0) : CLEAVE_VALUE_NONE;
    if (p >= state->forward_count && reach > 0 && reach >= most && cleave_value_exists(output) &&
        cleave_dtype_is_float((cleave_dtype_t)cleave_graph_value(graph, output)->dtype)) {
      best = p;
      most = reach;
    }
  }
}

/* Adds the memory of backward values, which does not depend on the choice. */
static void add_backward(recompute_t *state) {
  for (uint32_t p = state->forward_count; p < state->node_count; p++) {
    cleave_node_t node = state->order[p];
    for (uint32_t k = 0; k < cleave_node_output_count(state->graph, node); k++) {
      const recompute_value_t *value = &state->values[cleave_node_output(state->graph, node, k).index];
      uint32_t last = value->last_in == CLEAVE_INDEX_NONE ? p : value->last_in;
      state->backward[p] += value->bytes;
      state->backward[last + 1] -= value->bytes;
    }
  }
}

// ---- all ----

/* The nodes that outputs need, in order; those of forward come first, since their indices are lower. */
static cleave_status_t list_nodes(recompute_t *state, cleave_error_t *error) {
  uint32_t count = 0;
  bool *needed = cleave_allocate((size_t)cleave_graph_node_bound(state->graph) + 1, sizeof *needed);
  cleave_status_t status = needed == NULL ? cleave_error_out_of_memory(error)
                                          : cleave_graph_find_needed(state->graph, needed, error);
  CLEAVE_THEN(status, cleave_graph_topological_order(state->graph, state->order, NULL, error));
  for (size_t k = 0; status == CLEAVE_OK && k < state->graph->live_node_count; k++) {
    cleave_node_t node = state->order[k];
    if (needed[node.index]) {
      state->order[count++] = node;
      state->forward_count += cleave_recompute_is_forward(state, node) ? 1 : 0;
    }
  }
  state->node_count = count;
  cleave_free(needed);
  return status;
}

static cleave_status_t allocate(recompute_t *state, cleave_error_t *error) {
  size_t nodes = (size_t)cleave_graph_node_bound(state->graph) + 2;
  size_t values = (size_t)cleave_graph_value_bound(state->graph) + 1;
  state->order = cleave_allocate(nodes, sizeof *state->order);
  state->late = cleave_allocate(nodes, sizeof *state->late);
  state->depth = cleave_allocate_zeroed(nodes, sizeof *state->depth);
  state->backward = cleave_allocate_zeroed(nodes, sizeof *state->backward);
  state->profile = cleave_allocate_zeroed(nodes, sizeof *state->profile);
  state->values = cleave_allocate_zeroed(values, sizeof *state->values);
  state->nodes = cleave_allocate_zeroed(nodes, sizeof *state->nodes);
  CLEAVE_TRY_MEMORY(state->order != NULL && state->late != NULL && state->depth != NULL &&
                        state->backward != NULL && state->profile != NULL && state->values != NULL &&
                        state->nodes != NULL,
                    error);
  for (uint32_t k = 0; k < values; k++) {
    state->values[k] =
        (recompute_value_t){.root = k, .first_in = CLEAVE_INDEX_NONE, .last_in = CLEAVE_INDEX_NONE};
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_recompute_init(recompute_t *state, cleave_graph_t *graph, uint32_t first_backward,
                                      cleave_error_t *error) {
  *state = (recompute_t){.graph = graph, .first_backward = first_backward};
  CLEAVE_TRY(allocate(state, error));
  CLEAVE_TRY(list_nodes(state, error));
  for (uint32_t p = 0; p < state->node_count; p++) {
    CLEAVE_TRY(add_outputs(state, state->order[p], p, error));
    add_reads(state, state->order[p], p);
  }
  except_outputs(state);
  find_late(state);
  for (uint32_t p = 0; p < state->forward_count; p++) {
    add_node(state, state->order[p]);
  }
  add_backward(state);
  return CLEAVE_OK;
}

void cleave_recompute_deinit(recompute_t *state) {
  cleave_free(state->order);
  cleave_free(state->late);
  cleave_free(state->depth);
  cleave_free(state->backward);
  cleave_free(state->profile);
  cleave_free(state->values);
  cleave_free(state->nodes);
}
