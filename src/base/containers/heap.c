// SPDX-License-Identifier: Apache-2.0
#include "base/containers/heap.h"

#include <string.h>

static void *item_at(void *items, size_t index, size_t item_size) {
  return (char *)items + index * item_size;
}

static void swap(void *a, void *b, size_t item_size) {
  unsigned char copy[CLEAVE_HEAP_ITEM_LIMIT];
  memcpy(copy, a, item_size);
  memcpy(a, b, item_size);
  memcpy(b, copy, item_size);
}

void cleave_heap_add_last(void *items, size_t count, size_t item_size, cleave_heap_order_t goes_before) {
  for (size_t k = count - 1; k > 0;) {
    void *item = item_at(items, k, item_size);
    void *parent = item_at(items, (k - 1) / 2, item_size);
    if (!goes_before(item, parent)) {
      return;
    }
    swap(item, parent, item_size);
    k = (k - 1) / 2;
  }
}

void cleave_heap_move_first_to_end(void *items, size_t count, size_t item_size,
                                   cleave_heap_order_t goes_before) {
  size_t rest = count - 1;
  if (rest == 0) {
    return;
  }
  swap(items, item_at(items, rest, item_size), item_size);
  for (size_t k = 0;;) {
    size_t best = k;
    for (size_t child = 2 * k + 1; child <= 2 * k + 2 && child < rest; child++) {
      best = goes_before(item_at(items, child, item_size), item_at(items, best, item_size)) ? child : best;
    }
    if (best == k) {
      return;
    }
    swap(item_at(items, k, item_size), item_at(items, best, item_size), item_size);
    k = best;
  }
}
