// SPDX-License-Identifier: Apache-2.0
// A region rule from begin to end: growth by operators, functions or a selector, timed.

#include "partition/grow/partitioner.h"
#include "system/clock.h"

#define SPLIT_STEPS ((size_t)20000000) /* of a rule, and 64 for each edge of the graph */

cleave_status_t cleave_partitioner_region(cleave_partitioner_t *partitioner, const cleave_rule_t *rule,
                                          uint32_t rule_index, cleave_error_t *error) {
  const cleave_contraction_t *c = partitioner->contraction;
  partitioner->split_steps_left = SPLIT_STEPS + (size_t)64 * c->producer_start[c->node_count];
  uint64_t start = cleave_clock_now();
  uint64_t calls = rule->calls == NULL ? 0 : *rule->calls;
  cleave_plan_rule_t *entry = &partitioner->plan->rules[rule_index];
  if (rule->begin != NULL) {
    CLEAVE_TRY(rule->begin(rule->context, partitioner->graph, error));
  }
  cleave_status_t status = rule->mode == CLEAVE_REGION_SELECTOR
                               ? cleave_partitioner_select(partitioner, rule, rule_index, error)
                               : cleave_partitioner_grow(partitioner, rule, rule_index, error);
  if (rule->begin != NULL) {
    rule->end(rule->context);
  }
  CLEAVE_TRY(status);
  entry->lua_calls += (rule->calls == NULL ? 0 : *rule->calls) - calls;
  entry->nanoseconds += cleave_clock_now() - start;
  return CLEAVE_OK;
}
