// SPDX-License-Identifier: Apache-2.0
/*
 * An ONNX model parsed into records: names interned in the graph that is being made, attributes decoded,
 * tensors borrowed. Nothing is checked yet beyond the form of the messages; onnx_read.c makes the graph.
 * Memory of the records is the model's arena.
 */
#ifndef CLEAVE_FORMATS_ONNX_ONNX_MODEL_H
#define CLEAVE_FORMATS_ONNX_ONNX_MODEL_H

#include <string.h>

#include "formats/onnx/onnx.h"
#include "formats/onnx/onnx_tensor.h"
#include "graph/graph.h"

/* A dimension: its size, or a named symbol (size -1), or unknown (-1 and the empty name). */
typedef struct cleave_onnx_dim {
  int64_t size;
  cleave_string_t symbol;
} cleave_onnx_dim_t;

typedef struct cleave_onnx_value_info {
  cleave_string_t name;
  int64_t element_type;    /* as in the file: may be one that cleave does not have */
  int32_t rank;            /* -1: no shape given */
  cleave_onnx_dim_t *dims; /* at most CLEAVE_MAX_RANK are kept */
  const char *kind;        /* "sequence", ... if it is not a dense tensor; NULL otherwise */
} cleave_onnx_value_info_t;

typedef struct cleave_onnx_attribute {
  cleave_attribute_t value; /* name is interned */
  const char *reference;    /* inside a function: the attribute of the function that it copies; or NULL */
  bool is_empty;            /* a reference whose attribute is not given */
  bool is_graph;            /* a GraphProto, which is parsed if it takes the place of the node */
  cleave_protobuf_t graph;
  const struct cleave_onnx_expansion *scope; /* whose names the graph sees; NULL: the model's */
} cleave_onnx_attribute_t;

/* A node. Inside a function body the names are local ones; see cleave_onnx_body_t. */
typedef struct cleave_onnx_node {
  const char *op_type;
  const char *domain; /* "" for ai.onnx */
  const char *overload;
  const char *name;
  const char *label; /* for messages: the name, or that of the first output */
  cleave_string_t *inputs;
  cleave_string_t *outputs;
  cleave_onnx_attribute_t *attributes;
  uint32_t input_count;
  uint32_t output_count;
  uint32_t attribute_count;
  int32_t version; /* of the operator set of its domain; 0: not imported */
} cleave_onnx_node_t;

typedef struct cleave_onnx_opset {
  const char *domain;
  int32_t version;
} cleave_onnx_opset_t;

typedef CLEAVE_ARRAY(cleave_onnx_opset_t) cleave_onnx_opsets_t;
typedef CLEAVE_ARRAY(cleave_onnx_node_t) cleave_onnx_nodes_t;

typedef struct cleave_onnx_initializer {
  cleave_string_t name;
  cleave_tensor_t *tensor;
} cleave_onnx_initializer_t;

/* A model-local function, whose body is parsed when first called; or a branch of If, once it is taken. */
typedef struct cleave_onnx_body {
  const char *name;
  const char *domain;
  const char *overload;
  cleave_protobuf_t message;
  bool is_parsed;
  bool is_active;         /* being expanded: a call now is a recursion */
  cleave_strings_t names; /* of the body's values: dense ids, so that a call maps them with one array */
  cleave_onnx_opsets_t opsets;
  cleave_onnx_nodes_t nodes;
  CLEAVE_ARRAY(cleave_string_t) inputs;
  CLEAVE_ARRAY(cleave_string_t) outputs;
  CLEAVE_ARRAY(cleave_onnx_attribute_t) defaults;
  CLEAVE_ARRAY(cleave_onnx_initializer_t) initializers; /* of a branch; local names */
} cleave_onnx_body_t;

typedef struct cleave_onnx_model {
  cleave_graph_t *graph; /* being made; owns all names */
  cleave_arena_t arena;
  cleave_onnx_source_t source;
  const cleave_onnx_read_options_t *options;
  int32_t ir_version;
  int32_t newer_version; /* of the default domain's operator set, if it was read as an older one */
  const char *graph_name;
  cleave_bytes_t order; /* of the nodes, in the file; NULL: none is given */
  cleave_onnx_opsets_t opsets;
  cleave_onnx_nodes_t nodes;
  CLEAVE_ARRAY(cleave_onnx_body_t) bodies;
  CLEAVE_ARRAY(cleave_onnx_body_t *) branches; /* in the arena */
  CLEAVE_ARRAY(cleave_onnx_initializer_t) initializers;
  CLEAVE_ARRAY(cleave_onnx_value_info_t) inputs;
  CLEAVE_ARRAY(cleave_onnx_value_info_t) outputs;
  CLEAVE_ARRAY(cleave_onnx_value_info_t) value_infos;
  CLEAVE_ARRAY(cleave_tensor_t *) tensors; /* all that were parsed; released with the model */
} cleave_onnx_model_t;

/* Parses a ModelProto. `model` is zeroed but for `graph`, `source` and `options`. Deinit after failures too.
 */
CLEAVE_STATUS cleave_onnx_model_parse(cleave_onnx_model_t *model, const void *data, size_t size,
                                      cleave_error_t *error);
void cleave_onnx_model_deinit(cleave_onnx_model_t *model);

/* Puts the nodes, which are inlined, in the order that the file gives for them (onnx_order.c). One that is
 * not a permutation of the first nodes changes nothing. */
CLEAVE_STATUS cleave_onnx_model_order(cleave_onnx_model_t *model, cleave_error_t *error);
bool cleave_onnx_bytes_are(cleave_bytes_t bytes, const char *text);
/* A StringStringEntryProto. */
CLEAVE_STATUS cleave_onnx_entry_parse(const cleave_protobuf_t *parent, const cleave_protobuf_field_t *field,
                                      cleave_bytes_t *out_key, cleave_bytes_t *out_value,
                                      cleave_error_t *error);

/* ---- parts, used among the parser's files ---- */

/* Adds a name of the file; CLEAVE_ERROR_FORMAT if it has a zero byte, behind which nobody would see the rest.
 */
CLEAVE_MUST_USE static inline cleave_status_t cleave_onnx_add_name(cleave_strings_t *strings,
                                                                   cleave_bytes_t name,
                                                                   cleave_string_t *out_name,
                                                                   cleave_error_t *error) {
  const char *text = (const char *)name.data;
  if (name.size > 0 && memchr(text, 0, name.size) != NULL) {
    return cleave_error_set(error, CLEAVE_ERROR_FORMAT, "a name has a zero byte behind '%s'", text);
  }
  return cleave_strings_add(strings, text, name.size, out_name, error);
}

/* Interned NUL-terminated copy of a name. */
CLEAVE_MUST_USE static inline cleave_status_t cleave_onnx_intern(cleave_onnx_model_t *model,
                                                                 cleave_bytes_t text, const char **out_text,
                                                                 cleave_error_t *error) {
  cleave_string_t string;
  CLEAVE_TRY(cleave_onnx_add_name(&model->graph->strings, text, &string, error));
  *out_text = cleave_strings_text(&model->graph->strings, string);
  return CLEAVE_OK;
}

/* A NodeProto; names of values go into `names`. */
CLEAVE_STATUS cleave_onnx_node_parse(cleave_onnx_model_t *model, cleave_strings_t *names,
                                     const cleave_onnx_opsets_t *opsets, const cleave_protobuf_t *message,
                                     cleave_onnx_node_t *out_node, cleave_error_t *error);

/* An initializer of a graph; its name goes into `names`, the tensor belongs to the model. */
CLEAVE_STATUS cleave_onnx_initializer_parse(cleave_onnx_model_t *model, cleave_strings_t *names,
                                            const cleave_protobuf_t *parent,
                                            const cleave_protobuf_field_t *field,
                                            cleave_onnx_initializer_t *out_initializer,
                                            cleave_error_t *error);

/* The body of a function, of which only the name and the message are known. */
CLEAVE_STATUS cleave_onnx_function_parse(cleave_onnx_model_t *model, cleave_onnx_body_t *body,
                                         cleave_error_t *error);
/* A graph attribute as a body, which belongs to the model. `opsets` are those around it. */
CLEAVE_STATUS cleave_onnx_branch_parse(cleave_onnx_model_t *model, const cleave_onnx_attribute_t *attribute,
                                       const cleave_onnx_opsets_t *opsets, cleave_onnx_body_t **out_body,
                                       cleave_error_t *error);

/* An AttributeProto of a node. Lists of graphs and types are refused (CLEAVE_ERROR_UNSUPPORTED). */
CLEAVE_STATUS cleave_onnx_attribute_parse(cleave_onnx_model_t *model, const cleave_protobuf_t *message,
                                          cleave_onnx_attribute_t *out_attribute, cleave_error_t *error);

/* A ValueInfoProto. */
CLEAVE_STATUS cleave_onnx_value_info_parse(cleave_onnx_model_t *model, const cleave_protobuf_t *message,
                                           cleave_onnx_value_info_t *out_info, cleave_error_t *error);

/* An OperatorSetIdProto, appended to `opsets`. A version newer than all that is known is refused, or taken
 * for the newest that is known if the options are lenient. */
CLEAVE_STATUS cleave_onnx_opset_parse(cleave_onnx_model_t *model, const cleave_protobuf_t *parent,
                                      const cleave_protobuf_field_t *field, cleave_onnx_opsets_t *opsets,
                                      cleave_error_t *error);

/* Version of a domain's operator set; 0 if it is not imported. */
int32_t cleave_onnx_opset_version(const cleave_onnx_opsets_t *opsets, const char *domain);

#endif /* CLEAVE_FORMATS_ONNX_ONNX_MODEL_H */
