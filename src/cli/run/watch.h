// SPDX-License-Identifier: Apache-2.0
/* `cleave run --watch`: after the first report, one for each time that a rule file is saved. */
#ifndef CLEAVE_CLI_RUN_WATCH_H
#define CLEAVE_CLI_RUN_WATCH_H

#include <jansson.h>

#include "cli/common/job.h"

/* Partitions and compiles the job. If its rule files prevent that, prints why and waits until one of them is
 * saved, and so on. *out_interrupted: the program was interrupted before it came to an end. */
CLEAVE_STATUS cleave_run_watch_prepare(cleave_job_t *job, bool json, bool *out_interrupted,
                                       cleave_error_t *error);

/* Prints an object on one line, and lets it go. */
void cleave_run_watch_line(json_t *json);

/* Watches the rule files of a job that has been compiled, until the program is interrupted. Prints lines, or
 * with `json` one object a line. Returns the exit status: interrupted is CLEAVE_EXIT_OK. */
int cleave_run_watch(cleave_job_t *job, bool json);

#endif /* CLEAVE_CLI_RUN_WATCH_H */
