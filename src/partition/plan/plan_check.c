// SPDX-License-Identifier: Apache-2.0
// Checks a plan against its graph alone, by brute force, without any code that makes plans.

#include <string.h>

#include "base/containers/array.h"
#include "partition/plan/plan.h"

typedef struct checker {
  const cleave_plan_t *plan;
  const cleave_graph_t *graph;
  cleave_error_t *error;
  uint32_t node_bound;
  uint32_t *owners;  /* per node: step that runs it */
  uint8_t *marks;    /* per node */
  uint8_t *values;   /* per value */
  uint32_t *pending; /* per step: edges from steps that have not run */
  uint32_t *waiting; /* per fusion, then per node: edges from units of its region that have not run */
  CLEAVE_ARRAY(uint32_t) queue;
} checker_t;

static cleave_status_t wrong(const checker_t *checker, const char *what, uint32_t which) {
  return cleave_error_set(checker->error, CLEAVE_ERROR_INTERNAL, "plan: %s (%u)", what, which);
}

static uint32_t region_of(const checker_t *checker, cleave_node_t node) {
  return cleave_node_exists(node) ? checker->plan->node_region[node.index] : CLEAVE_INDEX_NONE;
}

// ---- who runs what ----

static cleave_status_t claim_node(checker_t *checker, cleave_node_t node, uint32_t step) {
  if (!cleave_node_is_live(checker->graph, node)) {
    return wrong(checker, "a step names a node that does not exist", node.index);
  }
  if (checker->owners[node.index] != CLEAVE_INDEX_NONE) {
    return wrong(checker, "a node is in two steps", node.index);
  }
  checker->owners[node.index] = step;
  return CLEAVE_OK;
}

static cleave_status_t check_steps(checker_t *checker) {
  const cleave_plan_t *plan = checker->plan;
  uint32_t next_region = 0;
  for (uint32_t s = 0; s < plan->step_count; s++) {
    const cleave_plan_step_t *step = &plan->steps[s];
    if (step->region == CLEAVE_INDEX_NONE) {
      CLEAVE_TRY(claim_node(checker, step->node, s));
      if (region_of(checker, step->node) != CLEAVE_INDEX_NONE ||
          plan->node_fusion[step->node.index] != CLEAVE_INDEX_NONE) {
        return wrong(checker, "a node outside all regions is marked as inside one", step->node.index);
      }
      continue;
    }
    if (step->region != next_region || next_region >= plan->region_count) {
      return wrong(checker, "regions are not in the order of the steps", step->region);
    }
    const cleave_plan_region_t *region = &plan->regions[next_region];
    for (uint32_t k = 0; k < region->node_count; k++) {
      CLEAVE_TRY(claim_node(checker, region->nodes[k], s));
      if (region_of(checker, region->nodes[k]) != next_region) {
        return wrong(checker, "node_region disagrees with the region's nodes", region->nodes[k].index);
      }
    }
    if (region->node_count == 0) {
      return wrong(checker, "a region is empty", next_region);
    }
    next_region++;
  }
  if (next_region != plan->region_count) {
    return wrong(checker, "a region is in no step", next_region);
  }
  for (uint32_t k = 0; k < checker->node_bound; k++) {
    cleave_node_t node = {k};
    if (cleave_node_is_live(checker->graph, node) && checker->owners[k] == CLEAVE_INDEX_NONE) {
      return wrong(checker, "a node is in no step", k);
    }
  }
  return CLEAVE_OK;
}

/* Kahn's algorithm over the steps; also checks that the given order is topological. */
static cleave_status_t check_order(checker_t *checker) {
  const cleave_plan_t *plan = checker->plan;
  const cleave_graph_t *graph = checker->graph;
  for (uint32_t pass = 0; pass < 2; pass++) {
    for (uint32_t n = 0; n < checker->node_bound; n++) {
      cleave_node_t node = {n};
      if (!cleave_node_is_live(graph, node)) {
        continue;
      }
      for (uint32_t i = 0; i < cleave_node_input_count(graph, node); i++) {
        cleave_value_t value = cleave_node_input(graph, node, i);
        cleave_node_t producer =
            cleave_value_exists(value) ? cleave_value_producer(graph, value) : CLEAVE_NODE_NONE;
        if (!cleave_node_exists(producer) || checker->owners[producer.index] == checker->owners[n]) {
          continue;
        }
        if (pass == 0) {
          checker->pending[checker->owners[n]]++;
        } else if (checker->owners[producer.index] > checker->owners[n]) {
          return wrong(checker, "a step comes before one that feeds it", checker->owners[n]);
        }
      }
    }
  }
  checker->queue.count = 0;
  CLEAVE_TRY(cleave_array_reserve(&checker->queue, plan->step_count, checker->error));
  for (uint32_t s = 0; s < plan->step_count; s++) {
    if (checker->pending[s] == 0) {
      cleave_array_push_reserved(&checker->queue, s);
    }
  }
  for (size_t k = 0; k < checker->queue.count; k++) {
    uint32_t s = checker->queue.items[k];
    const cleave_plan_step_t *step = &plan->steps[s];
    bool single = step->region == CLEAVE_INDEX_NONE;
    const cleave_node_t *nodes = single ? &step->node : plan->regions[step->region].nodes;
    uint32_t count = single ? 1 : plan->regions[step->region].node_count;
    for (uint32_t n = 0; n < count; n++) {
      for (uint32_t o = 0; o < cleave_node_output_count(graph, nodes[n]); o++) {
        cleave_value_t value = cleave_node_output(graph, nodes[n], o);
        for (cleave_use_t use = cleave_value_first_use(graph, value); cleave_use_exists(use);
             use = cleave_use_next(graph, use)) {
          cleave_node_t user = cleave_use_node(graph, use);
          uint32_t owner = cleave_node_exists(user) ? checker->owners[user.index] : s;
          if (owner != s && --checker->pending[owner] == 0) {
            cleave_array_push_reserved(&checker->queue, owner);
          }
        }
      }
    }
  }
  return checker->queue.count == plan->step_count ? CLEAVE_OK
                                                  : wrong(checker, "steps form a cycle", plan->step_count);
}

// ---- one region ----

/* A fusion connects its nodes, even those of a group without edges between them: each to the first. */
static void reach_fusion(checker_t *checker, cleave_node_t node) {
  uint32_t index = checker->plan->node_fusion[node.index];
  if (index >= checker->plan->fusion_count) {
    return;
  }
  const cleave_plan_fusion_t *fusion = &checker->plan->fusions[index];
  bool is_first = fusion->node_count > 0 && fusion->nodes[0].index == node.index;
  for (uint32_t k = 0; k < (is_first ? fusion->node_count : fusion->node_count > 0); k++) {
    if (fusion->nodes[k].index < checker->node_bound && checker->marks[fusion->nodes[k].index] == 1) {
      checker->marks[fusion->nodes[k].index] = 2;
      cleave_array_push_reserved(&checker->queue, fusion->nodes[k].index);
    }
  }
}

/* Checks that members are in a topological order and connected by edges and fusions inside the region.
 * `marks`: 0 outside or not placed, 1 placed, 2 reached. */
static cleave_status_t check_connected(checker_t *checker, uint32_t index) {
  const cleave_graph_t *graph = checker->graph;
  const cleave_plan_region_t *region = &checker->plan->regions[index];
  for (uint32_t k = 0; k < region->node_count; k++) {
    for (uint32_t i = 0; i < cleave_node_input_count(graph, region->nodes[k]); i++) {
      cleave_value_t value = cleave_node_input(graph, region->nodes[k], i);
      cleave_node_t producer =
          cleave_value_exists(value) ? cleave_value_producer(graph, value) : CLEAVE_NODE_NONE;
      if (region_of(checker, producer) == index && checker->marks[producer.index] == 0) {
        return wrong(checker, "nodes of a region are not in topological order", index);
      }
    }
    checker->marks[region->nodes[k].index] = 1;
  }
  checker->queue.count = 0;
  CLEAVE_TRY(cleave_array_reserve(&checker->queue, region->node_count, checker->error));
  cleave_array_push_reserved(&checker->queue, region->nodes[0].index);
  checker->marks[region->nodes[0].index] = 2;
  for (size_t k = 0; k < checker->queue.count; k++) {
    cleave_node_t node = {checker->queue.items[k]};
    reach_fusion(checker, node);
    for (uint32_t i = 0; i < cleave_node_input_count(graph, node); i++) {
      cleave_value_t value = cleave_node_input(graph, node, i);
      cleave_node_t producer =
          cleave_value_exists(value) ? cleave_value_producer(graph, value) : CLEAVE_NODE_NONE;
      if (region_of(checker, producer) == index && checker->marks[producer.index] == 1) {
        checker->marks[producer.index] = 2;
        cleave_array_push_reserved(&checker->queue, producer.index);
      }
    }
    for (uint32_t o = 0; o < cleave_node_output_count(graph, node); o++) {
      cleave_value_t value = cleave_node_output(graph, node, o);
      for (cleave_use_t use = cleave_value_first_use(graph, value); cleave_use_exists(use);
           use = cleave_use_next(graph, use)) {
        cleave_node_t user = cleave_use_node(graph, use);
        if (region_of(checker, user) == index && checker->marks[user.index] == 1) {
          checker->marks[user.index] = 2;
          cleave_array_push_reserved(&checker->queue, user.index);
        }
      }
    }
  }
  return checker->queue.count == region->node_count ? CLEAVE_OK
                                                    : wrong(checker, "a region is not connected", index);
}

static cleave_status_t check_inputs(checker_t *checker, uint32_t index) {
  const cleave_graph_t *graph = checker->graph;
  const cleave_plan_region_t *region = &checker->plan->regions[index];
  uint32_t found = 0;
  for (uint32_t k = 0; k < region->node_count; k++) {
    for (uint32_t i = 0; i < cleave_node_input_count(graph, region->nodes[k]); i++) {
      cleave_value_t value = cleave_node_input(graph, region->nodes[k], i);
      if (!cleave_value_exists(value) || cleave_value_is_constant(graph, value) ||
          region_of(checker, cleave_value_producer(graph, value)) == index || checker->values[value.index]) {
        continue;
      }
      checker->values[value.index] = 1;
      if (found >= region->input_count || region->inputs[found++].index != value.index) {
        return wrong(checker, "inputs of a region are not in order of first use", index);
      }
    }
  }
  for (uint32_t k = 0; k < found; k++) {
    checker->values[region->inputs[k].index] = 0;
  }
  return found == region->input_count ? CLEAVE_OK : wrong(checker, "a region has an input too many", index);
}

static cleave_status_t check_outputs(checker_t *checker, uint32_t index) {
  const cleave_graph_t *graph = checker->graph;
  const cleave_plan_region_t *region = &checker->plan->regions[index];
  uint32_t found = 0;
  for (uint32_t k = 0; k < region->node_count; k++) {
    for (uint32_t o = 0; o < cleave_node_output_count(graph, region->nodes[k]); o++) {
      cleave_value_t value = cleave_node_output(graph, region->nodes[k], o);
      bool leaves = false;
      for (cleave_use_t use = cleave_value_first_use(graph, value); cleave_use_exists(use) && !leaves;
           use = cleave_use_next(graph, use)) {
        leaves = region_of(checker, cleave_use_node(graph, use)) != index;
      }
      if (leaves && (found >= region->output_count || region->outputs[found++].index != value.index)) {
        return wrong(checker, "outputs of a region are not in order of their producers", index);
      }
    }
  }
  return found == region->output_count ? CLEAVE_OK : wrong(checker, "a region has an output too many", index);
}

static cleave_status_t check_fusions(checker_t *checker) {
  const cleave_plan_t *plan = checker->plan;
  uint32_t next = 0;
  for (uint32_t r = 0; r < plan->region_count; r++) {
    const cleave_plan_region_t *region = &plan->regions[r];
    for (uint32_t k = 0; k < region->fusion_count; k++) {
      if (region->fusions[k] != next++ || plan->fusions[region->fusions[k]].region != r) {
        return wrong(checker, "a region's list of fusions is wrong", r);
      }
    }
    for (uint32_t m = 0; m < r && m < 64; m++) {
      if (strcmp(region->name, plan->regions[r - 1 - m].name) == 0) {
        return wrong(checker, "two regions have one name", r);
      }
    }
  }
  if (next != plan->fusion_count) {
    return wrong(checker, "a fusion is in no region", next);
  }
  memset(checker->marks, 0, checker->node_bound);
  for (uint32_t f = 0; f < plan->fusion_count; f++) {
    const cleave_plan_fusion_t *fusion = &plan->fusions[f];
    for (uint32_t k = 0; k < fusion->node_count; k++) {
      uint32_t node = fusion->nodes[k].index;
      if (node >= checker->node_bound || plan->node_fusion[node] != f || checker->marks[node] != 0 ||
          plan->node_region[node] != fusion->region) {
        return wrong(checker, "a fusion is not whole in one region, or shares a node", f);
      }
      checker->marks[node] = 1;
    }
  }
  for (uint32_t n = 0; n < checker->node_bound; n++) {
    if (checker->marks[n] == 0 && plan->node_fusion[n] != CLEAVE_INDEX_NONE) {
      return wrong(checker, "node_fusion disagrees with the fusions", n);
    }
  }
  return CLEAVE_OK;
}

// ---- fusions inside a region ----

/* A fusion, or plan->fusion_count + a node that is in none. */
static uint32_t unit_of(const checker_t *checker, uint32_t node) {
  uint32_t fusion = checker->plan->node_fusion[node];
  return fusion != CLEAVE_INDEX_NONE ? fusion : checker->plan->fusion_count + node;
}

/* For each edge between units of region `index`: counts it (`frees` false), or removes it and queues the unit
 * if it has no other edge left. */
static void walk_users(checker_t *checker, uint32_t index, cleave_node_t node, bool frees) {
  const cleave_graph_t *graph = checker->graph;
  for (uint32_t o = 0; o < cleave_node_output_count(graph, node); o++) {
    cleave_value_t value = cleave_node_output(graph, node, o);
    for (cleave_use_t use = cleave_value_first_use(graph, value); cleave_use_exists(use);
         use = cleave_use_next(graph, use)) {
      cleave_node_t user = cleave_use_node(graph, use);
      if (region_of(checker, user) != index || unit_of(checker, user.index) == unit_of(checker, node.index)) {
        continue;
      }
      uint32_t *waiting = &checker->waiting[unit_of(checker, user.index)];
      if (!frees) {
        (*waiting)++;
      } else if (--*waiting == 0) {
        cleave_array_push_reserved(&checker->queue, unit_of(checker, user.index));
      }
    }
  }
}

/* Checks that a region is still acyclic with its fusions contracted. */
static cleave_status_t check_units(checker_t *checker, uint32_t index) {
  const cleave_plan_t *plan = checker->plan;
  const cleave_plan_region_t *region = &plan->regions[index];
  uint32_t unit_count = region->fusion_count;
  checker->queue.count = 0;
  CLEAVE_TRY(cleave_array_reserve(&checker->queue, region->node_count, checker->error));
  for (uint32_t k = 0; k < region->node_count; k++) {
    walk_users(checker, index, region->nodes[k], false);
  }
  for (uint32_t k = 0; k < region->node_count; k++) {
    uint32_t node = region->nodes[k].index;
    uint32_t fusion = plan->node_fusion[node];
    bool is_first = fusion == CLEAVE_INDEX_NONE || plan->fusions[fusion].nodes[0].index == node;
    unit_count += fusion == CLEAVE_INDEX_NONE;
    if (is_first && checker->waiting[unit_of(checker, node)] == 0) {
      cleave_array_push_reserved(&checker->queue, unit_of(checker, node));
    }
  }
  for (size_t k = 0; k < checker->queue.count; k++) {
    uint32_t unit = checker->queue.items[k];
    bool single = unit >= plan->fusion_count;
    cleave_node_t own = {single ? unit - plan->fusion_count : 0};
    const cleave_node_t *nodes = single ? &own : plan->fusions[unit].nodes;
    uint32_t count = single ? 1 : plan->fusions[unit].node_count;
    for (uint32_t n = 0; n < count; n++) {
      walk_users(checker, index, nodes[n], true);
    }
  }
  return checker->queue.count == unit_count ? CLEAVE_OK
                                            : wrong(checker, "fusions of a region form a cycle", index);
}

/* Stages have nodes and feed later ones only, and no region crosses from one to another. */
static cleave_status_t check_stages(checker_t *checker) {
  const cleave_plan_t *plan = checker->plan;
  const cleave_graph_t *graph = checker->graph;
  uint32_t seen = 0;
  if ((plan->stage_count > 0) != (plan->node_stage != NULL) || plan->stage_count == 1) {
    return wrong(checker, "the number of stages is wrong", plan->stage_count);
  }
  memset(checker->marks, 0, checker->node_bound);
  for (uint32_t n = 0; n < checker->node_bound && plan->node_stage != NULL; n++) {
    cleave_node_t node = {n};
    if (!cleave_node_is_live(graph, node)) {
      continue;
    }
    uint32_t stage = plan->node_stage[n];
    uint32_t region = plan->node_region[n];
    if (stage >= plan->stage_count || stage >= checker->node_bound ||
        (region != CLEAVE_INDEX_NONE && plan->node_stage[plan->regions[region].nodes[0].index] != stage)) {
      return wrong(checker, "a region is not in one stage, or a stage does not exist", n);
    }
    seen += checker->marks[stage] == 0 ? 1 : 0;
    checker->marks[stage] = 1;
    for (uint32_t i = 0; i < cleave_node_input_count(graph, node); i++) {
      cleave_value_t value = cleave_node_input(graph, node, i);
      cleave_node_t from =
          cleave_value_exists(value) ? cleave_value_producer(graph, value) : CLEAVE_NODE_NONE;
      if (cleave_node_exists(from) && plan->node_stage[from.index] > stage) {
        return wrong(checker, "a stage reads what a later one makes", stage);
      }
    }
  }
  return seen == plan->stage_count ? CLEAVE_OK : wrong(checker, "a stage has no nodes", plan->stage_count);
}

static cleave_status_t check_all(checker_t *checker) {
  CLEAVE_TRY(check_steps(checker));
  CLEAVE_TRY(check_order(checker));
  for (uint32_t r = 0; r < checker->plan->region_count; r++) {
    CLEAVE_TRY(check_connected(checker, r));
    CLEAVE_TRY(check_inputs(checker, r));
    CLEAVE_TRY(check_outputs(checker, r));
  }
  CLEAVE_TRY(check_fusions(checker));
  CLEAVE_TRY(check_stages(checker));
  for (uint32_t r = 0; r < checker->plan->region_count; r++) {
    CLEAVE_TRY(check_units(checker, r));
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_plan_check(const cleave_plan_t *plan, cleave_error_t *error) {
  checker_t checker = {.plan = plan, .graph = plan->graph, .error = error};
  cleave_status_t status = CLEAVE_OK;
  checker.node_bound = cleave_graph_node_bound(plan->graph);
  size_t slots = (size_t)checker.node_bound + 1;
  checker.owners = cleave_allocate(slots, sizeof *checker.owners);
  checker.marks = cleave_allocate_zeroed(slots, sizeof *checker.marks);
  checker.values = cleave_allocate_zeroed((size_t)cleave_graph_value_bound(plan->graph) + 1, 1);
  checker.pending = cleave_allocate_zeroed((size_t)plan->step_count + 1, sizeof *checker.pending);
  checker.waiting = cleave_allocate_zeroed(slots + plan->fusion_count, sizeof *checker.waiting);
  if (checker.waiting == NULL || checker.owners == NULL || checker.marks == NULL || checker.values == NULL ||
      checker.pending == NULL) {
    status = cleave_error_out_of_memory(error);
  } else {
    memset(checker.owners, 0xff, slots * sizeof *checker.owners);
    status = check_all(&checker);
  }
  cleave_free(checker.owners);
  cleave_free(checker.marks);
  cleave_free(checker.values);
  cleave_free(checker.pending);
  cleave_free(checker.waiting);
  cleave_array_free(&checker.queue);
  return status;
}
