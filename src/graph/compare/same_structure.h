// SPDX-License-Identifier: Apache-2.0
/* Two graphs that came from one source by the same steps: are they the same but for the content of constants?
 */
#ifndef CLEAVE_GRAPH_COMPARE_SAME_STRUCTURE_H
#define CLEAVE_GRAPH_COMPARE_SAME_STRUCTURE_H

#include "graph/graph.h"

/* Compares by id: the same live nodes with the same operators, attributes and inputs, the same values with
 * the same types, producers and constness, the same graph inputs and outputs. Names do not count, nor what
 * constants contain. If they differ, the first difference is appended to `text` (may be NULL): "node 'fc' has
 * another attribute 'axis'". */
bool cleave_graph_has_structure_of(const cleave_graph_t *graph, const cleave_graph_t *other,
                                   cleave_text_t *text);

/* Does the same, but if sizes of both were bound (is_sized), they may differ. */
bool cleave_graph_is_version_of(const cleave_graph_t *graph, const cleave_graph_t *other,
                                cleave_text_t *text);

/* Gives every constant of `graph` whose content is the same in `other`, by id, the tensor of `other`: so that
 * versions say what changed. Then lets go of the tensors that no constant or attribute has any more. */
CLEAVE_STATUS cleave_graph_share_constants(cleave_graph_t *graph, const cleave_graph_t *other,
                                           cleave_error_t *error);

#endif /* CLEAVE_GRAPH_COMPARE_SAME_STRUCTURE_H */
