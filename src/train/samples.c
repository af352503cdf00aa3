// SPDX-License-Identifier: Apache-2.0
// Samples: arrays of a folder or an archive. Files stay mapped; their content is looked at when a minibatch
// needs it.
#include "train/samples.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_FILES = 4096, MAX_PATH = 4096 };

// ---- files ----

static int is_array(const struct dirent *entry) {
  return entry->d_name[0] != '.' && cleave_path_has_extension(entry->d_name, ".npy");
}

static cleave_status_t add_file(cleave_samples_t *samples, const char *folder, const char *file,
                                cleave_error_t *error) {
  char path[MAX_PATH];
  cleave_tensor_t *tensor = NULL;
  if (snprintf(path, sizeof path, "%s/%s", folder, file) >= (int)sizeof path) {
    return cleave_error_set(error, CLEAVE_ERROR_IO, "%.100s: its path is too long", folder);
  }
  CLEAVE_TRY(cleave_array_reserve(&samples->arrays.entries, 1, error));
  CLEAVE_TRY(cleave_npy_read(path, &tensor, error));
  char *name = cleave_copy_text(file, strlen(file) - strlen(".npy"));
  if (name == NULL) {
    cleave_tensor_release(tensor);
    return cleave_error_out_of_memory(error);
  }
  cleave_npz_entry_t entry = {.name = name, .tensor = tensor};
  cleave_array_push_reserved(&samples->arrays.entries, entry);
  return CLEAVE_OK;
}

static cleave_status_t read_folder(cleave_samples_t *samples, const char *path, cleave_error_t *error) {
  struct dirent **entries = NULL;
  cleave_status_t status = CLEAVE_OK;
  int count = scandir(path, &entries, is_array, alphasort);
  if (count < 0) {
    return cleave_error_set_at(error, CLEAVE_ERROR_IO, path, 0, "the folder cannot be read");
  }
  if (count > MAX_FILES) {
    status = cleave_error_set_at(error, CLEAVE_ERROR_LIMIT, path, 0, "more than %d arrays", MAX_FILES);
  }
  for (int k = 0; k < count; k++) {
    if (status == CLEAVE_OK) {
      status = add_file(samples, path, entries[k]->d_name, error);
    }
    free(entries[k]);
  }
  free((void *)entries);
  return status;
}

static cleave_status_t read_arrays(cleave_samples_t *samples, const char *path, cleave_error_t *error) {
  struct stat info;
  if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
    return read_folder(samples, path, error);
  }
  if (!cleave_path_has_extension(path, ".npz")) {
    return cleave_error_set_at(error, CLEAVE_ERROR_IO, path, 0,
                               "expected a folder with .npy files, or an .npz file");
  }
  return cleave_npz_read(path, false, &samples->arrays, error);
}

// ---- what belongs together ----

static cleave_status_t check(cleave_samples_t *samples, cleave_error_t *error) {
  if (samples->arrays.entries.count == 0) {
    return cleave_error_set_at(error, CLEAVE_ERROR_SHAPE, samples->path, 0,
                               "expected arrays of samples, found no .npy file");
  }
  const cleave_npz_entry_t *first = &samples->arrays.entries.items[0];
  for (size_t k = 0; k < samples->arrays.entries.count; k++) {
    const cleave_npz_entry_t *entry = &samples->arrays.entries.items[k];
    if (entry->tensor->rank < 1 || entry->tensor->dims[0] < 1) {
      return cleave_error_set_at(error, CLEAVE_ERROR_SHAPE, samples->path, 0,
                                 "array '%.100s' has no samples: expected one or more along its first "
                                 "dimension",
                                 entry->name);
    }
    if (entry->tensor->dims[0] != first->tensor->dims[0]) {
      return cleave_error_set_at(error, CLEAVE_ERROR_SHAPE, samples->path, 0,
                                 "array '%.100s' has %lld sample%s, and array '%.100s' has %lld", first->name,
                                 (long long)first->tensor->dims[0], CLEAVE_PLURAL(first->tensor->dims[0]),
                                 entry->name, (long long)entry->tensor->dims[0]);
    }
  }
  samples->count = first->tensor->dims[0];
  return CLEAVE_OK;
}

static cleave_status_t create(const char *path, cleave_samples_t **out_samples, cleave_error_t *error) {
  cleave_samples_t *samples = cleave_allocate_zeroed(1, sizeof *samples);
  *out_samples = samples;
  if (samples != NULL) {
    samples->path = cleave_copy_text(path, strlen(path));
  }
  return samples == NULL || samples->path == NULL ? cleave_error_out_of_memory(error) : CLEAVE_OK;
}

cleave_status_t cleave_samples_open(const char *path, cleave_samples_t **out_samples, cleave_error_t *error) {
  cleave_status_t status = create(path, out_samples, error);
  if (status == CLEAVE_OK) {
    status = read_arrays(*out_samples, path, error);
  }
  if (status == CLEAVE_OK) {
    status = check(*out_samples, error);
  }
  if (status != CLEAVE_OK) {
    cleave_samples_destroy(*out_samples);
    *out_samples = NULL;
  }
  return status;
}

static cleave_status_t share_arrays(const cleave_samples_t *samples, cleave_samples_t *slice,
                                    cleave_error_t *error) {
  for (size_t k = 0; k < samples->arrays.entries.count; k++) {
    const cleave_npz_entry_t *entry = &samples->arrays.entries.items[k];
    CLEAVE_TRY(cleave_array_reserve(&slice->arrays.entries, 1, error));
    cleave_npz_entry_t made = {.name = cleave_copy_text(entry->name, strlen(entry->name))};
    CLEAVE_TRY_MEMORY(made.name, error);
    made.tensor = cleave_tensor_retain(entry->tensor);
    cleave_array_push_reserved(&slice->arrays.entries, made);
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_samples_slice(const cleave_samples_t *samples, int64_t first, int64_t count,
                                     cleave_samples_t **out_samples, cleave_error_t *error) {
  *out_samples = NULL;
  if (first < 0 || count < 1 || count > samples->count || first > samples->count - count) {
    return cleave_error_set_at(error, CLEAVE_ERROR_INVALID_ARGUMENT, samples->path, 0,
                               "%lld sample%s from %lld on, out of %lld", (long long)count,
                               CLEAVE_PLURAL(count), (long long)first, (long long)samples->count);
  }
  cleave_status_t status = create(samples->path, out_samples, error);
  if (status == CLEAVE_OK) {
    (*out_samples)->first = samples->first + first;
    (*out_samples)->count = count;
    status = share_arrays(samples, *out_samples, error);
  }
  if (status != CLEAVE_OK) {
    cleave_samples_destroy(*out_samples);
    *out_samples = NULL;
  }
  return status;
}

void cleave_samples_destroy(cleave_samples_t *samples) {
  if (samples != NULL) {
    cleave_npz_deinit(&samples->arrays);
    cleave_free(samples->path);
    cleave_free(samples);
  }
}

int64_t cleave_samples_count(const cleave_samples_t *samples) {
  return samples->count;
}

const cleave_tensor_t *cleave_samples_find(const cleave_samples_t *samples, const char *name) {
  return cleave_npz_find(&samples->arrays, name);
}

void cleave_samples_print(const cleave_samples_t *samples, cleave_text_t *text) {
  for (size_t k = 0; k < samples->arrays.entries.count; k++) {
    const cleave_npz_entry_t *entry = &samples->arrays.entries.items[k];
    cleave_text_format(text, "%s'%.100s' %s", k == 0 ? "" : ", ", entry->name,
                       cleave_dtype_name(entry->tensor->dtype));
    cleave_shape_print(NULL, entry->tensor->rank, entry->tensor->dims, text);
  }
}
