// SPDX-License-Identifier: Apache-2.0
// Invariant: what is in a bin lies between its edges, because limits are powers of two and bins are joined
// from zero outwards.
#include "tools/calibrate/histogram.h"

#include <math.h>
#include <string.h>

enum { HALF = CLEAVE_HISTOGRAM_HALF, STEP = 8 };

cleave_status_t cleave_histogram_init(cleave_histogram_t *histogram, cleave_error_t *error) {
  *histogram = (cleave_histogram_t){.bins = cleave_allocate_zeroed(2 * (size_t)HALF, sizeof(uint64_t))};
  return histogram->bins == NULL ? cleave_error_out_of_memory(error) : CLEAVE_OK;
}

void cleave_histogram_deinit(cleave_histogram_t *histogram) {
  cleave_free(histogram->bins);
  *histogram = (cleave_histogram_t){0};
}

// ---- adding ----

/* Joins `ratio` bins to one, on each side from zero outwards. */
static void join(cleave_histogram_t *histogram, double ratio) {
  uint64_t *positive = histogram->bins + HALF;
  for (int k = 0; k < HALF; k++) {
    int to = ratio < (double)HALF ? k / (int)ratio : 0;
    if (to != k) {
      positive[to] += positive[k];
      positive[k] = 0;
      positive[-1 - to] += positive[-1 - k];
      positive[-1 - k] = 0;
    }
  }
}

/* Bins up to `size`. */
static void reach(cleave_histogram_t *histogram, double size) {
  int exponent = 0;
  if (size <= histogram->limit) {
    return;
  }
  double mantissa = frexp(size, &exponent);
  double limit = ldexp(1.0, mantissa == 0.5 ? exponent - 1 : exponent);
  if (histogram->limit > 0.0) {
    join(histogram, limit / histogram->limit);
  }
  histogram->limit = limit;
}

static float number_at(const void *numbers, size_t index) {
  float number;
  memcpy(&number, (const char *)numbers + index * sizeof number, sizeof number);
  return number;
}

static void count(cleave_histogram_t *histogram, const void *numbers, size_t amount) {
  double scale = histogram->limit > 0.0 ? (double)HALF / histogram->limit : 0.0;
  for (size_t k = 0; k < amount; k++) {
    double number = (double)number_at(numbers, k);
    if (!isfinite(number)) {
      continue;
    }
    if (number == 0.0) {
      histogram->zeros++;
      continue;
    }
    int bin = (int)(fabs(number) * scale);
    bin = bin < HALF ? bin : HALF - 1;
    histogram->bins[number > 0.0 ? HALF + bin : HALF - 1 - bin]++;
  }
}

void cleave_histogram_add(cleave_histogram_t *histogram, const void *numbers, size_t amount) {
  float low = INFINITY;
  float high = -INFINITY;
  size_t finite = 0;
  for (size_t k = 0; k < amount; k++) {
    float number = number_at(numbers, k);
    if (isfinite(number)) {
      low = number < low ? number : low;
      high = number > high ? number : high;
      finite++;
    }
  }
  histogram->skipped += amount - finite;
  if (finite == 0) {
    return;
  }
  histogram->min = histogram->seen == 0 || low < histogram->min ? low : histogram->min;
  histogram->max = histogram->seen == 0 || high > histogram->max ? high : histogram->max;
  histogram->seen += finite;
  if (histogram->bins != NULL) {
    reach(histogram, fmax(fabs((double)low), fabs((double)high)));
    count(histogram, numbers, amount);
  }
}

// ---- ranges ----

static void clamp(const cleave_histogram_t *histogram, double low, double high, float *out_low,
                  float *out_high) {
  *out_low = low > (double)histogram->min ? (float)low : histogram->min;
  *out_high = high < (double)histogram->max ? (float)high : histogram->max;
}

void cleave_histogram_percentile(const cleave_histogram_t *histogram, double percent, float *out_low,
                                 float *out_high) {
  double width = histogram->limit / HALF;
  double cut = (double)histogram->seen * (100.0 - percent) / 200.0;
  double below = 0.0;
  double above = 0.0;
  int low = 0;
  int high = 2 * HALF;
  /* Zeros lie between the two middle bins, so that neither end goes past them while there are any. */
  while (low < 2 * HALF && below + (double)histogram->bins[low] <= cut &&
         !(low == HALF && histogram->zeros > 0)) {
    below += (double)histogram->bins[low++];
  }
  while (high > low + 1 && above + (double)histogram->bins[high - 1] <= cut &&
         !(high == HALF && histogram->zeros > 0)) {
    above += (double)histogram->bins[--high];
  }
  clamp(histogram, (low - HALF) * width, (high - HALF) * width, out_low, out_high);
}

/* The divergence of `sizes` [from 0 to before `end`] in `levels` levels from itself with all of `total`
 * beyond in its last bin; 0 * log 0 = 0. */
static double divergence(const uint64_t *sizes, int end, int levels, double total) {
  double inside = 0.0;
  double result = 0.0;
  for (int k = 0; k < end; k++) {
    inside += (double)sizes[k];
  }
  if (inside == 0.0) {
    return INFINITY;
  }
  for (int level = 0; level < levels; level++) {
    int from = (int)((int64_t)level * end / levels);
    int to = (int)((int64_t)(level + 1) * end / levels);
    double sum = 0.0;
    int filled = 0;
    for (int k = from; k < to; k++) {
      sum += (double)sizes[k];
      filled += sizes[k] > 0 ? 1 : 0;
    }
    for (int k = from; k < to; k++) {
      double p = ((double)sizes[k] + (k == end - 1 ? total - inside : 0.0)) / total;
      double q = sizes[k] > 0 ? sum / filled / inside : 1e-9; /* empty but for what was beyond the limit */
      result += p > 0.0 ? p * log(p / q) : 0.0;
    }
  }
  return result;
}

void cleave_histogram_entropy(const cleave_histogram_t *histogram, float *out_low, float *out_high) {
  uint64_t sizes[CLEAVE_HISTOGRAM_HALF];
  double total = 0.0;
  int last = 0;
  for (int k = 0; k < HALF; k++) {
    sizes[k] = histogram->bins[HALF + k] + histogram->bins[HALF - 1 - k];
    total += (double)sizes[k];
    last = sizes[k] > 0 ? k + 1 : last;
  }
  int levels = histogram->min < 0.0F && histogram->max > 0.0F ? 128 : 256;
  double least = INFINITY;
  int best = last;
  for (int end = levels; end <= last; end += STEP) {
    double found = divergence(sizes, end, levels, total);
    if (found < least) {
      least = found;
      best = end;
    }
  }
  double limit = best >= last ? INFINITY : histogram->limit / HALF * best;
  clamp(histogram, -limit, limit, out_low, out_high);
}
