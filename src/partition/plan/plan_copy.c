// SPDX-License-Identifier: Apache-2.0
// Copies a plan's decisions for another graph with the same ids: a deep copy, so that the plans are
// independent.
#include <string.h>

#include "graph/compare/structural_hash.h"
#include "partition/plan/plan.h"

/* Copies into the arena of the new plan. After a failure all further copies are NULL. */
typedef struct copying {
  cleave_arena_t *arena;
  bool failed;
} copying_t;

static void *copy_bytes(copying_t *copying, const void *data, size_t count, size_t size) {
  if (copying->failed || count == 0 || data == NULL) {
    return NULL;
  }
  size_t bytes = 0;
  void *copy =
      cleave_size_multiply(count, size, &bytes) ? cleave_arena_copy(copying->arena, data, bytes) : NULL;
  copying->failed = copy == NULL;
  return copy;
}

static const char *copy_text(copying_t *copying, const char *text) {
  if (copying->failed || text == NULL) {
    return NULL;
  }
  const char *copy = cleave_arena_copy_text(copying->arena, text, strlen(text));
  copying->failed = copy == NULL;
  return copy;
}

static cleave_plan_rule_t *copy_rules(copying_t *copying, const cleave_plan_t *plan) {
  cleave_plan_rule_t *rules = copy_bytes(copying, plan->rules, plan->rule_count, sizeof *rules);
  for (uint32_t k = 0; rules != NULL && k < plan->rule_count; k++) {
    rules[k].ruleset = copy_text(copying, rules[k].ruleset);
    rules[k].backend = copy_text(copying, rules[k].backend);
    rules[k].name = copy_text(copying, rules[k].name);
    rules[k].file = copy_text(copying, rules[k].file);
  }
  return rules;
}

static cleave_setting_t *copy_settings(copying_t *copying, const cleave_plan_t *plan) {
  cleave_setting_t *settings = copy_bytes(copying, plan->settings, plan->setting_count, sizeof *settings);
  for (uint32_t k = 0; settings != NULL && k < plan->setting_count; k++) {
    settings[k].name = copy_text(copying, settings[k].name);
    settings[k].value = copy_text(copying, settings[k].value);
  }
  return settings;
}

static cleave_status_t copy_fusions(copying_t *copying, const cleave_plan_t *plan, cleave_plan_t *to,
                                    cleave_error_t *error) {
  cleave_plan_fusion_t *fusions = copy_bytes(copying, plan->fusions, plan->fusion_count, sizeof *fusions);
  for (uint32_t k = 0; fusions != NULL && !copying->failed && k < plan->fusion_count; k++) {
    cleave_plan_fusion_t *fusion = &fusions[k];
    fusion->nodes = copy_bytes(copying, fusion->nodes, fusion->node_count, sizeof *fusion->nodes);
    const char **labels = copy_bytes(copying, fusion->labels, fusion->node_count, sizeof *labels);
    for (uint32_t n = 0; labels != NULL && n < fusion->node_count; n++) {
      labels[n] = copy_text(copying, labels[n]);
    }
    fusion->labels = labels;
    CLEAVE_TRY(cleave_plan_copy_attributes(copying->arena, fusion->attributes, fusion->attribute_count,
                                           &fusion->attributes, error));
  }
  to->fusion_count = plan->fusion_count;
  to->fusions = fusions;
  return CLEAVE_OK;
}

static cleave_status_t copy_regions(copying_t *copying, const cleave_plan_t *plan, cleave_plan_t *to,
                                    cleave_error_t *error) {
  cleave_plan_region_t *regions = copy_bytes(copying, plan->regions, plan->region_count, sizeof *regions);
  for (uint32_t k = 0; regions != NULL && !copying->failed && k < plan->region_count; k++) {
    cleave_plan_region_t *region = &regions[k];
    region->name = copy_text(copying, region->name);
    region->backend = copy_text(copying, region->backend);
    region->nodes = copy_bytes(copying, region->nodes, region->node_count, sizeof *region->nodes);
    region->fusions = copy_bytes(copying, region->fusions, region->fusion_count, sizeof *region->fusions);
    region->inputs = copy_bytes(copying, region->inputs, region->input_count, sizeof *region->inputs);
    region->outputs = copy_bytes(copying, region->outputs, region->output_count, sizeof *region->outputs);
    CLEAVE_TRY(cleave_plan_copy_attributes(copying->arena, region->attributes, region->attribute_count,
                                           &region->attributes, error));
  }
  to->region_count = plan->region_count;
  to->regions = regions;
  return CLEAVE_OK;
}

static cleave_plan_note_t *copy_notes(copying_t *copying, const cleave_plan_t *plan) {
  cleave_plan_note_t *notes = copy_bytes(copying, plan->notes, plan->note_count, sizeof *notes);
  for (uint32_t k = 0; notes != NULL && k < plan->note_count; k++) {
    notes[k].reason = copy_text(copying, notes[k].reason);
  }
  return notes;
}

static cleave_status_t fill(const cleave_plan_t *plan, cleave_plan_t *to, cleave_error_t *error) {
  copying_t copying = {.arena = &to->arena, .failed = false};
  size_t bound = (size_t)cleave_graph_node_bound(to->graph);
  CLEAVE_TRY(cleave_graph_hash(to->graph, &to->graph_hash, error));
  to->setting_count = plan->setting_count;
  to->settings = copy_settings(&copying, plan);
  to->rule_count = plan->rule_count;
  to->rules = copy_rules(&copying, plan);
  CLEAVE_TRY(copy_fusions(&copying, plan, to, error));
  CLEAVE_TRY(copy_regions(&copying, plan, to, error));
  to->note_count = plan->note_count;
  to->notes = copy_notes(&copying, plan);
  to->step_count = plan->step_count;
  to->steps = copy_bytes(&copying, plan->steps, plan->step_count, sizeof *plan->steps);
  to->node_region = copy_bytes(&copying, plan->node_region, bound, sizeof *plan->node_region);
  to->node_fusion = copy_bytes(&copying, plan->node_fusion, bound, sizeof *plan->node_fusion);
  to->stage_count = plan->stage_count;
  to->node_stage = copy_bytes(&copying, plan->node_stage, bound, sizeof *plan->node_stage);
  return copying.failed ? cleave_error_out_of_memory(error) : cleave_plan_check(to, error);
}

cleave_status_t cleave_plan_copy(const cleave_plan_t *plan, const cleave_graph_t *source,
                                 const cleave_graph_t *graph, cleave_plan_t **out_plan,
                                 cleave_error_t *error) {
  *out_plan = NULL;
  cleave_plan_t *copy = cleave_allocate_zeroed(1, sizeof *copy);
  CLEAVE_TRY_MEMORY(copy, error);
  copy->source = source;
  copy->graph = graph;
  CLEAVE_TRY_OR(fill(plan, copy, error), cleave_plan_destroy(copy));
  *out_plan = copy;
  return CLEAVE_OK;
}
