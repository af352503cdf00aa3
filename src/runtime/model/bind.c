// SPDX-License-Identifier: Apache-2.0
// Binding sizes: every symbol that an input dimension names gets the size of that dimension. Then a copy of
// the graph with these sizes is inferred again.
#include "runtime/model/bind.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/sized.h"
#include "graph/clone.h"
#include "ops/infer.h"

/* "input 'x'", for messages. */
static const char *input_label(const cleave_graph_t *graph, size_t index, char *buffer, size_t size) {
  (void)snprintf(buffer, size, "input '%.100s' (number %zu)",
                 cleave_value_name(graph, graph->inputs.items[index]), index);
  return buffer;
}

static cleave_status_t check_complete(const cleave_graph_t *graph, size_t index, cleave_error_t *error) {
  char label[160];
  const cleave_value_record_t *record = cleave_graph_value(graph, graph->inputs.items[index]);
  (void)input_label(graph, index, label, sizeof label);
  if (record->dtype == CLEAVE_DTYPE_UNKNOWN) {
    return cleave_error_set(error, CLEAVE_ERROR_SHAPE, "%s: its dtype is unknown; give the input", label);
  }
  if (record->rank < 0) {
    return cleave_error_set(error, CLEAVE_ERROR_SHAPE, "%s: its shape is unknown; give it", label);
  }
  for (int32_t d = 0; d < record->rank; d++) {
    if (!cleave_dim_is_known(record->dims[d])) {
      cleave_text_t name = {0};
      cleave_dim_print(graph->dims, record->dims[d], &name);
      cleave_status_t status =
          cleave_error_set(error, CLEAVE_ERROR_SHAPE, "%s: the size of dimension %d (%s) is unknown; give it",
                           label, (int)d, cleave_text_get(&name));
      cleave_text_deinit(&name);
      return status;
    }
  }
  return CLEAVE_OK;
}

/* Does the given type agree with what the graph knows? */
static cleave_status_t check_given(const cleave_graph_t *graph, size_t index,
                                   const cleave_tensor_view_t *given, bool partly, cleave_error_t *error) {
  char label[160];
  const cleave_value_record_t *record = cleave_graph_value(graph, graph->inputs.items[index]);
  (void)input_label(graph, index, label, sizeof label);
  if (given->rank < 0 || given->rank > CLEAVE_MAX_RANK) {
    return cleave_error_set(error, CLEAVE_ERROR_SHAPE, "%s: rank %d is not between 0 and %d", label,
                            (int)given->rank, CLEAVE_MAX_RANK);
  }
  if (record->dtype != CLEAVE_DTYPE_UNKNOWN && record->dtype != (uint8_t)given->dtype) {
    return cleave_error_set(error, CLEAVE_ERROR_SHAPE, "%s: expected %s, found %s", label,
                            cleave_dtype_name((cleave_dtype_t)record->dtype),
                            cleave_dtype_name(given->dtype));
  }
  if (record->rank >= 0 && record->rank != given->rank) {
    return cleave_error_set(error, CLEAVE_ERROR_SHAPE, "%s: expected rank %d, found rank %d", label,
                            (int)record->rank, (int)given->rank);
  }
  CLEAVE_TRY(cleave_list_check("dims", given->dims, (size_t)given->rank, error));
  for (int32_t d = 0; d < given->rank; d++) {
    if (given->dims[d] < 0 && partly) {
      continue;
    }
    if (given->dims[d] < 0) {
      return cleave_error_set(error, CLEAVE_ERROR_SHAPE, "%s: the size of dimension %d is negative", label,
                              (int)d);
    }
    if (record->rank >= 0 && cleave_dim_is_known(record->dims[d]) && record->dims[d] != given->dims[d]) {
      return cleave_error_set(error, CLEAVE_ERROR_SHAPE, "%s: dimension %d is %" PRId64 ", expected %" PRId64,
                              label, (int)d, given->dims[d], record->dims[d]);
    }
  }
  return CLEAVE_OK;
}

static bool is_complete(const cleave_value_record_t *record) {
  bool complete = record->dtype != CLEAVE_DTYPE_UNKNOWN && record->rank >= 0;
  for (int32_t d = 0; complete && d < record->rank; d++) {
    complete = cleave_dim_is_known(record->dims[d]);
  }
  return complete;
}

/* Sizes of symbols, from the dimensions of input `index`. */
static cleave_status_t bind_symbols(const cleave_graph_t *graph, size_t index,
                                    const cleave_tensor_view_t *given, int64_t *sizes,
                                    cleave_error_t *error) {
  size_t symbol_count = cleave_dims_symbol_count(graph->dims);
  const cleave_value_record_t *record = cleave_graph_value(graph, graph->inputs.items[index]);
  for (int32_t d = 0; d < record->rank; d++) {
    if (!cleave_dim_is_symbolic(record->dims[d]) || given->dims[d] < 0) {
      continue;
    }
    size_t symbol = cleave_dims_symbol_of(graph->dims, record->dims[d]);
    if (symbol < symbol_count && sizes[symbol] < 0) {
      sizes[symbol] = given->dims[d];
    }
    int64_t bound = cleave_dim_evaluate(graph->dims, record->dims[d], sizes, symbol_count);
    if (cleave_dim_is_known(bound) && bound != given->dims[d]) {
      char label[160];
      cleave_text_t text = {0};
      cleave_dim_print(graph->dims, record->dims[d], &text);
      cleave_status_t status =
          cleave_error_set(error, CLEAVE_ERROR_SHAPE,
                           "%s: dimension %d is %" PRId64 ", but %s is %" PRId64 " by an input before it",
                           input_label(graph, index, label, sizeof label), (int)d, given->dims[d],
                           cleave_text_get(&text), bound);
      cleave_text_deinit(&text);
      return status;
    }
  }
  return CLEAVE_OK;
}

/* Gives inputs the types of the tensors that are given, if those say more than the graph. */
static cleave_status_t set_input_types(cleave_graph_t *graph, const cleave_tensor_view_t *const *inputs,
                                       cleave_error_t *error) {
  for (size_t k = 0; inputs != NULL && k < graph->inputs.count; k++) {
    const cleave_value_record_t *record = cleave_graph_value(graph, graph->inputs.items[k]);
    cleave_dim_t dims[CLEAVE_MAX_RANK];
    if (inputs[k] == NULL) {
      continue;
    }
    for (int32_t d = 0; d < inputs[k]->rank; d++) {
      cleave_dim_t own = record->rank == inputs[k]->rank ? record->dims[d] : CLEAVE_DIM_UNKNOWN;
      dims[d] = inputs[k]->dims[d] < 0 ? own : inputs[k]->dims[d];
    }
    CLEAVE_TRY(
        cleave_graph_set_type(graph, graph->inputs.items[k], inputs[k]->dtype, inputs[k]->rank, dims, error));
  }
  return CLEAVE_OK;
}

static bool has_open_input(const cleave_graph_t *graph) {
  for (size_t k = 0; k < graph->inputs.count; k++) {
    if (!is_complete(cleave_graph_value(graph, graph->inputs.items[k]))) {
      return true;
    }
  }
  return false;
}

/* Inputs that nobody gives get what the others tell of them; one that stays open is an error, which names the
 * size as the model (`origin`) does. */
static cleave_status_t complete_inputs(cleave_graph_t *graph, const cleave_graph_t *origin,
                                       cleave_error_t *error) {
  if (!has_open_input(graph)) {
    return CLEAVE_OK;
  }
  cleave_infer_options_t options = {.assume_equal = true};
  CLEAVE_TRY(cleave_graph_infer(graph, &options, NULL, error));
  for (size_t k = 0; k < graph->inputs.count; k++) {
    if (!is_complete(cleave_graph_value(graph, graph->inputs.items[k]))) {
      CLEAVE_TRY(check_complete(origin, k, error));
      CLEAVE_TRY(check_complete(graph, k, error));
    }
  }
  return CLEAVE_OK;
}

/* Do all values have the types that a session needs, without any sizes from outside? */
static bool is_static(const cleave_graph_t *graph) {
  for (uint32_t k = 0; k < cleave_graph_value_bound(graph); k++) {
    const cleave_value_record_t *record = cleave_graph_value(graph, (cleave_value_t){k});
    if (!record->is_removed && !is_complete(record) && (record->use_count > 0 || record->is_input)) {
      return false;
    }
  }
  return true;
}

static cleave_status_t bind(const cleave_graph_t *graph, const cleave_tensor_view_t *const *inputs,
                            size_t input_count, bool partly, const bool *keep_node,
                            cleave_graph_t **out_graph, cleave_error_t *error) {
  *out_graph = NULL;
  if (inputs != NULL && input_count != graph->inputs.count) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "%zu input%s given, the model has %zu",
                            input_count, CLEAVE_PLURAL(input_count), graph->inputs.count);
  }
  for (size_t k = 0; inputs != NULL && k < graph->inputs.count; k++) {
    if (inputs[k] != NULL) {
      CLEAVE_TRY(check_given(graph, k, inputs[k], partly, error));
    }
  }
  uint32_t node_bound = cleave_graph_node_bound(graph);
  if (is_static(graph) && !cleave_graph_has_foldable(graph, keep_node, node_bound)) {
    return CLEAVE_OK;
  }
  cleave_status_t status = CLEAVE_OK;
  cleave_graph_t *bound = NULL;
  size_t symbol_count = cleave_dims_symbol_count(graph->dims);
  int64_t *sizes = cleave_allocate(symbol_count, sizeof *sizes);
  CLEAVE_TRY_MEMORY_CLEANUP(sizes, error);
  for (size_t symbol = 0; symbol < symbol_count; symbol++) {
    sizes[symbol] = CLEAVE_DIM_UNKNOWN;
  }
  for (size_t k = 0; inputs != NULL && k < input_count; k++) {
    if (inputs[k] != NULL) {
      CLEAVE_TRY_CLEANUP(bind_symbols(graph, k, inputs[k], sizes, error));
    }
  }
  CLEAVE_TRY_CLEANUP(
      (partly ? cleave_graph_clone_partly : cleave_graph_clone)(graph, sizes, symbol_count, &bound, error));
  bound->is_sized = bound->is_sized || has_open_input(graph);
  CLEAVE_TRY_CLEANUP(set_input_types(bound, inputs, error));
  if (!partly) {
    CLEAVE_TRY_CLEANUP(complete_inputs(bound, graph, error));
  }
  CLEAVE_TRY_CLEANUP(cleave_graph_simplify(bound, keep_node, node_bound, NULL, error));
  *out_graph = bound;
  bound = NULL;
cleanup:
  cleave_free(sizes);
  cleave_graph_destroy(bound);
  return status;
}

cleave_status_t cleave_graph_bind(const cleave_graph_t *graph, const cleave_tensor_view_t *const *inputs,
                                  size_t input_count, const bool *keep_node, cleave_graph_t **out_graph,
                                  cleave_error_t *error) {
  return bind(graph, inputs, input_count, false, keep_node, out_graph, error);
}

cleave_status_t cleave_graph_bind_partly(const cleave_graph_t *graph,
                                         const cleave_tensor_view_t *const *inputs, size_t input_count,
                                         const bool *keep_node, cleave_graph_t **out_graph,
                                         cleave_error_t *error) {
  return bind(graph, inputs, input_count, true, keep_node, out_graph, error);
}
