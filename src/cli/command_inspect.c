// SPDX-License-Identifier: Apache-2.0
// cleave inspect: what is in a model, as cleave sees it after reading, inference and folding.

#include <string.h>
#include <sys/stat.h>

#include "cli/common/command.h"
#include "cli/common/job.h"
#include "cli/common/output.h"
#include "cli/report/report.h"
#include "graph/order.h"
#include "graph/print.h"
#include "ops/custom.h"
#include "ops/ops.h"
#include "runtime/model/model.h"

/* ---- inspection ---- */

/* Gathers what is in a model: operators, sizes, memory, what is not known. */
typedef struct cleave_operator_count {
  const char *name;
  const char *domain;
  const cleave_op_t *op;
  uint32_t count;
  double flops;
} cleave_operator_count_t;

typedef struct cleave_inspection {
  const cleave_graph_t *graph;
  cleave_node_t *order;
  bool *needed;                                    /* by node: an output needs it */
  size_t dead_count;                               /* nodes of `order` that are not */
  size_t removed_count;                            /* dead nodes of the file that went */
  CLEAVE_ARRAY(cleave_operator_count_t) operators; /* most frequent first */
  double flops;
  size_t file_bytes;
  size_t weight_bytes;
  uint64_t weight_count;
  size_t activation_bytes; /* largest sum of values that live at the same time, outputs among them */
  CLEAVE_ARRAY(cleave_value_t) unknown;
  cleave_error_t misfit; /* why sizes that nobody gave are left open, in place of 1 */
} cleave_inspection_t;

static size_t value_bytes(const cleave_graph_t *graph, cleave_value_t value, bool *out_known) {
  const cleave_value_record_t *record = cleave_graph_value(graph, value);
  int64_t count = 0;
  size_t bytes = 0;
  *out_known = record->dtype != CLEAVE_DTYPE_UNKNOWN &&
               cleave_shape_element_count(record->rank, record->dims, &count) &&
               cleave_size_multiply((size_t)count, cleave_dtype_size((cleave_dtype_t)record->dtype), &bytes);
  return *out_known ? bytes : 0;
}

/* Is anything of its type neither a size nor an expression of sizes? */
static bool has_unknown(const cleave_value_record_t *record) {
  bool is_unknown = record->dtype == CLEAVE_DTYPE_UNKNOWN || record->rank < 0;
  for (int32_t d = 0; !is_unknown && d < record->rank; d++) {
    is_unknown = record->dims[d] == CLEAVE_DIM_UNKNOWN;
  }
  return is_unknown;
}

static int compare_operators(const void *a, const void *b) {
  const cleave_operator_count_t *left = a;
  const cleave_operator_count_t *right = b;
  if (left->count != right->count) {
    return left->count > right->count ? -1 : 1;
  }
  return strcmp(left->name, right->name);
}

static cleave_status_t count_operator(cleave_inspection_t *inspection, cleave_node_t node,
                                      cleave_error_t *error) {
  const cleave_op_t *op = cleave_node_op(inspection->graph, node);
  double flops = cleave_op_flops(inspection->graph, node);
  size_t at = 0;
  while (at < inspection->operators.count &&
         (strcmp(inspection->operators.items[at].name, op->name) != 0 ||
          strcmp(inspection->operators.items[at].domain, op->domain) != 0)) {
    at++;
  }
  if (at == inspection->operators.count) {
    cleave_operator_count_t fresh = {.name = op->name, .domain = op->domain, .op = op};
    CLEAVE_ARRAY_PUSH(&inspection->operators, fresh, error);
  }
  inspection->operators.items[at].count++;
  inspection->operators.items[at].flops += flops > 0.0 ? flops : 0.0;
  inspection->flops += flops > 0.0 ? flops : 0.0;
  return CLEAVE_OK;
}

/* Walks the order and keeps the sum of the values that are still needed. */
static cleave_status_t find_peak(cleave_inspection_t *inspection, cleave_error_t *error) {
  const cleave_graph_t *graph = inspection->graph;
  uint32_t bound = cleave_graph_value_bound(graph);
  uint32_t *uses_left = cleave_allocate(bound, sizeof *uses_left);
  CLEAVE_TRY_MEMORY(uses_left, error);
  for (uint32_t k = 0; k < bound; k++) {
    uses_left[k] = cleave_graph_value(graph, (cleave_value_t){k})->use_count;
  }
  size_t live = 0;
  for (size_t n = 0; n < graph->live_node_count; n++) {
    cleave_node_t node = inspection->order[n];
    bool is_known = false;
    for (uint32_t k = 0; k < cleave_node_output_count(graph, node); k++) {
      live += value_bytes(graph, cleave_node_output(graph, node, k), &is_known);
    }
    inspection->activation_bytes = live > inspection->activation_bytes ? live : inspection->activation_bytes;
    for (uint32_t k = 0; k < cleave_node_output_count(graph, node); k++) {
      cleave_value_t value = cleave_node_output(graph, node, k);
      live -= uses_left[value.index] == 0 ? value_bytes(graph, value, &is_known) : 0;
    }
    for (uint32_t k = 0; k < cleave_node_input_count(graph, node); k++) {
      cleave_value_t value = cleave_node_input(graph, node, k);
      if (cleave_value_exists(value) && cleave_node_exists(cleave_value_producer(graph, value)) &&
          --uses_left[value.index] == 0) {
        live -= value_bytes(graph, value, &is_known);
      }
    }
  }
  cleave_free(uses_left);
  return CLEAVE_OK;
}

/* Inspects the job's model, which must outlive it. Must be deinitialised also when this fails. */
static cleave_status_t inspection_init(cleave_inspection_t *inspection, const cleave_job_t *job,
                                       cleave_error_t *error) {
  const cleave_graph_t *graph = cleave_model_graph(job->model);
  struct stat status;
  inspection->graph = graph;
  inspection->file_bytes = stat(job->options->model, &status) == 0 ? (size_t)status.st_size : 0;
  inspection->order = cleave_allocate(graph->live_node_count, sizeof *inspection->order);
  inspection->needed = cleave_allocate(cleave_graph_node_bound(graph), sizeof *inspection->needed);
  inspection->removed_count = cleave_model_dead_count(job->model);
  CLEAVE_TRY_MEMORY(inspection->order != NULL && inspection->needed != NULL, error);
  CLEAVE_TRY(cleave_graph_topological_order(graph, inspection->order, NULL, error));
  CLEAVE_TRY(cleave_graph_find_needed(graph, inspection->needed, error));
  for (size_t k = 0; k < graph->live_node_count; k++) {
    inspection->dead_count += inspection->needed[inspection->order[k].index] ? 0 : 1;
    CLEAVE_TRY(count_operator(inspection, inspection->order[k], error));
  }
  cleave_array_sort(&inspection->operators, compare_operators);
  for (uint32_t k = 0; k < cleave_graph_value_bound(graph); k++) {
    cleave_value_t value = {k};
    const cleave_value_record_t *record = cleave_graph_value(graph, value);
    if (record->is_removed || (record->use_count == 0 && !record->is_input)) {
      continue;
    }
    if (record->tensor != NULL) {
      inspection->weight_bytes += record->tensor->bytes;
      inspection->weight_count += (uint64_t)record->tensor->count;
    } else if (has_unknown(record)) {
      CLEAVE_ARRAY_PUSH(&inspection->unknown, value, error);
    }
  }
  return find_peak(inspection, error);
}

static void inspection_deinit(cleave_inspection_t *inspection) {
  cleave_free(inspection->order);
  cleave_free(inspection->needed);
  cleave_array_free(&inspection->operators);
  cleave_array_free(&inspection->unknown);
}

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

/* Prints which libraries bring the operators that are not ONNX's. */
static void print_libraries(const cleave_inspection_t *inspection) {
  bool is_first = true;
  for (size_t k = 0; k < inspection->operators.count; k++) {
    const cleave_operator_count_t *line = &inspection->operators.items[k];
    if (line->op->id == CLEAVE_OP_ID_CUSTOM) {
      bool is_known = cleave_op_has_schema(line->op);
      cleave_print(CLEAVE_TRUSTED "  %s%s%s: %s%s\n", is_first ? "\n" : "", line->domain,
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
  cleave_print("\n%zu value%s with unknown dtype, rank or sizes:\n", inspection->unknown.count,
               CLEAVE_PLURAL(inspection->unknown.count));
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
  cleave_print("file %s, opset %d, IR version %d, %zu node%s after folding",
               cleave_output_bytes((double)inspection->file_bytes, text[0], sizeof text[0]),
               (int)graph->opset_version, (int)graph->ir_version, graph->live_node_count,
               CLEAVE_PLURAL(graph->live_node_count));
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
  if (inspection->misfit.status != CLEAVE_OK) {
    cleave_print("  left open, because: %s\n", inspection->misfit.message);
  }
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

/* print_nodes as JSON. */
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
  cleave_status_t status = cleave_job_bind_shapes(job, &inspection->misfit);
  if (status == CLEAVE_ERROR_SHAPE) {
    status = cleave_job_bind_open(job, error);
  } else if (status != CLEAVE_OK) {
    return cleave_error_take(error, &inspection->misfit);
  }
  CLEAVE_TRY(status);
  return inspection_init(inspection, job, error);
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
  inspection_deinit(&inspection);
  cleave_job_deinit(&job);
  return status;
}

CLEAVE_COMMAND_DEFINE(
    inspect, 30, "MODEL", run, "show what is in a model",
    "Prints inputs, outputs, operators with their number and FLOPs (a multiply-add counts two), opset,\n"
    "size of file and weights, memory of activations, and values whose type is unknown. The model\n"
    "is shown as cleave sees it: in canonical form, shapes inferred, constants folded.",
    .min_operands = 1)
