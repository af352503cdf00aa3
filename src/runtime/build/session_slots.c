// SPDX-License-Identifier: Apache-2.0
// Values between steps: what they are, and of what kind their memory is. A value gets its slot when the step
// that computes it is made, or, if nobody does, when it is first read.
#include "runtime/build/session_build.h"

bool cleave_build_is_known(const cleave_graph_t *graph, cleave_value_t value) {
  const cleave_value_record_t *record = cleave_graph_value(graph, value);
  int64_t count = 0;
  return record->dtype != CLEAVE_DTYPE_UNKNOWN &&
         cleave_shape_element_count(record->rank, record->dims, &count);
}

cleave_status_t cleave_build_add_slot(cleave_build_t *build, cleave_value_t value, cleave_slot_kind_t kind,
                                      uint32_t place, uint32_t *out_slot, cleave_error_t *error) {
  cleave_session_t *session = build->session;
  const cleave_value_record_t *record = cleave_graph_value(build->graph, value);
  uint32_t index = (uint32_t)session->slots.count;
  cleave_slot_t slot = {.kind = kind,
                        .value = value,
                        .place = place,
                        .root = index,
                        .block = CLEAVE_INDEX_NONE,
                        .writer = CLEAVE_INDEX_NONE};
  slot.view = (cleave_tensor_view_t){.size = sizeof slot.view,
                                     .dtype = (cleave_dtype_t)record->dtype,
                                     .rank = record->rank,
                                     .memory = session->targets.items[place].memory};
  for (int32_t d = 0; d < record->rank; d++) {
    slot.dims[d] = record->dims[d];
  }
  int64_t count = 0;
  if (cleave_shape_element_count(record->rank, record->dims, &count) &&
      (!cleave_size_multiply((size_t)count, cleave_dtype_size(slot.view.dtype), &slot.bytes) ||
       slot.bytes > SIZE_MAX / 4)) {
    return cleave_error_set(error, CLEAVE_ERROR_LIMIT, "value '%s': %lld elements are too many",
                            cleave_value_name(build->graph, value), (long long)count);
  }
  if (record->tensor != NULL) {
    slot.view.data = record->tensor->data;
    slot.view.version = record->tensor->version;
    slot.view.is_weight = true;
  }
  CLEAVE_ARRAY_PUSH(&session->slots, slot, error);
  build->value_slot[value.index] = index;
  *out_slot = index;
  return CLEAVE_OK;
}

cleave_status_t cleave_build_input_slot(cleave_build_t *build, cleave_value_t value, uint32_t *out_slot,
                                        cleave_error_t *error) {
  *out_slot = build->value_slot[value.index];
  if (*out_slot != CLEAVE_INDEX_NONE) {
    return CLEAVE_OK;
  }
  const cleave_value_record_t *record = cleave_graph_value(build->graph, value);
  if (record->tensor != NULL) {
    return cleave_build_add_slot(build, value, CLEAVE_SLOT_CONSTANT, CLEAVE_PLACE_HOST, out_slot, error);
  }
  if (record->is_input) {
    return cleave_build_add_slot(build, value, CLEAVE_SLOT_USER, CLEAVE_PLACE_HOST, out_slot, error);
  }
  return cleave_error_set(error, CLEAVE_ERROR_INTERNAL, "value '%s' is read before it is computed",
                          cleave_value_name(build->graph, value));
}
