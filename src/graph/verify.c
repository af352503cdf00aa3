// SPDX-License-Identifier: Apache-2.0
/* Walks every record once, then asks for a topological order. */
#include "graph/verify.h"

#include <string.h>

#include "graph/order.h"

#define BROKEN(...) return cleave_error_set(error, CLEAVE_ERROR_FORMAT, __VA_ARGS__)

static cleave_status_t check_value(const cleave_graph_t *graph, cleave_value_t value, cleave_error_t *error) {
  const cleave_value_record_t *record = cleave_graph_value(graph, value);
  uint32_t count = 0;
  uint32_t previous = CLEAVE_INDEX_NONE;
  for (uint32_t use = record->first_use; use != CLEAVE_INDEX_NONE; use = graph->uses.items[use].next) {
    if (use >= graph->uses.count || graph->uses.items[use].value != value.index ||
        graph->uses.items[use].previous != previous || count++ > graph->uses.count) {
      BROKEN("graph: value %u: its list of uses is broken at use %u", value.index, use);
    }
    previous = use;
  }
  if (count != record->use_count || previous != record->last_use) {
    BROKEN("graph: value %u: expected %u uses, found %u", value.index, record->use_count, count);
  }
  if (record->is_removed && count > 0) {
    BROKEN("graph: value %u is removed, but used", value.index);
  }
  if (record->producer != CLEAVE_INDEX_NONE) {
    cleave_node_t producer = {record->producer};
    if (!cleave_node_is_live(graph, producer) ||
        cleave_node_output(graph, producer, record->output_index).index != value.index) {
      BROKEN("graph: value %u: its producer %u does not list it as an output", value.index, record->producer);
    }
    if (record->is_input || record->tensor != NULL) {
      BROKEN("graph: value %u has a producer, and is an input or constant too", value.index);
    }
  } else if (!record->is_removed && count > 0 && !record->is_input && record->tensor == NULL) {
    BROKEN("graph: value %u ('%s') is used, but nothing produces it", value.index,
           cleave_value_name(graph, value));
  }
  const cleave_tensor_t *tensor = record->tensor;
  if (tensor != NULL && (tensor->dtype != record->dtype || tensor->rank != record->rank ||
                         (tensor->rank > 0 && memcmp(tensor->dims, record->dims,
                                                     (size_t)tensor->rank * sizeof *tensor->dims) != 0))) {
    BROKEN("graph: value %u ('%s'): its type is not that of its constant data", value.index,
           cleave_value_name(graph, value));
  }
  return CLEAVE_OK;
}

static cleave_status_t check_node(const cleave_graph_t *graph, cleave_node_t node, cleave_error_t *error) {
  const cleave_node_record_t *record = cleave_graph_node(graph, node);
  if ((size_t)record->first_use + record->input_count > graph->uses.count ||
      (size_t)record->first_output + record->output_count > graph->values.count) {
    BROKEN("graph: node %u: inputs or outputs out of range", node.index);
  }
  for (uint32_t k = 0; k < record->input_count; k++) {
    const cleave_use_record_t *use = &graph->uses.items[record->first_use + k];
    if (use->node != node.index || (use->value != CLEAVE_INDEX_NONE && use->value >= graph->values.count)) {
      BROKEN("graph: node %u: input %u is not its own", node.index, k);
    }
  }
  for (uint32_t k = 0; k < record->output_count; k++) {
    const cleave_value_record_t *value = &graph->values.items[record->first_output + k];
    if (value->producer != node.index || value->output_index != k) {
      BROKEN("graph: node %u: output %u names another producer", node.index, k);
    }
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_graph_verify(const cleave_graph_t *graph, cleave_error_t *error) {
  size_t live = 0;
  for (uint32_t k = 0; k < graph->nodes.count; k++) {
    if (graph->nodes.items[k].op != NULL) {
      CLEAVE_TRY(check_node(graph, (cleave_node_t){k}, error));
      live++;
    }
  }
  if (live != graph->live_node_count) {
    BROKEN("graph: expected %zu live node%s, found %zu", graph->live_node_count,
           CLEAVE_PLURAL(graph->live_node_count), live);
  }
  for (uint32_t k = 0; k < graph->values.count; k++) {
    CLEAVE_TRY(check_value(graph, (cleave_value_t){k}, error));
  }
  for (size_t k = 0; k < graph->outputs.count; k++) {
    const cleave_use_record_t *use = cleave_graph_use(graph, graph->outputs.items[k]);
    if (use->node != CLEAVE_INDEX_NONE || use->value == CLEAVE_INDEX_NONE) {
      BROKEN("graph: output %zu is not a use of a value", k);
    }
  }
  cleave_node_t *order = cleave_allocate(graph->live_node_count, sizeof *order);
  CLEAVE_TRY_MEMORY(order, error);
  cleave_status_t status = cleave_graph_topological_order(graph, order, NULL, error);
  cleave_free(order);
  return status;
}
