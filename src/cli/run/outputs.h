// SPDX-License-Identifier: Apache-2.0
/* What `cleave run` writes: single outputs, and a folder with inputs and outputs for --data. */
#ifndef CLEAVE_CLI_RUN_OUTPUTS_H
#define CLEAVE_CLI_RUN_OUTPUTS_H

#include "cli/common/job.h"

typedef struct cleave_run_outputs {
  cleave_text_list_t files; /* NAME=FILE (.npy or .pb) */
  const char *folder;       /* is made if it is not there; NULL: none */
} cleave_run_outputs_t;

/* Checks the names and extensions before the run takes its time, and makes the folder. */
CLEAVE_MUST_USE cleave_status_t cleave_run_outputs_check(const cleave_run_outputs_t *outputs,
                                                         const cleave_model_t *model, cleave_error_t *error);

/* Writes what the job's session has computed. The folder gets the model's inputs, not those of rules. */
CLEAVE_MUST_USE cleave_status_t cleave_run_outputs_write(const cleave_run_outputs_t *outputs,
                                                         const cleave_job_t *job, cleave_error_t *error);

#endif /* CLEAVE_CLI_RUN_OUTPUTS_H */
