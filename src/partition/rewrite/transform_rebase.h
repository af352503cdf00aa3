// SPDX-License-Identifier: Apache-2.0
/*
 * The changes of graph rules done again on another version of the graph: one of the same structure, with
 * other constants, or of the same model bound to other sizes. While cleave_transform_replay requires the same
 * graph including small constants, this requires only the same structure, before and after, and that no
 * change depended on a constant or size that differs now.
 */
#ifndef CLEAVE_PARTITION_REWRITE_TRANSFORM_REBASE_H
#define CLEAVE_PARTITION_REWRITE_TRANSFORM_REBASE_H

#include "partition/rewrite/transform.h"

/* A change depends on a constant if its rule read the content (the log says so), or if it removed a use of
 * the constant and none of its new nodes reads it. It depends on a size if its rule read that.
 *
 * `plan` has changes (plan->edits). `graph` is a version of plan->source (graph/compare/same_structure.h).
 * The result is a version of plan->graph, and its tensor wherever a constant is the same; *out_edits is the
 * log of the result. CLEAVE_ERROR_UNSUPPORTED names the constant, the rule and the place, or what differs in
 * the result. */
CLEAVE_STATUS cleave_transform_rebase(const cleave_plan_t *plan, const cleave_graph_t *graph,
                                      const cleave_transform_options_t *options, cleave_graph_t **out_graph,
                                      cleave_edits_t **out_edits, cleave_error_t *error);

#endif /* CLEAVE_PARTITION_REWRITE_TRANSFORM_REBASE_H */
