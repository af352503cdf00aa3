// SPDX-License-Identifier: Apache-2.0
/*
 * Products of rows with a packed matrix, both of bfloat16, by Intel's AMX. Products are added in float32;
 * bias, a sum with another tensor, bounds and a function cost no pass of their own. A number below 2^-126 is
 * zero to these instructions.
 *
 * Sums are in an order that the depth alone decides, so results are the same on any number of threads.
 */
#ifndef CLEAVE_KERNELS_AMX_H
#define CLEAVE_KERNELS_AMX_H

#include "kernels/matrix/matrix.h"

/* The fewest rows, what the depth is a multiple of, and columns of a panel. */
enum { KERNEL_AMX_ROWS = 16, KERNEL_AMX_DEPTH = 32, KERNEL_AMX_PANEL = 64 };

typedef struct kernel_amx {
  kernel_matrix_t matrix; /* `panel` is not read */
  bool adds_short;        /* what is added is of bfloat16, not of float32 */
  bool gives_short;       /* so is y */
} kernel_amx_t;

typedef struct kernel_amx_data {
  const uint16_t *x;
  const uint16_t *weights; /* [columns / 64, depth / 2, 64, 2], oneDNN's BA16a64b2a: two elements of the depth
                              side by side, and zeros behind the last column */
  const float *bias;       /* one per column; or NULL */
  const void *sum;         /* or NULL; may be y, with its stride */
  void *y;                 /* neither x nor weights */
} kernel_amx_data_t;

/* Does this processor run it, and does the system let this process? */
bool kernel_amx_runs_here(void);

/* Units of work, none of which depends on another, and the least of them that are worth a thread. */
int64_t kernel_amx_units(const kernel_amx_t *amx);
int64_t kernel_amx_grain(const kernel_amx_t *amx);

/* Computes units `begin` to `end`, if kernel_amx_runs_here. Allocates nothing. */
void kernel_amx_run(const kernel_amx_t *amx, const kernel_amx_data_t *data, int64_t begin, int64_t end);

#endif /* CLEAVE_KERNELS_AMX_H */
