// SPDX-License-Identifier: Apache-2.0
/*
 * What the readers of each value prefer.
 */
#ifndef ONEDNN_PREFERRED_H
#define ONEDNN_PREFERRED_H

#include "onednn/plan/plan.h"

/* Fills preferred, order, home, output and last_use of all bindings. */
CLEAVE_MUST_USE cleave_status_t onednn_plan_preferred(onednn_plan_t *plan);

#endif /* ONEDNN_PREFERRED_H */
