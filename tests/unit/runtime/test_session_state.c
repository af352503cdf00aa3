// SPDX-License-Identifier: Apache-2.0
// Outputs that are inputs of the next run.
#include "plan_case.h"
#include "session_case.h"
#include "unit.h"

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})
#define NONE CLEAVE_VALUE_NONE

/* A session over values of float32 2x2. The first input is 1, 2, 3, 4, the second 10, 20, 30, 40. */
static session_case_t from_text(const char *text) {
  session_case_t c = {.graph = plan_case_graph(text)};
  for (size_t k = 0; k < c.graph->inputs.count; k++) {
    float unit = k == 0 ? 1.0f : 10.0f;
    session_case_feed(&c, 2, DIMS(2, 2), (const float[]){unit, 2 * unit, 3 * unit, 4 * unit});
  }
  session_case_compile(&c, NULL);
  return c;
}

static void run_and_expect(session_case_t *c, uint32_t output, const float expected[4]) {
  unit_ok(cleave_session_run(c->session, e));
  for (int64_t k = 0; k < 4; k++) {
    ck_assert_float_eq(session_case_value(c, output, k), expected[k]);
  }
}

UNIT_TEST(an_output_is_the_input_of_the_next_run) {
  session_case_t c = from_text("a = Add(x, y); b = Neg(a); -> a, b");
  unit_ok(cleave_session_feed(c.session, 0, 1, e));
  run_and_expect(&c, 0, (const float[]){11, 22, 33, 44});
  run_and_expect(&c, 0, (const float[]){12, 24, 36, 48});
  run_and_expect(&c, 1, (const float[]){-13, -26, -39, -52});
  session_case_deinit(&c);
}

/* Also through steps that read the state more than once, and one that makes it before others have read it. */
UNIT_TEST(the_state_of_before_is_there_for_all_readers) {
  session_case_t c = from_text("a = Add(y, x); b = Mul(y, x); d = Add(b, a); -> a, d");
  unit_ok(cleave_session_feed(c.session, 0, 1, e));
  run_and_expect(&c, 1, (const float[]){21, 62, 123, 204});
  run_and_expect(&c, 1, (const float[]){23, 68, 135, 224});
  run_and_expect(&c, 0, (const float[]){13, 26, 39, 52});
  session_case_deinit(&c);
}

UNIT_TEST(two_states_may_change_places) {
  session_case_t c = from_text("a = Neg(x); b = Neg(y); -> a, b");
  unit_ok(cleave_session_feed(c.session, 0, 1, e));
  unit_ok(cleave_session_feed(c.session, 1, 0, e));
  run_and_expect(&c, 0, (const float[]){-1, -2, -3, -4});
  run_and_expect(&c, 0, (const float[]){10, 20, 30, 40});
  run_and_expect(&c, 1, (const float[]){-10, -20, -30, -40});
  session_case_deinit(&c);
}

UNIT_TEST(a_state_can_be_set_anew) {
  session_case_t c = from_text("a = Add(x, y); -> a");
  unit_ok(cleave_session_feed(c.session, 0, 1, e));
  run_and_expect(&c, 0, (const float[]){11, 22, 33, 44});
  cleave_tensor_view_t zero = c.views[1];
  static const float NOTHING[4] = {0};
  zero.data = NOTHING;
  unit_ok(cleave_session_set_input(c.session, 1, &zero, e));
  run_and_expect(&c, 0, (const float[]){1, 2, 3, 4});
  run_and_expect(&c, 0, (const float[]){2, 4, 6, 8});
  session_case_deinit(&c);
}

UNIT_TEST(an_input_may_be_handed_through) {
  session_case_t c = from_text("a = Add(x, y); -> y, a");
  unit_ok(cleave_session_feed(c.session, 0, 1, e));
  run_and_expect(&c, 1, (const float[]){11, 22, 33, 44});
  run_and_expect(&c, 1, (const float[]){11, 22, 33, 44});
  session_case_deinit(&c);
}

UNIT_TEST(what_cannot_be_fed_is_refused) {
  session_case_t c = session_case_create();
  cleave_value_t x = session_case_input(&c, "x", CLEAVE_DTYPE_F32, 2, DIMS(2, 2));
  cleave_value_t w = session_case_input(&c, "w", CLEAVE_DTYPE_F32, 2, DIMS(2, 3));
  session_case_output(&c, session_case_node(&c, "MatMul", "m", x, w, NONE));
  session_case_output(&c, session_case_node(&c, "Neg", "n", x, NONE, NONE));
  session_case_feed(&c, 2, DIMS(2, 2), (const float[]){1, 2, 3, 4});
  session_case_feed(&c, 2, DIMS(2, 3), (const float[]){1, 2, 3, 4, 5, 6});
  session_case_compile(&c, NULL);
  unit_fails_with(cleave_session_feed(c.session, 0, 0, e), CLEAVE_ERROR_SHAPE,
                  "output 0 cannot feed input 0: it is float32[2, 3], the input float32[2, 2]");
  unit_fails_with(cleave_session_feed(c.session, 2, 0, e), CLEAVE_ERROR_INVALID_ARGUMENT,
                  "output 2 cannot feed input 0: the model has 2 outputs and 2 inputs");
  unit_ok(cleave_session_feed(c.session, 0, 1, e));
  unit_fails_with(cleave_session_feed(c.session, 0, 1, e), CLEAVE_ERROR_INVALID_ARGUMENT,
                  "output 0 cannot feed input 1: one of them is fed already");
  float memory[6];
  cleave_tensor_view_t view = {
      .size = sizeof view, .dtype = CLEAVE_DTYPE_F32, .rank = 2, .dims = DIMS(2, 3), .data = memory};
  unit_fails_with(cleave_session_set_output(c.session, 0, &view, CLEAVE_REQUEST_WRITE, e),
                  CLEAVE_ERROR_INVALID_ARGUMENT, "output 0 feeds an input, so its memory cannot be changed");
  float own[4];
  cleave_tensor_view_t square = {
      .size = sizeof square, .dtype = CLEAVE_DTYPE_F32, .rank = 2, .dims = DIMS(2, 2), .data = own};
  unit_ok(cleave_session_set_output(c.session, 1, &square, CLEAVE_REQUEST_WRITE, e));
  unit_fails_with(cleave_session_feed(c.session, 1, 0, e), CLEAVE_ERROR_INVALID_ARGUMENT,
                  "output 1 cannot feed input 0: it has memory of the user, or another request");
  session_case_deinit(&c);
}

UNIT_SUITE("session_state")
