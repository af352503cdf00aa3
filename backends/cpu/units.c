// SPDX-License-Identifier: Apache-2.0
// Orders the units of a region by a depth-first search over what they read, so that without kernels the order
// of the nodes stays.
#include "cpu/units.h"

#include "cpu/fused.h"

typedef struct frame {
  uint32_t unit;
  uint32_t node;  /* of the unit's nodes */
  uint32_t input; /* of that node */
} frame_t;

typedef struct lister {
  const cleave_region_view_t *region;
  cpu_unit_t *units; /* by number: of its first node */
  uint32_t *unit_of; /* per node */
  uint8_t *states;   /* per unit: 0 not seen, 1 on the path, 2 listed */
  frame_t *frames;
  uint32_t depth;
} lister_t;

static void enter(lister_t *lister, uint32_t unit) {
  lister->states[unit] = 1;
  lister->frames[lister->depth++] = (frame_t){.unit = unit};
}

/* The next unit that the one on top reads and that is not listed; CLEAVE_INDEX_NONE: there is none. */
static uint32_t next_producer(const lister_t *lister, frame_t *frame) {
  const cpu_unit_t *unit = &lister->units[frame->unit];
  while (frame->node < unit->count) {
    const cleave_node_view_t *node = &lister->region->nodes[unit->nodes[frame->node]];
    while (frame->input < node->input_count) {
      uint32_t value = node->inputs[frame->input++];
      uint32_t producer =
          value < lister->region->value_count ? lister->region->values[value].producer : CLEAVE_INDEX_NONE;
      if (producer != CLEAVE_INDEX_NONE && lister->unit_of[producer] != frame->unit &&
          lister->states[lister->unit_of[producer]] != 2) {
        return lister->unit_of[producer];
      }
    }
    frame->node++;
    frame->input = 0;
  }
  return CLEAVE_INDEX_NONE;
}

static cleave_status_t order(lister_t *lister, cpu_unit_t *units, uint32_t *out_count,
                             cleave_message_t *message) {
  for (uint32_t n = 0; n < lister->region->node_count; n++) {
    uint32_t unit = lister->unit_of[n];
    const cpu_unit_t *self = &lister->units[unit];
    if (lister->states[unit] != 0 || self->nodes[self->count - 1] != n) {
      continue; /* a kernel runs where its last node stands, or before its first reader */
    }
    enter(lister, unit);
    while (lister->depth > 0) {
      frame_t *frame = &lister->frames[lister->depth - 1];
      uint32_t producer = next_producer(lister, frame);
      if (producer == CLEAVE_INDEX_NONE) {
        lister->states[frame->unit] = 2;
        units[(*out_count)++] = lister->units[frame->unit];
        lister->depth--;
      } else if (lister->states[producer] == 1) {
        return kernel_fail(message, CLEAVE_ERROR_INVALID_ARGUMENT, "fusions need each other's results");
      } else {
        enter(lister, producer);
      }
    }
  }
  return CLEAVE_OK;
}

cleave_status_t cpu_units_list(const cleave_region_view_t *region, kernel_arena_t *arena,
                               cpu_unit_t **out_units, uint32_t *out_count, cleave_message_t *message) {
  size_t count = (size_t)region->node_count + 1;
  lister_t lister = {.region = region,
                     .units = kernel_arena_allocate(arena, count, sizeof *lister.units),
                     .unit_of = kernel_arena_allocate(arena, count, sizeof *lister.unit_of),
                     .states = kernel_arena_allocate(arena, count, sizeof *lister.states),
                     .frames = kernel_arena_allocate(arena, count, sizeof *lister.frames)};
  uint32_t *own = kernel_arena_allocate(arena, count, sizeof *own);
  *out_units = kernel_arena_allocate(arena, count, sizeof **out_units);
  *out_count = 0;
  if (lister.units == NULL || lister.unit_of == NULL || lister.states == NULL || lister.frames == NULL ||
      own == NULL || *out_units == NULL) {
    return kernel_fail(message, CLEAVE_ERROR_OUT_OF_MEMORY, "no memory for the program");
  }
  for (uint32_t n = 0; n < region->node_count; n++) {
    own[n] = n;
    lister.unit_of[n] = n;
    lister.units[n] = (cpu_unit_t){.count = 1, .nodes = &own[n]};
  }
  for (uint32_t f = 0; f < region->fusion_count; f++) {
    const cleave_fusion_view_t *fusion = &region->fusions[f];
    if (!cpu_fused_says(region, f, "kernel")) {
      continue;
    }
    uint32_t unit = fusion->nodes[0];
    lister.units[unit] = (cpu_unit_t){.count = fusion->node_count,
                                      .nodes = fusion->nodes,
                                      .is_kernel = true,
                                      .fast_math = cpu_fused_says(region, f, "fast_math")};
    for (uint32_t k = 0; k < fusion->node_count; k++) {
      lister.unit_of[fusion->nodes[k]] = unit;
    }
  }
  return order(&lister, *out_units, out_count, message);
}
