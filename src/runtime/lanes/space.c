// SPDX-License-Identifier: Apache-2.0
#include "runtime/lanes/space.h"

#include <string.h>

/* Did all that used a range end, by what is known? Both by lane. */
static bool has_ended(const uint32_t *ends, const uint32_t *known, uint32_t lane_count) {
  for (uint32_t lane = 0; lane < lane_count; lane++) {
    if (ends[lane] > known[lane]) {
      return false;
    }
  }
  return true;
}

size_t cleave_space_take(cleave_space_t *space, size_t bytes, const uint32_t *known) {
  size_t best = SIZE_MAX;
  for (size_t k = 0; k < space->holes.count; k++) {
    const cleave_hole_t *hole = &space->holes.items[k];
    if (hole->bytes >= bytes && (best == SIZE_MAX || hole->bytes < space->holes.items[best].bytes) &&
        has_ended(hole->ends, known, space->lane_count)) {
      best = k;
    }
  }
  if (best != SIZE_MAX) {
    cleave_hole_t *hole = &space->holes.items[best];
    size_t offset = hole->offset;
    hole->offset += bytes;
    hole->bytes -= bytes;
    if (hole->bytes == 0) {
      memmove(hole, hole + 1, (space->holes.count - best - 1) * sizeof *hole);
      space->holes.count--;
    }
    return offset;
  }
  /* The last hole, if it reaches the end, grows. */
  cleave_hole_t *last = space->holes.count == 0 ? NULL : &space->holes.items[space->holes.count - 1];
  size_t offset = space->end;
  if (last != NULL && last->offset + last->bytes == space->end &&
      has_ended(last->ends, known, space->lane_count)) {
    offset = last->offset;
    space->holes.count--;
  }
  space->end = offset + bytes;
  return offset;
}

static void join(const cleave_space_t *space, cleave_hole_t *hole, const uint32_t *ends) {
  for (uint32_t lane = 0; lane < space->lane_count; lane++) {
    hole->ends[lane] = ends[lane] > hole->ends[lane] ? ends[lane] : hole->ends[lane];
  }
}

cleave_status_t cleave_space_give(cleave_space_t *space, size_t offset, size_t bytes, uint32_t *ends,
                                  cleave_error_t *error) {
  CLEAVE_TRY(cleave_array_reserve(&space->holes, 1, error));
  cleave_hole_t *holes = space->holes.items;
  size_t low = 0;
  size_t high = space->holes.count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (holes[middle].offset < offset) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  bool joins_before = low > 0 && holes[low - 1].offset + holes[low - 1].bytes == offset;
  bool joins_after = low < space->holes.count && offset + bytes == holes[low].offset;
  if (joins_before && joins_after) {
    join(space, &holes[low - 1], ends);
    join(space, &holes[low - 1], holes[low].ends);
    holes[low - 1].bytes += bytes + holes[low].bytes;
    memmove(&holes[low], &holes[low + 1], (space->holes.count - low - 1) * sizeof *holes);
    space->holes.count--;
  } else if (joins_before) {
    join(space, &holes[low - 1], ends);
    holes[low - 1].bytes += bytes;
  } else if (joins_after) {
    join(space, &holes[low], ends);
    holes[low].offset = offset;
    holes[low].bytes += bytes;
  } else {
    memmove(&holes[low + 1], &holes[low], (space->holes.count - low) * sizeof *holes);
    holes[low] = (cleave_hole_t){.offset = offset, .bytes = bytes, .ends = ends};
    space->holes.count++;
  }
  return CLEAVE_OK;
}
