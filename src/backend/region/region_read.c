// SPDX-License-Identifier: Apache-2.0
// A region out of JSON. The text is hostile: jansson bounds the depth, every member is asked for by name and
// type, unknown ones are refused, indices are checked against the list they point into, and no tensor is made
// before its data is known to be as long as its shape says.
#include <stdlib.h>
#include <string.h>

#include "backend/region/region_file.h"
#include "backend/region/view.h"

enum { MAX_BYTES = 1 << 30, VERSION = 1 };

static cleave_region_reader_t *self_of(cleave_json_reader_t *reader) {
  return (cleave_region_reader_t *)(void *)reader;
}

/* ---- members ---- */

static cleave_status_t get_boolean(cleave_json_reader_t *reader, const json_t *object, const char *key,
                                   bool fallback, bool *out_yes) {
  const json_t *json = json_object_get(object, key);
  *out_yes = json == NULL ? fallback : json_is_true(json);
  return json == NULL || json_is_boolean(json)
             ? CLEAVE_OK
             : cleave_reader_fail(reader, "member '%s': expected a boolean, found %s", key,
                                  cleave_reader_type(json));
}

/* Indices below `count`, or null if `or_none`. */
// Wide: a list and its length, where it is and what it may hold.
static cleave_status_t get_indices(cleave_json_reader_t *reader, const json_t *object, const char *key,
                                   uint32_t count, bool or_none, const uint32_t **out_indices,
                                   uint32_t *out_count) {
  json_t *list = NULL;
  CLEAVE_TRY(cleave_reader_get(reader, object, key, JSON_ARRAY, "a list", &list));
  size_t length = json_array_size(list);
  uint32_t *indices =
      length < UINT32_MAX ? cleave_region_reader_allocate(reader, length, sizeof *indices) : NULL;
  CLEAVE_TRY_MEMORY(indices, reader->error);
  size_t before = cleave_reader_enter(reader, key, CLEAVE_INDEX_NONE);
  for (uint32_t k = 0; k < (uint32_t)length; k++) {
    const json_t *item = json_array_get(list, k);
    size_t inside = cleave_reader_enter(reader, "", k);
    if (!json_is_integer(item) && !(or_none && json_is_null(item))) {
      return cleave_reader_fail(reader, "expected a whole number%s, found %s", or_none ? " or null" : "",
                                cleave_reader_type(item));
    }
    json_int_t number = json_integer_value(item);
    if (json_is_integer(item) && (number < 0 || number >= (json_int_t)count)) {
      return cleave_reader_fail(reader, "there is no %" JSON_INTEGER_FORMAT ": the list has %u", number,
                                (unsigned)count);
    }
    indices[k] = json_is_null(item) ? CLEAVE_INDEX_NONE : (uint32_t)number;
    cleave_reader_leave(reader, inside);
  }
  cleave_reader_leave(reader, before);
  *out_indices = indices;
  *out_count = (uint32_t)length;
  return CLEAVE_OK;
}

/* ---- values ---- */

static cleave_status_t read_size(cleave_region_reader_t *self, const json_t *item, int64_t *out_size) {
  *out_size = CLEAVE_DIM_UNKNOWN;
  if (json_is_string(item) && json_string_length(item) > 0) {
    cleave_string_t symbol;
    CLEAVE_TRY(cleave_strings_add(&self->region->symbols, json_string_value(item), json_string_length(item),
                                  &symbol, self->base.error));
    *out_size = -1 - (int64_t)symbol.index;
  } else if (json_is_integer(item) && json_integer_value(item) >= 0) {
    *out_size = json_integer_value(item);
  } else if (!json_is_null(item)) {
    return cleave_reader_fail(&self->base, "shape: expected sizes, names, and null for unknown sizes");
  }
  return CLEAVE_OK;
}

static cleave_status_t read_shape(cleave_region_reader_t *self, const json_t *object,
                                  cleave_tensor_view_t *tensor) {
  cleave_json_reader_t *reader = &self->base;
  const json_t *shape = json_object_get(object, "shape");
  if (shape != NULL && json_is_null(shape)) {
    tensor->rank = -1;
    return CLEAVE_OK;
  }
  json_t *list = NULL;
  CLEAVE_TRY(cleave_reader_get(reader, object, "shape", JSON_ARRAY, "a list or null", &list));
  size_t rank = json_array_size(list);
  if (rank > CLEAVE_MAX_RANK) {
    return cleave_reader_fail(reader, "shape: expected at most %d dimensions, found %zu", CLEAVE_MAX_RANK,
                              rank);
  }
  int64_t *dims = cleave_region_reader_allocate(reader, rank, sizeof *dims);
  CLEAVE_TRY_MEMORY(dims, reader->error);
  for (size_t d = 0; d < rank; d++) {
    CLEAVE_TRY(read_size(self, json_array_get(list, d), &dims[d]));
  }
  tensor->rank = (int32_t)rank;
  tensor->dims = dims;
  return CLEAVE_OK;
}

static cleave_status_t read_storage(cleave_json_reader_t *reader, const json_t *json,
                                    cleave_tensor_view_t *tensor) {
  const char *name = NULL;
  CLEAVE_TRY(cleave_reader_get_text(reader, json, "storage", "dense", &name));
  tensor->storage = strcmp(name, "csr") == 0          ? CLEAVE_STORAGE_CSR
                    : strcmp(name, "row_sparse") == 0 ? CLEAVE_STORAGE_ROW_SPARSE
                                                      : CLEAVE_STORAGE_DENSE;
  return tensor->storage != CLEAVE_STORAGE_DENSE || strcmp(name, "dense") == 0
             ? CLEAVE_OK
             : cleave_reader_fail(reader, "storage '%.40s' is none of dense, csr, row_sparse", name);
}

static cleave_status_t read_value(cleave_json_reader_t *reader, json_t *json, void *item) {
  static const char *const keys[] = {"name",    "dtype", "shape", "layout", "storage", "weight",
                                     "version", "data",  "file",  "sparse", NULL};
  cleave_region_reader_t *self = self_of(reader);
  cleave_value_view_t *value = item;
  cleave_tensor_view_t *tensor = &value->tensor;
  *value = (cleave_value_view_t){.size = sizeof *value, .producer = CLEAVE_INDEX_NONE};
  tensor->size = sizeof *tensor;
  CLEAVE_TRY(cleave_reader_check_keys(reader, json, keys));
  CLEAVE_TRY(cleave_reader_get_name(reader, json, "name", false, &value->name));
  CLEAVE_TRY(cleave_reader_get_dtype(reader, json, &tensor->dtype));
  CLEAVE_TRY(read_shape(self, json, tensor));
  CLEAVE_TRY(cleave_reader_get_name(reader, json, "layout", false, &tensor->layout));
  tensor->layout = tensor->layout[0] == '\0' ? NULL : tensor->layout;
  CLEAVE_TRY(read_storage(reader, json, tensor));
  if (json_object_get(json, "version") != NULL) {
    CLEAVE_TRY(cleave_reader_get_hash(reader, json, "version", &tensor->version));
  }
  CLEAVE_TRY(cleave_region_reader_get_constant(self, json, value));
  CLEAVE_TRY(get_boolean(reader, json, "weight", self->region->is_constant[self->index], &tensor->is_weight));
  self->index++;
  return CLEAVE_OK;
}

/* ---- attributes ---- */

static int compare_names(const void *a, const void *b) {
  const char *const *left = a;
  const char *const *right = b;
  return strcmp(*left, *right);
}

/* The region keeps the tensors, and views of them. */
static cleave_status_t keep_tensors(cleave_region_reader_t *self, cleave_attribute_t *attributes,
                                    uint32_t count) {
  cleave_status_t status = CLEAVE_OK;
  for (uint32_t k = 0; k < count; k++) {
    if (attributes[k].held == NULL) {
      continue;
    }
    cleave_status_t kept = cleave_region_reader_keep_take(self, attributes[k].held);
    cleave_tensor_view_t *view = cleave_region_reader_allocate(&self->base, 1, sizeof *view);
    if (kept == CLEAVE_OK && view != NULL) {
      *view = cleave_tensor_view(attributes[k].held);
      attributes[k].tensor = view;
    } else {
      status = cleave_error_out_of_memory(self->base.error);
    }
  }
  return status;
}

static cleave_status_t get_attributes(cleave_json_reader_t *reader, const json_t *object, bool is_sorted,
                                      const cleave_attribute_t **out_attributes, uint32_t *out_count) {
  cleave_attribute_t *attributes = NULL;
  cleave_status_t status = cleave_reader_get_attributes(reader, object, is_sorted, &attributes, out_count);
  cleave_status_t kept = keep_tensors(self_of(reader), attributes, *out_count);
  *out_attributes = attributes;
  return status == CLEAVE_OK ? kept : status;
}

/* Attributes come in any order, but each name only once. */
static cleave_status_t check_names(cleave_json_reader_t *reader, const cleave_node_view_t *node) {
  uint32_t count = node->attribute_count;
  const char **names = cleave_allocate((size_t)count + 1, sizeof *names);
  CLEAVE_TRY_MEMORY(names, reader->error);
  for (uint32_t k = 0; k < count; k++) {
    names[k] = node->attributes[k].name;
  }
  qsort(names, count, sizeof *names, compare_names);
  bool are_unique = true;
  for (uint32_t k = 1; k < count; k++) {
    are_unique = are_unique && strcmp(names[k - 1], names[k]) != 0;
  }
  cleave_free(names);
  return are_unique ? CLEAVE_OK : cleave_reader_fail(reader, "attributes: a name occurs twice");
}

/* ---- nodes and fusions ---- */

static cleave_status_t read_node(cleave_json_reader_t *reader, json_t *json, void *item) {
  static const char *const keys[] = {"op",      "domain",     "name",   "opset", "inputs",
                                     "outputs", "attributes", "fusion", "flops", NULL};
  cleave_region_reader_t *self = self_of(reader);
  cleave_node_view_t *node = item;
  uint32_t values = self->region->view.value_count;
  uint32_t version = 0;
  *node = (cleave_node_view_t){.size = sizeof *node, .fusion = CLEAVE_INDEX_NONE};
  CLEAVE_TRY(cleave_reader_check_keys(reader, json, keys));
  CLEAVE_TRY(cleave_reader_get_name(reader, json, "op", true, &node->op));
  CLEAVE_TRY(cleave_reader_get_name(reader, json, "domain", false, &node->domain));
  CLEAVE_TRY(cleave_reader_get_name(reader, json, "name", false, &node->name));
  CLEAVE_TRY(cleave_reader_get_number(reader, json, "opset", INT32_MAX, &version));
  node->opset_version = (int32_t)version;
  CLEAVE_TRY(get_indices(reader, json, "inputs", values, true, &node->inputs, &node->input_count));
  CLEAVE_TRY(get_indices(reader, json, "outputs", values, true, &node->outputs, &node->output_count));
  CLEAVE_TRY(get_attributes(reader, json, false, &node->attributes, &node->attribute_count));
  CLEAVE_TRY(check_names(reader, node));
  if (json_object_get(json, "fusion") != NULL) {
    CLEAVE_TRY(cleave_reader_get_number(reader, json, "fusion", UINT32_MAX - 1, &node->fusion));
  }
  double *flops = &self->region->flops[self->index++];
  const json_t *number = json_object_get(json, "flops");
  return number == NULL ? CLEAVE_OK : cleave_reader_read_real(reader, number, flops);
}

static cleave_status_t read_label(cleave_json_reader_t *reader, json_t *json, void *item) {
  size_t length = 0;
  CLEAVE_TRY(cleave_reader_read_bytes(reader, json, item, &length));
  return length == strlen(*(const char **)item) ? CLEAVE_OK : cleave_reader_fail(reader, "a zero byte");
}

static cleave_status_t read_fusion(cleave_json_reader_t *reader, json_t *json, void *item) {
  static const char *const keys[] = {"rule", "nodes", "labels", "attributes", NULL};
  cleave_region_reader_t *self = self_of(reader);
  cleave_fusion_view_t *fusion = item;
  cleave_attribute_list_t *list = &self->region->lists[self->index++];
  const char **labels = NULL;
  uint32_t count = 0;
  *fusion = (cleave_fusion_view_t){.size = sizeof *fusion};
  CLEAVE_TRY(cleave_reader_check_keys(reader, json, keys));
  CLEAVE_TRY(cleave_reader_get_name(reader, json, "rule", true, &fusion->rule));
  CLEAVE_TRY(get_indices(reader, json, "nodes", self->region->view.node_count, false, &fusion->nodes,
                         &fusion->node_count));
  CLEAVE_TRY(cleave_reader_get_list(reader, json, "labels", sizeof *labels, read_label, &labels, &count));
  CLEAVE_TRY(get_attributes(reader, json, true, &list->items, &list->count));
  fusion->labels = labels;
  if (fusion->rule[0] == '\0') {
    return cleave_reader_fail(reader, "rule: expected a name");
  }
  return count == fusion->node_count && count > 0
             ? CLEAVE_OK
             : cleave_reader_fail(reader, "expected nodes, and a label for each: found %u and %u",
                                  (unsigned)fusion->node_count, (unsigned)count);
}

/* ---- the whole ---- */

static cleave_status_t read_header(cleave_json_reader_t *reader, json_t *root) {
  static const char *const keys[] = {"format", "version", "name",  "rule",    "backend",    "hash", "values",
                                     "inputs", "outputs", "nodes", "fusions", "attributes", NULL};
  const char *format = NULL;
  uint32_t version = 0;
  if (!json_is_object(root)) {
    return cleave_reader_fail(reader, "expected an object, found %s", cleave_reader_type(root));
  }
  CLEAVE_TRY(cleave_reader_get_text(reader, root, "format", NULL, &format));
  if (strcmp(format, "cleave-region") != 0) {
    bool is_plan = strcmp(format, "cleave-plan") == 0;
    cleave_status_t status = cleave_reader_fail(reader, "format: expected 'cleave-region', found '%.40s'%s",
                                                format, is_plan ? " (a plan goes with its model)" : "");
    cleave_error_hint(reader->error, is_plan ? CLEAVE_HINT_PLAN : CLEAVE_HINT_NONE);
    return status;
  }
  CLEAVE_TRY(cleave_reader_get_number(reader, root, "version", UINT32_MAX, &version));
  if (version != VERSION) {
    return cleave_reader_fail(reader, "version: this program reads regions of version %d, found %u", VERSION,
                              (unsigned)version);
  }
  return cleave_reader_check_keys(reader, root, keys);
}

static size_t count_of(const json_t *root, const char *key) {
  return json_array_size(json_object_get(root, key));
}

static cleave_status_t read_all(cleave_region_reader_t *self, json_t *root) {
  cleave_json_reader_t *reader = &self->base;
  cleave_region_file_t *region = self->region;
  cleave_region_view_t *view = &region->view;
  uint64_t hash = 0;
  CLEAVE_TRY(read_header(reader, root));
  *view = (cleave_region_view_t){.size = sizeof *view};
  CLEAVE_TRY(cleave_reader_get_name(reader, root, "name", true, &view->name));
  CLEAVE_TRY(cleave_reader_get_name(reader, root, "rule", true, &view->rule));
  CLEAVE_TRY(cleave_reader_get_hash(reader, root, "hash", &hash));
  if (json_object_get(root, "backend") != NULL) {
    CLEAVE_TRY(cleave_reader_get_text(reader, root, "backend", NULL, &region->backend));
  }
  CLEAVE_TRY(get_attributes(reader, root, true, &view->attributes, &view->attribute_count));
  size_t values = count_of(root, "values") + 1;
  region->is_constant = cleave_region_reader_allocate(reader, values, sizeof *region->is_constant);
  region->flops = cleave_region_reader_allocate(reader, count_of(root, "nodes"), sizeof *region->flops);
  region->lists = cleave_region_reader_allocate(reader, count_of(root, "fusions"), sizeof *region->lists);
  cleave_tensor_t **tensors = cleave_region_reader_allocate(reader, values, sizeof *tensors);
  CLEAVE_TRY_MEMORY(
      region->is_constant != NULL && region->flops != NULL && region->lists != NULL && tensors != NULL,
      reader->error);
  region->tensors = tensors;
  region->tensor_count = values;
  CLEAVE_TRY(cleave_reader_get_list(reader, root, "values", sizeof *region->values, read_value,
                                    &region->values, &view->value_count));
  CLEAVE_TRY(
      get_indices(reader, root, "inputs", view->value_count, false, &view->inputs, &view->input_count));
  CLEAVE_TRY(
      get_indices(reader, root, "outputs", view->value_count, false, &view->outputs, &view->output_count));
  self->index = 0;
  CLEAVE_TRY(cleave_reader_get_list(reader, root, "nodes", sizeof *region->nodes, read_node, &region->nodes,
                                    &view->node_count));
  self->index = 0;
  CLEAVE_TRY(cleave_reader_get_list(reader, root, "fusions", sizeof *region->fusions, read_fusion,
                                    &region->fusions, &view->fusion_count));
  view->values = region->values;
  view->nodes = region->nodes;
  view->fusions = region->fusions;
  view->fusion_attributes = region->lists;
  view->flops = region->flops;
  return cleave_region_file_check(region, hash, reader->error);
}

cleave_status_t cleave_region_json_read(const char *place, const char *text, size_t length,
                                        const char *folder, cleave_region_file_t **out_region,
                                        cleave_error_t *error) {
  *out_region = NULL;
  cleave_region_file_t *region = cleave_allocate_zeroed(1, sizeof *region);
  CLEAVE_TRY_MEMORY(region, error);
  json_t *root = NULL;
  cleave_error_t own = CLEAVE_ERROR_INIT; /* members say what is wrong in it: it cannot be missing */
  size_t tensor_bytes = MAX_BYTES;
  cleave_region_reader_t self = {.base = {.place = place,
                                          .arena = &region->arena,
                                          .error = error != NULL ? error : &own,
                                          .tensor_bytes = &tensor_bytes},
                                 .region = region,
                                 .folder = folder};
  region->place = cleave_arena_copy_text(&region->arena, place, strlen(place));
  cleave_status_t status = region->place == NULL
                               ? cleave_error_out_of_memory(error)
                               : cleave_reader_parse(&self.base, "a region", text, length, &root);
  CLEAVE_THEN(status, read_all(&self, root));
  json_decref(root);
  CLEAVE_TRY_OR(status, cleave_region_file_destroy(region));
  *out_region = region;
  return CLEAVE_OK;
}

cleave_status_t cleave_region_json_open(const char *path, cleave_region_file_t **out_region,
                                        cleave_error_t *error) {
  *out_region = NULL;
  cleave_file_t *file = NULL;
  size_t length = 0;
  const char *start = cleave_path_folder(path, &length);
  char *folder = cleave_copy_text(start, length);
  CLEAVE_TRY_MEMORY(folder, error);
  cleave_status_t status = cleave_file_open(path, &file, error);
  CLEAVE_THEN(status, cleave_region_json_read(path, (const char *)cleave_file_data(file),
                                              cleave_file_size(file), folder, out_region, error));
  cleave_file_release(file);
  cleave_free(folder);
  return status;
}
