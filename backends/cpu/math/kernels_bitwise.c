// SPDX-License-Identifier: Apache-2.0
// Bits and truth: BitShift, BitwiseAnd, BitwiseOr, BitwiseXor, BitwiseNot, Not, IsNaN, IsInf. A shift by the
// width of the type or more gives 0.
#include "cpu/common/binary.h"

#define BITWISE_ROWS(t, T, W)                 \
  CPU_BINARY_ROW(, and_##t, T, T, (W)x &(W)y) \
  CPU_BINARY_ROW(, or_##t, T, T, (W)x | (W)y) \
  CPU_BINARY_ROW(, xor_##t, T, T, (W)x ^ (W)y)

#define SHIFT_ROWS(t, T, W)                                            \
  CPU_BINARY_ROW(, left_##t, T, T, y >= sizeof(T) * 8 ? 0 : (W)x << y) \
  CPU_BINARY_ROW(, right_##t, T, T, y >= sizeof(T) * 8 ? 0 : (W)x >> y)

CPU_INTEGER_TYPES(BITWISE_ROWS)
CPU_UNSIGNED_TYPES(SHIFT_ROWS)

static const cpu_row_fn_t and_rows[CPU_DTYPE_COUNT] = {CPU_INTEGER_ROWS(and)};
static const cpu_row_fn_t or_rows[CPU_DTYPE_COUNT] = {CPU_INTEGER_ROWS(or)};
static const cpu_row_fn_t xor_rows[CPU_DTYPE_COUNT] = {CPU_INTEGER_ROWS(xor)};
static const cpu_row_fn_t left_rows[CPU_DTYPE_COUNT] = {CPU_UNSIGNED_ROWS(left)};
static const cpu_row_fn_t right_rows[CPU_DTYPE_COUNT] = {CPU_UNSIGNED_ROWS(right)};

#define PREPARE(op)                                                                                     \
  static cleave_status_t prepare_##op(cpu_prepare_t *prepare, void *state, cleave_message_t *message) { \
    return cpu_binary_prepare(prepare, state, op##_rows, false, message);                               \
  }

PREPARE(and)
PREPARE(or)
PREPARE(xor)

static cleave_status_t prepare_shift(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  const char *direction = cleave_view_string(prepare->node, "direction", "");
  bool is_left = cleave_view_text_equal(direction, "LEFT");
  if (!is_left && !cleave_view_text_equal(direction, "RIGHT")) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "direction is '%s', expected LEFT or RIGHT",
                       direction);
  }
  return cpu_binary_prepare(prepare, state, is_left ? left_rows : right_rows, false, message);
}

/* A row of one input, from an expression of x and two flags. */
#define UNARY_ROW(name, T, R, EXPRESSION)                                                                  \
  static void name(void *context, unsigned char *const *pointers, const int64_t *strides, int64_t count) { \
    const unary_state_t *state = context;                                                                  \
    bool negative = state->negative;                                                                       \
    bool positive = state->positive;                                                                       \
    (void)negative;                                                                                        \
    (void)positive;                                                                                        \
    (void)strides;                                                                                         \
    R *out = (R *)(void *)pointers[0];                                                                     \
    const T *in = (const T *)(const void *)pointers[1];                                                    \
    CPU_INDEPENDENT                                                                                        \
    for (int64_t k = 0; k < count; k++) {                                                                  \
      T x = in[k];                                                                                         \
      out[k] = (R)(EXPRESSION);                                                                            \
    }                                                                                                      \
  }

typedef struct unary_state {
  cpu_row_fn_t row;
  bool negative; /* IsInf: whether minus infinity counts */
  bool positive;
} unary_state_t;

#define IS_INF(x) ((positive && (x) == INFINITY) || (negative && (x) == -INFINITY))

UNARY_ROW(not_1, uint8_t, uint8_t, ~x)
UNARY_ROW(not_2, uint16_t, uint16_t, ~x)
UNARY_ROW(not_4, uint32_t, uint32_t, ~x)
UNARY_ROW(not_8, uint64_t, uint64_t, ~x)
UNARY_ROW(not_bool, uint8_t, uint8_t, x == 0)
UNARY_ROW(is_nan_f32, float, uint8_t, x != x)
UNARY_ROW(is_nan_f64, double, uint8_t, x != x)
UNARY_ROW(is_nan_f16, uint16_t, uint8_t, (x & 0x7fffu) > 0x7c00u)
UNARY_ROW(is_nan_bf16, uint16_t, uint8_t, (x & 0x7fffu) > 0x7f80u)
UNARY_ROW(is_inf_f32, float, uint8_t, IS_INF(x))
UNARY_ROW(is_inf_f64, double, uint8_t, IS_INF(x))
UNARY_ROW(is_inf_f16, uint16_t, uint8_t, (positive && x == 0x7c00u) || (negative && x == 0xfc00u))
UNARY_ROW(is_inf_bf16, uint16_t, uint8_t, (positive && x == 0x7f80u) || (negative && x == 0xff80u))

static cleave_status_t check_row(const cpu_prepare_t *prepare, const unary_state_t *state,
                                 cleave_dtype_t expected, cleave_message_t *message) {
  if (state->row == NULL || cpu_output_dtype(prepare, 0) != expected) {
    return cpu_fail_types(prepare, message);
  }
  return CLEAVE_OK;
}

static cleave_status_t prepare_bitwise_not(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  unary_state_t *self = state;
  cleave_dtype_t dtype = cpu_input_dtype(prepare, 0);
  size_t size = cpu_dtype_is_integer(dtype) ? cleave_dtype_size(dtype) : 0;
  self->row = size == 1 ? not_1 : size == 2 ? not_2 : size == 4 ? not_4 : size == 8 ? not_8 : NULL;
  return check_row(prepare, self, dtype, message);
}

static cleave_status_t prepare_not(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  unary_state_t *self = state;
  self->row = cpu_input_dtype(prepare, 0) == CLEAVE_DTYPE_BOOL ? not_bool : NULL;
  return check_row(prepare, self, CLEAVE_DTYPE_BOOL, message);
}

static cleave_status_t prepare_is_nan(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  unary_state_t *self = state;
  switch (cpu_input_dtype(prepare, 0)) {
    case CLEAVE_DTYPE_F32: self->row = is_nan_f32; break;
    case CLEAVE_DTYPE_F64: self->row = is_nan_f64; break;
    case CLEAVE_DTYPE_F16: self->row = is_nan_f16; break;
    case CLEAVE_DTYPE_BF16: self->row = is_nan_bf16; break;
    default: break;
  }
  return check_row(prepare, self, CLEAVE_DTYPE_BOOL, message);
}

static cleave_status_t prepare_is_inf(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  unary_state_t *self = state;
  self->negative = cleave_view_int(prepare->node, "detect_negative", 1) != 0;
  self->positive = cleave_view_int(prepare->node, "detect_positive", 1) != 0;
  switch (cpu_input_dtype(prepare, 0)) {
    case CLEAVE_DTYPE_F32: self->row = is_inf_f32; break;
    case CLEAVE_DTYPE_F64: self->row = is_inf_f64; break;
    case CLEAVE_DTYPE_F16: self->row = is_inf_f16; break;
    case CLEAVE_DTYPE_BF16: self->row = is_inf_bf16; break;
    default: break;
  }
  return check_row(prepare, self, CLEAVE_DTYPE_BOOL, message);
}

static cleave_status_t run_unary(const cpu_call_t *call, cleave_message_t *message) {
  const unary_state_t *state = call->state;
  cleave_status_t status = cpu_output_shape(call, 0, call->inputs[0]->rank, call->inputs[0]->dims, message);
  if (status == CLEAVE_OK) {
    cpu_loop_t loop;
    cpu_loop_broadcast(&loop, call->outputs[0], call->inputs, 1);
    cpu_loop_run(call, &loop, state->row, (void *)(uintptr_t)state, 1);
  }
  return status;
}

#define BINARY_KERNEL(name, function)                                                                 \
  {                                                                                                   \
    .op = name, .state_size = sizeof(cpu_binary_state_t), .prepare = function, .run = cpu_binary_run, \
    .inplace = 3, .required_inputs = 2                                                                \
  }

#define UNARY_KERNEL(name, function)                                                                      \
  {                                                                                                       \
    .op = name, .state_size = sizeof(unary_state_t), .prepare = function, .run = run_unary, .inplace = 1, \
    .required_inputs = 1                                                                                  \
  }

const cpu_kernel_t cpu_kernels_bitwise[] = {
    BINARY_KERNEL("BitShift", prepare_shift),
    BINARY_KERNEL("BitwiseAnd", prepare_and),
    BINARY_KERNEL("BitwiseOr", prepare_or),
    BINARY_KERNEL("BitwiseXor", prepare_xor),
    UNARY_KERNEL("BitwiseNot", prepare_bitwise_not),
    UNARY_KERNEL("Not", prepare_not),
    UNARY_KERNEL("IsNaN", prepare_is_nan),
    UNARY_KERNEL("IsInf", prepare_is_inf),
    {0},
};
