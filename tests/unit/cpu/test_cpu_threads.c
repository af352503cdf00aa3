// SPDX-License-Identifier: Apache-2.0
// Kernels of the reference backend on tensors large enough to be shared between threads. The host of the
// tests runs the shares one after the other, the last one first, so that every element is checked whatever
// the order.
#include "op_case.h"
#include "unit.h"
#include "view_builder.h"

enum { ROWS = 600, COLUMNS = 701 };

static const int64_t whole[] = {ROWS, COLUMNS};
static op_backend_t cpu;
static float data[ROWS * COLUMNS];
static view_builder_t *builder;
static uint32_t input; /* data, as a value of the view */

/* Multiples of 1/64 up to 100/64: sums of them are exact. */
static float element(int64_t row, int64_t column) {
  return (float)((row * 37 + column * 11) % 101) / 64.0f;
}

static void begin(void) {
  cpu = op_backend_cpu();
  for (int64_t k = 0; k < ROWS * COLUMNS; k++) {
    data[k] = element(k / COLUMNS, k % COLUMNS);
  }
  builder = view_builder_create();
  input = view_builder_constant(builder, CLEAVE_DTYPE_F32, 2, whole, data);
}

static void end(void) {
  view_builder_destroy(builder);
  op_backend_destroy(&cpu);
}

/* Adds the one node of a test. */
static uint32_t add_node(const char *op, uint32_t second, cleave_dtype_t dtype, int64_t rows,
                         int64_t columns) {
  uint32_t output = view_builder_value(builder, dtype, 2, (int64_t[]){rows, columns});
  uint32_t count = second == CLEAVE_INDEX_NONE ? 1 : 2;
  uint32_t node = view_builder_node(builder, op, count, (uint32_t[]){input, second}, 1, &output);
  view_builder_output(builder, output);
  return node;
}

/* Runs the node; the result is the test's to destroy. */
static const void *run(view_program_t *program) {
  ck_assert_int_eq(view_program_create(program, cpu.backend, cpu.state, view_builder_region(builder), 4),
                   CLEAVE_OK);
  ck_assert_int_eq(view_program_run(program), CLEAVE_OK);
  return program->outputs[0].data;
}

UNIT_TEST(adds_a_row_and_a_column) {
  for (int axis = 0; axis < 2; axis++) {
    begin();
    int64_t dims[] = {axis == 0 ? 1 : ROWS, axis == 0 ? COLUMNS : 1};
    uint32_t second = view_builder_constant(builder, CLEAVE_DTYPE_F32, 2, dims, data);
    add_node("Add", second, CLEAVE_DTYPE_F32, ROWS, COLUMNS);
    view_program_t program;
    const float *found = run(&program);
    for (int64_t k = 0; k < ROWS * COLUMNS; k++) {
      ck_assert_float_eq(found[k], data[k] + data[axis == 0 ? k % COLUMNS : k / COLUMNS]);
    }
    view_program_destroy(&program);
    end();
  }
}

UNIT_TEST(applies_a_function_to_every_element) {
  begin();
  add_node("Exp", CLEAVE_INDEX_NONE, CLEAVE_DTYPE_F32, ROWS, COLUMNS);
  view_program_t program;
  const float *found = run(&program);
  for (int64_t k = 0; k < ROWS * COLUMNS; k++) {
    ck_assert_int_eq(found[k] == found[0], data[k] == data[0]);
  }
  ck_assert_float_eq_tol(found[0], 1.0f, 1e-6f);
  ck_assert_float_eq_tol(found[1], 1.18752938f, 2e-6f); /* exp(11 / 64) */
  view_program_destroy(&program);
  end();
}

UNIT_TEST(transposes) {
  begin();
  uint32_t node = add_node("Transpose", CLEAVE_INDEX_NONE, CLEAVE_DTYPE_F32, COLUMNS, ROWS);
  view_builder_ints(builder, node, "perm", 2, (int64_t[]){1, 0});
  view_program_t program;
  const float *found = run(&program);
  for (int64_t k = 0; k < ROWS * COLUMNS; k++) {
    ck_assert_float_eq(found[k], element(k % ROWS, k / ROWS));
  }
  view_program_destroy(&program);
  end();
}

UNIT_TEST(casts) {
  begin();
  add_node("Cast", CLEAVE_INDEX_NONE, CLEAVE_DTYPE_I64, ROWS, COLUMNS);
  view_program_t program;
  const int64_t *found = run(&program);
  for (int64_t k = 0; k < ROWS * COLUMNS; k++) {
    ck_assert_int_eq(found[k], (int64_t)data[k]);
  }
  view_program_destroy(&program);
  end();
}

UNIT_TEST(gathers_rows) {
  begin();
  int64_t indices[ROWS];
  for (int64_t k = 0; k < ROWS; k++) {
    indices[k] = k * 7 % ROWS - (k % 2 == 0 ? ROWS : 0);
  }
  uint32_t second = view_builder_constant(builder, CLEAVE_DTYPE_I64, 1, whole, indices);
  add_node("Gather", second, CLEAVE_DTYPE_F32, ROWS, COLUMNS);
  view_program_t program;
  const float *found = run(&program);
  for (int64_t k = 0; k < ROWS * COLUMNS; k++) {
    ck_assert_float_eq(found[k], element(k / COLUMNS * 7 % ROWS, k % COLUMNS));
  }
  view_program_destroy(&program);
  end();
}

/* Sum of a row (axis 1) or a column (axis 0). */
static double line_sum(int64_t axis, int64_t line, int64_t length) {
  double sum = 0;
  for (int64_t k = 0; k < length; k++) {
    sum += (double)(axis == 1 ? element(line, k) : element(k, line));
  }
  return sum;
}

UNIT_TEST(reduces_and_scans) {
  static const char *const ops[] = {"ReduceSum", "CumSum"};
  for (int n = 0; n < 2; n++) {
    for (int64_t axis = 0; axis < 2; axis++) {
      begin();
      bool is_reduction = n == 0;
      int64_t rows = is_reduction && axis == 0 ? 1 : ROWS;
      int64_t columns = is_reduction && axis == 1 ? 1 : COLUMNS;
      uint32_t second =
          view_builder_constant(builder, CLEAVE_DTYPE_I64, is_reduction ? 1 : 0, (int64_t[]){1}, &axis);
      add_node(ops[n], second, CLEAVE_DTYPE_F32, rows, columns);
      view_program_t program;
      const float *found = run(&program);
      for (int64_t k = 0; k < rows * columns; k += is_reduction ? 1 : 97) {
        int64_t row = k / columns;
        int64_t column = k % columns;
        int64_t line = axis == 1 ? row : column;
        int64_t length = is_reduction ? (axis == 1 ? COLUMNS : ROWS) : (axis == 1 ? column : row) + 1;
        ck_assert_float_eq(found[k], (float)line_sum(axis, line, length));
      }
      view_program_destroy(&program);
      end();
    }
  }
}

UNIT_TEST(finds_maxima) {
  begin();
  uint32_t node = add_node("ArgMax", CLEAVE_INDEX_NONE, CLEAVE_DTYPE_I64, ROWS, 1);
  view_builder_int(builder, node, "axis", 1);
  view_program_t program;
  const int64_t *found = run(&program);
  for (int64_t row = 0; row < ROWS; row++) {
    int64_t best = 0;
    for (int64_t column = 1; column < COLUMNS; column++) {
      best = element(row, column) > element(row, best) ? column : best;
    }
    ck_assert_int_eq(found[row], best);
  }
  view_program_destroy(&program);
  end();
}

UNIT_SUITE("cpu_threads")
