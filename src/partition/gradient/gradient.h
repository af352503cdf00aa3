// SPDX-License-Identifier: Apache-2.0
/* Adds to a graph what computes the gradients of one of its values. */
#ifndef CLEAVE_PARTITION_GRADIENT_GRADIENT_H
#define CLEAVE_PARTITION_GRADIENT_GRADIENT_H

#include "partition/gradient/flow.h"
#include "partition/rewrite/editor.h"

typedef struct cleave_gradient_request {
  const cleave_gradient_rules_t *rules;
  cleave_value_t loss; /* of any shape: the gradients are those of the sum of its elements */
  const cleave_value_t *wrt;
  size_t wrt_count;
} cleave_gradient_request_t;

/* Writes the gradient of each value of `wrt` into `out_gradients`, with its dtype and shape; NONE if the
 * loss does not depend on the value, or through integers, booleans and operators without gradient alone.
 * Nodes are named "grad(<node>)/<operator>". CLEAVE_ERROR_UNSUPPORTED: an operator has no rule, or its rule
 * says nothing about an input; the message names the way from the node to the loss. CLEAVE_ERROR_RULE: a rule
 * failed, or returned what does not fit. The graph must be discarded if this fails. */
CLEAVE_MUST_USE cleave_status_t cleave_gradient_build(cleave_editor_t *editor,
                                                      const cleave_gradient_request_t *request,
                                                      cleave_value_t *out_gradients, cleave_error_t *error);

#endif /* CLEAVE_PARTITION_GRADIENT_GRADIENT_H */
