// SPDX-License-Identifier: Apache-2.0
/* Devices with streams, on a device made of threads: work runs in the order of its stream, waits for events
 * of others, and nobody who may not see it before its end does. */
#include <pthread.h>

#include "engine_case.h"

/* ---- the device ---- */

typedef struct fake_work {
  int *from[4]; /* sum of these ... */
  int from_count;
  int *to; /* ... and 1 goes here, modulo MODULUS */
  uint32_t milliseconds;
  struct fake_event *record;
  struct fake_event *wait;
  uint64_t generation;
} fake_work_t;

enum { FAKE_ROOM = 4096, MODULUS = 1000003 };

typedef struct fake_stream {
  struct fake_device *device;
  pthread_t thread;
  fake_work_t work[FAKE_ROOM];
  size_t first;
  size_t end;
  bool is_ending;
} fake_stream_t;

typedef struct fake_event {
  uint64_t recorded; /* how often; a wait is for the last record before it */
  uint64_t reached;
} fake_event_t;

typedef struct fake_device {
  pthread_mutex_t lock;
  pthread_cond_t change;
  int streams;
  int events;
  int waits;
  int synchronizes;
  int fail_create; /* the Nth fails */
  int fail_record;
  bool is_lost; /* synchronize fails */
} fake_device_t;

static void *run_stream(void *self) {
  fake_stream_t *stream = self;
  fake_device_t *device = stream->device;
  pthread_mutex_lock(&device->lock);
  for (;;) {
    while (stream->first == stream->end && !stream->is_ending) {
      pthread_cond_wait(&device->change, &device->lock);
    }
    if (stream->first == stream->end) {
      break;
    }
    fake_work_t work = stream->work[stream->first % FAKE_ROOM];
    while (work.wait != NULL && work.wait->reached < work.generation) {
      pthread_cond_wait(&device->change, &device->lock);
    }
    pthread_mutex_unlock(&device->lock);
    if (work.milliseconds > 0) {
      engine_case_sleep(work.milliseconds);
    }
    if (work.to != NULL) {
      int total = 0;
      for (int k = 0; k < work.from_count; k++) {
        total += *work.from[k];
      }
      *work.to = (total + 1) % MODULUS;
    }
    pthread_mutex_lock(&device->lock);
    if (work.record != NULL) {
      work.record->reached = work.generation;
    }
    stream->first++;
    pthread_cond_broadcast(&device->change);
  }
  pthread_mutex_unlock(&device->lock);
  return NULL;
}

static void enqueue(fake_stream_t *stream, const fake_work_t *work) {
  pthread_mutex_lock(&stream->device->lock);
  ck_assert_uint_lt(stream->end - stream->first, FAKE_ROOM);
  stream->work[stream->end++ % FAKE_ROOM] = *work;
  pthread_cond_broadcast(&stream->device->change);
  pthread_mutex_unlock(&stream->device->lock);
}

static cleave_status_t fake_create(void *self, void **out_stream, cleave_error_t *error) {
  fake_device_t *device = self;
  if (++device->streams == device->fail_create) {
    device->streams--;
    return cleave_error_set(error, CLEAVE_ERROR_BACKEND, "fake: no more streams");
  }
  fake_stream_t *stream = calloc(1, sizeof *stream);
  stream->device = device;
  pthread_create(&stream->thread, NULL, run_stream, stream);
  *out_stream = stream;
  return CLEAVE_OK;
}

static void fake_destroy(void *self, void *handle) {
  fake_device_t *device = self;
  fake_stream_t *stream = handle;
  pthread_mutex_lock(&device->lock);
  ck_assert_uint_eq(stream->first, stream->end);
  stream->is_ending = true;
  device->streams--;
  pthread_cond_broadcast(&device->change);
  pthread_mutex_unlock(&device->lock);
  pthread_join(stream->thread, NULL);
  free(stream);
}

static cleave_status_t fake_record(void *self, void *stream, void **event, cleave_error_t *error) {
  fake_device_t *device = self;
  pthread_mutex_lock(&device->lock);
  bool fails = device->fail_record > 0 && --device->fail_record == 0;
  if (*event == NULL && !fails) {
    *event = calloc(1, sizeof(fake_event_t));
    device->events++;
  }
  fake_event_t *recorded = *event;
  uint64_t generation = fails ? 0 : ++recorded->recorded;
  pthread_mutex_unlock(&device->lock);
  if (fails) {
    return cleave_error_set(error, CLEAVE_ERROR_BACKEND, "fake: cannot record");
  }
  enqueue(stream, &(fake_work_t){.record = recorded, .generation = generation});
  return CLEAVE_OK;
}

static cleave_status_t fake_wait(void *self, void *stream, void *event, cleave_error_t *error) {
  (void)error;
  fake_device_t *device = self;
  fake_event_t *waited = event;
  pthread_mutex_lock(&device->lock);
  uint64_t generation = waited->recorded;
  device->waits++;
  pthread_mutex_unlock(&device->lock);
  enqueue(stream, &(fake_work_t){.wait = waited, .generation = generation});
  return CLEAVE_OK;
}

static cleave_status_t fake_synchronize(void *self, void *event, cleave_error_t *error) {
  fake_device_t *device = self;
  fake_event_t *waited = event;
  pthread_mutex_lock(&device->lock);
  device->synchronizes++;
  uint64_t generation = waited->recorded;
  while (waited->reached < generation) {
    pthread_cond_wait(&device->change, &device->lock);
  }
  bool is_lost = device->is_lost;
  pthread_mutex_unlock(&device->lock);
  return is_lost ? cleave_error_set(error, CLEAVE_ERROR_BACKEND, "fake: the device is lost") : CLEAVE_OK;
}

static void fake_destroy_event(void *self, void *event) {
  ((fake_device_t *)self)->events--;
  free(event);
}

static const cleave_stream_functions_t fake_functions = {.size = sizeof fake_functions,
                                                         .create = fake_create,
                                                         .destroy = fake_destroy,
                                                         .record = fake_record,
                                                         .wait = fake_wait,
                                                         .synchronize = fake_synchronize,
                                                         .destroy_event = fake_destroy_event};

/* A host and one or two devices; `workers` streams each. */
static cleave_status_t create(fake_device_t *fakes, uint32_t count, uint32_t workers, bool is_serial,
                              cleave_engine_t **out_engine, cleave_error_t *error) {
  cleave_engine_device_t devices[3] = {{.size = sizeof devices[0], .name = "host", .workers = 2}};
  for (uint32_t k = 0; k < count; k++) {
    pthread_mutex_init(&fakes[k].lock, NULL);
    pthread_cond_init(&fakes[k].change, NULL);
    devices[1 + k] = (cleave_engine_device_t){.size = sizeof devices[0],
                                              .name = "fake",
                                              .workers = workers,
                                              .copy_workers = 1,
                                              .streams = &fake_functions,
                                              .self = &fakes[k]};
  }
  const cleave_engine_options_t options = {
      .size = sizeof options, .is_serial = is_serial, .devices = devices, .device_count = 1 + count};
  return cleave_engine_create(&options, out_engine, error);
}

static void end(fake_device_t *fakes, uint32_t count, cleave_engine_t *engine) {
  cleave_engine_destroy(engine);
  for (uint32_t k = 0; k < count; k++) {
    ck_assert_int_eq(fakes[k].streams, 0);
    ck_assert_int_eq(fakes[k].events, 0);
    pthread_mutex_destroy(&fakes[k].lock);
    pthread_cond_destroy(&fakes[k].change);
  }
}

/* ---- operations ---- */

/* The work, in the stream if there is one. */
static cleave_status_t run_sum(void *self, const cleave_engine_run_t *run, cleave_error_t *error) {
  (void)error;
  fake_work_t *sum = self;
  if (run->stream != NULL) {
    enqueue(run->stream, sum);
    return CLEAVE_OK;
  }
  int total = 0;
  for (int k = 0; k < sum->from_count; k++) {
    total += *sum->from[k];
  }
  *sum->to = (total + 1) % MODULUS;
  return CLEAVE_OK;
}

static void push_on(cleave_engine_t *engine, uint32_t device, uint32_t flags, cleave_operation_run_t run,
                    void *self, cleave_variable_t *const *reads, uint32_t read_count,
                    cleave_variable_t *write) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  const cleave_operation_info_t info = {.size = sizeof info,
                                        .name = "sum",
                                        .run = run,
                                        .self = self,
                                        .reads = reads,
                                        .read_count = read_count,
                                        .writes = &write,
                                        .write_count = write != NULL,
                                        .device = device,
                                        .flags = flags};
  ck_assert_msg(cleave_engine_push(engine, &info, &error) == CLEAVE_OK, "%s", error.message);
}

UNIT_TEST(the_host_sees_what_a_stream_wrote_and_no_worker_waits_for_it) {
  fake_device_t fake = {0};
  cleave_engine_t *engine = NULL;
  ck_assert_int_eq(create(&fake, 1, 1, false, &engine, NULL), CLEAVE_OK);
  cleave_variable_t *x = engine_case_variable(engine);
  cleave_variable_t *y = engine_case_variable(engine);
  int a = 0;
  int b = 0;
  int others = 0;
  fake_work_t slow = {.to = &a, .milliseconds = 100};
  fake_work_t host = {.from = {&a}, .from_count = 1, .to = &b};
  push_on(engine, 1, 0, run_sum, &slow, NULL, 0, x);
  for (int n = 0; n < 4; n++) { /* more than the host has workers */
    push_on(engine, 0, 0, run_sum, &host, &x, 1, y);
  }
  double start = engine_case_now();
  cleave_variable_t *z = engine_case_variable(engine);
  engine_case_push(engine, "other", engine_case_add_one, &others, NULL, 0, z);
  engine_case_wait(z);
  ck_assert_double_lt(engine_case_now() - start, 60);
  engine_case_wait(y);
  ck_assert_int_eq(a, 1);
  ck_assert_int_eq(b, 2);
  cleave_variable_t *all[] = {x, y, z};
  for (int k = 0; k < 3; k++) {
    cleave_variable_release(all[k], NULL, NULL);
  }
  engine_case_wait_all(engine);
  end(&fake, 1, engine);
}

UNIT_TEST(operations_of_one_stream_follow_without_events) {
  fake_device_t fake = {0};
  cleave_engine_t *engine = NULL;
  ck_assert_int_eq(create(&fake, 1, 1, false, &engine, NULL), CLEAVE_OK);
  cleave_variable_t *x = engine_case_variable(engine);
  int a = 0;
  fake_work_t add = {.from = {&a}, .from_count = 1, .to = &a};
  for (int n = 0; n < 500; n++) {
    push_on(engine, 1, 0, run_sum, &add, NULL, 0, x);
  }
  engine_case_wait(x);
  ck_assert_int_eq(a, 500);
  ck_assert_int_eq(fake.waits, 0);
  ck_assert_int_eq(fake.synchronizes, 1);
  ck_assert_int_le(fake.events, 3); /* recorded again and again */
  cleave_variable_release(x, NULL, NULL);
  engine_case_wait_all(engine);
  end(&fake, 1, engine);
}

static uint64_t next(uint64_t *state) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return *state >> 33;
}

/* Random sums over ten values, on a host and two devices with two streams and one for copies each. */
static void run_random(uint64_t seed, bool is_serial) {
  enum { COUNT = 10, OPERATIONS = 400 };
  fake_device_t fakes[2];
  memset(fakes, 0, sizeof fakes);
  cleave_engine_t *engine = NULL;
  ck_assert_int_eq(create(fakes, 2, 2, is_serial, &engine, NULL), CLEAVE_OK);
  cleave_variable_t *variables[COUNT];
  static int found[COUNT];
  int expected[COUNT];
  static fake_work_t sums[OPERATIONS];
  for (int k = 0; k < COUNT; k++) {
    variables[k] = engine_case_variable(engine);
    found[k] = expected[k] = k;
  }
  for (int n = 0; n < OPERATIONS; n++) {
    fake_work_t *sum = &sums[n];
    cleave_variable_t *reads[3];
    int total = 1;
    *sum = (fake_work_t){.from_count = 3};
    for (int r = 0; r < 3; r++) {
      int k = (int)(next(&seed) % COUNT);
      sum->from[r] = &found[k];
      reads[r] = variables[k];
      total += expected[k];
    }
    int to = (int)(next(&seed) % COUNT);
    sum->to = &found[to];
    sum->milliseconds = next(&seed) % 50 == 0;
    expected[to] = total % MODULUS;
    push_on(engine, (uint32_t)(next(&seed) % 3), next(&seed) % 4 == 0 ? CLEAVE_OPERATION_COPY : 0, run_sum,
            sum, reads, 3, variables[to]);
    if (next(&seed) % 100 == 0) {
      engine_case_wait(variables[next(&seed) % COUNT]);
    }
  }
  for (int k = 0; k < COUNT; k++) {
    engine_case_wait(variables[k]);
    ck_assert_int_eq(found[k], expected[k]);
    cleave_variable_release(variables[k], NULL, NULL);
  }
  engine_case_wait_all(engine);
  end(fakes, 2, engine);
}

UNIT_TEST(random_programs_over_streams_are_equal_to_the_serial_loop) {
  for (uint64_t seed = 1; seed < 6; seed++) {
    run_random(seed, false);
  }
  run_random(77, true);
}

/* ---- errors ---- */

UNIT_TEST(an_error_of_a_device_reaches_who_needs_its_values) {
  fake_device_t fake = {0};
  cleave_engine_t *engine = NULL;
  ck_assert_int_eq(create(&fake, 1, 1, false, &engine, NULL), CLEAVE_OK);
  cleave_variable_t *x = engine_case_variable(engine);
  cleave_variable_t *y = engine_case_variable(engine);
  int a = 0;
  int b = 0;
  fake_work_t device = {.to = &a};
  fake_work_t host = {.from = {&a}, .from_count = 1, .to = &b};
  fake.is_lost = true;
  push_on(engine, 1, 0, run_sum, &device, NULL, 0, x);
  push_on(engine, 0, 0, run_sum, &host, &x, 1, y);
  cleave_error_t error = CLEAVE_ERROR_INIT;
  ck_assert_int_eq(cleave_variable_wait(y, &error), CLEAVE_ERROR_BACKEND);
  ck_assert_str_eq(error.message, "operation 'sum': fake: the device is lost");
  ck_assert_int_eq(b, 0);
  cleave_error_clear(&error);
  ck_assert_int_eq(cleave_variable_wait(x, &error), CLEAVE_ERROR_BACKEND);
  ck_assert_str_eq(error.message, "fake: the device is lost");
  cleave_error_clear(&error);
  ck_assert_int_eq(cleave_engine_wait(engine, &error), CLEAVE_ERROR_BACKEND);
  fake.is_lost = false;
  fake.fail_record = 1;
  push_on(engine, 1, 0, run_sum, &device, NULL, 0, x);
  cleave_error_clear(&error);
  ck_assert_int_eq(cleave_variable_wait(x, &error), CLEAVE_ERROR_BACKEND);
  ck_assert_str_eq(error.message, "operation 'sum': fake: cannot record");
  push_on(engine, 1, 0, run_sum, &device, NULL, 0, x);
  engine_case_wait(x);
  cleave_variable_release(x, NULL, NULL);
  cleave_variable_release(y, NULL, NULL);
  engine_case_wait_all(engine);
  end(&fake, 1, engine);
}

UNIT_TEST(a_device_whose_streams_cannot_be_made_is_an_error) {
  for (int k = 1; k <= 3; k++) {
    fake_device_t fake = {.fail_create = k};
    cleave_engine_t *engine = NULL;
    cleave_error_t error = CLEAVE_ERROR_INIT;
    ck_assert_int_eq(create(&fake, 1, 2, false, &engine, &error), CLEAVE_ERROR_BACKEND);
    ck_assert_str_eq(error.message, "fake: no more streams");
    ck_assert_int_eq(fake.streams, 0);
  }
}

static void free_memory(void *self) {
  *(int *)self = -1;
}

UNIT_TEST(a_variable_ends_after_its_use_in_streams) {
  fake_device_t fake = {0};
  cleave_engine_t *engine = NULL;
  ck_assert_int_eq(create(&fake, 1, 2, false, &engine, NULL), CLEAVE_OK);
  cleave_variable_t *x = engine_case_variable(engine);
  cleave_variable_t *y = engine_case_variable(engine);
  int a = 5;
  int b = 0;
  fake_work_t slow = {.from = {&a}, .from_count = 1, .to = &b, .milliseconds = 50};
  push_on(engine, 1, 0, run_sum, &slow, &x, 1, y);
  cleave_variable_release(x, free_memory, &a); /* the stream still reads it */
  engine_case_wait(y);
  ck_assert_int_eq(b, 6);
  cleave_variable_release(y, NULL, NULL);
  engine_case_wait_all(engine);
  ck_assert_int_eq(a, -1);
  end(&fake, 1, engine);
}

UNIT_SUITE("engine, streams")
