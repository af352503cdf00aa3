// SPDX-License-Identifier: Apache-2.0
/*
 * MatMulNBits of the domain com.microsoft: a product with constant weights of 2, 4 or 8 bits, which becomes
 * DequantizeLinear of UnpackBits and MatMul. Weights are [N, blocks, bytes of a block], the first ones in the
 * lowest bits; scales and zero points are [N, blocks], and zero points are packed per row as weights are.
 */
#include "formats/onnx/read/onnx_canonical.h"

/* Inputs by position. */
enum { A, B, SCALES, ZERO_POINTS, G_IDX, BIAS };

typedef struct packed {
  int64_t depth;
  int64_t columns;
  int64_t block;
  int64_t blocks; /* of a column */
  int64_t bits;
} packed_t;

static const cleave_tensor_t *tensor_of(const cleave_onnx_call_t *call, uint32_t index) {
  cleave_value_t value = cleave_onnx_call_input(call, index);
  return cleave_value_exists(value) ? cleave_graph_value(call->builder->graph, value)->tensor : NULL;
}

static bool is_given(const cleave_onnx_call_t *call, uint32_t index) {
  return cleave_value_exists(cleave_onnx_call_input(call, index));
}

static int64_t bytes_of(const packed_t *packed, int64_t count) {
  return (count * packed->bits - 1) / 8 + 1;
}

/* Sizes that fit each other and the tensors. */
static cleave_status_t check(const cleave_onnx_call_t *call, packed_t *packed, cleave_error_t *error) {
  const cleave_tensor_t *weights = tensor_of(call, B);
  const cleave_tensor_t *scales = tensor_of(call, SCALES);
  const cleave_tensor_t *zeros = tensor_of(call, ZERO_POINTS);
  *packed = (packed_t){.depth = cleave_onnx_call_int(call, "K", 0),
                       .columns = cleave_onnx_call_int(call, "N", 0),
                       .block = cleave_onnx_call_int(call, "block_size", 0),
                       .bits = cleave_onnx_call_int(call, "bits", 4)};
  if (packed->depth < 1 || packed->depth > INT32_MAX || packed->columns < 1 || packed->columns > INT32_MAX ||
      packed->block < 8 || packed->block > INT32_MAX || packed->block % 8 != 0) {
    return cleave_onnx_call_refuse(call, "K, N or block_size is no size of packed weights", error);
  }
  if (packed->bits != 2 && packed->bits != 4 && packed->bits != 8) {
    return cleave_onnx_call_refuse(call, "expected 2, 4 or 8 bits", error);
  }
  if (weights == NULL || scales == NULL || (is_given(call, ZERO_POINTS) && zeros == NULL)) {
    return cleave_onnx_call_refuse(call, "its weights are not constant", error);
  }
  if (is_given(call, G_IDX)) {
    return cleave_onnx_call_refuse(call, "the order of its groups (g_idx) is not read", error);
  }
  if (weights->dtype != CLEAVE_DTYPE_U8 || (zeros != NULL && zeros->dtype != CLEAVE_DTYPE_U8) ||
      !cleave_dtype_is_float(scales->dtype)) {
    return cleave_onnx_call_refuse(call, "expected packed weights and zero points in uint8", error);
  }
  packed->blocks = (packed->depth - 1) / packed->block + 1;
  int64_t groups = packed->columns * packed->blocks;
  if (weights->count / bytes_of(packed, packed->block) != groups ||
      weights->count % bytes_of(packed, packed->block) != 0 || scales->count != groups ||
      (zeros != NULL && zeros->count != packed->columns * bytes_of(packed, packed->blocks))) {
    return cleave_onnx_call_refuse(call, "weights, scales or zero points have another size", error);
  }
  return CLEAVE_OK;
}

/* Input `index` with a row for each column of the weights: a matrix, or the weights as they are. */
static cleave_status_t rows_of(cleave_onnx_call_t *call, const packed_t *packed, uint32_t index,
                               cleave_value_t *out_value, cleave_error_t *error) {
  const cleave_tensor_t *tensor = tensor_of(call, index);
  const int64_t dims[2] = {packed->columns, -1};
  cleave_value_t inputs[2] = {cleave_onnx_call_input(call, index), CLEAVE_VALUE_NONE};
  cleave_node_t node;
  *out_value = inputs[0];
  if ((tensor->rank == 2 || (tensor->rank == 3 && index == B)) && tensor->dims[0] == packed->columns) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(cleave_onnx_call_ints_constant(call, 1, dims, 2, &inputs[1], error));
  CLEAVE_TRY(cleave_onnx_call_emit(call, "Reshape", inputs, 2, &node, out_value, error));
  return cleave_onnx_builder_infer(call->builder, node, error);
}

/* The first `count` numbers of every column, transposed: [count, columns]. Weights stay packed until they are
 * needed (simplify.c). */
static cleave_status_t unpack(cleave_onnx_call_t *call, const packed_t *packed, uint32_t index, int64_t count,
                              bool is_signed, cleave_value_t *out_value, cleave_error_t *error) {
  cleave_graph_t *graph = call->builder->graph;
  cleave_value_t rows;
  cleave_node_t node;
  CLEAVE_TRY(rows_of(call, packed, index, &rows, error));
  CLEAVE_TRY(cleave_onnx_call_emit(call, "UnpackBits", &rows, 1, &node, out_value, error));
  CLEAVE_TRY(cleave_graph_set_int(graph, node, "bits", packed->bits, error));
  CLEAVE_TRY(cleave_graph_set_int(graph, node, "count", count, error));
  CLEAVE_TRY(cleave_graph_set_int(graph, node, "signed", is_signed, error));
  CLEAVE_TRY(cleave_graph_set_int(graph, node, "transposed", 1, error));
  return cleave_onnx_builder_infer(call->builder, node, error);
}

/* [blocks, columns] */
static cleave_status_t transpose_scales(cleave_onnx_call_t *call, const packed_t *packed,
                                        cleave_value_t *out_value, cleave_error_t *error) {
  cleave_value_t rows;
  cleave_node_t node;
  CLEAVE_TRY(rows_of(call, packed, SCALES, &rows, error));
  CLEAVE_TRY(cleave_onnx_call_emit(call, "Transpose", &rows, 1, &node, out_value, error));
  return cleave_onnx_builder_infer(call->builder, node, error);
}

/* Integers with a zero point of their own stay unsigned; others become signed, without one. */
static cleave_status_t dequantize(cleave_onnx_call_t *call, const packed_t *packed, cleave_value_t *out_value,
                                  cleave_error_t *error) {
  cleave_graph_t *graph = call->builder->graph;
  bool has_zeros = is_given(call, ZERO_POINTS);
  cleave_value_t inputs[3] = {CLEAVE_VALUE_NONE, CLEAVE_VALUE_NONE, CLEAVE_VALUE_NONE};
  cleave_node_t node;
  CLEAVE_TRY(unpack(call, packed, B, packed->depth, !has_zeros, &inputs[0], error));
  CLEAVE_TRY(transpose_scales(call, packed, &inputs[1], error));
  if (has_zeros) {
    CLEAVE_TRY(unpack(call, packed, ZERO_POINTS, packed->blocks, false, &inputs[2], error));
  }
  CLEAVE_TRY(
      cleave_onnx_call_emit(call, "DequantizeLinear", inputs, has_zeros ? 3 : 2, &node, out_value, error));
  CLEAVE_TRY(cleave_graph_set_int(graph, node, "axis", 0, error));
  CLEAVE_TRY(cleave_graph_set_int(graph, node, "block_size", packed->block, error));
  return cleave_onnx_builder_infer(call->builder, node, error);
}

cleave_status_t cleave_onnx_rewrite_matmul_n_bits(cleave_onnx_call_t *call, cleave_error_t *error) {
  packed_t packed;
  cleave_node_t node;
  cleave_value_t operands[2] = {cleave_onnx_call_input(call, A), CLEAVE_VALUE_NONE};
  CLEAVE_TRY(check(call, &packed, error));
  CLEAVE_TRY(dequantize(call, &packed, &operands[1], error));
  for (int is_sum = 0; is_sum <= (is_given(call, BIAS) ? 1 : 0); is_sum++) {
    cleave_value_t result = CLEAVE_VALUE_NONE;
    operands[1] = is_sum != 0 ? cleave_onnx_call_input(call, BIAS) : operands[1];
    CLEAVE_TRY(
        cleave_onnx_call_emit(call, is_sum != 0 ? "Add" : "MatMul", operands, 2, &node, &result, error));
    CLEAVE_TRY(cleave_onnx_builder_infer(call->builder, node, error));
    operands[0] = result;
  }
  cleave_graph_t *graph = call->builder->graph;
  if (call->node->output_count > 0) {
    const char *name = cleave_strings_text(&graph->strings, call->node->outputs[0]);
    CLEAVE_TRY(cleave_graph_set_value_name(graph, operands[0], name, error));
  }
  cleave_onnx_call_bind(call, 0, operands[0]);
  call->is_done = true;
  return CLEAVE_OK;
}
