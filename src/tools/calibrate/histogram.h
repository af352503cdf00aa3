// SPDX-License-Identifier: Apache-2.0
/*
 * How often which numbers came up, in bounded memory: bins of one width on both sides of zero. When a number
 * is beyond the last bin, bins are joined by powers of two, so that one pass over the data is enough, and the
 * order of the data makes no difference.
 */
#ifndef CLEAVE_TOOLS_CALIBRATE_HISTOGRAM_H
#define CLEAVE_TOOLS_CALIBRATE_HISTOGRAM_H

#include "base/memory.h"

enum { CLEAVE_HISTOGRAM_HALF = 2048 }; /* bins on each side */

typedef struct cleave_histogram {
  float min; /* of what was added: only if seen > 0 */
  float max;
  uint64_t seen;    /* finite numbers */
  uint64_t skipped; /* NaN and infinities */
  uint64_t zeros;   /* in no bin */
  double limit;     /* a power of two; bins go from -limit to limit; 0: nothing but zeros so far */
  uint64_t *bins; /* 2 * CLEAVE_HISTOGRAM_HALF from the most negative one; NULL: only min and max are kept */
} cleave_histogram_t;

/* All zero is an empty histogram of min and max alone; this makes one with bins. */
CLEAVE_STATUS cleave_histogram_init(cleave_histogram_t *histogram, cleave_error_t *error);
void cleave_histogram_deinit(cleave_histogram_t *histogram);

/* Adds so many floats, which need not be aligned: inputs may lie in mapped files. */
void cleave_histogram_add(cleave_histogram_t *histogram, const void *numbers, size_t count);

/* The range that holds `percent` of all numbers, the same share cut off on either side; by whole bins, within
 * min and max. There are bins, and something was seen. */
void cleave_histogram_percentile(const cleave_histogram_t *histogram, double percent, float *out_low,
                                 float *out_high);

/* The range [-t, t] within min and max for which rounding to 8 bits loses the least information: the least
 * Kullback-Leibler divergence between the sizes of the numbers, those beyond t taken as t, and the same in
 * 128 levels (256 if the numbers have one sign). Zeros do not count, because every such range has them
 * exactly. Definition: S. Migacz, "8-bit Inference with TensorRT", 2017. */
void cleave_histogram_entropy(const cleave_histogram_t *histogram, float *out_low, float *out_high);

#endif /* CLEAVE_TOOLS_CALIBRATE_HISTOGRAM_H */
