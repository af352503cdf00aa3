// SPDX-License-Identifier: Apache-2.0
/* TensorProto -> cleave_tensor_t. Data that lies in a mapped file as it is needed is borrowed, not touched.
 */
#ifndef CLEAVE_FORMATS_ONNX_ONNX_TENSOR_H
#define CLEAVE_FORMATS_ONNX_ONNX_TENSOR_H

#include "base/containers/array.h"
#include "formats/protobuf.h"
#include "tensor/tensor.h"

/* One file of external data, opened once however many tensors lie in it. */
typedef struct cleave_onnx_data_file {
  char *location; /* as in the model */
  cleave_file_t *file;
} cleave_onnx_data_file_t;

/* The source of tensors. */
typedef struct cleave_onnx_source {
  cleave_file_t *file; /* whose bytes are read; NULL: memory of the caller, so that data is copied */
  CLEAVE_ARRAY(cleave_onnx_data_file_t) data_files;
} cleave_onnx_source_t;

void cleave_onnx_source_deinit(cleave_onnx_source_t *source);

/* Reads one TensorProto; the name is a range of the message. Errors name the tensor. int4 and uint4 become
 * int8 and uint8. Refused
 * (CLEAVE_ERROR_UNSUPPORTED): element types that cleave lacks, more than CLEAVE_MAX_RANK dims, segments. */
CLEAVE_STATUS cleave_onnx_tensor_parse(cleave_onnx_source_t *source, const cleave_protobuf_t *message,
                                       cleave_bytes_t *out_name, cleave_tensor_t **out_tensor,
                                       cleave_error_t *error);

/* Parses a SparseTensorProto (coordinates) into a dense tensor that has its sparse form beside. One whose
 * dense form has more than 2 GiB, what a message can hold, is refused (CLEAVE_ERROR_LIMIT). */
CLEAVE_STATUS cleave_onnx_sparse_parse(cleave_onnx_source_t *source, const cleave_protobuf_t *message,
                                       cleave_bytes_t *out_name, cleave_tensor_t **out_tensor,
                                       cleave_error_t *error);

/* Appends the sizes that a field `dims` holds. *rank is CLEAVE_MAX_RANK + 1 once they are too many. */
CLEAVE_STATUS cleave_onnx_dims_parse(const cleave_protobuf_t *reader, const cleave_protobuf_field_t *field,
                                     int64_t dims[CLEAVE_MAX_RANK], size_t *rank, cleave_error_t *error);

/* Key and value of the entries of TensorProto.external_data; empty if not given. */
typedef struct cleave_onnx_location {
  cleave_bytes_t location;
  cleave_bytes_t offset;
  cleave_bytes_t length;
} cleave_onnx_location_t;

/* The `bytes` bytes of external data at a location. The location is relative to the model's folder; absolute
 * paths, ".." and links that lead out of the folder are refused, but to where a link leads that is the model.
 * The file is owned by the source. */
CLEAVE_STATUS cleave_onnx_external_find(cleave_onnx_source_t *source, const cleave_onnx_location_t *location,
                                        size_t bytes, const unsigned char **out_data,
                                        cleave_file_t **out_file, cleave_error_t *error);

/* "float8e4m3fn", "complex64", ...: name of an ONNX element type that cleave does not have, for messages. */
const char *cleave_onnx_element_type_name(int64_t number);

#endif /* CLEAVE_FORMATS_ONNX_ONNX_TENSOR_H */
