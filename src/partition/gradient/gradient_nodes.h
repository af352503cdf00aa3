// SPDX-License-Identifier: Apache-2.0
/* Nodes of ai.onnx.preview.training.Gradient, as they are in a model that was just read. */
#ifndef CLEAVE_PARTITION_GRADIENT_GRADIENT_NODES_H
#define CLEAVE_PARTITION_GRADIENT_GRADIENT_NODES_H

#include "partition/gradient/flow.h"

bool cleave_gradient_nodes_exist(const cleave_graph_t *graph);

/* Replaces them by what they mean. The graph is to be discarded if this fails. CLEAVE_ERROR_INVALID_ARGUMENT:
 * a name is no value of the graph, or y does not depend on one of xs; else as cleave_gradient_build. */
CLEAVE_STATUS cleave_gradient_nodes_resolve(cleave_graph_t *graph, const cleave_gradient_rules_t *rules,
                                            cleave_error_t *error);

#endif /* CLEAVE_PARTITION_GRADIENT_GRADIENT_NODES_H */
