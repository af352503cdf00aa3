// SPDX-License-Identifier: Apache-2.0
// Sessions: values, memory, aliases, programs shared by regions, threads, and what is said when something
// does not fit.
#include <math.h>
#include <pthread.h>

#include "plan_case.h"
#include "session_case.h"
#include "system/clock.h"
#include "unit.h"

#define NONE CLEAVE_VALUE_NONE
#define DIMS(...) ((const int64_t[]){__VA_ARGS__})
#define FLOATS(...) ((const float[]){__VA_ARGS__})
#define INTS(...) ((const int64_t[]){__VA_ARGS__})

static const cleave_session_options_t two_threads = {.size = sizeof two_threads, .threads = 2};

// ---- values and memory ----

UNIT_TEST(computes_what_the_operators_say) {
  session_case_t c = session_case_text("s = Sub(x, y); n = Neg(s); r = Relu(n); m = MatMul(x, r); -> m, s");
  session_case_compile(&c, NULL);
  session_case_run(&c);
  ck_assert_float_eq(session_case_value(&c, 0, 0), 1 * 4 + 2 * 4);
  ck_assert_float_eq(session_case_value(&c, 0, 3), 3 * 4 + 4 * 4);
  ck_assert_float_eq(session_case_value(&c, 1, 2), -4.0f);
  session_case_deinit(&c);
}

UNIT_TEST(a_chain_of_pointwise_operators_runs_in_one_block) {
  session_case_t c = session_case_text(
      "a = Neg(x); b = Neg(a); d = Neg(b); f = Neg(d); g = Neg(f); h = Neg(g); i = Neg(h); j = Neg(i); -> j");
  session_case_compile(&c, NULL);
  cleave_session_memory_t memory = cleave_session_memory(c.session);
  ck_assert_uint_eq(cleave_session_step_count(c.session), 8);
  ck_assert_uint_eq(memory.values_bytes, 0); /* the output's buffer serves all of them */
  ck_assert_uint_eq(memory.outputs_bytes, 64);
  session_case_run(&c);
  ck_assert_float_eq(session_case_value(&c, 0, 3), 4.0f);
  session_case_deinit(&c);
}

UNIT_TEST(a_value_that_is_read_later_is_not_overwritten) {
  session_case_t c =
      session_case_text("a = Neg(x); b = Neg(a); d = Neg(b); s = Add(a, d); t = Add(s, x); -> t, b");
  session_case_compile(&c, NULL);
  for (int k = 0; k < 3; k++) {
    session_case_run(&c);
    ck_assert_float_eq(session_case_value(&c, 0, 1), -2.0f);
    ck_assert_float_eq(session_case_value(&c, 1, 1), 2.0f);
  }
  session_case_deinit(&c);
}

UNIT_TEST(the_users_input_is_never_overwritten) {
  session_case_t c = session_case_text("a = Neg(x); b = Neg(a); -> b");
  session_case_compile(&c, NULL);
  session_case_run(&c);
  ck_assert_float_eq(((const float *)c.inputs[0]->data)[3], 4.0f);
  ck_assert_ptr_ne(session_case_view(&c, 0).data, c.inputs[0]->data);
  session_case_deinit(&c);
}

UNIT_TEST(values_that_do_not_live_together_share_memory) {
  /* MatMul cannot work in place: two blocks take turns. */
  session_case_t c = session_case_text(
      "a = MatMul(x, y); b = MatMul(a, y); d = MatMul(b, y); f = MatMul(d, y); g = MatMul(f, y); -> g");
  session_case_compile(&c, NULL);
  cleave_session_memory_t memory = cleave_session_memory(c.session);
  ck_assert_uint_eq(memory.unshared_bytes, 4 * 64);
  ck_assert_uint_eq(memory.values_bytes, 2 * 64);
  session_case_deinit(&c);
}

UNIT_TEST(an_input_may_be_replaced_between_runs) {
  session_case_t c = session_case_text("a = Neg(x); -> a");
  session_case_compile(&c, NULL);
  session_case_run(&c);
  float other[5] = {0, 10, 20, 30, 40};
  cleave_tensor_view_t view = c.views[0];
  view.data = (const char *)other + 2; /* no alignment at all */
  memmove((char *)other + 2, FLOATS(5, 6, 7, 8), 16);
  unit_ok(cleave_session_set_input(c.session, 0, &view, e));
  session_case_run(&c);
  ck_assert_float_eq(session_case_value(&c, 0, 2), -7.0f);
  session_case_deinit(&c);
}

UNIT_TEST(one_value_may_be_several_outputs_and_inputs_and_constants_may_be_outputs) {
  session_case_t c = session_case_text("a = Neg(x); -> a, x, a, #2.5");
  session_case_compile(&c, NULL);
  session_case_run(&c);
  ck_assert_float_eq(session_case_value(&c, 0, 1), -2.0f);
  ck_assert_float_eq(session_case_value(&c, 1, 1), 2.0f);
  ck_assert_float_eq(session_case_value(&c, 2, 1), -2.0f);
  ck_assert_float_eq(session_case_value(&c, 3, 0), 2.5f);
  session_case_deinit(&c);
}

// ---- views ----

static session_case_t reshape_case(bool before_output) {
  session_case_t c = session_case_create();
  cleave_value_t x = session_case_input(&c, "x", CLEAVE_DTYPE_F32, 2, DIMS(2, 3));
  cleave_value_t shape = session_case_ints(&c, "shape", 1, INTS(6));
  cleave_value_t a = session_case_node(&c, "Neg", "a", x, NONE, NONE);
  cleave_value_t b = session_case_node(&c, "Reshape", "b", a, shape, NONE);
  session_case_output(&c, before_output ? b : session_case_node(&c, "Neg", "c", b, NONE, NONE));
  session_case_infer(&c);
  session_case_feed(&c, 2, DIMS(2, 3), FLOATS(1, 2, 3, 4, 5, 6));
  return c;
}

UNIT_TEST(a_reshape_is_no_step) {
  for (int k = 0; k < 2; k++) {
    session_case_t c = reshape_case(k == 1);
    session_case_compile(&c, NULL);
    session_case_run(&c);
    ck_assert_uint_eq(cleave_session_step_count(c.session), k == 1 ? 1 : 2);
    ck_assert_int_eq(session_case_view(&c, 0).rank, 1);
    ck_assert_float_eq(session_case_value(&c, 0, 5), k == 1 ? -6.0f : 6.0f);
    session_case_deinit(&c);
  }
}

UNIT_TEST(what_is_read_through_a_reshape_is_not_overwritten) {
  session_case_t c = session_case_create();
  cleave_value_t x = session_case_input(&c, "x", CLEAVE_DTYPE_F32, 2, DIMS(2, 3));
  cleave_value_t shape = session_case_ints(&c, "shape", 2, INTS(3, 2));
  cleave_value_t a = session_case_node(&c, "Neg", "a", x, NONE, NONE);
  cleave_value_t b = session_case_node(&c, "Reshape", "b", a, shape, NONE);
  cleave_value_t d = session_case_node(&c, "Neg", "d", a, NONE, NONE); /* a's last reader by name only */
  cleave_value_t f = session_case_node(&c, "MatMul", "f", d, b, NONE);
  session_case_output(&c, f);
  session_case_infer(&c);
  session_case_feed(&c, 2, DIMS(2, 3), FLOATS(1, 2, 3, 4, 5, 6));
  session_case_compile(&c, NULL);
  session_case_run(&c);
  ck_assert_float_eq(session_case_value(&c, 0, 0), -(1 * 1 + 2 * 3 + 3 * 5));
  session_case_deinit(&c);
}

UNIT_TEST(a_reshape_of_an_input_is_copied_where_it_is_an_output) {
  session_case_t c = session_case_create();
  cleave_value_t x = session_case_input(&c, "x", CLEAVE_DTYPE_F32, 2, DIMS(2, 2));
  cleave_value_t shape = session_case_ints(&c, "shape", 1, INTS(4));
  cleave_value_t b = session_case_node(&c, "Reshape", "b", x, shape, NONE);
  cleave_value_t flat = session_case_node(&c, "Reshape", "inner", x, shape, NONE);
  session_case_output(&c, b);
  session_case_output(&c, session_case_node(&c, "Neg", "n", flat, NONE, NONE));
  session_case_infer(&c);
  session_case_feed(&c, 2, DIMS(2, 2), FLOATS(1, 2, 3, 4));
  session_case_compile(&c, NULL);
  session_case_run(&c);
  ck_assert_ptr_ne(session_case_view(&c, 0).data, c.inputs[0]->data);
  ck_assert_float_eq(session_case_value(&c, 0, 3), 4.0f);
  ck_assert_float_eq(session_case_value(&c, 1, 3), -4.0f);
  /* The inner one follows the buffer that the user gives. */
  memcpy(c.inputs[0]->data, FLOATS(9, 9, 9, 9), 16);
  cleave_tensor_t *other = NULL;
  unit_ok(cleave_tensor_create(CLEAVE_DTYPE_F32, 2, DIMS(2, 2), &other, e));
  cleave_tensor_view_t view = c.views[0];
  view.data = other->data;
  unit_ok(cleave_session_set_input(c.session, 0, &view, e));
  session_case_run(&c);
  ck_assert_float_eq(session_case_value(&c, 1, 3), 0.0f);
  cleave_tensor_release(other);
  session_case_deinit(&c);
}

// ---- programs ----

UNIT_TEST(regions_of_the_same_structure_compile_once) {
  session_case_t c =
      session_case_text("a = Exp(x); b = Neg(a); t = Tanh(b); d = Exp(t); f = Neg(d); u = Tanh(f); -> u");
  session_case_partition(&c, "Exp,Neg", "cpu");
  session_case_compile(&c, NULL);
  ck_assert_uint_eq(cleave_session_step_count(c.session), 4);
  ck_assert_uint_eq(cleave_session_program_count(c.session), 3); /* one for both regions, two for Tanh */
  session_case_run(&c);
  float value = 1.0f;
  for (int k = 0; k < 2; k++) {
    value = tanhf(-expf(value));
  }
  ck_assert_float_eq_tol(session_case_value(&c, 0, 0), value, 1e-6f);
  session_case_deinit(&c);
}

UNIT_TEST(regions_with_different_constants_do_not_share_a_program) {
  session_case_t c = session_case_text(
      "a = Exp(x); b = Add(a, #1.0); t = Tanh(b); d = Exp(t); f = Add(d, #2.0); u = Tanh(f); -> u");
  session_case_partition(&c, "Exp,Add", "cpu");
  session_case_compile(&c, NULL);
  ck_assert_uint_eq(cleave_session_program_count(c.session), 4);
  session_case_run(&c);
  float value = tanhf(expf(tanhf(expf(1.0f) + 1.0f)) + 2.0f);
  ck_assert_float_eq_tol(session_case_value(&c, 0, 0), value, 1e-6f);
  session_case_deinit(&c);
}

UNIT_TEST(what_is_constant_is_computed_once) {
  session_case_t c = session_case_text("k = Neg($w); l = Exp(k); s = Add(x, l); -> s");
  session_case_compile(&c, NULL);
  ck_assert_uint_eq(cleave_session_step_count(c.session), 1);
  ck_assert_uint_eq(c.graph->live_node_count, 3); /* the caller's graph is as it was */
  session_case_deinit(&c);
}

UNIT_TEST(random_nodes_are_drawn_in_every_session_not_folded) {
  session_case_t c = session_case_create();
  cleave_value_t y = session_case_node(&c, "RandomNormal", "y", NONE, NONE, NONE);
  unit_ok(cleave_graph_set_ints(c.graph, cleave_value_producer(c.graph, y), "shape", INTS(4), 1, e));
  session_case_output(&c, session_case_node(&c, "Neg", "n", y, NONE, NONE));
  session_case_infer(&c);
  session_case_compile(&c, NULL);
  ck_assert_uint_eq(cleave_session_step_count(c.session), 2);
  session_case_run(&c);
  session_case_deinit(&c);
}

UNIT_TEST(an_operator_that_nothing_runs_is_named) {
  session_case_t c = session_case_create();
  cleave_value_t x = session_case_input(&c, "x", CLEAVE_DTYPE_F32, 1, DIMS(6));
  cleave_value_t y = session_case_node(&c, "Frobnicate", "y", x, NONE, NONE);
  session_case_output(&c, y);
  const cleave_tensor_view_t *views[] = {NULL};
  unit_fails_with(cleave_session_create_planned(c.graph, NULL, views, 1, NULL, &c.session, e),
                  CLEAVE_ERROR_UNSUPPORTED, "operator 'Frobnicate' (node 'y') is not supported by cpu: ");
  session_case_deinit(&c);
}

UNIT_TEST(a_plan_of_another_graph_is_refused) {
  session_case_t c = session_case_text("a = Neg(x); -> a");
  session_case_t other = session_case_text("a = Neg(x); -> a");
  session_case_partition(&other, "Neg", "cpu");
  unit_fails(cleave_session_create_planned(c.graph, other.plan, NULL, 0, NULL, &c.session, e),
             CLEAVE_ERROR_INVALID_ARGUMENT, "the plan is of another model");
  session_case_deinit(&c);
  session_case_deinit(&other);
}

UNIT_TEST(a_profiling_session_keeps_times) {
  session_case_t c = session_case_text("a = Exp(x); b = Neg(a); t = Tanh(b); -> t");
  session_case_partition(&c, "Exp,Neg", "cpu");
  cleave_session_options_t options = {.size = sizeof options, .threads = 1, .profile = true};
  session_case_compile(&c, &options);
  uint64_t before = cleave_clock_now();
  session_case_run(&c);
  uint64_t after = cleave_clock_now();
  cleave_session_step_t region = cleave_session_step(c.session, 0);
  cleave_session_step_t node = cleave_session_step(c.session, 1);
  ck_assert_str_eq(region.name, "island_0");
  ck_assert_uint_eq(region.part_count, 2);
  ck_assert_uint_eq(region.parts[1].node, 1);
  ck_assert_str_eq(node.op, "Tanh");
  ck_assert(before <= region.start_ns && region.start_ns <= region.end_ns && region.end_ns <= node.start_ns);
  ck_assert(node.end_ns <= after);
  session_case_deinit(&c);
}

// ---- threads ----

typedef struct worker {
  pthread_t thread;
  const cleave_graph_t *graph;
  const cleave_tensor_view_t *const *views;
  float result;
} worker_t;

static void *work(void *context) {
  worker_t *worker = context;
  for (int round = 0; round < 20; round++) {
    cleave_session_t *session = NULL;
    cleave_tensor_view_t output;
    if (cleave_session_create_planned(worker->graph, NULL, worker->views, 2, &two_threads, &session, NULL) !=
            CLEAVE_OK ||
        cleave_session_set_input(session, 0, worker->views[0], NULL) != CLEAVE_OK ||
        cleave_session_set_input(session, 1, worker->views[1], NULL) != CLEAVE_OK ||
        cleave_session_run(session, NULL) != CLEAVE_OK ||
        cleave_session_output(session, 0, &output, NULL) != CLEAVE_OK) {
      return NULL;
    }
    worker->result += ((const float *)output.data)[5];
    cleave_session_destroy(session);
  }
  return NULL;
}

UNIT_TEST(sessions_over_one_graph_may_be_made_and_run_on_several_threads) {
  session_case_t c = session_case_symbolic();
  session_case_feed(&c, 2, DIMS(2, 3), FLOATS(1, 2, 3, 4, 5, 6));
  session_case_feed(&c, 2, DIMS(2, 3), FLOATS(1, 1, 1, 1, 1, 1));
  const cleave_tensor_view_t *views[] = {&c.views[0], &c.views[1]};
  worker_t workers[4];
  for (int k = 0; k < 4; k++) {
    workers[k] = (worker_t){.graph = c.graph, .views = views};
    ck_assert_int_eq(pthread_create(&workers[k].thread, NULL, work, &workers[k]), 0);
  }
  for (int k = 0; k < 4; k++) {
    ck_assert_int_eq(pthread_join(workers[k].thread, NULL), 0);
    ck_assert_float_eq(workers[k].result, 140.0f);
  }
  session_case_deinit(&c);
}

// ---- failing memory ----

UNIT_TEST(creation_survives_every_allocation_failing) {
  session_case_t c = session_case_symbolic();
  session_case_feed(&c, 2, DIMS(2, 3), FLOATS(1, 2, 3, 4, 5, 6));
  session_case_feed(&c, 2, DIMS(2, 3), FLOATS(1, 1, 1, 1, 1, 1));
  session_case_partition(&c, "Add,Reshape", "cpu");
  const cleave_tensor_view_t *views[] = {&c.views[0], &c.views[1]};
  cleave_status_t status = CLEAVE_ERROR_OUT_OF_MEMORY;
  int64_t failures = 0;
  for (; status != CLEAVE_OK; failures++) {
    ck_assert_int_lt(failures, 2000);
    cleave_error_t error = CLEAVE_ERROR_INIT;
    (void)cleave_memory_fail_after(failures);
    status = cleave_session_create_planned(c.graph, c.plan, views, 2, NULL, &c.session, &error);
    (void)cleave_memory_fail_after(-1);
    ck_assert_msg(status == CLEAVE_OK || status == CLEAVE_ERROR_OUT_OF_MEMORY, "allocation %d: status %d: %s",
                  (int)failures, (int)status, error.message);
    ck_assert(status == CLEAVE_OK || error.message[0] != '\0');
  }
  ck_assert_int_gt(failures, 20);
  session_case_deinit(&c);
}

UNIT_TEST(a_dynamic_run_survives_every_allocation_failing) {
  session_case_t c = session_case_create();
  cleave_value_t x = session_case_input(&c, "x", CLEAVE_DTYPE_F32, 1, DIMS(6));
  cleave_value_t places = session_case_node(&c, "NonZero", "places", x, NONE, NONE);
  session_case_output(&c, session_case_node(&c, "Neg", "n", places, NONE, NONE));
  session_case_infer(&c);
  session_case_feed(&c, 1, DIMS(6), FLOATS(1, 0, 2, 0, 0, 3));
  session_case_compile(&c, NULL);
  cleave_status_t status = CLEAVE_ERROR_OUT_OF_MEMORY;
  for (int64_t failures = 0; status != CLEAVE_OK; failures++) {
    ck_assert_int_lt(failures, 200);
    (void)cleave_memory_fail_after(failures);
    status = cleave_session_run(c.session, NULL);
    (void)cleave_memory_fail_after(-1);
    ck_assert_msg(status == CLEAVE_OK || status == CLEAVE_ERROR_OUT_OF_MEMORY, "status %d", (int)status);
  }
  ck_assert_int_eq(session_case_view(&c, 0).dims[1], 3);
  session_case_deinit(&c);
}

UNIT_SUITE("session")
