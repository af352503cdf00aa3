// SPDX-License-Identifier: Apache-2.0
/*
 * Constant integers of 2, 4 or 8 bits that are packed in bytes: what UnpackBits, an operator of cleave's own,
 * says of them. They are read as they lie wherever that is possible.
 */
#ifndef ONEDNN_BITS_H
#define ONEDNN_BITS_H

#include "onednn/units/unit.h"

/* The matrix that the node makes, [rows, count] or transposed: numbers of `bits` bits, less `least`. */
typedef struct onednn_bits {
  const cleave_value_view_t *source;
  int64_t rows;
  int64_t count;
  int64_t bytes; /* of a row */
  int32_t bits;
  int32_t least;
  bool is_transposed;
} onednn_bits_t;

/* Reads an UnpackBits. CLEAVE_ERROR_UNSUPPORTED, with the reason, unless it makes a matrix of a constant. */
CLEAVE_MUST_USE cleave_status_t onednn_bits_read(const cleave_region_view_t *region,
                                                 const cleave_node_view_t *node, onednn_bits_t *out,
                                                 cleave_message_t *message);

/* Element `index` of the matrix, which is row-major. */
int32_t onednn_bits_at(const onednn_bits_t *bits, int64_t index);

#endif /* ONEDNN_BITS_H */
