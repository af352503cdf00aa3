// SPDX-License-Identifier: Apache-2.0
// Functions that kernels call and CUDA lacks: conversions as kernels/convert.h defines them, packs of
// elements that are moved at once, places along axes, and those of operators.inc. A text has the ones that it
// calls.
#include <string.h>

#include "expression.h"

typedef struct function {
  const char *name;
  const char *text;
} function_t;

/* Saturating; NaN gives 0. LOW and HIGH are the first values outside, in double. */
#define TO_INTEGER(T, LOW, HIGH, LEAST, MOST)                                                     \
  {                                                                                               \
    "to_" #T, "template <class F> __device__ " #T " to_" #T                                       \
              "(F x) {\n"                                                                         \
              "  return x > (F)" LOW " && x < (F)" HIGH " ? (" #T ")x : x >= (F)" HIGH " ? " MOST \
              " : x <= (F)" LOW " ? " LEAST " : (" #T ")0;\n}\n"                                  \
  }

/* Every function comes behind those that it calls. The instructions of the device do what the bits do
 * elsewhere. */
static const function_t functions[] = {
    {"pack", "template <int N, class T> struct alignas(N * sizeof(T)) pack {\n  T at[N];\n};\n"},
    {"load",
     "template <int N, class T> __device__ pack<N, T> load(const T *from, int count) {\n"
     "  if (count == N) {\n    return *(const pack<N, T> *)from;\n  }\n"
     "  pack<N, T> x;\n#pragma unroll\n  for (int j = 0; j < N; j++) {\n"
     "    x.at[j] = from[j < count ? j : 0];\n  }\n  return x;\n}\n"},
    {"store",
     "template <int N, class T> __device__ void store(T *to, const pack<N, T> &y, int count) {\n"
     "  if (count == N) {\n    *(pack<N, T> *)to = y;\n    return;\n  }\n"
     "#pragma unroll\n  for (int j = 0; j < N; j++) {\n"
     "    if (j < count) {\n      to[j] = y.at[j];\n    }\n  }\n}\n"},
    {"take_last",
     "// The place along the last axis of the element that `rest` numbers; then it numbers the axes before.\n"
     "template <class I> __device__ I take_last(I &rest, I size) {\n"
     "  const I next = rest / size;\n  const I at = rest - next * size;\n  rest = next;\n  return at;\n}\n"},
    {"place_in",
     "// A place that is given, from the end if it is negative; -1 if it is outside.\n"
     "template <class P> __device__ i64 place_in(P given, i64 size) {\n"
     "  const i64 at = given < 0 ? (i64)given + size : (i64)given;\n"
     "  return at >= 0 && at < size ? at : -1;\n}\n"},
    {"bits_float", "__device__ float bits_float(u32 bits) {\n  return __int_as_float((int)bits);\n}\n"},
    {"float_bits", "__device__ u32 float_bits(float x) {\n  return (u32)__float_as_int(x);\n}\n"},
    {"half_to_float",
     "__device__ float half_to_float(u16 half) {\n#ifdef __CUDA_ARCH__\n  float x;\n"
     "  asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(x) : \"h\"(half));\n  return x;\n#else\n"
     "  const u32 magnitude = (u32)(half & 0x7fffu) << 13;\n"
     "  const u32 bits = float_bits(bits_float(magnitude) * 0x1p112f);\n"
     "  return bits_float((magnitude >= 0x0f800000u ? magnitude | 0x7f800000u : bits) | (u32)(half & "
     "0x8000u) << 16);\n"
     "#endif\n}\n"},
    {"float_to_half",
     "__device__ u16 float_to_half(float x) {\n#ifdef __CUDA_ARCH__\n  u16 half;\n"
     "  asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(half) : \"f\"(x));\n  return half;\n#else\n"
     "  const u32 magnitude = float_bits(x) & 0x7fffffffu;\n"
     "  const u32 denormal = float_bits(bits_float(magnitude) + 0.5f) - 0x3f000000u;\n"
     "  const u32 normal = (magnitude + 0xc8000fffu + (magnitude >> 13 & 1u)) >> 13;\n"
     "  const u32 special = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;\n"
     "  const u32 half = magnitude >= 0x47800000u ? special : magnitude < 0x38800000u ? denormal : normal;\n"
     "  return (u16)(half | (float_bits(x) >> 16 & 0x8000u));\n#endif\n}\n"},
    {"bfloat_to_float",
     "__device__ float bfloat_to_float(u16 bits) {\n  return bits_float((u32)bits << 16);\n}\n"},
    {"float_to_bfloat",
     "__device__ u16 float_to_bfloat(float x) {\n#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800\n  u16 "
     "y;\n"
     "  asm(\"cvt.rn.bf16.f32 %0, %1;\" : \"=h\"(y) : \"f\"(x));\n  return y;\n#else\n"
     "  const u32 bits = float_bits(x);\n"
     "  const u32 rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;\n"
     "  return (u16)((bits & 0x7fffffffu) > 0x7f800000u ? (bits >> 16 | 0x40u) : rounded);\n#endif\n}\n"},
    {"odd_float",
     "// Rounding to odd keeps what is lost visible, so that rounding again is exact.\n"
     "__device__ float odd_float(double x) {\n  const float near = (float)x;\n"
     "  const u32 bits = float_bits(near);\n"
     "  if (x != x || (double)near == x || (bits & 0x7fffffffu) == 0x7f800000u || (bits & 1u) != 0) {\n"
     "    return near;\n  }\n  return bits_float(fabs((double)near) > fabs(x) ? bits - 1u : bits + "
     "1u);\n}\n"},
    {"double_to_half",
     "__device__ u16 double_to_half(double x) {\n  return float_to_half(odd_float(x));\n}\n"},
    {"double_to_bfloat",
     "__device__ u16 double_to_bfloat(double x) {\n  return float_to_bfloat(odd_float(x));\n}\n"},
    TO_INTEGER(i8, "-129.0", "128.0", "(i8)-128", "(i8)127"),
    TO_INTEGER(i16, "-32769.0", "32768.0", "(i16)-32768", "(i16)32767"),
    TO_INTEGER(i32, "-2147483649.0", "2147483648.0", "-2147483647 - 1", "2147483647"),
    TO_INTEGER(i64, "-9223372036854775808.0", "9223372036854775808.0", "-9223372036854775807ll - 1",
               "9223372036854775807ll"),
    TO_INTEGER(u8, "-1.0", "256.0", "(u8)0", "(u8)255"),
    TO_INTEGER(u16, "-1.0", "65536.0", "(u16)0", "(u16)65535"),
    TO_INTEGER(u32, "-1.0", "4294967296.0", "0u", "4294967295u"),
    TO_INTEGER(u64, "-1.0", "18446744073709551616.0", "0ull", "18446744073709551615ull"),
    {"found", "template <class T> struct found {\n  T of;\n  i64 at;\n};\n"},
    {"from_lane",
     "template <class T> __device__ found<T> from_lane(const found<T> &a, int d) {\n"
     "  return found<T>{(T)__shfl_xor_sync(0xffffffffu, a.of, d), __shfl_xor_sync(0xffffffffu, a.at, d)};\n"
     "}\n"},
#define KERNEL_ARGUMENT(NAME, REDUCTION, BETTER)                               \
  {#NAME, "template <class T> __device__ found<T> " #NAME                      \
          "(const found<T> &a, const found<T> &x) {\n"                         \
          "  const bool is_nan = a.of != a.of;\n"                              \
          "  const bool is_like = x.of == a.of || (is_nan && x.of != x.of);\n" \
          "  return (is_like ? x.at < a.at : x.of != x.of || (x.of " #BETTER   \
          " a.of && !is_nan)) ? x : a;\n"                                      \
          "}\n"},
#define KERNEL_CUDA_FUNCTION(NAME, ...) {#NAME, "__device__ " #__VA_ARGS__ "\n"},
#include "kernels/operators.inc"
};
enum { FUNCTION_COUNT = sizeof functions / sizeof functions[0] };

static bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool mentions(const char *text, const char *name) {
  size_t length = strlen(name);
  for (const char *at = strstr(text, name); at != NULL; at = strstr(at + 1, name)) {
    if ((at == text || !is_word(at[-1])) && !is_word(at[length])) {
      return true;
    }
  }
  return false;
}

void cuda_write_functions(cuda_writer_t *writer, const char *body) {
  bool used[FUNCTION_COUNT];
  for (int k = FUNCTION_COUNT - 1; k >= 0; k--) {
    used[k] = mentions(body, functions[k].name);
    for (int caller = k + 1; !used[k] && caller < FUNCTION_COUNT; caller++) {
      used[k] = used[caller] && mentions(functions[caller].text, functions[k].name);
    }
  }
  for (int k = 0; k < FUNCTION_COUNT; k++) {
    if (used[k]) {
      cuda_write(writer, "%s", functions[k].text);
    }
  }
}
