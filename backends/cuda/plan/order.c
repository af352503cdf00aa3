// SPDX-License-Identifier: Apache-2.0
// The order in which a region is done: each unit comes behind what it reads. A unit is a fusion, or a node
// that is in none. It is done at the first of its nodes where all that it reads is made, or else as soon as
// that is so.
#include "plan.h"

enum { NO_EDGE = UINT32_MAX };

/* A unit that reads what another one makes. */
typedef struct edge {
  uint32_t reader;
  uint32_t next; /* of the same maker, or NO_EDGE */
} edge_t;

typedef struct walk {
  const cleave_region_view_t *region;
  uint32_t at;     /* the node that the walk has come to */
  bool *is_done;   /* per unit, as all that follow */
  uint32_t *waits; /* inputs from others that are not made yet */
  uint32_t *last;  /* its last node */
  uint32_t *first; /* edge */
  edge_t *edges;
  uint32_t *late; /* units that were still waiting at their last node */
  uint32_t late_count;
  uint32_t *order;
  uint32_t count;
} walk_t;

static uint32_t unit_of(const cleave_region_view_t *region, uint32_t node) {
  uint32_t fusion = region->nodes[node].fusion;
  return fusion < region->fusion_count ? fusion : region->fusion_count + node;
}

static cleave_status_t prepare(cuda_plan_t *plan, walk_t *walk, kernel_arena_t *arena) {
  const cleave_region_view_t *region = plan->region;
  size_t units = (size_t)region->fusion_count + region->node_count;
  size_t edges = 0;
  for (uint32_t n = 0; n < region->node_count; n++) {
    edges += region->nodes[n].input_count;
  }
  walk->order = cuda_plan_allocate(plan, units, sizeof *walk->order);
  walk->is_done = kernel_arena_allocate(arena, units, sizeof *walk->is_done);
  walk->waits = kernel_arena_allocate(arena, units, 4 * sizeof *walk->waits);
  walk->edges = kernel_arena_allocate(arena, edges, sizeof *walk->edges);
  if (walk->order == NULL || walk->is_done == NULL || walk->waits == NULL || walk->edges == NULL) {
    return cuda_plan_no_memory(plan);
  }
  walk->last = walk->waits + units;
  walk->first = walk->last + units;
  walk->late = walk->first + units;
  for (size_t u = 0; u < units; u++) {
    walk->first[u] = NO_EDGE;
  }
  return CLEAVE_OK;
}

/* Goes from the last node on, so that edges are in the order of their readers. */
static void find_edges(walk_t *walk) {
  const cleave_region_view_t *region = walk->region;
  uint32_t count = 0;
  for (uint32_t n = region->node_count; n-- > 0;) {
    const cleave_node_view_t *node = &region->nodes[n];
    uint32_t reader = unit_of(region, n);
    walk->last[reader] = n > walk->last[reader] ? n : walk->last[reader];
    for (uint32_t i = 0; i < node->input_count; i++) {
      uint32_t value = node->inputs[i];
      uint32_t producer = value == CLEAVE_INDEX_NONE ? CLEAVE_INDEX_NONE : region->values[value].producer;
      uint32_t maker = producer == CLEAVE_INDEX_NONE ? reader : unit_of(region, producer);
      if (maker != reader) {
        walk->waits[reader]++;
        walk->edges[count] = (edge_t){.reader = reader, .next = walk->first[maker]};
        walk->first[maker] = count++;
      }
    }
  }
}

static void do_unit(walk_t *walk, uint32_t unit) {
  walk->order[walk->count++] = unit;
  walk->is_done[unit] = true;
  for (uint32_t e = walk->first[unit]; e != NO_EDGE; e = walk->edges[e].next) {
    uint32_t reader = walk->edges[e].reader;
    walk->waits[reader]--;
    if (walk->waits[reader] == 0 && walk->last[reader] <= walk->at) {
      walk->late[walk->late_count++] = reader;
    }
  }
}

static void do_all(walk_t *walk) {
  uint32_t late = 0;
  for (walk->at = 0; walk->at < walk->region->node_count; walk->at++) {
    uint32_t unit = unit_of(walk->region, walk->at);
    if (!walk->is_done[unit] && walk->waits[unit] == 0) {
      do_unit(walk, unit);
    }
    while (late < walk->late_count) {
      do_unit(walk, walk->late[late++]);
    }
  }
}

cleave_status_t cuda_plan_order(cuda_plan_t *plan, const uint32_t **out_units, uint32_t *out_count) {
  kernel_arena_t arena = {0};
  walk_t walk = {.region = plan->region};
  cleave_status_t status = prepare(plan, &walk, &arena);
  if (status == CLEAVE_OK) {
    find_edges(&walk);
    do_all(&walk);
  }
  for (uint32_t n = 0; n < plan->region->node_count && status == CLEAVE_OK; n++) {
    if (!walk.is_done[unit_of(plan->region, n)]) {
      status = cuda_fail(plan->message, CLEAVE_ERROR_INVALID_ARGUMENT, CLEAVE_REASON_NONE,
                         "the region has a cycle through node %u", (unsigned)n);
    }
  }
  kernel_arena_free(&arena);
  *out_units = walk.order;
  *out_count = walk.count;
  return status;
}
