// SPDX-License-Identifier: Apache-2.0
// Plans and backends: every fusion and node of every region is shown to its backend, as when the rules ran.
#include <stdio.h>
#include <string.h>

#include "backend/program/supports.h"
#include "backend/registry/registry.h"
#include "runtime/plans/plan_load.h"

enum { REASON_BYTES = 640 };

/* One question to the backend; *out_refusal gets the reason if it says no. */
static cleave_status_t ask(cleave_supports_t *supports, const cleave_plan_t *plan,
                           const cleave_plan_region_t *region, const cleave_plan_fusion_t *fusion,
                           cleave_node_t node, char *refusal, cleave_error_t *error) {
  bool yes = false;
  char label[128];
  cleave_reason_t reason;
  const cleave_plan_rule_t *rule = &plan->rules[fusion != NULL ? fusion->rule : region->rule];
  cleave_fusion_set_t set = {.rule = rule->name, .nodes = &node, .node_count = 1};
  if (fusion != NULL) {
    set = cleave_view_fusion(plan, fusion);
  }
  CLEAVE_TRY(cleave_supports_ask(supports, region->backend, plan->graph, &set, &yes, &reason, error));
  if (!yes) {
    (void)cleave_node_label(plan->graph, fusion != NULL ? fusion->nodes[0] : node, label, sizeof label);
    (void)snprintf(refusal, REASON_BYTES, "backend '%.60s' refuses %s%.60s at '%s': %s", region->backend,
                   fusion != NULL ? "fusion " : "node ",
                   fusion != NULL ? rule->name : cleave_node_op(plan->graph, node)->name, label,
                   reason.text[0] == '\0' ? "no reason given" : reason.text);
  }
  return CLEAVE_OK;
}

/* Does the backend of a region still run it? `refusal` stays "" then. */
static cleave_status_t check_region(cleave_supports_t *supports, const cleave_plan_t *plan, uint32_t index,
                                    char *refusal, cleave_error_t *error) {
  const cleave_plan_region_t *region = &plan->regions[index];
  const cleave_backend_handle_t *handle = NULL;
  cleave_error_t missing = CLEAVE_ERROR_INIT;
  cleave_status_t status = cleave_registry_find(plan->graph->context, region->backend, &handle, &missing);
  if (status == CLEAVE_ERROR_OUT_OF_MEMORY) {
    return cleave_error_out_of_memory(error);
  }
  if (status != CLEAVE_OK) {
    (void)snprintf(refusal, REASON_BYTES, "%.*s", REASON_BYTES - 1, missing.message);
    return CLEAVE_OK;
  }
  for (uint32_t k = 0; k < region->fusion_count && refusal[0] == '\0'; k++) {
    CLEAVE_TRY(
        ask(supports, plan, region, &plan->fusions[region->fusions[k]], CLEAVE_NODE_NONE, refusal, error));
  }
  for (uint32_t k = 0; k < region->node_count && refusal[0] == '\0'; k++) {
    if (plan->node_fusion[region->nodes[k].index] == CLEAVE_INDEX_NONE) {
      CLEAVE_TRY(ask(supports, plan, region, NULL, region->nodes[k], refusal, error));
    }
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_plan_check_regions(const cleave_plan_t *plan, const char *place, bool fallback,
                                          cleave_arena_t *arena, const char ***out_reasons, bool *out_any,
                                          cleave_error_t *error) {
  cleave_supports_t supports;
  cleave_status_t status = CLEAVE_OK;
  const char **reasons = cleave_arena_allocate(arena, plan->region_count, sizeof *reasons);
  *out_reasons = reasons;
  *out_any = false;
  cleave_supports_init(&supports, plan->graph);
  CLEAVE_TRY_MEMORY_CLEANUP(reasons, error);
  for (uint32_t r = 0; r < plan->region_count; r++) {
    char refusal[REASON_BYTES] = "";
    CLEAVE_TRY_CLEANUP(check_region(&supports, plan, r, refusal, error));
    if (refusal[0] == '\0') {
      continue;
    }
    if (!fallback) {
      CLEAVE_TRY_CLEANUP(cleave_error_set(error, CLEAVE_ERROR_UNSUPPORTED, "%s: region '%.80s': %s", place,
                                          plan->regions[r].name, refusal));
    }
    reasons[r] = cleave_arena_copy_text(arena, refusal, strlen(refusal));
    *out_any = true;
    CLEAVE_TRY_MEMORY_CLEANUP(reasons[r], error);
  }
cleanup:
  cleave_supports_deinit(&supports);
  return status;
}

cleave_status_t cleave_plan_ask_backends(const cleave_plan_t *plan, const char *place,
                                         cleave_error_t *error) {
  cleave_arena_t arena = {0};
  const char **reasons = NULL;
  bool any = false;
  cleave_status_t status = cleave_plan_check_regions(plan, place, false, &arena, &reasons, &any, error);
  cleave_arena_deinit(&arena);
  return status;
}
