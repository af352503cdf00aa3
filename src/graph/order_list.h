// SPDX-License-Identifier: Apache-2.0
/*
 * A linked list of the numbers 0 .. count - 1 (or some of them) that can tell in constant time which of two
 * comes first: every element has a label, and labels increase along the list.
 */
#ifndef CLEAVE_GRAPH_ORDER_LIST_H
#define CLEAVE_GRAPH_ORDER_LIST_H

#include "base/memory.h"

typedef struct cleave_order_list {
  uint32_t sentinel; /* before the first and after the last; label 0 */
  uint64_t *labels;
  uint32_t *before;
  uint32_t *after;
  uint64_t gap; /* of cleave_order_list_append */
} cleave_order_list_t;

/* All of 0 .. count - 1, in this order. */
CLEAVE_MUST_USE cleave_status_t cleave_order_list_init(cleave_order_list_t *list, uint32_t count,
                                                       cleave_error_t *error);
void cleave_order_list_deinit(cleave_order_list_t *list);

/* Empties the list, to be filled with `count` appends at most. */
void cleave_order_list_start(cleave_order_list_t *list, uint32_t count);
void cleave_order_list_append(cleave_order_list_t *list, uint32_t element);

void cleave_order_list_remove(cleave_order_list_t *list, uint32_t element);
/* Puts `count` elements, which are in no list, after `element` (may be the sentinel), in their order. */
void cleave_order_list_insert_after(cleave_order_list_t *list, uint32_t element, const uint32_t *elements,
                                    size_t count);
/* `replacement`, which is in no list, takes the place and label of `element`; nothing if they are the same.
 */
void cleave_order_list_replace(cleave_order_list_t *list, uint32_t element, uint32_t replacement);

#endif /* CLEAVE_GRAPH_ORDER_LIST_H */
