// SPDX-License-Identifier: Apache-2.0
/*
 * `cleave run --requests N --concurrency K`: N runs of the model, K at a time, each time on a session of its
 * own over the same plan. Sessions share the model's weights, and what backends packed of them.
 *
 * The load is closed: as soon as a request is answered, the next one begins in its place. So the latency of a
 * request is the time of its run beside K - 1 others, without time in a queue.
 */
#ifndef CLEAVE_CLI_REPORT_RUN_REQUESTS_H
#define CLEAVE_CLI_REPORT_RUN_REQUESTS_H

#include <jansson.h>

#include "cli/common/job.h"

typedef struct cleave_run_requests {
  int64_t count;               /* N; 0: no requests are asked for */
  int64_t concurrency;         /* K */
  cleave_session_t **sessions; /* the other K - 1; the first is the job's */
  double *times;               /* per request in ms; sorted in the end */
  double seconds;              /* from the first request's begin to the last one's end */
} cleave_run_requests_t;

/* Before the options are read. */
#define CLEAVE_RUN_REQUESTS_UNSET \
  { .count = -1, .concurrency = -1 }

/* What is wrong with the options, or NULL; what nobody gave is set. */
const char *cleave_run_requests_check(cleave_run_requests_t *requests);

/* Threads for a run beside others: its share of those that `threads` (0: nobody says) leaves to it. */
int64_t cleave_run_requests_threads(const cleave_run_requests_t *requests, int64_t threads);

/* Makes the other sessions of a compiled job, runs each once, then all requests. If a request fails, no
 * further one begins, and its error is the result. */
CLEAVE_MUST_USE cleave_status_t cleave_run_requests_run(cleave_run_requests_t *requests, cleave_job_t *job,
                                                        cleave_error_t *error);

/* A table with one row, and an object with "count", "concurrency", "threads", "seconds", "per_second",
 * "mean_ms", "p50_ms", "p90_ms", "p99_ms" and "max_ms"; null if there were no requests. `threads` of each. */
void cleave_run_requests_print(const cleave_run_requests_t *requests, int64_t threads);
json_t *cleave_run_requests_json(const cleave_run_requests_t *requests, int64_t threads);

void cleave_run_requests_deinit(cleave_run_requests_t *requests);

#endif /* CLEAVE_CLI_REPORT_RUN_REQUESTS_H */
