// SPDX-License-Identifier: Apache-2.0
// The judges of a rule's matches: its `where` and, for fuse rules, the backend. They are asked about matches
// of an edited pattern as when the rule runs.

#include <stdio.h>

#include "partition/report/explain_report.h"

/* If `where` fails for a match that it was not written for, this is a refusal, not an error of the answer. */
static cleave_status_t ask_where(const cleave_rule_t *rule, const cleave_graph_t *graph,
                                 const cleave_match_t *match, bool *out_yes, cleave_reason_t *reason,
                                 cleave_error_t *error) {
  cleave_error_t failure = CLEAVE_ERROR_INIT;
  cleave_status_t status = rule->where(rule->context, graph, match, out_yes, reason, &failure);
  if (status == CLEAVE_ERROR_OUT_OF_MEMORY) {
    return cleave_error_out_of_memory(error);
  }
  if (status != CLEAVE_OK) {
    *out_yes = false;
    (void)snprintf(reason->text, sizeof reason->text, "%.255s", failure.message);
  } else if (!*out_yes && reason->text[0] == '\0') {
    (void)snprintf(reason->text, sizeof reason->text, "'where' returned false");
  }
  return CLEAVE_OK;
}

static cleave_status_t ask_backend(const cleave_why_builder_t *builder, const cleave_rule_t *rule,
                                   const cleave_match_t *match, bool *out_yes, cleave_reason_t *reason,
                                   cleave_error_t *error) {
  const cleave_why_request_t *request = builder->request;
  const cleave_plan_t *plan = request->plan;
  cleave_fusion_set_t set = {.rule = rule->name,
                             .nodes = match->nodes,
                             .labels = match->node_labels,
                             .node_count = match->node_count,
                             .attributes = rule->attributes,
                             .attribute_count = rule->attribute_count};
  CLEAVE_TRY(request->supports(request->supports_context, plan->rules[builder->asked_rule].backend,
                               plan->graph, &set, out_yes, reason, error));
  if (!*out_yes && reason->text[0] == '\0') {
    (void)snprintf(reason->text, sizeof reason->text, "the backend refused it without a reason");
  }
  return CLEAVE_OK;
}

static cleave_status_t ask(void *context, const cleave_graph_t *graph, const cleave_match_t *match,
                           const char **out_refuser, cleave_reason_t *reason, cleave_error_t *error) {
  const cleave_why_builder_t *builder = context;
  const cleave_plan_t *plan = builder->request->plan;
  const cleave_rule_t *rule = builder->rules[builder->asked_rule];
  bool yes = true;
  CLEAVE_TRY(rule->where == NULL ? CLEAVE_OK : ask_where(rule, graph, match, &yes, reason, error));
  if (!yes) {
    *out_refuser = "where";
    return CLEAVE_OK;
  }
  // Backends are asked about the graph that they get.
  if (builder->request->supports != NULL && graph == plan->graph &&
      plan->rules[builder->asked_rule].kind == CLEAVE_RULE_FUSE) {
    CLEAVE_TRY(ask_backend(builder, rule, match, &yes, reason, error));
    *out_refuser = yes ? NULL : "backend";
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_why_set_rule(cleave_why_builder_t *builder, uint32_t rule,
                                    cleave_explainer_t *explainer, cleave_error_t *error) {
  builder->asked_rule = rule;
  cleave_explainer_set_judge(explainer, ask, builder);
  return cleave_explainer_set_pattern(explainer, builder->rules[rule]->pattern, error);
}
