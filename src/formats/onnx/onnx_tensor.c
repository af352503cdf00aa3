// SPDX-License-Identifier: Apache-2.0
/*
 * Reads a TensorProto in two passes: the first collects the shape and where data lies, the second converts
 * typed fields. Nothing is allocated before the data is known to be as long as the shape asks for.
 */
#include "formats/onnx/onnx_tensor.h"

#include <string.h>

#include "formats/onnx/onnx_model.h"
#include "formats/onnx/onnx_proto.h"

typedef struct tensor_fields {
  cleave_bytes_t name;
  int64_t dims[CLEAVE_MAX_RANK];
  size_t rank; /* may exceed CLEAVE_MAX_RANK */
  int64_t data_type;
  bool has_segment;
  bool has_raw;
  bool is_external;
  cleave_bytes_t raw;
  cleave_onnx_location_t location;
  uint32_t data_field; /* the typed field that is there; 0: none */
  size_t data_count;
  size_t data_chunks;
  cleave_bytes_t data_chunk; /* the last packed one */
} tensor_fields_t;

const char *cleave_onnx_element_type_name(int64_t number) {
  static const char *const names[] = {
      [14] = "complex64",  [15] = "complex128",     [17] = "float8e4m3fn", [18] = "float8e4m3fnuz",
      [19] = "float8e5m2", [20] = "float8e5m2fnuz", [21] = "uint4",        [22] = "int4",
      [23] = "float4e2m1", [24] = "float8e8m0",
  };
  if (number >= 0 && (size_t)number < sizeof names / sizeof *names && names[number] != NULL) {
    return names[number];
  }
  return "unknown";
}

static cleave_wire_t wire_of(uint32_t field) {
  switch (field) {
    case ONNX_TENSOR_FLOAT_DATA: return CLEAVE_WIRE_FIXED32;
    case ONNX_TENSOR_DOUBLE_DATA: return CLEAVE_WIRE_FIXED64;
    case ONNX_TENSOR_STRING_DATA: return CLEAVE_WIRE_BYTES;
    default: return CLEAVE_WIRE_VARINT;
  }
}

/* The typed field that holds elements of a dtype. */
static uint32_t field_of(cleave_dtype_t dtype) {
  switch (dtype) {
    case CLEAVE_DTYPE_F32: return ONNX_TENSOR_FLOAT_DATA;
    case CLEAVE_DTYPE_F64: return ONNX_TENSOR_DOUBLE_DATA;
    case CLEAVE_DTYPE_I64: return ONNX_TENSOR_INT64_DATA;
    case CLEAVE_DTYPE_U32:
    case CLEAVE_DTYPE_U64: return ONNX_TENSOR_UINT64_DATA;
    case CLEAVE_DTYPE_STRING: return ONNX_TENSOR_STRING_DATA;
    default: return ONNX_TENSOR_INT32_DATA;
  }
}

static cleave_status_t parse_entry(const cleave_protobuf_t *message, const cleave_protobuf_field_t *field,
                                   cleave_onnx_location_t *location, cleave_error_t *error) {
  cleave_bytes_t key;
  cleave_bytes_t value;
  CLEAVE_TRY(cleave_onnx_entry_parse(message, field, &key, &value, error));
  if (cleave_onnx_bytes_are(key, "location")) {
    location->location = value;
  } else if (cleave_onnx_bytes_are(key, "offset")) {
    location->offset = value;
  } else if (cleave_onnx_bytes_are(key, "length")) {
    location->length = value;
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_onnx_dims_parse(const cleave_protobuf_t *reader, const cleave_protobuf_field_t *field,
                                       int64_t dims[CLEAVE_MAX_RANK], size_t *rank, cleave_error_t *error) {
  size_t count = 0;
  CLEAVE_TRY(cleave_protobuf_count(reader, field, CLEAVE_WIRE_VARINT, &count, error));
  if (count > CLEAVE_MAX_RANK || *rank + count > CLEAVE_MAX_RANK) {
    *rank = CLEAVE_MAX_RANK + 1;
    return CLEAVE_OK;
  }
  uint64_t numbers[CLEAVE_MAX_RANK];
  CLEAVE_TRY(cleave_protobuf_numbers(reader, field, CLEAVE_WIRE_VARINT, numbers, error));
  memcpy(dims + *rank, numbers, count * sizeof *numbers);
  *rank += count;
  return CLEAVE_OK;
}

static cleave_status_t count_data(const cleave_protobuf_t *reader, const cleave_protobuf_field_t *field,
                                  tensor_fields_t *fields, cleave_error_t *error) {
  size_t count = 1;
  if (field->number == ONNX_TENSOR_STRING_DATA) {
    CLEAVE_TRY(cleave_protobuf_expect(reader, field, CLEAVE_WIRE_BYTES, error));
  } else {
    CLEAVE_TRY(cleave_protobuf_count(reader, field, wire_of(field->number), &count, error));
  }
  if (count == 0 && field->number != ONNX_TENSOR_STRING_DATA) {
    return CLEAVE_OK;
  }
  if (fields->data_field != 0 && fields->data_field != field->number) {
    return cleave_error_set(error, CLEAVE_ERROR_FORMAT, "data in two fields, %u and %u", fields->data_field,
                            field->number);
  }
  fields->data_field = field->number;
  fields->data_count += count;
  fields->data_chunks++;
  fields->data_chunk = field->bytes;
  return CLEAVE_OK;
}

static cleave_status_t collect(const cleave_protobuf_t *message, tensor_fields_t *fields,
                               cleave_error_t *error) {
  cleave_protobuf_t reader = *message;
  cleave_protobuf_field_t field;
  while (cleave_protobuf_next(&reader, &field, error)) {
    switch (field.number) {
      case ONNX_TENSOR_NAME: CLEAVE_TRY(cleave_protobuf_bytes(&reader, &field, &fields->name, error)); break;
      case ONNX_TENSOR_DIMS:
        CLEAVE_TRY(cleave_onnx_dims_parse(&reader, &field, fields->dims, &fields->rank, error));
        break;
      case ONNX_TENSOR_DATA_TYPE:
        CLEAVE_TRY(cleave_protobuf_int(&reader, &field, &fields->data_type, error));
        break;
      case ONNX_TENSOR_SEGMENT: fields->has_segment = true; break;
      case ONNX_TENSOR_RAW_DATA:
        CLEAVE_TRY(cleave_protobuf_bytes(&reader, &field, &fields->raw, error));
        fields->has_raw = true;
        break;
      case ONNX_TENSOR_EXTERNAL_DATA:
        CLEAVE_TRY(parse_entry(&reader, &field, &fields->location, error));
        break;
      case ONNX_TENSOR_DATA_LOCATION: fields->is_external = field.value == 1; break;
      case ONNX_TENSOR_FLOAT_DATA:
      case ONNX_TENSOR_INT32_DATA:
      case ONNX_TENSOR_STRING_DATA:
      case ONNX_TENSOR_INT64_DATA:
      case ONNX_TENSOR_DOUBLE_DATA:
      case ONNX_TENSOR_UINT64_DATA: CLEAVE_TRY(count_data(&reader, &field, fields, error)); break;
      default: break;
    }
  }
  return reader.status;
}

/* Low bytes of the words, whatever their sign; little-endian like all data here. */
static void narrow(const uint64_t *words, size_t count, cleave_dtype_t dtype, unsigned char *out) {
  size_t width = cleave_dtype_size(dtype);
  for (size_t k = 0; k < count; k++) {
    uint64_t word = dtype == CLEAVE_DTYPE_BOOL ? words[k] != 0 : words[k];
    for (size_t b = 0; b < width; b++) {
      *out++ = (unsigned char)(word >> (8 * b));
    }
  }
}

static cleave_status_t convert_field(const cleave_protobuf_t *reader, const cleave_protobuf_field_t *field,
                                     cleave_tensor_t *tensor, size_t *position, cleave_error_t *error) {
  if (tensor->dtype == CLEAVE_DTYPE_STRING) {
    return cleave_tensor_set_string(tensor, (int64_t)(*position)++, (const char *)field->bytes.data,
                                    field->bytes.size, error);
  }
  cleave_wire_t wire = wire_of(field->number);
  size_t count = 0;
  CLEAVE_TRY(cleave_protobuf_count(reader, field, wire, &count, error));
  uint64_t few[16];
  uint64_t *words = count <= 16 ? few : cleave_allocate(count, sizeof *words);
  CLEAVE_TRY_MEMORY(words, error);
  cleave_status_t status = cleave_protobuf_numbers(reader, field, wire, words, error);
  if (status == CLEAVE_OK) {
    narrow(words, count, tensor->dtype,
           (unsigned char *)tensor->data + *position * cleave_dtype_size(tensor->dtype));
    *position += count;
  }
  if (words != few) {
    cleave_free(words);
  }
  return status;
}

static cleave_status_t convert(const cleave_protobuf_t *message, uint32_t data_field, cleave_tensor_t *tensor,
                               cleave_error_t *error) {
  cleave_protobuf_t reader = *message;
  cleave_protobuf_field_t field;
  size_t position = 0;
  while (cleave_protobuf_next(&reader, &field, error)) {
    if (field.number == data_field) {
      CLEAVE_TRY(convert_field(&reader, &field, tensor, &position, error));
    }
  }
  return reader.status;
}

/* Bytes as the tensor holds them: borrowed if the file lives on, else copied. Booleans other than 0 and 1
 * are made 1. */
static cleave_status_t use_bytes(const tensor_fields_t *fields, const unsigned char *data, size_t bytes,
                                 cleave_file_t *file, cleave_tensor_t **out_tensor, cleave_error_t *error) {
  cleave_dtype_t dtype = (cleave_dtype_t)fields->data_type;
  int32_t rank = (int32_t)fields->rank;
  bool is_clean = true;
  if (dtype == CLEAVE_DTYPE_BOOL) {
    for (size_t k = 0; k < bytes && is_clean; k++) {
      is_clean = data[k] <= 1;
    }
  }
  if (file != NULL && is_clean && bytes > 0) {
    cleave_tensor_view_t view = {.dtype = dtype, .rank = rank, .dims = fields->dims, .data = data};
    return cleave_tensor_create_borrowed(&view, bytes, file, out_tensor, error);
  }
  CLEAVE_TRY(cleave_tensor_create(dtype, rank, fields->dims, out_tensor, error));
  unsigned char *out = (*out_tensor)->data;
  for (size_t k = 0; k < bytes && !is_clean; k++) {
    out[k] = data[k] != 0;
  }
  if (is_clean && bytes > 0) {
    memcpy(out, data, bytes);
  }
  return CLEAVE_OK;
}

static cleave_status_t check_fields(const tensor_fields_t *fields, int64_t *out_count, size_t *out_bytes,
                                    cleave_error_t *error) {
  if (!cleave_dtype_is_valid(fields->data_type)) {
    return cleave_error_set(error, CLEAVE_ERROR_UNSUPPORTED, "element type %lld (%s) is not supported",
                            (long long)fields->data_type, cleave_onnx_element_type_name(fields->data_type));
  }
  if (fields->rank > CLEAVE_MAX_RANK) {
    return cleave_error_set(error, CLEAVE_ERROR_UNSUPPORTED, "it has more than %d dimensions",
                            CLEAVE_MAX_RANK);
  }
  if (fields->has_segment) {
    return cleave_error_set(error, CLEAVE_ERROR_UNSUPPORTED, "data in segments is not supported");
  }
  size_t bytes = 0;
  for (size_t d = 0; d < fields->rank; d++) {
    if (fields->dims[d] < 0) {
      return cleave_error_set(error, CLEAVE_ERROR_FORMAT, "dimension %zu is %lld", d,
                              (long long)fields->dims[d]);
    }
  }
  if (!cleave_shape_element_count((int32_t)fields->rank, fields->dims, out_count) ||
      !cleave_size_multiply((size_t)*out_count, cleave_dtype_size((cleave_dtype_t)fields->data_type),
                            &bytes)) {
    return cleave_error_set(error, CLEAVE_ERROR_FORMAT, "its shape overflows 64 bits");
  }
  *out_bytes = bytes;
  return CLEAVE_OK;
}

static cleave_status_t make_tensor(cleave_onnx_source_t *source, const cleave_protobuf_t *message,
                                   tensor_fields_t *fields, cleave_tensor_t **out_tensor,
                                   cleave_error_t *error) {
  int64_t count = 0;
  size_t bytes = 0;
  CLEAVE_TRY(check_fields(fields, &count, &bytes, error));
  cleave_dtype_t dtype = (cleave_dtype_t)fields->data_type;
  int32_t rank = (int32_t)fields->rank;
  if (fields->is_external || fields->has_raw) {
    const unsigned char *data = fields->raw.data;
    cleave_file_t *file = source->file;
    if (dtype == CLEAVE_DTYPE_STRING) {
      return cleave_error_set(error, CLEAVE_ERROR_FORMAT, "strings cannot be raw data");
    }
    if (fields->is_external) {
      CLEAVE_TRY(cleave_onnx_external_find(source, &fields->location, bytes, &data, &file, error));
    } else if (fields->raw.size != bytes) {
      return cleave_error_set(error, CLEAVE_ERROR_FORMAT,
                              "its shape of %s asks for %zu byte%s, found %zu of raw data",
                              cleave_dtype_name(dtype), bytes, CLEAVE_PLURAL(bytes), fields->raw.size);
    }
    return use_bytes(fields, data, bytes, file, out_tensor, error);
  }
  if (count > 0 && fields->data_field == 0) {
    return cleave_error_set(error, CLEAVE_ERROR_FORMAT, "it has no data, expected %lld element%s of %s",
                            (long long)count, CLEAVE_PLURAL(count), cleave_dtype_name(dtype));
  }
  if (fields->data_field != 0 && fields->data_field != field_of(dtype)) {
    return cleave_error_set(error, CLEAVE_ERROR_FORMAT, "its data is in field %u, expected %u for %s",
                            fields->data_field, field_of(dtype), cleave_dtype_name(dtype));
  }
  if (fields->data_count != (uint64_t)count) {
    return cleave_error_set(error, CLEAVE_ERROR_FORMAT, "its shape asks for %lld element%s, found %zu",
                            (long long)count, CLEAVE_PLURAL(count), fields->data_count);
  }
  if ((dtype == CLEAVE_DTYPE_F32 || dtype == CLEAVE_DTYPE_F64) && fields->data_chunks == 1 &&
      fields->data_chunk.size == bytes) {
    return use_bytes(fields, fields->data_chunk.data, bytes, source->file, out_tensor, error);
  }
  CLEAVE_TRY(cleave_tensor_create(dtype, rank, fields->dims, out_tensor, error));
  cleave_status_t status = count > 0 ? convert(message, fields->data_field, *out_tensor, error) : CLEAVE_OK;
  if (status != CLEAVE_OK) {
    cleave_tensor_release(*out_tensor);
    *out_tensor = NULL;
  }
  return status;
}

/* ---- int4 and uint4 ---- */

/* Element types of TensorProto with two elements in a byte, the first in its low half. */
enum { ONNX_UINT4 = 21, ONNX_INT4 = 22 };

static bool has_four_bits(int64_t data_type) {
  return data_type == ONNX_UINT4 || data_type == ONNX_INT4;
}

/* Each element gets a byte of its own. */
static void widen(const unsigned char *from, unsigned char *to, int64_t count, bool is_signed) {
  for (int64_t k = 0; k < count; k++) {
    unsigned char nibble = (unsigned char)(from[k / 2] >> (k % 2 * 4) & 0xF);
    to[k] = is_signed ? (unsigned char)((nibble ^ 8) - 8) : nibble;
  }
}

static cleave_status_t make_widened(cleave_onnx_source_t *source, const cleave_protobuf_t *message,
                                    tensor_fields_t *fields, cleave_tensor_t **out_tensor,
                                    cleave_error_t *error) {
  bool is_signed = fields->data_type == ONNX_INT4;
  int64_t dims[CLEAVE_MAX_RANK];
  int32_t rank = (int32_t)fields->rank;
  int64_t count = 0;
  size_t bytes = 0;
  cleave_tensor_t *packed = NULL;
  fields->data_type = is_signed ? CLEAVE_DTYPE_I8 : CLEAVE_DTYPE_U8;
  CLEAVE_TRY(check_fields(fields, &count, &bytes, error));
  memcpy(dims, fields->dims, sizeof dims);
  fields->dims[0] = (count + 1) / 2;
  fields->rank = 1;
  CLEAVE_TRY(make_tensor(source, message, fields, &packed, error));
  cleave_status_t status =
      cleave_tensor_create((cleave_dtype_t)fields->data_type, rank, dims, out_tensor, error);
  if (status == CLEAVE_OK) {
    widen(packed->data, (*out_tensor)->data, count, is_signed);
    (*out_tensor)->is_four_bits = true;
  }
  cleave_tensor_release(packed);
  return status;
}

cleave_status_t cleave_onnx_tensor_parse(cleave_onnx_source_t *source, const cleave_protobuf_t *message,
                                         cleave_bytes_t *out_name, cleave_tensor_t **out_tensor,
                                         cleave_error_t *error) {
  tensor_fields_t fields = {0};
  cleave_error_t reason = CLEAVE_ERROR_INIT;
  *out_tensor = NULL;
  cleave_status_t status = collect(message, &fields, &reason);
  CLEAVE_THEN(status, (has_four_bits(fields.data_type) ? make_widened : make_tensor)(source, message, &fields,
                                                                                     out_tensor, &reason));
  *out_name = fields.name;
  if (status != CLEAVE_OK) {
    return cleave_error_set(error, status, "tensor '%.*s': %s",
                            (int)(fields.name.size > 128 ? 128 : fields.name.size),
                            fields.name.size > 0 ? (const char *)fields.name.data : "", reason.message);
  }
  return CLEAVE_OK;
}
