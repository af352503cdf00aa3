// SPDX-License-Identifier: Apache-2.0
/*
 * Products and convolutions of float32 by Intel's AMX, which multiplies bfloat16: a float32 number is the sum
 * of three of these, its thirds. A product of two numbers is that of six pairs of thirds; the three pairs
 * that are left out are below 2^-23 of it. Sums are in float32, the smaller pairs first, so that results are
 * as exact as with plain float32 (G. Henry, P. Tang, A. Heinecke, "Leveraging the bfloat16 Artificial
 * Intelligence Datatype For Higher-Precision Computations", 2019).
 *
 * An infinity, or a number that rounds to one in bfloat16, makes NaN of the results that depend on it, and
 * raises the flag "invalid"; a NaN stays. Thirds below 2^-126 are zero.
 *
 * Sums are in an order that the depth alone decides, so results are the same on any number of threads.
 */
#ifndef CLEAVE_KERNELS_THIRDS_H
#define CLEAVE_KERNELS_THIRDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/matrix/activation.h"

enum {
  KERNEL_THIRDS_PANEL = 16,
  KERNEL_THIRDS_SIDE = 7,         /* longest side of a window */
  KERNEL_THIRDS_WORK = 116 * 1024 /* bytes that a unit writes to while it is computed */
};

/* How images lie: floats from one to the next. Channel c is in block c / 16 at c % 16. A matrix is an image
 * of one line that has its rows as pixels. */
typedef struct kernel_thirds_image {
  int64_t image;
  int64_t line;
  int64_t pixel;
  int64_t block;
} kernel_thirds_image_t;

/* y = then(activation(bias + sum + window over x)). Sizes are at least 1. */
typedef struct kernel_thirds {
  int64_t images;
  int64_t depth;   /* channels of x */
  int64_t columns; /* channels of y */
  int64_t x_lines;
  int64_t x_width;
  int64_t y_lines;
  int64_t y_width;
  int64_t sides[2]; /* of the window: lines and pixels, at most KERNEL_THIRDS_SIDE */
  int64_t stride;   /* in both directions */
  int64_t top;      /* lines of zeros above x, and pixels of zeros before its lines */
  int64_t left;
  kernel_thirds_image_t x;
  kernel_thirds_image_t y;
  kernel_thirds_image_t sum;
  bool is_filled; /* zeros behind the last column of y are to be written */
  kernel_activation_t activation;
  /* What results go through, one of kernel_loops_t's unary loops for float32, and its numbers; or NULL. */
  void (*then)(void *out, const void *x, int64_t count, double alpha, double beta);
  double alpha;
  double beta;
} kernel_thirds_t;

typedef struct kernel_thirds_data {
  const float *x;
  const float *weights; /* [columns / 16, lines, pixels, depth, 16]; zeros behind the last column */
  const float *bias;    /* one per column; or NULL */
  const float *sum;     /* or NULL; may be y if it lies as y does */
  float *y;             /* neither x nor weights; written more than once */
} kernel_thirds_data_t;

/* How the work is cut. */
typedef struct kernel_thirds_cut {
  int64_t down; /* blocks of an image: of so many lines of y, */
  int64_t across;
  int64_t lines; /* and of so many pixels of a line */
  int64_t width;
  int64_t parts; /* of the columns, computed side by side; if there is one, a unit splits its x itself */
  size_t block;  /* bytes of the thirds of the x of a block */
} kernel_thirds_cut_t;

/* Does this processor run it? */
bool kernel_thirds_runs_here(void);

kernel_thirds_cut_t kernel_thirds_cut(const kernel_thirds_t *thirds, int32_t threads);

/* An estimate of the nanoseconds of processors that it takes, the larger one of those for one thread and for
 * two; and whether for both that is less than products by AVX-512 take, so that what computes it, and to the
 * last bit what the results are, does not depend on threads. Measured on one kind of Intel Xeon. */
double kernel_thirds_time(const kernel_thirds_t *thirds);
bool kernel_thirds_pay(const kernel_thirds_t *thirds);

/* Bytes of memory for thirds of x: of one unit at a time, or of all units if there are several parts. This
 * and the KERNEL_THIRDS_WORK bytes begin at a multiple of 64. */
size_t kernel_thirds_scratch(const kernel_thirds_t *thirds, const kernel_thirds_cut_t *cut);

/* With several parts: splits x, in so many units of work, none of which depends on another. */
int64_t kernel_thirds_split_units(const kernel_thirds_t *thirds, const kernel_thirds_cut_t *cut);
void kernel_thirds_split(const kernel_thirds_t *thirds, const kernel_thirds_cut_t *cut,
                         const kernel_thirds_data_t *data, int64_t unit, void *scratch);

/* Units of work, none of which depends on another. Computes one, with several parts after all of x is split.
 * Neither allocates anything. */
int64_t kernel_thirds_units(const kernel_thirds_t *thirds, const kernel_thirds_cut_t *cut);
void kernel_thirds_run(const kernel_thirds_t *thirds, const kernel_thirds_cut_t *cut,
                       const kernel_thirds_data_t *data, int64_t unit, void *scratch, void *work);

#endif /* CLEAVE_KERNELS_THIRDS_H */
