// SPDX-License-Identifier: Apache-2.0
/* TensorProto as it is written: raw data, little-endian as in memory; strings one by one. */

#include "formats/onnx/onnx_proto.h"
#include "formats/onnx/write/onnx_write.h"

void cleave_onnx_put_tensor_head(cleave_text_t *out, const cleave_tensor_t *tensor, const char *name) {
  for (int32_t d = 0; d < tensor->rank; d++) {
    cleave_protobuf_put_int(out, ONNX_TENSOR_DIMS, tensor->dims[d]);
  }
  cleave_protobuf_put_int(out, ONNX_TENSOR_DATA_TYPE, (int64_t)tensor->dtype);
  if (name[0] != '\0') {
    cleave_protobuf_put_text(out, ONNX_TENSOR_NAME, name);
  }
}

void cleave_onnx_put_tensor(cleave_text_t *out, const cleave_tensor_t *tensor, const char *name) {
  cleave_onnx_put_tensor_head(out, tensor, name);
  if (tensor->dtype == CLEAVE_DTYPE_STRING) {
    const char *const *texts = tensor->data;
    for (int64_t k = 0; k < tensor->count; k++) {
      cleave_protobuf_put_text(out, ONNX_TENSOR_STRING_DATA, texts[k]);
    }
    return;
  }
  cleave_protobuf_put_bytes(out, ONNX_TENSOR_RAW_DATA, tensor->data, tensor->bytes);
}
