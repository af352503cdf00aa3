/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that care where their elements lie: softmax, reshapes, depth to space. */
#include "operators.h"

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
