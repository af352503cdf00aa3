// SPDX-License-Identifier: Apache-2.0
// What becomes of outputs: the user's memory, written without a copy where that can be, adding, outputs that
// nobody wants; and options of runs.
#include "cleave/half.h"
#include "device_case.h"
#include "ops/attribute_view.h"
#include "plan_case.h"
#include "session_case.h"
#include "tensor/dtype.h"
#include "unit.h"

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})
#define NONE CLEAVE_VALUE_NONE

/* Compiled. */
static session_case_t from_text(const char *text) {
  session_case_t c = session_case_text(text);
  session_case_compile(&c, NULL);
  return c;
}

static cleave_tensor_view_t floats(void *data) {
  static const int64_t TWO[2] = {2, 2};
  return (cleave_tensor_view_t){
      .size = sizeof(cleave_tensor_view_t), .dtype = CLEAVE_DTYPE_F32, .rank = 2, .dims = TWO, .data = data};
}

static void set(session_case_t *c, uint32_t index, void *data, cleave_request_t request) {
  cleave_tensor_view_t view = floats(data);
  unit_ok(cleave_session_set_output(c->session, index, data == NULL ? NULL : &view, request, e));
}

// ---- the user's memory ----

UNIT_TEST(an_output_is_written_to_the_users_memory_by_its_step) {
  _Alignas(64) float memory[4] = {0};
  session_case_t c = from_text("a = Neg(x); b = Exp(a); d = Neg(b); -> d");
  const void *own = NULL;
  session_case_run(&c);
  own = session_case_view(&c, 0).data;
  set(&c, 0, memory, CLEAVE_REQUEST_WRITE);
  session_case_run(&c);
  ck_assert_ptr_eq(session_case_view(&c, 0).data, memory);
  ck_assert_float_eq(memory[0], ((const float *)own)[0]);
  ((float *)c.inputs[0]->data)[0] = 0.0f;
  session_case_run(&c);
  ck_assert_float_eq(memory[0], -1.0f);
  ck_assert_float_ne(((const float *)own)[0], -1.0f); /* nothing was written there any more */
  set(&c, 0, NULL, CLEAVE_REQUEST_WRITE);
  memory[0] = 77.0f;
  session_case_run(&c);
  ck_assert_ptr_eq(session_case_view(&c, 0).data, own);
  ck_assert_float_eq(session_case_value(&c, 0, 0), -1.0f);
  ck_assert_float_eq(memory[0], 77.0f);
  session_case_deinit(&c);
}

UNIT_TEST(memory_of_any_alignment_and_outputs_that_share_a_value_are_copied) {
  _Alignas(64) char memory[3][64];
  session_case_t c = from_text("a = Neg(x); -> a, a, x, #2.5");
  set(&c, 0, memory[0] + 1, CLEAVE_REQUEST_WRITE);
  set(&c, 1, memory[1], CLEAVE_REQUEST_WRITE);
  set(&c, 2, memory[2], CLEAVE_REQUEST_WRITE);
  for (int run = 0; run < 2; run++) {
    float found[4];
    memset(memory, 0, sizeof memory);
    session_case_run(&c);
    memcpy(found, memory[0] + 1, sizeof found);
    ck_assert_float_eq(found[3], -4.0f);
    memcpy(found, memory[1], sizeof found);
    ck_assert_float_eq(found[2], -3.0f);
    memcpy(found, memory[2], sizeof found);
    ck_assert_float_eq(found[1], 2.0f); /* an input that is handed through */
    ck_assert_ptr_eq(session_case_view(&c, 2).data, memory[2]);
    ck_assert_float_eq(session_case_value(&c, 3, 0), 2.5f);
  }
  session_case_deinit(&c);
}

UNIT_TEST(steps_that_read_an_output_read_the_users_memory) {
  _Alignas(64) float memory[2][4];
  session_case_t c = session_case_create();
  cleave_value_t x = session_case_input(&c, "x", CLEAVE_DTYPE_F32, 2, DIMS(2, 2));
  cleave_value_t a = session_case_node(&c, "Neg", "a", x, NONE, NONE);
  cleave_value_t shape = session_case_ints(&c, "shape", 1, DIMS(4));
  cleave_value_t flat = session_case_node(&c, "Reshape", "flat", a, shape, NONE);
  session_case_output(&c, a);
  session_case_output(&c, flat);
  session_case_output(&c, session_case_node(&c, "Exp", "e", flat, NONE, NONE));
  session_case_infer(&c);
  session_case_feed(&c, 2, DIMS(2, 2), (const float[]){1, 2, 3, 4});
  session_case_compile(&c, NULL);
  cleave_tensor_view_t view = floats(memory[1]);
  set(&c, 0, memory[0], CLEAVE_REQUEST_WRITE);
  view.rank = 1;
  view.dims = DIMS(4);
  unit_ok(cleave_session_set_output(c.session, 1, &view, CLEAVE_REQUEST_WRITE, e));
  session_case_run(&c);
  ck_assert_float_eq(memory[0][3], -4.0f);
  ck_assert_float_eq(memory[1][3], -4.0f);
  ck_assert_float_eq_tol(session_case_value(&c, 2, 0), 0.36787944f, 1e-6f);
  session_case_deinit(&c);
}

UNIT_TEST(a_run_into_the_users_memory_allocates_nothing) {
  _Alignas(64) float memory[4];
  session_case_t c = from_text("a = Neg(x); -> a, x");
  set(&c, 0, memory, CLEAVE_REQUEST_WRITE);
  set(&c, 1, (char *)memory + 0, CLEAVE_REQUEST_NONE);
  session_case_run(&c);
  (void)cleave_memory_fail_after(-1);
  ck_assert_int_eq(cleave_session_run(c.session, NULL), CLEAVE_OK);
  ck_assert_int_eq(cleave_memory_fail_after(-1), 0);
  session_case_deinit(&c);
}

UNIT_TEST(outputs_that_do_not_fit_are_refused) {
  _Alignas(64) float memory[4] = {0};
  session_case_t c = from_text("a = Neg(x); b = Abs(x); -> a, b");
  cleave_tensor_view_t view = floats(memory);
  unit_fails(cleave_session_set_output(c.session, 2, &view, CLEAVE_REQUEST_WRITE, e),
             CLEAVE_ERROR_INVALID_ARGUMENT, "output 2: the model has 2 outputs");
  view.dtype = CLEAVE_DTYPE_F64;
  unit_fails(cleave_session_set_output(c.session, 0, &view, CLEAVE_REQUEST_WRITE, e), CLEAVE_ERROR_SHAPE,
             "output 0 is float32[2, 2], the memory that is given is for float64[2, 2]");
  view = floats(memory);
  view.dims = DIMS(2, 3);
  unit_fails(cleave_session_set_output(c.session, 0, &view, CLEAVE_REQUEST_WRITE, e), CLEAVE_ERROR_SHAPE,
             "output 0 is float32[2, 2], the memory that is given is for float32[2, 3]");
  view = floats(NULL);
  unit_fails(cleave_session_set_output(c.session, 0, &view, CLEAVE_REQUEST_WRITE, e),
             CLEAVE_ERROR_INVALID_ARGUMENT, "output 0: no memory is given");
  unit_fails(cleave_session_set_output(c.session, 0, NULL, CLEAVE_REQUEST_ADD, e),
             CLEAVE_ERROR_INVALID_ARGUMENT, "output 0: no memory is given to add to");
  unit_fails(cleave_session_set_output(c.session, 0, NULL, (cleave_request_t)9, e),
             CLEAVE_ERROR_INVALID_ARGUMENT, "output 0: request 9 is unknown");
  session_case_run(&c);
  session_case_deinit(&c);
}

UNIT_TEST(truth_values_are_not_added) {
  bool memory[2] = {false, true};
  session_case_t c = session_case_create();
  cleave_value_t x = session_case_input(&c, "x", CLEAVE_DTYPE_BOOL, 1, DIMS(2));
  session_case_output(&c, session_case_node(&c, "Not", "n", x, NONE, NONE));
  session_case_infer(&c);
  unit_ok(cleave_session_create_planned(c.graph, NULL, NULL, 0, NULL, &c.session, e));
  cleave_tensor_view_t view = {
      .size = sizeof view, .dtype = CLEAVE_DTYPE_BOOL, .rank = 1, .dims = DIMS(2), .data = memory};
  unit_fails(cleave_session_set_output(c.session, 0, &view, CLEAVE_REQUEST_ADD, e),
             CLEAVE_ERROR_INVALID_ARGUMENT, "output 0: values of bool are not added");
  session_case_deinit(&c);
}

UNIT_TEST(an_output_whose_shape_depends_on_data_has_to_come_out_as_the_memory_is) {
  int64_t memory[3] = {-1, -1, -1};
  session_case_t c = session_case_create();
  cleave_value_t x = session_case_input(&c, "x", CLEAVE_DTYPE_F32, 1, DIMS(6));
  session_case_output(&c, session_case_node(&c, "NonZero", "n", x, NONE, NONE));
  session_case_infer(&c);
  session_case_feed(&c, 1, DIMS(6), (const float[]){1, 0, 2, 0, 0, 3});
  session_case_compile(&c, NULL);
  cleave_tensor_view_t view = {
      .size = sizeof view, .dtype = CLEAVE_DTYPE_I64, .rank = 2, .dims = DIMS(1, 3), .data = memory};
  unit_ok(cleave_session_set_output(c.session, 0, &view, CLEAVE_REQUEST_WRITE, e));
  session_case_run(&c);
  ck_assert_int_eq(memory[0], 0);
  ck_assert_int_eq(memory[2], 5);
  memset(c.inputs[0]->data, 0, 6 * sizeof(float));
  unit_fails(cleave_session_run(c.session, e), CLEAVE_ERROR_SHAPE,
             "output 0 is int64[1, 0], the memory that is given is for int64[1, 3]");
  session_case_deinit(&c);
}

// ---- adding ----

UNIT_TEST(adding_leaves_what_was_there_and_other_outputs_alone) {
  _Alignas(64) float memory[2][4] = {{100, 100, 100, 100}, {7, 7, 7, 7}};
  /* The chain would be computed in the output's own memory. */
  session_case_t c = from_text("a = Neg(x); b = Abs(a); d = Neg(b); -> d, b");
  set(&c, 0, memory[0], CLEAVE_REQUEST_ADD);
  session_case_run(&c);
  session_case_run(&c);
  ck_assert_float_eq(memory[0][0], 98.0f);
  ck_assert_float_eq(memory[0][3], 92.0f);
  ck_assert_ptr_eq(session_case_view(&c, 0).data, memory[0]);
  set(&c, 0, memory[0], CLEAVE_REQUEST_WRITE);
  session_case_run(&c);
  ck_assert_float_eq(memory[0][3], -4.0f);
  ck_assert_float_eq(memory[1][0], 7.0f);
  session_case_deinit(&c);
}

/* One Neg of `dtype` whose output, of 70 values, is added to memory at an odd address. */
static void check_adding(cleave_dtype_t dtype, const void *one, const void *minus_one, const void *sum) {
  enum { COUNT = 70 };
  static char memory[COUNT * 8 + 1];
  size_t size = cleave_dtype_size(dtype);
  session_case_t c = session_case_create();
  cleave_value_t x = session_case_input(&c, "x", dtype, 1, DIMS(COUNT));
  session_case_output(&c, session_case_node(&c, "Identity", "n", x, NONE, NONE));
  session_case_infer(&c);
  cleave_tensor_t *tensor = NULL;
  unit_ok(cleave_tensor_create(dtype, 1, DIMS(COUNT), &tensor, e));
  for (size_t k = 0; k < COUNT; k++) {
    memcpy((char *)tensor->data + k * size, one, size);
    memcpy(memory + 1 + k * size, minus_one, size);
  }
  cleave_tensor_view_t input = cleave_tensor_view(tensor);
  const cleave_tensor_view_t *inputs[] = {&input};
  unit_ok(cleave_session_create_planned(c.graph, NULL, inputs, 1, NULL, &c.session, e));
  unit_ok(cleave_session_set_input(c.session, 0, &input, e));
  cleave_tensor_view_t view = {
      .size = sizeof view, .dtype = dtype, .rank = 1, .dims = DIMS(COUNT), .data = memory + 1};
  unit_ok(cleave_session_set_output(c.session, 0, &view, CLEAVE_REQUEST_ADD, e));
  session_case_run(&c);
  for (size_t k = 0; k < COUNT; k++) {
    ck_assert_mem_eq(memory + 1 + k * size, sum, size);
  }
  cleave_tensor_release(tensor);
  session_case_deinit(&c);
}

UNIT_TEST(every_type_of_numbers_is_added) {
  float f32[3] = {3.5f, -1.25f, 2.25f};
  check_adding(CLEAVE_DTYPE_F32, &f32[0], &f32[1], &f32[2]);
  double f64[3] = {3.5, -1.25, 2.25};
  check_adding(CLEAVE_DTYPE_F64, &f64[0], &f64[1], &f64[2]);
  uint16_t half[3];
  uint16_t brain[3];
  for (int k = 0; k < 3; k++) {
    half[k] = cleave_float_to_half(f32[k]);
    brain[k] = cleave_float_to_bfloat(f32[k]);
  }
  check_adding(CLEAVE_DTYPE_F16, &half[0], &half[1], &half[2]);
  check_adding(CLEAVE_DTYPE_BF16, &brain[0], &brain[1], &brain[2]);
  int8_t i8[3] = {100, -30, 70};
  check_adding(CLEAVE_DTYPE_I8, &i8[0], &i8[1], &i8[2]);
  uint8_t u8[3] = {200, 100, 44}; /* round the corner */
  check_adding(CLEAVE_DTYPE_U8, &u8[0], &u8[1], &u8[2]);
  int16_t i16[3] = {30000, -12345, 17655};
  check_adding(CLEAVE_DTYPE_I16, &i16[0], &i16[1], &i16[2]);
  uint16_t u16[3] = {50000, 15536, 0};
  check_adding(CLEAVE_DTYPE_U16, &u16[0], &u16[1], &u16[2]);
  int32_t i32[3] = {-7, 2, -5};
  check_adding(CLEAVE_DTYPE_I32, &i32[0], &i32[1], &i32[2]);
  uint32_t u32[3] = {4000000000u, 294967296u, 0u};
  check_adding(CLEAVE_DTYPE_U32, &u32[0], &u32[1], &u32[2]);
  int64_t i64[3] = {-7000000000, 2, -6999999998};
  check_adding(CLEAVE_DTYPE_I64, &i64[0], &i64[1], &i64[2]);
  uint64_t u64[3] = {UINT64_MAX, 3, 2};
  check_adding(CLEAVE_DTYPE_U64, &u64[0], &u64[1], &u64[2]);
}

static const char sum_model[] =
    "local x = g.input('x', 'float32', { 8 })\n"
    "g.output('y', g.Relu(x, { name = 'd0a' }))\ng.output('z', g.Neg(x, { name = 'd1b' }))";

UNIT_TEST(a_backend_that_adds_is_asked_to_and_the_session_adds_for_others) {
  static const int64_t EIGHT[1] = {8};
  _Alignas(64) float memory[2][8];
  device_case_load("shared adds"); /* device 0 writes host memory by itself, device 1 is copied from */
  device_case_t c = device_case_create(sum_model, NULL);
  device_case_compile(&c, NULL);
  for (int round = 0; round < 2; round++) {
    for (uint32_t k = 0; k < 2; k++) {
      cleave_tensor_view_t view = {
          .size = sizeof view, .dtype = CLEAVE_DTYPE_F32, .rank = 1, .dims = EIGHT, .data = memory[k]};
      unit_ok(cleave_session_set_output(c.session, k, &view,
                                        round == 0 ? CLEAVE_REQUEST_ADD : CLEAVE_REQUEST_WRITE, e));
    }
    for (int k = 0; k < 8; k++) {
      memory[0][k] = 1000.0f;
      memory[1][k] = 1000.0f;
    }
    device_case_run(&c, 1.0f);
    ck_assert_int_eq(device_case_ask("adds"), 1); /* by the device itself, in the first round */
    float before = round == 0 ? 1000.0f : 0.0f;
    ck_assert_float_eq(memory[0][2], before + 3.0f);
    ck_assert_float_eq(memory[0][3], before);
    ck_assert_float_eq(memory[1][3], before + 4.0f);
  }
  device_case_deinit(&c);
}

UNIT_TEST(an_output_is_of_the_last_run_not_of_one_before_it_was_set) {
  _Alignas(64) float memory[4] = {77.0f};
  cleave_tensor_view_t output;
  session_case_t c = from_text("a = Neg(x); b = Exp(x); -> a, b");
  session_case_run(&c);
  set(&c, 0, NULL, CLEAVE_REQUEST_NONE);
  session_case_run(&c);
  set(&c, 0, NULL, CLEAVE_REQUEST_WRITE);
  unit_fails(cleave_session_output(c.session, 0, &output, e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "output 0: no run has written it since its memory was set");
  unit_ok(cleave_session_output(c.session, 1, &output, e));
  session_case_run(&c);
  unit_ok(cleave_session_output(c.session, 0, &output, e));
  set(&c, 0, memory, CLEAVE_REQUEST_WRITE);
  unit_fails(cleave_session_output(c.session, 0, &output, e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "output 0: no run has written it since its memory was set");
  session_case_run(&c);
  unit_ok(cleave_session_output(c.session, 0, &output, e));
  ck_assert_ptr_eq(output.data, memory);
  session_case_deinit(&c);
}

// ---- outputs that nobody wants ----

UNIT_TEST(what_is_computed_for_an_unwanted_output_alone_is_left_out) {
  device_case_load("");
  device_case_t c = device_case_create(sum_model, NULL);
  device_case_compile(&c, NULL);
  device_case_run(&c, 1.0f);
  ck_assert_int_eq(device_case_ask("runs"), 2);
  unit_ok(cleave_session_set_output(c.session, 0, NULL, CLEAVE_REQUEST_NONE, e));
  device_case_run(&c, 2.0f);
  ck_assert_int_eq(device_case_ask("runs"), 3);
  ck_assert_int_eq(device_case_ask("copies_to"), 3);
  ck_assert_int_eq(device_case_ask("copies_from"), 3);
  ck_assert_float_eq(device_case_value(&c, 1, 0), -2.0f);
  cleave_tensor_view_t output;
  unit_fails(cleave_session_output(c.session, 0, &output, e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "output 0: its request is 'none'");
  unit_ok(cleave_session_set_output(c.session, 0, NULL, CLEAVE_REQUEST_WRITE, e));
  device_case_run(&c, 3.0f);
  device_case_check(&c);
  device_case_deinit(&c);
}

UNIT_TEST(a_backend_that_knows_requests_is_told_which_outputs_nobody_wants) {
  device_case_load("adds events");
  device_case_t c = device_case_create(
      "local x = g.input('x', 'float32', { 8 })\n"
      "local a = g.Relu(x, { name = 'd0a' })\n"
      "g.output('a', a)\ng.output('b', g.Neg(a, { name = 'd0b' }))",
      NULL);
  device_case_compile(&c, NULL);
  unit_ok(cleave_session_set_output(c.session, 0, NULL, CLEAVE_REQUEST_NONE, e));
  device_case_run(&c, 1.0f);
  ck_assert_int_eq(device_case_ask("nones"), 1);
  ck_assert_int_eq(device_case_ask("copies_from"), 1);
  ck_assert_float_eq(device_case_value(&c, 1, 2), -3.0f);
  unit_ok(cleave_session_set_output(c.session, 0, NULL, CLEAVE_REQUEST_WRITE, e));
  device_case_run(&c, 2.0f);
  ck_assert_int_eq(device_case_ask("nones"), 1);
  device_case_check(&c);
  device_case_deinit(&c);
}

UNIT_TEST(what_other_outputs_need_is_computed) {
  session_case_t c = from_text("a = Neg(x); b = Exp(a); d = Neg(b); -> a, b, d");
  set(&c, 0, NULL, CLEAVE_REQUEST_NONE);
  set(&c, 1, NULL, CLEAVE_REQUEST_NONE);
  session_case_run(&c);
  ck_assert_float_eq_tol(session_case_value(&c, 2, 0), -0.36787944f, 1e-6f);
  set(&c, 2, NULL, CLEAVE_REQUEST_NONE);
  session_case_run(&c); /* nothing at all */
  set(&c, 0, NULL, CLEAVE_REQUEST_WRITE);
  session_case_run(&c);
  ck_assert_float_eq(session_case_value(&c, 0, 3), -4.0f);
  session_case_deinit(&c);
}

UNIT_TEST(with_streams_unwanted_outputs_disturb_nothing) {
  device_case_load("events");
  device_case_set("latency_us", 300);
  device_case_t c = device_case_create(
      "local x = g.input('x', 'float32', { 8 })\n"
      "local a = g.Relu(x, { name = 'd0a' })\nlocal b = g.Exp(a)\nlocal d = g.Neg(b, { name = 'd1d' })\n"
      "g.output('a', a)\ng.output('b', g.Tanh(b))\ng.output('d', g.Add(d, a, { name = 'd0e' }))",
      NULL);
  device_case_compile(&c, NULL);
  for (uint32_t mask = 0; mask < 8; mask++) {
    for (uint32_t k = 0; k < 3; k++) {
      cleave_request_t request = (mask >> k & 1) != 0 ? CLEAVE_REQUEST_NONE : CLEAVE_REQUEST_WRITE;
      unit_ok(cleave_session_set_output(c.session, k, NULL, request, e));
    }
    device_case_run(&c, (float)mask * 0.25f);
  }
  for (uint32_t k = 0; k < 3; k++) {
    unit_ok(cleave_session_set_output(c.session, k, NULL, CLEAVE_REQUEST_WRITE, e));
  }
  device_case_run(&c, 1.0f);
  device_case_check(&c);
  device_case_deinit(&c);
}

// ---- options of runs ----

UNIT_TEST(options_of_runs_reach_the_programs_of_their_backend_until_they_are_taken_back) {
  device_case_load("");
  device_case_t c = device_case_create(sum_model, NULL);
  device_case_compile(&c, NULL);
  char key[] = "fail";
  char value[] = "part_0";
  unit_ok(cleave_session_set_run_option(c.session, "device", "other", "1", e));
  unit_ok(cleave_session_set_run_option(c.session, "device", key, value, e));
  key[0] = 'x'; /* copied */
  value[0] = 'x';
  unit_fails(cleave_session_run(c.session, e), CLEAVE_ERROR_BACKEND,
             "region 'part_0' on device:0: the unit caught fire");
  unit_ok(cleave_session_set_run_option(c.session, "device", "fail", "part_1", e));
  unit_fails(cleave_session_run(c.session, e), CLEAVE_ERROR_BACKEND,
             "region 'part_1' on device:1: the unit caught fire");
  unit_ok(cleave_session_set_run_option(c.session, "device", "fail", NULL, e));
  unit_ok(cleave_session_set_run_option(c.session, "device", "fail", NULL, e));
  device_case_run(&c, 1.0f);
  device_case_check(&c);
  unit_fails(cleave_session_set_run_option(c.session, "nobody", "a", "b", e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "the session runs nothing on backend 'nobody': option 'a' has no effect");
  device_case_deinit(&c);
}

UNIT_SUITE("session_outputs")
