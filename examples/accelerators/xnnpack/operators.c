// SPDX-License-Identifier: Apache-2.0
/* The table of operators: the one list of what this library takes. */
#include "operators.h"

static const operator_t operators[] = {
    {"Abs", CLASS_POINTWISE, false, false, xnnpack_check_unary, xnnpack_emit_unary},
    {"Add", CLASS_POINTWISE, false, true, xnnpack_check_binary, xnnpack_emit_binary},
    {"AveragePool", CLASS_SPATIAL, false, true, xnnpack_check_pooling, xnnpack_emit_pooling},
    {"BatchNormalization", CLASS_POINTWISE, false, true, xnnpack_check_batch_norm, xnnpack_emit_batch_norm},
    {"Ceil", CLASS_POINTWISE, false, false, xnnpack_check_unary, xnnpack_emit_unary},
    {"Clip", CLASS_POINTWISE, false, false, xnnpack_check_unary, xnnpack_emit_unary},
    {"Conv", CLASS_SPATIAL, true, true, xnnpack_check_convolution, xnnpack_emit_convolution},
    {"ConvTranspose", CLASS_SPATIAL, true, true, xnnpack_check_deconvolution, xnnpack_emit_deconvolution},
    {"DepthToSpace", CLASS_SPATIAL, false, false, xnnpack_check_depth_to_space, xnnpack_emit_depth_to_space},
    {"Div", CLASS_POINTWISE, false, true, xnnpack_check_binary, xnnpack_emit_binary},
    {"Elu", CLASS_POINTWISE, false, false, xnnpack_check_unary, xnnpack_emit_unary},
    {"Flatten", CLASS_PLAIN, false, false, xnnpack_check_view, xnnpack_emit_view},
    {"Floor", CLASS_POINTWISE, false, false, xnnpack_check_unary, xnnpack_emit_unary},
    {"Gemm", CLASS_PLAIN, true, true, xnnpack_check_product, xnnpack_emit_product},
    {"GlobalAveragePool", CLASS_SPATIAL, false, true, xnnpack_check_global_pooling,
     xnnpack_emit_global_pooling},
    {"HardSigmoid", CLASS_POINTWISE, false, false, xnnpack_check_unary, xnnpack_emit_unary},
    {"HardSwish", CLASS_POINTWISE, false, false, xnnpack_check_unary, xnnpack_emit_unary},
    {"LeakyRelu", CLASS_POINTWISE, false, false, xnnpack_check_unary, xnnpack_emit_unary},
    {"MatMul", CLASS_PLAIN, true, true, xnnpack_check_product, xnnpack_emit_product},
    {"Max", CLASS_POINTWISE, false, false, xnnpack_check_binary, xnnpack_emit_binary},
    {"MaxPool", CLASS_SPATIAL, false, true, xnnpack_check_pooling, xnnpack_emit_pooling},
    {"Min", CLASS_POINTWISE, false, false, xnnpack_check_binary, xnnpack_emit_binary},
    {"Mul", CLASS_POINTWISE, false, true, xnnpack_check_binary, xnnpack_emit_binary},
    {"Neg", CLASS_POINTWISE, false, false, xnnpack_check_unary, xnnpack_emit_unary},
    {"Pad", CLASS_POINTWISE, false, false, xnnpack_check_pad, xnnpack_emit_pad},
    {"ReduceMean", CLASS_SPATIAL, false, false, xnnpack_check_mean, xnnpack_emit_mean},
    {"Relu", CLASS_POINTWISE, false, false, xnnpack_check_unary, xnnpack_emit_unary},
    {"Reshape", CLASS_PLAIN, false, false, xnnpack_check_view, xnnpack_emit_view},
    {"Round", CLASS_POINTWISE, false, false, xnnpack_check_unary, xnnpack_emit_unary},
    {"Sigmoid", CLASS_POINTWISE, false, false, xnnpack_check_unary, xnnpack_emit_unary},
    {"Softmax", CLASS_PLAIN, false, false, xnnpack_check_softmax, xnnpack_emit_softmax},
    {"Sqrt", CLASS_POINTWISE, false, false, xnnpack_check_unary, xnnpack_emit_unary},
    {"Squeeze", CLASS_PLAIN, false, false, xnnpack_check_view, xnnpack_emit_view},
    {"Sub", CLASS_POINTWISE, false, true, xnnpack_check_binary, xnnpack_emit_binary},
    {"Sum", CLASS_POINTWISE, false, true, xnnpack_check_binary, xnnpack_emit_binary},
    {"Unsqueeze", CLASS_PLAIN, false, false, xnnpack_check_view, xnnpack_emit_view},
};

const operator_t *xnnpack_operator_find(const char *name) {
  for (size_t k = 0; k < sizeof operators / sizeof operators[0]; k++) {
    if (cleave_view_text_equal(operators[k].name, name)) {
      return &operators[k];
    }
  }
  return NULL;
}

unit_class_t xnnpack_unit_class(const unit_t *unit) {
  const cleave_region_view_t *region = unit->region;
  bool is_square = region->values[unit->output].tensor.rank == 4;
  if (unit->operator->class == CLASS_PLAIN && cleave_view_text_equal(unit->head->op, "Softmax")) {
    int64_t axis = cleave_view_int(unit->head, "axis", -1);
    return is_square && (axis == 1 || axis == -3) ? CLASS_SPATIAL : CLASS_PLAIN;
  }
  if (unit->operator->class != CLASS_POINTWISE) {
    return unit->operator->class;
  }
  /* Channels last means something only where all operands have channels at the same place. */
  for (uint32_t k = 0; k < unit->head->input_count; k++) {
    const cleave_value_view_t *value = cleave_view_input(region, unit->head, k);
    if (!is_square || (value != NULL && value->tensor.data == NULL && value->tensor.rank != 4)) {
      return CLASS_PLAIN;
    }
  }
  return CLASS_POINTWISE;
}
