// SPDX-License-Identifier: Apache-2.0
// What TopK makes of rows of all lengths: as many kernels as there are ways to go, with blocks for all rows,
// and indices of 64 bits where elements need them.
#include "cuda/emit/emit.h"
#include "unit.h"

enum { NUMBERS = 7 /* of a kernel's arguments, behind its pointers */ };

static const cleave_region_view_t nothing = {.size = CLEAVE_REGION_VIEW_SIZE_REQUIRED};

typedef struct shape {
  int64_t rows, length, keep;
} shape_t;

/* A dry plan for rows of floats; slots 0, 1 and 2 are these, values and indices. */
static cuda_plan_t order_of(shape_t shape) {
  cleave_message_t message = {.text = ""};
  cuda_plan_t plan;
  cuda_order_t order = {.label = "TopK",
                        .dtype = CLEAVE_DTYPE_F32,
                        .is_largest = true,
                        .rows = shape.rows,
                        .inner = 1,
                        .length = shape.length,
                        .keep = shape.keep};
  unit_ok(cuda_plan_init(&plan, &nothing, (cuda_plan_options_t){.is_dry = true}, &message));
  unit_ok(cuda_plan_scratch(&plan, 4 * shape.rows * shape.length, &order.from));
  unit_ok(cuda_plan_scratch(&plan, 4 * shape.rows * shape.keep, &order.values));
  unit_ok(cuda_plan_scratch(&plan, 8 * shape.rows * shape.keep, &order.indices));
  cleave_status_t status = cuda_emit_order(&plan, &order);
  ck_assert_msg(status == CLEAVE_OK, "%s", message.text);
  return plan;
}

/* Each kernel reads the elements, and what the one before made; the last one alone writes the result. */
static void expect_chain(const cuda_plan_t *plan, uint32_t kernels) {
  ck_assert_uint_eq(plan->step_count, kernels);
  for (uint32_t k = 0; k < kernels; k++) {
    const cuda_step_t *step = &plan->steps[k];
    bool is_last = k + 1 == kernels;
    uint32_t own = k > 0 ? 2 : 1; /* the first pointer behind those that it reads */
    ck_assert_uint_eq(step->pointer_count, own + (is_last ? 2 : 1));
    ck_assert_uint_eq(step->pointers[0].slot, 0);
    ck_assert(k == 0 || step->pointers[1].slot == plan->steps[k - 1].pointers[k > 1 ? 2 : 1].slot);
    ck_assert(!is_last || (step->pointers[own].slot == 1 && step->pointers[own + 1].slot == 2));
    ck_assert(is_last || step->pointers[own].slot > 2);
  }
}

static void expect_kernels(shape_t shape, uint32_t kernels, uint32_t first_grid) {
  cuda_plan_t plan = order_of(shape);
  expect_chain(&plan, kernels);
  ck_assert(kernels == 0 || plan.steps[0].grid == first_grid);
  cuda_plan_deinit(&plan);
}

UNIT_TEST(short_rows_are_sorted_several_in_a_block) {
  expect_kernels((shape_t){100, 1, 1}, 1, 1);
  expect_kernels((shape_t){100, 8, 2}, 1, 2);
  expect_kernels((shape_t){5, 300, 300}, 1, 5);
  expect_kernels((shape_t){5, 1024, 10}, 1, 5);
  expect_kernels((shape_t){0, 1024, 10}, 0, 0);
  expect_kernels((shape_t){5, 1024, 0}, 0, 0);
}

UNIT_TEST(few_elements_of_long_rows_are_selected_chunk_by_chunk) {
  expect_kernels((shape_t){3, 4096, 10}, 1, 3);
  expect_kernels((shape_t){3, 4097, 10}, 2, 6);
  expect_kernels((shape_t){1, 300000, 100}, 3, 74);
  expect_kernels((shape_t){1, 300000, 1024}, 3, 37);
}

UNIT_TEST(many_elements_of_long_rows_come_out_of_runs_that_are_merged) {
  expect_kernels((shape_t){1, 2000, 1500}, 1, 1);
  expect_kernels((shape_t){2, 4096, 1025}, 2, 4);
  expect_kernels((shape_t){1, 10000, 10000}, 4, 5);
}

UNIT_TEST(indices_have_64_bits_where_they_need_them) {
  const shape_t shapes[2] = {{1, 3000, 10}, {1, INT64_C(3000000000), 10}};
  for (int k = 0; k < 2; k++) {
    cuda_plan_t plan = order_of(shapes[k]);
    const cuda_step_t *step = &plan.steps[0];
    uint32_t size = k == 0 ? 4 : 8;
    ck_assert_uint_eq(step->argument_bytes, 8 * step->pointer_count + (NUMBERS * size + 7) / 8 * 8);
    cuda_plan_deinit(&plan);
  }
}

UNIT_SUITE("cuda_order")
