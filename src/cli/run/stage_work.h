// SPDX-License-Identifier: Apache-2.0
/* `cleave run` as one of several processes: from the model to what is to be printed. */
#ifndef CLEAVE_CLI_RUN_STAGE_WORK_H
#define CLEAVE_CLI_RUN_STAGE_WORK_H

#include "cli/run/report.h"

/* Runs the stage of this process. Fails in all processes with one error, or, if `run->are_apart` is set, in
 * this one alone. */
CLEAVE_MUST_USE cleave_status_t cleave_run_stage_work(cleave_run_t *run, cleave_error_t *error);

#endif /* CLEAVE_CLI_RUN_STAGE_WORK_H */
