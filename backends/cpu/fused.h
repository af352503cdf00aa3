// SPDX-License-Identifier: Apache-2.0
/*
 * A region as one kernel: all of its nodes are one program of kernels/, and so one step. That is asked for by
 * the attribute `kernel` of a region, which rules/pointwise.lua attaches.
 */
#ifndef CLEAVE_CPU_FUSED_H
#define CLEAVE_CPU_FUSED_H

#include "cpu/program.h"

/* Whether the region asks for it. */
bool cpu_fused_wanted(const cleave_region_view_t *region);

/* Makes the one step of `program`, whose values are described. CLEAVE_ERROR_UNSUPPORTED: the nodes are no
 * program, and the message says why; nothing was made then. */
CLEAVE_MUST_USE cleave_status_t cpu_fused_compile(cpu_program_t *program, const cleave_region_view_t *region,
                                                  cpu_step_t *step, cleave_message_t *message);

#endif /* CLEAVE_CPU_FUSED_H */
