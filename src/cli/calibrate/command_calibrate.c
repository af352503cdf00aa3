// SPDX-License-Identifier: Apache-2.0
// cleave calibrate: between which numbers the values of a model lie on given data, for products of 8-bit
// integers.
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/common/command.h"
#include "cli/common/common.h"
#include "cli/common/job.h"
#include "cli/common/load.h"
#include "cli/common/output.h"
#include "cli/tests/paths.h"
#include "cli/tests/test_folders.h"
#include "formats/ranges.h"
#include "graph/clone.h"
#include "runtime/model/model.h"
#include "system/file.h"
#include "tools/calibrate/calibrate.h"
#include "train/feed.h"

/* ---- data ---- */

/* Samples stay mapped, and a minibatch is brought together in buffers; a test folder is read when its turn
 * comes. */
/* All zero is empty. */
typedef struct cleave_calibration_data {
  int64_t count; /* of samples */
  int64_t batch; /* samples of a run */
  size_t input_count;
  cleave_tensor_view_t *views; /* the inputs of the run that was read last; their types from the beginning */
  int64_t next;                /* sample */
  cleave_samples_t *samples;
  cleave_train_feeds_t feeds;
  void **buffers; /* by feed */
  int64_t *rows;
  const cleave_model_t *model;
  cleave_paths_t folders; /* with input_N.pb, in place of samples */
  cleave_inputs_t inputs;
} cleave_calibration_data_t;

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
                               "expected input_N.pb for each of the %zu input%s of the model",
                               data->inputs.count, CLEAVE_PLURAL(data->inputs.count));
  }
  memcpy(data->views, data->inputs.views, data->input_count * sizeof *data->views);
  return CLEAVE_OK;
}

// ---- samples ----

/* The number of samples that the model takes in a run, if it says so. */
static cleave_status_t find_batch(cleave_calibration_data_t *data, int64_t batch, cleave_error_t *error) {
  data->batch = batch;
  for (uint32_t k = 0; k < data->input_count; k++) {
    cleave_port_t port = {.size = sizeof port};
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

/* Opens `path`: a folder with NAME.npy for each input, a file.npz, a folder with input_N.pb, or one with
 * folders test_data_set_N. At most `most` samples (0: all). `batch` is for models whose first dimension is
 * open. The model must outlive the data, which must be deinitialised also when this fails. */
static cleave_status_t calibration_data_open(cleave_calibration_data_t *data, const cleave_model_t *model,
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

/* Reads the next minibatch into `views`; *out_more is false, and nothing read, at the end. The last one is
 * filled up with its last sample. */
static cleave_status_t calibration_data_next(cleave_calibration_data_t *data, bool *out_more,
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

static void calibration_data_deinit(cleave_calibration_data_t *data) {
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

typedef struct calibrate {
  cleave_job_options_t options;
  cleave_job_t job;
  cleave_calibration_data_t data;
  cleave_calibration_t *calibration;
  cleave_calibration_method_t kind;
  const char *method;
  const char *output;
  double percentile;
  int64_t samples;
  int64_t batch;
  bool json;
  char description[48]; /* of the method */
  uint32_t ranges;
  uint64_t skipped;
  char skipped_first[128]; /* name of a value */
} calibrate_t;

static bool find_method(calibrate_t *calibrate) {
  static const char *const names[] = {[CLEAVE_CALIBRATION_MINMAX] = "minmax",
                                      [CLEAVE_CALIBRATION_PERCENTILE] = "percentile",
                                      [CLEAVE_CALIBRATION_ENTROPY] = "entropy"};
  for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
    if (strcmp(calibrate->method, names[k]) == 0) {
      calibrate->kind = (cleave_calibration_method_t)k;
      if (calibrate->kind == CLEAVE_CALIBRATION_PERCENTILE) {
        (void)snprintf(calibrate->description, sizeof calibrate->description, "percentile %g",
                       calibrate->percentile);
      } else {
        (void)snprintf(calibrate->description, sizeof calibrate->description, "%s", names[k]);
      }
      return true;
    }
  }
  return false;
}

static cleave_status_t run_all(calibrate_t *calibrate, cleave_error_t *error) {
  bool more = true;
  while (more) {
    cleave_output_progress("sample %lld of %lld", (long long)calibrate->data.next + 1,
                           (long long)calibrate->data.count);
    CLEAVE_TRY(calibration_data_next(&calibrate->data, &more, error));
    if (more) {
      CLEAVE_TRY(cleave_calibration_run(calibrate->calibration, calibrate->data.views, error));
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t write(calibrate_t *calibrate, cleave_error_t *error) {
  const cleave_graph_t *graph = cleave_model_graph(calibrate->job.model);
  const cleave_ranges_source_t source = {.method = calibrate->description,
                                         .samples = (uint64_t)calibrate->data.count};
  cleave_text_t text = {0};
  cleave_graph_t *copy = NULL;
  cleave_value_t first = CLEAVE_VALUE_NONE;
  cleave_status_t status = cleave_graph_copy(graph, &copy, error);
  if (status == CLEAVE_OK) {
    calibrate->ranges = cleave_calibration_set(calibrate->calibration, copy);
    status = cleave_ranges_print(copy, &source, &text, error);
  }
  CLEAVE_THEN(status, cleave_file_write(calibrate->output, cleave_text_get(&text), text.length, error));
  calibrate->skipped = cleave_calibration_skipped(calibrate->calibration, &first);
  if (cleave_value_exists(first)) {
    (void)snprintf(calibrate->skipped_first, sizeof calibrate->skipped_first, "%s",
                   cleave_value_name(graph, first));
  }
  cleave_text_deinit(&text);
  cleave_graph_destroy(copy);
  return status;
}

static cleave_status_t work(calibrate_t *calibrate, cleave_error_t *error) {
  int64_t threads = calibrate->options.threads;
  cleave_session_options_t session = cleave_common_session();
  session.threads = (int32_t)(threads > 1024 ? 1024 : threads);
  const cleave_calibration_options_t options = {.method = calibrate->kind,
                                                .percentile = calibrate->percentile,
                                                .backend = calibrate->options.backend,
                                                .session = &session};
  CLEAVE_TRY(cleave_job_load(&calibrate->job, &calibrate->options, error));
  CLEAVE_TRY(cleave_job_check_settings(&calibrate->job, error));
  const cleave_model_t *model = calibrate->job.model;
  CLEAVE_TRY(calibration_data_open(&calibrate->data, model, calibrate->options.data, calibrate->batch,
                                   calibrate->samples, error));
  CLEAVE_TRY(cleave_calibration_create(cleave_model_graph(model), calibrate->data.views,
                                       calibrate->data.input_count, &options, &calibrate->calibration,
                                       error));
  cleave_status_t status = run_all(calibrate, error);
  cleave_output_progress_end();
  return status == CLEAVE_OK ? write(calibrate, error) : status;
}

static int report(const calibrate_t *calibrate) {
  if (calibrate->json) {
    return cleave_output_json(json_pack(
        "{s:s, s:s, s:s, s:I, s:I, s:I}", "model", calibrate->options.model, "output", calibrate->output,
        "method", calibrate->description, "samples", (json_int_t)calibrate->data.count, "values",
        (json_int_t)calibrate->ranges, "skipped", (json_int_t)calibrate->skipped));
  }
  cleave_print("%u value%s, %s of %lld sample%s: %s\n", (unsigned)calibrate->ranges,
               CLEAVE_PLURAL(calibrate->ranges), calibrate->description, (long long)calibrate->data.count,
               CLEAVE_PLURAL(calibrate->data.count), calibrate->output);
  if (calibrate->skipped > 0) {
    cleave_print("%llu NaN and infinities left out, first of '%s'\n", (unsigned long long)calibrate->skipped,
                 calibrate->skipped_first);
  }
  return CLEAVE_EXIT_OK;
}

/* Prints what is wrong with the options; returns the exit status. */
static int check_options(calibrate_t *calibrate) {
  if (calibrate->options.data == NULL || calibrate->output == NULL) {
    return cleave_arguments_fail("calibrate", "expected --data DIR and -o FILE");
  }
  if (!(calibrate->percentile > 0.0 && calibrate->percentile <= 100.0)) {
    return cleave_arguments_fail("calibrate",
                                 "option '--percentile': expected a number above 0, up to 100, found %g",
                                 calibrate->percentile);
  }
  if (calibrate->batch < 1) {
    return cleave_arguments_fail("calibrate", "option '--batch': expected 1 or more");
  }
  if (!find_method(calibrate)) {
    return cleave_arguments_fail("calibrate",
                                 "option '--method': expected minmax, percentile or entropy, found '%s'",
                                 calibrate->method);
  }
  return CLEAVE_EXIT_OK;
}

/* Long: one table of options. */
static int run(cleave_arguments_t *arguments) {
  calibrate_t calibrate = {.method = "minmax", .percentile = 99.99, .batch = 1};
  cleave_job_options_t *job = &calibrate.options;
  const cleave_option_t options[] = {
      CLEAVE_TEXT(&job->data, "data", "DIR",
                  "what the model runs on: a folder with NAME.npy for each input NAME, or a file.npz, whose "
                  "first dimension counts samples; or ONNX test data, input_N.pb"),
      {"output", 'o', CLEAVE_OPTION_TEXT, "FILE", "where the ranges go, as JSON", &calibrate.output},
      CLEAVE_TEXT(&calibrate.method, "method", "NAME",
                  "minmax: all numbers; percentile: without the outermost; entropy: where 8 bits lose the "
                  "least information (default: minmax)"),
      CLEAVE_NUMBER(
          &calibrate.percentile, "percentile", "P",
          "percent of the numbers of a value that its range holds, by --method percentile (default: 99.99)"),
      CLEAVE_INT(&calibrate.samples, "samples", "N", "the first N samples (default: all)"),
      CLEAVE_INT(&calibrate.batch, "batch", "N",
                 "samples of a run, if the model leaves their number open (default: 1)"),
      CLEAVE_TEXT(&job->backend, "backend", "NAME", "who runs what it can of the model (default: cpu)"),
      CLEAVE_LIST(&job->settings, "set", "NAME=VALUE", "option of a model script"),
      CLEAVE_INT(&job->threads, "threads", "N", "threads (default: one per usable processor)"),
      CLEAVE_FLAG(&calibrate.json, "json", "print the result as JSON"),
  };
  int status = CLEAVE_EXIT_OK;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  if (cleave_arguments_parse(arguments, CLEAVE_OPTIONS(options), &status)) {
    job->model = arguments->found.items[0];
    status = check_options(&calibrate);
    if (status == CLEAVE_EXIT_OK) {
      status = work(&calibrate, &error) == CLEAVE_OK ? report(&calibrate) : cleave_output_error(&error);
    }
  }
  cleave_calibration_destroy(calibrate.calibration);
  calibration_data_deinit(&calibrate.data);
  cleave_job_deinit(&calibrate.job);
  return status;
}

CLEAVE_COMMAND_DEFINE(
    calibrate, 36, "MODEL", run, "find between which numbers the values of a model lie, for 8-bit integers",
    "Runs a model in float32 on data, and writes between which numbers each of its values lies,\n"
    "for rules that compute with 8-bit integers (--ranges FILE of other commands).",
    .makes_sessions = true, .min_operands = 1)
