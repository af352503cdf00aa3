// SPDX-License-Identifier: Apache-2.0
// A thread per session takes requests from one counter, so that no session waits while there are requests
// left.
#include "cli/report/run_requests.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>

#include "cli/common/output.h"
#include "cli/report/times.h"
#include "system/clock.h"
#include "system/threads.h"

enum { MAX_REQUESTS = 100000000, MAX_CONCURRENCY = 1024 };

/* What all threads share. */
typedef struct load {
  cleave_run_requests_t *requests;
  _Atomic int64_t next;
  atomic_bool failed;
} load_t;

typedef struct lane {
  load_t *load;
  cleave_session_t *session;
  pthread_t thread;
  cleave_error_t error; /* of its last request */
  cleave_status_t status;
} lane_t;

const char *cleave_run_requests_check(cleave_run_requests_t *requests) {
  bool has_concurrency = requests->concurrency >= 0;
  if (requests->count < 0) {
    *requests = (cleave_run_requests_t){0};
    return has_concurrency ? "option '--concurrency' is for '--requests'" : NULL;
  }
  requests->concurrency = has_concurrency ? requests->concurrency : 1;
  if (requests->count < 1 || requests->count > MAX_REQUESTS) {
    return "option '--requests': expected 1 to 100000000";
  }
  return requests->concurrency < 1 || requests->concurrency > MAX_CONCURRENCY
             ? "option '--concurrency': expected 1 to 1024"
             : NULL;
}

int64_t cleave_run_requests_threads(const cleave_run_requests_t *requests, int64_t threads) {
  if (threads == 0 && requests->concurrency > 1) {
    threads = cleave_threads_available() / requests->concurrency;
    threads = threads < 1 ? 1 : threads;
  }
  return threads;
}

static void *work(void *context) {
  lane_t *lane = context;
  load_t *load = lane->load;
  cleave_run_requests_t *requests = load->requests;
  while (!atomic_load_explicit(&load->failed, memory_order_relaxed)) {
    int64_t number = atomic_fetch_add_explicit(&load->next, 1, memory_order_relaxed);
    if (number >= requests->count) {
      break;
    }
    uint64_t start = cleave_clock_now();
    lane->status = cleave_session_run(lane->session, &lane->error);
    requests->times[number] = cleave_clock_ms(start, cleave_clock_now());
    if (lane->status != CLEAVE_OK) {
      atomic_store_explicit(&load->failed, true, memory_order_relaxed);
    }
  }
  return NULL;
}

/* The caller is the first lane's thread. */
static cleave_status_t run_lanes(load_t *load, lane_t *lanes, cleave_error_t *error) {
  int64_t count = load->requests->concurrency;
  int64_t started = 1;
  cleave_status_t status = CLEAVE_OK;
  uint64_t start = cleave_clock_now();
  while (started < count && pthread_create(&lanes[started].thread, NULL, work, &lanes[started]) == 0) {
    started++;
  }
  if (started < count) {
    atomic_store(&load->failed, true);
    status = cleave_error_set(error, CLEAVE_ERROR_LIMIT, "the system starts %" PRId64 " threads of %" PRId64,
                              started, count);
  } else {
    (void)work(&lanes[0]);
  }
  for (int64_t k = 1; k < started; k++) {
    (void)pthread_join(lanes[k].thread, NULL);
  }
  load->requests->seconds = cleave_clock_ms(start, cleave_clock_now()) * 1e-3;
  for (int64_t k = 0; k < count && status == CLEAVE_OK; k++) {
    status = lanes[k].status == CLEAVE_OK ? CLEAVE_OK : cleave_error_take(error, &lanes[k].error);
  }
  return status;
}

cleave_status_t cleave_run_requests_run(cleave_run_requests_t *requests, cleave_job_t *job,
                                        cleave_error_t *error) {
  size_t lane_count = (size_t)requests->concurrency;
  load_t load = {.requests = requests};
  cleave_status_t status = CLEAVE_OK;
  lane_t *lanes = cleave_allocate_zeroed(lane_count, sizeof *lanes);
  requests->sessions = cleave_allocate_zeroed(lane_count, sizeof(cleave_session_t *));
  requests->times = cleave_allocate_zeroed((size_t)requests->count, sizeof *requests->times);
  if (lanes == NULL || requests->sessions == NULL || requests->times == NULL) {
    CLEAVE_TRY_CLEANUP(cleave_error_out_of_memory(error));
  }
  for (size_t k = 0; k < lane_count; k++) {
    lanes[k] = (lane_t){.load = &load, .session = job->session, .error = CLEAVE_ERROR_INIT};
    if (k > 0) {
      CLEAVE_TRY_CLEANUP(cleave_job_add_session(job, &requests->sessions[k - 1], error));
      lanes[k].session = requests->sessions[k - 1];
      CLEAVE_TRY_CLEANUP(cleave_session_run(lanes[k].session, error));
    }
  }
  CLEAVE_TRY_CLEANUP(run_lanes(&load, lanes, error));
  cleave_times_sort(requests->times, (size_t)requests->count);
cleanup:
  cleave_free(lanes);
  return status;
}

static double quantile(const cleave_run_requests_t *requests, double share) {
  return cleave_times_quantile(requests->times, (size_t)requests->count, share);
}

static double mean(const cleave_run_requests_t *requests) {
  double sum = 0.0;
  for (int64_t k = 0; k < requests->count; k++) {
    sum += requests->times[k];
  }
  return sum / (double)requests->count;
}

static double per_second(const cleave_run_requests_t *requests) {
  return requests->seconds > 0.0 ? (double)requests->count / requests->seconds : 0.0;
}

void cleave_run_requests_print(const cleave_run_requests_t *requests, int64_t threads) {
  static const char *const heading[] = {"requests", "at a time", "threads each", "requests/s",
                                        "p50 ms",   "p90 ms",    "p99 ms",       "max ms"};
  const double shares[] = {0.5, 0.9, 0.99, 1.0};
  if (requests->count == 0) {
    return;
  }
  cleave_table_t table = {.columns = sizeof heading / sizeof heading[0], .alignment = "rrrrrrrr"};
  for (size_t k = 0; k < table.columns; k++) {
    cleave_table_cell(&table, "%s", heading[k]);
  }
  cleave_table_cell(&table, "%" PRId64, requests->count);
  cleave_table_cell(&table, "%" PRId64, requests->concurrency);
  cleave_table_cell(&table, "%" PRId64, threads);
  cleave_table_cell(&table, "%.1f", per_second(requests));
  for (size_t k = 0; k < sizeof shares / sizeof shares[0]; k++) {
    char text[32];
    cleave_table_cell(&table, "%s", cleave_times_format(quantile(requests, shares[k]), text, sizeof text));
  }
  cleave_table_print(&table);
  cleave_table_deinit(&table);
}

json_t *cleave_run_requests_json(const cleave_run_requests_t *requests, int64_t threads) {
  if (requests->count == 0) {
    return json_null();
  }
  return json_pack("{s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "count", (json_int_t)requests->count,
                   "concurrency", (json_int_t)requests->concurrency, "threads", (json_int_t)threads,
                   "seconds", requests->seconds, "per_second", per_second(requests), "mean_ms",
                   mean(requests), "p50_ms", quantile(requests, 0.5), "p90_ms", quantile(requests, 0.9),
                   "p99_ms", quantile(requests, 0.99), "max_ms", quantile(requests, 1.0));
}

void cleave_run_requests_deinit(cleave_run_requests_t *requests) {
  for (int64_t k = 0; requests->sessions != NULL && k < requests->concurrency; k++) {
    cleave_session_destroy(requests->sessions[k]);
  }
  cleave_free((void *)requests->sessions);
  cleave_free(requests->times);
}
