// SPDX-License-Identifier: Apache-2.0
/* Canonical forms of pointwise operators: the broadcasting of opset 6 and before, Clip, Cast, PRelu. */
#include <string.h>
#include <strings.h>

#include "formats/onnx/read/onnx_canonical.h"

/* Appends `count` dimensions of size 1 to a value. */
static cleave_status_t append_ones(cleave_onnx_call_t *call, cleave_value_t value, int32_t count,
                                   cleave_value_t *out_value, cleave_error_t *error) {
  cleave_graph_t *graph = call->builder->graph;
  const cleave_tensor_t *tensor = cleave_graph_value(graph, value)->tensor;
  int32_t rank = cleave_onnx_call_rank(call, value);
  if (rank + count > CLEAVE_MAX_RANK) {
    return cleave_onnx_call_refuse(call, "an operand has too many dimensions", error);
  }
  if (tensor != NULL && tensor->dtype != CLEAVE_DTYPE_STRING) {
    cleave_tensor_t *copy = NULL;
    int64_t dims[CLEAVE_MAX_RANK];
    for (int32_t d = 0; d < rank + count; d++) {
      dims[d] = d < rank ? tensor->dims[d] : 1;
    }
    CLEAVE_TRY(cleave_tensor_create(tensor->dtype, rank + count, dims, &copy, error));
    if (tensor->bytes > 0) {
      memcpy(copy->data, tensor->data, tensor->bytes);
    }
    cleave_status_t status =
        cleave_graph_add_constant(graph, cleave_value_name(graph, value), copy, out_value, error);
    cleave_tensor_release(copy);
    return status;
  }
  int64_t axes[CLEAVE_MAX_RANK];
  for (int32_t k = 0; k < count; k++) {
    axes[k] = rank + k;
  }
  cleave_value_t inputs[2] = {value, CLEAVE_VALUE_NONE};
  cleave_node_t node;
  CLEAVE_TRY(cleave_onnx_call_ints_constant(call, 1, axes, (uint32_t)count, &inputs[1], error));
  CLEAVE_TRY(cleave_onnx_call_emit(call, "Unsqueeze", inputs, 2, &node, out_value, error));
  return cleave_onnx_builder_infer(call->builder, node, error);
}

/* Opset < 7: the second operand broadcasts only if `broadcast` is set, its dims starting at `axis` of the
 * first. */
cleave_status_t cleave_onnx_rewrite_broadcast(cleave_onnx_call_t *call, cleave_error_t *error) {
  bool has_axis = cleave_onnx_call_attribute(call, "axis") != NULL;
  int64_t axis = cleave_onnx_call_int(call, "axis", 0);
  bool broadcasts = cleave_onnx_call_int(call, "broadcast", 0) != 0;
  cleave_onnx_call_remove(call, "axis");
  cleave_onnx_call_remove(call, "broadcast");
  if (!broadcasts || !has_axis || call->inputs.count != 2) {
    return CLEAVE_OK;
  }
  int32_t a_rank = cleave_onnx_call_rank(call, call->inputs.items[0]);
  int32_t b_rank = cleave_onnx_call_rank(call, call->inputs.items[1]);
  if (a_rank < 0 || b_rank < 0) {
    return cleave_onnx_call_refuse(call, "it broadcasts along an axis, and a rank is unknown", error);
  }
  axis = axis < 0 && axis >= -a_rank ? axis + a_rank : axis;
  if (axis < 0 || axis + b_rank > a_rank) {
    return cleave_onnx_call_refuse(call, "its axis is outside of the first operand", error);
  }
  int32_t missing = a_rank - b_rank - (int32_t)axis;
  if (missing == 0) {
    return CLEAVE_OK;
  }
  return append_ones(call, call->inputs.items[1], missing, &call->inputs.items[1], error);
}

/* PRelu < 7: a slope per channel was a vector. */
cleave_status_t cleave_onnx_rewrite_prelu(cleave_onnx_call_t *call, cleave_error_t *error) {
  cleave_value_t slope = cleave_onnx_call_input(call, 1);
  int32_t rank = cleave_onnx_call_rank(call, cleave_onnx_call_input(call, 0));
  if (cleave_onnx_call_rank(call, slope) != 1) {
    return CLEAVE_OK;
  }
  const cleave_value_record_t *record = cleave_graph_value(call->builder->graph, slope);
  if (record->dims[0] == 1 || rank == 2) {
    return CLEAVE_OK;
  }
  if (rank < 2) {
    return cleave_onnx_call_refuse(call, "its slope is per channel, and the rank is unknown", error);
  }
  return append_ones(call, slope, rank - 2, &call->inputs.items[1], error);
}

/* Gemm < 7: C always broadcasts in newer versions. */
cleave_status_t cleave_onnx_rewrite_gemm(cleave_onnx_call_t *call, cleave_error_t *error) {
  (void)error;
  cleave_onnx_call_remove(call, "broadcast");
  return CLEAVE_OK;
}

static cleave_status_t set_float(cleave_onnx_call_t *call, const char *name, double fallback,
                                 cleave_error_t *error) {
  cleave_attribute_t attribute = {.name = name, .kind = CLEAVE_ATTRIBUTE_FLOAT};
  attribute.f = cleave_onnx_call_float(call, name, fallback);
  return cleave_onnx_call_set(call, attribute, error);
}

/* Selu 1 had shorter constants. */
cleave_status_t cleave_onnx_rewrite_selu(cleave_onnx_call_t *call, cleave_error_t *error) {
  CLEAVE_TRY(set_float(call, "alpha", 1.6732, error));
  return set_float(call, "gamma", 1.0507, error);
}

/* Cast 1: `to` was the name of the element type. */
cleave_status_t cleave_onnx_rewrite_cast_names(cleave_onnx_call_t *call, cleave_error_t *error) {
  static const char *const names[] = {
      "UNDEFINED", "FLOAT",  "UINT8", "INT8",    "UINT16", "INT16",  "INT32",
      "INT64",     "STRING", "BOOL",  "FLOAT16", "DOUBLE", "UINT32", "UINT64",
  };
  const char *to = cleave_onnx_call_text(call, "to", NULL);
  if (to == NULL) {
    return CLEAVE_OK;
  }
  for (size_t k = 1; k < sizeof names / sizeof *names; k++) {
    if (strcasecmp(to, names[k]) == 0) {
      return cleave_onnx_call_set_int(call, "to", (int64_t)k, error);
    }
  }
  return cleave_onnx_call_refuse(call, "it casts to an unknown element type", error);
}

static cleave_status_t move_bound(cleave_onnx_call_t *call, const char *name, uint32_t index,
                                  cleave_error_t *error) {
  const cleave_attribute_t *bound = cleave_onnx_call_attribute(call, name);
  if (bound == NULL || bound->kind != CLEAVE_ATTRIBUTE_FLOAT) {
    return CLEAVE_OK;
  }
  cleave_dtype_t dtype = cleave_onnx_call_dtype(call, cleave_onnx_call_input(call, 0));
  cleave_value_t value;
  CLEAVE_TRY(cleave_onnx_call_number(call, dtype, bound->f, &value, error));
  cleave_onnx_call_remove(call, name);
  return cleave_onnx_call_set_input(call, index, value, error);
}

/* Clip 1 and 6: min and max were attributes. */
cleave_status_t cleave_onnx_rewrite_clip(cleave_onnx_call_t *call, cleave_error_t *error) {
  CLEAVE_TRY(move_bound(call, "min", 1, error));
  return move_bound(call, "max", 2, error);
}

/* int4 is read as int8, whose limits are others. */
cleave_status_t cleave_onnx_check_quantize(cleave_onnx_call_t *call, cleave_error_t *error) {
  cleave_value_t zero = cleave_onnx_call_input(call, 2);
  const cleave_tensor_t *tensor =
      cleave_value_exists(zero) ? cleave_graph_value(call->builder->graph, zero)->tensor : NULL;
  return tensor != NULL && tensor->is_four_bits
             ? cleave_onnx_call_refuse(
                   call, "its zero point is int4 or uint4, which only DequantizeLinear may read", error)
             : CLEAVE_OK;
}
