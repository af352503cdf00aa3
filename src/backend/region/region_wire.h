// SPDX-License-Identifier: Apache-2.0
/*
 * Region views, and what a pass says to the editor of a graph, as messages (backend/wire/wire.h).
 *
 * What is read as a region is a view in the sense of cleave/backend.h whatever the bytes were: indices are in
 * range, ranks, types and kinds are known, data is as large as dtype and shape say.
 *
 * A step of an editor may be wrong in any way that a message can express. Whoever reads it gets what a pass
 * in this process would have given: a list that is missing is NULL, one that is too long has its length and
 * no elements, and so the editor refuses the same things in the same words. Only bytes that are no such
 * message fail.
 */
#ifndef CLEAVE_BACKEND_REGION_REGION_WIRE_H
#define CLEAVE_BACKEND_REGION_REGION_WIRE_H

#include "backend/wire/wire.h"
#include "base/arena.h"
#include "tensor/tensor.h"

/* Takes constant data out of the message: *out_id names it for the reader; CLEAVE_INDEX_NONE leaves it in. */
typedef cleave_status_t (*cleave_region_share_t)(void *context, const cleave_tensor_view_t *tensor,
                                                 size_t bytes, uint32_t *out_id, cleave_error_t *error);

/* `bytes` bytes of shared data `id`; NULL if there is no such thing of this size. */
typedef const void *(*cleave_region_find_t)(void *context, uint32_t id, size_t bytes);

/* Appends a view. `share` may be NULL. CLEAVE_ERROR_LIMIT if it is too large for a message. */
CLEAVE_STATUS cleave_region_write(const cleave_region_view_t *region, cleave_region_share_t share,
                                  void *context, cleave_wire_out_t *out, cleave_error_t *error);

/* Reads one. The view points into the message and into `arena`. `find` may be NULL. CLEAVE_ERROR_FORMAT if
 * the message is not a view. */
CLEAVE_STATUS cleave_region_read(cleave_wire_in_t *in, cleave_arena_t *arena, cleave_region_find_t find,
                                 void *context, cleave_region_view_t *out_region, cleave_error_t *error);

/* ---- steps of an editor ---- */

enum {
  CLEAVE_EDIT_LIST_LIMIT = 65536,        /* elements of lists that are sent */
  CLEAVE_EDIT_TEXT_LIMIT = (1 << 20) + 1 /* bytes after which texts end */
};

/* Bytes of one step; constants have no more than this. */
#define CLEAVE_EDIT_LIMIT (((size_t)1 << 30) + ((size_t)1 << 20))

/* Writes to `out`, or reads from `in` what points into the message and into `arena`; the other is NULL. Each
 * function does both, over the same fields. in->failed also without memory. */
typedef struct cleave_edit_wire {
  cleave_wire_out_t *out;
  cleave_wire_in_t *in;
  cleave_arena_t *arena;
} cleave_edit_wire_t;

/* Tensors and attributes may be NULL. */
void cleave_edit_wire_value(const cleave_edit_wire_t *wire, const char **name,
                            const cleave_tensor_view_t **tensor);
void cleave_edit_wire_node(const cleave_edit_wire_t *wire, cleave_new_node_t *node);
void cleave_edit_wire_attribute(const cleave_edit_wire_t *wire, uint32_t *node,
                                const cleave_attribute_view_t **attribute);

#endif /* CLEAVE_BACKEND_REGION_REGION_WIRE_H */
