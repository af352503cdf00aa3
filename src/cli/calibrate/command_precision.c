// SPDX-License-Identifier: Apache-2.0
// cleave precision: which parts of a model stay float32, so that its outputs are off by no more than asked.
#include <math.h>
#include <string.h>

#include "cli/common/command.h"
#include "cli/common/common.h"
#include "cli/common/job.h"
#include "cli/common/output.h"
#include "cli/common/sizes.h"
#include "cli/report/report.h"
#include "runtime/model/model.h"
#include "tools/precision/precision.h"

/* ---- report ---- */

/* The result of `precision`: the sensitive parts, the three forms of the model, and the setting. */
typedef struct cleave_precision_shown {
  const char *model;
  const char *precision;
  const char *keep;   /* what the user keeps in any case; or NULL */
  const char *ranges; /* file that rules had; or NULL */
  double max_error;
  const cleave_sizes_t *sizes;
  const cleave_precision_report_t *report;
} cleave_precision_shown_t;

enum { MORE = 5 }; /* parts shown beyond those that are kept */

/* The value of `--set keep=` that gives what was found. */
static void write_keep(const cleave_precision_shown_t *shown, cleave_text_t *text) {
  const cleave_precision_report_t *report = shown->report;
  if (shown->keep != NULL) {
    cleave_text_add(text, shown->keep);
  }
  for (uint32_t k = 0; k < report->kept; k++) {
    cleave_text_format(text, "%s%s", text->length > 0 ? "," : "", report->parts.items[k].name);
  }
}

static void print_forms(const cleave_precision_shown_t *shown) {
  const cleave_precision_report_t *report = shown->report;
  cleave_text_t rows = {0};
  cleave_text_add(&rows, "products\terror\tms\n");
  cleave_text_show(&rows, "float32\t%.3g\t%.2f\n", report->error_float, report->ms_float);
  cleave_text_show(&rows, "%.32s\t%.3g\t%.2f\n", shown->precision, report->error_all, report->ms_all);
  if (report->kept > 0) {
    cleave_text_show(&rows, "%.32s, %u part%s kept\t%.3g\t%.2f\n", shown->precision, (unsigned)report->kept,
                     CLEAVE_PLURAL(report->kept), report->error_found, report->ms_found);
  }
  cleave_output_table(&rows, "lrr");
}

static const char *what_of(const cleave_precision_report_t *report, const cleave_precision_part_t *part) {
  const cleave_plan_t *plan = report->plan;
  return part->fusion == CLEAVE_INDEX_NONE ? "-" : plan->rules[plan->fusions[part->fusion].rule].name;
}

static void print_parts(const cleave_precision_shown_t *shown) {
  const cleave_precision_report_t *report = shown->report;
  size_t count = report->parts.count;
  size_t listed = count > report->kept + MORE ? report->kept + MORE : count;
  cleave_text_t rows = {0};
  cleave_text_add(&rows, "part\tfused by\terror alone\tstays\n");
  for (size_t k = 0; k < listed; k++) {
    const cleave_precision_part_t *part = &report->parts.items[k];
    cleave_text_show(&rows, "%s\t%s\t%.3g\t%s\n", part->name, what_of(report, part), part->error,
                     part->is_kept ? "float32" : shown->precision);
  }
  cleave_output_table(&rows, "llrl");
  if (listed < count) {
    cleave_print("  and %zu more, off by less\n", count - listed);
  }
  cleave_print("\n");
}

/* Why no region is in the low precision: what backends said. */
static void print_refusals(const cleave_precision_shown_t *shown) {
  const cleave_plan_t *plan = shown->report->plan;
  cleave_print("no region computes in %s\n", shown->precision);
  for (uint32_t k = 0; k < plan->note_count; k++) {
    if (strstr(plan->notes[k].reason, "precision") != NULL) {
      cleave_print("  %s\n", plan->notes[k].reason);
      return;
    }
  }
}

/* Both return the exit status: 1 if the error is not met. */
static int report_precision(const cleave_precision_shown_t *shown) {
  const cleave_precision_report_t *report = shown->report;
  cleave_report_sizes(shown->sizes);
  if (report->regions == 0) {
    print_refusals(shown);
    return CLEAVE_EXIT_FAILURE;
  }
  if (report->parts.count > 0) {
    print_parts(shown);
  }
  print_forms(shown);
  cleave_text_t keep = {0};
  write_keep(shown, &keep);
  cleave_print("\n%s: off by %.3g, %.3g is allowed; %u trial%s\n", report->is_met ? "met" : "NOT MET",
               report->error_found, shown->max_error, (unsigned)report->trials,
               CLEAVE_PLURAL(report->trials));
  cleave_print("--set precision=%s%s%s%s%s\n", shown->precision, shown->ranges != NULL ? " --ranges " : "",
               shown->ranges != NULL ? shown->ranges : "", keep.length > 0 ? " --set keep=" : "",
               keep.length > 0 ? cleave_text_get(&keep) : "");
  cleave_text_deinit(&keep);
  if (cleave_precision_prefers_float(report)) {
    cleave_print("this is not faster than float32 (%.2f ms, float32 %.2f): use --set precision=float32\n",
                 report->ms_found, report->ms_float);
  }
  return report->is_met ? CLEAVE_EXIT_OK : CLEAVE_EXIT_FAILURE;
}

static json_t *form_json(double error, double ms) {
  json_t *form = json_pack("{s:f}", "ms", ms);
  (void)json_object_set_new(form, "error", isfinite(error) ? json_real(error) : json_null());
  return form;
}

static int report_precision_json(const cleave_precision_shown_t *shown) {
  const cleave_precision_report_t *report = shown->report;
  json_t *parts = json_array();
  json_t *keep = json_array();
  for (size_t k = 0; k < report->parts.count; k++) {
    const cleave_precision_part_t *part = &report->parts.items[k];
    json_t *item = json_pack("{s:s, s:s, s:f, s:b}", "name", part->name, "rule", what_of(report, part),
                             "flops", part->flops, "kept", part->is_kept);
    (void)json_object_set_new(item, "error", isfinite(part->error) ? json_real(part->error) : json_null());
    (void)json_array_append_new(parts, item);
    if (part->is_kept) {
      (void)json_array_append_new(keep, json_string(part->name));
    }
  }
  json_t *json = json_pack("{s:s, s:s, s:f, s:b, s:i, s:i, s:o, s:o, s:o, s:o, s:o}", "model", shown->model,
                           "precision", shown->precision, "max_error", shown->max_error, "met",
                           report->is_met, "regions", (int)report->regions, "trials", (int)report->trials,
                           "float32", form_json(report->error_float, report->ms_float), "low",
                           form_json(report->error_all, report->ms_all), "found",
                           form_json(report->error_found, report->ms_found), "keep", keep, "parts", parts);
  (void)json_object_set_new(json, "use_float32", json_boolean(cleave_precision_prefers_float(report)));
  (void)json_object_set_new(json, "sizes", cleave_sizes_json(shown->sizes));
  int status = cleave_output_json(json);
  return status == CLEAVE_EXIT_OK && (!report->is_met || report->regions == 0) ? CLEAVE_EXIT_FAILURE : status;
}

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
  return precision->json ? report_precision_json(&shown) : report_precision(&shown);
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

CLEAVE_COMMAND_DEFINE(
    precision, 37, "MODEL", run, "find what has to stay float32 in a lower precision",
    "Finds the parts of a model that have to stay float32, so that with its other products in fewer bits\n"
    "the outputs are off by no more than asked; prints the setting for it.\n"
    "Exit status 1 if that cannot be met.",
    .makes_sessions = true, .min_operands = 1)
