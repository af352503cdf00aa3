// SPDX-License-Identifier: Apache-2.0
/*
 * `mpirun -n N cleave run`: each process runs one of the N stages of the plan. All do the same with the
 * command line, as far as the plan; process 0 prints, writes outputs and checks them.
 */
#ifndef CLEAVE_CLI_RUN_STAGES_H
#define CLEAVE_CLI_RUN_STAGES_H

#include <jansson.h>

#include "cli/common/job.h"
#include "distributed/stage.h"

/* Of one process; times are means of the requests. */
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
CLEAVE_MUST_USE cleave_status_t cleave_run_stages_make(cleave_run_stages_t *stages, cleave_job_t *job,
                                                       int64_t concurrency, cleave_status_t status,
                                                       cleave_error_t *error);

/* Runs requests; process 0 has the outputs of the last one in the job then. */
CLEAVE_MUST_USE cleave_status_t cleave_run_stages_run(cleave_run_stages_t *stages, cleave_job_t *job,
                                                      cleave_stage_load_t *load, cleave_error_t *error);

/* All fail if process 0 does, which alone writes and checks. */
CLEAVE_MUST_USE cleave_status_t cleave_run_stages_agree(const cleave_run_stages_t *stages,
                                                        cleave_status_t status, cleave_error_t *error);

/* Collects what the processes have to say about the last run, which was of so many requests. */
CLEAVE_MUST_USE cleave_status_t cleave_run_stages_gather(cleave_run_stages_t *stages, const cleave_job_t *job,
                                                         int64_t requests, cleave_error_t *error);

/* Nothing, and null, if nothing was gathered. */
void cleave_run_stages_print(const cleave_run_stages_t *stages);
json_t *cleave_run_stages_json(const cleave_run_stages_t *stages);

/* Before the job is: its session is of a model that the stage has. */
void cleave_run_stages_deinit(cleave_run_stages_t *stages, cleave_job_t *job);

#endif /* CLEAVE_CLI_RUN_STAGES_H */
