// SPDX-License-Identifier: Apache-2.0
// Copying record by record keeps every index; names are shared.
#include "graph/clone.h"

#include <string.h>

static cleave_status_t copy_tensors(const cleave_graph_t *graph, cleave_graph_t *copy,
                                    cleave_error_t *error) {
  CLEAVE_TRY(cleave_array_reserve(&copy->tensors, graph->tensors.count, error));
  for (size_t k = 0; k < graph->tensors.count; k++) {
    cleave_array_push_reserved(&copy->tensors, cleave_tensor_retain(graph->tensors.items[k]));
  }
  return CLEAVE_OK;
}

/* Attribute records are changed in place, so every copy has its own; their room is a power of two, which
 * cleave_graph_set_attribute relies on. */
static cleave_status_t copy_nodes(const cleave_graph_t *graph, cleave_graph_t *copy, cleave_error_t *error) {
  CLEAVE_ARRAY_COPY(&copy->nodes, &graph->nodes, error);
  for (size_t k = 0; k < copy->nodes.count; k++) {
    cleave_node_record_t *record = &copy->nodes.items[k];
    if (record->attribute_count > 0 && record->op != NULL) {
      size_t room = 1;
      while (room < record->attribute_count) {
        room *= 2;
      }
      cleave_attribute_t *attributes = cleave_arena_allocate(&copy->arena, room, sizeof *attributes);
      CLEAVE_TRY_MEMORY(attributes, error);
      memcpy(attributes, record->attributes, record->attribute_count * sizeof *attributes);
      record->attributes = attributes;
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t copy_values(const cleave_graph_t *graph, cleave_graph_t *copy, cleave_error_t *error) {
  CLEAVE_ARRAY_COPY(&copy->values, &graph->values, error);
  for (size_t k = 0; k < copy->values.count; k++) {
    cleave_value_record_t *record = &copy->values.items[k];
    if (record->rank <= 0 || record->dims == NULL) {
      continue;
    }
    record->dims = cleave_arena_copy(&copy->arena, record->dims, (size_t)record->rank * sizeof *record->dims);
    CLEAVE_TRY_MEMORY(record->dims, error);
  }
  return CLEAVE_OK;
}

/* Sizes of what nodes make follow from those of inputs, by inference; some that were inferred with symbols
 * hold only for some sizes (x[:T] is taken to have T elements). */
static void bind_symbols(const cleave_graph_t *graph, const int64_t *sizes, size_t size_count, bool keep,
                         cleave_graph_t *copy) {
  for (size_t k = 0; k < copy->values.count; k++) {
    cleave_value_record_t *record = &copy->values.items[k];
    bool is_made = record->producer != CLEAVE_INDEX_NONE;
    for (int32_t d = 0; record->dims != NULL && d < record->rank; d++) {
      if (cleave_dim_is_symbolic(record->dims[d])) {
        cleave_dim_t size = is_made ? CLEAVE_DIM_UNKNOWN
                                    : cleave_dim_evaluate(graph->dims, record->dims[d], sizes, size_count);
        record->dims[d] = cleave_dim_is_known(size) ? size : keep ? record->dims[d] : CLEAVE_DIM_UNKNOWN;
      }
    }
  }
}

static cleave_status_t copy_all(const cleave_graph_t *graph, cleave_graph_t *copy, cleave_error_t *error) {
  CLEAVE_TRY(cleave_strings_copy(&graph->strings, &copy->strings, error));
  CLEAVE_TRY(copy_tensors(graph, copy, error));
  CLEAVE_TRY(copy_nodes(graph, copy, error));
  CLEAVE_TRY(copy_values(graph, copy, error));
  CLEAVE_ARRAY_COPY(&copy->uses, &graph->uses, error);
  CLEAVE_ARRAY_COPY(&copy->custom_ops, &graph->custom_ops, error);
  CLEAVE_ARRAY_COPY(&copy->inputs, &graph->inputs, error);
  CLEAVE_ARRAY_COPY(&copy->outputs, &graph->outputs, error);
  CLEAVE_ARRAY_COPY(&copy->output_names, &graph->output_names, error);
  copy->live_node_count = graph->live_node_count;
  copy->name = graph->name;
  copy->source = graph->source;
  copy->context = graph->context;
  copy->opset_version = graph->opset_version;
  copy->ir_version = graph->ir_version;
  copy->fold_budget = graph->fold_budget;
  copy->is_sized = graph->is_sized;
  return CLEAVE_OK;
}

cleave_status_t cleave_graph_clone(const cleave_graph_t *graph, const int64_t *sizes, size_t size_count,
                                   cleave_graph_t **out_graph, cleave_error_t *error) {
  *out_graph = NULL;
  cleave_graph_t *copy = NULL;
  CLEAVE_TRY(cleave_graph_create(&copy, error));
  CLEAVE_TRY_OR(copy_all(graph, copy, error), cleave_graph_destroy(copy));
  bind_symbols(graph, sizes, size_count, false, copy);
  *out_graph = copy;
  return CLEAVE_OK;
}

static cleave_status_t copy_with_symbols(const cleave_graph_t *graph, cleave_graph_t *copy,
                                         cleave_error_t *error) {
  cleave_dims_t *dims = NULL;
  CLEAVE_TRY(cleave_dims_copy(graph->dims, &dims, error));
  cleave_dims_destroy(copy->dims);
  copy->dims = dims;
  return copy_all(graph, copy, error);
}

cleave_status_t cleave_graph_copy(const cleave_graph_t *graph, cleave_graph_t **out_graph,
                                  cleave_error_t *error) {
  *out_graph = NULL;
  cleave_graph_t *copy = NULL;
  CLEAVE_TRY(cleave_graph_create(&copy, error));
  CLEAVE_TRY_OR(copy_with_symbols(graph, copy, error), cleave_graph_destroy(copy));
  *out_graph = copy;
  return CLEAVE_OK;
}

cleave_status_t cleave_graph_clone_partly(const cleave_graph_t *graph, const int64_t *sizes,
                                          size_t size_count, cleave_graph_t **out_graph,
                                          cleave_error_t *error) {
  CLEAVE_TRY(cleave_graph_copy(graph, out_graph, error));
  bind_symbols(graph, sizes, size_count, true, *out_graph);
  return CLEAVE_OK;
}
