// SPDX-License-Identifier: Apache-2.0
#include "train_case.h"

#include <unistd.h>

#include "unit.h"

enum { MAX_ARRAYS = 4 };

const char *train_case_path(const char *name) {
  static char paths[16][512];
  static int next;
  char *path = paths[next++ % 16];
  (void)snprintf(path, sizeof paths[0], CLEAVE_BINARY_DIR "/train_%ld_%s", (long)getpid(), name);
  return path;
}

cleave_model_t *train_case_model(const char *text) {
  const char *path = train_case_path("model.lua");
  cleave_model_t *model = NULL;
  FILE *file = fopen(path, "w");
  ck_assert_ptr_nonnull(file);
  ck_assert_int_ge(fputs(text, file), 0);
  ck_assert_int_eq(fclose(file), 0);
  unit_ok(cleave_model_load(NULL, path, NULL, &model, e));
  ck_assert_int_eq(remove(path), 0);
  return model;
}

void train_case_write(const char *path, const train_case_array_t *arrays, size_t count) {
  cleave_npz_item_t items[MAX_ARRAYS];
  cleave_tensor_t *tensors[MAX_ARRAYS] = {NULL};
  ck_assert_uint_le(count, MAX_ARRAYS);
  for (size_t k = 0; k < count; k++) {
    unit_ok(cleave_tensor_create(arrays[k].dtype, arrays[k].rank, arrays[k].dims, &tensors[k], e));
    if (arrays[k].numbers == NULL) {
      cleave_tensor_fill_uniform(tensors[k], 7 + k, arrays[k].low, arrays[k].high);
    }
    for (int64_t n = 0; arrays[k].numbers != NULL && n < tensors[k]->count; n++) {
      cleave_tensor_set_float(tensors[k], n, arrays[k].numbers[n]);
    }
    items[k] = (cleave_npz_item_t){arrays[k].name, tensors[k]};
  }
  unit_ok(cleave_npz_write(path, items, count, e));
  for (size_t k = 0; k < count; k++) {
    cleave_tensor_release(tensors[k]);
  }
}

cleave_samples_t *train_case_samples(const char *name, const train_case_array_t *arrays, size_t count) {
  const char *path = train_case_path(name);
  cleave_samples_t *samples = NULL;
  train_case_write(path, arrays, count);
  unit_ok(cleave_samples_open(path, &samples, e));
  ck_assert_int_eq(remove(path), 0);
  return samples;
}

cleave_trainer_t *train_case_start(cleave_model_t *model, const cleave_samples_t *samples,
                                   const cleave_train_options_t *options) {
  cleave_trainer_t *trainer = NULL;
  unit_ok(cleave_trainer_create(model, samples, options, &trainer, e));
  return trainer;
}

void train_case_steps(cleave_trainer_t *trainer, int64_t count, double *losses) {
  for (int64_t k = 0; k < count; k++) {
    cleave_train_step_t step = {.size = sizeof step};
    unit_ok(cleave_trainer_step(trainer, &step, e));
    losses[k] = step.loss;
  }
}

double train_case_constant(const cleave_trainer_t *trainer, const char *name, int64_t index) {
  cleave_model_t *model = NULL;
  double found = 0.0;
  bool is_found = false;
  unit_ok(cleave_trainer_model(trainer, &model, e));
  for (uint32_t k = 0; k < cleave_model_constant_count(model); k++) {
    cleave_port_t port = {.size = sizeof port};
    unit_ok(cleave_model_constant(model, k, &port, e));
    if (strcmp(port.name, name) == 0) {
      is_found = true;
      found = port.tensor.dtype == CLEAVE_DTYPE_F64 ? ((const double *)port.tensor.data)[index]
                                                    : (double)((const float *)port.tensor.data)[index];
    }
  }
  cleave_model_release(model);
  ck_assert_msg(is_found, "no constant '%s'", name);
  return found;
}
