// SPDX-License-Identifier: Apache-2.0
// Makes the document of a plan. Lists are new; strings and attributes belong to the plan and the graph.

#include "partition/plan/plan_document.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "graph/order.h"

typedef struct maker {
  const cleave_plan_t *plan;
  const cleave_graph_t *graph;
  cleave_plan_document_t *document;
  uint32_t *positions; /* per node */
  uint32_t *inputs;    /* per value: number among the graph's inputs */
} maker_t;

static void *allocate(maker_t *maker, uint32_t count, size_t size) {
  return cleave_arena_allocate(&maker->document->arena, count, size);
}

void cleave_plan_document_destroy(cleave_plan_document_t *document) {
  if (document == NULL) {
    return;
  }
  if (document->owns_edits) {
    cleave_edits_destroy(document->edits);
  }
  cleave_arena_deinit(&document->arena);
  cleave_free(document);
}

static cleave_document_node_t node_of(const maker_t *maker, cleave_node_t node, const char *label) {
  return (cleave_document_node_t){.position = maker->positions[node.index],
                                  .op = cleave_node_op(maker->graph, node)->name,
                                  .name = cleave_node_name(maker->graph, node),
                                  .label = label};
}

static cleave_document_value_t value_of(const maker_t *maker, cleave_value_t value) {
  cleave_node_t producer = cleave_value_producer(maker->graph, value);
  bool is_made = cleave_node_exists(producer);
  return (cleave_document_value_t){
      .position = is_made ? maker->positions[producer.index] : CLEAVE_INDEX_NONE,
      .index = is_made ? cleave_graph_value(maker->graph, value)->output_index : maker->inputs[value.index],
      .name = cleave_value_name(maker->graph, value)};
}

static cleave_status_t fill_fusion(maker_t *maker, const cleave_plan_fusion_t *from,
                                   cleave_document_fusion_t *to, cleave_error_t *error) {
  *to = (cleave_document_fusion_t){.rule = from->rule, .node_count = from->node_count};
  to->attribute_count = from->attribute_count;
  to->attributes = from->attributes;
  to->nodes = allocate(maker, from->node_count, sizeof *to->nodes);
  CLEAVE_TRY_MEMORY(to->nodes, error);
  for (uint32_t k = 0; k < from->node_count; k++) {
    to->nodes[k] = node_of(maker, from->nodes[k], from->labels[k]);
  }
  return CLEAVE_OK;
}

static cleave_status_t fill_region(maker_t *maker, const cleave_plan_region_t *from,
                                   cleave_document_region_t *to, cleave_error_t *error) {
  *to = (cleave_document_region_t){.name = from->name,
                                   .backend = from->backend,
                                   .rule = from->rule,
                                   .input_count = from->input_count,
                                   .output_count = from->output_count,
                                   .fusion_count = from->fusion_count,
                                   .node_count = from->node_count};
  to->attribute_count = from->attribute_count;
  to->attributes = from->attributes;
  to->inputs = allocate(maker, from->input_count, sizeof *to->inputs);
  to->outputs = allocate(maker, from->output_count, sizeof *to->outputs);
  to->fusions = allocate(maker, from->fusion_count, sizeof *to->fusions);
  to->nodes = allocate(maker, from->node_count, sizeof *to->nodes);
  CLEAVE_TRY_MEMORY(to->inputs != NULL && to->outputs != NULL && to->fusions != NULL && to->nodes != NULL,
                    error);
  for (uint32_t k = 0; k < from->input_count; k++) {
    to->inputs[k] = value_of(maker, from->inputs[k]);
  }
  for (uint32_t k = 0; k < from->output_count; k++) {
    to->outputs[k] = value_of(maker, from->outputs[k]);
  }
  for (uint32_t k = 0; k < from->node_count; k++) {
    to->nodes[k] = node_of(maker, from->nodes[k], "");
  }
  for (uint32_t k = 0; k < from->fusion_count; k++) {
    CLEAVE_TRY(fill_fusion(maker, &maker->plan->fusions[from->fusions[k]], &to->fusions[k], error));
  }
  return CLEAVE_OK;
}

static cleave_status_t fill_lists(maker_t *maker, cleave_error_t *error) {
  const cleave_plan_t *plan = maker->plan;
  cleave_plan_document_t *document = maker->document;
  document->regions = allocate(maker, plan->region_count, sizeof *document->regions);
  document->steps = allocate(maker, plan->step_count, sizeof *document->steps);
  document->notes = allocate(maker, plan->note_count, sizeof *document->notes);
  CLEAVE_TRY_MEMORY(document->regions != NULL && document->steps != NULL && document->notes != NULL, error);
  document->region_count = plan->region_count;
  document->step_count = plan->step_count;
  document->note_count = plan->note_count;
  for (uint32_t k = 0; k < plan->region_count; k++) {
    CLEAVE_TRY(fill_region(maker, &plan->regions[k], &document->regions[k], error));
  }
  for (uint32_t k = 0; k < plan->step_count; k++) {
    bool is_node = plan->steps[k].region == CLEAVE_INDEX_NONE;
    cleave_node_t first = is_node ? plan->steps[k].node : plan->regions[plan->steps[k].region].nodes[0];
    document->steps[k].region = plan->steps[k].region;
    document->steps[k].stage = plan->node_stage == NULL ? 0 : plan->node_stage[first.index];
    if (is_node) {
      document->steps[k].node = node_of(maker, plan->steps[k].node, "");
    }
  }
  for (uint32_t k = 0; k < plan->note_count; k++) {
    document->notes[k] = (cleave_document_note_t){.kind = plan->notes[k].kind,
                                                  .rule = plan->notes[k].rule,
                                                  .node = node_of(maker, plan->notes[k].node, ""),
                                                  .reason = plan->notes[k].reason};
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_document_inputs(const cleave_graph_t *graph, cleave_arena_t *arena,
                                       cleave_document_input_t **out_inputs, cleave_error_t *error) {
  cleave_text_t text = {0};
  cleave_document_input_t *inputs = cleave_arena_allocate(arena, graph->inputs.count, sizeof *inputs);
  cleave_status_t status = inputs == NULL ? cleave_error_out_of_memory(error) : CLEAVE_OK;
  for (size_t k = 0; k < graph->inputs.count && status == CLEAVE_OK; k++) {
    const cleave_value_record_t *record = cleave_graph_value(graph, graph->inputs.items[k]);
    text.length = 0;
    cleave_text_add(&text, cleave_dtype_name((cleave_dtype_t)record->dtype));
    cleave_shape_print(graph->dims, record->rank, record->dims, &text);
    inputs[k].name = cleave_value_name(graph, graph->inputs.items[k]);
    inputs[k].type = cleave_arena_copy_text(arena, cleave_text_get(&text), text.length);
    status = cleave_text_check(&text, error);
    if (inputs[k].type == NULL && status == CLEAVE_OK) {
      status = cleave_error_out_of_memory(error);
    }
  }
  cleave_text_deinit(&text);
  *out_inputs = inputs;
  return status;
}

bool cleave_document_input_shape(const cleave_document_input_t *input, int32_t *out_rank, int64_t *out_dims) {
  const char *at = strchr(input->type, '[');
  *out_rank = 0;
  for (at = at == NULL ? "" : at + 1; *at != ']'; at += strspn(at, ", ")) {
    char *end = NULL;
    errno = 0;
    long long size = strtoll(at, &end, 10);
    if (end == at || errno != 0 || size < 0 || *out_rank == CLEAVE_MAX_RANK || (*end != ',' && *end != ']')) {
      return false;
    }
    out_dims[(*out_rank)++] = size;
    at = end;
  }
  return true;
}

static cleave_status_t fill(maker_t *maker, cleave_error_t *error) {
  const cleave_graph_t *graph = maker->graph;
  cleave_plan_document_t *document = maker->document;
  cleave_status_t status = CLEAVE_OK;
  cleave_node_t *order = cleave_allocate(graph->live_node_count + 1, sizeof *order);
  size_t values = (size_t)cleave_graph_value_bound(graph) + 1;
  maker->positions = cleave_allocate((size_t)cleave_graph_node_bound(graph) + 1, sizeof *maker->positions);
  maker->inputs = cleave_allocate(values, sizeof *maker->inputs);
  CLEAVE_TRY_MEMORY_CLEANUP(order != NULL && maker->positions != NULL && maker->inputs != NULL, error);
  CLEAVE_TRY_CLEANUP(cleave_graph_topological_order(graph, order, maker->positions, error));
  memset(maker->inputs, 0xff, values * sizeof *maker->inputs);
  for (size_t k = 0; k < graph->inputs.count; k++) {
    maker->inputs[graph->inputs.items[k].index] = (uint32_t)k;
  }
  document->graph_input_count = (uint32_t)graph->inputs.count;
  CLEAVE_TRY_CLEANUP(cleave_document_inputs(graph, &document->arena, &document->graph_inputs, error));
  CLEAVE_TRY_CLEANUP(fill_lists(maker, error));
cleanup:
  cleave_free(order);
  cleave_free(maker->positions);
  cleave_free(maker->inputs);
  return status;
}

cleave_status_t cleave_plan_document_create(const cleave_plan_t *plan, cleave_plan_document_t **out_document,
                                            cleave_error_t *error) {
  *out_document = NULL;
  cleave_plan_document_t *document = cleave_allocate_zeroed(1, sizeof *document);
  CLEAVE_TRY_MEMORY(document, error);
  const cleave_graph_t *graph = plan->graph;
  document->place = "";
  document->version = cleave_version();
  document->graph_name = cleave_strings_text(&graph->strings, graph->name);
  document->graph_hash = plan->graph_hash;
  document->node_count = (uint32_t)graph->live_node_count;
  document->stage_count = plan->stage_count;
  document->setting_count = plan->setting_count;
  document->settings = plan->settings;
  document->rule_count = plan->rule_count;
  document->rules = plan->rules;
  document->edits = plan->rewritten != NULL ? plan->edits : NULL;
  maker_t maker = {.plan = plan, .graph = graph, .document = document};
  CLEAVE_TRY_OR(fill(&maker, error), cleave_plan_document_destroy(document));
  *out_document = document;
  return CLEAVE_OK;
}
