// SPDX-License-Identifier: Apache-2.0
/* Calls of operators on arrays from Lua. */
#ifndef CLEAVE_IMPERATIVE_SCRIPT_ARRAY_CALLS_H
#define CLEAVE_IMPERATIVE_SCRIPT_ARRAY_CALLS_H

#include <lua.h>

/* Adds the functions to the table of host functions on top of the stack. */
void array_calls_register(lua_State *state);

#endif /* CLEAVE_IMPERATIVE_SCRIPT_ARRAY_CALLS_H */
