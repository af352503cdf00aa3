// SPDX-License-Identifier: Apache-2.0
// The stand-in's products of tensor cores, against plain products of matrices: fragments are filled and read
// as the PTX ISA lists their elements, lane by lane.
#include <dlfcn.h>

#include "cuda/library/nvrtc.h"
#include "grid.h"
#include "unit.h"

/* Kernels of one warp: matrices a [16, K] and b [K, 8] of floats, d [16, 8]. */
static const char halves[] =
    "struct arguments {\n  const float *a;\n  const float *b;\n  float *d;\n};\n"
    "static unsigned bits(float x) {\n  unsigned u;\n  __builtin_memcpy(&u, &x, 4);\n  return u;\n}\n"
    "static unsigned low(float x) {\n#if BFLOAT\n  return bits(x) >> 16;\n#else\n"
    "  const unsigned u = bits(x);\n  if ((u & 0x7fffffffu) == 0) {\n    return 0;\n  }\n"
    "  return (u >> 16 & 0x8000u) | ((u >> 23 & 255u) - 112u) << 10 | (u >> 13 & 1023u);\n#endif\n}\n"
    "extern \"C\" __global__ void cleave_kernel(const arguments args) {\n"
    "  const int lane = (int)threadIdx.x, group = lane >> 2, in_group = lane % 4;\n"
    "  unsigned a[4] = {}, b[2] = {};\n  float d[4] = {1, 2, 3, 4};\n"
    "  for (int i = 0; i < 8; i++) {\n"
    "    const int row = (0 <= i && i < 2) || (4 <= i && i < 6) ? group : group + 8;\n"
    "    const int column = in_group * 2 + (i & 1) + (i >= 4 ? 8 : 0);\n"
    "    a[i / 2] |= low(args.a[row * 16 + column]) << 16 * (i & 1);\n  }\n"
    "  for (int i = 0; i < 4; i++) {\n"
    "    const int row = in_group * 2 + (i & 1) + (i >= 2 ? 8 : 0);\n"
    "    b[i / 2] |= low(args.b[row * 8 + group]) << 16 * (i & 1);\n  }\n"
    "#if BFLOAT\n  grid_mma_bf16(d, a, b[0], b[1]);\n#else\n  grid_mma_f16(d, a, b[0], b[1]);\n#endif\n"
    "  for (int i = 0; i < 4; i++) {\n"
    "    args.d[(i < 2 ? group : group + 8) * 8 + in_group * 2 + (i & 1)] = d[i] - (float)(i + 1);\n  }\n}\n";

static const char words[] =
    "struct arguments {\n  const float *a;\n  const float *b;\n  float *d;\n};\n"
    "extern \"C\" __global__ void cleave_kernel(const arguments args) {\n"
    "  const int lane = (int)threadIdx.x, group = lane >> 2, in_group = lane % 4;\n"
    "  unsigned a[4], b[2];\n  float d[4] = {};\n"
    "  for (int i = 0; i < 4; i++) {\n"
    "    const int row = i == 0 || i == 2 ? group : group + 8;\n"
    "    a[i] = __float_as_uint(args.a[row * 8 + in_group + (i >= 2 ? 4 : 0)]);\n  }\n"
    "  for (int i = 0; i < 2; i++) {\n"
    "    b[i] = __float_as_uint(args.b[(in_group + 4 * i) * 8 + group]);\n  }\n"
    "  grid_mma_tf32(d, a, b[0], b[1]);\n"
    "  for (int i = 0; i < 4; i++) {\n"
    "    args.d[(i < 2 ? group : group + 8) * 8 + in_group * 2 + (i & 1)] = d[i];\n  }\n}\n";

/* Four matrices of 8 x 8 numbers below 256 in 16 bits; to[lane][matrix] as pairs. */
static const char matrices[] =
    "struct arguments {\n  const unsigned short *from;\n  unsigned *to;\n};\n"
    "extern \"C\" __global__ void cleave_kernel(const arguments args) {\n"
    "  grid_ldmatrix(args.to + threadIdx.x * 4, args.from + threadIdx.x * 8, TURNED);\n}\n";

static void run_text(const char *defines, const char *text, void *arguments) {
  cuda_nvrtc_t nvrtc = {0};
  cuda_nvrtc_program_t program = NULL;
  char whole[4096];
  char message[GRID_MESSAGE_BYTES];
  size_t size = 0;
  void *library = dlopen(CLEAVE_BINARY_DIR "/tests/cuda/libnvrtc.so", RTLD_NOW | RTLD_LOCAL);
  ck_assert_msg(library != NULL, "%s", dlerror());
#define FIND(result, member, symbol, parameters) \
  {                                              \
    void *found = dlsym(library, #symbol);       \
    memcpy(&nvrtc.member, &found, sizeof found); \
  }
  CUDA_NVRTC_ENTRIES(FIND)
#undef FIND
  (void)snprintf(whole, sizeof whole, "%s%s", defines, text);
  ck_assert_int_eq(nvrtc.create(&program, whole, "kernel.cu", 0, NULL, NULL), 0);
  const char *options[] = {"--std=c++17", "--gpu-architecture=sm_90"};
  ck_assert_int_eq(nvrtc.compile(program, 2, options), 0);
  ck_assert_int_eq(nvrtc.cubin_size(program, &size), 0);
  char *image = malloc(size);
  ck_assert_int_eq(nvrtc.cubin(program, image), 0);
  grid_module_t *module = grid_module_load(image, message);
  ck_assert_msg(module != NULL, "%s", message);
  const uint32_t grid[3] = {1, 1, 1};
  const uint32_t block[3] = {32, 1, 1};
  void *all[] = {arguments};
  const grid_kernel_t *kernel = grid_module_kernel(module, "cleave_kernel");
  ck_assert_ptr_nonnull(kernel);
  ck_assert_msg(grid_run(kernel, grid, block, all, message) == 0, "%s", message);
  grid_module_unload(module);
  free(image);
  (void)nvrtc.destroy(&program);
}

/* Numbers that all formats have, so that products and sums are exact. */
static float small_number(int k) {
  return (float)(k * 7 % 13 - 6) / 4.0f;
}

static void expect_product(const char *defines, const char *text, int inner) {
  float a[16 * 16];
  float b[16 * 8];
  float d[16 * 8] = {0};
  struct {
    const float *a;
    const float *b;
    float *d;
  } arguments = {a, b, d};
  for (int k = 0; k < 16 * inner; k++) {
    a[k] = small_number(k);
    b[k % (8 * inner)] = small_number(3 * (k % (8 * inner)) + k % (8 * inner) / 8);
  }
  run_text(defines, text, &arguments);
  for (int row = 0; row < 16; row++) {
    for (int column = 0; column < 8; column++) {
      float sum = 0;
      for (int k = 0; k < inner; k++) {
        sum += a[row * inner + k] * b[k * 8 + column];
      }
      ck_assert_float_eq(d[row * 8 + column], sum);
    }
  }
}

UNIT_TEST(products_of_16_bits_are_those_of_matrices) {
  expect_product("#define BFLOAT 0\n", halves, 16);
  expect_product("#define BFLOAT 1\n", halves, 16);
}

UNIT_TEST(products_of_tf32_are_those_of_matrices) {
  expect_product("", words, 8);
}

UNIT_TEST(matrices_are_loaded_by_rows_or_by_columns) {
  for (int is_turned = 0; is_turned < 2; is_turned++) {
    uint16_t from[4 * 64];
    uint32_t to[32 * 4] = {0};
    struct {
      const uint16_t *from;
      uint32_t *to;
    } arguments = {from, to};
    for (int k = 0; k < 4 * 64; k++) {
      from[k] = (uint16_t)k;
    }
    run_text(is_turned == 0 ? "#define TURNED false\n" : "#define TURNED true\n", matrices, &arguments);
    for (int k = 0; k < 32 * 4; k++) {
      int lane = k / 4;
      int line = lane / 4;
      int first = lane % 4 * 2;
      int low = k % 4 * 64 + (is_turned == 0 ? line * 8 + first : first * 8 + line);
      int high = low + (is_turned == 0 ? 1 : 8);
      ck_assert_uint_eq(to[k], (uint32_t)low | (uint32_t)high << 16);
    }
  }
}

UNIT_SUITE("cuda tensor cores")
