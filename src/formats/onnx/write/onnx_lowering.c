// SPDX-License-Identifier: Apache-2.0
/* Bodies of lowered operators, node by node. */
#include "formats/onnx/write/onnx_lowering.h"

static const cleave_value_record_t *source_input(const cleave_lowering_t *l, uint32_t index) {
  cleave_value_t value = cleave_node_input(l->source, l->node, index);
  return cleave_value_exists(value) ? cleave_graph_value(l->source, value) : NULL;
}

cleave_value_t cleave_lowering_input(const cleave_lowering_t *l, uint32_t index) {
  return index < l->input_count ? l->inputs[index] : CLEAVE_VALUE_NONE;
}

int32_t cleave_lowering_rank(const cleave_lowering_t *l, uint32_t index) {
  const cleave_value_record_t *record = source_input(l, index);
  return record != NULL ? record->rank : -1;
}

cleave_dtype_t cleave_lowering_dtype(const cleave_lowering_t *l, uint32_t index) {
  const cleave_value_record_t *record = source_input(l, index);
  return record != NULL ? (cleave_dtype_t)record->dtype : CLEAVE_DTYPE_UNKNOWN;
}

int64_t cleave_lowering_dim(const cleave_lowering_t *l, uint32_t index, int32_t d) {
  const cleave_value_record_t *record = source_input(l, index);
  return record != NULL && d < record->rank && record->dims[d] >= 0 ? record->dims[d] : -1;
}

const cleave_tensor_t *cleave_lowering_constant(const cleave_lowering_t *l, uint32_t index) {
  const cleave_value_record_t *record = source_input(l, index);
  return record != NULL ? record->tensor : NULL;
}

void cleave_lowering_refuse(cleave_lowering_t *l, const char *reason) {
  l->reason = l->reason == NULL ? reason : l->reason;
}

void cleave_lowering_add(cleave_lowering_t *l, const cleave_op_t *op, const cleave_value_t *inputs,
                         uint32_t input_count, uint32_t output_count) {
  if (cleave_lowering_goes_on(l)) {
    l->status =
        cleave_graph_add_node(l->graph, op, NULL, inputs, input_count, output_count, &l->last, l->error);
  }
}

cleave_value_t cleave_lowering_emit(cleave_lowering_t *l, const char *op, cleave_value_t a, cleave_value_t b,
                                    cleave_value_t c) {
  cleave_value_t inputs[3] = {a, b, c};
  uint32_t count = 3;
  while (count > 0 && !cleave_value_exists(inputs[count - 1])) {
    count--;
  }
  cleave_lowering_add(l, cleave_op_find("", op), inputs, count, 1);
  return cleave_lowering_goes_on(l) ? cleave_node_output(l->graph, l->last, 0) : CLEAVE_VALUE_NONE;
}

void cleave_lowering_set_int(cleave_lowering_t *l, const char *name, int64_t value) {
  if (cleave_lowering_goes_on(l)) {
    l->status = cleave_graph_set_int(l->graph, l->last, name, value, l->error);
  }
}

void cleave_lowering_set_float(cleave_lowering_t *l, const char *name, double value) {
  if (cleave_lowering_goes_on(l)) {
    l->status = cleave_graph_set_float(l->graph, l->last, name, value, l->error);
  }
}

static void set_ints(cleave_lowering_t *l, const char *name, const int64_t *values, size_t count) {
  if (cleave_lowering_goes_on(l)) {
    l->status = cleave_graph_set_ints(l->graph, l->last, name, values, count, l->error);
  }
}

static cleave_value_t add_constant_take(cleave_lowering_t *l, cleave_tensor_t *tensor) {
  cleave_value_t value = CLEAVE_VALUE_NONE;
  if (cleave_lowering_goes_on(l)) {
    l->status = cleave_graph_add_constant(l->graph, NULL, tensor, &value, l->error);
  }
  cleave_tensor_release(tensor);
  return value;
}

cleave_value_t cleave_lowering_number(cleave_lowering_t *l, cleave_dtype_t dtype, double number) {
  cleave_tensor_t *tensor = NULL;
  if (cleave_lowering_goes_on(l)) {
    l->status = cleave_tensor_create(dtype, 0, NULL, &tensor, l->error);
  }
  if (tensor != NULL) {
    cleave_tensor_set_float(tensor, 0, number);
  }
  return add_constant_take(l, tensor);
}

cleave_value_t cleave_lowering_ints(cleave_lowering_t *l, const int64_t *values, size_t count) {
  cleave_tensor_t *tensor = NULL;
  if (cleave_lowering_goes_on(l)) {
    l->status = cleave_tensor_create_ints(1, values, (int64_t)count, &tensor, l->error);
  }
  return add_constant_take(l, tensor);
}

cleave_value_t cleave_lowering_cast(cleave_lowering_t *l, cleave_value_t value, cleave_dtype_t from,
                                    cleave_dtype_t dtype) {
  if (from == dtype) {
    return value;
  }
  cleave_value_t cast = cleave_lowering_emit(l, "Cast", value, CLEAVE_VALUE_NONE, CLEAVE_VALUE_NONE);
  cleave_lowering_set_int(l, "to", (int64_t)dtype);
  return cast;
}

cleave_value_t cleave_lowering_transpose(cleave_lowering_t *l, cleave_value_t value, const int64_t *perm,
                                         size_t rank) {
  cleave_value_t y = cleave_lowering_emit(l, "Transpose", value, CLEAVE_VALUE_NONE, CLEAVE_VALUE_NONE);
  set_ints(l, "perm", perm, rank);
  return y;
}

cleave_value_t cleave_lowering_reshape(cleave_lowering_t *l, cleave_value_t value, const int64_t *dims,
                                       size_t rank) {
  return cleave_lowering_emit(l, "Reshape", value, cleave_lowering_ints(l, dims, rank), CLEAVE_VALUE_NONE);
}

void cleave_lowering_output(cleave_lowering_t *l, cleave_value_t value) {
  if (cleave_lowering_goes_on(l)) {
    l->status = cleave_graph_add_output(l->graph, NULL, value, l->error);
  }
}
