// SPDX-License-Identifier: Apache-2.0
// What one elementwise node does to a value, as post-ops of oneDNN. Scalars become linear or clip steps, so
// that chains of them merge; tensors become binary steps. Where the value is the right-hand side of a
// subtraction or division, an extra step turns it around.
#include "onednn/analysis/pointwise.h"

#include <math.h>
#include <string.h>

#include "onednn/analysis/quantization.h"

typedef struct unary_entry {
  const char *op;
  dnnl_alg_kind_t algorithm;
  float alpha;
  float beta;
} unary_entry_t;

// Operators that are one eltwise algorithm without attributes. Log is none of them: oneDNN 2.6 is off by 1e-6
// around one, if the logarithm is zero.
static const unary_entry_t unary_entries[] = {
    {"Abs", dnnl_eltwise_abs, 0, 0},
    {"Exp", dnnl_eltwise_exp, 0, 0},
    {"HardSwish", dnnl_eltwise_hardswish, 0, 0},
    {"Mish", dnnl_eltwise_mish, 0, 0},
    {"Reciprocal", dnnl_eltwise_pow, 1, -1},
    {"Relu", dnnl_eltwise_relu, 0, 0},
    {"Round", dnnl_eltwise_round, 0, 0},
    {"Sigmoid", dnnl_eltwise_logistic, 0, 0},
    {"Softplus", dnnl_eltwise_soft_relu, 0, 0},
    {"Sqrt", dnnl_eltwise_sqrt, 0, 0},
    {"Tanh", dnnl_eltwise_tanh, 0, 0},
};

static const char *const other_pointwise[] = {
    "Add",
    "BatchNormalization",
    "Celu",
    "Clip",
    "Div",
    "Elu",
    "Gelu",
    "HardSigmoid",
    "Max",
    "LeakyRelu",
    "Min",
    "Mul",
    "Neg",
    "Pow",
    "Selu",
    "Sub",
    "Swish",
    "Sum",
    "Identity",
    "Dropout",
    "QuantizeLinear",
};

static const unary_entry_t *find_unary(const char *op) {
  for (size_t k = 0; k < sizeof(unary_entries) / sizeof(unary_entries[0]); k++) {
    if (strcmp(unary_entries[k].op, op) == 0) {
      return &unary_entries[k];
    }
  }
  return NULL;
}

bool onednn_pointwise_known(const cleave_node_view_t *node) {
  if (node->domain[0] != '\0') {
    return false;
  }
  if (find_unary(node->op) != NULL) {
    return true;
  }
  for (size_t k = 0; k < sizeof(other_pointwise) / sizeof(other_pointwise[0]); k++) {
    if (strcmp(other_pointwise[k], node->op) == 0) {
      return true;
    }
  }
  return false;
}

bool onednn_pointwise_arithmetic(const cleave_node_view_t *node) {
  static const char *const names[] = {"Add", "Div", "Max", "Min", "Mul", "Pow", "Sub", "Sum"};
  for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
    if (onednn_node_is(node, names[k])) {
      return node->input_count > 1;
    }
  }
  return false;
}

static cleave_status_t list_full(const onednn_unit_t *unit, const cleave_node_view_t *node) {
  return kernel_fail(unit->analysis->message, CLEAVE_ERROR_UNSUPPORTED,
                     "oneDNN supports at most %d post-ops, '%s' would be one more", ONEDNN_MAX_POSTS,
                     onednn_node_name(node));
}

static cleave_status_t no_post_op(const onednn_unit_t *unit, const onednn_kernel_t *kernel,
                                  const cleave_node_view_t *node) {
  const cleave_region_view_t *region = unit->analysis->region;
  const char *after = kernel->node != CLEAVE_INDEX_NONE ? region->nodes[kernel->node].op : "a value";
  return kernel_fail(unit->analysis->message, CLEAVE_ERROR_UNSUPPORTED,
                     "oneDNN has no post-op for %s after %s: node '%s'", node->op, after,
                     onednn_node_name(node));
}

// Clip's bounds: constants, or left out.
static cleave_status_t append_clip(onednn_unit_t *unit, const cleave_node_view_t *node, uint32_t index,
                                   onednn_kernel_t *kernel) {
  double bounds[2] = {-INFINITY, INFINITY};
  for (uint32_t k = 0; k < 2; k++) {
    const cleave_value_view_t *bound = cleave_view_input(unit->analysis->region, node, k + 1);
    if (bound != NULL && !onednn_scalar(bound, &bounds[k])) {
      return kernel_fail(unit->analysis->message, CLEAVE_ERROR_UNSUPPORTED,
                         "Clip '%s': the bound '%s' is not a constant scalar", onednn_node_name(node),
                         bound->name);
    }
  }
  if (!(bounds[0] <= bounds[1])) {
    return kernel_fail(unit->analysis->message, CLEAVE_ERROR_UNSUPPORTED,
                       "Clip '%s': expected the lower bound below the upper one", onednn_node_name(node));
  }
  bool relu = bounds[0] == 0 && isinf(bounds[1]) && bounds[1] > 0;
  bool ok = relu ? onednn_post_eltwise(kernel, dnnl_eltwise_relu, 0, 0, index)
                 : onednn_post_eltwise(kernel, dnnl_eltwise_clip, bounds[0], bounds[1], index);
  return ok ? CLEAVE_OK : list_full(unit, node);
}

static bool append_elu(onednn_kernel_t *kernel, double alpha, double scale, uint32_t index) {
  return onednn_post_eltwise(kernel, dnnl_eltwise_elu, alpha, 0, index) &&
         onednn_post_linear(kernel, scale, 0, index);
}

// Unary operators with attributes. `*known` is false for any other operator.
static bool append_attribute_unary(const cleave_node_view_t *node, uint32_t index, onednn_kernel_t *kernel,
                                   bool *known) {
  *known = true;
  if (onednn_node_is(node, "LeakyRelu")) {
    return onednn_post_eltwise(kernel, dnnl_eltwise_relu, cleave_view_float(node, "alpha", 0.01), 0, index);
  }
  if (onednn_node_is(node, "Elu")) {
    return append_elu(kernel, cleave_view_float(node, "alpha", 1), 1, index);
  }
  if (onednn_node_is(node, "Selu")) {
    return append_elu(kernel, cleave_view_float(node, "alpha", 1.67326319217681884765625),
                      cleave_view_float(node, "gamma", 1.05070102214813232421875), index);
  }
  if (onednn_node_is(node, "Celu")) {
    double alpha = cleave_view_float(node, "alpha", 1);
    return onednn_post_linear(kernel, 1 / alpha, 0, index) && append_elu(kernel, 1, alpha, index);
  }
  if (onednn_node_is(node, "HardSigmoid")) {
    return onednn_post_linear(kernel, cleave_view_float(node, "alpha", 0.2),
                              cleave_view_float(node, "beta", 0.5), index) &&
           onednn_post_eltwise(kernel, dnnl_eltwise_clip, 0, 1, index);
  }
  if (onednn_node_is(node, "Swish")) {
    return onednn_post_eltwise(kernel, dnnl_eltwise_swish, cleave_view_float(node, "alpha", 1), 0, index);
  }
  if (onednn_node_is(node, "Gelu")) {
    bool by_tanh = strcmp(cleave_view_string(node, "approximate", "none"), "tanh") == 0;
    return onednn_post_eltwise(kernel, by_tanh ? dnnl_eltwise_gelu_tanh : dnnl_eltwise_gelu_erf, 0, 0, index);
  }
  if (onednn_node_is(node, "Neg")) {
    return onednn_post_linear(kernel, -1, 0, index);
  }
  *known = false;
  return true;
}

static bool append_power(onednn_kernel_t *kernel, double exponent, uint32_t index) {
  if (exponent == 2) {
    return onednn_post_eltwise(kernel, dnnl_eltwise_square, 0, 0, index);
  }
  if (exponent == 0.5) {
    return onednn_post_eltwise(kernel, dnnl_eltwise_sqrt, 0, 0, index);
  }
  return exponent == 1 || onednn_post_eltwise(kernel, dnnl_eltwise_pow, 1, exponent, index);
}

// One scalar operand, on the right (x op c) or on the left (c op x). `*known` as above.
static bool append_scalar(const cleave_node_view_t *node, double c, bool on_left, uint32_t index,
                          onednn_kernel_t *kernel, bool *known) {
  *known = true;
  if (onednn_node_is(node, "Add") || onednn_node_is(node, "Sum")) {
    return onednn_post_linear(kernel, 1, c, index);
  }
  if (onednn_node_is(node, "Sub")) {
    return onednn_post_linear(kernel, on_left ? -1 : 1, on_left ? c : -c, index);
  }
  if (onednn_node_is(node, "Mul")) {
    return onednn_post_linear(kernel, c, 0, index);
  }
  if (onednn_node_is(node, "Div") && (on_left || c != 0)) {
    return on_left ? onednn_post_eltwise(kernel, dnnl_eltwise_pow, c, -1, index)
                   : onednn_post_linear(kernel, 1 / c, 0, index);
  }
  if (onednn_node_is(node, "Max") && !isnan(c)) {
    return onednn_post_eltwise(kernel, dnnl_eltwise_clip, c, INFINITY, index);
  }
  if (onednn_node_is(node, "Min") && !isnan(c)) {
    return onednn_post_eltwise(kernel, dnnl_eltwise_clip, -INFINITY, c, index);
  }
  if (onednn_node_is(node, "Pow") && !on_left) {
    return append_power(kernel, c, index);
  }
  *known = false;
  return true;
}

static bool append_tensor(const cleave_node_view_t *node, uint32_t operand, bool on_left, uint32_t index,
                          onednn_kernel_t *kernel, bool *known) {
  onednn_post_t post = {.kind = ONEDNN_POST_BINARY, .operand = operand, .node = index};
  *known = true;
  if (onednn_node_is(node, "Add") || onednn_node_is(node, "Sum")) {
    post.algorithm = dnnl_binary_add;
  } else if (onednn_node_is(node, "Mul")) {
    post.algorithm = dnnl_binary_mul;
  } else if (onednn_node_is(node, "Max")) {
    post.algorithm = dnnl_binary_max;
  } else if (onednn_node_is(node, "Min")) {
    post.algorithm = dnnl_binary_min;
  } else if (onednn_node_is(node, "Sub")) {
    post.algorithm = on_left ? dnnl_binary_add : dnnl_binary_sub;
    if (on_left && !onednn_post_linear(kernel, -1, 0, index)) {
      return false;
    }
  } else if (onednn_node_is(node, "Div")) {
    post.algorithm = on_left ? dnnl_binary_mul : dnnl_binary_div;
    if (on_left && !onednn_post_eltwise(kernel, dnnl_eltwise_pow, 1, -1, index)) {
      return false;
    }
  } else {
    *known = false;
    return true;
  }
  return onednn_post_append(kernel, post);
}

// A node that reads `current` in every one of its `count` slots.
static cleave_status_t append_itself(onednn_unit_t *unit, uint32_t index, uint32_t count,
                                     onednn_kernel_t *kernel) {
  const cleave_node_view_t *node = &unit->analysis->region->nodes[index];
  bool fits = true;
  if (onednn_node_is(node, "Add") || onednn_node_is(node, "Sum")) {
    fits = onednn_post_linear(kernel, count, 0, index);
  } else if (onednn_node_is(node, "Mul") && count == 2) {
    fits = onednn_post_eltwise(kernel, dnnl_eltwise_square, 0, 0, index);
  } else if (!onednn_node_is(node, "Max") && !onednn_node_is(node, "Min")) {
    return no_post_op(unit, kernel, node);
  }
  return fits ? CLEAVE_OK : list_full(unit, node);
}

// Add, Mul, Max and so on: every operand but `current`, in order.
static cleave_status_t append_operands(onednn_unit_t *unit, uint32_t index, uint32_t current,
                                       onednn_kernel_t *kernel) {
  const cleave_region_view_t *region = unit->analysis->region;
  const cleave_node_view_t *node = &region->nodes[index];
  bool on_left = true;
  uint32_t slots = 0;
  for (uint32_t k = 0; k < node->input_count; k++) {
    slots += node->inputs[k] == current ? 1 : 0;
  }
  if (slots > 1) {
    return slots == node->input_count ? append_itself(unit, index, slots, kernel)
                                      : no_post_op(unit, kernel, node);
  }
  for (uint32_t k = 0; k < node->input_count; k++) {
    uint32_t operand = node->inputs[k];
    if (operand == current || operand == CLEAVE_INDEX_NONE) {
      on_left = on_left && operand != current;
      continue;
    }
    const cleave_value_view_t *value = &region->values[operand];
    double c = 0;
    bool known = false;
    bool fits = true;
    if (onednn_unit_makes(unit, operand)) {
      return kernel_fail(unit->analysis->message, CLEAVE_ERROR_UNSUPPORTED,
                         "%s '%s': its operand '%s' is computed inside the fusion; a post-op needs it from "
                         "outside",
                         node->op, onednn_node_name(node), value->name);
    }
    if (value->tensor.dtype == CLEAVE_DTYPE_F32 || onednn_node_is(node, "Pow")) {
      fits = onednn_scalar(value, &c) ? append_scalar(node, c, on_left, index, kernel, &known)
                                      : append_tensor(node, operand, on_left, index, kernel, &known);
    }
    if (!known) {
      return no_post_op(unit, kernel, node);
    }
    if (!fits) {
      return list_full(unit, node);
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t append_normalize(onednn_unit_t *unit, uint32_t index, uint32_t current,
                                        onednn_kernel_t *kernel) {
  const cleave_region_view_t *region = unit->analysis->region;
  const cleave_node_view_t *node = &region->nodes[index];
  cleave_message_t *message = unit->analysis->message;
  if (cleave_view_int(node, "training_mode", 0) != 0) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "BatchNormalization '%s': it is in training mode",
                       onednn_node_name(node));
  }
  if (node->input_count < 5 || node->inputs[0] != current) {
    return no_post_op(unit, kernel, node);
  }
  onednn_shape_t shape = onednn_shape_of(&region->values[current]);
  if (shape.rank >= 0 && (shape.rank < 2 || shape.rank > 5)) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED,
                       "BatchNormalization '%s': expected rank 2 to 5, found %d", onednn_node_name(node),
                       (int)shape.rank);
  }
  for (uint32_t k = 1; k < 5; k++) {
    const cleave_value_view_t *value = cleave_view_input(region, node, k);
    if (!onednn_is_constant(value) || value->tensor.dtype != CLEAVE_DTYPE_F32 || value->tensor.rank != 1 ||
        (shape.rank > 1 && shape.dims[1] >= 0 && value->tensor.dims[0] != shape.dims[1])) {
      return kernel_fail(
          message, CLEAVE_ERROR_UNSUPPORTED,
          "BatchNormalization '%s': input %u is not a constant float32 vector over the channels",
          onednn_node_name(node), (unsigned)k);
    }
  }
  for (uint32_t k = 1; k < node->output_count; k++) {
    if (node->outputs[k] != CLEAVE_INDEX_NONE && (onednn_use_count(unit->analysis, node->outputs[k]) > 0 ||
                                                  region->values[node->outputs[k]].is_output)) {
      return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED,
                         "BatchNormalization '%s': its statistics are used", onednn_node_name(node));
    }
  }
  onednn_post_t post = {.kind = ONEDNN_POST_NORMALIZE, .operand = CLEAVE_INDEX_NONE, .node = index};
  return onednn_post_append(kernel, post) ? CLEAVE_OK : list_full(unit, node);
}

// Dropout as inference sees it: the identity, without a mask.
static cleave_status_t check_dropout(const onednn_unit_t *unit, const cleave_node_view_t *node) {
  const cleave_region_view_t *region = unit->analysis->region;
  const cleave_value_view_t *mode = cleave_view_input(region, node, 2);
  const cleave_value_view_t *mask = cleave_view_output(region, node, 1);
  if (mode != NULL &&
      (!onednn_is_constant(mode) || mode->tensor.dtype != CLEAVE_DTYPE_BOOL ||
       cleave_view_element_count(&mode->tensor) != 1 || *(const char *)mode->tensor.data != 0)) {
    return kernel_fail(unit->analysis->message, CLEAVE_ERROR_UNSUPPORTED,
                       "Dropout '%s': its training mode is not a constant false", onednn_node_name(node));
  }
  if (mask != NULL && (mask->is_output || onednn_use_count(unit->analysis, node->outputs[1]) > 0)) {
    return kernel_fail(unit->analysis->message, CLEAVE_ERROR_UNSUPPORTED, "Dropout '%s': its mask is used",
                       onednn_node_name(node));
  }
  return CLEAVE_OK;
}

cleave_status_t onednn_pointwise_node(onednn_unit_t *unit, uint32_t index, uint32_t current,
                                      onednn_kernel_t *kernel) {
  const cleave_node_view_t *node = &unit->analysis->region->nodes[index];
  if (!onednn_pointwise_known(node) || (!onednn_pointwise_arithmetic(node) && node->inputs[0] != current)) {
    return no_post_op(unit, kernel, node);
  }
  const unary_entry_t *unary = find_unary(node->op);
  if (unary != NULL) {
    bool fits =
        onednn_post_eltwise(kernel, unary->algorithm, (double)unary->alpha, (double)unary->beta, index);
    return fits ? CLEAVE_OK : list_full(unit, node);
  }
  if (onednn_node_is(node, "QuantizeLinear")) {
    return onednn_quantization_post(unit, index, kernel);
  }
  if (onednn_node_is(node, "Identity")) {
    return CLEAVE_OK;
  }
  if (onednn_node_is(node, "Dropout")) {
    return check_dropout(unit, node);
  }
  if (onednn_node_is(node, "Clip")) {
    return append_clip(unit, node, index, kernel);
  }
  if (onednn_node_is(node, "BatchNormalization")) {
    return append_normalize(unit, index, current, kernel);
  }
  bool known = false;
  bool fits = append_attribute_unary(node, index, kernel, &known);
  if (!fits) {
    return list_full(unit, node);
  }
  return known ? CLEAVE_OK : append_operands(unit, index, current, kernel);
}
