// SPDX-License-Identifier: Apache-2.0
// Products of rows with packed matrices against sums in double: sizes around those of tiles, blocks and parts
// of the depth, rows with gaps, what is added, bounds, special values. With each panel that the processor has
// code for; without AVX2 there is nothing to test.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "floats_case.h"
#include "kernels/instructions.h"
#include "kernels/loops/loops.h"
#include "kernels/matrix/matrix.h"
#include "unit.h"

enum { GAP = 3 };

typedef struct operands {
  kernel_matrix_t matrix;
  kernel_matrix_data_t data;
  float *x;
  float *w; /* [depth, columns] */
  float *packed;
  float *bias;
  float *sum;
  float *y;
} operands_t;

/* Wide panels have a multiple of 16 elements of the depth. */
static int64_t packed_depth(int64_t depth, int32_t panel) {
  return panel == KERNEL_MATRIX_PANEL_AVX512 ? (depth + 15) / 16 * 16 : depth;
}

static operands_t make(int32_t panel, int64_t rows, int64_t columns, int64_t depth, bool has_bias,
                       bool has_sum) {
  int64_t panels = (columns - 1) / panel + 1;
  int64_t stored = packed_depth(depth, panel);
  operands_t o = {.matrix = {.rows = rows,
                             .columns = columns,
                             .depth = depth,
                             .panel = panel,
                             .x_stride = depth + GAP,
                             .sum_stride = columns + 2 * GAP,
                             .y_stride = columns + GAP,
                             .low = -INFINITY,
                             .high = INFINITY}};
  o.x = floats_case_random(rows * o.matrix.x_stride);
  o.w = floats_case_random(depth * columns);
  o.packed = floats_case_random(panels * stored * panel);
  o.bias = floats_case_random(columns);
  o.sum = floats_case_random(rows * o.matrix.sum_stride);
  o.y = floats_case_random(rows * o.matrix.y_stride);
  for (int64_t k = 0; k < depth; k++) {
    for (int64_t n = 0; n < panels * panel; n++) {
      o.packed[(n / panel * stored + k) * panel + n % panel] = n < columns ? o.w[k * columns + n] : 0.0F;
    }
  }
  o.data = (kernel_matrix_data_t){.x = o.x,
                                  .weights = o.packed,
                                  .bias = has_bias ? o.bias : NULL,
                                  .sum = has_sum ? o.sum : NULL,
                                  .y = o.y};
  return o;
}

static void release(operands_t *o) {
  free(o->x);
  free(o->w);
  free(o->packed);
  free(o->bias);
  free(o->sum);
  free(o->y);
}

/* `before` is what y held: gaps between its rows stay. */
static void expect_all(const operands_t *o, const float *before) {
  const kernel_matrix_t *m = &o->matrix;
  for (int64_t i = 0; i < m->rows; i++) {
    for (int64_t n = 0; n < m->y_stride; n++) {
      float found = o->y[i * m->y_stride + n];
      if (n >= m->columns) {
        ck_assert_msg(found == before[i * m->y_stride + n], "the gap behind row %d was written", (int)i);
        continue;
      }
      double expected = o->data.bias != NULL ? (double)o->bias[n] : 0;
      expected += o->data.sum != NULL ? (double)o->sum[i * m->sum_stride + n] : 0;
      double scale = 1;
      for (int64_t k = 0; k < m->depth; k++) {
        double product = (double)o->x[i * m->x_stride + k] * (double)o->w[k * m->columns + n];
        expected += product;
        scale += fabs(product);
      }
      expected = fmin(fmax(expected, (double)m->low), (double)m->high);
      ck_assert_msg(fabs((double)found - expected) <= 1e-6 * scale, "[%d, %d] is %.9g, expected %.9g", (int)i,
                    (int)n, (double)found, expected);
    }
  }
}

static void run_and_expect(operands_t *o) {
  size_t bytes = (size_t)(o->matrix.rows * o->matrix.y_stride) * sizeof(float);
  float *before = malloc(bytes);
  ck_assert_ptr_nonnull(before);
  memcpy(before, o->y, bytes);
  kernel_matrix_run(&o->matrix, &o->data, 0, kernel_matrix_units(&o->matrix));
  expect_all(o, before);
  free(before);
}

static const char *lacks_avx2(void) {
  return kernel_matrix_panel() > 0 ? NULL : "the kernel is for AVX2 and AVX-512";
}

/* Calls `check` with every panel that this processor has code for. */
static void for_each_panel(void (*check)(int32_t panel)) {
  for (int32_t panel = KERNEL_MATRIX_PANEL; panel <= kernel_matrix_panel();
       panel += KERNEL_MATRIX_PANEL_AVX512 - KERNEL_MATRIX_PANEL) {
    check(panel);
  }
}

static void check_sizes(int32_t panel) {
  static const int64_t ROWS[] = {1, 5, 6, 7, 12, 85, 100, 400, 1000};
  static const int64_t COLUMNS[] = {1, 8, 15, 16, 17, 48, 64, 100, 130};
  static const int64_t DEPTHS[] = {1, 3, 64, 768, 769, 1600};
  for (size_t r = 0; r < sizeof ROWS / sizeof ROWS[0]; r++) {
    for (size_t c = 0; c < sizeof COLUMNS / sizeof COLUMNS[0]; c++) {
      size_t d = (r + c) % (sizeof DEPTHS / sizeof DEPTHS[0]);
      operands_t o = make(panel, ROWS[r], COLUMNS[c], DEPTHS[d], r % 2 == 0, c % 2 == 0);
      run_and_expect(&o);
      release(&o);
    }
  }
}

UNIT_TEST_UNLESS(multiplies_matrices_of_any_size, lacks_avx2) {
  for_each_panel(check_sizes);
}

static void check_bounds(int32_t panel) {
  operands_t o = make(panel, 20, 33, 900, true, true);
  o.matrix.low = -1.5F;
  o.matrix.high = 2.0F;
  run_and_expect(&o);
  release(&o);
}

UNIT_TEST_UNLESS(keeps_results_within_bounds, lacks_avx2) {
  for_each_panel(check_bounds);
}

/* Each result goes through a function once, however many parts the depth has. */
static void check_function(int32_t panel) {
  kernel_unary_t gate = kernel_loops_choose(KERNEL_AVX512)->unary[KERNEL_Swish][CLEAVE_DTYPE_F32];
  static const int64_t ROWS[] = {1, 4, 20};
  for (size_t r = 0; r < sizeof ROWS / sizeof ROWS[0]; r++) {
    operands_t o = make(panel, ROWS[r], 77, 900, true, true);
    operands_t plain = o;
    int64_t count = ROWS[r] * o.matrix.y_stride;
    plain.y = floats_case_random(count);
    plain.data.y = plain.y;
    memcpy(plain.y, o.y, (size_t)count * sizeof(float));
    o.matrix.then = gate;
    o.matrix.alpha = 0.5;
    kernel_matrix_run(&o.matrix, &o.data, 0, kernel_matrix_units(&o.matrix));
    kernel_matrix_run(&plain.matrix, &plain.data, 0, kernel_matrix_units(&plain.matrix));
    for (int64_t k = 0; k < ROWS[r]; k++) {
      float *y = plain.y + k * plain.matrix.y_stride;
      gate(y, y, 77, 0.5, 0);
    }
    ck_assert_mem_eq(o.y, plain.y, (size_t)count * sizeof(float));
    free(plain.y);
    release(&o);
  }
}

UNIT_TEST_UNLESS(applies_a_function_to_results, lacks_avx2) {
  for_each_panel(check_function);
}

/* A NaN stays one through bounds, infinities become the bounds. */
static void check_special_values(int32_t panel) {
  operands_t o = make(panel, 8, 16, 10, false, false);
  o.matrix.low = 0.0F;
  o.matrix.high = 6.0F;
  o.x[0] = NAN;
  o.x[o.matrix.x_stride] = INFINITY;
  for (int64_t n = 0; n < 16; n++) {
    o.packed[n] = n % 2 == 0 ? 1.0F : -1.0F;
  }
  kernel_matrix_run(&o.matrix, &o.data, 0, kernel_matrix_units(&o.matrix));
  for (int64_t n = 0; n < 16; n++) {
    ck_assert(isnan(o.y[n]));
    ck_assert(o.y[o.matrix.y_stride + n] == (n % 2 == 0 ? 6.0F : 0.0F));
    ck_assert(isfinite(o.y[2 * o.matrix.y_stride + n]));
  }
  release(&o);
}

UNIT_TEST_UNLESS(keeps_special_values, lacks_avx2) {
  for_each_panel(check_special_values);
}

static void check_sum_in_place(int32_t panel) {
  operands_t o = make(panel, 9, 20, 800, true, true);
  operands_t other = make(panel, 9, 20, 800, true, true);
  size_t packed = (size_t)((20 - 1) / panel + 1) * 800 * (size_t)panel * sizeof(float);
  memcpy(other.x, o.x, (size_t)(9 * o.matrix.x_stride) * sizeof(float));
  memcpy(other.packed, o.packed, packed);
  memcpy(other.bias, o.bias, 20 * sizeof(float));
  for (int64_t i = 0; i < 9; i++) {
    memcpy(other.y + i * other.matrix.y_stride, o.sum + i * o.matrix.sum_stride, 20 * sizeof(float));
  }
  other.data.sum = other.y;
  other.matrix.sum_stride = other.matrix.y_stride;
  kernel_matrix_run(&o.matrix, &o.data, 0, kernel_matrix_units(&o.matrix));
  kernel_matrix_run(&other.matrix, &other.data, 0, kernel_matrix_units(&other.matrix));
  for (int64_t i = 0; i < 9; i++) {
    ck_assert_mem_eq(o.y + i * o.matrix.y_stride, other.y + i * other.matrix.y_stride, 20 * sizeof(float));
  }
  release(&o);
  release(&other);
}

UNIT_TEST_UNLESS(adds_to_what_is_there, lacks_avx2) {
  for_each_panel(check_sum_in_place);
}

/* However units are dealt out. */
static void check_parts(int32_t panel) {
  operands_t o = make(panel, 700, 210, 800, true, false);
  size_t bytes = (size_t)(700 * o.matrix.y_stride) * sizeof(float);
  int64_t units = kernel_matrix_units(&o.matrix);
  float *whole = malloc(bytes);
  ck_assert_ptr_nonnull(whole);
  ck_assert_int_ge(units, 12);
  kernel_matrix_run(&o.matrix, &o.data, 0, units);
  memcpy(whole, o.y, bytes);
  for (int64_t part = 1; part <= 7; part++) {
    for (int64_t k = 0; k < 700 * o.matrix.y_stride; k++) {
      o.y[k] = k % o.matrix.y_stride < o.matrix.columns ? 0.0F : o.y[k];
    }
    for (int64_t begin = 0; begin < units; begin += part) {
      kernel_matrix_run(&o.matrix, &o.data, begin, begin + part < units ? begin + part : units);
    }
    ck_assert_mem_eq(o.y, whole, bytes);
  }
  free(whole);
  release(&o);
}

UNIT_TEST_UNLESS(gives_the_same_bits_in_any_parts, lacks_avx2) {
  for_each_panel(check_parts);
}

UNIT_SUITE("kernels_matrix")
