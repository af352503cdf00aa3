// SPDX-License-Identifier: Apache-2.0
/* What is in a model: numbers that `cleave inspect` prints. */
#ifndef CLEAVE_CLI_REPORT_INSPECTION_H
#define CLEAVE_CLI_REPORT_INSPECTION_H

#include "cli/common/job.h"

typedef struct cleave_operator_count {
  const char *name;
  const char *domain;
  const cleave_op_t *op;
  uint32_t count;
  double flops;
} cleave_operator_count_t;

typedef struct cleave_inspection {
  const cleave_graph_t *graph;
  cleave_node_t *order;
  bool *needed;                                    /* by node: an output needs it */
  size_t dead_count;                               /* nodes of `order` that are not */
  size_t removed_count;                            /* dead nodes of the file that went */
  CLEAVE_ARRAY(cleave_operator_count_t) operators; /* most frequent first */
  double flops;
  size_t file_bytes;
  size_t weight_bytes;
  uint64_t weight_count;
  size_t activation_bytes; /* largest sum of values that live at the same time, outputs among them */
  CLEAVE_ARRAY(cleave_value_t) unknown;
} cleave_inspection_t;

/* Of the job's model, which must outlive it. Must be deinitialised also when this fails. */
CLEAVE_MUST_USE cleave_status_t cleave_inspection_init(cleave_inspection_t *inspection,
                                                       const cleave_job_t *job, cleave_error_t *error);
void cleave_inspection_deinit(cleave_inspection_t *inspection);

#endif /* CLEAVE_CLI_REPORT_INSPECTION_H */
