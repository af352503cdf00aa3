// SPDX-License-Identifier: Apache-2.0
/*
 * Inference of dtypes and shapes over a whole graph, forwards and backwards, to a fixed point; and with it
 * the values of integer shape arithmetic (Shape -> Gather -> Concat -> Reshape), symbolic dimensions
 * included.
 */
#ifndef CLEAVE_OPS_INFER_H
#define CLEAVE_OPS_INFER_H

#include "ops/ops.h"

typedef struct cleave_infer cleave_infer_t; /* one node in inference (ops/context/infer_context.h) */

typedef struct cleave_infer_options {
  /* Fold: values whose content came out as known integers become constants, nodes that nothing needs then go.
   */
  bool fold;
  /* Accept that operands of unknown rank do not broadcast, if nothing else tells their shape: the case
   * e = a * b + c * d with only `a` known. */
  bool assume_equal;
} cleave_infer_options_t;

typedef struct cleave_infer_result {
  uint32_t unknown_count;    /* values with unknown dtype, rank or dims (symbolic ones are known) */
  cleave_value_t unknown[8]; /* the first of them, in topological order */
  uint32_t folded_count;
} cleave_infer_result_t;

/* Sets the types of values in the graph. CLEAVE_ERROR_SHAPE if two facts contradict: node, expected,
 * found. `out_result` may be NULL. Linear in nodes, but for what each round of backward facts touches. */
CLEAVE_STATUS cleave_graph_infer(cleave_graph_t *graph, const cleave_infer_options_t *options,
                                 cleave_infer_result_t *out_result, cleave_error_t *error);

/* Output types of one node when its inputs are known, and for shape operands (Reshape's shape, Slice's
 * starts) also their data: `inputs[k]` has the type, and data if known (NULL entries: left out). Fills
 * `outputs` (dtype, rank, dims; dims -1 if only a run can tell). No memory is allocated for dims: they are
 * written into `outputs[k].dims_storage`. Used when shapes appear at run time. */
typedef struct cleave_node_type {
  cleave_dtype_t dtype;
  int32_t rank; /* -1: unknown */
  int64_t dims[CLEAVE_MAX_RANK];
  const cleave_tensor_t *tensor; /* inputs: data, or NULL */
} cleave_node_type_t;

CLEAVE_STATUS cleave_node_infer(const cleave_graph_t *graph, cleave_node_t node,
                                const cleave_node_type_t *const *inputs, uint32_t input_count,
                                cleave_node_type_t *outputs, uint32_t output_count, cleave_error_t *error);

#endif /* CLEAVE_OPS_INFER_H */
