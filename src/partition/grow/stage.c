// SPDX-License-Identifier: Apache-2.0
// Stages come first: the one stage rule says in which stage nodes are, and from then on no fusion or region
// takes nodes of two. As stages feed later ones only, and every set lies in one of them, contracting sets
// never closes a cycle between stages.

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "partition/grow/partitioner.h"
#include "system/clock.h"

static cleave_status_t fail(const cleave_rule_t *rule, cleave_error_t *error, const char *format, ...)
    CLEAVE_PRINTF(3, 4);

static cleave_status_t fail(const cleave_rule_t *rule, cleave_error_t *error, const char *format, ...) {
  char text[640];
  va_list arguments;
  va_start(arguments, format);
  (void)vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return cleave_error_set_at(error, CLEAVE_ERROR_RULE, rule->file == NULL ? "" : rule->file, rule->line,
                             "stage '%s': %s", rule->name, text);
}

static cleave_status_t fail_backward(const cleave_partitioner_t *partitioner, const cleave_rule_t *rule,
                                     uint32_t reader, uint32_t number, uint32_t from, cleave_error_t *error) {
  char names[2][128];
  return fail(rule, error,
              "node '%s' of stage %u reads what node '%s' of stage %u makes: a stage reads what earlier ones "
              "make, so that there is no cycle",
              cleave_partitioner_label(partitioner, reader, names[0], sizeof names[0]), (unsigned)number,
              cleave_partitioner_label(partitioner, from, names[1], sizeof names[1]),
              (unsigned)partitioner->stages[from]);
}

/* Positions get the numbers of their nodes; those without one, the last of the stages that they read. */
static cleave_status_t place(cleave_partitioner_t *partitioner, const cleave_rule_t *rule,
                             const uint32_t *numbers, cleave_error_t *error) {
  const cleave_contraction_t *c = partitioner->contraction;
  for (uint32_t p = 0; p < c->node_count; p++) {
    uint32_t number = numbers[c->nodes[p].index];
    uint32_t latest = 0;
    uint32_t from = CLEAVE_INDEX_NONE;
    for (uint32_t e = c->producer_start[p]; e < c->producer_start[p + 1]; e++) {
      if (partitioner->stages[c->producers[e]] > latest) {
        from = c->producers[e];
        latest = partitioner->stages[from];
      }
    }
    if (number != CLEAVE_INDEX_NONE && number < latest) {
      return fail_backward(partitioner, rule, p, number, from, error);
    }
    partitioner->stages[p] = number != CLEAVE_INDEX_NONE ? number : latest;
  }
  return CLEAVE_OK;
}

static cleave_status_t count_stages(cleave_partitioner_t *partitioner, const cleave_rule_t *rule,
                                    cleave_error_t *error) {
  bool exists[CLEAVE_STAGE_LIMIT] = {false};
  uint32_t count = 0;
  for (uint32_t p = 0; p < partitioner->contraction->node_count; p++) {
    uint32_t stage = partitioner->stages[p];
    if (stage >= CLEAVE_STAGE_LIMIT) {
      return fail(rule, error, "stage %u of a node: expected 0 to %d", (unsigned)stage,
                  CLEAVE_STAGE_LIMIT - 1);
    }
    exists[stage] = true;
    count = stage >= count ? stage + 1 : count;
  }
  for (uint32_t k = 0; k < count; k++) {
    if (!exists[k]) {
      return fail(rule, error,
                  "no node is in stage %u, and the last stage is %u: expected numbers without gaps",
                  (unsigned)k, (unsigned)(count - 1));
    }
  }
  partitioner->stage_count = count;
  return CLEAVE_OK;
}

static cleave_status_t run_rule(cleave_partitioner_t *partitioner, const cleave_rule_t *rule,
                                cleave_plan_rule_t *entry, cleave_error_t *error) {
  size_t bound = (size_t)cleave_graph_node_bound(partitioner->graph) + 1;
  size_t positions = (size_t)partitioner->contraction->node_count + 1;
  uint64_t start = cleave_clock_now();
  uint32_t *numbers = cleave_allocate(bound, sizeof *numbers);
  partitioner->stages = cleave_allocate_zeroed(positions, sizeof *partitioner->stages);
  cleave_status_t status = CLEAVE_OK;
  if (numbers == NULL || partitioner->stages == NULL) {
    CLEAVE_TRY_CLEANUP(cleave_error_out_of_memory(error));
  }
  memset(numbers, 0xff, bound * sizeof *numbers);
  CLEAVE_TRY_CLEANUP(rule->assign(rule->context, partitioner->graph, numbers, error));
  CLEAVE_TRY_CLEANUP(place(partitioner, rule, numbers, error));
  CLEAVE_TRY_CLEANUP(count_stages(partitioner, rule, error));
  entry->tries = partitioner->contraction->node_count;
  entry->matches = partitioner->stage_count;
  entry->lua_calls = rule->calls == NULL ? 0 : *rule->calls;
  entry->nanoseconds = cleave_clock_now() - start;
  if (partitioner->stage_count < 2) {
    cleave_free(partitioner->stages);
    partitioner->stages = NULL;
  }
cleanup:
  cleave_free(numbers);
  return status;
}

cleave_status_t cleave_partitioner_stage(cleave_partitioner_t *partitioner,
                                         const cleave_ruleset_t *const *rulesets, uint32_t count,
                                         cleave_error_t *error) {
  const cleave_plan_rule_t *first = NULL;
  cleave_plan_rule_t *entry = partitioner->plan->rules;
  for (uint32_t s = 0; s < count; s++) {
    for (uint32_t r = 0; r < rulesets[s]->rule_count; r++, entry++) {
      const cleave_rule_t *rule = &rulesets[s]->rules[r];
      if (rule->kind != CLEAVE_RULE_STAGE) {
        continue;
      }
      if (first != NULL) {
        char where[CLEAVE_PLACE_SIZE];
        return fail(rule, error, "stage '%s' (%s) says already in which stage nodes are", first->name,
                    cleave_rule_place(first->file, first->line, where));
      }
      first = entry;
      CLEAVE_TRY(run_rule(partitioner, rule, entry, error));
    }
  }
  return CLEAVE_OK;
}

bool cleave_partitioner_crosses(const cleave_partitioner_t *partitioner, const cleave_node_t *nodes,
                                uint32_t count, cleave_reason_t *reason) {
  const uint32_t *positions = partitioner->contraction->positions;
  for (uint32_t k = 1; partitioner->stages != NULL && k < count; k++) {
    uint32_t first = partitioner->stages[positions[nodes[0].index]];
    uint32_t stage = partitioner->stages[positions[nodes[k].index]];
    if (stage != first) {
      (void)snprintf(reason->text, sizeof reason->text, "its nodes are in stages %u and %u", (unsigned)first,
                     (unsigned)stage);
      return true;
    }
  }
  return false;
}
