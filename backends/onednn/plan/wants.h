// SPDX-License-Identifier: Apache-2.0
/*
 * What the readers of each value prefer.
 */
#ifndef ONEDNN_WANTS_H
#define ONEDNN_WANTS_H

#include "onednn/plan/plan.h"

/* Fills want, order, home, output and last_use of all bindings. */
CLEAVE_MUST_USE cleave_status_t onednn_plan_wants(onednn_plan_t *plan);

#endif /* ONEDNN_WANTS_H */
