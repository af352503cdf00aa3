// SPDX-License-Identifier: Apache-2.0
/* Operations of libcleave on the communicators of cleave/distributed.h. */
#ifndef CLEAVE_DISTRIBUTED_COMMUNICATOR_H
#define CLEAVE_DISTRIBUTED_COMMUNICATOR_H

#include "base/status.h"
#include "cleave/distributed.h"

/* CLEAVE_ERROR_INVALID_ARGUMENT: a function is missing, or the numbers do not fit each other. */
CLEAVE_STATUS cleave_communicator_check(const cleave_communicator_t *communicator, cleave_error_t *error);

/* Begins a transfer. */
CLEAVE_STATUS cleave_communicator_start(const cleave_communicator_t *communicator,
                                        const cleave_transfer_t *transfer, uint64_t *out_number,
                                        cleave_error_t *error);
/* Waits for a transfer; `out_times` may be NULL. */
CLEAVE_STATUS cleave_communicator_wait(const cleave_communicator_t *communicator, uint64_t number,
                                       cleave_transfer_times_t *out_times, cleave_error_t *error);

/* All processes get the sums of what each has. */
CLEAVE_STATUS cleave_communicator_sum(const cleave_communicator_t *communicator, cleave_dtype_t dtype,
                                      void *data, int64_t count, cleave_error_t *error);
/* All processes get the bytes of process `root`: any number of them. */
CLEAVE_STATUS cleave_communicator_broadcast(const cleave_communicator_t *communicator, int32_t root,
                                            void *data, size_t bytes, cleave_error_t *error);

/* Every process says how it fares: `status`, and `error` if it failed. If one failed, all return the error of
 * the first that did, behind "process 2 of 4: " unless all failed. */
CLEAVE_STATUS cleave_communicator_agree(const cleave_communicator_t *communicator, cleave_status_t status,
                                        cleave_error_t *error);

#endif /* CLEAVE_DISTRIBUTED_COMMUNICATOR_H */
