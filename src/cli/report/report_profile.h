// SPDX-License-Identifier: Apache-2.0
/* Time per region, and per fusion and operator. */
#ifndef CLEAVE_CLI_REPORT_REPORT_PROFILE_H
#define CLEAVE_CLI_REPORT_REPORT_PROFILE_H

#include "tools/profile/profile.h"

/* Prints a finished profile; `path` is the trace that was written. */
void cleave_report_profile(const cleave_profile_t *profile, const char *path);

#endif /* CLEAVE_CLI_REPORT_REPORT_PROFILE_H */
