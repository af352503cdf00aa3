// SPDX-License-Identifier: Apache-2.0
/*
 * What a pass says to the editor of a graph, as messages (backend/wire/wire.h): tensors and attributes that
 * may be wrong in any way that a message can express. Whoever reads gets what a pass in this process would
 * have given: a list that is missing is NULL, one that is too long has its length and no elements, and so the
 * editor refuses the same things in the same words. Only bytes that are not such a message fail.
 */
#ifndef CLEAVE_BACKEND_REGION_EDIT_WIRE_H
#define CLEAVE_BACKEND_REGION_EDIT_WIRE_H

#include "backend/wire/wire.h"
#include "base/arena.h"

enum {
  CLEAVE_EDIT_LIST_LIMIT = 65536, /* elements of lists that are sent */
  CLEAVE_EDIT_TEXT_LIMIT = (1 << 20) + 1
};

/* Bytes of one step; constants have no more than this. */
#define CLEAVE_EDIT_LIMIT (((size_t)1 << 30) + ((size_t)1 << 20))

/* ---- writing ---- */

/* Texts end after CLEAVE_EDIT_TEXT_LIMIT bytes. */
void cleave_edit_put_text(cleave_wire_out_t *out, const char *text);
/* `tensor` may be NULL. Without `with_data`, only its type. */
void cleave_edit_put_tensor(cleave_wire_out_t *out, const cleave_tensor_view_t *tensor, bool with_data);
void cleave_edit_put_attribute(cleave_wire_out_t *out, const cleave_attribute_view_t *attribute);
/* `items` may be NULL. */
void cleave_edit_put_indices(cleave_wire_out_t *out, const uint32_t *items, uint32_t count);
void cleave_edit_put_attributes(cleave_wire_out_t *out, const cleave_attribute_view_t *items, uint32_t count);

/* ---- reading: what is given out points into the message and into `arena`; in->failed also without memory */

const cleave_tensor_view_t *cleave_edit_tensor(cleave_wire_in_t *in, cleave_arena_t *arena);
const cleave_attribute_view_t *cleave_edit_attribute(cleave_wire_in_t *in, cleave_arena_t *arena);
const uint32_t *cleave_edit_indices(cleave_wire_in_t *in, uint32_t *out_count);
const cleave_attribute_view_t *cleave_edit_attributes(cleave_wire_in_t *in, cleave_arena_t *arena,
                                                      uint32_t *out_count);

#endif /* CLEAVE_BACKEND_REGION_EDIT_WIRE_H */
