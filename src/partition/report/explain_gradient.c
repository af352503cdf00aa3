// SPDX-License-Identifier: Apache-2.0
// Which gradient rule an operator has, and which one it replaces.
#include <string.h>

#include "partition/report/explain_report.h"

const cleave_gradient_rule_t *cleave_why_find_gradient(const cleave_why_request_t *request,
                                                       const char *name) {
  for (uint32_t s = 0; s < request->ruleset_count; s++) {
    for (uint32_t k = 0; k < request->rulesets[s]->gradient_count; k++) {
      if (strcmp(request->rulesets[s]->gradients[k].name, name) == 0) {
        return &request->rulesets[s]->gradients[k];
      }
    }
  }
  return NULL;
}

static uint32_t count_nodes(const cleave_graph_t *graph, const cleave_op_t *op) {
  uint32_t count = 0;
  for (uint32_t n = 0; n < cleave_graph_node_bound(graph); n++) {
    cleave_node_t node = {n};
    count += cleave_node_is_live(graph, node) && cleave_node_op(graph, node) == op ? 1 : 0;
  }
  return count;
}

static cleave_status_t copy_place(cleave_arena_t *arena, const cleave_gradient_rule_t *rule,
                                  const char **out_place, cleave_error_t *error) {
  char place[CLEAVE_PLACE_SIZE];
  const char *text = cleave_rule_place(rule->file, rule->line, place);
  *out_place = cleave_arena_copy_text(arena, text, strlen(text));
  CLEAVE_TRY_MEMORY(*out_place, error);
  return CLEAVE_OK;
}

static cleave_status_t describe(const cleave_why_builder_t *builder, const cleave_op_t *op,
                                cleave_why_gradient_t *out_report, cleave_error_t *error) {
  const cleave_gradient_rules_t *rules = builder->request->gradients;
  uint32_t found = 0;
  *out_report =
      (cleave_why_gradient_t){.op = op->name, .node_count = count_nodes(builder->request->plan->graph, op)};
  for (size_t k = rules->count; k-- > 0 && found < 2;) {
    const cleave_gradient_rule_t *rule = rules->items[k];
    if (rule->op == op) {
      out_report->carries = found == 0 ? rule->apply != NULL : out_report->carries;
      CLEAVE_TRY(
          copy_place(builder->arena, rule, found == 0 ? &out_report->place : &out_report->replaced, error));
      found++;
    }
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_why_report_gradient(const cleave_why_builder_t *builder, const cleave_op_t *op,
                                           const cleave_why_gradient_t **out_report, cleave_error_t *error) {
  *out_report = NULL;
  if (builder->request->gradients == NULL) {
    return CLEAVE_OK;
  }
  cleave_why_gradient_t *report = cleave_arena_allocate(builder->arena, 1, sizeof *report);
  CLEAVE_TRY_MEMORY(report, error);
  CLEAVE_TRY(describe(builder, op, report, error));
  *out_report = report;
  return CLEAVE_OK;
}

cleave_status_t cleave_why_report_gradients(const cleave_why_builder_t *builder, cleave_why_t *why,
                                            cleave_error_t *error) {
  const cleave_why_request_t *request = builder->request;
  cleave_why_gradient_t *reports =
      cleave_arena_allocate(builder->arena, (size_t)request->rule_count + 1, sizeof *reports);
  CLEAVE_TRY_MEMORY(reports, error);
  why->gradients = reports;
  for (uint32_t k = 0; k < request->rule_count && request->gradients != NULL; k++) {
    const cleave_gradient_rule_t *rule = cleave_why_find_gradient(request, request->rules[k]);
    if (rule != NULL) {
      CLEAVE_TRY(describe(builder, rule->op, &reports[why->gradient_count], error));
      why->gradient_count++;
    }
  }
  return CLEAVE_OK;
}
