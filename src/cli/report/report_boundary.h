// SPDX-License-Identifier: Apache-2.0
/* What `partition --report` prints: why regions end where they end, and what one more operator would change.
 */
#ifndef CLEAVE_CLI_REPORT_REPORT_BOUNDARY_H
#define CLEAVE_CLI_REPORT_REPORT_BOUNDARY_H

#include <jansson.h>

#include "partition/report/boundary_report.h"

/* All boundaries together by reason, then region by region, then the what-ifs. */
void cleave_report_boundaries(const cleave_boundary_report_t *report);

/* Adds "boundaries" and "what_if" to an object. */
void cleave_report_boundaries_json(const cleave_boundary_report_t *report, json_t *object);

#endif /* CLEAVE_CLI_REPORT_REPORT_BOUNDARY_H */
