// SPDX-License-Identifier: Apache-2.0
// Products of bfloat16 by AMX against sums in double: sizes around those of tiles, blocks and parts of the
// depth, rows with gaps, what is added, bounds, a function, special values. On a processor without AMX there
// is nothing to test.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "floats_case.h"
#include "kernels/instructions.h"
#include "kernels/loops/loops.h"
#include "kernels/matrix/amx.h"
#include "unit.h"

enum { GAP = 5 };

/* Of x, weights, what is added and y, which are bfloat16 or float32; bits of float32 numbers. */
typedef struct operands {
  kernel_amx_t amx;
  kernel_amx_data_t data;
  uint16_t *x;
  uint16_t *w; /* [depth, columns] */
  uint16_t *packed;
  float *bias;
  void *sum;
  void *y;
} operands_t;

static float widened(uint16_t half) {
  uint32_t bits = (uint32_t)half << 16;
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

static uint16_t *random_short(int64_t count) {
  float *values = floats_case_random(count);
  uint16_t *out = malloc((size_t)count * sizeof(uint16_t));
  ck_assert_ptr_nonnull(out);
  for (int64_t k = 0; k < count; k++) {
    uint32_t bits;
    memcpy(&bits, &values[k], sizeof(bits));
    out[k] = (uint16_t)(bits >> 16);
  }
  free(values);
  return out;
}

static void *random_of(int64_t count, bool is_short) {
  return is_short ? (void *)random_short(count) : (void *)floats_case_random(count);
}

static float element(const void *values, int64_t index, bool is_short) {
  return is_short ? widened(((const uint16_t *)values)[index]) : ((const float *)values)[index];
}

typedef struct kind {
  bool has_bias;
  bool has_sum;
  bool adds_short;
  bool gives_short;
} kind_t;

static operands_t make(int64_t rows, int64_t columns, int64_t depth, kind_t kind) {
  int64_t panels = (columns - 1) / KERNEL_AMX_PANEL + 1;
  operands_t o = {.amx = {.matrix = {.rows = rows,
                                     .columns = columns,
                                     .depth = depth,
                                     .x_stride = depth + 2 * GAP,
                                     .sum_stride = columns + 2 * GAP,
                                     .y_stride = columns + GAP,
                                     .low = -INFINITY,
                                     .high = INFINITY},
                          .adds_short = kind.adds_short,
                          .gives_short = kind.gives_short}};
  const kernel_matrix_t *m = &o.amx.matrix;
  o.x = random_short(rows * m->x_stride);
  o.w = random_short(depth * columns);
  o.packed = calloc((size_t)(panels * depth * KERNEL_AMX_PANEL), sizeof(uint16_t));
  ck_assert_ptr_nonnull(o.packed);
  for (int64_t k = 0; k < depth; k++) {
    for (int64_t n = 0; n < columns; n++) {
      int64_t pair = n / KERNEL_AMX_PANEL * depth / 2 + k / 2;
      o.packed[(pair * KERNEL_AMX_PANEL + n % KERNEL_AMX_PANEL) * 2 + k % 2] = o.w[k * columns + n];
    }
  }
  o.bias = floats_case_random(columns);
  o.sum = random_of(rows * m->sum_stride, kind.adds_short);
  o.y = random_of(rows * m->y_stride, kind.gives_short);
  o.data = (kernel_amx_data_t){.x = o.x,
                               .weights = o.packed,
                               .bias = kind.has_bias ? o.bias : NULL,
                               .sum = kind.has_sum ? o.sum : NULL,
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

static size_t bytes_of_y(const operands_t *o) {
  return (size_t)(o->amx.matrix.rows * o->amx.matrix.y_stride) *
         (o->amx.gives_short ? sizeof(uint16_t) : sizeof(float));
}

/* A copy of y, to be freed. */
static void *copy_of_y(const operands_t *o) {
  void *copy = malloc(bytes_of_y(o));
  ck_assert_ptr_nonnull(copy);
  memcpy(copy, o->y, bytes_of_y(o));
  return copy;
}

static void run(const operands_t *o) {
  kernel_amx_run(&o->amx, &o->data, 0, kernel_amx_units(&o->amx));
}

/* Runs it; gaps between the rows of y stay. */
static void run_and_expect(operands_t *o) {
  const kernel_matrix_t *m = &o->amx.matrix;
  void *before = copy_of_y(o);
  run(o);
  for (int64_t i = 0; i < m->rows; i++) {
    for (int64_t n = 0; n < m->y_stride; n++) {
      float found = element(o->y, i * m->y_stride + n, o->amx.gives_short);
      if (n >= m->columns) {
        float kept = element(before, i * m->y_stride + n, o->amx.gives_short);
        ck_assert_msg(found == kept, "the gap behind row %d was written", (int)i);
        continue;
      }
      double expected = o->data.bias != NULL ? (double)o->bias[n] : 0;
      if (o->data.sum != NULL) {
        expected += (double)element(o->sum, i * m->sum_stride + n, o->amx.adds_short);
      }
      double scale = 1;
      for (int64_t k = 0; k < m->depth; k++) {
        double product =
            (double)widened(o->x[i * m->x_stride + k]) * (double)widened(o->w[k * m->columns + n]);
        expected += product;
        scale += fabs(product);
      }
      expected = fmin(fmax(expected, (double)m->low), (double)m->high);
      double error = 1e-6 * scale + (o->amx.gives_short ? fabs(expected) / 256 : 0);
      ck_assert_msg(fabs((double)found - expected) <= error, "%d x %d x %d: [%d, %d] is %.9g, expected %.9g",
                    (int)m->rows, (int)m->depth, (int)m->columns, (int)i, (int)n, (double)found, expected);
    }
  }
  free(before);
}

static const char *lacks_amx(void) {
  return kernel_amx_runs_here() ? NULL : "the kernel is for AMX";
}

UNIT_TEST_UNLESS(multiplies_matrices_of_any_size, lacks_amx) {
  static const int64_t ROWS[] = {16, 17, 31, 32, 33, 48, 100, 128, 129, 200, 260};
  static const int64_t COLUMNS[] = {1, 16, 31, 32, 33, 64, 65, 96, 100, 192};
  static const int64_t DEPTHS[] = {32, 64, 224, 256, 288, 544, 1024};
  for (size_t r = 0; r < sizeof ROWS / sizeof ROWS[0]; r++) {
    for (size_t c = 0; c < sizeof COLUMNS / sizeof COLUMNS[0]; c++) {
      size_t d = (r + c) % (sizeof DEPTHS / sizeof DEPTHS[0]);
      const kind_t kind = {.has_bias = r % 2 == 0,
                           .has_sum = c % 2 == 0,
                           .adds_short = r % 4 < 2,
                           .gives_short = (r + c) % 4 < 2};
      operands_t o = make(ROWS[r], COLUMNS[c], DEPTHS[d], kind);
      run_and_expect(&o);
      release(&o);
    }
  }
}

UNIT_TEST_UNLESS(keeps_results_within_bounds, lacks_amx) {
  operands_t o = make(40, 70, 320, (kind_t){.has_bias = true, .has_sum = true});
  o.amx.matrix.low = -1.5F;
  o.amx.matrix.high = 2.0F;
  run_and_expect(&o);
  release(&o);
}

/* Each result goes through a function once, though the last two tiles have rows in common. */
UNIT_TEST_UNLESS(applies_a_function_to_results, lacks_amx) {
  kernel_unary_t gate = kernel_loops_choose(KERNEL_AVX512)->unary[KERNEL_Swish][CLEAVE_DTYPE_F32];
  operands_t o = make(41, 77, 800, (kind_t){.has_bias = true, .has_sum = true, .adds_short = true});
  run(&o);
  float *expected = copy_of_y(&o);
  for (int64_t k = 0; k < 41; k++) {
    float *row = expected + k * o.amx.matrix.y_stride;
    gate(row, row, 77, 0.5, 0);
  }
  o.amx.matrix.then = gate;
  o.amx.matrix.alpha = 0.5;
  run(&o);
  ck_assert_mem_eq(o.y, expected, bytes_of_y(&o));
  free(expected);
  release(&o);
}

/* A NaN stays one through bounds, infinities become the bounds. */
UNIT_TEST_UNLESS(keeps_special_values, lacks_amx) {
  for (int is_short = 0; is_short < 2; is_short++) {
    operands_t o = make(16, 16, 32, (kind_t){.gives_short = is_short == 1});
    int64_t stride = o.amx.matrix.y_stride;
    o.amx.matrix.low = 0.0F;
    o.amx.matrix.high = 6.0F;
    o.x[0] = 0x7fc0;                     /* NaN */
    o.x[o.amx.matrix.x_stride] = 0x7f80; /* infinity */
    for (int64_t n = 0; n < 16; n++) {
      o.packed[2 * n] = n % 2 == 0 ? 0x3f80 : 0xbf80; /* 1, -1 */
    }
    run(&o);
    for (int64_t n = 0; n < 16; n++) {
      ck_assert(isnan(element(o.y, n, is_short == 1)));
      ck_assert(element(o.y, stride + n, is_short == 1) == (n % 2 == 0 ? 6.0F : 0.0F));
      ck_assert(isfinite(element(o.y, 2 * stride + n, is_short == 1)));
    }
    release(&o);
  }
}

UNIT_TEST_UNLESS(adds_to_what_is_there, lacks_amx) {
  for (int is_short = 0; is_short < 2; is_short++) {
    const kind_t kind = {
        .has_bias = true, .has_sum = true, .adds_short = is_short == 1, .gives_short = is_short == 1};
    operands_t o = make(150, 90, 576, kind);
    size_t size = is_short == 1 ? sizeof(uint16_t) : sizeof(float);
    run(&o);
    void *expected = copy_of_y(&o);
    for (int64_t i = 0; i < 150; i++) {
      memcpy((char *)o.y + (size_t)(i * o.amx.matrix.y_stride) * size,
             (const char *)o.sum + (size_t)(i * o.amx.matrix.sum_stride) * size, 90 * size);
    }
    o.data.sum = o.y;
    o.amx.matrix.sum_stride = o.amx.matrix.y_stride;
    run(&o);
    ck_assert_mem_eq(o.y, expected, bytes_of_y(&o));
    free(expected);
    release(&o);
  }
}

/* However units are dealt out; more rows than a unit has. */
UNIT_TEST_UNLESS(gives_the_same_bits_in_any_parts, lacks_amx) {
  operands_t o = make(700, 210, 1536, (kind_t){.has_bias = true});
  int64_t units = kernel_amx_units(&o.amx);
  ck_assert_int_ge(units, 8);
  run(&o);
  void *whole = copy_of_y(&o);
  for (int64_t part = 1; part <= 5; part++) {
    float *y = o.y;
    for (int64_t k = 0; k < 700 * o.amx.matrix.y_stride; k++) {
      y[k] = k % o.amx.matrix.y_stride < o.amx.matrix.columns ? 0.0F : y[k];
    }
    for (int64_t begin = 0; begin < units; begin += part) {
      kernel_amx_run(&o.amx, &o.data, begin, begin + part < units ? begin + part : units);
    }
    ck_assert_mem_eq(o.y, whole, bytes_of_y(&o));
  }
  free(whole);
  release(&o);
}

UNIT_SUITE("kernels_amx")
