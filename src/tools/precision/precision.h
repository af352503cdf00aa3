// SPDX-License-Identifier: Apache-2.0
/*
 * Which parts of a model stay float32 so that its outputs are off by no more than asked. The rules have the
 * options `precision` (a text) and `keep` (a list of nodes by name), as rules/onednn.lua has. A part is a
 * fusion, or a node in none, of a region whose attribute `precision` the rules have set. Each part with
 * a hundred thousandth of the arithmetic is computed alone in the low precision: what that does to the
 * outputs of the model is its error. Then the worst parts stay float32, as few as it takes.
 *
 * An error is the largest difference of an output from the model unpartitioned on `cpu`, over the largest
 * value of that output; of several outputs the largest.
 */
#ifndef CLEAVE_TOOLS_PRECISION_PRECISION_H
#define CLEAVE_TOOLS_PRECISION_PRECISION_H

#include "partition/plan/plan.h"
#include "runtime/session/session.h"

typedef struct cleave_precision_options {
  const cleave_partition_request_t *request; /* rule files; settings but for `precision` and `keep` */
  const bool *known;                         /* per setting of the request, as for cleave_rule_list_load */
  const char *precision;                     /* "bfloat16" */
  const char *keep;                          /* what stays float32 in any case, with commas; or NULL */
  cleave_tensor_t *const *inputs;            /* of the graph, one per input */
  size_t input_count;
  double max_error;
  int32_t threads;
  const cleave_session_options_t *session;
  /* Called before each trial; may be NULL. */
  void (*progress)(void *context, uint32_t trial, uint32_t expected);
  void *context;
} cleave_precision_options_t;

typedef struct cleave_precision_part {
  uint32_t fusion; /* in plan->fusions, or CLEAVE_INDEX_NONE */
  cleave_node_t node;
  const char *name; /* of a node, as `keep` wants it; of the plan's graph */
  double flops;
  double error; /* alone in the low precision */
  bool is_kept;
} cleave_precision_part_t;

typedef struct cleave_precision_report {
  cleave_plan_t *plan; /* with all in the low precision */
  uint32_t regions;    /* of it that have that precision; 0: the backend has no such instructions, or no rule
                          asks for it, and nothing else is there */
  CLEAVE_ARRAY(cleave_precision_part_t) parts; /* the worst first; none if `error_all` was good enough */
  uint32_t kept;
  uint32_t trials;
  bool is_met;        /* error_found <= max_error */
  double error_all;   /* all in the low precision */
  double error_found; /* with what is kept */
  double error_float; /* all in float32 */
  double ms_all;      /* least time of a few runs */
  double ms_found;
  double ms_float;
} cleave_precision_report_t;

/* The report must be deinitialised also when this fails. Parts whose nodes have no name of their own, or one
 * that the option cannot hold (commas, `*`), are left in the low precision. */
CLEAVE_STATUS cleave_precision_find(const cleave_graph_t *graph, const cleave_precision_options_t *options,
                                    cleave_precision_report_t *out_report, cleave_error_t *error);
/* Whether the form found is not faster than float32, which is exact: the lower precision is of no use then.
 * False if no region is in the low precision. */
bool cleave_precision_prefers_float(const cleave_precision_report_t *report);
void cleave_precision_report_deinit(cleave_precision_report_t *report);

#endif /* CLEAVE_TOOLS_PRECISION_PRECISION_H */
