// SPDX-License-Identifier: Apache-2.0
// Sessions: shapes bound by inputs, and shapes that depend on data.
#include "session_case.h"
#include "unit.h"

#define NONE CLEAVE_VALUE_NONE
#define DIMS(...) ((const int64_t[]){__VA_ARGS__})
#define FLOATS(...) ((const float[]){__VA_ARGS__})
#define INTS(...) ((const int64_t[]){__VA_ARGS__})

UNIT_TEST(symbols_are_bound_by_the_inputs) {
  session_case_t c = session_case_symbolic();
  session_case_feed(&c, 2, DIMS(2, 3), FLOATS(1, 2, 3, 4, 5, 6));
  session_case_feed(&c, 2, DIMS(2, 3), FLOATS(1, 1, 1, 1, 1, 1));
  session_case_compile(&c, NULL);
  session_case_run(&c);
  ck_assert_int_eq(session_case_view(&c, 0).rank, 2);
  ck_assert_int_eq(session_case_view(&c, 0).dims[0], 2);
  ck_assert_float_eq(session_case_value(&c, 0, 5), 7.0f);
  /* Sizes are known now: the chain of shapes is folded, the reshapes are no steps. */
  ck_assert_uint_eq(cleave_session_step_count(c.session), 1);
  ck_assert_ptr_ne(cleave_session_graph(c.session), c.graph);
  ck_assert(cleave_dim_is_symbolic(cleave_graph_value(c.graph, c.graph->inputs.items[0])->dims[0]));
  session_case_deinit(&c);
}

UNIT_TEST(symbols_that_one_input_binds_need_not_be_given_for_another) {
  session_case_t c = session_case_symbolic();
  session_case_feed(&c, 2, DIMS(2, 3), FLOATS(1, 2, 3, 4, 5, 6));
  session_case_feed(&c, 2, DIMS(2, 3), FLOATS(1, 1, 1, 1, 1, 1));
  const cleave_tensor_view_t *views[] = {&c.views[0], NULL};
  unit_ok(cleave_session_create_planned(c.graph, NULL, views, 2, NULL, &c.session, e));
  unit_ok(cleave_session_set_input(c.session, 0, &c.views[0], e));
  unit_ok(cleave_session_set_input(c.session, 1, &c.views[1], e));
  session_case_run(&c);
  ck_assert_float_eq(session_case_value(&c, 0, 5), 7.0f);
  session_case_deinit(&c);
}

/* e = a * b + c * d, where only the type of a is known: operands are taken not to broadcast. */
UNIT_TEST(inputs_of_unknown_shape_have_that_of_what_they_are_combined_with) {
  session_case_t c = session_case_create();
  cleave_value_t values[4] = {session_case_input(&c, "a", CLEAVE_DTYPE_F32, 2, DIMS(1, 2))};
  for (int k = 1; k < 4; k++) {
    const char *const names[] = {"a", "b", "c", "d"};
    values[k] = session_case_input(&c, names[k], CLEAVE_DTYPE_UNKNOWN, -1, NULL);
  }
  cleave_value_t ab = session_case_node(&c, "Mul", "ab", values[0], values[1], CLEAVE_VALUE_NONE);
  cleave_value_t cd = session_case_node(&c, "Mul", "cd", values[2], values[3], CLEAVE_VALUE_NONE);
  session_case_output(&c, session_case_node(&c, "Add", "e", ab, cd, CLEAVE_VALUE_NONE));
  for (int k = 0; k < 4; k++) {
    session_case_feed(&c, 2, DIMS(1, 2), FLOATS(1, 3));
  }
  unit_ok(cleave_session_create_planned(c.graph, NULL, NULL, 0, NULL, &c.session, e));
  for (uint32_t k = 0; k < 4; k++) {
    unit_ok(cleave_session_set_input(c.session, k, &c.views[k], e));
  }
  session_case_run(&c);
  ck_assert_float_eq(session_case_value(&c, 0, 0), 2.0f);
  ck_assert_float_eq(session_case_value(&c, 0, 1), 18.0f);
  session_case_deinit(&c);
}

UNIT_TEST(shapes_that_do_not_fit_the_model_are_refused) {
  session_case_t c = session_case_symbolic();
  session_case_feed(&c, 2, DIMS(2, 3), FLOATS(1, 2, 3, 4, 5, 6));
  session_case_feed(&c, 2, DIMS(1, 3), FLOATS(1, 1, 1));
  const cleave_tensor_view_t *views[] = {&c.views[0], &c.views[1]};
  unit_fails(cleave_session_create_planned(c.graph, NULL, views, 2, NULL, &c.session, e), CLEAVE_ERROR_SHAPE,
             "input 'y' (number 1): dimension 0 is 1, but N is 2 by an input before it");
  unit_fails(cleave_session_create_planned(c.graph, NULL, NULL, 0, NULL, &c.session, e), CLEAVE_ERROR_SHAPE,
             "input 'x' (number 0): the size of dimension 0 (N) is unknown; give it");
  unit_fails(cleave_session_create_planned(c.graph, NULL, views, 1, NULL, &c.session, e),
             CLEAVE_ERROR_INVALID_ARGUMENT, "1 input given, the model has 2");
  cleave_tensor_view_t wrong = c.views[0];
  views[0] = &wrong;
  wrong.rank = 1;
  unit_fails(cleave_session_create_planned(c.graph, NULL, views, 2, NULL, &c.session, e), CLEAVE_ERROR_SHAPE,
             "input 'x' (number 0): expected rank 2, found rank 1");
  wrong = c.views[0];
  wrong.dtype = CLEAVE_DTYPE_I64;
  unit_fails(cleave_session_create_planned(c.graph, NULL, views, 2, NULL, &c.session, e), CLEAVE_ERROR_SHAPE,
             "input 'x' (number 0): expected float32, found int64");
  wrong = c.views[0];
  wrong.dims = DIMS(2, 4);
  unit_fails(cleave_session_create_planned(c.graph, NULL, views, 2, NULL, &c.session, e), CLEAVE_ERROR_SHAPE,
             "input 'x' (number 0): dimension 1 is 4, expected 3");
  ck_assert_ptr_null(c.session);
  session_case_deinit(&c);
}

UNIT_TEST(inputs_that_do_not_fit_the_session_are_refused) {
  session_case_t c = session_case_text("a = Neg(x); b = Add(a, y); -> b");
  const cleave_tensor_view_t *views[] = {&c.views[0], &c.views[1]};
  unit_ok(cleave_session_create_planned(c.graph, NULL, views, 2, NULL, &c.session, e));
  cleave_tensor_view_t output;
  unit_fails(cleave_session_output(c.session, 0, &output, e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "output 0: no run has succeeded yet");
  unit_ok(cleave_session_set_input(c.session, 0, &c.views[0], e));
  unit_fails(cleave_session_run(c.session, e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "input 'y' (number 1) is not set");
  unit_fails(cleave_session_set_input(c.session, 2, &c.views[0], e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "input 2: the model has 2 inputs");
  cleave_tensor_view_t wrong = c.views[1];
  wrong.dims = DIMS(2, 3);
  unit_fails(cleave_session_set_input(c.session, 1, &wrong, e), CLEAVE_ERROR_SHAPE,
             "input 'y' (number 1): expected float32[2, 2], found float32[2, 3]");
  wrong = c.views[1];
  wrong.data = NULL;
  unit_fails(cleave_session_set_input(c.session, 1, &wrong, e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "input 1 has no data");
  wrong = c.views[1];
  wrong.memory = 1;
  unit_fails(cleave_session_set_input(c.session, 1, &wrong, e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "input 1: expected a dense tensor in host memory");
  wrong.memory = CLEAVE_MEMORY_HOST;
  wrong.storage = CLEAVE_STORAGE_CSR;
  unit_fails(cleave_session_set_input(c.session, 1, &wrong, e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "input 1: expected a dense tensor in host memory");
  unit_ok(cleave_session_set_input(c.session, 1, &c.views[1], e));
  unit_ok(cleave_session_run(c.session, e));
  unit_fails(cleave_session_output(c.session, 1, &output, e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "output 1: the model has 1 output");
  session_case_deinit(&c);
}

UNIT_TEST(a_reshape_to_a_shape_that_is_an_input_follows_its_data) {
  session_case_t c = session_case_create();
  cleave_value_t x = session_case_input(&c, "x", CLEAVE_DTYPE_F32, 2, DIMS(2, 3));
  cleave_value_t shape = session_case_input(&c, "shape", CLEAVE_DTYPE_I64, 1, DIMS(2));
  cleave_value_t y = session_case_node(&c, "Reshape", "y", x, shape, NONE);
  session_case_output(&c, session_case_node(&c, "Neg", "n", y, NONE, NONE));
  session_case_infer(&c);
  session_case_feed(&c, 2, DIMS(2, 3), FLOATS(1, 2, 3, 4, 5, 6));
  session_case_feed_ints(&c, 1, DIMS(2), INTS(3, 2));
  session_case_compile(&c, NULL);
  static const int64_t shapes[][2] = {{3, 2}, {6, 1}, {-1, 2}, {1, 6}};
  static const int64_t expected[][2] = {{3, 2}, {6, 1}, {3, 2}, {1, 6}};
  for (int k = 0; k < 4; k++) {
    memcpy(c.inputs[1]->data, shapes[k], sizeof shapes[k]);
    session_case_run(&c);
    cleave_tensor_view_t view = session_case_view(&c, 0);
    ck_assert_int_eq(view.rank, 2);
    ck_assert_int_eq(view.dims[0], expected[k][0]);
    ck_assert_int_eq(view.dims[1], expected[k][1]);
    ck_assert_float_eq(session_case_value(&c, 0, 5), -6.0f);
  }
  uint32_t programs = cleave_session_program_count(c.session);
  size_t bytes = cleave_session_memory(c.session).dynamic_bytes;
  for (int k = 0; k < 4; k++) {
    memcpy(c.inputs[1]->data, shapes[k], sizeof shapes[k]);
    session_case_run(&c);
  }
  ck_assert_uint_eq(cleave_session_program_count(c.session), programs);
  ck_assert_uint_eq(cleave_session_memory(c.session).dynamic_bytes, bytes);
  memcpy(c.inputs[1]->data, INTS(4, 2), 16);
  unit_fails_with(cleave_session_run(c.session, e), CLEAVE_ERROR_SHAPE, "y");
  cleave_tensor_view_t output;
  ck_assert_int_ne(cleave_session_output(c.session, 0, &output, NULL), CLEAVE_OK);
  memcpy(c.inputs[1]->data, INTS(2, 3), 16);
  session_case_run(&c); /* a failed run leaves the session usable */
  session_case_deinit(&c);
}

UNIT_TEST(shapes_that_depend_on_data_flow_downstream) {
  session_case_t c = session_case_create();
  cleave_value_t x = session_case_input(&c, "x", CLEAVE_DTYPE_F32, 1, DIMS(6));
  cleave_value_t twice = session_case_node(&c, "Add", "twice", x, x, NONE);
  cleave_value_t places = session_case_node(&c, "NonZero", "places", twice, NONE, NONE);
  cleave_value_t flipped = session_case_node(&c, "Transpose", "flipped", places, NONE, NONE);
  cleave_value_t found = session_case_node(&c, "GatherND", "found", twice, flipped, NONE);
  session_case_output(&c, session_case_node(&c, "Neg", "n", found, NONE, NONE));
  session_case_infer(&c);
  session_case_feed(&c, 1, DIMS(6), FLOATS(1, 0, 2, 0, 0, 3));
  session_case_partition(&c, "Add,NonZero,Transpose,GatherND,Neg", "cpu");
  session_case_compile(&c, NULL);
  ck_assert_uint_eq(cleave_session_note_count(c.session), 1);
  ck_assert_str_eq(
      cleave_session_note(c.session, 0),
      "region 'island_0': its nodes run one by one on cpu, not as a whole: shapes of node 'places' are "
      "known only at run time");
  session_case_run(&c);
  ck_assert_int_eq(session_case_view(&c, 0).dims[0], 3);
  ck_assert_float_eq(session_case_value(&c, 0, 2), -6.0f);
  memcpy(c.inputs[0]->data, FLOATS(1, 2, 3, 4, 5, 6), 24);
  session_case_run(&c);
  ck_assert_int_eq(session_case_view(&c, 0).dims[0], 6);
  ck_assert_float_eq(session_case_value(&c, 0, 5), -12.0f);
  memset(c.inputs[0]->data, 0, 24);
  session_case_run(&c);
  ck_assert_int_eq(session_case_view(&c, 0).dims[0], 0);
  session_case_deinit(&c);
}

UNIT_SUITE("session shapes")
