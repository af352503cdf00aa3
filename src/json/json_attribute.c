// SPDX-License-Identifier: Apache-2.0
// Both directions side by side. Floats keep their bits, a NaN's too.
#include "json/json_attribute.h"

#include <string.h>

static const char *const KINDS[] = {
    [CLEAVE_ATTRIBUTE_INT] = "int",       [CLEAVE_ATTRIBUTE_FLOAT] = "float",
    [CLEAVE_ATTRIBUTE_STRING] = "string", [CLEAVE_ATTRIBUTE_INTS] = "ints",
    [CLEAVE_ATTRIBUTE_FLOATS] = "floats", [CLEAVE_ATTRIBUTE_STRINGS] = "strings",
    [CLEAVE_ATTRIBUTE_TENSOR] = "tensor",
};

/* ---- writing ---- */

static json_t *item_json(const cleave_attribute_t *attribute, uint32_t index) {
  cleave_attribute_t item = cleave_attribute_item(attribute, index);
  switch (item.kind) {
    case CLEAVE_ATTRIBUTE_INT: return json_integer(item.i);
    case CLEAVE_ATTRIBUTE_FLOAT:
      return attribute->kind == item.kind ? cleave_json_real(item.f)
                                          : cleave_json_float(attribute->floats[index]);
    default: return cleave_json_bytes(item.s, item.count);
  }
}

static json_t *value_json(const cleave_attribute_t *attribute) {
  if (!cleave_attribute_is_list(attribute)) {
    return item_json(attribute, 0);
  }
  json_t *list = json_array();
  for (uint32_t k = 0; k < attribute->count; k++) {
    cleave_json_append(&list, item_json(attribute, k));
  }
  return list;
}

/* A graph's attribute holds its tensor, a view shows one. */
static void set_tensor(json_t **json, const cleave_attribute_t *attribute) {
  const cleave_tensor_view_t *view = attribute->tensor;
  cleave_tensor_t borrowed;
  if (view == NULL) {
    cleave_json_set_tensor(json, attribute->held);
  } else if (view->memory == CLEAVE_MEMORY_HOST && view->storage == CLEAVE_STORAGE_DENSE &&
             cleave_tensor_borrow(view, &borrowed)) {
    cleave_json_set_tensor(json, &borrowed);
  } else {
    cleave_json_set(json, "data", NULL);
  }
}

json_t *cleave_json_attribute(const cleave_attribute_t *attribute) {
  json_t *json = json_object();
  cleave_json_set(&json, "name", cleave_json_bytes(attribute->name, strlen(attribute->name)));
  cleave_json_set(&json, "kind", json_string(KINDS[attribute->kind]));
  if (attribute->kind == CLEAVE_ATTRIBUTE_TENSOR) {
    set_tensor(&json, attribute);
  } else {
    cleave_json_set(&json, "value", value_json(attribute));
  }
  return json;
}

json_t *cleave_json_attributes(const cleave_attribute_t *attributes, uint32_t count) {
  json_t *list = json_array();
  for (uint32_t k = 0; k < count; k++) {
    cleave_json_append(&list, cleave_json_attribute(&attributes[k]));
  }
  return list;
}

/* ---- reading ---- */

static cleave_status_t read_int(cleave_json_reader_t *reader, const json_t *json, int64_t *out_number) {
  *out_number = json_integer_value(json);
  return json_is_integer(json)
             ? CLEAVE_OK
             : cleave_reader_fail(reader, "expected a whole number, found %s", cleave_reader_type(json));
}

static cleave_status_t read_element(cleave_json_reader_t *reader, const json_t *json,
                                    cleave_attribute_kind_t kind, void *list, uint32_t k) {
  const char **texts = list;
  size_t length = 0;
  switch (kind) {
    case CLEAVE_ATTRIBUTE_INTS: return read_int(reader, json, &((int64_t *)list)[k]);
    case CLEAVE_ATTRIBUTE_FLOATS: return cleave_reader_read_float(reader, json, &((float *)list)[k]);
    default: break;
  }
  CLEAVE_TRY(cleave_reader_read_bytes(reader, json, &texts[k], &length));
  return strlen(texts[k]) == length ? CLEAVE_OK : cleave_reader_fail(reader, "a string with a zero byte");
}

static cleave_status_t read_elements(cleave_json_reader_t *reader, const json_t *json,
                                     cleave_attribute_t *attribute) {
  size_t count = json_array_size(json);
  if (!json_is_array(json) || count >= UINT32_MAX) {
    return cleave_reader_fail(reader, "expected a list, found %s", cleave_reader_type(json));
  }
  void *list = cleave_arena_allocate(reader->arena, count, sizeof(int64_t));
  CLEAVE_TRY_MEMORY(list, reader->error);
  for (uint32_t k = 0; k < (uint32_t)count; k++) {
    size_t before = cleave_reader_enter(reader, "", k);
    CLEAVE_TRY(read_element(reader, json_array_get(json, k), attribute->kind, list, k));
    cleave_reader_leave(reader, before);
  }
  attribute->count = (uint32_t)count;
  cleave_attribute_set_list(attribute, list);
  return CLEAVE_OK;
}

static cleave_status_t read_kind(cleave_json_reader_t *reader, const json_t *json,
                                 cleave_attribute_kind_t *out_kind) {
  const char *name = NULL;
  CLEAVE_TRY(cleave_reader_get_text(reader, json, "kind", NULL, &name));
  int last = reader->tensor_bytes != NULL ? CLEAVE_ATTRIBUTE_TENSOR : CLEAVE_ATTRIBUTE_STRINGS;
  for (int kind = CLEAVE_ATTRIBUTE_INT; kind <= last; kind++) {
    if (strcmp(name, KINDS[kind]) == 0) {
      *out_kind = (cleave_attribute_kind_t)kind;
      return CLEAVE_OK;
    }
  }
  return cleave_reader_fail(reader, "kind '%.40s' is none of int, float, string, ints, floats, strings%s",
                            name, reader->tensor_bytes != NULL ? ", tensor" : "");
}

static cleave_status_t read_attribute(cleave_json_reader_t *reader, json_t *json, void *item) {
  static const char *const keys[] = {"name", "kind", "value", NULL};
  static const char *const tensor_keys[] = {"name", "kind", "dtype", "shape", "data", NULL};
  cleave_attribute_t *attribute = item;
  size_t length = 0;
  const char *kind = json_string_value(json_object_get(json, "kind"));
  bool is_tensor = reader->tensor_bytes != NULL && kind != NULL && strcmp(kind, "tensor") == 0;
  attribute->size = sizeof *attribute;
  CLEAVE_TRY(cleave_reader_check_keys(reader, json, is_tensor ? tensor_keys : keys));
  CLEAVE_TRY(cleave_reader_get_name(reader, json, "name", true, &attribute->name));
  CLEAVE_TRY(read_kind(reader, json, &attribute->kind));
  const json_t *value = json_object_get(json, "value");
  if (value == NULL && !is_tensor) {
    return cleave_reader_fail(reader, "member 'value' is missing");
  }
  switch (attribute->kind) {
    case CLEAVE_ATTRIBUTE_TENSOR: return cleave_reader_read_tensor(reader, json, &attribute->held);
    case CLEAVE_ATTRIBUTE_INT: return read_int(reader, value, &attribute->i);
    case CLEAVE_ATTRIBUTE_FLOAT: return cleave_reader_read_real(reader, value, &attribute->f);
    case CLEAVE_ATTRIBUTE_STRING:
      CLEAVE_TRY(cleave_reader_read_bytes(reader, value, &attribute->s, &length));
      attribute->count = (uint32_t)length;
      return CLEAVE_OK;
    default: return read_elements(reader, value, attribute);
  }
}

cleave_status_t cleave_reader_get_attributes(cleave_json_reader_t *reader, const json_t *object,
                                             bool is_sorted, cleave_attribute_t **out_attributes,
                                             uint32_t *out_count) {
  cleave_attribute_t *attributes = NULL;
  *out_count = 0;
  cleave_status_t status = json_object_get(object, "attributes") == NULL
                               ? CLEAVE_OK
                               : cleave_reader_get_list(reader, object, "attributes", sizeof *attributes,
                                                        read_attribute, &attributes, out_count);
  *out_attributes = attributes;
  for (uint32_t k = 1; is_sorted && status == CLEAVE_OK && k < *out_count; k++) {
    if (strcmp(attributes[k - 1].name, attributes[k].name) >= 0) {
      status = cleave_reader_fail(reader, "attributes: expected in order of their names, each once");
    }
  }
  return status;
}
