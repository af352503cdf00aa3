// SPDX-License-Identifier: Apache-2.0
/*
 * Offsets in one block of memory, for values that come and go. The smallest free range that holds a value is
 * taken, lowest offset first among equals. If steps run side by side, a range is free for a step only if all
 * steps that used it are known to have ended when that one starts.
 */
#ifndef CLEAVE_RUNTIME_LANES_SPACE_H
#define CLEAVE_RUNTIME_LANES_SPACE_H

#include "base/containers/array.h"

typedef struct cleave_hole {
  size_t offset;
  size_t bytes;
  uint32_t *ends; /* by lane: steps below this number used it; NULL without lanes */
} cleave_hole_t;

/* Free ranges below `end`, by offset, never touching each other. All zero but for the number of lanes is an
 * empty space. */
typedef struct cleave_space {
  CLEAVE_ARRAY(cleave_hole_t) holes;
  size_t end;
  uint32_t lane_count; /* 0: steps run one after the other */
} cleave_space_t;

/* The offset of `bytes` for a step that knows this (cleave_lanes_known; NULL without lanes). */
size_t cleave_space_take(cleave_space_t *space, size_t bytes, const uint32_t *known);

/* Gives a range back. `ends` is the space's from now on, and is changed when ranges join; its memory stays
 * the caller's, until the space is used no more. */
CLEAVE_STATUS cleave_space_give(cleave_space_t *space, size_t offset, size_t bytes, uint32_t *ends,
                                cleave_error_t *error);

#endif /* CLEAVE_RUNTIME_LANES_SPACE_H */
