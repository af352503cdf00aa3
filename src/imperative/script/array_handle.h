// SPDX-License-Identifier: Apache-2.0
/* Arrays as values of Lua: userdata that own a reference. */
#ifndef CLEAVE_IMPERATIVE_SCRIPT_ARRAY_HANDLE_H
#define CLEAVE_IMPERATIVE_SCRIPT_ARRAY_HANDLE_H

#include "imperative/imperative.h"
#include "script/state/script.h"

/* Makes the metatable, empty but for __gc, and leaves it on the stack. */
void array_handle_define(lua_State *state);

/* Pushes an array without content; array_handle_set takes the reference over. Memory is there before there is
 * an array to lose. */
cleave_array_t **array_handle_push(lua_State *state);

/* The array at an index, or NULL if it is something else. */
cleave_array_t *array_handle_test(lua_State *state, int index);
/* The array at an index; raises if it is something else. */
cleave_array_t *array_handle_check(lua_State *state, int index);

/* Pushes an array made of a number, boolean or (nested) table at `index`; dtype UNKNOWN: by what it is. */
cleave_array_t *array_handle_constant(lua_State *state, cleave_imperative_t *imperative, int index,
                                      cleave_dtype_t dtype);

/* Functions of one array for scripts: adds them to the table of host functions on top of the stack. */
void array_handle_register(lua_State *state);

#endif /* CLEAVE_IMPERATIVE_SCRIPT_ARRAY_HANDLE_H */
