// SPDX-License-Identifier: Apache-2.0
// How often each rule was at work, by the plans that it made.
#include <string.h>

#include "tools/rule_tests/rule_check.h"

/* The first match of a rule that was refused, and why: "by where at 'conv': only float32". NULL: none. */
static cleave_status_t tell_refusal(cleave_arena_t *arena, const cleave_plan_t *plan, uint32_t rule,
                                    const char **out_text, cleave_error_t *error) {
  *out_text = NULL;
  for (uint32_t k = 0; k < plan->note_count; k++) {
    const cleave_plan_note_t *note = &plan->notes[k];
    char label[128];
    if (note->rule == rule && note->kind != CLEAVE_PLAN_NOTE_TAKEN) {
      *out_text =
          cleave_arena_format(arena, "by %s at '%s': %s", cleave_plan_note_name(note->kind),
                              cleave_node_label(plan->graph, note->node, label, sizeof label), note->reason);
      return *out_text == NULL ? cleave_error_out_of_memory(error) : CLEAVE_OK;
    }
  }
  for (size_t k = 0; plan->edits != NULL && k < plan->edits->refusals.count; k++) {
    const cleave_edit_refusal_t *refusal = &plan->edits->refusals.items[k];
    if (plan->edits->rules.items[refusal->rule].number == rule) {
      *out_text = cleave_arena_format(arena, "at '%s': %s", refusal->place, refusal->reason);
      return *out_text == NULL ? cleave_error_out_of_memory(error) : CLEAVE_OK;
    }
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_rule_check_count(cleave_rule_check_t *check, const cleave_plan_t *plan, bool is_model,
                                        cleave_error_t *error) {
  for (uint32_t k = 0; k < plan->rule_count; k++) {
    const cleave_plan_rule_t *rule = &plan->rules[k];
    for (size_t r = 0; r < check->reach.count; r++) {
      cleave_rule_reach_t *reach = &check->reach.items[r];
      if (strcmp(reach->rule->name, rule->name) != 0 || strcmp(reach->rule->kind, "gradient") == 0) {
        continue;
      }
      reach->ran = true;
      reach->matches += rule->matches;
      if (is_model) {
        reach->ran_on_models = true;
        reach->model_matches += rule->matches;
        reach->model_hits += rule->structural_hits;
        reach->model_refused += rule->refused;
        CLEAVE_TRY(reach->refusal == NULL ? tell_refusal(&check->arena, plan, k, &reach->refusal, error)
                                          : CLEAVE_OK);
      }
    }
  }
  return CLEAVE_OK;
}

void cleave_rule_check_count_gradients(cleave_rule_check_t *check, const cleave_rule_list_t *list) {
  for (uint32_t s = 0; s < list->count; s++) {
    const cleave_ruleset_t *ruleset = &list->rulesets[s];
    for (uint32_t k = 0; k < ruleset->gradient_count; k++) {
      const cleave_gradient_rule_t *gradient = &ruleset->gradients[k];
      for (size_t r = 0; r < check->reach.count; r++) {
        cleave_rule_reach_t *reach = &check->reach.items[r];
        if (strcmp(reach->rule->kind, "gradient") == 0 && strcmp(reach->rule->name, gradient->name) == 0) {
          reach->matches += gradient->apply == NULL ? 1 : *gradient->calls;
        }
      }
    }
  }
}
