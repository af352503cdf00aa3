// SPDX-License-Identifier: Apache-2.0
/* Checks of what rewrites and passes leave behind, for tests. Any failure fails the test. */
#ifndef CLEAVE_TESTS_EDITS_CASE_H
#define CLEAVE_TESTS_EDITS_CASE_H

#include "graph/edits.h"

/* Operators in topological order: "Relu Gelu MatMul". Stays until the test process ends. */
const char *edits_case_ops(const cleave_graph_t *graph);

/* The log written to JSON, read again and performed on the source gives the very same graph: the same ids,
 * operators, attributes, inputs, types, names of values and nodes, contents of constants. */
void edits_case_check_replay(const cleave_graph_t *source, const cleave_edits_t *edits,
                             const cleave_graph_t *result);

/* Ids, names, types and contents are the same. */
void edits_case_check_same(const cleave_graph_t *a, const cleave_graph_t *b);

/* The log as JSON text, compact. Stays until the test process ends. */
const char *edits_case_text(const cleave_edits_t *edits);

#endif /* CLEAVE_TESTS_EDITS_CASE_H */
