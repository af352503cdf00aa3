// SPDX-License-Identifier: Apache-2.0
// Models: a graph that is simplified once and then only read. A bound model keeps the one it was made from,
// whose texts and weights it shares. The graph as it was before it was simplified stays with the model where
// that changed anything: other constants begin there.
#include <string.h>

#include "backend/registry/context.h"
#include "base/sized.h"
#include "formats/onnx/onnx.h"
#include "formats/ranges.h"
#include "graph/clone.h"
#include "partition/gradient/gradient_nodes.h"
#include "runtime/model/bind.h"
#include "runtime/model/gradient_rules.h"
#include "runtime/model/model_internal.h"
#include "runtime/model/region_graph.h"
#include "script/model_script.h"
#include "script/rules/rules.h"

void cleave_text_free(char *text) {
  cleave_free(text);
}

/* ---- making and sharing ---- */

cleave_status_t cleave_model_wrap_take(cleave_context_t *context, cleave_graph_t *graph,
                                       cleave_model_t **out_model, cleave_error_t *error) {
  *out_model = NULL;
  cleave_model_t *model = cleave_allocate_zeroed(1, sizeof *model);
  if (model == NULL) {
    cleave_graph_destroy(graph);
    return cleave_error_out_of_memory(error);
  }
  atomic_init(&model->references, 1);
  model->graph = graph;
  model->context = cleave_context_retain(context);
  *out_model = model;
  return CLEAVE_OK;
}

static bool is_listed(const cleave_graph_t *graph, uint32_t value) {
  const cleave_value_record_t *record = &graph->values.items[value];
  return record->tensor != NULL && !record->is_removed && record->name != CLEAVE_STRING_EMPTY.index;
}

cleave_status_t cleave_model_list_constants(cleave_model_t *model, cleave_error_t *error) {
  const cleave_graph_t *graph = model->unfolded != NULL ? model->unfolded : model->graph;
  uint32_t count = 0;
  for (uint32_t k = 0; k < cleave_graph_value_bound(graph); k++) {
    count += is_listed(graph, k);
  }
  model->constants = cleave_allocate(count, sizeof *model->constants);
  CLEAVE_TRY_MEMORY(model->constants, error);
  for (uint32_t k = 0; k < cleave_graph_value_bound(graph); k++) {
    if (is_listed(graph, k)) {
      model->constants[model->constant_count++] = k;
    }
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_model_create_take(cleave_graph_t *graph, cleave_model_t **out_model,
                                         cleave_error_t *error) {
  cleave_model_t *model = NULL;
  *out_model = NULL;
  CLEAVE_TRY(cleave_model_wrap_take(graph->context, graph, &model, error));
  cleave_status_t status = cleave_graph_remove_dead(graph, &model->dead_count, error);
  uint32_t values = cleave_graph_value_bound(graph);
  size_t nodes = graph->live_node_count;
  CLEAVE_THEN(status, cleave_graph_copy(graph, &model->unfolded, error));
  CLEAVE_THEN(status, cleave_graph_simplify(graph, NULL, 0, NULL, error));
  bool more = false;
  CLEAVE_THEN(status, cleave_graph_state_declared(graph, model->unfolded, &more, error));
  if (status == CLEAVE_OK && more) {
    status = cleave_graph_simplify(graph, NULL, 0, NULL, error);
  }
  CLEAVE_TRY_OR(status, cleave_model_release(model));
  if (graph->live_node_count == nodes && cleave_graph_value_bound(graph) == values) {
    cleave_graph_destroy(model->unfolded);
    model->unfolded = NULL;
  }
  CLEAVE_TRY_OR(cleave_model_list_constants(model, error), cleave_model_release(model));
  *out_model = model;
  return CLEAVE_OK;
}

cleave_status_t cleave_model_create_sharing_take(cleave_graph_t *graph, cleave_model_t *origin,
                                                 cleave_model_t **out_model, cleave_error_t *error) {
  graph->context = origin->context;
  CLEAVE_TRY(cleave_model_create_take(graph, out_model, error));
  (*out_model)->texts = cleave_model_retain(origin);
  return CLEAVE_OK;
}

/* Nodes that are gradients, by the rules that come with cleave. */
static cleave_status_t resolve_gradients(cleave_graph_t *graph, cleave_error_t *error) {
  if (!cleave_gradient_nodes_exist(graph)) {
    return CLEAVE_OK;
  }
  cleave_gradient_set_t set;
  cleave_status_t status = cleave_gradient_set_load(&set, graph->context, NULL, error);
  CLEAVE_THEN(status, cleave_gradient_nodes_resolve(graph, &set.rules, error));
  cleave_gradient_set_deinit(&set);
  return status;
}

/* A model as the options ask for it. */
static cleave_status_t create_by_take(cleave_context_t *context, const cleave_model_load_options_t *options,
                                      cleave_graph_t *graph, cleave_model_t **out_model,
                                      cleave_error_t *error) {
  graph->context = context;
  CLEAVE_TRY_OR(resolve_gradients(graph, error), cleave_graph_destroy(graph));
  if (options->keep_dead) {
    cleave_graph_keep_dead(graph);
  }
  return cleave_model_create_take(graph, out_model, error);
}

/* The reader of ONNX has fixed inputs, since branches depend on them. */
static cleave_status_t create_fixed_take(cleave_context_t *context,
                                         const cleave_model_load_options_t *options, cleave_graph_t *graph,
                                         cleave_model_t **out_model, cleave_error_t *error) {
  CLEAVE_TRY_OR(cleave_graph_fix_inputs(graph, options->fixed_inputs, options->fixed_input_count, error),
                cleave_graph_destroy(graph));
  return create_by_take(context, options, graph, out_model, error);
}

/* The region is the model's from now on, also if this fails. */
static cleave_status_t create_from_region_take(cleave_context_t *context,
                                               const cleave_model_load_options_t *options,
                                               cleave_region_file_t *region, cleave_model_t **out_model,
                                               cleave_error_t *error) {
  cleave_graph_t *graph = NULL;
  cleave_status_t status = cleave_region_file_graph(region, &graph, error);
  CLEAVE_THEN(status, create_fixed_take(context, options, graph, out_model, error));
  CLEAVE_TRY_OR(status, cleave_region_file_destroy(region));
  (*out_model)->region = region;
  return CLEAVE_OK;
}

static cleave_onnx_read_options_t onnx_options(const cleave_model_load_options_t *options) {
  return (cleave_onnx_read_options_t){.lenient = options->lenient,
                                      .open_inputs = options->open_inputs,
                                      .open_input_count = options->open_input_count,
                                      .sizes = options->sizes,
                                      .size_count = options->size_count,
                                      .fixed_inputs = options->fixed_inputs,
                                      .fixed_input_count = options->fixed_input_count};
}

/* A model from the graph of a file, which it takes over. */
static cleave_status_t create_from_onnx_take(cleave_context_t *context,
                                             const cleave_model_load_options_t *options,
                                             cleave_graph_t *graph, cleave_model_t **out_model,
                                             cleave_error_t *error) {
  if (graph->newer_version > 0) {
    cleave_log(cleave_context_log(context), CLEAVE_LOG_WARNING, "%s: opset %d is read as opset %d",
               cleave_strings_text(&graph->strings, graph->source), (int)graph->newer_version,
               (int)graph->opset_version);
  }
  return create_by_take(context, options, graph, out_model, error);
}

static cleave_status_t load_file(cleave_context_t *context, const char *path,
                                 const cleave_model_load_options_t *options, bool *out_used,
                                 cleave_model_t **out_model, cleave_error_t *error) {
  cleave_graph_t *graph = NULL;
  if (cleave_path_has_extension(path, ".onnx")) {
    cleave_onnx_read_options_t read = onnx_options(options);
    CLEAVE_TRY(cleave_onnx_read(path, &read, &graph, error));
    return create_from_onnx_take(context, options, graph, out_model, error);
  }
  if (options->open_input_count > 0) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "%s: input '%.100s' has no initializer: only inputs of .onnx files have", path,
                            options->open_inputs[0]);
  }
  if (cleave_path_has_extension(path, ".lua")) {
    cleave_script_settings_t settings = {
        .items = options->settings, .count = options->setting_count, .out_used = out_used};
    CLEAVE_TRY(cleave_model_script_load(context, path, &settings, options->seed, &graph, error));
  } else if (cleave_path_has_extension(path, ".json")) {
    cleave_region_file_t *region = NULL;
    CLEAVE_TRY(cleave_region_json_open(path, &region, error));
    return create_from_region_take(context, options, region, out_model, error);
  } else {
    return cleave_error_set(error, CLEAVE_ERROR_UNSUPPORTED,
                            "%s: not a model by its name: expected .onnx, .lua, or .json (a region)", path);
  }
  return create_fixed_take(context, options, graph, out_model, error);
}

/* The graph before folding, with which models of other constants begin, has the same values. */
cleave_status_t cleave_model_read_ranges(cleave_model_t *model, const char *path, cleave_error_t *error) {
  CLEAVE_TRY(cleave_ranges_read(path, model->graph, error));
  uint32_t count = model->unfolded == NULL ? 0 : cleave_graph_value_bound(model->unfolded);
  for (uint32_t k = 0; k < count; k++) {
    const cleave_value_record_t *value = &model->graph->values.items[k];
    if (value->has_range) {
      cleave_graph_set_range(model->unfolded, (cleave_value_t){k}, value->low, value->high);
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t load_ranges(const cleave_model_load_options_t *options, cleave_model_t **model,
                                   cleave_error_t *error) {
  cleave_status_t status =
      options->ranges == NULL ? CLEAVE_OK : cleave_model_read_ranges(*model, options->ranges, error);
  if (status != CLEAVE_OK) {
    cleave_model_release(*model);
    *model = NULL;
  }
  return status;
}

/* The context is there from the first operator that is looked up in it. */
cleave_status_t cleave_model_load_with(cleave_context_t *context, const char *path,
                                       const cleave_model_load_options_t *options, bool *out_used,
                                       cleave_model_t **out_model, cleave_error_t *error) {
  *out_model = NULL;
  for (size_t k = 0; k < options->setting_count; k++) {
    out_used[k] = false;
  }
  context = cleave_context_retain(context);
  cleave_status_t status = load_file(context, path, options, out_used, out_model, error);
  cleave_context_release(context);
  return status == CLEAVE_OK ? load_ranges(options, out_model, error) : status;
}

/* No ONNX model begins with a brace, which would be the start of a group. */
static bool looks_like_json(const char *data, size_t size) {
  size_t k = 0;
  while (k < size && (data[k] == ' ' || data[k] == '\t' || data[k] == '\r' || data[k] == '\n')) {
    k++;
  }
  return k < size && data[k] == '{';
}

static cleave_status_t load_bytes(cleave_context_t *context, const char *name,
                                  const cleave_model_load_options_t *options, cleave_model_t **out_model,
                                  cleave_error_t *error) {
  cleave_graph_t *graph = NULL;
  cleave_onnx_read_options_t read = onnx_options(options);
  if (looks_like_json(options->data, options->data_size)) {
    cleave_region_file_t *region = NULL;
    CLEAVE_TRY(cleave_region_json_read(name, options->data, options->data_size, NULL, &region, error));
    return create_from_region_take(context, options, region, out_model, error);
  }
  CLEAVE_TRY(cleave_onnx_read_memory(options->data, options->data_size, name, &read, &graph, error));
  return create_from_onnx_take(context, options, graph, out_model, error);
}

static cleave_status_t load_memory(cleave_context_t *context, const char *name,
                                   const cleave_model_load_options_t *options, cleave_model_t **out_model,
                                   cleave_error_t *error) {
  context = cleave_context_retain(context);
  cleave_status_t status = load_bytes(context, name == NULL ? "model" : name, options, out_model, error);
  cleave_context_release(context);
  return status == CLEAVE_OK ? load_ranges(options, out_model, error) : status;
}

cleave_status_t cleave_model_load(cleave_context_t *context, const char *path,
                                  const cleave_model_load_options_t *options, cleave_model_t **out_model,
                                  cleave_error_t *error) {
  cleave_model_load_options_t own = {.size = sizeof own};
  *out_model = NULL;
  CLEAVE_TRY(CLEAVE_SIZED_IN(cleave_model_load_options_t, options, &own, error));
  CLEAVE_TRY(cleave_list_check("settings", own.settings, own.setting_count, error));
  CLEAVE_TRY(cleave_list_check("open_inputs", own.open_inputs, own.open_input_count, error));
  CLEAVE_TRY(cleave_list_check("fixed_inputs", own.fixed_inputs, own.fixed_input_count, error));
  if (own.data != NULL) {
    return load_memory(context, path, &own, out_model, error);
  }
  if (path == NULL) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "path: expected a file, or `data` in the options, found neither");
  }
  bool *used = cleave_allocate_zeroed(own.setting_count, sizeof *used);
  CLEAVE_TRY_MEMORY(used, error);
  cleave_status_t status = cleave_model_load_with(context, path, &own, used, out_model, error);
  for (size_t k = 0; k < own.setting_count && status == CLEAVE_OK; k++) {
    if (!used[k]) {
      status = cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                                "%s: setting '%s': the model has no option of this name", path,
                                own.settings[k].name);
      cleave_model_release(*out_model);
      *out_model = NULL;
    }
  }
  cleave_free(used);
  return status;
}

cleave_status_t cleave_model_load_memory(cleave_context_t *context, const void *data, size_t size,
                                         const char *name, cleave_model_t **out_model,
                                         cleave_error_t *error) {
  cleave_model_load_options_t options = {.size = sizeof options, .data = data, .data_size = size};
  *out_model = NULL;
  CLEAVE_TRY(cleave_list_check("data", data, size, error));
  return load_memory(context, name, &options, out_model, error);
}

cleave_model_t *cleave_model_retain(cleave_model_t *model) {
  (void)atomic_fetch_add_explicit(&model->references, 1, memory_order_relaxed);
  return model;
}

void cleave_model_release(cleave_model_t *model) {
  if (model == NULL || atomic_fetch_sub_explicit(&model->references, 1, memory_order_acq_rel) != 1) {
    return;
  }
  cleave_graph_destroy(model->unfolded);
  cleave_graph_destroy(model->graph);
  cleave_region_file_destroy(model->region);
  cleave_model_release(model->origin);
  cleave_model_release(model->texts);
  cleave_context_release(model->context);
  cleave_free(model->constants);
  cleave_arena_deinit(&model->arena);
  cleave_free(model->backward);
  cleave_free(model);
}

/* Types alone, to bind the model again when its constants change. */
static cleave_status_t keep_inputs(cleave_model_t *model, const cleave_tensor_view_t *const *inputs,
                                   size_t count, cleave_error_t *error) {
  if (inputs == NULL) {
    return CLEAVE_OK;
  }
  model->bound_inputs = cleave_arena_allocate(&model->arena, count, sizeof *model->bound_inputs);
  bool is_complete = model->bound_inputs != NULL;
  for (size_t k = 0; is_complete && k < count; k++) {
    model->bound_inputs[k] = NULL;
    if (inputs[k] == NULL) {
      continue;
    }
    cleave_tensor_view_t *type = cleave_arena_allocate(&model->arena, 1, sizeof *type);
    size_t bytes = (size_t)inputs[k]->rank * sizeof *inputs[k]->dims;
    const int64_t *dims = bytes == 0 ? NULL : cleave_arena_copy(&model->arena, inputs[k]->dims, bytes);
    is_complete = type != NULL && (bytes == 0 || dims != NULL);
    if (is_complete) {
      *type = (cleave_tensor_view_t){
          .size = sizeof *type, .dtype = inputs[k]->dtype, .rank = inputs[k]->rank, .dims = dims};
      model->bound_inputs[k] = type;
    }
  }
  model->bound_count = count;
  return is_complete ? CLEAVE_OK : cleave_error_out_of_memory(error);
}

/* The model of a bound graph, which it takes over; NULL: there was nothing to bind. */
static cleave_status_t wrap_bound_take(cleave_model_t *model, cleave_graph_t *graph,
                                       const cleave_tensor_view_t *const *inputs, size_t input_count,
                                       cleave_model_t **out_model, cleave_error_t *error) {
  if (graph == NULL) {
    *out_model = cleave_model_retain(model);
    return CLEAVE_OK;
  }
  cleave_model_t *bound = NULL;
  CLEAVE_TRY(cleave_model_wrap_take(graph->context, graph, &bound, error));
  bound->origin = cleave_model_retain(model);
  bound->dead_count = model->dead_count;
  CLEAVE_TRY_OR(keep_inputs(bound, inputs, input_count, error), cleave_model_release(bound));
  *out_model = bound;
  return CLEAVE_OK;
}

cleave_status_t cleave_model_bind(cleave_model_t *model, const cleave_tensor_view_t *const *inputs,
                                  size_t input_count, cleave_model_t **out_model, cleave_error_t *error) {
  cleave_graph_t *graph = NULL;
  *out_model = NULL;
  CLEAVE_TRY(cleave_graph_bind(model->graph, inputs, input_count, NULL, &graph, error));
  return wrap_bound_take(model, graph, inputs, input_count, out_model, error);
}

cleave_status_t cleave_model_bind_partly(cleave_model_t *model, const cleave_tensor_view_t *const *inputs,
                                         size_t input_count, cleave_model_t **out_model,
                                         cleave_error_t *error) {
  cleave_graph_t *graph = NULL;
  *out_model = NULL;
  CLEAVE_TRY(cleave_graph_bind_partly(model->graph, inputs, input_count, NULL, &graph, error));
  return wrap_bound_take(model, graph, inputs, input_count, out_model, error);
}

const cleave_graph_t *cleave_model_graph(const cleave_model_t *model) {
  return model->graph;
}

size_t cleave_model_dead_count(const cleave_model_t *model) {
  return model->dead_count;
}

/* ---- inputs and outputs ---- */

uint32_t cleave_model_input_count(const cleave_model_t *model) {
  return (uint32_t)model->graph->inputs.count;
}

uint32_t cleave_model_output_count(const cleave_model_t *model) {
  return (uint32_t)model->graph->outputs.count;
}

static const char *output_name(const cleave_model_t *model, uint32_t index) {
  return cleave_graph_output_name(model->graph, index);
}

static cleave_status_t fill_port(const cleave_graph_t *graph, cleave_value_t value, const char *name,
                                 cleave_port_t *out_port, cleave_error_t *error) {
  const cleave_value_record_t *record = cleave_graph_value(graph, value);
  const cleave_port_t port = {.name = name,
                              .tensor = {.size = sizeof port.tensor,
                                         .dtype = (cleave_dtype_t)record->dtype,
                                         .rank = record->rank,
                                         .dims = record->dims}};
  CLEAVE_TRY(CLEAVE_SIZED_CHECK(cleave_port_t, out_port, error));
  CLEAVE_SIZED_OUT(cleave_port_t, &port, out_port);
  return CLEAVE_OK;
}

cleave_status_t cleave_model_input(const cleave_model_t *model, uint32_t index, cleave_port_t *out_port,
                                   cleave_error_t *error) {
  if (index >= cleave_model_input_count(model)) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "input %u: the model has %u input%s",
                            (unsigned)index, (unsigned)cleave_model_input_count(model),
                            CLEAVE_PLURAL(cleave_model_input_count(model)));
  }
  cleave_value_t value = model->graph->inputs.items[index];
  return fill_port(model->graph, value, cleave_value_name(model->graph, value), out_port, error);
}

cleave_status_t cleave_model_output(const cleave_model_t *model, uint32_t index, cleave_port_t *out_port,
                                    cleave_error_t *error) {
  if (index >= cleave_model_output_count(model)) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "output %u: the model has %u output%s",
                            (unsigned)index, (unsigned)cleave_model_output_count(model),
                            CLEAVE_PLURAL(cleave_model_output_count(model)));
  }
  return fill_port(model->graph, cleave_graph_output(model->graph, index), output_name(model, index),
                   out_port, error);
}

static uint32_t find_named_input(const cleave_graph_t *graph, const char *name) {
  for (uint32_t k = 0; k < graph->inputs.count; k++) {
    if (strcmp(cleave_value_name(graph, graph->inputs.items[k]), name) == 0) {
      return k;
    }
  }
  return CLEAVE_INDEX_NONE;
}

uint32_t cleave_model_find_input(const cleave_model_t *model, const char *name) {
  return find_named_input(model->graph, name);
}

uint32_t cleave_model_find_output(const cleave_model_t *model, const char *name) {
  for (uint32_t k = 0; k < cleave_model_output_count(model); k++) {
    if (strcmp(output_name(model, k), name) == 0) {
      return k;
    }
  }
  return CLEAVE_INDEX_NONE;
}

/* ---- plans ---- */

uint32_t cleave_plan_input_count(const cleave_plan_t *plan) {
  return (uint32_t)plan->graph->inputs.count;
}

cleave_status_t cleave_plan_input(const cleave_plan_t *plan, uint32_t index, cleave_port_t *out_port,
                                  cleave_error_t *error) {
  if (index >= cleave_plan_input_count(plan)) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "input %u: the plan has %u input%s",
                            (unsigned)index, (unsigned)cleave_plan_input_count(plan),
                            CLEAVE_PLURAL(cleave_plan_input_count(plan)));
  }
  cleave_value_t value = plan->graph->inputs.items[index];
  return fill_port(plan->graph, value, cleave_value_name(plan->graph, value), out_port, error);
}

uint32_t cleave_plan_find_input(const cleave_plan_t *plan, const char *name) {
  return find_named_input(plan->graph, name);
}

cleave_status_t cleave_plan_format(const cleave_plan_t *plan, cleave_plan_format_t format, char **out_text,
                                   cleave_error_t *error) {
  *out_text = NULL;
  cleave_text_t text = {0};
  cleave_status_t status = format == CLEAVE_PLAN_JSON ? cleave_plan_print_json(plan, &text, error)
                                                      : cleave_plan_print_text(plan, &text, error);
  CLEAVE_THEN(status, cleave_text_check(&text, error));
  if (status == CLEAVE_OK) {
    *out_text = cleave_copy_text(cleave_text_get(&text), text.length);
    status = *out_text == NULL ? cleave_error_out_of_memory(error) : CLEAVE_OK;
  }
  cleave_text_deinit(&text);
  return status;
}
