// SPDX-License-Identifier: Apache-2.0
/* From a matching trial to its mismatches: bindings of parts, messages and fixes. Private to explain*.c. */
#ifndef CLEAVE_PARTITION_EXPLAIN_EXPLAIN_FIND_H
#define CLEAVE_PARTITION_EXPLAIN_EXPLAIN_FIND_H

#include "partition/explain/explain_state.h"

/* The node or value that a part of the pattern is bound to in the match of a trial. */
typedef struct binding {
  cleave_node_t node;   /* of an OP or OUTPUT: the node, or the one at fault if the part stands for many; or
                           NONE */
  cleave_value_t value; /* main output of an OP, or the value; or NONE */
  uint32_t count;       /* nodes that an OP stands for */
} binding_t;

typedef struct finder {
  cleave_explainer_t *x;
  trial_t *trial;
  cleave_arena_t *arena;      /* of the caller */
  const binding_t *bindings;  /* per part */
  const cleave_node_t *nodes; /* of the match; in `arena` */
  uint32_t node_count;
  cleave_match_edge_t unnamed[CLEAVE_MATCH_MAX_UNNAMED]; /* edges of the match that the pattern lacks */
  uint32_t unnamed_count;
} finder_t;

/* The node or value at fault in one constraint. */
typedef struct fault {
  uint32_t constraint;
  cleave_node_t node;
  cleave_value_t value;
  uint32_t input;  /* of `node`, if the fault is an edge that the pattern does not name; or NONE */
  uint32_t output; /* that the pattern means, if another output of its node, `value`, is read; or NONE */
  uint32_t twin;   /* an earlier input of a variadic part that the same node makes; or NONE */
} fault_t;

/* ---- explain_find.c ---- */

/* Fills in nodes and mismatches of a finding from a trial that matches. */
CLEAVE_STATUS cleave_explainer_find(cleave_explainer_t *explainer, trial_t *trial, uint32_t anchor,
                                    cleave_arena_t *arena, cleave_finding_t *finding, cleave_error_t *error);

/* ---- explain_binding.c ---- */

/* For cleave_match_request_t.accept: `context` is a cleave_node_t that the match must have, or NONE. */
bool cleave_explainer_has_node(void *context, const cleave_match_t *match, uint64_t hash);

/* Is a node part of the match? */
bool cleave_finder_has(const finder_t *finder, cleave_node_t node);
/* The operator of the pattern that stands for this node alone, or NONE. */
uint32_t cleave_finder_part(const finder_t *finder, cleave_node_t node);
/* Size of a symbol in the match, from dimensions that are as required; UNKNOWN if there are none. */
cleave_dim_t cleave_finder_symbol(const finder_t *finder, const char *symbol);
/* First use of a value outside of the match, or NONE. */
cleave_use_t cleave_finder_outside_use(const finder_t *finder, cleave_value_t value);
/* Index of the first element of a constant that fails the test. */
int64_t cleave_finder_wrong_element(const cleave_constant_test_t *test, const cleave_tensor_t *tensor);

/* ---- explain_words.c ---- */

/* Writes the path of a part from the root of the pattern, through parts with names. */
void cleave_explain_path(const cleave_explainer_t *explainer, const trial_t *trial, uint32_t part,
                         cleave_text_t *text);
/* Writes a list of operators, with `between` between them and `last` before the last. */
void cleave_explain_ops(const cleave_pattern_node_t *part, const char *between, const char *last,
                        cleave_text_t *text);
/* Schema name of an input, or its number if the name is not unique. */
void cleave_explain_input(const cleave_op_t *op, uint32_t index, cleave_text_t *text);
/* The same for an output, with `quote` around a name. */
void cleave_explain_output(const cleave_op_t *op, uint32_t index, const char *quote, cleave_text_t *text);
/* Schema name or number of the input that an input pattern means. */
void cleave_explain_port(const cleave_pattern_node_t *part, uint32_t index, cleave_text_t *text);
/* Describes a part: "Relu|Clip", "constant w", "any x". */
void cleave_explain_part(const cleave_explainer_t *explainer, uint32_t part, cleave_text_t *text);
/* "Relu '/act'"; "input 'x'", "constant 'w'" for values without a producer. */
void cleave_explain_node(const cleave_graph_t *graph, cleave_node_t node, cleave_text_t *text);
void cleave_explain_value(const cleave_graph_t *graph, cleave_value_t value, cleave_text_t *text);
/* Describes the origin of a value without names: "a constant", "Relu". */
void cleave_explain_origin(const cleave_graph_t *graph, cleave_value_t value, cleave_text_t *text);
/* A number as Lua, including math.huge and nan. */
void cleave_explain_number(double number, cleave_text_t *text);
/* What the content of a constant must be: "1 or 2 within 0.001", "from 0 to 1". */
void cleave_explain_content(const cleave_constant_test_t *test, cleave_text_t *text);
/* A literal as Lua: 1, "SAME", { 0, 2, 1 }. */
void cleave_explain_literal(const cleave_pattern_literal_t *literal, cleave_text_t *text);
/* An attribute as Lua; false if Lua rules cannot express it. */
bool cleave_explain_attribute(const cleave_attribute_t *attribute, cleave_text_t *text);

/* ---- explain_say.c ---- */

/* Fills in kind, part, line, path, subject, expected and found of a mismatch, in the finder's arena. */
CLEAVE_STATUS cleave_explain_words(const finder_t *finder, const fault_t *fault, cleave_mismatch_t *mismatch,
                                   cleave_error_t *error);

/* ---- explain_fix.c ---- */

/* Edits the copy of the pattern in finder->x for one fault, and appends the edit as Lua. False if there is no
 * such edit. */
bool cleave_explain_fix_one(const finder_t *finder, const fault_t *fault, cleave_text_t *text);
/* To be called after the last edit. */
void cleave_explain_fix_end(cleave_explainer_t *explainer);

/* ---- explain_fix_edge.c ---- */

/* cleave_explain_fix_one for a fault with an `input`. */
bool cleave_explain_fix_unnamed(const finder_t *finder, const fault_t *fault, cleave_text_t *text);

/* ---- explain_try.c ---- */

/* Tries the smallest edits for all faults together. If the pattern then matches with the nodes at fault,
 * fills in the fixes, and who refuses that match. */
CLEAVE_STATUS cleave_explain_fix(const finder_t *finder, uint32_t anchor, const fault_t *faults,
                                 cleave_finding_t *finding, cleave_mismatch_t *mismatches,
                                 cleave_error_t *error);

#endif /* CLEAVE_PARTITION_EXPLAIN_EXPLAIN_FIND_H */
