// SPDX-License-Identifier: Apache-2.0
// Products of bfloat16 and of 8-bit integers by AMX against sums in double: sizes around those of tiles,
// blocks and parts of the depth, rows with gaps, what is added, bounds, a function, integers, special values.
// On a processor without AMX there is nothing to test.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "floats_case.h"
#include "kernels/amx/amx.h"
#include "kernels/instructions.h"
#include "kernels/loops/loops.h"
#include "unit.h"

enum { GAP = 5 };

/* x, weights, what is added and y have elements of their dtypes. */
typedef struct operands {
  kernel_amx_t amx;
  kernel_amx_data_t data;
  void *x;
  void *w; /* [depth, columns] */
  unsigned char *packed;
  float *scale;
  float *bias;
  void *sum;
  void *y;
} operands_t;

static size_t size_of(cleave_dtype_t dtype) {
  return dtype == CLEAVE_DTYPE_F32 ? 4 : dtype == CLEAVE_DTYPE_BF16 ? 2 : 1;
}

static void *random_of(int64_t count, cleave_dtype_t dtype) {
  float *values = floats_case_random(count);
  if (dtype == CLEAVE_DTYPE_F32) {
    return values;
  }
  unsigned char *out = malloc((size_t)count * size_of(dtype));
  ck_assert_ptr_nonnull(out);
  for (int64_t k = 0; k < count; k++) {
    uint32_t bits;
    memcpy(&bits, &values[k], sizeof(bits));
    if (dtype == CLEAVE_DTYPE_BF16) {
      bits >>= 16;
      memcpy(out + 2 * k, &bits, 2);
    } else {
      out[k] = (unsigned char)(int)(values[k] * 63.0F); /* with and without the highest bit */
    }
  }
  free(values);
  return out;
}

static float element(const void *values, int64_t index, cleave_dtype_t dtype) {
  const unsigned char *at = (const unsigned char *)values + (size_t)index * size_of(dtype);
  uint32_t bits = 0;
  float value;
  switch ((int)dtype) {
    case CLEAVE_DTYPE_U8: return (float)*at;
    case CLEAVE_DTYPE_I8: return (float)(signed char)*at;
    case CLEAVE_DTYPE_BF16: memcpy((char *)&bits + 2, at, 2); break;
    default: memcpy(&bits, at, 4); break;
  }
  memcpy(&value, &bits, sizeof(value));
  return value;
}

typedef struct kind {
  cleave_dtype_t x;
  cleave_dtype_t sum; /* UNKNOWN: nothing is added */
  cleave_dtype_t y;
  bool has_bias;
} kind_t;

static operands_t make(int64_t rows, int64_t columns, int64_t depth, kind_t kind) {
  int64_t panels = (columns - 1) / KERNEL_AMX_PANEL + 1;
  cleave_dtype_t weights = kind.x == CLEAVE_DTYPE_BF16 ? CLEAVE_DTYPE_BF16 : CLEAVE_DTYPE_I8;
  cleave_dtype_t sum = kind.sum == CLEAVE_DTYPE_UNKNOWN ? CLEAVE_DTYPE_F32 : kind.sum;
  size_t size = size_of(weights);
  int64_t together = 4 / (int64_t)size;
  operands_t o = {.amx = {.matrix = {.rows = rows,
                                     .columns = columns,
                                     .depth = depth,
                                     .x_stride = depth + 2 * GAP,
                                     .sum_stride = columns + 2 * GAP,
                                     .y_stride = columns + GAP,
                                     .low = -INFINITY,
                                     .high = INFINITY},
                          .x = kind.x,
                          .sum = sum,
                          .y = kind.y,
                          .factor = 7.5F,
                          .zero = kind.y == CLEAVE_DTYPE_U8 ? 120 : -3}};
  const kernel_matrix_t *m = &o.amx.matrix;
  o.x = random_of(rows * m->x_stride, kind.x);
  o.w = random_of(depth * columns, weights);
  o.packed = calloc((size_t)(panels * depth * KERNEL_AMX_PANEL), size);
  ck_assert_ptr_nonnull(o.packed);
  for (int64_t k = 0; k < depth; k++) {
    for (int64_t n = 0; n < columns; n++) {
      int64_t group = (n / KERNEL_AMX_PANEL * depth + k / together * together) * KERNEL_AMX_PANEL;
      int64_t place = group + n % KERNEL_AMX_PANEL * together + k % together;
      memcpy(o.packed + (size_t)place * size, (const char *)o.w + (size_t)(k * columns + n) * size, size);
    }
  }
  o.scale = floats_case_random(columns);
  o.bias = floats_case_random(columns);
  o.sum = random_of(rows * m->sum_stride, sum);
  o.y = random_of(rows * m->y_stride, kind.y);
  for (int64_t n = 0; n < columns; n++) {
    o.scale[n] /= 3000.0F;
  }
  o.data = (kernel_amx_data_t){.x = o.x,
                               .weights = o.packed,
                               .scale = kind.x == CLEAVE_DTYPE_BF16 ? NULL : o.scale,
                               .bias = kind.has_bias ? o.bias : NULL,
                               .sum = kind.sum == CLEAVE_DTYPE_UNKNOWN ? NULL : o.sum,
                               .y = o.y};
  return o;
}

static void release(operands_t *o) {
  free(o->x);
  free(o->w);
  free(o->packed);
  free(o->scale);
  free(o->bias);
  free(o->sum);
  free(o->y);
}

static size_t bytes_of_y(const operands_t *o) {
  return (size_t)(o->amx.matrix.rows * o->amx.matrix.y_stride) * size_of(o->amx.y);
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

/* Element [i, n] of the result before it is rounded, and in `error` how far it may be off. */
static double expected_at(const operands_t *o, int64_t i, int64_t n, double *error) {
  const kernel_matrix_t *m = &o->amx.matrix;
  bool is_float = o->amx.x == CLEAVE_DTYPE_BF16;
  cleave_dtype_t weights = is_float ? CLEAVE_DTYPE_BF16 : CLEAVE_DTYPE_I8;
  double sum = 0;
  double scale = 0;
  for (int64_t k = 0; k < m->depth; k++) {
    double product = (double)element(o->x, i * m->x_stride + k, o->amx.x) *
                     (double)element(o->w, k * m->columns + n, weights);
    sum += product;
    scale += fabs(product);
  }
  double factor = is_float ? 1 : (double)o->scale[n];
  double expected = sum * factor + (o->data.bias != NULL ? (double)o->bias[n] : 0);
  if (o->data.sum != NULL) {
    expected += (double)element(o->sum, i * m->sum_stride + n, o->amx.sum);
  }
  *error = 1e-6 * (1 + scale * fabs(factor));
  return fmin(fmax(expected, (double)m->low), (double)m->high);
}

static void expect_element(const operands_t *o, int64_t i, int64_t n) {
  double error;
  double expected = expected_at(o, i, n, &error);
  double found = (double)element(o->y, i * o->amx.matrix.y_stride + n, o->amx.y);
  if (o->amx.y == CLEAVE_DTYPE_BF16) {
    error += fabs(expected) / 256;
  } else if (o->amx.y != CLEAVE_DTYPE_F32) {
    bool is_signed = o->amx.y == CLEAVE_DTYPE_I8;
    expected = expected * (double)o->amx.factor + (double)o->amx.zero;
    expected = fmin(fmax(expected, is_signed ? -128 : 0), is_signed ? 127 : 255);
    error = error * (double)o->amx.factor + 0.5;
  }
  ck_assert_msg(fabs(found - expected) <= error, "%d x %d x %d: [%d, %d] is %.9g, expected %.9g",
                (int)o->amx.matrix.rows, (int)o->amx.matrix.depth, (int)o->amx.matrix.columns, (int)i, (int)n,
                found, expected);
}

/* Runs it; gaps between the rows of y stay. */
static void run_and_expect(operands_t *o) {
  const kernel_matrix_t *m = &o->amx.matrix;
  void *before = copy_of_y(o);
  run(o);
  for (int64_t i = 0; i < m->rows; i++) {
    for (int64_t n = 0; n < m->columns; n++) {
      expect_element(o, i, n);
    }
    size_t gap = (size_t)(i * m->y_stride + m->columns) * size_of(o->amx.y);
    ck_assert_mem_eq((const char *)o->y + gap, (const char *)before + gap, GAP * size_of(o->amx.y));
  }
  free(before);
}

static const char *lacks_amx(void) {
  return kernel_amx_runs_here() ? NULL : "the kernel is for AMX";
}

static void check_sizes(cleave_dtype_t x) {
  static const int64_t ROWS[] = {16, 17, 31, 32, 33, 48, 100, 128, 129, 200, 260};
  static const int64_t COLUMNS[] = {1, 16, 31, 32, 33, 64, 65, 96, 100, 192};
  static const int64_t DEPTHS[] = {1, 2, 7, 8, 9, 17, 32}; /* in tiles */
  static const cleave_dtype_t SUMS[] = {CLEAVE_DTYPE_UNKNOWN, CLEAVE_DTYPE_F32, CLEAVE_DTYPE_BF16};
  static const cleave_dtype_t RESULTS[] = {CLEAVE_DTYPE_F32, CLEAVE_DTYPE_BF16, CLEAVE_DTYPE_U8,
                                           CLEAVE_DTYPE_I8};
  for (size_t r = 0; r < sizeof ROWS / sizeof ROWS[0]; r++) {
    for (size_t c = 0; c < sizeof COLUMNS / sizeof COLUMNS[0]; c++) {
      size_t d = (r + c) % (sizeof DEPTHS / sizeof DEPTHS[0]);
      const kind_t kind = {.x = x, .sum = SUMS[c % 3], .y = RESULTS[(r + c) % 4], .has_bias = r % 2 == 0};
      operands_t o = make(ROWS[r], COLUMNS[c], DEPTHS[d] * kernel_amx_depth(x), kind);
      run_and_expect(&o);
      release(&o);
    }
  }
}

UNIT_TEST_UNLESS(multiplies_matrices_of_any_size, lacks_amx) {
  check_sizes(CLEAVE_DTYPE_BF16);
  check_sizes(CLEAVE_DTYPE_U8);
  check_sizes(CLEAVE_DTYPE_I8);
}

UNIT_TEST_UNLESS(keeps_results_within_bounds, lacks_amx) {
  static const cleave_dtype_t KINDS[] = {CLEAVE_DTYPE_BF16, CLEAVE_DTYPE_U8, CLEAVE_DTYPE_I8};
  for (size_t k = 0; k < 3; k++) {
    const kind_t kind = {.x = KINDS[k], .sum = CLEAVE_DTYPE_F32, .y = CLEAVE_DTYPE_F32, .has_bias = true};
    operands_t o = make(40, 70, 320, kind);
    o.amx.matrix.low = -1.5F;
    o.amx.matrix.high = 2.0F;
    run_and_expect(&o);
    release(&o);
  }
}

/* Each result goes through a function once, though the last two tiles have rows in common. */
UNIT_TEST_UNLESS(applies_a_function_to_results, lacks_amx) {
  kernel_unary_t gate = kernel_loops_choose(KERNEL_AVX512)->unary[KERNEL_Swish][CLEAVE_DTYPE_F32];
  static const cleave_dtype_t KINDS[] = {CLEAVE_DTYPE_BF16, CLEAVE_DTYPE_U8};
  for (size_t k = 0; k < 2; k++) {
    const kind_t kind = {.x = KINDS[k], .sum = CLEAVE_DTYPE_BF16, .y = CLEAVE_DTYPE_F32, .has_bias = true};
    operands_t o = make(41, 77, 832, kind);
    run(&o);
    float *expected = copy_of_y(&o);
    for (int64_t r = 0; r < 41; r++) {
      float *row = expected + r * o.amx.matrix.y_stride;
      gate(row, row, 77, 0.5, 0);
    }
    o.amx.matrix.then = gate;
    o.amx.matrix.alpha = 0.5;
    run(&o);
    ck_assert_mem_eq(o.y, expected, bytes_of_y(&o));
    free(expected);
    release(&o);
  }
}

/* A NaN stays one through bounds, infinities become the bounds; integers are saturated, and a NaN is the
 * least of them. */
UNIT_TEST_UNLESS(keeps_special_values, lacks_amx) {
  static const cleave_dtype_t RESULTS[] = {CLEAVE_DTYPE_F32, CLEAVE_DTYPE_BF16, CLEAVE_DTYPE_U8};
  for (size_t k = 0; k < 3; k++) {
    bool is_float = RESULTS[k] != CLEAVE_DTYPE_U8;
    operands_t o = make(16, 16, 32, (kind_t){.x = CLEAVE_DTYPE_BF16, .y = RESULTS[k]});
    int64_t stride = o.amx.matrix.y_stride;
    uint16_t *x = o.x;
    uint16_t *packed = (uint16_t *)(void *)o.packed;
    if (is_float) {
      o.amx.matrix.low = 0.0F;
      o.amx.matrix.high = 6.0F;
    }
    x[0] = 0x7fc0;                     /* NaN */
    x[o.amx.matrix.x_stride] = 0x7f80; /* infinity */
    for (int64_t n = 0; n < 16; n++) {
      packed[2 * n] = n % 2 == 0 ? 0x3f80 : 0xbf80; /* 1, -1 */
    }
    run(&o);
    for (int64_t n = 0; n < 16; n++) {
      float found = element(o.y, n, RESULTS[k]);
      float bound = n % 2 == 1 ? 0.0F : (is_float ? 6.0F : 255.0F);
      ck_assert(is_float ? isnan(found) : found == 0.0F);
      ck_assert(element(o.y, stride + n, RESULTS[k]) == bound);
      ck_assert(isfinite(element(o.y, 2 * stride + n, RESULTS[k])));
    }
    release(&o);
  }
}

/* Halves to even before the zero point is added, as QuantizeLinear rounds. */
UNIT_TEST_UNLESS(rounds_halves_to_even, lacks_amx) {
  operands_t o = make(16, 16, 64, (kind_t){.x = CLEAVE_DTYPE_U8, .y = CLEAVE_DTYPE_I8});
  unsigned char *x = o.x;
  memset(o.packed, 0, (size_t)64 * KERNEL_AMX_PANEL);
  for (size_t n = 0; n < 16; n++) {
    o.packed[n * 4] = 1;
    o.scale[n] = 0.5F;
  }
  o.amx.factor = 1.0F;
  o.amx.zero = 3;
  for (int64_t i = 0; i < 16; i++) {
    x[i * o.amx.matrix.x_stride] = (unsigned char)i;
  }
  run(&o);
  for (int64_t i = 0; i < 16; i++) {
    double expected = nearbyint((double)i / 2) + 3;
    ck_assert_int_eq((int)element(o.y, i * o.amx.matrix.y_stride, CLEAVE_DTYPE_I8), (int)expected);
  }
  release(&o);
}

UNIT_TEST_UNLESS(adds_to_what_is_there, lacks_amx) {
  static const cleave_dtype_t KINDS[] = {CLEAVE_DTYPE_BF16, CLEAVE_DTYPE_F32};
  for (size_t k = 0; k < 2; k++) {
    const kind_t kind = {.x = CLEAVE_DTYPE_BF16, .sum = KINDS[k], .y = KINDS[k], .has_bias = true};
    operands_t o = make(150, 90, 576, kind);
    size_t size = size_of(KINDS[k]);
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
  const kind_t kind = {.x = CLEAVE_DTYPE_BF16, .y = CLEAVE_DTYPE_F32, .has_bias = true};
  operands_t o = make(700, 210, 1536, kind);
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
