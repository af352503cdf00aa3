// SPDX-License-Identifier: Apache-2.0
/* The rewrites of onnx_canonical*.c use these functions. Lists of a call are short: linear search. */
#include <string.h>

#include "formats/onnx/read/onnx_canonical.h"
#include "ops/infer.h"
#include "ops/infer/op_functions.h"

cleave_value_t cleave_onnx_call_input(const cleave_onnx_call_t *call, uint32_t index) {
  return index < call->inputs.count ? call->inputs.items[index] : CLEAVE_VALUE_NONE;
}

cleave_status_t cleave_onnx_call_set_input(cleave_onnx_call_t *call, uint32_t index, cleave_value_t value,
                                           cleave_error_t *error) {
  while (call->inputs.count <= index) {
    CLEAVE_ARRAY_PUSH(&call->inputs, CLEAVE_VALUE_NONE, error);
  }
  call->inputs.items[index] = value;
  return CLEAVE_OK;
}

const cleave_attribute_t *cleave_onnx_call_attribute(const cleave_onnx_call_t *call, const char *name) {
  for (size_t k = 0; k < call->attributes.count; k++) {
    if (strcmp(call->attributes.items[k].name, name) == 0) {
      return &call->attributes.items[k];
    }
  }
  return NULL;
}

int64_t cleave_onnx_call_int(const cleave_onnx_call_t *call, const char *name, int64_t fallback) {
  const cleave_attribute_t *attribute = cleave_onnx_call_attribute(call, name);
  return attribute != NULL && attribute->kind == CLEAVE_ATTRIBUTE_INT ? attribute->i : fallback;
}

double cleave_onnx_call_float(const cleave_onnx_call_t *call, const char *name, double fallback) {
  const cleave_attribute_t *attribute = cleave_onnx_call_attribute(call, name);
  return attribute != NULL && attribute->kind == CLEAVE_ATTRIBUTE_FLOAT ? attribute->f : fallback;
}

const char *cleave_onnx_call_text(const cleave_onnx_call_t *call, const char *name, const char *fallback) {
  const cleave_attribute_t *attribute = cleave_onnx_call_attribute(call, name);
  return attribute != NULL && attribute->kind == CLEAVE_ATTRIBUTE_STRING ? attribute->s : fallback;
}

const int64_t *cleave_onnx_call_ints(const cleave_onnx_call_t *call, const char *name, uint32_t *out_count) {
  const cleave_attribute_t *attribute = cleave_onnx_call_attribute(call, name);
  bool found = attribute != NULL && attribute->kind == CLEAVE_ATTRIBUTE_INTS;
  *out_count = found ? attribute->count : 0;
  return found ? attribute->ints : NULL;
}

void cleave_onnx_call_remove(cleave_onnx_call_t *call, const char *name) {
  size_t kept = 0;
  for (size_t k = 0; k < call->attributes.count; k++) {
    if (strcmp(call->attributes.items[k].name, name) != 0) {
      call->attributes.items[kept++] = call->attributes.items[k];
    }
  }
  call->attributes.count = kept;
}

cleave_status_t cleave_onnx_call_set(cleave_onnx_call_t *call, cleave_attribute_t attribute,
                                     cleave_error_t *error) {
  cleave_onnx_call_remove(call, attribute.name);
  CLEAVE_ARRAY_PUSH(&call->attributes, attribute, error);
  return CLEAVE_OK;
}

cleave_status_t cleave_onnx_call_set_int(cleave_onnx_call_t *call, const char *name, int64_t value,
                                         cleave_error_t *error) {
  cleave_attribute_t attribute = {.name = name, .kind = CLEAVE_ATTRIBUTE_INT};
  attribute.i = value;
  return cleave_onnx_call_set(call, attribute, error);
}

cleave_status_t cleave_onnx_call_set_text(cleave_onnx_call_t *call, const char *name, const char *value,
                                          cleave_error_t *error) {
  cleave_attribute_t attribute = {
      .name = name, .kind = CLEAVE_ATTRIBUTE_STRING, .count = (uint32_t)strlen(value)};
  attribute.s = value;
  return cleave_onnx_call_set(call, attribute, error);
}

bool cleave_onnx_call_output_used(const cleave_onnx_call_t *call, uint32_t index) {
  if (index >= call->node->output_count) {
    return false;
  }
  uint32_t name = call->node->outputs[index].index;
  return name != 0 && name < call->builder->name_count && call->builder->is_used[name];
}

void cleave_onnx_call_bind(cleave_onnx_call_t *call, uint32_t index, cleave_value_t value) {
  if (index < call->node->output_count && call->node->outputs[index].index != 0) {
    call->builder->values[call->node->outputs[index].index] = value;
  }
}

int32_t cleave_onnx_call_rank(const cleave_onnx_call_t *call, cleave_value_t value) {
  return cleave_value_exists(value) ? cleave_graph_value(call->builder->graph, value)->rank : -1;
}

cleave_dtype_t cleave_onnx_call_dtype(const cleave_onnx_call_t *call, cleave_value_t value) {
  return cleave_value_exists(value) ? (cleave_dtype_t)cleave_graph_value(call->builder->graph, value)->dtype
                                    : CLEAVE_DTYPE_UNKNOWN;
}

static cleave_status_t add_constant_take(cleave_onnx_call_t *call, cleave_tensor_t *tensor,
                                         cleave_value_t *out_value, cleave_error_t *error) {
  cleave_status_t status = cleave_graph_add_constant(call->builder->graph, NULL, tensor, out_value, error);
  cleave_tensor_release(tensor);
  return status;
}

cleave_status_t cleave_onnx_call_ints_constant(cleave_onnx_call_t *call, int32_t rank, const int64_t *values,
                                               uint32_t count, cleave_value_t *out_value,
                                               cleave_error_t *error) {
  cleave_tensor_t *tensor = NULL;
  CLEAVE_TRY(cleave_tensor_create_ints(rank, values, (int64_t)count, &tensor, error));
  return add_constant_take(call, tensor, out_value, error);
}

cleave_status_t cleave_onnx_call_number(cleave_onnx_call_t *call, cleave_dtype_t dtype, double number,
                                        cleave_value_t *out_value, cleave_error_t *error) {
  cleave_tensor_t *tensor = NULL;
  if (dtype == CLEAVE_DTYPE_UNKNOWN || dtype == CLEAVE_DTYPE_STRING) {
    dtype = CLEAVE_DTYPE_F32;
  }
  CLEAVE_TRY(cleave_tensor_create(dtype, 0, NULL, &tensor, error));
  cleave_tensor_set_float(tensor, 0, number);
  return add_constant_take(call, tensor, out_value, error);
}

cleave_status_t cleave_onnx_call_emit(cleave_onnx_call_t *call, const char *op_type,
                                      const cleave_value_t *inputs, uint32_t input_count,
                                      cleave_node_t *out_node, cleave_value_t *out_value,
                                      cleave_error_t *error) {
  cleave_graph_t *graph = call->builder->graph;
  const cleave_op_t *op = cleave_op_find_full(op_type);
  if (op == NULL) {
    return cleave_error_set(error, CLEAVE_ERROR_INTERNAL, "operator '%s' is unknown", op_type);
  }
  CLEAVE_TRY(cleave_graph_add_node(graph, op, call->node->name, inputs, input_count, 1, out_node, error));
  *out_value = cleave_node_output(graph, *out_node, 0);
  return CLEAVE_OK;
}

cleave_status_t cleave_onnx_call_refuse(const cleave_onnx_call_t *call, const char *reason,
                                        cleave_error_t *error) {
  return cleave_error_set(error, CLEAVE_ERROR_UNSUPPORTED, "node '%s': operator '%s' of opset %d: %s",
                          call->node->label, call->node->op_type, (int)call->version, reason);
}

static cleave_status_t set_inferred(cleave_graph_t *graph, cleave_value_t value,
                                    const cleave_node_type_t *type, cleave_error_t *error) {
  return cleave_graph_set_type(graph, value, type->dtype, type->rank, type->dims, error);
}

static void type_of(const cleave_graph_t *graph, cleave_value_t value, cleave_node_type_t *out_type) {
  const cleave_value_record_t *record = cleave_graph_value(graph, value);
  *out_type = (cleave_node_type_t){
      .dtype = (cleave_dtype_t)record->dtype, .rank = record->rank, .tensor = record->tensor};
  for (int32_t d = 0; d < record->rank; d++) {
    out_type->dims[d] = record->dims[d] >= 0 ? record->dims[d] : -1;
  }
}

cleave_status_t cleave_onnx_builder_infer(cleave_onnx_builder_t *builder, cleave_node_t node,
                                          cleave_error_t *error) {
  cleave_graph_t *graph = builder->graph;
  if (!builder->wants_types || cleave_op_functions(cleave_node_op(graph, node))->infer == NULL) {
    return CLEAVE_OK;
  }
  uint32_t input_count = cleave_node_input_count(graph, node);
  uint32_t output_count = cleave_node_output_count(graph, node);
  cleave_node_type_t *types = cleave_allocate_zeroed((size_t)input_count + output_count, sizeof *types);
  const cleave_node_type_t **inputs = cleave_allocate_zeroed((size_t)input_count + 1, sizeof *inputs);
  cleave_status_t status = CLEAVE_OK;
  CLEAVE_TRY_MEMORY_CLEANUP(types != NULL && inputs != NULL, error);
  cleave_node_type_t *outputs = types + input_count;
  for (uint32_t k = 0; k < input_count; k++) {
    cleave_value_t value = cleave_node_input(graph, node, k);
    if (cleave_value_exists(value)) {
      type_of(graph, value, &types[k]);
      inputs[k] = &types[k];
    }
  }
  if (cleave_node_infer(graph, node, inputs, input_count, outputs, output_count, NULL) == CLEAVE_OK) {
    for (uint32_t k = 0; k < output_count && status == CLEAVE_OK; k++) {
      status = set_inferred(graph, cleave_node_output(graph, node, k), &outputs[k], error);
    }
  }
cleanup:
  cleave_free(types);
  cleave_free(inputs);
  return status;
}
