// SPDX-License-Identifier: Apache-2.0
/* Rule files that run together: `--rules a.lua --rules b.lua`, with their rulesets in order. */
#ifndef CLEAVE_RUNTIME_MODEL_RULE_LIST_H
#define CLEAVE_RUNTIME_MODEL_RULE_LIST_H

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
  /* As in cleave_partition_options_t; set by who wants to leave applications of rules out. */
  bool (*allow)(void *context, const cleave_graph_t *graph, const cleave_plan_rule_t *rule,
                const cleave_node_t *nodes, uint32_t node_count);
  void *allow_context;
  bool stops_at_mistakes; /* as in cleave_transform_options_t; set by who checks rules */
} cleave_rule_list_t;

/* Loads rule files, for models of `context`. A setting that none of them declares is an error, unless `known`
 * (may be NULL) marks it as one that has served elsewhere. `backend`, if not NULL, takes the place of all
 * that the files name. Without sources there is one region rule over all that `backend` supports (`cpu` and
 * NULL: none). The backend's name must outlive the list, which must be deinitialised also when this fails. */
CLEAVE_MUST_USE cleave_status_t cleave_rule_list_load(cleave_rule_list_t *list, cleave_context_t *context,
                                                      const cleave_rule_source_t *sources,
                                                      size_t source_count, const cleave_setting_t *settings,
                                                      size_t setting_count, const bool *known,
                                                      const char *backend, cleave_error_t *error);
/* The same, telling `listener` (may be NULL) of the files, also of those that were opened before it failed.
 */
CLEAVE_MUST_USE cleave_status_t cleave_rule_list_load_watched(
    cleave_rule_list_t *list, cleave_context_t *context, const cleave_rule_source_t *sources,
    size_t source_count, const cleave_setting_t *settings, size_t setting_count, const bool *known,
    const char *backend, const cleave_rules_listener_t *listener, cleave_error_t *error);
void cleave_rule_list_deinit(cleave_rule_list_t *list);

/* Runs the graph rules of a list (rewrites and passes), alone; what comes out must not outlive the graph. */
CLEAVE_MUST_USE cleave_status_t cleave_rule_list_transform(const cleave_rule_list_t *list,
                                                           const cleave_graph_t *graph,
                                                           cleave_transformation_t *out_transformation,
                                                           cleave_error_t *error);

/* What such rules did, once more: the changes of a log on a copy of the graph that they were made to, which
 * must outlive it (cleave_transform_replay). */
CLEAVE_MUST_USE cleave_status_t cleave_graph_replay(const cleave_graph_t *graph, const cleave_edits_t *edits,
                                                    cleave_graph_t **out_graph, cleave_error_t *error);

/* Runs the rules of a list over a graph, which must outlive the plan; backends are asked through the
 * registry. A list without rulesets gives a plan of single nodes. */
CLEAVE_MUST_USE cleave_status_t cleave_rule_list_partition(const cleave_rule_list_t *list,
                                                           const cleave_graph_t *graph,
                                                           cleave_plan_t **out_plan, cleave_error_t *error);

/* Why the regions of a plan end where they end. `graph` is the one that the plan is about: rules that change
 * graphs do not run. */
CLEAVE_MUST_USE cleave_status_t cleave_rule_list_report(const cleave_rule_list_t *list,
                                                        const cleave_graph_t *graph,
                                                        cleave_boundary_report_t **out_report,
                                                        cleave_error_t *error);

#endif /* CLEAVE_RUNTIME_MODEL_RULE_LIST_H */
