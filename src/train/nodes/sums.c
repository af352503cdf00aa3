// SPDX-License-Identifier: Apache-2.0
#include "train/nodes/sums.h"

#include <stdlib.h>

#include "graph/order.h"
#include "train/nodes/build.h"

enum { LEAST_BUCKET = 1 << 20 };

/* The sum of a value: that of the process is made by a node that nothing else reads, so that the sum can take
 * its place in memory. */
static cleave_status_t add_sum(cleave_train_sums_t *sums, cleave_train_build_t *build, cleave_value_t *value,
                               cleave_error_t *error) {
  cleave_train_sum_t sum = {.before = *value};
  const cleave_value_record_t *record = cleave_graph_value(build->editor->graph, *value);
  cleave_dtype_t dtype = (cleave_dtype_t)record->dtype;
  bool is_summed = dtype == CLEAVE_DTYPE_F32 || dtype == CLEAVE_DTYPE_F64;
  if (!is_summed) {
    sum.before = cleave_train_cast(build, *value, CLEAVE_DTYPE_F32);
  } else if (!cleave_node_exists(cleave_value_producer(build->editor->graph, *value)) ||
             record->use_count > 1) {
    sum.before = cleave_train_unary(build, "Identity", *value);
  }
  sum.after = cleave_train_unary(build, "Identity", sum.before);
  CLEAVE_TRY(build->status);
  *value = is_summed ? sum.after : cleave_train_cast(build, sum.after, dtype);
  CLEAVE_ARRAY_PUSH(&sums->items, sum, error);
  record = cleave_graph_value(build->editor->graph, sum.before);
  CLEAVE_TRY(build->status);
  return cleave_exchange_add(sums->exchange, (cleave_dtype_t)record->dtype, record->rank, record->dims,
                             error);
}

/* Loss and statistics, which are there when forward ends. The new statistics are means over the processes. */
static cleave_status_t sum_results(cleave_train_sums_t *sums, cleave_train_build_t *build,
                                   cleave_error_t *error) {
  double processes = (double)sums->processes;
  CLEAVE_TRY(add_sum(sums, build, sums->loss, error));
  for (size_t k = 0; k < sums->norm_count; k++) {
    cleave_value_t *norm = &sums->norms[k];
    CLEAVE_TRY(add_sum(sums, build, norm, error));
    cleave_dtype_t dtype = (cleave_dtype_t)cleave_graph_value(build->editor->graph, *norm)->dtype;
    *norm = cleave_train_binary(build, "Mul", *norm, cleave_train_number(build, dtype, 1.0 / processes));
  }
  return build->status;
}

typedef struct place {
  uint32_t position; /* of the first node that reads the weight */
  uint32_t weight;
} place_t;

static int compare_places(const void *a, const void *b) {
  const place_t *first = a;
  const place_t *second = b;
  return first->position != second->position
             ? (first->position < second->position ? 1 : -1)
             : (first->weight > second->weight) - (first->weight < second->weight);
}

/* Weights in the order in which backward finishes their gradients: what forward reads last comes first. */
static cleave_status_t list_places(const cleave_train_sums_t *sums, const cleave_graph_t *graph,
                                   place_t *places, cleave_error_t *error) {
  cleave_node_t *order = cleave_allocate(graph->live_node_count + 1, sizeof *order);
  uint32_t *positions = cleave_allocate((size_t)cleave_graph_node_bound(graph) + 1, sizeof *positions);
  cleave_status_t status = order == NULL || positions == NULL
                               ? cleave_error_out_of_memory(error)
                               : cleave_graph_topological_order(graph, order, positions, error);
  for (uint32_t k = 0; k < sums->weight_count && status == CLEAVE_OK; k++) {
    places[k] = (place_t){.position = UINT32_MAX, .weight = k};
    for (cleave_use_t use = cleave_value_first_use(graph, sums->weights[k].value); cleave_use_exists(use);
         use = cleave_use_next(graph, use)) {
      cleave_node_t node = cleave_use_node(graph, use);
      if (cleave_node_exists(node) && positions[node.index] < places[k].position) {
        places[k].position = positions[node.index];
      }
    }
  }
  cleave_free(order);
  cleave_free(positions);
  if (status == CLEAVE_OK) {
    qsort(places, sums->weight_count, sizeof *places, compare_places);
  }
  return status;
}

static size_t gradient_bytes(const cleave_graph_t *graph, const cleave_train_weight_t *weight) {
  const cleave_value_record_t *record = cleave_graph_value(graph, weight->value);
  int64_t count = 0;
  bool is_known = cleave_shape_element_count(record->rank, record->dims, &count) && count >= 0;
  return is_known ? (size_t)count * cleave_dtype_size((cleave_dtype_t)record->dtype) : 0;
}

/* A bucket is at most as large as all that come after it. No backward is left that would hide the sum of the
 * last one. */
static cleave_status_t sum_gradients(cleave_train_sums_t *sums, cleave_train_build_t *build,
                                     const place_t *places, cleave_error_t *error) {
  cleave_exchange_t *exchange = sums->exchange;
  const size_t limit = exchange->limit;
  size_t left = 0;
  for (size_t k = 0; k < sums->weight_count; k++) {
    left += gradient_bytes(build->editor->graph, &sums->weights[k]);
  }
  cleave_status_t status = CLEAVE_OK;
  for (size_t k = 0; k < sums->weight_count && status == CLEAVE_OK; k++) {
    cleave_train_weight_t *weight = &sums->weights[places[k].weight];
    left -= gradient_bytes(build->editor->graph, weight);
    size_t wanted = left < LEAST_BUCKET ? LEAST_BUCKET : left;
    exchange->limit = wanted < limit ? wanted : limit;
    status = add_sum(sums, build, &weight->gradient, error);
    if (status == CLEAVE_OK) {
      sums->buckets[places[k].weight] = exchange->items.items[exchange->items.count - 1].bucket;
    }
  }
  exchange->limit = limit;
  return status;
}

cleave_status_t cleave_train_add_sums(cleave_graph_t *graph, cleave_train_sums_t *sums,
                                      cleave_error_t *error) {
  cleave_editor_t editor;
  place_t *places = cleave_allocate(sums->weight_count + 1, sizeof *places);
  cleave_status_t status =
      places == NULL ? cleave_error_out_of_memory(error) : list_places(sums, graph, places, error);
  cleave_editor_init(&editor, graph, NULL);
  cleave_train_build_t build = {.editor = &editor, .prefix = "sum", .error = error};
  editor.rule = build.prefix;
  if (status == CLEAVE_OK) {
    status = sum_results(sums, &build, error);
  }
  if (status == CLEAVE_OK) {
    status = sum_gradients(sums, &build, places, error);
  }
  cleave_editor_deinit(&editor);
  cleave_free(places);
  return status == CLEAVE_OK ? cleave_exchange_allocate(sums->exchange, error) : status;
}
