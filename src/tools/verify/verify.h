// SPDX-License-Identifier: Apache-2.0
/*
 * Compares what rules did with `cpu`, piece by piece. Each fusion and region is compiled alone on its
 * backend, and compared with its nodes run one after the other on `cpu`, on the values that reach it in the
 * model and on random ones. For rewrites and passes, what took the place of a value is compared with that
 * value, both on `cpu`, on these values and on random ones, some of which are farther apart.
 */
#ifndef CLEAVE_TOOLS_VERIFY_VERIFY_H
#define CLEAVE_TOOLS_VERIFY_VERIFY_H

#include "partition/plan/plan.h"
#include "tools/verify/rounding.h"

typedef enum cleave_verdict {
  CLEAVE_VERIFY_MATCH,
  CLEAVE_VERIFY_MISMATCH, /* other values, or another type */
  CLEAVE_VERIFY_FAILED,   /* the backend failed to compile or run it */
  CLEAVE_VERIFY_SKIPPED   /* shapes are known only at run time */
} cleave_verify_verdict_t;

typedef enum cleave_verify_kind {
  CLEAVE_VERIFY_FUSION,
  CLEAVE_VERIFY_REGION,
  CLEAVE_VERIFY_REWRITE /* all that one rewrite or pass rule put in the place of something */
} cleave_verify_kind_t;

/* The result for one fusion, region, or graph rule. */
typedef struct cleave_verify_item {
  cleave_verify_kind_t kind;
  uint32_t index; /* in plan->fusions or plan->regions; the first of those that are the same; of a REWRITE:
                     the first value of plan->source that does not match, otherwise the one that differs most,
                     or CLEAVE_INDEX_NONE */
  uint32_t count; /* how many of the plan have this structure; of a REWRITE: values compared */
  uint32_t rule;  /* in plan->rules */
  cleave_verify_verdict_t verdict;
  double max_absolute;  /* largest difference over all rounds and outputs */
  double relative;      /* the same over the largest expected value */
  cleave_text_t reason; /* one line; empty for a match */
  uint32_t round;       /* of the first mismatch: 0 the model's own values, from 1 random ones */
  /* To see it again. All 0 or NULL unless it does not match. */
  cleave_graph_t *graph; /* the nodes as a graph of their own; of a REWRITE: what it took, as it was */
  cleave_graph_t *after; /* REWRITE: what took its place, with the same inputs */
  uint32_t input_count;
  cleave_tensor_t **inputs;  /* of that round, in the order of the graph's inputs */
  uint32_t output_count;     /* 0 if the backend FAILED */
  cleave_tensor_t **outputs; /* what the nodes make of them on `cpu` */
} cleave_verify_item_t;

typedef struct cleave_verify_options {
  cleave_tensor_t *const *inputs; /* of the plan's graph, one per graph input */
  size_t input_count;
  uint32_t rounds; /* with random values */
  uint64_t seed;
  int32_t threads;
  const cleave_session_options_t *session; /* backend options and blobs are taken from it; NULL: none */
  bool each;                               /* every fusion and region, not only one of each structure */
  double rtol;                             /* both negative: what rounding does (tools/verify/rounding.h) */
  double atol;                             /* one negative: by dtype (verify_compare.c) */
  /* Called before each item, for progress; may be NULL. */
  void (*progress)(void *context, uint32_t done, uint32_t total);
  void *context;
} cleave_verify_options_t;

typedef struct cleave_verify_report {
  CLEAVE_ARRAY(cleave_verify_item_t) items; /* fusions, regions, graph rules: each in the order of the plan */
  uint32_t mismatches;                      /* items that are MISMATCH or FAILED */
} cleave_verify_report_t;

/* Compares with the tolerance that the options ask for, or what `rounding` finds out about output `index`. */
CLEAVE_STATUS cleave_verify_compare(const cleave_verify_options_t *options, cleave_rounding_t *rounding,
                                    size_t index, const cleave_tensor_view_t *actual,
                                    const cleave_tensor_t *expected, cleave_check_result_t *out_result,
                                    cleave_error_t *error);

/* Checks a plan whose graph has concrete input shapes. A difference is not an error: see the report, which
 * must be deinitialised also when this fails. */
CLEAVE_STATUS cleave_plan_verify(const cleave_plan_t *plan, const cleave_verify_options_t *options,
                                 cleave_verify_report_t *out_report, cleave_error_t *error);
void cleave_verify_report_deinit(cleave_verify_report_t *report);

#endif /* CLEAVE_TOOLS_VERIFY_VERIFY_H */
