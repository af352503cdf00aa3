// SPDX-License-Identifier: Apache-2.0
// cleave run: loads, partitions, compiles, runs, checks and measures.
#include <stdlib.h>
#include <string.h>

#include "base/containers/array.h"
#include "cli/common/command.h"
#include "cli/common/common.h"
#include "cli/common/job.h"
#include "cli/common/output.h"
#include "cli/report/report.h"
#include "cli/run/checks.h"
#include "cli/run/processes.h"
#include "cli/run/report.h"
#include "cli/run/watch.h"
#include "runtime/model/model.h"
#include "system/clock.h"
#include "system/threads.h"
#include "tools/profile/profile.h"

/* ---- stage work ---- */

/* All processes take the same way; each step ends with an agreement, but for the runs: what fails there ends
 * all. */
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
  CLEAVE_THEN(status, cleave_run_stages_gather(&run->stages, &run->job, load.count, error));
  if (has_requests) {
    cleave_run_requests_measured(&run->requests, load.times, load.seconds, run->options.threads);
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

/* Runs the stage of this process. Fails in all processes with one error, or, if `run->are_apart` is set, in
 * this one alone. */
static cleave_status_t run_stage_work(cleave_run_t *run, cleave_error_t *error) {
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

/* ---- measuring ---- */

static cleave_status_t run_once(cleave_run_t *run, double *out_ms, cleave_error_t *error) {
  uint64_t start = cleave_clock_now();
  CLEAVE_TRY(cleave_session_run(run->job.session, error));
  *out_ms = cleave_clock_ms(start, cleave_clock_now());
  return CLEAVE_OK;
}

static bool wants_more(const cleave_run_t *run) {
  int64_t done = (int64_t)run->times.count;
  if (run->repeat != CLEAVE_RUN_UNSET) {
    return done < run->repeat;
  }
  return done < CLEAVE_RUN_MIN_RUNS || (done < CLEAVE_RUN_MAX_RUNS && run->total_ms < CLEAVE_RUN_BUDGET_MS);
}

static cleave_status_t measure(cleave_run_t *run, cleave_error_t *error) {
  for (int64_t k = 0; k < run->warmup; k++) {
    double ms = 0.0;
    CLEAVE_TRY(run_once(run, &ms, error));
  }
  while (wants_more(run)) {
    double ms = 0.0;
    CLEAVE_TRY(run_once(run, &ms, error));
    CLEAVE_ARRAY_PUSH(&run->times, ms, error);
    run->total_ms += ms;
    if (run->profile_path != NULL) {
      CLEAVE_TRY(cleave_profile_add(&run->profile, run->job.session, run->job.plan, error));
    }
  }
  return CLEAVE_OK;
}

/* One object, or with --watch the first of many, one a line. */
static int print_json(cleave_run_t *run) {
  json_t *json = cleave_run_report_json(run);
  if (!run->watch || json == NULL) {
    return cleave_output_json(json);
  }
  (void)json_object_set_new(json, "event", json_string("result"));
  cleave_run_watch_line(json);
  return cleave_run_watch(&run->job, true);
}

/* ---- the command ---- */

static bool runs_on(const cleave_session_t *session, const char *backend) {
  for (uint32_t k = 0; k < cleave_session_step_count(session); k++) {
    if (strcmp(cleave_session_step(session, k).backend, backend) == 0) {
      return true;
    }
  }
  return false;
}

/* Options that nothing reads are most likely a mistake. */
static void warn_of_options(const cleave_session_t *session) {
  const cleave_session_options_t options = cleave_common_session();
  for (uint32_t k = 0; k < options.backend_option_count; k++) {
    const cleave_backend_option_t *option = &options.backend_options[k];
    if (!runs_on(session, option->backend)) {
      cleave_print_error("cleave: warning: option '%s.%s' has no effect: nothing runs on %s\n",
                         option->backend, option->key, option->backend);
    }
  }
}

static cleave_status_t work(cleave_run_t *run, cleave_error_t *error) {
  CLEAVE_TRY(cleave_communicator_open(&run->stages.communicator, error));
  if (cleave_run_stages_exist(&run->stages)) {
    return run_stage_work(run, error);
  }
  run->options.profile = run->profile_path != NULL;
  run->options.keeps_plans = !run->rule_stats; /* which are of rules that run */
  CLEAVE_TRY(cleave_job_load(&run->job, &run->options, error));
  cleave_run_requests_keep(&run->requests, &run->job);
  CLEAVE_TRY(cleave_job_bind(&run->job, error));
  CLEAVE_TRY(cleave_run_outputs_check(&run->outputs, run->job.model, error));
  if (run->watch) {
    CLEAVE_TRY(cleave_program_cache_create(&run->job.programs, error));
    CLEAVE_TRY(cleave_run_watch_prepare(&run->job, run->json, &run->interrupted, error));
    if (run->interrupted) {
      return CLEAVE_OK;
    }
  } else {
    CLEAVE_TRY(cleave_job_partition(&run->job, error));
    CLEAVE_TRY(cleave_job_compile(&run->job, error));
  }
  warn_of_options(run->job.session);
  CLEAVE_TRY(run_once(run, &run->first_ms, error));
  CLEAVE_TRY(cleave_run_outputs_write(&run->outputs, &run->job, error));
  if (run->requests.count > 0) {
    CLEAVE_TRY(cleave_run_requests_run(&run->requests, &run->job, error));
    return cleave_run_check_outputs(run, error);
  }
  CLEAVE_TRY(cleave_run_check_outputs(run, error));
  CLEAVE_TRY(measure(run, error));
  if (run->profile_path != NULL) {
    if (run->profile.run_count == 0) {
      CLEAVE_TRY(cleave_profile_add(&run->profile, run->job.session, run->job.plan, error));
    }
    cleave_profile_finish(&run->profile);
    CLEAVE_TRY(cleave_profile_write_trace(run->profile_path, run->job.session, run->job.plan, error));
  }
  cleave_times_sort(run->times.items, run->times.count);
  return CLEAVE_OK;
}

static const char *find_misuse(cleave_run_t *run) {
  const char *misuse = cleave_run_requests_check(&run->requests, &run->options.threads);
  bool is_measured = run->watch || run->profile_path != NULL || run->repeat != CLEAVE_RUN_UNSET;
  if (misuse == NULL && run->requests.count > 0 && is_measured) {
    return "option '--requests' does not go with --watch, --profile and --repeat";
  }
  return misuse == NULL && run->requests.window != NULL && run->options.plan != NULL
             ? "option '--batch-window' does not go with --plan: rules run for each number of requests"
             : misuse;
}

/* Long: one table of options. */
static int run_command(cleave_arguments_t *arguments) {
  cleave_run_t run = {.rtol = -1.0,
                      .atol = -1.0,
                      .warmup = 1,
                      .repeat = CLEAVE_RUN_UNSET,
                      .requests = CLEAVE_RUN_REQUESTS_UNSET};
  const cleave_option_t options[] = {
      CLEAVE_LIST(&run.options.rules, "rules", "FILE",
                  "rule file to partition with, or a loaded library that brings rules (LIBRARY or "
                  "LIBRARY/RULE); may be given many times, they run in order (default: the plan in an "
                  "exported .onnx file, or none: every node runs on its own)"),
      CLEAVE_TEXT(&run.options.plan, "plan", "FILE.json",
                  "run the plan that 'cleave partition -o FILE.json' saved: no rule file is read. Refused if "
                  "it is of another model, or if a backend is missing or refuses a region"),
      CLEAVE_LIST(
          &run.options.settings, "set", "NAME=VALUE",
          "option of a rule file or of the model script; an option that none of them has is an error"),
      CLEAVE_JOB_RANGES(&run.options),
      CLEAVE_TEXT(&run.options.backend, "backend", "NAME",
                  "without rule files: one region rule over all that this backend supports, cpu runs the "
                  "rest; with rule files: the backend in place of theirs (default: cpu)"),
      CLEAVE_FLAG(&run.options.imperative, "imperative",
                  "run every node of a region by itself on the region's backend: fusions are dissolved, and "
                  "nodes that the backend does not run alone run on cpu"),
      CLEAVE_LIST(&run.options.files, "input", "NAME=FILE",
                  "tensor for an input, .npy or .pb; the other inputs are random"),
      CLEAVE_LIST(
          &run.options.constants, "set-constant", "NAME=FILE",
          "tensor that replaces a constant of the model (a weight), .npy or .pb of the same dtype and shape; "
          "may be given many times. Constants that are folded from it are computed again, also with --plan"),
      CLEAVE_TEXT(&run.options.data, "data", "DIR",
                  "folder with input_N.pb and output_N.pb, by position: run on these inputs and compare the "
                  "outputs; exit status 0 only if all match"),
      CLEAVE_LIST(&run.outputs.files, "output", "NAME=FILE",
                  "file to write an output to after the first run, .npy or .pb; may be given many times"),
      CLEAVE_TEXT(&run.outputs.folder, "save", "DIR",
                  "write the inputs and outputs of the first run into this folder as input_N.pb and "
                  "output_N.pb, which --data reads"),
      CLEAVE_NUMBER(&run.rtol, "rtol", "R",
                    "relative tolerance (default: 1e-3; for outputs of float16 1e-2, of bfloat16 4e-2)"),
      CLEAVE_NUMBER(&run.atol, "atol", "A",
                    "absolute tolerance, scaled to the output's size (default: 1e-5; for outputs of float16 "
                    "1e-2, of bfloat16 4e-2): a value matches if "
                    "|found - expected| <= A * max(1, largest |expected| of the output) + R * |expected|"),
      CLEAVE_INT(&run.options.seed, "seed", "S", "seed of random inputs (default: 0)"),
      CLEAVE_JOB_SHAPES(&run.options),
      CLEAVE_INT(&run.options.threads, "threads", "N",
                 "threads to use (default: 0, one per usable processor)"),
      CLEAVE_INT(&run.options.workers, "workers", "N",
                 "run steps side by side: N threads compute branches of the model on the host, each with its "
                 "share of --threads, and devices and their copies work beside them; 1: one after the other "
                 "(default: 0, which is 1 unless regions on several devices can run at once)"),
      CLEAVE_INT(&run.warmup, "warmup", "N", "runs after the first that are not measured (default: 1)"),
      CLEAVE_INT(&run.repeat, "repeat", "N",
                 "runs that are measured (default: what fits into a second, 3 to 50)"),
      CLEAVE_INT(&run.requests.count, "requests", "N",
                 "measure N requests in place of single runs; each client sends its next request when the "
                 "last one is answered. Prints throughput and latencies. Checks compare the outputs of all "
                 "sessions or clients"),
      CLEAVE_INT(&run.requests.concurrency, "concurrency", "K",
                 "with --requests: K clients (default: 1). They share as many sessions as have --threads "
                 "processors each; without --threads as many as answer most requests, which is measured "
                 "before"),
      CLEAVE_TEXT(&run.requests.window, "batch-window", "MS",
                  "with --requests: requests that wait at the same time run as one, joined along the first "
                  "dimension, which the model must leave open; a request waits for others for at most MS "
                  "milliseconds ('2ms'). Two clients share a session, unless --threads is given"),
      CLEAVE_INT(&run.requests.batch_limit, "batch-limit", "N",
                 "with --batch-window: requests at most that run as one (default: the clients divided by the "
                 "sessions)"),
      CLEAVE_FLAG(&run.verify, "verify",
                  "also run the graph unpartitioned on cpu, and report the largest difference per output; "
                  "exit status 0 only if all match"),
      CLEAVE_TEXT(&run.profile_path, "profile", "FILE",
                  "write a Chrome trace of the last run, and print time per region and fusion"),
      CLEAVE_FLAG(&run.rule_stats, "rule-stats",
                  "print for each rule what it tried and found, its calls of Lua, and its time"),
      CLEAVE_FLAG(&run.watch, "watch",
                  "then watch the rule files and what they include: after each save load them again, print "
                  "what changed in the plan, how outputs differ and both times; Ctrl-C ends. The first load "
                  "may fail, too"),
      CLEAVE_FLAG(&run.json, "json",
                  "print everything as JSON; with --watch one object a line, the first result among them"),
  };
  int status = CLEAVE_EXIT_OK;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  if (cleave_arguments_parse(arguments, CLEAVE_OPTIONS(options), &status)) {
    run.options.model = arguments->found.items[0];
    run.options.fallback = cleave_common_fallback();
    const char *misuse = find_misuse(&run);
    if (misuse != NULL) {
      status = cleave_arguments_fail("run", "%s", misuse);
    } else if (run.options.plan != NULL && (run.options.rules.count > 0 || run.options.backend != NULL)) {
      status =
          cleave_arguments_fail("run", "option '--plan' takes the place of --rules, --backend and --device");
    } else if (run.watch && (run.options.rules.count == 0 || run.profile_path != NULL)) {
      status = cleave_arguments_fail("run", run.profile_path != NULL
                                                ? "option '--watch' does not go with --profile"
                                                : "option '--watch' is for '--rules'");
    } else if (work(&run, &error) != CLEAVE_OK) {
      status = cleave_processes_fail(run.stages.communicator, !run.are_apart, &error);
    } else if (run.interrupted || cleave_processes_silent(run.stages.communicator)) {
      status = CLEAVE_EXIT_OK;
    } else if (run.json) {
      status = print_json(&run);
    } else {
      cleave_run_report_print(&run);
      status = run.watch ? cleave_run_watch(&run.job, false) : status;
    }
    bool is_wrong = (run.data.count > 0 && !run.data.matches) ||
                    (run.alone.count > 0 && !run.alone.matches) ||
                    (run.reference.count > 0 && !run.reference.matches);
    status = status == CLEAVE_EXIT_OK && is_wrong ? CLEAVE_EXIT_FAILURE : status;
  }
  cleave_run_checks_free(&run.alone);
  cleave_run_checks_free(&run.data);
  cleave_run_checks_free(&run.reference);
  cleave_array_free(&run.times);
  cleave_profile_deinit(&run.profile);
  cleave_run_requests_deinit(&run.requests);
  cleave_run_stages_deinit(&run.stages, &run.job);
  cleave_job_deinit(&run.job);
  return status;
}

CLEAVE_COMMAND_DEFINE(run, 10, "MODEL", run_command, "run a model, by rules or without, and measure it",
                      "Runs a model (.onnx, a .lua model script, or the .json of a region): partitions it by "
                      "rules, compiles it, runs it, and\n"
                      "says what the rules did and how long everything took. Inputs that are not given are "
                      "random:\nfloats from a normal distribution, integers 0 or 1.",
                      .makes_sessions = true, .min_operands = 1)
