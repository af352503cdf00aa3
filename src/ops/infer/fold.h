// SPDX-License-Identifier: Apache-2.0
/* Turns facts whose content is known into constants. Private to src/ops. */
#ifndef CLEAVE_OPS_INFER_FOLD_H
#define CLEAVE_OPS_INFER_FOLD_H

#include "ops/context/infer_context.h"

/* Replaces values that nodes make and whose elements are all known by constants, then removes the nodes that
 * nothing needs any more. `order` ends in CLEAVE_NODE_NONE; `facts` are by value. Counts the values. */
CLEAVE_MUST_USE cleave_status_t cleave_fold_facts(cleave_graph_t *graph, const cleave_node_t *order,
                                                  const cleave_fact_t *facts, uint32_t *out_count,
                                                  cleave_error_t *error);

#endif /* CLEAVE_OPS_INFER_FOLD_H */
