// SPDX-License-Identifier: Apache-2.0
/* Inside the search for sizes: sizes.c, which finds them, and shape_option.c, which reads what --shape says.
 */
#ifndef CLEAVE_CLI_COMMON_SIZE_FINDER_H
#define CLEAVE_CLI_COMMON_SIZE_FINDER_H

#include "cli/common/sizes.h"
#include "graph/graph.h"

typedef struct cleave_size_finder {
  const cleave_graph_t *model;
  const cleave_graph_t *graph; /* the model, with what inference makes of inputs of unknown shape */
  const cleave_size_request_t *request;
  cleave_sizes_t *sizes;
  size_t symbol_count;
  int64_t *symbols;              /* by number; -1: not known */
  cleave_size_source_t *sources; /* by symbol */
  uint32_t *shape_of;            /* by input: the --shape that gives it, or NONE */
} cleave_size_finder_t;

static inline const char *cleave_size_input_name(const cleave_size_finder_t *finder, size_t index) {
  return cleave_value_name(finder->graph, finder->graph->inputs.items[index]);
}

/* As the model has it. */
static inline const cleave_value_record_t *cleave_size_origin(const cleave_size_finder_t *finder,
                                                              size_t index) {
  return cleave_graph_value(finder->model, finder->model->inputs.items[index]);
}

/* The symbol called by the first `length` characters; the count of symbols: none. */
size_t cleave_size_find_symbol(const cleave_size_finder_t *finder, const char *text, size_t length);

/* Reads one --shape: of an input before that of a size with the same name. Names may have '=' in them. */
CLEAVE_MUST_USE cleave_status_t cleave_size_take_option(cleave_size_finder_t *finder, size_t index,
                                                        cleave_error_t *error);
/* What --shape says of an input that it gives; `?` alone leaves open all that the model does. */
CLEAVE_MUST_USE cleave_status_t cleave_size_given_shape(const cleave_size_finder_t *finder, size_t input,
                                                        int32_t *out_rank, int64_t *dims,
                                                        cleave_error_t *error);

#endif /* CLEAVE_CLI_COMMON_SIZE_FINDER_H */
