// SPDX-License-Identifier: Apache-2.0
/* The order in which thirds_tiles.c multiplies a chunk of the depth: pairs of panels, for a pair places of
 * the window, and at a place steps. A part is some of these steps for a pair. */
#ifndef CLEAVE_KERNELS_THIRDS_PARTS_H
#define CLEAVE_KERNELS_THIRDS_PARTS_H

#include "kernels/amx/thirds_block.h"

enum {
  THIRDS_PANEL = KERNEL_THIRDS_PANEL,
  THIRDS_STEPS = 3,                      /* most of a part */
  THIRDS_X_BYTES = THIRDS * THIRDS_BYTES /* of a pixel and step */
};

typedef struct thirds_part {
  int64_t steps;
  int64_t x[THIRDS_STEPS]; /* bytes from the block's x to that of a step, at its place of the window */
  const float *w[THIRDS_STEPS][2]; /* rows of a step in each panel */
  int64_t depth[THIRDS_STEPS];     /* and how many there are, if not whole steps */
  int64_t pair;
  int64_t panels;     /* 1 or 2 */
  int64_t pair_steps; /* of all parts of the pair, of which this one may be the first or last */
  bool is_first;
  bool is_last;
} thirds_part_t;

/* Where the next part begins. */
typedef struct thirds_cursor {
  const thirds_block_t *block;
  thirds_chunk_t chunk;
  int64_t w_panel; /* floats of a panel, and of a place of the window in one */
  int64_t w_place;
  int64_t pair;
  int64_t last; /* ends in front of this pair */
  int64_t step;
  int64_t down; /* the place */
  int64_t across;
  int64_t place_x; /* bytes from the block's x to the place, and floats of a panel before it */
  int64_t before;
  int64_t steps; /* of a pair, and how many are left, in so many parts */
  int64_t left;
  int64_t parts;
} thirds_cursor_t;

/* At the first part of pairs from `first` to `last`. */
thirds_cursor_t thirds_begin(const thirds_block_t *block, const thirds_chunk_t *chunk, int64_t first,
                             int64_t last);

/* The part at the cursor, which moves on; false: there is none. */
bool thirds_take(thirds_cursor_t *cursor, thirds_part_t *part);

#endif /* CLEAVE_KERNELS_THIRDS_PARTS_H */
