// SPDX-License-Identifier: Apache-2.0
/* Canonical forms of operators that move data and reduce: mostly attributes that became inputs. */

#include "formats/onnx/read/onnx_canonical.h"

/* Moves a list of integers from an attribute to input `index`, if the attribute is there. */
static cleave_status_t move_ints(cleave_onnx_call_t *call, const char *name, uint32_t index,
                                 cleave_error_t *error) {
  uint32_t count = 0;
  const int64_t *values = cleave_onnx_call_ints(call, name, &count);
  if (values == NULL && count == 0) {
    cleave_onnx_call_remove(call, name);
    return CLEAVE_OK;
  }
  cleave_value_t value;
  CLEAVE_TRY(cleave_onnx_call_ints_constant(call, 1, values, count, &value, error));
  cleave_onnx_call_remove(call, name);
  return cleave_onnx_call_set_input(call, index, value, error);
}

/* Squeeze and Unsqueeze < 13, ReduceSum < 13, other Reduce* < 18. */
cleave_status_t cleave_onnx_rewrite_axes(cleave_onnx_call_t *call, cleave_error_t *error) {
  return move_ints(call, "axes", 1, error);
}

/* Split 1 (sizes may be an input), 2 and 11 (attribute), 13 (input); without sizes the parts are equal. */
cleave_status_t cleave_onnx_rewrite_split(cleave_onnx_call_t *call, cleave_error_t *error) {
  if (call->version < 13) {
    CLEAVE_TRY(move_ints(call, "split", 1, error));
  }
  if (!cleave_value_exists(cleave_onnx_call_input(call, 1))) {
    return cleave_onnx_call_set_int(call, "num_outputs", (int64_t)call->output_count, error);
  }
  return CLEAVE_OK;
}

/* Slice 1: starts, ends and axes were attributes. */
cleave_status_t cleave_onnx_rewrite_slice(cleave_onnx_call_t *call, cleave_error_t *error) {
  CLEAVE_TRY(move_ints(call, "starts", 1, error));
  CLEAVE_TRY(move_ints(call, "ends", 2, error));
  return move_ints(call, "axes", 3, error);
}

/* Pad 1 ("paddings") and 2 ("pads"); a value of 0 is the default. */
cleave_status_t cleave_onnx_rewrite_pad(cleave_onnx_call_t *call, cleave_error_t *error) {
  double number = cleave_onnx_call_float(call, "value", 0.0);
  cleave_value_t value;
  CLEAVE_TRY(move_ints(call, "paddings", 1, error));
  CLEAVE_TRY(move_ints(call, "pads", 1, error));
  cleave_onnx_call_remove(call, "value");
  if (number == 0.0) {
    return CLEAVE_OK;
  }
  cleave_dtype_t dtype = cleave_onnx_call_dtype(call, cleave_onnx_call_input(call, 0));
  CLEAVE_TRY(cleave_onnx_call_number(call, dtype, number, &value, error));
  return cleave_onnx_call_set_input(call, 2, value, error);
}

/* TopK 1: k was an attribute. */
cleave_status_t cleave_onnx_rewrite_top_k(cleave_onnx_call_t *call, cleave_error_t *error) {
  const cleave_attribute_t *k = cleave_onnx_call_attribute(call, "k");
  cleave_value_t value;
  if (k == NULL || k->kind != CLEAVE_ATTRIBUTE_INT) {
    return cleave_onnx_call_refuse(call, "it has no attribute 'k'", error);
  }
  CLEAVE_TRY(cleave_onnx_call_ints_constant(call, 1, &k->i, 1, &value, error));
  cleave_onnx_call_remove(call, "k");
  return cleave_onnx_call_set_input(call, 1, value, error);
}

/* Reshape 1: the shape was an attribute. */
cleave_status_t cleave_onnx_rewrite_reshape(cleave_onnx_call_t *call, cleave_error_t *error) {
  return move_ints(call, "shape", 1, error);
}

/* Tile 1 repeats along one axis only: Tile(input, tiles, axis). */
cleave_status_t cleave_onnx_rewrite_tile(cleave_onnx_call_t *call, cleave_error_t *error) {
  const cleave_graph_t *graph = call->builder->graph;
  cleave_value_t tiles = cleave_onnx_call_input(call, 1);
  cleave_value_t axis = cleave_onnx_call_input(call, 2);
  int32_t rank = cleave_onnx_call_rank(call, cleave_onnx_call_input(call, 0));
  if (rank < 1 || !cleave_value_exists(tiles) || !cleave_value_exists(axis)) {
    return cleave_onnx_call_refuse(call, "expected tiles and axis, and data of known rank", error);
  }
  const cleave_tensor_t *tiles_tensor = cleave_graph_value(graph, tiles)->tensor;
  const cleave_tensor_t *axis_tensor = cleave_graph_value(graph, axis)->tensor;
  if (tiles_tensor == NULL || axis_tensor == NULL || tiles_tensor->count != 1 || axis_tensor->count != 1 ||
      tiles_tensor->dtype == CLEAVE_DTYPE_STRING || axis_tensor->dtype == CLEAVE_DTYPE_STRING) {
    return cleave_onnx_call_refuse(call, "expected constant tiles and axis", error);
  }
  int64_t place = cleave_tensor_get_int(axis_tensor, 0);
  if (place < 0 || place >= rank) {
    return cleave_onnx_call_refuse(call, "its axis is outside of the data", error);
  }
  int64_t repeats[CLEAVE_MAX_RANK];
  for (int32_t d = 0; d < rank; d++) {
    repeats[d] = d == place ? cleave_tensor_get_int(tiles_tensor, 0) : 1;
  }
  cleave_value_t value;
  CLEAVE_TRY(cleave_onnx_call_ints_constant(call, 1, repeats, (uint32_t)rank, &value, error));
  call->inputs.count = 2;
  return cleave_onnx_call_set_input(call, 1, value, error);
}

/* Concat 1: the axis had a default of 1. */
cleave_status_t cleave_onnx_rewrite_concat(cleave_onnx_call_t *call, cleave_error_t *error) {
  return cleave_onnx_call_set_int(call, "axis", cleave_onnx_call_int(call, "axis", 1), error);
}

/* Scatter 9 became ScatterElements 11. */
cleave_status_t cleave_onnx_rewrite_scatter(cleave_onnx_call_t *call, cleave_error_t *error) {
  (void)error;
  call->op_type = "ScatterElements";
  return CLEAVE_OK;
}

/* DFT 17: the axis was an attribute with default 1; later the default is -2. */
cleave_status_t cleave_onnx_rewrite_dft(cleave_onnx_call_t *call, cleave_error_t *error) {
  int64_t axis = cleave_onnx_call_int(call, "axis", 1);
  cleave_value_t value;
  CLEAVE_TRY(cleave_onnx_call_ints_constant(call, 0, &axis, 1, &value, error));
  cleave_onnx_call_remove(call, "axis");
  return cleave_onnx_call_set_input(call, 2, value, error);
}
