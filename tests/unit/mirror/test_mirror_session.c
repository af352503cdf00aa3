// SPDX-License-Identifier: Apache-2.0
// Sessions over the mirror library with its memory guarded: requests, options of runs, both devices at once.
// The numbers are those of cpu.
#include <pthread.h>

#include "mirror_case.h"
#include "session_case.h"
#include "unit.h"

static const float DATA[6] = {-1.0f, 2.0f, -3.0f, 4.0f, 0.0f, 0.5f};
static const int64_t DIMS[2] = {2, 3};

/* y = Relu(x) + x on mirror. */
static session_case_t make_case(const char *device, bool imperative) {
  session_case_t c = session_case_create();
  cleave_backend_option_t option = {.backend = "mirror", .key = "device", .value = device};
  cleave_session_options_t options = {.size = sizeof options,
                                      .threads = 1,
                                      .imperative = imperative,
                                      .backend_options = &option,
                                      .backend_option_count = 1};
  cleave_value_t x = session_case_input(&c, "x", CLEAVE_DTYPE_F32, 2, DIMS);
  cleave_value_t relu = session_case_node(&c, "Relu", "relu", x, CLEAVE_VALUE_NONE, CLEAVE_VALUE_NONE);
  session_case_output(&c, session_case_node(&c, "Add", "sum", relu, x, CLEAVE_VALUE_NONE));
  session_case_infer(&c);
  session_case_partition(&c, "Relu,Add", "mirror");
  session_case_feed(&c, 2, DIMS, DATA);
  session_case_compile(&c, &options);
  ck_assert_uint_eq(cleave_session_note_count(c.session), 0);
  return c;
}

static float expected(size_t k) {
  return DATA[k] > 0.0f ? 2.0f * DATA[k] : DATA[k];
}

UNIT_TEST(a_session_copies_there_and_back) {
  mirror_case_t m = mirror_case_open();
  ck_assert_int_eq(mirror_case_set(&m, "guard", "1"), CLEAVE_OK);
  for (uint32_t k = 0; k < 4; k++) {
    ck_assert_int_eq(mirror_case_set(&m, "reset", "counters"), CLEAVE_OK);
    session_case_t c = make_case(k % 2 == 0 ? "0" : "1", k >= 2);
    for (uint32_t run = 0; run < 3; run++) {
      session_case_run(&c);
      for (size_t at = 0; at < 6; at++) {
        ck_assert_float_eq(session_case_value(&c, 0, (int64_t)at), expected(at));
      }
    }
    ck_assert_int_eq(mirror_case_ask(&m, k < 2 ? "runs" : "executions"), k < 2 ? 3 : 6);
    ck_assert_int_eq(mirror_case_ask(&m, "bytes_copied_to"), 3 * 24);
    ck_assert_int_eq(mirror_case_ask(&m, "bytes_copied_from"), 3 * 24);
    ck_assert_int_eq(mirror_case_ask(&m, "misuses"), 0);
    ck_assert_int_eq(mirror_case_ask(&m, "bytes_staged"), 0);
    session_case_deinit(&c);
    ck_assert_int_eq(mirror_case_ask(&m, "live_allocations"), 0);
    ck_assert_int_eq(mirror_case_ask(&m, "own_bytes"), 0);
  }
}

UNIT_TEST(outputs_are_added_to_or_left_alone) {
  mirror_case_t m = mirror_case_open();
  ck_assert_int_eq(mirror_case_set(&m, "guard", "1"), CLEAVE_OK);
  for (uint32_t k = 0; k < 2; k++) {
    _Alignas(64) float memory[6] = {100.0f, 100.0f, 100.0f, 100.0f, 100.0f, 100.0f};
    cleave_tensor_view_t view = {
        .size = sizeof view, .dtype = CLEAVE_DTYPE_F32, .rank = 2, .dims = DIMS, .data = memory};
    session_case_t c = make_case("0", k == 1);
    unit_ok(cleave_session_set_output(c.session, 0, &view, CLEAVE_REQUEST_ADD, e));
    session_case_run(&c);
    session_case_run(&c);
    for (size_t at = 0; at < 6; at++) {
      ck_assert_float_eq(memory[at], 100.0f + 2.0f * expected(at));
    }
    unit_ok(cleave_session_set_output(c.session, 0, NULL, CLEAVE_REQUEST_NONE, e));
    session_case_run(&c);
    ck_assert_float_eq(memory[1], 108.0f);
    unit_ok(cleave_session_set_output(c.session, 0, &view, CLEAVE_REQUEST_WRITE, e));
    session_case_run(&c);
    ck_assert_float_eq(memory[1], 4.0f);
    session_case_deinit(&c);
  }
  ck_assert_int_eq(mirror_case_ask(&m, "misuses"), 0);
}

UNIT_TEST(options_of_runs_come_to_the_library) {
  (void)mirror_case_open();
  session_case_t c = make_case("1", false);
  unit_ok(cleave_session_set_run_option(c.session, "mirror", "latency_ns", "1000", e));
  session_case_run(&c);
  unit_fails(cleave_session_set_run_option(c.session, "mirror", "speed", "9", e),
             CLEAVE_ERROR_INVALID_ARGUMENT,
             "option 'mirror.speed': backend 'mirror' has no such option; there are: device, latency_ns");
  session_case_run(&c);
  ck_assert_float_eq(session_case_value(&c, 0, 3), 8.0f);
  session_case_deinit(&c);
}

static void *run_often(void *context) {
  for (uint32_t k = 0; k < 100; k++) {
    if (cleave_session_run(((session_case_t *)context)->session, NULL) != CLEAVE_OK) {
      return context;
    }
  }
  return NULL;
}

UNIT_TEST(sessions_on_several_threads_share_the_devices) {
  mirror_case_t m = mirror_case_open();
  session_case_t cases[4];
  pthread_t threads[4];
  ck_assert_int_eq(mirror_case_set(&m, "guard", "1"), CLEAVE_OK);
  for (uint32_t k = 0; k < 4; k++) {
    cases[k] = make_case(k % 2 == 0 ? "0" : "1", k == 3);
  }
  for (uint32_t k = 0; k < 4; k++) {
    ck_assert_int_eq(pthread_create(&threads[k], NULL, run_often, &cases[k]), 0);
  }
  for (uint32_t k = 0; k < 4; k++) {
    void *failed = NULL;
    ck_assert_int_eq(pthread_join(threads[k], &failed), 0);
    ck_assert_ptr_null(failed);
    for (size_t at = 0; at < 6; at++) {
      ck_assert_float_eq(session_case_value(&cases[k], 0, (int64_t)at), expected(at));
    }
    session_case_deinit(&cases[k]);
  }
  ck_assert_int_eq(mirror_case_ask(&m, "misuses"), 0);
}

UNIT_SUITE("mirror_session")
