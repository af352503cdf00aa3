// SPDX-License-Identifier: Apache-2.0
// Decides about grown sets: a set becomes a region (of a fuse rule: a fusion), is dissolved into its units,
// or is trimmed and decided about again. Fusions that no region rule took become regions of their own.

#include <stdlib.h>
#include <string.h>

#include "base/containers/numbers.h"
#include "partition/grow/partitioner.h"

enum { MAX_TRIMS = 64 }; /* of one grown set by `review` */

/* Appends the members of a group to region_nodes, ascending. */
static cleave_status_t list_members(cleave_partitioner_t *partitioner, uint32_t position,
                                    cleave_error_t *error) {
  const cleave_contraction_t *c = partitioner->contraction;
  uint32_t group = cleave_contraction_group(c, position);
  uint32_t size = c->sizes[group];
  CLEAVE_TRY(cleave_array_reserve(&partitioner->region_nodes, size, error));
  uint32_t *first = partitioner->region_nodes.items + partitioner->region_nodes.count;
  uint32_t member = group;
  do {
    cleave_array_push_reserved(&partitioner->region_nodes, member);
    member = c->next_member[member];
  } while (member != group);
  qsort(first, size, sizeof *first, cleave_compare_u32);
  return CLEAVE_OK;
}

/* Makes the last `count` of region_nodes a region. */
static cleave_status_t keep_region(cleave_partitioner_t *partitioner, uint32_t rule_index, uint32_t count,
                                   const cleave_attribute_t *attributes, uint32_t attribute_count,
                                   cleave_error_t *error) {
  uint32_t region = (uint32_t)partitioner->regions.count;
  cleave_found_region_t found = {.rule = rule_index,
                                 .ruleset = partitioner->ruleset_number,
                                 .first = (uint32_t)(partitioner->region_nodes.count - count),
                                 .count = count,
                                 .attribute_count = attribute_count};
  CLEAVE_TRY(cleave_plan_copy_attributes(&partitioner->plan->arena, attributes, attribute_count,
                                         &found.attributes, error));
  CLEAVE_ARRAY_PUSH(&partitioner->regions, found, error);
  for (uint32_t k = 0; k < count; k++) {
    uint32_t position = partitioner->region_nodes.items[found.first + k];
    partitioner->states[position] = CLEAVE_NODE_TAKEN;
    partitioner->region_of[position] = region;
    if (partitioner->fusion_of[position] != CLEAVE_INDEX_NONE) {
      partitioner->fusions.items[partitioner->fusion_of[position]].region = region;
    }
  }
  return CLEAVE_OK;
}

/* Takes the last `count` of region_nodes away and makes them a fusion. */
static cleave_status_t keep_fusion(cleave_partitioner_t *partitioner, const cleave_rule_t *rule,
                                   uint32_t rule_index, uint32_t count, const cleave_attribute_t *attributes,
                                   uint32_t attribute_count, cleave_error_t *error) {
  uint32_t fusion = (uint32_t)partitioner->fusions.count;
  cleave_found_fusion_t found = {.rule = rule_index,
                                 .ruleset = partitioner->ruleset_number,
                                 .first = (uint32_t)partitioner->fusion_nodes.count,
                                 .count = count,
                                 .region = CLEAVE_INDEX_NONE,
                                 .source = rule,
                                 .attributes = rule->attributes,
                                 .attribute_count = rule->attribute_count};
  if (attribute_count > 0) {
    found.attribute_count = attribute_count;
    CLEAVE_TRY(cleave_plan_copy_attributes(&partitioner->plan->arena, attributes, attribute_count,
                                           &found.attributes, error));
  }
  CLEAVE_TRY(cleave_array_reserve(&partitioner->fusion_nodes, count, error));
  CLEAVE_TRY(cleave_array_reserve(&partitioner->fusion_labels, count, error));
  CLEAVE_ARRAY_PUSH(&partitioner->fusions, found, error);
  partitioner->region_nodes.count -= count;
  const uint32_t *positions = partitioner->region_nodes.items + partitioner->region_nodes.count;
  for (uint32_t k = 0; k < count; k++) {
    cleave_array_push_reserved(&partitioner->fusion_nodes, positions[k]);
    cleave_array_push_reserved(&partitioner->fusion_labels, "");
    partitioner->states[positions[k]] = CLEAVE_NODE_FUSED;
    partitioner->fusion_of[positions[k]] = fusion;
  }
  return CLEAVE_OK;
}

/* Dissolves a group into its units: single nodes, and one group per fusion. */
static cleave_status_t release_group(cleave_partitioner_t *partitioner, const uint32_t *positions,
                                     uint32_t count, cleave_error_t *error) {
  CLEAVE_TRY(cleave_contraction_dissolve(partitioner->contraction, positions[0], error));
  for (uint32_t k = 0; k < count; k++) {
    uint32_t fusion = partitioner->fusion_of[positions[k]];
    if (fusion == CLEAVE_INDEX_NONE) {
      continue;
    }
    const cleave_found_fusion_t *found = &partitioner->fusions.items[fusion];
    const uint32_t *nodes = partitioner->fusion_nodes.items + found->first;
    if (nodes[0] != positions[k]) {
      continue;
    }
    cleave_contraction_result_t result;
    CLEAVE_TRY(
        cleave_contraction_contract(partitioner->contraction, nodes, found->count, SIZE_MAX, &result, error));
    if (result.outcome != CLEAVE_CONTRACTION_DONE) {
      return cleave_error_set(error, CLEAVE_ERROR_INTERNAL, "a fusion of a refused region closes a cycle");
    }
  }
  return CLEAVE_OK;
}

/* A set that has not been decided about yet. */
typedef struct waiting {
  uint32_t position; /* one of it */
  uint32_t round;    /* times that `review` has trimmed what it was part of */
} waiting_t;

typedef struct settler {
  cleave_partitioner_t *partitioner;
  const cleave_rule_t *rule;
  uint32_t rule_index;
  CLEAVE_ARRAY(waiting_t) waiting;
  cleave_arena_t arena; /* of one decision */
} settler_t;

/* The decision about a set: taken, or why not. */
typedef struct verdict {
  bool is_taken;
  cleave_plan_note_kind_t kind;
  cleave_stop_cause_t cause;
  const char *reason;
} verdict_t;

/* Notes and logs why these nodes are not taken. */
static cleave_status_t note_refused(const settler_t *settler, cleave_plan_note_kind_t kind,
                                    cleave_stop_cause_t cause, const uint32_t *positions, uint32_t count,
                                    const char *reason, cleave_error_t *error) {
  cleave_partitioner_t *partitioner = settler->partitioner;
  CLEAVE_TRY(
      cleave_partitioner_note(partitioner, kind, positions[0], settler->rule_index, error, "%s", reason));
  for (uint32_t k = 0; k < count; k++) {
    CLEAVE_TRY(cleave_partitioner_stop(partitioner, positions[k], settler->rule_index, cause, reason, error));
  }
  return CLEAVE_OK;
}

/* The last questions about a set that is accepted whole: does the backend run a grown fusion as one kernel,
 * and does the caller allow the set? */
static cleave_status_t ask_last(settler_t *settler, const uint32_t *positions, uint32_t count,
                                cleave_review_t *review, verdict_t *verdict, cleave_error_t *error) {
  const cleave_partitioner_t *partitioner = settler->partitioner;
  const cleave_rule_t *rule = settler->rule;
  cleave_node_t *nodes = cleave_arena_allocate(&settler->arena, count, sizeof *nodes);
  const char **labels = cleave_arena_allocate(&settler->arena, count, sizeof *labels);
  CLEAVE_TRY_MEMORY(nodes != NULL && labels != NULL, error);
  for (uint32_t k = 0; k < count; k++) {
    nodes[k] = partitioner->contraction->nodes[positions[k]];
    labels[k] = "";
  }
  bool is_assumed = false;
  for (uint32_t k = 0; k < count; k++) {
    is_assumed = is_assumed || cleave_partitioner_assumes(partitioner, positions[k]);
  }
  if (cleave_rule_grows_fusions(rule) && !is_assumed) {
    bool has_own = review->attribute_count > 0;
    const cleave_fusion_set_t set = {
        .rule = rule->name,
        .nodes = nodes,
        .labels = labels,
        .node_count = count,
        .attributes = has_own ? review->attributes : rule->attributes,
        .attribute_count = has_own ? review->attribute_count : rule->attribute_count};
    bool yes = true;
    cleave_reason_t reason = {""};
    CLEAVE_TRY(cleave_partitioner_supports_fusion(partitioner, &set, &yes, &reason, error));
    if (!yes) {
      review->reason = reason;
      *verdict = (verdict_t){
          false, CLEAVE_PLAN_NOTE_BACKEND, CLEAVE_STOP_BACKEND,
          reason.text[0] == '\0' ? "the backend refused it without a reason" : review->reason.text};
      return CLEAVE_OK;
    }
  }
  if (!cleave_partitioner_allows(partitioner, settler->rule_index, nodes, count)) {
    *verdict = (verdict_t){false, CLEAVE_PLAN_NOTE_LEFT_OUT, CLEAVE_STOP_CALLER, "left out on request"};
  }
  return CLEAVE_OK;
}

/* Clears `keep` of whole fusions if `review` dropped a part of them. Returns the number of nodes that stay.
 */
static uint32_t keep_whole_fusions(const cleave_partitioner_t *partitioner, const uint32_t *positions,
                                   uint32_t count, bool *keep) {
  uint32_t kept = 0;
  for (uint32_t k = 0; k < count; k++) {
    uint32_t fusion = partitioner->fusion_of[positions[k]];
    if (keep[k] || fusion == CLEAVE_INDEX_NONE) {
      continue;
    }
    const cleave_found_fusion_t *found = &partitioner->fusions.items[fusion];
    const uint32_t *members = partitioner->fusion_nodes.items + found->first;
    for (uint32_t m = 0; m < found->count; m++) {
      const uint32_t *place = bsearch(&members[m], positions, count, sizeof *positions, cleave_compare_u32);
      if (place != NULL) {
        keep[place - positions] = false;
      }
    }
  }
  for (uint32_t k = 0; k < count; k++) {
    kept += keep[k];
  }
  return kept;
}

/* Splits the kept nodes of a trimmed set into connected parts that close no cycle, to be decided about again.
 */
static cleave_status_t split_kept(settler_t *settler, const uint32_t *kept, uint32_t count, uint32_t round,
                                  cleave_error_t *error) {
  cleave_partitioner_t *partitioner = settler->partitioner;
  CLEAVE_TRY(cleave_partitioner_split(partitioner, settler->rule_index, kept, count, error));
  for (uint32_t k = 0; k < count; k++) {
    if (cleave_contraction_group(partitioner->contraction, kept[k]) == kept[k]) {
      waiting_t part = {kept[k], round};
      CLEAVE_ARRAY_PUSH(&settler->waiting, part, error);
    }
  }
  return CLEAVE_OK;
}

/* Frees what `review` dropped. `positions` is a copy, in the order of the graph. */
static cleave_status_t trim(settler_t *settler, uint32_t *positions, uint32_t count, const bool *keep,
                            uint32_t round, const char *reason, cleave_error_t *error) {
  cleave_partitioner_t *partitioner = settler->partitioner;
  uint32_t kept = 0;
  reason = reason[0] == '\0' ? "dropped by review" : reason;
  CLEAVE_TRY(release_group(partitioner, positions, count, error));
  for (uint32_t k = 0; k < count; k++) {
    if (!keep[k]) {
      CLEAVE_TRY(note_refused(settler, CLEAVE_PLAN_NOTE_REVIEW, CLEAVE_STOP_REVIEW, &positions[k], 1, reason,
                              error));
    }
  }
  for (uint32_t k = 0; k < count; k++) {
    if (keep[k]) {
      positions[kept++] = positions[k];
    }
  }
  return split_kept(settler, positions, kept, round + 1, error);
}

static cleave_status_t settle_one(settler_t *settler, waiting_t waiting, cleave_error_t *error) {
  cleave_partitioner_t *partitioner = settler->partitioner;
  uint32_t rule_index = settler->rule_index;
  size_t before = partitioner->region_nodes.count;
  CLEAVE_TRY(list_members(partitioner, waiting.position, error));
  uint32_t count = (uint32_t)(partitioner->region_nodes.count - before);
  uint32_t *positions =
      cleave_arena_copy(&settler->arena, partitioner->region_nodes.items + before, count * sizeof *positions);
  cleave_review_t review = {.accept = true,
                            .arena = &settler->arena,
                            .keep = cleave_arena_allocate(&settler->arena, count, sizeof *review.keep)};
  CLEAVE_TRY_MEMORY(positions != NULL && review.keep != NULL, error);
  memset(review.keep, true, count * sizeof *review.keep);
  bool by_threshold = false;
  cleave_candidate_t candidate = {settler->rule, rule_index, positions, count};
  CLEAVE_TRY(cleave_partitioner_review(partitioner, &candidate, &review, &by_threshold, error));
  verdict_t verdict = {false, by_threshold ? CLEAVE_PLAN_NOTE_THRESHOLD : CLEAVE_PLAN_NOTE_REVIEW,
                       by_threshold ? CLEAVE_STOP_THRESHOLD : CLEAVE_STOP_REVIEW,
                       review.reason.text[0] != '\0' ? review.reason.text
                       : review.accept               ? "'review' kept none of its nodes"
                                                     : "'review' returned false"};
  uint32_t kept = review.accept ? keep_whole_fusions(partitioner, positions, count, review.keep) : 0;
  if (kept == count) {
    verdict.is_taken = true;
    CLEAVE_TRY(ask_last(settler, positions, count, &review, &verdict, error));
    kept = 0;
  } else if (kept > 0 && waiting.round >= MAX_TRIMS) {
    verdict =
        (verdict_t){false, CLEAVE_PLAN_NOTE_LIMIT, CLEAVE_STOP_LIMIT, "review has trimmed it too many times"};
    kept = 0;
  }
  if (verdict.is_taken) {
    partitioner->plan->rules[rule_index].matches++;
    return cleave_rule_grows_fusions(settler->rule)
               ? keep_fusion(partitioner, settler->rule, rule_index, count, review.attributes,
                             review.attribute_count, error)
               : keep_region(partitioner, rule_index, count, review.attributes, review.attribute_count,
                             error);
  }
  partitioner->region_nodes.count = before;
  if (kept > 0) {
    return trim(settler, positions, count, review.keep, waiting.round, review.reason.text, error);
  }
  partitioner->plan->rules[rule_index].refused++;
  CLEAVE_TRY(note_refused(settler, verdict.kind, verdict.cause, positions, count, verdict.reason, error));
  return release_group(partitioner, positions, count, error);
}

cleave_status_t cleave_partitioner_settle(cleave_partitioner_t *partitioner, const cleave_rule_t *rule,
                                          uint32_t rule_index, uint32_t position, cleave_error_t *error) {
  settler_t settler = {.partitioner = partitioner, .rule = rule, .rule_index = rule_index};
  cleave_status_t status = CLEAVE_OK;
  CLEAVE_TRY_CLEANUP(cleave_array_reserve(&settler.waiting, 1, error));
  cleave_array_push_reserved(&settler.waiting, ((waiting_t){position, 0}));
  for (size_t k = 0; k < settler.waiting.count; k++) {
    CLEAVE_TRY_CLEANUP(settle_one(&settler, settler.waiting.items[k], error));
    cleave_arena_reset(&settler.arena);
  }
cleanup:
  cleave_array_free(&settler.waiting);
  cleave_arena_deinit(&settler.arena);
  return status;
}

cleave_status_t cleave_partitioner_own_regions(cleave_partitioner_t *partitioner, cleave_error_t *error) {
  for (size_t k = 0; k < partitioner->fusions.count; k++) {
    const cleave_found_fusion_t found = partitioner->fusions.items[k];
    if (found.region != CLEAVE_INDEX_NONE) {
      continue;
    }
    CLEAVE_TRY(cleave_array_reserve(&partitioner->region_nodes, found.count, error));
    memcpy(partitioner->region_nodes.items + partitioner->region_nodes.count,
           partitioner->fusion_nodes.items + found.first,
           found.count * sizeof *partitioner->region_nodes.items);
    partitioner->region_nodes.count += found.count;
    CLEAVE_TRY(keep_region(partitioner, found.rule, found.count, NULL, 0, error));
  }
  return CLEAVE_OK;
}
