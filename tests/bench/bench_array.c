// SPDX-License-Identifier: Apache-2.0
/* What a call of an operator on arrays takes above the operator itself: a session that runs it alone. */
#include <stdio.h>
#include <stdlib.h>

#include "cleave/array.h"
#include "system/clock.h"

enum { ROUNDS = 7, COUNT = 20000 };

static void must(cleave_status_t status, const cleave_error_t *error) {
  if (status != CLEAVE_OK) {
    fprintf(stderr, "bench_array: %s\n", error->message);
    exit(1);
  }
}

/* Nanoseconds of a call of Relu on `count` floats, and of waiting for its result each time if `waits`. */
static double measure_calls(bool is_serial, bool waits, int64_t count) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_imperative_t *imperative = NULL;
  const cleave_imperative_options_t options = {.size = sizeof options, .threads = 1, .is_serial = is_serial};
  must(cleave_imperative_create(NULL, &options, &imperative, &error), &error);
  cleave_array_t *x = NULL;
  must(cleave_array_create(imperative, CLEAVE_DTYPE_F32, 1, &count, NULL, &x, &error), &error);
  double best = 1e30;
  for (int round = 0; round < ROUNDS; round++) {
    uint64_t start = cleave_clock_now();
    for (int k = 0; k < COUNT; k++) {
      cleave_array_t *y = NULL;
      const void *data = NULL;
      must(cleave_array_call(imperative, "Relu", &x, 1, NULL, 0, &y, 1, &error), &error);
      if (waits) {
        must(cleave_array_data(y, &data, &error), &error);
      }
      cleave_array_release(y);
    }
    must(cleave_imperative_wait(imperative, &error), &error);
    double each = (double)(cleave_clock_now() - start) / COUNT;
    best = each < best ? each : best;
  }
  cleave_array_release(x);
  cleave_imperative_destroy(imperative);
  return best;
}

static double measure_session(int64_t count) {
  char script[160];
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_model_t *model = NULL;
  cleave_session_t *session = NULL;
  char path[] = "/tmp/bench_array_XXXXXX.lua";
  int file = mkstemps(path, 4);
  snprintf(script, sizeof script, "local x = g.input('x', 'float32', { %lld })\ng.output('y', g.Relu(x))\n",
           (long long)count);
  FILE *stream = file >= 0 ? fdopen(file, "w") : NULL;
  if (stream == NULL || fputs(script, stream) < 0 || fclose(stream) != 0) {
    perror(path);
    exit(1);
  }
  must(cleave_model_load(NULL, path, NULL, &model, &error), &error);
  remove(path);
  const cleave_session_options_t options = {.size = sizeof options, .threads = 1};
  must(cleave_session_create(model, NULL, NULL, 0, &options, &session, &error), &error);
  float *data = calloc((size_t)count, sizeof *data);
  const cleave_tensor_view_t view = {
      .size = sizeof view, .dtype = CLEAVE_DTYPE_F32, .rank = 1, .dims = &count, .data = data};
  must(cleave_session_set_input(session, 0, &view, &error), &error);
  double best = 1e30;
  for (int round = 0; round < ROUNDS; round++) {
    uint64_t start = cleave_clock_now();
    for (int k = 0; k < COUNT; k++) {
      must(cleave_session_run(session, &error), &error);
    }
    double each = (double)(cleave_clock_now() - start) / COUNT;
    best = each < best ? each : best;
  }
  free(data);
  cleave_session_destroy(session);
  cleave_model_release(model);
  return best;
}

int main(void) {
  printf("nanoseconds of Relu (best of %d rounds of %d calls)\n", ROUNDS, COUNT);
  printf("%9s %9s %9s %18s %9s %18s\n", "elements", "session", "serial", "serial, each read", "worker",
         "worker, each read");
  static const int64_t counts[] = {1, 64, 1024, 16384};
  for (int k = 0; k < 4; k++) {
    printf("%9lld %9.0f %9.0f %18.0f %9.0f %18.0f\n", (long long)counts[k], measure_session(counts[k]),
           measure_calls(true, false, counts[k]), measure_calls(true, true, counts[k]),
           measure_calls(false, false, counts[k]), measure_calls(false, true, counts[k]));
  }
  return 0;
}
