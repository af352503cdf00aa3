// SPDX-License-Identifier: Apache-2.0
// cleave inspect: what is in a model, as cleave sees it after reading, inference and folding.

#include "cli/common/command.h"
#include "cli/common/job.h"
#include "cli/common/output.h"
#include "cli/report/inspection.h"
#include "cli/report/report.h"
#include "graph/print.h"
#include "ops/custom.h"
#include "runtime/model/model.h"

enum { MAX_UNKNOWN = 10 };

/* ---- printing ---- */

static bool is_partly_symbolic(const cleave_inspection_t *inspection) {
  for (uint32_t k = 0; k < cleave_graph_value_bound(inspection->graph); k++) {
    const cleave_value_record_t *record = cleave_graph_value(inspection->graph, (cleave_value_t){k});
    for (int32_t d = 0; !record->is_removed && record->use_count > 0 && d < record->rank; d++) {
      if (!cleave_dim_is_known(record->dims[d])) {
        return true;
      }
    }
  }
  return inspection->unknown.count > 0;
}

static void print_ports(const cleave_inspection_t *inspection) {
  const cleave_graph_t *graph = inspection->graph;
  cleave_text_t rows = {0};
  cleave_text_add(&rows, "port\tname\ttype\n");
  for (size_t k = 0; k < graph->inputs.count + graph->outputs.count; k++) {
    bool is_input = k < graph->inputs.count;
    size_t index = is_input ? k : k - graph->inputs.count;
    cleave_value_t value = is_input ? graph->inputs.items[index] : cleave_graph_output(graph, index);
    cleave_text_t type = {0};
    cleave_value_type_print(graph, value, &type);
    cleave_text_show(&rows, "%s %zu\t%s\t%s\n", is_input ? "input" : "output", index,
                     is_input ? cleave_value_name(graph, value) : cleave_graph_output_name(graph, index),
                     cleave_text_get(&type));
    cleave_text_deinit(&type);
  }
  cleave_output_table(&rows, "lll");
}

static void print_operators(const cleave_inspection_t *inspection) {
  char flops[32];
  cleave_text_t rows = {0};
  cleave_text_add(&rows, "operator\tnodes\tFLOPs\tshare\n");
  for (size_t k = 0; k < inspection->operators.count; k++) {
    const cleave_operator_count_t *line = &inspection->operators.items[k];
    cleave_text_show(&rows, "%s%s%s\t%u\t%s\t%.1f %%\n", line->domain, line->domain[0] == '\0' ? "" : ".",
                     line->name, (unsigned)line->count, cleave_output_count(line->flops, flops, sizeof flops),
                     inspection->flops > 0.0 ? line->flops / inspection->flops * 100.0 : 0.0);
  }
  cleave_output_table(&rows, "lrrr");
}

/* Who brings the operators that are not ONNX's. */
static void print_libraries(const cleave_inspection_t *inspection) {
  bool is_first = true;
  for (size_t k = 0; k < inspection->operators.count; k++) {
    const cleave_operator_count_t *line = &inspection->operators.items[k];
    if (line->op->id == CLEAVE_OP_ID_CUSTOM) {
      bool is_known = cleave_op_has_schema(line->op);
      cleave_print("%s  %s%s%s: %s%s\n", is_first ? "\n" : "", line->domain,
                   line->domain[0] == '\0' ? "" : ".", line->name,
                   is_known ? "of library " : "no loaded library brings it (--load LIBRARY)",
                   is_known ? cleave_custom_op_library(line->op) : "");
      is_first = false;
    }
  }
}

static void print_unknown(const cleave_inspection_t *inspection) {
  if (inspection->unknown.count == 0) {
    return;
  }
  cleave_print("\n%zu values with unknown dtype, rank or sizes:\n", inspection->unknown.count);
  for (size_t k = 0; k < inspection->unknown.count && k < MAX_UNKNOWN; k++) {
    cleave_text_t text = {0};
    cleave_value_print(inspection->graph, inspection->unknown.items[k], &text);
    cleave_text_add(&text, " : ");
    cleave_value_type_print(inspection->graph, inspection->unknown.items[k], &text);
    cleave_print("  %s\n", cleave_text_get(&text));
    cleave_text_deinit(&text);
  }
  if (inspection->unknown.count > MAX_UNKNOWN) {
    cleave_print("  and %zu more\n", inspection->unknown.count - MAX_UNKNOWN);
  }
}

/* All nodes, or those that no output needs. */
static void print_nodes(const cleave_inspection_t *inspection, bool dead_only) {
  cleave_print(CLEAVE_TRUSTED, dead_only ? "\nno output needs\n" : "\nnodes\n");
  for (size_t k = 0; k < inspection->graph->live_node_count; k++) {
    if (dead_only && inspection->needed[inspection->order[k].index]) {
      continue;
    }
    cleave_text_t text = {0};
    cleave_node_print(inspection->graph, inspection->order[k], &text);
    cleave_print("  %s\n", cleave_text_get(&text));
    cleave_text_deinit(&text);
  }
}

static void print_report(const cleave_inspection_t *inspection, const cleave_sizes_t *sizes, const char *path,
                         bool with_nodes) {
  char text[4][32];
  const cleave_graph_t *graph = inspection->graph;
  const char *at_least = is_partly_symbolic(inspection) ? "at least " : "";
  cleave_print(CLEAVE_TRUSTED "%s" CLEAVE_TRUSTED "\n", cleave_output_style(CLEAVE_STYLE_BOLD), path,
               cleave_output_style(CLEAVE_STYLE_PLAIN));
  cleave_print("file %s, opset %d, IR version %d, %zu nodes after folding",
               cleave_output_bytes((double)inspection->file_bytes, text[0], sizeof text[0]),
               (int)graph->opset_version, (int)graph->ir_version, graph->live_node_count);
  if (inspection->removed_count > 0) {
    cleave_print(", %zu removed that no output needs (--keep-dead shows)", inspection->removed_count);
  }
  if (inspection->dead_count > 0) {
    cleave_print(", %zu of them needed by no output", inspection->dead_count);
  }
  cleave_print("\n");
  cleave_print("weights %s (%s values), activations %s%s at once, %s%s FLOPs\n",
               cleave_output_bytes((double)inspection->weight_bytes, text[0], sizeof text[0]),
               cleave_output_count((double)inspection->weight_count, text[1], sizeof text[1]), at_least,
               cleave_output_bytes((double)inspection->activation_bytes, text[2], sizeof text[2]), at_least,
               cleave_output_count(inspection->flops, text[3], sizeof text[3]));
  cleave_report_sizes(sizes);
  cleave_print(CLEAVE_TRUSTED "\n", is_partly_symbolic(inspection)
                                        ? "some sizes are not known: memory and FLOPs are incomplete\n"
                                        : "");
  print_ports(inspection);
  cleave_print("\n");
  print_operators(inspection);
  print_libraries(inspection);
  print_unknown(inspection);
  if (inspection->dead_count > 0) {
    print_nodes(inspection, true);
  }
  if (with_nodes) {
    print_nodes(inspection, false);
  }
}

/* ---- JSON ---- */

static json_t *json_port(const cleave_graph_t *graph, cleave_value_t value, const char *name) {
  const cleave_value_record_t *record = cleave_graph_value(graph, value);
  json_t *dims = record->rank < 0 ? json_null() : json_array();
  for (int32_t d = 0; d < record->rank; d++) {
    if (cleave_dim_is_known(record->dims[d])) {
      (void)json_array_append_new(dims, json_integer(record->dims[d]));
    } else {
      cleave_text_t text = {0};
      cleave_dim_print(graph->dims, record->dims[d], &text);
      (void)json_array_append_new(dims, json_string(cleave_text_get(&text)));
      cleave_text_deinit(&text);
    }
  }
  return json_pack("{s:s, s:s, s:o}", "name", name, "dtype", cleave_dtype_name((cleave_dtype_t)record->dtype),
                   "shape", dims);
}

/* As print_nodes. */
static json_t *json_nodes(const cleave_inspection_t *inspection, bool dead_only) {
  json_t *nodes = json_array();
  for (size_t k = 0; k < inspection->graph->live_node_count; k++) {
    if (!dead_only || !inspection->needed[inspection->order[k].index]) {
      cleave_text_t text = {0};
      cleave_node_print(inspection->graph, inspection->order[k], &text);
      (void)json_array_append_new(nodes, json_string(cleave_text_get(&text)));
      cleave_text_deinit(&text);
    }
  }
  return nodes;
}

static int print_json(const cleave_inspection_t *inspection, const cleave_sizes_t *sizes, const char *path,
                      bool with_nodes) {
  const cleave_graph_t *graph = inspection->graph;
  json_t *inputs = json_array();
  json_t *outputs = json_array();
  json_t *operators = json_array();
  json_t *unknown = json_array();
  for (size_t k = 0; k < graph->inputs.count; k++) {
    cleave_value_t value = graph->inputs.items[k];
    (void)json_array_append_new(inputs, json_port(graph, value, cleave_value_name(graph, value)));
  }
  for (size_t k = 0; k < graph->outputs.count; k++) {
    (void)json_array_append_new(
        outputs, json_port(graph, cleave_graph_output(graph, k), cleave_graph_output_name(graph, k)));
  }
  for (size_t k = 0; k < inspection->operators.count; k++) {
    const cleave_operator_count_t *line = &inspection->operators.items[k];
    (void)json_array_append_new(
        operators, json_pack("{s:s, s:s, s:i, s:f}", "name", line->name, "domain", line->domain, "nodes",
                             (int)line->count, "flops", line->flops));
  }
  for (size_t k = 0; k < inspection->unknown.count; k++) {
    cleave_value_t value = inspection->unknown.items[k];
    (void)json_array_append_new(unknown, json_port(graph, value, cleave_value_name(graph, value)));
  }
  json_t *json = json_pack(
      "{s:s, s:I, s:i, s:i, s:I, s:I, s:I, s:I, s:f, s:o, s:o, s:o, s:o}", "model", path, "file_bytes",
      (json_int_t)inspection->file_bytes, "opset", (int)graph->opset_version, "ir_version",
      (int)graph->ir_version, "nodes", (json_int_t)graph->live_node_count, "weight_bytes",
      (json_int_t)inspection->weight_bytes, "weights", (json_int_t)inspection->weight_count,
      "activation_bytes", (json_int_t)inspection->activation_bytes, "flops", inspection->flops, "inputs",
      inputs, "outputs", outputs, "operators", operators, "unknown", unknown);
  if (json != NULL) {
    (void)json_object_set_new(json, "sizes", cleave_sizes_json(sizes));
    (void)json_object_set_new(json, "dead_removed", json_integer((json_int_t)inspection->removed_count));
    (void)json_object_set_new(json, "dead_list", json_nodes(inspection, true));
  }
  if (json != NULL && with_nodes) {
    (void)json_object_set_new(json, "node_list", json_nodes(inspection, false));
  }
  return cleave_output_json(json);
}

/* ---- the command ---- */

static cleave_status_t work(cleave_job_t *job, const cleave_job_options_t *options,
                            cleave_inspection_t *inspection, cleave_error_t *error) {
  CLEAVE_TRY(cleave_job_load(job, options, error));
  CLEAVE_TRY(cleave_job_check_settings(job, error));
  CLEAVE_TRY(cleave_job_bind_shapes(job, error));
  return cleave_inspection_init(inspection, job, error);
}

static int run(cleave_arguments_t *arguments) {
  cleave_job_options_t job_options = {0};
  bool with_nodes = false;
  bool json = false;
  const cleave_option_t options[] = {
      CLEAVE_FLAG(&with_nodes, "nodes", "list every node with its attributes and types"),
      CLEAVE_JOB_SHAPES(&job_options),
      CLEAVE_LIST(&job_options.settings, "set", "NAME=VALUE", "option of the model script"),
      CLEAVE_FLAG(&json, "json", "print everything as JSON"),
  };
  int status = CLEAVE_EXIT_OK;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_job_t job = {0};
  cleave_inspection_t inspection = {0};
  if (cleave_arguments_parse(arguments, CLEAVE_OPTIONS(options), &status)) {
    job_options.model = arguments->found.items[0];
    if (work(&job, &job_options, &inspection, &error) != CLEAVE_OK) {
      status = cleave_output_error(&error);
    } else if (json) {
      status = print_json(&inspection, &job.inputs.sizes, job_options.model, with_nodes);
    } else {
      print_report(&inspection, &job.inputs.sizes, job_options.model, with_nodes);
    }
  }
  cleave_inspection_deinit(&inspection);
  cleave_job_deinit(&job);
  return status;
}

const cleave_command_t cleave_command_inspect = {
    .name = "inspect",
    .summary = "show what is in a model",
    .order = 30,
    .operands = "MODEL",
    .about =
        "Prints inputs, outputs, operators with their number and FLOPs (a multiply-add counts two), "
        "opset,\n"
        "size of file and weights, memory of activations, and values whose type is unknown. The model\n"
        "is shown as cleave sees it: in canonical form, shapes inferred, constants folded.",
    .min_operands = 1,
    .run = run,
};
