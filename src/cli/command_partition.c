// SPDX-License-Identifier: Apache-2.0
// cleave partition: runs rules over a model and writes the plan; nothing is compiled or run.
#include <string.h>

#include "cli/common/command.h"
#include "cli/common/job.h"
#include "cli/common/output.h"
#include "cli/report/report.h"
#include "cli/report/report_boundary.h"
#include "system/file.h"

static int print_plan(const cleave_job_t *job) {
  const cleave_plan_t *plan = job->plan;
  char *text = NULL;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  if (cleave_plan_format(plan, CLEAVE_PLAN_TEXT, &text, &error) != CLEAVE_OK) {
    return cleave_output_error(&error);
  }
  cleave_report_sizes(&job->inputs.sizes);
  cleave_print(CLEAVE_TRUSTED, text);
  cleave_text_free(text);
  return CLEAVE_EXIT_OK;
}

/* What was asked for beside the plan. */
typedef struct extras {
  const char *regions;   /* folder for files of regions, or NULL */
  const char *constants; /* where theirs go */
  bool report;
  bool rule_stats;
  cleave_boundary_report_t *boundaries;
} extras_t;

/* The rules run once more over the graph of the plan: a file keeps no state between its loads. */
static cleave_status_t report_boundaries(cleave_job_t *job, extras_t *extras, cleave_error_t *error) {
  if (!extras->report) {
    return CLEAVE_OK;
  }
  cleave_rule_list_t list;
  cleave_status_t status = cleave_job_load_rules(job, &list, error);
  if (status == CLEAVE_OK) {
    status = cleave_rule_list_report(&list, job->plan->graph, &extras->boundaries, error);
  }
  cleave_rule_list_deinit(&list);
  return status;
}

static bool find_constants(const char *name, cleave_region_constants_t *out_constants) {
  static const char *const names[] = {[CLEAVE_REGION_CONSTANTS_INLINE] = "inline",
                                      [CLEAVE_REGION_CONSTANTS_FILES] = "files",
                                      [CLEAVE_REGION_CONSTANTS_TYPES] = "types"};
  *out_constants = CLEAVE_REGION_CONSTANTS_FILES;
  bool is_known = name == NULL;
  for (size_t k = 0; !is_known && k < sizeof names / sizeof names[0]; k++) {
    is_known = strcmp(name, names[k]) == 0;
    *out_constants = (cleave_region_constants_t)k;
  }
  return is_known;
}

static cleave_status_t save_regions(const cleave_job_t *job, const extras_t *extras, cleave_error_t *error) {
  cleave_region_constants_t constants;
  (void)find_constants(extras->constants, &constants);
  return extras->regions == NULL ? CLEAVE_OK
                                 : cleave_plan_save_regions(job->plan, extras->regions, constants, error);
}

static cleave_status_t work(cleave_job_t *job, const cleave_job_options_t *options, const char *output,
                            int64_t opset, extras_t *extras, cleave_error_t *error) {
  CLEAVE_TRY(cleave_job_load(job, options, error));
  CLEAVE_TRY(cleave_job_bind_shapes(job, error));
  if (!cleave_job_has_rules(options) && options->backend == NULL && job->document == NULL) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "%s: the model has no plan: expected --rules FILE, or --backend NAME",
                            options->model);
  }
  CLEAVE_TRY(cleave_job_partition(job, error));
  CLEAVE_TRY(report_boundaries(job, extras, error));
  CLEAVE_TRY(save_regions(job, extras, error));
  return output == NULL ? CLEAVE_OK : cleave_plan_save(job->plan, output, (int32_t)opset, error);
}

static void print_extras(const cleave_job_t *job, const extras_t *extras) {
  if (extras->rule_stats) {
    cleave_report_rule_stats(job->plan);
  }
  if (extras->boundaries != NULL) {
    cleave_report_refusals(job->plan);
    cleave_report_boundaries(extras->boundaries);
  }
}

static int print_json(const cleave_job_t *job, const char *output, const extras_t *extras) {
  json_t *json =
      json_pack("{s:s, s:f, s:f, s:f}", "model", job->options->model, "load_ms", job->load_ms + job->bind_ms,
                "rules_ms", job->rules_ms, "partition_ms", job->partition_ms);
  if (json != NULL && output != NULL) {
    (void)json_object_set_new(json, "output", json_string(output));
  }
  if (json != NULL && extras->regions != NULL) {
    (void)json_object_set_new(json, "regions_folder", json_string(extras->regions));
  }
  if (json != NULL) {
    (void)json_object_set_new(json, "sizes", cleave_sizes_json(&job->inputs.sizes));
    cleave_report_plan_json(job->plan, json);
  }
  if (json != NULL && extras->rule_stats) {
    cleave_report_rule_stats_json(job->plan, json);
  }
  if (json != NULL && extras->boundaries != NULL) {
    cleave_report_boundaries_json(extras->boundaries, json);
  }
  return cleave_output_json(json);
}

/* Long: one table of options. */
static int run(cleave_arguments_t *arguments) {
  cleave_job_options_t job_options = {0};
  const char *output = NULL;
  int64_t opset = 0;
  bool json = false;
  extras_t extras = {0};
  const cleave_option_t options[] = {
      CLEAVE_LIST(&job_options.rules, "rules", "FILE",
                  "rule file, or a loaded library that brings rules (LIBRARY or LIBRARY/RULE); may be given "
                  "many times, they run in order"),
      CLEAVE_JOB_SETTINGS(&job_options),
      CLEAVE_JOB_RANGES(&job_options),
      CLEAVE_TEXT(&job_options.backend, "backend", "NAME",
                  "without rule files: one region rule over all that this backend supports; with rule files: "
                  "the backend in place of theirs"),
      {"output", 'o', CLEAVE_OPTION_TEXT, "OUT",
       "file to write, by its extension: .txt (the plan for people), .json (the plan), .dot (a picture for "
       "Graphviz), .onnx (the model, regions and fusions as model-local functions); without it the plan is "
       "printed",
       &output},
      CLEAVE_TEXT(&extras.regions, "regions", "DIR",
                  "write each region as DIR/<region>.json: all that its backend gets. Such a file is a "
                  "model, too: cleave run DIR/<region>.json"),
      CLEAVE_TEXT(&extras.constants, "constants", "HOW",
                  "large constants of these: inline (in the text), files (.npy beside it), types (left out) "
                  "(default: files)"),
      CLEAVE_INT(&opset, "opset", "N",
                 "opset of an .onnx file, 13 to 24; operators that it lacks become functions of those that "
                 "it has (default: the model's)"),
      CLEAVE_JOB_SHAPES(&job_options),
      CLEAVE_FLAG(&extras.report, "report",
                  "say why each region ends where it ends, how many bytes cross, and which operator, were it "
                  "supported, would join the most regions; and what rewrites left as it is"),
      CLEAVE_FLAG(&extras.rule_stats, "rule-stats",
                  "print for each rule what it tried and found, its calls of Lua, and its time"),
      CLEAVE_FLAG(&json, "json", "print times and what the rules did as JSON"),
  };
  int status = CLEAVE_EXIT_OK;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_job_t job = {0};
  if (cleave_arguments_parse(arguments, CLEAVE_OPTIONS(options), &status)) {
    job_options.model = arguments->found.items[0];
    cleave_region_constants_t constants;
    if (!find_constants(extras.constants, &constants)) {
      status = cleave_arguments_fail(
          "partition", "option '--constants': expected inline, files or types, found '%s'", extras.constants);
    } else if (opset != 0 && (opset < 13 || opset > 24)) {
      status = cleave_arguments_fail("partition", "option '--opset': expected 13 to 24, found %lld",
                                     (long long)opset);
    } else if (!cleave_job_has_rules(&job_options) && job_options.backend == NULL &&
               !cleave_path_has_extension(job_options.model, ".onnx")) {
      status = cleave_arguments_fail("partition", "expected --rules FILE, or --backend NAME");
    } else if (work(&job, &job_options, output, opset, &extras, &error) != CLEAVE_OK) {
      status = cleave_output_error(&error);
    } else if (json) {
      status = print_json(&job, output, &extras);
    } else if (output == NULL && extras.regions == NULL && !extras.report && !extras.rule_stats) {
      status = print_plan(&job);
    } else {
      cleave_report_sizes(&job.inputs.sizes);
      cleave_report_plan(job.plan);
      print_extras(&job, &extras);
      if (output != NULL) {
        cleave_print("partitioned in %.2f ms, written to %s\n", job.partition_ms, output);
      }
      if (extras.regions != NULL) {
        cleave_print("%u regions written to %s\n", (unsigned)cleave_plan_region_count(job.plan),
                     extras.regions);
      }
    }
  }
  cleave_boundary_report_destroy(extras.boundaries);
  cleave_job_deinit(&job);
  return status;
}

const cleave_command_t cleave_command_partition = {
    .name = "partition",
    .summary = "run rules over a model and write the plan",
    .order = 20,
    .operands = "MODEL",
    .about =
        "Partitions a model by rule files and writes the plan, the partitioned model, or a picture.\n"
        "The same model and rules give the same bytes. An .onnx file that was written so brings its plan:\n"
        "without rules and backend, that is taken.",
    .min_operands = 1,
    .run = run,
};
