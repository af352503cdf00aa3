// SPDX-License-Identifier: Apache-2.0
// Checkpoints. What identifies a run is an array of numbers under "run": a file of another run is refused
// with the name of the first number that differs. Nothing of the trainer changes before all of the file is
// checked.
#include <stdio.h>
#include <string.h>

#include "tensor/npz.h"
#include "train/trainer_internal.h"

enum { NAME_SIZE = 1000, HISTORY_COLUMNS = 3 };
static const char RUN[] = "run";
static const char HISTORY[] = "history";

static const char *entry_name(const cleave_train_carried_t *carried, char *buffer, size_t size) {
  static const char *const kinds[] = {"weight", "norm", "state0", "state1"};
  (void)snprintf(buffer, size, "%s/%.900s", kinds[carried->role], carried->name);
  return buffer;
}

// ---- writing ----

static cleave_status_t make_numbers(const cleave_trainer_t *trainer, cleave_tensor_t **out_run,
                                    cleave_tensor_t **out_history, cleave_error_t *error) {
  cleave_train_number_t numbers[CLEAVE_TRAIN_NUMBERS];
  const int64_t count = (int64_t)cleave_train_describe(&trainer->options, trainer->samples->count, numbers);
  const int64_t dims[] = {trainer->steps_done, HISTORY_COLUMNS};
  CLEAVE_TRY(cleave_tensor_create(CLEAVE_DTYPE_F64, 1, &count, out_run, error));
  CLEAVE_TRY(cleave_tensor_create(CLEAVE_DTYPE_F64, 2, dims, out_history, error));
  for (int64_t k = 0; k < count; k++) {
    ((double *)(*out_run)->data)[k] = numbers[k].value;
  }
  for (int64_t k = 0; k < trainer->steps_done; k++) {
    const cleave_train_record_t *record = &trainer->history.items[k];
    double *row = (double *)(*out_history)->data + k * HISTORY_COLUMNS;
    row[0] = record->loss;
    row[1] = record->norm;
    row[2] = record->rate;
  }
  return CLEAVE_OK;
}

static cleave_status_t write_items(const cleave_trainer_t *trainer, const char *path,
                                   const cleave_tensor_t *run, const cleave_tensor_t *history,
                                   cleave_error_t *error) {
  cleave_arena_t arena = {0};
  size_t count = 0;
  cleave_status_t status = CLEAVE_OK;
  cleave_npz_item_t *items = cleave_arena_allocate(&arena, trainer->carried.count + 2, sizeof *items);
  if (items == NULL) {
    CLEAVE_TRY_CLEANUP(cleave_error_out_of_memory(error));
  }
  items[count++] = (cleave_npz_item_t){RUN, run};
  items[count++] = (cleave_npz_item_t){HISTORY, history};
  for (size_t k = 0; k < trainer->carried.count; k++) {
    char name[NAME_SIZE];
    const cleave_train_carried_t *carried = &trainer->carried.items[k];
    (void)entry_name(carried, name, sizeof name);
    items[count].name = cleave_arena_copy_text(&arena, name, strlen(name));
    items[count].tensor = carried->buffers[trainer->now];
    if (items[count++].name == NULL) {
      CLEAVE_TRY_CLEANUP(cleave_error_out_of_memory(error));
    }
  }
  status = cleave_npz_write(path, items, count, error);
cleanup:
  cleave_arena_deinit(&arena);
  return status;
}

cleave_status_t cleave_trainer_save(const cleave_trainer_t *trainer, const char *path,
                                    cleave_error_t *error) {
  cleave_tensor_t *run = NULL;
  cleave_tensor_t *history = NULL;
  cleave_status_t status = make_numbers(trainer, &run, &history, error);
  if (status == CLEAVE_OK) {
    status = write_items(trainer, path, run, history, error);
  }
  cleave_tensor_release(run);
  cleave_tensor_release(history);
  return status;
}

// ---- reading ----

static cleave_status_t check_run(const cleave_trainer_t *trainer, const cleave_npz_t *npz, const char *path,
                                 cleave_error_t *error) {
  cleave_train_number_t numbers[CLEAVE_TRAIN_NUMBERS];
  const cleave_tensor_t *run = cleave_npz_find(npz, RUN);
  int64_t count = (int64_t)cleave_train_describe(&trainer->options, trainer->samples->count, numbers);
  if (run == NULL || run->dtype != CLEAVE_DTYPE_F64 || run->rank != 1 || run->count != count) {
    return cleave_error_set_at(error, CLEAVE_ERROR_FORMAT, path, 0,
                               "expected a checkpoint of training, found another archive");
  }
  for (int64_t k = 0; k < count; k++) {
    double value = cleave_tensor_get_float(run, k);
    if (value != numbers[k].value) {
      return cleave_error_set_at(error, CLEAVE_ERROR_INVALID_ARGUMENT, path, 0,
                                 "the checkpoint is of another run: its %s is %g, expected %g",
                                 numbers[k].name, value, numbers[k].value);
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t check_history(const cleave_trainer_t *trainer, const cleave_npz_t *npz,
                                     const char *path, cleave_error_t *error) {
  const cleave_tensor_t *history = cleave_npz_find(npz, HISTORY);
  if (history == NULL || history->dtype != CLEAVE_DTYPE_F64 || history->rank != 2 ||
      history->dims[1] != HISTORY_COLUMNS) {
    return cleave_error_set_at(error, CLEAVE_ERROR_FORMAT, path, 0,
                               "array 'history': expected float64[steps, %d]", HISTORY_COLUMNS);
  }
  if (history->dims[0] > cleave_trainer_step_count(trainer)) {
    return cleave_error_set_at(error, CLEAVE_ERROR_INVALID_ARGUMENT, path, 0,
                               "the checkpoint has %lld step%s, and this run %lld in all",
                               (long long)history->dims[0], CLEAVE_PLURAL(history->dims[0]),
                               (long long)cleave_trainer_step_count(trainer));
  }
  return CLEAVE_OK;
}

static cleave_status_t check_tensors(const cleave_trainer_t *trainer, const cleave_npz_t *npz,
                                     const char *path, cleave_error_t *error) {
  for (size_t k = 0; k < trainer->carried.count; k++) {
    char name[NAME_SIZE];
    const cleave_train_carried_t *carried = &trainer->carried.items[k];
    const cleave_tensor_t *expected = carried->buffers[0];
    const cleave_tensor_t *found = cleave_npz_find(npz, entry_name(carried, name, sizeof name));
    if (found == NULL || found->dtype != expected->dtype || found->rank != expected->rank ||
        (found->rank > 0 &&
         memcmp(found->dims, expected->dims, (size_t)found->rank * sizeof *found->dims) != 0)) {
      return cleave_error_set_at(error, CLEAVE_ERROR_INVALID_ARGUMENT, path, 0,
                                 "the checkpoint is of another model: array '%.200s' is %s", name,
                                 found == NULL ? "missing" : "of another dtype or shape");
    }
  }
  if (npz->entries.count != trainer->carried.count + 2) {
    return cleave_error_set_at(error, CLEAVE_ERROR_INVALID_ARGUMENT, path, 0,
                               "the checkpoint is of another model: it has %zu array%s, expected %zu",
                               npz->entries.count, CLEAVE_PLURAL(npz->entries.count),
                               trainer->carried.count + 2);
  }
  return CLEAVE_OK;
}

static cleave_status_t take_over(cleave_trainer_t *trainer, const cleave_npz_t *npz, cleave_error_t *error) {
  const cleave_tensor_t *history = cleave_npz_find(npz, HISTORY);
  size_t steps = (size_t)history->dims[0];
  size_t known = trainer->history.count;
  CLEAVE_TRY(cleave_array_reserve(&trainer->history, steps > known ? steps - known : 0, error));
  for (size_t k = 0; k < steps; k++) {
    int64_t first = (int64_t)k * HISTORY_COLUMNS;
    trainer->history.items[k] = (cleave_train_record_t){.loss = cleave_tensor_get_float(history, first),
                                                        .norm = cleave_tensor_get_float(history, first + 1),
                                                        .rate = cleave_tensor_get_float(history, first + 2)};
  }
  trainer->history.count = steps;
  trainer->steps_done = (int64_t)steps;
  cleave_train_replay_scaling(trainer);
  trainer->now = 0;
  for (size_t k = 0; k < trainer->carried.count; k++) {
    char name[NAME_SIZE];
    const cleave_train_carried_t *carried = &trainer->carried.items[k];
    const cleave_tensor_t *found = cleave_npz_find(npz, entry_name(carried, name, sizeof name));
    if (found->bytes > 0) {
      memcpy(carried->buffers[0]->data, found->data, found->bytes);
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t resume(cleave_trainer_t *trainer, const char *path, cleave_error_t *error) {
  cleave_npz_t npz = {0};
  cleave_status_t status = cleave_npz_read(path, true, &npz, error);
  if (status == CLEAVE_OK) {
    status = check_run(trainer, &npz, path, error);
  }
  if (status == CLEAVE_OK) {
    status = check_history(trainer, &npz, path, error);
  }
  if (status == CLEAVE_OK) {
    status = check_tensors(trainer, &npz, path, error);
  }
  if (status == CLEAVE_OK) {
    status = take_over(trainer, &npz, error);
  }
  cleave_npz_deinit(&npz);
  return status;
}

cleave_status_t cleave_trainer_resume(cleave_trainer_t *trainer, const char *path, cleave_error_t *error) {
  cleave_status_t status = trainer->rank == 0 ? resume(trainer, path, error) : CLEAVE_OK;
  return trainer->options.communicator == NULL ? status : cleave_train_share_state(trainer, status, error);
}
