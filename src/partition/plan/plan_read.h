// SPDX-License-Identifier: Apache-2.0
/* Plans from files: JSON from outside becomes a document, and a document a plan of a graph. */
#ifndef CLEAVE_PARTITION_PLAN_PLAN_READ_H
#define CLEAVE_PARTITION_PLAN_PLAN_READ_H

#include "partition/plan/plan_document.h"

/* Reads JSON of format "cleave-plan", version 1. `place` (a file's name) starts every message, followed by
 * the line if the JSON itself is broken, or by the path of the member if its content is wrong: "plan.json:
 * regions[2].nodes[0].position: expected a whole number, found a string". CLEAVE_ERROR_FORMAT, or
 * CLEAVE_ERROR_LIMIT if it is larger than any file that cleave writes. */
CLEAVE_STATUS cleave_plan_document_read(const char *place, const char *text, size_t length,
                                        cleave_plan_document_t **out_document, cleave_error_t *error);

/* The plan for `graph` (plan_rebuild.c), which must be the graph that the plan was made for: the same number
 * of nodes, the same operators in their places, the same hash. CLEAVE_ERROR_MISMATCH says what differs first:
 * a node, an input's type, or else the hash. The result has been checked by cleave_plan_check. It takes over
 * the document's memory: after success the document can only be destroyed. */
CLEAVE_STATUS cleave_plan_rebuild(cleave_plan_document_t *document, const cleave_graph_t *graph,
                                  cleave_plan_t **out_plan, cleave_error_t *error);

/* CLEAVE_OK if the document is about this graph; otherwise the error of cleave_plan_rebuild. */
CLEAVE_STATUS cleave_plan_document_match(const cleave_plan_document_t *document, const cleave_graph_t *graph,
                                         cleave_error_t *error);

#endif /* CLEAVE_PARTITION_PLAN_PLAN_READ_H */
