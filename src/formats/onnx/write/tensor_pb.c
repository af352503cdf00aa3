// SPDX-License-Identifier: Apache-2.0
/* Files that hold one TensorProto. Nothing in them says that they do: other messages are recognised by their
 * fields. */

#include "formats/onnx/onnx.h"
#include "formats/onnx/onnx_proto.h"
#include "formats/onnx/onnx_tensor.h"
#include "formats/onnx/write/onnx_write.h"

/* SequenceProto and OptionalProto: name = 1 (text), elem_type = 2, then messages in fields 3 to 8. A
 * TensorProto has numbers in field 1, and data in field 4 or later, or no elements. */
static bool looks_like_container(const cleave_protobuf_t *message) {
  cleave_protobuf_t reader = *message;
  cleave_protobuf_field_t field;
  bool has_data = false;
  bool has_member = false;
  while (cleave_protobuf_next(&reader, &field, NULL)) {
    has_data = has_data || field.number == ONNX_TENSOR_RAW_DATA || field.number == ONNX_TENSOR_FLOAT_DATA ||
               field.number == ONNX_TENSOR_EXTERNAL_DATA;
    has_member = has_member || field.number == ONNX_TENSOR_SEGMENT;
  }
  return reader.status == CLEAVE_OK && has_member && !has_data;
}

static cleave_status_t read_tensor(cleave_file_t *file, cleave_tensor_t **out_tensor, cleave_error_t *error) {
  cleave_onnx_source_t source = {.file = file};
  cleave_protobuf_t message;
  cleave_bytes_t name;
  cleave_protobuf_init(&message, cleave_file_data(file), cleave_file_size(file), "TensorProto");
  if (looks_like_container(&message)) {
    return cleave_error_set(error, CLEAVE_ERROR_UNSUPPORTED,
                            "a sequence or an optional value, not a tensor: not supported");
  }
  cleave_status_t status = cleave_onnx_tensor_parse(&source, &message, &name, out_tensor, error);
  cleave_onnx_source_deinit(&source);
  return status;
}

cleave_status_t cleave_tensor_pb_read(const char *path, cleave_tensor_t **out_tensor, cleave_error_t *error) {
  cleave_file_t *file = NULL;
  cleave_error_t reason = CLEAVE_ERROR_INIT;
  *out_tensor = NULL;
  CLEAVE_TRY(cleave_file_open(path, &file, error));
  cleave_status_t status = read_tensor(file, out_tensor, &reason);
  cleave_file_release(file);
  return status == CLEAVE_OK ? CLEAVE_OK : cleave_error_set_at(error, status, path, 0, "%s", reason.message);
}

cleave_status_t cleave_tensor_pb_write(const char *path, const cleave_tensor_t *tensor, const char *name,
                                       cleave_error_t *error) {
  cleave_text_t text = {0};
  cleave_onnx_put_tensor(&text, tensor, name != NULL ? name : "");
  cleave_status_t status = cleave_text_check(&text, error);
  CLEAVE_THEN(status, cleave_file_write(path, text.data, text.length, error));
  cleave_text_deinit(&text);
  return status;
}
