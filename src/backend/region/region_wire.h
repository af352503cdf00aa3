// SPDX-License-Identifier: Apache-2.0
/*
 * Region views as messages (backend/wire/wire.h), for backends in another process. What is read is a view in
 * the sense of cleave/backend.h whatever the bytes were: indices are in range, ranks, types and kinds are
 * known, data is as large as dtype and shape say.
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
CLEAVE_MUST_USE cleave_status_t cleave_region_write(const cleave_region_view_t *region,
                                                    cleave_region_share_t share, void *context,
                                                    cleave_wire_out_t *out, cleave_error_t *error);

/* Reads one. The view points into the message and into `arena`. `find` may be NULL. CLEAVE_ERROR_FORMAT if
 * the message is not a view. */
CLEAVE_MUST_USE cleave_status_t cleave_region_read(cleave_wire_in_t *in, cleave_arena_t *arena,
                                                   cleave_region_find_t find, void *context,
                                                   cleave_region_view_t *out_region, cleave_error_t *error);

#endif /* CLEAVE_BACKEND_REGION_REGION_WIRE_H */
