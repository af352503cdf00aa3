// SPDX-License-Identifier: Apache-2.0
// Sessions whose devices have streams: everything is put on them and done later. Random graphs over the host
// and both devices compute what cpu computes; failures that come out late name their region; sessions run on
// several threads over one model.
#include <pthread.h>

#include "device_case.h"
#include "unit.h"

#define HEAD "local x = g.input('x', 'float32', { 8 })\n"

static const char two[] = HEAD
    "local a = g.Relu(x, { name = 'd0a' })\n"
    "local b = g.Neg(a, { name = 'd1b' })\n"
    "local d = g.Add(b, a, { name = 'd0c' })\n"
    "g.output('y', g.Mul(d, b, { name = 'd1e' }))\ng.output('a', a)";

// ---- random graphs ----

static void run_random(const char *has, bool imperative, uint32_t graphs, long latency_us) {
  const cleave_session_options_t options = {
      .size = sizeof options, .threads = 1, .imperative = imperative, .workers = 1};
  device_case_run_random(has, &options, graphs, latency_us);
}

UNIT_TEST(random_graphs_compute_the_same_without_streams) {
  run_random("", false, 60, 0);
}

UNIT_TEST(random_graphs_compute_the_same_with_streams) {
  run_random("streams", false, 40, 200);
}

UNIT_TEST(random_graphs_compute_the_same_with_streams_and_events) {
  run_random("events", false, 40, 200);
}

UNIT_TEST(random_graphs_compute_the_same_node_by_node) {
  run_random("events executors", true, 40, 100);
}

// ---- waiting ----

UNIT_TEST(the_host_waits_only_where_it_reads) {
  device_case_load("events");
  device_case_t c = device_case_create(two, NULL);
  device_case_compile(&c, NULL);
  device_case_set("waits", 0);
  device_case_set("event_waits", 0);
  device_case_run(&c, 1.0f);
  device_case_check(&c);
  ck_assert_int_eq(device_case_ask("waits"), 2);       /* both streams, at the end */
  ck_assert_int_eq(device_case_ask("event_waits"), 3); /* where one device reads what the other has copied */
  device_case_deinit(&c);
}

UNIT_TEST(between_two_backends_the_host_waits) {
  device_case_load("events");
  device_case_t c =
      device_case_create(HEAD
                         "local a = g.Relu(x, { name = 'd0a' })\nlocal b = g.Neg(a, { name = 'o0b' })\n"
                         "g.output('y', g.Add(b, a, { name = 'd0c' }))",
                         NULL);
  device_case_compile(&c, NULL);
  ck_assert_str_eq(device_case_steps(&c),
                   "copy to device:0 x|part_0 on device:0|copy from device:0 d0a|copy to other:0 d0a|"
                   "piece_0 on other:0|copy from other:0 o0b|copy to device:0 o0b|part_1 on device:0|"
                   "copy from device:0 d0c");
  device_case_set("latency_us", 300);
  for (int k = 0; k < 5; k++) {
    device_case_run(&c, (float)k);
    device_case_check(&c);
  }
  ck_assert_int_eq(device_case_ask("event_waits"), 0);
  ck_assert_int_eq(device_case_ask("waits"),
                   10); /* of this one: before what the other one reads, and at the end */
  device_case_deinit(&c);
}

/* The last step would compute in place where the device has not read yet. */
UNIT_TEST(what_is_on_its_way_to_a_device_is_not_computed_over) {
  device_case_load("events");
  device_case_t c = device_case_create(HEAD
                                       "local a = g.Neg(x, { name = 'c0' })\n"
                                       "g.output('d', g.Neg(a, { name = 'd0b' }))\n"
                                       "g.output('y', g.Relu(a, { name = 'c1' }))",
                                       NULL);
  device_case_compile(&c, NULL);
  ck_assert_str_eq(device_case_steps(&c),
                   "c0 on cpu|copy to device:0 c0|part_0 on device:0|copy from device:0 d0b|c1 on cpu");
  device_case_set("latency_us", 3000);
  for (int k = 0; k < 3; k++) {
    device_case_run(&c, (float)k);
    device_case_check(&c);
  }
  device_case_deinit(&c);
}

UNIT_TEST(without_events_the_host_waits_between_devices) {
  device_case_load("streams");
  device_case_t c = device_case_create(two, NULL);
  device_case_compile(&c, NULL);
  device_case_set("waits", 0);
  device_case_run(&c, 1.0f);
  device_case_check(&c);
  ck_assert_int_eq(device_case_ask("waits"), 4); /* three between devices, and for the last one at the end */
  device_case_deinit(&c);
}

UNIT_TEST(a_run_allocates_nothing) {
  device_case_load("events");
  device_case_t c = device_case_create(two, NULL);
  device_case_compile(&c, NULL);
  device_case_run(&c, 1.0f);
  (void)cleave_memory_fail_after(-1);
  for (int k = 0; k < 5; k++) {
    ck_assert_int_eq(cleave_session_run(c.session, NULL), CLEAVE_OK);
  }
  ck_assert_int_eq(cleave_memory_fail_after(-1), 0);
  device_case_deinit(&c);
}

UNIT_TEST(profiles_have_the_times_of_steps_and_not_of_putting_them_on_a_stream) {
  device_case_load("events");
  device_case_t c = device_case_create(two, NULL);
  cleave_session_options_t options = {.size = sizeof options, .profile = true};
  device_case_compile(&c, &options);
  device_case_set("latency_us", 2000);
  device_case_run(&c, 1.0f);
  for (uint32_t k = 0; k < cleave_session_step_count(c.session); k++) {
    cleave_session_step_t step = cleave_session_step(c.session, k);
    ck_assert_uint_ge(step.end_ns - step.start_ns, 1900000);
    ck_assert_uint_eq(step.copied_bytes, step.is_copy ? 32 : 0);
  }
  device_case_deinit(&c);
}

// ---- failures that come out late ----

UNIT_TEST(a_failure_that_comes_out_late_names_its_region) {
  static const char *const NAMES[] = {"part_0", "part_1", "part_2", "part_3"};
  device_case_load("events");
  device_case_t c = device_case_create(two, NULL);
  device_case_compile(&c, NULL);
  for (size_t k = 0; k < sizeof NAMES / sizeof NAMES[0]; k++) {
    char message[128];
    (void)snprintf(message, sizeof message, "region '%s' on device:%u: the unit caught fire", NAMES[k],
                   (unsigned)k % 2);
    unit_ok(cleave_session_set_run_option(c.session, "device", "fail", NAMES[k], e));
    unit_fails(cleave_session_run(c.session, e), CLEAVE_ERROR_BACKEND, message);
    cleave_tensor_view_t output;
    ck_assert_int_ne(cleave_session_output(c.session, 0, &output, NULL), CLEAVE_OK);
    unit_ok(cleave_session_set_run_option(c.session, "device", "fail", NULL, e));
    device_case_run(&c, 2.0f); /* the session goes on */
    device_case_check(&c);
  }
  device_case_deinit(&c);
}

UNIT_TEST(a_failure_that_does_not_come_again_names_the_device) {
  device_case_load("streams");
  device_case_t c = device_case_create(two, NULL);
  device_case_compile(&c, NULL);
  device_case_set("fail_once", 1);
  unit_fails(cleave_session_run(c.session, e), CLEAVE_ERROR_BACKEND,
             "device:0: a step failed on its stream, but not when it was repeated: the unit caught fire");
  device_case_run(&c, 2.0f);
  device_case_check(&c);
  device_case_deinit(&c);
}

// ---- threads ----

enum { THREADS = 4 };

typedef struct worker {
  pthread_t thread;
  const device_case_t *c;
  const cleave_session_options_t *options;
  float base;
  float results[2];
  bool is_done;
} worker_t;

static void *work(void *context) {
  worker_t *worker = context;
  for (int round = 0; round < 10; round++) {
    cleave_session_t *session = NULL;
    cleave_tensor_view_t outputs[2];
    float x[DEVICE_CASE_SIZE];
    cleave_tensor_view_t view = worker->c->view;
    view.dims = (const int64_t[]){DEVICE_CASE_SIZE};
    view.data = x;
    for (int k = 0; k < DEVICE_CASE_SIZE; k++) {
      x[k] = worker->base + (float)k;
    }
    if (cleave_session_create(worker->c->rule.model, worker->c->rule.plan, NULL, 0, worker->options, &session,
                              NULL) != CLEAVE_OK ||
        cleave_session_set_input(session, 0, &view, NULL) != CLEAVE_OK ||
        cleave_session_run(session, NULL) != CLEAVE_OK || cleave_session_run(session, NULL) != CLEAVE_OK ||
        cleave_session_output(session, 0, &outputs[0], NULL) != CLEAVE_OK ||
        cleave_session_output(session, 1, &outputs[1], NULL) != CLEAVE_OK) {
      return NULL;
    }
    worker->results[0] = ((const float *)outputs[0].data)[3];
    worker->results[1] = ((const float *)outputs[1].data)[3];
    cleave_session_destroy(session);
  }
  worker->is_done = true;
  return NULL;
}

static void run_threads(const char *has, bool shares_programs) {
  cleave_session_options_t options = {.size = sizeof options, .threads = 1};
  device_case_load(has);
  device_case_t c = device_case_create(two, NULL);
  if (shares_programs) {
    unit_ok(cleave_program_cache_create(&options.programs, e));
  }
  device_case_compile(&c, &options);
  worker_t workers[THREADS];
  for (int k = 0; k < THREADS; k++) {
    workers[k] = (worker_t){.c = &c, .options = &options, .base = (float)k};
    ck_assert_int_eq(pthread_create(&workers[k].thread, NULL, work, &workers[k]), 0);
  }
  for (int k = 0; k < THREADS; k++) {
    ck_assert_int_eq(pthread_join(workers[k].thread, NULL), 0);
    float a = (float)k + 3.0f;
    ck_assert(workers[k].is_done);
    ck_assert_float_eq(workers[k].results[0], 0.0f); /* (-a + a) * -a */
    ck_assert_float_eq(workers[k].results[1], a);
  }
  device_case_deinit(&c);
  cleave_program_cache_release(options.programs);
  ck_assert_int_eq(device_case_ask("live"), 0);
}

UNIT_TEST(sessions_over_one_model_run_on_several_threads) {
  run_threads("events", false);
}

UNIT_TEST(sessions_that_share_programs_run_on_several_threads) {
  run_threads("events", true);
}

UNIT_TEST(sessions_without_streams_run_on_several_threads) {
  run_threads("", true);
}

/* In a synchronous call, or late, on a stream. */
static void check_fallback(const char *has) {
  static const char *const NAMES[] = {"part_0", "part_1", "part_2", "part_3"};
  cleave_session_options_t options = {.size = sizeof options, .fallback = true};
  device_case_load(has);
  device_case_t c = device_case_create(two, NULL);
  device_case_compile(&c, &options);
  device_case_run(&c, 1.0f);
  device_case_check(&c);
  ck_assert_uint_eq(cleave_session_note_count(c.session), 0);
  for (uint32_t k = 0; k < sizeof NAMES / sizeof NAMES[0]; k++) {
    char note[128];
    (void)snprintf(note, sizeof note, "region '%s': runs on cpu from run", NAMES[k]);
    unit_ok(cleave_session_set_run_option(c.session, "device", "fail", NAMES[k], e));
    device_case_run(&c, 2.0f + (float)k); /* in this very run */
    device_case_check(&c);
    ck_assert_uint_eq(cleave_session_note_count(c.session), k + 1);
    ck_assert_ptr_nonnull(strstr(cleave_session_note(c.session, k), note));
    ck_assert_ptr_nonnull(strstr(cleave_session_note(c.session, k), "the unit caught fire"));
    unit_ok(cleave_session_set_run_option(c.session, "device", "fail", NULL, e));
    device_case_run(&c, -3.0f); /* and in those after */
    device_case_check(&c);
  }
  device_case_deinit(&c);
}

UNIT_TEST(cpu_computes_what_a_device_fails_in_where_a_session_falls_back) {
  check_fallback("");
}

UNIT_TEST(cpu_computes_what_fails_late_on_a_stream) {
  check_fallback("streams");
}

UNIT_TEST(cpu_computes_what_fails_late_on_a_stream_with_events) {
  check_fallback("events");
}

UNIT_SUITE("session_streams")
