// SPDX-License-Identifier: Apache-2.0
// A region that was read as a model of its own, and as the plan that it came from. Node k of the view is node
// k of the graph, in whose topological order they stand: so what was one fusion is that again.
#include <stdio.h>
#include <string.h>

#include "backend/region/region_file.h"
#include "graph/compare/structural_hash.h"
#include "ops/custom.h"
#include "ops/ops.h"
#include "partition/plan/plan_document.h"
#include "runtime/model/plan_load.h"
#include "tensor/sparse.h"

/* Bytes of all constants whose dense form is not in the text. */
#define MOST_MADE ((size_t)4 << 30)

enum { MOST_ATTRIBUTES = 4096 }; /* of a node, which looks through them for each */

typedef struct making {
  const cleave_region_file_t *region;
  cleave_graph_t *graph;
  cleave_value_t *values; /* by value of the view */
  size_t made;            /* of MOST_MADE */
  cleave_error_t *error;
} making_t;

/* ---- the graph ---- */

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
      bytes > MOST_MADE - making->made) {
    return cleave_error_set(making->error, CLEAVE_ERROR_LIMIT,
                            "%s: values[%u]: constants that were left out, or are sparse, have more than %zu "
                            "bytes",
                            making->region->place, (unsigned)index, MOST_MADE);
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
  if (status == CLEAVE_OK) {
    status = cleave_graph_add_constant(making->graph, value->name, tensor == NULL ? drawn : tensor,
                                       &making->values[index], making->error);
  }
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
  cleave_attribute_t attribute = {.name = view->name, .kind = view->kind, .count = view->count};
  switch (view->kind) {
    case CLEAVE_ATTRIBUTE_INT: attribute.i = view->i; break;
    case CLEAVE_ATTRIBUTE_FLOAT: attribute.f = view->f; break;
    case CLEAVE_ATTRIBUTE_STRING: attribute.s = view->s; break;
    case CLEAVE_ATTRIBUTE_INTS: attribute.ints = view->ints; break;
    case CLEAVE_ATTRIBUTE_FLOATS: attribute.floats = view->floats; break;
    case CLEAVE_ATTRIBUTE_STRINGS: attribute.strings = view->strings; break;
    case CLEAVE_ATTRIBUTE_TENSOR:
      attribute.tensor = ((const cleave_region_tensor_t *)(const void *)view->tensor)->tensor;
      break;
  }
  return cleave_graph_set_attribute(making->graph, node, &attribute, making->error);
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
      node->attribute_count > MOST_ATTRIBUTES) {
    return cleave_error_set(making->error, CLEAVE_ERROR_LIMIT,
                            "%s: nodes[%u]: more than %d inputs or outputs, or %d attributes",
                            making->region->place, (unsigned)index, UINT16_MAX, MOST_ATTRIBUTES);
  }
  cleave_value_t *inputs = cleave_allocate((size_t)node->input_count + 1, sizeof *inputs);
  if (inputs == NULL) {
    return cleave_error_out_of_memory(making->error);
  }
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
  return cleave_op_check(making->graph, made, making->error);
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
  if (status == CLEAVE_OK) {
    status = make(&making);
  }
  cleave_free(making.values);
  if (status != CLEAVE_OK) {
    cleave_graph_destroy(making.graph);
    return status;
  }
  *out_graph = making.graph;
  return CLEAVE_OK;
}

/* ---- the plan ---- */

typedef struct planning {
  const cleave_region_file_t *region;
  const cleave_graph_t *graph;
  cleave_plan_document_t *document;
  const char *backend;
  uint32_t *rule_of; /* per fusion, in document->rules */
  cleave_error_t *error;
} planning_t;

static void *allocate(planning_t *planning, size_t count, size_t size) {
  return cleave_arena_allocate(&planning->document->arena, count + 1, size);
}

static const char *copy(planning_t *planning, const char *text) {
  return cleave_arena_copy_text(&planning->document->arena, text, strlen(text));
}

/* All nodes of the region are there, where they were. */
static cleave_status_t check_graph(const planning_t *planning) {
  const cleave_graph_t *graph = planning->graph;
  uint32_t count = planning->region->view.node_count;
  bool same = graph->live_node_count == count && cleave_graph_node_bound(graph) == count;
  for (uint32_t k = 0; same && k < count; k++) {
    same = strcmp(cleave_node_op(graph, (cleave_node_t){k})->name, planning->region->nodes[k].op) == 0;
  }
  if (same) {
    return CLEAVE_OK;
  }
  cleave_status_t status =
      cleave_error_set(planning->error, CLEAVE_ERROR_MISMATCH,
                       "%s: the region's own plan does not fit: a part of it is computed before it runs; "
                       "partition it by rules or for a backend",
                       planning->region->place);
  cleave_error_hint(planning->error, CLEAVE_HINT_PARTITION);
  return status;
}

static bool fill_node(planning_t *planning, uint32_t index, const char *label,
                      cleave_document_node_t *out_node) {
  const cleave_node_view_t *node = &planning->region->nodes[index];
  *out_node = (cleave_document_node_t){.position = index,
                                       .op = copy(planning, node->op),
                                       .name = copy(planning, node->name),
                                       .label = copy(planning, label)};
  return out_node->op != NULL && out_node->name != NULL && out_node->label != NULL;
}

static bool copy_attributes(planning_t *planning, const cleave_attribute_view_t *views, uint32_t count,
                            const cleave_attribute_t **out_attributes) {
  cleave_attribute_t *attributes = allocate(planning, count, sizeof *attributes);
  for (uint32_t k = 0; attributes != NULL && k < count; k++) {
    const cleave_attribute_view_t *view = &views[k];
    attributes[k] = (cleave_attribute_t){.name = view->name, .kind = view->kind, .count = view->count};
    switch (view->kind) {
      case CLEAVE_ATTRIBUTE_INT: attributes[k].i = view->i; break;
      case CLEAVE_ATTRIBUTE_FLOAT: attributes[k].f = view->f; break;
      case CLEAVE_ATTRIBUTE_STRING: attributes[k].s = view->s; break;
      case CLEAVE_ATTRIBUTE_INTS: attributes[k].ints = view->ints; break;
      case CLEAVE_ATTRIBUTE_FLOATS: attributes[k].floats = view->floats; break;
      case CLEAVE_ATTRIBUTE_STRINGS: attributes[k].strings = view->strings; break;
      case CLEAVE_ATTRIBUTE_TENSOR: attributes[k].tensor = NULL; break;
    }
  }
  *out_attributes = attributes;
  return attributes != NULL;
}

/* The region's rule is the first; then those of the fusions, by name. */
static cleave_status_t fill_rules(planning_t *planning) {
  const cleave_region_view_t *view = &planning->region->view;
  cleave_plan_document_t *document = planning->document;
  cleave_plan_rule_t *rules = allocate(planning, view->fusion_count, sizeof *rules);
  planning->rule_of = allocate(planning, view->fusion_count, sizeof *planning->rule_of);
  cleave_strings_t names = {0};
  cleave_status_t status =
      rules == NULL || planning->rule_of == NULL ? cleave_error_out_of_memory(planning->error) : CLEAVE_OK;
  uint32_t count = 1; /* texts are numbered from 1 on */
  for (uint32_t k = 0; status == CLEAVE_OK && k < view->fusion_count; k++) {
    const char *name = view->fusions[k].rule;
    cleave_string_t string;
    status = cleave_strings_add(&names, name, strlen(name), &string, planning->error);
    if (status == CLEAVE_OK) {
      planning->rule_of[k] = string.index;
      count = string.index >= count ? string.index + 1 : count;
      rules[string.index].name = name;
      rules[string.index].kind = CLEAVE_RULE_FUSE;
    }
  }
  cleave_strings_deinit(&names);
  CLEAVE_TRY(status);
  rules[0].name = view->rule;
  rules[0].kind = CLEAVE_RULE_REGION;
  for (uint32_t k = 0; k < count; k++) {
    rules[k].ruleset = "";
    rules[k].backend = planning->backend;
    rules[k].file = "";
    rules[k].name = copy(planning, rules[k].name);
    if (rules[k].name == NULL) {
      return cleave_error_out_of_memory(planning->error);
    }
  }
  rules[0].matches = 1;
  for (uint32_t k = 0; k < view->fusion_count; k++) {
    rules[planning->rule_of[k]].matches++;
  }
  document->rules = rules;
  document->rule_count = count;
  return CLEAVE_OK;
}

static bool fill_borders(planning_t *planning, cleave_document_region_t *out_region) {
  const cleave_region_view_t *view = &planning->region->view;
  const cleave_graph_t *graph = planning->graph;
  out_region->input_count = (uint32_t)graph->inputs.count;
  out_region->output_count = view->output_count;
  out_region->inputs = allocate(planning, out_region->input_count, sizeof *out_region->inputs);
  out_region->outputs = allocate(planning, view->output_count, sizeof *out_region->outputs);
  bool is_complete = out_region->inputs != NULL && out_region->outputs != NULL;
  for (uint32_t k = 0; is_complete && k < out_region->input_count; k++) {
    out_region->inputs[k] = (cleave_document_value_t){.position = CLEAVE_INDEX_NONE, .index = k, .name = ""};
  }
  for (uint32_t k = 0; is_complete && k < view->output_count; k++) {
    const cleave_value_view_t *value = &view->values[view->outputs[k]];
    uint32_t port = 0;
    while (view->nodes[value->producer].outputs[port] != view->outputs[k]) {
      port++;
    }
    out_region->outputs[k] =
        (cleave_document_value_t){.position = value->producer, .index = port, .name = ""};
  }
  return is_complete;
}

static bool fill_fusions(planning_t *planning, cleave_document_region_t *out_region) {
  const cleave_region_file_t *region = planning->region;
  const cleave_region_view_t *view = &region->view;
  out_region->fusion_count = view->fusion_count;
  out_region->fusions = allocate(planning, view->fusion_count, sizeof *out_region->fusions);
  bool is_complete = out_region->fusions != NULL;
  for (uint32_t f = 0; is_complete && f < view->fusion_count; f++) {
    const cleave_fusion_view_t *from = &view->fusions[f];
    cleave_document_fusion_t *to = &out_region->fusions[f];
    *to = (cleave_document_fusion_t){.rule = planning->rule_of[f], .node_count = from->node_count};
    to->nodes = allocate(planning, from->node_count, sizeof *to->nodes);
    to->attribute_count = region->lists[f].count;
    is_complete = to->nodes != NULL &&
                  copy_attributes(planning, region->lists[f].items, region->lists[f].count, &to->attributes);
    for (uint32_t k = 0; is_complete && k < from->node_count; k++) {
      is_complete = fill_node(planning, from->nodes[k], from->labels[k], &to->nodes[k]);
    }
  }
  return is_complete;
}

static bool fill_region(planning_t *planning) {
  const cleave_region_view_t *view = &planning->region->view;
  cleave_plan_document_t *document = planning->document;
  cleave_document_region_t *region = allocate(planning, 1, sizeof *region);
  document->steps = allocate(planning, 1, sizeof *document->steps);
  if (region == NULL || document->steps == NULL) {
    return false;
  }
  document->regions = region;
  document->region_count = 1;
  document->step_count = 1;
  document->steps[0].region = 0;
  region->name = copy(planning, view->name);
  region->backend = planning->backend;
  region->rule = 0;
  region->node_count = view->node_count;
  region->nodes = allocate(planning, view->node_count, sizeof *region->nodes);
  region->attribute_count = view->attribute_count;
  bool is_complete = region->name != NULL && region->nodes != NULL &&
                     copy_attributes(planning, view->attributes, view->attribute_count, &region->attributes);
  for (uint32_t k = 0; is_complete && k < view->node_count; k++) {
    is_complete = fill_node(planning, k, "", &region->nodes[k]);
  }
  return is_complete && fill_borders(planning, region) && fill_fusions(planning, region);
}

static cleave_status_t plan(planning_t *planning) {
  cleave_plan_document_t *document = planning->document;
  const cleave_graph_t *graph = planning->graph;
  CLEAVE_TRY(check_graph(planning));
  document->place = copy(planning, planning->region->place);
  document->version = cleave_version();
  document->graph_name = "";
  document->node_count = planning->region->view.node_count;
  document->graph_input_count = (uint32_t)graph->inputs.count;
  CLEAVE_TRY(cleave_graph_hash(graph, &document->graph_hash, planning->error));
  CLEAVE_TRY(cleave_document_inputs(graph, &document->arena, &document->graph_inputs, planning->error));
  planning->backend = copy(planning, planning->backend);
  if (document->place == NULL || planning->backend == NULL) {
    return cleave_error_out_of_memory(planning->error);
  }
  CLEAVE_TRY(fill_rules(planning));
  if (!fill_region(planning)) {
    return cleave_error_out_of_memory(planning->error);
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_region_file_plan(const cleave_region_file_t *region, const cleave_graph_t *graph,
                                        const char *backend, bool fallback, cleave_plan_t **out_plan,
                                        cleave_error_t *error) {
  *out_plan = NULL;
  planning_t planning = {.region = region, .graph = graph, .error = error};
  planning.backend = backend != NULL ? backend : region->backend != NULL ? region->backend : "cpu";
  planning.document = cleave_allocate_zeroed(1, sizeof *planning.document);
  if (planning.document == NULL) {
    return cleave_error_out_of_memory(error);
  }
  cleave_status_t status = plan(&planning);
  if (status == CLEAVE_OK) {
    status = cleave_plan_load_document(planning.document, graph, fallback, out_plan, error);
  }
  cleave_plan_document_destroy(planning.document);
  return status;
}
