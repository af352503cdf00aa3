/* SPDX-License-Identifier: Apache-2.0 */
/* `cleave run --watch`: after the first report, one for each time that a rule file is saved. */
#ifndef CLEAVE_CLI_RUN_WATCH_H
#define CLEAVE_CLI_RUN_WATCH_H

#include "cli/job.h"

/* Watches the rule files of a job that has been compiled, until the program is interrupted. Prints lines, or
 * with `json` one object a line. Returns the exit status: interrupted is CLEAVE_EXIT_OK. */
int cleave_run_watch(cleave_job_t *job, bool json);

#endif /* CLEAVE_CLI_RUN_WATCH_H */
