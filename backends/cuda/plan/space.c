// SPDX-License-Identifier: Apache-2.0
// Free ranges as a tree by offset in which every range knows the largest one below it (a treap).
#include "space.h"

enum { NONE = UINT32_MAX };

/* ---- trees ---- */

static int64_t most_of(const cuda_space_t *space, uint32_t tree) {
  return tree == NONE ? 0 : space->ranges[tree].most;
}

static void measure(cuda_space_t *space, uint32_t tree) {
  cuda_range_t *range = &space->ranges[tree];
  int64_t low = most_of(space, range->low);
  int64_t high = most_of(space, range->high);
  int64_t below = low > high ? low : high;
  range->most = range->bytes > below ? range->bytes : below;
}

/* *out_low: what begins before `offset`. */
static void split(cuda_space_t *space, uint32_t tree, int64_t offset, uint32_t *out_low, uint32_t *out_high) {
  if (tree == NONE) {
    *out_low = NONE;
    *out_high = NONE;
    return;
  }
  cuda_range_t *range = &space->ranges[tree];
  if (range->offset < offset) {
    split(space, range->high, offset, &range->high, out_high);
    *out_low = tree;
  } else {
    split(space, range->low, offset, out_low, &range->low);
    *out_high = tree;
  }
  measure(space, tree);
}

/* All of `low` lies before all of `high`. */
static uint32_t join(cuda_space_t *space, uint32_t low, uint32_t high) {
  if (low == NONE || high == NONE) {
    return low == NONE ? high : low;
  }
  bool is_low = space->ranges[low].rank >= space->ranges[high].rank;
  if (is_low) {
    space->ranges[low].high = join(space, space->ranges[low].high, high);
  } else {
    space->ranges[high].low = join(space, low, space->ranges[high].low);
  }
  uint32_t root = is_low ? low : high;
  measure(space, root);
  return root;
}

/* Takes the range that begins at `offset` out of the tree. */
static void remove_at(cuda_space_t *space, int64_t offset) {
  uint32_t low = NONE;
  uint32_t high = NONE;
  uint32_t range = NONE;
  split(space, space->root, offset, &low, &high);
  split(space, high, offset + 1, &range, &high);
  space->root = join(space, low, high);
}

static void insert(cuda_space_t *space, int64_t offset, int64_t bytes) {
  uint32_t low = NONE;
  uint32_t high = NONE;
  uint32_t index = space->count++;
  uint32_t rank = (index + 1) * UINT32_C(2654435769);
  rank = (rank ^ rank >> 15) * UINT32_C(2246822519);
  space->ranges[index] = (cuda_range_t){
      .offset = offset, .bytes = bytes, .most = bytes, .low = NONE, .high = NONE, .rank = rank ^ rank >> 13};
  split(space, space->root, offset, &low, &high);
  space->root = join(space, join(space, low, index), high);
}

/* ---- ranges ---- */

/* The lowest range that holds so many bytes, or NONE. */
static uint32_t find_lowest(const cuda_space_t *space, int64_t bytes) {
  uint32_t tree = most_of(space, space->root) >= bytes ? space->root : NONE;
  while (tree != NONE) {
    const cuda_range_t *range = &space->ranges[tree];
    if (most_of(space, range->low) >= bytes) {
      tree = range->low;
    } else if (range->bytes >= bytes) {
      break;
    } else {
      tree = range->high;
    }
  }
  return tree;
}

/* The range that begins last before `offset`, or the first one from there on; or NONE. */
static uint32_t find_beside(const cuda_space_t *space, int64_t offset, bool is_before) {
  uint32_t found = NONE;
  for (uint32_t tree = space->root; tree != NONE;) {
    const cuda_range_t *range = &space->ranges[tree];
    bool goes_high = range->offset < offset;
    found = goes_high == is_before ? tree : found;
    tree = goes_high ? range->high : range->low;
  }
  return found;
}

/* If no range holds the bytes, the end moves, from the begin of a range that reaches it. */
int64_t cuda_space_take(cuda_space_t *space, int64_t bytes) {
  uint32_t found = find_lowest(space, bytes);
  if (found == NONE) {
    uint32_t last = find_beside(space, space->end, true);
    bool reaches = last != NONE && space->ranges[last].offset + space->ranges[last].bytes == space->end;
    int64_t offset = reaches ? space->ranges[last].offset : space->end;
    if (reaches) {
      remove_at(space, offset);
    }
    space->end = offset + bytes;
    return offset;
  }
  cuda_range_t range = space->ranges[found];
  remove_at(space, range.offset);
  if (range.bytes > bytes) {
    insert(space, range.offset + bytes, range.bytes - bytes);
  }
  return range.offset;
}

void cuda_space_give(cuda_space_t *space, int64_t offset, int64_t bytes) {
  uint32_t before = find_beside(space, offset, true);
  uint32_t after = find_beside(space, offset, false);
  if (after != NONE && space->ranges[after].offset == offset + bytes) {
    bytes += space->ranges[after].bytes;
    remove_at(space, space->ranges[after].offset);
  }
  if (before != NONE && space->ranges[before].offset + space->ranges[before].bytes == offset) {
    bytes += space->ranges[before].bytes;
    offset = space->ranges[before].offset;
    remove_at(space, offset);
  }
  insert(space, offset, bytes);
}
