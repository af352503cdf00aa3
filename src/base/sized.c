// SPDX-License-Identifier: Apache-2.0
// Every such struct begins with a size_t, its size.
#include "base/sized.h"

#include <string.h>

cleave_status_t cleave_sized_check(const char *type, size_t first, size_t size, cleave_error_t *error) {
  return size >= first
             ? CLEAVE_OK
             : cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                                "%s: expected a size of at least %zu, found %zu: set it to sizeof(%s)", type,
                                first, size, type);
}

static size_t size_of(const void *sized) {
  size_t size = 0;
  memcpy(&size, sized, sizeof size);
  return size;
}

/* All that both have but the size. */
static void copy(void *to, const void *from, size_t bytes) {
  if (bytes > sizeof(size_t)) {
    memcpy((char *)to + sizeof(size_t), (const char *)from + sizeof(size_t), bytes - sizeof(size_t));
  }
}

cleave_status_t cleave_sized_in(const char *type, size_t first, const void *given, void *known, size_t bytes,
                                cleave_error_t *error) {
  if (given == NULL) {
    return CLEAVE_OK;
  }
  size_t size = size_of(given);
  CLEAVE_TRY(cleave_sized_check(type, first, size, error));
  copy(known, given, size < bytes ? size : bytes);
  return CLEAVE_OK;
}

void cleave_sized_out(const void *found, size_t bytes, void *given) {
  if (given != NULL) {
    size_t size = size_of(given);
    copy(given, found, size < bytes ? size : bytes);
  }
}

cleave_status_t cleave_list_check(const char *name, const void *list, size_t count, cleave_error_t *error) {
  return list != NULL || count == 0 ? CLEAVE_OK
                                    : cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                                                       "%s: expected a list of %zu, found NULL", name, count);
}
