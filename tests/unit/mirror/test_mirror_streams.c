// SPDX-License-Identifier: Apache-2.0
// The mirror library: streams, events, single operators and blobs.
#include <pthread.h>

#include "mirror_case.h"
#include "system/clock.h"
#include "unit.h"

static const float X[4] = {-3.0f, -1.0f, 0.5f, 2.0f};
static const float Y[4] = {0.0f, 0.0f, 1.5f, 3.0f}; /* Relu(x + 1) */
static const float ZERO[4] = {0};

typedef struct pair {
  mirror_tensor_t x;
  mirror_tensor_t y;
  void *workspace;
} pair_t;

static void make_pair(mirror_case_t *c, uint32_t device, const void *program, pair_t *pair) {
  mirror_case_upload(c, &pair->x, device, 4, X);
  mirror_case_upload(c, &pair->y, device, 4, ZERO);
  mirror_ok(*c, c->devices->alloc(c->state, device, c->backend->info(program)->workspace_bytes,
                                  &pair->workspace, &c->message));
}

static cleave_status_t launch(mirror_case_t *c, void *program, const pair_t *pair, void *stream) {
  mirror_tensor_t x = pair->x; /* gone when this returns: the library copies its arguments */
  mirror_tensor_t y = pair->y;
  x.view.dims = x.dims;
  y.view.dims = y.dims;
  cleave_run_args_t args = mirror_case_args(&x, &y);
  args.workspace = pair->workspace;
  args.stream = stream;
  cleave_status_t status = c->backend->run(program, &args, &c->message);
  memset(&x, 0, sizeof x);
  memset(&y, 0, sizeof y);
  return status;
}

UNIT_TEST(work_on_a_stream_happens_later_and_in_order) {
  mirror_case_t c = mirror_case_open();
  void *program = mirror_case_program(&c, 0, 4);
  pair_t pair;
  make_pair(&c, 0, program, &pair);
  void *stream = NULL;
  float result[4] = {0};
  mirror_tensor_t from;
  mirror_tensor_t to;
  mirror_ok(c, c.devices->stream_create(c.state, 0, &stream, &c.message));
  ck_assert_int_eq(mirror_case_set(&c, "latency_ns", "40000000"), CLEAVE_OK);
  mirror_case_tensor(&from, CLEAVE_INDEX_NONE, 4, X);
  mirror_case_tensor(&to, CLEAVE_INDEX_NONE, 4, result);
  uint64_t start = cleave_clock_now();
  mirror_ok(c, c.devices->copy_to(c.state, 0, &pair.x.view, &from.view, stream, &c.message));
  mirror_ok(c, launch(&c, program, &pair, stream));
  mirror_ok(c, c.devices->copy_from(c.state, 0, &to.view, &pair.y.view, stream, &c.message));
  ck_assert_double_lt(cleave_clock_ms(start, cleave_clock_now()), 80.0);
  mirror_ok(c, c.devices->stream_wait(c.state, stream, &c.message));
  ck_assert_double_ge(cleave_clock_ms(start, cleave_clock_now()), 80.0); /* the program knows of no latency */
  ck_assert_mem_eq(result, Y, sizeof Y);
  ck_assert_int_eq(mirror_case_ask(&c, "launches_queued"), 1);
  c.devices->stream_destroy(c.state, stream);
  c.backend->unload(program);
}

UNIT_TEST(more_than_the_queue_holds_is_put_on_a_stream) {
  mirror_case_t c = mirror_case_open();
  void *stream = NULL;
  static float values[1000];
  mirror_tensor_t target;
  mirror_case_upload(&c, &target, 1, 4, ZERO);
  mirror_ok(c, c.devices->stream_create(c.state, 1, &stream, &c.message));
  target.dims[0] = 1;
  for (size_t k = 0; k < 1000; k++) {
    mirror_tensor_t from;
    values[k] = (float)k;
    mirror_case_tensor(&from, CLEAVE_INDEX_NONE, 1, &values[k]);
    mirror_ok(c, c.devices->copy_to(c.state, 1, &target.view, &from.view, stream, &c.message));
  }
  mirror_ok(c, c.devices->stream_wait(c.state, stream, &c.message));
  mirror_case_expect(&c, &target, &values[999]);
  c.devices->stream_destroy(c.state, stream);
}

UNIT_TEST(a_failure_stays_with_its_stream_until_it_is_told) {
  mirror_case_t c = mirror_case_open();
  void *program = mirror_case_program(&c, 0, 4);
  pair_t pair;
  make_pair(&c, 0, program, &pair);
  pair_t wrong = pair;
  void *stream = NULL;
  void *event = NULL;
  void *other = NULL;
  mirror_case_tensor(&wrong.x, CLEAVE_INDEX_NONE, 4, X);
  mirror_ok(c, c.devices->stream_create(c.state, 0, &stream, &c.message));
  mirror_ok(c, c.devices->stream_create(c.state, 0, &other, &c.message));
  mirror_ok(c, c.devices->event_create(c.state, 0, &event, &c.message));
  mirror_ok(c, launch(&c, program, &wrong, stream));
  mirror_ok(c, c.devices->event_record(c.state, event, stream, &c.message));
  mirror_case_refused(&c, c.devices->event_wait(c.state, event, NULL, &c.message),
                      CLEAVE_ERROR_INVALID_ARGUMENT, "input 0 lies in host memory");
  mirror_ok(c, launch(&c, program, &pair, stream)); /* left out */
  mirror_ok(c, c.devices->event_wait(c.state, event, other, &c.message));
  c.devices->event_destroy(c.state, event);
  mirror_case_refused(&c, c.devices->stream_wait(c.state, stream, &c.message), CLEAVE_ERROR_INVALID_ARGUMENT,
                      "input 0 lies in host memory, expected memory of device 0");
  mirror_case_refused(&c, c.devices->stream_wait(c.state, other, &c.message), CLEAVE_ERROR_INVALID_ARGUMENT,
                      "input 0 lies in host memory");
  mirror_case_expect(&c, &pair.y, ZERO);
  mirror_ok(c, launch(&c, program, &pair, stream));
  mirror_ok(c, c.devices->stream_wait(c.state, stream, &c.message));
  mirror_case_expect(&c, &pair.y, Y);
  c.devices->stream_destroy(c.state, stream);
  c.devices->stream_destroy(c.state, other);
  c.backend->unload(program);
}

UNIT_TEST(a_stream_waits_for_what_another_one_has_done) {
  mirror_case_t c = mirror_case_open();
  void *first = NULL;
  void *second = NULL;
  void *event = NULL;
  mirror_tensor_t middle;
  mirror_tensor_t from;
  mirror_tensor_t to;
  float result[4] = {0};
  mirror_case_upload(&c, &middle, 0, 4, ZERO);
  mirror_case_tensor(&from, CLEAVE_INDEX_NONE, 4, X);
  mirror_case_tensor(&to, CLEAVE_INDEX_NONE, 4, result);
  mirror_ok(c, c.devices->stream_create(c.state, 0, &first, &c.message));
  mirror_ok(c, c.devices->stream_create(c.state, 0, &second, &c.message));
  mirror_ok(c, c.devices->event_create(c.state, 0, &event, &c.message));
  mirror_ok(c, c.devices->event_wait(c.state, event, second, &c.message)); /* never recorded: reached */
  mirror_ok(c, c.devices->event_wait(c.state, event, NULL, &c.message));
  ck_assert_int_eq(mirror_case_set(&c, "latency_ns", "20000000"), CLEAVE_OK);
  mirror_ok(c, c.devices->copy_to(c.state, 0, &middle.view, &from.view, first, &c.message));
  mirror_ok(c, c.devices->event_record(c.state, event, first, &c.message));
  mirror_ok(c, c.devices->event_wait(c.state, event, second, &c.message));
  mirror_ok(c, c.devices->copy_from(c.state, 0, &to.view, &middle.view, second, &c.message));
  c.devices->event_destroy(c.state, event); /* the streams still know it */
  mirror_ok(c, c.devices->stream_wait(c.state, second, &c.message));
  ck_assert_mem_eq(result, X, sizeof X);
  mirror_case_refused(&c, c.devices->event_record(c.state, event, NULL, &c.message),
                      CLEAVE_ERROR_INVALID_ARGUMENT, "an event is recorded on a stream");
  c.devices->stream_destroy(c.state, first);
  c.devices->stream_destroy(c.state, second);
}

UNIT_TEST(a_program_waits_on_a_stream_many_times) {
  mirror_case_t c = mirror_case_open();
  void *program = mirror_case_program(&c, 0, 4);
  pair_t pair;
  pair_t back;
  make_pair(&c, 0, program, &pair);
  back = pair;
  back.x.view.data = pair.y.view.data;
  back.y.view.data = pair.x.view.data;
  void *stream = NULL;
  mirror_ok(c, c.devices->stream_create(c.state, 0, &stream, &c.message));
  for (uint32_t k = 0; k < 10; k++) {
    mirror_ok(c, launch(&c, program, k % 2 == 0 ? &pair : &back, stream));
  }
  c.devices->stream_destroy(c.state, stream); /* does what is on it */
  mirror_case_expect(&c, &pair.x, (float[]){9.0f, 9.0f, 10.5f, 12.0f});
  c.backend->unload(program);
}

UNIT_TEST(a_program_does_not_run_on_two_streams_at_once) {
  mirror_case_t c = mirror_case_open();
  ck_assert_int_eq(mirror_case_set(&c, "latency_ns", "500000000"), CLEAVE_OK);
  void *program = mirror_case_program(&c, 0, 4);
  ck_assert_int_eq(mirror_case_set(&c, "latency_ns", "0"), CLEAVE_OK);
  pair_t pair;
  make_pair(&c, 0, program, &pair);
  void *streams[2] = {NULL};
  uint32_t refused = 0;
  for (uint32_t k = 0; k < 2; k++) {
    mirror_ok(c, c.devices->stream_create(c.state, 0, &streams[k], &c.message));
    mirror_ok(c, launch(&c, program, &pair, streams[k]));
  }
  for (uint32_t k = 0; k < 2; k++) {
    cleave_status_t status = c.devices->stream_wait(c.state, streams[k], &c.message);
    refused += status == CLEAVE_ERROR_INVALID_ARGUMENT &&
               strcmp(c.message.text, "the program runs already: one call at a time") == 0;
    c.devices->stream_destroy(c.state, streams[k]);
  }
  ck_assert_uint_eq(refused, 1);
  mirror_case_expect(&c, &pair.y, Y);
  c.backend->unload(program);
}

UNIT_TEST(streams_are_of_the_device_that_they_are_used_for) {
  mirror_case_t c = mirror_case_open();
  void *program = mirror_case_program(&c, 0, 4);
  pair_t pair;
  make_pair(&c, 0, program, &pair);
  void *other = NULL;
  mirror_tensor_t from;
  mirror_case_tensor(&from, CLEAVE_INDEX_NONE, 4, X);
  mirror_ok(c, c.devices->stream_create(c.state, 1, &other, &c.message));
  mirror_case_refused(&c, launch(&c, program, &pair, other), CLEAVE_ERROR_INVALID_ARGUMENT,
                      "the stream is of device 1, the program of device 0");
  mirror_case_refused(&c, c.devices->copy_to(c.state, 0, &pair.x.view, &from.view, other, &c.message),
                      CLEAVE_ERROR_INVALID_ARGUMENT, "the stream is of device 1, the memory of device 0");
  c.devices->stream_destroy(c.state, other);
  c.backend->unload(program);
}

/* ---- many threads ---- */

typedef struct worker {
  pthread_t thread;
  mirror_case_t c;
  uint32_t device;
  bool failed;
} worker_t;

static void *work(void *context) {
  worker_t *worker = context;
  mirror_case_t *c = &worker->c;
  cleave_compile_options_t options = {.size = sizeof options, .threads = 1, .device = worker->device};
  view_builder_t *b = view_builder_create();
  int64_t count = 4;
  uint32_t x = view_builder_value(b, CLEAVE_DTYPE_F32, 1, &count);
  uint32_t y = view_builder_value(b, CLEAVE_DTYPE_F32, 1, &count);
  view_builder_node(b, "Relu", 1, &x, 1, &y);
  view_builder_output(b, y);
  for (uint32_t round = 0; round < 50 && !worker->failed; round++) {
    void *program = NULL;
    void *stream = NULL;
    float result[4] = {0};
    mirror_tensor_t input;
    mirror_tensor_t output;
    mirror_tensor_t to;
    worker->failed =
        c->backend->compile(c->state, view_builder_region(b), &options, &program, &c->message) != CLEAVE_OK;
    mirror_case_upload(c, &input, worker->device, 4, X);
    mirror_case_upload(c, &output, worker->device, 4, ZERO);
    mirror_case_tensor(&to, CLEAVE_INDEX_NONE, 4, result);
    mirror_ok(*c, c->devices->stream_create(c->state, worker->device, &stream, &c->message));
    cleave_run_args_t args = mirror_case_args(&input, &output);
    args.stream = stream;
    mirror_ok(*c, c->backend->run(program, &args, &c->message));
    mirror_ok(*c,
              c->devices->copy_from(c->state, worker->device, &to.view, &output.view, stream, &c->message));
    mirror_ok(*c, c->devices->stream_wait(c->state, stream, &c->message));
    worker->failed = worker->failed || result[0] != 0.0f || result[2] != 0.5f || result[3] != 2.0f;
    c->devices->stream_destroy(c->state, stream);
    c->devices->free(c->state, worker->device, (void *)(uintptr_t)input.view.data);
    c->devices->free(c->state, worker->device, (void *)(uintptr_t)output.view.data);
    c->backend->unload(program);
  }
  view_builder_destroy(b);
  return NULL;
}

UNIT_TEST(many_threads_share_the_devices_with_the_guard_on) {
  mirror_case_t c = mirror_case_open();
  worker_t workers[4];
  ck_assert_int_eq(mirror_case_set(&c, "guard", "1"), CLEAVE_OK);
  for (uint32_t k = 0; k < 4; k++) {
    workers[k] = (worker_t){.c = c, .device = k % 2};
    ck_assert_int_eq(pthread_create(&workers[k].thread, NULL, work, &workers[k]), 0);
  }
  for (uint32_t k = 0; k < 4; k++) {
    ck_assert_int_eq(pthread_join(workers[k].thread, NULL), 0);
    ck_assert(!workers[k].failed);
  }
  ck_assert_int_eq(mirror_case_ask(&c, "live_allocations"), 0);
  ck_assert_int_eq(mirror_case_ask(&c, "own_bytes"), 0);
  ck_assert_int_eq(mirror_case_ask(&c, "runs"), 200);
}

/* ---- single operators ---- */

UNIT_TEST(an_executor_gets_its_constants_with_every_call) {
  mirror_case_t c = mirror_case_open();
  const cleave_backend_imperative_t *imperative = c.backend->imperative;
  static const float TEN[4] = {10.0f, 10.0f, 10.0f, 10.0f};
  view_builder_t *b = view_builder_create();
  int64_t count = 4;
  uint32_t x = view_builder_value(b, CLEAVE_DTYPE_F32, 1, &count);
  uint32_t w = view_builder_constant(b, CLEAVE_DTYPE_F32, 1, &count, TEN);
  uint32_t y = view_builder_value(b, CLEAVE_DTYPE_F32, 1, &count);
  view_builder_node(b, "Sub", 2, (uint32_t[]){x, w}, 1, &y);
  view_builder_output(b, y);
  cleave_region_view_t node = *view_builder_region(b);
  node.inputs = (uint32_t[]){x, w};
  node.input_count = 2;
  void *executor = NULL;
  cleave_compile_options_t options = {.size = sizeof options, .threads = 1, .device = 1};
  mirror_ok(c, imperative->get_executor(c.state, &node, &options, &executor, &c.message));
  mirror_tensor_t a;
  mirror_tensor_t one;
  mirror_tensor_t result;
  mirror_case_upload(&c, &a, 1, 4, X);
  mirror_case_upload(&c, &one, 1, 4, (float[]){1.0f, 1.0f, 1.0f, 1.0f});
  mirror_case_upload(&c, &result, 1, 4, ZERO);
  cleave_tensor_view_t inputs[2] = {a.view, one.view};
  cleave_run_args_t args = {.size = sizeof args, .inputs = inputs, .outputs = &result.view};
  mirror_ok(c, imperative->execute(executor, &args, &c.message));
  mirror_case_expect(&c, &result, (float[]){-4.0f, -2.0f, -0.5f, 1.0f});
  cleave_request_t add = CLEAVE_REQUEST_ADD;
  args.requests = &add;
  mirror_ok(c, imperative->execute(executor, &args, &c.message));
  mirror_case_expect(&c, &result, (float[]){-8.0f, -4.0f, -1.0f, 2.0f});
  ck_assert_int_eq(mirror_case_ask(&c, "executors"), 1);
  ck_assert_int_eq(mirror_case_ask(&c, "executions"), 2);
  ck_assert_int_eq(mirror_case_ask(&c, "runs"), 0);
  imperative->release_executor(executor);
  view_builder_destroy(b);
  mirror_case_refused(
      &c, imperative->get_executor(c.state, mirror_case_region(4), &options, &executor, &c.message),
      CLEAVE_ERROR_INVALID_ARGUMENT, "an executor is for one node, this region has 2");
  ck_assert_int_eq(mirror_case_ask(&c, "own_bytes"), 0);
}

UNIT_TEST(executors_bring_their_own_scratch_memory) {
  mirror_case_t c = mirror_case_open();
  const cleave_backend_imperative_t *imperative = c.backend->imperative;
  view_builder_t *b = view_builder_create();
  uint32_t x = view_builder_value(b, CLEAVE_DTYPE_F32, 4, (int64_t[]){1, 2, 6, 6});
  uint32_t w = view_builder_value(b, CLEAVE_DTYPE_F32, 4, (int64_t[]){3, 2, 3, 3});
  uint32_t y = view_builder_value(b, CLEAVE_DTYPE_F32, 4, (int64_t[]){1, 3, 4, 4});
  uint32_t node = view_builder_node(b, "Conv", 2, (uint32_t[]){x, w}, 1, &y);
  view_builder_ints(b, node, "kernel_shape", 2, (int64_t[]){3, 3});
  view_builder_output(b, y);
  void *executor = NULL;
  cleave_compile_options_t options = {.size = sizeof options, .threads = 1};
  mirror_ok(c, imperative->get_executor(c.state, view_builder_region(b), &options, &executor, &c.message));
  float ones[72];
  for (size_t k = 0; k < 72; k++) {
    ones[k] = 1.0f;
  }
  mirror_tensor_t image;
  mirror_tensor_t weights;
  mirror_tensor_t result;
  mirror_case_upload(&c, &image, 0, 72, ones);
  mirror_case_upload(&c, &weights, 0, 54, ones);
  mirror_case_upload(&c, &result, 0, 48, ones);
  cleave_tensor_view_t inputs[2] = {image.view, weights.view};
  cleave_tensor_view_t output = result.view;
  inputs[0].rank = inputs[1].rank = output.rank = 4;
  inputs[0].dims = (int64_t[]){1, 2, 6, 6};
  inputs[1].dims = (int64_t[]){3, 2, 3, 3};
  output.dims = (int64_t[]){1, 3, 4, 4};
  cleave_run_args_t args = {.size = sizeof args, .inputs = inputs, .outputs = &output};
  for (uint32_t k = 0; k < 2; k++) {
    mirror_ok(c, imperative->execute(executor, &args, &c.message));
  }
  float expected[48];
  for (size_t k = 0; k < 48; k++) {
    expected[k] = 18.0f;
  }
  mirror_case_expect(&c, &result, expected);
  imperative->release_executor(executor);
  ck_assert_int_eq(mirror_case_ask(&c, "own_bytes"), 0);
  view_builder_destroy(b);
}

/* ---- blobs ---- */

typedef struct bytes {
  unsigned char data[256];
  size_t count;
  bool refuses;
} bytes_t;

static cleave_status_t write_bytes(void *context, const void *data, size_t count) {
  bytes_t *bytes = context;
  if (bytes->refuses || count > sizeof bytes->data - bytes->count) {
    return CLEAVE_ERROR_IO;
  }
  memcpy(bytes->data + bytes->count, data, count);
  bytes->count += count;
  return CLEAVE_OK;
}

UNIT_TEST(a_blob_makes_the_program_again) {
  mirror_case_t c = mirror_case_open();
  const cleave_backend_blobs_t *blobs = c.backend->blobs;
  void *program = mirror_case_program(&c, 1, 4);
  bytes_t bytes = {.count = 0};
  bytes_t full = {.refuses = true};
  mirror_ok(c, blobs->save(program, write_bytes, &bytes, &c.message));
  mirror_case_refused(&c, blobs->save(program, write_bytes, &full, &c.message), CLEAVE_ERROR_IO,
                      "the blob cannot be written");
  c.backend->unload(program);
  mirror_ok(c, blobs->check(c.state, 1, bytes.data, bytes.count, &c.message));
  mirror_case_refused(&c, blobs->check(c.state, 0, bytes.data, bytes.count, &c.message),
                      CLEAVE_ERROR_UNSUPPORTED, "the blob is for device 1, not for device 0");
  cleave_compile_options_t options = {.size = sizeof options, .threads = 1, .device = 1};
  mirror_ok(c, blobs->load(c.state, mirror_case_region(4), &options, bytes.data, bytes.count, &program,
                           &c.message));
  pair_t pair;
  make_pair(&c, 1, program, &pair);
  mirror_ok(c, launch(&c, program, &pair, NULL));
  mirror_case_expect(&c, &pair.y, Y);
  ck_assert_int_eq(mirror_case_ask(&c, "loaded"), 1);
  ck_assert_int_eq(mirror_case_ask(&c, "compiled"), 2);
  c.backend->unload(program);
  cleave_region_view_t other = *mirror_case_region(4);
  other.hash++;
  mirror_case_refused(&c,
                      blobs->load(c.state, &other, &options, bytes.data, bytes.count, &program, &c.message),
                      CLEAVE_ERROR_UNSUPPORTED, "the blob was compiled from another region");
}

UNIT_TEST(no_byte_of_a_blob_is_taken_on_trust) {
  mirror_case_t c = mirror_case_open();
  const cleave_backend_blobs_t *blobs = c.backend->blobs;
  void *program = mirror_case_program(&c, 0, 4);
  bytes_t bytes = {.count = 0};
  mirror_ok(c, blobs->save(program, write_bytes, &bytes, &c.message));
  c.backend->unload(program);
  cleave_compile_options_t options = {.size = sizeof options, .threads = 1};
  for (size_t k = 0; k < bytes.count; k++) {
    for (unsigned bit = 0; bit < 8; bit++) {
      bytes.data[k] ^= (unsigned char)(1u << bit);
      ck_assert_int_eq(blobs->check(c.state, 0, bytes.data, bytes.count, &c.message),
                       CLEAVE_ERROR_UNSUPPORTED);
      ck_assert_int_eq(blobs->load(c.state, mirror_case_region(4), &options, bytes.data, bytes.count,
                                   &program, &c.message),
                       CLEAVE_ERROR_UNSUPPORTED);
      ck_assert_ptr_null(program);
      bytes.data[k] ^= (unsigned char)(1u << bit);
    }
    ck_assert_int_eq(blobs->check(c.state, 0, bytes.data, k, &c.message), CLEAVE_ERROR_UNSUPPORTED);
  }
  ck_assert_int_eq(blobs->check(c.state, 0, bytes.data, bytes.count + 1, &c.message),
                   CLEAVE_ERROR_UNSUPPORTED);
  ck_assert_int_eq(blobs->check(c.state, 0, NULL, 0, &c.message), CLEAVE_ERROR_UNSUPPORTED);
  mirror_ok(c, blobs->check(c.state, 0, bytes.data, bytes.count, &c.message));
}

UNIT_SUITE("mirror_streams")
