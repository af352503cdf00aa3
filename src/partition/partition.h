/* SPDX-License-Identifier: Apache-2.0 */
/* The driver: rulesets over a graph give a plan. */
#ifndef CLEAVE_PARTITION_PARTITION_H
#define CLEAVE_PARTITION_PARTITION_H

#include "partition/plan.h"
#include "partition/ruleset.h"

typedef struct cleave_partition_options {
  /* Asks a backend whether it runs these nodes: one node without labels, or the nodes of one fusion with
   * theirs. Sets *out_yes, or leaves the reason. NULL: every backend runs everything (tests, planning without
   * backends). */
  cleave_status_t (*supports)(void *context, const char *backend, const cleave_graph_t *graph,
                              const cleave_node_t *nodes, const char *const *labels, uint32_t node_count,
                              const char *rule, bool *out_yes, cleave_reason_t *reason,
                              cleave_error_t *error);
  void *supports_context;
  /* May this rule (plan->rules[rule]) take these nodes, in topological order? Asked for every fusion and
   * region that would be made otherwise; a no is noted as `left out`. NULL: yes. For quarantine and
   * bisection. */
  bool (*allow)(void *context, const cleave_graph_t *graph, const cleave_plan_rule_t *rule,
                const cleave_node_t *nodes, uint32_t node_count);
  void *allow_context;
  uint32_t max_notes; /* notes kept; 0: the default of 10000. Counts in plan->rules stay exact. */
} cleave_partition_options_t;

/* Runs the rulesets in order, in each the fuse rules before the region rules, by priority, then file order.
 * The graph is not changed. With no rulesets the plan has one step per node. Rule names and texts are copied
 * into the plan. Deterministic: the same graph and rules give the same plan. */
CLEAVE_MUST_USE cleave_status_t cleave_partition(const cleave_graph_t *graph,
                                                 const cleave_ruleset_t *const *rulesets,
                                                 uint32_t ruleset_count,
                                                 const cleave_partition_options_t *options,
                                                 cleave_plan_t **out_plan, cleave_error_t *error);

#endif /* CLEAVE_PARTITION_PARTITION_H */
