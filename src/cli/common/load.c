// SPDX-License-Identifier: Apache-2.0
// Reading inputs. Every input ends up with a tensor, or there is an error that names it.
#include "cli/common/load.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/region/view.h"
#include "cli/common/common.h"
#include "cli/common/output.h"
#include "formats/onnx/onnx.h"
#include "runtime/model/model.h"
#include "tensor/npy.h"

/* ---- settings ---- */

cleave_status_t cleave_settings_read(const cleave_text_list_t *list, cleave_settings_t *out_settings,
                                     cleave_error_t *error) {
  *out_settings = (cleave_settings_t){0};
  out_settings->items = cleave_allocate_zeroed(list->count, sizeof *out_settings->items);
  out_settings->names = cleave_allocate_zeroed(list->count, sizeof *out_settings->names);
  out_settings->used = cleave_allocate_zeroed(list->count, sizeof *out_settings->used);
  CLEAVE_TRY_MEMORY(out_settings->items != NULL && out_settings->names != NULL && out_settings->used != NULL,
                    error);
  for (size_t k = 0; k < list->count; k++) {
    const char *equals = strchr(list->items[k], '=');
    if (equals == NULL || equals == list->items[k]) {
      return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "--set: expected name=value, found '%s'",
                              list->items[k]);
    }
    out_settings->names[k] = cleave_copy_text(list->items[k], (size_t)(equals - list->items[k]));
    CLEAVE_TRY_MEMORY(out_settings->names[k], error);
    out_settings->items[k] = (cleave_setting_t){.name = out_settings->names[k], .value = equals + 1};
    out_settings->count = k + 1;
  }
  return CLEAVE_OK;
}

void cleave_settings_deinit(cleave_settings_t *settings) {
  for (size_t k = 0; k < settings->count; k++) {
    cleave_free(settings->names[k]);
  }
  cleave_free(settings->names);
  cleave_free(settings->items);
  cleave_free(settings->used);
  *settings = (cleave_settings_t){0};
}

cleave_status_t cleave_rule_request(const cleave_text_list_t *paths, const cleave_settings_t *settings,
                                    cleave_partition_request_t *out_request, cleave_error_t *error) {
  *out_request = (cleave_partition_request_t){.size = sizeof *out_request};
  cleave_rule_source_t *sources = cleave_allocate_zeroed(paths->count, sizeof *sources);
  CLEAVE_TRY_MEMORY(sources, error);
  for (size_t k = 0; k < paths->count; k++) {
    sources[k].path = paths->items[k];
  }
  out_request->sources = sources;
  out_request->source_count = paths->count;
  if (settings != NULL) {
    out_request->settings = settings->items;
    out_request->setting_count = settings->count;
  }
  return CLEAVE_OK;
}

void cleave_rule_request_deinit(cleave_partition_request_t *request) {
  cleave_free((void *)request->sources);
  *request = (cleave_partition_request_t){0};
}

/* ---- models ---- */

static bool has_value_for(const cleave_text_list_t *files, const char *name) {
  size_t length = strlen(name);
  for (size_t k = 0; files != NULL && k < files->count; k++) {
    if (strncmp(files->items[k], name, length) == 0 && files->items[k][length] == '=') {
      return true;
    }
  }
  return false;
}

/* Does the folder hold a tensor for every input of the file, those with a default among them? */
static bool holds_all(const char *folder, const cleave_graph_t *graph) {
  struct stat info;
  char path[4096];
  size_t count = graph->inputs.count + graph->default_input_count;
  int length = folder == NULL ? -1 : snprintf(path, sizeof path, "%s/input_%zu.pb", folder, count - 1);
  return length > 0 && (size_t)length < sizeof path && stat(path, &info) == 0;
}

/* Inputs with a default that are given all the same; their names are the graph's. */
static cleave_status_t list_given(const cleave_graph_t *graph, const cleave_text_list_t *files,
                                  const char *folder, const char ***out_names, size_t *out_count,
                                  cleave_error_t *error) {
  bool all = graph->default_input_count > 0 && holds_all(folder, graph);
  *out_count = 0;
  *out_names = cleave_allocate(graph->default_input_count, sizeof **out_names);
  CLEAVE_TRY_MEMORY(*out_names, error);
  for (size_t k = 0; k < graph->default_input_count; k++) {
    const char *name = cleave_strings_text(&graph->strings, graph->default_inputs[k]);
    if (all || has_value_for(files, name)) {
      (*out_names)[(*out_count)++] = name;
    }
  }
  return CLEAVE_OK;
}

static void free_sizes(cleave_open_size_t *sizes, size_t count) {
  for (size_t k = 0; k < count; k++) {
    cleave_free((void *)sizes[k].name);
  }
  cleave_free(sizes);
}

cleave_status_t cleave_model_read(const char *path, cleave_settings_t *settings,
                                  const cleave_text_list_t *shapes, const cleave_text_list_t *files,
                                  const char *folder, cleave_model_t **out_model, cleave_error_t *error) {
  cleave_open_size_t *sizes = cleave_allocate_zeroed(shapes->count, sizeof *sizes);
  cleave_model_load_options_t options = {.size = sizeof options,
                                         .settings = settings->items,
                                         .setting_count = settings->count,
                                         .seed = settings->seed,
                                         .lenient = cleave_common_lenient(),
                                         .sizes = sizes,
                                         .keep_dead = cleave_common_keep_dead()};
  options.fixed_inputs = cleave_common_fixed(&options.fixed_input_count);
  cleave_model_t *model = NULL;
  const char **names = NULL;
  size_t count = 0;
  *out_model = NULL;
  CLEAVE_TRY_MEMORY(sizes, error);
  cleave_status_t status = cleave_shape_option_list(shapes, sizes, &options.size_count, error);
  CLEAVE_THEN(status,
              cleave_model_load_with(cleave_common_context(), path, &options, settings->used, &model, error));
  CLEAVE_TRY_OR(status, free_sizes(sizes, options.size_count));
  const cleave_graph_t *graph = cleave_model_graph(model);
  status = list_given(graph, files, folder, &names, &count, error);
  if (status == CLEAVE_OK && graph->newer_version > 0) {
    cleave_print_error("cleave: warning: %s: opset %d is read as opset %d\n", path, (int)graph->newer_version,
                       (int)graph->opset_version);
  }
  if (status == CLEAVE_OK && count > 0) {
    options.open_inputs = names;
    options.open_input_count = count;
    status =
        cleave_model_load_with(cleave_common_context(), path, &options, settings->used, out_model, error);
  } else if (status == CLEAVE_OK) {
    *out_model = cleave_model_retain(model);
  }
  cleave_free((void *)names);
  free_sizes(sizes, options.size_count);
  cleave_model_release(model);
  return status;
}

/* ---- files ---- */

cleave_status_t cleave_tensor_path_check(const char *path, cleave_error_t *error) {
  if (cleave_path_has_extension(path, ".npy") || cleave_path_has_extension(path, ".pb")) {
    return CLEAVE_OK;
  }
  return cleave_error_set(error, CLEAVE_ERROR_UNSUPPORTED,
                          "%s: not a tensor by its name: expected .npy or .pb", path);
}

cleave_status_t cleave_tensor_load(const char *path, cleave_tensor_t **out_tensor, cleave_error_t *error) {
  *out_tensor = NULL;
  if (cleave_path_has_extension(path, ".npy")) {
    return cleave_npy_read(path, out_tensor, error);
  }
  if (cleave_path_has_extension(path, ".pb")) {
    return cleave_tensor_pb_read(path, out_tensor, error);
  }
  return cleave_tensor_path_check(path, error);
}

cleave_status_t cleave_tensor_save(const char *path, const cleave_tensor_t *tensor, const char *name,
                                   cleave_error_t *error) {
  CLEAVE_TRY(cleave_tensor_path_check(path, error));
  return cleave_path_has_extension(path, ".npy") ? cleave_npy_write(path, tensor, error)
                                                 : cleave_tensor_pb_write(path, tensor, name, error);
}

enum { MAX_PATH_LENGTH = 4096 };

/* FOLDER/KIND_INDEX.pb */
static cleave_status_t numbered_path(const char *folder, const char *kind, size_t index, char *path,
                                     cleave_error_t *error) {
  int length = snprintf(path, MAX_PATH_LENGTH, "%s/%s_%zu.pb", folder, kind, index);
  if (length < 0 || length >= MAX_PATH_LENGTH) {
    return cleave_error_set(error, CLEAVE_ERROR_LIMIT, "%s: the path is too long", folder);
  }
  return CLEAVE_OK;
}

static cleave_status_t load_numbered(const char *folder, const char *kind, size_t index,
                                     cleave_tensor_t **out_tensor, cleave_error_t *error) {
  char path[MAX_PATH_LENGTH];
  CLEAVE_TRY(numbered_path(folder, kind, index, path, error));
  return cleave_tensor_pb_read(path, out_tensor, error);
}

cleave_status_t cleave_tensors_save(const char *folder, const char *kind, cleave_tensor_t *const *tensors,
                                    size_t count, cleave_error_t *error) {
  char path[MAX_PATH_LENGTH];
  for (size_t k = 0; k < count; k++) {
    CLEAVE_TRY(numbered_path(folder, kind, k, path, error));
    CLEAVE_TRY(cleave_tensor_pb_write(path, tensors[k], NULL, error));
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_outputs_load(const char *folder, cleave_tensor_t **outputs, size_t count,
                                    cleave_error_t *error) {
  for (size_t k = 0; k < count; k++) {
    CLEAVE_TRY(load_numbered(folder, "output", k, &outputs[k], error));
  }
  return CLEAVE_OK;
}

/* ---- NAME=... ---- */

static const char *input_name(const void *owner, uint32_t index) {
  const cleave_graph_t *graph = owner;
  return cleave_value_name(graph, graph->inputs.items[index]);
}

static cleave_dtype_t input_dtype(const cleave_graph_t *graph, size_t index) {
  return (cleave_dtype_t)cleave_graph_value(graph, graph->inputs.items[index])->dtype;
}

cleave_status_t cleave_port_option_find(const cleave_port_option_t *ports, const char *text,
                                        uint32_t *out_index, const char **out_value, cleave_error_t *error) {
  const char *first = strchr(text, '=');
  for (const char *equals = first; equals != NULL; equals = strchr(equals + 1, '=')) {
    size_t length = (size_t)(equals - text);
    *out_value = equals + 1;
    for (uint32_t k = 0; k < ports->count; k++) {
      const char *name = ports->name(ports->owner, k);
      if (strncmp(name, text, length) == 0 && name[length] == '\0') {
        *out_index = k;
        return CLEAVE_OK;
      }
    }
  }
  *out_index = CLEAVE_INDEX_NONE;
  if (first == NULL || first == text) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "%s: expected NAME=FILE, found '%s'",
                            ports->option, text);
  }
  if (ports->may_be_added) {
    return CLEAVE_OK;
  }
  char name[512];
  cleave_nearest_t nearest = {0};
  cleave_text_t names = {0};
  (void)snprintf(name, sizeof name, "%.*s", (int)(first - text < 500 ? first - text : 500), text);
  for (uint32_t k = 0; k < ports->count; k++) {
    cleave_nearest_offer(&nearest, name, ports->name(ports->owner, k));
    cleave_text_show(&names, "%s%s", k == 0 ? "" : ", ", ports->name(ports->owner, k));
  }
  cleave_status_t status = cleave_error_set(
      error, CLEAVE_ERROR_INVALID_ARGUMENT, "%s: the model has no %s '%s'%s; its %ss are: %s", ports->option,
      ports->kind, name, cleave_nearest_hint(&nearest), ports->kind, cleave_text_get(&names));
  cleave_text_deinit(&names);
  return status;
}

/* ---- inputs ---- */

static cleave_status_t start_inputs(size_t count, cleave_inputs_t *inputs, cleave_error_t *error) {
  *inputs = (cleave_inputs_t){0};
  inputs->tensors = cleave_allocate_zeroed(count, sizeof *inputs->tensors);
  inputs->views = cleave_allocate_zeroed(count, sizeof *inputs->views);
  inputs->pointers = cleave_allocate_zeroed(count, sizeof *inputs->pointers);
  CLEAVE_TRY_MEMORY(inputs->tensors != NULL && inputs->views != NULL && inputs->pointers != NULL, error);
  inputs->count = count;
  return CLEAVE_OK;
}

void cleave_inputs_deinit(cleave_inputs_t *inputs) {
  for (size_t k = 0; k < inputs->count; k++) {
    cleave_tensor_release(inputs->tensors[k]);
  }
  cleave_free(inputs->tensors);
  cleave_free(inputs->views);
  cleave_free((void *)inputs->pointers);
  cleave_sizes_deinit(&inputs->sizes);
  cleave_text_deinit(&inputs->drawn);
  *inputs = (cleave_inputs_t){0};
}

static cleave_status_t draw(const cleave_graph_t *graph, uint64_t seed, uint32_t index,
                            cleave_inputs_t *inputs, cleave_error_t *error) {
  const cleave_tensor_view_t *type = &inputs->sizes.types[index];
  const char *name = input_name(graph, index);
  if (type->rank < 0) {
    return cleave_error_set(error, CLEAVE_ERROR_SHAPE,
                            "input '%s' has an unknown shape: give it with --shape %s=...", name, name);
  }
  if (type->dtype == CLEAVE_DTYPE_STRING) {
    return cleave_error_set(error, CLEAVE_ERROR_UNSUPPORTED,
                            "input '%s' is of strings: give it with --input or --data", name);
  }
  for (int32_t d = 0; d < type->rank; d++) {
    if (type->dims[d] < 0) {
      return cleave_error_set(error, CLEAVE_ERROR_SHAPE,
                              "input '%s': dimension %d is left open: a run needs its size", name, (int)d);
    }
  }
  cleave_error_t reason = CLEAVE_ERROR_INIT;
  cleave_status_t status =
      cleave_tensor_create(type->dtype, type->rank, type->dims, &inputs->tensors[index], &reason);
  if (status != CLEAVE_OK) {
    return cleave_error_set(error, status, "input '%s': %s", name, reason.message);
  }
  if (cleave_dtype_is_float(type->dtype)) {
    cleave_tensor_fill_normal(inputs->tensors[index], seed + index, 0.0, 1.0);
    cleave_text_show(&inputs->drawn, "%s: drawn from seed %" PRIu64 ", normal, mean 0, deviation 1\n", name,
                     seed + index);
  } else {
    /* Valid for token ids, segment ids and masks alike. */
    cleave_tensor_fill_uniform(inputs->tensors[index], seed + index, 0.0, 2.0);
    cleave_text_show(&inputs->drawn, "%s: drawn from seed %" PRIu64 ", %s, 0 or 1\n", name, seed + index,
                     cleave_dtype_name(type->dtype));
  }
  return CLEAVE_OK;
}

/* ONNX's test data stores bfloat16 as uint16. */
static void read_as(cleave_tensor_t *tensor, cleave_dtype_t wanted) {
  if (wanted == CLEAVE_DTYPE_BF16 && tensor->dtype == CLEAVE_DTYPE_U16) {
    tensor->dtype = CLEAVE_DTYPE_BF16;
  }
}

/* Reads what files give; `is_given` is by input. */
static cleave_status_t read_each(const cleave_graph_t *graph, const cleave_input_request_t *request,
                                 bool *is_given, cleave_inputs_t *inputs, cleave_error_t *error) {
  const cleave_port_option_t ports = {.option = "--input",
                                      .kind = "input",
                                      .owner = graph,
                                      .name = input_name,
                                      .count = (uint32_t)graph->inputs.count,
                                      .may_be_added = request->may_be_added};
  for (size_t k = 0; k < request->files->count; k++) {
    uint32_t index = 0;
    const char *path = NULL;
    CLEAVE_TRY(cleave_port_option_find(&ports, request->files->items[k], &index, &path, error));
    if (index != CLEAVE_INDEX_NONE && is_given[index]) {
      return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "--input: '%s' is given twice",
                              input_name(graph, index));
    }
    if (index != CLEAVE_INDEX_NONE) {
      is_given[index] = true;
      cleave_tensor_release(inputs->tensors[index]);
      inputs->tensors[index] = NULL;
      CLEAVE_TRY(cleave_tensor_load(path, &inputs->tensors[index], error));
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t read_files(const cleave_graph_t *graph, const cleave_input_request_t *request,
                                  cleave_inputs_t *inputs, cleave_error_t *error) {
  bool *is_given = cleave_allocate_zeroed(inputs->count, sizeof *is_given);
  CLEAVE_TRY_MEMORY(is_given, error);
  cleave_status_t status = read_each(graph, request, is_given, inputs, error);
  cleave_free(is_given);
  return status;
}

/* A folder with more tensors than the model has inputs is of another model. */
static cleave_status_t check_folder(const char *folder, size_t input_count, cleave_error_t *error) {
  char path[MAX_PATH_LENGTH];
  CLEAVE_TRY(numbered_path(folder, "input", input_count, path, error));
  if (access(path, F_OK) == 0) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "--data: found '%s', but the model has %zu input%s", path, input_count,
                            CLEAVE_PLURAL(input_count));
  }
  return CLEAVE_OK;
}

static cleave_status_t find_sizes(const cleave_graph_t *graph, const cleave_input_request_t *request,
                                  cleave_inputs_t *inputs, cleave_error_t *error) {
  cleave_size_request_t sizes = {.shapes = request->shapes,
                                 .tensors = inputs->tensors,
                                 .document = request->document,
                                 .may_be_added = request->may_be_added,
                                 .known = request->known};
  return cleave_sizes_find(graph, &sizes, &inputs->sizes, error);
}

/* Draws what is missing, and makes the views. */
static cleave_status_t finish_inputs(const cleave_graph_t *graph, const cleave_input_request_t *request,
                                     cleave_inputs_t *inputs, cleave_error_t *error) {
  CLEAVE_TRY(find_sizes(graph, request, inputs, error));
  for (uint32_t k = 0; k < inputs->count; k++) {
    if (inputs->tensors[k] == NULL) {
      CLEAVE_TRY(draw(graph, request->seed, k, inputs, error));
    }
    read_as(inputs->tensors[k], input_dtype(graph, k));
    inputs->views[k] = cleave_tensor_view(inputs->tensors[k]);
    inputs->pointers[k] = &inputs->views[k];
  }
  return cleave_text_check(&inputs->drawn, error);
}

cleave_status_t cleave_inputs_load(const cleave_model_t *model, const cleave_input_request_t *request,
                                   cleave_inputs_t *out_inputs, cleave_error_t *error) {
  const cleave_graph_t *graph = cleave_model_graph(model);
  CLEAVE_TRY(start_inputs(graph->inputs.count, out_inputs, error));
  CLEAVE_TRY(read_files(graph, request, out_inputs, error));
  if (request->folder != NULL) {
    CLEAVE_TRY(check_folder(request->folder, graph->inputs.count, error));
  }
  for (uint32_t k = 0; k < out_inputs->count; k++) {
    if (out_inputs->tensors[k] == NULL && request->folder != NULL) {
      CLEAVE_TRY(load_numbered(request->folder, "input", k, &out_inputs->tensors[k], error));
    }
  }
  return finish_inputs(graph, request, out_inputs, error);
}

cleave_status_t cleave_inputs_load_added(const cleave_plan_t *plan, const cleave_input_request_t *request,
                                         const cleave_inputs_t *inputs, cleave_inputs_t *out_inputs,
                                         cleave_error_t *error) {
  cleave_input_request_t all = *request;
  all.may_be_added = false;
  all.document = NULL;
  all.known = &inputs->sizes;
  CLEAVE_TRY(start_inputs(plan->graph->inputs.count, out_inputs, error));
  for (size_t k = 0; k < inputs->count && k < out_inputs->count; k++) {
    out_inputs->tensors[k] = cleave_tensor_retain(inputs->tensors[k]);
  }
  CLEAVE_TRY(read_files(plan->graph, &all, out_inputs, error));
  return finish_inputs(plan->graph, &all, out_inputs, error);
}
