// SPDX-License-Identifier: Apache-2.0
/* ValueInfoProto and TypeProto. Of types other than dense tensors only the name is read.
 */
#include "formats/onnx/onnx_model.h"
#include "formats/onnx/onnx_proto.h"

static cleave_status_t parse_dim(cleave_onnx_model_t *model, const cleave_protobuf_t *parent,
                                 const cleave_protobuf_field_t *field, cleave_onnx_dim_t *out_dim,
                                 cleave_error_t *error) {
  cleave_protobuf_t reader;
  cleave_protobuf_field_t part;
  cleave_bytes_t symbol = {0};
  cleave_onnx_dim_t dim = {.size = -1, .symbol = CLEAVE_STRING_EMPTY};
  CLEAVE_TRY(cleave_protobuf_enter(parent, field, "Dimension", &reader, error));
  while (cleave_protobuf_next(&reader, &part, error)) {
    if (part.number == ONNX_DIM_VALUE) {
      CLEAVE_TRY(cleave_protobuf_int(&reader, &part, &dim.size, error));
      dim.size = dim.size < 0 ? -1 : dim.size;
    } else if (part.number == ONNX_DIM_PARAM) {
      CLEAVE_TRY(cleave_protobuf_bytes(&reader, &part, &symbol, error));
    }
  }
  CLEAVE_TRY(reader.status);
  if (dim.size < 0 && symbol.size > 0) {
    CLEAVE_TRY(cleave_onnx_add_name(&model->graph->strings, symbol, &dim.symbol, error));
  }
  *out_dim = dim;
  return CLEAVE_OK;
}

static cleave_status_t parse_shape(cleave_onnx_model_t *model, const cleave_protobuf_t *parent,
                                   const cleave_protobuf_field_t *field, cleave_onnx_value_info_t *info,
                                   cleave_error_t *error) {
  cleave_protobuf_t reader;
  cleave_protobuf_field_t part;
  CLEAVE_TRY(cleave_protobuf_enter(parent, field, "TensorShapeProto", &reader, error));
  cleave_onnx_dim_t dims[CLEAVE_MAX_RANK];
  int32_t rank = 0;
  while (cleave_protobuf_next(&reader, &part, error)) {
    if (part.number == ONNX_SHAPE_DIM && rank <= CLEAVE_MAX_RANK) {
      if (rank < CLEAVE_MAX_RANK) {
        CLEAVE_TRY(parse_dim(model, &reader, &part, &dims[rank], error));
      }
      rank++;
    }
  }
  CLEAVE_TRY(reader.status);
  info->rank = rank;
  if (rank > 0 && rank <= CLEAVE_MAX_RANK) {
    info->dims = cleave_arena_copy(&model->arena, dims, (size_t)rank * sizeof *dims);
    CLEAVE_TRY_MEMORY(info->dims, error);
  }
  return CLEAVE_OK;
}

static cleave_status_t parse_tensor_type(cleave_onnx_model_t *model, const cleave_protobuf_t *parent,
                                         const cleave_protobuf_field_t *field, cleave_onnx_value_info_t *info,
                                         cleave_error_t *error) {
  cleave_protobuf_t reader;
  cleave_protobuf_field_t part;
  CLEAVE_TRY(cleave_protobuf_enter(parent, field, "TypeProto.Tensor", &reader, error));
  while (cleave_protobuf_next(&reader, &part, error)) {
    if (part.number == ONNX_TENSOR_TYPE_ELEM_TYPE) {
      CLEAVE_TRY(cleave_protobuf_int(&reader, &part, &info->element_type, error));
    } else if (part.number == ONNX_TENSOR_TYPE_SHAPE) {
      CLEAVE_TRY(parse_shape(model, &reader, &part, info, error));
    }
  }
  return reader.status;
}

static cleave_status_t parse_type(cleave_onnx_model_t *model, const cleave_protobuf_t *parent,
                                  const cleave_protobuf_field_t *field, cleave_onnx_value_info_t *info,
                                  cleave_error_t *error) {
  cleave_protobuf_t reader;
  cleave_protobuf_field_t part;
  CLEAVE_TRY(cleave_protobuf_enter(parent, field, "TypeProto", &reader, error));
  while (cleave_protobuf_next(&reader, &part, error)) {
    switch (part.number) {
      case ONNX_TYPE_PROTO_TENSOR: CLEAVE_TRY(parse_tensor_type(model, &reader, &part, info, error)); break;
      case ONNX_TYPE_PROTO_SEQUENCE: info->kind = "a sequence"; break;
      case ONNX_TYPE_PROTO_MAP: info->kind = "a map"; break;
      case ONNX_TYPE_PROTO_OPAQUE: info->kind = "an opaque value"; break;
      case ONNX_TYPE_PROTO_SPARSE_TENSOR: info->kind = "a sparse tensor"; break;
      case ONNX_TYPE_PROTO_OPTIONAL: info->kind = "an optional value"; break;
      default: break;
    }
  }
  return reader.status;
}

cleave_status_t cleave_onnx_value_info_parse(cleave_onnx_model_t *model, const cleave_protobuf_t *message,
                                             cleave_onnx_value_info_t *out_info, cleave_error_t *error) {
  cleave_protobuf_t reader = *message;
  cleave_protobuf_field_t field;
  cleave_onnx_value_info_t info = {.rank = -1};
  while (cleave_protobuf_next(&reader, &field, error)) {
    if (field.number == ONNX_VALUE_NAME) {
      CLEAVE_TRY(cleave_protobuf_expect(&reader, &field, CLEAVE_WIRE_BYTES, error));
      CLEAVE_TRY(cleave_onnx_add_name(&model->graph->strings, field.bytes, &info.name, error));
    } else if (field.number == ONNX_VALUE_TYPE) {
      CLEAVE_TRY(parse_type(model, &reader, &field, &info, error));
    }
  }
  CLEAVE_TRY(reader.status);
  *out_info = info;
  return CLEAVE_OK;
}
