// SPDX-License-Identifier: Apache-2.0
// Products of rows with packed integers and floats of 16 bits against sums in double of what they stand for:
// 8 and 4 bits, few rows and many, blocks of all sizes with a rest, zero points, numbers either way round,
// what is added, bounds. Processors without AVX2 have nothing to test.
#include <fenv.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cleave/half.h"
#include "floats_case.h"
#include "kernels/instructions.h"
#include "kernels/loops/loops.h"
#include "kernels/matrix/narrow.h"
#include "unit.h"

enum { GAP = 3 };

typedef struct operands {
  kernel_narrow_t narrow;
  kernel_narrow_source_t source;
  unsigned char *integers; /* or floats of 16 bits */
  float *scales;
  int32_t *zeros;
  float *factors;
  float *bias;
  float *sum;
  float *x;
  float *x_sums;
  bool is_signed;
  void *packed;
  float *y;
  kernel_narrow_data_t data;
} operands_t;

typedef struct form {
  int64_t rows;
  int64_t columns;
  int64_t depth;
  int64_t block;
  int32_t bits;
  kernel_narrow_kind_t kind;
  bool is_signed;
  bool is_transposed;
  bool has_zeros;
  bool has_more; /* factors, a bias, a sum */
} form_t;

static void *room(size_t count, size_t size) {
  void *data = calloc(count + 1, size);
  ck_assert_ptr_nonnull(data);
  return data;
}

static void pack(operands_t *o) {
  kernel_narrow_pack(&o->narrow, &o->source, 0, kernel_narrow_panels(&o->narrow), o->packed);
}

static operands_t make(const form_t *form) {
  int64_t blocks = (form->depth - 1) / form->block + 1;
  int64_t count = form->depth * form->columns;
  int32_t lowest = form->is_signed ? (form->bits == 4 ? -8 : -128) : (form->bits == 4 ? 3 : 0);
  operands_t o = {.narrow = {.matrix = {.rows = form->rows,
                                        .columns = form->columns,
                                        .depth = form->depth,
                                        .panel = kernel_matrix_panel(),
                                        .x_stride = form->depth + GAP,
                                        .sum_stride = form->columns + 2 * GAP,
                                        .y_stride = form->columns + GAP,
                                        .low = -INFINITY,
                                        .high = INFINITY},
                             .kind = form->kind,
                             .block = form->block,
                             .bits = form->bits,
                             .has_zeros = form->has_zeros,
                             .zero = form->has_zeros ? 1000 : (float)(5 - lowest)}};
  o.is_signed = form->is_signed;
  o.integers = room((size_t)count, 2);
  for (int64_t k = 0; k < count; k++) {
    float number = (float)(rand() % 2001 - 1000) / (float)(1 << rand() % 28); /* also below normal float16 */
    uint16_t half =
        form->kind == KERNEL_NARROW_FLOAT16 ? cleave_float_to_half(number) : cleave_float_to_bfloat(number);
    if (form->kind == KERNEL_NARROW_INTEGERS) {
      o.integers[k] = (unsigned char)(lowest + rand() % (1 << form->bits));
    } else {
      memcpy(o.integers + 2 * k, &half, sizeof(half));
    }
  }
  o.scales = floats_case_random(blocks * form->columns);
  o.zeros = room((size_t)(blocks * form->columns), sizeof(int32_t));
  for (int64_t k = 0; k < blocks * form->columns; k++) {
    o.zeros[k] = form->has_zeros ? lowest + rand() % (1 << form->bits) : 5;
  }
  o.factors = floats_case_random(form->columns);
  o.bias = floats_case_random(form->columns);
  o.sum = floats_case_random(form->rows * o.narrow.matrix.sum_stride);
  o.x = floats_case_random(form->rows * o.narrow.matrix.x_stride);
  o.y = floats_case_random(form->rows * o.narrow.matrix.y_stride);
  o.source = (kernel_narrow_source_t){.numbers = o.integers,
                                      .depth_stride = form->is_transposed ? 1 : form->columns,
                                      .column_stride = form->is_transposed ? form->depth : 1,
                                      .lowest = lowest,
                                      .scales = o.scales,
                                      .zeros = o.zeros,
                                      .block_stride = form->is_transposed ? 1 : form->columns,
                                      .scale_stride = form->is_transposed ? blocks : 1,
                                      .factors = form->has_more ? o.factors : NULL};
  o.packed = room(kernel_narrow_bytes(&o.narrow), 1);
  pack(&o);
  o.x_sums = room((size_t)kernel_narrow_sum_count(&o.narrow), sizeof(float));
  kernel_narrow_sum(&o.narrow, o.x, o.x_sums);
  o.data = (kernel_narrow_data_t){.x = o.x,
                                  .packed = o.packed,
                                  .bias = form->has_more ? o.bias : NULL,
                                  .sum = form->has_more ? o.sum : NULL,
                                  .x_sums = o.x_sums,
                                  .y = o.y};
  return o;
}

static void release(operands_t *o) {
  free(o->integers);
  free(o->scales);
  free(o->zeros);
  free(o->factors);
  free(o->bias);
  free(o->sum);
  free(o->x);
  free(o->x_sums);
  free(o->packed);
  free(o->y);
}

static double number_at(const operands_t *o, int64_t k, int64_t n) {
  const kernel_narrow_source_t *s = &o->source;
  int64_t index = k * s->depth_stride + n * s->column_stride;
  int64_t at = k / o->narrow.block * s->block_stride + n * s->scale_stride;
  double factor = s->factors != NULL ? (double)s->factors[n] : 1.0;
  if (o->narrow.kind != KERNEL_NARROW_INTEGERS) {
    uint16_t half;
    memcpy(&half, o->integers + 2 * index, sizeof(half));
    return factor * (double)(o->narrow.kind == KERNEL_NARROW_FLOAT16 ? cleave_half_to_float(half)
                                                                     : cleave_bfloat_to_float(half));
  }
  unsigned char byte = o->integers[index];
  int32_t integer = o->is_signed ? (int32_t)(signed char)byte : (int32_t)byte;
  return (double)(integer - o->zeros[at]) * (double)o->scales[at] * factor;
}

/* Sums are as exact as those of the largest number that the integers of a block can stand for. */
static double largest_at(const operands_t *o, int64_t k, int64_t n) {
  const kernel_narrow_source_t *s = &o->source;
  if (o->narrow.kind != KERNEL_NARROW_INTEGERS) {
    return fabs(number_at(o, k, n));
  }
  int64_t at = k / o->narrow.block * s->block_stride + n * s->scale_stride;
  double factor = s->factors != NULL ? (double)s->factors[n] : 1.0;
  return fabs((double)o->scales[at] * factor) * (double)(1 << o->narrow.bits);
}

/* `before` is what y held: gaps between its rows stay. */
static void expect_all(const operands_t *o, const float *before) {
  const kernel_matrix_t *m = &o->narrow.matrix;
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
        double x = (double)o->x[i * m->x_stride + k];
        expected += x * number_at(o, k, n);
        scale += fabs(x) * largest_at(o, k, n);
      }
      expected = fmin(fmax(expected, (double)m->low), (double)m->high);
      ck_assert_msg(fabs((double)found - expected) <= 5e-7 * scale, "[%d, %d] is %.9g, expected %.9g", (int)i,
                    (int)n, (double)found, expected);
    }
  }
}

/* Each result goes through a function once, for few rows and for many. */
static void expect_function(operands_t *o) {
  kernel_unary_t gate = kernel_loops_choose(KERNEL_AVX512)->unary[KERNEL_Swish][CLEAVE_DTYPE_F32];
  const kernel_matrix_t *m = &o->narrow.matrix;
  size_t bytes = (size_t)(m->rows * m->y_stride) * sizeof(float);
  float *plain = malloc(bytes);
  ck_assert_ptr_nonnull(plain);
  kernel_narrow_run(&o->narrow, &o->data, 0, kernel_narrow_units(&o->narrow));
  memcpy(plain, o->y, bytes);
  o->narrow.matrix.then = gate;
  o->narrow.matrix.alpha = 0.5;
  kernel_narrow_run(&o->narrow, &o->data, 0, kernel_narrow_units(&o->narrow));
  for (int64_t i = 0; i < m->rows; i++) {
    gate(plain + i * m->y_stride, plain + i * m->y_stride, m->columns, 0.5, 0);
  }
  ck_assert_mem_eq(o->y, plain, bytes);
  free(plain);
}

static void run_and_expect(operands_t *o) {
  size_t bytes = (size_t)(o->narrow.matrix.rows * o->narrow.matrix.y_stride) * sizeof(float);
  float *before = malloc(bytes);
  ck_assert_ptr_nonnull(before);
  memcpy(before, o->y, bytes);
  kernel_narrow_run(&o->narrow, &o->data, 0, kernel_narrow_units(&o->narrow));
  expect_all(o, before);
  free(before);
}

static const char *lacks_avx2(void) {
  return kernel_narrow_runs_here() ? NULL : "the kernel needs AVX2";
}

UNIT_TEST_UNLESS(multiplies_integers_of_all_forms, lacks_avx2) {
  static const int64_t ROWS[] = {1, 2, 3, 4, 5, 13, 100};
  static const int64_t COLUMNS[] = {1, 15, 16, 40};
  static const int64_t SIZES[][2] = {{1, 1},   {5, 5},    {8, 8},     {64, 16},
                                     {96, 32}, {100, 32}, {800, 800}, {1601, 256}};
  int tried = 0;
  for (size_t r = 0; r < sizeof ROWS / sizeof *ROWS; r++) {
    for (size_t s = 0; s < sizeof SIZES / sizeof *SIZES; s++, tried++) {
      for (int bits = 4; bits <= 8; bits += 4) {
        const form_t form = {.rows = ROWS[r],
                             .columns = COLUMNS[(r + s) % 4],
                             .depth = SIZES[s][0],
                             .block = SIZES[s][1],
                             .bits = bits,
                             .is_signed = tried % 2 == 0,
                             .is_transposed = tried % 3 == 0,
                             .has_zeros = tried % 5 < 2,
                             .has_more = tried % 7 < 3};
        operands_t o = make(&form);
        run_and_expect(&o);
        release(&o);
      }
    }
  }
}

UNIT_TEST_UNLESS(applies_a_function_to_results, lacks_avx2) {
  for (int64_t rows = 3; rows < 60; rows += 50) {
    const form_t form = {.rows = rows, .columns = 77, .depth = 900, .block = 32, .bits = 4, .has_more = true};
    operands_t o = make(&form);
    expect_function(&o);
    release(&o);
  }
}

/* The integers of a byte each, in `bits` bits, less `least` by what they are. */
static unsigned char *packed_of(const operands_t *o, int32_t bits, int32_t least, int64_t row) {
  const kernel_matrix_t *m = &o->narrow.matrix;
  unsigned char *bytes = room((size_t)(m->columns * row), 1);
  for (int64_t n = 0; n < m->columns; n++) {
    for (int64_t k = 0; k < m->depth; k++) {
      unsigned char byte = o->integers[k * o->source.depth_stride + n * o->source.column_stride];
      unsigned number = (unsigned)((o->is_signed ? (int32_t)(signed char)byte : (int32_t)byte) + least);
      bytes[n * row + k * bits / 8] |= (unsigned char)(number << k * bits % 8);
    }
  }
  return bytes;
}

/* Packed integers make the same panels as those of a byte each, whatever the kernel's bits, in any parts. */
static void expect_same_panels(int64_t depth, int32_t from, int32_t to, bool is_signed) {
  const form_t form = {
      .rows = 1, .columns = 37, .depth = depth, .block = depth, .bits = to, .is_signed = is_signed};
  operands_t o = make(&form);
  const int32_t least = is_signed ? 1 << (from - 1) : 0;
  const int64_t row = (depth * from - 1) / 8 + 1;
  size_t bytes = kernel_narrow_bytes(&o.narrow);
  for (int64_t k = 0; k < depth * form.columns; k++) {
    o.integers[k] = (unsigned char)(rand() % (1 << from) - least);
  }
  o.source.lowest = is_signed ? (to == 4 ? -8 : -128) : 0;
  pack(&o);
  unsigned char *numbers = packed_of(&o, from, least, row);
  unsigned char *panels = room(bytes, 1);
  o.source.numbers = numbers;
  o.source.column_stride = row;
  o.source.packed = from;
  o.source.least = least;
  for (int64_t panel = kernel_narrow_panels(&o.narrow); panel-- > 0;) {
    kernel_narrow_pack(&o.narrow, &o.source, panel, panel + 1, panels);
  }
  /* Behind the depth, a word may have anything. */
  const uint32_t *expected = o.packed;
  const uint32_t *found = (const uint32_t *)(const void *)panels;
  int64_t words = (depth * to - 1) / 32 + 1;
  for (int64_t k = 0; k < 3 * words * 16; k++) {
    bool is_last = k / 16 % words == words - 1;
    uint32_t mask = is_last && depth * to % 32 != 0 ? (1U << depth * to % 32) - 1 : UINT32_MAX;
    ck_assert_uint_eq(expected[k] & mask, found[k] & mask);
  }
  ck_assert_mem_eq(expected + 3 * words * 16, found + 3 * words * 16, bytes - (size_t)(3 * words * 16 * 4));
  free(numbers);
  free(panels);
  release(&o);
}

UNIT_TEST_UNLESS(packs_integers_of_few_bits, lacks_avx2) {
  static const int64_t DEPTHS[] = {1, 3, 7, 8, 9, 31, 64, 129, 800};
  static const int32_t BITS[][2] = {{2, 4}, {4, 4}, {2, 8}, {4, 8}, {8, 8}};
  for (size_t d = 0; d < sizeof DEPTHS / sizeof *DEPTHS; d++) {
    for (size_t k = 0; k < sizeof BITS / sizeof *BITS; k++) {
      expect_same_panels(DEPTHS[d], BITS[k][0], BITS[k][1], false);
      expect_same_panels(DEPTHS[d], BITS[k][0], BITS[k][1], true);
    }
  }
}

UNIT_TEST_UNLESS(multiplies_floats_of_16_bits, lacks_avx2) {
  static const int64_t ROWS[] = {1, 2, 3, 4, 5, 13, 100};
  static const int64_t SIZES[][2] = {{1, 1}, {15, 7}, {16, 64}, {40, 800}, {33, 1601}};
  int tried = 0;
  for (size_t r = 0; r < sizeof ROWS / sizeof *ROWS; r++) {
    for (size_t s = 0; s < sizeof SIZES / sizeof *SIZES; s++, tried++) {
      const form_t form = {.rows = ROWS[r],
                           .columns = SIZES[s][0],
                           .depth = SIZES[s][1],
                           .block = SIZES[s][1],
                           .bits = 16,
                           .kind = tried % 2 == 0 ? KERNEL_NARROW_FLOAT16 : KERNEL_NARROW_BFLOAT16,
                           .is_transposed = tried % 3 == 0,
                           .has_more = tried % 5 < 3};
      operands_t o = make(&form);
      ck_assert_int_eq(kernel_narrow_sum_count(&o.narrow), 0);
      run_and_expect(&o);
      release(&o);
    }
  }
}

/* What is no finite number comes out as of float32: infinities of weights and of x, and a NaN. */
UNIT_TEST_UNLESS(keeps_special_values_of_floats, lacks_avx2) {
  static const kernel_narrow_kind_t KINDS[] = {KERNEL_NARROW_FLOAT16, KERNEL_NARROW_BFLOAT16};
  for (int k = 0; k < 2; k++) {
    for (int64_t rows = 2; rows < 20; rows += 15) {
      const form_t form = {.rows = rows, .columns = 3, .depth = 9, .block = 9, .bits = 16, .kind = KINDS[k]};
      const uint16_t infinity = KINDS[k] == KERNEL_NARROW_FLOAT16 ? 0x7c00 : 0x7f80;
      const uint16_t nan = 0x7fff;
      operands_t o = make(&form);
      for (int64_t j = 0; j < form.depth; j++) {
        o.x[j] = 1;
      }
      o.x[o.narrow.matrix.x_stride] = INFINITY;
      memcpy(o.integers + 2, &infinity, 2); /* [0, 1] */
      memcpy(o.integers + 4, &nan, 2);      /* [0, 2] */
      pack(&o);
      kernel_narrow_run(&o.narrow, &o.data, 0, kernel_narrow_units(&o.narrow));
      ck_assert(isfinite(o.y[0]) && o.y[1] == INFINITY && isnan(o.y[2]));
      ck_assert(!isfinite(o.y[o.narrow.matrix.y_stride]));
      release(&o);
    }
  }
}

UNIT_TEST_UNLESS(keeps_results_within_bounds, lacks_avx2) {
  for (int64_t rows = 3; rows < 40; rows += 30) {
    const form_t form = {.rows = rows, .columns = 33, .depth = 64, .block = 32, .bits = 4, .has_more = true};
    operands_t o = make(&form);
    o.narrow.matrix.low = -1.5F;
    o.narrow.matrix.high = 2.0F;
    run_and_expect(&o);
    release(&o);
  }
}

/* Many rows multiply the numbers of DequantizeLinear, bit by bit: one row that picks a number at a time. */
UNIT_TEST_UNLESS(expands_to_the_numbers_that_integers_stand_for, lacks_avx2) {
  for (int bits = 4; bits <= 8; bits += 4) {
    const form_t form = {
        .rows = 40, .columns = 17, .depth = 40, .block = 16, .bits = bits, .has_zeros = true};
    operands_t o = make(&form);
    const kernel_matrix_t *m = &o.narrow.matrix;
    memset(o.x, 0, (size_t)(m->rows * m->x_stride) * sizeof(float));
    for (int64_t k = 0; k < m->depth; k++) {
      o.x[k * m->x_stride + k] = 1;
    }
    kernel_narrow_run(&o.narrow, &o.data, 0, kernel_narrow_units(&o.narrow));
    for (int64_t k = 0; k < m->depth; k++) {
      for (int64_t n = 0; n < m->columns; n++) {
        ck_assert(o.y[k * m->y_stride + n] == (float)number_at(&o, k, n));
      }
    }
    release(&o);
  }
}

/* An infinity is lost in few rows, and the flag tells. */
UNIT_TEST_UNLESS(raises_the_flag_where_infinities_are_lost, lacks_avx2) {
  const form_t form = {.rows = 2, .columns = 16, .depth = 64, .block = 32, .bits = 8};
  operands_t o = make(&form);
  (void)feclearexcept(FE_INVALID);
  kernel_narrow_run(&o.narrow, &o.data, 0, kernel_narrow_units(&o.narrow));
  ck_assert(fetestexcept(FE_INVALID) == 0);
  o.x[0] = INFINITY;
  kernel_narrow_sum(&o.narrow, o.x, o.x_sums);
  kernel_narrow_run(&o.narrow, &o.data, 0, kernel_narrow_units(&o.narrow));
  ck_assert(fetestexcept(FE_INVALID) != 0);
  ck_assert(isnan(o.y[0]) && isfinite(o.y[o.narrow.matrix.y_stride]));
  release(&o);
}

/* However units are dealt out. */
UNIT_TEST_UNLESS(gives_the_same_bits_in_any_parts, lacks_avx2) {
  for (int64_t rows = 2; rows < 500; rows += 400) {
    const form_t form = {
        .rows = rows, .columns = 200, .depth = 800, .block = 32, .bits = 4, .has_more = true};
    operands_t o = make(&form);
    const kernel_matrix_t *m = &o.narrow.matrix;
    size_t bytes = (size_t)(rows * m->y_stride) * sizeof(float);
    int64_t units = kernel_narrow_units(&o.narrow);
    float *whole = malloc(bytes);
    ck_assert_ptr_nonnull(whole);
    ck_assert_int_ge(units, 12);
    kernel_narrow_run(&o.narrow, &o.data, 0, units);
    memcpy(whole, o.y, bytes);
    for (int64_t part = 1; part <= 5; part++) {
      for (int64_t k = 0; k < rows * m->y_stride; k++) {
        o.y[k] = k % m->y_stride < m->columns ? 0.0F : o.y[k];
      }
      for (int64_t begin = 0; begin < units; begin += part) {
        kernel_narrow_run(&o.narrow, &o.data, begin, begin + part < units ? begin + part : units);
      }
      ck_assert_mem_eq(o.y, whole, bytes);
    }
    free(whole);
    release(&o);
  }
}

UNIT_SUITE("kernels_narrow")
