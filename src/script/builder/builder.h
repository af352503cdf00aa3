// SPDX-License-Identifier: Apache-2.0
/*
 * The graph that a script builds. Types are inferred as nodes are added, so that a mistake is reported at its
 * line; constants are drawn from a seed. A model script builds a new graph, rewrites and passes add to an
 * existing one through its editor. `script->owner` is the builder.
 */
#ifndef CLEAVE_SCRIPT_BUILDER_BUILDER_H
#define CLEAVE_SCRIPT_BUILDER_BUILDER_H

#include "base/arena.h"
#include "base/containers/array.h"
#include "ops/context/infer_context.h"
#include "partition/rewrite/editor.h"
#include "script/state/script.h"

/* Bytes of all constants of a model script. */
#define CLEAVE_BUILDER_DATA_LIMIT ((size_t)16 << 30)
/* The limit for the graph of a rule file's test. */
#define CLEAVE_BUILDER_TEST_DATA_LIMIT ((size_t)256 << 20)
/* The limit for one constant in a rewrite or pass: drawing it is a step that nothing interrupts. */
#define CLEAVE_BUILDER_RULE_DATA_LIMIT ((size_t)64 << 20)

#define CLEAVE_BUILDER_VALUE_LIMIT 8000000

typedef struct cleave_builder {
  cleave_graph_t *graph;
  cleave_editor_t *editor;             /* that changes `graph`, for rewrites and passes; NULL: a new model */
  cleave_arena_t arena;                /* facts */
  CLEAVE_ARRAY(cleave_fact_t *) facts; /* by value */
  uint32_t counters[CLEAVE_OP_COUNT];  /* for names: "Conv_3" */
  uint32_t constant_count;
  size_t data_bytes;
  size_t data_limit; /* 0: CLEAVE_BUILDER_DATA_LIMIT, or the editor's */
  uint64_t seed;
  bool seed_is_given; /* by the caller: the script's own does not count */
} cleave_builder_t;

/* The builder of the graph under construction; raises if there is none, because a script may keep `g` for
 * later. */
static inline cleave_builder_t *cleave_builder_of(lua_State *state) {
  cleave_builder_t *builder = cleave_script_of(state)->owner;
  if (builder == NULL) {
    cleave_script_raise(state, "no graph is being built here");
  }
  return builder;
}

/* builder_words.c: adds the host functions that lua/cleave/builder.lua wraps to the table on top of the
 * stack: those of the three files below. */
void cleave_builder_register(lua_State *state);
void cleave_builder_register_operators(lua_State *state);
void cleave_builder_register_values(lua_State *state);
void cleave_builder_register_pass_words(lua_State *state);

/* Pushes `g`, for a function that gets it as an argument. */
void cleave_builder_push(lua_State *state);

/* Counts bytes that the script puts into the graph; raises if they are too many. */
void cleave_builder_charge(lua_State *state, size_t bytes);

/* Raises the error unless the status is CLEAVE_OK. */
static inline void cleave_builder_raise_if_failed(lua_State *state, cleave_status_t status,
                                                  const cleave_error_t *error) {
  if (status != CLEAVE_OK) {
    cleave_script_raise_error(state, error);
  }
}

/* Raises that the model has too many values. */
void cleave_builder_raise_full(lua_State *state);

/* Infers one node, and writes what came out into the graph. */
cleave_status_t cleave_builder_infer(lua_State *state, cleave_node_t node, cleave_error_t *error);

/* The value at a stack index as the input of an operator: a value, or a number or (nested) table that becomes
 * a constant; NONE for nil. Raises "<what>: expected a value". */
cleave_value_t cleave_builder_read_value(lua_State *state, int index, cleave_dtype_t number_dtype,
                                         const char *what);

/* The value on top of the stack as an attribute of an operator. What it points to is pushed, too. */
void cleave_builder_read_attribute(lua_State *state, const cleave_op_t *op,
                                   const cleave_op_attribute_t *schema, cleave_attribute_t *attribute);

/* The dtype that a name at an index stands for; a list of sizes there, whose rank is returned. Both raise. */
cleave_dtype_t cleave_builder_check_dtype(lua_State *state, int index);
int32_t cleave_builder_check_shape(lua_State *state, int index, int64_t *dims);

/* A constant out of a number, boolean or (nested) table at `index`. dtype UNKNOWN: bool if all are booleans,
 * int64 if all numbers are integers, else float32. `name` may be NULL. */
cleave_value_t cleave_builder_constant(lua_State *state, int index, cleave_dtype_t dtype, const char *name);
/* Reads it as a tensor, which the caller owns: nothing may raise until it is released. */
cleave_tensor_t *cleave_builder_read_tensor(lua_State *state, int index, cleave_dtype_t dtype);

#endif /* CLEAVE_SCRIPT_BUILDER_BUILDER_H */
