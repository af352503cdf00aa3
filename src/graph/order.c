// SPDX-License-Identifier: Apache-2.0
/*
 * Kahn's algorithm with a binary heap of ready nodes, lowest index first. A graph whose indices are in order
 * already, the usual case, is seen in one pass and needs no heap.
 */
#include "graph/order.h"

#include <string.h>

static bool is_in_order(const cleave_graph_t *graph) {
  for (size_t k = 0; k < graph->nodes.count; k++) {
    const cleave_node_record_t *record = &graph->nodes.items[k];
    for (uint32_t i = 0; record->op != NULL && i < record->input_count; i++) {
      uint32_t value = graph->uses.items[record->first_use + i].value;
      uint32_t producer =
          value != CLEAVE_INDEX_NONE ? graph->values.items[value].producer : CLEAVE_INDEX_NONE;
      if (producer != CLEAVE_INDEX_NONE && producer >= k) {
        return false;
      }
    }
  }
  return true;
}

static void heap_push(uint32_t *heap, size_t *count, uint32_t item) {
  size_t at = (*count)++;
  while (at > 0 && heap[(at - 1) / 2] > item) {
    heap[at] = heap[(at - 1) / 2];
    at = (at - 1) / 2;
  }
  heap[at] = item;
}

static uint32_t heap_pop(uint32_t *heap, size_t *count) {
  uint32_t top = heap[0];
  uint32_t item = heap[--(*count)];
  size_t at = 0;
  for (;;) {
    size_t child = 2 * at + 1;
    if (child >= *count) {
      break;
    }
    if (child + 1 < *count && heap[child + 1] < heap[child]) {
      child++;
    }
    if (heap[child] >= item) {
      break;
    }
    heap[at] = heap[child];
    at = child;
  }
  if (*count > 0) {
    heap[at] = item;
  }
  return top;
}

static cleave_status_t sort_with_heap(const cleave_graph_t *graph, cleave_node_t *order,
                                      cleave_error_t *error) {
  cleave_status_t status = CLEAVE_OK;
  size_t node_count = graph->nodes.count;
  uint32_t *waiting = cleave_allocate_zeroed(node_count, sizeof *waiting);
  uint32_t *heap = cleave_allocate(node_count, sizeof *heap);
  size_t ready = 0;
  size_t done = 0;
  CLEAVE_TRY_MEMORY_CLEANUP(waiting != NULL && heap != NULL, error);
  for (uint32_t k = 0; k < node_count; k++) {
    const cleave_node_record_t *record = &graph->nodes.items[k];
    for (uint32_t i = 0; record->op != NULL && i < record->input_count; i++) {
      uint32_t value = graph->uses.items[record->first_use + i].value;
      waiting[k] += value != CLEAVE_INDEX_NONE && graph->values.items[value].producer != CLEAVE_INDEX_NONE;
    }
    if (record->op != NULL && waiting[k] == 0) {
      heap_push(heap, &ready, k);
    }
  }
  while (ready > 0) {
    cleave_node_t node = {heap_pop(heap, &ready)};
    order[done++] = node;
    for (uint32_t o = 0; o < cleave_node_output_count(graph, node); o++) {
      cleave_value_t value = cleave_node_output(graph, node, o);
      for (cleave_use_t use = cleave_value_first_use(graph, value); cleave_use_exists(use);
           use = cleave_use_next(graph, use)) {
        cleave_node_t user = cleave_use_node(graph, use);
        if (cleave_node_exists(user) && --waiting[user.index] == 0) {
          heap_push(heap, &ready, user.index);
        }
      }
    }
  }
  if (done != graph->live_node_count) {
    uint32_t stuck = 0;
    while (graph->nodes.items[stuck].op == NULL || waiting[stuck] == 0) {
      stuck++;
    }
    char label[96];
    status = cleave_error_set(error, CLEAVE_ERROR_FORMAT,
                              "graph: expected no cycles, found one that feeds node '%s'",
                              cleave_node_label(graph, (cleave_node_t){stuck}, label, sizeof label));
  }
cleanup:
  cleave_free(waiting);
  cleave_free(heap);
  return status;
}

cleave_status_t cleave_graph_topological_order(const cleave_graph_t *graph, cleave_node_t *order,
                                               uint32_t *position, cleave_error_t *error) {
  if (is_in_order(graph)) {
    size_t done = 0;
    for (uint32_t k = 0; k < graph->nodes.count; k++) {
      if (graph->nodes.items[k].op != NULL) {
        order[done++].index = k;
      }
    }
  } else {
    CLEAVE_TRY(sort_with_heap(graph, order, error));
  }
  if (position != NULL) {
    memset(position, 0xff, graph->nodes.count * sizeof *position);
    for (uint32_t k = 0; k < graph->live_node_count; k++) {
      position[order[k].index] = k;
    }
  }
  return CLEAVE_OK;
}
