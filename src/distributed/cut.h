// SPDX-License-Identifier: Apache-2.0
/* Cuts a graph into parts that run one after the other; values that later parts read go between them. */
#ifndef CLEAVE_DISTRIBUTED_CUT_H
#define CLEAVE_DISTRIBUTED_CUT_H

#include "base/containers/array.h"
#include "graph/graph.h"

/* In the place of a part: the node is in none, as nothing needs it; or it is in none, and what it makes is
 * given to the parts that read it. */
#define CLEAVE_CUT_NONE CLEAVE_INDEX_NONE
#define CLEAVE_CUT_GIVEN (CLEAVE_INDEX_NONE - 1)

typedef struct cleave_cut_part {
  cleave_graph_t *graph;               /* NULL: no node is in this part */
  CLEAVE_ARRAY(cleave_value_t) inputs; /* of `graph`, in order, as values of the whole graph */
  CLEAVE_ARRAY(cleave_value_t) outputs;
  CLEAVE_ARRAY(uint32_t) numbers; /* by output: which one of the request; NONE: for later parts */
} cleave_cut_part_t;

typedef struct cleave_cut_request {
  const uint32_t *parts; /* by node */
  uint32_t part_count;
  const cleave_value_t *outputs; /* those that no node in a part makes become outputs of the last one */
  uint32_t output_count;
} cleave_cut_request_t;

/* Nodes without a part get the first that needs them, by way of the nodes that have one. `parts`: by node,
 * room for cleave_graph_node_bound. Linear. */
CLEAVE_STATUS cleave_cut_assign(const cleave_graph_t *graph, uint32_t *parts, cleave_error_t *error);

/* Makes the parts (all zero before; deinitialised also when this fails). CLEAVE_ERROR_INVALID_ARGUMENT: a
 * part reads what a later one makes. Linear. The graph must outlive them if it has custom operators. */
CLEAVE_STATUS cleave_cut(const cleave_graph_t *graph, const cleave_cut_request_t *request,
                         cleave_cut_part_t *parts, cleave_error_t *error);
void cleave_cut_part_deinit(cleave_cut_part_t *part);

#endif /* CLEAVE_DISTRIBUTED_CUT_H */
