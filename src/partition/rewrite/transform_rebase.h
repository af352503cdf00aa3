/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The changes of graph rules done again on another version of the graph: one of the same structure, with
 * other constants, or of the same model bound to other sizes. Where cleave_transform_replay asks for the very
 * graph, small constants included, this asks for the structure alone, before and after, and for something
 * more: that no change leaned on what a constant or a size was which is another one now.
 */
#ifndef CLEAVE_PARTITION_REWRITE_TRANSFORM_REBASE_H
#define CLEAVE_PARTITION_REWRITE_TRANSFORM_REBASE_H

#include "partition/rewrite/transform.h"

/* A change leans on a constant where its rule looked at the content (the log says so), and where it took away
 * a use of the constant and what it made does not read it; on a size where its rule looked at it.
 *
 * `plan` has changes (plan->edits). `graph` is a version of plan->source (graph/compare/same_structure.h).
 * The result is a version of plan->graph, and its tensor wherever a constant is the same; *out_edits is the
 * log of the result. CLEAVE_ERROR_UNSUPPORTED names the constant, the rule and the place, or what comes out
 * in another way. */
CLEAVE_MUST_USE cleave_status_t cleave_transform_rebase(const cleave_plan_t *plan,
                                                        const cleave_graph_t *graph,
                                                        const cleave_transform_options_t *options,
                                                        cleave_graph_t **out_graph,
                                                        cleave_edits_t **out_edits, cleave_error_t *error);

#endif /* CLEAVE_PARTITION_REWRITE_TRANSFORM_REBASE_H */
