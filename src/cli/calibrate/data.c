// SPDX-License-Identifier: Apache-2.0
// Samples stay mapped, and a minibatch is brought together in buffers; a test folder is read when its turn
// comes.
#include "cli/calibrate/data.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/files/test_folders.h"

// ---- test folders ----

static bool has_tensors(const char *folder) {
  char path[4096];
  struct stat found;
  int length = snprintf(path, sizeof path, "%s/input_0.pb", folder);
  return length > 0 && (size_t)length < sizeof path && stat(path, &found) == 0;
}

/* The folders with input_N.pb that `path` is or has; none if it is something else. */
static cleave_status_t find_folders(cleave_calibration_data_t *data, const char *path,
                                    cleave_error_t *error) {
  struct stat found;
  if (stat(path, &found) != 0 || !S_ISDIR(found.st_mode)) {
    return CLEAVE_OK;
  }
  return has_tensors(path) ? cleave_paths_add(&data->folders, path, error)
                           : cleave_test_folders_sets(&data->folders, path, error);
}

static cleave_status_t read_folder(cleave_calibration_data_t *data, const char *folder,
                                   cleave_error_t *error) {
  static const cleave_text_list_t none;
  cleave_input_request_t request = {.files = &none, .shapes = &none, .folder = folder};
  cleave_inputs_deinit(&data->inputs);
  CLEAVE_TRY(cleave_inputs_load(data->model, &request, &data->inputs, error));
  if (data->inputs.drawn.length > 0) {
    return cleave_error_set_at(error, CLEAVE_ERROR_INVALID_ARGUMENT, folder, 0,
                               "expected input_N.pb for each of the %zu inputs of the model",
                               data->inputs.count);
  }
  memcpy(data->views, data->inputs.views, data->input_count * sizeof *data->views);
  return CLEAVE_OK;
}

// ---- samples ----

/* The number of samples that the model takes in a run, if it says so. */
static cleave_status_t find_batch(cleave_calibration_data_t *data, int64_t batch, cleave_error_t *error) {
  data->batch = batch;
  for (uint32_t k = 0; k < data->input_count; k++) {
    cleave_port_t port;
    CLEAVE_TRY(cleave_model_input(data->model, k, &port, error));
    if (port.tensor.rank > 0 && port.tensor.dims[0] > 0) {
      data->batch = port.tensor.dims[0];
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t open_samples(cleave_calibration_data_t *data, const char *path, int64_t batch,
                                    cleave_error_t *error) {
  CLEAVE_TRY(find_batch(data, batch, error));
  CLEAVE_TRY(cleave_samples_open(path, &data->samples, error));
  data->count = cleave_samples_count(data->samples);
  CLEAVE_TRY(cleave_train_feeds_init(&data->feeds, data->model, data->samples, NULL, data->batch, error));
  data->buffers = cleave_allocate_zeroed(data->input_count + 1, sizeof *data->buffers);
  data->rows = cleave_allocate((size_t)data->batch, sizeof *data->rows);
  if (data->buffers == NULL || data->rows == NULL) {
    return cleave_error_out_of_memory(error);
  }
  for (size_t k = 0; k < data->input_count; k++) {
    data->views[k] = data->feeds.items[k].type;
    data->buffers[k] = cleave_allocate_aligned(data->feeds.items[k].bytes + 1);
    if (data->buffers[k] == NULL) {
      return cleave_error_out_of_memory(error);
    }
    data->views[k].data = data->buffers[k];
  }
  return CLEAVE_OK;
}

static void read_samples(cleave_calibration_data_t *data) {
  for (int64_t k = 0; k < data->batch; k++) {
    data->rows[k] = data->next + k < data->count ? data->next + k : data->count - 1;
  }
  for (size_t k = 0; k < data->input_count; k++) {
    cleave_train_feed_fill(&data->feeds.items[k], data->rows, data->batch, data->buffers[k]);
  }
}

// ---- both ----

cleave_status_t cleave_calibration_data_open(cleave_calibration_data_t *data, const cleave_model_t *model,
                                             const char *path, int64_t batch, int64_t most,
                                             cleave_error_t *error) {
  *data = (cleave_calibration_data_t){.batch = 1, .input_count = cleave_model_input_count(model)};
  data->model = model;
  data->views = cleave_allocate_zeroed(data->input_count + 1, sizeof *data->views);
  if (data->views == NULL) {
    return cleave_error_out_of_memory(error);
  }
  CLEAVE_TRY(find_folders(data, path, error));
  if (data->folders.count > 0) {
    data->count = (int64_t)data->folders.count;
    CLEAVE_TRY(read_folder(data, data->folders.items[0], error));
  } else {
    CLEAVE_TRY(open_samples(data, path, batch, error));
  }
  data->count = most > 0 && most < data->count ? most : data->count;
  return CLEAVE_OK;
}

cleave_status_t cleave_calibration_data_next(cleave_calibration_data_t *data, bool *out_more,
                                             cleave_error_t *error) {
  *out_more = data->next < data->count;
  if (!*out_more) {
    return CLEAVE_OK;
  }
  if (data->samples != NULL) {
    read_samples(data);
  } else {
    CLEAVE_TRY(read_folder(data, data->folders.items[data->next], error));
  }
  data->next = data->next + data->batch < data->count ? data->next + data->batch : data->count;
  return CLEAVE_OK;
}

void cleave_calibration_data_deinit(cleave_calibration_data_t *data) {
  for (size_t k = 0; data->buffers != NULL && k < data->input_count; k++) {
    cleave_free(data->buffers[k]);
  }
  cleave_free((void *)data->buffers);
  cleave_free(data->rows);
  cleave_train_feeds_deinit(&data->feeds);
  cleave_samples_destroy(data->samples);
  cleave_inputs_deinit(&data->inputs);
  cleave_paths_deinit(&data->folders);
  cleave_free(data->views);
  *data = (cleave_calibration_data_t){0};
}
