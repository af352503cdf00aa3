// SPDX-License-Identifier: Apache-2.0
/* What commands say about many measured times. */
#ifndef CLEAVE_CLI_REPORT_TIMES_H
#define CLEAVE_CLI_REPORT_TIMES_H

#include <stddef.h>

/* The smallest first. */
void cleave_times_sort(double *times, size_t count);

/* The time below which `share` (0 to 1) of the sorted times are, interpolated between the two next to it; so
 * the median of an even count is the mean of the middle two. 0 without times. */
double cleave_times_quantile(const double *sorted, size_t count, double share);

/* A time in milliseconds as text, with more digits if it is short. Returns `buffer`. */
const char *cleave_times_format(double ms, char *buffer, size_t size);

#endif /* CLEAVE_CLI_REPORT_TIMES_H */
