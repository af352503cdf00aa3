// SPDX-License-Identifier: Apache-2.0
/* Prints what `cleave run` did, for people and as JSON. */
#ifndef CLEAVE_CLI_RUN_REPORT_H
#define CLEAVE_CLI_RUN_REPORT_H

#include <jansson.h>

#include "base/containers/array.h"
#include "cleave/server.h"
#include "cli/common/job.h"
#include "distributed/stage.h"
#include "tools/profile/profile.h"
#include "tools/verify/check.h"

/* stages.c: `mpirun -n N cleave run`: each process runs one of the N stages of the plan. All do the same with
 * the command line, as far as the plan; process 0 prints, writes outputs and checks them. */

/* The times of one process, which are means of the requests. */
typedef struct cleave_run_process {
  double compute_ms;
  double waited_ms;
  double sent_bytes;   /* in a request, outputs of the model included */
  double packed_bytes; /* weights as backends have packed them */
  double peak_mb;
} cleave_run_process_t;

typedef struct cleave_run_stages {
  cleave_communicator_t *communicator; /* NULL: nobody but this process runs */
  cleave_stage_t *stage;
  cleave_run_process_t *processes; /* by rank; NULL before cleave_run_stages_gather */
} cleave_run_stages_t;

/* Is this one of several processes? */
bool cleave_run_stages_exist(const cleave_run_stages_t *stages);

/* The stage of this process, of a job that has a plan, and its session, which becomes that of the job.
 * `status` says how the job fared so far; if one process fails, all do. `concurrency` as in
 * cleave_stage_source_t. */
CLEAVE_STATUS cleave_run_stages_make(cleave_run_stages_t *stages, cleave_job_t *job, int64_t concurrency,
                                     cleave_status_t status, cleave_error_t *error);

/* Runs requests; process 0 has the outputs of the last one in the job then. */
CLEAVE_STATUS cleave_run_stages_run(cleave_run_stages_t *stages, cleave_job_t *job, cleave_stage_load_t *load,
                                    cleave_error_t *error);

/* All fail if process 0 does, which alone writes and checks. */
CLEAVE_STATUS cleave_run_stages_agree(const cleave_run_stages_t *stages, cleave_status_t status,
                                      cleave_error_t *error);

/* Collects what the processes have to say about the last run, which was of so many requests. */
CLEAVE_STATUS cleave_run_stages_gather(cleave_run_stages_t *stages, const cleave_job_t *job, int64_t requests,
                                       cleave_error_t *error);

/* Nothing, and null, if nothing was gathered. */
void cleave_run_stages_print(const cleave_run_stages_t *stages);
json_t *cleave_run_stages_json(const cleave_run_stages_t *stages);

/* Must come before the job's end, because its session is of a model that the stage has. */
void cleave_run_stages_deinit(cleave_run_stages_t *stages, cleave_job_t *job);

/* requests.c: `cleave run --requests N --concurrency K`: N runs of the model for K clients. Sessions share
 * the processors; they are over the same plan, and have the model's weights, and what backends packed of
 * them, in common. Unless --threads is given, it is measured how many answer most. With --batch-window, a
 * server (cleave/server.h) joins requests that wait at the same time.
 *
 * The load is closed: as soon as a client's request is answered, its next one begins. The latency of a
 * request has the time in which it waits for a session. */

typedef struct cleave_run_sessions {
  cleave_session_t **items; /* NULL with batches; the first may be the job's, the others are owned */
  int64_t count;
  int64_t threads;     /* of each */
  int64_t first_owned; /* 1 if the first is the job's */
} cleave_run_sessions_t;

/* variants.c: what the clients of batches ask. Requests of different clients differ, so that rows that reach
 * another client, or depend on each other, are seen. */
enum { CLEAVE_RUN_MAX_VARIANTS = 4 };

typedef struct cleave_run_variants {
  int64_t count;                         /* client k asks variant k % count */
  size_t input_count;                    /* of each */
  uint32_t output_count;                 /* of each */
  cleave_tensor_t **inputs;              /* variant by variant */
  cleave_tensor_view_t *views;           /* of the inputs */
  const cleave_tensor_view_t **pointers; /* to the views */
  cleave_tensor_t **alone;               /* variant by variant: the outputs of the request if it runs alone */
} cleave_run_variants_t;

/* Runs each alone in the job's session. Deinitialise also after a failure. */
CLEAVE_STATUS cleave_run_variants_make(cleave_run_variants_t *variants, const cleave_job_t *job,
                                       int64_t clients, cleave_error_t *error);
/* Of a client; as many as the model has. */
const cleave_tensor_view_t *const *cleave_run_variants_inputs(const cleave_run_variants_t *variants,
                                                              int64_t client);
cleave_tensor_t *const *cleave_run_variants_alone(const cleave_run_variants_t *variants, int64_t client);
void cleave_run_variants_deinit(cleave_run_variants_t *variants);

typedef struct cleave_run_requests {
  int64_t count;       /* N; 0: no requests are asked for */
  int64_t concurrency; /* K */
  int64_t batch_limit; /* requests that may run as one; 1 without --batch-window */
  const char *window;  /* --batch-window as it was given, or NULL */
  double window_ms;
  bool is_measured; /* the number of sessions: at most those that are set here before */
  cleave_run_sessions_t sessions;
  cleave_model_t *model;          /* with batches: before it is bound */
  cleave_server_t *server;        /* with batches */
  cleave_run_variants_t variants; /* with batches */
  cleave_tensor_t **outputs;      /* with batches: per client those of its last request */
  uint32_t output_count;
  double *times;  /* per request in ms; sorted in the end */
  double seconds; /* from the first request's begin to the last one's end */
  double joined;  /* requests per run of a session, on average */
} cleave_run_requests_t;

/* Before the options are read. */
#define CLEAVE_RUN_REQUESTS_UNSET \
  { .count = -1, .concurrency = -1, .batch_limit = -1 }

/* Says what is wrong with the options, or NULL, and sets those that nobody gave. `threads` is what --threads
 * says, 0 if nothing, and becomes that of the job's session. */
const char *cleave_run_requests_check(cleave_run_requests_t *requests, int64_t *threads);

/* With batches: keeps the model as it was loaded, with its open sizes. */
void cleave_run_requests_keep(cleave_run_requests_t *requests, const cleave_job_t *job);

/* Makes the sessions besides that of a compiled job, or the server, and runs each once, then all requests. If
 * a request fails, no further one begins, and its error is the result. */
CLEAVE_STATUS cleave_run_requests_run(cleave_run_requests_t *requests, cleave_job_t *job,
                                      cleave_error_t *error);

/* Takes over what processes measured that share the model as stages, in the place of cleave_run_requests_run:
 * `times` has room for `count`, and is the caller's before. */
void cleave_run_requests_measured(cleave_run_requests_t *requests, double *times, double seconds,
                                  int64_t threads);

/* How many answers there are to look at: of every session the last one, or with batches of every client; and
 * output `index` of one of them. 0: there were no requests. */
int64_t cleave_run_requests_answers(const cleave_run_requests_t *requests);
CLEAVE_STATUS cleave_run_requests_output(const cleave_run_requests_t *requests, int64_t answer,
                                         uint32_t index, cleave_tensor_view_t *out_view,
                                         cleave_error_t *error);

/* A table with one row, and an object with "count", "concurrency", "sessions", "threads", "batch_limit",
 * "requests_per_run", "seconds", "per_second", "mean_ms", "p50_ms", "p90_ms", "p99_ms" and "max_ms"; null if
 * there were no requests. */
void cleave_run_requests_print(const cleave_run_requests_t *requests);
json_t *cleave_run_requests_json(const cleave_run_requests_t *requests);

void cleave_run_requests_deinit(cleave_run_requests_t *requests);

/* outputs.c: What `cleave run` writes: single outputs, and a folder with inputs and outputs for --data. */

typedef struct cleave_run_outputs {
  cleave_text_list_t files; /* NAME=FILE (.npy or .pb) */
  const char *folder;       /* is made if it is not there; NULL: none */
} cleave_run_outputs_t;

/* Checks the names and extensions before the run takes its time, and makes the folder. */
CLEAVE_STATUS cleave_run_outputs_check(const cleave_run_outputs_t *outputs, const cleave_model_t *model,
                                       cleave_error_t *error);

/* Writes what the job's session has computed. The folder gets the model's inputs, not those of rules. */
CLEAVE_STATUS cleave_run_outputs_write(const cleave_run_outputs_t *outputs, const cleave_job_t *job,
                                       cleave_error_t *error);

/* Without --repeat: at least MIN_RUNS, then as many as fit into BUDGET_MS, at most MAX_RUNS. */
enum { CLEAVE_RUN_MIN_RUNS = 3, CLEAVE_RUN_MAX_RUNS = 50, CLEAVE_RUN_BUDGET_MS = 1000 };
#define CLEAVE_RUN_UNSET INT64_C(-1) /* --repeat */

/* How one output compares. */
typedef struct cleave_run_check {
  const char *name;
  cleave_check_result_t result;
  cleave_text_t explanation;
} cleave_run_check_t;

typedef struct cleave_run_checks {
  cleave_run_check_t *lines;
  uint32_t count; /* 0: not asked for */
  bool matches;
} cleave_run_checks_t;

typedef struct cleave_run {
  cleave_job_options_t options;
  cleave_job_t job;
  double rtol; /* negative: by the dtype of an output (checks.c) */
  double atol;
  int64_t warmup;
  int64_t repeat;
  bool verify;
  bool json;
  bool watch;
  bool interrupted; /* while --watch waited for the first plan */
  bool rule_stats;
  const char *profile_path;
  cleave_run_checks_t alone;     /* of batches, against the same request alone */
  cleave_run_checks_t data;      /* against --data */
  cleave_run_checks_t reference; /* against the unpartitioned graph */
  CLEAVE_ARRAY(double) times;
  double first_ms;
  double total_ms;
  cleave_profile_t profile;
  cleave_run_requests_t requests;
  cleave_run_outputs_t outputs;
  cleave_run_stages_t stages;
  bool are_apart; /* of several processes: what fails now fails in this one alone */
} cleave_run_t;

void cleave_run_report_print(const cleave_run_t *run);
/* The caller's; NULL: memory is short. */
json_t *cleave_run_report_json(const cleave_run_t *run);

#endif /* CLEAVE_CLI_RUN_REPORT_H */
