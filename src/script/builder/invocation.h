// SPDX-License-Identifier: Apache-2.0
/*
 * A call of an operator from Lua, as `g.Conv(x, w, { pads = {1, 1, 1, 1}, name = "c" })`: positional inputs,
 * then a table of attributes and of inputs by name, or the attributes of a node. One reader serves all
 * operators, by their schemas, and whoever calls them: graphs that are built, and arrays.
 */
#ifndef CLEAVE_SCRIPT_BUILDER_INVOCATION_H
#define CLEAVE_SCRIPT_BUILDER_INVOCATION_H

#include "graph/op.h"
#include "script/state/script.h"

enum { CLEAVE_INVOCATION_PORTS = 1024, CLEAVE_INVOCATION_NAME = 128 };

typedef struct cleave_invocation {
  lua_State *state;
  const cleave_op_t *op;
  /* Reads an attribute whose value is at the top of the stack; what it points to is left there. */
  void (*read_tensor)(const struct cleave_invocation *call, const cleave_op_attribute_t *schema,
                      cleave_attribute_t *attribute);
  /* Elements of the input at an index of the stack whose content is known, or -1: how many outputs Split has.
   */
  int64_t (*element_count)(const struct cleave_invocation *call, int index);
  void *owner; /* of the caller */
  /* Filled in by cleave_invocation_read; memory is Lua's, on its stack. */
  int *inputs;          /* by port: index on the stack, which may be nil; 0: left out */
  uint32_t input_count; /* up to the last that is given */
  int positional_count;
  int table;                      /* index of the attribute table; 0: none */
  int node;                       /* index of the attributes of a node in its place; 0: none */
  cleave_attribute_t *attributes; /* those that are given */
  uint32_t attribute_count;
  int output_count;
} cleave_invocation_t;

/* Reads the call of call->op whose arguments are all that is on the stack. Raises what is wrong with it. */
void cleave_invocation_read(cleave_invocation_t *call);

/* "Conv: input 'W'", for messages about an input; into `buffer`, which is returned. */
const char *cleave_invocation_place(const cleave_invocation_t *call, uint32_t port,
                                    char buffer[CLEAVE_INVOCATION_NAME]);

/* The value at the top of the stack as an attribute. What it points to is pushed, too. */
void cleave_invocation_read_attribute(const cleave_invocation_t *call, const cleave_op_attribute_t *schema,
                                      cleave_attribute_t *attribute);
/* Raises that the value at an index of the stack is of another kind than the attribute. */
void cleave_invocation_raise_kind(const cleave_invocation_t *call, const cleave_op_attribute_t *attribute,
                                  int index);

#endif /* CLEAVE_SCRIPT_BUILDER_INVOCATION_H */
