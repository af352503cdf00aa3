// SPDX-License-Identifier: Apache-2.0
// Workspace offsets by lifetime. Buffers are placed from the largest to the smallest, each into the smallest
// gap between those already placed that are alive at the same time ("greedy by size"). Buffers that a step
// only reaches through another buffer do not exist: views share the buffer they look into.
#include "onednn/program/memory_plan.h"

#include <stdlib.h>

typedef struct placement {
  uint32_t buffer;
  size_t bytes;
  size_t offset;
  uint32_t first;
  uint32_t last;
} placement_t;

static int larger_first(const void *left, const void *right) {
  const placement_t *a = left;
  const placement_t *b = right;
  if (a->bytes != b->bytes) {
    return a->bytes > b->bytes ? -1 : 1;
  }
  return a->buffer < b->buffer ? -1 : 1;
}

// Placed items overlapping `item` in time, kept sorted by offset in `near`.
static size_t find_offset(const placement_t *placed, const uint32_t *by_offset, uint32_t count,
                          const placement_t *item) {
  size_t best = SIZE_MAX;
  size_t best_gap = SIZE_MAX;
  size_t end = 0;
  for (uint32_t k = 0; k < count; k++) {
    const placement_t *other = &placed[by_offset[k]];
    if (other->last < item->first || other->first > item->last) {
      continue;
    }
    if (other->offset > end && other->offset - end >= item->bytes && other->offset - end < best_gap) {
      best = end;
      best_gap = other->offset - end;
    }
    if (other->offset + other->bytes > end) {
      end = other->offset + other->bytes;
    }
  }
  return best != SIZE_MAX ? best : end;
}

static void insert_by_offset(const placement_t *placed, uint32_t *by_offset, uint32_t count, uint32_t item) {
  uint32_t at = count;
  while (at > 0 && placed[by_offset[at - 1]].offset > placed[item].offset) {
    by_offset[at] = by_offset[at - 1];
    at--;
  }
  by_offset[at] = item;
}

cleave_status_t onednn_plan_memory(onednn_plan_t *plan, size_t *bytes) {
  placement_t *placed = kernel_arena_allocate(plan->arena, plan->buffer_count, sizeof(placement_t));
  uint32_t *by_offset = kernel_arena_allocate(plan->arena, plan->buffer_count, sizeof(uint32_t));
  uint32_t count = 0;
  *bytes = 0;
  if (placed == NULL || by_offset == NULL) {
    return kernel_fail(plan->message, CLEAVE_ERROR_OUT_OF_MEMORY, "out of memory while planning memory");
  }
  for (uint32_t b = 0; b < plan->buffer_count; b++) {
    const onednn_buffer_t *buffer = &plan->buffers[b];
    if (buffer->place != ONEDNN_WORKSPACE || buffer->first_step == CLEAVE_INDEX_NONE || buffer->bytes == 0) {
      continue;
    }
    bool shared = b == plan->scratchpad;
    placed[count++] = (placement_t){.buffer = b,
                                    .bytes = onednn_round_up(buffer->bytes),
                                    .offset = 0,
                                    .first = shared ? 0 : buffer->first_step,
                                    .last = shared ? plan->step_count : buffer->last_step};
  }
  if (count > 0) {
    qsort(placed, count, sizeof(placement_t), larger_first);
  }
  for (uint32_t k = 0; k < count; k++) {
    size_t end = 0;
    placed[k].offset = find_offset(placed, by_offset, k, &placed[k]);
    insert_by_offset(placed, by_offset, k, k);
    plan->buffers[placed[k].buffer].offset = placed[k].offset;
    if (!onednn_add(placed[k].offset, placed[k].bytes, &end)) {
      return kernel_fail(plan->message, CLEAVE_ERROR_LIMIT, "region '%s': its workspace is too large",
                         plan->region->name);
    }
    *bytes = end > *bytes ? end : *bytes;
  }
  return CLEAVE_OK;
}
