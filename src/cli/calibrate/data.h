// SPDX-License-Identifier: Apache-2.0
/* Data that a model is calibrated on: samples as `cleave train` reads them, or the input_N.pb of ONNX's test
 * folders. */
#ifndef CLEAVE_CLI_CALIBRATE_DATA_H
#define CLEAVE_CLI_CALIBRATE_DATA_H

#include "cli/common/load.h"
#include "cli/files/paths.h"
#include "train/feed.h"

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

/* Opens `path`: a folder with NAME.npy for each input, a file.npz, a folder with input_N.pb, or one with
 * folders test_data_set_N. At most `most` samples (0: all). `batch` is for models whose first dimension is
 * open. The model must outlive the data, which must be deinitialised also when this fails. */
CLEAVE_MUST_USE cleave_status_t cleave_calibration_data_open(cleave_calibration_data_t *data,
                                                             const cleave_model_t *model, const char *path,
                                                             int64_t batch, int64_t most,
                                                             cleave_error_t *error);
/* Reads the next minibatch into `views`; *out_more is false, and nothing read, at the end. The last one is
 * filled up with its last sample. */
CLEAVE_MUST_USE cleave_status_t cleave_calibration_data_next(cleave_calibration_data_t *data, bool *out_more,
                                                             cleave_error_t *error);
void cleave_calibration_data_deinit(cleave_calibration_data_t *data);

#endif /* CLEAVE_CLI_CALIBRATE_DATA_H */
