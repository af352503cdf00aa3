// SPDX-License-Identifier: Apache-2.0
// cleave precision: which parts of a model stay float32, so that its outputs are off by no more than asked.
#include "cli/common/command.h"
#include "cli/common/common.h"
#include "cli/common/job.h"
#include "cli/common/output.h"
#include "cli/precision/report.h"
#include "runtime/model/model.h"

typedef struct precision {
  cleave_job_options_t options;
  cleave_job_t job;
  const char *precision;
  const char *keep;
  double max_error;
  bool json;
  cleave_precision_report_t report;
} precision_t;

static void show_progress(void *context, uint32_t trial, uint32_t expected) {
  (void)context;
  if (trial < expected) {
    cleave_output_progress("trial %u of about %u", (unsigned)trial + 1, (unsigned)expected);
  } else {
    cleave_output_progress("trial %u", (unsigned)trial + 1);
  }
}

static cleave_status_t work(precision_t *precision, cleave_error_t *error) {
  cleave_partition_request_t request;
  int64_t threads = precision->options.threads;
  cleave_session_options_t session = cleave_common_session();
  CLEAVE_TRY(cleave_job_load(&precision->job, &precision->options, error));
  CLEAVE_TRY(cleave_job_bind(&precision->job, error));
  CLEAVE_TRY(cleave_job_request(&precision->job, &request, error));
  cleave_precision_options_t options = {.request = &request,
                                        .known = precision->job.settings.used,
                                        .precision = precision->precision,
                                        .keep = precision->keep,
                                        .inputs = precision->job.inputs.tensors,
                                        .input_count = precision->job.inputs.count,
                                        .max_error = precision->max_error,
                                        .threads = (int32_t)(threads > 1024 ? 1024 : threads),
                                        .session = &session,
                                        .progress = show_progress};
  cleave_status_t status =
      cleave_precision_find(cleave_model_graph(precision->job.model), &options, &precision->report, error);
  cleave_output_progress_end();
  cleave_rule_request_deinit(&request);
  return status;
}

static int report(const precision_t *precision) {
  const cleave_precision_shown_t shown = {.model = precision->options.model,
                                          .precision = precision->precision,
                                          .keep = precision->keep,
                                          .ranges = precision->options.ranges,
                                          .max_error = precision->max_error,
                                          .sizes = &precision->job.inputs.sizes,
                                          .report = &precision->report};
  return precision->json ? cleave_report_precision_json(&shown) : cleave_report_precision(&shown);
}

/* Long: one table of options. */
static int run(cleave_arguments_t *arguments) {
  precision_t precision = {.precision = "bfloat16", .max_error = 0.01};
  cleave_job_options_t *job = &precision.options;
  const cleave_option_t options[] = {
      CLEAVE_LIST(
          &job->rules, "rules", "FILE",
          "rule file with the options precision and keep (rules/onednn.lua); may be given many times"),
      CLEAVE_NUMBER(&precision.max_error, "max-error", "E",
                    "how far outputs may be off, as a share of their largest value (default: 0.01)"),
      CLEAVE_TEXT(&precision.precision, "precision", "NAME",
                  "of products: what the rules' option has, such as bfloat16, float16, or int8 with --ranges "
                  "(default: bfloat16)"),
      CLEAVE_TEXT(&precision.keep, "keep", "NAMES",
                  "operators and nodes that stay float32 in any case, with commas"),
      CLEAVE_LIST(&job->settings, "set", "NAME=VALUE", "other option of a rule file or a model script"),
      CLEAVE_JOB_RANGES(job),
      CLEAVE_JOB_INPUTS(job),
      CLEAVE_FLAG(&precision.json, "json", "print the results as JSON"),
  };
  int status = CLEAVE_EXIT_OK;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  if (cleave_arguments_parse(arguments, CLEAVE_OPTIONS(options), &status)) {
    job->model = arguments->found.items[0];
    if (job->rules.count == 0) {
      status = cleave_arguments_fail("precision", "expected --rules FILE");
    } else if (!(precision.max_error > 0.0)) {
      status = cleave_arguments_fail("precision", "option '--max-error': expected a number above 0");
    } else if (work(&precision, &error) != CLEAVE_OK) {
      status = cleave_output_error(&error);
    } else {
      status = report(&precision);
    }
  }
  cleave_precision_report_deinit(&precision.report);
  cleave_job_deinit(&precision.job);
  return status;
}

const cleave_command_t cleave_command_precision = {
    .name = "precision",
    .summary = "find what has to stay float32 in a lower precision",
    .order = 37,
    .operands = "MODEL",
    .about =
        "Finds the parts of a model that have to stay float32, so that with its "
        "other products in fewer bits\n"
        "the outputs are off by no more than asked; prints the setting for it.\n"
        "Exit status 1 if that cannot be met.",
    .makes_sessions = true,
    .min_operands = 1,
    .run = run,
};
