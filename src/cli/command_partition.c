// SPDX-License-Identifier: Apache-2.0
// cleave partition: runs rules over a model and writes the plan; nothing is compiled or run.
#include <jansson.h>
#include <string.h>

#include "base/containers/array.h"
#include "cli/common/command.h"
#include "cli/common/job.h"
#include "cli/common/output.h"
#include "cli/report/report.h"
#include "json/json_write.h"
#include "partition/report/boundary_report.h"
#include "system/file.h"

/* ---- report boundary ---- */

/* The boundary report for people and for programs. Edges with the same reason are printed once, with their
 * number, the bytes that cross, and the first of them. */
enum { MAX_TOTALS = 24 };

/* Groups of all regions that have the same reason and operator. */
typedef struct total {
  const cleave_boundary_group_t *first;
  uint32_t region_count;
  uint32_t last_region;
  uint32_t edge_count;
  uint32_t unknown_count;
  double bytes;
} total_t;

typedef CLEAVE_ARRAY(total_t) totals_t;

static const char *op_name(const cleave_op_t *op) {
  return op == NULL ? "-" : op->name;
}

static const char *show_bytes(double bytes, uint32_t value_count, uint32_t unknown_count, char *buffer,
                              size_t size) {
  char known[32];
  if (unknown_count == 0) {
    return cleave_output_bytes(bytes, buffer, size);
  }
  if (unknown_count == value_count) {
    (void)snprintf(buffer, size, "unknown");
  } else {
    (void)snprintf(buffer, size, "%s + %u unknown", cleave_output_bytes(bytes, known, sizeof known),
                   (unsigned)unknown_count);
  }
  return buffer;
}

/* ---- all regions together ---- */

static int compare_totals(const void *a, const void *b) {
  const total_t *x = a;
  const total_t *y = b;
  if (x->edge_count != y->edge_count) {
    return x->edge_count > y->edge_count ? -1 : 1;
  }
  return (x->first->example > y->first->example) - (x->first->example < y->first->example);
}

static bool same_total(const cleave_boundary_group_t *a, const cleave_boundary_group_t *b) {
  return a->is_input == b->is_input && a->cause == b->cause && a->op == b->op &&
         strcmp(a->reason, b->reason) == 0;
}

static void add_totals(const cleave_boundary_report_t *report, totals_t *totals) {
  for (size_t g = 0; g < report->groups.count; g++) {
    const cleave_boundary_group_t *group = &report->groups.items[g];
    size_t k = 0;
    if (group->cause == CLEAVE_STOP_MODEL) {
      continue;
    }
    while (k < totals->count && !same_total(totals->items[k].first, group)) {
      k++;
    }
    if (k == totals->count) {
      if (cleave_array_reserve(totals, 1, NULL) != CLEAVE_OK) {
        return;
      }
      cleave_array_push_reserved(totals, ((total_t){.first = group, .last_region = CLEAVE_INDEX_NONE}));
    }
    total_t *total = &totals->items[k];
    total->region_count += total->last_region != group->region;
    total->last_region = group->region;
    total->edge_count += group->edge_count;
    total->unknown_count += group->unknown_count;
    total->bytes += group->bytes;
  }
  cleave_array_sort(totals, compare_totals);
}

static void print_totals(const cleave_boundary_report_t *report) {
  totals_t totals = {0};
  add_totals(report, &totals);
  if (totals.count == 0) {
    cleave_print("  nothing stopped growth but the ends of the model\n");
    return;
  }
  cleave_text_t rows = {0};
  cleave_text_add(&rows, "side\tstopped by\toperator\tedges\tregions\tbytes\treason\n");
  for (size_t k = 0; k < totals.count && k < MAX_TOTALS; k++) {
    const total_t *total = &totals.items[k];
    char bytes[64];
    cleave_text_show(&rows, "%s\t%s\t%s\t%u\t%u\t%s\t%s\n", total->first->is_input ? "in" : "out",
                     cleave_stop_cause_name(total->first->cause), op_name(total->first->op),
                     (unsigned)total->edge_count, (unsigned)total->region_count,
                     show_bytes(total->bytes, total->bytes > 0.0 ? UINT32_MAX : total->unknown_count,
                                total->unknown_count, bytes, sizeof bytes),
                     total->first->reason);
  }
  cleave_output_table(&rows, "lllrrrl");
  if (totals.count > MAX_TOTALS) {
    cleave_print("  and %zu more\n", totals.count - MAX_TOTALS);
  }
  cleave_array_free(&totals);
}

/* ---- region by region ---- */

static void print_region(const cleave_boundary_report_t *report, uint32_t index, size_t first, size_t end) {
  const cleave_plan_t *plan = report->plan;
  const cleave_plan_region_t *region = &plan->regions[index];
  const cleave_plan_rule_t *rule = &plan->rules[region->rule];
  char place[CLEAVE_PLACE_SIZE];
  cleave_print("\n%s on %s: %u node%s, by %s '%s'", region->name, region->backend,
               (unsigned)region->node_count, CLEAVE_PLURAL(region->node_count),
               cleave_rule_kind_name(rule->kind), rule->name);
  cleave_print(" (%s)\n", cleave_rule_place(rule->file, rule->line, place));
  cleave_text_t rows = {0};
  cleave_text_add(&rows, "side\tstopped by\toperator\tedges\tbytes\tfirst at\treason\n");
  for (size_t g = first; g < end; g++) {
    const cleave_boundary_group_t *group = &report->groups.items[g];
    const cleave_boundary_edge_t *edge = &report->edges.items[group->example];
    cleave_node_t shown = cleave_node_exists(edge->outside) ? edge->outside : edge->inside;
    char bytes[64];
    char label[96] = "-";
    if (cleave_node_exists(shown)) {
      (void)cleave_node_label(plan->graph, shown, label, sizeof label);
    }
    cleave_text_show(&rows, "%s\t%s\t%s\t%u\t%s\t%s\t%s\n", group->is_input ? "in" : "out",
                     cleave_stop_cause_name(group->cause), op_name(group->op), (unsigned)group->edge_count,
                     show_bytes(group->bytes, group->value_count, group->unknown_count, bytes, sizeof bytes),
                     label, group->reason);
  }
  cleave_output_table(&rows, "lllrrll");
}

static void print_what_ifs(const cleave_boundary_report_t *report) {
  if (report->what_ifs.count == 0) {
    return;
  }
  cleave_print("\nwhat if the rules and the backend took one operator more?\n");
  cleave_text_t rows = {0};
  cleave_text_add(&rows, "operator\tnodes outside\tregions merged\tregions then\tbytes less\n");
  for (size_t k = 0; k < report->what_ifs.count; k++) {
    const cleave_what_if_t *what_if = &report->what_ifs.items[k];
    char bytes[32];
    double less = what_if->bytes_less;
    cleave_text_show(&rows, "%s\t%u\t%u\t%u\t%s%s\n", what_if->op->name, (unsigned)what_if->node_count,
                     (unsigned)what_if->merged_count, (unsigned)what_if->region_count, less < 0.0 ? "-" : "",
                     cleave_output_bytes(less < 0.0 ? -less : less, bytes, sizeof bytes));
  }
  cleave_output_table(&rows, "lrrrr");
}

/* All boundaries together by reason, then region by region, then the what-ifs. */
static void cleave_report_boundaries(const cleave_boundary_report_t *report) {
  char bytes[64];
  cleave_print("\nboundaries: %u region%s, %s cross between parts of the plan",
               (unsigned)report->plan->region_count, CLEAVE_PLURAL(report->plan->region_count),
               cleave_output_bytes(report->bytes, bytes, sizeof bytes));
  if (report->unknown_count > 0) {
    cleave_print(", and %u value%s of unknown size", (unsigned)report->unknown_count,
                 CLEAVE_PLURAL(report->unknown_count));
  }
  cleave_print("\n");
  if (report->groups.count > 0) {
    print_totals(report);
  }
  for (size_t g = 0; g < report->groups.count;) {
    size_t end = g;
    while (end < report->groups.count && report->groups.items[end].region == report->groups.items[g].region) {
      end++;
    }
    print_region(report, report->groups.items[g].region, g, end);
    g = end;
  }
  print_what_ifs(report);
}

/* ---- JSON ---- */

static json_t *group_json(const cleave_boundary_report_t *report, const cleave_boundary_group_t *group) {
  const cleave_graph_t *graph = report->plan->graph;
  const cleave_boundary_edge_t *edge = &report->edges.items[group->example];
  char label[128];
  json_t *json =
      json_pack("{s:s, s:s, s:o, s:i, s:i, s:f, s:i}", "side", group->is_input ? "in" : "out", "cause",
                cleave_stop_cause_name(group->cause), "reason", cleave_json_text(group->reason), "edges",
                (int)group->edge_count, "values", (int)group->value_count, "bytes", group->bytes, "unknown",
                (int)group->unknown_count);
  (void)json_object_set_new(json, "value", cleave_json_text(cleave_value_name(graph, edge->value)));
  if (cleave_node_exists(edge->inside)) {
    (void)json_object_set_new(json, "inside",
                              cleave_json_text(cleave_node_label(graph, edge->inside, label, sizeof label)));
  }
  if (group->op != NULL) {
    (void)json_object_set_new(json, "operator", cleave_json_text(group->op->name));
    (void)json_object_set_new(json, "outside",
                              cleave_json_text(cleave_node_label(graph, edge->outside, label, sizeof label)));
  }
  if (edge->other != CLEAVE_INDEX_NONE) {
    (void)json_object_set_new(json, "other_region",
                              cleave_json_text(report->plan->regions[edge->other].name));
  }
  return json;
}

/* Adds "boundaries" and "what_if" to an object. */
static void report_boundaries_json(const cleave_boundary_report_t *report, json_t *object) {
  const cleave_plan_t *plan = report->plan;
  json_t *regions = json_array();
  json_t *what_ifs = json_array();
  size_t g = 0;
  for (uint32_t r = 0; r < plan->region_count; r++) {
    const cleave_plan_region_t *region = &plan->regions[r];
    const cleave_plan_rule_t *rule = &plan->rules[region->rule];
    json_t *groups = json_array();
    for (; g < report->groups.count && report->groups.items[g].region == r; g++) {
      (void)json_array_append_new(groups, group_json(report, &report->groups.items[g]));
    }
    (void)json_array_append_new(
        regions, json_pack("{s:o, s:s, s:s, s:s, s:i, s:i, s:o}", "name", cleave_json_text(region->name),
                           "backend", region->backend, "rule", rule->name, "file", rule->file, "line",
                           (int)rule->line, "nodes", (int)region->node_count, "edges", groups));
  }
  for (size_t k = 0; k < report->what_ifs.count; k++) {
    const cleave_what_if_t *what_if = &report->what_ifs.items[k];
    (void)json_array_append_new(
        what_ifs, json_pack("{s:o, s:s, s:i, s:i, s:i, s:f}", "operator", cleave_json_text(what_if->op->name),
                            "domain", what_if->op->domain, "nodes_outside", (int)what_if->node_count,
                            "regions_merged", (int)what_if->merged_count, "regions",
                            (int)what_if->region_count, "bytes_less", what_if->bytes_less));
  }
  (void)json_object_set_new(object, "boundaries",
                            json_pack("{s:f, s:i, s:o}", "bytes", report->bytes, "unknown",
                                      (int)report->unknown_count, "regions", regions));
  (void)json_object_set_new(object, "what_if", what_ifs);
}

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

/* Requests beside the plan. */
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
  CLEAVE_THEN(status, cleave_rule_list_report(&list, job->plan->graph, &extras->boundaries, error));
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
    report_boundaries_json(extras->boundaries, json);
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
      cleave_report_plan(job.plan, job.options->rules.count > 0);
      print_extras(&job, &extras);
      if (output != NULL) {
        cleave_print("partitioned in %.2f ms, written to %s\n", job.partition_ms, output);
      }
      if (extras.regions != NULL) {
        cleave_print("%u region%s written to %s\n", (unsigned)cleave_plan_region_count(job.plan),
                     CLEAVE_PLURAL(cleave_plan_region_count(job.plan)), extras.regions);
      }
    }
  }
  cleave_boundary_report_destroy(extras.boundaries);
  cleave_job_deinit(&job);
  return status;
}

CLEAVE_COMMAND_DEFINE(
    partition, 20, "MODEL", run, "run rules over a model and write the plan",
    "Partitions a model by rule files and writes the plan, the partitioned model, or a picture.\n"
    "The same model and rules give the same bytes. An .onnx file that was written so brings its plan:\n"
    "without rules and backend, that is taken.",
    .min_operands = 1)
