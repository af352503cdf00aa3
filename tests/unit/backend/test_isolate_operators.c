// SPDX-License-Identifier: Apache-2.0
// Operators of isolated libraries: the same values as in this process, shapes that only a run tells, and what
// becomes of libraries that misbehave in them.
#include "isolate_case.h"
#include "library_case.h"
#include "unit.h"

#define OPERATORS ISOLATE_HOSTILE("bad_operators")

static const int64_t SHAPE[2] = {2, 3};

UNIT_TEST(operators_are_inferred_and_run_in_a_process_of_their_own) {
  static const float DOUBLE[6] = {-2.0f, 4.0f, -6.0f, 8.0f, 0.0f, 1.0f};
  static const float FOUND[5] = {0.0f, 1.0f, 2.0f, 3.0f, 5.0f};
  static const int64_t SIX[1] = {6};
  for (int way = ISOLATE_HERE; way <= ISOLATE_FALLING; way++) {
    isolate_case_load(OPERATORS, (isolate_way_t)way, NULL);
    isolate_case_expect(isolate_case_operate(ISOLATE_TWICE("well"), 2, SHAPE, DOUBLE, 6), "");
    isolate_case_expect(isolate_case_operate(ISOLATE_PLACES("well"), 1, SIX, FOUND, 5), "");
    isolate_case_unload("bad_operators");
  }
  isolate_case_check_no_children();
}

UNIT_TEST(operators_that_misbehave_are_named_with_or_without_fallback) {
  static const struct {
    const char *text;
    const char *message;
  } CASES[] = {
      {ISOLATE_TWICE("crash create"),
       "crashed (segmentation fault at 0x10) while preparing operator 'bad.op.Twice'"},
      {ISOLATE_TWICE("crash execute"),
       "crashed (segmentation fault at 0x10) while running operator 'bad.op.Twice'"},
      {ISOLATE_TWICE("behind"),
       "wrote 4 bytes behind the end of output 0 while running operator 'bad.op.Twice'"},
      {ISOLATE_TWICE("input"), "wrote into input 0 (segmentation fault at 0x"},
      {ISOLATE_PLACES("crash execute"),
       "crashed (segmentation fault at 0x10) while running operator 'bad.op.Places'"},
      {ISOLATE_PLACES("behind"),
       "wrote 4 bytes behind the end of output 0 while running operator 'bad.op.Places'"},
      {ISOLATE_PLACES("far"), "no memory for 4611686018427387903 places"},
      {ISOLATE_PLACES("never"), "gave no shape for output 0"},
  };
  for (size_t k = 0; k < 2 * sizeof CASES / sizeof CASES[0]; k++) {
    bool is_twice = strstr(CASES[k / 2].text, "Twice") != NULL;
    isolate_case_load(OPERATORS, k % 2 == 0 ? ISOLATE_APART : ISOLATE_FALLING, NULL);
    const int64_t six = 6;
    isolate_case_expect(
        isolate_case_operate(CASES[k / 2].text, is_twice ? 2 : 1, is_twice ? SHAPE : &six, NULL, 0),
        CASES[k / 2].message);
    isolate_case_unload("bad_operators");
  }
  isolate_case_check_no_children();
}

/* The library hands on the status alone. */
UNIT_TEST(why_memory_was_refused_is_in_the_message) {
  static const struct {
    const char *text;
    const char *reason;
  } CASES[] = {
      {ISOLATE_PLACES("index"),
       "the library asks for memory for output 7, which is not one of an open shape"},
      {ISOLATE_PLACES("rank run"), "output 0: the library asks for rank 77, expected 0 to 8"},
      {ISOLATE_PLACES("flat"), "output 0: the library asks for memory for [5, 1], expected ["},
      {ISOLATE_PLACES("less"), "output 0: the library asks for the size -3 in dimension 0"},
  };
  static const int64_t SIX[1] = {6};
  for (size_t k = 0; k < 2 * sizeof CASES / sizeof CASES[0]; k++) {
    char message[256];
    isolate_case_load(OPERATORS, k % 2 == 0 ? ISOLATE_HERE : ISOLATE_APART, NULL);
    (void)snprintf(message, sizeof message, "operator 'Places' (node 'n') on bad_operators: %s",
                   CASES[k / 2].reason);
    isolate_case_expect(isolate_case_operate(CASES[k / 2].text, 1, SIX, NULL, 0), message);
    isolate_case_unload("bad_operators");
  }
  isolate_case_check_no_children();
}

UNIT_TEST(the_operator_that_cpu_cannot_take_over_is_named) {
  isolate_case_load(OPERATORS, ISOLATE_FALLING, NULL);
  isolate_case_expect(
      isolate_case_operate(ISOLATE_TWICE("crash execute"), 2, SHAPE, NULL, 0),
      "; cpu cannot take over from operator 'bad.op.Twice' (node 'n') of library 'bad_operators'");
  isolate_case_unload("bad_operators");
  isolate_case_check_no_children();
}

UNIT_TEST(inference_that_has_no_memory_is_named) {
  isolate_case_load(OPERATORS, ISOLATE_HERE, NULL);
  library_case_model_fails(ISOLATE_TWICE("full infer"), CLEAVE_ERROR_OUT_OF_MEMORY,
                           "library 'bad_operators': 'infer' of operator 'bad.op.Twice': out of memory");
  isolate_case_unload("bad_operators");
}

UNIT_TEST(inference_that_misbehaves_is_the_error_of_the_model) {
  static const struct {
    const char *text;
    isolate_way_t way;
    const char *message;
  } CASES[] = {
      {ISOLATE_TWICE("crash infer"), ISOLATE_APART,
       "crashed (segmentation fault at 0x10) while inferring types of operator 'bad.op.Twice'"},
      {ISOLATE_TWICE("crash infer"), ISOLATE_FALLING,
       "crashed (segmentation fault at 0x10) while inferring types of operator 'bad.op.Twice'"},
      {ISOLATE_TWICE("hang infer"), ISOLATE_SHORT,
       "did not answer within 0.8 s while inferring types of operator 'bad.op.Twice'"},
      {ISOLATE_TWICE("dtype"), ISOLATE_APART,
       "the library gave output 'Y' the dtype 99, which does not exist"},
      {ISOLATE_TWICE("rank"), ISOLATE_APART,
       "the library gave output 'Y' the rank 1000000, expected at most 8"},
  };
  for (size_t k = 0; k < sizeof CASES / sizeof CASES[0]; k++) {
    isolate_case_load(OPERATORS, CASES[k].way, NULL);
    library_case_model_fails(CASES[k].text, CLEAVE_ERROR_SHAPE, CASES[k].message);
    isolate_case_unload("bad_operators");
  }
  isolate_case_load(OPERATORS, ISOLATE_APART, NULL); /* an open size that no input has */
  cleave_model_release(library_case_model(ISOLATE_TWICE("dims")));
  isolate_case_expect(
      isolate_case_operate(ISOLATE_TWICE("crash destroy"), 2, SHAPE, (float[]){-2, 4, -6, 8, 0, 1}, 6), "");
  isolate_case_unload("bad_operators");
  isolate_case_check_no_children();
}

/* Sizes that change from run to run, of a kernel that is created once; the session of custom_ops. */
UNIT_TEST(operators_with_a_state_run_with_other_shapes) {
  static const char MODEL[] =
      "local x = g.input('x', 'float32', { 6 })\n"
      "local places = g.Cast(g.NonZero(x), { to = 'float32' })\n"
      "g.output('y', g['my.company.Gemm'](places, places, { transB = 1, alpha = 0.5 }))\n"
      "local c, runs = g['my.company.StatefulGemm'](places, places, { transB = 1, outputs = 2 })\n"
      "g.output('c', c)\ng.output('runs', runs)";
  const int64_t six = 6;
  float first[6] = {0.0f, 1.0f, 1.0f, 0.0f, 0.0f, 1.0f};
  float second[6] = {0.0f, 0.0f, 0.0f, 0.0f, 1.0f, 1.0f};
  isolate_case_load(ISOLATE_ACCELERATOR("gemms"), ISOLATE_APART, NULL);
  cleave_model_t *model = library_case_model(MODEL);
  cleave_session_t *session = library_case_session(model, NULL, 1, &six, first, NULL);
  library_case_run(session, 0, (float[]){15.0f}, 1);
  library_case_run(session, 1, (float[]){30.0f}, 1);
  ck_assert_int_eq(library_case_int(session, 2), 2);
  cleave_tensor_view_t view = {
      .size = sizeof view, .dtype = CLEAVE_DTYPE_F32, .rank = 1, .dims = &six, .data = second};
  unit_ok(cleave_session_set_input(session, 0, &view, e));
  library_case_run(session, 1, (float[]){41.0f}, 1);
  ck_assert_int_eq(library_case_int(session, 2), 3);
  cleave_session_destroy(session);
  cleave_model_release(model);
  isolate_case_unload("gemms");
  isolate_case_check_no_children();
}

UNIT_TEST(memory_that_is_asked_for_often_is_given_back) {
  static const int64_t SIX[1] = {6};
  isolate_case_load(OPERATORS, ISOLATE_APART, NULL);
  size_t before = isolate_case_descriptors();
  for (int k = 0; k < 3; k++) {
    isolate_case_expect(
        isolate_case_operate(ISOLATE_PLACES("often"), 1, SIX, (float[]){0.0f, 1.0f, 2.0f, 3.0f, 5.0f}, 5),
        "");
  }
  ck_assert_uint_eq(isolate_case_descriptors(), before);
  isolate_case_unload("bad_operators");
}

UNIT_SUITE("isolate_operators")
