// SPDX-License-Identifier: Apache-2.0
// Tensors to JSON and back, bit by bit. What is read is hostile: nothing is made before the shape is known to
// fit, and numbers that the dtype cannot hold are refused.
#include "json/json_attribute.h"

#include <math.h>
#include <string.h>

#include "json/base64.h"

enum { MAX_READABLE = 16 }; /* elements of a constant that is a list of numbers */

bool cleave_tensor_borrow(const cleave_tensor_view_t *view, cleave_tensor_t *out_tensor) {
  *out_tensor = (cleave_tensor_t){.dtype = view->dtype, .rank = view->rank};
  size_t size = cleave_dtype_size(view->dtype);
  if (size == 0 || view->rank < 0 || view->rank > CLEAVE_MAX_RANK || view->data == NULL ||
      !cleave_shape_element_count(view->rank, view->dims, &out_tensor->count) ||
      !cleave_size_multiply((size_t)out_tensor->count, size, &out_tensor->bytes)) {
    return false;
  }
  for (int32_t d = 0; d < view->rank; d++) {
    out_tensor->dims[d] = view->dims[d];
  }
  out_tensor->data = (void *)(uintptr_t)view->data;
  return true;
}

static bool is_readable(const cleave_tensor_t *tensor) {
  bool readable = tensor->count <= MAX_READABLE;
  for (int64_t k = 0; readable && k < tensor->count && cleave_dtype_is_float(tensor->dtype); k++) {
    readable = isfinite(cleave_tensor_get_float(tensor, k)) != 0;
  }
  return readable && tensor->dtype != CLEAVE_DTYPE_U64;
}

static json_t *elements_json(const cleave_tensor_t *tensor) {
  json_t *list = json_array();
  for (int64_t k = 0; k < tensor->count; k++) {
    if (tensor->dtype == CLEAVE_DTYPE_STRING) {
      const char *text = ((const char *const *)tensor->data)[k];
      cleave_json_append(&list, cleave_json_bytes(text, strlen(text)));
    } else if (cleave_dtype_is_float(tensor->dtype)) {
      cleave_json_append(&list, cleave_json_real(cleave_tensor_get_float(tensor, k)));
    } else {
      cleave_json_append(&list, json_integer((json_int_t)cleave_tensor_get_int(tensor, k)));
    }
  }
  return list;
}

static json_t *base64_json(const cleave_tensor_t *tensor) {
  size_t length = cleave_base64_length(tensor->bytes);
  char *text = cleave_allocate(length, 1);
  if (text == NULL) {
    return NULL;
  }
  cleave_base64_encode(tensor->data, tensor->bytes, text);
  json_t *json = json_stringn(text, length);
  cleave_free(text);
  return json;
}

json_t *cleave_json_tensor_data(const cleave_tensor_t *tensor) {
  bool as_list = tensor->dtype == CLEAVE_DTYPE_STRING || is_readable(tensor);
  return as_list ? elements_json(tensor) : base64_json(tensor);
}

void cleave_json_set_tensor(json_t **object, const cleave_tensor_t *tensor) {
  json_t *shape = json_array();
  for (int32_t d = 0; d < tensor->rank; d++) {
    cleave_json_append(&shape, json_integer(tensor->dims[d]));
  }
  cleave_json_set(object, "dtype", cleave_json_text(cleave_dtype_name(tensor->dtype)));
  cleave_json_set(object, "shape", shape);
  cleave_json_set(object, "data", cleave_json_tensor_data(tensor));
}

/* ---- reading ---- */

cleave_status_t cleave_reader_get_dtype(cleave_json_reader_t *reader, const json_t *object,
                                        cleave_dtype_t *out_dtype) {
  const char *name = NULL;
  CLEAVE_TRY(cleave_reader_get_text(reader, object, "dtype", NULL, &name));
  *out_dtype = cleave_dtype_find(name);
  return *out_dtype != CLEAVE_DTYPE_UNKNOWN || strcmp(name, cleave_dtype_name(CLEAVE_DTYPE_UNKNOWN)) == 0
             ? CLEAVE_OK
             : cleave_reader_fail(reader, "dtype '%.40s' is unknown", name);
}

/* Integers and bools; of 64 bits without a sign the half that JSON has numbers for. */
static bool holds(cleave_dtype_t dtype, json_int_t number) {
  switch (dtype) {
    case CLEAVE_DTYPE_I32: return number >= INT32_MIN && number <= INT32_MAX;
    case CLEAVE_DTYPE_I16: return number >= INT16_MIN && number <= INT16_MAX;
    case CLEAVE_DTYPE_I8: return number >= INT8_MIN && number <= INT8_MAX;
    case CLEAVE_DTYPE_U64: return number >= 0;
    case CLEAVE_DTYPE_U32: return number >= 0 && number <= UINT32_MAX;
    case CLEAVE_DTYPE_U16: return number >= 0 && number <= UINT16_MAX;
    case CLEAVE_DTYPE_U8: return number >= 0 && number <= UINT8_MAX;
    case CLEAVE_DTYPE_BOOL: return number == 0 || number == 1;
    default: return true;
  }
}

static cleave_status_t read_element(cleave_json_reader_t *reader, const json_t *json, cleave_tensor_t *tensor,
                                    int64_t index) {
  if (tensor->dtype == CLEAVE_DTYPE_STRING) {
    const char *text = NULL;
    size_t length = 0;
    CLEAVE_TRY(cleave_reader_read_bytes(reader, json, &text, &length));
    return cleave_tensor_set_string(tensor, index, text, length, reader->error);
  }
  if (cleave_dtype_is_float(tensor->dtype)) {
    double number = 0.0;
    CLEAVE_TRY(cleave_reader_read_real(reader, json, &number));
    cleave_tensor_set_float(tensor, index, number);
    return !isfinite(number) || isfinite(cleave_tensor_get_float(tensor, index))
               ? CLEAVE_OK
               : cleave_reader_fail(reader, "data: %s cannot hold %g", cleave_dtype_name(tensor->dtype),
                                    number);
  }
  if (!json_is_integer(json)) {
    return cleave_reader_fail(reader, "data: expected whole numbers, found %s", cleave_reader_type(json));
  }
  json_int_t number = json_integer_value(json);
  if (!holds(tensor->dtype, number)) {
    return cleave_reader_fail(reader, "data: %s cannot hold %" JSON_INTEGER_FORMAT,
                              cleave_dtype_name(tensor->dtype), number);
  }
  if (tensor->dtype == CLEAVE_DTYPE_I64) {
    ((int64_t *)tensor->data)[index] = (int64_t)number;
  } else if (tensor->dtype == CLEAVE_DTYPE_U64) {
    ((uint64_t *)tensor->data)[index] = (uint64_t)number;
  } else {
    cleave_tensor_set_float(tensor, index, (double)number);
  }
  return CLEAVE_OK;
}

/* Is there as much data as the tensor is to have? Asked before there is a tensor. */
static cleave_status_t check_data(cleave_json_reader_t *reader, const json_t *data, cleave_dtype_t dtype,
                                  int64_t count, size_t bytes) {
  if (json_is_string(data) && dtype != CLEAVE_DTYPE_STRING) {
    return json_string_length(data) == cleave_base64_length(bytes)
               ? CLEAVE_OK
               : cleave_reader_fail(reader, "data: expected base64 of %zu byte%s", bytes,
                                    CLEAVE_PLURAL(bytes));
  }
  return json_is_array(data) && (int64_t)json_array_size(data) == count
             ? CLEAVE_OK
             : cleave_reader_fail(reader, "data: expected a list of %lld element%s%s", (long long)count,
                                  CLEAVE_PLURAL(count), dtype == CLEAVE_DTYPE_STRING ? "" : ", or base64");
}

static cleave_status_t read_data(cleave_json_reader_t *reader, const json_t *data, cleave_tensor_t *tensor) {
  if (json_is_string(data)) {
    return cleave_base64_decode(json_string_value(data), json_string_length(data), tensor->data,
                                tensor->bytes)
               ? CLEAVE_OK
               : cleave_reader_fail(reader, "data: expected base64 of %zu byte%s", tensor->bytes,
                                    CLEAVE_PLURAL(tensor->bytes));
  }
  for (int64_t k = 0; k < tensor->count; k++) {
    CLEAVE_TRY(read_element(reader, json_array_get(data, (size_t)k), tensor, k));
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_reader_read_tensor(cleave_json_reader_t *reader, const json_t *object,
                                          cleave_tensor_t **out_tensor) {
  size_t *left = reader->tensor_bytes;
  int64_t dims[CLEAVE_MAX_RANK];
  json_t *shape = NULL;
  cleave_dtype_t dtype = CLEAVE_DTYPE_UNKNOWN;
  CLEAVE_TRY(cleave_reader_get_dtype(reader, object, &dtype));
  CLEAVE_TRY(cleave_reader_get(reader, object, "shape", JSON_ARRAY, "a list", &shape));
  size_t rank = json_array_size(shape);
  bool fits = dtype != CLEAVE_DTYPE_UNKNOWN && rank <= CLEAVE_MAX_RANK;
  for (size_t k = 0; fits && k < rank; k++) {
    dims[k] = (int64_t)json_integer_value(json_array_get(shape, k));
    fits = json_is_integer(json_array_get(shape, k)) && dims[k] >= 0;
  }
  int64_t count = 0;
  size_t bytes = 0;
  fits = fits && cleave_shape_element_count((int32_t)rank, dims, &count) &&
         cleave_size_multiply((size_t)count, cleave_dtype_size(dtype), &bytes) && bytes <= *left;
  const json_t *data = json_object_get(object, "data");
  if (data == NULL) {
    return cleave_reader_fail(reader, "member 'data' is missing");
  }
  if (!fits) {
    return cleave_reader_fail(
        reader,
        "expected a constant of a known dtype, with at most %d dimensions, and %zu MiB in all constants",
        CLEAVE_MAX_RANK, *left >> 20);
  }
  CLEAVE_TRY(check_data(reader, data, dtype, count, bytes));
  *left -= bytes;
  cleave_tensor_t *tensor = NULL;
  CLEAVE_TRY(cleave_tensor_create(dtype, (int32_t)rank, dims, &tensor, reader->error));
  CLEAVE_TRY_OR(read_data(reader, data, tensor), cleave_tensor_release(tensor));
  cleave_tensor_touch(tensor);
  *out_tensor = tensor;
  return CLEAVE_OK;
}
