// SPDX-License-Identifier: Apache-2.0
/* Whether the outputs of a run, or of all answers to requests, are what they should be. */
#ifndef CLEAVE_CLI_RUN_CHECKS_H
#define CLEAVE_CLI_RUN_CHECKS_H

#include "cli/run/report.h"

/* Fills in what was asked for: `alone`, `data` and `reference` of the run. */
CLEAVE_STATUS cleave_run_check_outputs(cleave_run_t *run, cleave_error_t *error);
void cleave_run_checks_free(cleave_run_checks_t *checks);

#endif /* CLEAVE_CLI_RUN_CHECKS_H */
