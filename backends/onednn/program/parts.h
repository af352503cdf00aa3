// SPDX-License-Identifier: Apache-2.0
/*
 * Large batches in parts. In a region whose results for one row of the batch (dimension 0) depend on that row
 * alone, a few rows at a time keep what passes between kernels in the processor's caches, where all rows at
 * once would go through memory.
 */
#ifndef ONEDNN_PARTS_H
#define ONEDNN_PARTS_H

#include "onednn/units/unit.h"

typedef struct onednn_parts {
  const cleave_region_view_t *region; /* of one part */
  int64_t count;                      /* 1: the region given */
} onednn_parts_t;

/* How to compute the region on `threads` threads. It is cut if all shapes are known, every operator is known
 * to keep rows apart, and an estimate says that enough of its time is saved, or its attribute `rows` says how
 * many to compute at a time. What is made lives in `arena`. */
CLEAVE_MUST_USE cleave_status_t onednn_parts_of(const cleave_region_view_t *region, int32_t threads,
                                                kernel_arena_t *arena, onednn_parts_t *out,
                                                cleave_message_t *message);

#endif /* ONEDNN_PARTS_H */
