// SPDX-License-Identifier: Apache-2.0
// What the stages of a plan have and send, and the document of one stage, whose graph is a part of the
// plan's.

#include <string.h>

#include "graph/compare/structural_hash.h"
#include "graph/order.h"
#include "partition/plan/plan_document.h"
#include "tensor/shape.h"

// ---- what stages have ----

static void add_bytes(const cleave_value_record_t *record, double *sum) {
  int64_t count = 0;
  bool is_known =
      *sum >= 0.0 && record->rank >= 0 && cleave_shape_element_count(record->rank, record->dims, &count);
  *sum = is_known ? *sum + (double)count * (double)cleave_dtype_size((cleave_dtype_t)record->dtype) : -1.0;
}

/* `seen`: by stage, 1 + the last value that was counted there. */
static void count_value(const cleave_plan_t *plan, cleave_value_t value, uint32_t *seen,
                        cleave_plan_stage_t *stages) {
  const cleave_graph_t *graph = plan->graph;
  const cleave_value_record_t *record = cleave_graph_value(graph, value);
  cleave_node_t from = cleave_value_producer(graph, value);
  for (cleave_use_t use = cleave_value_first_use(graph, value); cleave_use_exists(use);
       use = cleave_use_next(graph, use)) {
    cleave_node_t reader = cleave_use_node(graph, use);
    if (!cleave_node_exists(reader) || seen[plan->node_stage[reader.index]] == value.index + 1) {
      continue;
    }
    uint32_t stage = plan->node_stage[reader.index];
    seen[stage] = value.index + 1;
    if (record->tensor != NULL) {
      add_bytes(record, &stages[stage].weight_bytes);
    } else if (cleave_node_exists(from) && plan->node_stage[from.index] != stage) {
      add_bytes(record, &stages[plan->node_stage[from.index]].sent_bytes);
      stages[plan->node_stage[from.index]].sent_values++;
    }
  }
}

cleave_status_t cleave_plan_measure_stages(const cleave_plan_t *plan, cleave_plan_stage_t **out_stages,
                                           cleave_error_t *error) {
  const cleave_graph_t *graph = plan->graph;
  cleave_plan_stage_t *stages = cleave_allocate_zeroed((size_t)plan->stage_count + 1, sizeof *stages);
  uint32_t *seen = cleave_allocate_zeroed((size_t)plan->stage_count + 1, sizeof *seen);
  *out_stages = stages;
  if (stages == NULL || seen == NULL) {
    cleave_free(stages);
    cleave_free(seen);
    *out_stages = NULL;
    return cleave_error_out_of_memory(error);
  }
  for (uint32_t n = 0; n < cleave_graph_node_bound(graph) && plan->stage_count > 0; n++) {
    stages[plan->node_stage[n]].nodes += cleave_node_is_live(graph, (cleave_node_t){n}) ? 1 : 0;
  }
  for (uint32_t r = 0; r < plan->region_count && plan->stage_count > 0; r++) {
    stages[plan->node_stage[plan->regions[r].nodes[0].index]].regions++;
  }
  for (uint32_t v = 0; v < cleave_graph_value_bound(graph) && plan->stage_count > 0; v++) {
    if (!graph->values.items[v].is_removed) {
      count_value(plan, (cleave_value_t){v}, seen, stages);
    }
  }
  cleave_free(seen);
  return CLEAVE_OK;
}

// ---- one stage ----

typedef struct taking {
  cleave_plan_document_t *document;
  const cleave_stage_graph_t *stage;
  uint32_t *positions; /* by position in the plan's graph: that in the stage's graph; NONE: not there */
  uint32_t *inputs;    /* by value of the plan's graph: number among the inputs of the stage's graph; NONE */
  const cleave_node_t *order; /* of the plan's graph */
} taking_t;

static void move_node(const taking_t *taking, cleave_document_node_t *node) {
  node->position = taking->positions[node->position];
}

static cleave_status_t move_values(const taking_t *taking, cleave_document_value_t *values, uint32_t count,
                                   cleave_error_t *error) {
  const cleave_graph_t *graph = taking->stage->plan->graph;
  for (uint32_t k = 0; k < count; k++) {
    cleave_document_value_t *value = &values[k];
    bool is_made = value->position != CLEAVE_INDEX_NONE;
    cleave_value_t old = is_made ? cleave_node_output(graph, taking->order[value->position], value->index)
                                 : graph->inputs.items[value->index];
    if (is_made && taking->positions[value->position] != CLEAVE_INDEX_NONE) {
      value->position = taking->positions[value->position];
      continue;
    }
    value->position = CLEAVE_INDEX_NONE;
    value->index = taking->inputs[old.index];
    if (value->index == CLEAVE_INDEX_NONE) {
      return cleave_error_set(error, CLEAVE_ERROR_INTERNAL, "a stage reads '%.100s', which is no input of it",
                              value->name);
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t move_region(const taking_t *taking, cleave_document_region_t *region,
                                   cleave_error_t *error) {
  for (uint32_t k = 0; k < region->node_count; k++) {
    move_node(taking, &region->nodes[k]);
  }
  for (uint32_t f = 0; f < region->fusion_count; f++) {
    for (uint32_t k = 0; k < region->fusions[f].node_count; k++) {
      move_node(taking, &region->fusions[f].nodes[k]);
    }
  }
  CLEAVE_TRY(move_values(taking, region->inputs, region->input_count, error));
  return move_values(taking, region->outputs, region->output_count, error);
}

/* Steps of other stages go, and regions with them. */
static cleave_status_t keep_steps(const taking_t *taking, cleave_error_t *error) {
  cleave_plan_document_t *document = taking->document;
  uint32_t steps = 0;
  uint32_t regions = 0;
  for (uint32_t s = 0; s < document->step_count; s++) {
    cleave_document_step_t step = document->steps[s];
    if (step.stage != taking->stage->number) {
      continue;
    }
    step.stage = 0;
    if (step.region == CLEAVE_INDEX_NONE) {
      move_node(taking, &step.node);
    } else { /* regions are in the order of their steps: later ones move up in the list */
      document->regions[regions] = document->regions[step.region];
      CLEAVE_TRY(move_region(taking, &document->regions[regions], error));
      step.region = regions++;
    }
    document->steps[steps++] = step;
  }
  document->step_count = steps;
  document->region_count = regions;
  document->note_count = 0;
  document->stage_count = 0;
  document->edits = NULL;
  return CLEAVE_OK;
}

static cleave_status_t map_ids(taking_t *taking, cleave_error_t *error) {
  const cleave_stage_graph_t *stage = taking->stage;
  const cleave_plan_t *plan = stage->plan;
  size_t count = stage->graph->live_node_count;
  uint32_t *made = cleave_allocate((size_t)cleave_graph_node_bound(stage->graph) + 1, sizeof *made);
  cleave_node_t *order = cleave_allocate(count + 1, sizeof *order);
  cleave_status_t status = CLEAVE_OK;
  if (made == NULL || order == NULL) {
    CLEAVE_TRY_CLEANUP(cleave_error_out_of_memory(error));
  }
  CLEAVE_TRY_CLEANUP(cleave_graph_topological_order(stage->graph, order, made, error));
  uint32_t next = 0; /* nodes of the stage's graph were added in the order of the plan's graph */
  for (size_t k = 0; k < plan->graph->live_node_count; k++) {
    bool is_in = plan->node_stage[taking->order[k].index] == stage->number;
    taking->positions[k] = is_in && next < count ? made[next] : CLEAVE_INDEX_NONE;
    next += is_in ? 1 : 0;
  }
  if (next != count || cleave_graph_node_bound(stage->graph) != count) {
    CLEAVE_TRY_CLEANUP(cleave_error_set(error, CLEAVE_ERROR_INTERNAL,
                                        "stage %u has %u node%s in the plan, and %zu in its graph",
                                        (unsigned)stage->number, (unsigned)next, CLEAVE_PLURAL(next), count));
  }
  for (uint32_t k = 0; k < stage->input_count; k++) {
    taking->inputs[stage->inputs[k].index] = k;
  }
cleanup:
  cleave_free(made);
  cleave_free(order);
  return status;
}

static cleave_status_t take(taking_t *taking, cleave_error_t *error) {
  cleave_plan_document_t *document = taking->document;
  const cleave_graph_t *graph = taking->stage->graph;
  CLEAVE_TRY(map_ids(taking, error));
  CLEAVE_TRY(keep_steps(taking, error));
  CLEAVE_TRY(cleave_graph_hash(graph, &document->graph_hash, error));
  document->node_count = (uint32_t)graph->live_node_count;
  document->graph_input_count = (uint32_t)graph->inputs.count;
  return cleave_document_inputs(graph, &document->arena, &document->graph_inputs, error);
}

cleave_status_t cleave_plan_document_take_stage(const cleave_stage_graph_t *stage,
                                                cleave_plan_document_t **out_document,
                                                cleave_error_t *error) {
  const cleave_graph_t *graph = stage->plan->graph;
  size_t values = (size_t)cleave_graph_value_bound(graph) + 1;
  cleave_node_t *order = cleave_allocate(graph->live_node_count + 1, sizeof *order);
  taking_t taking = {.stage = stage, .order = order};
  cleave_status_t status = CLEAVE_OK;
  taking.positions = cleave_allocate(graph->live_node_count + 1, sizeof *taking.positions);
  taking.inputs = cleave_allocate(values, sizeof *taking.inputs);
  if (order == NULL || taking.positions == NULL || taking.inputs == NULL) {
    CLEAVE_TRY_CLEANUP(cleave_error_out_of_memory(error));
  }
  memset(taking.inputs, 0xff, values * sizeof *taking.inputs);
  CLEAVE_TRY_CLEANUP(cleave_graph_topological_order(graph, order, NULL, error));
  CLEAVE_TRY_CLEANUP(cleave_plan_document_create(stage->plan, &taking.document, error));
  CLEAVE_TRY_CLEANUP(take(&taking, error));
  *out_document = taking.document;
  taking.document = NULL;
cleanup:
  cleave_plan_document_destroy(taking.document);
  cleave_free(order);
  cleave_free(taking.positions);
  cleave_free(taking.inputs);
  return status;
}
