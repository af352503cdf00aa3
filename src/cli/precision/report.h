// SPDX-License-Identifier: Apache-2.0
/* What `cleave precision` found, for people and as JSON. */
#ifndef CLEAVE_CLI_PRECISION_REPORT_H
#define CLEAVE_CLI_PRECISION_REPORT_H

#include "cli/common/sizes.h"
#include "tools/precision/precision.h"

typedef struct cleave_precision_shown {
  const char *model;
  const char *precision;
  const char *keep;   /* what the user keeps in any case; or NULL */
  const char *ranges; /* file that rules had; or NULL */
  double max_error;
  const cleave_sizes_t *sizes;
  const cleave_precision_report_t *report;
} cleave_precision_shown_t;

/* Both return the exit status: 1 if the error is not met. */
int cleave_report_precision(const cleave_precision_shown_t *shown);
int cleave_report_precision_json(const cleave_precision_shown_t *shown);

#endif /* CLEAVE_CLI_PRECISION_REPORT_H */
