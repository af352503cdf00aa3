// SPDX-License-Identifier: Apache-2.0
/* Rule files that run together: `--rules a.lua --rules b.lua`, with their rulesets in order. */
#ifndef CLEAVE_RUNTIME_MODEL_RULE_LIST_H
#define CLEAVE_RUNTIME_MODEL_RULE_LIST_H

#include "backend/program/supports.h"
#include "partition/grow/partition.h"
#include "partition/pattern/ruleset.h"
#include "partition/plan/plan.h"
#include "partition/report/boundary_report.h"
#include "partition/rewrite/transform.h"
#include "script/rules/rules.h"

typedef struct cleave_rule_list {
  cleave_context_t *context; /* of the models that they are for; borrowed */
  cleave_rules_t **files;    /* one per source */
  size_t file_count;
  cleave_ruleset_t *rulesets; /* those of all files, with the backend that is to be used */
  const cleave_ruleset_t **pointers;
  uint32_t count;            /* of rulesets */
  cleave_rule_t *everything; /* without files: the one rule there is */
  /* As in cleave_partition_options_t; set by callers that leave applications of rules out. */
  bool (*allow)(void *context, const cleave_graph_t *graph, const cleave_plan_rule_t *rule,
                const cleave_node_t *nodes, uint32_t node_count);
  void *allow_context;
  bool stops_at_mistakes; /* as in cleave_transform_options_t; set by callers that check rules */
} cleave_rule_list_t;

/* Options that the embedding API does not have. All zero are the defaults. */
typedef struct cleave_rule_list_options {
  /* Per setting: something else used it, so that no rule file has to declare it. NULL: nothing did. */
  const bool *known;
  const cleave_rules_listener_t
      *listener;          /* told of the files, also of those of a load that fails; or NULL */
  bool stops_at_mistakes; /* becomes that of the list */
  bool leaves_tests_out;  /* of rule files that come with cleave: nobody will ask for them */
} cleave_rule_list_options_t;

/* Loads the rule files of a request, for models of `context`; `options` may be NULL. Without sources there is
 * one region rule over all that the request's backend supports (`cpu` and NULL: none). CLEAVE_POINTWISE=VALUE
 * in the environment is the setting `pointwise` of the files that have it, before those of the request. The
 * backend's name must outlive the list, which must be deinitialised also when this fails. */
CLEAVE_STATUS cleave_rule_list_load(cleave_rule_list_t *list, cleave_context_t *context,
                                    const cleave_partition_request_t *request,
                                    const cleave_rule_list_options_t *options, cleave_error_t *error);
void cleave_rule_list_deinit(cleave_rule_list_t *list);

/* Options that ask the backends of the registry; `supports` is of the graph that is asked about. */
cleave_partition_options_t cleave_rule_list_ask(const cleave_rule_list_t *list, cleave_supports_t *supports);
/* For cleave_transform_options_t.fold. */
CLEAVE_STATUS cleave_rule_list_fold(void *context, cleave_graph_t *graph, cleave_error_t *error);

/* Makes the changes of a log again, on a copy of the graph that they were made to, which must outlive the
 * copy (cleave_transform_replay). */
CLEAVE_STATUS cleave_graph_replay(const cleave_graph_t *graph, const cleave_edits_t *edits,
                                  cleave_graph_t **out_graph, cleave_error_t *error);

/* Runs the rules of a list over a graph, which must outlive the plan; backends are asked through the
 * registry. A list without rulesets gives a plan of single nodes. */
CLEAVE_STATUS cleave_rule_list_partition(const cleave_rule_list_t *list, const cleave_graph_t *graph,
                                         cleave_plan_t **out_plan, cleave_error_t *error);

/* Why the regions of a plan end where they end. `graph` is the one that the plan is about: rules that change
 * graphs do not run. */
CLEAVE_STATUS cleave_rule_list_report(const cleave_rule_list_t *list, const cleave_graph_t *graph,
                                      cleave_boundary_report_t **out_report, cleave_error_t *error);

#endif /* CLEAVE_RUNTIME_MODEL_RULE_LIST_H */
