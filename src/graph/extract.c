// SPDX-License-Identifier: Apache-2.0
// Built with the functions that readers use, so that the result is as whole as any graph.
#include "graph/extract.h"

#include "graph/order.h"

typedef struct extraction {
  const cleave_graph_t *from;
  cleave_graph_t *to;
  cleave_value_t *values; /* by value of `from`; NONE: not there yet */
  CLEAVE_ARRAY(cleave_value_t) operands;
} extraction_t;

static cleave_status_t copy_type(extraction_t *extraction, cleave_value_t from, cleave_value_t to,
                                 cleave_error_t *error) {
  const cleave_value_record_t *record = cleave_graph_value(extraction->from, from);
  cleave_dim_t dims[CLEAVE_MAX_RANK];
  for (int32_t d = 0; d < record->rank; d++) {
    dims[d] = cleave_dim_is_symbolic(record->dims[d]) ? CLEAVE_DIM_UNKNOWN : record->dims[d];
  }
  return cleave_graph_set_type(extraction->to, to, (cleave_dtype_t)record->dtype, record->rank, dims, error);
}

static cleave_status_t add_input(extraction_t *extraction, cleave_value_t value, cleave_error_t *error) {
  const cleave_value_record_t *record = cleave_graph_value(extraction->from, value);
  cleave_value_t *copy = &extraction->values[value.index];
  CLEAVE_TRY(cleave_graph_add_input(extraction->to, cleave_value_name(extraction->from, value),
                                    (cleave_dtype_t)record->dtype, -1, NULL, copy, error));
  return copy_type(extraction, value, *copy, error);
}

/* The copy of an operand; constants come along when they are met first. */
static cleave_status_t find_operand(extraction_t *extraction, cleave_value_t value, cleave_value_t *out_copy,
                                    cleave_error_t *error) {
  *out_copy = CLEAVE_VALUE_NONE;
  if (!cleave_value_exists(value)) {
    return CLEAVE_OK;
  }
  cleave_value_t *copy = &extraction->values[value.index];
  const cleave_value_record_t *record = cleave_graph_value(extraction->from, value);
  if (!cleave_value_exists(*copy) && record->tensor != NULL) {
    CLEAVE_TRY(cleave_graph_add_constant(extraction->to, cleave_value_name(extraction->from, value),
                                         record->tensor, copy, error));
  }
  if (!cleave_value_exists(*copy)) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "value '%s' comes from outside of the nodes, but is not an input",
                            cleave_value_name(extraction->from, value));
  }
  *out_copy = *copy;
  return CLEAVE_OK;
}

static cleave_status_t add_node(extraction_t *extraction, cleave_node_t node, cleave_error_t *error) {
  const cleave_graph_t *from = extraction->from;
  const cleave_node_record_t *record = cleave_graph_node(from, node);
  extraction->operands.count = 0;
  for (uint32_t k = 0; k < record->input_count; k++) {
    cleave_value_t copy;
    CLEAVE_TRY(find_operand(extraction, cleave_node_input(from, node, k), &copy, error));
    CLEAVE_ARRAY_PUSH(&extraction->operands, copy, error);
  }
  cleave_node_t copy;
  CLEAVE_TRY(cleave_graph_add_node(extraction->to, record->op, cleave_node_name(from, node),
                                   extraction->operands.items, record->input_count, record->output_count,
                                   &copy, error));
  for (uint32_t k = 0; k < record->attribute_count; k++) {
    CLEAVE_TRY(cleave_graph_set_attribute(extraction->to, copy, &record->attributes[k], error));
  }
  for (uint32_t k = 0; k < record->output_count; k++) {
    cleave_value_t value = cleave_node_output(from, node, k);
    cleave_value_t made = cleave_node_output(extraction->to, copy, k);
    extraction->values[value.index] = made;
    CLEAVE_TRY(cleave_graph_set_value_name(extraction->to, made, cleave_value_name(from, value), error));
    CLEAVE_TRY(copy_type(extraction, value, made, error));
  }
  return CLEAVE_OK;
}

static cleave_status_t extract(extraction_t *extraction, const cleave_extract_request_t *request,
                               cleave_error_t *error) {
  for (uint32_t k = 0; k < cleave_graph_value_bound(extraction->from); k++) {
    extraction->values[k] = CLEAVE_VALUE_NONE;
  }
  for (uint32_t k = 0; k < request->input_count; k++) {
    CLEAVE_TRY(add_input(extraction, request->inputs[k], error));
  }
  for (uint32_t k = 0; k < request->node_count; k++) {
    CLEAVE_TRY(add_node(extraction, request->nodes[k], error));
  }
  for (uint32_t k = 0; k < request->output_count; k++) {
    cleave_value_t copy;
    CLEAVE_TRY(find_operand(extraction, request->outputs[k], &copy, error));
    CLEAVE_TRY(cleave_graph_add_output(
        extraction->to, cleave_value_name(extraction->from, request->outputs[k]), copy, error));
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_graph_extract(const cleave_graph_t *graph, const cleave_extract_request_t *request,
                                     cleave_graph_t **out_graph, cleave_error_t *error) {
  *out_graph = NULL;
  extraction_t extraction = {.from = graph};
  cleave_status_t status = CLEAVE_OK;
  extraction.values = cleave_allocate((size_t)cleave_graph_value_bound(graph) + 1, sizeof *extraction.values);
  CLEAVE_TRY_MEMORY(extraction.values, error);
  CLEAVE_TRY_CLEANUP(cleave_graph_create(&extraction.to, error));
  extraction.to->context = graph->context;
  CLEAVE_TRY_CLEANUP(extract(&extraction, request, error));
  *out_graph = extraction.to;
  extraction.to = NULL;
cleanup:
  cleave_graph_destroy(extraction.to);
  cleave_array_free(&extraction.operands);
  cleave_free(extraction.values);
  return status;
}

static cleave_status_t insert(extraction_t *extraction, const cleave_value_t *inputs, cleave_node_t *order,
                              cleave_value_t *out_outputs, cleave_error_t *error) {
  const cleave_graph_t *from = extraction->from;
  CLEAVE_TRY(cleave_graph_topological_order(from, order, NULL, error));
  for (uint32_t k = 0; k < cleave_graph_value_bound(from); k++) {
    extraction->values[k] = CLEAVE_VALUE_NONE;
  }
  for (size_t k = 0; k < from->inputs.count; k++) {
    extraction->values[from->inputs.items[k].index] = inputs[k];
  }
  for (size_t k = 0; k < from->live_node_count; k++) {
    CLEAVE_TRY(add_node(extraction, order[k], error));
  }
  for (size_t k = 0; k < from->outputs.count; k++) {
    CLEAVE_TRY(find_operand(extraction, cleave_graph_output(from, k), &out_outputs[k], error));
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_graph_insert(const cleave_graph_t *graph, const cleave_value_t *inputs,
                                    cleave_graph_t *to, cleave_value_t *out_outputs, cleave_error_t *error) {
  extraction_t extraction = {.from = graph, .to = to};
  cleave_node_t *order = cleave_allocate(graph->live_node_count + 1, sizeof *order);
  extraction.values = cleave_allocate((size_t)cleave_graph_value_bound(graph) + 1, sizeof *extraction.values);
  cleave_status_t status = order != NULL && extraction.values != NULL
                               ? insert(&extraction, inputs, order, out_outputs, error)
                               : cleave_error_out_of_memory(error);
  cleave_array_free(&extraction.operands);
  cleave_free(extraction.values);
  cleave_free(order);
  return status;
}
