// SPDX-License-Identifier: Apache-2.0
/*
 * A fusion as one kernel: its nodes are one program of kernels/, and so one step. The attribute `kernel` of
 * a fuse rule asks for it (rules/pointwise.lua).
 */
#ifndef CLEAVE_CPU_FUSED_H
#define CLEAVE_CPU_FUSED_H

#include "cpu/program.h"
#include "cpu/units.h"
#include "kernels/lower/lower.h"

/* Whether the rule of this fusion says so: "kernel", one kernel; "fast_math", functions with fewer digits. */
bool cpu_fused_says(const cleave_region_view_t *region, uint32_t fusion, const char *name);

/* Whether these nodes are one program; if not, the message says why. */
CLEAVE_MUST_USE cleave_status_t cpu_fused_check(kernel_lowerer_t *lowerer, uint32_t count,
                                                const uint32_t *nodes, cleave_message_t *message);

/* Makes the step of the nodes of a unit in `program`, whose values are described. CLEAVE_ERROR_UNSUPPORTED:
 * the nodes are not a program, and the message says why; nothing was made then. */
CLEAVE_MUST_USE cleave_status_t cpu_fused_compile(cpu_program_t *program, kernel_lowerer_t *lowerer,
                                                  const cpu_unit_t *unit, cpu_step_t *step,
                                                  cleave_message_t *message);

/* Frees the plans of all such steps. */
void cpu_fused_destroy(cpu_program_t *program);

#endif /* CLEAVE_CPU_FUSED_H */
