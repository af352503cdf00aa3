// SPDX-License-Identifier: Apache-2.0
// Clients ask again as soon as they are answered. A session stays on its thread, which takes the request of
// the client that has waited longest: a session that goes from thread to thread leaves processors idle
// meanwhile. How many sessions answer most is measured: one with all processors reads its weights once, and
// several have no thread that waits for another. With batches clients are threads, and a server answers them.
#include "cli/run/report.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common/common.h"
#include "cli/common/output.h"
#include "cli/report/report.h"
#include "ops/attribute_view.h"
#include "runtime/serve/server.h"
#include "system/clock.h"
#include "system/threads.h"

enum { MAX_REQUESTS = 100000000, MAX_CONCURRENCY = 1024, MAX_WINDOW_MS = 60000, WARMUP_REQUESTS = 3 };

#define TRIAL_SECONDS 0.1 /* of each number of sessions */

/* All threads share this. */
typedef struct load {
  cleave_run_requests_t *requests;
  const cleave_run_sessions_t *sessions; /* without batches: what answers */
  double *times;                         /* NULL while warming up */
  int64_t count;                         /* requests */
  pthread_mutex_t lock;                  /* guards what follows */
  int64_t next;
  int64_t answered;
  uint64_t *asked; /* since when request n waits, at n modulo the number of clients */
  bool has_failed;
} load_t;

/* A thread that runs requests: a session's, or with batches a client's. */
typedef struct runner {
  load_t *load;
  cleave_session_t *session;            /* without batches */
  int64_t client;                       /* with batches */
  cleave_tensor_view_t *views;          /* with batches: of its outputs */
  const cleave_tensor_view_t **outputs; /* to the views */
  pthread_t thread;
  cleave_error_t error; /* of its last request */
  cleave_status_t status;
} runner_t;

static int64_t runner_count(const load_t *load) {
  return load->requests->window != NULL ? load->requests->concurrency : load->sessions->count;
}

/* ---- options ---- */

/* "2" and "2ms" are two milliseconds. */
static bool read_window(const char *text, double *out_ms) {
  char *end = NULL;
  *out_ms = strtod(text, &end);
  return end != text && (*end == '\0' || strcmp(end, "ms") == 0) && *out_ms >= 0.0 &&
         *out_ms <= MAX_WINDOW_MS;
}

static const char *check_batches(cleave_run_requests_t *requests) {
  if (requests->window == NULL) {
    bool has_limit = requests->batch_limit >= 0;
    requests->batch_limit = 1;
    return has_limit ? "option '--batch-limit' is for '--batch-window'" : NULL;
  }
  if (!read_window(requests->window, &requests->window_ms)) {
    return "option '--batch-window': expected milliseconds, 0 to 60000, as in '2ms'";
  }
  if (requests->batch_limit < 0) {
    requests->batch_limit = (requests->concurrency + requests->sessions.count - 1) / requests->sessions.count;
  }
  return requests->batch_limit < 1 || requests->batch_limit > MAX_CONCURRENCY
             ? "option '--batch-limit': expected 1 to 1024"
             : NULL;
}

/* The threads of each of so many sessions, which share the processors. */
static int64_t share_of(int64_t count) {
  int64_t share = cleave_threads_available() / count;
  return share < 1 ? 1 : share;
}

/* Takes as many sessions as have processors of their own, or fewer if that is measured to answer more. With
 * batches, two clients share one. */
static void share_processors(cleave_run_requests_t *requests, int64_t *threads) {
  int64_t most = requests->concurrency;
  if (*threads == 0 && most > 1) {
    requests->is_measured = requests->window == NULL;
    most = requests->window != NULL ? most / 2 : most;
    *threads = share_of(most);
  }
  int64_t count = *threads == 0 ? 1 : share_of(*threads);
  requests->sessions.count = count < most ? count : most;
  requests->sessions.threads = *threads == 0 ? share_of(1) : *threads;
}

const char *cleave_run_requests_check(cleave_run_requests_t *requests, int64_t *threads) {
  bool has_concurrency = requests->concurrency >= 0;
  if (requests->count < 0) {
    bool has_batches = requests->batch_limit >= 0 || requests->window != NULL;
    *requests = (cleave_run_requests_t){0};
    return has_concurrency ? "option '--concurrency' is for '--requests'"
           : has_batches   ? "options '--batch-window' and '--batch-limit' are for '--requests'"
                           : NULL;
  }
  requests->concurrency = has_concurrency ? requests->concurrency : 1;
  if (requests->count < 1 || requests->count > MAX_REQUESTS) {
    return "option '--requests': expected 1 to 100000000";
  }
  if (requests->concurrency < 1 || requests->concurrency > MAX_CONCURRENCY) {
    return "option '--concurrency': expected 1 to 1024";
  }
  share_processors(requests, threads);
  return check_batches(requests);
}

void cleave_run_requests_keep(cleave_run_requests_t *requests, const cleave_job_t *job) {
  if (requests->window != NULL) {
    requests->model = cleave_model_retain(job->model);
  }
}

/* ---- runners ---- */

/* The client whose request was answered asks for the next one. False: no request is left. */
static bool take(load_t *load, bool has_answered, int64_t *out_number, uint64_t *out_start) {
  int64_t clients = load->requests->concurrency;
  (void)pthread_mutex_lock(&load->lock);
  if (has_answered) {
    load->asked[load->answered++ % clients] = cleave_clock_now();
  }
  bool is_there = !load->has_failed && load->next < load->count;
  if (is_there) {
    *out_number = load->next++;
    *out_start = load->asked[*out_number % clients];
  }
  (void)pthread_mutex_unlock(&load->lock);
  return is_there;
}

static void fail(load_t *load) {
  (void)pthread_mutex_lock(&load->lock);
  load->has_failed = true;
  (void)pthread_mutex_unlock(&load->lock);
}

static void *work(void *context) {
  runner_t *runner = context;
  load_t *load = runner->load;
  const cleave_run_requests_t *requests = load->requests;
  int64_t number = 0;
  uint64_t start = 0;
  const cleave_tensor_view_t *const *inputs =
      requests->server == NULL ? NULL : cleave_run_variants_inputs(&requests->variants, runner->client);
  for (bool has_answered = false; take(load, has_answered, &number, &start); has_answered = true) {
    runner->status = requests->server == NULL
                         ? cleave_session_run(runner->session, &runner->error)
                         : cleave_server_run(requests->server, inputs, requests->variants.input_count,
                                             runner->outputs, requests->output_count, &runner->error);
    if (load->times != NULL) {
      load->times[number] = cleave_clock_ms(start, cleave_clock_now());
    }
    if (runner->status != CLEAVE_OK) {
      fail(load);
    }
  }
  return NULL;
}

/* The caller is the first runner's thread. */
static cleave_status_t run_all(load_t *load, runner_t *runners, cleave_error_t *error) {
  int64_t count = runner_count(load);
  int64_t started = 1;
  cleave_status_t status = CLEAVE_OK;
  uint64_t start = cleave_clock_now();
  load->next = load->answered = 0;
  for (int64_t k = 0; k < load->requests->concurrency; k++) {
    load->asked[k] = start;
  }
  while (started < count && pthread_create(&runners[started].thread, NULL, work, &runners[started]) == 0) {
    started++;
  }
  if (started < count) {
    fail(load);
    status = cleave_error_set(error, CLEAVE_ERROR_LIMIT, "the system starts %" PRId64 " thread%s of %" PRId64,
                              started, CLEAVE_PLURAL(started), count);
  } else {
    (void)work(&runners[0]);
  }
  for (int64_t k = 1; k < started; k++) {
    (void)pthread_join(runners[k].thread, NULL);
  }
  load->requests->seconds = cleave_clock_ms(start, cleave_clock_now()) * 1e-3;
  for (int64_t k = 0; k < count && status == CLEAVE_OK; k++) {
    status = runners[k].status == CLEAVE_OK ? CLEAVE_OK : cleave_error_take(error, &runners[k].error);
  }
  return status;
}

/* ---- what answers ---- */

/* The first one is the job's if that has as many threads. Each runs once. */
static cleave_status_t make_sessions(cleave_run_sessions_t *sessions, const cleave_job_t *job,
                                     cleave_error_t *error) {
  bool has_first = sessions->threads == job->options->threads || job->options->threads == 0;
  sessions->items = cleave_allocate_zeroed((size_t)sessions->count, sizeof(cleave_session_t *));
  CLEAVE_TRY_MEMORY(sessions->items, error);
  sessions->items[0] = has_first ? job->session : NULL;
  sessions->first_owned = has_first ? 1 : 0;
  for (int64_t k = sessions->first_owned; k < sessions->count; k++) {
    CLEAVE_TRY(cleave_job_add_session(job, sessions->threads, &sessions->items[k], error));
    CLEAVE_TRY(cleave_session_run(sessions->items[k], error));
  }
  return CLEAVE_OK;
}

static void destroy_sessions(cleave_run_sessions_t *sessions) {
  for (int64_t k = sessions->first_owned; sessions->items != NULL && k < sessions->count; k++) {
    cleave_session_destroy(sessions->items[k]);
  }
  cleave_free((void *)sessions->items);
  sessions->items = NULL;
}

static void use(load_t *load, runner_t *runners, const cleave_run_sessions_t *sessions) {
  load->sessions = sessions;
  for (int64_t k = 0; k < sessions->count; k++) {
    runners[k].session = sessions->items[k];
  }
}

/* How many requests these sessions answer in a second. */
static cleave_status_t try_sessions(load_t *load, runner_t *runners, const cleave_run_sessions_t *sessions,
                                    double *out_rate, cleave_error_t *error) {
  use(load, runners, sessions);
  load->count = WARMUP_REQUESTS * load->requests->concurrency;
  CLEAVE_TRY(run_all(load, runners, error));
  double wanted = TRIAL_SECONDS * (double)load->count / load->requests->seconds;
  load->count = wanted > MAX_REQUESTS          ? MAX_REQUESTS
                : (double)load->count > wanted ? load->count
                                               : (int64_t)wanted;
  CLEAVE_TRY(run_all(load, runners, error));
  *out_rate = (double)load->count / load->requests->seconds;
  return CLEAVE_OK;
}

/* The number of sessions that answer most: all that have a processor each, half as many, and so on. */
static cleave_status_t find_sessions(load_t *load, runner_t *runners, const cleave_job_t *job,
                                     cleave_error_t *error) {
  cleave_run_sessions_t *best = &load->requests->sessions;
  double best_rate = 0.0;
  CLEAVE_TRY(try_sessions(load, runners, best, &best_rate, error));
  for (int64_t count = best->count / 2; count >= 1; count /= 2) {
    cleave_run_sessions_t fewer = {.count = count, .threads = share_of(count)};
    double rate = 0.0;
    cleave_status_t status = make_sessions(&fewer, job, error);
    status = status == CLEAVE_OK ? try_sessions(load, runners, &fewer, &rate, error) : status;
    if (status == CLEAVE_OK && rate > best_rate) {
      cleave_run_sessions_t before = *best;
      *best = fewer;
      fewer = before;
      best_rate = rate;
    }
    destroy_sessions(&fewer);
    use(load, runners, best);
    CLEAVE_TRY(status);
  }
  return CLEAVE_OK;
}

static cleave_status_t make_server(cleave_run_requests_t *requests, const cleave_job_t *job,
                                   cleave_error_t *error) {
  cleave_partition_request_t rules;
  cleave_session_options_t session = cleave_common_session();
  session.threads = (int32_t)job->options->threads;
  session.imperative = job->options->imperative;
  session.workers = (int32_t)job->options->workers;
  cleave_server_options_t options = {.size = sizeof options,
                                     .sessions = (int32_t)requests->sessions.count,
                                     .session = &session,
                                     .batch_limit = (int32_t)requests->batch_limit,
                                     .batch_window_us = (uint32_t)(requests->window_ms * 1e3)};
  CLEAVE_TRY(cleave_job_request(job, &rules, error));
  cleave_form_source_t source = {.model = requests->model,
                                 .request = &rules,
                                 .inputs = job->inputs.pointers,
                                 .input_count = job->inputs.count,
                                 .known = job->settings.used};
  cleave_status_t status = cleave_server_create_from(&source, &options, &requests->server, error);
  cleave_rule_request_deinit(&rules);
  return status;
}

/* Memory for each client's outputs. */
static cleave_status_t make_outputs(cleave_run_requests_t *requests, runner_t *runners,
                                    cleave_error_t *error) {
  uint32_t count = cleave_model_output_count(requests->model);
  requests->output_count = count;
  requests->outputs =
      cleave_allocate_zeroed((size_t)requests->concurrency * count, sizeof(cleave_tensor_t *));
  CLEAVE_TRY_MEMORY(requests->outputs, error);
  for (int64_t k = 0; k < requests->concurrency; k++) {
    runner_t *client = &runners[k];
    client->views = cleave_allocate_zeroed(count, sizeof *client->views);
    client->outputs = cleave_allocate_zeroed(count, sizeof *client->outputs);
    CLEAVE_TRY_MEMORY(client->views != NULL && client->outputs != NULL, error);
    for (uint32_t o = 0; o < count; o++) {
      cleave_port_t port = {.size = sizeof port};
      cleave_tensor_t **output = &requests->outputs[(size_t)k * count + o];
      CLEAVE_TRY(cleave_server_output(requests->server, o, &port, error));
      CLEAVE_TRY(cleave_tensor_create(port.tensor.dtype, port.tensor.rank, port.tensor.dims, output, error));
      client->views[o] = cleave_tensor_view(*output);
      client->outputs[o] = &client->views[o];
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t prepare(load_t *load, runner_t *runners, const cleave_job_t *job,
                               cleave_error_t *error) {
  cleave_run_requests_t *requests = load->requests;
  for (int64_t k = 0; k < runner_count(load); k++) {
    runners[k] = (runner_t){.load = load, .client = k, .error = CLEAVE_ERROR_INIT};
  }
  if (requests->window != NULL) {
    CLEAVE_TRY(cleave_run_variants_make(&requests->variants, job, requests->concurrency, error));
    CLEAVE_TRY(make_server(requests, job, error));
    return make_outputs(requests, runners, error);
  }
  requests->joined = 1.0;
  CLEAVE_TRY(make_sessions(&requests->sessions, job, error));
  use(load, runners, &requests->sessions);
  return requests->is_measured ? find_sessions(load, runners, job, error) : CLEAVE_OK;
}

/* Batches of several sizes come up first while all clients warm up. */
static cleave_status_t measure(load_t *load, runner_t *runners, cleave_error_t *error) {
  cleave_run_requests_t *requests = load->requests;
  cleave_server_counts_t before = {.size = sizeof before};
  cleave_server_counts_t after = {.size = sizeof after};
  load->count = WARMUP_REQUESTS * requests->concurrency;
  CLEAVE_TRY(run_all(load, runners, error));
  if (requests->server != NULL) {
    cleave_server_counts(requests->server, &before);
  }
  load->count = requests->count;
  load->times = requests->times;
  CLEAVE_TRY(run_all(load, runners, error));
  if (requests->server != NULL) {
    cleave_server_counts(requests->server, &after);
    requests->joined = (double)(after.requests - before.requests) / (double)(after.runs - before.runs);
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_run_requests_run(cleave_run_requests_t *requests, cleave_job_t *job,
                                        cleave_error_t *error) {
  load_t load = {.requests = requests, .sessions = &requests->sessions, .lock = PTHREAD_MUTEX_INITIALIZER};
  cleave_status_t status = CLEAVE_OK;
  int64_t count = runner_count(&load);
  runner_t *runners = cleave_allocate_zeroed((size_t)count, sizeof *runners);
  load.asked = cleave_allocate_zeroed((size_t)requests->concurrency, sizeof *load.asked);
  requests->times = cleave_allocate_zeroed((size_t)requests->count, sizeof *requests->times);
  CLEAVE_TRY_MEMORY_CLEANUP(runners != NULL && load.asked != NULL && requests->times != NULL, error);
  CLEAVE_TRY_CLEANUP(prepare(&load, runners, job, error));
  CLEAVE_TRY_CLEANUP(measure(&load, runners, error));
  cleave_times_sort(requests->times, (size_t)requests->count);
cleanup:
  for (int64_t k = 0; runners != NULL && k < count; k++) {
    cleave_free(runners[k].views);
    cleave_free((void *)runners[k].outputs);
  }
  cleave_free(load.asked);
  cleave_free(runners);
  return status;
}

void cleave_run_requests_measured(cleave_run_requests_t *requests, double *times, double seconds,
                                  int64_t threads) {
  requests->times = times;
  requests->seconds = seconds;
  requests->sessions = (cleave_run_sessions_t){.count = 1, .threads = threads};
  requests->joined = 1.0;
  cleave_times_sort(times, (size_t)requests->count);
}

int64_t cleave_run_requests_answers(const cleave_run_requests_t *requests) {
  return requests->count == 0       ? 0
         : requests->server != NULL ? requests->concurrency
                                    : requests->sessions.count;
}

cleave_status_t cleave_run_requests_output(const cleave_run_requests_t *requests, int64_t answer,
                                           uint32_t index, cleave_tensor_view_t *out_view,
                                           cleave_error_t *error) {
  if (requests->server == NULL) {
    return cleave_session_output(requests->sessions.items[answer], index, out_view, error);
  }
  *out_view = cleave_tensor_view(requests->outputs[(size_t)answer * requests->output_count + index]);
  return CLEAVE_OK;
}

/* ---- reports ---- */

static double quantile(const cleave_run_requests_t *requests, double share) {
  return cleave_times_quantile(requests->times, (size_t)requests->count, share);
}

static double per_second(const cleave_run_requests_t *requests) {
  return requests->seconds > 0.0 ? (double)requests->count / requests->seconds : 0.0;
}

void cleave_run_requests_print(const cleave_run_requests_t *requests) {
  const double shares[] = {0.5, 0.9, 0.99, 1.0};
  if (requests->count == 0) {
    return;
  }
  cleave_text_t rows = {0};
  cleave_text_add(&rows,
                  "requests\tclients\tsessions\tthreads each\tper run\trequests/s\t"
                  "p50 ms\tp90 ms\tp99 ms\tmax ms\n");
  cleave_text_show(&rows, "%" PRId64 "\t%" PRId64 "\t%" PRId64 "\t%" PRId64 "\t%.1f\t%.1f", requests->count,
                   requests->concurrency, requests->sessions.count, requests->sessions.threads,
                   requests->joined, per_second(requests));
  for (size_t k = 0; k < sizeof shares / sizeof shares[0]; k++) {
    char text[32];
    cleave_text_show(&rows, "\t%s", cleave_times_format(quantile(requests, shares[k]), text, sizeof text));
  }
  cleave_text_add(&rows, "\n");
  cleave_output_table(&rows, "rrrrrrrrrr");
}

json_t *cleave_run_requests_json(const cleave_run_requests_t *requests) {
  if (requests->count == 0) {
    return json_null();
  }
  return json_pack("{s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "count",
                   (json_int_t)requests->count, "concurrency", (json_int_t)requests->concurrency, "sessions",
                   (json_int_t)requests->sessions.count, "threads", (json_int_t)requests->sessions.threads,
                   "batch_limit", (json_int_t)requests->batch_limit, "requests_per_run", requests->joined,
                   "seconds", requests->seconds, "per_second", per_second(requests), "mean_ms",
                   cleave_times_mean(requests->times, (size_t)requests->count), "p50_ms",
                   quantile(requests, 0.5), "p90_ms", quantile(requests, 0.9), "p99_ms",
                   quantile(requests, 0.99), "max_ms", quantile(requests, 1.0));
}

void cleave_run_requests_deinit(cleave_run_requests_t *requests) {
  destroy_sessions(&requests->sessions);
  for (size_t k = 0; requests->outputs != NULL && k < (size_t)requests->concurrency * requests->output_count;
       k++) {
    cleave_tensor_release(requests->outputs[k]);
  }
  cleave_run_variants_deinit(&requests->variants);
  cleave_server_destroy(requests->server);
  cleave_model_release(requests->model);
  cleave_free((void *)requests->outputs);
  cleave_free(requests->times);
}
