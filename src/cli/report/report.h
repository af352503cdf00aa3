// SPDX-License-Identifier: Apache-2.0
/* What `run` and `partition` print about a plan: rules with their fusions and regions, nodes left on cpu. */
#ifndef CLEAVE_CLI_REPORT_REPORT_H
#define CLEAVE_CLI_REPORT_REPORT_H

#include <jansson.h>

#include "cli/common/sizes.h"
#include "partition/plan/plan.h"

/* Table of rules, line of counts, nodes outside of regions by operator with the first reasons. `graph` is
 * the plan's. */
void cleave_report_plan(const cleave_plan_t *plan);

/* "  sizes: N = 1 taken; ...", a line; nothing if the model leaves none open. */
void cleave_report_sizes(const cleave_sizes_t *sizes);

/* Matches that rewrites left as they are, by reason; nothing if there are none. */
void cleave_report_refusals(const cleave_plan_t *plan);

/* Adds "fusions", "regions", "nodes", "nodes_on_cpu", "rules", "left_on_cpu" to an object. */
void cleave_report_plan_json(const cleave_plan_t *plan, json_t *object);

/* What `--rule-stats` prints: per rule what it tried, found and asked, and how long that took. */
void cleave_report_rule_stats(const cleave_plan_t *plan);

/* Adds "rule_stats" to an object. */
void cleave_report_rule_stats_json(const cleave_plan_t *plan, json_t *object);

#endif /* CLEAVE_CLI_REPORT_REPORT_H */
