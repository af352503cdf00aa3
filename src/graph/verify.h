// SPDX-License-Identifier: Apache-2.0
/* Checks that a graph holds together: links both ways, schema counts, acyclic, types of constants. */
#ifndef CLEAVE_GRAPH_VERIFY_H
#define CLEAVE_GRAPH_VERIFY_H

#include "graph/graph.h"

/* CLEAVE_ERROR_FORMAT with the first thing that is wrong. */
CLEAVE_STATUS cleave_graph_verify(const cleave_graph_t *graph, cleave_error_t *error);

#endif /* CLEAVE_GRAPH_VERIFY_H */
