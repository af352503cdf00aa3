// SPDX-License-Identifier: Apache-2.0
/*
 * Memory for packed weights, in large pages if the system has them. The system clears pages when they are
 * written first, which on virtual machines takes longer than packing: pages can be cleared ahead of time.
 */
#ifndef ONEDNN_PAGES_H
#define ONEDNN_PAGES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct onednn_pages {
  unsigned char *base;  // at a large page
  size_t bytes;
} onednn_pages_t;

/* Address space for at least `bytes`; `is_large`: in large pages. False without memory. */
bool onednn_pages_map(size_t bytes, bool is_large, onednn_pages_t *out_pages);
/* Nothing if there are none. */
void onednn_pages_unmap(onednn_pages_t *pages);

/* Gives the caller the pages behind the first `used` bytes; none if all is used. */
onednn_pages_t onednn_pages_split(onednn_pages_t *pages, size_t used);

/* Has the system clear all of it now, until `stop` is set. The content must not matter. */
void onednn_pages_clear(const onednn_pages_t *pages, const atomic_bool *stop);

#endif /* ONEDNN_PAGES_H */
