// SPDX-License-Identifier: Apache-2.0
// Mathematical functions of one tensor, element by element. Those that ONNX defines for integers too (Abs,
// Neg, Sign) have a loop per integer type; integers wrap.
#include "loop.h"
#include "unary.h"

#define NONE "", 0, "", 0

#define MATH_OPS(X)                         \
  X(Exp, cpu_expf(x), exp(x), 4, NONE)      \
  X(Log, cpu_logf(x), log(x), 6, NONE)      \
  X(Sqrt, sqrtf(x), sqrt(x), 2, NONE)       \
  X(Reciprocal, 1.0f / x, 1.0 / x, 2, NONE) \
  X(Floor, floorf(x), floor(x), 2, NONE)    \
  X(Ceil, ceilf(x), ceil(x), 2, NONE)       \
  X(Round, rintf(x), rint(x), 2, NONE)      \
  X(Sin, sinf(x), sin(x), 24, NONE)         \
  X(Cos, cosf(x), cos(x), 24, NONE)         \
  X(Tan, tanf(x), tan(x), 48, NONE)         \
  X(Asin, asinf(x), asin(x), 32, NONE)      \
  X(Acos, acosf(x), acos(x), 32, NONE)      \
  X(Atan, atanf(x), atan(x), 32, NONE)      \
  X(Sinh, sinhf(x), sinh(x), 48, NONE)      \
  X(Cosh, coshf(x), cosh(x), 48, NONE)      \
  X(Asinh, asinhf(x), asinh(x), 48, NONE)   \
  X(Acosh, acoshf(x), acosh(x), 48, NONE)   \
  X(Atanh, atanhf(x), atanh(x), 48, NONE)   \
  X(Erf, cpu_erff(x), erf(x), 6, NONE)

#define SIGNED_OPS(X)                \
  X(Abs, fabsf(x), fabs(x), 1, NONE) \
  X(Neg, -x, -x, 1, NONE)            \
  X(Sign, x > 0 ? 1.0f : x < 0 ? -1.0f : x, x > 0 ? 1.0 : x < 0 ? -1.0 : x, 1, NONE)

MATH_OPS(CPU_UNARY_LOOPS)
SIGNED_OPS(CPU_UNARY_LOOPS)

static const cpu_unary_entry_t entries[] = {MATH_OPS(CPU_UNARY_ENTRY) SIGNED_OPS(CPU_UNARY_ENTRY)};

static cleave_status_t prepare_unary(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  return cpu_unary_prepare(prepare, state, entries, sizeof entries / sizeof entries[0], NULL, message);
}

#define INTEGER_ROW(name, T, W, EXPRESSION)                                                                \
  static void name(void *context, unsigned char *const *pointers, const int64_t *strides, int64_t count) { \
    (void)context;                                                                                         \
    (void)strides;                                                                                         \
    T *out = (T *)(void *)pointers[0];                                                                     \
    const T *in = (const T *)(const void *)pointers[1];                                                    \
    CPU_INDEPENDENT                                                                                        \
    for (int64_t k = 0; k < count; k++) {                                                                  \
      T x = in[k];                                                                                         \
      out[k] = (T)(EXPRESSION);                                                                            \
    }                                                                                                      \
  }

/* Absolute value, negation and sign of one integer type; W is an unsigned type at least as wide as int. */
#define SIGNED_ROWS(t, T, W)                          \
  INTEGER_ROW(abs_##t, T, W, x < 0 ? 0 - (W)x : (W)x) \
  INTEGER_ROW(neg_##t, T, W, 0 - (W)x)                \
  INTEGER_ROW(sign_##t, T, W, (x > 0) - (x < 0))

#define UNSIGNED_ROWS(t, T, W)         \
  INTEGER_ROW(abs_##t, T, W, x)        \
  INTEGER_ROW(neg_##t, T, W, 0 - (W)x) \
  INTEGER_ROW(sign_##t, T, W, x > 0)

SIGNED_ROWS(i8, int8_t, uint32_t)
SIGNED_ROWS(i16, int16_t, uint32_t)
SIGNED_ROWS(i32, int32_t, uint32_t)
SIGNED_ROWS(i64, int64_t, uint64_t)
UNSIGNED_ROWS(u8, uint8_t, uint32_t)
UNSIGNED_ROWS(u16, uint16_t, uint32_t)
UNSIGNED_ROWS(u32, uint32_t, uint32_t)
UNSIGNED_ROWS(u64, uint64_t, uint64_t)

#define SELECT_ROW(name)                                    \
  static cpu_row_fn_t select_##name(cleave_dtype_t dtype) { \
    switch (dtype) {                                        \
      case CLEAVE_DTYPE_I8: return name##_i8;               \
      case CLEAVE_DTYPE_I16: return name##_i16;             \
      case CLEAVE_DTYPE_I32: return name##_i32;             \
      case CLEAVE_DTYPE_I64: return name##_i64;             \
      case CLEAVE_DTYPE_U8: return name##_u8;               \
      case CLEAVE_DTYPE_U16: return name##_u16;             \
      case CLEAVE_DTYPE_U32: return name##_u32;             \
      case CLEAVE_DTYPE_U64: return name##_u64;             \
      default: return NULL;                                 \
    }                                                       \
  }

SELECT_ROW(abs)
SELECT_ROW(neg)
SELECT_ROW(sign)

typedef struct signed_state {
  cpu_unary_state_t unary; /* first: cpu_unary_run reads it as the state of the call */
  cpu_row_fn_t integer;    /* NULL for floats */
} signed_state_t;

static cleave_status_t prepare_signed(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  signed_state_t *self = state;
  cleave_dtype_t dtype = cpu_input_dtype(prepare, 0);
  if (cpu_dtype_is_float(dtype) || cpu_output_dtype(prepare, 0) != dtype) {
    return prepare_unary(prepare, &self->unary, message);
  }
  const char *op = prepare->node->op;
  self->integer = cleave_view_text_equal(op, "Abs")   ? select_abs(dtype)
                  : cleave_view_text_equal(op, "Neg") ? select_neg(dtype)
                                                      : select_sign(dtype);
  return self->integer != NULL ? CLEAVE_OK
                               : cpu_fail(message, CLEAVE_ERROR_UNSUPPORTED, "dtype %s is not supported",
                                          cpu_dtype_name(dtype));
}

static cleave_status_t run_signed(const cpu_call_t *call, cleave_message_t *message) {
  const signed_state_t *state = call->state;
  if (state->integer == NULL) {
    return cpu_unary_run(call, message);
  }
  cleave_status_t status = cpu_output_shape(call, 0, call->inputs[0]->rank, call->inputs[0]->dims, message);
  if (status == CLEAVE_OK) {
    cpu_loop_t loop;
    cpu_loop_broadcast(&loop, call->outputs[0], call->inputs, 1);
    cpu_loop_run(call, &loop, state->integer, NULL, 1);
  }
  return status;
}

#define SIGNED_KERNEL(name, f32_expression, f64_expression, cost, ...) \
  {.op = #name,                                                        \
   .state_size = sizeof(signed_state_t),                               \
   .prepare = prepare_signed,                                          \
   .run = run_signed,                                                  \
   .inplace = 1,                                                       \
   .required_inputs = 1},

const cpu_kernel_t cpu_kernels_math[] = {MATH_OPS(CPU_UNARY_KERNEL) SIGNED_OPS(SIGNED_KERNEL){0}};
