// SPDX-License-Identifier: Apache-2.0
// cleave calibrate: between which numbers the values of a model lie on given data, for products of 8-bit
// integers.
#include <stdio.h>
#include <string.h>

#include "cli/calibrate/data.h"
#include "cli/common/command.h"
#include "cli/common/common.h"
#include "cli/common/job.h"
#include "cli/common/output.h"
#include "formats/ranges.h"
#include "graph/clone.h"
#include "runtime/model/model.h"
#include "system/file.h"
#include "tools/calibrate/calibrate.h"

typedef struct calibrate {
  cleave_job_options_t options;
  cleave_job_t job;
  cleave_calibration_data_t data;
  cleave_calibration_t *calibration;
  cleave_calibration_method_t kind;
  const char *method;
  const char *output;
  double percentile;
  int64_t samples;
  int64_t batch;
  bool json;
  char description[48]; /* of the method */
  uint32_t ranges;
  uint64_t skipped;
  char skipped_first[128]; /* name of a value */
} calibrate_t;

static bool find_method(calibrate_t *calibrate) {
  static const char *const names[] = {[CLEAVE_CALIBRATION_MINMAX] = "minmax",
                                      [CLEAVE_CALIBRATION_PERCENTILE] = "percentile",
                                      [CLEAVE_CALIBRATION_ENTROPY] = "entropy"};
  for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
    if (strcmp(calibrate->method, names[k]) == 0) {
      calibrate->kind = (cleave_calibration_method_t)k;
      if (calibrate->kind == CLEAVE_CALIBRATION_PERCENTILE) {
        (void)snprintf(calibrate->description, sizeof calibrate->description, "percentile %g",
                       calibrate->percentile);
      } else {
        (void)snprintf(calibrate->description, sizeof calibrate->description, "%s", names[k]);
      }
      return true;
    }
  }
  return false;
}

static cleave_status_t run_all(calibrate_t *calibrate, cleave_error_t *error) {
  bool more = true;
  while (more) {
    cleave_output_progress("sample %lld of %lld", (long long)calibrate->data.next + 1,
                           (long long)calibrate->data.count);
    CLEAVE_TRY(cleave_calibration_data_next(&calibrate->data, &more, error));
    if (more) {
      CLEAVE_TRY(cleave_calibration_run(calibrate->calibration, calibrate->data.views, error));
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t write(calibrate_t *calibrate, cleave_error_t *error) {
  const cleave_graph_t *graph = cleave_model_graph(calibrate->job.model);
  const cleave_ranges_source_t source = {.method = calibrate->description,
                                         .samples = (uint64_t)calibrate->data.count};
  cleave_text_t text = {0};
  cleave_graph_t *copy = NULL;
  cleave_value_t first = CLEAVE_VALUE_NONE;
  cleave_status_t status = cleave_graph_copy(graph, &copy, error);
  if (status == CLEAVE_OK) {
    calibrate->ranges = cleave_calibration_set(calibrate->calibration, copy);
    status = cleave_ranges_print(copy, &source, &text, error);
  }
  if (status == CLEAVE_OK) {
    status = cleave_file_write(calibrate->output, cleave_text_get(&text), text.length, error);
  }
  calibrate->skipped = cleave_calibration_skipped(calibrate->calibration, &first);
  if (cleave_value_exists(first)) {
    (void)snprintf(calibrate->skipped_first, sizeof calibrate->skipped_first, "%s",
                   cleave_value_name(graph, first));
  }
  cleave_text_deinit(&text);
  cleave_graph_destroy(copy);
  return status;
}

static cleave_status_t work(calibrate_t *calibrate, cleave_error_t *error) {
  int64_t threads = calibrate->options.threads;
  cleave_session_options_t session = cleave_common_session();
  session.threads = (int32_t)(threads > 1024 ? 1024 : threads);
  const cleave_calibration_options_t options = {.method = calibrate->kind,
                                                .percentile = calibrate->percentile,
                                                .backend = calibrate->options.backend,
                                                .session = &session};
  CLEAVE_TRY(cleave_job_load(&calibrate->job, &calibrate->options, error));
  CLEAVE_TRY(cleave_job_check_settings(&calibrate->job, error));
  const cleave_model_t *model = calibrate->job.model;
  CLEAVE_TRY(cleave_calibration_data_open(&calibrate->data, model, calibrate->options.data, calibrate->batch,
                                          calibrate->samples, error));
  CLEAVE_TRY(cleave_calibration_create(cleave_model_graph(model), calibrate->data.views,
                                       calibrate->data.input_count, &options, &calibrate->calibration,
                                       error));
  cleave_status_t status = run_all(calibrate, error);
  cleave_output_progress_end();
  return status == CLEAVE_OK ? write(calibrate, error) : status;
}

static int report(const calibrate_t *calibrate) {
  if (calibrate->json) {
    return cleave_output_json(json_pack(
        "{s:s, s:s, s:s, s:I, s:I, s:I}", "model", calibrate->options.model, "output", calibrate->output,
        "method", calibrate->description, "samples", (json_int_t)calibrate->data.count, "values",
        (json_int_t)calibrate->ranges, "skipped", (json_int_t)calibrate->skipped));
  }
  cleave_print("%u values, %s of %lld sample%s: %s\n", (unsigned)calibrate->ranges, calibrate->description,
               (long long)calibrate->data.count, calibrate->data.count == 1 ? "" : "s", calibrate->output);
  if (calibrate->skipped > 0) {
    cleave_print("%llu NaN and infinities left out, first of '%s'\n", (unsigned long long)calibrate->skipped,
                 calibrate->skipped_first);
  }
  return CLEAVE_EXIT_OK;
}

/* What is wrong with the options, printed; the exit status. */
static int check_options(calibrate_t *calibrate) {
  if (calibrate->options.data == NULL || calibrate->output == NULL) {
    return cleave_arguments_fail("calibrate", "expected --data DIR and -o FILE");
  }
  if (!(calibrate->percentile > 0.0 && calibrate->percentile <= 100.0)) {
    return cleave_arguments_fail("calibrate",
                                 "option '--percentile': expected a number above 0, up to 100, found %g",
                                 calibrate->percentile);
  }
  if (calibrate->batch < 1) {
    return cleave_arguments_fail("calibrate", "option '--batch': expected 1 or more");
  }
  if (!find_method(calibrate)) {
    return cleave_arguments_fail("calibrate",
                                 "option '--method': expected minmax, percentile or entropy, found '%s'",
                                 calibrate->method);
  }
  return CLEAVE_EXIT_OK;
}

/* Long: one table of options. */
static int run(cleave_arguments_t *arguments) {
  calibrate_t calibrate = {.method = "minmax", .percentile = 99.99, .batch = 1};
  cleave_job_options_t *job = &calibrate.options;
  const cleave_option_t options[] = {
      CLEAVE_TEXT(&job->data, "data", "DIR",
                  "what the model runs on: a folder with NAME.npy for each input NAME, or a file.npz, whose "
                  "first dimension counts samples; or ONNX test data, input_N.pb"),
      {"output", 'o', CLEAVE_OPTION_TEXT, "FILE", "where the ranges go, as JSON", &calibrate.output},
      CLEAVE_TEXT(&calibrate.method, "method", "NAME",
                  "minmax: all numbers; percentile: without the outermost; entropy: where 8 bits lose the "
                  "least information (default: minmax)"),
      CLEAVE_NUMBER(
          &calibrate.percentile, "percentile", "P",
          "percent of the numbers of a value that its range holds, by --method percentile (default: 99.99)"),
      CLEAVE_INT(&calibrate.samples, "samples", "N", "the first N samples (default: all)"),
      CLEAVE_INT(&calibrate.batch, "batch", "N",
                 "samples of a run, if the model leaves their number open (default: 1)"),
      CLEAVE_TEXT(&job->backend, "backend", "NAME", "who runs what it can of the model (default: cpu)"),
      CLEAVE_LIST(&job->settings, "set", "NAME=VALUE", "option of a model script"),
      CLEAVE_INT(&job->threads, "threads", "N", "threads (default: one per usable processor)"),
      CLEAVE_FLAG(&calibrate.json, "json", "print the result as JSON"),
  };
  int status = CLEAVE_EXIT_OK;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  if (cleave_arguments_parse(arguments, CLEAVE_OPTIONS(options), &status)) {
    job->model = arguments->found.items[0];
    status = check_options(&calibrate);
    if (status == CLEAVE_EXIT_OK) {
      status = work(&calibrate, &error) == CLEAVE_OK ? report(&calibrate) : cleave_output_error(&error);
    }
  }
  cleave_calibration_destroy(calibrate.calibration);
  cleave_calibration_data_deinit(&calibrate.data);
  cleave_job_deinit(&calibrate.job);
  return status;
}

const cleave_command_t cleave_command_calibrate = {
    .name = "calibrate",
    .summary = "find between which numbers the values of a model lie, for 8-bit integers",
    .order = 36,
    .operands = "MODEL",
    .about =
        "Runs a model in float32 on data, and writes between which numbers each of its values lies,\n"
        "for rules that compute with 8-bit integers (--ranges FILE of other commands).",
    .makes_sessions = true,
    .min_operands = 1,
    .run = run,
};
