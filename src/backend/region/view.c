// SPDX-License-Identifier: Apache-2.0
// Building views. Indices are given in order of first appearance, so that equal sets of nodes give equal
// views. Small sets find their ids by looking through the view, large ones by maps over the whole graph that
// are cleared again for what was touched only.
#include "backend/region/view.h"

#include <string.h>

#include "ops/ops.h"
#include "tensor/sparse.h"

enum { SMALL_SET = 24 }; /* values that are found faster by looking than by a map */

typedef struct building {
  cleave_view_builder_t *builder;
  const cleave_graph_t *graph;
  const cleave_view_request_t *request;
  cleave_arena_t *arena;
  bool uses_maps;
  uint32_t value_count;
  cleave_value_view_t *values;
  cleave_value_t *value_ids;
  cleave_node_view_t *nodes;
  uint64_t *versions;
  uint32_t version_count;
} building_t;

void cleave_view_builder_init(cleave_view_builder_t *builder, const cleave_graph_t *graph) {
  *builder = (cleave_view_builder_t){.graph = graph};
}

void cleave_view_builder_deinit(cleave_view_builder_t *builder) {
  cleave_free(builder->value_index);
  cleave_free(builder->node_index);
  *builder = (cleave_view_builder_t){0};
}

static uint32_t *make_map(uint32_t count) {
  uint32_t *map = cleave_allocate(count, sizeof *map);
  if (map != NULL && count > 0) {
    memset(map, 0xff, count * sizeof *map);
  }
  return map;
}

static cleave_status_t make_maps(cleave_view_builder_t *builder, cleave_error_t *error) {
  if (builder->value_index == NULL) {
    builder->value_index = make_map(cleave_graph_value_bound(builder->graph));
  }
  if (builder->node_index == NULL) {
    builder->node_index = make_map(cleave_graph_node_bound(builder->graph));
  }
  bool is_complete = builder->value_index != NULL && builder->node_index != NULL;
  return is_complete ? CLEAVE_OK : cleave_error_out_of_memory(error);
}

static uint32_t find_value(const building_t *building, cleave_value_t value) {
  if (building->uses_maps) {
    return building->builder->value_index[value.index];
  }
  for (uint32_t k = 0; k < building->value_count; k++) {
    if (building->value_ids[k].index == value.index) {
      return k;
    }
  }
  return CLEAVE_INDEX_NONE;
}

static uint32_t find_node(const building_t *building, cleave_node_t node) {
  if (building->uses_maps) {
    return building->builder->node_index[node.index];
  }
  for (uint32_t k = 0; k < building->request->node_count; k++) {
    if (building->request->nodes[k].index == node.index) {
      return k;
    }
  }
  return CLEAVE_INDEX_NONE;
}

static cleave_tensor_view_t view_constant(const building_t *building, const cleave_tensor_t *tensor) {
  cleave_tensor_view_t view = cleave_tensor_view(tensor);
  view.is_weight = true;
  if (building->request->takes_sparse && tensor->sparse != NULL) {
    view.storage = tensor->sparse->storage;
    view.data = tensor->sparse->data;
    view.sparse = &tensor->sparse->view;
  }
  return view;
}

static uint32_t add_value(building_t *building, cleave_value_t value) {
  uint32_t index = find_value(building, value);
  if (index != CLEAVE_INDEX_NONE) {
    return index;
  }
  const cleave_value_record_t *record = cleave_graph_value(building->graph, value);
  index = building->value_count++;
  building->value_ids[index] = value;
  cleave_value_view_t *view = &building->values[index];
  *view = (cleave_value_view_t){
      .size = sizeof *view, .name = cleave_value_name(building->graph, value), .producer = CLEAVE_INDEX_NONE};
  if (record->tensor != NULL) {
    view->tensor = view_constant(building, record->tensor);
    building->versions[building->version_count++] = record->tensor->version;
  } else {
    view->tensor = (cleave_tensor_view_t){.size = sizeof(cleave_tensor_view_t),
                                          .dtype = (cleave_dtype_t)record->dtype,
                                          .rank = record->rank,
                                          .dims = record->dims};
    for (uint32_t k = 0; k < building->request->type_count; k++) {
      if (building->request->types[k].value.index == value.index) {
        view->tensor = building->request->types[k].type;
      }
    }
  }
  if (building->uses_maps) {
    building->builder->value_index[value.index] = index;
  }
  return index;
}

/* The content of tensors among them may be kept by a program. */
static cleave_status_t view_attributes(building_t *building, cleave_node_t node, cleave_node_view_t *view,
                                       cleave_error_t *error) {
  cleave_attribute_view_t *attributes = NULL;
  CLEAVE_TRY(cleave_attribute_views(building->graph, node, building->arena, &attributes,
                                    &view->attribute_count, error));
  for (uint32_t k = 0; k < view->attribute_count; k++) {
    if (attributes[k].kind == CLEAVE_ATTRIBUTE_TENSOR) {
      const cleave_tensor_t *tensor = attributes[k].held;
      cleave_tensor_view_t *own = cleave_arena_allocate(building->arena, 1, sizeof *own);
      CLEAVE_TRY_MEMORY(own, error);
      *own = view_constant(building, tensor);
      attributes[k].tensor = own;
      building->versions[building->version_count++] = tensor->version;
    }
  }
  view->attributes = attributes;
  return CLEAVE_OK;
}

/* The first operator that gives a value's dimensions a meaning is the one that counts. */
static void say_layout(cleave_tensor_view_t *tensor, const char *layout) {
  tensor->layout = tensor->layout == NULL ? layout : tensor->layout;
}

/* Behind a pointwise operator the dimensions mean what they meant before it. */
static void keep_layout(const building_t *building, const cleave_node_record_t *record, const uint32_t *ports,
                        cleave_tensor_view_t *output) {
  if ((record->op->flags & CLEAVE_OP_POINTWISE) != 0 && record->input_count > 0 &&
      ports[0] != CLEAVE_INDEX_NONE && building->values[ports[0]].tensor.rank == output->rank) {
    say_layout(output, building->values[ports[0]].tensor.layout);
  }
}

static cleave_status_t view_node(building_t *building, uint32_t index, cleave_error_t *error) {
  const cleave_graph_t *graph = building->graph;
  cleave_node_t node = building->request->nodes[index];
  const cleave_node_record_t *record = cleave_graph_node(graph, node);
  cleave_node_view_t *view = &building->nodes[index];
  *view = (cleave_node_view_t){.size = sizeof *view,
                               .op = record->op->name,
                               .domain = record->op->domain,
                               .name = cleave_node_name(graph, node),
                               .opset_version = record->op->since_version,
                               .input_count = record->input_count,
                               .output_count = record->output_count,
                               .fusion = CLEAVE_INDEX_NONE};
  uint32_t *ports = cleave_arena_allocate(building->arena, (size_t)record->input_count + record->output_count,
                                          sizeof *ports);
  CLEAVE_TRY_MEMORY(ports, error);
  view->inputs = ports;
  view->outputs = ports + record->input_count;
  for (uint32_t k = 0; k < record->input_count; k++) {
    cleave_value_t value = cleave_node_input(graph, node, k);
    ports[k] = cleave_value_exists(value) ? add_value(building, value) : CLEAVE_INDEX_NONE;
    if (ports[k] != CLEAVE_INDEX_NONE) {
      cleave_tensor_view_t *tensor = &building->values[ports[k]].tensor;
      say_layout(tensor, cleave_op_input_layout(record->op, k, tensor->rank));
    }
  }
  for (uint32_t k = 0; k < record->output_count; k++) {
    cleave_value_t value = cleave_node_output(graph, node, k);
    uint32_t *port = &ports[record->input_count + k];
    *port = CLEAVE_INDEX_NONE;
    if (cleave_graph_value(graph, value)->use_count > 0) {
      *port = add_value(building, value);
      building->values[*port].producer = index;
      cleave_tensor_view_t *tensor = &building->values[*port].tensor;
      say_layout(tensor, cleave_op_output_layout(record->op, k, tensor->rank));
      keep_layout(building, record, ports, tensor);
    }
  }
  return view_attributes(building, node, view, error);
}

/* Attributes that a rule gave, as a list of views. */
static cleave_status_t view_list(building_t *building, const cleave_attribute_t *attributes, uint32_t count,
                                 cleave_attribute_list_t *list, cleave_error_t *error) {
  cleave_attribute_view_t *items = cleave_arena_allocate(building->arena, count, sizeof *items);
  CLEAVE_TRY_MEMORY(items, error);
  for (uint32_t k = 0; k < count; k++) {
    CLEAVE_TRY(cleave_attribute_view(&attributes[k], building->arena, &items[k], error));
  }
  *list = (cleave_attribute_list_t){.count = count, .items = items};
  return CLEAVE_OK;
}

static cleave_status_t view_fusions(building_t *building, cleave_region_view_t *region,
                                    cleave_error_t *error) {
  const cleave_view_request_t *request = building->request;
  cleave_fusion_view_t *fusions =
      cleave_arena_allocate(building->arena, request->fusion_count, sizeof *fusions);
  cleave_attribute_list_t *lists =
      cleave_arena_allocate(building->arena, request->fusion_count, sizeof *lists);
  CLEAVE_TRY_MEMORY(fusions != NULL && lists != NULL, error);
  for (uint32_t f = 0; f < request->fusion_count; f++) {
    const cleave_view_fusion_t *from = &request->fusions[f];
    uint32_t *nodes = cleave_arena_allocate(building->arena, from->node_count, sizeof *nodes);
    const char **labels = cleave_arena_allocate(building->arena, from->node_count, sizeof *labels);
    CLEAVE_TRY_MEMORY(nodes != NULL && labels != NULL, error);
    for (uint32_t k = 0; k < from->node_count; k++) {
      nodes[k] = find_node(building, from->nodes[k]);
      if (nodes[k] == CLEAVE_INDEX_NONE) {
        return cleave_error_set(error, CLEAVE_ERROR_INTERNAL, "region '%s': fusion '%s' has a node outside",
                                request->name, from->rule);
      }
      labels[k] = from->labels == NULL || from->labels[k] == NULL ? "" : from->labels[k];
      building->nodes[nodes[k]].fusion = f;
    }
    CLEAVE_TRY(view_list(building, from->attributes, from->attribute_count, &lists[f], error));
    fusions[f] = (cleave_fusion_view_t){.size = sizeof *fusions,
                                        .rule = from->rule,
                                        .node_count = from->node_count,
                                        .nodes = nodes,
                                        .labels = labels};
  }
  region->fusions = fusions;
  region->fusion_count = request->fusion_count;
  region->fusion_attributes = lists;
  return CLEAVE_OK;
}

static bool is_used_outside(const building_t *building, cleave_value_t value) {
  for (cleave_use_t use = cleave_value_first_use(building->graph, value); cleave_use_exists(use);
       use = cleave_use_next(building->graph, use)) {
    cleave_node_t node = cleave_use_node(building->graph, use);
    if (!cleave_node_exists(node) || find_node(building, node) == CLEAVE_INDEX_NONE) {
      return true;
    }
  }
  return false;
}

/* Inputs come first where they are first used; outputs where they are produced: the order of the values. */
static cleave_status_t view_boundary(building_t *building, cleave_region_view_t *region,
                                     cleave_error_t *error) {
  uint32_t *inputs = cleave_arena_allocate(building->arena, building->value_count, sizeof *inputs);
  uint32_t *outputs = cleave_arena_allocate(building->arena, building->value_count, sizeof *outputs);
  CLEAVE_TRY_MEMORY(inputs != NULL && outputs != NULL, error);
  for (uint32_t k = 0; k < building->value_count; k++) {
    cleave_value_view_t *view = &building->values[k];
    if (view->producer == CLEAVE_INDEX_NONE) {
      if (view->tensor.data == NULL || building->request->has_constant_inputs) {
        inputs[region->input_count++] = k;
      }
    } else if (is_used_outside(building, building->value_ids[k])) {
      view->is_output = true;
      outputs[region->output_count++] = k;
    }
  }
  region->inputs = inputs;
  region->outputs = outputs;
  return CLEAVE_OK;
}

static cleave_status_t build(building_t *building, cleave_view_t *out_view, cleave_error_t *error) {
  const cleave_view_request_t *request = building->request;
  size_t ports = 0;
  size_t attributes = 0;
  for (uint32_t k = 0; k < request->node_count; k++) {
    const cleave_node_record_t *record = cleave_graph_node(building->graph, request->nodes[k]);
    ports += (size_t)record->input_count + record->output_count;
    attributes += (size_t)record->attribute_count + record->op->attribute_count;
  }
  building->uses_maps = ports > SMALL_SET;
  if (building->uses_maps) {
    CLEAVE_TRY(make_maps(building->builder, error));
    for (uint32_t k = 0; k < request->node_count; k++) {
      building->builder->node_index[request->nodes[k].index] = k;
    }
  }
  building->nodes = cleave_arena_allocate(building->arena, request->node_count, sizeof *building->nodes);
  building->values = cleave_arena_allocate(building->arena, ports, sizeof *building->values);
  building->value_ids = cleave_arena_allocate(building->arena, ports, sizeof *building->value_ids);
  building->versions = cleave_arena_allocate(building->arena, ports + attributes, sizeof *building->versions);
  CLEAVE_TRY_MEMORY(building->nodes != NULL && building->values != NULL && building->value_ids != NULL &&
                        building->versions != NULL,
                    error);
  for (uint32_t k = 0; k < request->node_count; k++) {
    CLEAVE_TRY(view_node(building, k, error));
  }
  cleave_region_view_t *region = &out_view->region;
  CLEAVE_TRY(view_boundary(building, region, error));
  CLEAVE_TRY(view_fusions(building, region, error));
  cleave_attribute_list_t own = {0};
  CLEAVE_TRY(view_list(building, request->attributes, request->attribute_count, &own, error));
  region->attribute_count = own.count;
  region->attributes = own.items;
  double *flops = cleave_arena_allocate(building->arena, request->node_count, sizeof *flops);
  CLEAVE_TRY_MEMORY(flops, error);
  for (uint32_t k = 0; k < request->node_count; k++) {
    double known = cleave_op_flops(building->graph, request->nodes[k]);
    flops[k] = known > 0.0 ? known : 0.0;
  }
  region->flops = flops;
  region->value_count = building->value_count;
  region->node_count = request->node_count;
  region->values = building->values;
  region->nodes = building->nodes;
  region->hash = cleave_region_hash(region);
  out_view->values = building->value_ids;
  out_view->nodes = request->nodes;
  out_view->constant_count = building->version_count;
  out_view->constant_versions = building->versions;
  return CLEAVE_OK;
}

cleave_status_t cleave_view_build(cleave_view_builder_t *builder, const cleave_view_request_t *request,
                                  cleave_arena_t *arena, cleave_view_t *out_view, cleave_error_t *error) {
  building_t building = {.builder = builder, .graph = builder->graph, .request = request, .arena = arena};
  *out_view = (cleave_view_t){.region = {.size = sizeof(cleave_region_view_t),
                                         .name = request->name == NULL ? "" : request->name,
                                         .rule = request->rule == NULL ? "" : request->rule}};
  cleave_status_t status = build(&building, out_view, error);
  if (building.uses_maps) {
    for (uint32_t k = 0; k < request->node_count && builder->node_index != NULL; k++) {
      builder->node_index[request->nodes[k].index] = CLEAVE_INDEX_NONE;
    }
    for (uint32_t k = 0; k < building.value_count; k++) {
      builder->value_index[building.value_ids[k].index] = CLEAVE_INDEX_NONE;
    }
  }
  return status;
}

// Wide: a part of a plan, and what becomes of it.
cleave_status_t cleave_view_build_part(cleave_view_builder_t *builder, const cleave_plan_t *plan,
                                       uint32_t region_index, uint32_t fusion, bool takes_sparse,
                                       cleave_arena_t *arena, cleave_view_t *out_view,
                                       cleave_error_t *error) {
  const cleave_plan_region_t *region = &plan->regions[region_index];
  bool is_fusion = fusion != CLEAVE_INDEX_NONE;
  uint32_t count = is_fusion ? 1 : region->fusion_count;
  cleave_view_fusion_t *fusions = cleave_arena_allocate(arena, (size_t)count + 1, sizeof *fusions);
  CLEAVE_TRY_MEMORY(fusions, error);
  for (uint32_t k = 0; k < count; k++) {
    fusions[k] = cleave_view_fusion(plan, &plan->fusions[is_fusion ? fusion : region->fusions[k]]);
  }
  const cleave_view_request_t request = {
      .name = region->name,
      .rule = plan->rules[is_fusion ? plan->fusions[fusion].rule : region->rule].name,
      .nodes = is_fusion ? fusions[0].nodes : region->nodes,
      .node_count = is_fusion ? fusions[0].node_count : region->node_count,
      .fusions = fusions,
      .fusion_count = count,
      .attributes = region->attributes,
      .attribute_count = region->attribute_count,
      .takes_sparse = takes_sparse};
  return cleave_view_build(builder, &request, arena, out_view, error);
}
