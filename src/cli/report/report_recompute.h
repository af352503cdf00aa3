// SPDX-License-Identifier: Apache-2.0
/* What --recompute did. */
#ifndef CLEAVE_CLI_REPORT_REPORT_RECOMPUTE_H
#define CLEAVE_CLI_REPORT_REPORT_RECOMPUTE_H

#include <jansson.h>

#include "cleave/cleave.h"

/* What --help says of it. */
#define CLEAVE_RECOMPUTE_HELP                                                                               \
  "compute values of forward again, shortly before backward reads them, so that the values of a run need "  \
  "at most this share of the memory that they need if all are kept: 0.5. What costs the fewest additional " \
  "FLOPs is chosen (default: all are kept)"

/* A line. */
void cleave_report_recompute(const cleave_recompute_report_t *report);
/* An object; NULL without memory. */
json_t *cleave_report_recompute_json(const cleave_recompute_report_t *report);

#endif /* CLEAVE_CLI_REPORT_REPORT_RECOMPUTE_H */
