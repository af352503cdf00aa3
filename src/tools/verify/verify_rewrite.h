// SPDX-License-Identifier: Apache-2.0
/* The part of cleave_plan_verify that is about rewrites and passes. */
#ifndef CLEAVE_TOOLS_VERIFY_VERIFY_REWRITE_H
#define CLEAVE_TOOLS_VERIFY_VERIFY_REWRITE_H

#include "partition/plan/plan.h"
#include "tools/verify/verify.h"

/* Appends an item for every graph rule that changed something. Values that later rules or folding took away
 * are not compared: what replaced them is, with the value of the source at their place. If a pass added
 * inputs, the items are SKIPPED. */
CLEAVE_STATUS cleave_verify_rewrites(const cleave_plan_t *plan, const cleave_verify_options_t *options,
                                     cleave_verify_report_t *report, cleave_error_t *error);

/* rewrite_parts.c: the nodes that a rewrite took, and those that it put in their place, as two graphs that
 * can run beside each other. */

/* A value, and what stands for it after the rules. */
typedef struct cleave_value_pair {
  cleave_value_t source; /* of plan->source */
  cleave_value_t result; /* of plan->graph */
  uint32_t rule;         /* in plan->rules */
} cleave_value_pair_t;

typedef struct cleave_rewrite_parts {
  cleave_graph_t *before; /* computes the source's value of the pair */
  cleave_graph_t *after;  /* computes the result */
  /* Inputs of both graphs, in order: values of plan->source, or the pairs that stand for them. */
  CLEAVE_ARRAY(cleave_value_t) inputs;
} cleave_rewrite_parts_t;

/* Goes back in both graphs from pair `index` to values that both have: those that no rule touched, and the
 * other pairs. Both graphs share constants with the plan's, which must outlive them if they have custom
 * operators. The parts must be deinitialised also when this fails. */
CLEAVE_STATUS cleave_rewrite_parts_find(const cleave_plan_t *plan, const cleave_value_pair_t *pairs,
                                        size_t pair_count, size_t index, cleave_rewrite_parts_t *out_parts,
                                        cleave_error_t *error);
void cleave_rewrite_parts_deinit(cleave_rewrite_parts_t *parts);

/* verify_random.c: compares pairs, one of each kind unless options->each, on random values: as far apart as
 * the model's, and in every other round 10 or 100 times as far. The report has an item for each rule of the
 * pairs. */
CLEAVE_STATUS cleave_verify_random(const cleave_plan_t *plan, const cleave_value_pair_t *pairs,
                                   size_t pair_count, const cleave_verify_options_t *options,
                                   cleave_verify_report_t *report, cleave_error_t *error);

#endif /* CLEAVE_TOOLS_VERIFY_VERIFY_REWRITE_H */
