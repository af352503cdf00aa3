// SPDX-License-Identifier: Apache-2.0
/* Operators on integers with a scale: floats between DequantizeLinear and QuantizeLinear, or integer
 * products. */
#include <string.h>

#include "formats/onnx/read/onnx_maker.h"

#define MAKE CLEAVE_MAKE

typedef cleave_onnx_maker_t maker_t;

/* The value that inputs `first` (integers, scale, zero point) stand for. */
static cleave_value_t dequantize(maker_t *m, uint32_t first) {
  return MAKE(m, "DequantizeLinear", cleave_make_input(m, first), cleave_make_input(m, first + 1),
              cleave_make_input(m, first + 2));
}

/* The first output: a value in integers, with scale and zero point from inputs `first`. */
static void quantize(maker_t *m, cleave_value_t value, uint32_t first) {
  cleave_make_output(
      m, 0, MAKE(m, "QuantizeLinear", value, cleave_make_input(m, first), cleave_make_input(m, first + 1)));
}

/* QLinearAdd is Add of what A and B stand for, and so on. */
void cleave_onnx_mean_q_linear(maker_t *m) {
  const char *op = m->call->node->op_type + strlen("QLinear");
  bool is_binary = strcmp(op, "Add") == 0 || strcmp(op, "Mul") == 0;
  cleave_value_t a = dequantize(m, 0);
  cleave_value_t b = is_binary ? dequantize(m, 3) : CLEAVE_ONNX_NONE;
  cleave_value_t y = MAKE(m, op, a, b);
  cleave_make_copy(m, "alpha");
  quantize(m, y, is_binary ? 6 : 3);
}

void cleave_onnx_mean_q_linear_concat(maker_t *m) {
  size_t count = m->call->inputs.count / 3; /* scale and zero point of the result, then three for each part */
  if (count == 0 || count > CLEAVE_MAX_RANK * 8 || m->call->inputs.count % 3 != 2) {
    cleave_make_refuse(m, "expected two inputs, then three for each of up to 64 parts");
    return;
  }
  cleave_value_t parts[CLEAVE_MAX_RANK * 8];
  for (size_t k = 0; k < count; k++) {
    parts[k] = dequantize(m, (uint32_t)(2 + 3 * k));
  }
  cleave_value_t y = cleave_make_node(m, "Concat", parts, (uint32_t)count, 1);
  cleave_make_copy(m, "axis");
  quantize(m, y, 0);
}

void cleave_onnx_mean_q_linear_pool(maker_t *m) {
  cleave_make_expect(m, "channels_last", 0);
  cleave_value_t x = dequantize(m, 0);
  quantize(m, MAKE(m, "GlobalAveragePool", x), 3);
}

/* An integer product as floats, plus a bias. */
static void scaled_product(maker_t *m, const cleave_value_t *operands, cleave_value_t scale,
                           cleave_value_t bias) {
  cleave_value_t y = cleave_make_node(m, "MatMulInteger", operands, 4, 1);
  y = MAKE(m, "Mul", cleave_make_cast(m, y, CLEAVE_DTYPE_F32), scale);
  cleave_make_output(m, 0, cleave_make_sum(m, y, bias));
}

/* A (floats), B, scale of B, zero point of B, bias. */
void cleave_onnx_mean_dynamic_quantize_matmul(maker_t *m) {
  cleave_value_t a = cleave_make_input(m, 0);
  a = cleave_make_node(m, "DynamicQuantizeLinear", &a, 1, 3);
  cleave_value_t scale = cleave_make_result(m, 1);
  cleave_value_t operands[] = {a, cleave_make_input(m, 1), cleave_make_result(m, 2), cleave_make_input(m, 3)};
  scale = MAKE(m, "Mul", scale, cleave_make_input(m, 2));
  scaled_product(m, operands, scale, cleave_make_input(m, 4));
}

/* A, B, their scales, their zero points, bias. */
void cleave_onnx_mean_matmul_integer_to_float(maker_t *m) {
  cleave_value_t operands[] = {cleave_make_input(m, 0), cleave_make_input(m, 1), cleave_make_input(m, 4),
                               cleave_make_input(m, 5)};
  cleave_value_t scale = MAKE(m, "Mul", cleave_make_input(m, 2), cleave_make_input(m, 3));
  scaled_product(m, operands, scale, cleave_make_input(m, 6));
}

/* As ONNX's own of the same name. */
void cleave_onnx_mean_quantize(maker_t *m) {
  cleave_value_t y = MAKE(m, m->call->node->op_type, cleave_make_input(m, 0), cleave_make_input(m, 1),
                          cleave_make_input(m, 2));
  cleave_make_copy(m, "axis block_size");
  cleave_make_output(m, 0, y);
}
