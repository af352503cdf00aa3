// SPDX-License-Identifier: Apache-2.0
/* The table of operators, made from op_list.inc: lookup by name, schema defaults, completeness checks. */
#ifndef CLEAVE_OPS_OPS_H
#define CLEAVE_OPS_OPS_H

#include "graph/graph.h"

/* CLEAVE_OP_Conv, CLEAVE_OP_Relu, ...: `id` of the entries. */
typedef enum cleave_op_id {
#define CLEAVE_OP(name, ...) CLEAVE_OP_##name,
#include "graph/op.h"
#include "ops/op_list.inc"
#undef CLEAVE_OP
  CLEAVE_OP_COUNT
} cleave_op_id_t;

/* The entry of an operator, of the table or of a loaded library (ops/custom.h); NULL if the name is
 * unknown. Constant time for those of the table; thread-safe from the first call. */
const cleave_op_t *cleave_op_find(const char *domain, const char *name);
/* Finds an operator as scripts write it: "Conv" (of ONNX's domains), or with its domain, "my.company.Gemm".
 */
const cleave_op_t *cleave_op_find_full(const char *name);
const cleave_op_t *cleave_op_get(cleave_op_id_t id);

/* " (did you mean 'Conv'?)" for an unknown operator name, or "". */
const char *cleave_op_hint(const char *name, char *buffer, size_t size);

/* The newest version of a domain's operator set that the table knows anything of; 0: nothing of the domain.
 */
int32_t cleave_op_newest_version(const char *domain);

/* Index of an input port by its schema name, whatever the case; also for variadic ports ("inputs" -> the
 * first). CLEAVE_INDEX_NONE if there is none. The same for outputs. */
uint32_t cleave_op_input_index(const cleave_op_t *op, const char *name);
uint32_t cleave_op_output_index(const cleave_op_t *op, const char *name);

/* Schema entry of an attribute, or NULL. */
const cleave_op_attribute_t *cleave_op_find_attribute(const cleave_op_t *op, const char *name);

/* The node's own attribute, else the default of its schema, else what the shapes of the node make of it
 * (strides of 1 for each spatial axis): false if it has none of them, or the shapes are not known.
 * `out_attribute` borrows from the graph. */
bool cleave_op_effective_attribute(const cleave_graph_t *graph, cleave_node_t node, const char *name,
                                   cleave_attribute_t *out_attribute);

/* The node's own attribute, else the default of its schema that needs no shapes, else NULL: what shapes are
 * inferred from. The same holds for the functions below. */
const cleave_attribute_t *cleave_op_attribute(const cleave_graph_t *graph, cleave_node_t node,
                                              const char *name);
int64_t cleave_op_int(const cleave_graph_t *graph, cleave_node_t node, const char *name, int64_t fallback);
double cleave_op_float(const cleave_graph_t *graph, cleave_node_t node, const char *name, double fallback);
const char *cleave_op_text(const cleave_graph_t *graph, cleave_node_t node, const char *name,
                           const char *fallback);
/* The list and its length, or NULL and 0. */
const int64_t *cleave_op_ints(const cleave_graph_t *graph, cleave_node_t node, const char *name,
                              uint32_t *out_count);

/* Checks a node against its schema: number of inputs and outputs, required inputs, known attributes of the
 * right kind, required attributes there. Custom operators pass. `fault` is the status of what the schema does
 * not allow: CLEAVE_ERROR_FORMAT if the node is from a file or text, CLEAVE_ERROR_INVALID_ARGUMENT if a
 * caller gave it. */
CLEAVE_STATUS cleave_op_check(const cleave_graph_t *graph, cleave_node_t node, cleave_status_t fault,
                              cleave_error_t *error);

/* Floating-point operations of a node; negative if a size that counts is not known. A multiply-add counts
 * two.
 */
double cleave_op_flops(const cleave_graph_t *graph, cleave_node_t node);

/* Bytes of a value; negative if its size is not known. */
double cleave_value_bytes(const cleave_graph_t *graph, cleave_value_t value);

/* ---- layout ---- */

/* The meaning of the dimensions of operands, if the ONNX operator defines it: "NCHW" for the data of a
 * convolution. */
/* The layout of an input or output with this rank: a letter per dimension (N batch, C channels, D depth, H
 * height, W width; of a convolution's weights O output and I input channels), or NULL if the definition gives
 * them no meaning. Static. */
const char *cleave_op_input_layout(const cleave_op_t *op, uint32_t input, int32_t rank);
const char *cleave_op_output_layout(const cleave_op_t *op, uint32_t output, int32_t rank);

#endif /* CLEAVE_OPS_OPS_H */
