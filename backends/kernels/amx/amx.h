// SPDX-License-Identifier: Apache-2.0
/*
 * Products of rows with a packed matrix by Intel's AMX: of bfloat16, added in float32, or of 8-bit integers,
 * added in 32 bits. Scales, bias, a sum with another tensor, bounds, a function and rounding to integers cost
 * no pass of their own. A bfloat16 number below 2^-126 is zero to these instructions.
 *
 * Sums are in an order that the depth alone decides, so results are the same on any number of threads.
 */
#ifndef CLEAVE_KERNELS_AMX_H
#define CLEAVE_KERNELS_AMX_H

#include "cleave/backend.h"
#include "kernels/matrix/matrix.h"

/* The fewest rows, and columns of a panel. */
enum { KERNEL_AMX_ROWS = 16, KERNEL_AMX_PANEL = 64 };

typedef struct kernel_amx {
  kernel_matrix_t matrix; /* `panel` is not read */
  cleave_dtype_t x;       /* BF16, with such weights; U8 or I8, with weights of I8 */
  cleave_dtype_t sum;     /* F32 or BF16 */
  cleave_dtype_t y; /* F32 or BF16; U8 or I8: a result times `factor`, rounded to the nearest integer, halves
                       to even, plus `zero`, and saturated */
  float factor;
  int32_t zero;
} kernel_amx_t;

typedef struct kernel_amx_data {
  const void *x;
  const void *weights; /* [columns / 64, depth / E, 64, E], oneDNN's BA16a64b2a and BA16a64b4a: elements of
                          four bytes of the depth side by side, and zeros behind the last column */
  const float *scale;  /* of integers: what their sum is multiplied by, one per column */
  const float *bias;   /* one per column; or NULL */
  const void *sum;     /* or NULL; may be y if it has its dtype and stride */
  void *y;             /* neither x nor weights */
} kernel_amx_data_t;

/* Does this processor run it, and does the system let this process? */
bool kernel_amx_runs_here(void);

/* What the depth is a multiple of, with x of this dtype. */
int64_t kernel_amx_depth(cleave_dtype_t x);

/* Units of work, none of which depends on another, and the least of them that are worth a thread. */
int64_t kernel_amx_units(const kernel_amx_t *amx);
int64_t kernel_amx_grain(const kernel_amx_t *amx);

/* Computes units `begin` to `end`, if kernel_amx_runs_here. Allocates nothing. */
void kernel_amx_run(const kernel_amx_t *amx, const kernel_amx_data_t *data, int64_t begin, int64_t end);

#endif /* CLEAVE_KERNELS_AMX_H */
