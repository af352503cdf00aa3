// SPDX-License-Identifier: Apache-2.0
// For tests: a failure fails the test.
#include "canonical_case.h"

#include "unit.h"

const cleave_tensor_t *canonical_case_constant(const cleave_graph_t *graph, uint32_t node, uint32_t index) {
  cleave_value_t value = cleave_node_input(graph, (cleave_node_t){node}, index);
  ck_assert(cleave_value_exists(value));
  const cleave_tensor_t *tensor = cleave_graph_value(graph, value)->tensor;
  ck_assert_ptr_nonnull(tensor);
  return tensor;
}

void canonical_case_ints(const cleave_graph_t *graph, uint32_t node, uint32_t index, const int64_t *values,
                         int64_t count) {
  const cleave_tensor_t *tensor = canonical_case_constant(graph, node, index);
  ck_assert_int_eq((int)tensor->dtype, CLEAVE_DTYPE_I64);
  ck_assert_int_eq(tensor->rank, 1);
  ck_assert_int_eq(tensor->count, count);
  for (int64_t k = 0; k < count; k++) {
    ck_assert_int_eq(cleave_tensor_get_int(tensor, k), values[k]);
  }
}

cleave_graph_t *canonical_case_read(onnx_builder_t *b) {
  cleave_graph_t *graph = NULL;
  unit_ok(onnx_read(b, &graph, e));
  return graph;
}

void canonical_case_begin(onnx_builder_t *b, int64_t opset, const char *dims) {
  onnx_begin(b, opset < 9 ? 3 : 8, opset);
  onnx_input(b, "x", CLEAVE_DTYPE_F32, dims);
}
