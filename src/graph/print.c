// SPDX-License-Identifier: Apache-2.0
/* Text of a graph, in topological order. Long lists and tensors are shortened: this is for reading, not for
 * loading. */
#include "graph/print.h"

#include "graph/order.h"

enum { MAX_ELEMENTS = 16 };

void cleave_value_print(const cleave_graph_t *graph, cleave_value_t value, cleave_text_t *text) {
  if (!cleave_value_exists(value)) {
    cleave_text_add(text, "_");
    return;
  }
  const char *name = cleave_value_name(graph, value);
  if (name[0] != '\0') {
    cleave_text_format(text, "%%%s", name);
  } else {
    cleave_text_format(text, "%%%u", (unsigned)value.index);
  }
}

void cleave_value_type_print(const cleave_graph_t *graph, cleave_value_t value, cleave_text_t *text) {
  const cleave_value_record_t *record = cleave_graph_value(graph, value);
  cleave_type_print(graph->dims, (cleave_dtype_t)record->dtype, record->rank, record->dims, text);
}

void cleave_attribute_print(const cleave_attribute_t *attribute, cleave_text_t *text) {
  bool is_list = cleave_attribute_is_list(attribute);
  uint32_t count = cleave_attribute_item_count(attribute);
  if (attribute->kind == CLEAVE_ATTRIBUTE_TENSOR) {
    const cleave_tensor_t *tensor = attribute->held;
    cleave_type_print(NULL, tensor->dtype, tensor->rank, tensor->dims, text);
  }
  cleave_text_add(text, is_list ? "[" : "");
  for (uint32_t k = 0; k < count && k < MAX_ELEMENTS; k++) {
    cleave_attribute_t item = cleave_attribute_item(attribute, k);
    cleave_text_add(text, k > 0 ? ", " : "");
    switch (item.kind) {
      case CLEAVE_ATTRIBUTE_INT: cleave_text_format(text, "%lld", (long long)item.i); break;
      case CLEAVE_ATTRIBUTE_FLOAT: cleave_text_format(text, "%.9g", item.f); break;
      default: cleave_text_format(text, "\"%s\"", item.s); break;
    }
  }
  cleave_text_add(text, !is_list ? "" : count > MAX_ELEMENTS ? ", ...]" : "]");
}

void cleave_node_print(const cleave_graph_t *graph, cleave_node_t node, cleave_text_t *text) {
  const cleave_node_record_t *record = cleave_graph_node(graph, node);
  for (uint32_t k = 0; k < record->output_count; k++) {
    cleave_text_add(text, k > 0 ? ", " : "");
    cleave_value_print(graph, cleave_node_output(graph, node, k), text);
  }
  cleave_text_format(text, " = %s%s%s(", record->op->domain, record->op->domain[0] != '\0' ? "." : "",
                     record->op->name);
  for (uint32_t k = 0; k < record->input_count; k++) {
    cleave_text_add(text, k > 0 ? ", " : "");
    cleave_value_print(graph, cleave_node_input(graph, node, k), text);
  }
  cleave_text_add(text, ")");
  for (uint32_t k = 0; k < record->attribute_count; k++) {
    cleave_text_format(text, "%s%s = ", k == 0 ? " {" : ", ", record->attributes[k].name);
    cleave_attribute_print(&record->attributes[k], text);
  }
  cleave_text_add(text, record->attribute_count > 0 ? "} : " : " : ");
  for (uint32_t k = 0; k < record->output_count; k++) {
    cleave_text_add(text, k > 0 ? ", " : "");
    cleave_value_type_print(graph, cleave_node_output(graph, node, k), text);
  }
}

cleave_status_t cleave_graph_print(const cleave_graph_t *graph, cleave_text_t *text, cleave_error_t *error) {
  cleave_node_t *order = cleave_allocate(graph->live_node_count, sizeof *order);
  CLEAVE_TRY_MEMORY(order, error);
  cleave_status_t status = cleave_graph_topological_order(graph, order, NULL, error);
  if (status == CLEAVE_OK) {
    for (size_t k = 0; k < graph->inputs.count; k++) {
      cleave_text_add(text, "input ");
      cleave_value_print(graph, graph->inputs.items[k], text);
      cleave_text_add(text, " : ");
      cleave_value_type_print(graph, graph->inputs.items[k], text);
      cleave_text_add(text, "\n");
    }
    for (size_t k = 0; k < graph->live_node_count; k++) {
      cleave_node_print(graph, order[k], text);
      cleave_text_add(text, "\n");
    }
    for (size_t k = 0; k < graph->outputs.count; k++) {
      cleave_text_format(text, "output \"%s\" = ", cleave_graph_output_name(graph, k));
      cleave_value_print(graph, cleave_graph_output(graph, k), text);
      cleave_text_add(text, "\n");
    }
    status = cleave_text_check(text, error);
  }
  cleave_free(order);
  return status;
}

void cleave_value_describe_open(const cleave_graph_t *graph, cleave_value_t value, cleave_text_t *text) {
  const cleave_value_record_t *record = cleave_graph_value(graph, value);
  int32_t open = record->rank;
  for (int32_t d = record->rank - 1; d >= 0; d--) { /* the first, but a name before what has none */
    bool is_better = open == record->rank || cleave_dim_is_symbolic(record->dims[d]) ||
                     !cleave_dim_is_symbolic(record->dims[open]);
    open = !cleave_dim_is_known(record->dims[d]) && is_better ? d : open;
  }
  const char *name = cleave_value_name(graph, value);
  if (record->rank < 0 || open == record->rank) {
    cleave_text_format(text, "the %s of '%.100s' is not known", record->rank < 0 ? "rank" : "dtype", name);
  } else if (cleave_dim_is_symbolic(record->dims[open])) {
    cleave_text_t dim = {0};
    cleave_dim_print(graph->dims, record->dims[open], &dim);
    cleave_text_format(text, "size %s of '%.100s' is open (--shape %s=SIZE gives it)", cleave_text_get(&dim),
                       name, cleave_text_get(&dim));
    cleave_text_deinit(&dim);
  } else {
    cleave_text_format(text, "dimension %d of '%.100s' is open", (int)open, name);
  }
}
