// SPDX-License-Identifier: Apache-2.0
/* Sets of 64-bit keys that are hashes already: open addressing in a table that is at most half full. All zero
 * is an empty set. Keys 0 and 1 are one and the same. */
#ifndef CLEAVE_BASE_CONTAINERS_KEY_SET_H
#define CLEAVE_BASE_CONTAINERS_KEY_SET_H

#include "base/memory.h"

typedef struct cleave_key_set {
  uint64_t *slots;   /* 0: free */
  size_t slot_count; /* a power of two, or 0 */
  size_t count;
} cleave_key_set_t;

static inline bool cleave_key_set_has(const cleave_key_set_t *set, uint64_t key) {
  if (set->count == 0) {
    return false;
  }
  key += key == 0;
  size_t k = (size_t)key & (set->slot_count - 1);
  while (set->slots[k] != 0 && set->slots[k] != key) {
    k = (k + 1) & (set->slot_count - 1);
  }
  return set->slots[k] == key;
}

/* Adding a key that is there is no error. */
CLEAVE_STATUS cleave_key_set_add(cleave_key_set_t *set, uint64_t key, cleave_error_t *error);
/* Keeps the memory. */
void cleave_key_set_clear(cleave_key_set_t *set);
void cleave_key_set_deinit(cleave_key_set_t *set);

#endif /* CLEAVE_BASE_CONTAINERS_KEY_SET_H */
