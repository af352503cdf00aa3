// SPDX-License-Identifier: Apache-2.0
/* What the dimensions of operands mean, if the ONNX operator says so: "NCHW" for the data of a
 * convolution. */
#ifndef CLEAVE_OPS_LAYOUT_H
#define CLEAVE_OPS_LAYOUT_H

#include "graph/op.h"

/* Of an input or output with this rank: a letter per dimension (N batch, C channels, D depth, H height, W
 * width; of a convolution's weights O output and I input channels), or NULL if the definition gives them
 * no meaning. Static. */
const char *cleave_op_input_layout(const cleave_op_t *op, uint32_t input, int32_t rank);
const char *cleave_op_output_layout(const cleave_op_t *op, uint32_t output, int32_t rank);

#endif /* CLEAVE_OPS_LAYOUT_H */
