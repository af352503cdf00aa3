// SPDX-License-Identifier: Apache-2.0
// MatMulNBits: its weights stay packed, which numbers, scales and zero points they stand for, and what is
// refused.
#include "onnx_builder.h"
#include "ops/ops.h"
#include "runtime/model/bind.h"
#include "unit.h"

// A product with N = 2 columns and blocks of 8, of x[3, K].
static void begin(onnx_builder_t *b, const char *shape) {
  onnx_begin(b, 8, 17);
  onnx_opset(b, "com.microsoft", 1);
  onnx_input(b, "x", CLEAVE_DTYPE_F32, shape);
}

static void end(onnx_builder_t *b, const char *inputs, int64_t depth, int64_t bits) {
  onnx_node(b, "MatMulNBits", inputs, "y");
  onnx_domain(b, "com.microsoft");
  onnx_int(b, "K", depth);
  onnx_int(b, "N", 2);
  onnx_int(b, "bits", bits);
  onnx_int(b, "block_size", 8);
  onnx_end_node(b);
  onnx_output(b, "y", CLEAVE_DTYPE_F32, "3 2");
}

static const cleave_tensor_t *input_of(const cleave_graph_t *graph, cleave_node_t node, uint32_t index) {
  return cleave_graph_value(graph, cleave_node_input(graph, node, index))->tensor;
}

static cleave_node_t producer_of(const cleave_graph_t *graph, cleave_node_t node, uint32_t index) {
  return cleave_value_producer(graph, cleave_node_input(graph, node, index));
}

// The node with this operator.
static cleave_node_t find(const cleave_graph_t *graph, cleave_op_id_t op) {
  for (uint32_t k = 0; k < cleave_graph_node_bound(graph); k++) {
    if (cleave_node_op(graph, (cleave_node_t){k}) != NULL &&
        cleave_node_op(graph, (cleave_node_t){k})->id == op) {
      return (cleave_node_t){k};
    }
  }
  ck_abort_msg("there is no %s", cleave_op_get(op)->name);
  return CLEAVE_NODE_NONE;
}

static void check_tensor(const cleave_tensor_t *tensor, cleave_dtype_t dtype, const double *expected,
                         int64_t rows) {
  ck_assert_ptr_nonnull(tensor);
  ck_assert_int_eq(tensor->dtype, dtype);
  ck_assert_int_eq(tensor->rank, 2);
  ck_assert_int_eq(tensor->dims[0], rows);
  ck_assert_int_eq(tensor->dims[1], 2);
  for (int64_t k = 0; k < 2 * rows; k++) {
    ck_assert_double_eq(cleave_tensor_get_float(tensor, k), expected[k]);
  }
}

// Once the model is simplified, weights are as they are in the file, packed; all else is computed.
static cleave_node_t check_packed(cleave_graph_t *graph, const uint8_t *packed, size_t bytes) {
  unit_ok(cleave_graph_simplify(graph, NULL, 0, NULL, e));
  cleave_node_t numbers = find(graph, CLEAVE_OP_DequantizeLinear);
  cleave_node_t unpack = producer_of(graph, numbers, 0);
  ck_assert_int_eq(cleave_node_op(graph, unpack)->id, CLEAVE_OP_UnpackBits);
  const cleave_tensor_t *tensor = input_of(graph, unpack, 0);
  ck_assert_uint_eq(tensor->bytes, bytes);
  ck_assert_mem_eq(tensor->data, packed, bytes);
  return numbers;
}

// What a session computes with: all constants are folded.
static void check_numbers(cleave_graph_t *graph, const double *integers, const double *zeros,
                          const double *scales, int64_t rows) {
  const bool keep_node[1] = {false};
  double expected[2 * 12];
  for (int64_t k = 0; k < 2 * rows; k++) {
    int64_t at = k / 16 * 2 + k % 2; /* blocks of 8 */
    expected[k] = (integers[k] - zeros[at]) * scales[at];
  }
  unit_ok(cleave_graph_simplify(graph, keep_node, 0, NULL, e));
  check_tensor(input_of(graph, find(graph, CLEAVE_OP_MatMul), 1), CLEAVE_DTYPE_F32, expected, rows);
}

UNIT_TEST(four_bits_without_zero_points_are_signed_integers) {
  static const uint8_t packed[] = {0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe,
                                   0xff, 0xee, 0xdd, 0xcc, 0x08, 0x80, 0x77, 0x01};
  // 12 rows: of each second block the last four numbers stand for nothing.
  static const double integers[] = {-8, 7, -7, 7, -6, 6, -5, 6,  -4, 5,  -3, 5,
                                    -2, 4, -1, 4, 0,  0, 1,  -8, 2,  -8, 3,  0};
  static const double scales[] = {0.5, 2, 0.25, 4};
  onnx_builder_t b;
  cleave_graph_t *graph = NULL;
  begin(&b, "3 12");
  onnx_bytes(&b, "w", "2 2 4", packed, sizeof packed);
  onnx_floats(&b, "s", "4", (float[]){0.5f, 0.25f, 2, 4}, 4);
  end(&b, "x w s", 12, 4);
  unit_ok(onnx_read(&b, &graph, e));
  cleave_node_t node = check_packed(graph, packed, sizeof packed);
  ck_assert_uint_eq(cleave_node_input_count(graph, node), 2);
  ck_assert_int_eq(cleave_graph_value(graph, cleave_node_input(graph, node, 0))->dtype, CLEAVE_DTYPE_I8);
  check_tensor(input_of(graph, node, 1), CLEAVE_DTYPE_F32, scales, 2);
  ck_assert_int_eq(cleave_node_attribute(graph, node, "axis")->i, 0);
  ck_assert_int_eq(cleave_node_attribute(graph, node, "block_size")->i, 8);
  check_numbers(graph, integers, (double[4]){0}, scales, 12);
  cleave_graph_destroy(graph);
}

UNIT_TEST(zero_points_are_unpacked_as_weights_are_and_a_bias_is_added) {
  static const uint8_t packed[] = {0xe4, 0x1b, 0xff, 0x00};
  static const double integers[] = {0, 3, 1, 3, 2, 3, 3, 3, 3, 0, 2, 0, 1, 0, 0, 0};
  static const double zeros[] = {1, 2};
  onnx_builder_t b;
  cleave_graph_t *graph = NULL;
  begin(&b, "3 8");
  onnx_bytes(&b, "w", "2 1 2", packed, sizeof packed);
  onnx_floats(&b, "s", "2 1", (float[]){1, 2}, 2);
  onnx_bytes(&b, "z", "2 1", (uint8_t[]){0x01, 0xfe}, 2);  // the upper bits are of no block
  onnx_floats(&b, "bias", "2", (float[]){1, 2}, 2);
  end(&b, "x w s z - bias", 8, 2);
  unit_ok(onnx_read(&b, &graph, e));
  cleave_node_t node = check_packed(graph, packed, sizeof packed);
  ck_assert_int_eq(cleave_graph_value(graph, cleave_node_input(graph, node, 0))->dtype, CLEAVE_DTYPE_U8);
  check_tensor(input_of(graph, node, 2), CLEAVE_DTYPE_U8, zeros, 1);
  cleave_node_t sum = find(graph, CLEAVE_OP_Add);
  ck_assert_int_eq(cleave_node_op(graph, producer_of(graph, sum, 0))->id, CLEAVE_OP_MatMul);
  check_numbers(graph, integers, zeros, (double[2]){1, 2}, 8);
  cleave_graph_destroy(graph);
}

static void refuse(const char *inputs, int64_t depth, int64_t bits, const char *reason) {
  static const uint8_t packed[16];
  char message[200];
  onnx_builder_t b;
  begin(&b, "3 8");
  onnx_input(&b, "given", CLEAVE_DTYPE_U8, "2 1 4");
  onnx_bytes(&b, "w", "2 1 4", packed, 8);
  onnx_bytes(&b, "long", "2 2 4", packed, 16);
  onnx_floats(&b, "s", "2", (float[]){1, 1}, 2);
  onnx_bytes(&b, "z", "2", packed, 2);
  end(&b, inputs, depth, bits);
  (void)snprintf(message, sizeof message, "model: node 'y': operator 'MatMulNBits' of opset 1: %s", reason);
  onnx_refused(&b, CLEAVE_ERROR_UNSUPPORTED, message);
}

UNIT_TEST(what_is_not_packed_so_is_refused) {
  static const char size[] = "weights, scales or zero points have another size";
  refuse("x given s", 8, 4, "its weights are not constant");
  refuse("x w s z z", 8, 4, "the order of its groups (g_idx) is not read");
  refuse("x w s", 8, 3, "expected 2, 4 or 8 bits");
  refuse("x w s", 0, 4, "K, N or block_size is no size of packed weights");
  refuse("x w s", INT64_MAX, 4, "K, N or block_size is no size of packed weights");
  refuse("x w s", INT32_MAX, 4, size);
  refuse("x long s", 8, 4, size);
  refuse("x w s", 8, 8, size);
  refuse("x w long", 8, 4, "expected packed weights and zero points in uint8");
  refuse("x s s", 8, 4, "expected packed weights and zero points in uint8");
  refuse("x w s long", 8, 4, size);
}

UNIT_SUITE("onnx_n_bits")
