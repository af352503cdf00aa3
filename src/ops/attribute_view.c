// SPDX-License-Identifier: Apache-2.0
// Attributes as libraries see them: complete, with the defaults of the schema behind the node's own.
#include "ops/attribute_view.h"

cleave_status_t cleave_attribute_view(const cleave_attribute_t *attribute, cleave_arena_t *arena,
                                      cleave_attribute_view_t *out_view, cleave_error_t *error) {
  *out_view = *attribute;
  out_view->size = sizeof *out_view;
  if (attribute->kind == CLEAVE_ATTRIBUTE_TENSOR) {
    cleave_tensor_view_t *tensor = cleave_arena_allocate(arena, 1, sizeof *tensor);
    CLEAVE_TRY_MEMORY(tensor, error);
    *tensor = cleave_tensor_view(attribute->held);
    out_view->tensor = tensor;
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_attribute_views(const cleave_graph_t *graph, cleave_node_t node, cleave_arena_t *arena,
                                       cleave_attribute_view_t **out_views, uint32_t *out_count,
                                       cleave_error_t *error) {
  const cleave_node_record_t *record = cleave_graph_node(graph, node);
  uint32_t most = (uint32_t)record->attribute_count + record->op->attribute_count;
  *out_views = NULL;
  *out_count = 0;
  if (most == 0) {
    return CLEAVE_OK;
  }
  cleave_attribute_view_t *views = cleave_arena_allocate(arena, most, sizeof *views);
  CLEAVE_TRY_MEMORY(views, error);
  for (uint32_t k = 0; k < record->attribute_count; k++) {
    CLEAVE_TRY(cleave_attribute_view(&record->attributes[k], arena, &views[(*out_count)++], error));
  }
  for (uint32_t k = 0; k < record->op->attribute_count; k++) {
    cleave_attribute_t value;
    const char *name = record->op->attributes[k].value.name;
    if (cleave_node_attribute(graph, node, name) == NULL &&
        cleave_op_effective_attribute(graph, node, name, &value)) {
      CLEAVE_TRY(cleave_attribute_view(&value, arena, &views[(*out_count)++], error));
    }
  }
  *out_views = views;
  return CLEAVE_OK;
}
