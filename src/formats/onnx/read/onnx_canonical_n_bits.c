// SPDX-License-Identifier: Apache-2.0
/*
 * MatMulNBits of the domain com.microsoft: a product with constant weights of 2, 4 or 8 bits, which becomes
 * DequantizeLinear of bytes and MatMul. Weights are [N, blocks, bytes of a block], the first ones in the
 * lowest bits; scales and zero points are [N, blocks], and zero points are packed per row as weights are.
 */
#include <string.h>

#include "formats/onnx/read/onnx_canonical.h"

enum { COLUMNS = 64 };

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

/* One byte each, transposed: [length, columns] of `rows` that lie `stride` bytes apart, less `least`. */
static cleave_status_t unpack(cleave_onnx_call_t *call, const packed_t *packed, const cleave_tensor_t *from,
                              const int64_t length_stride[2], unsigned least, cleave_value_t *out_value,
                              cleave_error_t *error) {
  const int64_t dims[2] = {length_stride[0], packed->columns};
  const uint8_t *bytes = from->data;
  cleave_tensor_t *tensor = NULL;
  CLEAVE_TRY(cleave_tensor_create(least == 0 ? CLEAVE_DTYPE_U8 : CLEAVE_DTYPE_I8, 2, dims, &tensor, error));
  uint8_t *to = tensor->data;
  const unsigned mask = (1U << packed->bits) - 1U;
  /* Some columns at a time, so that what is written lies side by side. */
  for (int64_t first = 0; first < packed->columns; first += COLUMNS) {
    int64_t end = first + COLUMNS < packed->columns ? first + COLUMNS : packed->columns;
    for (int64_t k = 0; k < dims[0]; k++) {
      const uint8_t *row = bytes + k * packed->bits / 8;
      const unsigned shift = (unsigned)(k * packed->bits % 8);
      for (int64_t c = first; c < end; c++) {
        to[k * packed->columns + c] =
            (uint8_t)(((unsigned)row[c * length_stride[1]] >> shift & mask) - least);
      }
    }
  }
  cleave_status_t status = cleave_graph_add_constant(call->builder->graph, NULL, tensor, out_value, error);
  cleave_tensor_release(tensor);
  return status;
}

static cleave_status_t transpose_scales(cleave_onnx_call_t *call, const packed_t *packed,
                                        cleave_value_t *out_value, cleave_error_t *error) {
  const cleave_tensor_t *scales = tensor_of(call, SCALES);
  const int64_t dims[2] = {packed->blocks, packed->columns};
  cleave_tensor_t *tensor = NULL;
  CLEAVE_TRY(cleave_tensor_create(scales->dtype, 2, dims, &tensor, error));
  for (int64_t c = 0; c < packed->columns; c++) {
    for (int64_t b = 0; b < packed->blocks; b++) {
      cleave_tensor_set_float(tensor, b * packed->columns + c,
                              cleave_tensor_get_float(scales, c * packed->blocks + b));
    }
  }
  cleave_status_t status = cleave_graph_add_constant(call->builder->graph, NULL, tensor, out_value, error);
  cleave_tensor_release(tensor);
  return status;
}

/* Integers with a zero point of their own stay unsigned; others become signed, without one. */
static cleave_status_t dequantize(cleave_onnx_call_t *call, const packed_t *packed, cleave_value_t *out_value,
                                  cleave_error_t *error) {
  const cleave_tensor_t *zeros = tensor_of(call, ZERO_POINTS);
  const int64_t weights[2] = {packed->depth, packed->blocks * bytes_of(packed, packed->block)};
  const int64_t points[2] = {packed->blocks, bytes_of(packed, packed->blocks)};
  cleave_value_t inputs[3] = {CLEAVE_VALUE_NONE, CLEAVE_VALUE_NONE, CLEAVE_VALUE_NONE};
  cleave_node_t node;
  unsigned least = zeros != NULL ? 0 : 1U << (packed->bits - 1);
  CLEAVE_TRY(unpack(call, packed, tensor_of(call, B), weights, least, &inputs[0], error));
  CLEAVE_TRY(transpose_scales(call, packed, &inputs[1], error));
  if (zeros != NULL) {
    CLEAVE_TRY(unpack(call, packed, zeros, points, 0, &inputs[2], error));
  }
  CLEAVE_TRY(cleave_onnx_call_emit(call, "DequantizeLinear", inputs, zeros != NULL ? 3 : 2, &node, out_value,
                                   error));
  const cleave_attribute_t attributes[2] = {
      {.name = "axis", .kind = CLEAVE_ATTRIBUTE_INT, .i = 0},
      {.name = "block_size", .kind = CLEAVE_ATTRIBUTE_INT, .i = packed->block}};
  for (size_t k = 0; k < sizeof attributes / sizeof attributes[0]; k++) {
    CLEAVE_TRY(cleave_graph_set_attribute(call->builder->graph, node, &attributes[k], error));
  }
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
