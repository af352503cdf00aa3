// SPDX-License-Identifier: Apache-2.0
// Both directions side by side, struct by struct, so that one is seen to be the other's inverse. Arrays of
// numbers, texts and data stay in the message; only structs with pointers are built anew. The reader never
// recurses, and allocates no more than a multiple of the message's length.
#include "backend/region/region_wire.h"

typedef enum data_kind { DATA_NONE, DATA_INLINE, DATA_SHARED, DATA_STRINGS } data_kind_t;

enum {
  DATA_ALIGNMENT = 16,
  MIN_VALUE = 32, /* bytes of messages that these take at least */
  MIN_NODE = 28,
  MIN_ATTRIBUTE = 12,
  MIN_FUSION = 8,
  MIN_LIST = 4,
  MIN_TEXT = 4
};

typedef struct writer {
  cleave_wire_out_t *out;
  cleave_region_share_t share;
  void *context;
  cleave_error_t *error;
} writer_t;

typedef struct reader {
  cleave_wire_in_t *in;
  cleave_arena_t *arena;
  cleave_region_find_t find;
  void *context;
  bool out_of_memory;
} reader_t;

/* Memory for `count` structs; failing to get it ends the reading. */
static void *make(reader_t *reader, uint32_t count, size_t size) {
  void *memory = reader->in->failed ? NULL : cleave_arena_allocate(reader->arena, count, size);
  if (memory == NULL && !reader->in->failed) {
    reader->out_of_memory = true;
    reader->in->failed = true;
  }
  return memory;
}

static uint32_t read_optional_index(reader_t *reader, uint32_t limit) {
  uint32_t value = cleave_wire_u32(reader->in);
  if (value != CLEAVE_INDEX_NONE && value >= limit) {
    reader->in->failed = true;
  }
  return value;
}

/* ---- tensors ---- */

static void write_sparse(writer_t *writer, const cleave_tensor_view_t *tensor) {
  const cleave_sparse_view_t *sparse = tensor->sparse;
  cleave_wire_put_u32(writer->out, sparse != NULL);
  if (sparse == NULL) {
    return;
  }
  bool is_csr = tensor->storage == CLEAVE_STORAGE_CSR;
  cleave_wire_put_u64(writer->out, (uint64_t)sparse->stored);
  bool has_places = sparse->indices != NULL && sparse->stored >= 0;
  cleave_wire_put_u32(writer->out, has_places);
  if (has_places) {
    cleave_wire_put(writer->out, sparse->indices, (size_t)sparse->stored * sizeof(int64_t), sizeof(int64_t));
  }
  has_places = is_csr && sparse->offsets != NULL && tensor->rank == 2 && tensor->dims[0] >= 0;
  cleave_wire_put_u32(writer->out, has_places);
  if (has_places) {
    cleave_wire_put(writer->out, sparse->offsets, ((size_t)tensor->dims[0] + 1) * sizeof(int64_t),
                    sizeof(int64_t));
  }
}

static void read_sparse(reader_t *reader, cleave_tensor_view_t *tensor) {
  if (cleave_wire_index(reader->in, 2) == 0) {
    return;
  }
  cleave_sparse_view_t *sparse = make(reader, 1, sizeof *sparse);
  int64_t stored = (int64_t)cleave_wire_u64(reader->in);
  const int64_t *indices = NULL;
  const int64_t *offsets = NULL;
  if (cleave_wire_index(reader->in, 2) == 1) {
    indices = cleave_wire_take(reader->in, stored < 0 ? SIZE_MAX : (size_t)stored, sizeof(int64_t),
                               sizeof(int64_t));
  }
  if (cleave_wire_index(reader->in, 2) == 1) {
    bool is_csr = tensor->storage == CLEAVE_STORAGE_CSR && tensor->rank == 2 && tensor->dims[0] >= 0 &&
                  tensor->dims[0] < INT64_MAX;
    offsets = cleave_wire_take(reader->in, is_csr ? (size_t)tensor->dims[0] + 1 : SIZE_MAX, sizeof(int64_t),
                               sizeof(int64_t));
  }
  if (sparse != NULL) {
    *sparse = (cleave_sparse_view_t){
        .size = sizeof *sparse, .stored = stored, .indices = indices, .offsets = offsets};
    tensor->sparse = sparse;
  }
}

static cleave_status_t write_strings(writer_t *writer, const cleave_tensor_view_t *tensor, size_t bytes) {
  const char *const *strings = tensor->data;
  size_t count = bytes / sizeof *strings;
  if (count > UINT32_MAX) {
    return cleave_error_set(writer->error, CLEAVE_ERROR_LIMIT, "a constant of %zu strings is too large",
                            count);
  }
  cleave_wire_put_u32(writer->out, DATA_STRINGS);
  cleave_wire_put_u32(writer->out, (uint32_t)count);
  for (size_t k = 0; k < count; k++) {
    cleave_wire_put_text(writer->out, strings[k] == NULL ? "" : strings[k]);
  }
  return CLEAVE_OK;
}

static cleave_status_t write_data(writer_t *writer, const cleave_tensor_view_t *tensor) {
  size_t bytes = 0;
  if (tensor->data == NULL) {
    cleave_wire_put_u32(writer->out, DATA_NONE);
    return CLEAVE_OK;
  }
  if (!cleave_tensor_view_bytes(tensor, &bytes)) {
    return cleave_error_set(writer->error, CLEAVE_ERROR_LIMIT, "a constant has no size");
  }
  if (tensor->dtype == CLEAVE_DTYPE_STRING) {
    return write_strings(writer, tensor, bytes);
  }
  uint32_t id = CLEAVE_INDEX_NONE;
  if (writer->share != NULL) {
    CLEAVE_TRY(writer->share(writer->context, tensor, bytes, &id, writer->error));
  }
  if (id != CLEAVE_INDEX_NONE) {
    cleave_wire_put_u32(writer->out, DATA_SHARED);
    cleave_wire_put_u32(writer->out, id);
    return CLEAVE_OK;
  }
  cleave_wire_put_u32(writer->out, DATA_INLINE);
  cleave_wire_put(writer->out, tensor->data, bytes, DATA_ALIGNMENT);
  return CLEAVE_OK;
}

static const void *read_strings(reader_t *reader, size_t bytes) {
  uint32_t count = cleave_wire_count(reader->in, MIN_TEXT);
  if ((size_t)count * sizeof(char *) != bytes) {
    reader->in->failed = true;
  }
  const char **strings = make(reader, count, sizeof *strings);
  for (uint32_t k = 0; strings != NULL && k < count; k++) {
    strings[k] = cleave_wire_named(reader->in);
  }
  return strings;
}

static void read_data(reader_t *reader, cleave_tensor_view_t *tensor) {
  uint32_t kind = cleave_wire_index(reader->in, DATA_STRINGS + 1);
  size_t bytes = 0;
  if (kind == DATA_NONE) {
    return;
  }
  if (!cleave_tensor_view_bytes(tensor, &bytes) ||
      (kind == DATA_STRINGS) != (tensor->dtype == CLEAVE_DTYPE_STRING)) {
    reader->in->failed = true;
    return;
  }
  if (kind == DATA_INLINE) {
    tensor->data = cleave_wire_take(reader->in, bytes, 1, DATA_ALIGNMENT);
  } else if (kind == DATA_STRINGS) {
    tensor->data = read_strings(reader, bytes);
  } else {
    uint32_t id = cleave_wire_u32(reader->in);
    tensor->data = reader->find == NULL ? NULL : reader->find(reader->context, id, bytes);
    reader->in->failed = reader->in->failed || tensor->data == NULL;
  }
}

static cleave_status_t write_tensor(writer_t *writer, const cleave_tensor_view_t *tensor) {
  cleave_wire_put_u32(writer->out, (uint32_t)tensor->dtype);
  cleave_wire_put_u32(writer->out, (uint32_t)tensor->rank);
  if (tensor->rank > 0) {
    cleave_wire_put(writer->out, tensor->dims, (size_t)tensor->rank * sizeof(int64_t), sizeof(int64_t));
  }
  cleave_wire_put_u64(writer->out, tensor->version);
  cleave_wire_put_text(writer->out, tensor->layout);
  cleave_wire_put_u32(writer->out, (uint32_t)tensor->storage);
  cleave_wire_put_u32(writer->out, tensor->is_weight);
  write_sparse(writer, tensor);
  return write_data(writer, tensor);
}

static void read_tensor(reader_t *reader, cleave_tensor_view_t *tensor) {
  cleave_wire_in_t *in = reader->in;
  *tensor = (cleave_tensor_view_t){.size = sizeof *tensor, .memory = CLEAVE_MEMORY_HOST};
  tensor->dtype = (cleave_dtype_t)cleave_wire_u32(in);
  tensor->rank = (int32_t)cleave_wire_u32(in);
  if ((tensor->dtype != CLEAVE_DTYPE_UNKNOWN && cleave_dtype_size(tensor->dtype) == 0) || tensor->rank < -1 ||
      tensor->rank > CLEAVE_MAX_RANK) {
    in->failed = true;
    tensor->rank = -1;
  }
  if (tensor->rank >= 0) {
    tensor->dims =
        cleave_wire_take(in, (size_t)tensor->rank, sizeof(int64_t), tensor->rank > 0 ? sizeof(int64_t) : 1);
  }
  tensor->version = cleave_wire_u64(in);
  tensor->layout = cleave_wire_text(in);
  tensor->storage = (cleave_storage_t)cleave_wire_index(in, CLEAVE_STORAGE_ROW_SPARSE + 1);
  tensor->is_weight = cleave_wire_index(in, 2) == 1;
  if (!in->failed) {
    read_sparse(reader, tensor);
  }
  if (!in->failed) {
    read_data(reader, tensor);
  }
}

/* ---- attributes ---- */

static cleave_status_t write_attribute(writer_t *writer, const cleave_attribute_view_t *attribute) {
  cleave_wire_out_t *out = writer->out;
  cleave_wire_put_text(out, attribute->name);
  cleave_wire_put_u32(out, (uint32_t)attribute->kind);
  switch (attribute->kind) {
    case CLEAVE_ATTRIBUTE_INT: cleave_wire_put_u64(out, (uint64_t)attribute->i); break;
    case CLEAVE_ATTRIBUTE_FLOAT: cleave_wire_put_f64(out, attribute->f); break;
    case CLEAVE_ATTRIBUTE_STRING: cleave_wire_put_string(out, attribute->s, attribute->count); break;
    case CLEAVE_ATTRIBUTE_INTS:
      cleave_wire_put_u32(out, attribute->count);
      cleave_wire_put(out, attribute->ints, attribute->count * sizeof(int64_t), sizeof(int64_t));
      break;
    case CLEAVE_ATTRIBUTE_FLOATS:
      cleave_wire_put_u32(out, attribute->count);
      cleave_wire_put(out, attribute->floats, attribute->count * sizeof(float), sizeof(float));
      break;
    case CLEAVE_ATTRIBUTE_STRINGS:
      cleave_wire_put_u32(out, attribute->count);
      for (uint32_t k = 0; k < attribute->count; k++) {
        cleave_wire_put_text(out, attribute->strings[k]);
      }
      break;
    case CLEAVE_ATTRIBUTE_TENSOR: return write_tensor(writer, attribute->tensor);
  }
  return CLEAVE_OK;
}

static void read_attribute(reader_t *reader, cleave_attribute_view_t *attribute) {
  cleave_wire_in_t *in = reader->in;
  *attribute = (cleave_attribute_view_t){.size = sizeof *attribute, .name = cleave_wire_named(in)};
  uint32_t kind = cleave_wire_u32(in);
  attribute->kind = (cleave_attribute_kind_t)kind;
  switch (kind) {
    case CLEAVE_ATTRIBUTE_INT: attribute->i = (int64_t)cleave_wire_u64(in); break;
    case CLEAVE_ATTRIBUTE_FLOAT: attribute->f = cleave_wire_f64(in); break;
    case CLEAVE_ATTRIBUTE_STRING: attribute->s = cleave_wire_string(in, &attribute->count); break;
    case CLEAVE_ATTRIBUTE_INTS:
      attribute->count = cleave_wire_u32(in);
      attribute->ints = cleave_wire_take(in, attribute->count, sizeof(int64_t), sizeof(int64_t));
      break;
    case CLEAVE_ATTRIBUTE_FLOATS:
      attribute->count = cleave_wire_u32(in);
      attribute->floats = cleave_wire_take(in, attribute->count, sizeof(float), sizeof(float));
      break;
    case CLEAVE_ATTRIBUTE_STRINGS: {
      attribute->count = cleave_wire_count(in, MIN_TEXT);
      const char **strings = make(reader, attribute->count, sizeof *strings);
      for (uint32_t k = 0; strings != NULL && k < attribute->count; k++) {
        strings[k] = cleave_wire_named(in);
      }
      attribute->strings = strings;
      break;
    }
    case CLEAVE_ATTRIBUTE_TENSOR: {
      cleave_tensor_view_t *tensor = make(reader, 1, sizeof *tensor);
      if (tensor != NULL) {
        read_tensor(reader, tensor);
      }
      attribute->tensor = tensor;
      break;
    }
    default: in->failed = true;
  }
}

static cleave_status_t write_attributes(writer_t *writer, const cleave_attribute_view_t *items,
                                        uint32_t count) {
  cleave_wire_put_u32(writer->out, count);
  for (uint32_t k = 0; k < count; k++) {
    CLEAVE_TRY(write_attribute(writer, &items[k]));
  }
  return CLEAVE_OK;
}

static const cleave_attribute_view_t *read_attributes(reader_t *reader, uint32_t *out_count) {
  *out_count = cleave_wire_count(reader->in, MIN_ATTRIBUTE);
  cleave_attribute_view_t *items = make(reader, *out_count, sizeof *items);
  for (uint32_t k = 0; items != NULL && k < *out_count && !reader->in->failed; k++) {
    read_attribute(reader, &items[k]);
  }
  return items;
}

/* ---- values and nodes ---- */

static cleave_status_t write_values(writer_t *writer, const cleave_region_view_t *region) {
  for (uint32_t k = 0; k < region->value_count; k++) {
    const cleave_value_view_t *value = &region->values[k];
    cleave_wire_put_text(writer->out, value->name);
    cleave_wire_put_u32(writer->out, value->producer);
    cleave_wire_put_u32(writer->out, value->is_output);
    CLEAVE_TRY(write_tensor(writer, &value->tensor));
  }
  return CLEAVE_OK;
}

static void read_values(reader_t *reader, cleave_region_view_t *region) {
  cleave_value_view_t *values = make(reader, region->value_count, sizeof *values);
  for (uint32_t k = 0; values != NULL && k < region->value_count && !reader->in->failed; k++) {
    values[k] = (cleave_value_view_t){.size = sizeof *values, .name = cleave_wire_named(reader->in)};
    values[k].producer = read_optional_index(reader, region->node_count);
    values[k].is_output = cleave_wire_index(reader->in, 2) == 1;
    read_tensor(reader, &values[k].tensor);
  }
  region->values = values;
}

static void write_indices(writer_t *writer, const uint32_t *indices, uint32_t count) {
  cleave_wire_put(writer->out, indices, (size_t)count * sizeof *indices, sizeof *indices);
}

static const uint32_t *read_indices(reader_t *reader, uint32_t count, uint32_t limit, bool may_be_none) {
  const uint32_t *indices = cleave_wire_take(reader->in, count, sizeof *indices, sizeof *indices);
  for (uint32_t k = 0; indices != NULL && k < count; k++) {
    if (indices[k] >= limit && !(may_be_none && indices[k] == CLEAVE_INDEX_NONE)) {
      reader->in->failed = true;
    }
  }
  return indices;
}

static cleave_status_t write_nodes(writer_t *writer, const cleave_region_view_t *region) {
  for (uint32_t k = 0; k < region->node_count; k++) {
    const cleave_node_view_t *node = &region->nodes[k];
    cleave_wire_put_text(writer->out, node->op);
    cleave_wire_put_text(writer->out, node->domain);
    cleave_wire_put_text(writer->out, node->name);
    cleave_wire_put_u32(writer->out, (uint32_t)node->opset_version);
    cleave_wire_put_u32(writer->out, node->fusion);
    cleave_wire_put_u32(writer->out, node->input_count);
    cleave_wire_put_u32(writer->out, node->output_count);
    write_indices(writer, node->inputs, node->input_count);
    write_indices(writer, node->outputs, node->output_count);
    CLEAVE_TRY(write_attributes(writer, node->attributes, node->attribute_count));
  }
  return CLEAVE_OK;
}

static void read_nodes(reader_t *reader, cleave_region_view_t *region) {
  cleave_wire_in_t *in = reader->in;
  cleave_node_view_t *nodes = make(reader, region->node_count, sizeof *nodes);
  for (uint32_t k = 0; nodes != NULL && k < region->node_count && !in->failed; k++) {
    cleave_node_view_t *node = &nodes[k];
    *node = (cleave_node_view_t){.size = sizeof *node, .op = cleave_wire_named(in)};
    node->domain = cleave_wire_named(in);
    node->name = cleave_wire_named(in);
    node->opset_version = (int32_t)cleave_wire_u32(in);
    node->fusion = read_optional_index(reader, region->fusion_count);
    node->input_count = cleave_wire_u32(in);
    node->output_count = cleave_wire_u32(in);
    node->inputs = read_indices(reader, node->input_count, region->value_count, true);
    node->outputs = read_indices(reader, node->output_count, region->value_count, true);
    node->attributes = read_attributes(reader, &node->attribute_count);
  }
  region->nodes = nodes;
}

/* ---- fusions and what a region says of itself ---- */

static void write_fusions(writer_t *writer, const cleave_region_view_t *region) {
  for (uint32_t f = 0; f < region->fusion_count; f++) {
    const cleave_fusion_view_t *fusion = &region->fusions[f];
    cleave_wire_put_text(writer->out, fusion->rule);
    cleave_wire_put_u32(writer->out, fusion->node_count);
    write_indices(writer, fusion->nodes, fusion->node_count);
    for (uint32_t k = 0; k < fusion->node_count; k++) {
      cleave_wire_put_text(writer->out, fusion->labels[k]);
    }
  }
}

static void read_fusions(reader_t *reader, cleave_region_view_t *region) {
  cleave_wire_in_t *in = reader->in;
  cleave_fusion_view_t *fusions = make(reader, region->fusion_count, sizeof *fusions);
  for (uint32_t f = 0; fusions != NULL && f < region->fusion_count && !in->failed; f++) {
    fusions[f] = (cleave_fusion_view_t){.size = sizeof *fusions, .rule = cleave_wire_named(in)};
    uint32_t count = cleave_wire_count(in, sizeof(uint32_t) + MIN_TEXT);
    fusions[f].nodes = read_indices(reader, count, region->node_count, false);
    const char **labels = make(reader, count, sizeof *labels);
    for (uint32_t k = 0; labels != NULL && k < count; k++) {
      labels[k] = cleave_wire_named(in);
    }
    fusions[f].labels = labels;
    fusions[f].node_count = count;
  }
  region->fusions = fusions;
}

static cleave_status_t write_additions(writer_t *writer, const cleave_region_view_t *region) {
  bool has_additions = region->size > CLEAVE_REGION_VIEW_SIZE_REQUIRED;
  CLEAVE_TRY(write_attributes(writer, region->attributes, has_additions ? region->attribute_count : 0));
  bool has_lists = has_additions && region->fusion_attributes != NULL;
  cleave_wire_put_u32(writer->out, has_lists ? region->fusion_count : 0);
  for (uint32_t f = 0; has_lists && f < region->fusion_count; f++) {
    const cleave_attribute_list_t *list = &region->fusion_attributes[f];
    CLEAVE_TRY(write_attributes(writer, list->items, list->count));
  }
  bool has_flops = has_additions && region->flops != NULL;
  cleave_wire_put_u32(writer->out, has_flops ? region->node_count : 0);
  if (has_flops) {
    cleave_wire_put(writer->out, region->flops, region->node_count * sizeof(double), sizeof(double));
  }
  return CLEAVE_OK;
}

static void read_additions(reader_t *reader, cleave_region_view_t *region) {
  cleave_wire_in_t *in = reader->in;
  region->attributes = read_attributes(reader, &region->attribute_count);
  uint32_t count = cleave_wire_count(in, MIN_LIST);
  in->failed = in->failed || (count != 0 && count != region->fusion_count);
  cleave_attribute_list_t *lists = count == 0 ? NULL : make(reader, region->fusion_count, sizeof *lists);
  for (uint32_t f = 0; lists != NULL && f < count && !in->failed; f++) {
    lists[f].items = read_attributes(reader, &lists[f].count);
  }
  region->fusion_attributes = lists;
  count = cleave_wire_u32(in);
  in->failed = in->failed || (count != 0 && count != region->node_count);
  region->flops = count == 0 ? NULL : cleave_wire_take(in, count, sizeof(double), sizeof(double));
}

/* ---- the whole ---- */

cleave_status_t cleave_region_write(const cleave_region_view_t *region, cleave_region_share_t share,
                                    void *context, cleave_wire_out_t *out, cleave_error_t *error) {
  writer_t writer = {.out = out, .share = share, .context = context, .error = error};
  cleave_wire_put_text(out, region->name);
  cleave_wire_put_text(out, region->rule);
  cleave_wire_put_u64(out, region->hash);
  cleave_wire_put_u32(out, region->value_count);
  cleave_wire_put_u32(out, region->node_count);
  cleave_wire_put_u32(out, region->fusion_count);
  cleave_wire_put_u32(out, region->input_count);
  cleave_wire_put_u32(out, region->output_count);
  CLEAVE_TRY(write_values(&writer, region));
  CLEAVE_TRY(write_nodes(&writer, region));
  write_fusions(&writer, region);
  write_indices(&writer, region->inputs, region->input_count);
  write_indices(&writer, region->outputs, region->output_count);
  CLEAVE_TRY(write_additions(&writer, region));
  return out->failed ? cleave_error_out_of_memory(error) : CLEAVE_OK;
}

cleave_status_t cleave_region_read(cleave_wire_in_t *in, cleave_arena_t *arena, cleave_region_find_t find,
                                   void *context, cleave_region_view_t *out_region, cleave_error_t *error) {
  reader_t reader = {.in = in, .arena = arena, .find = find, .context = context};
  cleave_region_view_t *region = out_region;
  *region = (cleave_region_view_t){.size = sizeof *region};
  region->name = cleave_wire_named(in);
  region->rule = cleave_wire_named(in);
  region->hash = cleave_wire_u64(in);
  region->value_count = cleave_wire_count(in, MIN_VALUE);
  region->node_count = cleave_wire_count(in, MIN_NODE);
  region->fusion_count = cleave_wire_count(in, MIN_FUSION);
  region->input_count = cleave_wire_u32(in);
  region->output_count = cleave_wire_u32(in);
  read_values(&reader, region);
  read_nodes(&reader, region);
  read_fusions(&reader, region);
  region->inputs = read_indices(&reader, region->input_count, region->value_count, false);
  region->outputs = read_indices(&reader, region->output_count, region->value_count, false);
  read_additions(&reader, region);
  if (reader.out_of_memory) {
    return cleave_error_out_of_memory(error);
  }
  return in->failed ? cleave_error_set(error, CLEAVE_ERROR_FORMAT, "the description of a region is malformed")
                    : CLEAVE_OK;
}
