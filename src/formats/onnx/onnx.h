// SPDX-License-Identifier: Apache-2.0
/*
 * ONNX models (https://onnx.ai, IR versions 3 to 10, operator sets 1 to 22 and what reads the same after) to
 * graphs in canonical form and back, and single tensors (.pb files of ONNX's test data).
 */
#ifndef CLEAVE_FORMATS_ONNX_ONNX_H
#define CLEAVE_FORMATS_ONNX_ONNX_H

#include "formats/node_groups.h"

/* All zero reads strictly. */
typedef struct cleave_onnx_read_options {
  /* Read what the file does not say rightly: operator sets newer than all that is known as the newest one
   * that is, functions that import no operator set with those of the model, outputs without their declared
   * shapes. */
  bool lenient;
  /* Inputs that have an initializer, which is their default, and that stay inputs all the same. A name that
   * is none of the file's inputs is an error. */
  const char *const *open_inputs;
  size_t open_input_count;
  /* Sizes of inputs, taken if conditions of If are open without them: the inputs have these alone then. */
  const cleave_open_size_t *sizes;
  size_t size_count;
  /* Inputs that are constants, in spite of an initializer too: cleave_graph_fix_inputs. */
  const cleave_fixed_input_t *fixed_inputs;
  size_t fixed_input_count;
} cleave_onnx_read_options_t;

/* Reads a model into a graph in canonical form: operators as in opset 22, Constant nodes are constants,
 * Identity and inference-time Dropout are gone, model-local functions are inlined, and so are the branches of
 * If that constants, known sizes and fixed inputs decide. The caller destroys the graph.
 *
 * Weights are borrowed from the mapped file and not touched: opening costs time for nodes, not for bytes.
 * They may be unaligned. External data must lie in the model's folder. Types: those of graph inputs and
 * constants are set, dtypes of graph outputs, and what the file declares for outputs of operators that cleave
 * cannot infer; the rest is left to cleave_graph_infer. Shapes that the file declares for other outputs are
 * in graph->declared, for when inference has its own (runtime/model/bind.h). Inputs with an initializer are
 * constants, not inputs, but for those of `open_inputs`. `options` may be NULL. Sparse constants become dense
 * ones that have their sparse form beside (tensor/sparse.h). Operators that no table knows become custom ones
 * (id CLEAVE_OP_ID_CUSTOM); those of loaded libraries become what the library says (ops/custom.h).
 *
 * CLEAVE_ERROR_IO: cannot be read. CLEAVE_ERROR_FORMAT: malformed, values undefined or defined twice, cycles.
 * CLEAVE_ERROR_UNSUPPORTED: If with an open condition, Loop, Scan, sequences, optionals, element types that
 * cleave lacks, operator sets newer than all that is known. CLEAVE_ERROR_LIMIT: nested or expanding beyond
 * bounds. */
CLEAVE_STATUS cleave_onnx_read(const char *path, const cleave_onnx_read_options_t *options,
                               cleave_graph_t **out_graph, cleave_error_t *error);

/* The value of a model's metadata entry, borrowed from the bytes of the file; {NULL, 0} if there is none.
 * Nothing else of the model is looked at. CLEAVE_ERROR_FORMAT: no ONNX model. */
CLEAVE_STATUS cleave_onnx_find_metadata(const void *data, size_t size, const char *name, const char *key,
                                        const char **out_value, size_t *out_length, cleave_error_t *error);

/* Entries of a model that a plan was written into: the plan as JSON, and for each node of the file, in the
 * order in which they stand after inlining, its position in the graph of that plan: "0 1 5 2 ...". The reader
 * puts them there. */
#define CLEAVE_ONNX_PLAN_KEY "cleave.plan"
#define CLEAVE_ONNX_ORDER_KEY "cleave.order"
/* Functions of these domains are parts of a plan: the names inside are those of the model. */
#define CLEAVE_ONNX_REGION_DOMAIN "cleave.region"
#define CLEAVE_ONNX_FUSION_DOMAIN "cleave.fusion"

/* Reads a model in memory, which may go after the call: weights are copied. External data is refused.
 * `name` stands for the file in errors. */
CLEAVE_STATUS cleave_onnx_read_memory(const void *data, size_t size, const char *name,
                                      const cleave_onnx_read_options_t *options, cleave_graph_t **out_graph,
                                      cleave_error_t *error);

/* ---- tensors: a file that holds one bare TensorProto ---- */

/* Data is borrowed from the mapped file if its form allows. The dtype is what the file says (ONNX's test
 * data stores bfloat16 as uint16). SequenceProto and OptionalProto are recognised as far as their fields
 * allow, and refused (CLEAVE_ERROR_UNSUPPORTED). */
CLEAVE_STATUS cleave_tensor_pb_read(const char *path, cleave_tensor_t **out_tensor, cleave_error_t *error);
/* `name` goes into the TensorProto; may be NULL. */
CLEAVE_STATUS cleave_tensor_pb_write(const char *path, const cleave_tensor_t *tensor, const char *name,
                                     cleave_error_t *error);

/* ---- writing ---- */

typedef struct cleave_onnx_entry {
  const char *key;
  const char *value;
} cleave_onnx_entry_t;

/* Operator sets that models are written in. */
enum { CLEAVE_ONNX_OLDEST = 13, CLEAVE_ONNX_NEWEST = 24 };
/* The domain of functions that stand for operators which the operator set of a model lacks. */
#define CLEAVE_ONNX_OPERATOR_DOMAIN "cleave.operator"

/* All zero is a plain model in the operator set that the graph was read in. */
typedef struct cleave_onnx_write_options {
  int32_t opset_version; /* 13 to 24; 0: what the graph was read in, or the nearest of these */
  uint32_t group_count;
  const cleave_group_t *groups; /* become model-local functions, inner ones called by outer ones */
  uint32_t metadata_count;
  const cleave_onnx_entry_t *metadata; /* of the model */
  const char *doc;                     /* of the model; may be NULL */
  size_t inline_limit;                 /* more bytes of weights than this go to "<name>.data"; 0: 1.9e9 */
} cleave_onnx_write_options_t;

/* Writes a graph as ONNX, IR version 8. Names of inputs and outputs and their order stay; other names are
 * kept if they are unique, and made up if not. Weights are raw data, written from where they lie.
 * Functions hold no weights: those are inputs of them. `options` may be NULL.
 *
 * A node that the operator set has no form for (the operator, an attribute, an input or an element type came
 * later) becomes a call of a model-local function of the domain cleave.operator, named after the operator
 * ("Gelu", "Gelu_1"), with the node's inputs, outputs and attributes, whose body spells it with operators of
 * that set. Reading such a model gives the node again; any other runtime runs the body.
 * CLEAVE_ERROR_UNSUPPORTED if there is no such body (Resize with antialias, GridSample before opset 16, ...):
 * node, operator, its version, the operator set asked for, and one that would do.
 *
 * Values of unknown rank are written without a shape, which ONNX's checker refuses for inputs and outputs. */
CLEAVE_STATUS cleave_onnx_write(const char *path, const cleave_graph_t *graph,
                                const cleave_onnx_write_options_t *options, cleave_error_t *error);
/* Appends the model to a text (CLEAVE_ERROR_LIMIT beyond the inline limit). */
CLEAVE_STATUS cleave_onnx_write_text(const cleave_graph_t *graph, const cleave_onnx_write_options_t *options,
                                     cleave_text_t *text, cleave_error_t *error);

#endif /* CLEAVE_FORMATS_ONNX_ONNX_H */
