// SPDX-License-Identifier: Apache-2.0
/*
 * A program that embeds cleave, on a machine that it shares: `bench_contention MODEL SECONDS [RULES]` runs
 * the model for that long on all processors that it may use, with inputs of zeros, and prints one line with
 *   median ms of a run, voluntary sleeps of all threads per run, whether contention was ever found (1 or 0),
 * threads. The first half of the runs is not counted. Who takes processors is up to the caller.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "cleave/cleave.h"
#include "system/clock.h"
#include "system/contention.h"
#include "system/threads.h"

enum { MAX_RUNS = 100000, MAX_INPUTS = 16 };

static double times[MAX_RUNS];

static void need(cleave_status_t status, const cleave_error_t *error) {
  if (status != CLEAVE_OK) {
    (void)fprintf(stderr, "bench_contention: %s\n", error->message);
    exit(1);
  }
}

static int compare_times(const void *a, const void *b) {
  double left = *(const double *)a;
  double right = *(const double *)b;
  return (left > right) - (left < right);
}

static long sleeps(void) {
  struct rusage usage;
  return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_nvcsw : 0;
}

static void set_zeros(cleave_model_t *model, cleave_session_t *session) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  static void *buffers[MAX_INPUTS];
  for (uint32_t k = 0; k < cleave_model_input_count(model) && k < MAX_INPUTS; k++) {
    cleave_port_t port = {.size = sizeof port};
    need(cleave_model_input(model, k, &port, &error), &error);
    int64_t count = cleave_view_element_count(&port.tensor);
    buffers[k] = calloc(count > 0 ? (size_t)count : 1, cleave_dtype_size(port.tensor.dtype));
    port.tensor.data = buffers[k];
    need(cleave_session_set_input(session, k, &port.tensor, &error), &error);
  }
}

/* Fills `times`; returns how many runs there were in `seconds`. */
static size_t run(cleave_session_t *session, double seconds, double *out_sleeps, bool *out_found) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  uint64_t start = cleave_clock_now();
  uint64_t warm = start + (uint64_t)(seconds * 0.5e9);
  size_t count = 0;
  long before = 0;
  for (uint64_t now = start; count < 3 || (now - start < (uint64_t)(seconds * 1e9) && count < MAX_RUNS);) {
    need(cleave_session_run(session, &error), &error);
    uint64_t end = cleave_clock_now();
    *out_found = *out_found || cleave_contention_found();
    times[count++] = cleave_clock_ms(now, end);
    now = end;
    if (now < warm) {
      count = 0;
      before = sleeps();
    }
  }
  *out_sleeps = (double)(sleeps() - before) / (double)count;
  return count;
}

int main(int argc, char **argv) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_context_t *context = NULL;
  cleave_model_t *model = NULL;
  cleave_plan_t *plan = NULL;
  cleave_session_t *session = NULL;
  if (argc < 3) {
    (void)fprintf(stderr, "usage: bench_contention MODEL SECONDS [RULES]\n");
    return 2;
  }
  cleave_rule_source_t rules = {.path = argc > 3 ? argv[3] : NULL};
  need(cleave_context_create(NULL, &context, &error), &error);
  need(cleave_model_load(context, argv[1], NULL, &model, &error), &error);
  if (argc > 3) {
    need(cleave_model_partition(
             model,
             &(cleave_partition_request_t){
                 .size = sizeof(cleave_partition_request_t), .sources = &rules, .source_count = 1},
             &plan, &error),
         &error);
  }
  need(cleave_session_create(model, plan, NULL, 0, NULL, &session, &error), &error);
  set_zeros(model, session);
  double slept = 0;
  bool found = false;
  size_t count = run(session, atof(argv[2]), &slept, &found);
  qsort(times, count, sizeof times[0], compare_times);
  (void)printf("%.3f %.1f %d %d\n", times[count / 2], slept, found ? 1 : 0, (int)cleave_threads_available());
  cleave_session_destroy(session);
  cleave_plan_destroy(plan);
  cleave_model_release(model);
  cleave_context_release(context);
  return 0;
}
