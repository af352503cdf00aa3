// SPDX-License-Identifier: Apache-2.0
/*
 * What a program asks `resize_output` for, and why it was refused: a library hands on the status alone, and
 * whoever reads the error wants the reason.
 */
#ifndef CLEAVE_BACKEND_PROGRAM_RESIZE_H
#define CLEAVE_BACKEND_PROGRAM_RESIZE_H

#include "base/status.h"
#include "tensor/shape.h"

typedef struct cleave_resize {
  uint32_t output;
  int32_t rank;
  const int64_t *dims;
  size_t bytes; /* set by cleave_resize_check */
} cleave_resize_t;

/* The last refusal in a run; status CLEAVE_OK: none. */
typedef struct cleave_resize_refusal {
  cleave_status_t status;
  cleave_message_t reason;
} cleave_resize_refusal_t;

/* Is this a shape that agrees with what is known of the output (rank -1 and negative dims: not known), in no
 * more than `most_bytes` bytes? `symbols` may be NULL. CLEAVE_ERROR_INVALID_ARGUMENT: it is no shape.
 * CLEAVE_ERROR_SHAPE: it does not agree. CLEAVE_ERROR_LIMIT: it is too large. */
CLEAVE_STATUS cleave_resize_check(cleave_resize_t *resize, const cleave_tensor_view_t *known,
                                  const cleave_dims_t *symbols, size_t most_bytes,
                                  cleave_resize_refusal_t *refusal);

/* CLEAVE_ERROR_INVALID_ARGUMENT: the program has no such output. */
cleave_status_t cleave_resize_refuse_output(cleave_resize_refusal_t *refusal, uint32_t output);

/* Keeps the reason, and returns `status`. */
cleave_status_t cleave_resize_refuse(cleave_resize_refusal_t *refusal, cleave_status_t status,
                                     const char *format, ...) CLEAVE_PRINTF(3, 4);

/* Behind a run that failed with `status`: its message becomes the reason if it has none of its own. */
void cleave_resize_explain(const cleave_resize_refusal_t *refusal, cleave_status_t status,
                           cleave_message_t *message);

#endif /* CLEAVE_BACKEND_PROGRAM_RESIZE_H */
