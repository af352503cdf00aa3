// SPDX-License-Identifier: Apache-2.0
/* Bodies of activations, reductions, and operators about types and shapes. ONNX gives those of Gelu,
 * HardSwish, Mish, Swish and CastLike ("Operator Schemas", function bodies). */
#include <math.h>
#include <string.h>

#include "formats/onnx/write/onnx_lowering.h"
#include "tensor/dtype.h"

#define NONE CLEAVE_VALUE_NONE

static cleave_value_t unary(cleave_lowering_t *l, const char *op, cleave_value_t x) {
  return cleave_lowering_emit(l, op, x, NONE, NONE);
}

static cleave_value_t binary(cleave_lowering_t *l, const char *op, cleave_value_t a, cleave_value_t b) {
  return cleave_lowering_emit(l, op, a, b, NONE);
}

static cleave_value_t scaled(cleave_lowering_t *l, cleave_value_t x, double factor) {
  return binary(l, "Mul", x, cleave_lowering_number(l, cleave_lowering_dtype(l, 0), factor));
}

static cleave_dtype_t known_dtype(cleave_lowering_t *l) {
  cleave_dtype_t dtype = cleave_lowering_dtype(l, 0);
  if (dtype == CLEAVE_DTYPE_UNKNOWN) {
    cleave_lowering_refuse(l, "its element type is not known");
  }
  return dtype;
}

/* x/2 (1 + erf(x/sqrt 2)), or x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
void cleave_lower_gelu(cleave_lowering_t *l) {
  cleave_value_t x = cleave_lowering_input(l, 0);
  cleave_dtype_t dtype = known_dtype(l);
  cleave_value_t inner;
  if (strcmp(cleave_op_text(l->source, l->node, "approximate", "none"), "tanh") == 0) {
    cleave_value_t cube = binary(l, "Mul", binary(l, "Mul", x, x), x);
    inner =
        unary(l, "Tanh", scaled(l, binary(l, "Add", x, scaled(l, cube, 0.044715)), sqrt(2.0 / acos(-1.0))));
  } else {
    inner = unary(l, "Erf", scaled(l, x, sqrt(0.5)));
  }
  cleave_value_t sum = binary(l, "Add", inner, cleave_lowering_number(l, dtype, 1.0));
  cleave_lowering_output(l, binary(l, "Mul", scaled(l, x, 0.5), sum));
}

void cleave_lower_hard_swish(cleave_lowering_t *l) {
  cleave_value_t x = cleave_lowering_input(l, 0);
  cleave_value_t gate = unary(l, "HardSigmoid", x);
  cleave_lowering_set_float(l, "alpha", 1.0 / 6.0);
  cleave_lowering_set_float(l, "beta", 0.5);
  cleave_lowering_output(l, binary(l, "Mul", x, gate));
}

void cleave_lower_mish(cleave_lowering_t *l) {
  cleave_value_t x = cleave_lowering_input(l, 0);
  cleave_lowering_output(l, binary(l, "Mul", x, unary(l, "Tanh", unary(l, "Softplus", x))));
}

void cleave_lower_swish(cleave_lowering_t *l) {
  cleave_value_t x = cleave_lowering_input(l, 0);
  double alpha = cleave_op_float(l->source, l->node, "alpha", 1.0);
  (void)known_dtype(l);
  cleave_lowering_output(l, binary(l, "Mul", x, unary(l, "Sigmoid", alpha == 1.0 ? x : scaled(l, x, alpha))));
}

/* Lowers Relu of integers. */
void cleave_lower_relu(cleave_lowering_t *l) {
  cleave_lowering_output(
      l, binary(l, "Max", cleave_lowering_input(l, 0), cleave_lowering_number(l, known_dtype(l), 0.0)));
}

void cleave_lower_cast_like(cleave_lowering_t *l) {
  cleave_dtype_t dtype = cleave_lowering_dtype(l, 1);
  if (dtype == CLEAVE_DTYPE_UNKNOWN) {
    cleave_lowering_refuse(l, "the element type of its target is not known");
  }
  cleave_lowering_output(l,
                         cleave_lowering_cast(l, cleave_lowering_input(l, 0), CLEAVE_DTYPE_UNKNOWN, dtype));
}

static cleave_value_t sum_over(cleave_lowering_t *l, cleave_value_t x, bool keeps) {
  cleave_value_t y = binary(l, "ReduceSum", x, cleave_lowering_input(l, 1));
  cleave_lowering_set_int(l, "keepdims", keeps);
  cleave_lowering_set_int(l, "noop_with_empty_axes",
                          cleave_op_int(l->source, l->node, "noop_with_empty_axes", 0));
  return y;
}

/* Axes that are not constant: only ReduceSum takes those before opset 18. */
void cleave_lower_reduce(cleave_lowering_t *l) {
  cleave_value_t x = cleave_lowering_input(l, 0);
  cleave_dtype_t dtype = known_dtype(l);
  bool keeps = cleave_op_int(l->source, l->node, "keepdims", 1) != 0;
  switch (cleave_node_op(l->source, l->node)->id) {
    case CLEAVE_OP_ReduceL1: x = sum_over(l, unary(l, "Abs", x), keeps); break;
    case CLEAVE_OP_ReduceL2: x = unary(l, "Sqrt", sum_over(l, binary(l, "Mul", x, x), keeps)); break;
    case CLEAVE_OP_ReduceLogSum: x = unary(l, "Log", sum_over(l, x, keeps)); break;
    case CLEAVE_OP_ReduceLogSumExp: { /* less the largest of all, so that no power overflows */
      cleave_value_t most = unary(l, "ReduceMax", x);
      cleave_lowering_set_int(l, "keepdims", 0);
      cleave_value_t sum = sum_over(l, unary(l, "Exp", binary(l, "Sub", x, most)), keeps);
      x = binary(l, "Add", unary(l, "Log", sum), most);
      break;
    }
    case CLEAVE_OP_ReduceSumSquare: x = sum_over(l, binary(l, "Mul", x, x), keeps); break;
    default: { /* ReduceMean: by the sum of as many ones */
      cleave_value_t ones = cleave_lowering_emit(l, "Expand", cleave_lowering_number(l, dtype, 1.0),
                                                 unary(l, "Shape", x), NONE);
      x = binary(l, "Div", sum_over(l, x, keeps), sum_over(l, ones, keeps));
    }
  }
  cleave_lowering_output(l, x);
}

/* A part of the shape. */
void cleave_lower_shape(cleave_lowering_t *l) {
  int64_t start = cleave_op_int(l->source, l->node, "start", 0);
  int64_t end = cleave_op_int(l->source, l->node, "end", INT64_MAX);
  cleave_lowering_output(
      l, cleave_lowering_emit(l, "Slice", unary(l, "Shape", cleave_lowering_input(l, 0)),
                              cleave_lowering_ints(l, &start, 1), cleave_lowering_ints(l, &end, 1)));
}

/* Into parts that are not equal: the last one is smaller. */
void cleave_lower_split(cleave_lowering_t *l) {
  int32_t rank = cleave_lowering_rank(l, 0);
  int64_t axis = cleave_op_int(l->source, l->node, "axis", 0);
  uint32_t parts = cleave_node_output_count(l->source, l->node);
  int64_t left = cleave_lowering_dim(l, 0, (int32_t)(axis < 0 ? axis + rank : axis));
  int64_t each = (left + parts - 1) / parts;
  cleave_tensor_t *sizes = NULL;
  cleave_value_t inputs[2] = {cleave_lowering_input(l, 0), NONE};
  l->status = cleave_tensor_create(CLEAVE_DTYPE_I64, 1, (int64_t[]){parts}, &sizes, l->error);
  for (uint32_t k = 0; k < parts && l->status == CLEAVE_OK; k++) {
    int64_t size = left < each ? left : each;
    memcpy((char *)sizes->data + k * sizeof size, &size, sizeof size);
    left -= size;
  }
  if (l->status == CLEAVE_OK) {
    l->status = cleave_graph_add_constant(l->graph, NULL, sizes, &inputs[1], l->error);
  }
  cleave_tensor_release(sizes);
  if (l->status == CLEAVE_OK) {
    l->status = cleave_graph_add_node(l->graph, cleave_op_find("", "Split"), NULL, inputs, 2, parts, &l->last,
                                      l->error);
  }
  cleave_lowering_set_int(l, "axis", axis);
  for (uint32_t k = 0; k < parts && l->status == CLEAVE_OK; k++) {
    cleave_lowering_output(l, cleave_node_output(l->graph, l->last, k));
  }
}

/* With axes: pads of all axes, zero for the others. */
void cleave_lower_pad(cleave_lowering_t *l) {
  const cleave_tensor_t *axes = cleave_lowering_constant(l, 3);
  int64_t rank = cleave_lowering_rank(l, 0);
  int64_t places[2 * CLEAVE_MAX_RANK];
  static const int64_t zeros[2 * CLEAVE_MAX_RANK] = {0};
  if (axes == NULL || rank < 0 || axes->count > rank) {
    cleave_lowering_refuse(l, axes == NULL ? "its axes are not constant" : "its rank is not known");
    return;
  }
  for (int64_t k = 0; k < axes->count; k++) {
    int64_t axis = cleave_tensor_get_int(axes, k);
    places[k] = axis < 0 ? axis + rank : axis;
    places[axes->count + k] = places[k] + rank;
  }
  cleave_value_t pads = cleave_lowering_emit(
      l, "ScatterElements", cleave_lowering_ints(l, zeros, 2 * (size_t)rank),
      cleave_lowering_ints(l, places, 2 * (size_t)axes->count), cleave_lowering_input(l, 1));
  cleave_value_t y =
      cleave_lowering_emit(l, "Pad", cleave_lowering_input(l, 0), pads, cleave_lowering_input(l, 2));
  const cleave_attribute_t *mode = cleave_op_attribute(l->source, l->node, "mode");
  if (mode != NULL && l->status == CLEAVE_OK && l->reason == NULL) {
    l->status = cleave_graph_set_attribute(l->graph, l->last, mode, l->error);
  }
  cleave_lowering_output(l, y);
}

/* 0 .. size - 1 of dimension `d`, with an axis of size 1 after it if it is the rows. */
static cleave_value_t numbers_of(cleave_lowering_t *l, cleave_value_t shape, int64_t d) {
  static const int64_t one = 1;
  cleave_value_t size = binary(l, "Gather", shape, cleave_lowering_number(l, CLEAVE_DTYPE_I64, (double)d));
  cleave_value_t numbers = cleave_lowering_emit(l, "Range", cleave_lowering_number(l, CLEAVE_DTYPE_I64, 0.0),
                                                size, cleave_lowering_number(l, CLEAVE_DTYPE_I64, 1.0));
  return d == -2 ? binary(l, "Unsqueeze", numbers, cleave_lowering_ints(l, &one, 1)) : numbers;
}

/* Keeps what lies on one side of diagonal k; the rest becomes zeros. */
void cleave_lower_trilu(cleave_lowering_t *l) {
  cleave_value_t x = cleave_lowering_input(l, 0);
  cleave_value_t k = cleave_lowering_input(l, 1);
  cleave_dtype_t dtype = known_dtype(l);
  bool upper = cleave_op_int(l->source, l->node, "upper", 1) != 0;
  cleave_value_t shape = unary(l, "Shape", x);
  cleave_value_t rows = numbers_of(l, shape, -2);
  cleave_value_t columns = numbers_of(l, shape, -1);
  rows = cleave_value_exists(k) ? binary(l, "Add", rows, k) : rows;
  cleave_value_t kept = binary(l, upper ? "GreaterOrEqual" : "LessOrEqual", columns, rows);
  cleave_lowering_output(l, cleave_lowering_emit(l, "Where", kept, x, cleave_lowering_number(l, dtype, 0.0)));
}
