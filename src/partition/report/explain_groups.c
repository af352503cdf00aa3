// SPDX-License-Identifier: Apache-2.0
// Groups the matches that a rule did not keep: those with the same operators and the same reason, or lost to
// the same rule. Reasons that differ only in names of the graph are the same.

#include <string.h>

#include "partition/report/explain_report.h"

enum { MAX_GROUPS = 256 };

/* Are two texts equal except for what is in quotes? */
static bool has_same_words(const char *a, const char *b) {
  bool quoted = false;
  for (;; a++, b++) {
    if (quoted) {
      a += strcspn(a, "'");
      b += strcspn(b, "'");
    }
    if (*a != *b || *a == '\0') {
      return *a == *b;
    }
    quoted = *a == '\'' ? !quoted : quoted;
  }
}

static bool is_alike(const cleave_why_refusal_t *a, const cleave_why_refusal_t *b) {
  return a->winner == b->winner && strcmp(a->cause, b->cause) == 0 &&
         strcmp(a->structure, b->structure) == 0 && has_same_words(a->reason, b->reason);
}

cleave_status_t cleave_why_group(cleave_why_refusals_t *groups, const cleave_why_refusal_t *refusal,
                                 cleave_error_t *error) {
  for (size_t k = 0; k < groups->count; k++) {
    if (is_alike(&groups->items[k], refusal)) {
      groups->items[k].count += refusal->count;
      return CLEAVE_OK;
    }
  }
  if (groups->count < MAX_GROUPS) {
    CLEAVE_ARRAY_PUSH(groups, *refusal, error);
  }
  return CLEAVE_OK;
}

static int compare_groups(const void *a, const void *b) {
  const cleave_why_refusal_t *x = a;
  const cleave_why_refusal_t *y = b;
  if (x->count != y->count) {
    return x->count > y->count ? -1 : 1;
  }
  return (x->first.index > y->first.index) - (x->first.index < y->first.index);
}

cleave_status_t cleave_why_end_groups(cleave_why_refusals_t *groups, cleave_arena_t *arena,
                                      const cleave_why_refusal_t **out_items, uint32_t *out_count,
                                      cleave_error_t *error) {
  cleave_array_sort(groups, compare_groups);
  *out_count = (uint32_t)groups->count;
  *out_items = cleave_arena_copy(arena, groups->items, groups->count * sizeof *groups->items);
  return *out_items == NULL ? cleave_error_out_of_memory(error) : CLEAVE_OK;
}
