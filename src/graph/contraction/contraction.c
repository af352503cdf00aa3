// SPDX-License-Identifier: Apache-2.0
// Groups are a union-find forest whose members form rings; the order over groups is a list that leaves gaps.
// A contraction moves only what its search found, and only on the side that was exhausted first. Invariant:
// along every edge between two groups labels increase.
// Long file: one data structure, and the search that keeps its invariant.

#include "graph/contraction/contraction.h"

#include <stdlib.h>
#include <string.h>

#include "base/containers/numbers.h"
#include "graph/order.h"

/* Marks of a group by a search hold 4 * search + one of these. */
enum { MARK_MEMBER = 0, MARK_FORWARD = 1, MARK_BACKWARD = 2, MARK_KINDS = 4 };

// ---- making ----

static cleave_status_t fill_edges(cleave_contraction_t *c, cleave_error_t *error) {
  const cleave_graph_t *graph = c->graph;
  size_t total = 0;
  for (uint32_t p = 0; p < c->node_count; p++) {
    c->producer_start[p] = (uint32_t)total;
    uint32_t inputs = cleave_node_input_count(graph, c->nodes[p]);
    for (uint32_t k = 0; k < inputs; k++) {
      cleave_value_t value = cleave_node_input(graph, c->nodes[p], k);
      if (!cleave_value_exists(value)) {
        continue;
      }
      cleave_node_t producer = cleave_value_producer(graph, value);
      if (cleave_node_exists(producer)) {
        c->user_start[c->positions[producer.index] + 1]++;
        total++;
      }
    }
  }
  if (total >= CLEAVE_INDEX_NONE) {
    return cleave_error_set(error, CLEAVE_ERROR_LIMIT, "graph has too many edges to contract");
  }
  c->producer_start[c->node_count] = (uint32_t)total;
  for (uint32_t p = 0; p < c->node_count; p++) {
    c->user_start[p + 1] += c->user_start[p];
  }
  c->producers = cleave_allocate(total + 1, sizeof *c->producers);
  c->users = cleave_allocate(total + 1, sizeof *c->users);
  CLEAVE_TRY_MEMORY(c->producers != NULL && c->users != NULL, error);
  for (uint32_t p = 0; p < c->node_count; p++) {
    uint32_t *producers = c->producers + c->producer_start[p];
    uint32_t inputs = cleave_node_input_count(graph, c->nodes[p]);
    for (uint32_t k = 0; k < inputs; k++) {
      cleave_value_t value = cleave_node_input(graph, c->nodes[p], k);
      if (cleave_value_exists(value) && cleave_node_exists(cleave_value_producer(graph, value))) {
        *producers++ = c->positions[cleave_value_producer(graph, value).index];
      }
    }
    uint32_t *users = c->users + c->user_start[p];
    uint32_t outputs = cleave_node_output_count(graph, c->nodes[p]);
    for (uint32_t k = 0; k < outputs; k++) {
      cleave_value_t value = cleave_node_output(graph, c->nodes[p], k);
      for (cleave_use_t use = cleave_value_first_use(graph, value); cleave_use_exists(use);
           use = cleave_use_next(graph, use)) {
        cleave_node_t user = cleave_use_node(graph, use);
        if (cleave_node_exists(user)) {
          *users++ = c->positions[user.index];
        }
      }
    }
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_contraction_create(const cleave_graph_t *graph, cleave_contraction_t **out_contraction,
                                          cleave_error_t *error) {
  cleave_status_t status = CLEAVE_OK;
  cleave_contraction_t *c = cleave_allocate_zeroed(1, sizeof *c);
  CLEAVE_TRY_MEMORY(c, error);
  uint32_t n = (uint32_t)graph->live_node_count;
  size_t slots = (size_t)n + 1;
  c->graph = graph;
  c->node_count = n;
  c->nodes = cleave_allocate(slots, sizeof *c->nodes);
  c->positions = cleave_allocate((size_t)cleave_graph_node_bound(graph) + 1, sizeof *c->positions);
  c->producer_start = cleave_allocate(slots, sizeof *c->producer_start);
  c->user_start = cleave_allocate_zeroed(slots, sizeof *c->user_start);
  c->next_member = cleave_allocate(slots, sizeof *c->next_member);
  c->sizes = cleave_allocate(slots, sizeof *c->sizes);
  c->parents = cleave_allocate(slots, sizeof *c->parents);
  c->marks = cleave_allocate_zeroed(slots, sizeof *c->marks);
  CLEAVE_TRY_MEMORY_CLEANUP(c->nodes != NULL && c->positions != NULL && c->producer_start != NULL &&
                                c->user_start != NULL && c->next_member != NULL && c->sizes != NULL &&
                                c->parents != NULL && c->marks != NULL,
                            error);
  CLEAVE_TRY_CLEANUP(cleave_graph_topological_order(graph, c->nodes, c->positions, error));
  CLEAVE_TRY_CLEANUP(fill_edges(c, error));
  CLEAVE_TRY_CLEANUP(cleave_order_list_init(&c->order, n, error));
  for (uint32_t p = 0; p <= n; p++) {
    c->next_member[p] = p;
    c->sizes[p] = 1;
    c->parents[p] = p;
  }
  *out_contraction = c;
  c = NULL;
cleanup:
  cleave_contraction_destroy(c);
  return status;
}

void cleave_contraction_destroy(cleave_contraction_t *c) {
  if (c == NULL) {
    return;
  }
  cleave_free(c->nodes);
  cleave_free(c->positions);
  cleave_free(c->producer_start);
  cleave_free(c->producers);
  cleave_free(c->user_start);
  cleave_free(c->users);
  cleave_free(c->next_member);
  cleave_free(c->sizes);
  cleave_free(c->parents);
  cleave_order_list_deinit(&c->order);
  cleave_free(c->marks);
  cleave_array_free(&c->roots);
  cleave_array_free(&c->forward);
  cleave_array_free(&c->backward);
  cleave_free(c);
}

// ---- groups ----

/* Joins the groups of two representatives; returns the new one. Does not touch the order. */
static uint32_t join(cleave_contraction_t *c, uint32_t a, uint32_t b) {
  if (c->sizes[a] < c->sizes[b]) {
    uint32_t swap = a;
    a = b;
    b = swap;
  }
  c->parents[b] = a;
  c->sizes[a] += c->sizes[b];
  uint32_t next = c->next_member[a];
  c->next_member[a] = c->next_member[b];
  c->next_member[b] = next;
  return a;
}

/* Joins all of `roots` at the place of `place`, one of them. */
static void join_at(cleave_contraction_t *c, const uint32_t *roots, size_t count, uint32_t place) {
  uint32_t root = roots[0];
  for (size_t k = 0; k < count; k++) {
    if (roots[k] != place) {
      cleave_order_list_remove(&c->order, roots[k]);
    }
  }
  for (size_t k = 1; k < count; k++) {
    root = join(c, root, roots[k]);
  }
  cleave_order_list_replace(&c->order, place, root);
}

static void start_search(cleave_contraction_t *c) {
  if (c->search >= UINT32_MAX / MARK_KINDS - 1) {
    memset(c->marks, 0, ((size_t)c->node_count + 1) * sizeof *c->marks);
    c->search = 0;
  }
  c->search++;
}

static uint32_t mark(const cleave_contraction_t *c, uint32_t kind) {
  return c->search * MARK_KINDS + kind;
}

// ---- the search ----

typedef struct side {
  bool is_forward;
  uint32_t *groups; /* the set's, then those found outside */
  size_t count;
  size_t capacity;
  size_t next;     /* group that is being expanded */
  uint32_t member; /* of that group, and */
  uint32_t edge;   /* edge of that member, to look at next */
  uint32_t edge_end;
} side_t;

static void side_enter_member(const cleave_contraction_t *c, side_t *side, uint32_t member) {
  const uint32_t *start = side->is_forward ? c->user_start : c->producer_start;
  side->member = member;
  side->edge = start[member];
  side->edge_end = start[member + 1];
}

/* Moves to the next member that has an edge left; false if the side is exhausted. */
static bool side_advance(const cleave_contraction_t *c, side_t *side) {
  while (side->edge == side->edge_end) {
    uint32_t member = c->next_member[side->member];
    if (member == side->groups[side->next]) {
      side->next++;
      if (side->next == side->count) {
        return false;
      }
      member = side->groups[side->next];
    }
    side_enter_member(c, side, member);
  }
  return true;
}

/* Looks at one edge. Sets *out_outside if it closes a path back into the set. */
static cleave_status_t side_step(cleave_contraction_t *c, side_t *side, size_t member_count, uint64_t limit,
                                 uint32_t *out_outside, cleave_error_t *error) {
  const uint32_t *edges = side->is_forward ? c->users : c->producers;
  uint32_t target = cleave_contraction_group(c, edges[side->edge++]);
  uint32_t found = c->marks[target];
  if (found == mark(c, MARK_MEMBER)) {
    if (side->next >= member_count) {
      *out_outside = side->member;
    }
    return CLEAVE_OK;
  }
  bool beyond = side->is_forward ? c->order.labels[target] > limit : c->order.labels[target] < limit;
  if (beyond || found == mark(c, side->is_forward ? MARK_FORWARD : MARK_BACKWARD)) {
    return CLEAVE_OK;
  }
  if (found == mark(c, side->is_forward ? MARK_BACKWARD : MARK_FORWARD)) {
    *out_outside = edges[side->edge - 1];
    return CLEAVE_OK;
  }
  c->marks[target] = mark(c, side->is_forward ? MARK_FORWARD : MARK_BACKWARD);
  if (side->count == side->capacity) {
    CLEAVE_TRY(cleave_array_grow((void **)&side->groups, &side->capacity, side->count + 1,
                                 sizeof *side->groups, error));
  }
  side->groups[side->count++] = target;
  return CLEAVE_OK;
}

typedef struct label_group {
  uint64_t label;
  uint32_t group;
} label_group_t;

static int compare_labels(const void *a, const void *b) {
  uint64_t x = ((const label_group_t *)a)->label;
  uint64_t y = ((const label_group_t *)b)->label;
  return (x > y) - (x < y);
}

static cleave_status_t sort_by_order(const cleave_contraction_t *c, uint32_t *groups, size_t count,
                                     cleave_error_t *error) {
  if (count < 2) {
    return CLEAVE_OK;
  }
  label_group_t *pairs = cleave_allocate(count, sizeof *pairs);
  CLEAVE_TRY_MEMORY(pairs, error);
  for (size_t k = 0; k < count; k++) {
    pairs[k] = (label_group_t){c->order.labels[groups[k]], groups[k]};
  }
  qsort(pairs, count, sizeof *pairs, compare_labels);
  for (size_t k = 0; k < count; k++) {
    groups[k] = pairs[k].group;
  }
  cleave_free(pairs);
  return CLEAVE_OK;
}

/* Collects the groups of a set in c->roots and marks them. */
static cleave_status_t collect_roots(cleave_contraction_t *c, const uint32_t *positions, uint32_t count,
                                     cleave_error_t *error) {
  start_search(c);
  c->roots.count = 0;
  CLEAVE_TRY(cleave_array_reserve(&c->roots, count, error));
  for (uint32_t k = 0; k < count; k++) {
    uint32_t root = cleave_contraction_group(c, positions[k]);
    if (c->marks[root] != mark(c, MARK_MEMBER)) {
      c->marks[root] = mark(c, MARK_MEMBER);
      cleave_array_push_reserved(&c->roots, root);
    }
  }
  return CLEAVE_OK;
}

/* Looks, in small sets, for the last entry and the first exit in the order. If the entry does not come after
 * the exit, the set can be contracted at the entry's place: what feeds it comes before, what it feeds after.
 */
static bool find_free_place(cleave_contraction_t *c, uint32_t low, size_t *steps, uint32_t *out_place) {
  const size_t small = 64;
  uint32_t entry = CLEAVE_INDEX_NONE;
  uint32_t exit = CLEAVE_INDEX_NONE;
  size_t members = 0;
  for (size_t k = 0; k < c->roots.count; k++) {
    members += c->sizes[c->roots.items[k]];
  }
  if (members > small + c->roots.count) {
    return false;
  }
  for (size_t k = 0; k < c->roots.count; k++) {
    uint32_t root = c->roots.items[k];
    bool enters = false;
    bool leaves = false;
    uint32_t member = root;
    do {
      for (uint32_t e = c->producer_start[member]; !enters && e < c->producer_start[member + 1];
           e++, ++*steps) {
        enters = c->marks[cleave_contraction_group(c, c->producers[e])] != mark(c, MARK_MEMBER);
      }
      for (uint32_t e = c->user_start[member]; !leaves && e < c->user_start[member + 1]; e++, ++*steps) {
        leaves = c->marks[cleave_contraction_group(c, c->users[e])] != mark(c, MARK_MEMBER);
      }
      member = c->next_member[member];
    } while (member != root);
    if (enters && (entry == CLEAVE_INDEX_NONE || c->order.labels[root] > c->order.labels[entry])) {
      entry = root;
    }
    if (leaves && (exit == CLEAVE_INDEX_NONE || c->order.labels[root] < c->order.labels[exit])) {
      exit = root;
    }
  }
  *out_place = entry != CLEAVE_INDEX_NONE ? entry : low;
  return entry == CLEAVE_INDEX_NONE || exit == CLEAVE_INDEX_NONE ||
         c->order.labels[entry] <= c->order.labels[exit];
}

/* The set in c->roots at the place of `place`; the `moved` groups that the search found go to its far side:
 * after it if they were found forwards, before it if backwards. */
static cleave_status_t contract_moving(cleave_contraction_t *c, uint32_t place, bool is_forward,
                                       uint32_t *moved, size_t moved_count, cleave_error_t *error) {
  CLEAVE_TRY(sort_by_order(c, moved, moved_count, error));
  for (size_t k = 0; k < moved_count; k++) {
    cleave_order_list_remove(&c->order, moved[k]);
  }
  join_at(c, c->roots.items, c->roots.count, place);
  uint32_t root = cleave_contraction_group(c, place);
  cleave_order_list_insert_after(&c->order, is_forward ? root : c->order.before[root], moved, moved_count);
  return CLEAVE_OK;
}

/* The roots that come first and last in the order. */
static void find_ends(const cleave_contraction_t *c, uint32_t *out_low, uint32_t *out_high) {
  *out_low = c->roots.items[0];
  *out_high = *out_low;
  for (size_t k = 1; k < c->roots.count; k++) {
    uint32_t root = c->roots.items[k];
    *out_low = c->order.labels[root] < c->order.labels[*out_low] ? root : *out_low;
    *out_high = c->order.labels[root] > c->order.labels[*out_high] ? root : *out_high;
  }
}

/* A side begins with the roots. */
static cleave_status_t side_begin(cleave_contraction_t *c, side_t *side, cleave_error_t *error) {
  size_t count = c->roots.count;
  if (side->capacity < count) {
    CLEAVE_TRY(
        cleave_array_grow((void **)&side->groups, &side->capacity, count, sizeof *side->groups, error));
  }
  memcpy(side->groups, c->roots.items, count * sizeof *c->roots.items);
  side->count = count;
  side_enter_member(c, side, side->groups[0]);
  return CLEAVE_OK;
}

static cleave_status_t search_set(cleave_contraction_t *c, const uint32_t *positions, uint32_t count,
                                  size_t step_limit, bool contract, cleave_contraction_result_t *result,
                                  cleave_error_t *error) {
  *result = (cleave_contraction_result_t){CLEAVE_CONTRACTION_DONE, CLEAVE_INDEX_NONE, 0};
  CLEAVE_TRY(collect_roots(c, positions, count, error));
  size_t root_count = c->roots.count;
  if (root_count < 2) {
    return CLEAVE_OK;
  }
  uint32_t low = 0;
  uint32_t high = 0;
  find_ends(c, &low, &high);
  uint32_t place = CLEAVE_INDEX_NONE;
  if (find_free_place(c, low, &result->steps, &place)) {
    if (contract) {
      join_at(c, c->roots.items, root_count, place);
    }
    return CLEAVE_OK;
  }

  cleave_status_t status = CLEAVE_OK;
  side_t sides[2] = {{.is_forward = true, .groups = c->forward.items, .capacity = c->forward.capacity},
                     {.is_forward = false, .groups = c->backward.items, .capacity = c->backward.capacity}};
  for (int s = 0; s < 2; s++) {
    CLEAVE_TRY_CLEANUP(side_begin(c, &sides[s], error));
  }
  uint64_t limits[2] = {c->order.labels[high], c->order.labels[low]};
  for (int s = 0;; s ^= 1) {
    if (!side_advance(c, &sides[s])) {
      if (contract) {
        CLEAVE_TRY_CLEANUP(contract_moving(c, s == 0 ? high : low, s == 0, sides[s].groups + root_count,
                                           sides[s].count - root_count, error));
      }
      break;
    }
    if (result->steps >= step_limit) {
      result->outcome = CLEAVE_CONTRACTION_LIMIT;
      break;
    }
    result->steps++;
    CLEAVE_TRY_CLEANUP(side_step(c, &sides[s], root_count, limits[s], &result->outside, error));
    if (result->outside != CLEAVE_INDEX_NONE) {
      result->outcome = CLEAVE_CONTRACTION_CYCLE;
      break;
    }
  }
cleanup:
  c->forward.items = sides[0].groups;
  c->forward.capacity = sides[0].capacity;
  c->backward.items = sides[1].groups;
  c->backward.capacity = sides[1].capacity;
  return status;
}

cleave_status_t cleave_contraction_contract(cleave_contraction_t *contraction, const uint32_t *positions,
                                            uint32_t count, size_t step_limit,
                                            cleave_contraction_result_t *result, cleave_error_t *error) {
  return search_set(contraction, positions, count, step_limit, true, result, error);
}

cleave_status_t cleave_contraction_check(cleave_contraction_t *contraction, const uint32_t *positions,
                                         uint32_t count, size_t step_limit,
                                         cleave_contraction_result_t *result, cleave_error_t *error) {
  return search_set(contraction, positions, count, step_limit, false, result, error);
}

// ---- whole levels, and back ----

cleave_status_t cleave_contraction_contract_levels(cleave_contraction_t *c, const uint32_t *levels,
                                                   const bool *joins, cleave_error_t *error) {
  uint32_t n = c->node_count;
  size_t level_count = 0;
  uint32_t group_count = 0;
  for (uint32_t g = c->order.after[n]; g != n; g = c->order.after[g]) {
    level_count = levels[g] >= level_count ? (size_t)levels[g] + 1 : level_count;
    group_count++;
  }
  if (group_count == 0) {
    return CLEAVE_OK;
  }
  uint32_t *starts = cleave_allocate_zeroed(level_count + 1, sizeof *starts);
  uint32_t *sorted = cleave_allocate(group_count, sizeof *sorted);
  if (starts == NULL || sorted == NULL) {
    cleave_free(starts);
    cleave_free(sorted);
    return cleave_error_out_of_memory(error);
  }
  // Sorts by level, and keeps the old order within each.
  for (uint32_t g = c->order.after[n]; g != n; g = c->order.after[g]) {
    starts[levels[g] + 1]++;
  }
  for (size_t l = 0; l < level_count; l++) {
    starts[l + 1] += starts[l];
  }
  for (uint32_t g = c->order.after[n]; g != n; g = c->order.after[g]) {
    sorted[starts[levels[g]]++] = g;
  }
  // The representative of joined groups is one of theirs, so `levels` and `joins` stay right for it.
  for (uint32_t p = 0; p < n; p++) {
    uint32_t group = cleave_contraction_group(c, p);
    if (!joins[group]) {
      continue;
    }
    for (uint32_t e = c->producer_start[p]; e < c->producer_start[p + 1]; e++) {
      uint32_t other = cleave_contraction_group(c, c->producers[e]);
      if (other != group && joins[other] && levels[other] == levels[group]) {
        group = join(c, group, other);
      }
    }
  }
  // A group stands where its first part stood.
  start_search(c);
  cleave_order_list_start(&c->order, group_count);
  for (uint32_t k = 0; k < group_count; k++) {
    uint32_t group = cleave_contraction_group(c, sorted[k]);
    if (c->marks[group] != mark(c, MARK_MEMBER)) {
      c->marks[group] = mark(c, MARK_MEMBER);
      cleave_order_list_append(&c->order, group);
    }
  }
  cleave_free(starts);
  cleave_free(sorted);
  return CLEAVE_OK;
}

cleave_status_t cleave_contraction_dissolve(cleave_contraction_t *c, uint32_t position,
                                            cleave_error_t *error) {
  uint32_t root = cleave_contraction_group(c, position);
  uint32_t size = c->sizes[root];
  if (size < 2) {
    return CLEAVE_OK;
  }
  c->roots.count = 0;
  CLEAVE_TRY(cleave_array_reserve(&c->roots, size, error));
  uint32_t member = root;
  do {
    cleave_array_push_reserved(&c->roots, member);
    member = c->next_member[member];
  } while (member != root);
  qsort(c->roots.items, size, sizeof *c->roots.items, cleave_compare_u32);
  uint32_t before = c->order.before[root];
  cleave_order_list_remove(&c->order, root);
  for (uint32_t k = 0; k < size; k++) {
    member = c->roots.items[k];
    c->parents[member] = member;
    c->next_member[member] = member;
    c->sizes[member] = 1;
  }
  cleave_order_list_insert_after(&c->order, before, c->roots.items, size);
  return CLEAVE_OK;
}
