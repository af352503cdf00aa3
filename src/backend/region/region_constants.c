// SPDX-License-Identifier: Apache-2.0
// The constants of a region that is being read: in the text, in files beside it, or left out; dense, or the
// elements of a sparse one with their places.
#include <string.h>

#include "backend/region/region_file.h"
#include "backend/region/view.h"
#include "tensor/npy.h"

cleave_status_t cleave_region_reader_keep_take(cleave_region_reader_t *self, cleave_tensor_t *tensor) {
  CLEAVE_TRY_OR(cleave_array_reserve(&self->region->others, 1, self->base.error),
                cleave_tensor_release(tensor));
  cleave_array_push_reserved(&self->region->others, tensor);
  return CLEAVE_OK;
}

static cleave_status_t get_part(cleave_region_reader_t *self, const json_t *object, const char *key,
                                cleave_tensor_t **out_tensor) {
  static const char *const keys[] = {"dtype", "shape", "data", NULL};
  json_t *part = NULL;
  CLEAVE_TRY(cleave_reader_get(&self->base, object, key, JSON_OBJECT, "an object", &part));
  size_t before = cleave_reader_enter(&self->base, key, CLEAVE_INDEX_NONE);
  CLEAVE_TRY(cleave_reader_check_keys(&self->base, part, keys));
  CLEAVE_TRY(cleave_reader_read_tensor(&self->base, part, out_tensor));
  CLEAVE_TRY(cleave_region_reader_keep_take(self, *out_tensor));
  cleave_reader_leave(&self->base, before);
  return CLEAVE_OK;
}

static bool is_list(const cleave_tensor_t *tensor, int64_t count) {
  return tensor->dtype == CLEAVE_DTYPE_I64 && tensor->rank == 1 && tensor->count == count;
}

/* Row after row, or all of them, ascending and in range; offsets from 0 to all, never back. */
static bool are_places(const cleave_tensor_view_t *tensor, const cleave_sparse_view_t *sparse) {
  bool is_csr = tensor->storage == CLEAVE_STORAGE_CSR;
  int64_t rows = is_csr ? tensor->dims[0] : 1;
  bool fits = !is_csr || (sparse->offsets[0] == 0 && sparse->offsets[rows] == sparse->stored);
  for (int64_t r = 0; is_csr && fits && r < rows; r++) {
    fits = sparse->offsets[r] <= sparse->offsets[r + 1];
  }
  for (int64_t r = 0; fits && r < rows; r++) {
    int64_t last = is_csr ? sparse->offsets[r + 1] : sparse->stored;
    int64_t before = -1;
    for (int64_t k = is_csr ? sparse->offsets[r] : 0; fits && k < last; k++) {
      fits = sparse->indices[k] > before && sparse->indices[k] < tensor->dims[is_csr ? 1 : 0];
      before = sparse->indices[k];
    }
  }
  return fits;
}

static cleave_status_t read_sparse(cleave_region_reader_t *self, const json_t *object,
                                   cleave_tensor_view_t *tensor) {
  static const char *const keys[] = {"elements", "indices", "offsets", NULL};
  cleave_json_reader_t *reader = &self->base;
  bool is_csr = tensor->storage == CLEAVE_STORAGE_CSR;
  cleave_tensor_t *elements = NULL;
  cleave_tensor_t *indices = NULL;
  cleave_tensor_t *offsets = NULL;
  json_t *json = NULL;
  CLEAVE_TRY(cleave_reader_get(reader, object, "sparse", JSON_OBJECT, "an object", &json));
  size_t before = cleave_reader_enter(reader, "sparse", CLEAVE_INDEX_NONE);
  CLEAVE_TRY(cleave_reader_check_keys(reader, json, keys));
  if (tensor->rank < 1 || (is_csr && tensor->rank != 2) || tensor->dims[0] == INT64_MAX) {
    return cleave_reader_fail(reader, "a tensor of %d dimension%s has no such storage", (int)tensor->rank,
                              CLEAVE_PLURAL(tensor->rank));
  }
  CLEAVE_TRY(get_part(self, json, "elements", &elements));
  CLEAVE_TRY(get_part(self, json, "indices", &indices));
  bool fits = elements->dtype == tensor->dtype && elements->rank == (is_csr ? 1 : tensor->rank) &&
              is_list(indices, elements->dims[0]);
  for (int32_t d = 1; d < elements->rank; d++) {
    fits = fits && elements->dims[d] == tensor->dims[d];
  }
  if (is_csr) {
    CLEAVE_TRY(get_part(self, json, "offsets", &offsets));
    fits = fits && is_list(offsets, tensor->dims[0] + 1);
  }
  cleave_sparse_view_t *sparse = cleave_region_reader_allocate(reader, 1, sizeof *sparse);
  CLEAVE_TRY_MEMORY(sparse, reader->error);
  if (fits) {
    *sparse = (cleave_sparse_view_t){.size = sizeof *sparse,
                                     .stored = elements->dims[0],
                                     .indices = indices->data,
                                     .offsets = offsets == NULL ? NULL : offsets->data};
    fits = are_places(tensor, sparse);
  }
  if (!fits) {
    return cleave_reader_fail(reader, "expected elements, and their places in int64, ascending and in range");
  }
  const cleave_tensor_view_t view = cleave_tensor_view(elements);
  tensor->data = view.data;
  tensor->version = tensor->version == 0 ? view.version : tensor->version;
  tensor->sparse = sparse;
  cleave_reader_leave(reader, before);
  return CLEAVE_OK;
}

/* A constant in a file beside the text, which is of the type that the text says. */
static cleave_status_t read_file(cleave_region_reader_t *self, const char *name,
                                 const cleave_tensor_view_t *type, cleave_tensor_t **out_tensor) {
  cleave_json_reader_t *reader = &self->base;
  cleave_file_t *file = NULL;
  if (self->folder == NULL || strchr(name, '/') != NULL) {
    return cleave_reader_fail(reader,
                              self->folder == NULL ? "the constant is in file '%.80s', which is not read here"
                                                   : "file '%.80s' is not beside the text",
                              name);
  }
  CLEAVE_TRY(cleave_file_read_below(self->folder, name, (size_t)1 << 40, &file, reader->error));
  cleave_status_t status = cleave_npy_read_file(file, out_tensor, reader->error);
  cleave_file_release(file);
  CLEAVE_TRY(status);
  const cleave_tensor_t *tensor = *out_tensor;
  bool fits = tensor->dtype == type->dtype && tensor->rank == type->rank;
  for (int32_t d = 0; fits && d < type->rank; d++) {
    fits = tensor->dims[d] == type->dims[d];
  }
  return fits ? CLEAVE_OK : cleave_reader_fail(reader, "file '%.80s' is of another type", name);
}

cleave_status_t cleave_region_reader_get_constant(cleave_region_reader_t *self, const json_t *json,
                                                  cleave_value_view_t *value) {
  cleave_json_reader_t *reader = &self->base;
  cleave_tensor_view_t *tensor = &value->tensor;
  cleave_tensor_t **dense = &self->region->tensors[self->index];
  const json_t *data = json_object_get(json, "data");
  const json_t *file = json_object_get(json, "file");
  const json_t *sparse = json_object_get(json, "sparse");
  int count = (data != NULL) + (file != NULL) + (sparse != NULL);
  bool is_dense = tensor->storage == CLEAVE_STORAGE_DENSE;
  if (count == 0) {
    return CLEAVE_OK;
  }
  if (count > 1 || is_dense != (sparse == NULL)) {
    return cleave_reader_fail(reader, count > 1 ? "a value has 'data', 'file' or 'sparse', one of them"
                                                : "'sparse' goes with 'storage', 'data' and 'file' without");
  }
  self->region->is_constant[self->index] = true;
  if (cleave_view_element_count(tensor) < 0 || tensor->dtype == CLEAVE_DTYPE_UNKNOWN) {
    return cleave_reader_fail(reader, "a constant has a known dtype and known sizes");
  }
  if (data != NULL && json_is_null(data)) {
    return CLEAVE_OK;
  }
  if (sparse != NULL) {
    return read_sparse(self, json, tensor);
  }
  const char *name = NULL;
  CLEAVE_TRY(cleave_reader_get_name(reader, json, "file", false, &name));
  CLEAVE_TRY(file != NULL ? read_file(self, name, tensor, dense)
                          : cleave_reader_read_tensor(reader, json, dense));
  const cleave_tensor_view_t view = cleave_tensor_view(*dense);
  tensor->data = view.data;
  tensor->version = tensor->version == 0 ? view.version : tensor->version;
  return CLEAVE_OK;
}
