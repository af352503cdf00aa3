// SPDX-License-Identifier: Apache-2.0
/* Changing a graph. Ids of removed nodes and values are never used again; links stay consistent after each
 * call. */
#include <string.h>

#include "graph/links.h"

void cleave_graph_set_input(cleave_graph_t *graph, cleave_node_t node, uint32_t index, cleave_value_t value) {
  uint32_t use = graph->nodes.items[node.index].first_use + index;
  cleave_use_unlink(graph, use);
  cleave_use_link(graph, use, value.index);
}

void cleave_graph_set_use(cleave_graph_t *graph, cleave_use_t use, cleave_value_t value) {
  cleave_use_unlink(graph, use.index);
  cleave_use_link(graph, use.index, value.index);
}

cleave_graph_mark_t cleave_graph_mark(const cleave_graph_t *graph) {
  return (cleave_graph_mark_t){graph->nodes.count, graph->values.count, graph->uses.count,
                               graph->tensors.count};
}

void cleave_graph_roll_back(cleave_graph_t *graph, cleave_graph_mark_t mark) {
  for (size_t use = graph->uses.count; use > mark.use_count; use--) {
    cleave_use_unlink(graph, (uint32_t)use - 1);
  }
  for (size_t node = mark.node_count; node < graph->nodes.count; node++) {
    graph->live_node_count -= graph->nodes.items[node].op != NULL ? 1 : 0;
  }
  for (size_t k = mark.tensor_count; k < graph->tensors.count; k++) {
    cleave_tensor_release(graph->tensors.items[k]);
  }
  graph->uses.count = mark.use_count;
  graph->values.count = mark.value_count;
  graph->nodes.count = mark.node_count;
  graph->tensors.count = mark.tensor_count;
}

void cleave_graph_replace_uses(cleave_graph_t *graph, cleave_value_t from, cleave_value_t to) {
  if (from.index == to.index) {
    return;
  }
  uint32_t use = graph->values.items[from.index].first_use;
  while (use != CLEAVE_INDEX_NONE) {
    uint32_t next = graph->uses.items[use].next;
    cleave_use_unlink(graph, use);
    cleave_use_link(graph, use, to.index);
    use = next;
  }
}

cleave_status_t cleave_graph_replace_with_constant(cleave_graph_t *graph, cleave_value_t value,
                                                   cleave_tensor_t *tensor, cleave_error_t *error) {
  cleave_value_t constant;
  CLEAVE_TRY(cleave_graph_add_constant(graph, cleave_value_name(graph, value), tensor, &constant, error));
  cleave_graph_replace_uses(graph, value, constant);
  return CLEAVE_OK;
}

cleave_status_t cleave_graph_set_constant(cleave_graph_t *graph, cleave_value_t value,
                                          cleave_tensor_t *tensor, cleave_error_t *error) {
  CLEAVE_ARRAY_PUSH(&graph->tensors, tensor, error);
  graph->values.items[value.index].tensor = cleave_tensor_retain(tensor);
  return CLEAVE_OK;
}

void cleave_graph_remove_constant(cleave_graph_t *graph, cleave_value_t value) {
  graph->values.items[value.index].tensor = NULL;
  graph->values.items[value.index].is_removed = true;
}

/* The tensors that the graph shows, each as often as it shows it; counted only if `tensors` is NULL. */
static size_t list_tensors(const cleave_graph_t *graph, cleave_tensor_t **tensors) {
  size_t count = 0;
  for (size_t k = 0; k < graph->values.count; k++) {
    if (graph->values.items[k].tensor != NULL) {
      if (tensors != NULL) {
        tensors[count] = cleave_tensor_retain(graph->values.items[k].tensor);
      }
      count++;
    }
  }
  for (size_t k = 0; k < graph->nodes.count; k++) {
    const cleave_node_record_t *record = &graph->nodes.items[k];
    for (uint32_t a = 0; record->op != NULL && a < record->attribute_count; a++) {
      if (record->attributes[a].kind == CLEAVE_ATTRIBUTE_TENSOR) {
        if (tensors != NULL) {
          tensors[count] = cleave_tensor_retain(record->attributes[a].held);
        }
        count++;
      }
    }
  }
  return count;
}

cleave_status_t cleave_graph_release_unused(cleave_graph_t *graph, cleave_error_t *error) {
  size_t count = list_tensors(graph, NULL);
  cleave_tensor_t **tensors = cleave_allocate(count, sizeof *tensors);
  CLEAVE_TRY_MEMORY(tensors, error);
  (void)list_tensors(graph, tensors);
  for (size_t k = 0; k < graph->tensors.count; k++) {
    cleave_tensor_release(graph->tensors.items[k]);
  }
  cleave_free(graph->tensors.items);
  graph->tensors.items = tensors;
  graph->tensors.count = count;
  graph->tensors.capacity = count;
  return CLEAVE_OK;
}

void cleave_graph_remove_node(cleave_graph_t *graph, cleave_node_t node) {
  cleave_node_record_t *record = &graph->nodes.items[node.index];
  for (uint32_t k = 0; k < record->input_count; k++) {
    cleave_use_unlink(graph, record->first_use + k);
    graph->uses.items[record->first_use + k].node = CLEAVE_INDEX_NONE;
  }
  for (uint32_t k = 0; k < record->output_count; k++) {
    graph->values.items[record->first_output + k].is_removed = true;
    graph->values.items[record->first_output + k].producer = CLEAVE_INDEX_NONE;
  }
  record->op = NULL;
  graph->live_node_count--;
}

static bool is_read(const cleave_graph_t *graph, const cleave_node_record_t *record) {
  for (uint32_t k = 0; k < record->output_count; k++) {
    if (graph->values.items[record->first_output + k].use_count > 0) {
      return true;
    }
  }
  return false;
}

static bool is_used(const cleave_graph_t *graph, const cleave_node_record_t *record) {
  return record->is_kept || is_read(graph, record);
}

void cleave_graph_keep_dead(cleave_graph_t *graph) {
  for (uint32_t k = 0; k < graph->nodes.count; k++) {
    cleave_node_record_t *record = &graph->nodes.items[k];
    record->is_kept = record->op != NULL && !is_read(graph, record);
  }
}

cleave_status_t cleave_graph_find_needed(const cleave_graph_t *graph, bool *needed, cleave_error_t *error) {
  CLEAVE_ARRAY(cleave_value_t) queue = {0};
  cleave_status_t status = CLEAVE_OK;
  memset(needed, 0, graph->nodes.count * sizeof *needed);
  for (size_t k = 0; k < graph->outputs.count; k++) {
    CLEAVE_TRY_CLEANUP(cleave_array_reserve(&queue, 1, error));
    cleave_array_push_reserved(&queue, cleave_graph_output(graph, k));
  }
  while (queue.count > 0) {
    cleave_node_t node = cleave_value_producer(graph, queue.items[--queue.count]);
    if (!cleave_node_exists(node) || needed[node.index]) {
      continue;
    }
    needed[node.index] = true;
    CLEAVE_TRY_CLEANUP(cleave_array_reserve(&queue, cleave_node_input_count(graph, node), error));
    for (uint32_t k = 0; k < cleave_node_input_count(graph, node); k++) {
      cleave_value_t input = cleave_node_input(graph, node, k);
      if (cleave_value_exists(input)) {
        cleave_array_push_reserved(&queue, input);
      }
    }
  }
cleanup:
  cleave_array_free(&queue);
  return status;
}

cleave_status_t cleave_graph_remove_dead(cleave_graph_t *graph, size_t *out_removed, cleave_error_t *error) {
  CLEAVE_ARRAY(uint32_t) queue = {0};
  size_t removed = 0;
  cleave_status_t status = CLEAVE_OK;
  for (uint32_t node = 0; node < graph->nodes.count; node++) {
    const cleave_node_record_t *record = &graph->nodes.items[node];
    if (record->op != NULL && !is_used(graph, record)) {
      CLEAVE_TRY_CLEANUP(cleave_array_reserve(&queue, 1, error));
      cleave_array_push_reserved(&queue, node);
    }
  }
  while (queue.count > 0) {
    cleave_node_t node = {queue.items[--queue.count]};
    const cleave_node_record_t *record = cleave_graph_node(graph, node);
    if (record->op == NULL) {
      continue;
    }
    CLEAVE_TRY_CLEANUP(cleave_array_reserve(&queue, record->input_count, error));
    for (uint32_t k = 0; k < record->input_count; k++) {
      cleave_value_t input = cleave_node_input(graph, node, k);
      uint32_t use = record->first_use + k;
      if (!cleave_value_exists(input)) {
        continue;
      }
      cleave_use_unlink(graph, use);
      cleave_node_t producer = cleave_value_producer(graph, input);
      if (cleave_node_exists(producer) && !is_used(graph, cleave_graph_node(graph, producer))) {
        cleave_array_push_reserved(&queue, producer.index);
      }
    }
    cleave_graph_remove_node(graph, node);
    removed++;
  }
cleanup:
  if (out_removed != NULL) {
    *out_removed = removed;
  }
  cleave_array_free(&queue);
  return status;
}
