// SPDX-License-Identifier: Apache-2.0
/* From parsed records, with functions inlined, to a graph. */
#ifndef CLEAVE_FORMATS_ONNX_READ_ONNX_BUILD_H
#define CLEAVE_FORMATS_ONNX_READ_ONNX_BUILD_H

#include "formats/onnx/onnx_model.h"

/* Adds all that the records say to the model's graph, which has nothing but their names. */
CLEAVE_STATUS cleave_onnx_build(cleave_onnx_model_t *model, cleave_error_t *error);

/* The same without outputs, as far as it comes without nodes that hold a graph (If) and what depends on them.
 * `conditions`, by node and NONE at first, gets the first input of each of these that is there. */
CLEAVE_STATUS cleave_onnx_build_partly(cleave_onnx_model_t *model, cleave_value_t *conditions,
                                       cleave_error_t *error);

/* The first attribute of a node that is a graph, or NULL. */
const cleave_onnx_attribute_t *cleave_onnx_find_graph(const cleave_onnx_node_t *node);

#endif /* CLEAVE_FORMATS_ONNX_READ_ONNX_BUILD_H */
