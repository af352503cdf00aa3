// SPDX-License-Identifier: Apache-2.0
/* What the meanings of operators are made of, node by node. */
#include "formats/onnx/read/onnx_maker.h"

#include <stdio.h>
#include <string.h>

#include "ops/ops.h"

typedef cleave_onnx_maker_t maker_t;

static bool goes_on(const maker_t *m) {
  return m->status == CLEAVE_OK;
}

/* The types of the node that was made last, now that it is complete. */
static void settle(maker_t *m) {
  if (goes_on(m) && cleave_node_exists(m->last)) {
    m->status = cleave_op_check(m->call->builder->graph, m->last, CLEAVE_ERROR_FORMAT, m->error);
    CLEAVE_THEN(m->status, cleave_onnx_builder_infer(m->call->builder, m->last, m->error));
  }
}

cleave_value_t cleave_make_input(const maker_t *m, uint32_t index) {
  return cleave_onnx_call_input(m->call, index);
}

bool cleave_make_has(const maker_t *m, uint32_t index) {
  return cleave_value_exists(cleave_make_input(m, index));
}

cleave_value_t cleave_make_node(maker_t *m, const char *op, const cleave_value_t *inputs,
                                uint32_t input_count, uint32_t output_count) {
  cleave_graph_t *graph = m->call->builder->graph;
  settle(m);
  while (input_count > 0 && !cleave_value_exists(inputs[input_count - 1])) {
    input_count--;
  }
  if (goes_on(m)) {
    m->status = cleave_graph_add_node(graph, cleave_op_find_full(op), m->call->node->name, inputs,
                                      input_count, output_count, &m->last, m->error);
  }
  return goes_on(m) ? cleave_node_output(graph, m->last, 0) : CLEAVE_VALUE_NONE;
}

cleave_value_t cleave_make_result(maker_t *m, uint32_t index) {
  return goes_on(m) ? cleave_node_output(m->call->builder->graph, m->last, index) : CLEAVE_VALUE_NONE;
}

void cleave_make_int(maker_t *m, const char *name, int64_t value) {
  if (goes_on(m)) {
    m->status = cleave_graph_set_int(m->call->builder->graph, m->last, name, value, m->error);
  }
}

void cleave_make_float(maker_t *m, const char *name, double value) {
  if (goes_on(m)) {
    m->status = cleave_graph_set_float(m->call->builder->graph, m->last, name, value, m->error);
  }
}

void cleave_make_ints(maker_t *m, const char *name, const int64_t *values, size_t count) {
  if (goes_on(m)) {
    m->status = cleave_graph_set_ints(m->call->builder->graph, m->last, name, values, count, m->error);
  }
}

void cleave_make_text(maker_t *m, const char *name, const char *value) {
  if (goes_on(m)) {
    m->status = cleave_graph_set_text(m->call->builder->graph, m->last, name, value, m->error);
  }
}

void cleave_make_copy(maker_t *m, const char *names) {
  for (size_t k = 0; k < m->call->attributes.count && goes_on(m); k++) {
    const cleave_attribute_t *attribute = &m->call->attributes.items[k];
    if (cleave_text_has_word(names, attribute->name)) {
      m->status = cleave_graph_set_attribute(m->call->builder->graph, m->last, attribute, m->error);
    }
  }
}

cleave_value_t cleave_make_number(maker_t *m, cleave_value_t like, double number) {
  cleave_value_t value = CLEAVE_VALUE_NONE;
  cleave_dtype_t dtype = cleave_make_dtype(m, like);
  if (goes_on(m)) {
    m->status = cleave_onnx_call_number(m->call, dtype, number, &value, m->error);
  }
  return value;
}

static cleave_value_t integers(maker_t *m, int32_t rank, const int64_t *values, uint32_t count) {
  cleave_value_t value = CLEAVE_VALUE_NONE;
  if (goes_on(m)) {
    m->status = cleave_onnx_call_ints_constant(m->call, rank, values, count, &value, m->error);
  }
  return value;
}

cleave_value_t cleave_make_list(maker_t *m, const int64_t *values, uint32_t count) {
  return integers(m, 1, values, count);
}

cleave_value_t cleave_make_index(maker_t *m, int64_t number) {
  return integers(m, 0, &number, 1);
}

cleave_value_t cleave_make_sum(maker_t *m, cleave_value_t a, cleave_value_t b) {
  if (!cleave_value_exists(a) || !cleave_value_exists(b)) {
    return cleave_value_exists(a) ? a : b;
  }
  return CLEAVE_MAKE(m, "Add", a, b);
}

cleave_value_t cleave_make_cast(maker_t *m, cleave_value_t value, cleave_dtype_t dtype) {
  if (cleave_make_dtype(m, value) == dtype) {
    return value;
  }
  cleave_value_t cast = CLEAVE_MAKE(m, "Cast", value);
  cleave_make_int(m, "to", (int64_t)dtype);
  return cast;
}

cleave_value_t cleave_make_transpose(maker_t *m, cleave_value_t value, const int64_t *perm, size_t rank) {
  cleave_value_t turned = CLEAVE_MAKE(m, "Transpose", value);
  cleave_make_ints(m, "perm", perm, rank);
  return turned;
}

cleave_value_t cleave_make_size(maker_t *m, cleave_value_t value, int64_t axis) {
  cleave_value_t size = CLEAVE_MAKE(m, "Shape", value);
  cleave_make_int(m, "start", axis);
  if (axis != -1) {
    cleave_make_int(m, "end", axis + 1);
  }
  return size;
}

cleave_value_t cleave_make_range(maker_t *m, cleave_value_t size) {
  cleave_value_t limit = CLEAVE_MAKE(m, "Reshape", size, cleave_make_list(m, NULL, 0));
  return CLEAVE_MAKE(m, "Range", cleave_make_index(m, 0), limit, cleave_make_index(m, 1));
}

int32_t cleave_make_rank(maker_t *m, cleave_value_t value) {
  settle(m);
  return cleave_onnx_call_rank(m->call, value);
}

int64_t cleave_make_dim(maker_t *m, cleave_value_t value, int32_t axis) {
  int32_t rank = cleave_make_rank(m, value);
  axis = axis < 0 ? axis + rank : axis;
  int64_t size =
      axis >= 0 && axis < rank ? cleave_graph_value(m->call->builder->graph, value)->dims[axis] : -1;
  return size >= 0 ? size : -1;
}

cleave_dtype_t cleave_make_dtype(maker_t *m, cleave_value_t value) {
  settle(m);
  return cleave_onnx_call_dtype(m->call, value);
}

void cleave_make_output(maker_t *m, uint32_t index, cleave_value_t value) {
  cleave_graph_t *graph = m->call->builder->graph;
  settle(m);
  if (!goes_on(m) || !cleave_value_exists(value) || index >= m->call->node->output_count ||
      m->call->node->outputs[index].index == 0) {
    return;
  }
  if (cleave_node_exists(cleave_value_producer(graph, value)) && cleave_value_name(graph, value)[0] == '\0') {
    const char *name = cleave_strings_text(&graph->strings, m->call->node->outputs[index]);
    m->status = cleave_graph_set_value_name(graph, value, name, m->error);
  }
  cleave_onnx_call_bind(m->call, index, value);
}

void cleave_make_refuse(maker_t *m, const char *reason) {
  if (goes_on(m)) {
    m->status = cleave_onnx_call_refuse(m->call, reason, m->error);
  }
}

void cleave_make_expect(maker_t *m, const char *name, int64_t value) {
  if (cleave_onnx_call_int(m->call, name, value) != value) {
    char reason[96];
    (void)snprintf(reason, sizeof reason, "it is read with %s = %lld alone", name, (long long)value);
    cleave_make_refuse(m, reason);
  }
}

void cleave_make_without(maker_t *m, uint32_t first, uint32_t last) {
  for (uint32_t k = first; k <= last; k++) {
    if (cleave_make_has(m, k)) {
      char reason[64];
      (void)snprintf(reason, sizeof reason, "it is not read with input %u", (unsigned)k);
      cleave_make_refuse(m, reason);
    }
  }
}

cleave_status_t cleave_onnx_make(cleave_onnx_call_t *call, cleave_onnx_meaning_t meaning,
                                 cleave_error_t *error) {
  maker_t maker = {.call = call, .last = CLEAVE_NODE_NONE, .error = error};
  meaning(&maker);
  settle(&maker);
  for (uint32_t k = 0; k < call->node->output_count; k++) {
    if (cleave_onnx_call_output_used(call, k) &&
        !cleave_value_exists(call->builder->values[call->node->outputs[k].index])) {
      char reason[64];
      (void)snprintf(reason, sizeof reason, "it is not read with output %u", (unsigned)k);
      cleave_make_refuse(&maker, reason);
    }
  }
  call->is_done = true;
  return maker.status;
}
