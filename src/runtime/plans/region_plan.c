// SPDX-License-Identifier: Apache-2.0
// The plan that a region came from, for the graph that was made of the region: nodes have the same numbers in
// both, so that what was one fusion becomes one fusion again.
#include <string.h>

#include "backend/region/region_file.h"
#include "graph/compare/structural_hash.h"
#include "partition/plan/plan_document.h"
#include "runtime/model/region_graph.h"
#include "runtime/plans/plan_load.h"

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
    CLEAVE_TRY_MEMORY(rules[k].name, planning->error);
  }
  rules[0].matches = 1;
  for (uint32_t k = 0; k < view->fusion_count; k++) {
    rules[planning->rule_of[k]].matches++;
  }
  document->rules = rules;
  document->rule_count = count;
  return CLEAVE_OK;
}

static bool fill_boundary(planning_t *planning, cleave_document_region_t *out_region) {
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
    to->attributes = region->lists[f].items;
    is_complete = to->nodes != NULL;
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
  region->attributes = view->attributes;
  bool is_complete = region->name != NULL && region->nodes != NULL;
  for (uint32_t k = 0; is_complete && k < view->node_count; k++) {
    is_complete = fill_node(planning, k, "", &region->nodes[k]);
  }
  return is_complete && fill_boundary(planning, region) && fill_fusions(planning, region);
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
  CLEAVE_TRY_MEMORY(document->place != NULL && planning->backend != NULL, planning->error);
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
  CLEAVE_TRY_MEMORY(planning.document, error);
  cleave_status_t status = plan(&planning);
  CLEAVE_THEN(status, cleave_plan_load_document(planning.document, graph, fallback, out_plan, error));
  cleave_plan_document_destroy(planning.document);
  return status;
}
