// SPDX-License-Identifier: Apache-2.0
// The layouts that the readers of each value prefer, found from the end of the region to its start: a Reshape
// prefers its input plain, a Transpose in front of one prefers the order that makes the transposed value
// plain, and a value that becomes a region output through views alone may be written straight to its memory.
#include "onednn/plan/preferred.h"

#include "onednn/plan/slots.h"
#include "onednn/units/windows.h"

static cleave_status_t mark_outputs(onednn_plan_t *plan) {
  const cleave_region_view_t *region = plan->region;
  for (uint32_t k = 0; k < region->output_count; k++) {
    if (region->outputs[k] >= region->value_count) {
      return kernel_fail(plan->message, CLEAVE_ERROR_INVALID_ARGUMENT,
                         "region '%s': output %u is not a value", region->name, (unsigned)k);
    }
    onednn_binding_t *binding = &plan->bindings[region->outputs[k]];
    binding->output = k;
    binding->home = k;
    binding->preferred = ONEDNN_PREFER_PLAIN;
    binding->last_use = CLEAVE_INDEX_NONE;
  }
  return CLEAVE_OK;
}

static void find_last_uses(onednn_plan_t *plan) {
  const onednn_analysis_t *analysis = plan->analysis;
  const cleave_region_view_t *region = plan->region;
  for (uint32_t n = 0; n < region->node_count; n++) {
    uint32_t kernel = analysis->kernel_of[analysis->unit_of[n]];
    for (uint32_t s = 0; s < region->nodes[n].input_count; s++) {
      uint32_t value = region->nodes[n].inputs[s];
      if (value != CLEAVE_INDEX_NONE && plan->bindings[value].last_use < kernel) {
        plan->bindings[value].last_use = kernel;
      }
    }
  }
}

cleave_status_t onednn_plan_preferred(onednn_plan_t *plan) {
  const onednn_analysis_t *analysis = plan->analysis;
  for (uint32_t v = 0; v < plan->region->value_count; v++) {
    plan->bindings[v].home = CLEAVE_INDEX_NONE;
    plan->bindings[v].output = CLEAVE_INDEX_NONE;
    plan->bindings[v].slot_of = CLEAVE_INDEX_NONE;
    plan->bindings[v].slot_buffer = CLEAVE_INDEX_NONE;
  }
  ONEDNN_TRY(mark_outputs(plan));
  find_last_uses(plan);
  for (uint32_t k = analysis->kernel_count; k-- > 0;) {
    const onednn_kernel_t *kernel = &analysis->kernels[k];
    onednn_binding_t *source = &plan->bindings[kernel->source];
    bool view = kernel->kind == ONEDNN_RESHAPE || kernel->kind == ONEDNN_TRANSPOSE;
    if (!view || source->output != CLEAVE_INDEX_NONE || onednn_use_count(analysis, kernel->source) != 1) {
      continue;
    }
    const onednn_binding_t *result = &plan->bindings[kernel->output];
    if (kernel->kind == ONEDNN_RESHAPE) {
      source->preferred = ONEDNN_PREFER_PLAIN;
      source->home = result->preferred == ONEDNN_PREFER_PLAIN ? result->home : CLEAVE_INDEX_NONE;
    } else if (result->preferred == ONEDNN_PREFER_PLAIN) {
      onednn_shape_t shape = onednn_plan_shape(plan, kernel->source);
      source->preferred = ONEDNN_PREFER_ORDER;
      source->home = result->home;
      if (!onednn_transpose_order(&plan->region->nodes[kernel->node], shape.rank, source->order)) {
        source->preferred = ONEDNN_PREFER_ANY;
        source->home = CLEAVE_INDEX_NONE;
      }
    }
  }
  onednn_slots_assign(plan);
  return CLEAVE_OK;
}
