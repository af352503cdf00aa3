// SPDX-License-Identifier: Apache-2.0
/* The one pool of worker threads: OpenMP's, which oneDNN and OpenBLAS use too, so that pools never compete.
 */
#ifndef CLEAVE_SYSTEM_THREADS_H
#define CLEAVE_SYSTEM_THREADS_H

#include "cleave/backend.h"

/* How many threads to use if nobody says: OMP_NUM_THREADS, else the processors that this process may run on,
 * or as many as the quota of its control groups is worth if that is less (read once). */
int32_t cleave_threads_available(void);

/* See cleave_host_t.parallel_for. Without OpenMP the caller does all the work. */
void cleave_parallel_for(int32_t threads, int64_t count, int64_t grain, cleave_parallel_fn_t body,
                         void *context);

#endif /* CLEAVE_SYSTEM_THREADS_H */
