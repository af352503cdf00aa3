// SPDX-License-Identifier: Apache-2.0
/*
 * Sets of nodes as backends see them: cleave_region_view_t with values, nodes in topological order, fusions,
 * attributes completed with schema defaults, and a hash. Used for `supports` and for `compile`.
 */
#ifndef CLEAVE_BACKEND_REGION_VIEW_H
#define CLEAVE_BACKEND_REGION_VIEW_H

#include "ops/attribute_view.h"
#include "partition/grow/partition.h"

typedef cleave_fusion_set_t cleave_view_fusion_t;

/* A fusion of a plan. */
static inline cleave_view_fusion_t cleave_view_fusion(const cleave_plan_t *plan,
                                                      const cleave_plan_fusion_t *fusion) {
  return (cleave_view_fusion_t){.rule = plan->rules[fusion->rule].name,
                                .nodes = fusion->nodes,
                                .labels = fusion->labels,
                                .node_count = fusion->node_count,
                                .attributes = fusion->attributes,
                                .attribute_count = fusion->attribute_count};
}

/* The type of a value in this view, in place of its type in the graph. */
typedef struct cleave_view_type {
  cleave_value_t value;
  cleave_tensor_view_t type; /* dims must live as long as the view */
} cleave_view_type_t;

typedef struct cleave_view_request {
  const char *name;           /* of the region, for people */
  const char *rule;           /* that made it, or "" */
  const cleave_node_t *nodes; /* live ones, in topological order, each once */
  uint32_t node_count;
  const cleave_view_fusion_t *fusions; /* disjoint */
  uint32_t fusion_count;
  const cleave_view_type_t *types; /* few; usually none */
  uint32_t type_count;
  const cleave_attribute_t *attributes; /* of the region; by name, no tensors */
  uint32_t attribute_count;
  bool takes_sparse;        /* sparse constants in their sparse form: as the backend's `takes_sparse` says */
  bool has_constant_inputs; /* constants are among the inputs, as executors want them */
} cleave_view_request_t;

/* A view, and the way back from its indices. */
typedef struct cleave_view {
  cleave_region_view_t region;
  const cleave_value_t *values; /* graph value of every value of the view */
  const cleave_node_t *nodes;
  /* Tensors whose content the program may keep: constants, then tensor attributes, as they occur. Two views
   * with equal hashes and equal versions here may share a program. */
  uint32_t constant_count;
  const uint64_t *constant_versions;
} cleave_view_t;

/* Makes views of one graph, one after the other; holds the maps from ids to indices. The graph must not
 * change meanwhile. One thread at a time. */
typedef struct cleave_view_builder {
  const cleave_graph_t *graph;
  uint32_t *value_index; /* by graph value: index in the view, or NONE; NULL until a large set comes */
  uint32_t *node_index;
} cleave_view_builder_t;

void cleave_view_builder_init(cleave_view_builder_t *builder, const cleave_graph_t *graph);
void cleave_view_builder_deinit(cleave_view_builder_t *builder);

/* The view and all it points to are in `arena`, or belong to the graph. Inputs are in order of first use,
 * outputs in order of producer, then output index: as in a plan. */
CLEAVE_STATUS cleave_view_build(cleave_view_builder_t *builder, const cleave_view_request_t *request,
                                cleave_arena_t *arena, cleave_view_t *out_view, cleave_error_t *error);

/* The view of a region of a plan with its fusions, or of one of its fusions alone (CLEAVE_INDEX_NONE: the
 * region). */
CLEAVE_STATUS cleave_view_build_part(cleave_view_builder_t *builder, const cleave_plan_t *plan,
                                     uint32_t region, uint32_t fusion, bool takes_sparse,
                                     cleave_arena_t *arena, cleave_view_t *out_view, cleave_error_t *error);

/* region_hash.c: of structure, attributes, shapes, dtypes; a pure function of the view, and cheap. */
uint64_t cleave_region_hash(const cleave_region_view_t *region);

#endif /* CLEAVE_BACKEND_REGION_VIEW_H */
