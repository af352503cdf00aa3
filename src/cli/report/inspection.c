// SPDX-License-Identifier: Apache-2.0
// Gathers what is in a model: operators, sizes, memory, what is not known.
#include "cli/report/inspection.h"

#include <string.h>
#include <sys/stat.h>

#include "graph/order.h"
#include "ops/ops.h"
#include "runtime/model/model.h"

static size_t value_bytes(const cleave_graph_t *graph, cleave_value_t value, bool *out_known) {
  const cleave_value_record_t *record = cleave_graph_value(graph, value);
  int64_t count = 0;
  size_t bytes = 0;
  *out_known = record->dtype != CLEAVE_DTYPE_UNKNOWN &&
               cleave_shape_element_count(record->rank, record->dims, &count) &&
               cleave_size_multiply((size_t)count, cleave_dtype_size((cleave_dtype_t)record->dtype), &bytes);
  return *out_known ? bytes : 0;
}

/* Neither a size nor an expression of sizes. */
static bool has_unknown(const cleave_value_record_t *record) {
  bool is_unknown = record->dtype == CLEAVE_DTYPE_UNKNOWN || record->rank < 0;
  for (int32_t d = 0; !is_unknown && d < record->rank; d++) {
    is_unknown = record->dims[d] == CLEAVE_DIM_UNKNOWN;
  }
  return is_unknown;
}

static int compare_operators(const void *a, const void *b) {
  const cleave_operator_count_t *left = a;
  const cleave_operator_count_t *right = b;
  if (left->count != right->count) {
    return left->count > right->count ? -1 : 1;
  }
  return strcmp(left->name, right->name);
}

static cleave_status_t count_operator(cleave_inspection_t *inspection, cleave_node_t node,
                                      cleave_error_t *error) {
  const cleave_op_t *op = cleave_node_op(inspection->graph, node);
  double flops = cleave_op_flops(inspection->graph, node);
  size_t at = 0;
  while (at < inspection->operators.count &&
         (strcmp(inspection->operators.items[at].name, op->name) != 0 ||
          strcmp(inspection->operators.items[at].domain, op->domain) != 0)) {
    at++;
  }
  if (at == inspection->operators.count) {
    cleave_operator_count_t fresh = {.name = op->name, .domain = op->domain, .op = op};
    CLEAVE_ARRAY_PUSH(&inspection->operators, fresh, error);
  }
  inspection->operators.items[at].count++;
  inspection->operators.items[at].flops += flops > 0.0 ? flops : 0.0;
  inspection->flops += flops > 0.0 ? flops : 0.0;
  return CLEAVE_OK;
}

/* Walks the order and keeps the sum of the values that are still needed. */
static cleave_status_t find_peak(cleave_inspection_t *inspection, cleave_error_t *error) {
  const cleave_graph_t *graph = inspection->graph;
  uint32_t bound = cleave_graph_value_bound(graph);
  uint32_t *uses_left = cleave_allocate(bound, sizeof *uses_left);
  CLEAVE_TRY_MEMORY(uses_left, error);
  for (uint32_t k = 0; k < bound; k++) {
    uses_left[k] = cleave_graph_value(graph, (cleave_value_t){k})->use_count;
  }
  size_t live = 0;
  for (size_t n = 0; n < graph->live_node_count; n++) {
    cleave_node_t node = inspection->order[n];
    bool is_known = false;
    for (uint32_t k = 0; k < cleave_node_output_count(graph, node); k++) {
      live += value_bytes(graph, cleave_node_output(graph, node, k), &is_known);
    }
    inspection->activation_bytes = live > inspection->activation_bytes ? live : inspection->activation_bytes;
    for (uint32_t k = 0; k < cleave_node_output_count(graph, node); k++) {
      cleave_value_t value = cleave_node_output(graph, node, k);
      live -= uses_left[value.index] == 0 ? value_bytes(graph, value, &is_known) : 0;
    }
    for (uint32_t k = 0; k < cleave_node_input_count(graph, node); k++) {
      cleave_value_t value = cleave_node_input(graph, node, k);
      if (cleave_value_exists(value) && cleave_node_exists(cleave_value_producer(graph, value)) &&
          --uses_left[value.index] == 0) {
        live -= value_bytes(graph, value, &is_known);
      }
    }
  }
  cleave_free(uses_left);
  return CLEAVE_OK;
}

cleave_status_t cleave_inspection_init(cleave_inspection_t *inspection, const cleave_job_t *job,
                                       cleave_error_t *error) {
  const cleave_graph_t *graph = cleave_model_graph(job->model);
  struct stat status;
  inspection->graph = graph;
  inspection->file_bytes = stat(job->options->model, &status) == 0 ? (size_t)status.st_size : 0;
  inspection->order = cleave_allocate(graph->live_node_count, sizeof *inspection->order);
  inspection->needed = cleave_allocate(cleave_graph_node_bound(graph), sizeof *inspection->needed);
  inspection->removed_count = cleave_model_dead_count(job->model);
  CLEAVE_TRY_MEMORY(inspection->order != NULL && inspection->needed != NULL, error);
  CLEAVE_TRY(cleave_graph_topological_order(graph, inspection->order, NULL, error));
  CLEAVE_TRY(cleave_graph_find_needed(graph, inspection->needed, error));
  for (size_t k = 0; k < graph->live_node_count; k++) {
    inspection->dead_count += inspection->needed[inspection->order[k].index] ? 0 : 1;
    CLEAVE_TRY(count_operator(inspection, inspection->order[k], error));
  }
  cleave_array_sort(&inspection->operators, compare_operators);
  for (uint32_t k = 0; k < cleave_graph_value_bound(graph); k++) {
    cleave_value_t value = {k};
    const cleave_value_record_t *record = cleave_graph_value(graph, value);
    if (record->is_removed || (record->use_count == 0 && !record->is_input)) {
      continue;
    }
    if (record->tensor != NULL) {
      inspection->weight_bytes += record->tensor->bytes;
      inspection->weight_count += (uint64_t)record->tensor->count;
    } else if (has_unknown(record)) {
      CLEAVE_ARRAY_PUSH(&inspection->unknown, value, error);
    }
  }
  return find_peak(inspection, error);
}

void cleave_inspection_deinit(cleave_inspection_t *inspection) {
  cleave_free(inspection->order);
  cleave_free(inspection->needed);
  cleave_array_free(&inspection->operators);
  cleave_array_free(&inspection->unknown);
}
