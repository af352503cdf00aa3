// SPDX-License-Identifier: Apache-2.0
// cleave gradient: the model with the gradients of one of its values, as a model.
#include <string.h>

#include "cli/common/command.h"
#include "cli/common/job.h"
#include "cli/common/output.h"
#include "cli/report/report.h"
#include "graph/print.h"
#include "ops/ops.h"
#include "runtime/model/model.h"

/* ---- report gradient ---- */

/* The result of adding gradients to a model. */
typedef struct cleave_gradient_result {
  const char *loss;
  const char *output;                          /* the file that was written, or NULL */
  const cleave_model_t *model;                 /* the job's model with the gradients of the loss */
  const cleave_graph_t *graph;                 /* of it */
  const cleave_recompute_report_t *recomputed; /* NULL: everything is kept */
} cleave_gradient_result_t;

/* Sums up the FLOPs of nodes whose sizes are known; *out_all: of all nodes. */
static double flops_of(const cleave_graph_t *graph, bool *out_all) {
  double sum = 0.0;
  *out_all = true;
  for (uint32_t k = 0; k < cleave_graph_node_bound(graph); k++) {
    double flops =
        cleave_node_is_live(graph, (cleave_node_t){k}) ? cleave_op_flops(graph, (cleave_node_t){k}) : 0.0;
    *out_all = *out_all && flops >= 0.0;
    sum += flops > 0.0 ? flops : 0.0;
  }
  return sum;
}

/* Who made the gradients of regions; nothing if there are no rule files. */
static void report_regions(const cleave_model_t *model) {
  uint32_t count = 0;
  const cleave_backward_region_t *regions = cleave_model_backward(model, &count);
  cleave_text_t rows = {0};
  if (count == 0) {
    return;
  }
  cleave_text_add(&rows, "region\tbackend\tnodes\tgradients\n");
  for (uint32_t k = 0; k < count; k++) {
    const cleave_backward_region_t *region = &regions[k];
    cleave_text_show(&rows, "%s\t%s\t", region->name == NULL ? "-" : region->name, region->backend);
    cleave_text_format(&rows, region->name == NULL ? "-" : "%u", (unsigned)region->node_count);
    cleave_text_show(&rows, region->reason == NULL ? "\tby its backend\n" : "\tby rules: %s\n",
                     region->reason);
  }
  cleave_print("\n");
  cleave_output_table(&rows, "llrl");
}

static json_t *regions_json(const cleave_model_t *model) {
  uint32_t count = 0;
  const cleave_backward_region_t *regions = cleave_model_backward(model, &count);
  json_t *list = json_array();
  for (uint32_t k = 0; k < count; k++) {
    const cleave_backward_region_t *region = &regions[k];
    (void)json_array_append_new(
        list, json_pack("{s:s?, s:s, s:I, s:s?}", "region", region->name, "backend", region->backend, "nodes",
                        (json_int_t)region->node_count, "by_rules_because", region->reason));
  }
  return list;
}

static void cleave_report_gradient(const cleave_job_t *job, const cleave_gradient_result_t *result) {
  const cleave_graph_t *graph = result->graph;
  const cleave_graph_t *forward = cleave_model_graph(job->model);
  char text[2][32];
  cleave_text_t rows = {0};
  cleave_text_add(&rows, "output\ttype\n");
  for (size_t k = forward->outputs.count; k < graph->outputs.count; k++) {
    cleave_text_t type = {0};
    cleave_value_type_print(graph, cleave_graph_output(graph, k), &type);
    cleave_text_show(&rows, "%s\t%s\n", cleave_graph_output_name(graph, k), cleave_text_get(&type));
    cleave_text_deinit(&type);
  }
  cleave_output_table(&rows, "ll");
  bool is_known = true;
  double flops = flops_of(graph, &is_known);
  double flops_before = flops_of(forward, &(bool){false});
  cleave_print("\n%zu gradient%s of '%s'; nodes: %zu, before %zu",
               graph->outputs.count - forward->outputs.count,
               CLEAVE_PLURAL(graph->outputs.count - forward->outputs.count), result->loss,
               graph->live_node_count, forward->live_node_count);
  if (is_known) {
    cleave_print("; FLOPs: %s, before %s", cleave_output_count(flops, text[0], sizeof text[0]),
                 cleave_output_count(flops_before, text[1], sizeof text[1]));
  }
  cleave_print("\n");
  report_regions(result->model);
  if (result->recomputed != NULL) {
    cleave_report_recompute(result->recomputed);
  }
  if (result->output != NULL) {
    cleave_print("written to %s\n", result->output);
  }
}

/* Returns the exit status. */
static int report_gradient_json(const cleave_job_t *job, const cleave_gradient_result_t *result) {
  const cleave_graph_t *graph = result->graph;
  const cleave_graph_t *forward = cleave_model_graph(job->model);
  json_t *gradients = json_array();
  for (size_t k = forward->outputs.count; k < graph->outputs.count; k++) {
    cleave_text_t type = {0};
    cleave_value_type_print(graph, cleave_graph_output(graph, k), &type);
    (void)json_array_append_new(gradients, json_pack("{s:s, s:s}", "name", cleave_graph_output_name(graph, k),
                                                     "type", cleave_text_get(&type)));
    cleave_text_deinit(&type);
  }
  json_t *json = json_pack("{s:s, s:s, s:o, s:I, s:I}", "model", job->options->model, "loss", result->loss,
                           "gradients", gradients, "nodes", (json_int_t)graph->live_node_count,
                           "nodes_before", (json_int_t)forward->live_node_count);
  bool is_known = true;
  double flops = flops_of(graph, &is_known);
  if (json != NULL) {
    (void)json_object_set_new(json, "regions", regions_json(result->model));
  }
  if (json != NULL && is_known) {
    (void)json_object_set_new(json, "flops", json_real(flops));
    (void)json_object_set_new(json, "flops_before", json_real(flops_of(forward, &is_known)));
  }
  if (json != NULL && result->recomputed != NULL) {
    (void)json_object_set_new(json, "recompute", cleave_report_recompute_json(result->recomputed));
  }
  if (json != NULL && result->output != NULL) {
    (void)json_object_set_new(json, "output", json_string(result->output));
  }
  return cleave_output_json(json);
}

typedef struct request {
  const char *loss;
  cleave_text_list_t wrt; /* each a name, or several with commas between them */
  const char *output;     /* or NULL */
  int64_t opset;
  bool open;
  double recompute;
  cleave_recompute_report_t recomputed;
  cleave_text_t text;         /* copies of the names of `wrt` */
  CLEAVE_ARRAY(char *) names; /* in `text` */
} request_t;

/* ---- work ---- */

static cleave_status_t split_names(request_t *request, cleave_error_t *error) {
  for (size_t k = 0; k < request->wrt.count; k++) {
    cleave_text_format(&request->text, "%s%s", k == 0 ? "" : ",", request->wrt.items[k]);
  }
  CLEAVE_TRY(cleave_text_check(&request->text, error));
  char *rest = request->wrt.count > 0 ? request->text.data : NULL;
  for (char *name = rest; rest != NULL; name = rest) {
    rest = strchr(name, ',');
    if (rest != NULL) {
      *rest++ = '\0';
    }
    CLEAVE_ARRAY_PUSH(&request->names, name, error);
  }
  return CLEAVE_OK;
}

static cleave_status_t save(const request_t *request, cleave_model_t *model, cleave_error_t *error) {
  cleave_plan_t *plan = NULL;
  if (request->output == NULL) {
    return CLEAVE_OK;
  }
  cleave_partition_request_t partition = {.size = sizeof partition};
  CLEAVE_TRY(cleave_model_partition(model, &partition, &plan, error));
  cleave_status_t status = cleave_plan_save(plan, request->output, (int32_t)request->opset, error);
  cleave_plan_destroy(plan);
  return status;
}

static cleave_status_t work(cleave_job_t *job, const cleave_job_options_t *options, request_t *request,
                            cleave_model_t **out_model, cleave_error_t *error) {
  cleave_partition_request_t rules;
  cleave_status_t status = CLEAVE_OK;
  CLEAVE_TRY(cleave_rule_request(&options->rules, NULL, &rules, error));
  CLEAVE_TRY_CLEANUP(split_names(request, error));
  CLEAVE_TRY_CLEANUP(cleave_job_load(job, options, error));
  if (options->shapes.count > 0) {
    CLEAVE_TRY_CLEANUP(cleave_job_bind_shapes(job, error));
  }
  request->recomputed.size = sizeof request->recomputed;
  cleave_gradient_options_t gradient = {.size = sizeof gradient,
                                        .sources = rules.sources,
                                        .source_count = rules.source_count,
                                        .open = request->open,
                                        .recompute = request->recompute,
                                        .out_recompute = &request->recomputed};
  CLEAVE_TRY_CLEANUP(cleave_model_gradient(job->model, request->loss,
                                           (const char *const *)request->names.items, request->names.count,
                                           &gradient, out_model, error));
  status = save(request, *out_model, error);
cleanup:
  cleave_rule_request_deinit(&rules);
  return status;
}

/* ---- the command ---- */

static int run_parsed(const cleave_job_options_t *job_options, request_t *request, bool json) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_job_t job = {0};
  cleave_model_t *model = NULL;
  int status = CLEAVE_EXIT_OK;
  if (work(&job, job_options, request, &model, &error) != CLEAVE_OK) {
    status = cleave_output_error(&error);
  } else {
    const cleave_gradient_result_t result = {
        .loss = request->loss,
        .output = request->output,
        .model = model,
        .graph = cleave_model_graph(model),
        .recomputed = request->recompute > 0.0 ? &request->recomputed : NULL};
    if (json) {
      status = report_gradient_json(&job, &result);
    } else {
      cleave_report_gradient(&job, &result);
    }
  }
  cleave_model_release(model);
  cleave_job_deinit(&job);
  return status;
}

static int check(const request_t *request) {
  if (request->loss == NULL) {
    return cleave_arguments_fail("gradient", "expected --loss NAME");
  }
  if (request->output != NULL && !cleave_path_has_extension(request->output, ".onnx")) {
    return cleave_arguments_fail("gradient", "option '--output': expected a file.onnx, found '%s'",
                                 request->output);
  }
  if (request->opset != 0 && (request->opset < 13 || request->opset > 24)) {
    return cleave_arguments_fail("gradient", "option '--opset': expected 13 to 24, found %lld",
                                 (long long)request->opset);
  }
  return CLEAVE_EXIT_OK;
}

static int run(cleave_arguments_t *arguments) {
  cleave_job_options_t job_options = {0};
  request_t request = {0};
  bool json = false;
  const cleave_option_t options[] = {
      CLEAVE_TEXT(&request.loss, "loss", "NAME",
                  "output, or any other value, whose gradients are wanted; of a tensor, those of the sum of "
                  "its elements"),
      CLEAVE_LIST(&request.wrt, "wrt", "NAMES",
                  "what to differentiate by: inputs, constants or values in between, with commas between "
                  "names, or given many times (default: all floating-point constants with one or more "
                  "dimensions that the loss depends on)"),
      {"output", 'o', CLEAVE_OPTION_TEXT, "OUT.onnx", "file to write the model to", &request.output},
      CLEAVE_INT(&request.opset, "opset", "N", "opset of that file, 13 to 24 (default: the model's)"),
      CLEAVE_FLAG(&request.open, "open",
                  "make inputs of the constants that get a gradient, after those of the model: what training "
                  "changes"),
      CLEAVE_NUMBER(&request.recompute, "recompute", "SHARE", CLEAVE_RECOMPUTE_HELP),
      CLEAVE_LIST(
          &job_options.rules, "rules", "FILE",
          "rule file with gradients, which take the place of those that come with cleave; backends of "
          "its regions are asked for theirs first; may be given many times"),
      CLEAVE_LIST(&job_options.shapes, "shape", "NAME=SIZES",
                  CLEAVE_SHAPE_HELP " Without it, open sizes stay open"),
      CLEAVE_LIST(&job_options.settings, "set", "NAME=VALUE", "option of the model script"),
      CLEAVE_FLAG(&json, "json", "print what was made as JSON"),
  };
  int status = CLEAVE_EXIT_OK;
  if (cleave_arguments_parse(arguments, CLEAVE_OPTIONS(options), &status)) {
    job_options.model = arguments->found.items[0];
    status = check(&request);
    status = status == CLEAVE_EXIT_OK ? run_parsed(&job_options, &request, json) : status;
  }
  cleave_array_free(&request.names);
  cleave_text_deinit(&request.text);
  return status;
}

CLEAVE_COMMAND_DEFINE(
    gradient, 23, "MODEL", run, "add gradients to a model",
    "Adds to a model the gradients of one of its values: forward and backward in one graph. Its outputs\n"
    "are those of the model, then grad(NAME) for each name of --wrt. What was written is a model like\n"
    "any other, for 'cleave run' and for 'cleave gradient' again. How gradients pass an operator is a\n"
    "rule: gradient \"Op\" { function(g, node, dy) ... end }.",
    .min_operands = 1)
