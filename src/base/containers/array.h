// SPDX-License-Identifier: Apache-2.0
/*
 * Growing arrays. `CLEAVE_ARRAY(type)` is a struct type with items, count and capacity; all zero is an
 * empty array. Growth doubles, so that appending is linear over all.
 */
#ifndef CLEAVE_BASE_CONTAINERS_ARRAY_H
#define CLEAVE_BASE_CONTAINERS_ARRAY_H

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define CLEAVE_ARRAY(type) \
  struct {                 \
    type *items;           \
    size_t count;          \
    size_t capacity;       \
  }

/* A byte-wise view of any CLEAVE_ARRAY, for the functions behind the macros. */
CLEAVE_STATUS cleave_array_grow(void **items, size_t *capacity, size_t wanted, size_t item_size,
                                cleave_error_t *error);

/* Room for `extra` more items. A status. */
#define cleave_array_reserve(array, extra, error)                                                          \
  ((array)->capacity - (array)->count >= (size_t)(extra)                                                   \
       ? CLEAVE_OK                                                                                         \
       : cleave_array_grow((void **)&(array)->items, &(array)->capacity, (array)->count + (size_t)(extra), \
                           sizeof *(array)->items, (error)))

/* Appends `item` in place reserved before. */
#define cleave_array_push_reserved(array, item) ((void)((array)->items[(array)->count++] = (item)))

/* Appends `item`; returns a status from the calling function on failure. */
#define CLEAVE_ARRAY_PUSH(array, item, error)              \
  do {                                                     \
    CLEAVE_TRY(cleave_array_reserve((array), 1, (error))); \
    cleave_array_push_reserved((array), (item));           \
  } while (0)

/* Copies the items of `from`, byte by byte, into an empty array; returns a status from the calling function
 * on failure. */
#define CLEAVE_ARRAY_COPY(to, from, error)                                       \
  do {                                                                           \
    CLEAVE_TRY(cleave_array_reserve((to), (from)->count, (error)));              \
    if ((from)->count > 0) {                                                     \
      memcpy((to)->items, (from)->items, (from)->count * sizeof *(from)->items); \
    }                                                                            \
    (to)->count = (from)->count;                                                 \
  } while (0)

/* Sorts the items, of which there may be none, as qsort does. */
#define cleave_array_sort(array, compare)                                       \
  do {                                                                          \
    if ((array)->count > 1) {                                                   \
      qsort((array)->items, (array)->count, sizeof *(array)->items, (compare)); \
    }                                                                           \
  } while (0)

#define cleave_array_free(array) \
  do {                           \
    cleave_free((array)->items); \
    (array)->items = NULL;       \
    (array)->count = 0;          \
    (array)->capacity = 0;       \
  } while (0)

#endif /* CLEAVE_BASE_CONTAINERS_ARRAY_H */
