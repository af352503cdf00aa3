// SPDX-License-Identifier: Apache-2.0
// Every record is described once: a function goes over its fields, and each field is written, or read and
// checked. Arrays of numbers, texts and data stay in the message; only structs with pointers are built anew.
// The reader never recurses, and allocates no more than a multiple of the message's length.
#include "backend/region/region_wire.h"

#include <string.h>

/* How a list or some data comes. KEPT_BACK: it is there, too long or of a wrong kind to be sent. */
typedef enum part { PART_NONE, PART_SENT, PART_TEXTS, PART_SHARED, PART_KEPT_BACK, PART_COUNT } part_t;

enum { DATA_ALIGNMENT = 16, MIN_TEXT = 4, MIN_ATTRIBUTE = 8, MIN_VALUE = 32, MIN_NODE = 28, MIN_FUSION = 8 };

/* Stands for what was kept back: nobody looks at it. */
static const int64_t kept_back[1];

typedef struct codec {
  cleave_wire_out_t *out; /* one of the two is NULL */
  cleave_wire_in_t *in;
  cleave_arena_t *arena;
  bool is_edit; /* as wrong as it may be */
  const cleave_region_view_t *region;
  cleave_region_share_t share;
  cleave_region_find_t find;
  void *context;
  cleave_status_t status;
  cleave_error_t *error;
} codec_t;

static bool has_failed(const codec_t *codec) {
  return codec->status != CLEAVE_OK || (codec->in != NULL && codec->in->failed);
}

/* Ends the reading unless something holds. */
static void expect(codec_t *codec, bool holds) {
  if (codec->in != NULL && !holds) {
    codec->in->failed = true;
  }
}

/* Memory for what is read; failing to get it ends the reading. */
static void *make(codec_t *codec, size_t count, size_t size) {
  void *memory = has_failed(codec) ? NULL : cleave_arena_allocate(codec->arena, count, size);
  if (memory == NULL && !has_failed(codec)) {
    codec->status = cleave_error_out_of_memory(codec->error);
  }
  expect(codec, memory != NULL);
  return memory;
}

/* ---- fields: each gives what was written or read ---- */

static uint32_t number(codec_t *codec, uint32_t value) {
  if (codec->in != NULL) {
    return cleave_wire_u32(codec->in);
  }
  cleave_wire_put_u32(codec->out, value);
  return value;
}

static uint32_t below(codec_t *codec, uint32_t value, uint32_t limit) {
  value = number(codec, value);
  expect(codec, value < limit);
  return has_failed(codec) ? 0 : value;
}

static bool flag(codec_t *codec, bool value) {
  return below(codec, value, 2) == 1;
}

static uint32_t optional_index(codec_t *codec, uint32_t value, uint32_t limit) {
  value = number(codec, value);
  expect(codec, value < limit || value == CLEAVE_INDEX_NONE);
  return value;
}

static uint64_t wide(codec_t *codec, uint64_t value) {
  if (codec->in != NULL) {
    return cleave_wire_u64(codec->in);
  }
  cleave_wire_put_u64(codec->out, value);
  return value;
}

static double real(codec_t *codec, double value) {
  if (codec->in != NULL) {
    return cleave_wire_f64(codec->in);
  }
  cleave_wire_put_f64(codec->out, value);
  return value;
}

/* A number of things that take at least `least` bytes each. */
static uint32_t count_of(codec_t *codec, uint32_t count, size_t least) {
  count = number(codec, count);
  expect(codec, codec->in == NULL || count <= (codec->in->length - codec->in->at) / least);
  return has_failed(codec) ? 0 : count;
}

static const char *text(codec_t *codec, const char *value) {
  if (codec->in != NULL) {
    return cleave_wire_text(codec->in);
  }
  if (codec->is_edit && value != NULL) {
    cleave_wire_put_string(codec->out, value, (uint32_t)strnlen(value, CLEAVE_EDIT_TEXT_LIMIT));
  } else {
    cleave_wire_put_text(codec->out, value);
  }
  return value;
}

/* Empty in a region that has none. */
static const char *name(codec_t *codec, const char *value) {
  value = text(codec, value);
  return value == NULL && !codec->is_edit ? "" : value;
}

static const void *array(codec_t *codec, const void *items, size_t count, size_t size, size_t alignment) {
  if (codec->in != NULL) {
    return cleave_wire_take(codec->in, count, size, alignment);
  }
  cleave_wire_put(codec->out, items, count * size, alignment);
  return items;
}

static part_t part_of(codec_t *codec, const void *items, uint32_t count) {
  bool is_long = codec->is_edit && count > CLEAVE_EDIT_LIST_LIMIT;
  part_t part = (part_t)below(codec,
                              items == NULL ? PART_NONE
                              : is_long     ? PART_KEPT_BACK
                                            : PART_SENT,
                              PART_COUNT);
  expect(codec,
         part == PART_NONE ? codec->is_edit || count == 0 : part == (is_long ? PART_KEPT_BACK : PART_SENT));
  return has_failed(codec) ? PART_NONE : part;
}

/* A list of numbers, and its length. */
static const void *list(codec_t *codec, const void *items, uint32_t *count, size_t size) {
  *count = number(codec, *count);
  part_t part = part_of(codec, items, *count);
  return part == PART_SENT        ? array(codec, items, *count, size, size)
         : part == PART_KEPT_BACK ? (const void *)kept_back
                                  : NULL;
}

static const uint32_t *indices(codec_t *codec, const uint32_t *items, uint32_t count, uint32_t limit,
                               bool may_be_none) {
  const uint32_t *found = array(codec, items, count, sizeof *found, sizeof *found);
  for (uint32_t k = 0; codec->in != NULL && found != NULL && k < count; k++) {
    expect(codec, found[k] < limit || (may_be_none && found[k] == CLEAVE_INDEX_NONE));
  }
  return found;
}

/* Structs one by one; none if one of them cannot be read. Writing goes over a copy. */
static const void *structs(codec_t *codec, const void *items, size_t count, size_t size,
                           void (*one)(codec_t *codec, void *item)) {
  union {
    cleave_value_view_t value;
    cleave_node_view_t node;
    cleave_fusion_view_t fusion;
    cleave_attribute_view_t attribute;
  } copy;
  char *made = codec->in != NULL ? make(codec, count, size) : NULL;
  for (size_t k = 0; !has_failed(codec) && k < count; k++) {
    if (made == NULL) {
      memcpy(&copy, (const char *)items + k * size, size);
    }
    one(codec, made == NULL ? (void *)&copy : made + k * size);
  }
  return codec->in == NULL ? items : has_failed(codec) ? NULL : made;
}

static void text_item(codec_t *codec, void *item) {
  const char **value = item;
  *value = name(codec, *value);
}

static const void *texts(codec_t *codec, const void *items, size_t count) {
  expect(codec, codec->in == NULL || count <= (codec->in->length - codec->in->at) / MIN_TEXT);
  return structs(codec, items, count, sizeof(const char *), text_item);
}

/* ---- tensors ---- */

static const cleave_sparse_view_t *sparse(codec_t *codec, const cleave_tensor_view_t *tensor) {
  if (!flag(codec, tensor->sparse != NULL)) {
    return NULL;
  }
  cleave_sparse_view_t own = {.size = sizeof own};
  own = tensor->sparse != NULL ? *tensor->sparse : own;
  cleave_sparse_view_t *made = codec->in != NULL ? make(codec, 1, sizeof *made) : &own;
  own.stored = (int64_t)wide(codec, (uint64_t)own.stored);
  if (flag(codec, own.indices != NULL && own.stored >= 0)) {
    own.indices = array(codec, own.indices, own.stored < 0 ? SIZE_MAX : (size_t)own.stored, sizeof(int64_t),
                        sizeof(int64_t));
  }
  bool is_csr = tensor->storage == CLEAVE_STORAGE_CSR && tensor->rank == 2 && tensor->dims[0] >= 0 &&
                tensor->dims[0] < INT64_MAX;
  if (flag(codec, is_csr && own.offsets != NULL)) {
    own.offsets = array(codec, own.offsets, is_csr ? (size_t)tensor->dims[0] + 1 : SIZE_MAX, sizeof(int64_t),
                        sizeof(int64_t));
  }
  if (made != NULL) {
    *made = own;
  }
  return codec->in != NULL ? made : tensor->sparse;
}

static bool has_shape(const cleave_tensor_view_t *tensor) {
  return tensor->rank >= 0 && tensor->rank <= CLEAVE_MAX_RANK && (tensor->rank == 0 || tensor->dims != NULL);
}

/* Whether data can be sent; it is measured before anything of it is read. */
static bool measure(const codec_t *codec, const cleave_tensor_view_t *tensor, size_t *out_bytes) {
  bool is_plain =
      !codec->is_edit || (tensor->storage == CLEAVE_STORAGE_DENSE && tensor->memory == CLEAVE_MEMORY_HOST);
  return is_plain && has_shape(tensor) && cleave_tensor_view_bytes(tensor, out_bytes) &&
         (!codec->is_edit || *out_bytes <= CLEAVE_EDIT_LIMIT);
}

/* Which part the data of a tensor is, and the number of one that is shared. */
static part_t choose_data(codec_t *codec, const cleave_tensor_view_t *tensor, size_t bytes, bool is_measured,
                          uint32_t *out_id) {
  *out_id = CLEAVE_INDEX_NONE;
  if (tensor->data == NULL || !is_measured || tensor->dtype == CLEAVE_DTYPE_STRING) {
    if (tensor->data != NULL && !is_measured && !codec->is_edit) {
      codec->status = cleave_error_set(codec->error, CLEAVE_ERROR_LIMIT, "a constant has no size");
    }
    return tensor->data == NULL ? PART_NONE : is_measured ? PART_TEXTS : PART_KEPT_BACK;
  }
  if (codec->share != NULL) {
    codec->status = codec->share(codec->context, tensor, bytes, out_id, codec->error);
  }
  return *out_id == CLEAVE_INDEX_NONE ? PART_SENT : PART_SHARED;
}

static const void *find_shared(codec_t *codec, const void *data, uint32_t id, size_t bytes) {
  id = number(codec, id);
  if (codec->in != NULL) {
    data = codec->find == NULL ? NULL : codec->find(codec->context, id, bytes);
    expect(codec, data != NULL);
  }
  return data;
}

static const void *tensor_data(codec_t *codec, const cleave_tensor_view_t *tensor) {
  size_t bytes = 0;
  uint32_t id = CLEAVE_INDEX_NONE;
  bool is_measured = measure(codec, tensor, &bytes);
  part_t part = codec->in != NULL ? PART_NONE : choose_data(codec, tensor, bytes, is_measured, &id);
  part = (part_t)below(codec, (uint32_t)part, PART_COUNT);
  bool has_texts = tensor->dtype == CLEAVE_DTYPE_STRING;
  expect(codec,
         part == PART_NONE || (part == PART_KEPT_BACK ? codec->is_edit && !is_measured
                                                      : is_measured && has_texts == (part == PART_TEXTS)));
  if (has_failed(codec) || part == PART_NONE) {
    return NULL;
  }
  return part == PART_KEPT_BACK ? (const void *)kept_back
         : part == PART_TEXTS   ? texts(codec, tensor->data, bytes / sizeof(const char *))
         : part == PART_SHARED  ? find_shared(codec, tensor->data, id, bytes)
                                : array(codec, tensor->data, bytes, 1, DATA_ALIGNMENT);
}

/* Codes members that only tensors of regions have, and checks the tensor. */
static void region_tensor(codec_t *codec, cleave_tensor_view_t *tensor) {
  bool is_known = tensor->dtype == CLEAVE_DTYPE_UNKNOWN || cleave_dtype_size(tensor->dtype) > 0;
  expect(codec, is_known && tensor->rank >= -1 && tensor->rank <= CLEAVE_MAX_RANK &&
                    (tensor->rank <= 0 || tensor->dims != NULL) && tensor->storage >= CLEAVE_STORAGE_DENSE &&
                    tensor->storage <= CLEAVE_STORAGE_ROW_SPARSE);
  tensor->version = wide(codec, tensor->version);
  tensor->layout = text(codec, tensor->layout);
  tensor->is_weight = flag(codec, tensor->is_weight);
  tensor->sparse = has_failed(codec) ? NULL : sparse(codec, tensor);
}

static void tensor_item(codec_t *codec, void *item) {
  cleave_tensor_view_t *tensor = item;
  bool has_dims = has_shape(tensor);
  uint32_t rank = has_dims ? (uint32_t)tensor->rank : 0;
  tensor->size = sizeof *tensor;
  tensor->dtype = (cleave_dtype_t)(int32_t)number(codec, (uint32_t)tensor->dtype);
  tensor->rank = (int32_t)number(codec, (uint32_t)tensor->rank);
  tensor->dims = list(codec, has_dims ? tensor->dims : NULL, &rank, sizeof(int64_t));
  expect(codec, tensor->dims == NULL ||
                    (tensor->rank >= 0 && rank == (uint32_t)tensor->rank && rank <= CLEAVE_MAX_RANK));
  tensor->storage = (cleave_storage_t)(int32_t)number(codec, (uint32_t)tensor->storage);
  tensor->memory = codec->is_edit ? number(codec, tensor->memory) : CLEAVE_MEMORY_HOST;
  if (!codec->is_edit) {
    region_tensor(codec, tensor);
  }
  tensor->data = has_failed(codec) ? NULL : tensor_data(codec, tensor);
}

static const cleave_tensor_view_t *optional_tensor(codec_t *codec, const cleave_tensor_view_t *tensor) {
  return flag(codec, tensor != NULL) ? structs(codec, tensor, 1, sizeof *tensor, tensor_item) : NULL;
}

/* ---- attributes ---- */

/* A text of a region has a length, and may hold zero bytes. */
static void attribute_text(codec_t *codec, cleave_attribute_view_t *attribute) {
  if (codec->is_edit) {
    attribute->s = text(codec, attribute->s);
  } else if (codec->in != NULL) {
    attribute->s = cleave_wire_string(codec->in, &attribute->count);
  } else {
    cleave_wire_put_string(codec->out, attribute->s, attribute->count);
  }
}

static void attribute_item(codec_t *codec, void *item) {
  cleave_attribute_view_t *a = item;
  a->size = sizeof *a;
  a->name = name(codec, a->name);
  uint32_t kind = number(codec, (uint32_t)a->kind);
  a->kind = (cleave_attribute_kind_t)kind;
  switch (kind) {
    case CLEAVE_ATTRIBUTE_INT: a->i = (int64_t)wide(codec, (uint64_t)a->i); break;
    case CLEAVE_ATTRIBUTE_FLOAT: a->f = real(codec, a->f); break;
    case CLEAVE_ATTRIBUTE_STRING: attribute_text(codec, a); break;
    case CLEAVE_ATTRIBUTE_INTS: a->ints = list(codec, a->ints, &a->count, sizeof *a->ints); break;
    case CLEAVE_ATTRIBUTE_FLOATS: a->floats = list(codec, a->floats, &a->count, sizeof *a->floats); break;
    case CLEAVE_ATTRIBUTE_STRINGS: {
      a->count = number(codec, a->count);
      part_t part = part_of(codec, a->strings, a->count);
      a->strings = part == PART_SENT        ? texts(codec, a->strings, a->count)
                   : part == PART_KEPT_BACK ? (const void *)kept_back
                                            : NULL;
      break;
    }
    case CLEAVE_ATTRIBUTE_TENSOR:
      a->tensor = optional_tensor(codec, a->tensor);
      expect(codec, codec->is_edit || a->tensor != NULL);
      break;
    default: expect(codec, codec->is_edit); /* the editor says what it thinks of it */
  }
}

static const cleave_attribute_view_t *attributes(codec_t *codec, const cleave_attribute_view_t *items,
                                                 uint32_t *count) {
  *count = number(codec, *count);
  part_t part = part_of(codec, items, *count);
  expect(codec, part != PART_SENT || codec->in == NULL ||
                    *count <= (codec->in->length - codec->in->at) / MIN_ATTRIBUTE);
  return part == PART_SENT        ? structs(codec, items, *count, sizeof *items, attribute_item)
         : part == PART_KEPT_BACK ? (const void *)kept_back
                                  : NULL;
}

/* ---- regions ---- */

static void value_item(codec_t *codec, void *item) {
  cleave_value_view_t *value = item;
  value->size = sizeof *value;
  value->name = name(codec, value->name);
  value->producer = optional_index(codec, value->producer, codec->region->node_count);
  value->is_output = flag(codec, value->is_output);
  tensor_item(codec, &value->tensor);
}

static void node_item(codec_t *codec, void *item) {
  cleave_node_view_t *node = item;
  uint32_t values = codec->region->value_count;
  node->size = sizeof *node;
  node->op = name(codec, node->op);
  node->domain = name(codec, node->domain);
  node->name = name(codec, node->name);
  node->opset_version = (int32_t)number(codec, (uint32_t)node->opset_version);
  node->fusion = optional_index(codec, node->fusion, codec->region->fusion_count);
  node->input_count = number(codec, node->input_count);
  node->output_count = number(codec, node->output_count);
  node->inputs = indices(codec, node->inputs, node->input_count, values, true);
  node->outputs = indices(codec, node->outputs, node->output_count, values, true);
  node->attributes = attributes(codec, node->attributes, &node->attribute_count);
}

static void fusion_item(codec_t *codec, void *item) {
  cleave_fusion_view_t *fusion = item;
  fusion->size = sizeof *fusion;
  fusion->rule = name(codec, fusion->rule);
  fusion->node_count = count_of(codec, fusion->node_count, sizeof(uint32_t) + MIN_TEXT);
  fusion->nodes = indices(codec, fusion->nodes, fusion->node_count, codec->region->node_count, false);
  fusion->labels = texts(codec, fusion->labels, fusion->node_count);
}

static void list_item(codec_t *codec, void *item) {
  cleave_attribute_list_t *own = item;
  own->items = attributes(codec, own->items, &own->count);
}

/* All fields. A region of an older header has none of the last three. */
static void region_fields(codec_t *codec, cleave_region_view_t *r) {
  r->name = name(codec, r->name);
  r->rule = name(codec, r->rule);
  r->hash = wide(codec, r->hash);
  r->value_count = count_of(codec, r->value_count, MIN_VALUE);
  r->node_count = count_of(codec, r->node_count, MIN_NODE);
  r->fusion_count = count_of(codec, r->fusion_count, MIN_FUSION);
  r->input_count = number(codec, r->input_count);
  r->output_count = number(codec, r->output_count);
  r->values = structs(codec, r->values, r->value_count, sizeof *r->values, value_item);
  r->nodes = structs(codec, r->nodes, r->node_count, sizeof *r->nodes, node_item);
  r->fusions = structs(codec, r->fusions, r->fusion_count, sizeof *r->fusions, fusion_item);
  r->inputs = indices(codec, r->inputs, r->input_count, r->value_count, false);
  r->outputs = indices(codec, r->outputs, r->output_count, r->value_count, false);
  r->attributes = attributes(codec, r->attributes, &r->attribute_count);
  bool has_lists = flag(codec, r->fusion_attributes != NULL);
  r->fusion_attributes = has_lists ? structs(codec, r->fusion_attributes, r->fusion_count,
                                             sizeof *r->fusion_attributes, list_item)
                                   : NULL;
  bool has_flops = flag(codec, r->flops != NULL);
  r->flops = has_flops ? array(codec, r->flops, r->node_count, sizeof *r->flops, sizeof *r->flops) : NULL;
}

cleave_status_t cleave_region_write(const cleave_region_view_t *region, cleave_region_share_t share,
                                    void *context, cleave_wire_out_t *out, cleave_error_t *error) {
  cleave_region_view_t copy = {0};
  codec_t codec = {.out = out, .region = &copy, .share = share, .context = context, .error = error};
  memcpy(&copy, region, region->size < sizeof copy ? CLEAVE_REGION_VIEW_SIZE_REQUIRED : sizeof copy);
  region_fields(&codec, &copy);
  return codec.status == CLEAVE_OK && out->failed ? cleave_error_out_of_memory(error) : codec.status;
}

cleave_status_t cleave_region_read(cleave_wire_in_t *in, cleave_arena_t *arena, cleave_region_find_t find,
                                   void *context, cleave_region_view_t *out_region, cleave_error_t *error) {
  codec_t codec = {
      .in = in, .arena = arena, .region = out_region, .find = find, .context = context, .error = error};
  *out_region = (cleave_region_view_t){.size = sizeof *out_region};
  region_fields(&codec, out_region);
  return codec.status == CLEAVE_OK && in->failed
             ? cleave_error_set(error, CLEAVE_ERROR_FORMAT, "the description of a region is malformed")
             : codec.status;
}

/* ---- steps of an editor ---- */

static codec_t edit_codec(const cleave_edit_wire_t *wire) {
  return (codec_t){.out = wire->out, .in = wire->in, .arena = wire->arena, .is_edit = true};
}

void cleave_edit_wire_value(const cleave_edit_wire_t *wire, const char **value_name,
                            const cleave_tensor_view_t **tensor) {
  codec_t codec = edit_codec(wire);
  *value_name = text(&codec, *value_name);
  *tensor = optional_tensor(&codec, *tensor);
}

void cleave_edit_wire_node(const cleave_edit_wire_t *wire, cleave_new_node_t *node) {
  codec_t codec = edit_codec(wire);
  node->domain = text(&codec, node->domain);
  node->op = text(&codec, node->op);
  node->name = text(&codec, node->name);
  node->inputs = list(&codec, node->inputs, &node->input_count, sizeof *node->inputs);
  node->attributes = attributes(&codec, node->attributes, &node->attribute_count);
  node->output_count = number(&codec, node->output_count);
}

void cleave_edit_wire_attribute(const cleave_edit_wire_t *wire, uint32_t *node,
                                const cleave_attribute_view_t **attribute) {
  codec_t codec = edit_codec(wire);
  *node = number(&codec, *node);
  bool is_there = flag(&codec, *attribute != NULL);
  *attribute = is_there ? structs(&codec, *attribute, 1, sizeof **attribute, attribute_item) : NULL;
}
