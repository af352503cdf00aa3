// SPDX-License-Identifier: Apache-2.0
/* Growth of arrays: capacity at least doubles, sizes are checked. */
#include "base/containers/array.h"

cleave_status_t cleave_array_grow(void **items, size_t *capacity, size_t wanted, size_t item_size,
                                  cleave_error_t *error) {
  size_t next = *capacity < 8 ? 8 : *capacity;
  while (next < wanted) {
    if (!cleave_size_multiply(next, 2, &next)) {
      return cleave_error_out_of_memory(error);
    }
  }
  void *grown = cleave_reallocate(*items, next, item_size);
  CLEAVE_TRY_MEMORY(grown, error);
  *items = grown;
  *capacity = next;
  return CLEAVE_OK;
}
