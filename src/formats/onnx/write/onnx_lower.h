// SPDX-License-Identifier: Apache-2.0
/*
 * Operators that an operator set lacks, spelled with those that it has: a small graph per node, of canonical
 * operators, which the writer writes as a model-local function, and lowers in turn if that is needed.
 */
#ifndef CLEAVE_FORMATS_ONNX_WRITE_ONNX_LOWER_H
#define CLEAVE_FORMATS_ONNX_WRITE_ONNX_LOWER_H

#include "ops/ops.h"

/* The body of a node with the inputs, outputs and types of that node. `refused` is the element type that the
 * operator set has no form of this operator for; UNKNOWN if something else is the matter. *out_body stays
 * NULL, and *out_reason says why or stays NULL, if the operator has no body. */
CLEAVE_MUST_USE cleave_status_t cleave_onnx_lower(const cleave_graph_t *graph, cleave_node_t node,
                                                  cleave_dtype_t refused, cleave_graph_t **out_body,
                                                  const char **out_reason, cleave_error_t *error);

#endif /* CLEAVE_FORMATS_ONNX_WRITE_ONNX_LOWER_H */
