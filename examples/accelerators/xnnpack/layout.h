// SPDX-License-Identifier: Apache-2.0
/* Moving float32 elements between NCHW and NHWC, and packing weights. */
#ifndef XNNPACK_LAYOUT_H
#define XNNPACK_LAYOUT_H

#include <stddef.h>

/* `outer` matrices of rows x columns, each transposed: [n][c][hw] to [n][hw][c] has rows c and columns hw.
 * Rows or columns of one make it a copy. */
typedef struct shuffle {
  size_t outer, rows, columns;
} shuffle_t;

/* `from` need not be aligned; the two do not overlap. */
void xnnpack_shuffle(const shuffle_t *shuffle, const void *from, void *to);

#endif /* XNNPACK_LAYOUT_H */
