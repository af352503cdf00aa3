// SPDX-License-Identifier: Apache-2.0
// A region that was read as a model of its own. Node k of the view is node k of the graph, in topological
// order.
#include <string.h>

#include "backend/region/region_file.h"
#include "ops/custom.h"
#include "ops/ops.h"
#include "runtime/model/region_graph.h"
#include "tensor/sparse.h"

/* Bytes of all constants whose dense form is not in the text. */
#define MAX_MADE ((size_t)4 << 30)

enum { MAX_ATTRIBUTES = 4096 }; /* of a node, which looks through them for each */

typedef struct making {
  const cleave_region_file_t *region;
  cleave_graph_t *graph;
  cleave_value_t *values; /* by value of the view */
  size_t made;            /* of MAX_MADE */
  cleave_error_t *error;
} making_t;

static cleave_status_t set_type(making_t *making, uint32_t index) {
  const cleave_tensor_view_t *tensor = &making->region->values[index].tensor;
  cleave_dim_t dims[CLEAVE_MAX_RANK];
  for (int32_t d = 0; d < tensor->rank; d++) {
    dims[d] = tensor->dims[d];
    if (cleave_dim_is_symbolic(dims[d])) {
      const char *name = making->region->symbols.texts[-1 - dims[d]];
      dims[d] = cleave_dims_symbol(making->graph->dims, name, strlen(name));
    }
  }
  return cleave_graph_set_type(making->graph, making->values[index], tensor->dtype, tensor->rank, dims,
                               making->error);
}

/* All zero. */
static cleave_status_t create(making_t *making, uint32_t index, cleave_tensor_t **out_tensor) {
  const cleave_tensor_view_t *type = &making->region->values[index].tensor;
  size_t bytes = 0;
  if (!cleave_size_multiply((size_t)cleave_view_element_count(type), cleave_dtype_size(type->dtype),
                            &bytes) ||
      bytes > MAX_MADE - making->made) {
    return cleave_error_set(making->error, CLEAVE_ERROR_LIMIT,
                            "%s: values[%u]: constants that were left out, or are sparse, have more than %zu "
                            "bytes",
                            making->region->place, (unsigned)index, MAX_MADE);
  }
  making->made += bytes;
  return cleave_tensor_create(type->dtype, type->rank, type->dims, out_tensor, making->error);
}

/* The numbers of a sparse constant, or for one that was left out some of our own. */
static cleave_status_t fill(const cleave_value_view_t *value, uint32_t index, cleave_tensor_t *tensor,
                            cleave_error_t *error) {
  const cleave_sparse_view_t *sparse = value->tensor.sparse;
  bool is_csr = value->tensor.storage == CLEAVE_STORAGE_CSR;
  int64_t rows = tensor->rank > 0 ? tensor->dims[0] : 1;
  size_t element = cleave_dtype_size(tensor->dtype);
  size_t piece = is_csr || rows == 0 ? element : tensor->bytes / (size_t)rows;
  for (int64_t row = 0, k = 0; sparse != NULL && k < sparse->stored; row++) {
    int64_t end = is_csr ? sparse->offsets[row + 1] : sparse->stored;
    for (; k < end; k++) {
      int64_t place = is_csr ? row * tensor->dims[1] + sparse->indices[k] : sparse->indices[k];
      memcpy((char *)tensor->data + (size_t)place * piece,
             (const char *)value->tensor.data + (size_t)k * piece, piece);
    }
  }
  if (sparse == NULL && cleave_dtype_is_float(tensor->dtype)) {
    for (int64_t k = 0; k < tensor->count; k++) {
      uint64_t number = ((uint64_t)k * 7919 + (uint64_t)index * 104729) % 10007;
      cleave_tensor_set_float(tensor, k, (double)number / 100070.0);
    }
  }
  cleave_tensor_touch(tensor);
  return sparse != NULL ? cleave_tensor_add_sparse(tensor, error) : CLEAVE_OK;
}

static cleave_status_t add_constant(making_t *making, uint32_t index) {
  const cleave_value_view_t *value = &making->region->values[index];
  cleave_tensor_t *tensor = making->region->tensors[index];
  cleave_tensor_t *drawn = NULL;
  cleave_status_t status = CLEAVE_OK;
  if (tensor == NULL) {
    CLEAVE_TRY(create(making, index, &drawn));
    status = fill(value, index, drawn, making->error);
  }
  CLEAVE_THEN(status, cleave_graph_add_constant(making->graph, value->name, tensor == NULL ? drawn : tensor,
                                                &making->values[index], making->error));
  cleave_tensor_release(drawn);
  return status;
}

static cleave_status_t add_leaves(making_t *making) {
  const cleave_region_view_t *view = &making->region->view;
  for (uint32_t k = 0; k < view->input_count; k++) {
    uint32_t index = view->inputs[k];
    if (!making->region->is_constant[index]) {
      CLEAVE_TRY(cleave_graph_add_input(making->graph, view->values[index].name, CLEAVE_DTYPE_UNKNOWN, -1,
                                        NULL, &making->values[index], making->error));
      CLEAVE_TRY(set_type(making, index));
    }
  }
  for (uint32_t k = 0; k < view->value_count; k++) {
    if (making->region->is_constant[k]) {
      CLEAVE_TRY(add_constant(making, k));
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t set_attribute(making_t *making, cleave_node_t node,
                                     const cleave_attribute_view_t *view) {
  return cleave_graph_set_attribute(making->graph, node, view, making->error);
}

static cleave_status_t find_op(making_t *making, uint32_t index, const cleave_op_t **out_op) {
  const cleave_node_view_t *node = &making->region->nodes[index];
  *out_op = cleave_op_find(node->domain, node->op);
  if (*out_op == NULL) {
    CLEAVE_TRY(cleave_graph_custom_op(making->graph, node->domain, node->op, node->opset_version, out_op,
                                      making->error));
  }
  if ((*out_op)->id != CLEAVE_OP_ID_CUSTOM && (*out_op)->since_version != node->opset_version) {
    return cleave_error_set(making->error, CLEAVE_ERROR_UNSUPPORTED,
                            "%s: nodes[%u]: %s of operator set %d, this program has the one of %d",
                            making->region->place, (unsigned)index, (*out_op)->name, (int)node->opset_version,
                            (int)(*out_op)->since_version);
  }
  cleave_error_t reason = CLEAVE_ERROR_INIT;
  cleave_status_t status = cleave_custom_op_check_version(*out_op, node->opset_version, &reason);
  return status == CLEAVE_OK ? CLEAVE_OK
                             : cleave_error_set(making->error, status, "%s: nodes[%u]: %s",
                                                making->region->place, (unsigned)index, reason.message);
}

static cleave_status_t add_node(making_t *making, uint32_t index) {
  const cleave_node_view_t *node = &making->region->nodes[index];
  const cleave_op_t *op = NULL;
  cleave_node_t made;
  CLEAVE_TRY(find_op(making, index, &op));
  if (node->input_count > UINT16_MAX || node->output_count > UINT16_MAX ||
      node->attribute_count > MAX_ATTRIBUTES) {
    return cleave_error_set(making->error, CLEAVE_ERROR_LIMIT,
                            "%s: nodes[%u]: more than %d inputs or outputs, or %d attributes",
                            making->region->place, (unsigned)index, UINT16_MAX, MAX_ATTRIBUTES);
  }
  cleave_value_t *inputs = cleave_allocate((size_t)node->input_count + 1, sizeof *inputs);
  CLEAVE_TRY_MEMORY(inputs, making->error);
  for (uint32_t k = 0; k < node->input_count; k++) {
    inputs[k] = node->inputs[k] == CLEAVE_INDEX_NONE ? CLEAVE_VALUE_NONE : making->values[node->inputs[k]];
  }
  cleave_status_t status = cleave_graph_add_node(making->graph, op, node->name, inputs, node->input_count,
                                                 node->output_count, &made, making->error);
  cleave_free(inputs);
  CLEAVE_TRY(status);
  for (uint32_t k = 0; k < node->attribute_count; k++) {
    CLEAVE_TRY(set_attribute(making, made, &node->attributes[k]));
  }
  for (uint32_t k = 0; k < node->output_count; k++) {
    uint32_t value = node->outputs[k];
    if (value != CLEAVE_INDEX_NONE) {
      making->values[value] = cleave_node_output(making->graph, made, k);
      CLEAVE_TRY(cleave_graph_set_value_name(making->graph, making->values[value],
                                             making->region->values[value].name, making->error));
      CLEAVE_TRY(set_type(making, value));
    }
  }
  return cleave_op_check(making->graph, made, CLEAVE_ERROR_FORMAT, making->error);
}

static cleave_status_t make(making_t *making) {
  const cleave_region_view_t *view = &making->region->view;
  const char *place = making->region->place;
  CLEAVE_TRY(cleave_strings_add(&making->graph->strings, view->name, strlen(view->name), &making->graph->name,
                                making->error));
  CLEAVE_TRY(cleave_strings_add(&making->graph->strings, place, strlen(place), &making->graph->source,
                                making->error));
  CLEAVE_TRY(add_leaves(making));
  for (uint32_t k = 0; k < view->node_count; k++) {
    CLEAVE_TRY(add_node(making, k));
  }
  for (uint32_t k = 0; k < view->output_count; k++) {
    uint32_t value = view->outputs[k];
    CLEAVE_TRY(cleave_graph_add_output(making->graph, view->values[value].name, making->values[value],
                                       making->error));
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_region_file_graph(const cleave_region_file_t *region, cleave_graph_t **out_graph,
                                         cleave_error_t *error) {
  making_t making = {.region = region, .error = error};
  *out_graph = NULL;
  making.values = cleave_allocate((size_t)region->view.value_count + 1, sizeof *making.values);
  cleave_status_t status =
      making.values == NULL ? cleave_error_out_of_memory(error) : cleave_graph_create(&making.graph, error);
  CLEAVE_THEN(status, make(&making));
  cleave_free(making.values);
  CLEAVE_TRY_OR(status, cleave_graph_destroy(making.graph));
  *out_graph = making.graph;
  return CLEAVE_OK;
}
