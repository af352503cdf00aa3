// SPDX-License-Identifier: Apache-2.0
// The text form of programs: what is printed reads back, what is wrong gets its line, and nothing that is
// read breaks the reader.
#include <math.h>

#include "kernel_case.h"
#include "unit.h"

static const char *const SOFTMAX =
    "kernel rank 2 reduced 1\n"
    "in0 f16 [0 1]\n"
    "in1 f32 [. 0]\n"
    "%0 = load in0\n"
    "%1 = load in1\n"
    "%2 = Add %0 %1\n"
    "%3 = ReduceMax %2\n"
    "%4 = Sub %2 %3\n"
    "%5 = Exp %4\n"
    "%6 = ReduceSum %5\n"
    "%7 = Div %5 %6\n"
    "%8 = constant f32 0.100000001\n"
    "%9 = Less %8 %7\n"
    "%10 = where %9 %7 %8\n"
    "%11 = cast f64 %10\n"
    "%12 = cast bf16 %10\n"
    "%13 = HardSigmoid %12 0.20000000000000001 0.5\n"
    "%14 = constant i64 -9223372036854775808\n"
    "%15 = constant u64 18446744073709551615\n"
    "out0 f16 = %7\n"
    "out1 f64 = %11\n"
    "out2 bf16 += %13\n"
    "out3 f32 = %6\n";

static void check_prints(const kernel_program_t *program, const char *expected) {
  char text[4096];
  size_t length = kernel_program_print(program, text, sizeof text);
  ck_assert_str_eq(text, expected);
  ck_assert_uint_eq(length, strlen(expected));
}

UNIT_TEST(a_program_prints_as_it_was_read) {
  kernel_program_t *program = kernel_case_read(SOFTMAX);
  check_prints(program, SOFTMAX);
  char cut[8];
  ck_assert_uint_eq(kernel_program_print(program, cut, sizeof cut), strlen(SOFTMAX));
  ck_assert_str_eq(cut, "kernel ");
  kernel_program_destroy(program);
}

UNIT_TEST(equal_values_are_one_and_comments_are_skipped) {
  kernel_program_t *program = kernel_case_read(
      "# twice the same\n\nkernel rank 1 reduced 0\nin0 f32 [0]\n%0 = load in0\n%1 = Exp %0 # once\n%2 = Exp "
      "%0\n"
      "%3 = Add %1 %2\nout0 f32 = %3");
  check_prints(
      program,
      "kernel rank 1 reduced 0\nin0 f32 [0]\n%0 = load in0\n%1 = Exp %0\n%2 = Add %1 %1\nout0 f32 = %2\n");
  kernel_program_destroy(program);
}

UNIT_TEST(constants_keep_zero_signs_and_special_values) {
  kernel_program_t *program = kernel_case_read(
      "kernel rank 0 reduced 0\n%0 = constant f32 -0\n%1 = constant f32 inf\n%2 = constant f64 nan\n"
      "%3 = constant f16 0.1\n%4 = constant bool 1\n");
  float zero = 1;
  float tenth = 0;
  memcpy(&zero, &program->values[0].bits, sizeof zero);
  memcpy(&tenth, &program->values[3].bits, sizeof tenth);
  ck_assert(zero == 0.0f && signbit(zero));
  ck_assert(tenth == 0.0999755859375f);
  check_prints(program,
               "kernel rank 0 reduced 0\n%0 = constant f32 -0\n%1 = constant f32 inf\n%2 = constant f64 nan\n"
               "%3 = constant f32 0.0999755859\n%4 = constant bool 1\n");
  kernel_program_destroy(program);
}

static void check_refused(const char *lines, const char *expected) {
  char text[512];
  snprintf(text, sizeof text,
           "kernel rank 2 reduced 0\nin0 f32 [0 .]\nin1 bool [. .]\n%%0 = load in0\n%%1 = load in1\n%s",
           lines);
  cleave_message_t message = {.text = ""};
  kernel_program_t *program = NULL;
  ck_assert_int_eq(kernel_program_read(text, strlen(text), &program, &message), CLEAVE_ERROR_FORMAT);
  ck_assert_ptr_null(program);
  ck_assert_str_eq(message.text, expected);
}

UNIT_TEST(what_is_wrong_gets_its_line) {
  check_refused("%2 = Frob %0", "line 6: expected an operator, found 'Frob'");
  check_refused("%3 = Exp %0", "line 6: expected '%2', found '%3'");
  check_refused("%2 = Exp %2", "line 6: expected a value from above, found '%2'");
  check_refused("%2 = Exp", "line 6: expected a value from above, found ''");
  check_refused("%2 = Exp %0 %0", "line 6: expected the end of the line, found '%0'");
  check_refused("%2 = Exp %1", "line 6: Exp: dtype bool is not supported");
  check_refused("%2 = Add %0 %1", "line 6: Add: operand 1 is bool, expected f32");
  check_refused("%2 = And %0 %0", "line 6: And: dtype f32 is not supported");
  check_refused("%2 = where %0 %0 %0", "line 6: where: operand 0 is f32, expected bool");
  check_refused("%2 = ReduceSum %0", "line 6: ReduceSum: the space has no reduced axes");
  check_refused("%2 = load in2", "line 6: input 2 does not exist");
  check_refused("%2 = constant u8 256", "line 6: expected a number of that dtype, found '256'");
  check_refused("%2 = constant f32 1x", "line 6: expected a number of that dtype, found '1x'");
  check_refused("%2 = cast str %0", "line 6: expected a dtype, found 'str'");
  check_refused("%2 = LeakyRelu %0", "line 6: expected a number, found ''");
  check_refused("out0 f64 = %0", "line 6: an output of f64 cannot hold a value of f32");
  check_refused("out0 bool += %1", "line 6: an output of bools cannot be added to");
  check_refused("in2 f32 [0 0]", "line 6: axis 0 of an input occurs twice, or does not exist");
  check_refused("in2 f32 [1 .]", "line 6: the axes of an input: expected all of 0 to 0");
  check_refused("in2 f32 [0]", "line 6: expected an axis or '.', found ']'");
  check_refused("in7 f32 [0 1]", "line 6: expected '%2', found 'in7'");
  check_refused("\001", "line 6: a word is too long, or no plain text");
}

UNIT_TEST(a_reduction_of_rows_is_refused) {
  const char *text =
      "kernel rank 1 reduced 1\nin0 f32 [0]\n%0 = load in0\n%1 = ReduceSum %0\n%2 = Exp %1\n%3 = ReduceMax "
      "%2\n";
  cleave_message_t message = {.text = ""};
  kernel_program_t *program = NULL;
  ck_assert_int_eq(kernel_program_read(text, strlen(text), &program, &message), CLEAVE_ERROR_FORMAT);
  ck_assert_str_eq(message.text, "line 6: ReduceMax: the operand is one per row already");
  ck_assert_int_eq(kernel_program_read("", 0, &program, &message), CLEAVE_ERROR_FORMAT);
  ck_assert_str_eq(message.text, "line 0: expected 'kernel rank N reduced N', found ''");
  ck_assert_int_eq(kernel_program_read("kernel rank 9 reduced 0", 23, &program, &message),
                   CLEAVE_ERROR_FORMAT);
}

/* Damaged texts: what is still a program prints and reads back the same. */
UNIT_TEST(damaged_text_is_refused_or_means_what_it_says) {
  srand(7);
  int accepted = 0;
  for (int round = 0; round < 20000; round++) {
    char text[2048];
    size_t length = strlen(SOFTMAX);
    memcpy(text, SOFTMAX, length);
    for (int edits = 1 + rand() % 3; edits > 0; edits--) {
      size_t at = (size_t)rand() % length;
      int kind = rand() % 4;
      if (kind == 0) {
        text[at] = (char)(rand() % 256);
      } else if (kind == 1) {
        text[at] = (char)('0' + rand() % 10);
      } else if (kind == 2) {
        length = at + 1;
      } else {
        memmove(text + at, text + at + 1, length - at - 1);
        length -= length > 1;
      }
    }
    cleave_message_t message = {.text = ""};
    kernel_program_t *program = NULL;
    if (kernel_program_read(text, length, &program, &message) != CLEAVE_OK) {
      ck_assert_str_ne(message.text, "");
      continue;
    }
    accepted++;
    char first[4096];
    char second[4096];
    kernel_program_print(program, first, sizeof first);
    kernel_program_destroy(program);
    program = kernel_case_read(first);
    kernel_program_print(program, second, sizeof second);
    ck_assert_str_eq(first, second);
    kernel_program_destroy(program);
  }
  ck_assert_int_gt(accepted, 100);
}

UNIT_TEST(a_space_gets_the_axes_of_a_memory_with_blocks) {
  const int32_t blocked[] = {0, 1, 2, 1};
  const int32_t incomplete[] = {0, 1, 1};
  cleave_message_t message = {.text = ""};
  char text[512];
  kernel_program_t *program = kernel_case_read(
      "kernel rank 3 reduced 0\nin0 f32 [0 1 2]\nin1 f32 [. 0 .]\n%0 = load in0\n%1 = load in1\n%2 = Add %0 "
      "%1\n"
      "out0 f32 = %2\n");
  ck_assert_int_eq(kernel_program_relay(program, 4, blocked, &message), CLEAVE_OK);
  kernel_program_print(program, text, sizeof text);
  ck_assert_str_eq(
      text,
      "kernel rank 4 reduced 0\nin0 f32 [0 1 2 3]\nin1 f32 [. 0 . 1]\n%0 = load in0\n%1 = load in1\n"
      "%2 = Add %0 %1\nout0 f32 = %2\n");
  ck_assert_int_eq(kernel_program_relay(program, 3, incomplete, &message), CLEAVE_ERROR_INVALID_ARGUMENT);
  ck_assert_str_eq(message.text, "a space of rank 4 with 0 reduced axes does not become one of rank 3");
  kernel_program_destroy(program);
}

UNIT_SUITE("kernels_text")
