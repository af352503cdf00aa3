// SPDX-License-Identifier: Apache-2.0
/* Operators that work element by element, in whatever form their operands are kept. */
#include <math.h>

#include "operators.h"

/* ---- one operand ---- */

typedef enum xnn_status (*define_unary_t)(xnn_subgraph_t subgraph, uint32_t input, uint32_t output,
                                          uint32_t flags);

static const struct {
  const char *name;
  define_unary_t define;
} unary[] = {
    {"Abs", xnn_define_abs},         {"Ceil", xnn_define_ceiling},
    {"Floor", xnn_define_floor},     {"HardSwish", xnn_define_hardswish},
    {"Neg", xnn_define_negate},      {"Round", xnn_define_bankers_rounding},
    {"Sigmoid", xnn_define_sigmoid}, {"Sqrt", xnn_define_square_root},
};

cleave_status_t xnnpack_check_unary(const unit_t *unit, cleave_message_t *reason) {
  const cleave_node_view_t *node = unit->head;
  float minimum;
  float maximum;
  if (cleave_view_text_equal(node->op, "Clip")) {
    return xnnpack_read_bounds(unit->region, node, &minimum, &maximum, reason);
  }
  if (cleave_view_text_equal(node->op, "Elu") || cleave_view_text_equal(node->op, "LeakyRelu")) {
    double alpha = cleave_view_float(node, "alpha", 1.0);
    if (!isnormal((float)alpha) || (alpha < 0.0 && node->op[0] == 'E')) {
      return xnnpack_refuse(reason, CLEAVE_REASON_ATTRIBUTE, "%s: XNNPACK has no alpha of %g", node->op,
                            alpha);
    }
  }
  return CLEAVE_OK;
}

/* A constant of one element. */
static cleave_status_t number(builder_t *builder, float value, uint32_t *out_id) {
  float *floats = NULL;
  cleave_status_t status = xnnpack_builder_allocate(builder, 1, &floats);
  if (status != CLEAVE_OK) {
    return status;
  }
  floats[0] = value;
  return xnnpack_builder_static(builder, 1, (size_t[1]){1}, floats, out_id);
}

/* max(0, min(1, alpha * x + beta)): a product and a sum with bounds. */
static cleave_status_t emit_hard_sigmoid(const unit_t *unit, builder_t *builder, uint32_t input,
                                         uint32_t output) {
  uint32_t alpha;
  uint32_t beta;
  uint32_t product;
  size_t dims[XNNPACK_MAX_RANK];
  size_t rank = xnnpack_dims(&unit->region->values[unit->output].tensor, builder->form, dims);
  cleave_status_t status =
      number(builder, (float)cleave_view_float(unit->head, "alpha", (double)0.2f), &alpha);
  if (status == CLEAVE_OK) {
    status = number(builder, (float)cleave_view_float(unit->head, "beta", 0.5), &beta);
  }
  if (status == CLEAVE_OK) {
    status = xnnpack_builder_temporary(builder, rank, dims, &product);
  }
  if (status == CLEAVE_OK) {
    status = xnnpack_builder_check(
        builder, xnn_define_multiply2(builder->subgraph, -INFINITY, INFINITY, input, alpha, product, 0),
        "multiply");
  }
  return status != CLEAVE_OK
             ? status
             : xnnpack_builder_check(
                   builder, xnn_define_add2(builder->subgraph, 0.0f, 1.0f, product, beta, output, 0), "add");
}

cleave_status_t xnnpack_emit_unary(const unit_t *unit, builder_t *builder) {
  const cleave_node_view_t *node = unit->head;
  uint32_t input;
  uint32_t output;
  cleave_status_t status = xnnpack_builder_use(builder, unit->input, builder->form, &input);
  if (status == CLEAVE_OK) {
    status = xnnpack_builder_output(builder, builder->form, &output);
  }
  if (status != CLEAVE_OK) {
    return status;
  }
  if (cleave_view_text_equal(node->op, "HardSigmoid")) {
    return emit_hard_sigmoid(unit, builder, input, output);
  }
  if (cleave_view_text_equal(node->op, "Clip") || cleave_view_text_equal(node->op, "Relu")) {
    float minimum;
    float maximum;
    status = xnnpack_read_bounds(unit->region, node, &minimum, &maximum, builder->message);
    return status != CLEAVE_OK
               ? status
               : xnnpack_builder_check(
                     builder, xnn_define_clamp(builder->subgraph, minimum, maximum, input, output, 0),
                     "clamp");
  }
  if (cleave_view_text_equal(node->op, "Elu")) {
    float alpha = (float)cleave_view_float(node, "alpha", 1.0);
    return xnnpack_builder_check(builder, xnn_define_elu(builder->subgraph, alpha, input, output, 0), "elu");
  }
  if (cleave_view_text_equal(node->op, "LeakyRelu")) {
    float alpha = (float)cleave_view_float(node, "alpha", (double)0.01f);
    return xnnpack_builder_check(builder, xnn_define_leaky_relu(builder->subgraph, alpha, input, output, 0),
                                 "leaky relu");
  }
  for (size_t k = 0; k < sizeof unary / sizeof unary[0]; k++) {
    if (cleave_view_text_equal(unary[k].name, node->op)) {
      return xnnpack_builder_check(builder, unary[k].define(builder->subgraph, input, output, 0), node->op);
    }
  }
  return xnnpack_refuse(builder->message, CLEAVE_REASON_OPERATOR, "%s: no such operator", node->op);
}

/* ---- two operands ---- */

cleave_status_t xnnpack_check_binary(const unit_t *unit, cleave_message_t *reason) {
  const cleave_node_view_t *node = unit->head;
  if (node->opset_version < 7) {
    return xnnpack_refuse(reason, CLEAVE_REASON_VERSION, "%s: operator sets before 7 broadcast differently",
                          node->op);
  }
  if (node->input_count != 2) {
    return xnnpack_refuse(reason, CLEAVE_REASON_OPERATOR, "%s: XNNPACK takes two operands, not %u", node->op,
                          node->input_count);
  }
  for (uint32_t k = 0; k < 2; k++) {
    const cleave_value_view_t *value = cleave_view_input(unit->region, node, k);
    if (value == NULL || value->tensor.dtype != CLEAVE_DTYPE_F32 || value->tensor.rank > XNNPACK_MAX_RANK ||
        (value->tensor.data != NULL && cleave_view_element_count(&value->tensor) < 1)) {
      return xnnpack_refuse(reason, CLEAVE_REASON_SHAPE, "%s: operand %u is not float32 with elements",
                            node->op, k);
    }
  }
  return CLEAVE_OK;
}

cleave_status_t xnnpack_emit_binary(const unit_t *unit, builder_t *builder) {
  const cleave_node_view_t *node = unit->head;
  uint32_t ids[2];
  uint32_t output;
  cleave_status_t status = xnnpack_builder_use(builder, node->inputs[0], builder->form, &ids[0]);
  if (status == CLEAVE_OK) {
    status = xnnpack_builder_use(builder, node->inputs[1], builder->form, &ids[1]);
  }
  if (status == CLEAVE_OK) {
    status = xnnpack_builder_output(builder, builder->form, &output);
  }
  if (status != CLEAVE_OK) {
    return status;
  }
  xnn_subgraph_t subgraph = builder->subgraph;
  enum xnn_status result = xnn_status_unsupported_parameter;
  if (cleave_view_text_equal(node->op, "Add") || cleave_view_text_equal(node->op, "Sum")) {
    result = xnn_define_add2(subgraph, unit->minimum, unit->maximum, ids[0], ids[1], output, 0);
  } else if (cleave_view_text_equal(node->op, "Sub")) {
    result = xnn_define_subtract(subgraph, unit->minimum, unit->maximum, ids[0], ids[1], output, 0);
  } else if (cleave_view_text_equal(node->op, "Mul")) {
    result = xnn_define_multiply2(subgraph, unit->minimum, unit->maximum, ids[0], ids[1], output, 0);
  } else if (cleave_view_text_equal(node->op, "Div")) {
    result = xnn_define_divide(subgraph, unit->minimum, unit->maximum, ids[0], ids[1], output, 0);
  } else if (cleave_view_text_equal(node->op, "Max")) {
    result = xnn_define_maximum2(subgraph, ids[0], ids[1], output, 0);
  } else if (cleave_view_text_equal(node->op, "Min")) {
    result = xnn_define_minimum2(subgraph, ids[0], ids[1], output, 0);
  }
  return xnnpack_builder_check(builder, result, node->op);
}

/* ---- batch norm on its own: a factor and a term per channel ---- */

cleave_status_t xnnpack_check_batch_norm(const unit_t *unit, cleave_message_t *reason) {
  const cleave_node_view_t *node = unit->head;
  const cleave_tensor_view_t *input = &unit->region->values[unit->input].tensor;
  if (node->opset_version < 9 || cleave_view_int(node, "training_mode", 0) != 0) {
    return xnnpack_refuse(reason, CLEAVE_REASON_ATTRIBUTE, "%s: only inference runs here", node->op);
  }
  if (input->rank < 2 || node->input_count != 5) {
    return xnnpack_refuse(reason, CLEAVE_REASON_SHAPE, "%s: expected a batch with channels", node->op);
  }
  for (uint32_t k = 1; k < 5; k++) {
    const cleave_value_view_t *value = cleave_view_input(unit->region, node, k);
    if (value == NULL || value->tensor.data == NULL || value->tensor.dtype != CLEAVE_DTYPE_F32 ||
        cleave_view_element_count(&value->tensor) != input->dims[1]) {
      return xnnpack_refuse(reason, CLEAVE_REASON_CONSTANT, "%s: statistics must be constants per channel",
                            node->op);
    }
  }
  return CLEAVE_OK;
}

cleave_status_t xnnpack_emit_batch_norm(const unit_t *unit, builder_t *builder) {
  const cleave_tensor_view_t *tensor = &unit->region->values[unit->input].tensor;
  int64_t channels = tensor->dims[1];
  size_t dims[XNNPACK_MAX_RANK];
  size_t constant_dims[XNNPACK_MAX_RANK] = {1, 1, 1, 1, 1, 1};
  size_t rank = xnnpack_dims(tensor, builder->form, dims);
  constant_dims[builder->form == FORM_LAST ? rank - 1 : 1] = (size_t)channels;
  float *factor = NULL;
  float *term = NULL;
  uint32_t ids[5]; /* input, factor, product, term, output */
  cleave_status_t status = xnnpack_builder_allocate(builder, channels, &factor);
  if (status == CLEAVE_OK) {
    status = xnnpack_builder_allocate(builder, channels, &term);
  }
  for (int64_t c = 0; status == CLEAVE_OK && c < channels; c++) {
    xnnpack_batch_norm_at(unit->region, unit->head, c, &factor[c], &term[c]);
  }
  if (status == CLEAVE_OK) {
    status = xnnpack_builder_use(builder, unit->input, builder->form, &ids[0]);
  }
  if (status == CLEAVE_OK) {
    status = xnnpack_builder_static(builder, rank, constant_dims, factor, &ids[1]);
  }
  if (status == CLEAVE_OK) {
    status = xnnpack_builder_temporary(builder, rank, dims, &ids[2]);
  }
  if (status == CLEAVE_OK) {
    status = xnnpack_builder_static(builder, rank, constant_dims, term, &ids[3]);
  }
  if (status == CLEAVE_OK) {
    status = xnnpack_builder_output(builder, builder->form, &ids[4]);
  }
  if (status == CLEAVE_OK) {
    status = xnnpack_builder_check(
        builder, xnn_define_multiply2(builder->subgraph, -INFINITY, INFINITY, ids[0], ids[1], ids[2], 0),
        "multiply");
  }
  return status != CLEAVE_OK
             ? status
             : xnnpack_builder_check(builder,
                                     xnn_define_add2(builder->subgraph, unit->minimum, unit->maximum, ids[2],
                                                     ids[3], ids[4], 0),
                                     "add");
}
