// SPDX-License-Identifier: Apache-2.0
// The end of a plan: memory. The workspace is shared out by lifetimes. Slots are placed from the largest to
// the smallest, each at the lowest offset where it meets none of those placed that live at the same time;
// that is close to the least that any order can need. If very many live together, looking at all pairs
// would take too long: then steps are walked in order, and each slot takes the lowest free range.
#include <stdlib.h>

#include "plan.h"
#include "space.h"

enum { NONE = UINT32_MAX, MOST_PAIRS = 64 /* per slot, on average */ };

/* A slot that lives at the same time and is placed before. */
typedef struct pair {
  uint32_t other;
  uint32_t next; /* of the same slot, or NONE */
} pair_t;

typedef struct extent {
  int64_t begin;
  int64_t end;
} extent_t;

typedef struct sized {
  int64_t bytes;
  uint32_t slot;
} sized_t;

typedef struct sharing {
  cuda_plan_t *plan;
  kernel_arena_t arena;
  uint32_t *first; /* chains of slots, per step: those that it is the first step of, and the last */
  uint32_t *last;
  uint32_t *next_first; /* per slot */
  uint32_t *next_last;
  uint32_t count; /* slots with memory */
  uint64_t pairs; /* of slots that live together */
} sharing_t;

static bool has_memory(const cuda_slot_t *slot) {
  return slot->kind == CUDA_SLOT_MEMORY && slot->first != UINT32_MAX && slot->bytes > 0;
}

static int64_t bytes_of(const sharing_t *self, uint32_t slot) {
  return cuda_round_up(self->plan->slots[slot].bytes);
}

static cleave_status_t link_slots(sharing_t *self) {
  cuda_plan_t *plan = self->plan;
  size_t steps = plan->step_count;
  self->first = kernel_arena_allocate(&self->arena, plan->slot_count + steps, 2 * sizeof *self->first);
  if (self->first == NULL) {
    return cuda_plan_no_memory(plan);
  }
  self->last = self->first + steps;
  self->next_first = self->last + steps;
  self->next_last = self->next_first + plan->slot_count;
  for (size_t s = 0; s < 2 * steps; s++) {
    self->first[s] = NONE;
  }
  for (uint32_t k = plan->slot_count; k-- > 0;) {
    const cuda_slot_t *slot = &plan->slots[k];
    if (has_memory(slot)) {
      self->next_first[k] = self->first[slot->first];
      self->first[slot->first] = k;
      self->next_last[k] = self->last[slot->last];
      self->last[slot->last] = k;
      self->count++;
    }
  }
  return CLEAVE_OK;
}

static void count_pairs(sharing_t *self) {
  uint64_t live = 0;
  for (uint32_t s = 0; s < self->plan->step_count; s++) {
    for (uint32_t k = self->first[s]; k != NONE; k = self->next_first[k]) {
      self->pairs += live++;
    }
    for (uint32_t k = self->last[s]; k != NONE; k = self->next_last[k]) {
      live--;
    }
  }
}

/* ---- in the order of steps ---- */

static cleave_status_t share_by_step(sharing_t *self) {
  cuda_plan_t *plan = self->plan;
  cuda_space_t space = {.root = CUDA_NO_RANGE};
  space.ranges = kernel_arena_allocate(&self->arena, self->count, 2 * sizeof *space.ranges);
  if (space.ranges == NULL) {
    return cuda_plan_no_memory(plan);
  }
  for (uint32_t s = 0; s < plan->step_count; s++) {
    for (uint32_t k = self->first[s]; k != NONE; k = self->next_first[k]) {
      plan->slots[k].offset = cuda_space_take(&space, bytes_of(self, k));
    }
    for (uint32_t k = self->last[s]; k != NONE; k = self->next_last[k]) {
      cuda_space_give(&space, plan->slots[k].offset, bytes_of(self, k));
    }
  }
  plan->workspace_bytes = space.end;
  return CLEAVE_OK;
}

/* ---- in the order of sizes ---- */

typedef struct by_size {
  sized_t *order;
  uint32_t *rank;  /* per slot: its place in the order */
  uint32_t *pairs; /* per slot: the first one */
  uint32_t *live;  /* slots */
  uint32_t *place; /* per slot: where it is in `live` */
  pair_t *all;
  extent_t *taken;
} by_size_t;

static cleave_status_t prepare(sharing_t *self, by_size_t *out) {
  size_t slots = self->plan->slot_count;
  out->order = kernel_arena_allocate(&self->arena, self->count, sizeof *out->order);
  out->rank = kernel_arena_allocate(&self->arena, slots, 4 * sizeof *out->rank);
  out->all = kernel_arena_allocate(&self->arena, (size_t)self->pairs, sizeof *out->all);
  out->taken = kernel_arena_allocate(&self->arena, self->count, sizeof *out->taken);
  if (out->order == NULL || out->rank == NULL || out->all == NULL || out->taken == NULL) {
    return cuda_plan_no_memory(self->plan);
  }
  out->pairs = out->rank + slots;
  out->live = out->pairs + slots;
  out->place = out->live + slots;
  return CLEAVE_OK;
}

static int larger_first(const void *left, const void *right) {
  const sized_t *a = left;
  const sized_t *b = right;
  if (a->bytes != b->bytes) {
    return a->bytes > b->bytes ? -1 : 1;
  }
  return a->slot < b->slot ? -1 : 1;
}

static void sort_slots(const sharing_t *self, by_size_t *sizes) {
  uint32_t count = 0;
  for (uint32_t k = 0; k < self->plan->slot_count; k++) {
    if (has_memory(&self->plan->slots[k])) {
      sizes->order[count++] = (sized_t){bytes_of(self, k), k};
    }
  }
  if (count > 0) {
    qsort(sizes->order, count, sizeof *sizes->order, larger_first);
  }
  for (uint32_t k = 0; k < count; k++) {
    sizes->rank[sizes->order[k].slot] = k;
    sizes->pairs[sizes->order[k].slot] = NONE;
  }
}

/* A pair belongs to the slot that is placed later. */
static void find_pairs(const sharing_t *self, by_size_t *sizes) {
  uint32_t count = 0;
  uint32_t live = 0;
  for (uint32_t s = 0; s < self->plan->step_count; s++) {
    for (uint32_t k = self->first[s]; k != NONE; k = self->next_first[k]) {
      for (uint32_t l = 0; l < live; l++) {
        uint32_t other = sizes->live[l];
        bool is_later = sizes->rank[k] > sizes->rank[other];
        uint32_t slot = is_later ? k : other;
        sizes->all[count] = (pair_t){.other = is_later ? other : k, .next = sizes->pairs[slot]};
        sizes->pairs[slot] = count++;
      }
      sizes->place[k] = live;
      sizes->live[live++] = k;
    }
    for (uint32_t k = self->last[s]; k != NONE; k = self->next_last[k]) {
      uint32_t moved = sizes->live[--live];
      sizes->live[sizes->place[k]] = moved;
      sizes->place[moved] = sizes->place[k];
    }
  }
}

static int lower_first(const void *left, const void *right) {
  const extent_t *a = left;
  const extent_t *b = right;
  return a->begin != b->begin ? (a->begin < b->begin ? -1 : 1) : (a->end > b->end) - (a->end < b->end);
}

/* The lowest offset at which the slot meets none of those that are placed. */
static int64_t find_offset(const sharing_t *self, const by_size_t *sizes, sized_t own) {
  uint32_t count = 0;
  int64_t offset = 0;
  for (uint32_t k = sizes->pairs[own.slot]; k != NONE; k = sizes->all[k].next) {
    int64_t begin = self->plan->slots[sizes->all[k].other].offset;
    sizes->taken[count++] = (extent_t){begin, begin + bytes_of(self, sizes->all[k].other)};
  }
  if (count > 0) {
    qsort(sizes->taken, count, sizeof *sizes->taken, lower_first);
  }
  for (uint32_t k = 0; k < count && sizes->taken[k].begin - offset < own.bytes; k++) {
    offset = sizes->taken[k].end > offset ? sizes->taken[k].end : offset;
  }
  return offset;
}

static cleave_status_t share_by_size(sharing_t *self) {
  by_size_t sizes = {0};
  CUDA_TRY(prepare(self, &sizes));
  sort_slots(self, &sizes);
  find_pairs(self, &sizes);
  self->plan->workspace_bytes = 0;
  for (uint32_t k = 0; k < self->count; k++) {
    int64_t offset = find_offset(self, &sizes, sizes.order[k]);
    int64_t end = offset + sizes.order[k].bytes;
    self->plan->slots[sizes.order[k].slot].offset = offset;
    self->plan->workspace_bytes = end > self->plan->workspace_bytes ? end : self->plan->workspace_bytes;
  }
  return CLEAVE_OK;
}

cleave_status_t cuda_plan_share_memory(cuda_plan_t *plan) {
  sharing_t self = {.plan = plan};
  cleave_status_t status = link_slots(&self);
  if (status == CLEAVE_OK) {
    count_pairs(&self);
    bool has_few = self.pairs <= (uint64_t)self.count * MOST_PAIRS;
    status = has_few ? share_by_size(&self) : share_by_step(&self);
  }
  kernel_arena_free(&self.arena);
  return status;
}

/* ---- the end of a plan ---- */

/* Outputs that are the same value twice, constants or inputs. */
static cleave_status_t finish_outputs(cuda_plan_t *plan) {
  for (uint32_t k = 0; k < plan->region->output_count; k++) {
    uint32_t value = plan->region->outputs[k];
    const cuda_slot_t *slot = &plan->slots[value];
    bool is_made = slot->kind == CUDA_SLOT_OUTPUT && slot->index == k;
    if (!is_made) {
      return cuda_fail(plan->message, CLEAVE_ERROR_UNSUPPORTED, CLEAVE_REASON_NONE,
                       "output '%.100s' is an input or a constant", plan->region->values[value].name);
    }
  }
  return CLEAVE_OK;
}

cleave_status_t cuda_plan_finish(cuda_plan_t *plan) {
  CUDA_TRY(finish_outputs(plan));
  for (uint32_t k = 0; k < plan->slot_count; k++) {
    cuda_slot_t *slot = &plan->slots[k];
    if (slot->kind == CUDA_SLOT_CONSTANT && slot->is_used) {
      slot->offset = plan->constant_bytes;
      plan->constant_bytes += cuda_round_up(slot->bytes);
    }
  }
  return cuda_plan_share_memory(plan);
}
