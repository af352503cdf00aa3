/* SPDX-License-Identifier: Apache-2.0 */
/* What `partition --report` prints: why regions end where they end, and what one more operator would change.
 */
#ifndef CLEAVE_CLI_REPORT_REPORT_BORDER_H
#define CLEAVE_CLI_REPORT_REPORT_BORDER_H

#include <jansson.h>

#include "partition/report/border_report.h"

/* All borders together by reason, then region by region, then the what-ifs. */
void cleave_report_borders(const cleave_border_report_t *report);

/* Adds "borders" and "what_if" to an object. */
void cleave_report_borders_json(const cleave_border_report_t *report, json_t *object);

#endif /* CLEAVE_CLI_REPORT_REPORT_BORDER_H */
