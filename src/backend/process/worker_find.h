// SPDX-License-Identifier: Apache-2.0
/* Where the program of worker processes lies: CLEAVE_WORKER, or libexec/cleave/cleave_worker of the build or
 * the installation that this code is part of. */
#ifndef CLEAVE_BACKEND_PROCESS_WORKER_FIND_H
#define CLEAVE_BACKEND_PROCESS_WORKER_FIND_H

#include "base/status.h"

/* CLEAVE_ERROR_IO with the places that were looked at if there is none. */
CLEAVE_MUST_USE cleave_status_t cleave_worker_find(char *path, size_t size, cleave_error_t *error);

#endif /* CLEAVE_BACKEND_PROCESS_WORKER_FIND_H */
