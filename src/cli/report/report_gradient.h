// SPDX-License-Identifier: Apache-2.0
/* What gradients added to a model: the outputs, and how many nodes and operations. */
#ifndef CLEAVE_CLI_REPORT_REPORT_GRADIENT_H
#define CLEAVE_CLI_REPORT_REPORT_GRADIENT_H

#include "cli/common/job.h"

typedef struct cleave_gradient_result {
  const char *loss;
  const char *output;                          /* the file that was written, or NULL */
  const cleave_graph_t *graph;                 /* that of the job's model with the gradients of the loss */
  const cleave_recompute_report_t *recomputed; /* NULL: everything is kept */
} cleave_gradient_result_t;

/* The second returns the exit status. */
void cleave_report_gradient(const cleave_job_t *job, const cleave_gradient_result_t *result);
int cleave_report_gradient_json(const cleave_job_t *job, const cleave_gradient_result_t *result);

#endif /* CLEAVE_CLI_REPORT_REPORT_GRADIENT_H */
