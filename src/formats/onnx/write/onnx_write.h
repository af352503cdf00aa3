// SPDX-License-Identifier: Apache-2.0
/* Parts of the ONNX writer: names, nodes, tensors, and the way back to older operator sets. */
#ifndef CLEAVE_FORMATS_ONNX_WRITE_ONNX_WRITE_H
#define CLEAVE_FORMATS_ONNX_WRITE_ONNX_WRITE_H

#include "formats/onnx/onnx.h"
#include "formats/protobuf.h"

/* Functions that stand for operators which the operator set lacks: one for each content. */
typedef struct cleave_onnx_functions {
  cleave_text_t text;       /* FunctionProtos */
  cleave_strings_t keys;    /* content of the bodies */
  cleave_strings_t names;   /* that are taken */
  cleave_string_t *name_of; /* by id of the key */
  uint32_t capacity;
  uint32_t depth; /* of bodies inside of bodies, now */
  bool is_trial;  /* only whether it can be written is asked */
} cleave_onnx_functions_t;

typedef struct cleave_onnx_writer {
  const cleave_graph_t *graph;
  const cleave_onnx_write_options_t *options;
  int32_t opset_version;
  cleave_groups_t groups;
  cleave_strings_t names;             /* all that are taken; owns their texts */
  cleave_strings_t node_names;        /* those of nodes, likewise */
  const char **value_names;           /* by value index */
  const char **output_names;          /* by graph output */
  bool *is_needed;                    /* by value index: outputs, and what the main graph reads */
  uint64_t next_number;               /* for names that are made up */
  CLEAVE_ARRAY(const char *) domains; /* of operators, besides ai.onnx */
  cleave_onnx_functions_t *functions; /* of the whole model */
} cleave_onnx_writer_t;

/* A node on its way out: what the graph says, until a downgrade changes it. */
typedef struct cleave_onnx_input {
  const char *name;     /* "": left out */
  cleave_value_t value; /* NONE if left out */
} cleave_onnx_input_t;

typedef struct cleave_onnx_record {
  cleave_onnx_writer_t *writer;
  cleave_node_t node;
  const cleave_op_t *op;
  cleave_text_t *out;
  int64_t numbers[CLEAVE_MAX_RANK]; /* of an attribute that a downgrade made up */
  char refusal[96];                 /* why the operator set has no such node; "": it has */
  cleave_dtype_t refused_dtype;     /* where that is an element type */
  CLEAVE_ARRAY(cleave_onnx_input_t) inputs;
  CLEAVE_ARRAY(cleave_attribute_t) attributes;
} cleave_onnx_record_t;

/* Adds to the domains that the model imports, each once; "" is there anyway. */
CLEAVE_STATUS cleave_onnx_add_domain(cleave_onnx_writer_t *writer, const char *domain, cleave_error_t *error);

/* Appends the NodeProtos of a level (onnx_write_nodes.c). */
CLEAVE_STATUS cleave_onnx_put_level(cleave_onnx_writer_t *writer, uint32_t group, uint32_t field,
                                    cleave_text_t *out, cleave_error_t *error);
/* Appends the FunctionProto of a group. */
CLEAVE_STATUS cleave_onnx_put_function(cleave_onnx_writer_t *writer, uint32_t group, cleave_text_t *out,
                                       cleave_error_t *error);
/* Appends OperatorSetIdProtos in field `field`. */
void cleave_onnx_put_opsets(const cleave_onnx_writer_t *writer, uint32_t field, cleave_text_t *out);
/* Identity: an output that has a second name. */
void cleave_onnx_put_identity(cleave_text_t *out, uint32_t field, const char *from, const char *to);
/* Constant. */
void cleave_onnx_put_constant(cleave_text_t *out, uint32_t field, cleave_tensor_t *tensor, const char *name);
/* Inputs and attributes as the graph has them. */
CLEAVE_STATUS cleave_onnx_fill_record(cleave_onnx_record_t *record, cleave_error_t *error);
/* The NodeProto of a record, under an operator's name, in field `field`. */
CLEAVE_STATUS cleave_onnx_put_record(cleave_onnx_record_t *record, const char *op_type, const char *domain,
                                     bool is_main, uint32_t field, cleave_error_t *error);
/* A node of the graph: as it is, in the form that the operator set has, or as a call of a function. */
CLEAVE_STATUS cleave_onnx_put_node(cleave_onnx_record_t *record, bool is_main, uint32_t field,
                                   cleave_error_t *error);

/* Fields of a TensorProto: name, type, shape and data (raw, or texts). An empty name is left out. */
void cleave_onnx_put_tensor(cleave_text_t *out, const cleave_tensor_t *tensor, const char *name);
/* Writes the fields of a tensor without the data. */
void cleave_onnx_put_tensor_head(cleave_text_t *out, const cleave_tensor_t *tensor, const char *name);

/* Is the constant written as int4 or uint4 (onnx_write_narrow.c)? Not if a function reads it: ONNX Runtime
 * refuses such inputs of functions. */
bool cleave_onnx_has_four_bits(const cleave_onnx_writer_t *writer, cleave_value_t value);
/* A tensor in that form, for nothing else than to be written: its dtype is a number of ONNX's, and its bytes
 * are those of pairs. */
CLEAVE_STATUS cleave_onnx_make_four_bits(const cleave_tensor_t *tensor, cleave_tensor_t **out_tensor,
                                         cleave_error_t *error);

/* Rewrites a record to its form in the writer's operator set, or sets its refusal (onnx_downgrade.c). */
CLEAVE_STATUS cleave_onnx_downgrade(cleave_onnx_record_t *record, cleave_error_t *error);
/* Sets the refusal of a record that the operator set has no operator, attribute, input or type for; drops
 * attributes that say only what is the case there anyway (onnx_forms.c). */
void cleave_onnx_check_form(cleave_onnx_record_t *record);

/* A call of a function whose body spells the node, which was refused, with older operators
 * (onnx_write_lower.c). CLEAVE_ERROR_UNSUPPORTED: there is no such body. */
CLEAVE_STATUS cleave_onnx_put_lowered(cleave_onnx_record_t *record, bool is_main, uint32_t field,
                                      cleave_error_t *error);
void cleave_onnx_functions_deinit(cleave_onnx_functions_t *functions);

/* The name of a node that no node before has; "" if it has none. Asked for once per node that is written. */
CLEAVE_STATUS cleave_onnx_name_node(cleave_onnx_writer_t *writer, cleave_node_t node, const char **out_name,
                                    cleave_error_t *error);

/* The state of writing `graph`: groups, names. Deinit after failures too. */
CLEAVE_STATUS cleave_onnx_writer_init(cleave_onnx_writer_t *writer, cleave_error_t *error);
void cleave_onnx_writer_deinit(cleave_onnx_writer_t *writer);

#endif /* CLEAVE_FORMATS_ONNX_WRITE_ONNX_WRITE_H */
