// SPDX-License-Identifier: Apache-2.0
// Splits a chosen set of units into connected groups that close no cycle. Only nodes between the first and
// the last unit of the set are visited.

#include <stdlib.h>
#include <string.h>

#include "base/containers/numbers.h"
#include "partition/grow/partitioner.h"

typedef struct placed {
  uint64_t label; /* in the contraction's order */
  uint32_t group;
} placed_t;

typedef struct splitter {
  cleave_partitioner_t *partitioner;
  uint32_t rule_index;
  CLEAVE_ARRAY(uint32_t) groups;
  CLEAVE_ARRAY(placed_t)
  window;                      /* groups of the part first, then those on paths that leave it and come
                                  back */
  size_t part_count;           /* of the window's */
  uint64_t middle;             /* a label: the last of the lower half */
  CLEAVE_ARRAY(uint32_t) ends; /* of edges over the middle, two by two */
} splitter_t;

static cleave_status_t prepare(cleave_partitioner_t *partitioner, cleave_error_t *error) {
  if (partitioner->set_marks != NULL) {
    return CLEAVE_OK;
  }
  size_t n = (size_t)partitioner->contraction->node_count + 1;
  cleave_free(partitioner->set_numbers);
  cleave_free(partitioner->set_parents);
  cleave_free(partitioner->set_levels);
  partitioner->set_numbers = cleave_allocate(n, sizeof *partitioner->set_numbers);
  partitioner->set_parents = cleave_allocate(n, sizeof *partitioner->set_parents);
  partitioner->set_levels = cleave_allocate(n, sizeof *partitioner->set_levels);
  partitioner->set_marks = cleave_allocate_zeroed(n, sizeof *partitioner->set_marks);
  if (partitioner->set_numbers == NULL || partitioner->set_parents == NULL ||
      partitioner->set_levels == NULL || partitioner->set_marks == NULL) {
    cleave_free(partitioner->set_marks);
    partitioner->set_marks = NULL;
    return cleave_error_out_of_memory(error);
  }
  for (size_t k = 0; k < n; k++) {
    partitioner->set_numbers[k] = CLEAVE_GROUP_NONE;
  }
  return CLEAVE_OK;
}

/* The smaller root stays the root, so that a part is named by its first position. */
static void unite(uint32_t *parents, uint32_t a, uint32_t b) {
  a = cleave_find_root(parents, a);
  b = cleave_find_root(parents, b);
  if (a < b) {
    parents[b] = a;
  } else {
    parents[a] = b;
  }
}

/* Unites positions of the set that are neighbours: all of them, or those of equal level only. */
static void tie_parts(cleave_partitioner_t *partitioner, const uint32_t *positions, uint32_t count,
                      bool by_level) {
  const cleave_contraction_t *c = partitioner->contraction;
  const uint32_t *levels = partitioner->set_levels;
  uint32_t *parents = partitioner->set_parents;
  for (uint32_t k = 0; k < count; k++) {
    parents[positions[k]] = positions[k];
  }
  for (uint32_t k = 0; k < count; k++) {
    uint32_t group = cleave_contraction_group(c, positions[k]);
    unite(parents, positions[k], group);
    for (uint32_t e = c->producer_start[positions[k]]; e < c->producer_start[positions[k] + 1]; e++) {
      uint32_t producer = c->producers[e];
      if (partitioner->set_numbers[producer] == 0 &&
          (!by_level || levels[cleave_contraction_group(c, producer)] == levels[group])) {
        unite(parents, positions[k], producer);
      }
    }
  }
}

static int compare_parts(const void *a, const void *b) {
  const placed_t *x = a;
  const placed_t *y = b;
  return x->label != y->label ? (x->label > y->label) - (x->label < y->label)
                              : (x->group > y->group) - (x->group < y->group);
}

/* Calls `each` with the positions of every part, parts in order of their first position. */
static cleave_status_t for_each_part(splitter_t *splitter, const uint32_t *positions, uint32_t count,
                                     cleave_status_t (*each)(splitter_t *, const uint32_t *, uint32_t,
                                                             cleave_error_t *),
                                     cleave_error_t *error) {
  cleave_status_t status = CLEAVE_OK;
  placed_t *sorted = cleave_allocate(count, sizeof *sorted);
  uint32_t *part = cleave_allocate(count, sizeof *part);
  CLEAVE_TRY_MEMORY_CLEANUP(sorted != NULL && part != NULL, error);
  for (uint32_t k = 0; k < count; k++) {
    sorted[k] = (placed_t){cleave_find_root(splitter->partitioner->set_parents, positions[k]), positions[k]};
  }
  qsort(sorted, count, sizeof *sorted, compare_parts);
  for (uint32_t k = 0; k < count;) {
    uint64_t root = sorted[k].label;
    uint32_t size = 0;
    while (k < count && sorted[k].label == root) {
      part[size++] = sorted[k++].group;
    }
    CLEAVE_TRY_CLEANUP(each(splitter, part, size, error));
  }
cleanup:
  cleave_free(sorted);
  cleave_free(part);
  return status;
}

static void use_steps(cleave_partitioner_t *partitioner, size_t steps) {
  partitioner->split_steps_left -=
      steps < partitioner->split_steps_left ? steps : partitioner->split_steps_left;
}

/* The split of a part knows nothing about a group, or has a mark this much above split_count: */
enum {
  REACHED = 1 /* from the part or towards it, in one half of its span */,
  BETWEEN = 2 /* on a path back */
};

static cleave_status_t mark(splitter_t *splitter, uint32_t group, uint32_t what, cleave_error_t *error) {
  cleave_partitioner_t *partitioner = splitter->partitioner;
  partitioner->set_marks[group] = partitioner->split_count + what;
  placed_t placed = {cleave_contraction_label(partitioner->contraction, group), group};
  CLEAVE_ARRAY_PUSH(&splitter->window, placed, error);
  return CLEAVE_OK;
}

static bool is_marked(const cleave_partitioner_t *partitioner, uint32_t group) {
  return partitioner->set_marks[group] > partitioner->split_count;
}

static void begin_marks(cleave_partitioner_t *partitioner) {
  if (partitioner->split_count >= UINT32_MAX - 2 * BETWEEN) {
    memset(partitioner->set_marks, 0,
           (size_t)partitioner->contraction->node_count * sizeof *partitioner->set_marks);
    partitioner->split_count = 0;
  }
  partitioner->split_count += BETWEEN;
}

/* The part's groups, marked; splitter->middle halves their span. */
static cleave_status_t mark_part(splitter_t *splitter, const uint32_t *positions, uint32_t count,
                                 cleave_error_t *error) {
  const cleave_contraction_t *c = splitter->partitioner->contraction;
  uint64_t first = UINT64_MAX;
  uint64_t last = 0;
  splitter->window.count = 0;
  for (uint32_t k = 0; k < count; k++) {
    uint32_t group = cleave_contraction_group(c, positions[k]);
    uint64_t label = cleave_contraction_label(c, group);
    first = label < first ? label : first;
    last = label > last ? label : last;
    if (!is_marked(splitter->partitioner, group)) {
      CLEAVE_TRY(mark(splitter, group, REACHED, error));
    }
  }
  splitter->part_count = splitter->window.count;
  splitter->middle = first + (last - first) / 2;
  return CLEAVE_OK;
}

/* Marks what leads to the group within the upper half. */
static cleave_status_t reach_backwards(splitter_t *splitter, uint32_t group, cleave_error_t *error) {
  cleave_partitioner_t *partitioner = splitter->partitioner;
  const cleave_contraction_t *c = partitioner->contraction;
  uint32_t member = group;
  do {
    use_steps(partitioner, c->producer_start[member + 1] - c->producer_start[member]);
    for (uint32_t e = c->producer_start[member]; e < c->producer_start[member + 1]; e++) {
      uint32_t producer = cleave_contraction_group(c, c->producers[e]);
      if (!is_marked(partitioner, producer) && cleave_contraction_label(c, producer) > splitter->middle) {
        CLEAVE_TRY(mark(splitter, producer, REACHED, error));
      }
    }
    member = c->next_member[member];
  } while (member != group);
  return CLEAVE_OK;
}

/* Marks what the group leads to within the lower half. Edges to groups that the upper half has marked are
 * paths back: their ends go to splitter->ends. */
static cleave_status_t reach_forwards(splitter_t *splitter, uint32_t group, cleave_error_t *error) {
  cleave_partitioner_t *partitioner = splitter->partitioner;
  const cleave_contraction_t *c = partitioner->contraction;
  uint32_t member = group;
  do {
    use_steps(partitioner, c->user_start[member + 1] - c->user_start[member]);
    for (uint32_t e = c->user_start[member]; e < c->user_start[member + 1]; e++) {
      uint32_t user = cleave_contraction_group(c, c->users[e]);
      bool is_lower = cleave_contraction_label(c, user) <= splitter->middle;
      if (is_lower && !is_marked(partitioner, user)) {
        CLEAVE_TRY(mark(splitter, user, REACHED, error));
      } else if (!is_lower && is_marked(partitioner, user)) {
        CLEAVE_ARRAY_PUSH(&splitter->ends, group, error);
        CLEAVE_ARRAY_PUSH(&splitter->ends, user, error);
      }
    }
    member = c->next_member[member];
  } while (member != group);
  return CLEAVE_OK;
}

/* Marks what the part reaches in the lower half of its span, and what reaches it in the upper half. Every
 * path from the part back to it lies in these two sets, which are much smaller than what the part reaches
 * over the whole span. */
static cleave_status_t reach(splitter_t *splitter, cleave_error_t *error) {
  splitter->ends.count = 0;
  for (size_t k = 0; k < splitter->window.count; k++) {
    if (splitter->window.items[k].label > splitter->middle) {
      CLEAVE_TRY(reach_backwards(splitter, splitter->window.items[k].group, error));
    }
  }
  for (size_t k = 0; k < splitter->window.count; k++) {
    if (splitter->window.items[k].label <= splitter->middle) {
      CLEAVE_TRY(reach_forwards(splitter, splitter->window.items[k].group, error));
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t mark_between(splitter_t *splitter, uint32_t group, cleave_error_t *error) {
  cleave_partitioner_t *partitioner = splitter->partitioner;
  return partitioner->set_marks[group] == partitioner->split_count + REACHED
             ? mark(splitter, group, BETWEEN, error)
             : CLEAVE_OK;
}

/* Leaves in the window what lies on paths from the part back to it, in order: found from the part and from
 * the edges over the middle, against the edges in the lower half and along them in the upper half. */
static cleave_status_t narrow(splitter_t *splitter, cleave_error_t *error) {
  cleave_partitioner_t *partitioner = splitter->partitioner;
  const cleave_contraction_t *c = partitioner->contraction;
  splitter->window.count = 0;
  for (size_t k = 0; k < splitter->part_count; k++) {  // these keep their places
    CLEAVE_TRY(mark_between(splitter, splitter->window.items[k].group, error));
  }
  for (size_t k = 0; k < splitter->ends.count; k++) {
    CLEAVE_TRY(mark_between(splitter, splitter->ends.items[k], error));
  }
  for (size_t k = 0; k < splitter->window.count; k++) {
    uint32_t group = splitter->window.items[k].group;
    bool is_lower = splitter->window.items[k].label <= splitter->middle;
    const uint32_t *start = is_lower ? c->producer_start : c->user_start;
    const uint32_t *others = is_lower ? c->producers : c->users;
    uint32_t member = group;
    do {
      for (uint32_t e = start[member]; e < start[member + 1]; e++) {
        CLEAVE_TRY(mark_between(splitter, cleave_contraction_group(c, others[e]), error));
      }
      member = c->next_member[member];
    } while (member != group);
  }
  qsort(splitter->window.items, splitter->window.count, sizeof *splitter->window.items, compare_parts);
  return CLEAVE_OK;
}

/* Gives every group of the part a level: the most times that a path from the part leaves it or comes back. */
static cleave_status_t set_levels(splitter_t *splitter, const uint32_t *positions, uint32_t count,
                                  cleave_error_t *error) {
  cleave_partitioner_t *partitioner = splitter->partitioner;
  const cleave_contraction_t *c = partitioner->contraction;
  begin_marks(partitioner);
  CLEAVE_TRY(mark_part(splitter, positions, count, error));
  CLEAVE_TRY(reach(splitter, error));
  CLEAVE_TRY(narrow(splitter, error));
  uint32_t between = partitioner->split_count + BETWEEN;
  for (size_t k = 0; k < splitter->window.count; k++) {
    uint32_t group = splitter->window.items[k].group;
    bool inside = partitioner->set_numbers[group] == 0;
    uint32_t level = inside ? 1 : 0;
    uint32_t member = group;
    do {
      for (uint32_t e = c->producer_start[member]; e < c->producer_start[member + 1]; e++) {
        uint32_t other = cleave_contraction_group(c, c->producers[e]);
        if (other == group || partitioner->set_marks[other] != between) {
          continue;
        }
        bool other_inside = partitioner->set_numbers[other] == 0;
        uint32_t after = partitioner->set_levels[other] + (inside != other_inside);
        level = after > level ? after : level;
      }
      member = c->next_member[member];
    } while (member != group);
    partitioner->set_levels[group] = level;
  }
  return CLEAVE_OK;
}

static cleave_status_t contract_level(splitter_t *splitter, const uint32_t *positions, uint32_t count,
                                      cleave_error_t *error) {
  cleave_contraction_result_t result;
  CLEAVE_TRY(cleave_contraction_contract(splitter->partitioner->contraction, positions, count, SIZE_MAX,
                                         &result, error));
  if (result.outcome != CLEAVE_CONTRACTION_DONE) {
    return cleave_error_set(error, CLEAVE_ERROR_INTERNAL, "one level of a set closes a cycle");
  }
  return CLEAVE_OK;
}

/* Contracts one connected part as a whole or, if that closes a cycle, level by level. */
static cleave_status_t contract_part(splitter_t *splitter, const uint32_t *positions, uint32_t count,
                                     cleave_error_t *error) {
  cleave_partitioner_t *partitioner = splitter->partitioner;
  cleave_contraction_t *c = partitioner->contraction;
  cleave_contraction_result_t result;
  CLEAVE_TRY(cleave_contraction_contract(c, positions, count, partitioner->split_steps_left, &result, error));
  use_steps(partitioner, result.steps);
  if (result.outcome == CLEAVE_CONTRACTION_DONE) {
    return CLEAVE_OK;
  }
  if (result.outcome == CLEAVE_CONTRACTION_LIMIT) {
    return cleave_partitioner_note(partitioner, CLEAVE_PLAN_NOTE_LIMIT, positions[0], splitter->rule_index,
                                   error, "%u nodes stay apart: the searches for cycles took too many steps",
                                   count);
  }
  for (uint32_t k = 0; k < count; k++) {
    partitioner->set_numbers[positions[k]] = 0;
  }
  size_t edge_count = 0;
  cleave_status_t status = CLEAVE_OK;
  CLEAVE_TRY_CLEANUP(set_levels(splitter, positions, count, error));
  tie_parts(partitioner, positions, count, true);
  CLEAVE_TRY_CLEANUP(for_each_part(splitter, positions, count, contract_level, error));
  splitter->window.count = 0;
  for (uint32_t k = 0; k < count; k++) {
    uint32_t group = cleave_contraction_group(c, positions[k]);
    edge_count += c->producer_start[positions[k] + 1] - c->producer_start[positions[k]];
    if (group == positions[k]) {
      placed_t placed = {cleave_contraction_label(c, group), group};
      CLEAVE_TRY_CLEANUP(cleave_array_reserve(&splitter->window, 1, error));
      cleave_array_push_reserved(&splitter->window, placed);
    }
  }
  qsort(splitter->window.items, splitter->window.count, sizeof *splitter->window.items, compare_parts);
  splitter->groups.count = 0;
  CLEAVE_TRY_CLEANUP(cleave_array_reserve(&splitter->groups, splitter->window.count, error));
  for (size_t k = 0; k < splitter->window.count; k++) {
    cleave_array_push_reserved(&splitter->groups, splitter->window.items[k].group);
  }
  CLEAVE_TRY_CLEANUP(cleave_partitioner_merge(partitioner, splitter->rule_index, splitter->groups.items,
                                              (uint32_t)splitter->groups.count, partitioner->set_numbers,
                                              edge_count, error));
cleanup:
  for (uint32_t k = 0; k < count; k++) {
    partitioner->set_numbers[positions[k]] = CLEAVE_GROUP_NONE;
  }
  return status;
}

cleave_status_t cleave_partitioner_split(cleave_partitioner_t *partitioner, uint32_t rule_index,
                                         const uint32_t *positions, uint32_t count, cleave_error_t *error) {
  splitter_t splitter = {.partitioner = partitioner, .rule_index = rule_index};
  CLEAVE_TRY(prepare(partitioner, error));
  for (uint32_t k = 0; k < count; k++) {
    partitioner->set_numbers[positions[k]] = 0;
  }
  tie_parts(partitioner, positions, count, false);
  for (uint32_t k = 0; k < count; k++) {
    partitioner->set_numbers[positions[k]] = CLEAVE_GROUP_NONE;
  }
  cleave_status_t status = for_each_part(&splitter, positions, count, contract_part, error);
  cleave_array_free(&splitter.groups);
  cleave_array_free(&splitter.window);
  cleave_array_free(&splitter.ends);
  return status;
}
