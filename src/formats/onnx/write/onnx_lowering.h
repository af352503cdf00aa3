// SPDX-License-Identifier: Apache-2.0
/* The bodies of onnx_lower.h, and the functions that they use. */
#ifndef CLEAVE_FORMATS_ONNX_WRITE_ONNX_LOWERING_H
#define CLEAVE_FORMATS_ONNX_WRITE_ONNX_LOWERING_H

#include "ops/ops.h"

/* A body while it is built. After a failure all that follows does nothing. */
typedef struct cleave_lowering {
  const cleave_graph_t *source;
  cleave_node_t node; /* of the source */
  cleave_graph_t *graph;
  cleave_value_t *inputs; /* of `graph`; NONE for those that the node leaves out */
  uint32_t input_count;
  cleave_node_t last; /* that was added */
  const char *reason; /* why there is no body */
  cleave_status_t status;
  cleave_error_t *error;
} cleave_lowering_t;

static inline bool cleave_lowering_goes_on(const cleave_lowering_t *lowering) {
  return lowering->status == CLEAVE_OK && lowering->reason == NULL;
}

typedef void (*cleave_lower_t)(cleave_lowering_t *lowering);

/* Input `index`, or NONE. */
cleave_value_t cleave_lowering_input(const cleave_lowering_t *lowering, uint32_t index);
/* Type of the node's input as the source knows it; rank -1 and dtype UNKNOWN if it does not, or there is
 * none. */
int32_t cleave_lowering_rank(const cleave_lowering_t *lowering, uint32_t index);
cleave_dtype_t cleave_lowering_dtype(const cleave_lowering_t *lowering, uint32_t index);
/* Size of a dimension, or -1. */
int64_t cleave_lowering_dim(const cleave_lowering_t *lowering, uint32_t index, int32_t d);
/* A constant input's content, or NULL. */
const cleave_tensor_t *cleave_lowering_constant(const cleave_lowering_t *lowering, uint32_t index);

/* A node with one output; inputs end at the first NONE of the last ones. */
cleave_value_t cleave_lowering_emit(cleave_lowering_t *lowering, const char *op, cleave_value_t a,
                                    cleave_value_t b, cleave_value_t c);
/* A node with these inputs and outputs, which is then `last`. */
void cleave_lowering_add(cleave_lowering_t *lowering, const cleave_op_t *op, const cleave_value_t *inputs,
                         uint32_t input_count, uint32_t output_count);
/* An attribute of the node that was added last. */
void cleave_lowering_set_int(cleave_lowering_t *lowering, const char *name, int64_t value);
void cleave_lowering_set_float(cleave_lowering_t *lowering, const char *name, double value);
/* A scalar; a vector of int64. */
cleave_value_t cleave_lowering_number(cleave_lowering_t *lowering, cleave_dtype_t dtype, double number);
cleave_value_t cleave_lowering_ints(cleave_lowering_t *lowering, const int64_t *values, size_t count);
/* The value as `dtype`; itself if that is its type, `from`. */
cleave_value_t cleave_lowering_cast(cleave_lowering_t *lowering, cleave_value_t value, cleave_dtype_t from,
                                    cleave_dtype_t dtype);
cleave_value_t cleave_lowering_transpose(cleave_lowering_t *lowering, cleave_value_t value,
                                         const int64_t *perm, size_t rank);
cleave_value_t cleave_lowering_reshape(cleave_lowering_t *lowering, cleave_value_t value, const int64_t *dims,
                                       size_t rank);
/* Outputs, in the order of the node's; each exactly once. */
void cleave_lowering_output(cleave_lowering_t *lowering, cleave_value_t value);
/* There is no body after all. */
void cleave_lowering_refuse(cleave_lowering_t *lowering, const char *reason);

/* The bodies, by subject. */
void cleave_lower_gelu(cleave_lowering_t *lowering);
void cleave_lower_hard_swish(cleave_lowering_t *lowering);
void cleave_lower_mish(cleave_lowering_t *lowering);
void cleave_lower_swish(cleave_lowering_t *lowering);
void cleave_lower_relu(cleave_lowering_t *lowering);
void cleave_lower_cast_like(cleave_lowering_t *lowering);
void cleave_lower_reduce(cleave_lowering_t *lowering);
void cleave_lower_shape(cleave_lowering_t *lowering);
void cleave_lower_split(cleave_lowering_t *lowering);
void cleave_lower_pad(cleave_lowering_t *lowering);
void cleave_lower_trilu(cleave_lowering_t *lowering);
void cleave_lower_unpack_bits(cleave_lowering_t *lowering);
void cleave_lower_window(cleave_lowering_t *lowering);
void cleave_lower_affine_grid(cleave_lowering_t *lowering);
void cleave_lower_bernoulli(cleave_lowering_t *lowering);
void cleave_lower_center_crop_pad(cleave_lowering_t *lowering);
void cleave_lower_attention(cleave_lowering_t *lowering);
void cleave_lower_batch_normalization(cleave_lowering_t *lowering);
void cleave_lower_group_normalization(cleave_lowering_t *lowering);
void cleave_lower_layer_normalization(cleave_lowering_t *lowering);
void cleave_lower_rms_normalization(cleave_lowering_t *lowering);
void cleave_lower_recurrent(cleave_lowering_t *lowering);

/* onnx_lower.c: Operators that an operator set lacks, spelled with those that it has: a small graph per node,
 * of canonical operators, which the writer writes as a model-local function, and lowers in turn if that is
 * needed. */

/* Is the operator in the table of bodies? */
bool cleave_onnx_has_body(const cleave_op_t *op);

/* The body of a node with the inputs, outputs and types of that node. `refused` is the element type that the
 * operator set has no form of this operator for; UNKNOWN if something else is the matter. *out_body stays
 * NULL, and *out_reason says why or stays NULL, if the operator has no body. */
CLEAVE_STATUS cleave_onnx_lower(const cleave_graph_t *graph, cleave_node_t node, cleave_dtype_t refused,
                                cleave_graph_t **out_body, const char **out_reason, cleave_error_t *error);

#endif /* CLEAVE_FORMATS_ONNX_WRITE_ONNX_LOWERING_H */
