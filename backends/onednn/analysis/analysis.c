// SPDX-License-Identifier: Apache-2.0
// Turns a region, once expanded, into kernels: who uses what, which nodes belong together, and an order of
// the units in which every one finds its inputs made. Each unit is then recognised on its own.
#include "onednn/analysis/analysis.h"

#include "onednn/analysis/operators.h"
#include "onednn/analysis/recognise.h"

static cleave_status_t out_of_memory(cleave_message_t *message) {
  return kernel_fail(message, CLEAVE_ERROR_OUT_OF_MEMORY, "out of memory while analysing a region");
}

// Recurrent layers whose final state is read may leave out Y, their first output.
static bool may_lack_output(const cleave_node_view_t *node) {
  const onednn_operator_t *operator_entry = onednn_operator_find(node->op);
  return operator_entry != NULL && operator_entry->kind == ONEDNN_RECURRENT;
}

// Ids in a view come from cleave, but a wrong one must not read past the end of an array.
cleave_status_t onednn_check_ids(const cleave_region_view_t *region, cleave_message_t *message) {
  for (uint32_t n = 0; n < region->node_count; n++) {
    const cleave_node_view_t *node = &region->nodes[n];
    for (uint32_t k = 0; k < node->input_count + node->output_count; k++) {
      uint32_t id = k < node->input_count ? node->inputs[k] : node->outputs[k - node->input_count];
      if (id != CLEAVE_INDEX_NONE && id >= region->value_count) {
        return kernel_fail(message, CLEAVE_ERROR_INVALID_ARGUMENT, "node '%s' names value %u of %u",
                           onednn_node_name(node), (unsigned)id, (unsigned)region->value_count);
      }
    }
    if (node->output_count == 0 || (node->outputs[0] == CLEAVE_INDEX_NONE && !may_lack_output(node)) ||
        node->input_count == 0 || node->inputs[0] == CLEAVE_INDEX_NONE) {
      return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "%s '%s': its first input or output is left out",
                         node->op, onednn_node_name(node));
    }
  }
  for (uint32_t f = 0; f < region->fusion_count; f++) {
    for (uint32_t k = 0; k < region->fusions[f].node_count; k++) {
      if (region->fusions[f].nodes[k] >= region->node_count) {
        return kernel_fail(message, CLEAVE_ERROR_INVALID_ARGUMENT, "fusion '%s' names node %u of %u",
                           region->fusions[f].rule, (unsigned)region->fusions[f].nodes[k],
                           (unsigned)region->node_count);
      }
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t index_uses(onednn_analysis_t *analysis) {
  const cleave_region_view_t *region = analysis->region;
  size_t total = 0;
  uint32_t *starts =
      kernel_arena_allocate(analysis->arena, (size_t)region->value_count + 2, sizeof(uint32_t));
  if (starts == NULL) {
    return out_of_memory(analysis->message);
  }
  for (uint32_t n = 0; n < region->node_count; n++) {
    for (uint32_t k = 0; k < region->nodes[n].input_count; k++) {
      uint32_t value = region->nodes[n].inputs[k];
      if (value != CLEAVE_INDEX_NONE) {
        starts[value + 2]++;
        total++;
      }
    }
  }
  uint32_t *uses = kernel_arena_allocate(analysis->arena, total, sizeof(uint32_t));
  if (uses == NULL) {
    return out_of_memory(analysis->message);
  }
  // One ahead: filling moves every start to its place.
  for (uint32_t v = 0; v < region->value_count; v++) {
    starts[v + 2] += starts[v + 1];
  }
  for (uint32_t n = 0; n < region->node_count; n++) {
    for (uint32_t k = 0; k < region->nodes[n].input_count; k++) {
      uint32_t value = region->nodes[n].inputs[k];
      if (value != CLEAVE_INDEX_NONE) {
        uses[starts[value + 1]++] = n;
      }
    }
  }
  analysis->use_starts = starts;
  analysis->uses = uses;
  return CLEAVE_OK;
}

typedef struct schedule {
  onednn_unit_t *units; /* fusions first, then one entry per node; count 0 if the node is in a fusion */
  uint32_t count;
  uint32_t *waiting; /* edges from other units that are not made yet */
  uint32_t *ready;   /* queue */
  uint32_t head;
  uint32_t tail;
} schedule_t;

static cleave_status_t make_units(onednn_analysis_t *analysis, schedule_t *schedule) {
  const cleave_region_view_t *region = analysis->region;
  kernel_arena_t *arena = analysis->arena;
  schedule->count = region->fusion_count + region->node_count;
  uint32_t *unit_of = kernel_arena_allocate(arena, region->node_count, sizeof(uint32_t));
  uint32_t *own = kernel_arena_allocate(arena, region->node_count, sizeof(uint32_t));
  bool *taken = kernel_arena_allocate(arena, region->node_count, sizeof(bool));
  schedule->units = kernel_arena_allocate(arena, schedule->count, sizeof(onednn_unit_t));
  schedule->waiting = kernel_arena_allocate(arena, schedule->count, sizeof(uint32_t));
  schedule->ready = kernel_arena_allocate(arena, schedule->count, sizeof(uint32_t));
  if (unit_of == NULL || own == NULL || taken == NULL || schedule->units == NULL ||
      schedule->waiting == NULL || schedule->ready == NULL) {
    return out_of_memory(analysis->message);
  }
  for (uint32_t n = 0; n < region->node_count; n++) {
    own[n] = n;
    unit_of[n] = region->fusion_count + n;
  }
  for (uint32_t f = 0; f < region->fusion_count; f++) {
    const cleave_fusion_view_t *fusion = &region->fusions[f];
    for (uint32_t k = 0; k < fusion->node_count; k++) {
      if (unit_of[fusion->nodes[k]] < region->fusion_count) {
        return kernel_fail(analysis->message, CLEAVE_ERROR_INVALID_ARGUMENT, "node '%s' is in two fusions",
                           onednn_node_name(&region->nodes[fusion->nodes[k]]));
      }
      unit_of[fusion->nodes[k]] = f;
    }
    bool *flags = taken;
    taken += fusion->node_count;
    schedule->units[f] = (onednn_unit_t){.analysis = analysis,
                                         .id = f,
                                         .fusion = f,
                                         .nodes = fusion->nodes,
                                         .count = fusion->node_count,
                                         .taken = flags};
  }
  for (uint32_t n = 0; n < region->node_count; n++) {
    bool alone = unit_of[n] >= region->fusion_count;
    schedule->units[region->fusion_count + n] = (onednn_unit_t){.analysis = analysis,
                                                                .id = region->fusion_count + n,
                                                                .fusion = CLEAVE_INDEX_NONE,
                                                                .nodes = &own[n],
                                                                .count = alone ? 1 : 0,
                                                                .taken = taken};
    taken += alone ? 1 : 0;
  }
  analysis->unit_of = unit_of;
  return CLEAVE_OK;
}

static void count_waiting(const onednn_analysis_t *analysis, schedule_t *schedule) {
  const cleave_region_view_t *region = analysis->region;
  for (uint32_t n = 0; n < region->node_count; n++) {
    for (uint32_t k = 0; k < region->nodes[n].input_count; k++) {
      uint32_t value = region->nodes[n].inputs[k];
      uint32_t producer = value != CLEAVE_INDEX_NONE ? region->values[value].producer : CLEAVE_INDEX_NONE;
      if (producer != CLEAVE_INDEX_NONE && producer < region->node_count &&
          analysis->unit_of[producer] != analysis->unit_of[n]) {
        schedule->waiting[analysis->unit_of[n]]++;
      }
    }
  }
}

static void release_users(const onednn_analysis_t *analysis, schedule_t *schedule,
                          const onednn_unit_t *unit) {
  const cleave_region_view_t *region = analysis->region;
  for (uint32_t m = 0; m < unit->count; m++) {
    const cleave_node_view_t *node = &region->nodes[unit->nodes[m]];
    for (uint32_t o = 0; o < node->output_count; o++) {
      uint32_t value = node->outputs[o];
      if (value == CLEAVE_INDEX_NONE) {
        continue;
      }
      for (uint32_t k = analysis->use_starts[value]; k < analysis->use_starts[value + 1]; k++) {
        uint32_t user = analysis->unit_of[analysis->uses[k]];
        if (user != unit->id && --schedule->waiting[user] == 0) {
          schedule->ready[schedule->tail++] = user;
        }
      }
    }
  }
}

cleave_status_t onednn_analyse(const cleave_region_view_t *region, kernel_arena_t *arena,
                               cleave_message_t *message, onednn_analysis_t *out) {
  *out = (onednn_analysis_t){.given = region, .region = region, .arena = arena, .message = message};
  schedule_t schedule = {0};
  ONEDNN_TRY(onednn_check_ids(region, message));
  ONEDNN_TRY(onednn_expand(region, arena, message, &out->expansion));
  out->region = out->expansion.region;
  region = out->region;
  ONEDNN_TRY(kernel_lowerer_create(region, arena, &out->lowerer, message));
  ONEDNN_TRY(index_uses(out));
  ONEDNN_TRY(make_units(out, &schedule));
  count_waiting(out, &schedule);
  uint32_t expected = 0;
  for (uint32_t u = 0; u < schedule.count; u++) {
    expected += schedule.units[u].count > 0 ? 1 : 0;
  }
  out->kernels = kernel_arena_allocate(arena, expected, sizeof(onednn_kernel_t));
  out->kernel_of = kernel_arena_allocate(arena, schedule.count, sizeof(uint32_t));
  if (out->kernels == NULL || out->kernel_of == NULL) {
    return out_of_memory(message);
  }
  for (uint32_t u = 0; u < schedule.count; u++) {
    out->kernel_of[u] = CLEAVE_INDEX_NONE;
    if (schedule.units[u].count > 0 && schedule.waiting[u] == 0) {
      schedule.ready[schedule.tail++] = u;
    }
  }
  while (schedule.head < schedule.tail) {
    onednn_unit_t *unit = &schedule.units[schedule.ready[schedule.head++]];
    out->kernel_of[unit->id] = out->kernel_count;
    ONEDNN_TRY(onednn_recognise(unit, &out->kernels[out->kernel_count++]));
    release_users(out, &schedule, unit);
  }
  if (out->kernel_count != expected) {
    return kernel_fail(message, CLEAVE_ERROR_INVALID_ARGUMENT,
                       "region '%s': its fusions depend on each other", region->name);
  }
  return CLEAVE_OK;
}
