// SPDX-License-Identifier: Apache-2.0
/* Binary heaps in the items of an array: the first item goes before all others, by the order that is given.
 */
#ifndef CLEAVE_BASE_CONTAINERS_HEAP_H
#define CLEAVE_BASE_CONTAINERS_HEAP_H

#include <stdbool.h>
#include <stddef.h>

typedef bool (*cleave_heap_order_t)(const void *a, const void *b); /* does `a` go before `b`? */

/* Items 0 .. count - 2 are a heap: now with the last one. An item has at most CLEAVE_HEAP_ITEM_LIMIT bytes.
 */
#define CLEAVE_HEAP_ITEM_LIMIT 64
void cleave_heap_add_last(void *items, size_t count, size_t item_size, cleave_heap_order_t goes_before);

/* Items 0 .. count - 1 are a heap: its first item goes to the end, and the others are one. */
void cleave_heap_move_first_to_end(void *items, size_t count, size_t item_size,
                                   cleave_heap_order_t goes_before);

#endif /* CLEAVE_BASE_CONTAINERS_HEAP_H */
