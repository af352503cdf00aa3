// SPDX-License-Identifier: Apache-2.0
// SparseTensorProto: the elements that are not zero, and where they belong: in [NNZ] linear indices, or in
// [NNZ, rank] coordinates, in ascending order. What comes out is dense, with its sparse form beside.
#include <string.h>

#include "formats/onnx/onnx_proto.h"
#include "formats/onnx/onnx_tensor.h"
#include "tensor/sparse.h"

static const size_t most_bytes = (size_t)2 << 30;

typedef struct sparse_fields {
  cleave_bytes_t name;
  cleave_tensor_t *values;
  cleave_tensor_t *indices;
  int64_t dims[CLEAVE_MAX_RANK];
  size_t rank;
} sparse_fields_t;

static cleave_status_t parse_part(cleave_onnx_source_t *source, const cleave_protobuf_t *reader,
                                  const cleave_protobuf_field_t *field, cleave_bytes_t *out_name,
                                  cleave_tensor_t **tensor, cleave_error_t *error) {
  cleave_protobuf_t message;
  CLEAVE_TRY(cleave_protobuf_enter(reader, field, "TensorProto", &message, error));
  if (*tensor != NULL) {
    return cleave_error_set(error, CLEAVE_ERROR_FORMAT, "field %u occurs twice", (unsigned)field->number);
  }
  return cleave_onnx_tensor_parse(source, &message, out_name, tensor, error);
}

static cleave_status_t collect(cleave_onnx_source_t *source, const cleave_protobuf_t *message,
                               sparse_fields_t *fields, cleave_error_t *error) {
  cleave_protobuf_t reader = *message;
  cleave_protobuf_field_t field;
  cleave_bytes_t unused;
  while (cleave_protobuf_next(&reader, &field, error)) {
    switch (field.number) {
      case ONNX_SPARSE_VALUES:
        CLEAVE_TRY(parse_part(source, &reader, &field, &fields->name, &fields->values, error));
        break;
      case ONNX_SPARSE_INDICES:
        CLEAVE_TRY(parse_part(source, &reader, &field, &unused, &fields->indices, error));
        break;
      case ONNX_SPARSE_DIMS:
        CLEAVE_TRY(cleave_onnx_dims_parse(&reader, &field, fields->dims, &fields->rank, error));
        break;
      default: break;
    }
  }
  return reader.status;
}

static cleave_status_t check(const sparse_fields_t *fields, cleave_error_t *error) {
  const cleave_tensor_t *values = fields->values;
  const cleave_tensor_t *indices = fields->indices;
  int64_t count = 0;
  size_t bytes = 0;
  if (values == NULL || indices == NULL) {
    return cleave_error_set(error, CLEAVE_ERROR_FORMAT, "it has no %s",
                            values == NULL ? "values" : "indices");
  }
  if (fields->rank < 1 || fields->rank > CLEAVE_MAX_RANK) {
    return cleave_error_set(error, CLEAVE_ERROR_UNSUPPORTED, "expected 1 to %d dimensions", CLEAVE_MAX_RANK);
  }
  if (values->rank != 1 || values->dtype == CLEAVE_DTYPE_STRING) {
    return cleave_error_set(error, CLEAVE_ERROR_FORMAT, "its values are not a list of numbers");
  }
  bool is_linear = indices->rank == 1;
  bool fits = indices->dtype == CLEAVE_DTYPE_I64 &&
              (is_linear || (indices->rank == 2 && indices->dims[1] == (int64_t)fields->rank)) &&
              indices->dims[0] == values->dims[0];
  if (!fits) {
    return cleave_error_set(error, CLEAVE_ERROR_FORMAT,
                            "its indices are not int64[%lld] or int64[%lld,%zu], as its values need",
                            (long long)values->dims[0], (long long)values->dims[0], fields->rank);
  }
  if (!cleave_shape_element_count((int32_t)fields->rank, fields->dims, &count) ||
      !cleave_size_multiply((size_t)count, cleave_dtype_size(values->dtype), &bytes) || bytes > most_bytes) {
    return cleave_error_set(error, CLEAVE_ERROR_LIMIT, "its dense form would have more than %zu bytes",
                            most_bytes);
  }
  return CLEAVE_OK;
}

/* Linear index of entry `k`; -1 if a coordinate is outside. */
static int64_t find_place(const sparse_fields_t *fields, const cleave_tensor_t *dense, int64_t k) {
  if (fields->indices->rank == 1) {
    int64_t place = cleave_tensor_get_int(fields->indices, k);
    return place < dense->count ? place : -1;
  }
  int64_t place = 0;
  for (size_t d = 0; d < fields->rank; d++) {
    int64_t at = cleave_tensor_get_int(fields->indices, k * (int64_t)fields->rank + (int64_t)d);
    if (at < 0 || at >= fields->dims[d]) {
      return -1;
    }
    place = place * fields->dims[d] + at;
  }
  return place;
}

static cleave_status_t scatter(const sparse_fields_t *fields, cleave_tensor_t *dense, cleave_error_t *error) {
  const unsigned char *from = fields->values->data;
  unsigned char *to = dense->data;
  size_t bytes = cleave_dtype_size(dense->dtype);
  int64_t last = -1;
  for (int64_t k = 0; k < fields->values->count; k++) {
    int64_t place = find_place(fields, dense, k);
    if (place < 0) {
      return cleave_error_set(error, CLEAVE_ERROR_FORMAT, "index %lld is outside of its shape", (long long)k);
    }
    if (place <= last) {
      return cleave_error_set(error, CLEAVE_ERROR_FORMAT, "index %lld is not above the one before it",
                              (long long)k);
    }
    memcpy(to + (size_t)place * bytes, from + (size_t)k * bytes, bytes);
    last = place;
  }
  return CLEAVE_OK;
}

static cleave_status_t make_tensor(const sparse_fields_t *fields, cleave_tensor_t **out_tensor,
                                   cleave_error_t *error) {
  CLEAVE_TRY(check(fields, error));
  CLEAVE_TRY(
      cleave_tensor_create(fields->values->dtype, (int32_t)fields->rank, fields->dims, out_tensor, error));
  cleave_status_t status = scatter(fields, *out_tensor, error);
  CLEAVE_THEN(status, cleave_tensor_add_sparse(*out_tensor, error));
  if (status != CLEAVE_OK) {
    cleave_tensor_release(*out_tensor);
    *out_tensor = NULL;
  }
  return status;
}

cleave_status_t cleave_onnx_sparse_parse(cleave_onnx_source_t *source, const cleave_protobuf_t *message,
                                         cleave_bytes_t *out_name, cleave_tensor_t **out_tensor,
                                         cleave_error_t *error) {
  sparse_fields_t fields = {.rank = 0};
  cleave_error_t reason = CLEAVE_ERROR_INIT;
  *out_tensor = NULL;
  cleave_status_t status = collect(source, message, &fields, &reason);
  CLEAVE_THEN(status, make_tensor(&fields, out_tensor, &reason));
  *out_name = fields.name;
  cleave_tensor_release(fields.values);
  cleave_tensor_release(fields.indices);
  if (status != CLEAVE_OK) {
    return cleave_error_set(error, status, "sparse tensor '%.*s': %s",
                            (int)(fields.name.size > 128 ? 128 : fields.name.size),
                            fields.name.size > 0 ? (const char *)fields.name.data : "", reason.message);
  }
  return CLEAVE_OK;
}
