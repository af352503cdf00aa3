// SPDX-License-Identifier: Apache-2.0
// Simplifies graphs: what nothing reads goes, and constants are folded by running them. A node whose inputs
// are all constant runs once, alone, on the `cpu` backend, and its outputs become constants. What a session
// would compute in every run is computed here, as long as the model's budget of bytes and work lasts: a few
// bytes of model can ask for any amount of both.
#include <math.h>

#include "backend/program/region_run.h"
#include "backend/registry/context.h"
#include "backend/registry/extensions.h"
#include "graph/order.h"
#include "ops/infer.h"
#include "runtime/model/bind.h"
#include "system/file.h"

enum { MAX_ROUNDS = 4, LARGE_RESULT = 16 << 20, MUCH_GARBAGE = 64 << 20, SOME_GARBAGE = 256 << 10 };

/* Folding may make so many bytes and do so much work for every model, and more for each byte of the model. */
enum { FREE_BYTES = 256 << 20, BYTES_PER_BYTE = 8, WORK_PER_BYTE = 16 };
#define FREE_WORK ((uint64_t)4 << 30)

typedef struct folding {
  cleave_graph_t *graph;
  const cleave_backend_handle_t *cpu;
  const bool *keep_node;
  size_t keep_count;
  cleave_arena_t arena;
  size_t count;
  size_t garbage; /* bytes of results that nothing reads any more, and that are still there */
} folding_t;

static void set_budget(cleave_graph_t *graph) {
  cleave_fold_budget_t *budget = &graph->fold_budget;
  if (budget->is_set) {
    return;
  }
  uint64_t given = 0;
  for (size_t k = 0; k < graph->tensors.count; k++) {
    given += graph->tensors.items[k]->bytes;
  }
  *budget = (cleave_fold_budget_t){.is_set = true,
                                   .first_value = cleave_graph_value_bound(graph),
                                   .bytes = FREE_BYTES + BYTES_PER_BYTE * given,
                                   .work = FREE_WORK + WORK_PER_BYTE * given};
}

/* Operators whose work hangs on the content of their inputs: no budget knows it beforehand. */
static bool work_is_unknown(const cleave_op_t *op) {
  return op->id == CLEAVE_OP_NonMaxSuppression || op->id == CLEAVE_OP_RoiAlign ||
         op->id == CLEAVE_OP_MaxRoiPool;
}

/* Do nothing but these operators read the value, as this input of theirs? */
static bool is_read_by(const cleave_graph_t *graph, cleave_value_t value, const cleave_op_id_t ops[2],
                       uint32_t input) {
  cleave_use_t use = cleave_value_first_use(graph, value);
  bool is_so = cleave_use_exists(use);
  for (; cleave_use_exists(use) && is_so; use = cleave_use_next(graph, use)) {
    cleave_node_t reader = cleave_use_node(graph, use);
    const cleave_op_t *op = cleave_node_exists(reader) ? cleave_graph_node(graph, reader)->op : NULL;
    is_so =
        op != NULL && (op->id == ops[0] || op->id == ops[1]) && cleave_use_input_index(graph, use) == input;
  }
  return is_so;
}

/* Weights of 8 bits, packed ones among them, and those of products with 16, stay what they are until a
 * session is made (`keep_node`): rules and backends see how they are stored, and the model stays as small. */
static bool is_stored_weight(const cleave_graph_t *graph, const cleave_node_record_t *record,
                             cleave_node_t node, const bool *keep_node) {
  static const cleave_op_id_t PRODUCTS[2] = {CLEAVE_OP_MatMul, CLEAVE_OP_Gemm};
  static const cleave_op_id_t NUMBERS[2] = {CLEAVE_OP_DequantizeLinear, CLEAVE_OP_DequantizeLinear};
  if (keep_node != NULL || record->input_count == 0) {
    return false;
  }
  cleave_dtype_t dtype = (cleave_dtype_t)cleave_graph_value(graph, cleave_node_input(graph, node, 0))->dtype;
  if (record->op->id == CLEAVE_OP_DequantizeLinear) {
    return dtype == CLEAVE_DTYPE_I8 || dtype == CLEAVE_DTYPE_U8;
  }
  cleave_value_t result = cleave_node_output(graph, node, 0);
  if (record->op->id == CLEAVE_OP_UnpackBits) {
    return is_read_by(graph, result, NUMBERS, 0);
  }
  const cleave_value_record_t *made = cleave_graph_value(graph, result);
  return record->op->id == CLEAVE_OP_Cast && (dtype == CLEAVE_DTYPE_F16 || dtype == CLEAVE_DTYPE_BF16) &&
         made->dtype == CLEAVE_DTYPE_F32 && made->rank == 2 && is_read_by(graph, result, PRODUCTS, 1);
}

static bool is_foldable(const cleave_graph_t *graph, cleave_node_t node, const bool *keep_node,
                        size_t keep_count) {
  const cleave_node_record_t *record = cleave_graph_node(graph, node);
  if (record->op == NULL || record->is_kept || !cleave_op_has_schema(record->op) ||
      work_is_unknown(record->op) || (record->op->flags & (CLEAVE_OP_RANDOM | CLEAVE_OP_STATEFUL)) != 0 ||
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
  return !is_stored_weight(graph, record, node, keep_node);
}

bool cleave_graph_has_foldable(const cleave_graph_t *graph, const bool *keep_node, size_t keep_count) {
  for (uint32_t k = 0; k < cleave_graph_node_bound(graph); k++) {
    if (is_foldable(graph, (cleave_node_t){k}, keep_node, keep_count)) {
      return true;
    }
  }
  return false;
}

/* Are the results small enough to keep, as far as they are known before the run? */
static bool results_fit(const cleave_region_view_t *region, uint64_t *out_bytes) {
  size_t input_bytes = 0;
  bool fits = region->output_count <= CLEAVE_MAX_RANK && region->input_count == 0;
  *out_bytes = 0;
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
      *out_bytes += fits ? bytes : 0;
    }
  }
  return fits;
}

/* Operations, and elements read and written. */
static double work_of(const folding_t *folding, cleave_node_t node, const cleave_region_view_t *region) {
  double work = fmax(cleave_op_flops(folding->graph, node), 0.0);
  for (uint32_t k = 0; k < region->value_count; k++) {
    const cleave_tensor_view_t *tensor = &region->values[k].tensor;
    int64_t count = 0;
    work += cleave_shape_element_count(tensor->rank, tensor->dims, &count) ? (double)count : 0.0;
  }
  return work;
}

/* Takes what the node will need out of the budget. False: there is too little of it left, and the node stays.
 */
static bool spend(folding_t *folding, cleave_node_t node, const cleave_region_view_t *region,
                  uint64_t bytes) {
  cleave_fold_budget_t *budget = &folding->graph->fold_budget;
  double work = work_of(folding, node, region);
  if (bytes > budget->bytes || work > (double)budget->work) {
    budget->is_spent = true;
    return false;
  }
  budget->work -= (uint64_t)work;
  return true;
}

/* Removes a node that was computed, and the results that only it read. */
static cleave_status_t remove_folded(folding_t *folding, cleave_node_t node, cleave_error_t *error) {
  cleave_graph_t *graph = folding->graph;
  cleave_fold_budget_t *budget = &graph->fold_budget;
  cleave_value_t *inputs = cleave_arena_allocate(
      &folding->arena, (size_t)cleave_node_input_count(graph, node) + 1, sizeof *inputs);
  CLEAVE_TRY_MEMORY(inputs, error);
  uint32_t count = 0;
  for (uint32_t k = 0; k < cleave_node_input_count(graph, node); k++) {
    cleave_value_t input = cleave_node_input(graph, node, k);
    if (cleave_value_exists(input)) {
      inputs[count++] = input;
    }
  }
  cleave_graph_remove_node(graph, node);
  for (uint32_t k = 0; k < count; k++) {
    const cleave_value_record_t *record = cleave_graph_value(graph, inputs[k]);
    if (record->tensor == NULL || record->use_count > 0) {
      continue;
    }
    if (inputs[k].index < budget->first_value) { /* the model's own, which this graph reads no more */
      cleave_file_drop_pages(record->tensor->data, record->tensor->bytes);
      continue;
    }
    budget->bytes += record->tensor->bytes;
    folding->garbage += record->tensor->bytes;
    cleave_graph_remove_constant(graph, inputs[k]);
  }
  if (folding->garbage > MUCH_GARBAGE) {
    folding->garbage = 0;
    return cleave_graph_release_unused(graph, error);
  }
  return CLEAVE_OK;
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
  uint64_t bytes = 0;
  if (!results_fit(&view.region, &bytes) || !spend(folding, node, &view.region, bytes)) {
    goto cleanup;
  }
  // A node that nobody runs on its own stays as it is: that is not an error.
  cleave_region_run_t run = {.view = &view, .threads = 1, .most_bytes = LARGE_RESULT};
  cleave_status_t outcome = cleave_extensions_host(folding->graph, node, folding->cpu, &run.handle, NULL);
  CLEAVE_THEN(outcome, cleave_region_run(&run, results, &message));
  if (outcome == CLEAVE_ERROR_OUT_OF_MEMORY) {
    CLEAVE_TRY_CLEANUP(cleave_error_out_of_memory(error));
  }
  for (uint32_t k = 0; outcome == CLEAVE_OK && k < view.region.output_count; k++) {
    cleave_value_t value = view.values[view.region.outputs[k]];
    uint64_t *left = &folding->graph->fold_budget.bytes;
    cleave_tensor_touch(results[k]);
    *left -= results[k]->bytes < *left ? results[k]->bytes : *left;
    CLEAVE_TRY_CLEANUP(cleave_graph_replace_with_constant(folding->graph, value, results[k], error));
  }
  if (outcome == CLEAVE_OK) {
    folding->count++;
    CLEAVE_TRY_CLEANUP(remove_folded(folding, node, error));
  }
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
  CLEAVE_TRY_MEMORY(order, error);
  cleave_status_t status = cleave_graph_topological_order(folding->graph, order, NULL, error);
  for (size_t k = 0; k < live && status == CLEAVE_OK; k++) {
    if (is_foldable(folding->graph, order[k], folding->keep_node, folding->keep_count)) {
      status = fold_node(folding, order[k], error);
    }
  }
  cleave_free(order);
  return status;
}

cleave_status_t cleave_graph_simplify(cleave_graph_t *graph, const bool *keep_node, size_t keep_count,
                                      size_t *out_count, cleave_error_t *error) {
  folding_t folding = {.graph = graph, .keep_node = keep_node, .keep_count = keep_count};
  cleave_status_t status = cleave_registry_find(graph->context, "cpu", &folding.cpu, error);
  cleave_infer_options_t options = {.fold = true};
  size_t total = 0;
  bool was_spent = graph->fold_budget.is_spent;
  set_budget(graph);
  if (status == CLEAVE_OK && keep_node == NULL) {
    status = cleave_graph_remove_dead(graph, NULL, error);
  }
  for (int round = 0; round < MAX_ROUNDS && status == CLEAVE_OK; round++) {
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
  if (status == CLEAVE_OK && folding.garbage > SOME_GARBAGE) {
    status = cleave_graph_release_unused(graph, error);
  }
  cleave_arena_deinit(&folding.arena);
  if (graph->fold_budget.is_spent && !was_spent) {
    cleave_log(
        cleave_context_log(graph->context), CLEAVE_LOG_WARNING,
        "constants that would take more than %d MiB and %d times the model's own, or too long to compute, "
        "are computed in every run",
        FREE_BYTES >> 20, BYTES_PER_BYTE);
  }
  if (out_count != NULL) {
    *out_count = total;
  }
  return status;
}
