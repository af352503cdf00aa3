// SPDX-License-Identifier: Apache-2.0
/* Bodies of operators that make tables of numbers (windows, sampling grids, draws), and of CenterCropPad.
 * Tables are computed in float32, or float64 for that type. And of UnpackBits: tables of packed numbers. */
#include <math.h>

#include "formats/onnx/write/onnx_lowering.h"
#include "tensor/dtype.h"

#define NONE CLEAVE_VALUE_NONE

static cleave_value_t unary(cleave_lowering_t *l, const char *op, cleave_value_t x) {
  return cleave_lowering_emit(l, op, x, NONE, NONE);
}

static cleave_value_t binary(cleave_lowering_t *l, const char *op, cleave_value_t a, cleave_value_t b) {
  return cleave_lowering_emit(l, op, a, b, NONE);
}

/* x with a number of the same type. */
static cleave_value_t with(cleave_lowering_t *l, const char *op, cleave_value_t x, cleave_dtype_t dtype,
                           double number) {
  return binary(l, op, x, cleave_lowering_number(l, dtype, number));
}

static cleave_value_t count_to(cleave_lowering_t *l, cleave_value_t size, cleave_dtype_t dtype) {
  return cleave_lowering_emit(l, "Range", cleave_lowering_number(l, dtype, 0.0), size,
                              cleave_lowering_number(l, dtype, 1.0));
}

static cleave_dtype_t computed_in(cleave_dtype_t dtype) {
  return dtype == CLEAVE_DTYPE_F64 ? CLEAVE_DTYPE_F64 : CLEAVE_DTYPE_F32;
}

/* a + b cos(2 pi n / N) + c cos(4 pi n / N), where N is the size, or one less for windows that do not repeat.
 */
static void window(cleave_lowering_t *l, double a, double b, double c) {
  cleave_node_t node = l->node;
  cleave_dtype_t result =
      (cleave_dtype_t)cleave_graph_value(l->source, cleave_node_output(l->source, node, 0))->dtype;
  cleave_dtype_t dtype = computed_in(result);
  if (cleave_lowering_rank(l, 0) != 0 || result == CLEAVE_DTYPE_UNKNOWN) {
    cleave_lowering_refuse(l, "its size is not a scalar, or its element type is not known");
    return;
  }
  cleave_value_t size =
      cleave_lowering_cast(l, cleave_lowering_input(l, 0), cleave_lowering_dtype(l, 0), dtype);
  bool repeats = cleave_op_int(l->source, node, "periodic", 1) != 0;
  cleave_value_t length = with(l, "Max", repeats ? size : with(l, "Sub", size, dtype, 1.0), dtype, 1.0);
  cleave_value_t turns = binary(l, "Div", count_to(l, size, dtype), length);
  double turn = 2.0 * acos(-1.0);
  cleave_value_t wave = unary(l, "Cos", with(l, "Mul", turns, dtype, turn));
  cleave_value_t y = with(l, "Add", with(l, "Mul", wave, dtype, b), dtype, a);
  if (c != 0.0) {
    wave = unary(l, "Cos", with(l, "Mul", turns, dtype, 2.0 * turn));
    y = binary(l, "Add", y, with(l, "Mul", wave, dtype, c));
  }
  cleave_lowering_output(l, cleave_lowering_cast(l, y, dtype, result));
}

void cleave_lower_window(cleave_lowering_t *l) {
  switch (cleave_node_op(l->source, l->node)->id) {
    case CLEAVE_OP_HannWindow: window(l, 0.5, -0.5, 0.0); break;
    case CLEAVE_OP_HammingWindow: window(l, 25.0 / 46.0, -21.0 / 46.0, 0.0); break;
    default: window(l, 0.42, -0.5, 0.08);
  }
}

/* Coordinates of one axis of the grid, from -1 to 1: shape [size] and a one for each of `ones`. */
static cleave_value_t coordinates(cleave_lowering_t *l, cleave_dtype_t dtype, int32_t axis, int32_t ones,
                                  bool corners) {
  static const int64_t behind[] = {1, 2, 3};
  cleave_value_t size = binary(l, "Gather", cleave_lowering_input(l, 1),
                               cleave_lowering_number(l, CLEAVE_DTYPE_I64, 2.0 + axis));
  size = cleave_lowering_cast(l, size, CLEAVE_DTYPE_I64, dtype);
  cleave_value_t last = with(l, "Sub", size, dtype, 1.0);
  cleave_value_t steps = with(l, "Mul", count_to(l, size, dtype), dtype, 2.0);
  cleave_value_t at =
      binary(l, "Div", binary(l, "Sub", steps, last), corners ? with(l, "Max", last, dtype, 1.0) : size);
  return binary(l, "Unsqueeze", at, cleave_lowering_ints(l, behind, (size_t)ones));
}

/* From `start` to before `end` along an axis. */
static cleave_value_t part_of(cleave_lowering_t *l, cleave_value_t x, int64_t start, int64_t end,
                              int64_t axis) {
  const cleave_value_t inputs[4] = {x, cleave_lowering_ints(l, &start, 1), cleave_lowering_ints(l, &end, 1),
                                    cleave_lowering_ints(l, &axis, 1)};
  cleave_lowering_add(l, cleave_op_find("", "Slice"), inputs, 4, 1);
  return cleave_lowering_goes_on(l) ? cleave_node_output(l->graph, l->last, 0) : NONE;
}

/* Column k of theta, [N, s, s + 1], as [N, 1.., s]. */
static cleave_value_t column(cleave_lowering_t *l, cleave_value_t theta, int64_t k, int32_t spatial) {
  int64_t dims[5] = {-1, 1, 1, 1, 1};
  dims[1 + spatial] = spatial;
  return cleave_lowering_reshape(l, part_of(l, theta, k, k + 1, 2), dims, 2 + (size_t)spatial);
}

/* The last spatial axis is the first coordinate; the last column of theta shifts. */
void cleave_lower_affine_grid(cleave_lowering_t *l) {
  cleave_dtype_t result = cleave_lowering_dtype(l, 0);
  cleave_dtype_t dtype = computed_in(result);
  int64_t spatial = cleave_lowering_dim(l, 0, 1);
  bool corners = cleave_op_int(l->source, l->node, "align_corners", 0) != 0;
  if (result == CLEAVE_DTYPE_UNKNOWN || spatial < 2 || spatial > 3) {
    cleave_lowering_refuse(l, "its type or the number of its spatial axes is not known");
    return;
  }
  int32_t s = (int32_t)spatial;
  cleave_value_t theta = cleave_lowering_cast(l, cleave_lowering_input(l, 0), result, dtype);
  cleave_value_t grid = column(l, theta, s, s);
  for (int32_t k = 0; k < s; k++) {
    cleave_value_t at = coordinates(l, dtype, s - 1 - k, k + 1, corners);
    grid = binary(l, "Add", grid, binary(l, "Mul", column(l, theta, k, s), at));
  }
  cleave_lowering_output(l, cleave_lowering_cast(l, grid, dtype, result));
}

/* 1 if a number drawn from 0 to 1 is less than the probability. */
void cleave_lower_bernoulli(cleave_lowering_t *l) {
  cleave_dtype_t result =
      (cleave_dtype_t)cleave_graph_value(l->source, cleave_node_output(l->source, l->node, 0))->dtype;
  cleave_dtype_t given = cleave_lowering_dtype(l, 0);
  if (result == CLEAVE_DTYPE_UNKNOWN || given == CLEAVE_DTYPE_UNKNOWN) {
    cleave_lowering_refuse(l, "its element type is not known");
    return;
  }
  cleave_dtype_t dtype = computed_in(given);
  cleave_value_t chance = cleave_lowering_cast(l, cleave_lowering_input(l, 0), given, dtype);
  const cleave_attribute_t *seed = cleave_op_attribute(l->source, l->node, "seed");
  cleave_value_t drawn = unary(l, "RandomUniformLike", chance);
  if (seed != NULL && l->status == CLEAVE_OK && l->reason == NULL) {
    l->status = cleave_graph_set_attribute(l->graph, l->last, seed, l->error);
  }
  cleave_lowering_output(
      l, cleave_lowering_cast(l, binary(l, "Less", drawn, chance), CLEAVE_DTYPE_BOOL, result));
}

/* Zeros around what is too small, then the middle of what is too large. */
void cleave_lower_center_crop_pad(cleave_lowering_t *l) {
  static const int64_t zeros[2 * CLEAVE_MAX_RANK] = {0};
  int32_t rank = cleave_lowering_rank(l, 0);
  uint32_t count = 0;
  const int64_t *given = cleave_op_ints(l->source, l->node, "axes", &count);
  int64_t places[2 * CLEAVE_MAX_RANK];
  if (rank < 0 || count > (uint32_t)rank) {
    cleave_lowering_refuse(l, "its rank is not known");
    return;
  }
  count = given == NULL ? (uint32_t)rank : count;
  for (uint32_t k = 0; k < count; k++) {
    int64_t axis = given == NULL ? (int64_t)k : given[k];
    places[k] = axis < 0 ? axis + rank : axis;
    places[count + k] = places[k] + rank;
  }
  const cleave_dtype_t whole = CLEAVE_DTYPE_I64;
  cleave_value_t x = cleave_lowering_input(l, 0);
  cleave_value_t wanted =
      cleave_lowering_cast(l, cleave_lowering_input(l, 1), cleave_lowering_dtype(l, 1), whole);
  cleave_value_t axes = cleave_lowering_ints(l, places, count);
  cleave_value_t dims = binary(l, "Gather", unary(l, "Shape", x), axes);
  cleave_value_t wide = binary(l, "Max", dims, wanted);
  cleave_value_t missing = binary(l, "Sub", wide, dims);
  cleave_value_t before = with(l, "Div", missing, whole, 2.0);
  cleave_value_t both = binary(l, "Concat", before, binary(l, "Sub", missing, before));
  cleave_lowering_set_int(l, "axis", 0);
  cleave_value_t pads =
      cleave_lowering_emit(l, "ScatterElements", cleave_lowering_ints(l, zeros, 2 * (size_t)rank),
                           cleave_lowering_ints(l, places, 2 * (size_t)count), both);
  cleave_value_t padded = binary(l, "Pad", x, pads);
  cleave_value_t start = with(l, "Div", binary(l, "Sub", wide, wanted), whole, 2.0);
  cleave_value_t inputs[4] = {padded, start, binary(l, "Add", start, wanted), axes};
  if (l->status == CLEAVE_OK && l->reason == NULL) {
    l->status =
        cleave_graph_add_node(l->graph, cleave_op_find("", "Slice"), NULL, inputs, 4, 1, &l->last, l->error);
  }
  if (l->status == CLEAVE_OK && l->reason == NULL) {
    cleave_lowering_output(l, cleave_node_output(l->graph, l->last, 0));
  }
}

/* Every byte over the powers of 2 that its numbers begin at, less what lies above: in int32. */
void cleave_lower_unpack_bits(cleave_lowering_t *l) {
  int64_t bits = cleave_op_int(l->source, l->node, "bits", 0);
  int64_t axis = cleave_op_int(l->source, l->node, "axis", 1);
  bool is_signed = cleave_op_int(l->source, l->node, "signed", 0) != 0;
  bool is_transposed = cleave_op_int(l->source, l->node, "transposed", 0) != 0;
  int32_t rank = cleave_lowering_rank(l, 0);
  int64_t dims[CLEAVE_MAX_RANK + 1] = {0}; /* 0: as it is */
  int64_t perm[CLEAVE_MAX_RANK] = {0, 1, 2, 3, 4, 5, 6, 7};
  int64_t places[4] = {1, 1 << bits, 1 << 2 * bits, 1 << 3 * bits};
  axis += axis < 0 ? rank : 0;
  if (rank < 0 || bits < 2 || bits > 8) {
    cleave_lowering_refuse(l, "its rank or its bits are not known");
    return;
  }
  cleave_value_t divisors = cleave_lowering_cast(l, cleave_lowering_ints(l, places, (size_t)(8 / bits)),
                                                 CLEAVE_DTYPE_I64, CLEAVE_DTYPE_I32);
  cleave_value_t x = cleave_lowering_cast(l, cleave_lowering_input(l, 0), CLEAVE_DTYPE_U8, CLEAVE_DTYPE_I32);
  dims[axis] = -1;
  dims[axis + 1] = 1;
  x = binary(l, "Div", cleave_lowering_reshape(l, x, dims, (size_t)axis + 2), divisors);
  x = with(l, "Mod", x, CLEAVE_DTYPE_I32, (double)(1 << bits));
  x = is_signed ? with(l, "Sub", x, CLEAVE_DTYPE_I32, (double)(1 << (bits - 1))) : x;
  x = part_of(l, cleave_lowering_reshape(l, x, dims, (size_t)axis + 1), 0,
              cleave_op_int(l->source, l->node, "count", 0), axis);
  x = cleave_lowering_cast(l, x, CLEAVE_DTYPE_I32, is_signed ? CLEAVE_DTYPE_I8 : CLEAVE_DTYPE_U8);
  if (is_transposed) {
    perm[axis] = axis - 1;
    perm[axis - 1] = axis;
    x = cleave_lowering_transpose(l, x, perm, (size_t)axis + 1);
  }
  cleave_lowering_output(l, x);
}
