// SPDX-License-Identifier: Apache-2.0
/*
 * From the operator set a model was written in to the canonical form. A call is a node whose
 * inputs are values of the graph already; a table gives, per operator and range of versions, the function
 * that rewrites the call. What a function leaves is then added to the graph as a node.
 *
 * Interface changes and their opsets: ONNX "Operator Changelog".
 */
#ifndef CLEAVE_FORMATS_ONNX_READ_ONNX_CANONICAL_H
#define CLEAVE_FORMATS_ONNX_READ_ONNX_CANONICAL_H

#include "formats/onnx/onnx_model.h"

/* Whose operators and attributes the canonical form has, with operators that newer sets add. */
enum { CLEAVE_ONNX_CANONICAL_OPSET = 22 };

/* State of making one graph. */
typedef struct cleave_onnx_builder {
  cleave_onnx_model_t *model;
  cleave_graph_t *graph;
  cleave_value_t *values; /* by the string id of the name; NONE: not defined (yet) */
  bool *is_used;          /* by string id: read by a node, or a graph output */
  size_t name_count;      /* of both */
  bool wants_types;       /* infer types while building: old forms depend on ranks and dtypes */
} cleave_onnx_builder_t;

/* A node on its way into the graph. */
typedef struct cleave_onnx_call {
  cleave_onnx_builder_t *builder;
  const cleave_onnx_node_t *node; /* as in the file: names of outputs, version */
  const char *op_type;            /* canonical operator */
  int32_t version;                /* of the operator set of its domain */
  bool is_done;                   /* all outputs that are used are bound: no node is added */
  uint32_t output_count;
  CLEAVE_ARRAY(cleave_value_t) inputs;
  CLEAVE_ARRAY(cleave_attribute_t) attributes;
} cleave_onnx_call_t;

/* Rewrites a call of the default domain, or of com.microsoft what is read of that. CLEAVE_ERROR_UNSUPPORTED
 * if the old form has no counterpart. */
CLEAVE_STATUS cleave_onnx_canonicalise(cleave_onnx_call_t *call, cleave_error_t *error);

typedef cleave_status_t (*cleave_onnx_rewrite_t)(cleave_onnx_call_t *call, cleave_error_t *error);

/* One line of the table: versions first .. last of `op_type`. Lines apply in their order. */
typedef struct cleave_onnx_change {
  const char *op_types; /* with blanks between them */
  int32_t first;
  int32_t last;
  cleave_onnx_rewrite_t rewrite;
} cleave_onnx_change_t;

/* ---- what rewrites are made of (onnx_call.c) ---- */

/* Input, or NONE. */
cleave_value_t cleave_onnx_call_input(const cleave_onnx_call_t *call, uint32_t index);
/* Sets an input; those left out before it become NONE. */
CLEAVE_STATUS cleave_onnx_call_set_input(cleave_onnx_call_t *call, uint32_t index, cleave_value_t value,
                                         cleave_error_t *error);
/* Attribute, or NULL. */
const cleave_attribute_t *cleave_onnx_call_attribute(const cleave_onnx_call_t *call, const char *name);
int64_t cleave_onnx_call_int(const cleave_onnx_call_t *call, const char *name, int64_t fallback);
double cleave_onnx_call_float(const cleave_onnx_call_t *call, const char *name, double fallback);
const char *cleave_onnx_call_text(const cleave_onnx_call_t *call, const char *name, const char *fallback);
/* The list and its length, or NULL and 0. */
const int64_t *cleave_onnx_call_ints(const cleave_onnx_call_t *call, const char *name, uint32_t *out_count);
void cleave_onnx_call_remove(cleave_onnx_call_t *call, const char *name);
/* Adds or replaces; name, lists and texts must live as long as the model. */
CLEAVE_STATUS cleave_onnx_call_set(cleave_onnx_call_t *call, cleave_attribute_t attribute,
                                   cleave_error_t *error);
CLEAVE_STATUS cleave_onnx_call_set_int(cleave_onnx_call_t *call, const char *name, int64_t value,
                                       cleave_error_t *error);
CLEAVE_STATUS cleave_onnx_call_set_text(cleave_onnx_call_t *call, const char *name, const char *value,
                                        cleave_error_t *error);
/* Does anything read output `index`? */
bool cleave_onnx_call_output_used(const cleave_onnx_call_t *call, uint32_t index);
/* Output `index` is this value. */
void cleave_onnx_call_bind(cleave_onnx_call_t *call, uint32_t index, cleave_value_t value);

/* Known rank, or -1; dtype, or UNKNOWN. NONE has neither. */
int32_t cleave_onnx_call_rank(const cleave_onnx_call_t *call, cleave_value_t value);
cleave_dtype_t cleave_onnx_call_dtype(const cleave_onnx_call_t *call, cleave_value_t value);

/* int64 constant: a vector, or a scalar (rank 0, count 1). */
CLEAVE_STATUS cleave_onnx_call_ints_constant(cleave_onnx_call_t *call, int32_t rank, const int64_t *values,
                                             uint32_t count, cleave_value_t *out_value,
                                             cleave_error_t *error);
/* Scalar constant of a floating-point or integer dtype; float32 if it is UNKNOWN. */
CLEAVE_STATUS cleave_onnx_call_number(cleave_onnx_call_t *call, cleave_dtype_t dtype, double number,
                                      cleave_value_t *out_value, cleave_error_t *error);
/* A node of the default domain, or of cleave's, with one output, of which it becomes the producer. */
CLEAVE_STATUS cleave_onnx_call_emit(cleave_onnx_call_t *call, const char *op_type,
                                    const cleave_value_t *inputs, uint32_t input_count,
                                    cleave_node_t *out_node, cleave_value_t *out_value,
                                    cleave_error_t *error);
/* CLEAVE_ERROR_UNSUPPORTED: "node 'x': operator 'Y' of opset 6: <reason>". */
CLEAVE_STATUS cleave_onnx_call_refuse(const cleave_onnx_call_t *call, const char *reason,
                                      cleave_error_t *error);
/* Infers the type of a new node's outputs if the builder wants types; failures leave them unknown. */
CLEAVE_STATUS cleave_onnx_builder_infer(cleave_onnx_builder_t *builder, cleave_node_t node,
                                        cleave_error_t *error);

/* The rewrites, by subject. */
cleave_status_t cleave_onnx_rewrite_constant(cleave_onnx_call_t *call, cleave_error_t *error);
cleave_status_t cleave_onnx_rewrite_identity(cleave_onnx_call_t *call, cleave_error_t *error);
cleave_status_t cleave_onnx_rewrite_dropout(cleave_onnx_call_t *call, cleave_error_t *error);
cleave_status_t cleave_onnx_rewrite_cast_names(cleave_onnx_call_t *call, cleave_error_t *error);
cleave_status_t cleave_onnx_rewrite_axes(cleave_onnx_call_t *call, cleave_error_t *error);
cleave_status_t cleave_onnx_check_quantize(cleave_onnx_call_t *call, cleave_error_t *error);
cleave_status_t cleave_onnx_rewrite_split(cleave_onnx_call_t *call, cleave_error_t *error);
cleave_status_t cleave_onnx_rewrite_slice(cleave_onnx_call_t *call, cleave_error_t *error);
cleave_status_t cleave_onnx_rewrite_pad(cleave_onnx_call_t *call, cleave_error_t *error);
cleave_status_t cleave_onnx_rewrite_top_k(cleave_onnx_call_t *call, cleave_error_t *error);
cleave_status_t cleave_onnx_rewrite_clip(cleave_onnx_call_t *call, cleave_error_t *error);
cleave_status_t cleave_onnx_rewrite_reshape(cleave_onnx_call_t *call, cleave_error_t *error);
cleave_status_t cleave_onnx_rewrite_tile(cleave_onnx_call_t *call, cleave_error_t *error);
cleave_status_t cleave_onnx_rewrite_concat(cleave_onnx_call_t *call, cleave_error_t *error);
cleave_status_t cleave_onnx_rewrite_scatter(cleave_onnx_call_t *call, cleave_error_t *error);
cleave_status_t cleave_onnx_rewrite_dft(cleave_onnx_call_t *call, cleave_error_t *error);
cleave_status_t cleave_onnx_rewrite_softmax(cleave_onnx_call_t *call, cleave_error_t *error);
cleave_status_t cleave_onnx_rewrite_batch_normalization(cleave_onnx_call_t *call, cleave_error_t *error);
cleave_status_t cleave_onnx_rewrite_group_normalization(cleave_onnx_call_t *call, cleave_error_t *error);
cleave_status_t cleave_onnx_rewrite_upsample(cleave_onnx_call_t *call, cleave_error_t *error);
cleave_status_t cleave_onnx_rewrite_resize_10(cleave_onnx_call_t *call, cleave_error_t *error);
cleave_status_t cleave_onnx_rewrite_resize(cleave_onnx_call_t *call, cleave_error_t *error);
cleave_status_t cleave_onnx_rewrite_grid_sample(cleave_onnx_call_t *call, cleave_error_t *error);
cleave_status_t cleave_onnx_rewrite_roi_align(cleave_onnx_call_t *call, cleave_error_t *error);
cleave_status_t cleave_onnx_rewrite_broadcast(cleave_onnx_call_t *call, cleave_error_t *error);
cleave_status_t cleave_onnx_rewrite_prelu(cleave_onnx_call_t *call, cleave_error_t *error);
cleave_status_t cleave_onnx_rewrite_gemm(cleave_onnx_call_t *call, cleave_error_t *error);
cleave_status_t cleave_onnx_rewrite_selu(cleave_onnx_call_t *call, cleave_error_t *error);
cleave_status_t cleave_onnx_rewrite_matmul_n_bits(cleave_onnx_call_t *call, cleave_error_t *error);
cleave_status_t cleave_onnx_rewrite_norm_order(cleave_onnx_call_t *call, cleave_error_t *error);
cleave_status_t cleave_onnx_rewrite_recurrent(cleave_onnx_call_t *call, cleave_error_t *error);

#endif /* CLEAVE_FORMATS_ONNX_READ_ONNX_CANONICAL_H */
