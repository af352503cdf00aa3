// SPDX-License-Identifier: Apache-2.0
/* The driver: rulesets over a graph give a plan. */
#ifndef CLEAVE_PARTITION_GROW_PARTITION_H
#define CLEAVE_PARTITION_GROW_PARTITION_H

#include "partition/pattern/ruleset.h"
#include "partition/plan/plan.h"

/* Nodes that one kernel computes, as a backend is asked about them. */
typedef struct cleave_fusion_set {
  const char *rule;
  const cleave_node_t *nodes; /* in topological order */
  const char *const *labels;  /* per node; NULL: none */
  uint32_t node_count;
  const cleave_attribute_t *attributes; /* of the rule */
  uint32_t attribute_count;
} cleave_fusion_set_t;

/* Nodes that a backend is asked about as one region. */
typedef struct cleave_region_set {
  const char *backend;
  const cleave_graph_t *graph;
  const cleave_node_t *nodes; /* in topological order */
  uint32_t node_count;
  const cleave_fusion_set_t *fusions;
  uint32_t fusion_count;
  const cleave_attribute_t *attributes; /* of the region, as `review` of its rule says */
  uint32_t attribute_count;
} cleave_region_set_t;

typedef struct cleave_boundary_log cleave_boundary_log_t; /* boundary_log.h */

typedef struct cleave_partition_options {
  /* Asks a backend whether it runs these nodes: a fusion with its labels and attributes or, without labels,
   * one node. Sets *out_yes, or fills in the reason. If it is NULL, every backend runs everything (tests,
   * planning without backends). */
  cleave_status_t (*supports)(void *context, const char *backend, const cleave_graph_t *graph,
                              const cleave_fusion_set_t *set, bool *out_yes, cleave_reason_t *reason,
                              cleave_error_t *error);
  /* Nanoseconds that a backend needs for these nodes, by its own estimate. If the backend has no estimate,
   * *out_known is false and `reason` says why. If the function is NULL, no estimates exist, and `min_gain`
   * refuses nothing. */
  cleave_status_t (*cost)(void *context, const cleave_region_set_t *set, double *out_nanoseconds,
                          bool *out_known, cleave_reason_t *reason, cleave_error_t *error);
  /* A backend's review of a region that the rules propose: it clears keep[k] of nodes to leave out, or
   * refuses the region for `reason`. Called without nodes, it answers whether this backend reviews regions at
   * all. If the function is NULL, no backend does. */
  cleave_status_t (*review)(void *context, const cleave_region_set_t *set, bool *keep, bool *out_yes,
                            cleave_reason_t *reason, cleave_error_t *error);
  void *backend_context; /* of these three */
  /* May this rule (plan->rules[rule]) take these nodes, in topological order? Asked about every fusion and
   * region before it is made; a refusal is noted as `left out`. If it is NULL, the answer is yes. For
   * quarantine and bisection. */
  bool (*allow)(void *context, const cleave_graph_t *graph, const cleave_plan_rule_t *rule,
                const cleave_node_t *nodes, uint32_t node_count);
  void *allow_context;
  uint32_t max_notes; /* notes kept; 0: the default of 10000. Counts in plan->rules stay exact. */
  /* What if? Region rules treat this operator as one that they name, that `supported` puts into any group,
   * that a selector's search takes when it meets it, and that every backend runs. NULL: nothing. Such a plan
   * is for inspection only and must not run. */
  const cleave_op_t *assume;
  cleave_boundary_log_t *log; /* of the same graph: records where growth stopped, and why; may be NULL */
} cleave_partition_options_t;

/* Runs the rulesets in order, in each the fuse rules before the region rules, by priority, then file order.
 * The graph is not changed. With no rulesets the plan has one step per node. Rule names and texts are copied
 * into the plan. Deterministic: the same graph and rules give the same plan. */
CLEAVE_STATUS cleave_partition(const cleave_graph_t *graph, const cleave_ruleset_t *const *rulesets,
                               uint32_t ruleset_count, const cleave_partition_options_t *options,
                               cleave_plan_t **out_plan, cleave_error_t *error);

#endif /* CLEAVE_PARTITION_GROW_PARTITION_H */
