// SPDX-License-Identifier: Apache-2.0
// The difference of two plans: the places of all nodes before and after, then rules, shapes of fusions,
// settings.

#include "partition/plan_diff/plan_diff.h"

#include <string.h>

#include "base/strings.h"

typedef struct places {
  cleave_diff_place_t *items; /* per position */
  uint32_t *regions;          /* per position: region, or NONE */
  const cleave_document_node_t **nodes;
} places_t;

static cleave_status_t find_places(cleave_arena_t *arena, const cleave_plan_document_t *document,
                                   places_t *places, cleave_error_t *error) {
  places->items = cleave_arena_allocate(arena, document->node_count, sizeof *places->items);
  places->regions = cleave_arena_allocate(arena, document->node_count, sizeof *places->regions);
  places->nodes = cleave_arena_allocate(arena, document->node_count, sizeof *places->nodes);
  CLEAVE_TRY_MEMORY(places->items != NULL && places->regions != NULL && places->nodes != NULL, error);
  for (uint32_t s = 0; s < document->step_count; s++) {
    const cleave_document_step_t *step = &document->steps[s];
    uint32_t stage = document->stage_count > 0 ? step->stage : CLEAVE_INDEX_NONE;
    if (step->region == CLEAVE_INDEX_NONE) {
      places->items[step->node.position] = (cleave_diff_place_t){"cpu", "", "", stage};
      places->regions[step->node.position] = CLEAVE_INDEX_NONE;
      places->nodes[step->node.position] = &step->node;
      continue;
    }
    const cleave_document_region_t *region = &document->regions[step->region];
    for (uint32_t k = 0; k < region->node_count; k++) {
      uint32_t position = region->nodes[k].position;
      places->items[position] = (cleave_diff_place_t){region->backend, region->name, "", stage};
      places->regions[position] = step->region;
      places->nodes[position] = &region->nodes[k];
    }
    for (uint32_t f = 0; f < region->fusion_count; f++) {
      const cleave_document_fusion_t *fusion = &region->fusions[f];
      for (uint32_t k = 0; k < fusion->node_count; k++) {
        places->items[fusion->nodes[k].position].fusion = document->rules[fusion->rule].name;
      }
    }
  }
  return CLEAVE_OK;
}

static bool has_moved(const places_t *before, uint32_t from, const places_t *after, uint32_t to,
                      const uint32_t *successors) {
  uint32_t region = before->regions[from];
  uint32_t successor = region == CLEAVE_INDEX_NONE ? CLEAVE_INDEX_NONE : successors[region];
  return successor != after->regions[to] || before->items[from].stage != after->items[to].stage ||
         strcmp(before->items[from].backend, after->items[to].backend) != 0 ||
         strcmp(before->items[from].fusion, after->items[to].fusion) != 0;
}

static const cleave_diff_place_t nowhere = {"", "", "", CLEAVE_INDEX_NONE};

static cleave_status_t find_moves(cleave_plan_diff_t *diff, const uint32_t *after_of,
                                  const uint32_t *before_of, const uint32_t *successors,
                                  cleave_error_t *error) {
  places_t before = {0};
  places_t after = {0};
  size_t most = (size_t)diff->before->node_count + diff->after->node_count;
  CLEAVE_TRY(find_places(&diff->arena, diff->before, &before, error));
  CLEAVE_TRY(find_places(&diff->arena, diff->after, &after, error));
  diff->nodes = cleave_arena_allocate(&diff->arena, most, sizeof *diff->nodes);
  CLEAVE_TRY_MEMORY(diff->nodes, error);
  for (uint32_t k = 0; k < diff->before->node_count; k++) {
    uint32_t to = after_of[k];
    if (to != CLEAVE_INDEX_NONE && has_moved(&before, k, &after, to, successors)) {
      diff->nodes[diff->node_count++] = (cleave_diff_node_t){
          k, to, after.nodes[to]->op, after.nodes[to]->name, before.items[k], after.items[to]};
    }
  }
  diff->moved_count = diff->node_count;
  for (uint32_t k = 0; k < diff->before->node_count; k++) {
    if (after_of[k] == CLEAVE_INDEX_NONE) {
      diff->nodes[diff->node_count++] = (cleave_diff_node_t){.before = k,
                                                             .after = CLEAVE_INDEX_NONE,
                                                             .op = before.nodes[k]->op,
                                                             .name = before.nodes[k]->name,
                                                             .place_before = before.items[k],
                                                             .place_after = nowhere};
    }
  }
  for (uint32_t k = 0; k < diff->after->node_count; k++) {
    if (before_of[k] == CLEAVE_INDEX_NONE) {
      diff->nodes[diff->node_count++] = (cleave_diff_node_t){.before = CLEAVE_INDEX_NONE,
                                                             .after = k,
                                                             .op = after.nodes[k]->op,
                                                             .name = after.nodes[k]->name,
                                                             .place_before = nowhere,
                                                             .place_after = after.items[k]};
    }
  }
  return CLEAVE_OK;
}

/* ---- rules ---- */

static bool same_rule(const cleave_plan_rule_t *a, const cleave_plan_rule_t *b) {
  return a->kind == b->kind && strcmp(a->name, b->name) == 0 && strcmp(a->ruleset, b->ruleset) == 0;
}

/* The first rule of the other plan that is the same and not paired yet, or NONE. Plans have few rules. */
static uint32_t find_rule(const cleave_plan_document_t *document, const cleave_plan_rule_t *wanted,
                          const bool *taken) {
  for (uint32_t k = 0; k < document->rule_count; k++) {
    if (!taken[k] && same_rule(&document->rules[k], wanted)) {
      return k;
    }
  }
  return CLEAVE_INDEX_NONE;
}

static cleave_status_t find_rules(cleave_plan_diff_t *diff, cleave_error_t *error) {
  size_t most = (size_t)diff->before->rule_count + diff->after->rule_count;
  bool *taken = cleave_arena_allocate(&diff->arena, diff->before->rule_count, sizeof *taken);
  diff->rules = cleave_arena_allocate(&diff->arena, most, sizeof *diff->rules);
  CLEAVE_TRY_MEMORY(taken != NULL && diff->rules != NULL, error);
  for (uint32_t k = 0; k < diff->after->rule_count; k++) {
    uint32_t at = find_rule(diff->before, &diff->after->rules[k], taken);
    if (at != CLEAVE_INDEX_NONE) {
      taken[at] = true;
    }
    diff->rules[diff->rule_count++] = (cleave_diff_rule_t){
        .before = at == CLEAVE_INDEX_NONE ? NULL : &diff->before->rules[at], .after = &diff->after->rules[k]};
  }
  for (uint32_t k = 0; k < diff->before->rule_count; k++) {
    if (!taken[k]) {
      diff->rules[diff->rule_count++] = (cleave_diff_rule_t){.before = &diff->before->rules[k]};
    }
  }
  return CLEAVE_OK;
}

static bool rule_differs(const cleave_diff_rule_t *rule) {
  return rule->before == NULL || rule->after == NULL || rule->before->matches != rule->after->matches ||
         rule->before->refused != rule->after->refused ||
         strcmp(rule->before->backend, rule->after->backend) != 0;
}

/* ---- shapes of fusions ---- */

static cleave_status_t count_shapes(cleave_plan_diff_t *diff, const cleave_plan_document_t *document,
                                    bool is_after, cleave_strings_t *keys, cleave_error_t *error) {
  cleave_text_t key = {0};
  cleave_status_t status = CLEAVE_OK;
  for (uint32_t r = 0; r < document->region_count && status == CLEAVE_OK; r++) {
    for (uint32_t f = 0; f < document->regions[r].fusion_count && status == CLEAVE_OK; f++) {
      const cleave_document_fusion_t *fusion = &document->regions[r].fusions[f];
      cleave_string_t id = CLEAVE_STRING_EMPTY;
      const char *rule = document->rules[fusion->rule].name;
      key.length = 0;
      cleave_text_format(&key, "%s\x1f", rule);
      for (uint32_t k = 0; k < fusion->node_count; k++) {
        cleave_text_format(&key, "%s%s", k == 0 ? "" : "+", fusion->nodes[k].op);
      }
      status = cleave_text_check(&key, error);
      CLEAVE_THEN(status, cleave_strings_add(keys, cleave_text_get(&key), key.length, &id, error));
      if (status == CLEAVE_OK) {
        const char *text = cleave_strings_text(keys, id);
        cleave_diff_shape_t *shape = &diff->shapes[id.index];
        shape->rule = rule;
        shape->shape = strchr(text, '\x1f') + 1;
        shape->before += is_after ? 0 : 1;
        shape->after += is_after ? 1 : 0;
      }
    }
  }
  cleave_text_deinit(&key);
  return status;
}

static cleave_status_t find_shapes(cleave_plan_diff_t *diff, cleave_error_t *error) {
  const cleave_plan_document_t *documents[2] = {diff->before, diff->after};
  cleave_strings_t keys = {0};
  cleave_status_t status = CLEAVE_OK;
  size_t most = 1;
  for (int side = 0; side < 2; side++) {
    for (uint32_t r = 0; r < documents[side]->region_count; r++) {
      most += documents[side]->regions[r].fusion_count;
    }
  }
  diff->shapes = cleave_arena_allocate(&diff->arena, most, sizeof *diff->shapes);
  CLEAVE_TRY_MEMORY_CLEANUP(diff->shapes, error);
  for (int side = 0; side < 2; side++) {
    CLEAVE_TRY_CLEANUP(count_shapes(diff, documents[side], side == 1, &keys, error));
  }
  for (uint32_t k = 0; k < keys.count; k++) {
    cleave_diff_shape_t shape = diff->shapes[k];
    if (shape.rule != NULL && shape.before != shape.after) {
      shape.shape = cleave_arena_copy_text(&diff->arena, shape.shape, strlen(shape.shape));
      CLEAVE_TRY_MEMORY_CLEANUP(shape.shape, error);
      diff->shapes[diff->shape_count++] = shape;
    }
  }
cleanup:
  cleave_strings_deinit(&keys);
  return status;
}

/* ---- settings ---- */

/* If a name occurs several times, the last entry counts. */
static const char *find_setting(const cleave_plan_document_t *document, const char *name) {
  const char *value = NULL;
  for (uint32_t k = 0; k < document->setting_count; k++) {
    value = strcmp(document->settings[k].name, name) == 0 ? document->settings[k].value : value;
  }
  return value;
}

static void add_setting(cleave_plan_diff_t *diff, const char *name) {
  const char *before = find_setting(diff->before, name);
  const char *after = find_setting(diff->after, name);
  bool differs = before == NULL || after == NULL || strcmp(before, after) != 0;
  for (uint32_t k = 0; k < diff->setting_count; k++) {
    differs = differs && strcmp(diff->settings[k].name, name) != 0;
  }
  if (differs) {
    diff->settings[diff->setting_count++] = (cleave_diff_setting_t){name, before, after};
  }
}

static cleave_status_t find_settings(cleave_plan_diff_t *diff, cleave_error_t *error) {
  size_t most = (size_t)diff->before->setting_count + diff->after->setting_count;
  diff->settings = cleave_arena_allocate(&diff->arena, most, sizeof *diff->settings);
  CLEAVE_TRY_MEMORY(diff->settings, error);
  for (uint32_t k = 0; k < diff->before->setting_count; k++) {
    add_setting(diff, diff->before->settings[k].name);
  }
  for (uint32_t k = 0; k < diff->after->setting_count; k++) {
    add_setting(diff, diff->after->settings[k].name);
  }
  return CLEAVE_OK;
}

/* ---- the whole ---- */

static cleave_status_t fill(cleave_plan_diff_t *diff, cleave_error_t *error) {
  uint32_t *after_of = NULL;
  uint32_t *before_of = NULL;
  uint32_t *successors = NULL;
  CLEAVE_TRY(cleave_plan_diff_match(diff, &after_of, &before_of, error));
  CLEAVE_TRY(cleave_plan_diff_regions(diff, after_of, &successors, error));
  CLEAVE_TRY(find_moves(diff, after_of, before_of, successors, error));
  CLEAVE_TRY(find_rules(diff, error));
  CLEAVE_TRY(find_shapes(diff, error));
  CLEAVE_TRY(find_settings(diff, error));
  diff->same = diff->same_graph && diff->node_count == 0 && diff->shape_count == 0 &&
               diff->region_count == 0 && diff->setting_count == 0;
  for (uint32_t k = 0; k < diff->rule_count; k++) {
    diff->same = diff->same && !rule_differs(&diff->rules[k]);
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_plan_diff_create(const cleave_plan_document_t *before,
                                        const cleave_plan_document_t *after, cleave_plan_diff_t **out_diff,
                                        cleave_error_t *error) {
  *out_diff = NULL;
  cleave_plan_diff_t *diff = cleave_allocate_zeroed(1, sizeof *diff);
  CLEAVE_TRY_MEMORY(diff, error);
  diff->before = before;
  diff->after = after;
  CLEAVE_TRY_OR(fill(diff, error), cleave_plan_diff_destroy(diff));
  *out_diff = diff;
  return CLEAVE_OK;
}

void cleave_plan_diff_destroy(cleave_plan_diff_t *diff) {
  if (diff == NULL) {
    return;
  }
  cleave_arena_deinit(&diff->arena);
  cleave_free(diff);
}
