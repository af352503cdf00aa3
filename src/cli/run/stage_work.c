// SPDX-License-Identifier: Apache-2.0
// All processes take the same way; each step ends with an agreement, but for the runs: what fails there ends
// all.
#include "cli/run/stage_work.h"

#include "cli/report/times.h"
#include "cli/run/checks.h"
#include "cli/run/processes.h"

/* The requests of --requests, or as many runs as are measured without. */
static cleave_status_t measure_stages(cleave_run_t *run, cleave_error_t *error) {
  bool has_requests = run->requests.count > 0;
  int64_t fitting = (int64_t)(CLEAVE_RUN_BUDGET_MS / (run->first_ms > 0.02 ? run->first_ms : 0.02));
  int64_t runs = fitting < CLEAVE_RUN_MIN_RUNS   ? CLEAVE_RUN_MIN_RUNS
                 : fitting < CLEAVE_RUN_MAX_RUNS ? fitting
                                                 : CLEAVE_RUN_MAX_RUNS;
  cleave_stage_load_t load = {.count = run->warmup, .concurrency = 1};
  CLEAVE_TRY(cleave_run_stages_run(&run->stages, &run->job, &load, error));
  load.count = has_requests ? run->requests.count : run->repeat != CLEAVE_RUN_UNSET ? run->repeat : runs;
  load.concurrency = has_requests ? run->requests.concurrency : 1;
  load.times = cleave_allocate_zeroed((size_t)load.count + 1, sizeof *load.times);
  if (load.times == NULL) {
    return cleave_error_out_of_memory(error);
  }
  cleave_status_t status = cleave_run_stages_run(&run->stages, &run->job, &load, error);
  if (status == CLEAVE_OK) {
    status = cleave_run_stages_gather(&run->stages, &run->job, load.count, error);
  }
  if (has_requests) {
    cleave_run_requests_measured(&run->requests, load.times, load.seconds);
    return status;
  }
  for (int64_t k = 0; k < load.count && status == CLEAVE_OK; k++) {
    status = cleave_array_reserve(&run->times, 1, error);
    if (status == CLEAVE_OK) {
      cleave_array_push_reserved(&run->times, load.times[k]);
    }
  }
  cleave_free(load.times);
  cleave_times_sort(run->times.items, run->times.count);
  return status;
}

static cleave_status_t partition(cleave_run_t *run, cleave_error_t *error) {
  if (run->watch || run->profile_path != NULL || run->requests.window != NULL) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "options --watch, --profile and --batch-window are for one process");
  }
  CLEAVE_TRY(cleave_job_load(&run->job, &run->options, error));
  CLEAVE_TRY(cleave_job_bind(&run->job, error));
  CLEAVE_TRY(cleave_run_outputs_check(&run->outputs, run->job.model, error));
  return cleave_job_partition(&run->job, error);
}

cleave_status_t cleave_run_stage_work(cleave_run_t *run, cleave_error_t *error) {
  const cleave_communicator_t *communicator = run->stages.communicator;
  bool is_silent = cleave_processes_silent(communicator);
  cleave_stage_load_t one = {.count = 1, .concurrency = 1, .times = &run->first_ms};
  run->options.threads = cleave_processes_threads(communicator, run->options.threads);
  if (is_silent) {
    run->outputs = (cleave_run_outputs_t){.folder = NULL};
  }
  int64_t concurrency = run->requests.count > 0 ? run->requests.concurrency : 1;
  CLEAVE_TRY(cleave_run_stages_make(&run->stages, &run->job, concurrency, partition(run, error), error));
  run->are_apart = true;
  CLEAVE_TRY(cleave_run_stages_run(&run->stages, &run->job, &one, error));
  run->are_apart = false;
  cleave_status_t status = is_silent ? CLEAVE_OK : cleave_run_outputs_write(&run->outputs, &run->job, error);
  CLEAVE_TRY(cleave_run_stages_agree(&run->stages, status, error));
  run->are_apart = true;
  CLEAVE_TRY(measure_stages(run, error));
  run->are_apart = false;
  status = is_silent ? CLEAVE_OK : cleave_run_check_outputs(run, error);
  return cleave_run_stages_agree(&run->stages, status, error);
}
