// SPDX-License-Identifier: Apache-2.0
// Constant folding by running: a node whose inputs are all constant runs once, alone, on the `cpu` backend,
// and its outputs become constants. What a session would compute in every run is computed here.
#include "graph/order.h"
#include "ops/infer.h"
#include "runtime/bind.h"
#include "runtime/registry.h"
#include "runtime/view.h"

enum { MOST_ROUNDS = 4, LARGE_RESULT = 16 << 20 };

typedef struct folding {
  cleave_graph_t *graph;
  const cleave_backend_handle_t *cpu;
  const bool *keep_node;
  size_t keep_count;
  cleave_arena_t arena;
  size_t count;
} folding_t;

/* The results of one node. */
typedef struct results {
  cleave_tensor_t *tensors[CLEAVE_MAX_RANK]; /* per output of the view */
  cleave_tensor_view_t views[CLEAVE_MAX_RANK];
  uint32_t count;
} results_t;

static bool is_foldable(const cleave_graph_t *graph, cleave_node_t node, const bool *keep_node,
                        size_t keep_count) {
  const cleave_node_record_t *record = cleave_graph_node(graph, node);
  if (record->op == NULL || record->op->id == CLEAVE_OP_ID_CUSTOM ||
      (record->op->flags & CLEAVE_OP_RANDOM) != 0 || record->output_count > CLEAVE_MAX_RANK ||
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

static cleave_status_t resize_result(void *session, uint32_t output, int32_t rank, const int64_t *dims) {
  results_t *results = session;
  if (output >= results->count || rank < 0 || rank > CLEAVE_MAX_RANK) {
    return CLEAVE_ERROR_INTERNAL;
  }
  int64_t count = 0;
  if (!cleave_shape_element_count(rank, dims, &count) || count > LARGE_RESULT / 8) {
    return CLEAVE_ERROR_LIMIT;
  }
  cleave_tensor_t *tensor = NULL;
  CLEAVE_TRY(cleave_tensor_create(results->views[output].dtype, rank, dims, &tensor, NULL));
  cleave_tensor_release(results->tensors[output]);
  results->tensors[output] = tensor;
  results->views[output].rank = rank;
  results->views[output].dims = tensor->dims;
  results->views[output].data = tensor->data != NULL ? tensor->data : (const void *)tensor;
  return CLEAVE_OK;
}

/* Memory for outputs of known shape; *out_fits: they are small enough to keep. */
static cleave_status_t make_results(const cleave_view_t *view, results_t *results, bool *out_fits,
                                    cleave_error_t *error) {
  size_t input_bytes = 0;
  for (uint32_t k = 0; k < view->region.value_count; k++) {
    const cleave_tensor_view_t *tensor = &view->region.values[k].tensor;
    if (tensor->data != NULL) {
      input_bytes += (size_t)cleave_view_element_count(tensor) * cleave_dtype_size(tensor->dtype);
    }
  }
  *out_fits = view->region.output_count <= CLEAVE_MAX_RANK && view->region.input_count == 0;
  for (uint32_t k = 0; *out_fits && k < view->region.output_count; k++) {
    const cleave_tensor_view_t *type = &view->region.values[view->region.outputs[k]].tensor;
    results->views[k] = (cleave_tensor_view_t){.size = sizeof *type, .dtype = type->dtype, .rank = -1};
    results->count = k + 1;
    int64_t count = 0;
    size_t bytes = 0;
    if (type->dtype == CLEAVE_DTYPE_UNKNOWN || type->dtype == CLEAVE_DTYPE_STRING) {
      *out_fits = false;
    } else if (cleave_shape_element_count(type->rank, type->dims, &count)) {
      *out_fits = cleave_size_multiply((size_t)count, cleave_dtype_size(type->dtype), &bytes) &&
                  (bytes <= LARGE_RESULT || bytes / 2 <= input_bytes);
      if (*out_fits) {
        CLEAVE_TRY(cleave_tensor_create(type->dtype, type->rank, type->dims, &results->tensors[k], error));
        results->views[k].rank = type->rank;
        results->views[k].dims = results->tensors[k]->dims;
        results->views[k].data =
            results->tensors[k]->data != NULL ? results->tensors[k]->data : (const void *)results->tensors[k];
      }
    }
  }
  return CLEAVE_OK;
}

/* Runs the program of a node once; *out_done is false where `cpu` cannot, which is no error. */
static cleave_status_t compute(folding_t *folding, const cleave_view_t *view, results_t *results,
                               bool *out_done, cleave_error_t *error) {
  *out_done = false;
  const cleave_backend_t *backend = folding->cpu->backend;
  cleave_message_t message = {.text = ""};
  cleave_compile_options_t options = {.size = sizeof options, .threads = 1};
  void *program = NULL;
  cleave_status_t status = backend->compile(folding->cpu->state, &view->region, &options, &program, &message);
  if (status != CLEAVE_OK) {
    return status == CLEAVE_ERROR_OUT_OF_MEMORY ? cleave_error_out_of_memory(error) : CLEAVE_OK;
  }
  size_t workspace_bytes = backend->info(program)->workspace_bytes;
  void *workspace = cleave_allocate_aligned(workspace_bytes);
  cleave_run_args_t args = {.size = sizeof args,
                            .outputs = results->views,
                            .workspace = workspace,
                            .resize_output = resize_result,
                            .session = results};
  status = workspace == NULL ? CLEAVE_ERROR_OUT_OF_MEMORY : backend->run(program, &args, &message);
  *out_done = status == CLEAVE_OK;
  for (uint32_t k = 0; *out_done && k < results->count; k++) {
    *out_done = results->tensors[k] != NULL;
  }
  cleave_free(workspace);
  backend->unload(program);
  return status == CLEAVE_ERROR_OUT_OF_MEMORY ? cleave_error_out_of_memory(error) : CLEAVE_OK;
}

static cleave_status_t fold_node(folding_t *folding, cleave_node_t node, cleave_error_t *error) {
  cleave_status_t status = CLEAVE_OK;
  cleave_view_builder_t builder;
  cleave_view_t view;
  results_t results = {.count = 0};
  bool is_possible = false;
  cleave_view_request_t request = {.nodes = &node, .node_count = 1};
  cleave_view_builder_init(&builder, folding->graph);
  CLEAVE_TRY_CLEANUP(cleave_view_build(&builder, &request, &folding->arena, &view, error));
  CLEAVE_TRY_CLEANUP(make_results(&view, &results, &is_possible, error));
  if (is_possible) {
    CLEAVE_TRY_CLEANUP(compute(folding, &view, &results, &is_possible, error));
  }
  for (uint32_t k = 0; is_possible && k < results.count; k++) {
    cleave_value_t value = view.values[view.region.outputs[k]];
    cleave_tensor_touch(results.tensors[k]);
    CLEAVE_TRY_CLEANUP(cleave_graph_replace_with_constant(folding->graph, value, results.tensors[k], error));
  }
  folding->count += is_possible ? 1 : 0;
cleanup:
  for (uint32_t k = 0; k < results.count; k++) {
    cleave_tensor_release(results.tensors[k]);
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
  cleave_status_t status = cleave_registry_find("cpu", &folding.cpu, error);
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
