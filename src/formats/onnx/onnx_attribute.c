// SPDX-License-Identifier: Apache-2.0
/* AttributeProto: counts the parts first, so that lists are allocated once and never larger than the file. */
#include <string.h>

#include "formats/onnx/onnx_model.h"
#include "formats/onnx/onnx_proto.h"

typedef struct attribute_fields {
  cleave_bytes_t name;
  cleave_bytes_t reference;
  cleave_bytes_t text;
  float f;
  int64_t i;
  int64_t type;
  uint32_t present; /* 1 << field number, of fields below 32 */
  size_t float_count;
  size_t int_count;
  size_t string_count;
  cleave_protobuf_t tensor;
  cleave_protobuf_t sparse_tensor;
  cleave_protobuf_t graph;
} attribute_fields_t;

static cleave_status_t collect(const cleave_protobuf_t *message, attribute_fields_t *fields,
                               cleave_error_t *error) {
  cleave_protobuf_t reader = *message;
  cleave_protobuf_field_t field;
  while (cleave_protobuf_next(&reader, &field, error)) {
    size_t count = 0;
    if (field.number < 32) {
      fields->present |= UINT32_C(1) << field.number;
    }
    switch (field.number) {
      case ONNX_ATTRIBUTE_NAME:
        CLEAVE_TRY(cleave_protobuf_bytes(&reader, &field, &fields->name, error));
        break;
      case ONNX_ATTRIBUTE_REF_ATTR_NAME:
        CLEAVE_TRY(cleave_protobuf_bytes(&reader, &field, &fields->reference, error));
        break;
      case ONNX_ATTRIBUTE_TYPE: CLEAVE_TRY(cleave_protobuf_int(&reader, &field, &fields->type, error)); break;
      case ONNX_ATTRIBUTE_F: CLEAVE_TRY(cleave_protobuf_float(&reader, &field, &fields->f, error)); break;
      case ONNX_ATTRIBUTE_I: CLEAVE_TRY(cleave_protobuf_int(&reader, &field, &fields->i, error)); break;
      case ONNX_ATTRIBUTE_S: CLEAVE_TRY(cleave_protobuf_bytes(&reader, &field, &fields->text, error)); break;
      case ONNX_ATTRIBUTE_T:
        CLEAVE_TRY(cleave_protobuf_enter(&reader, &field, "TensorProto", &fields->tensor, error));
        break;
      case ONNX_ATTRIBUTE_SPARSE_TENSOR:
        CLEAVE_TRY(
            cleave_protobuf_enter(&reader, &field, "SparseTensorProto", &fields->sparse_tensor, error));
        break;
      case ONNX_ATTRIBUTE_G:
        CLEAVE_TRY(cleave_protobuf_enter(&reader, &field, "GraphProto", &fields->graph, error));
        break;
      case ONNX_ATTRIBUTE_FLOATS:
        CLEAVE_TRY(cleave_protobuf_count(&reader, &field, CLEAVE_WIRE_FIXED32, &count, error));
        fields->float_count += count;
        break;
      case ONNX_ATTRIBUTE_INTS:
        CLEAVE_TRY(cleave_protobuf_count(&reader, &field, CLEAVE_WIRE_VARINT, &count, error));
        fields->int_count += count;
        break;
      case ONNX_ATTRIBUTE_STRINGS:
        CLEAVE_TRY(cleave_protobuf_expect(&reader, &field, CLEAVE_WIRE_BYTES, error));
        fields->string_count++;
        break;
      default: break;
    }
  }
  return reader.status;
}

/* Old files leave `type` out: the field that is there tells. */
static int64_t guess_type(const attribute_fields_t *fields) {
  static const struct {
    uint32_t field;
    int64_t type;
  } types[] = {
      {ONNX_ATTRIBUTE_F, ONNX_TYPE_FLOAT},
      {ONNX_ATTRIBUTE_I, ONNX_TYPE_INT},
      {ONNX_ATTRIBUTE_S, ONNX_TYPE_STRING},
      {ONNX_ATTRIBUTE_T, ONNX_TYPE_TENSOR},
      {ONNX_ATTRIBUTE_G, ONNX_TYPE_GRAPH},
      {ONNX_ATTRIBUTE_FLOATS, ONNX_TYPE_FLOATS},
      {ONNX_ATTRIBUTE_INTS, ONNX_TYPE_INTS},
      {ONNX_ATTRIBUTE_STRINGS, ONNX_TYPE_STRINGS},
      {ONNX_ATTRIBUTE_TENSORS, ONNX_TYPE_TENSORS},
      {ONNX_ATTRIBUTE_GRAPHS, ONNX_TYPE_GRAPHS},
      {ONNX_ATTRIBUTE_SPARSE_TENSOR, ONNX_TYPE_SPARSE_TENSOR},
  };
  for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
    if ((fields->present >> types[k].field & 1) != 0) {
      return types[k].type;
    }
  }
  return ONNX_TYPE_UNDEFINED;
}

/* Reads the numbers of a list field: floats as binary32, ints as int64. */
static cleave_status_t read_numbers(const cleave_protobuf_t *message, uint32_t number, cleave_wire_t wire,
                                    uint64_t *words, cleave_error_t *error) {
  cleave_protobuf_t reader = *message;
  cleave_protobuf_field_t field;
  size_t position = 0;
  while (cleave_protobuf_next(&reader, &field, error)) {
    size_t count = 0;
    if (field.number == number) {
      CLEAVE_TRY(cleave_protobuf_count(&reader, &field, wire, &count, error));
      CLEAVE_TRY(cleave_protobuf_numbers(&reader, &field, wire, words + position, error));
      position += count;
    }
  }
  return reader.status;
}

static cleave_status_t read_ints(cleave_onnx_model_t *model, const cleave_protobuf_t *message, size_t count,
                                 cleave_attribute_t *value, cleave_error_t *error) {
  uint64_t *words = cleave_arena_allocate(&model->arena, count, sizeof *words);
  CLEAVE_TRY_MEMORY(words, error);
  CLEAVE_TRY(read_numbers(message, ONNX_ATTRIBUTE_INTS, CLEAVE_WIRE_VARINT, words, error));
  value->kind = CLEAVE_ATTRIBUTE_INTS;
  value->count = (uint32_t)count;
  value->ints = (const int64_t *)words;
  return CLEAVE_OK;
}

static cleave_status_t read_floats(cleave_onnx_model_t *model, const cleave_protobuf_t *message, size_t count,
                                   cleave_attribute_t *value, cleave_error_t *error) {
  uint64_t *words = cleave_arena_allocate(&model->arena, count, sizeof *words);
  float *floats = cleave_arena_allocate(&model->arena, count, sizeof *floats);
  CLEAVE_TRY_MEMORY(words != NULL && floats != NULL, error);
  CLEAVE_TRY(read_numbers(message, ONNX_ATTRIBUTE_FLOATS, CLEAVE_WIRE_FIXED32, words, error));
  for (size_t k = 0; k < count; k++) {
    uint32_t bits = (uint32_t)words[k];
    memcpy(&floats[k], &bits, sizeof bits);
  }
  value->kind = CLEAVE_ATTRIBUTE_FLOATS;
  value->count = (uint32_t)count;
  value->floats = floats;
  return CLEAVE_OK;
}

static cleave_status_t read_strings(cleave_onnx_model_t *model, const cleave_protobuf_t *message,
                                    size_t count, cleave_attribute_t *value, cleave_error_t *error) {
  const char **strings = cleave_arena_allocate(&model->arena, count, sizeof *strings);
  CLEAVE_TRY_MEMORY(strings, error);
  cleave_protobuf_t reader = *message;
  cleave_protobuf_field_t field;
  size_t position = 0;
  while (cleave_protobuf_next(&reader, &field, error)) {
    if (field.number == ONNX_ATTRIBUTE_STRINGS) {
      strings[position] =
          cleave_arena_copy_text(&model->arena, (const char *)field.bytes.data, field.bytes.size);
      if (strings[position++] == NULL) {
        return cleave_error_out_of_memory(error);
      }
    }
  }
  CLEAVE_TRY(reader.status);
  value->kind = CLEAVE_ATTRIBUTE_STRINGS;
  value->count = (uint32_t)count;
  value->strings = strings;
  return CLEAVE_OK;
}

/* A dense or a sparse one, by its field. */
static cleave_status_t read_tensor(cleave_onnx_model_t *model, const attribute_fields_t *fields,
                                   uint32_t number, cleave_attribute_t *value, cleave_error_t *error) {
  cleave_bytes_t name;
  bool is_sparse = number == ONNX_ATTRIBUTE_SPARSE_TENSOR;
  if ((fields->present >> number & 1) == 0) {
    return cleave_error_set(error, CLEAVE_ERROR_FORMAT, "it holds no tensor");
  }
  CLEAVE_TRY(cleave_array_reserve(&model->tensors, 1, error));
  CLEAVE_TRY((is_sparse ? cleave_onnx_sparse_parse : cleave_onnx_tensor_parse)(
      &model->source, is_sparse ? &fields->sparse_tensor : &fields->tensor, &name, &value->held, error));
  cleave_array_push_reserved(&model->tensors, value->held);
  value->kind = CLEAVE_ATTRIBUTE_TENSOR;
  return CLEAVE_OK;
}

static cleave_status_t read_text(cleave_onnx_model_t *model, const attribute_fields_t *fields,
                                 cleave_attribute_t *value, cleave_error_t *error) {
  const char *text =
      cleave_arena_copy_text(&model->arena, (const char *)fields->text.data, fields->text.size);
  CLEAVE_TRY_MEMORY(text, error);
  value->kind = CLEAVE_ATTRIBUTE_STRING;
  value->s = text;
  value->count = (uint32_t)strlen(text);
  return CLEAVE_OK;
}

static cleave_status_t read_value(cleave_onnx_model_t *model, const cleave_protobuf_t *message,
                                  const attribute_fields_t *fields, cleave_onnx_attribute_t *attribute,
                                  cleave_error_t *error) {
  cleave_attribute_t *value = &attribute->value;
  if (fields->float_count > UINT32_MAX || fields->int_count > UINT32_MAX || fields->text.size > UINT32_MAX) {
    return cleave_error_set(error, CLEAVE_ERROR_LIMIT, "it is longer than 2^32 elements");
  }
  int64_t type = fields->type != ONNX_TYPE_UNDEFINED ? fields->type : guess_type(fields);
  switch (type) {
    case ONNX_TYPE_FLOAT:
      value->kind = CLEAVE_ATTRIBUTE_FLOAT;
      value->f = (double)fields->f;
      return CLEAVE_OK;
    case ONNX_TYPE_INT:
      value->kind = CLEAVE_ATTRIBUTE_INT;
      value->i = fields->i;
      return CLEAVE_OK;
    case ONNX_TYPE_STRING: return read_text(model, fields, value, error);
    case ONNX_TYPE_TENSOR: return read_tensor(model, fields, ONNX_ATTRIBUTE_T, value, error);
    case ONNX_TYPE_SPARSE_TENSOR:
      return read_tensor(model, fields, ONNX_ATTRIBUTE_SPARSE_TENSOR, value, error);
    case ONNX_TYPE_FLOATS: return read_floats(model, message, fields->float_count, value, error);
    case ONNX_TYPE_INTS: return read_ints(model, message, fields->int_count, value, error);
    case ONNX_TYPE_STRINGS: return read_strings(model, message, fields->string_count, value, error);
    case ONNX_TYPE_GRAPH:
      if ((fields->present >> ONNX_ATTRIBUTE_G & 1) == 0) {
        return cleave_error_set(error, CLEAVE_ERROR_FORMAT, "it holds no graph");
      }
      attribute->is_graph = true;
      attribute->graph = fields->graph;
      return CLEAVE_OK;
    case ONNX_TYPE_UNDEFINED: /* nothing inside: an empty list of an unknown kind */
      value->kind = CLEAVE_ATTRIBUTE_INTS;
      return CLEAVE_OK;
    case ONNX_TYPE_GRAPHS:
      return cleave_error_set(error, CLEAVE_ERROR_UNSUPPORTED, "a list of graphs is not supported");
    case ONNX_TYPE_SPARSE_TENSORS:
    case ONNX_TYPE_TENSORS:
      return cleave_error_set(error, CLEAVE_ERROR_UNSUPPORTED, "a list of tensors is not supported");
    default:
      return cleave_error_set(error, CLEAVE_ERROR_UNSUPPORTED, "attribute type %lld is not supported",
                              (long long)type);
  }
}

cleave_status_t cleave_onnx_attribute_parse(cleave_onnx_model_t *model, const cleave_protobuf_t *message,
                                            cleave_onnx_attribute_t *out_attribute, cleave_error_t *error) {
  attribute_fields_t fields = {0};
  cleave_onnx_attribute_t attribute = {0};
  CLEAVE_TRY(collect(message, &fields, error));
  CLEAVE_TRY(cleave_onnx_intern(model, fields.name, &attribute.value.name, error));
  if (fields.name.size == 0) {
    return cleave_error_set(error, CLEAVE_ERROR_FORMAT, "an attribute has no name");
  }
  if (fields.reference.size > 0) {
    CLEAVE_TRY(cleave_onnx_intern(model, fields.reference, &attribute.reference, error));
  } else {
    cleave_error_t reason = CLEAVE_ERROR_INIT;
    cleave_status_t status = read_value(model, message, &fields, &attribute, &reason);
    if (status != CLEAVE_OK) {
      return cleave_error_set(error, status, "attribute '%s': %s", attribute.value.name, reason.message);
    }
  }
  *out_attribute = attribute;
  return CLEAVE_OK;
}
