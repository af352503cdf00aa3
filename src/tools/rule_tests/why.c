// SPDX-License-Identifier: Apache-2.0
// Asks the rules once more, with a log, and the explainer for the rest. Only the node-by-node reasons of
// region rules need the second run.
#include "tools/rule_tests/why.h"

#include "backend/program/supports.h"
#include "base/sized.h"
#include "runtime/model/bind.h"
#include "runtime/model/gradient_rules.h"
#include "runtime/model/model.h"

/* Runs the rules over the graph of the plan again, with a log of where regions stopped. */
static cleave_status_t make_log(const cleave_rule_list_t *list, const cleave_graph_t *graph,
                                cleave_supports_t *supports, cleave_boundary_log_t **out_log,
                                cleave_error_t *error) {
  cleave_plan_t *plan = NULL;
  CLEAVE_TRY(cleave_boundary_log_create(graph, out_log, error));
  cleave_partition_options_t options = cleave_rule_list_ask(list, supports);
  options.log = *out_log;
  cleave_status_t status = cleave_partition(graph, list->pointers, list->count, &options, &plan, error);
  cleave_plan_destroy(plan);
  if (status != CLEAVE_OK) {
    cleave_boundary_log_destroy(*out_log);
    *out_log = NULL;
  }
  return status;
}

/* Does any rule file have a gradient? */
static bool has_gradients(const cleave_rule_list_t *list) {
  uint32_t count = 0;
  for (uint32_t k = 0; k < list->count; k++) {
    count += list->pointers[k]->gradient_count;
  }
  return count > 0;
}

cleave_status_t cleave_rule_list_why(const cleave_rule_list_t *list, const cleave_plan_t *plan,
                                     const cleave_why_question_t *question, cleave_why_t **out_why,
                                     cleave_error_t *error) {
  cleave_boundary_log_t *log = NULL;
  cleave_gradient_set_t gradients = {0};
  cleave_supports_t supports;
  cleave_status_t status = CLEAVE_OK;
  *out_why = NULL;
  cleave_supports_init(&supports, plan->graph);
  if (question->node_count > 0) {
    CLEAVE_TRY_CLEANUP(make_log(list, plan->graph, &supports, &log, error));
  }
  bool is_asked = question->node_count + question->rule_count > 0 && has_gradients(list);
  if (is_asked) {
    CLEAVE_TRY_CLEANUP(cleave_gradient_set_load(&gradients, plan->graph->context, list, error));
  }
  cleave_why_request_t request = {.plan = plan,
                                  .log = log,
                                  .rulesets = list->pointers,
                                  .ruleset_count = list->count,
                                  .nodes = question->nodes,
                                  .node_count = (uint32_t)question->node_count,
                                  .rules = question->rules,
                                  .rule_count = (uint32_t)question->rule_count,
                                  .numbers_of_source = question->numbers_of_source,
                                  .limit = question->limit,
                                  .fold = cleave_rule_list_fold,
                                  .supports = cleave_supports_ask,
                                  .supports_context = &supports,
                                  .gradients = is_asked ? &gradients.rules : NULL,
                                  .is_interrupted = question->is_interrupted};
  status = cleave_why_create(&request, out_why, error);
cleanup:
  cleave_gradient_set_deinit(&gradients);
  cleave_supports_deinit(&supports);
  cleave_boundary_log_destroy(log);
  return status;
}

/* ---- the embedding API ---- */

static cleave_status_t answer(const cleave_partition_request_t *request, const cleave_plan_t *plan,
                              const cleave_why_question_t *question, cleave_plan_format_t format,
                              cleave_text_t *text, cleave_error_t *error) {
  cleave_rule_list_t list = {0};
  cleave_why_t *why = NULL;
  cleave_status_t status = CLEAVE_OK;
  CLEAVE_TRY_CLEANUP(cleave_rule_list_load(&list, plan->graph->context, request, NULL, error));
  CLEAVE_TRY_CLEANUP(cleave_rule_list_why(&list, plan, question, &why, error));
  CLEAVE_TRY_CLEANUP(format == CLEAVE_PLAN_JSON ? cleave_why_print_json(why, text, error)
                                                : cleave_why_print_text(why, text, error));
cleanup:
  cleave_why_destroy(why);
  cleave_rule_list_deinit(&list);
  return status;
}

cleave_status_t cleave_model_why(cleave_model_t *model, const cleave_partition_request_t *request,
                                 const cleave_why_options_t *options, char **out_text,
                                 cleave_error_t *error) {
  cleave_why_options_t asked = {.size = sizeof asked};
  cleave_partition_request_t rules;
  cleave_plan_t *plan = NULL;
  cleave_text_t text = {0};
  cleave_status_t status = CLEAVE_OK;
  *out_text = NULL;
  CLEAVE_TRY(CLEAVE_SIZED_IN(cleave_why_options_t, options, &asked, error));
  CLEAVE_TRY(cleave_partition_request_read(request, &rules, error));
  cleave_why_question_t question = {.nodes = &asked.node,
                                    .node_count = asked.node != NULL,
                                    .rules = &asked.rule,
                                    .rule_count = asked.rule != NULL};
  CLEAVE_TRY_CLEANUP(cleave_model_partition(model, &rules, &plan, error));
  CLEAVE_TRY_CLEANUP(answer(&rules, plan, &question, asked.format, &text, error));
  *out_text = cleave_copy_text(cleave_text_get(&text), text.length);
  status = *out_text == NULL ? cleave_error_out_of_memory(error) : CLEAVE_OK;
cleanup:
  cleave_text_deinit(&text);
  cleave_plan_destroy(plan);
  return status;
}
