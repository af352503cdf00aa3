// SPDX-License-Identifier: Apache-2.0
/* Adds to a graph what computes the gradients of one of its values. */
#ifndef CLEAVE_PARTITION_GRADIENT_GRADIENT_H
#define CLEAVE_PARTITION_GRADIENT_GRADIENT_H

#include "partition/gradient/flow.h"
#include "partition/rewrite/editor.h"

/* A region whose gradients are asked for. All lists are by value of the graph as it was before gradients. */
typedef struct cleave_gradient_region_call {
  uint32_t region;
  const cleave_value_t *gradients; /* of the values that nodes of the region make; NONE: none was given */
  const bool *wanted;              /* values that the region reads, and whose gradient is wanted */
  cleave_value_t *results;         /* set for all that are wanted */
} cleave_gradient_region_call_t;

/* Regions whose gradients are asked for as a whole, before those of their nodes. */
typedef struct cleave_gradient_regions {
  const uint32_t *node_region; /* by node: number of its region; CLEAVE_INDEX_NONE: it is in none */
  const cleave_node_t *order;  /* of all nodes: topological, those of a region one behind the other */
  uint32_t node_count;
  /* Adds nodes. *out_done false: the rules of the region's nodes do it. */
  cleave_status_t (*ask)(void *context, cleave_editor_t *editor, const cleave_gradient_region_call_t *call,
                         bool *out_done, cleave_error_t *error);
  void *context;
} cleave_gradient_regions_t;

typedef struct cleave_gradient_request {
  const cleave_gradient_rules_t *rules;
  cleave_value_t loss; /* of any shape: the gradients are those of the sum of its elements */
  const cleave_value_t *wrt;
  size_t wrt_count;
  const cleave_gradient_regions_t *regions; /* NULL: there are none */
} cleave_gradient_request_t;

/* Writes the gradient of each value of `wrt` into `out_gradients`, with its dtype and shape; NONE if the
 * loss does not depend on the value, or through integers, booleans and operators without gradient alone.
 * Nodes are named "grad(<node>)/<operator>". CLEAVE_ERROR_UNSUPPORTED: an operator has no rule, or its rule
 * says nothing about an input; the message names the way from the node to the loss. CLEAVE_ERROR_RULE: a rule
 * failed, or returned what does not fit. The graph must be discarded if this fails. */
CLEAVE_STATUS cleave_gradient_build(cleave_editor_t *editor, const cleave_gradient_request_t *request,
                                    cleave_value_t *out_gradients, cleave_error_t *error);

#endif /* CLEAVE_PARTITION_GRADIENT_GRADIENT_H */
