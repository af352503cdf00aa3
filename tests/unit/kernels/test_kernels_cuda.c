// SPDX-License-Identifier: Apache-2.0
// Kernels as CUDA text, run on the stand-in and compared with the same programs on the CPU.
#include <math.h>
#include <sys/mman.h>

#include "cuda_case.h"
#include "unit.h"

UNIT_TEST(a_chain_is_one_chunk_per_thread) {
  kernel_program_t *program = kernel_case_read(
      "kernel rank 1 reduced 0\nin0 f32 [0]\nin1 f32 [0]\n%0 = load in0\n%1 = load in1\n%2 = Add %0 %1\n"
      "%3 = Tanh %2\nout0 f32 = %3\n");
  static _Alignas(16) float a[1003];
  static _Alignas(16) float b[1003];
  static _Alignas(16) float y[1003];
  static _Alignas(16) float expected[1003];
  for (int k = 0; k < 1003; k++) {
    a[k] = (float)(k % 17) * 0.1f;
    b[k] = (float)(k % 13) * -0.2f;
  }
  const int64_t dims[] = {1003};
  const kernel_tensor_t inputs[] = {{a, 1, dims, NULL}, {b, 1, dims, NULL}};
  void *outputs[] = {y};
  void *wanted[] = {expected};
  kernel_case_run(program, 2, 1, inputs, wanted);
  cuda_case_run(program, inputs, outputs);
  for (int k = 0; k < 1003; k++) {
    ck_assert_float_eq_tol(y[k], expected[k], 1e-6f);
  }
  kernel_cuda_t *kernel = NULL;
  cleave_message_t message;
  kernel_cuda_launch_t launch;
  char *text = NULL;
  ck_assert_int_eq(kernel_cuda_create(program, false, &kernel, &message), CLEAVE_OK);
  cuda_case_prepare(kernel, inputs, outputs, &launch);
  ck_assert_int_eq(launch.variant.lanes, 4);
  ck_assert_uint_eq(launch.argument_bytes, 32);
  ck_assert_int_eq(kernel_cuda_text(kernel, &launch.variant, "Add_0, Tanh_1", &text, &message), CLEAVE_OK);
  ck_assert_ptr_nonnull(strstr(text, "// Add_0, Tanh_1\n// kernel rank 1 reduced 0\n"));
  ck_assert_ptr_nonnull(strstr(text, "    const float v3 = tanhf(v2);\n"));
  ck_assert_ptr_null(strstr(text, "#include"));
  free(text);
  kernel_cuda_destroy(kernel);
  kernel_program_destroy(program);
}

UNIT_TEST(a_softmax_keeps_its_row) {
  kernel_program_t *program = kernel_case_read(
      "kernel rank 2 reduced 1\nin0 f16 [0 1]\nin1 f32 [. 0]\n%0 = load in0\n%1 = load in1\n%2 = Add %0 %1\n"
      "%3 = ReduceMax %2\n%4 = Sub %2 %3\n%5 = Exp %4\n%6 = ReduceSum %5\n%7 = Div %5 %6\nout0 f32 = %7\n");
  static _Alignas(16) uint16_t a[5 * 1000];
  static _Alignas(16) float b[1000];
  static _Alignas(16) float y[5 * 1000];
  static _Alignas(16) float expected[5 * 1000];
  for (int length = 1; length <= 1000; length = length * 3 + length % 4) {
    for (int k = 0; k < 5000; k++) {
      a[k] = (uint16_t)(0x3000 + k * 7 % 3000);
      b[k % 1000] = (float)(k % 13) * -0.2f;
    }
    const int64_t dims[] = {5, length};
    const kernel_tensor_t inputs[] = {{a, 2, dims, NULL}, {b, 1, dims + 1, NULL}};
    void *outputs[] = {y};
    void *wanted[] = {expected};
    kernel_case_run(program, 2, 1, inputs, wanted);
    cuda_case_run(program, inputs, outputs);
    for (int k = 0; k < 5 * length; k++) {
      ck_assert_float_eq_tol(y[k], expected[k], 1e-6f);
    }
  }
  kernel_program_destroy(program);
}

/* Ties, infinities, NaN, and rows of one warp, of parts of one and of a block. */
static void check_places(const char *dtype, size_t size, const void *elements, int count) {
  char text[256];
  (void)snprintf(text, sizeof text,
                 "kernel rank 2 reduced 1\nin0 %s [0 1]\n%%0 = load in0\n%%1 = ArgMax %%0\n%%2 = ArgMin %%0\n"
                 "%%3 = cast f32 %%1\nout0 i64 = %%1\nout1 i64 = %%2\nout2 f32 = %%3\n",
                 dtype);
  kernel_program_t *program = kernel_case_read(text);
  static const int LENGTHS[] = {1, 2, 7, 32, 100, 129, 1000, 5000};
  enum { ROWS = 4 };
  static _Alignas(16) char x[ROWS * 5000 * 8];
  for (size_t n = 0; n < sizeof LENGTHS / sizeof LENGTHS[0]; n++) {
    int length = LENGTHS[n];
    for (int k = 0; k < ROWS * length; k++) {
      memcpy(x + (size_t)k * size, (const char *)elements + (size_t)(k * 5 / 3 % count) * size, size);
    }
    const int64_t dims[] = {ROWS, length};
    const kernel_tensor_t input = {x, 2, dims, NULL};
    int64_t places[4][ROWS];
    float casts[2][ROWS];
    void *wanted[] = {places[0], places[1], casts[0]};
    void *outputs[] = {places[2], places[3], casts[1]};
    kernel_case_run(program, 2, 1, &input, wanted);
    cuda_case_run(program, &input, outputs);
    ck_assert_mem_eq(places[2], places[0], sizeof places[0]);
    ck_assert_mem_eq(places[3], places[1], sizeof places[1]);
    ck_assert_mem_eq(casts[1], casts[0], sizeof casts[0]);
  }
  kernel_program_destroy(program);
}

UNIT_TEST(a_row_knows_where_its_largest_and_smallest_are) {
  const float f32[] = {-INFINITY, 1, -2, 7.5F, 7.5F, -2, 0, 3, -0.0F, 5, 7.5F};
  const float nan[] = {1, 5, NAN, INFINITY, NAN, -INFINITY, 2};
  const float lowest[] = {-INFINITY};
  const int8_t i8[] = {-128, 3, 127, -128, 127, 0};
  const uint64_t u64[] = {5, UINT64_MAX, 0, UINT64_MAX, 0, 7, UINT64_MAX - 1};
  const uint16_t f16[] = {0x3c00, 0xc000, 0x7bff, 0x7bff, 0xfc00, 0x0001};
  check_places("f32", sizeof f32[0], f32, 11);
  check_places("f32", sizeof nan[0], nan, 7);
  check_places("f32", sizeof lowest[0], lowest, 1);
  check_places("i8", sizeof i8[0], i8, 6);
  check_places("u64", sizeof u64[0], u64, 7);
  check_places("f16", sizeof f16[0], f16, 6);
}

/* Two runs of an input that lie so far apart: pages between them are never touched. */
UNIT_TEST(elements_that_lie_more_than_two_to_the_31_apart_are_read) {
  enum { RUN = 19 };
  const int64_t apart = (INT64_C(1) << 31) + 3;
  uint8_t *a = mmap(NULL, (size_t)apart + RUN, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ck_assert_ptr_ne(a, MAP_FAILED);
  kernel_program_t *program = kernel_case_read(
      "kernel rank 2 reduced 0\nin0 u8 [0 1]\n%0 = load in0\n%1 = Add %0 %0\nout0 u8 = %1\n");
  static _Alignas(16) uint8_t y[2 * RUN];
  for (int k = 0; k < RUN; k++) {
    a[k] = (uint8_t)(k + 1);
    a[apart + k] = (uint8_t)(100 + k);
  }
  const int64_t dims[] = {2, RUN};
  const int64_t strides[] = {apart, 1};
  const kernel_tensor_t input = {a, 2, dims, strides};
  void *outputs[] = {y};
  kernel_cuda_t *kernel = NULL;
  cleave_message_t message;
  kernel_cuda_launch_t launch;
  ck_assert_int_eq(kernel_cuda_create(program, false, &kernel, &message), CLEAVE_OK);
  cuda_case_prepare(kernel, &input, outputs, &launch);
  ck_assert_uint_eq(launch.variant.is_wide, 1);
  cuda_case_run(program, &input, outputs);
  for (int k = 0; k < RUN; k++) {
    ck_assert_int_eq(y[k], 2 * (k + 1));
    ck_assert_int_eq(y[RUN + k], 2 * (100 + k));
  }
  kernel_cuda_destroy(kernel);
  kernel_program_destroy(program);
  (void)munmap(a, (size_t)apart + RUN);
}

/* Nothing runs: the addresses are no memory. */
UNIT_TEST(spaces_of_more_than_two_to_the_31_elements_have_indices_of_64_bits) {
  kernel_program_t *program =
      kernel_case_read("kernel rank 1 reduced 0\nin0 u8 [0]\n%0 = load in0\n%1 = Add %0 %0\nout0 u8 = %1\n");
  const int64_t sizes[] = {(INT64_C(1) << 31) - (1 << 20), (INT64_C(1) << 31) + 16};
  for (int k = 0; k < 2; k++) {
    const kernel_tensor_t input = {(void *)(uintptr_t)4096, 1, &sizes[k], NULL};
    void *outputs[] = {(void *)(uintptr_t)8192};
    kernel_cuda_t *kernel = NULL;
    cleave_message_t message;
    kernel_cuda_launch_t launch;
    char *text = NULL;
    ck_assert_int_eq(kernel_cuda_create(program, false, &kernel, &message), CLEAVE_OK);
    cuda_case_prepare(kernel, &input, outputs, &launch);
    ck_assert_uint_eq(launch.variant.is_wide, (unsigned)k);
    ck_assert_int_eq((int64_t)launch.grid * launch.block * launch.variant.lanes >= sizes[k], 1);
    ck_assert_int_eq(kernel_cuda_text(kernel, &launch.variant, "Add_0", &text, &message), CLEAVE_OK);
    ck_assert_ptr_nonnull(strstr(text, k == 0 ? "typedef u32 index;" : "typedef u64 index;"));
    free(text);
    kernel_cuda_destroy(kernel);
  }
  kernel_program_destroy(program);
}

UNIT_SUITE("kernels as CUDA text")
