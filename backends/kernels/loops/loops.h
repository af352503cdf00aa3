// SPDX-License-Identifier: Apache-2.0
/*
 * One loop per operator and dtype over a tile, for one instruction set. The tables come from operators.inc
 * through loops.inc, which is compiled for plain C, AVX2 and AVX-512; all of them give the same bits.
 */
#ifndef CLEAVE_KERNELS_LOOPS_H
#define CLEAVE_KERNELS_LOOPS_H

#include "kernels/loops/chain.h"
#include "kernels/program.h"

enum {
  KERNEL_LANES = 32,          /* partial results of a reduction */
  KERNEL_FLOAT_LANES = 64,    /* of floats that are added up, or compared, as such */
  KERNEL_MAX_IN_BLOCK = 1024, /* floats that are added up as such; blocks are added up in double */
  KERNEL_LANES_BYTES = KERNEL_LANES * 8,
};

/* Outputs may lie over operands whose elements have the same size. */
typedef void (*kernel_unary_t)(void *out, const void *x, int64_t count, double alpha, double beta);
typedef void (*kernel_binary_t)(void *out, const void *x, const void *y, int64_t count);
typedef void (*kernel_where_t)(void *out, const void *condition, const void *x, const void *y, int64_t count);
typedef void (*kernel_fill_t)(void *out, const void *element, int64_t count);

/* A reduction: `begin` sets the lanes, `step` takes elements up, `merge` those that other lanes have, which
 * come behind, `finish` makes one element of `total` that came. `row` does all of that for a row of at most
 * KERNEL_MAX_IN_BLOCK elements. */
typedef struct kernel_reduce {
  void (*begin)(void *lanes);
  void (*step)(void *lanes, const void *x, int64_t count);
  void (*merge)(void *lanes, const void *others);
  void (*finish)(const void *lanes, void *out, int64_t total);
  void (*row)(const void *x, void *out, int64_t count);
} kernel_reduce_t;

/* A reduction of float32 elements after `about` is subtracted from each. NULL: there are no such loops. */
typedef struct kernel_reduce_about {
  void (*step)(void *lanes, const float *x, float about, int64_t count);
  void (*row)(const float *x, float about, float *out, int64_t count);
} kernel_reduce_about_t;

typedef struct kernel_loops {
  const char *name;
  kernel_unary_t unary[KERNEL_OP_COUNT][KERNEL_DTYPE_COUNT];
  /* The last index says which operand is a single element: neither, x, y. */
  kernel_binary_t binary[KERNEL_OP_COUNT][KERNEL_DTYPE_COUNT][3];
  kernel_reduce_t reduce[KERNEL_OP_COUNT][KERNEL_DTYPE_COUNT];
  kernel_reduce_about_t reduce_about[KERNEL_OP_COUNT];
  kernel_where_t where[9][4]; /* by element size, and whether x (1) and y (2) are single elements */
  kernel_fill_t fill[9];      /* by element size */
  const kernel_chain_loops_t *chain;
  /* A copy that leaves the caches alone, for what is too large for them; `stream_end` makes such copies
   * visible to other threads. */
  void (*stream)(void *out, const void *from, size_t bytes);
  void (*stream_end)(void);
} kernel_loops_t;

/* The best for this processor; `limit` 0 allows plain C alone, 1 AVX2 as well, 2 everything. */
const kernel_loops_t *kernel_loops_choose(int limit);

#endif /* CLEAVE_KERNELS_LOOPS_H */
