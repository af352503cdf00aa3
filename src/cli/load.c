// SPDX-License-Identifier: Apache-2.0
// Reading inputs. Every input ends up with a tensor, or there is an error that names it.
#include "cli/load.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "formats/onnx.h"
#include "runtime/model.h"
#include "runtime/view.h"
#include "tensor/npy.h"

/* ---- settings ---- */

cleave_status_t cleave_settings_read(const cleave_text_list_t *list, cleave_settings_t *out_settings,
                                     cleave_error_t *error) {
  *out_settings = (cleave_settings_t){0};
  out_settings->items = cleave_allocate_zeroed(list->count, sizeof *out_settings->items);
  out_settings->names = cleave_allocate_zeroed(list->count, sizeof *out_settings->names);
  if (out_settings->items == NULL || out_settings->names == NULL) {
    return cleave_error_out_of_memory(error);
  }
  for (size_t k = 0; k < list->count; k++) {
    const char *equals = strchr(list->items[k], '=');
    if (equals == NULL || equals == list->items[k]) {
      return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "--set: expected name=value, found '%s'",
                              list->items[k]);
    }
    out_settings->names[k] = cleave_copy_text(list->items[k], (size_t)(equals - list->items[k]));
    if (out_settings->names[k] == NULL) {
      return cleave_error_out_of_memory(error);
    }
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
  *settings = (cleave_settings_t){0};
}

/* ---- files ---- */

cleave_status_t cleave_tensor_load(const char *path, cleave_tensor_t **out_tensor, cleave_error_t *error) {
  *out_tensor = NULL;
  if (cleave_path_has_extension(path, ".npy")) {
    return cleave_npy_read(path, out_tensor, error);
  }
  if (cleave_path_has_extension(path, ".pb")) {
    return cleave_tensor_pb_read(path, out_tensor, error);
  }
  return cleave_error_set(error, CLEAVE_ERROR_UNSUPPORTED,
                          "%s: not a tensor by its name: expected .npy or .pb", path);
}

static cleave_status_t load_numbered(const char *folder, const char *kind, size_t index,
                                     cleave_tensor_t **out_tensor, cleave_error_t *error) {
  char path[4096];
  int length = snprintf(path, sizeof path, "%s/%s_%zu.pb", folder, kind, index);
  if (length < 0 || (size_t)length >= sizeof path) {
    return cleave_error_set(error, CLEAVE_ERROR_LIMIT, "%s: the path is too long", folder);
  }
  return cleave_tensor_pb_read(path, out_tensor, error);
}

cleave_status_t cleave_outputs_load(const char *folder, cleave_tensor_t **outputs, size_t count,
                                    cleave_error_t *error) {
  for (size_t k = 0; k < count; k++) {
    CLEAVE_TRY(load_numbered(folder, "output", k, &outputs[k], error));
  }
  return CLEAVE_OK;
}

/* ---- NAME=... ---- */

/* Splits "NAME=VALUE" at the first '=' whose left side is an input; positions come back by name. */
static cleave_status_t find_input(const cleave_model_t *model, const char *option, const char *text,
                                  uint32_t *out_index, const char **out_value, cleave_error_t *error) {
  char name[512];
  for (const char *equals = strchr(text, '='); equals != NULL; equals = strchr(equals + 1, '=')) {
    (void)snprintf(name, sizeof name, "%.*s", (int)(equals - text < 500 ? equals - text : 500), text);
    *out_index = cleave_model_find_input(model, name);
    *out_value = equals + 1;
    if (*out_index != CLEAVE_INDEX_NONE) {
      return CLEAVE_OK;
    }
  }
  const char *equals = strchr(text, '=');
  if (equals == NULL || equals == text) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "%s: expected NAME=VALUE, found '%s'",
                            option, text);
  }
  (void)snprintf(name, sizeof name, "%.*s", (int)(equals - text < 500 ? equals - text : 500), text);
  cleave_nearest_t nearest = {0};
  cleave_text_t names = {0};
  char hint[160];
  for (uint32_t k = 0; k < cleave_model_input_count(model); k++) {
    cleave_port_t port;
    CLEAVE_TRY(cleave_model_input(model, k, &port, error));
    cleave_nearest_offer(&nearest, name, port.name);
    cleave_text_format(&names, "%s%s", k == 0 ? "" : ", ", port.name);
  }
  cleave_status_t status = cleave_error_set(
      error, CLEAVE_ERROR_INVALID_ARGUMENT, "%s: the model has no input '%s'%s; its inputs are: %s", option,
      name, cleave_nearest_hint(&nearest, hint, sizeof hint), cleave_text_get(&names));
  cleave_text_deinit(&names);
  return status;
}

/* "1x3x224x224"; "" or "scalar" is rank 0. */
static cleave_status_t read_shape(const char *text, int32_t *out_rank, int64_t *dims, cleave_error_t *error) {
  *out_rank = 0;
  const char *at = text;
  bool is_valid = true;
  while (is_valid && *at != '\0' && strcmp(text, "scalar") != 0) {
    char *end = NULL;
    errno = 0;
    long long size = strtoll(at, &end, 10);
    is_valid = errno == 0 && end != at && size >= 0 && *out_rank < CLEAVE_MAX_RANK &&
               (*end == '\0' || ((*end == 'x' || *end == ',') && end[1] != '\0'));
    if (is_valid) {
      dims[(*out_rank)++] = size;
      at = *end == '\0' ? end : end + 1;
    }
  }
  return is_valid ? CLEAVE_OK
                  : cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                                     "--shape: expected sizes like 1x3x224x224, found '%s'", text);
}

/* ---- inputs ---- */

static cleave_status_t start_inputs(const cleave_model_t *model, cleave_inputs_t *inputs,
                                    cleave_error_t *error) {
  size_t count = cleave_model_input_count(model);
  *inputs = (cleave_inputs_t){0};
  inputs->tensors = cleave_allocate_zeroed(count, sizeof *inputs->tensors);
  inputs->views = cleave_allocate_zeroed(count, sizeof *inputs->views);
  inputs->pointers = cleave_allocate_zeroed(count, sizeof *inputs->pointers);
  inputs->dims = cleave_allocate_zeroed(count, sizeof *inputs->dims);
  if (inputs->tensors == NULL || inputs->views == NULL || inputs->pointers == NULL || inputs->dims == NULL) {
    return cleave_error_out_of_memory(error);
  }
  inputs->count = count;
  return CLEAVE_OK;
}

void cleave_inputs_deinit(cleave_inputs_t *inputs) {
  for (size_t k = 0; k < inputs->count; k++) {
    cleave_tensor_release(inputs->tensors[k]);
  }
  cleave_free(inputs->tensors);
  cleave_free(inputs->views);
  cleave_free(inputs->dims);
  cleave_free((void *)inputs->pointers);
  cleave_text_deinit(&inputs->drawn);
  *inputs = (cleave_inputs_t){0};
}

/* Dtype and shape of input `index` for lack of a file: what --shape says, else what the model says. The dims
 * go into `dims`. */
static cleave_status_t find_type(const cleave_model_t *model, const cleave_text_list_t *shapes,
                                 uint32_t index, int64_t *dims, cleave_tensor_view_t *out_type,
                                 bool *out_given, cleave_error_t *error) {
  cleave_port_t port;
  CLEAVE_TRY(cleave_model_input(model, index, &port, error));
  *out_type = port.tensor;
  *out_given = false;
  for (int32_t d = 0; d < port.tensor.rank; d++) {
    dims[d] = port.tensor.dims[d];
  }
  for (size_t k = 0; k < shapes->count; k++) {
    uint32_t named = 0;
    const char *value = NULL;
    CLEAVE_TRY(find_input(model, "--shape", shapes->items[k], &named, &value, error));
    if (named == index) {
      CLEAVE_TRY(read_shape(value, &out_type->rank, dims, error));
      *out_given = true;
    }
  }
  if (out_type->dtype == CLEAVE_DTYPE_UNKNOWN) {
    out_type->dtype = CLEAVE_DTYPE_F32;
  }
  out_type->dims = dims;
  return CLEAVE_OK;
}

/* The size that an input which is there already gives to an open dimension, or -1. */
static int64_t size_elsewhere(const cleave_model_t *model, const cleave_inputs_t *inputs, cleave_dim_t dim) {
  for (uint32_t k = 0; cleave_dim_is_symbolic(dim) && k < inputs->count; k++) {
    cleave_port_t port;
    if (inputs->tensors[k] == NULL || cleave_model_input(model, k, &port, NULL) != CLEAVE_OK) {
      continue;
    }
    for (int32_t d = 0; d < port.tensor.rank && d < inputs->tensors[k]->rank; d++) {
      if (port.tensor.dims[d] == dim) {
        return inputs->tensors[k]->dims[d];
      }
    }
  }
  return -1;
}

/* Sizes that nothing tells are 1, and said to be. */
static cleave_status_t close_sizes(const cleave_model_t *model, cleave_inputs_t *inputs, uint32_t index,
                                   const cleave_tensor_view_t *type, int64_t *dims, cleave_error_t *error) {
  cleave_port_t port;
  CLEAVE_TRY(cleave_model_input(model, index, &port, error));
  if (type->rank < 0) {
    return cleave_error_set(error, CLEAVE_ERROR_SHAPE,
                            "input '%s' has an unknown shape: give it with --shape %s=...", port.name,
                            port.name);
  }
  for (int32_t d = 0; d < type->rank; d++) {
    if (cleave_dim_is_known(dims[d])) {
      continue;
    }
    int64_t size = size_elsewhere(model, inputs, dims[d]);
    if (size < 0) {
      cleave_text_format(&inputs->drawn, "%s: dimension %d (", port.name, (int)d);
      cleave_dim_print(cleave_model_graph(model)->dims, dims[d], &inputs->drawn);
      cleave_text_format(&inputs->drawn, ") is open, taken as 1 (--shape %s=... sets it)\n", port.name);
      size = 1;
    }
    dims[d] = size;
  }
  return CLEAVE_OK;
}

static cleave_status_t draw(const cleave_model_t *model, const cleave_input_request_t *request,
                            uint32_t index, cleave_inputs_t *inputs, cleave_error_t *error) {
  int64_t dims[CLEAVE_MAX_RANK] = {0};
  cleave_tensor_view_t type;
  bool is_given = false;
  cleave_port_t port;
  CLEAVE_TRY(find_type(model, request->shapes, index, dims, &type, &is_given, error));
  CLEAVE_TRY(cleave_model_input(model, index, &port, error));
  CLEAVE_TRY(close_sizes(model, inputs, index, &type, dims, error));
  if (type.dtype == CLEAVE_DTYPE_STRING) {
    return cleave_error_set(error, CLEAVE_ERROR_UNSUPPORTED,
                            "input '%s' is of strings: give it with --input or --data", port.name);
  }
  CLEAVE_TRY(cleave_tensor_create(type.dtype, type.rank, type.dims, &inputs->tensors[index], error));
  uint64_t seed = request->seed + index;
  if (cleave_dtype_is_float(type.dtype)) {
    cleave_tensor_fill_normal(inputs->tensors[index], seed, 0.0, 1.0);
    cleave_text_format(&inputs->drawn, "%s: drawn from seed %" PRIu64 ", normal, mean 0, deviation 1\n",
                       port.name, seed);
  } else {
    /* Valid for token ids, segment ids and masks alike. */
    cleave_tensor_fill_uniform(inputs->tensors[index], seed, 0.0, 2.0);
    cleave_text_format(&inputs->drawn, "%s: drawn from seed %" PRIu64 ", %s, 0 or 1\n", port.name, seed,
                       cleave_dtype_name(type.dtype));
  }
  return CLEAVE_OK;
}

/* Draws the inputs that are not there: first those whose sizes are all known, since they may tell the
 * others'. */
static cleave_status_t draw_missing(const cleave_model_t *model, const cleave_input_request_t *request,
                                    cleave_inputs_t *inputs, cleave_error_t *error) {
  for (int pass = 0; pass < 2; pass++) {
    for (uint32_t k = 0; k < inputs->count; k++) {
      int64_t dims[CLEAVE_MAX_RANK];
      cleave_tensor_view_t type;
      bool is_given = false;
      CLEAVE_TRY(find_type(model, request->shapes, k, dims, &type, &is_given, error));
      if (inputs->tensors[k] == NULL && (pass == 1 || cleave_view_element_count(&type) >= 0)) {
        CLEAVE_TRY(draw(model, request, k, inputs, error));
      }
    }
  }
  return CLEAVE_OK;
}

/* ONNX's test data stores bfloat16 as uint16. */
static void read_as(cleave_tensor_t *tensor, cleave_dtype_t wanted) {
  if (wanted == CLEAVE_DTYPE_BF16 && tensor->dtype == CLEAVE_DTYPE_U16) {
    tensor->dtype = CLEAVE_DTYPE_BF16;
  }
}

cleave_status_t cleave_inputs_load(const cleave_model_t *model, const cleave_input_request_t *request,
                                   cleave_inputs_t *out_inputs, cleave_error_t *error) {
  CLEAVE_TRY(start_inputs(model, out_inputs, error));
  for (size_t k = 0; k < request->files->count; k++) {
    uint32_t index = 0;
    const char *path = NULL;
    CLEAVE_TRY(find_input(model, "--input", request->files->items[k], &index, &path, error));
    cleave_tensor_release(out_inputs->tensors[index]);
    out_inputs->tensors[index] = NULL;
    CLEAVE_TRY(cleave_tensor_load(path, &out_inputs->tensors[index], error));
  }
  for (uint32_t k = 0; k < out_inputs->count; k++) {
    if (out_inputs->tensors[k] == NULL && request->folder != NULL) {
      CLEAVE_TRY(load_numbered(request->folder, "input", k, &out_inputs->tensors[k], error));
    }
  }
  CLEAVE_TRY(draw_missing(model, request, out_inputs, error));
  for (uint32_t k = 0; k < out_inputs->count; k++) {
    cleave_port_t port;
    CLEAVE_TRY(cleave_model_input(model, k, &port, error));
    read_as(out_inputs->tensors[k], port.tensor.dtype);
    out_inputs->views[k] = cleave_tensor_view(out_inputs->tensors[k]);
    out_inputs->pointers[k] = &out_inputs->views[k];
  }
  return cleave_text_check(&out_inputs->drawn, error);
}

cleave_status_t cleave_inputs_describe(const cleave_model_t *model, const cleave_text_list_t *shapes,
                                       cleave_inputs_t *out_inputs, cleave_error_t *error) {
  CLEAVE_TRY(start_inputs(model, out_inputs, error));
  for (uint32_t k = 0; k < out_inputs->count; k++) {
    bool is_given = false;
    CLEAVE_TRY(find_type(model, shapes, k, out_inputs->dims[k], &out_inputs->views[k], &is_given, error));
    out_inputs->pointers[k] = is_given ? &out_inputs->views[k] : NULL;
  }
  return CLEAVE_OK;
}
