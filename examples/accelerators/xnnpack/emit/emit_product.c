// SPDX-License-Identifier: Apache-2.0
/* Gemm and MatMul with constant weights: XNNPACK's fully connected layer, weights as [outputs][inputs]. */
#include "operators.h"

static const cleave_tensor_view_t *tensor_of(const unit_t *unit, uint32_t input) {
  const cleave_value_view_t *value = cleave_view_input(unit->region, unit->head, input);
  return value == NULL ? NULL : &value->tensor;
}

cleave_status_t xnnpack_check_product(const unit_t *unit, cleave_message_t *reason) {
  const cleave_node_view_t *node = unit->head;
  const cleave_tensor_view_t *input = tensor_of(unit, 0);
  const cleave_tensor_view_t *weights = tensor_of(unit, 1);
  const cleave_tensor_view_t *term = tensor_of(unit, 2);
  if (weights == NULL || weights->data == NULL || weights->dtype != CLEAVE_DTYPE_F32 || weights->rank != 2) {
    return xnnpack_refuse(reason, CLEAVE_REASON_CONSTANT,
                          "%s: XNNPACK multiplies with constant float32 matrices only", node->op);
  }
  bool is_turned = cleave_view_int(node, "transB", 0) != 0;
  int64_t inputs = weights->dims[is_turned ? 1 : 0];
  if (cleave_view_int(node, "transA", 0) != 0) {
    return xnnpack_refuse(reason, CLEAVE_REASON_ATTRIBUTE, "%s: transA: XNNPACK cannot transpose", node->op);
  }
  if (input->rank < 1 || inputs < 1 || input->dims[input->rank - 1] != inputs ||
      weights->dims[is_turned ? 0 : 1] < 1) {
    return xnnpack_refuse(reason, CLEAVE_REASON_SHAPE, "%s: input and weights do not fit together", node->op);
  }
  if (term != NULL) {
    int64_t channels = xnnpack_unit_channels(unit);
    bool is_row = term->rank >= 0 && term->rank <= 2 && (term->rank < 2 || term->dims[0] == 1);
    int64_t count = is_row ? cleave_view_element_count(term) : 0;
    if (term->data == NULL || term->dtype != CLEAVE_DTYPE_F32 || (count != 1 && count != channels)) {
      return xnnpack_refuse(reason, CLEAVE_REASON_CONSTANT, "%s: C must be a constant per output channel",
                            node->op);
    }
  }
  return CLEAVE_OK;
}

/* [inputs][outputs], or turned [outputs][inputs], to [outputs][inputs] times alpha and scale per output. */
static void pack_filter(const cleave_tensor_view_t *weights, bool is_turned, int64_t channels, float alpha,
                        const float *scale, float *to) {
  int64_t inputs = weights->dims[is_turned ? 1 : 0];
  for (int64_t c = 0; c < channels; c++) {
    for (int64_t i = 0; i < inputs; i++) {
      int64_t place = is_turned ? c * inputs + i : i * channels + c;
      to[c * inputs + i] = scale[c] * alpha * xnnpack_constant_at(weights, place);
    }
  }
}

cleave_status_t xnnpack_emit_product(const unit_t *unit, builder_t *builder) {
  const cleave_node_view_t *node = unit->head;
  const cleave_tensor_view_t *weights = tensor_of(unit, 1);
  const cleave_tensor_view_t *term = tensor_of(unit, 2);
  bool is_turned = cleave_view_int(node, "transB", 0) != 0;
  int64_t channels = xnnpack_unit_channels(unit);
  int64_t inputs = weights->dims[is_turned ? 1 : 0];
  float alpha = (float)cleave_view_float(node, "alpha", 1.0);
  float beta = (float)cleave_view_float(node, "beta", 1.0);
  bool is_one = term != NULL && cleave_view_element_count(term) == 1;
  float *scale = NULL;
  float *shift = NULL;
  float *packed = NULL;
  const float *filter = is_turned && alpha == 1.0f && unit->folded_count == 0
                            ? xnnpack_constant_in_place(weights) /* as it is */
                            : NULL;
  cleave_status_t status = xnnpack_builder_allocate(builder, channels, &scale);
  if (status == CLEAVE_OK) {
    status = xnnpack_builder_allocate(builder, channels, &shift);
  }
  if (status == CLEAVE_OK && filter == NULL) {
    status = xnnpack_builder_allocate(builder, channels * inputs, &packed);
  }
  if (status != CLEAVE_OK) {
    return status;
  }
  for (int64_t c = 0; c < channels; c++) {
    scale[c] = 1.0f;
    shift[c] = term == NULL ? 0.0f : beta * xnnpack_constant_at(term, is_one ? 0 : c);
  }
  xnnpack_unit_fold(unit, channels, scale, shift);
  if (filter == NULL) {
    pack_filter(weights, is_turned, channels, alpha, scale, packed);
    filter = packed;
  }
  uint32_t input;
  uint32_t filter_id;
  uint32_t bias_id;
  uint32_t output;
  size_t dims[2] = {(size_t)channels, (size_t)inputs};
  status = xnnpack_builder_static(builder, 2, dims, filter, &filter_id);
  if (status == CLEAVE_OK) {
    status = xnnpack_builder_static(builder, 1, dims, shift, &bias_id);
  }
  if (status == CLEAVE_OK) {
    status = xnnpack_builder_use(builder, unit->input, FORM_PLAIN, &input);
  }
  if (status == CLEAVE_OK) {
    status = xnnpack_builder_output(builder, FORM_PLAIN, &output);
  }
  if (status != CLEAVE_OK) {
    return status;
  }
  return xnnpack_builder_check(builder,
                               xnn_define_fully_connected(builder->subgraph, unit->minimum, unit->maximum,
                                                          input, filter_id, bias_id, output, 0),
                               "fully connected");
}
