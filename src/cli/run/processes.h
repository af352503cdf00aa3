// SPDX-License-Identifier: Apache-2.0
/* For commands that `mpirun` may start several times: threads, and errors that are said once. */
#ifndef CLEAVE_CLI_RUN_PROCESSES_H
#define CLEAVE_CLI_RUN_PROCESSES_H

#include "distributed/communicator.h"

/* Threads of this process: what is asked for, or its share of the processors of the host; 0: all.
 * `communicator` may be NULL. */
int32_t cleave_processes_threads(const cleave_communicator_t *communicator, int64_t asked);

/* Is this process not the one that prints? `communicator` may be NULL. */
bool cleave_processes_silent(const cleave_communicator_t *communicator);

/* Prints an error and returns the exit status. Of an error that all processes have (`is_shared`), the first
 * one tells; one of this process alone names it, and ends the others. `communicator` may be NULL. */
int cleave_processes_fail(const cleave_communicator_t *communicator, bool is_shared,
                          const cleave_error_t *error);

#endif /* CLEAVE_CLI_RUN_PROCESSES_H */
