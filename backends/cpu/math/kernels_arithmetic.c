// SPDX-License-Identifier: Apache-2.0
// Add, Sub, Mul, Div, Mod, Pow and PRelu with broadcasting. Integers wrap, the smallest one divided by -1,
// too. Integers are never divided by zero: ONNX gives that no value, so a run that would do so fails.
#include "cpu/common/binary.h"

CPU_BINARY_ROW(CPU_VECTOR, add_f32, float, float, x + y)
CPU_BINARY_ROW(CPU_VECTOR, sub_f32, float, float, x - y)
CPU_BINARY_ROW(CPU_VECTOR, mul_f32, float, float, x *y)
CPU_BINARY_ROW(CPU_VECTOR, div_f32, float, float, x / y)
CPU_BINARY_ROW(CPU_VECTOR, prelu_f32, float, float, x < 0 ? x * y : x)
CPU_BINARY_ROW(, add_f64, double, double, x + y)
CPU_BINARY_ROW(, sub_f64, double, double, x - y)
CPU_BINARY_ROW(, mul_f64, double, double, x *y)
CPU_BINARY_ROW(, div_f64, double, double, x / y)
CPU_BINARY_ROW(, prelu_f64, double, double, x < 0 ? x * y : x)

CPU_BINARY_ROW(CPU_VECTOR, relu_grad_f32, float, float, y > 0 ? x : 0)
CPU_BINARY_ROW(, relu_grad_f64, double, double, y > 0 ? x : 0)

#define WRAPPING_ROWS(t, T, W)                 \
  CPU_BINARY_ROW(, add_##t, T, T, (W)x + (W)y) \
  CPU_BINARY_ROW(, sub_##t, T, T, (W)x - (W)y) \
  CPU_BINARY_ROW(, mul_##t, T, T, (W)x *(W)y)  \
  CPU_BINARY_ROW(, prelu_##t, T, T, x <= 0 ? (W)x * (W)y : (W)x)

CPU_INTEGER_TYPES(WRAPPING_ROWS)

/* Remainder with the sign of the divisor. */
static inline float floor_mod_f32(float x, float y) {
  float r = fmodf(x, y);
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

static inline double floor_mod_f64(double x, double y) {
  double r = fmod(x, y);
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

CPU_BINARY_ROW(, mod_f32, float, float, floor_mod_f32(x, y))
CPU_BINARY_ROW(, mod_f64, double, double, floor_mod_f64(x, y))
CPU_BINARY_ROW(, fmod_f32, float, float, fmodf(x, y))
CPU_BINARY_ROW(, fmod_f64, double, double, fmod(x, y))

#define SIGNED_DIVISION_ROWS(t, T, W)                                 \
  static inline T floor_mod_##t(T x, T y) {                           \
    T r = (T)(y == -1 ? 0 : x % y);                                   \
    return (T)(r != 0 && (r < 0) != (y < 0) ? r + y : r);             \
  }                                                                   \
  CPU_BINARY_ROW(, div_##t, T, T, y == -1 ? (W)0 - (W)x : (W)(x / y)) \
  CPU_BINARY_ROW(, mod_##t, T, T, floor_mod_##t(x, y))                \
  CPU_BINARY_ROW(, fmod_##t, T, T, y == -1 ? 0 : x % y)

#define UNSIGNED_DIVISION_ROWS(t, T, W)  \
  CPU_BINARY_ROW(, div_##t, T, T, x / y) \
  CPU_BINARY_ROW(, mod_##t, T, T, x % y) \
  CPU_BINARY_ROW(, fmod_##t, T, T, x % y)

CPU_SIGNED_TYPES(SIGNED_DIVISION_ROWS)
CPU_UNSIGNED_TYPES(UNSIGNED_DIVISION_ROWS)

/* Powers of integers: by squaring, wrapping; a negative exponent gives what 1 / x^|y| truncates to. */
static int64_t integer_power(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  }
  uint64_t result = 1;
  uint64_t factor = (uint64_t)base;
  for (uint64_t rest = (uint64_t)exponent; rest != 0; rest >>= 1) {
    result = (rest & 1u) != 0 ? result * factor : result;
    factor *= factor;
  }
  return (int64_t)result;
}

CPU_BINARY_ROW(, power_i64, int64_t, int64_t, integer_power(x, y))
CPU_BINARY_ROW(, power_any_f32, float, float, powf(x, y))
CPU_BINARY_ROW(, pow_f64, double, double, pow(x, y))

/* The exponents that models use most, on a dense row. As in pow, the root of minus infinity is infinity. */
CPU_VECTOR static void square_f32(float *out, const float *in, int64_t count) {
  CPU_INDEPENDENT
  for (int64_t k = 0; k < count; k++) {
    out[k] = in[k] * in[k];
  }
}

CPU_VECTOR static void cube_f32(float *out, const float *in, int64_t count) {
  CPU_INDEPENDENT
  for (int64_t k = 0; k < count; k++) {
    out[k] = in[k] * in[k] * in[k];
  }
}

CPU_VECTOR static void root_f32(float *out, const float *in, int64_t count) {
  CPU_INDEPENDENT
  for (int64_t k = 0; k < count; k++) {
    float root = sqrtf(in[k]) + 0.0f;
    out[k] = in[k] == -INFINITY ? INFINITY : root;
  }
}

static void pow_f32(void *context, unsigned char *const *pointers, const int64_t *strides, int64_t count) {
  float *out = (float *)(void *)pointers[0];
  const float *in = (const float *)(const void *)pointers[1];
  float exponent = strides[2] == 0 && strides[1] != 0 ? *(const float *)(const void *)pointers[2] : 0.0f;
  if (exponent == 2.0f) {
    square_f32(out, in, count);
  } else if (exponent == 3.0f) {
    cube_f32(out, in, count);
  } else if (exponent == 0.5f) {
    root_f32(out, in, count);
  } else {
    power_any_f32(context, pointers, strides, count);
  }
}

static const cpu_row_fn_t add_rows[CPU_DTYPE_COUNT] = {CPU_NUMBER_ROWS(add)};
static const cpu_row_fn_t sub_rows[CPU_DTYPE_COUNT] = {CPU_NUMBER_ROWS(sub)};
static const cpu_row_fn_t mul_rows[CPU_DTYPE_COUNT] = {CPU_NUMBER_ROWS(mul)};
static const cpu_row_fn_t div_rows[CPU_DTYPE_COUNT] = {CPU_NUMBER_ROWS(div)};
static const cpu_row_fn_t mod_rows[CPU_DTYPE_COUNT] = {CPU_NUMBER_ROWS(mod)};
static const cpu_row_fn_t fmod_rows[CPU_DTYPE_COUNT] = {CPU_NUMBER_ROWS(fmod)};
static const cpu_row_fn_t relu_grad_rows[CPU_DTYPE_COUNT] = {
    [CLEAVE_DTYPE_F32] = relu_grad_f32, [CLEAVE_DTYPE_F64] = relu_grad_f64};
static const cpu_row_fn_t prelu_rows[CPU_DTYPE_COUNT] = {CPU_NUMBER_ROWS(prelu)};

#define PREPARE(op)                                                                                     \
  static cleave_status_t prepare_##op(cpu_prepare_t *prepare, void *state, cleave_message_t *message) { \
    return cpu_binary_prepare(prepare, state, op##_rows, false, message);                               \
  }

PREPARE(add)
PREPARE(sub)
PREPARE(mul)
PREPARE(div)
PREPARE(prelu)
PREPARE(relu_grad)

static cleave_status_t prepare_mod(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  bool truncates = cleave_view_int(prepare->node, "fmod", 0) != 0;
  ((cpu_binary_state_t *)state)->cost = 32;
  return cpu_binary_prepare(prepare, state, truncates ? fmod_rows : mod_rows, false, message);
}

/* The first element that is an integer zero, or -1. */
static int64_t find_zero(const cpu_tensor_t *tensor) {
  static const unsigned char ZERO[8] = {0};
  size_t size = cleave_dtype_size(tensor->dtype);
  const unsigned char *bytes = tensor->data;
  for (int64_t k = 0; cpu_dtype_is_integer(tensor->dtype) && k < tensor->count; k++) {
    if (memcmp(bytes + (size_t)k * size, ZERO, size) == 0) {
      return k;
    }
  }
  return -1;
}

static cleave_status_t run_division(const cpu_call_t *call, cleave_message_t *message) {
  const cpu_tensor_t *a = call->inputs[0];
  const cpu_tensor_t *b = call->inputs[1];
  int64_t zero = a->count > 0 ? find_zero(b) : -1;
  if (zero >= 0) {
    return kernel_fail(message, CLEAVE_ERROR_INVALID_ARGUMENT,
                       "an integer is divided by zero: element %lld of the divisor", (long long)zero);
  }
  return cpu_binary_run(call, message);
}

/* The base decides the output's dtype; the exponent may have any other. */
static cleave_status_t prepare_pow(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  cpu_binary_state_t *self = state;
  self->a = cpu_input_dtype(prepare, 0);
  self->b = cpu_input_dtype(prepare, 1);
  self->out = cpu_output_dtype(prepare, 0);
  bool is_float = cpu_dtype_is_float(self->a);
  bool is_integer = cpu_dtype_is_integer(self->a) && cpu_dtype_is_integer(self->b);
  if (self->out != self->a || !(is_float || cpu_dtype_is_integer(self->a)) || !cpu_dtype_is_plain(self->b) ||
      self->b == CLEAVE_DTYPE_BOOL) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "from %s and %s to %s is not supported",
                       cpu_dtype_name(self->a), cpu_dtype_name(self->b), cpu_dtype_name(self->out));
  }
  self->compute = is_integer                                ? CLEAVE_DTYPE_I64
                  : is_float && self->a != CLEAVE_DTYPE_F64 ? CLEAVE_DTYPE_F32
                                                            : CLEAVE_DTYPE_F64;
  self->result = self->compute;
  self->row = is_integer ? power_i64 : self->compute == CLEAVE_DTYPE_F32 ? pow_f32 : pow_f64;
  self->converts = self->a != self->compute || self->b != self->compute;
  self->cost = 32;
  return CLEAVE_OK;
}

/* The slope broadcasts to x, never the other way round. */
static cleave_status_t run_prelu(const cpu_call_t *call, cleave_message_t *message) {
  const cpu_tensor_t *x = call->inputs[0];
  int32_t rank = 0;
  int64_t dims[CLEAVE_MAX_RANK] = {0};
  cleave_status_t status = cpu_broadcast_shape(call->inputs, 2, &rank, dims, message);
  if (status != CLEAVE_OK) {
    return status;
  }
  status = cpu_output_shape(call, 0, x->rank, x->dims, message);
  if (status == CLEAVE_OK && (rank != x->rank || cpu_count(rank, dims) != x->count)) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "the slope does not broadcast to the input");
  }
  if (status == CLEAVE_OK) {
    cpu_binary_apply(call, call->state, call->outputs[0], x, call->inputs[1]);
  }
  return status;
}

#define KERNEL(name, function, runner)                                                                      \
  {                                                                                                         \
    .op = name, .state_size = sizeof(cpu_binary_state_t), .prepare = function, .run = runner, .inplace = 3, \
    .required_inputs = 2                                                                                    \
  }

const cpu_kernel_t cpu_kernels_arithmetic[] = {
    KERNEL("Add", prepare_add, cpu_binary_run),
    KERNEL("Sub", prepare_sub, cpu_binary_run),
    KERNEL("Mul", prepare_mul, cpu_binary_run),
    KERNEL("Div", prepare_div, run_division),
    KERNEL("Mod", prepare_mod, run_division),
    KERNEL("Pow", prepare_pow, cpu_binary_run),
    KERNEL("PRelu", prepare_prelu, run_prelu),
    CPU_KERNEL("ReluGrad", 2, .domain = "cleave", .state_size = sizeof(cpu_binary_state_t),
               .prepare = prepare_relu_grad, .run = cpu_binary_run, .inplace = 3),
    {0},
};
