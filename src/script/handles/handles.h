// SPDX-License-Identifier: Apache-2.0
/*
 * A rule's callbacks see these parts of the graph: nodes, values, the graph, a match, a proposed region. A
 * handle is an index and a serial; each use checks that a callback is running on the graph that the serial
 * stands for, and that the index is of something that lives there. The same node gives the same handle, so
 * that handles work as keys of tables. Handles never change the graph.
 */
#ifndef CLEAVE_SCRIPT_HANDLES_HANDLES_H
#define CLEAVE_SCRIPT_HANDLES_HANDLES_H

#include "partition/pattern/ruleset.h"
#include "script/state/script.h"

typedef enum cleave_handle_kind {
  CLEAVE_HANDLE_NODE,
  CLEAVE_HANDLE_VALUE,
  CLEAVE_HANDLE_GRAPH,
  CLEAVE_HANDLE_MATCH,      /* of this call */
  CLEAVE_HANDLE_PROPOSAL,   /* of this call */
  CLEAVE_HANDLE_ATTRIBUTES, /* of a node: node.attrs */
  CLEAVE_HANDLE_INPUTS,     /* of a node: node.inputs */
  CLEAVE_HANDLE_OUTPUTS,    /* of a node: node.outputs */
  CLEAVE_HANDLE_KIND_COUNT
} cleave_handle_kind_t;

typedef struct cleave_handle {
  cleave_handle_kind_t kind;
  uint32_t index;
  uint64_t serial; /* of the graph; of the call for MATCH and PROPOSAL */
} cleave_handle_t;

/* A field of a handle: pushes one value. Type (as LuaCATS writes it) and line are for the editor definitions
 * and the tables of rules/README.md, which are made of these (meta.h). */
typedef struct cleave_handle_field {
  const char *name;
  void (*push)(lua_State *state, const cleave_handle_t *handle);
  const char *type;
  const char *doc;
} cleave_handle_field_t;

/* Begins to use a graph: handles made for another one become stale. `subject` is the match or proposal of
 * this call, or NULL. Ends with cleave_handles_leave. */
void cleave_handles_enter(cleave_script_t *script, const cleave_graph_t *graph, const void *subject);
void cleave_handles_leave(cleave_script_t *script);
/* Makes all handles stale, because the graph changed. */
void cleave_handles_forget(cleave_script_t *script);
/* The graph changed: the list of its nodes in order is made again when it is needed next (graph_handle.c). */
void cleave_handle_forget_order(lua_State *state);

/* handle_kinds.c: prepares an interpreter for handles of all kinds; once, before any is made. */
void cleave_handles_register(lua_State *state);
/* What a kind has. */
typedef struct cleave_handle_definition {
  const cleave_handle_field_t *fields; /* NULL: none */
  lua_CFunction index;                 /* NULL: it has fields alone */
  lua_CFunction length;                /* NULL: it has none */
  lua_CFunction content;               /* (handle) -> a table of what `pairs` goes over; NULL: nothing */
} cleave_handle_definition_t;

/* Makes the metatable of one kind. */
void cleave_handle_define(lua_State *state, cleave_handle_kind_t kind,
                          const cleave_handle_definition_t *definition);
/* The metatable of a kind, the same for all handles of an interpreter. */
void cleave_handle_push_metatable(lua_State *state, cleave_handle_kind_t kind);

/* Push a handle; nil for NONE. */
void cleave_handle_push_node(lua_State *state, cleave_node_t node);
void cleave_handle_push_value(lua_State *state, cleave_value_t value);
void cleave_handle_push_graph(lua_State *state);
void cleave_handle_push_match(lua_State *state);
void cleave_handle_push_proposal(lua_State *state);
/* The attributes, inputs or outputs of a node. */
void cleave_handle_push_view(lua_State *state, cleave_handle_kind_t kind, const cleave_handle_t *node);
/* A list of handles. */
void cleave_handle_push_nodes(lua_State *state, const cleave_node_t *nodes, uint32_t count);
void cleave_handle_push_values(lua_State *state, const cleave_value_t *values, uint32_t count);

/* The live handle at an index of the stack; raises if it is not of that kind, or stale. */
cleave_handle_t *cleave_handle_check(lua_State *state, int index, cleave_handle_kind_t kind);
cleave_node_t cleave_handle_check_node(lua_State *state, int index);
/* Is it a handle of this kind, stale ones too? Other userdata are not. */
bool cleave_handle_is(lua_State *state, int index, cleave_handle_kind_t kind);
/* Puts the content of the handle at an index of the stack in its place; leaves anything else as it is. */
void cleave_handle_open(lua_State *state, int index);
/* Does it refer to a removed node or value of the present graph? */
bool cleave_handle_is_removed(lua_State *state, const cleave_handle_t *handle);
/* For sorting keys of tables. */
bool cleave_handle_less(lua_State *state, int a, int b);

/* The fields of the kinds, in the files that own them; each ends in a NULL name. */
extern const cleave_handle_field_t cleave_node_handle_fields[];
extern const cleave_handle_field_t cleave_value_handle_fields[];
extern const cleave_handle_field_t cleave_graph_handle_fields[];
extern const cleave_handle_field_t cleave_match_handle_fields[]; /* besides the labels */
extern const cleave_handle_field_t cleave_proposal_handle_fields[];

/* The field of the handle at 1 that the string at 2 names, or NULL. */
const cleave_handle_field_t *cleave_handle_find_field(lua_State *state);
/* __index of the kinds that have more than fields. */
int cleave_attributes_handle_index(lua_State *state);
int cleave_attributes_handle_content(lua_State *state);
int cleave_inputs_handle_index(lua_State *state);
int cleave_inputs_handle_length(lua_State *state);
int cleave_inputs_handle_content(lua_State *state);
int cleave_outputs_handle_index(lua_State *state);
int cleave_outputs_handle_length(lua_State *state);
int cleave_outputs_handle_content(lua_State *state);
int cleave_match_handle_index(lua_State *state);

/* A number; nil if it is negative: not known. */
void cleave_handle_push_amount(lua_State *state, double amount);

/* Records that a script reads the sizes of a value, if the graph records that. If a size is open, messages of
 * this call can name it (`what`: the field that is nil because of it; NULL: the shape). Raises if memory is
 * short. */
void cleave_handle_note_sizes(lua_State *state, cleave_value_t value, const char *what);

/* Raises: the operator's schema has no attribute, input or output of this name. */
int cleave_handle_raise_attribute(lua_State *state, const cleave_op_t *op, const char *name);
int cleave_handle_raise_port(lua_State *state, const cleave_op_t *op, const char *name, bool is_input);

/* Shape as a list: sizes, names of symbolic dimensions, "?" for unknown ones; nil if the rank is unknown. */
void cleave_handle_push_shape(lua_State *state, const cleave_graph_t *graph, cleave_value_t value);
/* An attribute's value; nil for NULL. */
void cleave_handle_push_attribute(lua_State *state, const cleave_attribute_t *attribute);

#endif /* CLEAVE_SCRIPT_HANDLES_HANDLES_H */
