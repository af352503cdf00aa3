// SPDX-License-Identifier: Apache-2.0
/* Memory of programs, XNNPACK's own among it: counted, so that `info` can tell how much there is. */
#ifndef XNNPACK_MEMORY_H
#define XNNPACK_MEMORY_H

#include <stddef.h>
#include <xnnpack.h>

/* For xnn_initialize. The first one a process gives to XNNPACK stays with it. */
const struct xnn_allocator *xnnpack_memory_allocator(void);

/* From now on, what this thread allocates, through XNNPACK or the functions below, less what it frees, is
 * added to the counter; NULL: to none. */
void xnnpack_memory_count(size_t *counter);

/* Zeroed and 64-byte aligned; NULL where there is no more. */
void *xnnpack_memory_allocate(size_t bytes);
void xnnpack_memory_free(void *memory);

/* The array with room for one more element: the same, or moved to where it is twice as large. NULL where
 * there is no memory; the old one then stays as it is. */
void *xnnpack_memory_grow(void *items, size_t *capacity, size_t count, size_t item_size);

#endif /* XNNPACK_MEMORY_H */
