// SPDX-License-Identifier: Apache-2.0
// cleave bisect: the smallest set of rule applications that makes a model wrong, or slow.
#include <string.h>

#include "cli/common/command.h"
#include "cli/common/common.h"
#include "cli/common/job.h"
#include "cli/common/output.h"
#include "cli/report/report.h"
#include "runtime/model/model.h"
#include "tools/verify/bisect.h"

typedef struct bisect {
  cleave_job_options_t options;
  cleave_job_t job;
  cleave_bisect_metric_t metric;
  double threshold;
  int64_t most_tests;
  bool json;
  cleave_rule_list_t rules;
  cleave_bisect_report_t report;
} bisect_t;

static void show_progress(void *context, uint32_t test, uint32_t left) {
  (void)context;
  cleave_output_progress("test %u, %u application%s suspected", (unsigned)test, (unsigned)left,
                         CLEAVE_PLURAL(left));
}

static cleave_status_t work(bisect_t *bisect, cleave_error_t *error) {
  CLEAVE_TRY(cleave_job_load(&bisect->job, &bisect->options, error));
  CLEAVE_TRY(cleave_job_bind(&bisect->job, error));
  CLEAVE_TRY(cleave_job_load_rules(&bisect->job, &bisect->rules, error));
  int64_t threads = bisect->options.threads;
  cleave_session_options_t session = cleave_common_session();
  cleave_bisect_options_t options = {
      .metric = bisect->metric,
      .threshold = bisect->threshold,
      .inputs = bisect->job.inputs.tensors,
      .input_count = bisect->job.inputs.count,
      .threads = (int32_t)(threads > 1024 ? 1024 : threads),
      .session = &session,
      .most_tests = (uint32_t)(bisect->most_tests > UINT32_MAX ? UINT32_MAX : bisect->most_tests),
      .progress = show_progress};
  cleave_status_t status = cleave_rules_bisect(&bisect->rules, cleave_model_graph(bisect->job.model),
                                               &options, &bisect->report, error);
  cleave_output_progress_end();
  return status;
}

static const char *const KINDS[] = {"fusion", "region", "graph rule"};

/* Its nodes, and a name for the first; of a graph rule the nodes that it took. */
static uint32_t node_count_of(const cleave_plan_t *plan, const cleave_bisect_culprit_t *culprit, char *label,
                              size_t size, const char **out_label) {
  *out_label = "";
  switch (culprit->kind) {
    case CLEAVE_BISECT_FUSION:
      *out_label = cleave_node_label(plan->graph, plan->fusions[culprit->index].nodes[0], label, size);
      return plan->fusions[culprit->index].node_count;
    case CLEAVE_BISECT_REGION:
      *out_label = cleave_node_label(plan->graph, plan->regions[culprit->index].nodes[0], label, size);
      return plan->regions[culprit->index].node_count;
    case CLEAVE_BISECT_GRAPH_RULE: break;
  }
  return cleave_edits_nodes_taken(plan->edits, culprit->rule);
}

static void print_culprits(const bisect_t *bisect) {
  const cleave_plan_t *plan = bisect->report.plan;
  bool is_speed = bisect->metric == CLEAVE_BISECT_MS;
  cleave_text_t rows = {0};
  cleave_text_show(&rows, "rule\twhere\tof\tnodes\tfirst node\t%s\n",
                   is_speed ? "ms with, without" : "difference alone");
  for (size_t k = 0; k < bisect->report.culprits.count; k++) {
    const cleave_bisect_culprit_t *culprit = &bisect->report.culprits.items[k];
    const cleave_plan_rule_t *rule = &plan->rules[culprit->rule];
    char label[128];
    char place[CLEAVE_PLACE_SIZE];
    const char *first = "";
    uint32_t nodes = node_count_of(plan, culprit, label, sizeof label, &first);
    cleave_text_show(&rows, "%s\t%s\t%s\t%u\t%s\t", rule->name,
                     cleave_rule_place(rule->file, rule->line, place), KINDS[culprit->kind], (unsigned)nodes,
                     first);
    if (is_speed) {
      cleave_text_show(&rows, "%.2f, %.2f\n", culprit->reference, culprit->value);
    } else {
      cleave_text_show(&rows, "%.3g\n", culprit->value);
    }
  }
  cleave_output_table(&rows, "lllrlr");
}

/* "mine.lua:3 fuse 'block', mine.lua:9 region 'island'", each rule once. */
static void name_rules(const cleave_bisect_report_t *report, cleave_text_t *text) {
  uint32_t named = 0;
  for (size_t k = 0; k < report->culprits.count; k++) {
    uint32_t number = report->culprits.items[k].rule;
    const cleave_plan_rule_t *rule = &report->plan->rules[number];
    bool is_named = false;
    for (size_t before = 0; before < k && !is_named; before++) {
      is_named = report->culprits.items[before].rule == number;
    }
    if (!is_named) {
      char place[CLEAVE_PLACE_SIZE];
      cleave_text_format(text, "%s%s %s '%s'", named++ == 0 ? "" : ", ",
                         cleave_rule_place(rule->file, rule->line, place), cleave_rule_kind_name(rule->kind),
                         rule->name);
    }
  }
}

static int print_text(const bisect_t *bisect) {
  const cleave_bisect_report_t *report = &bisect->report;
  bool is_speed = bisect->metric == CLEAVE_BISECT_MS;
  uint32_t count = (uint32_t)report->culprits.count;
  cleave_report_sizes(&bisect->job.inputs.sizes);
  if (count == 0) {
    if (is_speed) {
      cleave_print("no application of a rule makes the model slower: %.2f ms with all %u, %u test%s\n",
                   report->value_all, (unsigned)report->application_count, (unsigned)report->tests,
                   CLEAVE_PLURAL(report->tests));
    } else {
      cleave_print("nothing is broken: largest difference %.3g with all %u application%s of rules\n",
                   report->value_all, (unsigned)report->application_count,
                   CLEAVE_PLURAL(report->application_count));
    }
    return CLEAVE_EXIT_OK;
  }
  cleave_text_t rules = {0};
  print_culprits(bisect);
  name_rules(report, &rules);
  cleave_print("\n%u of %u application%s %s, by %s: ", (unsigned)count, (unsigned)report->application_count,
               CLEAVE_PLURAL(report->application_count),
               is_speed ? CLEAVE_BY_COUNT(count, "makes the model slower", "make the model slower")
                        : CLEAVE_BY_COUNT(count, "breaks the values", "break the values"),
               cleave_text_get(&rules));
  cleave_text_deinit(&rules);
  if (is_speed) {
    cleave_print("%.2f ms with all, %.2f without %s\n", report->value_others, report->value_found,
                 count == 1 ? "it" : "these");
  } else {
    cleave_print("%s a difference of %.3g, all others %.3g\n",
                 count == 1 ? "alone it makes" : "together they make", report->value_found,
                 report->value_others);
  }
  cleave_print("%u test%s%s\n", (unsigned)report->tests, CLEAVE_PLURAL(report->tests),
               report->is_complete ? "" : "; ended by --tests: the set may not be the smallest");
  return CLEAVE_EXIT_FAILURE;
}

static int print_json(const bisect_t *bisect) {
  const cleave_bisect_report_t *report = &bisect->report;
  json_t *culprits = json_array();
  for (size_t k = 0; k < report->culprits.count; k++) {
    const cleave_bisect_culprit_t *culprit = &report->culprits.items[k];
    const cleave_plan_rule_t *rule = &report->plan->rules[culprit->rule];
    char label[128];
    const char *first = "";
    uint32_t nodes = node_count_of(report->plan, culprit, label, sizeof label, &first);
    (void)json_array_append_new(
        culprits,
        json_pack("{s:s, s:s, s:i, s:s, s:i, s:s, s:f, s:f}", "rule", rule->name, "file", rule->file, "line",
                  (int)rule->line, "of", KINDS[culprit->kind], "nodes", (int)nodes, "node", first, "value",
                  culprit->value, "reference", culprit->reference));
  }
  json_t *json = json_pack("{s:s, s:s, s:i, s:f, s:f, s:f, s:i, s:b, s:o}", "model", bisect->options.model,
                           "metric", bisect->metric == CLEAVE_BISECT_MS ? "ms" : "max_abs", "applications",
                           (int)report->application_count, "value_all", report->value_all, "value_found",
                           report->value_found, "value_others", report->value_others, "tests",
                           (int)report->tests, "complete", report->is_complete, "culprits", culprits);
  (void)json_object_set_new(json, "sizes", cleave_sizes_json(&bisect->job.inputs.sizes));
  if (json != NULL && bisect->metric == CLEAVE_BISECT_MS && report->culprits.count > 0) {
    (void)json_object_set_new(json, "change", json_real(report->change));
    (void)json_object_set_new(json, "change_low", json_real(report->change_low));
    (void)json_object_set_new(json, "change_high", json_real(report->change_high));
  }
  int status = cleave_output_json(json);
  return status == CLEAVE_EXIT_OK && report->culprits.count > 0 ? CLEAVE_EXIT_FAILURE : status;
}

/* Long: one table of options. */
static int run(cleave_arguments_t *arguments) {
  bisect_t bisect = {.threshold = -1.0};
  cleave_job_options_t *job = &bisect.options;
  const char *metric = "max_abs";
  const cleave_option_t options[] = {
      CLEAVE_JOB_RULES(job),
      CLEAVE_TEXT(&metric, "metric", "NAME",
                  "max_abs: the largest difference from the unpartitioned model on cpu; ms: median latency "
                  "(default: max_abs)"),
      CLEAVE_NUMBER(
          &bisect.threshold, "threshold", "X",
          "max_abs: the difference that counts as broken (default: more than rounding explains); ms: the "
          "share by which leaving an application out must make the model faster (default: 0.05)"),
      CLEAVE_JOB_SETTINGS(job),
      CLEAVE_JOB_RANGES(job),
      CLEAVE_JOB_BACKEND(job),
      CLEAVE_INT(&bisect.most_tests, "tests", "N", "tests to make at most (default: 2000)"),
      CLEAVE_JOB_INPUTS(job),
      CLEAVE_FLAG(&bisect.json, "json", "print the results as JSON"),
  };
  int status = CLEAVE_EXIT_OK;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  if (cleave_arguments_parse(arguments, CLEAVE_OPTIONS(options), &status)) {
    job->model = arguments->found.items[0];
    bisect.metric = strcmp(metric, "ms") == 0 ? CLEAVE_BISECT_MS : CLEAVE_BISECT_MAX_ABS;
    if (job->rules.count == 0) {
      status = cleave_arguments_fail("bisect", "expected --rules FILE");
    } else if (strcmp(metric, "ms") != 0 && strcmp(metric, "max_abs") != 0) {
      status =
          cleave_arguments_fail("bisect", "option '--metric': expected max_abs or ms, found '%s'", metric);
    } else if (work(&bisect, &error) != CLEAVE_OK) {
      status = cleave_output_error(&error);
    } else {
      status = bisect.json ? print_json(&bisect) : print_text(&bisect);
    }
  }
  cleave_bisect_report_deinit(&bisect.report);
  cleave_rule_list_deinit(&bisect.rules);
  cleave_job_deinit(&bisect.job);
  return status;
}

CLEAVE_COMMAND_DEFINE(
    bisect, 37, "MODEL", run, "find the rule applications that cause a difference or cost time",
    "Finds the smallest set of rule applications that breaks a model's values, or that slows it down, by\n"
    "running the rules with some of their fusions and regions left out.\n"
    "Exit status 1 if there is one.",
    .makes_sessions = true, .min_operands = 1)
