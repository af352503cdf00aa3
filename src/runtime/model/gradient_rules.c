// SPDX-License-Identifier: Apache-2.0
#include "runtime/model/gradient_rules.h"

static const char SHIPPED[] = "lua/cleave/gradients/all.lua";

static cleave_status_t collect(cleave_gradient_set_t *set, const cleave_ruleset_t *rulesets, uint32_t count,
                               cleave_error_t *error) {
  for (uint32_t s = 0; s < count; s++) {
    for (uint32_t k = 0; k < rulesets[s].gradient_count; k++) {
      CLEAVE_ARRAY_PUSH(&set->items, &rulesets[s].gradients[k], error);
    }
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_gradient_set_load(cleave_gradient_set_t *set, cleave_context_t *context,
                                         const cleave_rule_list_t *list, cleave_error_t *error) {
  uint32_t count = 0;
  *set = (cleave_gradient_set_t){0};
  CLEAVE_TRY(cleave_rules_load_embedded(context, SHIPPED, &set->shipped, error));
  const cleave_ruleset_t *rulesets = cleave_rules_rulesets(set->shipped, &count);
  CLEAVE_TRY(collect(set, rulesets, count, error));
  if (list != NULL) {
    CLEAVE_TRY(collect(set, list->rulesets, list->count, error));
  }
  set->rules = (cleave_gradient_rules_t){.items = set->items.items, .count = set->items.count};
  return CLEAVE_OK;
}

void cleave_gradient_set_deinit(cleave_gradient_set_t *set) {
  cleave_rules_destroy(set->shipped);
  cleave_array_free(&set->items);
}
