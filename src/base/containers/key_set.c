// SPDX-License-Identifier: Apache-2.0
#include "base/containers/key_set.h"

#include <string.h>

enum { FIRST_SLOTS = 64 };

/* The slot that has the key, or the free one where it goes. */
static uint64_t *find_slot(uint64_t *slots, size_t slot_count, uint64_t key) {
  size_t k = (size_t)key & (slot_count - 1);
  while (slots[k] != 0 && slots[k] != key) {
    k = (k + 1) & (slot_count - 1);
  }
  return &slots[k];
}

static cleave_status_t grow(cleave_key_set_t *set, cleave_error_t *error) {
  size_t slot_count = set->slot_count == 0 ? FIRST_SLOTS : set->slot_count * 2;
  uint64_t *slots = cleave_allocate_zeroed(slot_count, sizeof *slots);
  CLEAVE_TRY_MEMORY(slots, error);
  for (size_t k = 0; k < set->slot_count; k++) {
    if (set->slots[k] != 0) {
      *find_slot(slots, slot_count, set->slots[k]) = set->slots[k];
    }
  }
  cleave_free(set->slots);
  set->slots = slots;
  set->slot_count = slot_count;
  return CLEAVE_OK;
}

cleave_status_t cleave_key_set_add(cleave_key_set_t *set, uint64_t key, cleave_error_t *error) {
  if (set->count * 2 >= set->slot_count) {
    CLEAVE_TRY(grow(set, error));
  }
  key += key == 0;
  uint64_t *slot = find_slot(set->slots, set->slot_count, key);
  set->count += *slot == 0;
  *slot = key;
  return CLEAVE_OK;
}

void cleave_key_set_clear(cleave_key_set_t *set) {
  if (set->count > 0) {
    memset(set->slots, 0, set->slot_count * sizeof *set->slots);
    set->count = 0;
  }
}

void cleave_key_set_deinit(cleave_key_set_t *set) {
  cleave_free(set->slots);
  *set = (cleave_key_set_t){0};
}
