// SPDX-License-Identifier: Apache-2.0
/* Between thirds.c, which cuts the work and splits x, and thirds_tiles.c, which multiplies. */
#ifndef CLEAVE_KERNELS_THIRDS_BLOCK_H
#define CLEAVE_KERNELS_THIRDS_BLOCK_H

#include "kernels/amx/thirds.h"

enum {
  THIRDS = 3,
  THIRDS_DEPTH = 32,      /* channels of a tile: a step */
  THIRDS_ROWS = 16,       /* pixels of one */
  THIRDS_BYTES = 64,      /* of a row of one */
  THIRDS_POSITIONS = 320, /* most of a block */
  THIRDS_CHUNK = 24       /* most steps of a part of the depth whose x stays in the second cache */
};

/* Some lines and pixels of y of an image. Its positions are these lines one behind the other, each with the
 * pixels that windows reach behind it, so that a tile is any 16 positions, and a place of the window is a
 * distance. With a stride of s pixels x lies in s * s planes, of which a place of the window reads one. */
typedef struct thirds_block {
  const kernel_thirds_t *thirds;
  const kernel_thirds_data_t *data;
  int64_t image;
  int64_t line; /* the first one, and how many */
  int64_t lines;
  int64_t pixel;
  int64_t width;
  int64_t reach[2];  /* lines and pixels behind those that windows read in a plane */
  int64_t planes[2]; /* down and across */
  int64_t plane;     /* positions of a plane */
  int64_t pixels;    /* of all planes, with those that the last tile reads behind them */
  unsigned char *x;  /* [steps, pixels, thirds, 64], from step x_step on */
  int64_t x_step;
  unsigned char *work; /* [KERNEL_THIRDS_WORK] */
} thirds_block_t;

/* Steps from `begin` to `end`. */
typedef struct thirds_chunk {
  int64_t begin;
  int64_t end;
  bool is_first;
  bool is_last;
} thirds_chunk_t;

static inline int64_t thirds_quotient_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

static inline int64_t thirds_least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* Of the depth. */
static inline int64_t thirds_steps(const kernel_thirds_t *thirds) {
  return thirds_quotient_up(thirds->depth, THIRDS_DEPTH);
}

static inline int64_t thirds_chunks(const kernel_thirds_t *thirds) {
  return thirds_quotient_up(thirds_steps(thirds), THIRDS_CHUNK);
}

static inline thirds_chunk_t thirds_chunk(const kernel_thirds_t *thirds, int64_t index) {
  int64_t steps = thirds_steps(thirds);
  int64_t chunks = thirds_chunks(thirds);
  return (thirds_chunk_t){.begin = steps * index / chunks,
                          .end = steps * (index + 1) / chunks,
                          .is_first = index == 0,
                          .is_last = index + 1 == chunks};
}

/* Positions of a line. */
static inline int64_t thirds_line(const thirds_block_t *block) {
  return block->width + block->reach[1];
}

/* A chunk of the depth, whose x is split, for pairs of panels from `first` to `last`, which are at least one.
 * Those before it are done. */
void thirds_multiply(const thirds_block_t *block, const thirds_chunk_t *chunk, int64_t first, int64_t last);

#endif /* CLEAVE_KERNELS_THIRDS_BLOCK_H */
