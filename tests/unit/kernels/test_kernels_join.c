// SPDX-License-Identifier: Apache-2.0
// Loads of several inputs that follow each other along an axis: every shape against the interpreter, with all
// instructions, one thread and two, and as CUDA text.
#include <math.h>

#include "cuda_case.h"
#include "kernels/convert.h"
#include "unit.h"

enum { MAX_TENSORS = 8 };

typedef struct join_case {
  kernel_program_t *program;
  kernel_tensor_t inputs[MAX_TENSORS];
  int64_t dims[MAX_TENSORS][CLEAVE_MAX_RANK];
  int64_t strides[MAX_TENSORS][CLEAVE_MAX_RANK];
  unsigned char *memory[MAX_TENSORS];
  size_t bytes; /* of an output, at most */
} join_case_t;

/* Memory for an input whose sizes are set: small numbers. `gap` is the stride of its last axis; `order` 1
 * lays the axes out from the last one to the first, as a Transpose has it. */
static void fill_input(join_case_t *c, uint32_t k, int64_t gap, int order) {
  const kernel_input_t *input = &c->program->inputs[k];
  int64_t elements = gap;
  for (int32_t n = 0; n < input->rank; n++) {
    int32_t d = order == 1 ? n : input->rank - 1 - n;
    c->strides[k][d] = elements;
    elements *= c->dims[k][d];
  }
  size_t size = cleave_dtype_size(input->dtype);
  c->memory[k] = aligned_alloc(64, ((size_t)elements * size + 127) / 64 * 64);
  for (int64_t e = 0; e < elements; e++) {
    double value = (double)((e * 37 + k * 11) % 101 - 50) / 16;
    if (input->dtype == CLEAVE_DTYPE_BOOL) {
      c->memory[k][e] = (unsigned char)(e % 3 == 0);
    } else {
      cpu_convert(CLEAVE_DTYPE_F64, &value, input->dtype, c->memory[k] + (size_t)e * size, 1);
    }
  }
  c->inputs[k] = (kernel_tensor_t){.data = c->memory[k],
                                   .rank = input->rank,
                                   .dims = c->dims[k],
                                   .strides = gap > 1 || order == 1 ? c->strides[k] : NULL};
}

/* Inputs over a space of these sizes; `sizes` are those of the parts of each load, along their axis. */
static void fill(join_case_t *c, const int64_t *dims, const int64_t *sizes, int64_t gap, int order) {
  c->bytes = 64;
  for (int32_t d = 0; d < c->program->rank; d++) {
    c->bytes *= (size_t)(dims[d] > 0 ? dims[d] : 1);
  }
  for (uint32_t k = 0; k < c->program->input_count; k++) {
    const kernel_input_t *input = &c->program->inputs[k];
    for (int32_t d = 0; d < c->program->rank; d++) {
      if (input->axes[d] >= 0) {
        c->dims[k][input->axes[d]] = input->along == d ? *sizes : dims[d];
      }
    }
    sizes += input->along >= 0 ? 1 : 0;
    fill_input(c, k, gap, order);
  }
}

static void fresh(const join_case_t *c, void **outputs) {
  for (uint32_t k = 0; k < c->program->output_count; k++) {
    outputs[k] = aligned_alloc(64, (c->bytes + 63) / 64 * 64);
    memset(outputs[k], 0, c->bytes);
  }
}

/* On CPUs and, where `on_cuda`, as CUDA text. */
static void check_filled(join_case_t *c, bool on_cuda) {
  void *expected[MAX_TENSORS];
  void *found[MAX_TENSORS];
  fresh(c, expected);
  kernel_case_interpret(c->program, c->inputs, expected);
  for (int round = 0; round < (on_cuda ? 7 : 6); round++) {
    fresh(c, found);
    if (round < 6) {
      kernel_case_run(c->program, round / 2, round % 2 + 1, c->inputs, found);
    } else {
      cuda_case_run(c->program, c->inputs, found);
    }
    for (uint32_t k = 0; k < c->program->output_count; k++) {
      kernel_case_check_close(c->program, k, found[k], expected[k],
                              c->bytes / cleave_dtype_size(c->program->outputs[k].dtype), 1e-5);
      free(found[k]);
    }
  }
  for (uint32_t k = 0; k < c->program->output_count; k++) {
    free(expected[k]);
  }
  for (uint32_t k = 0; k < c->program->input_count; k++) {
    free(c->memory[k]);
  }
}

/* One case of a test in two on CUDA as well: a compiler runs for each variant of a kernel. */
static void check_case(const char *text, const int64_t *dims, const int64_t *sizes, int64_t gap, int order) {
  static int number;
  join_case_t c = {.program = kernel_case_read(text)};
  fill(&c, dims, sizes, gap, order);
  check_filled(&c, number++ % 2 == 0);
  kernel_program_destroy(c.program);
}

static const char *const CHANNELS =
    "kernel rank 3 reduced 0\nin0 f32 [0 1 2]\nin1 f32 [0 1 2]\nin2 f32 [0 1 2]\nin3 f32 [. 0 .]\n"
    "%0 = load in0 in1 in2 along 1\n%1 = load in3\n%2 = Mul %0 %1\n%3 = Relu %2\n%4 = Tanh %3\n"
    "out0 f32 = %4\n";

static const char *const LAST =
    "kernel rank 2 reduced 0\nin0 f32 [0 1]\nin1 f32 [0 1]\nin2 f32 [0 1]\n%0 = load in0 in1 along 1\n"
    "%1 = load in2\n%2 = Add %0 %1\n%3 = Relu %2\nout0 f32 = %3\n";

UNIT_TEST(parts_of_channels_of_any_size) {
  static const int64_t sizes[][3] = {{3, 5, 8}, {1, 0, 15}, {4, 4, 8}, {16, 0, 0}};
  static const int64_t insides[] = {1, 8, 49};
  for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
    for (size_t k = 0; k < sizeof insides / sizeof insides[0]; k++) {
      check_case(CHANNELS, (const int64_t[]){3, 16, insides[k]}, sizes[s], 1 + (int64_t)(k == 1), 0);
      check_case(CHANNELS, (const int64_t[]){1, 16, insides[k]}, sizes[s], 1, 0);
      check_case(CHANNELS, (const int64_t[]){2, 16, insides[k]}, sizes[s], 1, 1);
    }
  }
}

UNIT_TEST(parts_of_the_last_axis) {
  static const int64_t sizes[][2] = {{1, 1}, {3, 4}, {8, 0}, {2000, 3000}, {4096, 4096}};
  for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
    for (int64_t gap = 1; gap <= 2; gap++) {
      check_case(LAST, (const int64_t[]){7, sizes[s][0] + sizes[s][1]}, sizes[s], gap, 0);
      check_case(LAST, (const int64_t[]){1, sizes[s][0] + sizes[s][1]}, sizes[s], gap, 0);
      check_case(LAST, (const int64_t[]){6, sizes[s][0] + sizes[s][1]}, sizes[s], 1, 1);
    }
  }
}

UNIT_TEST(nothing_at_all_and_one_element) {
  check_case(LAST, (const int64_t[]){3, 1}, (const int64_t[]){0, 1}, 1, 0);
  check_case(LAST, (const int64_t[]){1, 1}, (const int64_t[]){1, 0}, 1, 0);
  check_case(LAST, (const int64_t[]){3, 0}, (const int64_t[]){0, 0}, 1, 0);
  check_case(LAST, (const int64_t[]){0, 5}, (const int64_t[]){2, 3}, 1, 0);
}

/* A part that is an Expand of one element per row, or of one row. */
UNIT_TEST(parts_that_are_repeated_elsewhere) {
  static const int64_t sizes[][2] = {{1, 3}, {2, 2}, {3, 1}};
  for (size_t s = 0; s < 3; s++) {
    for (int64_t inside = 5; inside < 1000; inside = inside * 7 + 1) {
      check_case(
          "kernel rank 3 reduced 0\nin0 f32 [0 1 .]\nin1 f32 [0 1 2]\nin2 f32 [0 1 2]\n"
          "%0 = load in0 in1 along 1\n%1 = load in2\n%2 = Sub %0 %1\nout0 f32 = %2\n",
          (const int64_t[]){3, 4, inside}, sizes[s], 1, 0);
      check_case(
          "kernel rank 3 reduced 1\nin0 f32 [. 0 1]\nin1 f32 [1 0 2]\n%0 = load in0 in1 along 1\n"
          "%1 = ReduceMax %0\n%2 = Sub %0 %1\nout0 f32 = %2\n",
          (const int64_t[]){5, 4, inside}, sizes[s], 1, 0);
    }
  }
}

UNIT_TEST(every_dtype_is_joined) {
  static const char *const dtypes[] = {"f16", "bf16", "f64", "i8", "i16", "i32", "i64", "u8", "bool"};
  for (size_t k = 0; k < sizeof dtypes / sizeof dtypes[0]; k++) {
    char text[512];
    const char *out = strcmp(dtypes[k], "bool") == 0 ? "u8" : dtypes[k];
    snprintf(text, sizeof text,
             "kernel rank 3 reduced 0\nin0 %s [0 1 2]\nin1 %s [0 1 2]\nin2 %s [0 1 2]\n"
             "%%0 = load in0 in1 along 0\n%%1 = load in2\n%%2 = cast %s %%0\n%%3 = cast %s %%1\n"
             "%%4 = Max %%2 %%3\nout0 %s = %%4\n",
             dtypes[k], dtypes[k], dtypes[k], out, out, out);
    check_case(text, (const int64_t[]){5, 11, 30}, (const int64_t[]){2, 3}, 1, 0);
    check_case(text, (const int64_t[]){8, 3, 32}, (const int64_t[]){4, 4}, 1, 0);
    check_case(text, (const int64_t[]){8, 4, 8}, (const int64_t[]){1, 7}, 1, 1);
  }
}

UNIT_TEST(several_loads_join_along_different_axes) {
  for (int64_t inside = 2; inside < 600; inside = inside * 5 - 3) {
    check_case(
        "kernel rank 3 reduced 0\nin0 f32 [0 1 2]\nin1 f32 [0 1 2]\nin2 f32 [0 1 2]\nin3 f32 [0 1 2]\n"
        "in4 f16 [0 1 2]\nin5 f16 [0 1 2]\n%0 = load in0 in1 along 2\n%1 = load in2 in3 along 1\n"
        "%2 = load in4 in5 along 1\n%3 = Add %0 %1\n%4 = Mul %3 %2\nout0 f32 = %4\nout1 f32 = %1\n",
        (const int64_t[]){3, 6, inside}, (const int64_t[]){inside / 3, inside - inside / 3, 2, 4, 5, 1}, 1,
        0);
  }
}

/* Rows inside of a part, across parts, and parts in the row and before it, of rows of every kind. */
UNIT_TEST(rows_are_joined_too) {
  static const char *const norm =
      "kernel rank 3 reduced 1\nin0 f32 [0 1 2]\nin1 f32 [0 1 2]\nin2 f32 [. . 0]\n%%0 = load in0 in1 along "
      "%d\n%%1 = ReduceMean %%0\n%%2 = Sub %%0 %%1\n%%3 = MeanSquare %%2\n%%4 = Sqrt %%3\n%%5 = load in2\n"
      "%%6 = Mul %%2 %%5\n%%7 = Add %%6 %%4\nout0 f32 = %%7\nout1 f32 = %%1\n";
  static const int64_t lengths[] = {2, 130, 800, 3000};
  for (int along = 0; along < 3; along++) {
    char text[512];
    snprintf(text, sizeof text, norm, along);
    for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
      const int64_t dims[] = {4, 17, lengths[k]};
      check_case(text, dims, (const int64_t[]){1, dims[along] - 1}, 1, 0);
      check_case(text, dims, (const int64_t[]){dims[along] / 2, dims[along] - dims[along] / 2}, 1, 0);
      check_case(text, dims, (const int64_t[]){0, dims[along]}, 1, 0);
    }
  }
}

UNIT_TEST(all_threads_share_rows_of_parts) {
  check_case(
      "kernel rank 2 reduced 1\nin0 f32 [0 1]\nin1 f32 [0 1]\n%0 = load in0 in1 along 1\n%1 = Abs %0\n"
      "%2 = ReduceMax %1\n%3 = Sub %0 %2\nout0 f32 = %3\nout1 f32 = %2\n",
      (const int64_t[]){2, 70001}, (const int64_t[]){33333, 36668}, 1, 0);
}

/* A space so large that the next tile is fetched. */
UNIT_TEST(parts_of_some_megabytes) {
  join_case_t c = {.program = kernel_case_read(CHANNELS)};
  fill(&c, (const int64_t[]){2, 48, 12000}, (const int64_t[]){1, 30, 17}, 1, 0);
  check_filled(&c, false);
  kernel_program_destroy(c.program);
}

UNIT_TEST(ranks_one_and_eight) {
  for (int64_t size = 1; size < 5000; size = size * 9 + 2) {
    check_case(
        "kernel rank 1 reduced 0\nin0 f32 [0]\nin1 f32 [0]\n%0 = load in0 in1 along 0\n%1 = Exp %0\n"
        "out0 f32 = %1\n",
        (const int64_t[]){size}, (const int64_t[]){size / 4, size - size / 4}, 1, 0);
  }
  for (int along = 0; along < 8; along += along < 5 ? 5 : 1) {
    char text[256];
    const int64_t dims[] = {2, 3, 2, 4, 2, 3, 2, 5};
    snprintf(text, sizeof text,
             "kernel rank 8 reduced 2\nin0 f32 [0 1 2 3 4 5 6 7]\nin1 f32 [0 1 2 3 4 5 6 7]\n"
             "%%0 = load in0 in1 along %d\n%%1 = ReduceMax %%0\n%%2 = Sub %%0 %%1\nout0 f32 = %%2\n",
             along);
    check_case(text, dims, (const int64_t[]){1, dims[along] - 1}, 1, 0);
  }
}

/* The second input is where the parts come from: output 0 may lie over the third alone. */
UNIT_TEST(an_output_lies_over_no_part) {
  kernel_program_t *program = kernel_case_read(LAST);
  kernel_plan_t *plan = NULL;
  cleave_message_t message;
  static float data[3 * 8];
  const int64_t half[] = {3, 4};
  const int64_t dims[CLEAVE_MAX_RANK] = {3, 8};
  const kernel_tensor_t inputs[] = {{data, 2, half, (const int64_t[]){8, 1}},
                                    {data + 4, 2, half, (const int64_t[]){8, 1}},
                                    {data, 2, dims, NULL}};
  ck_assert_int_eq(kernel_plan_create(program, kernel_loops_choose(2), &plan, &message), CLEAVE_OK);
  ck_assert_uint_eq(kernel_inplace(plan, dims, inputs), 4);
  const int64_t none[] = {3, 0};
  const kernel_tensor_t whole[] = {{data, 2, dims, NULL}, {data, 2, none, NULL}, {data, 2, dims, NULL}};
  ck_assert_uint_eq(kernel_inplace(plan, dims, whole), 4);
  kernel_plan_destroy(plan);
  kernel_program_destroy(program);
}

UNIT_TEST(sizes_that_do_not_add_up_are_refused) {
  kernel_program_t *program = kernel_case_read(LAST);
  kernel_plan_t *plan = NULL;
  cleave_message_t message = {.text = ""};
  int64_t dims[CLEAVE_MAX_RANK];
  ck_assert_int_eq(kernel_plan_create(program, kernel_loops_choose(2), &plan, &message), CLEAVE_OK);
  const int64_t one[] = {2, 1};
  const int64_t three[] = {2, 3};
  const int64_t none[] = {2, 0};
  const kernel_tensor_t more[] = {
      {.rank = 2, .dims = three}, {.rank = 2, .dims = three}, {.rank = 2, .dims = three}};
  const kernel_tensor_t single[] = {
      {.rank = 2, .dims = one}, {.rank = 2, .dims = none}, {.rank = 2, .dims = three}};
  ck_assert_int_eq(kernel_space(plan, more, dims, &message), CLEAVE_ERROR_SHAPE);
  ck_assert_str_eq(message.text, "inputs from 0 on have size 6 together along axis 1, expected 3");
  ck_assert_int_eq(kernel_space(plan, single, dims, &message), CLEAVE_ERROR_SHAPE);
  ck_assert_str_eq(message.text, "inputs from 0 on have size 1 together along axis 1, expected 3");
  kernel_plan_destroy(plan);
  kernel_program_destroy(program);
}

static void check_refused(const char *lines, const char *expected) {
  char text[512];
  snprintf(text, sizeof text,
           "kernel rank 2 reduced 0\nin0 f32 [0 1]\nin1 f32 [0 1]\nin2 f16 [0 1]\nin3 f32 [. 0]\n%s", lines);
  cleave_message_t message = {.text = ""};
  kernel_program_t *program = NULL;
  ck_assert_int_eq(kernel_program_read(text, strlen(text), &program, &message), CLEAVE_ERROR_FORMAT);
  ck_assert_str_eq(message.text, expected);
}

UNIT_TEST(loads_of_several_inputs_as_text) {
  char text[1024];
  kernel_program_t *program = kernel_case_read(CHANNELS);
  kernel_program_print(program, text, sizeof text);
  ck_assert_str_eq(text, CHANNELS);
  static const int32_t order[] = {0, 2, 1};
  cleave_message_t message = {.text = ""};
  ck_assert_int_eq(kernel_program_relay(program, 3, order, &message), CLEAVE_ERROR_UNSUPPORTED);
  ck_assert_str_eq(message.text, "input 0 is a part of a load, which stays in its space");
  kernel_program_destroy(program);
  check_refused("%0 = load in0 in2 along 1", "line 6: expected the next input, found 'in2'");
  check_refused("%0 = load in0 in1", "line 6: expected 'along', found ''");
  check_refused("%0 = load in0 in1 along", "line 6: expected an axis, found ''");
  check_refused("%0 = load in0 in1 along 2", "line 6: 2 inputs from 0 on, along axis 2: no load of several");
  check_refused("%0 = load in0 along 1", "line 6: 1 input from 0 on, along axis 1: no load of several");
  check_refused("%0 = load in3 in4 along 1", "line 6: 2 inputs from 3 on, along axis 1: no load of several");
  check_refused("%0 = load in1 in2 along 1", "line 6: input 2 is f16, expected f32 as input 1");
  check_refused("in4 f32 [0 1]\n%0 = load in3 in4 along 0", "line 7: input 3 is repeated along axis 0");
  check_refused("%0 = load in1\n%1 = load in0 in1 along 0", "line 7: input 1 is a part of another load");
  check_refused("%0 = load in0 in1 along 0\n%1 = load in0", "line 7: input 0 is a part of another load");
}

UNIT_SUITE("loads of several inputs")
