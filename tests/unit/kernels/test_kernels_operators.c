// SPDX-License-Identifier: Apache-2.0
// Scalar operators: every loop against the expression on one element, the same bits on every instruction set,
// and errors against long double over all floats.
#include <fenv.h>
#include <math.h>

#include "kernel_case.h"
#include "kernels/vector_math.h"
#include "unit.h"

enum { COUNT = 243 };

static const cleave_dtype_t dtypes[] = {CLEAVE_DTYPE_F32, CLEAVE_DTYPE_F64, CLEAVE_DTYPE_I8,
                                        CLEAVE_DTYPE_I16, CLEAVE_DTYPE_I32, CLEAVE_DTYPE_I64,
                                        CLEAVE_DTYPE_U8,  CLEAVE_DTYPE_U16, CLEAVE_DTYPE_U32,
                                        CLEAVE_DTYPE_U64, CLEAVE_DTYPE_BOOL};
enum { DTYPE_COUNT = sizeof dtypes / sizeof dtypes[0] };

static const double special[] = {0,      -0.0,   1,     -1,   0.5,   -0.5,         2,       3,      -3,
                                 1e-40,  -1e-40, 1e-45, 1e30, -1e30, 3.4028235e38, 1.5e-38, 88.0,   -88.0,
                                 -104.0, 1e10,   127,   -128, 65535, 255,          1e-3,    -20.25, 7.125};
enum { SPECIAL_COUNT = sizeof special / sizeof special[0] };

/* Special values, then random ones; `salt` makes other operands. */
static void fill_operand(cleave_dtype_t dtype, unsigned char *out, unsigned salt) {
  size_t size = cleave_dtype_size(dtype);
  srand(salt);
  for (int k = 0; k < COUNT; k++) {
    double value = special[(unsigned)k * (salt % 3 + 1) % SPECIAL_COUNT];
    value = k % 31 == 0   ? (double)NAN
            : k % 37 == 0 ? (double)INFINITY
            : k % 41 == 0 ? -(double)INFINITY
                          : value;
    value = k > 3 * SPECIAL_COUNT ? (rand() % 20001 - 10000) / 777.0 : value;
    if (dtype == CLEAVE_DTYPE_BOOL) {
      out[k] = (unsigned char)(rand() % 2);
    } else {
      cpu_convert(CLEAVE_DTYPE_F64, &value, dtype, out + (size_t)k * size, 1);
    }
  }
}

static bool is_single(int operand, int variant) {
  return variant == operand + 1;
}

/* One operator on one dtype: on tiles and single elements, with every instruction set. */
static void check_loops(kernel_op_t op, cleave_dtype_t dtype) {
  const kernel_op_info_t *info = kernel_op_info(op);
  unsigned char operands[2][8 * COUNT];
  fill_operand(dtype, operands[0], 1);
  fill_operand(dtype, operands[1], 2);
  uint64_t probe = 0;
  const void *first[2] = {operands[0], operands[1]};
  bool is_known = kernel_case_apply(op, dtype, first, info->alpha, info->beta, &probe);
  size_t size = cleave_dtype_size(dtype);
  size_t out_size = info->kind == KERNEL_KIND_COMPARE ? 1 : size;
  for (int limit = 0; limit <= 2; limit++) {
    const kernel_loops_t *loops = kernel_loops_choose(limit);
    int variants = info->operand_count == 1 ? 1 : 3;
    for (int variant = 0; variant < variants; variant++) {
      unsigned char out[8 * COUNT];
      kernel_unary_t unary = loops->unary[op][dtype];
      kernel_binary_t binary = loops->binary[op][dtype][variant];
      ck_assert_msg((info->operand_count == 1 ? unary != NULL : binary != NULL) == is_known, "%s on %s",
                    info->name, kernel_dtype_name(dtype));
      if (!is_known) {
        return;
      }
      if (info->operand_count == 1) {
        unary(out, operands[0], COUNT, info->alpha, info->beta);
      } else {
        binary(out, operands[0], operands[1], COUNT);
      }
      for (int k = 0; k < COUNT; k++) {
        const void *at[2] = {operands[0] + (is_single(0, variant) ? 0 : (size_t)k * size),
                             operands[1] + (is_single(1, variant) ? 0 : (size_t)k * size)};
        uint64_t expected = 0;
        uint64_t found = 0;
        kernel_case_apply(op, dtype, at, info->alpha, info->beta, &expected);
        memcpy(&found, out + (size_t)k * out_size, out_size);
        double a = 0;
        double b = 0;
        cleave_dtype_t result = info->kind == KERNEL_KIND_COMPARE ? CLEAVE_DTYPE_BOOL : dtype;
        cpu_convert(result, &expected, CLEAVE_DTYPE_F64, &a, 1);
        cpu_convert(result, &found, CLEAVE_DTYPE_F64, &b, 1);
        ck_assert_msg(expected == found || (a != a && b != b),
                      "%s on %s, %s, variant %d, element %d: %.17g, expected %.17g", info->name,
                      kernel_dtype_name(dtype), loops->name, variant, k, b, a);
      }
    }
  }
}

UNIT_TEST(every_loop_computes_its_expression_to_the_bit) {
  int operators = 0;
  for (int op = 0; op < KERNEL_OP_COUNT; op++) {
    kernel_kind_t kind = kernel_op_info((kernel_op_t)op)->kind;
    if (kind == KERNEL_KIND_SPECIAL || kind == KERNEL_KIND_REDUCTION) {
      continue;
    }
    operators++;
    for (int d = 0; d < DTYPE_COUNT; d++) {
      check_loops((kernel_op_t)op, dtypes[d]);
    }
  }
  ck_assert_int_gt(operators, 50);
}

/* ---- errors ---- */

/* Distance in units in the last place of the exact result; where that is nearly a denormal, of 2^-139. */
static double distance(float found, long double exact) {
  float near = (float)exact;
  if (isnan(found) || isnan(near)) {
    return isnan(found) && isnan(near) ? 0 : 1e9;
  }
  if (isinf(found) || isinf(near)) {
    return found == near || fabsl(exact) > 0x1.fffffdp127L ? 0 : 1e9;
  }
  long double unit = (long double)nextafterf(fabsf(near), INFINITY) - (long double)fabsf(near);
  unit = isinf((float)unit) ? 0x1p104L : unit < 0x1p-139L ? 0x1p-139L : unit;
  return (double)(fabsl((long double)found - exact) / unit);
}

typedef long double (*exact_t)(long double x);

static long double sigmoid_exact(long double x) {
  return x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x));
}
static long double softplus_exact(long double x) {
  return (x > 0 ? x : 0) + log1pl(expl(-fabsl(x)));
}
static long double mish_exact(long double x) {
  return x * tanhl(softplus_exact(x));
}
static long double swish_exact(long double x) {
  return x * sigmoid_exact(x);
}
static long double gelu_erf_exact(long double x) {
  return 0.5L * x * erfcl(-x * 0.707106781186547524400844362L);
}
static long double gelu_tanh_exact(long double x) {
  return x * sigmoid_exact(1.59576912160573081145L * (x + 0.044715L * x * x * x));
}
static long double elu_exact(long double x) {
  return x < 0 ? expm1l(x) : x;
}

static const struct {
  kernel_op_t op;
  exact_t exact;
} functions[] = {
    {KERNEL_Exp, expl},
    {KERNEL_Log, logl},
    {KERNEL_Sigmoid, sigmoid_exact},
    {KERNEL_Tanh, tanhl},
    {KERNEL_Erf, erfl},
    {KERNEL_Softplus, softplus_exact},
    {KERNEL_Mish, mish_exact},
    {KERNEL_Swish, swish_exact},
    {KERNEL_GeluErf, gelu_erf_exact},
    {KERNEL_GeluTanh, gelu_tanh_exact},
    {KERNEL_FastErf, erfl},
    {KERNEL_FastTanh, tanhl},
    {KERNEL_FastGeluTanh, gelu_tanh_exact},
    {KERNEL_Elu, elu_exact},
    {KERNEL_Sin, sinl},
    {KERNEL_Cos, cosl},
    {KERNEL_Tan, tanl},
    {KERNEL_Asin, asinl},
    {KERNEL_Acos, acosl},
    {KERNEL_Atan, atanl},
    {KERNEL_Sinh, sinhl},
    {KERNEL_Cosh, coshl},
    {KERNEL_Asinh, asinhl},
    {KERNEL_Acosh, acoshl},
    {KERNEL_Atanh, atanhl},
    {KERNEL_Sqrt, sqrtl},
    {KERNEL_Floor, floorl},
    {KERNEL_Round, rintl},
};

static const double list_ulps[KERNEL_OP_COUNT] = {
#define KERNEL_UNARY(name, f32, f64, ulps, ...) [KERNEL_##name] = ulps,
#include "kernels/operators.inc"
};

UNIT_TEST(functions_are_as_exact_as_the_list_says_over_all_floats) {
  enum { BLOCK = 4096 };
  static float x[BLOCK];
  static float y[BLOCK];
  const uint64_t step = 40009; /* a prime: about 107,000 floats, every exponent and sign among them */
  for (size_t f = 0; f < sizeof functions / sizeof functions[0]; f++) {
    const kernel_op_info_t *info = kernel_op_info(functions[f].op);
    double worst = 0;
    float where = 0;
    for (uint64_t bits = f; bits < UINT64_C(1) << 32; bits += BLOCK * step) {
      for (int k = 0; k < BLOCK; k++) {
        x[k] = cleave_bits_to_float((uint32_t)(bits + (uint64_t)k * step));
      }
      kernel_loops_choose(2)->unary[functions[f].op][CLEAVE_DTYPE_F32](y, x, BLOCK, 1.0, info->beta);
      for (int k = 0; k < BLOCK; k++) {
        double error = isinf(x[k]) || isnan(x[k]) ? 0 : distance(y[k], functions[f].exact((long double)x[k]));
        where = error > worst ? x[k] : where;
        worst = error > worst ? error : worst;
      }
    }
    double bound = list_ulps[functions[f].op];
    ck_assert_msg(bound <= 4 || strncmp(info->name, "Fast", 4) == 0, "%s: the list allows %g units",
                  info->name, bound);
    ck_assert_msg(worst <= (bound > 0 ? bound : 0.5),
                  "%s: %.2f units in the last place at %a, the list says %g", info->name, worst,
                  (double)where, bound);
  }
}

UNIT_TEST(powers_are_exact_to_two_units) {
  static const float bases[] = {0.0f,    -0.0f, 1.0f, -1.0f,       INFINITY,     -INFINITY, NAN,
                                2.0f,    -2.0f, 0.5f, 3.0f,        -3.0f,        -0.5f,     1e-40f,
                                -1e-40f, 1e30f, 3.5f, 16777216.0f, -16777217.0f, 8388607.5f};
  enum { BASE_COUNT = sizeof bases / sizeof bases[0] };
  for (int a = 0; a < BASE_COUNT; a++) {
    for (int b = 0; b < BASE_COUNT; b++) {
      float found = cpu_powf(bases[a], bases[b]);
      float exact = powf(bases[a], bases[b]);
      bool same = isnan(exact) ? isnan(found)
                               : distance(found, (long double)exact) <= 2 && signbit(found) == signbit(exact);
      ck_assert_msg(same, "%g to the power of %g: %g, expected %g", (double)bases[a], (double)bases[b],
                    (double)found, (double)exact);
    }
  }
  srand(3);
  for (int k = 0; k < 200000; k++) {
    float a = cleave_bits_to_float((uint32_t)rand() * 2654435761u);
    float b = (float)(rand() % 20001 - 10000) / 300.0f;
    a = k % 2 == 0 ? (float)(rand() % 10000) / 100.0f : a;
    double error = isnan(a) ? 0 : distance(cpu_powf(a, b), powl((long double)a, (long double)b));
    ck_assert_msg(error <= 2, "%a to the power of %a: %.2f units in the last place", (double)a, (double)b,
                  error);
  }
}

/* Regions of onednn look at the flag to find special values. Plain C may raise it for numbers beyond 1e9,
 * since it adds and subtracts infinities for a product and sum that it cannot fuse. */
UNIT_TEST(functions_raise_invalid_only_if_they_make_nan_of_numbers) {
  enum { NUMBERS = 4096 };
  float numbers[NUMBERS];
  float results[NUMBERS];
  for (int limit = 0; limit <= 2; limit++) {
    const kernel_loops_t *loops = kernel_loops_choose(limit);
    for (int op = 0; op < KERNEL_OP_COUNT; op++) {
      kernel_unary_t loop = loops->unary[op][CLEAVE_DTYPE_F32];
      const kernel_op_info_t *info = kernel_op_info((kernel_op_t)op);
      int count = 0;
      if (loop == NULL || loops == kernel_loops_choose(0)) {
        continue;
      }
      for (int k = 0; k < NUMBERS; k++) {
        float x = k < SPECIAL_COUNT ? (float)special[k] : (float)(k - NUMBERS / 2) * 0.173f;
        loop(results, &x, 1, info->alpha, info->beta);
        if (!isnan(results[0])) {
          numbers[count++] = x;
        }
      }
      ck_assert_int_eq(feclearexcept(FE_ALL_EXCEPT), 0);
      loop(results, numbers, count, info->alpha, info->beta);
      ck_assert_msg(fetestexcept(FE_INVALID) == 0, "%s, %s", info->name, loops->name);
    }
  }
}

UNIT_SUITE("kernels_operators")
