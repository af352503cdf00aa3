// SPDX-License-Identifier: Apache-2.0
/* Numbers of nodes, values and positions: their order, and sets of them that are joined. */
#ifndef CLEAVE_BASE_CONTAINERS_NUMBERS_H
#define CLEAVE_BASE_CONTAINERS_NUMBERS_H

#include <stdint.h>

/* For qsort and bsearch over uint32_t: ascending. */
static inline int cleave_compare_u32(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a;
  uint32_t y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

/* The root of `item` in a forest of disjoint sets, in which a root is its own parent; shortens the way to it
 * (path halving). */
static inline uint32_t cleave_find_root(uint32_t *parents, uint32_t item) {
  while (parents[item] != item) {
    parents[item] = parents[parents[item]];
    item = parents[item];
  }
  return item;
}

#endif /* CLEAVE_BASE_CONTAINERS_NUMBERS_H */
