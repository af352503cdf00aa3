// SPDX-License-Identifier: Apache-2.0
// Quantiles of measured times, the same for every command.
#include "cli/report/times.h"

#include <stdio.h>
#include <stdlib.h>

static int compare_times(const void *a, const void *b) {
  double left = *(const double *)a;
  double right = *(const double *)b;
  return (left > right) - (left < right);
}

void cleave_times_sort(double *times, size_t count) {
  if (count > 1) {
    qsort(times, count, sizeof *times, compare_times);
  }
}

double cleave_times_quantile(const double *sorted, size_t count, double share) {
  if (count == 0) {
    return 0.0;
  }
  double place = share * (double)(count - 1);
  size_t low = (size_t)place;
  size_t high = low + 1 < count ? low + 1 : low;
  double rest = place - (double)low;
  return sorted[low] * (1.0 - rest) + sorted[high] * rest;
}

const char *cleave_times_format(double ms, char *buffer, size_t size) {
  (void)snprintf(buffer, size, ms < 1.0 ? "%.4f" : "%.2f", ms);
  return buffer;
}
