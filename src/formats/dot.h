// SPDX-License-Identifier: Apache-2.0
/* A graph as Graphviz text (https://graphviz.org/doc/info/lang.html), groups as nested clusters. */
#ifndef CLEAVE_FORMATS_DOT_H
#define CLEAVE_FORMATS_DOT_H

#include "formats/node_groups.h"

/* All zero shows everything but constants that stand alone. */
typedef struct cleave_dot_options {
  uint32_t group_count;
  const cleave_group_t *groups; /* become clusters */
  bool hide_shapes;             /* no types at edges */
} cleave_dot_options_t;

/* Appends the text. A node shows its operator, its name and the shapes of its constant inputs; an edge the
 * type of the value. The same graph gives the same bytes. `options` may be NULL. Errors as of
 * cleave_groups_init; CLEAVE_ERROR_LIMIT if groups nest more than 64 deep. */
CLEAVE_STATUS cleave_dot_print(const cleave_graph_t *graph, const cleave_dot_options_t *options,
                               cleave_text_t *text, cleave_error_t *error);

#endif /* CLEAVE_FORMATS_DOT_H */
