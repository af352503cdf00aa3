// SPDX-License-Identifier: Apache-2.0
/*
 * Which applications of rules cause a difference, or cost time? An application is one fusion or region that a
 * rule made, or all that a rewrite or pass did. The rules run again and again over the model with some
 * applications left out, and the sessions are compared: for accuracy by delta debugging (Zeller and
 * Hildebrandt, 2002), for speed by leaving out one after the other; what is found so is left out together and
 * measured again before it counts.
 */
#ifndef CLEAVE_TOOLS_VERIFY_BISECT_H
#define CLEAVE_TOOLS_VERIFY_BISECT_H

#include "base/containers/array.h"
#include "base/text.h"
#include "runtime/model/rule_list.h"

typedef enum cleave_bisect_metric {
  CLEAVE_BISECT_MAX_ABS, /* largest difference of an output from the unpartitioned model on `cpu` */
  CLEAVE_BISECT_MS       /* median latency */
} cleave_bisect_metric_t;

typedef struct cleave_bisect_options {
  cleave_bisect_metric_t metric;
  /* MAX_ABS: differences above this are broken; negative: above what rounding does (tools/verify/rounding.h).
   * MS: leaving an application out must make the model faster by this share; negative: 0.05. */
  double threshold;
  cleave_tensor_t *const *inputs; /* of the model, one per input */
  size_t input_count;
  int32_t threads;
  const cleave_session_options_t *session; /* backend options and blobs are taken from it; NULL: none */
  uint32_t most_tests;                     /* sessions made; 0: 2000 */
  /* Called before each test, for progress; may be NULL. `left`: applications still suspected. */
  void (*progress)(void *context, uint32_t test, uint32_t left);
  void *context;
} cleave_bisect_options_t;

typedef enum cleave_bisect_kind {
  CLEAVE_BISECT_FUSION,
  CLEAVE_BISECT_REGION,
  CLEAVE_BISECT_GRAPH_RULE /* all that a rewrite or a pass did */
} cleave_bisect_kind_t;

/* An application that causes a difference, or costs time. */
typedef struct cleave_bisect_culprit {
  cleave_bisect_kind_t kind;
  uint32_t index;       /* in plan->fusions, plan->regions or plan->rules of the report */
  uint32_t rule;        /* in plan->rules */
  uint32_t application; /* its number among all */
  double value;         /* MAX_ABS: the difference with it alone; MS: milliseconds without it */
  double reference;     /* MS: milliseconds with it, measured alternately; MAX_ABS: 0 */
} cleave_bisect_culprit_t;

typedef struct cleave_bisect_report {
  cleave_plan_t *plan; /* with all applications */
  uint32_t application_count;
  double value_all;    /* the metric with all applications */
  double value_found;  /* MAX_ABS: with the culprits alone; MS: without all of them */
  double value_others; /* MAX_ABS: with all but the culprits; MS: with all, measured alternately with
                          value_found */
  /* MS, with culprits: how much faster all is without them (negative), and its interval; see
   * tools/verify/paired.h
   */
  double change;
  double change_low;
  double change_high;
  uint32_t candidate_count; /* MS: applications that gain alone; those that are not culprits did not hold */
  uint32_t tests;
  bool is_complete; /* false: ended by most_tests, the set may not be the smallest */
  CLEAVE_ARRAY(cleave_bisect_culprit_t) culprits; /* none: nothing is broken */
} cleave_bisect_report_t;

/* Searches. The list's `allow` is used here, and NULL afterwards. The report must be deinitialised also when
 * this fails. */
CLEAVE_STATUS cleave_rules_bisect(cleave_rule_list_t *list, const cleave_graph_t *graph,
                                  const cleave_bisect_options_t *options, cleave_bisect_report_t *out_report,
                                  cleave_error_t *error);
void cleave_bisect_report_deinit(cleave_bisect_report_t *report);

#endif /* CLEAVE_TOOLS_VERIFY_BISECT_H */
