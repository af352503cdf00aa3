// SPDX-License-Identifier: Apache-2.0
// Destroys plans, and names the kinds of their notes.

#include "partition/plan/plan.h"

#include <stdio.h>

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

const char *cleave_rule_place(const char *file, int32_t line, char *buffer) {
  bool has_file = file != NULL && file[0] != '\0';
  (void)snprintf(buffer, CLEAVE_PLACE_SIZE, has_file ? "%s:%d" : "no rule file", file, (int)line);
  return buffer;
}
