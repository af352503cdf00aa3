// SPDX-License-Identifier: Apache-2.0
/* Inside of recompute: what a choice is made from, and the choice. */
#ifndef CLEAVE_PARTITION_GRADIENT_RECOMPUTE_STATE_H
#define CLEAVE_PARTITION_GRADIENT_RECOMPUTE_STATE_H

#include "partition/gradient/recompute.h"

/* Positions are places in the topological order, forward first; NONE: never. */
typedef struct recompute_value {
  int64_t bytes;     /* of memory of its own; 0: a view, a constant, an input or an output of the graph */
  uint32_t root;     /* the value whose memory it is: views share it */
  bool may_drop;     /* its producer may be repeated to have it again */
  bool backward;     /* backward reads its elements */
  uint32_t last;     /* position of the last reader in forward, of all views; at least the producer's */
  uint32_t first_in; /* the first and the last reader in backward */
  uint32_t last_in;
  uint32_t end; /* of the choice: how long forward's own value lives */
} recompute_value_t;

typedef struct recompute_node {
  double flops;
  double ratio;   /* FLOPs per byte that is not kept */
  int64_t bytes;  /* of outputs that may be dropped */
  uint32_t first; /* the first reader in backward of these; NONE: there is none */
  bool is_view;
  bool is_eligible;
  /* the choice: */
  bool is_dropped;
  bool is_wanted; /* somebody who is repeated reads it */
  bool is_repeated;
  uint32_t set;      /* nodes that are repeated together: the parent in a forest */
  int64_t set_bytes; /* of a root of the forest */
  uint32_t set_first;
  uint32_t stamp;
} recompute_node_t;

typedef struct recompute {
  cleave_graph_t *graph;
  uint32_t first_backward; /* node */
  uint32_t node_count;     /* of the order: nodes that outputs need */
  uint32_t forward_count;  /* of these */
  cleave_node_t *order;
  uint32_t *late;    /* by position: that of a node before it that waits for the end of forward; or NONE */
  uint32_t *depth;   /* by node: the last position in forward that it depends on */
  int64_t *backward; /* by position: what backward's own values add to memory */
  int64_t *profile;
  recompute_value_t *values;
  recompute_node_t *nodes;
} recompute_t;

/* The cost of a choice. */
typedef struct recompute_cost {
  double flops;
  int64_t peak;
  int64_t kept;
  uint32_t repeated;
} recompute_cost_t;

/* Must be deinitialised also when this fails. */
CLEAVE_STATUS cleave_recompute_init(recompute_t *state, cleave_graph_t *graph, uint32_t first_backward,
                                    cleave_error_t *error);
void cleave_recompute_deinit(recompute_t *state);

static inline bool cleave_recompute_is_forward(const recompute_t *state, cleave_node_t node) {
  return cleave_node_exists(node) && node.index < state->first_backward;
}

/* Shapes are known, so that what tells them is a constant. */
bool cleave_recompute_reads_elements(const cleave_graph_t *graph, cleave_node_t node);

/* The set that a node is in. */
uint32_t cleave_recompute_set(recompute_t *state, uint32_t node);

/* Adds the nodes that the choice repeats, and lets backward read them. */
CLEAVE_STATUS cleave_recompute_apply(recompute_t *state, cleave_error_t *error);

#endif /* CLEAVE_PARTITION_GRADIENT_RECOMPUTE_STATE_H */
