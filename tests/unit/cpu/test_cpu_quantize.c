// SPDX-License-Identifier: Apache-2.0
// 8-bit integers in all arrangements of scales and zero points, against one element at a time.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cpu_test.h"

typedef struct arrangement {
  int rows;
  int columns;
  int axis;  /* of the scales; -1: one for all */
  int block; /* elements of the axis that share a scale; 0: scales along the axis alone */
  bool has_zeros;
  bool is_signed;
} arrangement_t;

enum { TEXT = 1 << 17 };

typedef struct text {
  char text[TEXT];
  size_t length;
} text_t;

static void add(text_t *text, const char *words) {
  size_t length = strlen(words);
  ck_assert_uint_lt(text->length + length, TEXT);
  memcpy(text->text + text->length, words, length + 1);
  text->length += length;
}

static void add_number(text_t *text, double number) {
  char word[40];
  (void)snprintf(word, sizeof word, " %.9g", number);
  add(text, word);
}

// A tensor's dtype and dims; `rank` 0 to 2.
static void start(text_t *text, const char *dtype, int rank, int first, int second) {
  char word[60];
  int least = snprintf(word, sizeof word, "%s[", dtype);
  if (rank > 0) {
    least += snprintf(word + least, sizeof word - (size_t)least, rank > 1 ? "%d,%d" : "%d", first, second);
  }
  (void)snprintf(word + least, sizeof word - (size_t)least, "]");
  add(text, word);
}

static int blocks_of(const arrangement_t *how) {
  int length = how->axis == 0 ? how->rows : how->columns;
  return how->axis < 0 ? 1 : how->block > 0 ? (length - 1) / how->block + 1 : length;
}

// How many rows of scales, or columns, lie beside each other: 1 unless they are in blocks.
static int across_of(const arrangement_t *how) {
  return how->block == 0 ? 1 : how->axis == 0 ? how->columns : how->rows;
}

static int scale_of(const arrangement_t *how, int row, int column) {
  int at = how->axis == 0 ? row : column;
  if (how->axis < 0 || how->block == 0) {
    return how->axis < 0 ? 0 : at;
  }
  return how->axis == 0 ? at / how->block * how->columns + column : row * blocks_of(how) + at / how->block;
}

static int zero_of(const arrangement_t *how, int scale) {
  return how->has_zeros ? scale * 7 % 23 - (how->is_signed ? 11 : 0) : 0;
}

// Powers of two, so that quotients are exact, ties among them.
static double step_of(int scale) {
  return ldexp(1.0, scale % 5 - 3);
}

// Halves from -200 to 200, and what is no number.
static double quotient_at(int k) {
  switch (k % 97) {
    case 13: return NAN;
    case 29: return INFINITY;
    case 31: return -INFINITY;
    default: return (k * 37 % 801 - 400) / 2.0;
  }
}

static double quantized(double quotient, double zero, bool is_signed) {
  double low = is_signed ? -128 : 0;
  double high = is_signed ? 127 : 255;
  double value = nearbyint(quotient) + zero;
  return value >= low ? (value <= high ? value : high) : low;
}

// The operands after the first one.
static void add_scales(const arrangement_t *how, text_t *text) {
  int rank = how->axis < 0 ? 0 : how->block > 0 ? 2 : 1;
  int groups = blocks_of(how);
  int first = rank == 2 && how->axis == 1 ? across_of(how) : groups;
  int second = rank == 2 && how->axis == 1 ? groups : across_of(how);
  add(text, "; ");
  start(text, "f32", rank, first, second);
  for (int k = 0; k < groups * across_of(how); k++) {
    add_number(text, step_of(k));
  }
  if (how->has_zeros) {
    add(text, "; ");
    start(text, how->is_signed ? "i8" : "u8", rank, first, second);
  }
  for (int k = 0; how->has_zeros && k < groups * across_of(how); k++) {
    add_number(text, zero_of(how, k));
  }
}

static void check_arrangement(const arrangement_t *how) {
  static text_t numbers;
  static text_t integers;
  static text_t back;
  static text_t operands;
  char attributes[60];
  numbers.length = integers.length = back.length = 0;
  (void)snprintf(attributes, sizeof attributes, "axis=%d block_size=%d", how->axis < 0 ? 0 : how->axis,
                 how->block);
  start(&numbers, "f32", 2, how->rows, how->columns);
  start(&integers, how->is_signed ? "i8" : "u8", 2, how->rows, how->columns);
  start(&back, "f32", 2, how->rows, how->columns);
  for (int k = 0; k < how->rows * how->columns; k++) {
    int scale = scale_of(how, k / how->columns, k % how->columns);
    double integer = quantized(quotient_at(k), zero_of(how, scale), how->is_signed);
    add_number(&numbers, quotient_at(k) * step_of(scale));
    add_number(&integers, integer);
    add_number(&back, (integer - zero_of(how, scale)) * step_of(scale));
  }
  operands = numbers;
  add_scales(how, &operands);
  op_case(&cpu, "QuantizeLinear", operands.text, attributes, integers.text);
  operands = integers;
  add_scales(how, &operands);
  op_case(&cpu, "DequantizeLinear", operands.text, attributes, back.text);
}

CPU_TEST(quantises_in_all_arrangements) {
  static const arrangement_t arrangements[] = {
      {1, 300, -1, 0, true, false}, {1, 300, -1, 0, false, false}, {1, 300, -1, 0, true, true},
      {3, 67, 0, 0, true, true},    {3, 67, 0, 0, false, false},   {3, 67, 1, 0, true, true},
      {2, 300, 1, 0, false, false}, {2, 300, 1, 0, true, false},   {24, 35, 0, 8, true, true},
      {24, 35, 0, 8, false, false}, {5, 64, 1, 16, true, true},    {5, 70, 1, 16, true, false},
      {5, 70, 1, 16, false, false}, {70, 5, 0, 16, true, true},
  };
  for (size_t k = 0; k < sizeof arrangements / sizeof arrangements[0]; k++) {
    check_arrangement(&arrangements[k]);
  }
}

// Numbers from -50 to 50 but for the lowest and the largest one, which make the scale 1 and the zero point
// 100.
static void check_dynamic(int count, int lowest, int largest) {
  static text_t numbers;
  static text_t expected;
  numbers.length = expected.length = 0;
  start(&numbers, "f32", 1, count, 0);
  start(&expected, "u8", 1, count, 0);
  for (int k = 0; k < count; k++) {
    double number = k == lowest ? -100 : k == largest ? 155 : k % 97 == 5 ? (double)NAN : k % 101 - 50.0;
    add_number(&numbers, number);
    add_number(&expected, isnan(number) ? 0 : number + 100);
  }
  add(&expected, "; f32[] 1; u8[] 100");
  op_case_with_shapes(&cpu, "DynamicQuantizeLinear", numbers.text, "", expected.text);
}

CPU_TEST(finds_the_range_wherever_it_lies) {
  static const int counts[] = {2, 63, 64, 65, 200, 20000};
  for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++) {
    int last = counts[k] - 1;
    check_dynamic(counts[k], 0, last);
    check_dynamic(counts[k], last, 0);
    check_dynamic(counts[k], last / 2, last / 2 + 1);
  }
}

CPU_TEST(unpacks_numbers_from_the_lowest_bits_on) {
  op_case(&cpu, "cleave.UnpackBits", "u8[2,2] 33 67 101 7", "bits=4 count=3", "u8[2,3] 1 2 3 5 6 7");
  op_case(&cpu, "cleave.UnpackBits", "u8[2,2,1] 33 67 101 7", "bits=4 count=3 transposed=1",
          "u8[3,2] 1 5 2 6 3 7");
  op_case(&cpu, "cleave.UnpackBits", "u8[1,2] 240 8", "bits=4 count=3 signed=1", "i8[1,3] -8 7 0");
  op_case(&cpu, "cleave.UnpackBits", "u8[2] 228 1", "axis=0 bits=2 count=6", "u8[6] 0 1 2 3 1 0");
  op_case(&cpu, "cleave.UnpackBits", "u8[1] 228", "axis=-1 bits=2 count=4 signed=1", "i8[4] -2 -1 0 1");
  op_case(&cpu, "cleave.UnpackBits", "u8[2,2,1] 0 128 255 127", "axis=2 bits=8 count=1 signed=1 transposed=1",
          "i8[2,1,2] -128 0 127 -1");
  op_case(&cpu, "cleave.UnpackBits", "u8[0,4]", "bits=4 count=8", "u8[0,8]");
}

// Many rows, of which some are taken at a time.
CPU_TEST(unpacks_matrices_of_any_size) {
  static text_t packed;
  static text_t expected;
  enum { ROWS = 150, BYTES = 5, COUNT = 9 };
  packed.length = expected.length = 0;
  start(&packed, "u8", 2, ROWS, BYTES);
  start(&expected, "i8", 2, COUNT, ROWS);
  for (int k = 0; k < ROWS * BYTES; k++) {
    add_number(&packed, k * 37 % 256);
  }
  for (int k = 0; k < COUNT * ROWS; k++) {
    int byte = (k % ROWS * BYTES + k / ROWS / 2) * 37 % 256;
    add_number(&expected, (byte >> k / ROWS % 2 * 4 & 15) - 8);
  }
  op_case(&cpu, "cleave.UnpackBits", packed.text, "bits=4 count=9 signed=1 transposed=1", expected.text);
}

CPU_TEST(refuses_to_unpack_more_than_there_is) {
  op_case_fails(&cpu, "cleave.UnpackBits", "u8[2,2] 0", "bits=4 count=5", "u8[2,5] 0", CLEAVE_ERROR_SHAPE,
                "expected at most 2 numbers for each of 2 bytes, found 5");
  op_case_fails(&cpu, "cleave.UnpackBits", "u8[2,2] 0", "bits=3 count=5", "u8[2,5] 0",
                CLEAVE_ERROR_UNSUPPORTED, "expected 2, 4 or 8 bits and a count, found 3 and 5");
  op_case_fails(&cpu, "cleave.UnpackBits", "u8[2,2] 0", "bits=4 count=4 signed=1", "u8[2,4] 0",
                CLEAVE_ERROR_UNSUPPORTED, "uint8");
  op_case_fails(&cpu, "cleave.UnpackBits", "u8[2] 0", "axis=0 bits=4 count=4 transposed=1", "u8[4] 0",
                CLEAVE_ERROR_SHAPE, "expected rows to transpose, found axis 0");
}

UNIT_SUITE("cpu_quantize")
