// SPDX-License-Identifier: Apache-2.0
/*
 * `cleave run --requests N --concurrency K`: N runs of the model for K clients. Sessions are as many as have
 * processors of their own, over the same plan; they share the model's weights, and what backends packed of
 * them. With --batch-window, a server (cleave/server.h) joins requests that wait at the same time.
 *
 * The load is closed: as soon as a client's request is answered, its next one begins. The latency of a
 * request has the time in which it waits for a session.
 */
#ifndef CLEAVE_CLI_RUN_REQUESTS_H
#define CLEAVE_CLI_RUN_REQUESTS_H

#include <jansson.h>

#include "cleave/server.h"
#include "cli/common/job.h"

typedef struct cleave_run_requests {
  int64_t count;       /* N; 0: no requests are asked for */
  int64_t concurrency; /* K */
  int64_t batch_limit; /* requests that may run as one; 1 without --batch-window */
  const char *window;  /* --batch-window as it was given, or NULL */
  double window_ms;
  int64_t session_count;
  cleave_session_t **sessions; /* without batches: the first is the job's, the others are owned */
  cleave_model_t *model;       /* with batches: before it is bound */
  cleave_server_t *server;     /* with batches */
  cleave_tensor_t **outputs;   /* with batches: per client those of its last request */
  uint32_t output_count;
  double *times;  /* per request in ms; sorted in the end */
  double seconds; /* from the first request's begin to the last one's end */
  double joined;  /* requests per run of a session, on average */
} cleave_run_requests_t;

/* Before the options are read. */
#define CLEAVE_RUN_REQUESTS_UNSET \
  { .count = -1, .concurrency = -1, .batch_limit = -1 }

/* What is wrong with the options, or NULL; what nobody gave is set. `threads` is what --threads says, 0 if
 * nothing, and becomes that of each session. */
const char *cleave_run_requests_check(cleave_run_requests_t *requests, int64_t *threads);

/* With batches: keeps the model as it was loaded, with its open sizes. */
void cleave_run_requests_keep(cleave_run_requests_t *requests, const cleave_job_t *job);

/* Makes the other sessions of a compiled job, or the server, and runs each once, then all requests. If a
 * request fails, no further one begins, and its error is the result. */
CLEAVE_MUST_USE cleave_status_t cleave_run_requests_run(cleave_run_requests_t *requests, cleave_job_t *job,
                                                        cleave_error_t *error);

/* Takes over what processes measured that share the model as stages, in the place of cleave_run_requests_run:
 * `times` has room for `count`, and is the caller's before. */
void cleave_run_requests_measured(cleave_run_requests_t *requests, double *times, double seconds);

/* How many answers there are to look at: of every session the last one, or with batches of every client; and
 * output `index` of one of them. 0: there were no requests. */
int64_t cleave_run_requests_answers(const cleave_run_requests_t *requests);
CLEAVE_MUST_USE cleave_status_t cleave_run_requests_output(const cleave_run_requests_t *requests,
                                                           int64_t answer, uint32_t index,
                                                           cleave_tensor_view_t *out_view,
                                                           cleave_error_t *error);

/* A table with one row, and an object with "count", "concurrency", "sessions", "threads", "batch_limit",
 * "requests_per_run", "seconds", "per_second", "mean_ms", "p50_ms", "p90_ms", "p99_ms" and "max_ms"; null if
 * there were no requests. `threads` of each session. */
void cleave_run_requests_print(const cleave_run_requests_t *requests, int64_t threads);
json_t *cleave_run_requests_json(const cleave_run_requests_t *requests, int64_t threads);

void cleave_run_requests_deinit(cleave_run_requests_t *requests);

#endif /* CLEAVE_CLI_RUN_REQUESTS_H */
