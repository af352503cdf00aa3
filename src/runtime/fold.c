// SPDX-License-Identifier: Apache-2.0
// Constant folding by running: a node whose inputs are all constant runs once, alone, on the `cpu` backend,
// and its outputs become constants. What a session would compute in every run is computed here.
#include "backend/extensions.h"
#include "backend/once.h"
#include "graph/order.h"
#include "ops/infer.h"
#include "runtime/bind.h"

enum { MOST_ROUNDS = 4, LARGE_RESULT = 16 << 20 };

typedef struct folding {
  cleave_graph_t *graph;
  const cleave_backend_handle_t *cpu;
  const bool *keep_node;
  size_t keep_count;
  cleave_arena_t arena;
  size_t count;
} folding_t;

static bool is_foldable(const cleave_graph_t *graph, cleave_node_t node, const bool *keep_node,
                        size_t keep_count) {
  const cleave_node_record_t *record = cleave_graph_node(graph, node);
  if (record->op == NULL || !cleave_op_has_schema(record->op) ||
      (record->op->flags & (CLEAVE_OP_RANDOM | CLEAVE_OP_STATEFUL)) != 0 ||
      record->output_count > CLEAVE_MAX_RANK ||
      (keep_node != NULL && node.index < keep_count && keep_node[node.index])) {
    return false;
  }
  for (uint32_t k = 0; k < record->input_count; k++) {
    cleave_value_t value = cleave_node_input(graph, node, k);
    if (cleave_value_exists(value) && !cleave_value_is_constant(graph, value)) {
      return false;
    }
  }
  return true;
}

bool cleave_graph_has_foldable(const cleave_graph_t *graph, const bool *keep_node, size_t keep_count) {
  for (uint32_t k = 0; k < cleave_graph_node_bound(graph); k++) {
    if (is_foldable(graph, (cleave_node_t){k}, keep_node, keep_count)) {
      return true;
    }
  }
  return false;
}

/* Are the results small enough to keep? Those of unknown shape are small, or the run fails. */
static bool results_fit(const cleave_region_view_t *region) {
  size_t input_bytes = 0;
  bool fits = region->output_count <= CLEAVE_MAX_RANK && region->input_count == 0;
  for (uint32_t k = 0; k < region->value_count; k++) {
    const cleave_tensor_view_t *tensor = &region->values[k].tensor;
    if (tensor->data != NULL) {
      input_bytes += (size_t)cleave_view_element_count(tensor) * cleave_dtype_size(tensor->dtype);
    }
  }
  for (uint32_t k = 0; fits && k < region->output_count; k++) {
    const cleave_tensor_view_t *type = &region->values[region->outputs[k]].tensor;
    int64_t count = 0;
    size_t bytes = 0;
    fits = type->dtype != CLEAVE_DTYPE_UNKNOWN && type->dtype != CLEAVE_DTYPE_STRING;
    if (fits && cleave_shape_element_count(type->rank, type->dims, &count)) {
      fits = cleave_size_multiply((size_t)count, cleave_dtype_size(type->dtype), &bytes) &&
             (bytes <= LARGE_RESULT || bytes / 2 <= input_bytes);
    }
  }
  return fits;
}

static cleave_status_t fold_node(folding_t *folding, cleave_node_t node, cleave_error_t *error) {
  cleave_status_t status = CLEAVE_OK;
  cleave_view_builder_t builder;
  cleave_view_t view;
  cleave_tensor_t *results[CLEAVE_MAX_RANK] = {NULL};
  cleave_message_t message;
  cleave_view_request_t request = {.nodes = &node, .node_count = 1};
  cleave_view_builder_init(&builder, folding->graph);
  CLEAVE_TRY_CLEANUP(cleave_view_build(&builder, &request, &folding->arena, &view, error));
  if (!results_fit(&view.region)) {
    goto cleanup;
  }
  // A node that nobody runs on its own stays as it is: that is no error.
  cleave_once_t once = {.view = &view, .threads = 1, .most_bytes = LARGE_RESULT};
  cleave_status_t outcome = cleave_extensions_host(folding->graph, node, folding->cpu, &once.handle, NULL);
  if (outcome == CLEAVE_OK) {
    outcome = cleave_run_once(&once, results, &message);
  }
  if (outcome == CLEAVE_ERROR_OUT_OF_MEMORY) {
    CLEAVE_TRY_CLEANUP(cleave_error_out_of_memory(error));
  }
  for (uint32_t k = 0; outcome == CLEAVE_OK && k < view.region.output_count; k++) {
    cleave_value_t value = view.values[view.region.outputs[k]];
    cleave_tensor_touch(results[k]);
    CLEAVE_TRY_CLEANUP(cleave_graph_replace_with_constant(folding->graph, value, results[k], error));
  }
  folding->count += outcome == CLEAVE_OK ? 1 : 0;
cleanup:
  for (uint32_t k = 0; k < CLEAVE_MAX_RANK; k++) {
    cleave_tensor_release(results[k]);
  }
  cleave_view_builder_deinit(&builder);
  cleave_arena_reset(&folding->arena);
  return status;
}

static cleave_status_t fold_all(folding_t *folding, cleave_error_t *error) {
  size_t live = folding->graph->live_node_count;
  cleave_node_t *order = cleave_allocate(live, sizeof *order);
  if (order == NULL) {
    return cleave_error_out_of_memory(error);
  }
  cleave_status_t status = cleave_graph_topological_order(folding->graph, order, NULL, error);
  for (size_t k = 0; k < live && status == CLEAVE_OK; k++) {
    if (is_foldable(folding->graph, order[k], folding->keep_node, folding->keep_count)) {
      status = fold_node(folding, order[k], error);
    }
  }
  cleave_free(order);
  size_t removed = 0;
  return status == CLEAVE_OK && folding->count > 0 ? cleave_graph_remove_dead(folding->graph, &removed, error)
                                                   : status;
}

cleave_status_t cleave_graph_simplify(cleave_graph_t *graph, const bool *keep_node, size_t keep_count,
                                      size_t *out_count, cleave_error_t *error) {
  folding_t folding = {.graph = graph, .keep_node = keep_node, .keep_count = keep_count};
  cleave_status_t status = cleave_registry_find(graph->context, "cpu", &folding.cpu, error);
  cleave_infer_options_t options = {.fold = true};
  size_t total = 0;
  for (int round = 0; round < MOST_ROUNDS && status == CLEAVE_OK; round++) {
    status = cleave_graph_infer(graph, &options, NULL, error);
    if (status != CLEAVE_OK || !cleave_graph_has_foldable(graph, keep_node, keep_count)) {
      break;
    }
    folding.count = 0;
    status = fold_all(&folding, error);
    total += folding.count;
    if (folding.count == 0) {
      break;
    }
  }
  cleave_arena_deinit(&folding.arena);
  if (out_count != NULL) {
    *out_count = total;
  }
  return status;
}
