// SPDX-License-Identifier: Apache-2.0
// A region view as JSON. A value, node, fusion or attribute a line; values and nodes are named by their place
// in the lists. What a reader works out for itself is left out: producers, and which values are outputs, are
// in the nodes and in the region's own lists.
#include "backend/region/region_json.h"

#include <string.h>

#include "backend/region/view.h"
#include "json/json_attribute.h"
#include "tensor/npy.h"

typedef struct writer {
  const cleave_region_view_t *region;
  const cleave_region_json_options_t *options;
  cleave_text_t *text;
  cleave_error_t *error;
  CLEAVE_ARRAY(int64_t) codes; /* of open dimensions, as they came, if no table names them */
} writer_t;

static json_t *name_json(const char *name) {
  return cleave_json_bytes(name, strlen(name));
}

static void set_name(json_t **json, const char *key, const char *name) {
  if (name != NULL && name[0] != '\0') {
    cleave_json_set(json, key, name_json(name));
  }
}

static json_t *index_json(uint32_t index) {
  return index == CLEAVE_INDEX_NONE ? json_null() : cleave_json_number(index);
}

static json_t *indices_json(const uint32_t *indices, uint32_t count) {
  json_t *list = json_array();
  for (uint32_t k = 0; k < count; k++) {
    cleave_json_append(&list, index_json(indices[k]));
  }
  return list;
}

/* ---- types ---- */

static json_t *symbol_json(writer_t *writer, int64_t code) {
  cleave_text_t text = {0};
  if (writer->options->dims != NULL) {
    cleave_dim_print(writer->options->dims, code, &text);
  } else {
    size_t at = 0;
    while (at < writer->codes.count && writer->codes.items[at] != code) {
      at++;
    }
    if (at == writer->codes.count) {
      if (cleave_array_reserve(&writer->codes, 1, NULL) != CLEAVE_OK) {
        return NULL;
      }
      cleave_array_push_reserved(&writer->codes, code);
    }
    cleave_text_format(&text, "s%zu", at);
  }
  json_t *json = text.failed ? NULL : cleave_json_text(cleave_text_get(&text));
  cleave_text_deinit(&text);
  return json;
}

static json_t *shape_json(writer_t *writer, const cleave_tensor_view_t *tensor) {
  if (tensor->rank < 0) {
    return json_null();
  }
  json_t *list = json_array();
  for (int32_t d = 0; d < tensor->rank; d++) {
    int64_t size = tensor->dims[d];
    cleave_json_append(&list, size >= 0                      ? json_integer(size)
                              : cleave_dim_is_symbolic(size) ? symbol_json(writer, size)
                                                             : json_null());
  }
  return list;
}

/* ---- constants ---- */

static cleave_status_t fail(const writer_t *writer, const char *what, const char *name) {
  return cleave_error_set(writer->error, CLEAVE_ERROR_UNSUPPORTED, "region '%s': %s '%s' %s",
                          writer->region->name, what, name,
                          "is not a tensor of known shape in memory of the host");
}

static void set_part(json_t **object, const char *key, const cleave_tensor_t *tensor) {
  json_t *part = json_object();
  cleave_json_set_tensor(&part, tensor);
  cleave_json_set(object, key, part);
}

/* The elements that a sparse tensor has, and where they belong: three dense tensors. */
static cleave_status_t set_sparse(writer_t *writer, json_t **json, const cleave_value_view_t *value) {
  const cleave_tensor_view_t *tensor = &value->tensor;
  const cleave_sparse_view_t *sparse = tensor->sparse;
  bool is_csr = tensor->storage == CLEAVE_STORAGE_CSR;
  int64_t dims[CLEAVE_MAX_RANK] = {0};
  cleave_tensor_view_t view = *tensor;
  cleave_tensor_t elements;
  if (sparse == NULL || tensor->rank < 1 || tensor->rank > CLEAVE_MAX_RANK || (is_csr && tensor->rank != 2)) {
    return fail(writer, "sparse constant", value->name);
  }
  memcpy(dims, tensor->dims, (size_t)tensor->rank * sizeof *dims);
  dims[0] = sparse->stored;
  view.rank = is_csr ? 1 : tensor->rank;
  view.dims = dims;
  if (!cleave_tensor_borrow(&view, &elements)) {
    return fail(writer, "sparse constant", value->name);
  }
  cleave_tensor_view_t list = {.dtype = CLEAVE_DTYPE_I64, .rank = 1, .dims = dims, .data = sparse->indices};
  cleave_tensor_t indices;
  cleave_tensor_t offsets;
  const int64_t rows = tensor->dims[0] + 1;
  cleave_tensor_view_t ends = {.dtype = CLEAVE_DTYPE_I64, .rank = 1, .dims = &rows, .data = sparse->offsets};
  if (!cleave_tensor_borrow(&list, &indices) || (is_csr && !cleave_tensor_borrow(&ends, &offsets))) {
    return fail(writer, "sparse constant", value->name);
  }
  json_t *part = json_object();
  set_part(&part, "elements", &elements);
  set_part(&part, "indices", &indices);
  if (is_csr) {
    set_part(&part, "offsets", &offsets);
  }
  cleave_json_set(json, "sparse", part);
  return CLEAVE_OK;
}

/* "<path without .json>.<value>.npy"; the member names the file alone. */
static cleave_status_t write_file(writer_t *writer, json_t **json, uint32_t index,
                                  const cleave_tensor_t *tensor) {
  const char *path = writer->options->path;
  size_t length = strlen(path) - (cleave_path_has_extension(path, ".json") ? strlen(".json") : 0);
  cleave_text_t file = {0};
  cleave_text_append(&file, path, length);
  cleave_text_format(&file, ".%u.npy", (unsigned)index);
  cleave_status_t status = cleave_text_check(&file, writer->error);
  CLEAVE_THEN(status, cleave_npy_write(file.data, tensor, writer->error));
  if (status == CLEAVE_OK) {
    cleave_json_set(json, "file", name_json(cleave_path_name(file.data)));
  }
  cleave_text_deinit(&file);
  return status;
}

static bool fits_file(cleave_dtype_t dtype) {
  return dtype != CLEAVE_DTYPE_BF16 && dtype != CLEAVE_DTYPE_STRING;
}

static cleave_status_t set_data(writer_t *writer, json_t **json, uint32_t index) {
  const cleave_value_view_t *value = &writer->region->values[index];
  cleave_tensor_t tensor;
  if (value->tensor.memory != CLEAVE_MEMORY_HOST) {
    return fail(writer, "constant", value->name);
  }
  if (value->tensor.storage != CLEAVE_STORAGE_DENSE) {
    return set_sparse(writer, json, value);
  }
  if (!cleave_tensor_borrow(&value->tensor, &tensor)) {
    return fail(writer, "constant", value->name);
  }
  bool is_small = tensor.bytes <= CLEAVE_REGION_SMALL_CONSTANT || tensor.dtype == CLEAVE_DTYPE_STRING;
  cleave_region_constants_t where = writer->options->constants;
  if (!is_small && where == CLEAVE_REGION_CONSTANTS_FILES && fits_file(tensor.dtype)) {
    return write_file(writer, json, index, &tensor);
  }
  bool is_left_out = !is_small && where == CLEAVE_REGION_CONSTANTS_TYPES && value->tensor.is_weight;
  cleave_json_set(json, "data", is_left_out ? json_null() : cleave_json_tensor_data(&tensor));
  return CLEAVE_OK;
}

/* ---- lists ---- */

static cleave_status_t add_value(writer_t *writer, uint32_t index) {
  const cleave_value_view_t *value = &writer->region->values[index];
  const cleave_tensor_view_t *tensor = &value->tensor;
  json_t *json = json_object();
  set_name(&json, "name", value->name);
  cleave_json_set(&json, "dtype", json_string(cleave_dtype_name(tensor->dtype)));
  cleave_json_set(&json, "shape", shape_json(writer, tensor));
  set_name(&json, "layout", tensor->layout);
  if (tensor->storage != CLEAVE_STORAGE_DENSE) {
    cleave_json_set(&json, "storage",
                    json_string(tensor->storage == CLEAVE_STORAGE_CSR ? "csr" : "row_sparse"));
  }
  bool is_constant = tensor->data != NULL || (tensor->is_weight && value->producer == CLEAVE_INDEX_NONE);
  for (uint32_t k = 0; k < writer->region->input_count && is_constant && tensor->data == NULL; k++) {
    is_constant = writer->region->inputs[k] != index; /* a weight that comes at run time */
  }
  if (tensor->is_weight != is_constant) {
    cleave_json_set(&json, "weight", json_boolean(tensor->is_weight));
  }
  if (writer->options->versions && tensor->version != 0) {
    cleave_json_set(&json, "version", cleave_json_hash(tensor->version));
  }
  cleave_status_t status = CLEAVE_OK;
  if (is_constant && tensor->data == NULL) {
    cleave_json_set(&json, "data", json_null());
  } else if (is_constant) {
    status = set_data(writer, &json, index);
  }
  CLEAVE_TRY_OR(status, json_decref(json));
  cleave_json_write_item(writer->text, "    ", index == 0, json);
  return CLEAVE_OK;
}

static void add_node(writer_t *writer, uint32_t index) {
  const cleave_node_view_t *node = &writer->region->nodes[index];
  json_t *json = json_object();
  cleave_json_set(&json, "op", name_json(node->op));
  set_name(&json, "domain", node->domain);
  set_name(&json, "name", node->name);
  cleave_json_set(&json, "opset", json_integer(node->opset_version));
  cleave_json_set(&json, "inputs", indices_json(node->inputs, node->input_count));
  cleave_json_set(&json, "outputs", indices_json(node->outputs, node->output_count));
  if (node->attribute_count > 0) {
    cleave_json_set(&json, "attributes", cleave_json_attributes(node->attributes, node->attribute_count));
  }
  if (node->fusion != CLEAVE_INDEX_NONE) {
    cleave_json_set(&json, "fusion", cleave_json_number(node->fusion));
  }
  bool has_flops = writer->region->size > CLEAVE_REGION_VIEW_SIZE_REQUIRED && writer->region->flops != NULL;
  if (has_flops && writer->region->flops[index] != 0.0) {
    cleave_json_set(&json, "flops", cleave_json_real(writer->region->flops[index]));
  }
  cleave_json_write_item(writer->text, "    ", index == 0, json);
}

static void add_fusion(writer_t *writer, uint32_t index) {
  const cleave_region_view_t *region = writer->region;
  const cleave_fusion_view_t *fusion = &region->fusions[index];
  json_t *json = json_object();
  json_t *labels = json_array();
  for (uint32_t k = 0; k < fusion->node_count; k++) {
    cleave_json_append(&labels, name_json(fusion->labels[k]));
  }
  cleave_json_set(&json, "rule", name_json(fusion->rule));
  cleave_json_set(&json, "nodes", indices_json(fusion->nodes, fusion->node_count));
  cleave_json_set(&json, "labels", labels);
  if (region->size > CLEAVE_REGION_VIEW_SIZE_REQUIRED && region->fusion_attributes != NULL &&
      region->fusion_attributes[index].count > 0) {
    const cleave_attribute_list_t *list = &region->fusion_attributes[index];
    cleave_json_set(&json, "attributes", cleave_json_attributes(list->items, list->count));
  }
  cleave_json_write_item(writer->text, "    ", index == 0, json);
}

static cleave_status_t print(writer_t *writer) {
  const cleave_region_view_t *region = writer->region;
  cleave_text_t *text = writer->text;
  uint32_t attributes = region->size > CLEAVE_REGION_VIEW_SIZE_REQUIRED ? region->attribute_count : 0;
  cleave_text_add(text, "{\n");
  cleave_json_write_member(text, "  ", "format", json_string("cleave-region"), true);
  cleave_json_write_member(text, "  ", "version", json_integer(1), true);
  cleave_json_write_member(text, "  ", "name", name_json(region->name), true);
  cleave_json_write_member(text, "  ", "rule", name_json(region->rule), true);
  if (writer->options->backend != NULL) {
    cleave_json_write_member(text, "  ", "backend", cleave_json_text(writer->options->backend), true);
  }
  cleave_json_write_member(text, "  ", "hash", cleave_json_hash(cleave_region_hash(region)), true);
  cleave_json_open_list(text, "  ", "attributes");
  for (uint32_t k = 0; k < attributes; k++) {
    cleave_json_write_item(text, "    ", k == 0, cleave_json_attribute(&region->attributes[k]));
  }
  cleave_json_close_list(text, "  ", attributes == 0, true);
  cleave_json_open_list(text, "  ", "values");
  for (uint32_t k = 0; k < region->value_count; k++) {
    CLEAVE_TRY(add_value(writer, k));
  }
  cleave_json_close_list(text, "  ", region->value_count == 0, true);
  cleave_json_write_member(text, "  ", "inputs", indices_json(region->inputs, region->input_count), true);
  cleave_json_write_member(text, "  ", "outputs", indices_json(region->outputs, region->output_count), true);
  cleave_json_open_list(text, "  ", "nodes");
  for (uint32_t k = 0; k < region->node_count; k++) {
    add_node(writer, k);
  }
  cleave_json_close_list(text, "  ", region->node_count == 0, true);
  cleave_json_open_list(text, "  ", "fusions");
  for (uint32_t k = 0; k < region->fusion_count; k++) {
    add_fusion(writer, k);
  }
  cleave_json_close_list(text, "  ", region->fusion_count == 0, false);
  cleave_text_add(text, "}\n");
  return cleave_text_check(text, writer->error);
}

cleave_status_t cleave_region_json_print(const cleave_region_view_t *region,
                                         const cleave_region_json_options_t *options, cleave_text_t *text,
                                         cleave_error_t *error) {
  static const cleave_region_json_options_t plain = {0};
  writer_t writer = {
      .region = region, .options = options == NULL ? &plain : options, .text = text, .error = error};
  cleave_status_t status = print(&writer);
  cleave_array_free(&writer.codes);
  return status;
}
