// SPDX-License-Identifier: Apache-2.0
/* The processors of this process: how much of their time its control groups allow (Linux; see cgroups(7),
 * both versions), and how long they had nothing to do. */
#ifndef CLEAVE_SYSTEM_PROCESSORS_H
#define CLEAVE_SYSTEM_PROCESSORS_H

#include <stdbool.h>
#include <stdint.h>

/* The smallest quota of the process's group and those above it, in processors, rounded up: 2 for 150 ms of
 * every 100 ms. 0: no limit is set, or it cannot be read. `root` comes before all paths: "" but in tests. */
int32_t cleave_processor_quota(const char *root);

/* Time since some start that the processors which the calling thread may use had nothing to do, their sum in
 * ns, from /proc/stat, whose steps are about 10 ms for each of them. False if it cannot be read. */
bool cleave_processor_idle(const char *root, uint64_t *out_ns, int32_t *out_processors);

#endif /* CLEAVE_SYSTEM_PROCESSORS_H */
