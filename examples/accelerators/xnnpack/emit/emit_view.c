// SPDX-License-Identifier: Apache-2.0
/* Operators that care where their elements lie: padding, softmax, reshapes, depth to space. */
#include "operators.h"

/* Padding before and behind each dimension, and the number that is padded with. */
static cleave_status_t read_pads(const unit_t *unit, int64_t pads[2 * XNNPACK_MAX_RANK], float *value,
                                 cleave_message_t *reason) {
  const cleave_node_view_t *node = unit->head;
  int32_t rank = unit->region->values[unit->input].tensor.rank;
  const cleave_value_view_t *number = cleave_view_input(unit->region, node, 2);
  int32_t count = xnnpack_read_integers(unit, "pads", 1, 2 * XNNPACK_MAX_RANK, pads);
  bool is_constant = cleave_view_text_equal(cleave_view_string(node, "mode", "constant"), "constant");
  if (!is_constant || count != 2 * rank || rank == 0 || cleave_view_input(unit->region, node, 3) != NULL) {
    return xnnpack_refuse(reason, CLEAVE_REASON_ATTRIBUTE,
                          "%s: only with a number, and constant padding of all dimensions", node->op);
  }
  for (int32_t k = 0; k < count; k++) {
    if (pads[k] < 0 || pads[k] > INT16_MAX) {
      return xnnpack_refuse(reason, CLEAVE_REASON_ATTRIBUTE, "%s: XNNPACK does not pad by %lld", node->op,
                            (long long)pads[k]);
    }
  }
  *value = (float)cleave_view_float(node, "value", 0.0);
  if (number != NULL) {
    if (number->tensor.data == NULL || number->tensor.dtype != CLEAVE_DTYPE_F32 ||
        cleave_view_element_count(&number->tensor) != 1) {
      return xnnpack_refuse(reason, CLEAVE_REASON_CONSTANT, "%s: what is padded with must be a constant",
                            node->op);
    }
    *value = xnnpack_constant_at(&number->tensor, 0);
  }
  return CLEAVE_OK;
}

cleave_status_t xnnpack_check_pad(const unit_t *unit, cleave_message_t *reason) {
  int64_t pads[2 * XNNPACK_MAX_RANK];
  float value;
  return read_pads(unit, pads, &value, reason);
}

cleave_status_t xnnpack_emit_pad(const unit_t *unit, builder_t *builder) {
  static const int last[4] = {0, 2, 3, 1};
  int64_t pads[2 * XNNPACK_MAX_RANK];
  size_t before[XNNPACK_MAX_RANK];
  size_t behind[XNNPACK_MAX_RANK];
  int32_t rank = unit->region->values[unit->input].tensor.rank;
  float value;
  uint32_t input;
  uint32_t output;
  cleave_status_t status = read_pads(unit, pads, &value, builder->message);
  if (status == CLEAVE_OK) {
    status = xnnpack_builder_use(builder, unit->input, builder->form, &input);
  }
  if (status == CLEAVE_OK) {
    status = xnnpack_builder_output(builder, builder->form, &output);
  }
  if (status != CLEAVE_OK) {
    return status;
  }
  for (int32_t d = 0; d < rank; d++) {
    int32_t from = builder->form == FORM_LAST && rank == 4 ? last[d] : d;
    before[d] = (size_t)pads[from];
    behind[d] = (size_t)pads[rank + from];
  }
  return xnnpack_builder_check(
      builder, xnn_define_static_constant_pad(builder->subgraph, before, behind, value, input, output, 0),
      "padding");
}

/* Softmax runs over what lies last: the last dimension, or the channels of a value of rank 4. */
cleave_status_t xnnpack_check_softmax(const unit_t *unit, cleave_message_t *reason) {
  const cleave_node_view_t *node = unit->head;
  int32_t rank = unit->region->values[unit->input].tensor.rank;
  int64_t axis = cleave_view_int(node, "axis", node->opset_version < 13 ? 1 : -1);
  axis += axis < 0 ? rank : 0;
  if (rank < 1 || (axis != rank - 1 && !(rank == 4 && axis == 1 && node->opset_version >= 13))) {
    return xnnpack_refuse(reason, CLEAVE_REASON_ATTRIBUTE,
                          "%s: only over the last dimension, or over channels", node->op);
  }
  return CLEAVE_OK;
}

cleave_status_t xnnpack_emit_softmax(const unit_t *unit, builder_t *builder) {
  form_t form = xnnpack_unit_class(unit) == CLASS_SPATIAL ? FORM_LAST : FORM_PLAIN;
  uint32_t input;
  uint32_t output;
  cleave_status_t status = xnnpack_builder_use(builder, unit->input, form, &input);
  if (status == CLEAVE_OK) {
    status = xnnpack_builder_output(builder, form, &output);
  }
  return status != CLEAVE_OK
             ? status
             : xnnpack_builder_check(builder, xnn_define_softmax(builder->subgraph, input, output, 0),
                                     "softmax");
}

/* New sizes for the same elements. What says the sizes has been read when shapes were inferred. */
cleave_status_t xnnpack_check_view(const unit_t *unit, cleave_message_t *reason) {
  const cleave_value_view_t *sizes = cleave_view_input(unit->region, unit->head, 1);
  if (sizes != NULL && sizes->tensor.data == NULL) {
    return xnnpack_refuse(reason, CLEAVE_REASON_CONSTANT, "%s: sizes must be constants", unit->head->op);
  }
  return CLEAVE_OK;
}

cleave_status_t xnnpack_emit_view(const unit_t *unit, builder_t *builder) {
  size_t dims[XNNPACK_MAX_RANK];
  size_t rank = xnnpack_dims(&unit->region->values[unit->output].tensor, FORM_PLAIN, dims);
  uint32_t input;
  uint32_t output;
  cleave_status_t status = xnnpack_builder_use(builder, unit->input, FORM_PLAIN, &input);
  if (status == CLEAVE_OK) {
    status = xnnpack_builder_output(builder, FORM_PLAIN, &output);
  }
  return status != CLEAVE_OK
             ? status
             : xnnpack_builder_check(
                   builder, xnn_define_static_reshape(builder->subgraph, rank, dims, input, output, 0),
                   "reshape");
}

cleave_status_t xnnpack_check_depth_to_space(const unit_t *unit, cleave_message_t *reason) {
  const cleave_node_view_t *node = unit->head;
  int64_t block = cleave_view_int(node, "blocksize", 0);
  if (unit->region->values[unit->input].tensor.rank != 4 || block < 2 || block > INT16_MAX ||
      !cleave_view_text_equal(cleave_view_string(node, "mode", "DCR"), "DCR")) {
    return xnnpack_refuse(reason, CLEAVE_REASON_ATTRIBUTE, "%s: only mode DCR with blocks of two and more",
                          node->op);
  }
  return CLEAVE_OK;
}

cleave_status_t xnnpack_emit_depth_to_space(const unit_t *unit, builder_t *builder) {
  uint32_t block = (uint32_t)cleave_view_int(unit->head, "blocksize", 0);
  uint32_t input;
  uint32_t output;
  cleave_status_t status = xnnpack_builder_use(builder, unit->input, FORM_LAST, &input);
  if (status == CLEAVE_OK) {
    status = xnnpack_builder_output(builder, FORM_LAST, &output);
  }
  return status != CLEAVE_OK
             ? status
             : xnnpack_builder_check(builder,
                                     xnn_define_depth_to_space(builder->subgraph, input, output, block, 0),
                                     "depth to space");
}
