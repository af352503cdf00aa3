// SPDX-License-Identifier: Apache-2.0
/* Prints plans for `run` and `partition`: rules with their fusions and regions, nodes left on cpu. */
#ifndef CLEAVE_CLI_REPORT_REPORT_H
#define CLEAVE_CLI_REPORT_REPORT_H

#include <jansson.h>
#include <stddef.h>

#include "cleave/cleave.h"
#include "cli/common/sizes.h"
#include "partition/plan/plan.h"
#include "runtime/session/session.h"
#include "tools/profile/profile.h"

/* Table of rules, or that the rule files have none, rules that failed, line of counts, nodes outside of
 * regions by operator with the first reasons. */
void cleave_report_plan(const cleave_plan_t *plan, bool has_rule_files);

/* A warning per rewrite that failed at matches, with the first failure; nothing if none did. */
void cleave_report_mistakes(const cleave_plan_t *plan);

/* "  sizes: N = 1 taken; ...", a line; nothing if the model leaves none open. */
void cleave_report_sizes(const cleave_sizes_t *sizes);

/* Matches that rewrites left as they are, by reason; nothing if there are none. */
void cleave_report_refusals(const cleave_plan_t *plan);

/* Adds "fusions", "regions", "nodes", "nodes_on_cpu", "rules", "left_on_cpu" to an object. */
void cleave_report_plan_json(const cleave_plan_t *plan, json_t *object);

/* Prints, for `--rule-stats`, what each rule tried, found and asked, and how long that took. */
void cleave_report_rule_stats(const cleave_plan_t *plan);

/* Adds "rule_stats" to an object. */
void cleave_report_rule_stats_json(const cleave_plan_t *plan, json_t *object);

/* ---- report_devices ---- */

/* Prints a line per device with memory of its own: what lies there, and what a run copies. Nothing if there
 * is none. */
void cleave_report_devices(const cleave_session_t *session);

/* An array of objects with "name", "values", "unshared", "workspace", "constants", "dynamic", "copied_to" and
 * "copied_from", in bytes. */
json_t *cleave_report_devices_json(const cleave_session_t *session);

/* ---- report_profile ---- */

/* Time per region, and per fusion and operator. */
/* Prints a finished profile; `path` is the trace that was written. */
void cleave_report_profile(const cleave_profile_t *profile, const char *path);

/* ---- report_recompute ---- */

/* The help text of --recompute. */
#define CLEAVE_RECOMPUTE_HELP                                                                               \
  "compute values of forward again, shortly before backward reads them, so that the values of a run need "  \
  "at most this share of the memory that they need if all are kept: 0.5. What costs the fewest additional " \
  "FLOPs is chosen (default: all are kept)"

/* A line. */
void cleave_report_recompute(const cleave_recompute_report_t *report);
/* An object; NULL without memory. */
json_t *cleave_report_recompute_json(const cleave_recompute_report_t *report);

/* ---- times ---- */

/* Sorts times, the smallest first. */
void cleave_times_sort(double *times, size_t count);

/* The time below which `share` (0 to 1) of the sorted times are, interpolated between the two next to it; so
 * the median of an even count is the mean of the middle two. 0 without times. */
double cleave_times_quantile(const double *sorted, size_t count, double share);
double cleave_times_mean(const double *times, size_t count); /* 0 of none */

/* A time in milliseconds as text, with more digits if it is short. Returns `buffer`. */
const char *cleave_times_format(double ms, char *buffer, size_t size);

#endif /* CLEAVE_CLI_REPORT_REPORT_H */
