// SPDX-License-Identifier: Apache-2.0
// Comparisons and logic of two broadcast inputs: Equal, Less, LessOrEqual, Greater, GreaterOrEqual, And, Or,
// Xor. The result is BOOL.
#include <string.h>

#include "cpu/common/binary.h"

#define COMPARE_ROWS(t, T, W)                          \
  CPU_BINARY_ROW(, equal_##t, T, uint8_t, x == y)      \
  CPU_BINARY_ROW(, less_##t, T, uint8_t, x < y)        \
  CPU_BINARY_ROW(, less_equal_##t, T, uint8_t, x <= y) \
  CPU_BINARY_ROW(, greater_##t, T, uint8_t, x > y)     \
  CPU_BINARY_ROW(, greater_equal_##t, T, uint8_t, x >= y)

CPU_INTEGER_TYPES(COMPARE_ROWS)
COMPARE_ROWS(f32, float, float)
COMPARE_ROWS(f64, double, double)
CPU_BINARY_ROW(, equal_bool, uint8_t, uint8_t, (x != 0) == (y != 0))
CPU_BINARY_ROW(, and_bool, uint8_t, uint8_t, (x != 0) & (y != 0))
CPU_BINARY_ROW(, or_bool, uint8_t, uint8_t, (x | y) != 0)
CPU_BINARY_ROW(, xor_bool, uint8_t, uint8_t, (x != 0) != (y != 0))

typedef const char *text_t;

static inline bool same_text(text_t x, text_t y) {
  return x == y || (x != NULL && y != NULL && strcmp(x, y) == 0);
}

CPU_BINARY_ROW(, equal_string, text_t, uint8_t, same_text(x, y))

static const cpu_row_fn_t equal_rows[CPU_DTYPE_COUNT] = {
    CPU_NUMBER_ROWS(equal), [CLEAVE_DTYPE_BOOL] = equal_bool, [CLEAVE_DTYPE_STRING] = equal_string};
static const cpu_row_fn_t less_rows[CPU_DTYPE_COUNT] = {CPU_NUMBER_ROWS(less)};
static const cpu_row_fn_t less_equal_rows[CPU_DTYPE_COUNT] = {CPU_NUMBER_ROWS(less_equal)};
static const cpu_row_fn_t greater_rows[CPU_DTYPE_COUNT] = {CPU_NUMBER_ROWS(greater)};
static const cpu_row_fn_t greater_equal_rows[CPU_DTYPE_COUNT] = {CPU_NUMBER_ROWS(greater_equal)};
static const cpu_row_fn_t and_rows[CPU_DTYPE_COUNT] = {[CLEAVE_DTYPE_BOOL] = and_bool};
static const cpu_row_fn_t or_rows[CPU_DTYPE_COUNT] = {[CLEAVE_DTYPE_BOOL] = or_bool};
static const cpu_row_fn_t xor_rows[CPU_DTYPE_COUNT] = {[CLEAVE_DTYPE_BOOL] = xor_bool};

/* X(operator, name of its rows) */
#define OPS(X)                     \
  X(Equal, equal)                  \
  X(Less, less)                    \
  X(LessOrEqual, less_equal)       \
  X(Greater, greater)              \
  X(GreaterOrEqual, greater_equal) \
  X(And, and)                      \
  X(Or, or)                        \
  X(Xor, xor)

#define PREPARE(name, rows)                                                                               \
  static cleave_status_t prepare_##rows(cpu_prepare_t *prepare, void *state, cleave_message_t *message) { \
    return cpu_binary_prepare(prepare, state, rows##_rows, true, message);                                \
  }

OPS(PREPARE)

/* The output may lie over an input only if both have elements of one byte, which the program checks. */
#define KERNEL(name, rows)                   \
  {.op = #name,                              \
   .state_size = sizeof(cpu_binary_state_t), \
   .prepare = prepare_##rows,                \
   .run = cpu_binary_run,                    \
   .inplace = 3,                             \
   .required_inputs = 2},

const cpu_kernel_t cpu_kernels_compare[] = {
    OPS(KERNEL){0},
};
