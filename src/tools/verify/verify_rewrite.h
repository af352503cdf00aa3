// SPDX-License-Identifier: Apache-2.0
/* The part of cleave_plan_verify that is about rewrites and passes. */
#ifndef CLEAVE_TOOLS_VERIFY_VERIFY_REWRITE_H
#define CLEAVE_TOOLS_VERIFY_VERIFY_REWRITE_H

#include "tools/verify/verify.h"

/* Appends an item for every graph rule that changed something. Values that later rules or folding took away
 * are not compared: what replaced them is, with the value of the source at their place. Where a pass added
 * inputs, the items are SKIPPED. */
CLEAVE_MUST_USE cleave_status_t cleave_verify_rewrites(const cleave_plan_t *plan,
                                                       const cleave_verify_options_t *options,
                                                       cleave_verify_report_t *report, cleave_error_t *error);

#endif /* CLEAVE_TOOLS_VERIFY_VERIFY_REWRITE_H */
