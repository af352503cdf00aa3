// SPDX-License-Identifier: Apache-2.0
/*
 * Memory of the workspace.
 */
#ifndef ONEDNN_MEMORY_PLAN_H
#define ONEDNN_MEMORY_PLAN_H

#include "onednn/plan/plan.h"

/* Offsets for all workspace buffers, such that buffers alive at the same step do not
 * overlap. `*bytes` is the size of the workspace. */
CLEAVE_MUST_USE cleave_status_t onednn_plan_memory(onednn_plan_t *plan, size_t *bytes);

#endif /* ONEDNN_MEMORY_PLAN_H */
