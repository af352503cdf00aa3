// SPDX-License-Identifier: Apache-2.0
// What gradients added to a model.
#include "cli/report/report_gradient.h"

#include "cli/common/output.h"
#include "cli/report/report_recompute.h"
#include "graph/print.h"
#include "ops/ops.h"
#include "runtime/model/model.h"

/* Of the nodes whose sizes are known; *out_all: of all. */
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

void cleave_report_gradient(const cleave_job_t *job, const cleave_gradient_result_t *result) {
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
  cleave_print("\n%zu gradients of '%s'; nodes: %zu, before %zu",
               graph->outputs.count - forward->outputs.count, result->loss, graph->live_node_count,
               forward->live_node_count);
  if (is_known) {
    cleave_print("; FLOPs: %s, before %s", cleave_output_count(flops, text[0], sizeof text[0]),
                 cleave_output_count(flops_before, text[1], sizeof text[1]));
  }
  cleave_print("\n");
  if (result->recomputed != NULL) {
    cleave_report_recompute(result->recomputed);
  }
  if (result->output != NULL) {
    cleave_print("written to %s\n", result->output);
  }
}

int cleave_report_gradient_json(const cleave_job_t *job, const cleave_gradient_result_t *result) {
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
