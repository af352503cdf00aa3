// SPDX-License-Identifier: Apache-2.0
/* Records of calls for lua/cleave/record.lua. */
#ifndef CLEAVE_IMPERATIVE_SCRIPT_RECORDED_H
#define CLEAVE_IMPERATIVE_SCRIPT_RECORDED_H

#include <lua.h>

/* Adds its functions to the table on the top of the stack. */
void recorded_register(lua_State *state);

#endif /* CLEAVE_IMPERATIVE_SCRIPT_RECORDED_H */
