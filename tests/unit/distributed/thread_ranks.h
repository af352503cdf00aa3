// SPDX-License-Identifier: Apache-2.0
/* A communicator among threads of one process: what processes of MPI do, without MPI. A transfer is done
 * when the last of those that take part has started it. */
#ifndef CLEAVE_TESTS_THREAD_RANKS_H
#define CLEAVE_TESTS_THREAD_RANKS_H

#include "cleave/distributed.h"

enum { THREAD_RANKS_MAX = 4 };

/* Runs `body` in `count` threads, each with a communicator of its own. Returns how many transfers all
 * started. */
size_t thread_ranks_run(int32_t count, void (*body)(const cleave_communicator_t *communicator, void *context),
                        void *context);

#endif /* CLEAVE_TESTS_THREAD_RANKS_H */
