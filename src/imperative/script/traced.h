// SPDX-License-Identifier: Apache-2.0
/*
 * Functions of a script as models: one is called once with values of a graph in place of its arrays, what it
 * calls becomes nodes, and from then on the partitioned model runs.
 */
#ifndef CLEAVE_IMPERATIVE_SCRIPT_TRACED_H
#define CLEAVE_IMPERATIVE_SCRIPT_TRACED_H

#include <lua.h>

/* Adds the functions to the table of host functions on top of the stack. */
void traced_register(lua_State *state);

#endif /* CLEAVE_IMPERATIVE_SCRIPT_TRACED_H */
