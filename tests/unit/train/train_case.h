// SPDX-License-Identifier: Apache-2.0
/* Samples in a folder, and models as Lua text, for tests of training: any failure fails the test. */
#ifndef CLEAVE_TESTS_TRAIN_CASE_H
#define CLEAVE_TESTS_TRAIN_CASE_H

#include "cleave/train.h"
#include "tensor/npz.h"

/* A model script as text. */
cleave_model_t *train_case_model(const char *text);

/* A path in the build folder that is this process's alone; stays until the process ends. */
const char *train_case_path(const char *name);

/* Writes an array of numbers into an archive of one or two, as float32 or int64, and opens it. */
typedef struct train_case_array {
  const char *name;
  cleave_dtype_t dtype;
  int32_t rank;
  int64_t dims[4];
  const double *numbers; /* NULL: drawn */
  double low;            /* of drawn ones */
  double high;
} train_case_array_t;
void train_case_write(const char *path, const train_case_array_t *arrays, size_t count);
cleave_samples_t *train_case_samples(const char *name, const train_case_array_t *arrays, size_t count);

/* Runs steps, and writes their losses; the trainer. */
cleave_trainer_t *train_case_start(cleave_model_t *model, const cleave_samples_t *samples,
                                   const cleave_train_options_t *options);
void train_case_steps(cleave_trainer_t *trainer, int64_t count, double *losses);

/* Element `index` of a constant of the trained model. */
double train_case_constant(const cleave_trainer_t *trainer, const char *name, int64_t index);

#endif /* CLEAVE_TESTS_TRAIN_CASE_H */
