// SPDX-License-Identifier: Apache-2.0
// What the times of two sessions that ran by turns say: a change is told with an interval, from pairs.
#include "tools/verify/paired.h"

#include "unit.h"

/* `count` pairs: the first takes 10 ms and more each time, the second `percent[k]` percent longer. */
static cleave_paired_summary_t summarise(uint32_t count, const double *percent) {
  cleave_paired_t paired = {.count = count};
  cleave_paired_summary_t summary;
  for (uint32_t k = 0; k < count; k++) {
    paired.first_ms[k] = 10.0 * (double)(1 + k % 3);
    paired.second_ms[k] = paired.first_ms[k] * (1.0 + percent[k] / 100.0);
  }
  cleave_paired_summarise(&paired, &summary);
  return summary;
}

UNIT_TEST(without_pairs_there_is_nothing_to_say) {
  cleave_paired_summary_t summary = summarise(0, NULL);
  ck_assert(!summary.has_interval);
  ck_assert_double_eq(summary.first_ms, 0.0);
  ck_assert_double_eq(summary.change, 0.0);
}

UNIT_TEST(five_pairs_are_too_few_for_an_interval_and_six_are_enough) {
  static const double PERCENT[6] = {5, 1, 4, 2, 3, 6};
  ck_assert(!summarise(5, PERCENT).has_interval);
  ck_assert_double_eq_tol(summarise(5, PERCENT).change, 0.03, 1e-12);
  cleave_paired_summary_t summary = summarise(6, PERCENT);
  ck_assert(summary.has_interval);
  ck_assert_double_eq_tol(summary.change, 0.035, 1e-12);
  ck_assert_double_eq_tol(summary.low, 0.01, 1e-12);
  ck_assert_double_eq_tol(summary.high, 0.06, 1e-12);
  ck_assert_double_eq_tol(summary.first_ms, 20.0, 1e-12);
}

/* The sign test for 25 pairs: 7 may lie outside at each end (a table of the binomial distribution gives
 * 0.0216 for at most 7 heads of 25, 0.0539 for at most 8). */
UNIT_TEST(the_interval_is_that_of_the_sign_test) {
  double percent[25];
  for (uint32_t k = 0; k < 25; k++) {
    percent[k] = (double)((k * 7) % 25); /* 0 to 24, each once */
  }
  cleave_paired_summary_t summary = summarise(25, percent);
  ck_assert_double_eq_tol(summary.change, 0.12, 1e-12);
  ck_assert_double_eq_tol(summary.low, 0.07, 1e-12);
  ck_assert_double_eq_tol(summary.high, 0.17, 1e-12);
}

UNIT_TEST(a_few_pairs_that_something_else_disturbed_change_nothing) {
  double percent[25];
  for (uint32_t k = 0; k < 25; k++) {
    percent[k] = k % 5 == 0 ? 900.0 : 5.0;
  }
  cleave_paired_summary_t summary = summarise(25, percent);
  ck_assert_double_eq_tol(summary.change, 0.05, 1e-12);
  ck_assert_double_eq_tol(summary.low, 0.05, 1e-12);
  ck_assert_double_eq_tol(summary.high, 0.05, 1e-12);
}

UNIT_SUITE("paired")
