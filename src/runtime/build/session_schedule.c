// SPDX-License-Identifier: Apache-2.0
// Workers of the host for what is to be compiled, when a session has several: from estimated times, before
// anything is compiled, since what runs beside another worker's work is compiled for fewer threads.
#include "ops/ops.h"
#include "runtime/build/session_build.h"

/* Estimates of what a thread does in a nanosecond and of what a step costs, good enough to compare branches.
 */
static const double flops_per_ns = 16.0;
static const double bytes_per_ns = 4.0;
static const double step_ns = 2000.0;

static double node_ns(const cleave_graph_t *graph, cleave_node_t node) {
  double flops = cleave_op_flops(graph, node);
  double bytes = 0.0;
  for (uint32_t k = 0; k < cleave_node_output_count(graph, node); k++) {
    double size = cleave_value_bytes(graph, cleave_node_output(graph, node, k));
    bytes += size > 0.0 ? size : 0.0;
  }
  return (flops > 0.0 ? flops : 0.0) / flops_per_ns + bytes / bytes_per_ns;
}

/* While the units are made. */
typedef struct scheduler {
  cleave_build_t *build;
  uint32_t *unit_of;             /* by node; NONE: not yet */
  CLEAVE_ARRAY(uint32_t) before; /* of all units */
} scheduler_t;

static cleave_status_t add_node(scheduler_t *scheduler, uint32_t index, cleave_node_t node,
                                cleave_error_t *error) {
  const cleave_graph_t *graph = scheduler->build->graph;
  cleave_unit_t *unit = &scheduler->build->units[index];
  if (!cleave_node_is_live(graph, node)) {
    return CLEAVE_OK;
  }
  unit->ns += node_ns(graph, node);
  scheduler->unit_of[node.index] = index;
  for (uint32_t k = 0; k < cleave_node_input_count(graph, node); k++) {
    cleave_value_t value = cleave_node_input(graph, node, k);
    cleave_node_t producer =
        cleave_value_exists(value) ? cleave_value_producer(graph, value) : CLEAVE_NODE_NONE;
    uint32_t from = cleave_node_exists(producer) ? scheduler->unit_of[producer.index] : CLEAVE_INDEX_NONE;
    if (from != CLEAVE_INDEX_NONE && from != index) {
      CLEAVE_ARRAY_PUSH(&scheduler->before, from, error);
      unit->before_count++;
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t add_unit(scheduler_t *scheduler, uint32_t index, const cleave_plan_step_t *step,
                                cleave_error_t *error) {
  const cleave_session_t *session = scheduler->build->session;
  cleave_unit_t *unit = &scheduler->build->units[index];
  *unit = (cleave_unit_t){.ns = step_ns, .first_before = (uint32_t)scheduler->before.count};
  if (step->region == CLEAVE_INDEX_NONE) {
    return add_node(scheduler, index, step->node, error);
  }
  const cleave_plan_region_t *region = &session->plan->regions[step->region];
  const cleave_backend_handle_t *handle = NULL;
  if (cleave_registry_find(session->graph->context, region->backend, &handle, NULL) == CLEAVE_OK) {
    unit->is_elsewhere = handle->backend->devices != NULL;
  }
  for (uint32_t k = 0; k < region->node_count; k++) {
    CLEAVE_TRY(add_node(scheduler, index, region->nodes[k], error));
  }
  return CLEAVE_OK;
}

static cleave_status_t schedule(scheduler_t *scheduler, cleave_error_t *error) {
  cleave_build_t *build = scheduler->build;
  size_t nodes = cleave_graph_node_bound(build->graph);
  build->units = cleave_arena_allocate(&build->session->arena, build->order_count, sizeof *build->units);
  scheduler->unit_of = cleave_allocate(nodes, sizeof *scheduler->unit_of);
  CLEAVE_TRY_MEMORY(build->units != NULL && scheduler->unit_of != NULL, error);
  for (size_t k = 0; k < nodes; k++) {
    scheduler->unit_of[k] = CLEAVE_INDEX_NONE;
  }
  for (uint32_t k = 0; k < build->order_count; k++) {
    CLEAVE_TRY(add_unit(scheduler, k, &build->order[k], error));
  }
  return cleave_schedule(build->units, build->order_count, scheduler->before.items, build->session->workers,
                         error);
}

cleave_status_t cleave_build_schedule(cleave_build_t *build, cleave_error_t *error) {
  scheduler_t scheduler = {.build = build};
  if (build->session->workers < 2 || build->session->profile) {
    return CLEAVE_OK;
  }
  cleave_status_t status = schedule(&scheduler, error);
  cleave_free(scheduler.unit_of);
  cleave_array_free(&scheduler.before);
  return status;
}
