// SPDX-License-Identifier: Apache-2.0
// The driver: stages, then rulesets in order; in each the fuse rules, then the region rules, then a region
// for every fusion that is left. A node is in one fusion and one region at most, because each step only takes
// what the steps before left.

#include "partition/grow/partition.h"

#include <stdlib.h>
#include <string.h>

#include "partition/grow/partitioner.h"

static cleave_status_t copy_text(cleave_plan_t *plan, const char *text, const char **out_copy,
                                 cleave_error_t *error) {
  text = text == NULL ? "" : text;
  *out_copy = cleave_arena_copy_text(&plan->arena, text, strlen(text));
  return *out_copy == NULL ? cleave_error_out_of_memory(error) : CLEAVE_OK;
}

static cleave_status_t list_rules(cleave_plan_t *plan, const cleave_ruleset_t *const *rulesets,
                                  uint32_t ruleset_count, cleave_error_t *error) {
  size_t count = 0;
  for (uint32_t s = 0; s < ruleset_count; s++) {
    count += rulesets[s]->rule_count;
  }
  plan->rules = cleave_arena_allocate(&plan->arena, count + 1, sizeof *plan->rules);
  CLEAVE_TRY_MEMORY(plan->rules, error);
  for (uint32_t s = 0; s < ruleset_count; s++) {
    const char *name = NULL;
    const char *backend = NULL;
    CLEAVE_TRY(copy_text(plan, rulesets[s]->name, &name, error));
    CLEAVE_TRY(copy_text(plan, rulesets[s]->backend, &backend, error));
    for (uint32_t r = 0; r < rulesets[s]->rule_count; r++) {
      const cleave_rule_t *rule = &rulesets[s]->rules[r];
      cleave_plan_rule_t *entry = &plan->rules[plan->rule_count++];
      entry->ruleset = name;
      entry->backend = backend;
      entry->line = rule->line;
      entry->kind = rule->kind;
      CLEAVE_TRY(copy_text(plan, rule->name, &entry->name, error));
      CLEAVE_TRY(copy_text(plan, rule->file == NULL ? rulesets[s]->file : rule->file, &entry->file, error));
    }
  }
  return CLEAVE_OK;
}

typedef struct scheduled_rule {
  const cleave_rule_t *rule;
  uint32_t index; /* in the ruleset */
} scheduled_rule_t;

static int compare_scheduled(const void *a, const void *b) {
  const scheduled_rule_t *x = a;
  const scheduled_rule_t *y = b;
  if (x->rule->kind != y->rule->kind) {
    return x->rule->kind < y->rule->kind ? -1 : 1;
  }
  if (x->rule->priority != y->rule->priority) {
    return x->rule->priority > y->rule->priority ? -1 : 1;
  }
  return (x->index > y->index) - (x->index < y->index);
}

static cleave_status_t check_rule(const cleave_rule_t *rule, cleave_error_t *error) {
  const char *missing = NULL;
  if (rule->kind == CLEAVE_RULE_FUSE) {
    missing = rule->pattern == NULL && rule->mode == CLEAVE_REGION_BACKEND
                  ? "a pattern, 'ops', 'supported' or 'selector'"
                  : NULL;
  }
  if (rule->mode == CLEAVE_REGION_SUPPORTED) {
    missing = rule->supported == NULL ? "a function 'supported'" : NULL;
  } else if (rule->mode == CLEAVE_REGION_SELECTOR) {
    missing = rule->selector == NULL || rule->selector->create == NULL || rule->selector->select == NULL
                  ? "a selector with 'create' and 'select'"
                  : NULL;
  }
  if (missing == NULL) {
    return CLEAVE_OK;
  }
  return cleave_error_set_at(error, CLEAVE_ERROR_RULE, rule->file == NULL ? "" : rule->file, rule->line,
                             "%s '%s': needs %s", cleave_rule_kind_name(rule->kind), rule->name, missing);
}

static cleave_status_t run_ruleset(cleave_partitioner_t *partitioner, cleave_error_t *error) {
  const cleave_ruleset_t *ruleset = partitioner->ruleset;
  cleave_status_t status = CLEAVE_OK;
  scheduled_rule_t *schedule = cleave_allocate((size_t)ruleset->rule_count + 1, sizeof *schedule);
  CLEAVE_TRY_MEMORY(schedule, error);
  for (uint32_t k = 0; k < ruleset->rule_count; k++) {
    schedule[k] = (scheduled_rule_t){&ruleset->rules[k], k};
  }
  qsort(schedule, ruleset->rule_count, sizeof *schedule, compare_scheduled);
  for (uint32_t k = 0; k < ruleset->rule_count; k++) {
    uint32_t index = partitioner->first_rule + schedule[k].index;
    if (!cleave_rule_kind_has_backend(schedule[k].rule->kind)) {
      continue;  // transform.c and stage.c have run them before
    }
    CLEAVE_TRY_CLEANUP(check_rule(schedule[k].rule, error));
    CLEAVE_TRY_CLEANUP(schedule[k].rule->pattern != NULL
                           ? cleave_partitioner_fuse(partitioner, schedule[k].rule, index, error)
                           : cleave_partitioner_region(partitioner, schedule[k].rule, index, error));
  }
  CLEAVE_TRY_CLEANUP(cleave_partitioner_own_regions(partitioner, error));
cleanup:
  cleave_free(schedule);
  return status;
}

/* If a backend cannot be used, the error names the file that asks for it. */
static cleave_status_t name_file(const cleave_ruleset_t *ruleset, cleave_status_t status,
                                 cleave_error_t *error) {
  if (status == CLEAVE_ERROR_UNSUPPORTED && ruleset->line > 0 && error != NULL && error->file[0] == '\0') {
    cleave_error_t cause = *error;
    cleave_error_clear(error);
    return cleave_error_set_at(error, status, ruleset->file, ruleset->line, "ruleset '%s': %s", ruleset->name,
                               cause.message);
  }
  return status;
}

cleave_status_t cleave_partition(const cleave_graph_t *graph, const cleave_ruleset_t *const *rulesets,
                                 uint32_t ruleset_count, const cleave_partition_options_t *options,
                                 cleave_plan_t **out_plan, cleave_error_t *error) {
  cleave_partitioner_t *partitioner = NULL;
  CLEAVE_TRY(cleave_partitioner_create(graph, options, &partitioner, error));
  cleave_status_t status = CLEAVE_OK;
  CLEAVE_TRY_CLEANUP(list_rules(partitioner->plan, rulesets, ruleset_count, error));
  CLEAVE_TRY_CLEANUP(cleave_partitioner_stage(partitioner, rulesets, ruleset_count, error));
  for (uint32_t s = 0; s < ruleset_count; s++) {
    partitioner->ruleset = rulesets[s];
    partitioner->ruleset_number = s;
    CLEAVE_TRY_CLEANUP(name_file(rulesets[s], run_ruleset(partitioner, error), error));
    partitioner->first_rule += rulesets[s]->rule_count;
  }
  CLEAVE_TRY_CLEANUP(cleave_partitioner_finish(partitioner, error));
  *out_plan = partitioner->plan;
  partitioner->plan = NULL;
cleanup:
  cleave_partitioner_destroy(partitioner);
  return status;
}
