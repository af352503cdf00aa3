// SPDX-License-Identifier: Apache-2.0
/* Tensors and attributes of a graph as libraries see them (cleave/backend.h). */
#ifndef CLEAVE_OPS_ATTRIBUTE_VIEW_H
#define CLEAVE_OPS_ATTRIBUTE_VIEW_H

#include "ops/ops.h"

/* A tensor, borrowed. Data of an empty tensor is not NULL. */
static inline cleave_tensor_view_t cleave_tensor_view(const cleave_tensor_t *tensor) {
  return (cleave_tensor_view_t){.size = sizeof(cleave_tensor_view_t),
                                .dtype = tensor->dtype,
                                .rank = tensor->rank,
                                .dims = tensor->dims,
                                .data = tensor->data != NULL ? tensor->data : (const void *)tensor,
                                .version = tensor->version};
}

/* An attribute; what it points to stays the graph's, the view of a tensor is in `arena`. */
CLEAVE_STATUS cleave_attribute_view(const cleave_attribute_t *attribute, cleave_arena_t *arena,
                                    cleave_attribute_view_t *out_view, cleave_error_t *error);

/* The node's own attributes, then the defaults of its schema. */
CLEAVE_STATUS cleave_attribute_views(const cleave_graph_t *graph, cleave_node_t node, cleave_arena_t *arena,
                                     cleave_attribute_view_t **out_views, uint32_t *out_count,
                                     cleave_error_t *error);

#endif /* CLEAVE_OPS_ATTRIBUTE_VIEW_H */
