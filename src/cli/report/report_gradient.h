// SPDX-License-Identifier: Apache-2.0
/* What gradients added to a model: the outputs, and how many nodes and operations. */
#ifndef CLEAVE_CLI_REPORT_REPORT_GRADIENT_H
#define CLEAVE_CLI_REPORT_REPORT_GRADIENT_H

#include "cli/common/job.h"

/* `graph` is that of the job's model with the gradients of `loss`; `output`: the file that was written, or
 * NULL. The second returns the exit status. */
void cleave_report_gradient(const cleave_job_t *job, const char *loss, const char *output,
                            const cleave_graph_t *graph);
int cleave_report_gradient_json(const cleave_job_t *job, const char *loss, const char *output,
                                const cleave_graph_t *graph);

#endif /* CLEAVE_CLI_REPORT_REPORT_GRADIENT_H */
