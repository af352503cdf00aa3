// SPDX-License-Identifier: Apache-2.0
// Builds the plan from the fusions and regions that were found. The order of execution is computed by a
// depth-first search over the nodes, independently of the contraction's order: a second check that the result
// is acyclic.

#include <string.h>

#include "graph/compare/structural_hash.h"
#include "partition/grow/partitioner.h"

typedef struct frame {
  uint32_t unit;   /* region, or node_count-based position: see unit_of */
  uint32_t member; /* index into its nodes */
  uint32_t edge;   /* next producer of that member */
} frame_t;

typedef struct builder {
  cleave_partitioner_t *partitioner;
  cleave_plan_t *plan;
  uint32_t region_count;
  uint8_t *states;                            /* per unit: 0 not seen, 1 on the path, 2 done */
  uint32_t *new_region;                       /* per found region: place in the order of execution */
  uint32_t *found_of;                         /* per place: found region */
  uint32_t *new_fusion;                       /* per found fusion */
  const cleave_attribute_t **rule_attributes; /* per rule: the plan's copy, or NULL */
  CLEAVE_ARRAY(frame_t) frames;
} builder_t;

/* Regions are the units 0 .. region_count - 1, single nodes follow by position. */
static uint32_t unit_of(const builder_t *builder, uint32_t position) {
  uint32_t region = builder->partitioner->region_of[position];
  return region != CLEAVE_INDEX_NONE ? region : builder->region_count + position;
}

static const uint32_t *unit_nodes(const builder_t *builder, uint32_t unit, uint32_t *single,
                                  uint32_t *out_count) {
  if (unit >= builder->region_count) {
    *single = unit - builder->region_count;
    *out_count = 1;
    return single;
  }
  const cleave_found_region_t *found = &builder->partitioner->regions.items[unit];
  *out_count = found->count;
  return builder->partitioner->region_nodes.items + found->first;
}

static cleave_status_t enter_unit(builder_t *builder, uint32_t unit, cleave_error_t *error) {
  uint32_t single;
  uint32_t count;
  const uint32_t *nodes = unit_nodes(builder, unit, &single, &count);
  builder->states[unit] = 1;
  frame_t frame = {unit, 0, builder->partitioner->contraction->producer_start[nodes[0]]};
  CLEAVE_ARRAY_PUSH(&builder->frames, frame, error);
  return CLEAVE_OK;
}

/* The next producer of the unit on top that is not done, or NONE. */
static cleave_status_t next_producer(builder_t *builder, uint32_t *out_unit, cleave_error_t *error) {
  const cleave_contraction_t *c = builder->partitioner->contraction;
  frame_t *frame = &builder->frames.items[builder->frames.count - 1];
  uint32_t single;
  uint32_t count;
  const uint32_t *nodes = unit_nodes(builder, frame->unit, &single, &count);
  *out_unit = CLEAVE_INDEX_NONE;
  for (;;) {
    while (frame->edge == c->producer_start[nodes[frame->member] + 1]) {
      if (++frame->member == count) {
        return CLEAVE_OK;
      }
      frame->edge = c->producer_start[nodes[frame->member]];
    }
    uint32_t unit = unit_of(builder, c->producers[frame->edge++]);
    if (unit == frame->unit || builder->states[unit] == 2) {
      continue;
    }
    if (builder->states[unit] == 1) {
      return cleave_error_set(error, CLEAVE_ERROR_INTERNAL, "plan: regions form a cycle");
    }
    *out_unit = unit;
    return CLEAVE_OK;
  }
}

static cleave_status_t order_units(builder_t *builder, cleave_error_t *error) {
  const cleave_contraction_t *c = builder->partitioner->contraction;
  cleave_plan_t *plan = builder->plan;
  cleave_plan_step_t *steps = cleave_arena_allocate(&plan->arena, (size_t)c->node_count + 1, sizeof *steps);
  CLEAVE_TRY_MEMORY(steps, error);
  plan->steps = steps;
  for (uint32_t p = 0; p < c->node_count; p++) {
    uint32_t unit = unit_of(builder, p);
    if (builder->states[unit] == 0) {
      CLEAVE_TRY(enter_unit(builder, unit, error));
    }
    while (builder->frames.count > 0) {
      CLEAVE_TRY(next_producer(builder, &unit, error));
      if (unit != CLEAVE_INDEX_NONE) {
        CLEAVE_TRY(enter_unit(builder, unit, error));
        continue;
      }
      unit = builder->frames.items[--builder->frames.count].unit;
      builder->states[unit] = 2;
      cleave_plan_step_t *step = &steps[plan->step_count++];
      if (unit < builder->region_count) {
        step->node = CLEAVE_NODE_NONE;
        step->region = plan->region_count;
        builder->new_region[unit] = plan->region_count;
        builder->found_of[plan->region_count++] = unit;
      } else {
        step->region = CLEAVE_INDEX_NONE;
        step->node = c->nodes[unit - builder->region_count];
      }
    }
  }
  return CLEAVE_OK;
}

/* "<rule>_<k>"; rules of the same name share the numbering. */
static cleave_status_t name_regions(builder_t *builder, cleave_plan_region_t *regions,
                                    cleave_error_t *error) {
  cleave_plan_t *plan = builder->plan;
  uint32_t *first = cleave_allocate((size_t)plan->rule_count + 1, sizeof *first);
  uint32_t *counts = cleave_allocate_zeroed((size_t)plan->rule_count + 1, sizeof *counts);
  cleave_status_t status = CLEAVE_OK;
  CLEAVE_TRY_MEMORY_CLEANUP(first != NULL && counts != NULL, error);
  for (uint32_t k = 0; k < plan->rule_count; k++) {
    first[k] = 0;
    while (strcmp(plan->rules[first[k]].name, plan->rules[k].name) != 0) {
      first[k]++;
    }
  }
  for (uint32_t k = 0; k < plan->region_count; k++) {
    uint32_t rule = regions[k].rule;
    regions[k].name =
        cleave_arena_format(&plan->arena, "%s_%u", plan->rules[rule].name, counts[first[rule]]++);
    CLEAVE_TRY_MEMORY_CLEANUP(regions[k].name, error);
  }
cleanup:
  cleave_free(first);
  cleave_free(counts);
  return status;
}

static cleave_status_t fill_region(builder_t *builder, const cleave_found_region_t *found,
                                   cleave_plan_region_t *region, cleave_error_t *error) {
  cleave_partitioner_t *partitioner = builder->partitioner;
  cleave_plan_t *plan = builder->plan;
  const uint32_t *positions = partitioner->region_nodes.items + found->first;
  uint32_t found_index = partitioner->region_of[positions[0]];
  cleave_node_t *nodes = cleave_arena_allocate(&plan->arena, found->count, sizeof *nodes);
  uint32_t fusion_count = 0;
  for (uint32_t k = 0; k < found->count; k++) {
    uint32_t fusion = partitioner->fusion_of[positions[k]];
    fusion_count += fusion != CLEAVE_INDEX_NONE &&
                    partitioner->fusion_nodes.items[partitioner->fusions.items[fusion].first] == positions[k];
  }
  uint32_t *fusions = cleave_arena_allocate(&plan->arena, (size_t)fusion_count + 1, sizeof *fusions);
  CLEAVE_TRY_MEMORY(nodes != NULL && fusions != NULL, error);
  region->rule = found->rule;
  region->backend = plan->rules[found->rule].backend;
  region->node_count = found->count;
  region->nodes = nodes;
  region->fusions = fusions;
  region->attribute_count = found->attribute_count;
  region->attributes = found->attributes;
  for (uint32_t k = 0; k < found->count; k++) {
    uint32_t fusion = partitioner->fusion_of[positions[k]];
    nodes[k] = partitioner->contraction->nodes[positions[k]];
    if (fusion != CLEAVE_INDEX_NONE &&
        partitioner->fusion_nodes.items[partitioner->fusions.items[fusion].first] == positions[k]) {
      builder->new_fusion[fusion] = plan->fusion_count;
      fusions[region->fusion_count++] = plan->fusion_count++;
    }
  }
  CLEAVE_TRY(cleave_partitioner_find_boundary(partitioner, positions, found->count, partitioner->region_of,
                                              found_index, error));
  region->input_count = (uint32_t)partitioner->inputs.count;
  region->output_count = (uint32_t)partitioner->outputs.count;
  region->inputs = cleave_arena_copy(&plan->arena, partitioner->inputs.items,
                                     partitioner->inputs.count * sizeof *partitioner->inputs.items);
  region->outputs = cleave_arena_copy(&plan->arena, partitioner->outputs.items,
                                      partitioner->outputs.count * sizeof *partitioner->outputs.items);
  if ((region->inputs == NULL && region->input_count > 0) ||
      (region->outputs == NULL && region->output_count > 0)) {
    return cleave_error_out_of_memory(error);
  }
  return CLEAVE_OK;
}

static cleave_status_t fill_regions(builder_t *builder, cleave_error_t *error) {
  cleave_plan_t *plan = builder->plan;
  cleave_plan_region_t *regions =
      cleave_arena_allocate(&plan->arena, (size_t)plan->region_count + 1, sizeof *regions);
  CLEAVE_TRY_MEMORY(regions, error);
  plan->regions = regions;
  for (uint32_t k = 0; k < plan->region_count; k++) {
    const cleave_found_region_t *found = &builder->partitioner->regions.items[builder->found_of[k]];
    CLEAVE_TRY(fill_region(builder, found, &regions[k], error));
  }
  return name_regions(builder, regions, error);
}

static cleave_status_t fill_fusions(builder_t *builder, cleave_error_t *error) {
  cleave_partitioner_t *partitioner = builder->partitioner;
  cleave_plan_t *plan = builder->plan;
  cleave_plan_fusion_t *fusions =
      cleave_arena_allocate(&plan->arena, (size_t)plan->fusion_count + 1, sizeof *fusions);
  CLEAVE_TRY_MEMORY(fusions, error);
  plan->fusions = fusions;
  for (size_t k = 0; k < partitioner->fusions.count; k++) {
    const cleave_found_fusion_t *found = &partitioner->fusions.items[k];
    cleave_plan_fusion_t *fusion = &fusions[builder->new_fusion[k]];
    cleave_node_t *nodes = cleave_arena_allocate(&plan->arena, found->count, sizeof *nodes);
    const char **labels = cleave_arena_allocate(&plan->arena, found->count, sizeof *labels);
    CLEAVE_TRY_MEMORY(nodes != NULL && labels != NULL, error);
    const cleave_attribute_t *own = found->attributes; /* of one fusion: in the plan's arena already */
    const cleave_attribute_t **attributes = &own;
    if (found->attributes == found->source->attributes) {
      attributes = &builder->rule_attributes[found->rule];
    }
    if (*attributes == NULL) {
      CLEAVE_TRY(cleave_plan_copy_attributes(&plan->arena, found->attributes, found->attribute_count,
                                             attributes, error));
    }
    for (uint32_t m = 0; m < found->count; m++) {
      nodes[m] = partitioner->contraction->nodes[partitioner->fusion_nodes.items[found->first + m]];
      labels[m] = partitioner->fusion_labels.items[found->first + m];
    }
    *fusion = (cleave_plan_fusion_t){.rule = found->rule,
                                     .region = builder->new_region[found->region],
                                     .node_count = found->count,
                                     .nodes = nodes,
                                     .labels = labels,
                                     .attribute_count = found->attribute_count,
                                     .attributes = *attributes};
  }
  return CLEAVE_OK;
}

static cleave_status_t fill_nodes(builder_t *builder, cleave_error_t *error) {
  cleave_partitioner_t *partitioner = builder->partitioner;
  cleave_plan_t *plan = builder->plan;
  const cleave_contraction_t *c = partitioner->contraction;
  size_t bound = (size_t)cleave_graph_node_bound(partitioner->graph) + 1;
  uint32_t *regions = cleave_arena_allocate(&plan->arena, bound, sizeof *regions);
  uint32_t *fusions = cleave_arena_allocate(&plan->arena, bound, sizeof *fusions);
  CLEAVE_TRY_MEMORY(regions != NULL && fusions != NULL, error);
  if (partitioner->stages != NULL) {
    uint32_t *stages = cleave_arena_allocate(&plan->arena, bound, sizeof *stages);
    CLEAVE_TRY_MEMORY(stages != NULL, error);
    for (uint32_t p = 0; p < c->node_count; p++) {
      stages[c->nodes[p].index] = partitioner->stages[p];
    }
    plan->stage_count = partitioner->stage_count;
    plan->node_stage = stages;
  }
  memset(regions, 0xff, bound * sizeof *regions);
  memset(fusions, 0xff, bound * sizeof *fusions);
  for (uint32_t p = 0; p < c->node_count; p++) {
    uint32_t index = c->nodes[p].index;
    if (partitioner->region_of[p] != CLEAVE_INDEX_NONE) {
      regions[index] = builder->new_region[partitioner->region_of[p]];
    }
    if (partitioner->fusion_of[p] != CLEAVE_INDEX_NONE) {
      fusions[index] = builder->new_fusion[partitioner->fusion_of[p]];
    }
  }
  plan->node_region = regions;
  plan->node_fusion = fusions;
  return CLEAVE_OK;
}

cleave_status_t cleave_partitioner_finish(cleave_partitioner_t *partitioner, cleave_error_t *error) {
  cleave_status_t status = CLEAVE_OK;
  cleave_plan_t *plan = partitioner->plan;
  builder_t builder = {
      .partitioner = partitioner, .plan = plan, .region_count = (uint32_t)partitioner->regions.count};
  size_t regions = partitioner->regions.count + 1;
  builder.states = cleave_allocate_zeroed(regions + partitioner->contraction->node_count, 1);
  builder.new_region = cleave_allocate(regions, sizeof *builder.new_region);
  builder.found_of = cleave_allocate(regions, sizeof *builder.found_of);
  builder.new_fusion = cleave_allocate(partitioner->fusions.count + 1, sizeof *builder.new_fusion);
  builder.rule_attributes =
      cleave_allocate_zeroed((size_t)plan->rule_count + 1, sizeof *builder.rule_attributes);
  CLEAVE_TRY_MEMORY_CLEANUP(builder.rule_attributes != NULL && builder.states != NULL &&
                                builder.new_region != NULL && builder.found_of != NULL &&
                                builder.new_fusion != NULL,
                            error);
  CLEAVE_TRY_CLEANUP(cleave_graph_hash(partitioner->graph, &plan->graph_hash, error));
  CLEAVE_TRY_CLEANUP(order_units(&builder, error));
  CLEAVE_TRY_CLEANUP(fill_regions(&builder, error));
  CLEAVE_TRY_CLEANUP(fill_fusions(&builder, error));
  CLEAVE_TRY_CLEANUP(fill_nodes(&builder, error));
  plan->note_count = (uint32_t)partitioner->notes.count;
  plan->notes = cleave_arena_copy(&plan->arena, partitioner->notes.items,
                                  partitioner->notes.count * sizeof *partitioner->notes.items);
  if (plan->notes == NULL && plan->note_count > 0) {
    status = cleave_error_out_of_memory(error);
  }
cleanup:
  cleave_free(builder.states);
  cleave_free(builder.new_region);
  cleave_free(builder.found_of);
  cleave_free(builder.new_fusion);
  cleave_free((void *)builder.rule_attributes);
  cleave_array_free(&builder.frames);
  return status;
}
