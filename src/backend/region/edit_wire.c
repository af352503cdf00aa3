// SPDX-License-Identifier: Apache-2.0
// Both directions side by side, like those of regions (region_wire.c), which stricter things are asked of.
#include "backend/region/edit_wire.h"

#include <string.h>

#include "backend/region/region_wire.h"

/* How a list or some data comes. */
typedef enum part { PART_MISSING, PART_SENT, PART_TEXTS, PART_KEPT_BACK, PART_COUNT } part_t;

enum { DATA_ALIGNMENT = 16, MIN_TEXT = 4, MIN_ATTRIBUTE = 12 };

/* Stands for what is there and was not sent: nobody looks at it. */
static const int64_t kept_back[1];

void cleave_edit_put_text(cleave_wire_out_t *out, const char *text) {
  if (text == NULL) {
    cleave_wire_put_text(out, NULL);
  } else {
    cleave_wire_put_string(out, text, (uint32_t)strnlen(text, CLEAVE_EDIT_TEXT_LIMIT));
  }
}

static void *make(cleave_wire_in_t *in, cleave_arena_t *arena, uint32_t count, size_t size) {
  void *memory = in->failed ? NULL : cleave_arena_allocate(arena, count, size);
  in->failed = in->failed || memory == NULL;
  return memory;
}

/* ---- lists of numbers ---- */

static part_t part_of(const void *items, uint32_t count) {
  return items == NULL ? PART_MISSING : count > CLEAVE_EDIT_LIST_LIMIT ? PART_KEPT_BACK : PART_SENT;
}

static void put_list(cleave_wire_out_t *out, const void *items, uint32_t count, size_t size) {
  part_t part = part_of(items, count);
  cleave_wire_put_u32(out, count);
  cleave_wire_put_u32(out, (uint32_t)part);
  if (part == PART_SENT) {
    cleave_wire_put(out, items, count * size, size);
  }
}

static const void *take_list(cleave_wire_in_t *in, uint32_t *out_count, size_t size) {
  *out_count = cleave_wire_u32(in);
  uint32_t part = cleave_wire_index(in, PART_COUNT);
  return part == PART_SENT        ? cleave_wire_take(in, *out_count, size, size)
         : part == PART_KEPT_BACK ? (const void *)kept_back
                                  : NULL;
}

void cleave_edit_put_indices(cleave_wire_out_t *out, const uint32_t *items, uint32_t count) {
  put_list(out, items, count, sizeof *items);
}

/* A list that was kept back is too long for all who read one. */
const uint32_t *cleave_edit_indices(cleave_wire_in_t *in, uint32_t *out_count) {
  const uint32_t *items = take_list(in, out_count, sizeof *items);
  in->failed = in->failed || (items == (const void *)kept_back && *out_count <= CLEAVE_EDIT_LIST_LIMIT);
  return in->failed ? NULL : items;
}

/* ---- texts ---- */

static void put_texts(cleave_wire_out_t *out, const char *const *texts, size_t count) {
  for (size_t k = 0; k < count; k++) {
    cleave_edit_put_text(out, texts[k]);
  }
}

static const char *const *take_texts(cleave_wire_in_t *in, cleave_arena_t *arena, size_t count) {
  if (count > (in->length - in->at) / MIN_TEXT) {
    in->failed = true;
    return NULL;
  }
  const char **texts = make(in, arena, (uint32_t)count, sizeof *texts);
  for (size_t k = 0; texts != NULL && k < count; k++) {
    texts[k] = cleave_wire_text(in);
  }
  return texts;
}

/* ---- tensors ---- */

/* Data is measured before anything of it is read. */
static void put_data(cleave_wire_out_t *out, const cleave_tensor_view_t *tensor, bool with_data) {
  size_t bytes = 0;
  bool has_shape =
      tensor->rank >= 0 && tensor->rank <= CLEAVE_MAX_RANK && (tensor->rank == 0 || tensor->dims != NULL);
  bool is_plain = has_shape && tensor->storage == CLEAVE_STORAGE_DENSE &&
                  tensor->memory == CLEAVE_MEMORY_HOST && cleave_tensor_view_bytes(tensor, &bytes) &&
                  bytes <= CLEAVE_EDIT_LIMIT;
  part_t part = tensor->data == NULL || !with_data     ? PART_MISSING
                : !is_plain                            ? PART_KEPT_BACK
                : tensor->dtype == CLEAVE_DTYPE_STRING ? PART_TEXTS
                                                       : PART_SENT;
  cleave_wire_put_u32(out, (uint32_t)part);
  if (part == PART_SENT) {
    cleave_wire_put(out, tensor->data, bytes, DATA_ALIGNMENT);
  } else if (part == PART_TEXTS) {
    put_texts(out, tensor->data, bytes / sizeof(const char *));
  }
}

static const void *take_data(cleave_wire_in_t *in, cleave_arena_t *arena,
                             const cleave_tensor_view_t *tensor) {
  size_t bytes = 0;
  uint32_t part = cleave_wire_index(in, PART_COUNT);
  if (in->failed || part == PART_MISSING) {
    return NULL;
  }
  bool is_plain = tensor->storage == CLEAVE_STORAGE_DENSE && tensor->memory == CLEAVE_MEMORY_HOST &&
                  (tensor->rank <= 0 || tensor->dims != NULL) && tensor->rank <= CLEAVE_MAX_RANK &&
                  cleave_tensor_view_bytes(tensor, &bytes) && bytes <= CLEAVE_EDIT_LIMIT;
  bool has_texts = tensor->dtype == CLEAVE_DTYPE_STRING;
  if (is_plain != (part != PART_KEPT_BACK) || (is_plain && has_texts != (part == PART_TEXTS))) {
    in->failed = true;
    return NULL;
  }
  return part == PART_KEPT_BACK ? (const void *)kept_back
         : part == PART_TEXTS   ? (const void *)take_texts(in, arena, bytes / sizeof(const char *))
                                : cleave_wire_take(in, bytes, 1, DATA_ALIGNMENT);
}

void cleave_edit_put_tensor(cleave_wire_out_t *out, const cleave_tensor_view_t *tensor, bool with_data) {
  cleave_wire_put_u32(out, tensor != NULL);
  if (tensor == NULL) {
    return;
  }
  bool has_dims = tensor->rank > 0 && tensor->rank <= CLEAVE_MAX_RANK && tensor->dims != NULL;
  cleave_wire_put_u32(out, (uint32_t)tensor->dtype);
  cleave_wire_put_u32(out, (uint32_t)tensor->rank);
  put_list(out, has_dims ? tensor->dims : NULL, has_dims ? (uint32_t)tensor->rank : 0, sizeof(int64_t));
  cleave_wire_put_u32(out, (uint32_t)tensor->storage);
  cleave_wire_put_u32(out, tensor->memory);
  put_data(out, tensor, with_data);
}

const cleave_tensor_view_t *cleave_edit_tensor(cleave_wire_in_t *in, cleave_arena_t *arena) {
  uint32_t count = 0;
  cleave_tensor_view_t *tensor = cleave_wire_index(in, 2) == 1 ? make(in, arena, 1, sizeof *tensor) : NULL;
  if (tensor == NULL) {
    return NULL;
  }
  *tensor = (cleave_tensor_view_t){.size = sizeof *tensor};
  tensor->dtype = (cleave_dtype_t)(int32_t)cleave_wire_u32(in);
  tensor->rank = (int32_t)cleave_wire_u32(in);
  tensor->dims = take_list(in, &count, sizeof(int64_t));
  if (tensor->dims == kept_back ||
      (tensor->dims != NULL &&
       (tensor->rank < 0 || count != (uint32_t)tensor->rank || count > CLEAVE_MAX_RANK))) {
    in->failed = true;
    return NULL;
  }
  tensor->storage = (cleave_storage_t)(int32_t)cleave_wire_u32(in);
  tensor->memory = cleave_wire_u32(in);
  tensor->data = take_data(in, arena, tensor);
  return in->failed ? NULL : tensor;
}

/* ---- attributes ---- */

void cleave_edit_put_attribute(cleave_wire_out_t *out, const cleave_attribute_view_t *attribute) {
  cleave_wire_put_u32(out, attribute != NULL);
  if (attribute == NULL) {
    return;
  }
  cleave_edit_put_text(out, attribute->name);
  cleave_wire_put_u32(out, (uint32_t)attribute->kind);
  switch (attribute->kind) {
    case CLEAVE_ATTRIBUTE_INT: cleave_wire_put_u64(out, (uint64_t)attribute->i); break;
    case CLEAVE_ATTRIBUTE_FLOAT: cleave_wire_put_f64(out, attribute->f); break;
    case CLEAVE_ATTRIBUTE_STRING: cleave_edit_put_text(out, attribute->s); break;
    case CLEAVE_ATTRIBUTE_INTS: put_list(out, attribute->ints, attribute->count, sizeof(int64_t)); break;
    case CLEAVE_ATTRIBUTE_FLOATS: put_list(out, attribute->floats, attribute->count, sizeof(float)); break;
    case CLEAVE_ATTRIBUTE_STRINGS: {
      part_t part = part_of(attribute->strings, attribute->count);
      cleave_wire_put_u32(out, attribute->count);
      cleave_wire_put_u32(out, (uint32_t)part);
      if (part == PART_SENT) {
        put_texts(out, attribute->strings, attribute->count);
      }
      break;
    }
    case CLEAVE_ATTRIBUTE_TENSOR: cleave_edit_put_tensor(out, attribute->tensor, true); break;
    default: break; /* the editor says what it thinks of it */
  }
}

static void take_strings(cleave_wire_in_t *in, cleave_arena_t *arena, cleave_attribute_view_t *attribute) {
  attribute->count = cleave_wire_u32(in);
  uint32_t part = cleave_wire_index(in, PART_COUNT);
  if (part == PART_SENT) {
    attribute->strings = take_texts(in, arena, attribute->count);
  } else if (part == PART_KEPT_BACK && attribute->count > CLEAVE_EDIT_LIST_LIMIT) {
    attribute->strings = (const char *const *)(const void *)kept_back;
  } else {
    in->failed = in->failed || part != PART_MISSING;
  }
}

const cleave_attribute_view_t *cleave_edit_attribute(cleave_wire_in_t *in, cleave_arena_t *arena) {
  cleave_attribute_view_t *attribute =
      cleave_wire_index(in, 2) == 1 ? make(in, arena, 1, sizeof *attribute) : NULL;
  if (attribute == NULL) {
    return NULL;
  }
  *attribute = (cleave_attribute_view_t){.size = sizeof *attribute, .name = cleave_wire_text(in)};
  uint32_t kind = cleave_wire_u32(in);
  attribute->kind = (cleave_attribute_kind_t)kind;
  switch (kind) {
    case CLEAVE_ATTRIBUTE_INT: attribute->i = (int64_t)cleave_wire_u64(in); break;
    case CLEAVE_ATTRIBUTE_FLOAT: attribute->f = cleave_wire_f64(in); break;
    case CLEAVE_ATTRIBUTE_STRING: attribute->s = cleave_wire_text(in); break;
    case CLEAVE_ATTRIBUTE_INTS: attribute->ints = take_list(in, &attribute->count, sizeof(int64_t)); break;
    case CLEAVE_ATTRIBUTE_FLOATS: attribute->floats = take_list(in, &attribute->count, sizeof(float)); break;
    case CLEAVE_ATTRIBUTE_STRINGS: take_strings(in, arena, attribute); break;
    case CLEAVE_ATTRIBUTE_TENSOR: attribute->tensor = cleave_edit_tensor(in, arena); break;
    default: break;
  }
  bool is_list = kind == CLEAVE_ATTRIBUTE_INTS || kind == CLEAVE_ATTRIBUTE_FLOATS;
  bool is_kept_back = (const void *)attribute->ints == (const void *)kept_back ||
                      (const void *)attribute->floats == (const void *)kept_back;
  in->failed = in->failed || (is_list && is_kept_back && attribute->count <= CLEAVE_EDIT_LIST_LIMIT);
  return in->failed ? NULL : attribute;
}

void cleave_edit_put_attributes(cleave_wire_out_t *out, const cleave_attribute_view_t *items,
                                uint32_t count) {
  part_t part = part_of(items, count);
  cleave_wire_put_u32(out, count);
  cleave_wire_put_u32(out, (uint32_t)part);
  for (uint32_t k = 0; part == PART_SENT && k < count; k++) {
    cleave_edit_put_attribute(out, &items[k]);
  }
}

const cleave_attribute_view_t *cleave_edit_attributes(cleave_wire_in_t *in, cleave_arena_t *arena,
                                                      uint32_t *out_count) {
  *out_count = cleave_wire_u32(in);
  uint32_t part = cleave_wire_index(in, PART_COUNT);
  if (part != PART_SENT) {
    in->failed =
        in->failed || part == PART_TEXTS || (part == PART_KEPT_BACK && *out_count <= CLEAVE_EDIT_LIST_LIMIT);
    return part == PART_KEPT_BACK && !in->failed ? (const void *)kept_back : NULL;
  }
  if (*out_count > CLEAVE_EDIT_LIST_LIMIT || *out_count > (in->length - in->at) / MIN_ATTRIBUTE) {
    in->failed = true;
    return NULL;
  }
  cleave_attribute_view_t *items = make(in, arena, *out_count, sizeof *items);
  for (uint32_t k = 0; items != NULL && k < *out_count; k++) {
    const cleave_attribute_view_t *item = cleave_edit_attribute(in, arena);
    if (item == NULL) {
      in->failed = true;
      return NULL;
    }
    items[k] = *item;
  }
  return in->failed ? NULL : items;
}
