// SPDX-License-Identifier: Apache-2.0
/* Ranges of values as files: JSON, format "cleave-ranges" version 1. A value is named by its producer, as
 * position in topological order, and output, or its number among the inputs; its name is beside it. */
#ifndef CLEAVE_FORMATS_RANGES_H
#define CLEAVE_FORMATS_RANGES_H

#include "base/text.h"
#include "graph/graph.h"

/* How ranges were found, for people. */
typedef struct cleave_ranges_source {
  const char *method; /* "percentile 99.99" */
  uint64_t samples;
} cleave_ranges_source_t;

/* Appends the ranges of all values of a graph that have one. */
CLEAVE_STATUS cleave_ranges_print(const cleave_graph_t *graph, const cleave_ranges_source_t *source,
                                  cleave_text_t *text, cleave_error_t *error);

/* Gives the values of a graph the ranges of a file. CLEAVE_ERROR_INVALID_ARGUMENT: the file is about another
 * model (by its structural hash, or by the name of a value). Nothing is set if this fails. */
CLEAVE_STATUS cleave_ranges_read(const char *path, cleave_graph_t *graph, cleave_error_t *error);

#endif /* CLEAVE_FORMATS_RANGES_H */
