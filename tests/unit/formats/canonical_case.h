// SPDX-License-Identifier: Apache-2.0
/* Old forms of operators, read from bytes of a model. */
#ifndef CLEAVE_TESTS_CANONICAL_CASE_H
#define CLEAVE_TESTS_CANONICAL_CASE_H

#include "onnx_builder.h"

/* Begins a model of this opset with an input x of float32. */
void canonical_case_begin(onnx_builder_t *b, int64_t opset, const char *dims);

cleave_graph_t *canonical_case_read(onnx_builder_t *b);

/* Constant data of input `index` of the only node, or of node number `node`. */
const cleave_tensor_t *canonical_case_constant(const cleave_graph_t *graph, uint32_t node, uint32_t index);

/* These constant data are a vector of int64. */
void canonical_case_ints(const cleave_graph_t *graph, uint32_t node, uint32_t index, const int64_t *values,
                         int64_t count);

#endif /* CLEAVE_TESTS_CANONICAL_CASE_H */
