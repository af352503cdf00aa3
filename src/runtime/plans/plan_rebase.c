// SPDX-License-Identifier: Apache-2.0
// A plan for another version of its model. Ids are the same in both, so the decisions are copied as they are;
// what is not copied is what rules computed, and what backends said: they are asked again.
#include "graph/compare/same_structure.h"
#include "partition/rewrite/transform_rebase.h"
#include "runtime/model/bind.h"
#include "runtime/model/model.h"
#include "runtime/plans/plan_load.h"

static cleave_status_t check_model(const cleave_plan_t *plan, const cleave_graph_t *graph,
                                   cleave_error_t *error) {
  cleave_text_t text = {0};
  cleave_status_t status = CLEAVE_OK;
  if (!cleave_graph_is_version_of(graph, plan->source, &text)) {
    status = cleave_error_set(error, CLEAVE_ERROR_MISMATCH, "the plan is of another model: %.600s",
                              cleave_text_get(&text));
  }
  cleave_text_deinit(&text);
  return status;
}

cleave_status_t cleave_plan_take_over(const cleave_plan_t *plan, cleave_model_t *model,
                                      cleave_plan_t **out_plan, cleave_error_t *error) {
  const cleave_graph_t *graph = cleave_model_graph(model);
  cleave_graph_t *rewritten = NULL;
  cleave_edits_t *edits = NULL;
  cleave_plan_t *copy = NULL;
  cleave_transform_options_t options = {.fold = cleave_rule_list_fold};
  *out_plan = NULL;
  CLEAVE_TRY(check_model(plan, graph, error));
  cleave_status_t status = CLEAVE_OK;
  if (plan->rewritten != NULL) {
    CLEAVE_TRY_CLEANUP(cleave_transform_rebase(plan, graph, &options, &rewritten, &edits, error));
  } else if (plan->edits != NULL) {
    CLEAVE_TRY_CLEANUP(cleave_edits_copy(plan->edits, &edits, error));
  }
  CLEAVE_TRY_CLEANUP(cleave_plan_copy(plan, graph, rewritten != NULL ? rewritten : graph, &copy, error));
  if (edits != NULL && rewritten == NULL) {
    edits->source_hash = copy->graph_hash;
    edits->result_hash = copy->graph_hash;
  }
  copy->rewritten = rewritten;
  copy->edits = edits;
  *out_plan = copy;
  copy = NULL;
  rewritten = NULL;
  edits = NULL;
cleanup:
  cleave_plan_destroy(copy);
  cleave_graph_destroy(rewritten);
  cleave_edits_destroy(edits);
  return status;
}

cleave_status_t cleave_plan_rebase(const cleave_plan_t *plan, cleave_model_t *model, cleave_plan_t **out_plan,
                                   cleave_error_t *error) {
  cleave_plan_t *copy = NULL;
  *out_plan = NULL;
  CLEAVE_TRY(cleave_plan_take_over(plan, model, &copy, error));
  bool resized = cleave_model_graph(model)->is_sized;
  cleave_status_t status =
      cleave_plan_ask_backends(copy, resized ? "these constants and sizes" : "these constants", error);
  CLEAVE_TRY_OR(status, cleave_plan_destroy(copy));
  *out_plan = copy;
  return CLEAVE_OK;
}
