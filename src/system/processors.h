// SPDX-License-Identifier: Apache-2.0
/* How much processor time the control groups of this process allow (Linux; see cgroups(7), both versions).
 */
#ifndef CLEAVE_SYSTEM_PROCESSORS_H
#define CLEAVE_SYSTEM_PROCESSORS_H

#include <stdint.h>

/* The smallest quota of the process's group and those above it, in processors, rounded up: 2 for 150 ms of
 * every 100 ms. 0: no limit is set, or it cannot be read. `root` comes before all paths: "" but in tests. */
int32_t cleave_processor_quota(const char *root);

#endif /* CLEAVE_SYSTEM_PROCESSORS_H */
