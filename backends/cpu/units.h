// SPDX-License-Identifier: Apache-2.0
/*
 * The units of a region, in the order in which they run: a fusion that asks for it (attribute `kernel` of its
 * rule) is one, every other node is one by itself.
 */
#ifndef CLEAVE_CPU_UNITS_H
#define CLEAVE_CPU_UNITS_H

#include "cpu/program.h"

typedef struct cpu_unit {
  uint32_t count; /* of nodes */
  const uint32_t *nodes;
  bool is_kernel; /* a fusion that asks to be one kernel */
  bool fast_math; /* of such a fusion: functions with fewer digits will do */
} cpu_unit_t;

/* Lists the units in `arena`, in an order in which each finds its inputs made. CLEAVE_ERROR_INVALID_ARGUMENT:
 * fusions need each other's results. */
CLEAVE_MUST_USE cleave_status_t cpu_units_list(const cleave_region_view_t *region, kernel_arena_t *arena,
                                               cpu_unit_t **out_units, uint32_t *out_count,
                                               cleave_message_t *message);

#endif /* CLEAVE_CPU_UNITS_H */
