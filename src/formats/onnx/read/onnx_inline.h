// SPDX-License-Identifier: Apache-2.0
/*
 * Bodies in the place of nodes: model-local functions where they are called, and the taken branch of an If.
 * Values of a body get fresh names ("<call>/<name>"), so that the result is one flat list in which every name
 * is defined once; a branch sees the names around it.
 *
 * Work is bounded, over all that one inliner does: no function calls itself, bodies nest at most 32 deep, and
 * at most 2^20 nodes are added, whatever a small file asks for.
 */
#ifndef CLEAVE_FORMATS_ONNX_READ_ONNX_INLINE_H
#define CLEAVE_FORMATS_ONNX_READ_ONNX_INLINE_H

#include "formats/onnx/onnx_model.h"

typedef struct cleave_onnx_inliner {
  cleave_onnx_model_t *model;
  cleave_onnx_nodes_t nodes; /* the result, while it is made */
  cleave_strings_t keys;     /* of the functions: id - 1 is the index of the body */
  cleave_text_t key;
  size_t limit;         /* of nodes */
  size_t work;          /* names and nodes bound so far */
  uint64_t next_number; /* for names that are taken */
} cleave_onnx_inliner_t;

/* Deinit after failures too. */
CLEAVE_STATUS cleave_onnx_inliner_init(cleave_onnx_inliner_t *inliner, cleave_onnx_model_t *model,
                                       cleave_error_t *error);
void cleave_onnx_inliner_deinit(cleave_onnx_inliner_t *inliner);

/* Replaces calls of model-local functions. */
CLEAVE_STATUS cleave_onnx_inline_functions(cleave_onnx_inliner_t *inliner, cleave_error_t *error);

/* Replaces each node k for which taken[k] is not NULL by that graph of its attributes, which has no inputs
 * and as many outputs as the node. */
CLEAVE_STATUS cleave_onnx_inline_branches(cleave_onnx_inliner_t *inliner,
                                          const cleave_onnx_attribute_t *const *taken, cleave_error_t *error);

#endif /* CLEAVE_FORMATS_ONNX_READ_ONNX_INLINE_H */
