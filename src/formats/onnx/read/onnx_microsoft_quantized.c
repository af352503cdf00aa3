// SPDX-License-Identifier: Apache-2.0
/* Operators on integers with a scale: floats between DequantizeLinear and QuantizeLinear, integer products,
 * or rows of a table of integers. */
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

/* ---- GatherBlockQuantized: rows of a table, whose numbers come in blocks with a scale each ---- */

/* Rows of a table, and of numbers that are packed in its last axis one for each element: `count` in a row. */
typedef struct packing {
  bool is_packed;
  int64_t bits;
  int64_t from; /* the axis that rows are gathered along */
  cleave_value_t indices;
} packing_t;

static cleave_value_t gather(maker_t *m, cleave_value_t table, const packing_t *packing) {
  if (!cleave_value_exists(table)) {
    return table;
  }
  cleave_value_t rows = MAKE(m, "Gather", table, packing->indices);
  cleave_make_int(m, "axis", packing->from);
  return rows;
}

static cleave_value_t unpack(maker_t *m, const packing_t *packing, cleave_value_t table, int64_t count,
                             bool is_signed) {
  if (!packing->is_packed || !cleave_value_exists(table) || (packing->bits == 8 && !is_signed)) {
    return table;
  }
  cleave_value_t numbers = MAKE(m, "UnpackBits", table);
  cleave_make_int(m, "axis", -1);
  cleave_make_int(m, "bits", packing->bits);
  cleave_make_int(m, "count", count);
  cleave_make_int(m, "signed", is_signed);
  return numbers;
}

/* Only what is gathered is unpacked, unless the indices are of the axis that has the bytes. */
static cleave_value_t rows_of(maker_t *m, const packing_t *packing, cleave_value_t table, int64_t count,
                              bool is_signed) {
  if (packing->from == cleave_make_rank(m, table) - 1) {
    return gather(m, unpack(m, packing, table, count, is_signed), packing);
  }
  return unpack(m, packing, gather(m, table, packing), count, is_signed);
}

void cleave_onnx_mean_gather_block_quantized(maker_t *m) {
  enum { DATA, INDICES, SCALES, ZERO_POINTS };
  cleave_value_t data = cleave_make_input(m, DATA);
  cleave_value_t indices = cleave_make_input(m, INDICES);
  int32_t rank = cleave_make_rank(m, data);
  int32_t index_rank = cleave_make_rank(m, indices);
  int64_t bits = cleave_onnx_call_int(m->call, "bits", 4);
  int64_t from = cleave_onnx_call_int(m->call, "gather_axis", 0);
  int64_t axis = cleave_onnx_call_int(m->call, "quantize_axis", 1);
  from += from < 0 ? rank : 0;
  axis += axis < 0 ? rank : 0;
  if (rank < 1 || index_rank < 0) {
    cleave_make_refuse(m, "the rank of its table or of its indices is not known");
  } else if (from < 0 || from >= rank || axis < 0 || axis >= rank || from == axis) {
    cleave_make_refuse(m, "expected two axes of its table, one for the indices and one for blocks");
  } else if (bits != 4 && bits != 8) {
    cleave_make_refuse(m, "expected 4 or 8 bits");
  }
  if (m->status != CLEAVE_OK) {
    return;
  }
  /* uint8 has half of its range below zero, unless zero points say otherwise; int4 and uint4 are bytes
   * already. */
  const cleave_value_record_t *record = cleave_graph_value(m->call->builder->graph, data);
  const packing_t packing = {.is_packed = record->dtype == CLEAVE_DTYPE_U8 &&
                                          (record->tensor == NULL || !record->tensor->is_four_bits),
                             .bits = bits,
                             .from = from,
                             .indices = indices};
  int64_t bytes = cleave_make_dim(m, data, rank - 1);
  if (packing.is_packed && (bytes < 1 || bytes > INT32_MAX)) {
    cleave_make_refuse(m, "the size of its packed rows is not known");
    return;
  }
  cleave_value_t scales = cleave_make_input(m, SCALES);
  int64_t count = bytes * (8 / bits);
  int64_t points = axis == rank - 1 ? cleave_make_dim(m, scales, rank - 1) : count;
  data = rows_of(m, &packing, data, count, !cleave_make_has(m, ZERO_POINTS));
  cleave_value_t zeros = rows_of(m, &packing, cleave_make_input(m, ZERO_POINTS), points, false);
  cleave_value_t y = MAKE(m, "DequantizeLinear", data, gather(m, scales, &packing), zeros);
  cleave_make_int(m, "axis", axis > from ? axis + index_rank - 1 : axis);
  cleave_make_int(m, "block_size", cleave_onnx_call_int(m->call, "block_size", 128));
  cleave_make_output(m, 0, y);
}
