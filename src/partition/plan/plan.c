// SPDX-License-Identifier: Apache-2.0
// Destroys plans, sums the counts of rules, and names kinds of notes.

#include "partition/plan/plan.h"

#include <stdio.h>
#include <string.h>

void cleave_plan_destroy(cleave_plan_t *plan) {
  if (plan == NULL) {
    return;
  }
  cleave_graph_destroy(plan->rewritten);
  cleave_edits_destroy(plan->edits);
  // The arena is a member of the plan, which is not allocated from it.
  cleave_arena_deinit(&plan->arena);
  cleave_free(plan);
}

const char *cleave_plan_note_name(cleave_plan_note_kind_t kind) {
  switch (kind) {
    case CLEAVE_PLAN_NOTE_WHERE: return "where";
    case CLEAVE_PLAN_NOTE_BACKEND: return "backend";
    case CLEAVE_PLAN_NOTE_REVIEW: return "review";
    case CLEAVE_PLAN_NOTE_THRESHOLD: return "threshold";
    case CLEAVE_PLAN_NOTE_CYCLE: return "cycle";
    case CLEAVE_PLAN_NOTE_FILTER: return "filter";
    case CLEAVE_PLAN_NOTE_TAKEN: return "taken";
    case CLEAVE_PLAN_NOTE_LIMIT: return "limit";
    case CLEAVE_PLAN_NOTE_LEFT_OUT: return "left out";
    case CLEAVE_PLAN_NOTE_STAGE: return "stage";
    case CLEAVE_PLAN_NOTE_OUTPUT: return "output";
  }
  return "unknown";
}

bool cleave_plan_rule_is_same(const cleave_plan_t *plan, uint32_t rule, uint32_t other) {
  const cleave_plan_rule_t *a = &plan->rules[rule];
  const cleave_plan_rule_t *b = &plan->rules[other];
  return rule == other || (a->kind == b->kind && a->line == b->line && a->file != NULL && b->file != NULL &&
                           strcmp(a->file, b->file) == 0 && strcmp(a->name, b->name) == 0 &&
                           (!cleave_rule_kind_has_backend(a->kind) || strcmp(a->backend, b->backend) == 0));
}

bool cleave_plan_rule_total(const cleave_plan_t *plan, uint32_t rule, cleave_plan_rule_t *out_total) {
  *out_total = plan->rules[rule];
  for (uint32_t k = 0; k < plan->rule_count; k++) {
    const cleave_plan_rule_t *other = &plan->rules[k];
    if (k == rule || !cleave_plan_rule_is_same(plan, rule, k)) {
      continue;
    }
    if (k < rule) {
      return false;
    }
    out_total->tries += other->tries;
    out_total->matches += other->matches;
    out_total->refused += other->refused;
    out_total->structural_hits += other->structural_hits;
    out_total->lua_calls += other->lua_calls;
    out_total->nanoseconds += other->nanoseconds;
  }
  return true;
}

const char *cleave_rule_place(const char *file, int32_t line, char *buffer) {
  bool has_file = file != NULL && file[0] != '\0';
  (void)snprintf(buffer, CLEAVE_PLACE_SIZE, has_file ? "%s:%d" : "a library", file, (int)line);
  return buffer;
}
