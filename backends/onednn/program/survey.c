// SPDX-License-Identifier: Apache-2.0
// Copies of what a plan knows of kernels, steps and values; the plan itself ends with compiling.
#include "onednn/program/survey.h"

#include <string.h>

static cleave_status_t allocate(const onednn_plan_t *plan, onednn_survey_t *survey) {
  kernel_arena_t *arena = survey->arena;
  uint32_t values = plan->region->value_count;
  *survey = (onednn_survey_t){.arena = arena,
                              .kernel_count = plan->analysis->kernel_count,
                              .value_count = values,
                              .step_count = plan->step_count};
  survey->formed = kernel_arena_allocate(arena, survey->kernel_count, sizeof(bool));
  survey->kernel_of_step = kernel_arena_allocate(arena, survey->step_count, sizeof(uint32_t));
  survey->moves = kernel_arena_allocate(arena, values, sizeof(bool));
  survey->layouts = kernel_arena_allocate(arena, values, sizeof(onednn_layout_t));
  survey->made_by = kernel_arena_allocate(arena, values, sizeof(uint32_t));
  survey->last_use = kernel_arena_allocate(arena, values, sizeof(uint32_t));
  return survey->formed == NULL || survey->kernel_of_step == NULL || survey->moves == NULL ||
                 survey->layouts == NULL || survey->made_by == NULL || survey->last_use == NULL
             ? onednn_plan_out_of_memory(plan)
             : CLEAVE_OK;
}

cleave_status_t onednn_survey_take(const onednn_plan_t *plan, onednn_survey_t *survey) {
  const onednn_analysis_t *analysis = plan->analysis;
  ONEDNN_TRY(allocate(plan, survey));
  memcpy(survey->formed, plan->formed, survey->kernel_count * sizeof(bool));
  for (uint32_t k = 0; k < survey->kernel_count; k++) {
    onednn_kind_t kind = analysis->kernels[k].kind;
    survey->convolution_count += kind == ONEDNN_CONVOLUTION || kind == ONEDNN_DECONVOLUTION ? 1 : 0;
  }
  for (uint32_t k = 0; k < survey->step_count; k++) {
    survey->kernel_of_step[k] = plan->steps[k].kernel;
  }
  for (uint32_t v = 0; v < survey->value_count; v++) {
    const onednn_binding_t *binding = &plan->bindings[v];
    uint32_t node = plan->region->values[v].producer;
    if (node == CLEAVE_INDEX_NONE || !binding->bound ||
        plan->buffers[binding->tensor.buffer].place == ONEDNN_CONSTANT) {
      continue;
    }
    survey->moves[v] = true;
    survey->layouts[v] = binding->tensor.layout;
    survey->made_by[v] = analysis->kernel_of[analysis->unit_of[node]];
    survey->last_use[v] = binding->last_use;
  }
  return CLEAVE_OK;
}
