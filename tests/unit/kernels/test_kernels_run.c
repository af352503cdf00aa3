// SPDX-License-Identifier: Apache-2.0
// Programs on the CPU against the naive interpreter: by hand, at random, over every shape that is special.
#include <math.h>

#include "kernel_case.h"
#include "kernels/convert.h"
#include "kernels/execute/plan.h"
#include "unit.h"

static const char *const SOFTMAX =
    "kernel rank 2 reduced 1\nin0 f32 [0 1]\nin1 f32 [. 0]\n%0 = load in0\n%1 = load in1\n%2 = Add %0 %1\n"
    "%3 = ReduceMax %2\n%4 = Sub %2 %3\n%5 = Exp %4\n%6 = ReduceSum %5\n%7 = Div %5 %6\nout0 f32 = %7\n"
    "out1 f32 = %3\n";

UNIT_TEST(softmax_of_short_and_long_rows) {
  static const int64_t shapes[][2] = {{1, 1},    {3, 7},      {700, 5},   {5, 1023}, {3, 1024},
                                      {4, 1025}, {2, 100003}, {129, 640}, {0, 4},    {1000, 49}};
  for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++) {
    kernel_case_check_text(SOFTMAX, shapes[k], 1e-6);
  }
}

/* A norm reads its input twice before it writes, and may overwrite it; x - max(x) with another output in
 * between does not write before it reads. A sum that is stored while x is still needed may not. */
UNIT_TEST(results_may_lie_over_inputs_that_are_read_before) {
  const int64_t dims[] = {40, 200};
  kernel_case_inplace_count = 0;
  kernel_case_check_text(
      "kernel rank 2 reduced 1\nin0 f32 [0 1]\n%0 = load in0\n%1 = ReduceMean %0\n%2 = Sub %0 %1\n%3 = "
      "MeanSquare %2\n"
      "%4 = Sqrt %3\n%5 = Div %2 %4\nout0 f32 = %5\n",
      dims, 1e-5);
  ck_assert_int_eq(kernel_case_inplace_count, 1);
  kernel_case_check_text(
      "kernel rank 2 reduced 1\nin0 f32 [0 1]\n%0 = load in0\n%1 = Exp %0\n%2 = ReduceSum %1\n%3 = Mul %0 "
      "%2\n"
      "out0 f32 = %1\nout1 f32 = %3\n",
      dims, 1e-5);
  ck_assert_int_eq(kernel_case_inplace_count, 1);
  kernel_case_check_text(
      "kernel rank 2 reduced 0\nin0 f32 [0 1]\nin1 f32 [. 0]\n%0 = load in0\n%1 = load in1\n%2 = Add %0 %1\n"
      "%3 = Tanh %2\nout0 f32 = %3\n",
      dims, 1e-5);
  ck_assert_int_eq(kernel_case_inplace_count, 2);
}

UNIT_TEST(a_row_without_elements_reduces_to_the_neutral_one) {
  kernel_program_t *program = kernel_case_read(
      "kernel rank 2 reduced 1\nin0 f32 [0 1]\n%0 = load in0\n%1 = ReduceSum %0\n%2 = ReduceMax %0\n%3 = "
      "ReduceProd %0\n"
      "out0 f32 = %1\nout1 f32 = %2\nout2 f32 = %3\n");
  const int64_t dims[] = {3, 0};
  float data[4] = {0};
  float results[3][3] = {{7, 7, 7}, {7, 7, 7}, {7, 7, 7}};
  const kernel_tensor_t input = {.data = data, .rank = 2, .dims = dims};
  void *outputs[] = {results[0], results[1], results[2]};
  kernel_case_run(program, 2, 1, &input, outputs);
  for (int k = 0; k < 3; k++) {
    ck_assert(results[0][k] == 0.0f && results[1][k] == -INFINITY && results[2][k] == 1.0f);
  }
  kernel_program_destroy(program);
}

UNIT_TEST(layer_normalization_in_float16) {
  const char *text =
      "kernel rank 2 reduced 1\nin0 f16 [0 1]\nin1 f16 [. 0]\nin2 f32 [. 0]\n%0 = load in0\n%1 = ReduceMean "
      "%0\n"
      "%2 = Sub %0 %1\n%3 = MeanSquare %2\n%4 = constant f32 1e-5\n%5 = Add %3 %4\n%6 = Sqrt %5\n%7 = Div %2 "
      "%6\n"
      "%8 = load in1\n%9 = Mul %7 %8\n%10 = load in2\n%11 = Add %9 %10\nout0 f16 = %11\nout1 f32 = %6\n";
  kernel_case_check_text(text, (const int64_t[]){37, 768}, 1e-3);
  kernel_case_check_text(text, (const int64_t[]){5, 3000}, 1e-3);
  kernel_case_check_text(text, (const int64_t[]){100, 12}, 1e-3);
}

/* The variance takes the mean off itself, and what only the last phase reads is computed there: of a norm
 * nothing is kept over its row, of a residual in front of it the sum alone. */
UNIT_TEST(a_variance_takes_the_mean_off_itself) {
  static const int64_t shapes[][2] = {{700, 5},  {100, 12}, {3, 64},    {37, 768},
                                      {6, 1030}, {5, 3001}, {2, 100003}};
  static const struct {
    const char *text;
    uint32_t kept;
  } cases[] = {
      {"kernel rank 2 reduced 1\nin0 f32 [0 1]\n%0 = load in0\n%1 = ReduceMean %0\n%2 = Sub %0 %1\n%3 = "
       "MeanSquare %2\n"
       "%4 = Sqrt %3\n%5 = Div %2 %4\nout0 f32 = %5\nout1 f32 = %3\n",
       0},
      {"kernel rank 2 reduced 1\nin0 f32 [0 1]\nin1 f32 [0 1]\n%0 = load in0\n%1 = load in1\n%2 = Add %0 %1\n"
       "%3 = ReduceMean %2\n%4 = Sub %2 %3\n%5 = MeanSquare %4\n%6 = Sqrt %5\n%7 = Div %4 %6\nout0 f32 = %7\n"
       "out1 f32 = %2\n",
       1},
      /* The difference is an output of its own, and the mean comes from memory. */
      {"kernel rank 2 reduced 1\nin0 f32 [0 1]\nin1 f32 [0 .]\n%0 = load in0\n%1 = load in1\n%2 = Sub %0 %1\n"
       "%3 = ReduceSumSquare %2\n%4 = ReduceSum %2\n%5 = Mul %2 %3\nout0 f32 = %5\nout1 f32 = %2\nout2 f32 = "
       "%4\n",
       1},
  };
  for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
    kernel_program_t *program = kernel_case_read(cases[c].text);
    kernel_plan_t *plan = NULL;
    cleave_message_t message;
    ck_assert_int_eq(kernel_plan_create(program, kernel_loops_choose(2), &plan, &message), CLEAVE_OK);
    ck_assert_uint_eq(plan->kept_count, cases[c].kept);
    kernel_plan_destroy(plan);
    kernel_program_destroy(program);
    for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++) {
      kernel_case_check_text(cases[c].text, shapes[k], 1e-5);
    }
  }
}

/* Rows of 512 to 1024 elements go through a phase four at a time, if what is kept over them and their steps
 * allow that: with a value that is kept in scratch memory or in an output, operands per row from memory,
 * steps that are no calls, float64, and any number of rows at the end. */
UNIT_TEST(rows_in_batches_of_any_length) {
  static const char *const cases[] = {
      /* a residual and a layer normalization, whose sum nobody else wants */
      "kernel rank 2 reduced 1\nin0 f32 [0 1]\nin1 f32 [0 1]\nin2 f32 [. 0]\nin3 f32 [. 0]\n%0 = load in0\n"
      "%1 = load in1\n%2 = Add %0 %1\n%3 = ReduceMean %2\n%4 = Sub %2 %3\n%5 = MeanSquare %4\n"
      "%6 = constant f32 1e-5\n%7 = Add %5 %6\n%8 = Sqrt %7\n%9 = Reciprocal %8\n%10 = Mul %4 %9\n"
      "%11 = load in2\n%12 = Mul %10 %11\n%13 = load in3\n%14 = Add %12 %13\nout0 f32 = %14\n",
      /* a softmax, whose exponentials lie in its output */
      "kernel rank 2 reduced 1\nin0 f32 [0 1]\n%0 = load in0\n%1 = ReduceMax %0\n%2 = Sub %0 %1\n%3 = Exp "
      "%2\n"
      "%4 = ReduceSum %3\n%5 = Reciprocal %4\n%6 = Mul %3 %5\nout0 f32 = %6\n",
      /* values per row: computed from others, a constant first, and an operand from memory */
      "kernel rank 2 reduced 1\nin0 f32 [0 1]\nin1 f32 [0 .]\n%0 = load in0\n%1 = load in1\n%2 = ReduceMax "
      "%0\n"
      "%3 = ReduceMin %0\n%4 = constant f32 0.5\n%5 = Sub %4 %3\n%6 = Mul %5 %2\n%7 = Add %6 %1\n"
      "%8 = Mul %0 %7\nout0 f32 = %8\n",
      "kernel rank 2 reduced 1\nin0 f32 [0 1]\nin1 f32 [0 .]\n%0 = load in0\n%1 = load in1\n%2 = Mul %0 %1\n"
      "%3 = ReduceSum %2\n%4 = Sub %2 %3\n%5 = ReduceMax %4\n%6 = Sub %4 %5\nout0 f32 = %6\nout1 f32 = %2\n",
      /* a cast, which is a step */
      "kernel rank 2 reduced 1\nin0 f16 [0 1]\n%0 = load in0\n%1 = ReduceMean %0\n%2 = Sub %0 %1\n"
      "%3 = MeanSquare %2\n%4 = Sqrt %3\n%5 = Div %2 %4\n%6 = cast i32 %5\nout0 i32 = %6\n",
      "kernel rank 2 reduced 1\nin0 f64 [0 1]\n%0 = load in0\n%1 = Abs %0\n%2 = ReduceSum %1\n%3 = Sqrt %2\n"
      "%4 = Mul %1 %3\n%5 = ReduceMax %4\n%6 = Sub %4 %5\nout0 f64 = %6\n",
  };
  static const int64_t rows[] = {5, 6, 7, 8, 9, 14, 31};
  static const int64_t lengths[] = {512, 771, 1024};
  for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
      for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
        kernel_case_check_text(cases[c], (const int64_t[]){rows[r], lengths[k]}, 1e-4);
      }
    }
  }
}

UNIT_TEST(a_row_of_several_axes_with_operands_along_some) {
  const char *text =
      "kernel rank 4 reduced 3\nin0 f32 [0 1 2 3]\nin1 f32 [. 0 . .]\n%0 = load in0\n%1 = load in1\n%2 = Mul "
      "%0 %1\n"
      "%3 = ReduceMean %2\n%4 = Sub %2 %3\n%5 = MeanSquare %4\n%6 = Exp %4\n%7 = Mul %6 %5\nout0 f32 = %7\n"
      "out1 f32 = %5\n";
  kernel_case_check_text(text, (const int64_t[]){2, 3, 5, 7}, 1e-6);
  kernel_case_check_text(text, (const int64_t[]){2, 6, 40, 40}, 1e-6);
  kernel_case_check_text(text, (const int64_t[]){1, 4, 1, 5000}, 1e-6);
}

UNIT_TEST(transposed_and_repeated_inputs) {
  const char *text =
      "kernel rank 3 reduced 0\nin0 f32 [0 1 2]\nin1 f32 [2 0 1]\nin2 i64 [. 0 .]\nin3 bool [. . .]\n%0 = "
      "load in0\n"
      "%1 = load in1\n%2 = load in2\n%3 = load in3\n%4 = cast f32 %2\n%5 = Add %0 %1\n%6 = Mul %5 %4\n"
      "%7 = where %3 %6 %5\n%8 = Less %7 %0\nout0 f32 = %7\nout1 bool = %8\nout2 f32 += %6\n";
  kernel_case_check_text(text, (const int64_t[]){5, 6, 7}, 0);
  kernel_case_check_text(text, (const int64_t[]){2, 9, 2500}, 0);
  kernel_case_check_text(text, (const int64_t[]){3, 700, 6}, 0);
}

/* Short runs, so that a tile has several of them; more tiles than threads, the last of which is smaller. */
UNIT_TEST(one_run_for_all_runs_of_a_tile) {
  kernel_program_t *program = kernel_case_read(
      "kernel rank 3 reduced 0\nin0 f32 [0 1 2]\nin1 f32 [. . 0]\nin2 f16 [. . 0]\nin3 f32 [. 0 1]\n"
      "%0 = load in0\n%1 = load in1\n%2 = load in2\n%3 = load in3\n%4 = Mul %0 %1\n%5 = Add %4 %2\n"
      "%6 = Sigmoid %5\n%7 = Sub %6 %3\n%8 = Mul %1 %2\n%9 = Add %7 %8\nout0 f32 = %9\nout1 f16 = %5\n");
  static const int64_t lengths[] = {1, 3, 17, 96, 384, 500, 513};
  for (unsigned k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
    kernel_case_check(program, (const int64_t[]){3, 47, lengths[k]}, k + 1, 2e-6);
  }
  kernel_program_destroy(program);
}

/* Cheap operators in a row: each form of operand, values that are read again later, outputs on the way. */
static const char *const CHAIN =
    "kernel rank 2 reduced 1\nin0 f32 [0 1]\nin1 f32 [0 1]\nin2 f32 [. 0]\nin3 f32 [. .]\n%0 = load in0\n"
    "%1 = load in1\n%2 = load in2\n%3 = load in3\n%4 = Sub %0 %1\n%5 = Sub %2 %4\n%6 = Mul %5 %5\n"
    "%7 = Add %3 %6\n%8 = Div %7 %3\n%9 = Max %8 %4\n%10 = LeakyRelu %9 0.25\n%11 = Min %10 %2\n"
    "%12 = Neg %11\n%13 = ReduceMax %12\n%14 = Sub %13 %12\n%15 = Add %14 %6\n%16 = Add %15 %13\n"
    "%17 = HardSigmoid %16 0.2 0.5\n%18 = Sub %16 %17\nout0 f32 = %18\nout1 f32 = %12\nout2 f32 = %6\n"
    "out3 f32 += %8\n";

UNIT_TEST(operators_in_a_row_of_any_length) {
  for (int64_t length = 1; length <= 300; length += length < 20 || length > 120 ? 1 : 7) {
    kernel_case_check_text(CHAIN, (const int64_t[]){3, length}, 0);
  }
  kernel_case_check_text(CHAIN, (const int64_t[]){3, 2047}, 0);
  kernel_case_check_text(CHAIN, (const int64_t[]){2, 5001}, 0);
}

UNIT_TEST(ranks_zero_and_eight) {
  kernel_case_check_text(
      "kernel rank 0 reduced 0\nin0 f64 []\n%0 = load in0\n%1 = Exp %0\nout0 f64 = %1\nout1 f64 += %0\n",
      NULL, 0);
  kernel_case_check_text(
      "kernel rank 8 reduced 2\nin0 f32 [0 1 2 3 4 5 6 7]\nin1 f32 [. 0 . 1 . 2 . 3]\n%0 = load in0\n%1 = "
      "load in1\n"
      "%2 = Mul %0 %1\n%3 = ReduceMin %2\n%4 = Sub %2 %3\nout0 f32 = %4\nout1 f32 = %3\n",
      (const int64_t[]){2, 3, 1, 2, 2, 3, 3, 5}, 1e-6);
}

UNIT_TEST(stores_of_inputs_constants_and_one_value_twice) {
  kernel_case_check_text(
      "kernel rank 2 reduced 0\nin0 f32 [. 0]\n%0 = load in0\n%1 = constant f32 1.5\n%2 = Mul %0 %0\nout0 "
      "f32 = %0\n"
      "out1 bf16 = %1\nout2 f32 = %2\nout3 f16 = %2\n",
      (const int64_t[]){9, 600}, 0);
}

UNIT_TEST(outputs_that_nobody_wants_are_left_out) {
  kernel_program_t *program = kernel_case_read(
      "kernel rank 1 reduced 0\nin0 f32 [0]\n%0 = load in0\n%1 = Neg %0\n%2 = Abs %1\nout0 f32 = %1\nout1 "
      "f32 = %2\n");
  const int64_t dims[] = {3};
  const float data[] = {1, -2, 3};
  float result[3] = {0};
  const kernel_tensor_t input = {.data = data, .rank = 1, .dims = dims};
  void *outputs[] = {NULL, result};
  kernel_case_run(program, 2, 1, &input, outputs);
  ck_assert(result[0] == 1 && result[1] == 2 && result[2] == 3);
  kernel_program_destroy(program);
}

/* Outputs beyond the size of caches go another way: the same numbers as row by row, from memory that is
 * aligned to lines of the cache and from memory that is not. */
UNIT_TEST(outputs_of_many_megabytes) {
  enum { ROWS = 8, COLUMNS = 1100001, OUTPUTS = 3 };
  kernel_program_t *program = kernel_case_read(
      "kernel rank 2 reduced 0\nin0 f32 [0 1]\n%0 = load in0\n%1 = constant f32 0.5\n%2 = Add %0 %1\n"
      "%3 = Mul %2 %0\n%4 = Exp %2\n%5 = Sub %4 %3\n%6 = Neg %1\nout0 f32 = %3\nout1 f32 = %5\nout2 f32 = "
      "%6\n");
  const size_t count = (size_t)ROWS * COLUMNS;
  const size_t bytes = (count * sizeof(float) + 127) / 64 * 64;
  float *data = aligned_alloc(64, bytes);
  for (size_t k = 0; k < count; k++) {
    data[k] = (float)(k % 4001) / 1000.0f - 2.0f;
  }
  for (size_t shift = 0; shift < 2; shift++) {
    float *memory[2][OUTPUTS];
    void *outputs[OUTPUTS];
    for (int k = 0; k < OUTPUTS; k++) {
      memory[0][k] = aligned_alloc(64, bytes);
      memory[1][k] = aligned_alloc(64, bytes);
      outputs[k] = memory[0][k] + shift;
    }
    const kernel_tensor_t whole = {.data = data, .rank = 2, .dims = (const int64_t[]){ROWS, COLUMNS}};
    kernel_case_run(program, (int)shift + 1, 2, &whole, outputs);
    for (size_t row = 0; row < ROWS; row++) {
      const kernel_tensor_t one = {
          .data = data + row * COLUMNS, .rank = 2, .dims = (const int64_t[]){1, COLUMNS}};
      for (int k = 0; k < OUTPUTS; k++) {
        outputs[k] = memory[1][k] + shift + row * COLUMNS;
      }
      kernel_case_run(program, (int)shift + 1, 1, &one, outputs);
    }
    for (int k = 0; k < OUTPUTS; k++) {
      ck_assert_mem_eq(memory[0][k] + shift, memory[1][k] + shift, count * sizeof(float));
      free(memory[0][k]);
      free(memory[1][k]);
    }
  }
  free(data);
  kernel_program_destroy(program);
}

/* More elements than 32 bits count, all of them one element in memory. */
UNIT_TEST(rows_of_more_than_two_to_the_31_elements) {
  kernel_program_t *program = kernel_case_read(
      "kernel rank 3 reduced 2\nin0 u8 [0 1 2]\n%0 = load in0\n%1 = cast i64 %0\n%2 = ReduceSum %1\nout0 i64 "
      "= %2\n");
  const int64_t dims[] = {1, 65536, 32769};
  const int64_t strides[] = {0, 0, 0};
  const uint8_t three = 3;
  int64_t sum = 0;
  const kernel_tensor_t input = {.data = &three, .rank = 3, .dims = dims, .strides = strides};
  void *outputs[] = {&sum};
  kernel_case_run(program, 2, 2, &input, outputs);
  ck_assert_int_eq(sum, INT64_C(3) * 65536 * 32769);
  kernel_program_destroy(program);
}

UNIT_TEST(sizes_that_do_not_fit_are_refused) {
  kernel_program_t *program = kernel_case_read(
      "kernel rank 2 reduced 0\nin0 f32 [0 1]\nin1 f32 [. 0]\n%0 = load in0\n%1 = load in1\n%2 = Add %0 %1\n"
      "out0 f32 = %2\n");
  kernel_plan_t *plan = NULL;
  cleave_message_t message = {.text = ""};
  ck_assert_int_eq(kernel_plan_create(program, kernel_loops_choose(2), &plan, &message), CLEAVE_OK);
  const int64_t wide[] = {2, 3};
  const int64_t narrow[] = {4};
  const kernel_tensor_t inputs[] = {{.rank = 2, .dims = wide}, {.rank = 1, .dims = narrow}};
  const kernel_tensor_t ranks[] = {{.rank = 2, .dims = wide}, {.rank = 2, .dims = wide}};
  int64_t dims[CLEAVE_MAX_RANK];
  ck_assert_int_eq(kernel_space(plan, inputs, dims, &message), CLEAVE_ERROR_SHAPE);
  ck_assert_str_eq(message.text, "input 1 has size 4 along axis 1, expected 3 or 1");
  ck_assert_int_eq(kernel_space(plan, ranks, dims, &message), CLEAVE_ERROR_SHAPE);
  ck_assert_str_eq(message.text, "input 1 has rank 2, expected 1");
  kernel_plan_destroy(plan);
  kernel_program_destroy(program);
}

/* ---- at random ---- */

#ifdef __SANITIZE_ADDRESS__
enum { RANDOM_PROGRAMS = 100 };
#else
enum { RANDOM_PROGRAMS = 300 };
#endif

static const cleave_dtype_t random_dtypes[] = {
    CLEAVE_DTYPE_F32,  CLEAVE_DTYPE_F32, CLEAVE_DTYPE_F32, CLEAVE_DTYPE_F16, CLEAVE_DTYPE_F64,
    CLEAVE_DTYPE_BF16, CLEAVE_DTYPE_I32, CLEAVE_DTYPE_I64, CLEAVE_DTYPE_U8,  CLEAVE_DTYPE_BOOL};

/* Operators whose results stay of a size and have no steep places. */
static const kernel_op_t random_ops[] = {
    KERNEL_Add,  KERNEL_Sub,        KERNEL_Max,       KERNEL_Min,       KERNEL_Tanh,      KERNEL_Sigmoid,
    KERNEL_Abs,  KERNEL_Neg,        KERNEL_Relu,      KERNEL_Atan,      KERNEL_And,       KERNEL_Or,
    KERNEL_Not,  KERNEL_Mul,        KERNEL_Erf,       KERNEL_WHERE,     KERNEL_Less,      KERNEL_Equal,
    KERNEL_CAST, KERNEL_ReduceMean, KERNEL_ReduceMax, KERNEL_ReduceMin, KERNEL_BitwiseXor};

static void random_axes(int32_t rank, int8_t *axes) {
  int8_t next = 0;
  for (int32_t d = 0; d < rank; d++) {
    axes[d] = (int8_t)(rand() % 4 == 0 ? -1 : next++);
  }
  for (int32_t d = 0; d < rank && rand() % 3 == 0; d++) {
    int32_t other = rand() % rank;
    int8_t axis = axes[d];
    axes[d] = axes[other];
    axes[other] = axis;
  }
}

static kernel_program_t *random_program(bool *out_has_reductions) {
  kernel_program_t *program = NULL;
  cleave_message_t message;
  int32_t rank = 1 + rand() % 4;
  ck_assert_int_eq(kernel_program_create(rank, rand() % 2 * (1 + rand() % rank), &program, &message),
                   CLEAVE_OK);
  uint32_t value = 0;
  *out_has_reductions = false;
  for (int k = 0; k < 1 + rand() % KERNEL_CASE_INPUTS; k++) {
    int8_t axes[CLEAVE_MAX_RANK];
    uint32_t input = 0;
    random_axes(rank, axes);
    for (int32_t d = 0; d < rank && k == 0; d++) {
      axes[d] = (int8_t)d;
    }
    cleave_dtype_t dtype = random_dtypes[(size_t)rand() % (sizeof random_dtypes / sizeof random_dtypes[0])];
    if (program->input_count < KERNEL_CASE_INPUTS) {
      ck_assert_int_eq(kernel_program_input(program, dtype, axes, &input, &message), CLEAVE_OK);
      ck_assert_int_eq(kernel_program_load(program, input, &value, &message), CLEAVE_OK);
    }
  }
  float half = 0.5f;
  ck_assert_int_eq(kernel_program_constant(program, CLEAVE_DTYPE_F32, &half, &value, &message), CLEAVE_OK);
  for (int k = 0; k < 60; k++) {
    kernel_op_t op = random_ops[(size_t)rand() % (sizeof random_ops / sizeof random_ops[0])];
    uint32_t operands[3] = {(uint32_t)rand() % program->value_count, (uint32_t)rand() % program->value_count,
                            (uint32_t)rand() % program->value_count};
    cleave_status_t status =
        op == KERNEL_CAST
            ? kernel_program_cast(program, random_dtypes[(size_t)rand() % 10], operands[0], &value, &message)
            : kernel_program_apply(program, op, operands, 0, 0, &value, &message);
    bool is_reduction = kernel_op_info(op)->kind == KERNEL_KIND_REDUCTION;
    *out_has_reductions = *out_has_reductions || (status == CLEAVE_OK && is_reduction);
  }
  for (uint32_t k = 0; k < KERNEL_CASE_OUTPUTS; k++) {
    value =
        program->value_count - 1 - (uint32_t)rand() % (program->value_count < 8 ? program->value_count : 8);
    bool adds = rand() % 5 == 0 && program->values[value].dtype != CLEAVE_DTYPE_BOOL;
    cleave_dtype_t dtype = program->values[value].dtype;
    dtype = dtype == CLEAVE_DTYPE_F32 && rand() % 4 == 0 ? CLEAVE_DTYPE_F16 : dtype;
    ck_assert_int_eq(kernel_program_output(program, dtype, value, adds, &message), CLEAVE_OK);
  }
  return program;
}

/* Equal elements are many among these inputs: the first one counts. */
UNIT_TEST(where_the_largest_and_the_smallest_lie) {
  static const char *const names[] = {"f32", "f64", "f16", "bf16", "i8",  "i16",
                                      "i32", "i64", "u8",  "u16",  "u32", "u64"};
  static const int64_t lengths[] = {1, 3, 64, 700, 1024, 5000, 70000};
  for (size_t t = 0; t < sizeof names / sizeof names[0]; t++) {
    char text[512];
    snprintf(text, sizeof text,
             "kernel rank 2 reduced 1\nin0 %s [0 1]\n%%0 = load in0\n%%1 = Add %%0 %%0\n%%2 = ArgMax %%1\n"
             "%%3 = ArgMin %%0\nout0 i64 = %%2\nout1 i64 = %%3\n",
             names[t]);
    size_t count = sizeof lengths / sizeof lengths[0] - (t % 5 == 0 ? 0 : 1); /* the longest takes time */
    for (size_t k = 0; k < count; k++) {
      kernel_case_check_text(text, (const int64_t[]){lengths[k] > 1000 ? 3 : 7, lengths[k]}, 0);
    }
  }
}

UNIT_TEST(where_nan_lies_comes_before_all_numbers) {
  kernel_program_t *program = kernel_case_read(
      "kernel rank 2 reduced 1\nin0 f32 [0 1]\n%0 = load in0\n%1 = ArgMax %0\n%2 = ArgMin %0\nout0 i64 = %1\n"
      "out1 i64 = %2\n");
  static const int64_t lengths[] = {100, 1000, 3000, 100000};
  for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
    const int64_t dims[] = {1, lengths[k]};
    float *row = calloc((size_t)lengths[k], sizeof *row);
    int64_t found[2] = {-1, -1};
    void *const outputs[] = {&found[0], &found[1]};
    const kernel_tensor_t input = {.data = row, .rank = 2, .dims = dims};
    row[3] = INFINITY;
    row[lengths[k] - 7] = NAN;
    row[lengths[k] - 2] = NAN;
    kernel_case_run(program, 2, 2, &input, outputs);
    ck_assert_int_eq(found[0], lengths[k] - 7);
    ck_assert_int_eq(found[1], lengths[k] - 7);
    free(row);
  }
  kernel_program_destroy(program);
}

UNIT_TEST(all_threads_share_a_long_row_and_give_the_same_bits) {
  static const int64_t shapes[][2] = {{1, 65536}, {3, 70001}};
  static const char *const everything =
      "kernel rank 2 reduced 1\nin0 f32 [0 1]\nin1 f32 [. 0]\n%0 = load in0\n%1 = load in1\n%2 = Mul %0 %1\n"
      "%3 = ReduceMean %2\n%4 = Sub %2 %3\n%5 = MeanSquare %4\n%6 = Sqrt %5\n%7 = Div %4 %6\n%8 = ReduceMin "
      "%7\n"
      "%9 = ArgMax %0\n%10 = Mul %7 %8\nout0 f32 = %10\nout1 f16 += %3\nout2 i64 = %9\nout3 f32 = %6\n";
  static const char *const wide =
      "kernel rank 2 reduced 1\nin0 f64 [0 1]\nin1 i32 [0 1]\n%0 = load in0\n%1 = load in1\n%2 = "
      "ReduceSumSquare %0\n"
      "%3 = ReduceSum %1\n%4 = ReduceMax %1\n%5 = Add %3 %4\nout0 f64 = %2\nout1 i32 = %5\n";
  for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++) {
    kernel_case_check_text(SOFTMAX, shapes[k], 1e-4);
    kernel_case_check_text(everything, shapes[k], 2e-3);
    kernel_case_check_text(wide, shapes[k], 1e-9);
  }
}

UNIT_TEST(random_programs_compute_what_the_interpreter_does) {
  int reductions = 0;
  for (unsigned seed = 0; seed < RANDOM_PROGRAMS; seed++) {
    bool has_reductions = false;
    srand(seed);
    kernel_program_t *program = random_program(&has_reductions);
    int64_t dims[CLEAVE_MAX_RANK];
    int64_t budget = seed % 10 == 0 ? 9000 : 900;
    for (int32_t d = 0; d < program->rank; d++) {
      dims[d] = rand() % 12 == 0 ? 1 : 1 + rand() % (budget > 1 ? budget : 1);
      dims[d] = rand() % 60 == 0 && program->reduced == 0 ? 0 : dims[d]; /* rows without elements: above */
      budget /= dims[d] > 0 ? dims[d] : 1;
    }
    kernel_case_check(program, dims, seed, has_reductions ? 2e-3 : 0);
    reductions += has_reductions;
    kernel_program_destroy(program);
  }
  ck_assert_int_gt(reductions, RANDOM_PROGRAMS / 6);
}

UNIT_SUITE("kernels_run")
