// SPDX-License-Identifier: Apache-2.0
// Products with packed matrices for AVX-512 against sums in double: both orders of channels, sizes around
// those of a tile, all that may follow, what lies behind the last column, special values, and any cut of the
// work. Other processors have nothing to test.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "floats_case.h"
#include "unit.h"

enum { PANEL = KERNEL_WIDE_PANEL };

typedef struct operands {
  kernel_wide_t wide;
  kernel_wide_data_t data;
  float *x;
  float *weights;
  float *bias;
  float *sum;
  float *y;
  size_t y_count;
} operands_t;

/* In blocks of channels, with zeros behind the last one, or with channels last, without. */
static operands_t make(int64_t images, int64_t rows, int64_t columns, int64_t depth, bool is_last) {
  int64_t inputs = is_last ? depth : floats_case_whole_panels(depth);
  int64_t outputs = is_last ? columns : floats_case_whole_panels(columns);
  operands_t o = {.wide = {.images = images,
                           .rows = rows,
                           .columns = columns,
                           .depth = depth,
                           .x_image = inputs * rows,
                           .x_row = is_last ? depth : PANEL,
                           .x_block = is_last ? PANEL : rows * PANEL,
                           .w_panel = depth * PANEL,
                           .y_image = outputs * rows,
                           .y_row = is_last ? columns : PANEL,
                           .y_panel = is_last ? PANEL : rows * PANEL,
                           .is_filled = !is_last,
                           .activation = {.low = -INFINITY, .high = INFINITY}},
                  .x = floats_case_random(images * inputs * rows),
                  .weights = floats_case_random(floats_case_whole_panels(columns) * depth),
                  .bias = floats_case_random(columns),
                  .sum = floats_case_random(images * outputs * rows),
                  .y_count = (size_t)(images * outputs * rows)};
  for (int64_t n = columns; n < floats_case_whole_panels(columns); n++) {
    for (int64_t k = 0; k < depth; k++) {
      o.weights[(n / PANEL * depth + k) * PANEL + n % PANEL] = 0;
    }
  }
  o.y = malloc(o.y_count * sizeof(float));
  ck_assert_ptr_nonnull(o.y);
  o.data = (kernel_wide_data_t){.x = o.x, .weights = o.weights, .y = o.y};
  return o;
}

static void release(operands_t *o) {
  free(o->x);
  free(o->weights);
  free(o->bias);
  free(o->sum);
  free(o->y);
}

static void run(const operands_t *o, int32_t threads) {
  kernel_wide_cut_t cut = kernel_wide_cut(&o->wide, threads);
  if (o->data.sum != o->y) {
    memset(o->y, 0xff, o->y_count * sizeof(float)); /* NaN */
  }
  for (int64_t unit = kernel_wide_units(&o->wide, &cut); unit-- > 0;) {
    kernel_wide_run(&o->wide, &cut, &o->data, unit);
  }
}

static void run_and_expect(const operands_t *o) {
  const kernel_wide_t *w = &o->wide;
  run(o, 1);
  for (int64_t n = 0; n < (w->is_filled ? floats_case_whole_panels(w->columns) : w->columns); n++) {
    for (int64_t i = 0; i < w->images * w->rows; i++) {
      int64_t at = i / w->rows * w->y_image + i % w->rows * w->y_row + n / PANEL * w->y_panel + n % PANEL;
      if (n >= w->columns) {
        ck_assert_msg(o->y[at] == 0, "behind the last column: %g", (double)o->y[at]);
        continue;
      }
      const float *x = o->x + i / w->rows * w->x_image + i % w->rows * w->x_row;
      double value = o->data.bias != NULL ? (double)o->bias[n] : 0;
      double scale = 1;
      value += o->data.sum != NULL ? (double)o->sum[at] : 0;
      for (int64_t k = 0; k < w->depth; k++) {
        double product = (double)x[k / PANEL * w->x_block + k % PANEL] *
                         (double)o->weights[(n / PANEL * w->depth + k) * PANEL + n % PANEL];
        value += product;
        scale += fabs(product);
      }
      value = floats_case_activate(&w->activation, value);
      ck_assert_msg(fabs((double)o->y[at] - value) <= 2e-6 * scale, "[%d, %d] is %.9g, expected %.9g", (int)i,
                    (int)n, (double)o->y[at], value);
    }
  }
}

static const char *lacks_avx512(void) {
  return kernel_wide_runs_here() ? NULL : "the kernel needs AVX-512";
}

UNIT_TEST_UNLESS(multiplies_matrices_of_any_size, lacks_avx512) {
  static const int64_t ROWS[] = {1, 2, 13, 14, 15, 29, 47};
  static const int64_t COLUMNS[] = {1, 16, 217, 32, 40, 48, 75};
  static const int64_t DEPTHS[] = {1, 16, 24, 35};
  for (int k = 0; k < 7 * 7 * 4 * 4; k++) {
    operands_t o =
        make(k % 3 == 0 ? 2 : 1, ROWS[k % 7], COLUMNS[k / 7 % 7], DEPTHS[k / 49 % 4], k / 196 % 2 == 0);
    o.data.bias = k / 392 == 0 ? o.bias : NULL;
    run_and_expect(&o);
    release(&o);
  }
}

UNIT_TEST_UNLESS(adds_and_applies_activations, lacks_avx512) {
  for (int form = 0; form < 20; form++) {
    operands_t o = make(2, 17, 39, 20, form % 2 == 0);
    o.data.bias = o.bias;
    o.data.sum = form / 2 % 2 == 0 ? o.sum : NULL;
    for (int64_t at = 0; !o.data.sum && at < (int64_t)o.y_count; at++) {
      o.sum[at] = 0;
    }
    o.wide.activation.low = form / 4 == 0 ? 0.5F : (form / 4 == 1 ? -3.0F : -INFINITY);
    o.wide.activation.high = form / 4 == 1 ? 2.5F : INFINITY;
    o.wide.activation.kind = form / 4 == 2 ? KERNEL_SWISH
                                           : (form / 4 == 3   ? KERNEL_GATE
                                              : form / 4 == 4 ? KERNEL_SIGMOID
                                                              : KERNEL_BOUNDS);
    o.wide.activation.alpha = form / 4 == 2 ? 1.5F : 1.0F / 6.0F;
    o.wide.activation.beta = 0.5F;
    run_and_expect(&o);
    release(&o);
  }
}

UNIT_TEST_UNLESS(adds_to_what_it_overwrites, lacks_avx512) {
  operands_t o = make(1, 31, 40, 24, true);
  o.data.sum = o.sum;
  run(&o, 2);
  float *apart = malloc(o.y_count * sizeof(float));
  ck_assert_ptr_nonnull(apart);
  memcpy(apart, o.y, o.y_count * sizeof(float));
  memcpy(o.y, o.sum, o.y_count * sizeof(float));
  o.data.sum = o.y;
  run(&o, 2);
  ck_assert_mem_eq(apart, o.y, o.y_count * sizeof(float));
  free(apart);
  release(&o);
}

/* An infinity reaches its row, a NaN stays one; neither gets behind the last column. */
UNIT_TEST_UNLESS(keeps_special_values_in_their_rows, lacks_avx512) {
  operands_t o = make(1, 20, 20, 16, false);
  o.x[7 * PANEL + 3] = INFINITY;
  o.x[9 * PANEL] = NAN;
  o.wide.activation.low = 0;
  run(&o, 1);
  for (int64_t i = 0; i < 20; i++) {
    for (int64_t n = 0; n < 32; n++) {
      float found = o.y[n / PANEL * o.wide.y_panel + i * PANEL + n % PANEL];
      ck_assert(n < 20 ? isnan(found) == (i == 9) && (i == 7 || !isinf(found)) : found == 0);
    }
  }
  release(&o);
}

UNIT_TEST_UNLESS(gives_the_same_bits_however_the_work_is_cut, lacks_avx512) {
  static const int64_t CASES[][4] = {{1, 3000, 24, 96}, {1, 49, 640, 160}, {3, 60, 64, 40}, {1, 1, 96, 48}};
  for (size_t k = 0; k < sizeof CASES / sizeof CASES[0]; k++) {
    operands_t o = make(CASES[k][0], CASES[k][1], CASES[k][2], CASES[k][3], k % 2 == 0);
    float *alone = malloc(o.y_count * sizeof(float));
    ck_assert_ptr_nonnull(alone);
    run(&o, 1);
    memcpy(alone, o.y, o.y_count * sizeof(float));
    for (int32_t threads = 2; threads <= 64; threads += threads < 5 ? 1 : 17) {
      run(&o, threads);
      ck_assert_mem_eq(alone, o.y, o.y_count * sizeof(float));
    }
    free(alone);
    release(&o);
  }
}

UNIT_SUITE("kernels_wide")
