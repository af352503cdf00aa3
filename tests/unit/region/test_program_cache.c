// SPDX-License-Identifier: Apache-2.0
// Programs shared between sessions: which are, how long they live, and that threads may run them at once.

#include "backend/program/program_cache.h"

#include <pthread.h>

#include "runtime/session/session.h"
#include "session_case.h"
#include "unit.h"

#define NONE CLEAVE_VALUE_NONE

static const int64_t dims[2] = {4, 4};
static const float ones[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

/* y = Relu((x + w) * w), as one region over `ops`. */
static session_case_t make_case(const char *ops) {
  session_case_t c = session_case_create();
  cleave_value_t x = session_case_input(&c, "x", CLEAVE_DTYPE_F32, 2, dims);
  cleave_value_t w = session_case_floats(&c, "w", 2, dims, ones);
  cleave_value_t sum = session_case_node(&c, "Add", "sum", x, w, NONE);
  cleave_value_t product = session_case_node(&c, "Mul", "product", sum, w, NONE);
  session_case_output(&c, session_case_node(&c, "Relu", "y", product, NONE, NONE));
  session_case_infer(&c);
  session_case_partition(&c, ops, "cpu");
  session_case_feed(&c, 2, dims, ones);
  return c;
}

static cleave_session_t *make_session(const session_case_t *c, cleave_program_cache_t *cache,
                                      int32_t threads) {
  cleave_session_options_t options = {.size = sizeof options, .threads = threads, .programs = cache};
  cleave_session_t *session = NULL;
  unit_ok(
      cleave_session_create_planned(c->graph, c->plan, c->pointers, c->input_count, &options, &session, e));
  unit_ok(cleave_session_set_input(session, 0, &c->views[0], e));
  return session;
}

static float first_value(cleave_session_t *session) {
  cleave_tensor_view_t output;
  unit_ok(cleave_session_run(session, e));
  unit_ok(cleave_session_output(session, 0, &output, e));
  return ((const float *)output.data)[0];
}

UNIT_TEST(a_session_takes_over_the_programs_of_another) {
  session_case_t c = make_case("Add,Mul,Relu");
  cleave_program_cache_t *cache = NULL;
  unit_ok(cleave_program_cache_create(&cache, e));
  cleave_session_t *first = make_session(&c, cache, 1);
  ck_assert_uint_eq(cleave_session_program_count(first), 1);
  ck_assert_uint_eq(cleave_session_reused_count(first), 0);
  cleave_session_t *second = make_session(&c, cache, 1);
  ck_assert_uint_eq(cleave_session_reused_count(second), 1);
  ck_assert_uint_eq(cleave_program_cache_count(cache), 1);
  ck_assert_float_eq(first_value(first), 2);
  ck_assert_float_eq(first_value(second), 2);
  cleave_session_destroy(first);
  ck_assert_uint_eq(cleave_program_cache_count(cache), 1);
  ck_assert_float_eq(first_value(second), 2);
  cleave_session_destroy(second);
  ck_assert_uint_eq(cleave_program_cache_count(cache), 0);
  cleave_program_cache_release(cache);
  session_case_deinit(&c);
}

UNIT_TEST(nothing_is_kept_when_no_session_uses_it) {
  session_case_t c = make_case("Add,Mul,Relu");
  cleave_program_cache_t *cache = NULL;
  unit_ok(cleave_program_cache_create(&cache, e));
  cleave_session_destroy(make_session(&c, cache, 1));
  cleave_session_t *again = make_session(&c, cache, 1);
  ck_assert_uint_eq(cleave_session_reused_count(again), 0);
  cleave_program_cache_release(cache); /* the session keeps what it needs */
  ck_assert_float_eq(first_value(again), 2);
  cleave_session_destroy(again);
  session_case_deinit(&c);
}

UNIT_TEST(other_threads_profiles_and_constants_are_other_programs) {
  session_case_t c = make_case("Add,Mul,Relu");
  session_case_t other = make_case("Add,Mul,Relu"); /* equal but for the versions of its weights */
  cleave_program_cache_t *cache = NULL;
  unit_ok(cleave_program_cache_create(&cache, e));
  cleave_session_t *sessions[4] = {make_session(&c, cache, 1), make_session(&c, cache, 2),
                                   make_session(&other, cache, 1), NULL};
  cleave_session_options_t options = {
      .size = sizeof options, .threads = 1, .profile = true, .programs = cache};
  unit_ok(
      cleave_session_create_planned(c.graph, c.plan, c.pointers, c.input_count, &options, &sessions[3], e));
  ck_assert_uint_eq(cleave_program_cache_count(cache), 4);
  for (int k = 0; k < 4; k++) {
    ck_assert_uint_eq(cleave_session_reused_count(sessions[k]), 0);
    cleave_session_destroy(sessions[k]);
  }
  cleave_program_cache_release(cache);
  session_case_deinit(&c);
  session_case_deinit(&other);
}

UNIT_TEST(only_the_region_that_changed_is_compiled) {
  session_case_t c = make_case("Add,Relu"); /* two regions, and Mul alone */
  session_case_t whole = c;
  cleave_program_cache_t *cache = NULL;
  unit_ok(cleave_program_cache_create(&cache, e));
  cleave_session_t *first = make_session(&c, cache, 1);
  ck_assert_uint_eq(cleave_session_program_count(first), 3);
  whole.plan = NULL;
  session_case_partition(&whole, "Add", "cpu");
  cleave_session_t *second = make_session(&whole, cache, 1);
  ck_assert_uint_eq(cleave_session_program_count(second), 3);
  ck_assert_uint_eq(cleave_session_reused_count(second), 2); /* Add as a region, Mul; not Relu, now alone */
  ck_assert_float_eq(first_value(second), 2);
  cleave_session_destroy(first);
  cleave_session_destroy(second);
  cleave_plan_destroy(whole.plan);
  cleave_program_cache_release(cache);
  session_case_deinit(&c);
}

/* ---- threads ---- */

enum { THREADS = 4, ROUNDS = 30 };

typedef struct worker {
  const session_case_t *c;
  cleave_program_cache_t *cache;
  int wrong;
} worker_t;

static void *work(void *context) {
  worker_t *worker = context;
  for (int round = 0; round < ROUNDS; round++) {
    cleave_session_options_t options = {.size = sizeof options, .threads = 1, .programs = worker->cache};
    cleave_session_t *session = NULL;
    cleave_tensor_view_t output;
    bool good =
        cleave_session_create_planned(worker->c->graph, worker->c->plan, worker->c->pointers,
                                      worker->c->input_count, &options, &session, NULL) == CLEAVE_OK &&
        cleave_session_set_input(session, 0, &worker->c->views[0], NULL) == CLEAVE_OK;
    for (int run = 0; run < 5 && good; run++) {
      good = cleave_session_run(session, NULL) == CLEAVE_OK &&
             cleave_session_output(session, 0, &output, NULL) == CLEAVE_OK;
      for (int k = 0; k < 16 && good; k++) {
        good = ((const float *)output.data)[k] == 2.0F;
      }
    }
    worker->wrong += good ? 0 : 1;
    cleave_session_destroy(session);
  }
  return NULL;
}

UNIT_TEST(threads_make_run_and_destroy_sessions_over_one_cache) {
  session_case_t c = make_case("Add,Relu");
  cleave_program_cache_t *cache = NULL;
  pthread_t threads[THREADS];
  worker_t workers[THREADS];
  unit_ok(cleave_program_cache_create(&cache, e));
  for (int k = 0; k < THREADS; k++) {
    workers[k] = (worker_t){.c = &c, .cache = cache};
    ck_assert_int_eq(pthread_create(&threads[k], NULL, work, &workers[k]), 0);
  }
  for (int k = 0; k < THREADS; k++) {
    ck_assert_int_eq(pthread_join(threads[k], NULL), 0);
    ck_assert_int_eq(workers[k].wrong, 0);
  }
  ck_assert_uint_eq(cleave_program_cache_count(cache), 0);
  cleave_program_cache_release(cache);
  session_case_deinit(&c);
}

UNIT_SUITE("program_cache")
