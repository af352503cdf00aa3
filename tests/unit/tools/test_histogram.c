// SPDX-License-Identifier: Apache-2.0
// Histograms that grow, ranges by them, and ranges of a graph's values.
#include "tools/calibrate/calibrate.h"

#include <math.h>

#include "session_case.h"
#include "unit.h"

enum { COUNT = 20000 };

static uint64_t sum_of(const cleave_histogram_t *histogram) {
  uint64_t sum = histogram->zeros;
  for (int k = 0; k < 2 * CLEAVE_HISTOGRAM_HALF; k++) {
    sum += histogram->bins[k];
  }
  return sum;
}

// Numbers that are normal, about: sums of twelve uniform ones.
static void fill(float *numbers, size_t count, uint64_t seed) {
  for (size_t k = 0; k < count; k++) {
    double sum = -6.0;
    for (int i = 0; i < 12; i++) {
      seed = seed * 6364136223846793005U + 1442695040888963407U;
      sum += (double)(seed >> 40) / 16777216.0;
    }
    numbers[k] = (float)sum;
  }
}

UNIT_TEST(the_order_of_the_data_makes_no_difference) {
  static float numbers[COUNT];
  cleave_histogram_t up;
  cleave_histogram_t down;
  unit_ok(cleave_histogram_init(&up, e));
  unit_ok(cleave_histogram_init(&down, e));
  fill(numbers, COUNT, 1);
  numbers[COUNT - 1] = 1000.0F;
  numbers[COUNT - 2] = 0.0F;
  numbers[COUNT - 3] = -0.00001F;
  for (int k = 0; k < COUNT; k++) {
    cleave_histogram_add(&up, &numbers[k], 1);
    cleave_histogram_add(&down, &numbers[COUNT - 1 - k], 1);
  }
  ck_assert_uint_eq(sum_of(&up), COUNT);
  ck_assert_double_eq(up.limit, 1024.0);
  ck_assert_double_eq(down.limit, 1024.0);
  ck_assert_uint_eq(up.zeros, 1);
  ck_assert_float_eq(up.max, 1000.0F);
  ck_assert(up.min < -3.0F && up.min == down.min);
  ck_assert_mem_eq(up.bins, down.bins, 2 * CLEAVE_HISTOGRAM_HALF * sizeof *up.bins);
  cleave_histogram_deinit(&up);
  cleave_histogram_deinit(&down);
}

UNIT_TEST(what_is_not_finite_is_left_out) {
  const float numbers[] = {NAN, 2.0F, INFINITY, -INFINITY, -1.0F};
  cleave_histogram_t histogram;
  unit_ok(cleave_histogram_init(&histogram, e));
  cleave_histogram_add(&histogram, numbers, 5);
  cleave_histogram_add(&histogram, numbers, 1);
  ck_assert_uint_eq(histogram.seen, 2);
  ck_assert_uint_eq(histogram.skipped, 4);
  ck_assert_float_eq(histogram.min, -1.0F);
  ck_assert_float_eq(histogram.max, 2.0F);
  ck_assert_uint_eq(sum_of(&histogram), 2);
  cleave_histogram_deinit(&histogram);
}

UNIT_TEST(a_percentile_cuts_off_the_outermost_numbers_on_both_sides) {
  static float numbers[10000];
  float low = 0.0F;
  float high = 0.0F;
  cleave_histogram_t histogram;
  unit_ok(cleave_histogram_init(&histogram, e));
  for (int k = 0; k < 10000; k++) {
    numbers[k] = (float)(k - 2000) / 1000.0F; /* -2 to 8 */
  }
  cleave_histogram_add(&histogram, numbers, 10000);
  cleave_histogram_percentile(&histogram, 90.0, &low, &high);
  ck_assert_float_eq_tol(low, -1.5F, 0.01F);
  ck_assert_float_eq_tol(high, 7.5F, 0.01F);
  cleave_histogram_percentile(&histogram, 100.0, &low, &high);
  ck_assert_float_eq(low, -2.0F);
  ck_assert_float_eq(high, 7.999F);
  cleave_histogram_deinit(&histogram);
}

UNIT_TEST(zeros_count_for_a_percentile) {
  float low = 0.0F;
  float high = 0.0F;
  float zeros[900] = {0};
  float ones[100];
  cleave_histogram_t histogram;
  unit_ok(cleave_histogram_init(&histogram, e));
  for (int k = 0; k < 100; k++) {
    ones[k] = 1.0F + (float)k / 100.0F;
  }
  cleave_histogram_add(&histogram, zeros, 900);
  cleave_histogram_percentile(&histogram, 99.0, &low, &high);
  ck_assert_float_eq(low, 0.0F);
  ck_assert_float_eq(high, 0.0F);
  cleave_histogram_add(&histogram, ones, 100);
  cleave_histogram_percentile(&histogram, 99.0, &low, &high);
  ck_assert_float_eq(low, 0.0F);
  ck_assert_float_eq_tol(high, 1.95F, 0.01F);
  cleave_histogram_deinit(&histogram);
}

/* One number far away: a range up to it would leave two levels to all others. */
UNIT_TEST(entropy_leaves_an_outlier_outside_and_a_full_range_as_it_is) {
  static float numbers[COUNT];
  float low = 0.0F;
  float high = 0.0F;
  cleave_histogram_t histogram;
  unit_ok(cleave_histogram_init(&histogram, e));
  fill(numbers, COUNT, 7);
  numbers[5] = 100.0F;
  cleave_histogram_add(&histogram, numbers, COUNT);
  cleave_histogram_entropy(&histogram, &low, &high);
  ck_assert_msg(high > 2.0F && high < 20.0F, "up to %g", (double)high);
  ck_assert_float_eq(low, histogram.min);
  cleave_histogram_deinit(&histogram);
  unit_ok(cleave_histogram_init(&histogram, e));
  for (int k = 0; k < COUNT; k++) {
    numbers[k] = (float)(k % 201 - 100) / 100.0F;
  }
  cleave_histogram_add(&histogram, numbers, COUNT);
  cleave_histogram_entropy(&histogram, &low, &high);
  ck_assert_float_eq_tol(low, -1.0F, 0.1F);
  ck_assert_float_eq_tol(high, 1.0F, 0.1F);
  cleave_histogram_deinit(&histogram);
}

static void expect_range(const cleave_graph_t *graph, cleave_value_t value, float low, float high) {
  const cleave_value_record_t *record = cleave_graph_value(graph, value);
  ck_assert(record->has_range);
  ck_assert_float_eq(record->low, low);
  ck_assert_float_eq(record->high, high);
}

UNIT_TEST(values_of_a_graph_get_the_ranges_of_all_runs) {
  const float data[2][4] = {{-1.0F, 0.5F, 2.0F, -3.0F}, {1.0F, 7.0F, -2.0F, 0.0F}};
  const int64_t dims[] = {4};
  const float one = 1.0F;
  for (int backend = 0; backend < 2; backend++) {
    session_case_t c = session_case_create();
    cleave_value_t x = session_case_input(&c, "x", CLEAVE_DTYPE_F32, 1, (const cleave_dim_t[]){-1});
    cleave_value_t y = session_case_node(&c, "Relu", "y", x, CLEAVE_VALUE_NONE, CLEAVE_VALUE_NONE);
    cleave_value_t ones = session_case_floats(&c, "one", 0, NULL, &one);
    cleave_value_t z = session_case_node(&c, "Add", "z", y, ones, CLEAVE_VALUE_NONE);
    cleave_value_t n = session_case_node(&c, "Log", "n", x, CLEAVE_VALUE_NONE, CLEAVE_VALUE_NONE);
    session_case_output(&c, z);
    session_case_output(&c, n);
    session_case_infer(&c);
    const cleave_calibration_options_t options = {.backend = backend == 1 ? "cpu" : NULL};
    cleave_calibration_t *calibration = NULL;
    cleave_value_t skipped;
    cleave_tensor_view_t view = {.size = sizeof view, .dtype = CLEAVE_DTYPE_F32, .rank = 1, .dims = dims};
    unit_ok(cleave_calibration_create(c.graph, &view, 1, &options, &calibration, e));
    for (int k = 0; k < 2; k++) {
      view.data = data[k];
      unit_ok(cleave_calibration_run(calibration, &view, e));
    }
    ck_assert_uint_eq(cleave_calibration_set(calibration, c.graph), 4);
    expect_range(c.graph, x, -3.0F, 7.0F);
    expect_range(c.graph, y, 0.0F, 7.0F);
    expect_range(c.graph, z, 1.0F, 8.0F);
    ck_assert_float_eq_tol(cleave_graph_value(c.graph, n)->low, logf(0.5F), 1e-6F);
    ck_assert(!cleave_graph_value(c.graph, ones)->has_range);
    ck_assert_uint_eq(cleave_calibration_skipped(calibration, &skipped), 4);
    ck_assert_uint_eq(skipped.index, n.index);
    cleave_calibration_destroy(calibration);
    session_case_deinit(&c);
  }
}

UNIT_SUITE("histogram")
