// SPDX-License-Identifier: Apache-2.0
/*
 * The graph: nodes (operator, attributes, inputs) and values (dtype, shape, producer, uses, constant data).
 * Nodes and values are named by typed 32-bit ids that stay valid while the node lives. Removed ids are not
 * used again. All memory belongs to the graph.
 *
 * Every input of a node and every graph output is a *use*; the uses of a value are a list in the order in
 * which they were made. Names are for people: nothing in cleave identifies a thing by name.
 */
#ifndef CLEAVE_GRAPH_GRAPH_H
#define CLEAVE_GRAPH_GRAPH_H

#include "base/containers/array.h"
#include "base/strings.h"
#include "graph/op.h"

typedef struct cleave_node {
  uint32_t index;
} cleave_node_t;
typedef struct cleave_value {
  uint32_t index;
} cleave_value_t;
typedef struct cleave_use {
  uint32_t index;
} cleave_use_t;

#define CLEAVE_NODE_NONE ((cleave_node_t){CLEAVE_INDEX_NONE})
#define CLEAVE_VALUE_NONE ((cleave_value_t){CLEAVE_INDEX_NONE})
#define CLEAVE_USE_NONE ((cleave_use_t){CLEAVE_INDEX_NONE})

static inline bool cleave_node_exists(cleave_node_t node) {
  return node.index != CLEAVE_INDEX_NONE;
}
static inline bool cleave_value_exists(cleave_value_t value) {
  return value.index != CLEAVE_INDEX_NONE;
}
static inline bool cleave_use_exists(cleave_use_t use) {
  return use.index != CLEAVE_INDEX_NONE;
}

/* Records; read them freely, change them only through the functions below. */
typedef struct cleave_node_record {
  const cleave_op_t *op; /* NULL: removed */
  cleave_attribute_t *attributes;
  uint32_t name;         /* cleave_string_t */
  uint32_t first_use;    /* inputs are the uses first_use .. first_use + input_count - 1 */
  uint32_t first_output; /* outputs are the values first_output .. + output_count - 1 */
  uint16_t input_count;
  uint16_t output_count;
  uint16_t attribute_count;
  bool is_kept; /* it stays although nothing reads it: cleave_graph_keep_dead */
  int32_t line; /* of the script that made it; 0 */
} cleave_node_record_t;

typedef struct cleave_value_record {
  cleave_dim_t *dims;      /* rank entries; NULL if rank <= 0 */
  cleave_tensor_t *tensor; /* constant data, or NULL */
  uint32_t name;
  uint32_t producer; /* node; NONE for graph inputs and constants */
  uint32_t first_use;
  uint32_t last_use;
  uint32_t use_count;
  uint16_t output_index; /* of the producer */
  int8_t rank;           /* -1: unknown */
  uint8_t dtype;         /* cleave_dtype_t */
  bool is_input;         /* of the graph */
  bool is_removed;
  bool has_range; /* its elements were seen between these two, both finite, low <= high */
  float low;
  float high;
} cleave_value_record_t;

typedef struct cleave_use_record {
  uint32_t value; /* NONE: optional input left out, or a use that is gone */
  uint32_t node;  /* user; NONE: a graph output */
  uint32_t next;  /* of the same value */
  uint32_t previous;
} cleave_use_record_t;

/* Values, in any order and as often as somebody looked. */
typedef CLEAVE_ARRAY(uint32_t) cleave_graph_reads_t;

/* The budget of what computing constants may still add to a graph. Copies go on with what is left. */
typedef struct cleave_fold_budget {
  bool is_set;          /* by the first folding, from the constants that the graph had by then */
  bool is_spent;        /* a node stayed for want of it */
  uint32_t first_value; /* constants from here on were computed */
  uint64_t bytes;       /* that results may still take; what becomes free again comes back */
  uint64_t work;        /* operations, and elements read and written */
} cleave_fold_budget_t;

/* The shape that a file declares for an output; dims that it leaves open are CLEAVE_DIM_UNKNOWN. */
typedef struct cleave_declared_shape {
  int32_t rank; /* -1: it declares none */
  cleave_dim_t *dims;
} cleave_declared_shape_t;

struct cleave_graph {
  uint64_t identity;         /* no other graph of the process has it, or had it */
  cleave_context_t *context; /* borrowed: whose backends and libraries it means; NULL: the process's own */
  cleave_arena_t arena;
  cleave_strings_t strings;
  cleave_dims_t *dims; /* symbols of all shapes */
  CLEAVE_ARRAY(cleave_node_record_t) nodes;
  CLEAVE_ARRAY(cleave_value_record_t) values;
  CLEAVE_ARRAY(cleave_use_record_t) uses;
  CLEAVE_ARRAY(cleave_value_t) inputs;          /* in order */
  CLEAVE_ARRAY(cleave_use_t) outputs;           /* in order */
  CLEAVE_ARRAY(cleave_string_t) output_names;   /* as outputs */
  CLEAVE_ARRAY(cleave_tensor_t *) tensors;      /* retained ones, attributes' included */
  CLEAVE_ARRAY(const cleave_op_t *) custom_ops; /* of nodes with CLEAVE_OP_ID_CUSTOM, each once */
  /* Facts of the file beside the graph, in the arena. Copies have none of them. */
  cleave_declared_shape_t *declared; /* by output; NULL: nothing, or it is of no interest */
  cleave_string_t *default_inputs;   /* inputs that have an initializer and are constants here */
  size_t default_input_count;
  cleave_string_t *fixed_inputs; /* "name=value" of inputs that were fixed */
  size_t fixed_input_count;
  size_t live_node_count;
  cleave_string_t name;
  cleave_string_t source; /* file it was read from */
  int32_t opset_version;  /* of the default domain in that file; 22 for graphs made here */
  int32_t newer_version;  /* what the file says, if it was read as the older opset_version; 0: it was not */
  int32_t ir_version;
  bool is_sized; /* a copy in which open sizes of inputs got numbers: with others it would be another graph */
  /* Borrowed: records every read of a constant's content, so that callers know what a decision depends on.
   * NULL, as in every graph that is shared, records nothing. */
  cleave_graph_reads_t *reads;
  cleave_fold_budget_t fold_budget;
};

CLEAVE_STATUS cleave_graph_create(cleave_graph_t **out_graph, cleave_error_t *error);
void cleave_graph_destroy(cleave_graph_t *graph);

/* ---- building ---- */

CLEAVE_STATUS cleave_graph_add_input(cleave_graph_t *graph, const char *name, cleave_dtype_t dtype,
                                     int32_t rank, const cleave_dim_t *dims, cleave_value_t *out_value,
                                     cleave_error_t *error);

/* A constant; retains the tensor. */
CLEAVE_STATUS cleave_graph_add_constant(cleave_graph_t *graph, const char *name, cleave_tensor_t *tensor,
                                        cleave_value_t *out_value, cleave_error_t *error);

/* A node with `output_count` new values of unknown type. Inputs may be CLEAVE_VALUE_NONE if left out.
 * `name` may be NULL or "". Does not check the schema: see cleave_op_check in src/ops/ops.h. */
CLEAVE_STATUS cleave_graph_add_node(cleave_graph_t *graph, const cleave_op_t *op, const char *name,
                                    const cleave_value_t *inputs, size_t input_count, size_t output_count,
                                    cleave_node_t *out_node, cleave_error_t *error);

CLEAVE_STATUS cleave_graph_add_output(cleave_graph_t *graph, const char *name, cleave_value_t value,
                                      cleave_error_t *error);

/* An entry for an operator that is in no table; the same entry for the same names and version. */
CLEAVE_STATUS cleave_graph_custom_op(cleave_graph_t *graph, const char *domain, const char *name,
                                     int32_t version, const cleave_op_t **out_op, cleave_error_t *error);

/* Sets or replaces an attribute: name, lists and texts are copied, a tensor is retained. */
CLEAVE_STATUS cleave_graph_set_attribute(cleave_graph_t *graph, cleave_node_t node,
                                         const cleave_attribute_t *attribute, cleave_error_t *error);
CLEAVE_STATUS cleave_graph_set_int(cleave_graph_t *graph, cleave_node_t node, const char *name, int64_t value,
                                   cleave_error_t *error);
CLEAVE_STATUS cleave_graph_set_float(cleave_graph_t *graph, cleave_node_t node, const char *name,
                                     double value, cleave_error_t *error);
CLEAVE_STATUS cleave_graph_set_text(cleave_graph_t *graph, cleave_node_t node, const char *name,
                                    const char *value, cleave_error_t *error);
CLEAVE_STATUS cleave_graph_set_ints(cleave_graph_t *graph, cleave_node_t node, const char *name,
                                    const int64_t *values, size_t count, cleave_error_t *error);

CLEAVE_STATUS cleave_graph_set_type(cleave_graph_t *graph, cleave_value_t value, cleave_dtype_t dtype,
                                    int32_t rank, const cleave_dim_t *dims, cleave_error_t *error);
CLEAVE_STATUS cleave_graph_set_value_name(cleave_graph_t *graph, cleave_value_t value, const char *name,
                                          cleave_error_t *error);

/* Between which numbers the elements of a value lie, as calibration found: finite, low <= high. */
void cleave_graph_set_range(cleave_graph_t *graph, cleave_value_t value, float low, float high);

/* ---- editing (src/graph/edit.c) ---- */

/* Input `index` of `node` reads `value` from now on (NONE: left out). The use moves to the end of the list of
 * uses. */
void cleave_graph_set_input(cleave_graph_t *graph, cleave_node_t node, uint32_t index, cleave_value_t value);
/* Input `index` of the graph is a constant from now on, with this tensor of its dtype and shape (retained).
 */
CLEAVE_STATUS cleave_graph_close_input(cleave_graph_t *graph, size_t index, cleave_tensor_t *tensor,
                                       cleave_error_t *error);
/* Every use of `from`, graph outputs among them, becomes a use of `to`, in order. */
void cleave_graph_replace_uses(cleave_graph_t *graph, cleave_value_t from, cleave_value_t to);
/* Turns a value without uses of its old producer into a constant: all uses of `value` read a new constant. */
CLEAVE_STATUS cleave_graph_replace_with_constant(cleave_graph_t *graph, cleave_value_t value,
                                                 cleave_tensor_t *tensor, cleave_error_t *error);
/* A constant has another tensor of the same dtype and shape from now on (retained). The graph keeps the one
 * before, until cleave_graph_release_unused. */
CLEAVE_STATUS cleave_graph_set_constant(cleave_graph_t *graph, cleave_value_t value, cleave_tensor_t *tensor,
                                        cleave_error_t *error);
/* Removes a constant that nothing reads; cleave_graph_release_unused lets go of its tensor. */
void cleave_graph_remove_constant(cleave_graph_t *graph, cleave_value_t value);
/* Lets go of the tensors that belong to no constant, and to no attribute of a live node. */
CLEAVE_STATUS cleave_graph_release_unused(cleave_graph_t *graph, cleave_error_t *error);
/* Removes a node whose outputs have no uses. A programming error otherwise. */
void cleave_graph_remove_node(cleave_graph_t *graph, cleave_node_t node);
/* Marks the nodes that outputs need: needed[k] for node k, up to cleave_graph_node_bound. */
CLEAVE_STATUS cleave_graph_find_needed(const cleave_graph_t *graph, bool *needed, cleave_error_t *error);
/* Nodes that nothing reads stay from now on, and with them what they read; in copies of the graph, too.
 * Folding leaves them alone. */
void cleave_graph_keep_dead(cleave_graph_t *graph);
/* Removes nodes that neither an output nor a node that is kept needs; returns how many. Keeps graph inputs.
 */
CLEAVE_STATUS cleave_graph_remove_dead(cleave_graph_t *graph, size_t *out_removed, cleave_error_t *error);

/* Inputs become constants (src/graph/fix.c): numbers and bools of one element, by their names; the last value
 * of a name counts. CLEAVE_ERROR_INVALID_ARGUMENT: another input, a text that is no value of its dtype, or a
 * name that no input has, unless it is optional. Once for a graph that is being made. */
CLEAVE_STATUS cleave_graph_fix_inputs(cleave_graph_t *graph, const cleave_fixed_input_t *fixed, size_t count,
                                      cleave_error_t *error);
/* Is it one number or bool, so that it may be fixed as an input? */
bool cleave_value_is_single(const cleave_graph_t *graph, cleave_value_t value);

/* A use (an input of a node, or a graph output) reads another value; the last of that value's uses. */
void cleave_graph_set_use(cleave_graph_t *graph, cleave_use_t use, cleave_value_t value);

/* The size of a graph, to come back to. */
typedef struct cleave_graph_mark {
  size_t node_count;
  size_t value_count;
  size_t use_count;
  size_t tensor_count;
} cleave_graph_mark_t;

cleave_graph_mark_t cleave_graph_mark(const cleave_graph_t *graph);

/* Takes back the nodes and constants that were added since; nothing else may have changed since then. Their
 * ids will be given out again. */
void cleave_graph_roll_back(cleave_graph_t *graph, cleave_graph_mark_t mark);

/* ---- reading ---- */

/* Upper bound of node and value indices: walk them and skip what is not live. */
static inline uint32_t cleave_graph_node_bound(const cleave_graph_t *graph) {
  return (uint32_t)graph->nodes.count;
}
static inline uint32_t cleave_graph_value_bound(const cleave_graph_t *graph) {
  return (uint32_t)graph->values.count;
}
static inline const cleave_node_record_t *cleave_graph_node(const cleave_graph_t *graph, cleave_node_t node) {
  return &graph->nodes.items[node.index];
}
static inline const cleave_value_record_t *cleave_graph_value(const cleave_graph_t *graph,
                                                              cleave_value_t value) {
  return &graph->values.items[value.index];
}
static inline const cleave_use_record_t *cleave_graph_use(const cleave_graph_t *graph, cleave_use_t use) {
  return &graph->uses.items[use.index];
}
static inline bool cleave_node_is_live(const cleave_graph_t *graph, cleave_node_t node) {
  return node.index < graph->nodes.count && graph->nodes.items[node.index].op != NULL;
}
static inline const cleave_op_t *cleave_node_op(const cleave_graph_t *graph, cleave_node_t node) {
  return cleave_graph_node(graph, node)->op;
}
static inline const char *cleave_node_name(const cleave_graph_t *graph, cleave_node_t node) {
  return cleave_strings_text(&graph->strings, (cleave_string_t){cleave_graph_node(graph, node)->name});
}
static inline uint32_t cleave_node_input_count(const cleave_graph_t *graph, cleave_node_t node) {
  return cleave_graph_node(graph, node)->input_count;
}
static inline uint32_t cleave_node_output_count(const cleave_graph_t *graph, cleave_node_t node) {
  return cleave_graph_node(graph, node)->output_count;
}
/* NONE if the input is left out, or beyond the last. */
static inline cleave_value_t cleave_node_input(const cleave_graph_t *graph, cleave_node_t node,
                                               uint32_t index) {
  const cleave_node_record_t *record = cleave_graph_node(graph, node);
  if (index >= record->input_count) {
    return CLEAVE_VALUE_NONE;
  }
  return (cleave_value_t){graph->uses.items[record->first_use + index].value};
}
/* NONE beyond the last. */
static inline cleave_value_t cleave_node_output(const cleave_graph_t *graph, cleave_node_t node,
                                                uint32_t index) {
  const cleave_node_record_t *record = cleave_graph_node(graph, node);
  return index < record->output_count ? (cleave_value_t){record->first_output + index} : CLEAVE_VALUE_NONE;
}
static inline const char *cleave_value_name(const cleave_graph_t *graph, cleave_value_t value) {
  return cleave_strings_text(&graph->strings, (cleave_string_t){cleave_graph_value(graph, value)->name});
}
/* NONE for graph inputs and constants. */
static inline cleave_node_t cleave_value_producer(const cleave_graph_t *graph, cleave_value_t value) {
  return (cleave_node_t){cleave_graph_value(graph, value)->producer};
}
static inline bool cleave_value_is_constant(const cleave_graph_t *graph, cleave_value_t value) {
  return cleave_graph_value(graph, value)->tensor != NULL;
}
/* Somebody is going to act on the content of a constant, or on the sizes of any other value of a graph that
 * is_sized. Does nothing if reads are not noted. */
CLEAVE_MUST_USE static inline cleave_status_t cleave_graph_note_read(const cleave_graph_t *graph,
                                                                     cleave_value_t value,
                                                                     cleave_error_t *error) {
  if (graph->reads != NULL) {
    CLEAVE_ARRAY_PUSH(graph->reads, value.index, error);
  }
  return CLEAVE_OK;
}
/* Walk: for (use = first; cleave_use_exists(use); use = cleave_use_next(graph, use)). */
static inline cleave_use_t cleave_value_first_use(const cleave_graph_t *graph, cleave_value_t value) {
  return (cleave_use_t){cleave_graph_value(graph, value)->first_use};
}
static inline cleave_use_t cleave_use_next(const cleave_graph_t *graph, cleave_use_t use) {
  return (cleave_use_t){cleave_graph_use(graph, use)->next};
}
/* The user; NONE: the use is a graph output. */
static inline cleave_node_t cleave_use_node(const cleave_graph_t *graph, cleave_use_t use) {
  return (cleave_node_t){cleave_graph_use(graph, use)->node};
}
/* Which input of the user it is. Only if there is a user. */
static inline uint32_t cleave_use_input_index(const cleave_graph_t *graph, cleave_use_t use) {
  const cleave_use_record_t *record = cleave_graph_use(graph, use);
  return use.index - graph->nodes.items[record->node].first_use;
}
/* Is a use of the value a graph output? */
bool cleave_value_is_output(const cleave_graph_t *graph, cleave_value_t value);
static inline cleave_value_t cleave_graph_output(const cleave_graph_t *graph, size_t index) {
  return (cleave_value_t){graph->uses.items[graph->outputs.items[index].index].value};
}
static inline const char *cleave_graph_output_name(const cleave_graph_t *graph, size_t index) {
  return cleave_strings_text(&graph->strings, graph->output_names.items[index]);
}
/* Attribute that the node carries itself, or NULL. Schema defaults: cleave_op_attribute in src/ops/ops.h. */
const cleave_attribute_t *cleave_node_attribute(const cleave_graph_t *graph, cleave_node_t node,
                                                const char *name);

/* Name for messages: its name, or "Conv#12" if it has none. Written into `buffer`, which is returned. */
const char *cleave_node_label(const cleave_graph_t *graph, cleave_node_t node, char *buffer, size_t size);

#endif /* CLEAVE_GRAPH_GRAPH_H */
