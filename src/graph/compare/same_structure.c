// SPDX-License-Identifier: Apache-2.0
/* Comparison record by record. Graphs that were copied from one have the same ids in the same order for as
 * long as the same is done to both, so nothing has to be searched. */
#include "graph/compare/same_structure.h"

#include <string.h>

static bool same_bytes(const void *a, const void *b, size_t bytes) {
  return bytes == 0 || a == b || memcmp(a, b, bytes) == 0;
}

static bool same_attribute(const cleave_attribute_t *a, const cleave_attribute_t *b) {
  if (strcmp(a->name, b->name) != 0) {
    return false;
  }
  bool are_tensors = a->kind == CLEAVE_ATTRIBUTE_TENSOR && b->kind == CLEAVE_ATTRIBUTE_TENSOR;
  return are_tensors ? cleave_tensor_is_same(a->held, b->held) : cleave_attribute_is_equal(a, b);
}

/* The name of the first attribute of `a` that is another one in `b`; NULL: all are the same. */
static const char *find_attribute(const cleave_node_record_t *a, const cleave_node_record_t *b) {
  if (a->attribute_count != b->attribute_count) {
    return a->attribute_count > 0 ? a->attributes[0].name : b->attributes[0].name;
  }
  for (uint32_t k = 0; k < a->attribute_count; k++) {
    if (!same_attribute(&a->attributes[k], &b->attributes[k])) {
      return a->attributes[k].name;
    }
  }
  return NULL;
}

static bool same_op(const cleave_op_t *a, const cleave_op_t *b) {
  return a == b ||
         (a != NULL && b != NULL && strcmp(a->name, b->name) == 0 && strcmp(a->domain, b->domain) == 0);
}

static bool same_node(const cleave_graph_t *graph, const cleave_graph_t *other, cleave_node_t node,
                      cleave_text_t *text) {
  const cleave_node_record_t *a = cleave_graph_node(graph, node);
  const cleave_node_record_t *b = cleave_graph_node(other, node);
  char label[128];
  if (a->op == NULL && b->op == NULL) {
    return true;
  }
  if (!same_op(a->op, b->op)) {
    const cleave_graph_t *there = a->op != NULL ? graph : other;
    cleave_text_format(text, "node '%s' is %s", cleave_node_label(there, node, label, sizeof label),
                       a->op == NULL || b->op == NULL ? "there in one of them only" : "another operator");
    return false;
  }
  (void)cleave_node_label(graph, node, label, sizeof label);
  const char *attribute = find_attribute(a, b);
  if (attribute != NULL) {
    cleave_text_format(text, "node '%s' has another attribute '%.80s'", label, attribute);
    return false;
  }
  bool same = a->input_count == b->input_count && a->output_count == b->output_count &&
              a->first_output == b->first_output;
  for (uint32_t k = 0; same && k < a->input_count; k++) {
    same = cleave_node_input(graph, node, k).index == cleave_node_input(other, node, k).index;
  }
  if (!same) {
    cleave_text_format(text, "node '%s' has other inputs or outputs", label);
  }
  return same;
}

static bool same_tensor_type(const cleave_tensor_t *a, const cleave_tensor_t *b, bool any_sizes) {
  return (a == NULL) == (b == NULL) &&
         (a == NULL || (a->dtype == b->dtype && a->rank == b->rank &&
                        (any_sizes || same_bytes(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims))));
}

static bool same_type(const cleave_value_record_t *a, const cleave_value_record_t *b, bool any_sizes) {
  return a->dtype == b->dtype && a->rank == b->rank &&
         (any_sizes || a->rank <= 0 || same_bytes(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims)) &&
         same_tensor_type(a->tensor, b->tensor, any_sizes);
}

static bool same_value(const cleave_graph_t *graph, const cleave_graph_t *other, cleave_value_t value,
                       bool any_sizes, cleave_text_t *text) {
  const cleave_value_record_t *a = cleave_graph_value(graph, value);
  const cleave_value_record_t *b = cleave_graph_value(other, value);
  if (a->is_removed && b->is_removed) {
    return true;
  }
  bool same = a->is_removed == b->is_removed && a->producer == b->producer && a->is_input == b->is_input;
  if (!same || !same_type(a, b, any_sizes)) {
    cleave_text_format(text, "value '%.100s' %s", cleave_value_name(graph, value),
                       same ? "has another type" : "is made in another way");
    return false;
  }
  return true;
}

static bool same_ports(const cleave_graph_t *graph, const cleave_graph_t *other, cleave_text_t *text) {
  bool same = graph->inputs.count == other->inputs.count && graph->outputs.count == other->outputs.count;
  for (size_t k = 0; same && k < graph->inputs.count; k++) {
    same = graph->inputs.items[k].index == other->inputs.items[k].index;
  }
  for (size_t k = 0; same && k < graph->outputs.count; k++) {
    same = cleave_graph_output(graph, k).index == cleave_graph_output(other, k).index;
  }
  if (!same) {
    cleave_text_format(text, "it has other inputs or outputs");
  }
  return same;
}

static bool compare(const cleave_graph_t *graph, const cleave_graph_t *other, bool any_sizes,
                    cleave_text_t *text) {
  cleave_text_t unwanted = {0};
  text = text != NULL ? text : &unwanted;
  uint32_t nodes = cleave_graph_node_bound(graph);
  uint32_t values = cleave_graph_value_bound(graph);
  uint32_t other_nodes = cleave_graph_node_bound(other);
  uint32_t other_values = cleave_graph_value_bound(other);
  bool same = true;
  for (uint32_t k = 0; same && k < nodes && k < other_nodes; k++) {
    same = same_node(graph, other, (cleave_node_t){k}, text);
  }
  for (uint32_t k = 0; same && k < values && k < other_values; k++) {
    same = same_value(graph, other, (cleave_value_t){k}, any_sizes, text);
  }
  if (same && (nodes != other_nodes || values != other_values)) {
    cleave_text_format(text, "it has %u nodes and values, expected %u", (unsigned)(nodes + values),
                       (unsigned)(other_nodes + other_values));
    same = false;
  }
  same = same && same_ports(graph, other, text);
  cleave_text_deinit(&unwanted);
  return same;
}

bool cleave_graph_has_structure_of(const cleave_graph_t *graph, const cleave_graph_t *other,
                                   cleave_text_t *text) {
  return compare(graph, other, false, text);
}

bool cleave_graph_is_version_of(const cleave_graph_t *graph, const cleave_graph_t *other,
                                cleave_text_t *text) {
  return compare(graph, other, graph->is_sized && other->is_sized, text);
}

cleave_status_t cleave_graph_share_constants(cleave_graph_t *graph, const cleave_graph_t *other,
                                             cleave_error_t *error) {
  uint32_t bound = cleave_graph_value_bound(graph);
  for (uint32_t k = 0; k < bound && k < cleave_graph_value_bound(other); k++) {
    cleave_tensor_t *old = other->values.items[k].tensor;
    const cleave_tensor_t *new = graph->values.items[k].tensor;
    if (old != NULL && new != NULL && old != new &&cleave_tensor_is_same(old, new)) {
      CLEAVE_TRY(cleave_graph_set_constant(graph, (cleave_value_t){k}, old, error));
    }
  }
  return cleave_graph_release_unused(graph, error);
}
