/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the ONNX writer. */
#ifndef CLEAVE_FORMATS_ONNX_WRITE_H
#define CLEAVE_FORMATS_ONNX_WRITE_H

#include "formats/protobuf.h"
#include "tensor/tensor.h"

/* Fields of a TensorProto: name, type, shape and data (raw, or texts). An empty name is left out. */
void cleave_onnx_put_tensor(cleave_text_t *out, const cleave_tensor_t *tensor, const char *name);

#endif /* CLEAVE_FORMATS_ONNX_WRITE_H */
