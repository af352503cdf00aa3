// SPDX-License-Identifier: Apache-2.0
/* What the engine takes for an empty operation, and how two workers share operations that take longer. */
#include <stdio.h>
#include <stdlib.h>

#include "cleave/engine.h"
#include "system/clock.h"

enum { COUNT = 200000, ROUNDS = 5, VARIABLES = 64 };

static cleave_status_t nothing(void *self, const cleave_engine_run_t *run, cleave_error_t *error) {
  (void)self;
  (void)run;
  (void)error;
  return CLEAVE_OK;
}

static cleave_status_t spin(void *self, const cleave_engine_run_t *run, cleave_error_t *error) {
  (void)run;
  (void)error;
  uint64_t end = cleave_clock_now() + *(const uint64_t *)self;
  while (cleave_clock_now() < end) {
  }
  return CLEAVE_OK;
}

static void must(cleave_status_t status, const cleave_error_t *error) {
  if (status != CLEAVE_OK) {
    fprintf(stderr, "bench_engine: %s\n", error->message);
    exit(1);
  }
}

static cleave_engine_t *create(uint32_t workers) {
  cleave_engine_t *engine = NULL;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  const cleave_engine_device_t device = {.size = sizeof device, .name = "host", .workers = workers};
  const cleave_engine_options_t options = {
      .size = sizeof options, .is_serial = workers == 0, .devices = &device, .device_count = 1};
  must(cleave_engine_create(&options, &engine, &error), &error);
  return engine;
}

/* Nanoseconds an operation with `reads` reads and one write, the best of some rounds. */
static double measure(uint32_t workers, uint32_t reads, uint32_t bulk, cleave_operation_run_t run,
                      uint64_t work, int count) {
  cleave_engine_t *engine = create(workers);
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_variable_t *variables[VARIABLES + 8];
  for (int k = 0; k < VARIABLES + 8; k++) {
    must(cleave_variable_create(engine, NULL, &variables[k], &error), &error);
  }
  (void)cleave_engine_set_bulk(engine, bulk);
  double best = 1e30;
  for (int round = 0; round < ROUNDS; round++) {
    uint64_t start = cleave_clock_now();
    for (int k = 0; k < count; k++) {
      const cleave_operation_info_t info = {.size = sizeof info,
                                            .name = "op",
                                            .run = run,
                                            .self = &work,
                                            .reads = &variables[VARIABLES],
                                            .read_count = reads,
                                            .writes = &variables[k % VARIABLES],
                                            .write_count = 1};
      must(cleave_engine_push(engine, &info, &error), &error);
    }
    must(cleave_engine_wait(engine, &error), &error);
    double each = (double)(cleave_clock_now() - start) / count;
    best = each < best ? each : best;
  }
  for (int k = 0; k < VARIABLES + 8; k++) {
    cleave_variable_release(variables[k], NULL, NULL);
  }
  cleave_engine_destroy(engine);
  return best;
}

int main(void) {
  printf("empty operations, nanoseconds each (best of %d rounds of %d)\n", ROUNDS, COUNT);
  printf("%-22s %8s %9s %9s %15s %15s\n", "variables", "serial", "1 worker", "2 workers", "1 worker, bulks",
         "2 workers, bulks");
  static const uint32_t reads[] = {0, 3, 7};
  for (int k = 0; k < 3; k++) {
    printf("%u read, 1 written %6s %8.0f %9.0f %9.0f %15.0f %15.0f\n", reads[k], "",
           measure(0, reads[k], 0, nothing, 0, COUNT), measure(1, reads[k], 0, nothing, 0, COUNT),
           measure(2, reads[k], 0, nothing, 0, COUNT), measure(1, reads[k], 16, nothing, 0, COUNT),
           measure(2, reads[k], 16, nothing, 0, COUNT));
  }
  printf("\noperations that take a while: time of 1 worker over that of 2\n");
  static const uint64_t times[] = {1000, 2000, 5000, 10000, 50000};
  for (int k = 0; k < 5; k++) {
    int count = (int)(100000000 / times[k]);
    double one = measure(1, 1, 0, spin, times[k], count);
    double two = measure(2, 1, 0, spin, times[k], count);
    printf("%3llu us %6.2f\n", (unsigned long long)times[k] / 1000, one / two);
  }
  return 0;
}
