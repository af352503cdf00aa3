// SPDX-License-Identifier: Apache-2.0
/*
 * The functions with which rules change a graph. Each step is checked (live ids, schema, types that fit, no
 * cycle), performed and written to the log; a step that fails changes nothing. The types of new nodes are
 * inferred at once. Steps read from outside are replayed through the same functions, so a hostile log can do
 * nothing that a rule could not.
 *
 * The caller owns the graph and makes it (cleave_graph_copy); the editor never changes the graph that it was
 * copied from.
 */
#ifndef CLEAVE_PARTITION_REWRITE_EDITOR_H
#define CLEAVE_PARTITION_REWRITE_EDITOR_H

#include "graph/edits.h"
#include "ops/context/infer_context.h"
#include "partition/pattern/ruleset.h"

/* Infers all types, computes what is constant, and removes what is dead (cleave_graph_simplify). */
typedef cleave_status_t (*cleave_fold_function_t)(void *context, cleave_graph_t *graph,
                                                  cleave_error_t *error);

/* Bytes of all constants that rules make; folding makes more. */
#define CLEAVE_EDITOR_DATA_LIMIT ((size_t)1 << 30)

struct cleave_editor {
  cleave_graph_t *graph;
  cleave_edits_t *log;         /* NULL: no log is kept */
  cleave_fold_function_t fold; /* NULL: types are inferred and integer chains folded, but no constants are
                                  computed */
  void *fold_context;
  const char *rule;        /* for generated names: the rule at work */
  cleave_reason_t refusal; /* of a pass that leaves the graph as it is: why; "" */
  int32_t line;            /* of the script, for the log and the nodes made */
  bool only_adds;          /* only new nodes and constants are allowed: while a substitute is built */
  /* Nodes from here on were made by the application at work: what a new value is made of. */
  uint32_t first_node;
  /* Nodes that are new or whose neighbours changed, and removed nodes, since the caller last emptied these
   * lists. */
  CLEAVE_ARRAY(uint32_t) changed;
  CLEAVE_ARRAY(uint32_t) removed;
  cleave_graph_reads_t reads; /* constants that the application at work looked at */
  bool notes_reads;           /* the graph refers to `reads` and must outlive the editor */

  /* private */
  cleave_arena_t arena; /* facts */
  CLEAVE_ARRAY(cleave_fact_t *) facts;
  CLEAVE_ARRAY(uint32_t) facts_made; /* values */
  CLEAVE_ARRAY(cleave_fact_t *) ports;
  CLEAVE_ARRAY(uint32_t) stamps; /* per node: of the search that saw it last */
  uint32_t stamp;
  CLEAVE_ARRAY(uint32_t) front; /* searches: nodes to go on from */
  CLEAVE_ARRAY(uint32_t) back;
  CLEAVE_ARRAY(cleave_node_t) readers;
  CLEAVE_ARRAY(uint32_t) retyped; /* nodes whose outputs may have changed their types */
  uint32_t name_counter;
  size_t data_bytes;
  size_t work;      /* uses visited and nodes folded so far, to bound the work of a replay */
  bool is_unproved; /* a search for a cycle was given up: cleave_editor_settle searches again */
  bool has_changed; /* since the last folding */
};

void cleave_editor_init(cleave_editor_t *editor, cleave_graph_t *graph, cleave_edits_t *log);
void cleave_editor_deinit(cleave_editor_t *editor);

/* A name that the graph has not used so far: `base`, or `base`_<k>. Written into `buffer`. */
const char *cleave_editor_unique_name(cleave_editor_t *editor, const char *base, char *buffer, size_t size);

/* ---- adding ---- */

/* Adds a node with the name, the inputs, the number of outputs and the attributes of `node`. Its outputs are
 * called `name`, `name`:1, ... If `name` is NULL or "", they have no names. */
CLEAVE_STATUS cleave_editor_add_node(cleave_editor_t *editor, const cleave_op_t *op,
                                     const cleave_edit_t *node, cleave_node_t *out_node,
                                     cleave_error_t *error);
CLEAVE_STATUS cleave_editor_add_constant(cleave_editor_t *editor, const char *name, cleave_tensor_t *tensor,
                                         cleave_value_t *out_value, cleave_error_t *error);
/* Adds an input after the existing ones. The name must be new. rank -1: unknown. */
CLEAVE_STATUS cleave_editor_add_input(cleave_editor_t *editor, const char *name, cleave_dtype_t dtype,
                                      int32_t rank, const cleave_edit_dim_t *dims, cleave_value_t *out_value,
                                      cleave_error_t *error);

/* ---- changing ---- */

/* CLEAVE_ERROR_SHAPE if `to` cannot replace `from`: dtype, rank and sizes must agree if both are known. */
CLEAVE_STATUS cleave_editor_check_fit(const cleave_editor_t *editor, cleave_value_t from, cleave_value_t to,
                                      cleave_error_t *error);

/* All readers of `from`, including graph outputs, read `to` instead. New nodes (since first_node) that `to`
 * is computed from keep reading `from`, so that a value can be wrapped. `to` has the range of `from` if it
 * has none. */
CLEAVE_STATUS cleave_editor_replace_uses(cleave_editor_t *editor, cleave_value_t from, cleave_value_t to,
                                         cleave_error_t *error);
/* NONE leaves an optional input out. */
CLEAVE_STATUS cleave_editor_set_input(cleave_editor_t *editor, cleave_node_t node, uint32_t index,
                                      cleave_value_t value, cleave_error_t *error);
CLEAVE_STATUS cleave_editor_set_attribute(cleave_editor_t *editor, cleave_node_t node,
                                          const cleave_attribute_t *attribute, cleave_error_t *error);
CLEAVE_STATUS cleave_editor_set_output(cleave_editor_t *editor, uint32_t index, cleave_value_t value,
                                       cleave_error_t *error);
/* CLEAVE_ERROR_INVALID_ARGUMENT names who still reads it. */
CLEAVE_STATUS cleave_editor_remove_node(cleave_editor_t *editor, cleave_node_t node, cleave_error_t *error);
/* Removes the node if nothing reads it, and then what only it needed. */
CLEAVE_STATUS cleave_editor_remove_unused(cleave_editor_t *editor, cleave_node_t node, cleave_error_t *error);
CLEAVE_STATUS cleave_editor_name_node(cleave_editor_t *editor, cleave_node_t node, const char *name,
                                      cleave_error_t *error);
CLEAVE_STATUS cleave_editor_name_value(cleave_editor_t *editor, cleave_value_t value, const char *name,
                                       cleave_error_t *error);

/* ---- reading ---- */

/* Sets graph->reads to editor->reads until cleave_editor_deinit: the graph must outlive the editor. */
void cleave_editor_note_reads(cleave_editor_t *editor);
/* Logs the constants that were read, each live one once, and forgets them. */
CLEAVE_STATUS cleave_editor_log_reads(cleave_editor_t *editor, cleave_error_t *error);

/* ---- a series of steps ---- */

/* Removes what was added since the mark from the graph and from the log. */
typedef struct cleave_editor_mark {
  cleave_graph_mark_t graph;
  size_t edit_count;
  size_t changed_count;
  size_t data_bytes;
} cleave_editor_mark_t;
cleave_editor_mark_t cleave_editor_mark(const cleave_editor_t *editor);
void cleave_editor_roll_back(cleave_editor_t *editor, cleave_editor_mark_t mark);

/* Forgets what inference found out about the content of values, because types may have changed. */
void cleave_editor_forget_facts(cleave_editor_t *editor);

/* Ends a series of changes: infers the types that depend on changed inputs and attributes, and checks that
 * there is no cycle. */
CLEAVE_STATUS cleave_editor_settle(cleave_editor_t *editor, cleave_error_t *error);

/* Settles and folds, and logs it, if anything changed since the last time. */
CLEAVE_STATUS cleave_editor_fold(cleave_editor_t *editor, cleave_error_t *error);

/* Performs the steps of a log. CLEAVE_ERROR_INVALID_ARGUMENT, naming the step, if a step is not possible; the
 * graph must then be discarded. */
CLEAVE_STATUS cleave_editor_replay(cleave_editor_t *editor, const cleave_edits_t *edits,
                                   cleave_error_t *error);
/* One step of the log; the steps are to be performed in order, and cleave_editor_settle ends them. */
CLEAVE_STATUS cleave_editor_replay_step(cleave_editor_t *editor, const cleave_edits_t *edits, size_t index,
                                        cleave_error_t *error);

/* ---- editor_infer.c ---- */

/* Types of a node's outputs from its inputs, into the graph. */
CLEAVE_STATUS cleave_editor_infer(cleave_editor_t *editor, cleave_node_t node, cleave_error_t *error);
/* Types of what follows the nodes in `retyped`. */
CLEAVE_STATUS cleave_editor_retype(cleave_editor_t *editor, cleave_error_t *error);

/* ---- editor_cycle.c ---- */

/* Would it close a cycle if the nodes read `value`? `after`: a node that depends on none of them, or NONE.
 * Visits a bounded number of edges; sets is_unproved if that was not enough. */
CLEAVE_STATUS cleave_editor_closes_cycle(cleave_editor_t *editor, cleave_value_t value,
                                         const cleave_node_t *nodes, size_t node_count, cleave_node_t after,
                                         bool *out_closes, cleave_error_t *error);
/* Marks, with a new stamp, the nodes since first_node that `value` is computed from; for
 * cleave_editor_is_marked. */
CLEAVE_STATUS cleave_editor_mark_new_sources(cleave_editor_t *editor, cleave_value_t value,
                                             cleave_error_t *error);
bool cleave_editor_is_marked(const cleave_editor_t *editor, cleave_node_t node);

#endif /* CLEAVE_PARTITION_REWRITE_EDITOR_H */
