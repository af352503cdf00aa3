// SPDX-License-Identifier: Apache-2.0
// What became of regions. Old and new regions that share a node are connected; the number of old and new ones
// in each connected set says if they were changed, split, merged or regrouped.

#include <stdlib.h>
#include <string.h>

#include "base/containers/numbers.h"
#include "partition/plan_diff/plan_diff.h"

typedef struct tie {
  uint32_t before;
  uint32_t after;
  uint32_t count; /* nodes in both */
} tie_t;

typedef struct tying {
  cleave_plan_diff_t *diff;
  const uint32_t *after_of;
  tie_t *ties; /* by regions, each once */
  uint32_t tie_count;
  uint32_t *parents;      /* disjoint sets over regions before, then after */
  uint32_t *region_after; /* per position after: region, or NONE */
} tying_t;

const char *cleave_diff_region_kind_name(cleave_diff_region_kind_t kind) {
  switch (kind) {
    case CLEAVE_DIFF_REGION_NEW: return "new";
    case CLEAVE_DIFF_REGION_GONE: return "gone";
    case CLEAVE_DIFF_REGION_CHANGED: return "changed";
    case CLEAVE_DIFF_REGION_SPLIT: return "split";
    case CLEAVE_DIFF_REGION_MERGED: return "merged";
    case CLEAVE_DIFF_REGION_REGROUPED: return "regrouped";
  }
  return "unknown";
}

static int compare_ties(const void *a, const void *b) {
  const tie_t *left = a;
  const tie_t *right = b;
  if (left->before != right->before) {
    return left->before < right->before ? -1 : 1;
  }
  return (left->after > right->after) - (left->after < right->after);
}

static cleave_status_t tie_regions(tying_t *t, cleave_error_t *error) {
  const cleave_plan_document_t *before = t->diff->before;
  const cleave_plan_document_t *after = t->diff->after;
  cleave_arena_t *arena = &t->diff->arena;
  uint32_t all = before->region_count + after->region_count;
  t->ties = cleave_arena_allocate(arena, before->node_count, sizeof *t->ties);
  t->parents = cleave_arena_allocate(arena, all, sizeof *t->parents);
  t->region_after = cleave_arena_allocate(arena, after->node_count, sizeof *t->region_after);
  CLEAVE_TRY_MEMORY(t->ties != NULL && t->parents != NULL && t->region_after != NULL, error);
  memset(t->region_after, 0xff, after->node_count * sizeof *t->region_after);
  for (uint32_t r = 0; r < after->region_count; r++) {
    for (uint32_t k = 0; k < after->regions[r].node_count; k++) {
      t->region_after[after->regions[r].nodes[k].position] = r;
    }
  }
  uint32_t count = 0;
  for (uint32_t r = 0; r < before->region_count; r++) {
    for (uint32_t k = 0; k < before->regions[r].node_count; k++) {
      uint32_t at = t->after_of[before->regions[r].nodes[k].position];
      if (at != CLEAVE_INDEX_NONE && t->region_after[at] != CLEAVE_INDEX_NONE) {
        t->ties[count++] = (tie_t){.before = r, .after = t->region_after[at], .count = 1};
      }
    }
  }
  if (count > 1) {
    qsort(t->ties, count, sizeof *t->ties, compare_ties);
  }
  for (uint32_t k = 0; k < count; k++) {
    tie_t *last = t->tie_count == 0 ? NULL : &t->ties[t->tie_count - 1];
    if (last != NULL && compare_ties(last, &t->ties[k]) == 0) {
      last->count++;
    } else {
      t->ties[t->tie_count++] = t->ties[k];
    }
  }
  for (uint32_t k = 0; k < all; k++) {
    t->parents[k] = k;
  }
  for (uint32_t k = 0; k < t->tie_count; k++) {
    uint32_t a = cleave_find_root(t->parents, t->ties[k].before);
    uint32_t b = cleave_find_root(t->parents, before->region_count + t->ties[k].after);
    t->parents[a > b ? a : b] = a > b ? b : a;
  }
  return CLEAVE_OK;
}

static bool same_attributes(const cleave_attribute_t *a, uint32_t a_count, const cleave_attribute_t *b,
                            uint32_t b_count) {
  bool same = a_count == b_count;
  for (uint32_t k = 0; k < a_count && same; k++) {
    same = strcmp(a[k].name, b[k].name) == 0 && cleave_attribute_is_equal(&a[k], &b[k]);
  }
  return same;
}

/* Attributes of fusions are compared if both sides have equally many fusions; other differences show as
 * nodes. */
static bool same_fusion_attributes(const cleave_document_region_t *a, const cleave_document_region_t *b) {
  bool same = true;
  for (uint32_t k = 0; k < a->fusion_count && a->fusion_count == b->fusion_count && same; k++) {
    const cleave_document_fusion_t *left = &a->fusions[k];
    const cleave_document_fusion_t *right = &b->fusions[k];
    same =
        same_attributes(left->attributes, left->attribute_count, right->attributes, right->attribute_count);
  }
  return same;
}

/* Says what differs between a region and its successor; NULL: nothing. */
static const char *what_changed(const tying_t *t, uint32_t before, uint32_t after) {
  const cleave_document_region_t *a = &t->diff->before->regions[before];
  const cleave_document_region_t *b = &t->diff->after->regions[after];
  uint32_t shared = 0;
  for (uint32_t k = 0; k < a->node_count; k++) {
    uint32_t at = t->after_of[a->nodes[k].position];
    shared += at != CLEAVE_INDEX_NONE && t->region_after[at] == after;
  }
  if (strcmp(a->backend, b->backend) != 0) {
    return "backend";
  }
  if (shared != a->node_count || shared != b->node_count) {
    return "nodes";
  }
  if (strcmp(t->diff->before->rules[a->rule].name, t->diff->after->rules[b->rule].name) != 0) {
    return "rule";
  }
  if (!same_attributes(a->attributes, a->attribute_count, b->attributes, b->attribute_count) ||
      !same_fusion_attributes(a, b)) {
    return "attributes";
  }
  return NULL;
}

static cleave_diff_region_kind_t kind_of(uint32_t before, uint32_t after) {
  if (before == 0) {
    return CLEAVE_DIFF_REGION_NEW;
  }
  if (after == 0) {
    return CLEAVE_DIFF_REGION_GONE;
  }
  if (before == 1) {
    return after == 1 ? CLEAVE_DIFF_REGION_CHANGED : CLEAVE_DIFF_REGION_SPLIT;
  }
  return after == 1 ? CLEAVE_DIFF_REGION_MERGED : CLEAVE_DIFF_REGION_REGROUPED;
}

/* Regions by the set they are in, in their order; sets in the order of their first regions. */
static cleave_status_t collect(tying_t *t, cleave_error_t *error) {
  cleave_plan_diff_t *diff = t->diff;
  uint32_t before_count = diff->before->region_count;
  uint32_t all = before_count + diff->after->region_count;
  uint32_t *sizes = cleave_arena_allocate(&diff->arena, all, 2 * sizeof *sizes);
  uint32_t *place = cleave_arena_allocate(&diff->arena, all, sizeof *place);
  cleave_diff_region_t *sets = cleave_arena_allocate(&diff->arena, all, sizeof *sets);
  CLEAVE_TRY_MEMORY(sizes != NULL && place != NULL && sets != NULL, error);
  uint32_t set_count = 0;
  for (uint32_t k = 0; k < all; k++) {
    uint32_t root = cleave_find_root(t->parents, k);
    if (root == k) {
      place[k] = set_count++;
    }
    sizes[2 * place[root] + (k < before_count ? 0 : 1)]++;
  }
  for (uint32_t s = 0; s < set_count; s++) {
    sets[s].before = cleave_arena_allocate(&diff->arena, sizes[2 * s], sizeof *sets[s].before);
    sets[s].after = cleave_arena_allocate(&diff->arena, sizes[2 * s + 1], sizeof *sets[s].after);
    CLEAVE_TRY_MEMORY(sets[s].before != NULL && sets[s].after != NULL, error);
  }
  for (uint32_t k = 0; k < all; k++) {
    cleave_diff_region_t *set = &sets[place[cleave_find_root(t->parents, k)]];
    if (k < before_count) {
      set->before[set->before_count++] = &diff->before->regions[k];
    } else {
      set->after[set->after_count++] = &diff->after->regions[k - before_count];
    }
  }
  diff->regions = sets;
  for (uint32_t s = 0; s < set_count; s++) {
    cleave_diff_region_t set = sets[s];
    set.kind = kind_of(set.before_count, set.after_count);
    set.why = "";
    if (set.kind == CLEAVE_DIFF_REGION_CHANGED) {
      set.why = what_changed(t, (uint32_t)(set.before[0] - diff->before->regions),
                             (uint32_t)(set.after[0] - diff->after->regions));
      if (set.why == NULL) {
        continue;
      }
    }
    diff->regions[diff->region_count++] = set;
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_plan_diff_regions(cleave_plan_diff_t *diff, const uint32_t *after_of,
                                         uint32_t **out_heirs, cleave_error_t *error) {
  tying_t t = {.diff = diff, .after_of = after_of};
  CLEAVE_TRY(tie_regions(&t, error));
  uint32_t count = diff->before->region_count;
  uint32_t *successors = cleave_arena_allocate(&diff->arena, count, sizeof *successors);
  uint32_t *most = cleave_arena_allocate(&diff->arena, count, sizeof *most);
  CLEAVE_TRY_MEMORY(successors != NULL && most != NULL, error);
  memset(successors, 0xff, count * sizeof *successors);
  for (uint32_t k = 0; k < t.tie_count; k++) {
    if (t.ties[k].count > most[t.ties[k].before]) {
      most[t.ties[k].before] = t.ties[k].count;
      successors[t.ties[k].before] = t.ties[k].after;
    }
  }
  *out_heirs = successors;
  return collect(&t, error);
}
