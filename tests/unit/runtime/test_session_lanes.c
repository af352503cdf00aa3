// SPDX-License-Identifier: Apache-2.0
// Steps side by side: on devices and their copies, and on workers of the host. Random graphs compute what cpu
// computes, devices work at the same time, failures name their region, and runs allocate nothing.
#include <pthread.h>

#include "device_case.h"
#include "runtime/build/session_internal.h"
#include "system/clock.h"
#include "unit.h"

#define HEAD "local x = g.input('x', 'float32', { 8 })\n"

/* Two branches, on a device each. */
static const char branches[] = HEAD
    "local a = g.Neg(g.Relu(x, { name = 'd0a' }), { name = 'd0b' })\n"
    "local b = g.Relu(g.Neg(x, { name = 'd1a' }), { name = 'd1b' })\n"
    "g.output('y', g.Add(a, b, { name = 'c' }))\ng.output('a', a)";

static cleave_session_options_t with_workers(int32_t workers) {
  return (cleave_session_options_t){
      .size = sizeof(cleave_session_options_t), .threads = 1, .workers = workers};
}

static double time_run(device_case_t *c) {
  uint64_t start = cleave_clock_now();
  device_case_run(c, 1.0f);
  double ms = cleave_clock_ms(start, cleave_clock_now());
  device_case_check(c);
  return ms;
}

/* The time of a run that other processes did not hold up. */
static double time_best(device_case_t *c, double expected_ms) {
  double best = time_run(c);
  for (int k = 0; k < 10 && best > expected_ms * 1.2; k++) {
    double ms = time_run(c);
    best = ms < best ? ms : best;
  }
  return best;
}

// ---- the same numbers ----

static void run_random(const char *has, int32_t workers, bool imperative, long latency_us) {
  cleave_session_options_t options = with_workers(workers);
  options.imperative = imperative;
  device_case_run_random(has, &options, 40, latency_us);
}

UNIT_TEST(random_graphs_compute_the_same_on_devices_without_streams) {
  run_random("", 0, false, 0);
}

UNIT_TEST(random_graphs_compute_the_same_on_two_workers) {
  run_random("", 2, false, 100);
}

UNIT_TEST(random_graphs_compute_the_same_with_streams_that_have_no_events) {
  run_random("streams", 2, false, 100);
}

UNIT_TEST(random_graphs_compute_the_same_with_streams_and_events) {
  run_random("events", 3, false, 100);
}

UNIT_TEST(random_graphs_compute_the_same_if_the_host_waits_beside_other_calls) {
  run_random("events aside", 2, false, 100);
}

UNIT_TEST(random_graphs_compute_the_same_node_by_node) {
  run_random("events aside executors", 2, true, 50);
}

UNIT_TEST(random_graphs_compute_the_same_if_nothing_takes_time) {
  run_random("events aside", 4, false, 0);
}

// ---- side by side ----

/* Each device copies in, computes two nodes in one region, and copies out: 3 times 30 ms. */
static void check_overlap(const char *has, double most_alone) {
  const cleave_session_options_t alone = with_workers(1);
  const cleave_session_options_t beside = with_workers(0);
  device_case_load(has);
  device_case_t serial = device_case_create(branches, NULL);
  device_case_t both = device_case_create(branches, NULL);
  device_case_compile(&serial, &alone);
  device_case_compile(&both, &beside);
  ck_assert_ptr_null(serial.session->lanes);
  ck_assert_ptr_nonnull(both.session->lanes);
  device_case_set("latency_us", 30000);
  ck_assert_double_ge(time_run(&serial), most_alone);
  double ms = time_best(&both, 90.0);
  ck_assert_double_ge(ms, 90.0);
  ck_assert_double_lt(ms, 150.0);
  device_case_deinit(&serial);
  device_case_deinit(&both);
}

UNIT_TEST(two_devices_without_streams_work_at_the_same_time) {
  check_overlap("", 180.0);
}

UNIT_TEST(two_devices_with_streams_work_at_the_same_time) {
  check_overlap("events aside", 90.0);
}

/* Without lanes the host waits for the first device before it puts anything on the second one. */
UNIT_TEST(a_device_starts_while_the_host_computes_what_it_needs_from_another) {
  static const char model[] = HEAD
      "local a = g.Neg(g.Exp(g.Relu(x, { name = 'd0a' }), { name = 'c0' }), { name = 'd0b' })\n"
      "local b = g.Neg(g.Exp(g.Neg(x, { name = 'd1a' }), { name = 'c1' }), { name = 'd1b' })\n"
      "g.output('y', g.Add(a, b, { name = 'c2' }))";
  device_case_load("events aside");
  for (int32_t workers = 0; workers < 2; workers++) {
    const cleave_session_options_t options = with_workers(workers);
    device_case_t c = device_case_create(model, NULL);
    device_case_compile(&c, &options);
    device_case_set("latency_us", 20000);
    double ms = time_best(&c, 120.0); /* 6 times 20 ms on each device */
    if (workers == 1) {
      ck_assert_double_ge(ms, 160.0);
    } else {
      ck_assert_double_lt(ms, 160.0);
    }
    device_case_deinit(&c);
  }
}

/* What d0b reads goes to the device while that computes d0a, whose result comes back beside d0b. */
UNIT_TEST(copies_overlap_with_work_of_their_device) {
  static const char model[] = HEAD
      "g.output('a', g.Relu(x, { name = 'd0a' }))\n"
      "g.output('y', g.Neg(g.Exp(x, { name = 'c' }), { name = 'd0b' }))";
  double ms[2];
  device_case_load("events aside");
  for (int32_t k = 0; k < 2; k++) {
    const cleave_session_options_t options = with_workers(k + 1);
    device_case_t c = device_case_create(model, NULL);
    device_case_compile(&c, &options);
    device_case_set("latency_us", 30000);
    ms[k] = time_best(&c, k == 0 ? 180.0 : 120.0);
    device_case_deinit(&c);
  }
  ck_assert_double_ge(ms[0], 180.0); /* two copies in, two regions, two copies out: 30 ms each */
  ck_assert_double_ge(ms[1], 120.0);
  ck_assert_double_lt(ms[1], 165.0);
}

UNIT_TEST(devices_that_only_wait_for_each_other_have_no_lanes) {
  device_case_load("events");
  device_case_t c = device_case_create(HEAD
                                       "local a = g.Neg(g.Relu(x, { name = 'd0a' }), { name = 'd1b' })\n"
                                       "g.output('y', g.Neg(a, { name = 'd0c' }))",
                                       NULL);
  device_case_compile(&c, NULL);
  ck_assert_ptr_null(c.session->lanes);
  device_case_run(&c, 1.0f);
  device_case_check(&c);
  device_case_deinit(&c);
}

UNIT_TEST(one_device_has_no_lanes_unless_workers_are_asked_for) {
  device_case_load("events");
  for (int32_t workers = 0; workers < 3; workers++) {
    const cleave_session_options_t options = with_workers(workers);
    device_case_t c =
        device_case_create(HEAD "g.output('y', g.Neg(g.Relu(x, { name = 'd0a' }), { name = 'c' }))", NULL);
    device_case_compile(&c, &options);
    ck_assert((c.session->lanes != NULL) == (workers == 2));
    device_case_run(&c, 1.0f);
    device_case_check(&c);
    device_case_deinit(&c);
  }
}

// ---- branches on the host ----

static const char products[] = HEAD
    "local m = g.Reshape(x, g.constant({ 8, 1 }, 'int64'))\n"
    "local w = g.MatMul(m, g.Transpose(m, { perm = { 1, 0 } }))\n"
    "local big = g.Tile(w, g.constant({ 32, 32 }, 'int64'))\n"
    "local a = g.MatMul(g.MatMul(big, big), big)\n"
    "local b = g.MatMul(g.MatMul(g.Neg(big), big), big)\n"
    "g.output('y', g.Add(a, b))\ng.output('z', g.Mul(a, b))";

UNIT_TEST(branches_of_the_host_run_on_workers) {
  const cleave_session_options_t options = with_workers(2);
  device_case_load("");
  device_case_t c = device_case_create(products, NULL);
  device_case_compile(&c, &options);
  ck_assert_uint_eq(c.session->lanes->order.lane_count, 2);
  ck_assert(cleave_lanes_overlap(&c.session->lanes->order, 2));
  const cleave_session_options_t alone = with_workers(1);
  device_case_t serial = c;
  device_case_compile(&serial, &alone);
  for (int k = 0; k < 10; k++) {
    device_case_run(&c, (float)k * 0.125f);
    memcpy(serial.x, c.x, sizeof c.x);
    unit_ok(cleave_session_run(serial.session, e));
    for (uint32_t output = 0; output < 2; output++) {
      cleave_tensor_view_t expected;
      cleave_tensor_view_t found;
      unit_ok(cleave_session_output(serial.session, output, &expected, e));
      unit_ok(cleave_session_output(c.session, output, &found, e));
      ck_assert_mem_eq(found.data, expected.data, (size_t)256 * 256 * sizeof(float));
    }
  }
  cleave_session_destroy(serial.session);
  device_case_deinit(&c);
}

UNIT_TEST(wrong_numbers_of_workers_are_refused) {
  cleave_session_options_t options = with_workers(65);
  device_case_load("");
  device_case_t c = device_case_create(branches, NULL);
  ck_assert_str_eq(device_case_compile_failure(&c, &options),
                   "65 workers, expected 1 to 64, or 0 for as many as are of use");
  device_case_deinit(&c);
}

// ---- steps whose shapes depend on data, outputs that nobody wants ----

UNIT_TEST(steps_with_late_shapes_run_beside_devices) {
  const cleave_session_options_t options = with_workers(2);
  device_case_load("events aside");
  device_case_t c = device_case_create(
      HEAD
      "local a = g.Relu(x, { name = 'd0a' })\nlocal b = g.Neg(x, { name = 'd1a' })\n"
      "g.output('y', g.NonZero(a))\ng.output('z', g.NonZero(g.Add(a, b)))\ng.output('b', b)",
      NULL);
  device_case_compile(&c, &options);
  for (int k = 0; k < 5; k++) {
    device_case_run(&c, (float)k - 3.0f);
    device_case_check(&c);
  }
  device_case_deinit(&c);
}

UNIT_TEST(what_nobody_wants_is_left_out) {
  const cleave_session_options_t options = with_workers(2);
  device_case_load("events aside");
  device_case_t c = device_case_create(branches, NULL);
  device_case_compile(&c, &options);
  unit_ok(cleave_session_set_output(c.session, 0, NULL, CLEAVE_REQUEST_NONE, e));
  long before = device_case_ask("runs");
  device_case_run(&c, 1.0f);
  ck_assert_int_eq(device_case_ask("runs") - before, 1);
  ck_assert_float_eq(device_case_value(&c, 1, 2), -3.0f);
  unit_ok(cleave_session_set_output(c.session, 0, NULL, CLEAVE_REQUEST_WRITE, e));
  device_case_run(&c, 2.0f);
  device_case_check(&c);
  device_case_deinit(&c);
}

// ---- memory ----

UNIT_TEST(a_run_allocates_nothing) {
  const cleave_session_options_t options = with_workers(2);
  device_case_load("events aside");
  device_case_t c = device_case_create(branches, NULL);
  device_case_compile(&c, &options);
  device_case_run(&c, 1.0f);
  (void)cleave_memory_fail_after(-1);
  for (int k = 0; k < 50; k++) {
    ck_assert_int_eq(cleave_session_run(c.session, NULL), CLEAVE_OK);
  }
  ck_assert_int_eq(cleave_memory_fail_after(-1), 0);
  device_case_deinit(&c);
}

UNIT_TEST(every_failing_allocation_is_an_error_and_no_leak) {
  const cleave_session_options_t options = with_workers(2);
  device_case_load("events");
  device_case_t c = device_case_create(branches, NULL);
  bool is_done = false;
  for (long after = 0; !is_done; after++) {
    cleave_error_t error = CLEAVE_ERROR_INIT;
    (void)cleave_memory_fail_after(after);
    cleave_status_t status =
        cleave_session_create(c.rule.model, c.rule.plan, NULL, 0, &options, &c.session, &error);
    is_done = status == CLEAVE_OK;
    (void)cleave_memory_fail_after(-1);
    ck_assert(is_done || error.status == status);
    cleave_session_destroy(c.session);
    c.session = NULL;
    ck_assert_int_eq(device_case_ask("live"), 0);
  }
  device_case_deinit(&c);
}

// ---- failures ----

static void check_failures(const char *has) {
  const cleave_session_options_t options = with_workers(2);
  static const char *const NAMES[] = {"part_0", "part_1"};
  device_case_load(has);
  device_case_t c = device_case_create(branches, NULL);
  device_case_compile(&c, &options);
  for (int k = 0; k < 2; k++) {
    char message[128];
    (void)snprintf(message, sizeof message, "region '%s' on device:%d: the unit caught fire", NAMES[k], k);
    unit_ok(cleave_session_set_run_option(c.session, "device", "fail", NAMES[k], e));
    unit_fails(cleave_session_run(c.session, e), CLEAVE_ERROR_BACKEND, message);
    cleave_tensor_view_t output;
    ck_assert_int_ne(cleave_session_output(c.session, 0, &output, NULL), CLEAVE_OK);
    unit_ok(cleave_session_set_run_option(c.session, "device", "fail", NULL, e));
    for (int run = 0; run < 3; run++) {
      device_case_run(&c, (float)run); /* the session goes on */
      device_case_check(&c);
    }
    ck_assert_ptr_nonnull(c.session->lanes->flow); /* side by side */
  }
  device_case_deinit(&c);
}

UNIT_TEST(a_failure_names_its_region_and_the_session_goes_on) {
  check_failures("");
}

UNIT_TEST(a_failure_that_comes_out_late_names_its_region) {
  check_failures("events");
}

UNIT_TEST(a_failure_that_comes_out_late_names_its_region_if_the_host_waits_aside) {
  check_failures("events aside");
}

UNIT_TEST(a_failure_that_does_not_come_again_names_the_device) {
  const cleave_session_options_t options = with_workers(2);
  device_case_load("events");
  device_case_t c = device_case_create(HEAD
                                       "local a = g.Relu(x, { name = 'd0a' })\n"
                                       "g.output('y', g.Neg(a, { name = 'c' }))",
                                       NULL);
  device_case_compile(&c, &options);
  device_case_set("fail_once", 1);
  unit_fails(cleave_session_run(c.session, e), CLEAVE_ERROR_BACKEND,
             "device:0: a step failed on its stream, but not when it was repeated: the unit caught fire");
  device_case_run(&c, 2.0f);
  device_case_check(&c);
  device_case_deinit(&c);
}

static void check_fallback(const char *has) {
  cleave_session_options_t options = with_workers(2);
  options.fallback = true;
  device_case_load(has);
  device_case_t c = device_case_create(branches, NULL);
  device_case_compile(&c, &options);
  device_case_run(&c, 1.0f);
  device_case_check(&c);
  ck_assert_uint_eq(cleave_session_note_count(c.session), 0);
  unit_ok(cleave_session_set_run_option(c.session, "device", "fail", "part_1", e));
  device_case_run(&c, 2.0f); /* in this very run */
  device_case_check(&c);
  ck_assert_uint_eq(cleave_session_note_count(c.session), 1);
  ck_assert_ptr_nonnull(strstr(cleave_session_note(c.session, 0), "region 'part_1': runs on cpu from run"));
  unit_ok(cleave_session_set_run_option(c.session, "device", "fail", NULL, e));
  device_case_run(&c, -3.0f); /* and in those after */
  device_case_check(&c);
  device_case_deinit(&c);
}

UNIT_TEST(cpu_computes_what_a_device_fails_in) {
  check_fallback("");
}

UNIT_TEST(cpu_computes_what_fails_late_on_a_stream) {
  check_fallback("events aside");
}

// ---- several sessions ----

static void *run_often(void *context) {
  device_case_t *c = context;
  for (int k = 0; k < 30; k++) {
    if (cleave_session_run(c->session, NULL) != CLEAVE_OK) {
      return context;
    }
  }
  return NULL;
}

/* Requests in flight: sessions that share programs, each on a thread of its own. */
UNIT_TEST(sessions_that_share_programs_run_at_the_same_time) {
  enum { COUNT = 3 };
  cleave_session_options_t options = with_workers(0);
  device_case_t cases[COUNT];
  pthread_t threads[COUNT];
  device_case_load("events aside");
  unit_ok(cleave_program_cache_create(&options.programs, e));
  device_case_t c = device_case_create(branches, NULL);
  for (int k = 0; k < COUNT; k++) {
    cases[k] = c;
    device_case_compile(&cases[k], &options);
    cases[k].view.data = cases[k].x;
    unit_ok(cleave_session_set_input(cases[k].session, 0, &cases[k].view, e));
    ck_assert_uint_eq(cleave_session_reused_count(cases[k].session), k == 0 ? 0 : 3);
    for (int n = 0; n < DEVICE_CASE_SIZE; n++) {
      cases[k].x[n] = (float)(n - k);
    }
  }
  for (int k = 0; k < COUNT; k++) {
    ck_assert_int_eq(pthread_create(&threads[k], NULL, run_often, &cases[k]), 0);
  }
  for (int k = 0; k < COUNT; k++) {
    void *failed = NULL;
    ck_assert_int_eq(pthread_join(threads[k], &failed), 0);
    ck_assert_ptr_null(failed);
  }
  for (int k = 0; k < COUNT; k++) {
    device_case_check(&cases[k]);
    cleave_session_destroy(cases[k].session);
  }
  c.session = NULL;
  device_case_deinit(&c);
  cleave_program_cache_release(options.programs);
  ck_assert_int_eq(device_case_ask("live"), 0);
}

UNIT_SUITE("session_lanes")
