// SPDX-License-Identifier: Apache-2.0
// Whatever else the machine does falls on both runs of a pair alike, so that the ratio of a pair says more
// than its times do. Which of the two goes first changes from pair to pair.
#include "tools/verify/paired.h"

#include <stdlib.h>
#include <string.h>

#include "system/clock.h"

static cleave_status_t run_timed(cleave_session_t *session, double *out_ms, cleave_error_t *error) {
  uint64_t start = cleave_clock_now();
  CLEAVE_TRY(cleave_session_run(session, error));
  *out_ms = cleave_clock_ms(start, cleave_clock_now());
  return CLEAVE_OK;
}

cleave_status_t cleave_paired_run(cleave_paired_t *paired, cleave_session_t *first, cleave_session_t *second,
                                  cleave_error_t *error) {
  if (paired->count == CLEAVE_PAIRED_MAX) {
    return CLEAVE_OK;
  }
  double *first_ms = &paired->first_ms[paired->count];
  double *second_ms = &paired->second_ms[paired->count];
  bool in_order = paired->count % 2 == 0;
  CLEAVE_TRY(run_timed(in_order ? first : second, in_order ? first_ms : second_ms, error));
  CLEAVE_TRY(run_timed(in_order ? second : first, in_order ? second_ms : first_ms, error));
  paired->count++;
  return CLEAVE_OK;
}

static int compare_doubles(const void *a, const void *b) {
  double x = *(const double *)a;
  double y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The median of sorted numbers. */
static double middle(const double *numbers, uint32_t count) {
  return count % 2 == 1 ? numbers[count / 2] : 0.5 * (numbers[count / 2 - 1] + numbers[count / 2]);
}

static double median(const double *times, uint32_t count) {
  double sorted[CLEAVE_PAIRED_MAX];
  memcpy(sorted, times, count * sizeof *sorted);
  qsort(sorted, count, sizeof *sorted, compare_doubles);
  return middle(sorted, count);
}

/* How many of `count` numbers may lie outside of the interval at each end: the largest rank for which fair
 * coins show at most that many heads, or that many tails, in no more than 5 % of all cases. 0: too few. */
static uint32_t outside_of(uint32_t count) {
  double chance = 1.0; /* of exactly `rank` heads */
  for (uint32_t k = 0; k < count; k++) {
    chance *= 0.5;
  }
  double sum = 0.0;
  uint32_t rank = 0;
  while (rank < count && 2.0 * (sum + chance) <= 0.05) {
    sum += chance;
    chance *= (double)(count - rank) / (double)(rank + 1);
    rank++;
  }
  return rank;
}

void cleave_paired_summarise(const cleave_paired_t *paired, cleave_paired_summary_t *out_summary) {
  uint32_t count = paired->count;
  *out_summary = (cleave_paired_summary_t){0};
  if (count == 0) {
    return;
  }
  double changes[CLEAVE_PAIRED_MAX];
  for (uint32_t k = 0; k < count; k++) {
    double first = paired->first_ms[k] > 0.0 ? paired->first_ms[k] : 1e-6; /* less than the clock sees */
    changes[k] = paired->second_ms[k] / first - 1.0;
  }
  qsort(changes, count, sizeof *changes, compare_doubles);
  uint32_t rank = outside_of(count);
  out_summary->first_ms = median(paired->first_ms, count);
  out_summary->second_ms = median(paired->second_ms, count);
  out_summary->change = middle(changes, count);
  out_summary->has_interval = rank > 0;
  out_summary->low = rank > 0 ? changes[rank - 1] : 0.0;
  out_summary->high = rank > 0 ? changes[count - rank] : 0.0;
}
