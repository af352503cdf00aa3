/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C functions that the modules in lua/cleave get as `host`. Scripts never see this table. Each function
 * fills the table on top of the stack; host.c calls the others.
 */
#ifndef CLEAVE_SCRIPT_HOST_H
#define CLEAVE_SCRIPT_HOST_H

#include "script/script.h"

/* host.c: lookups in the operator table, lines, hints. */
void cleave_host_register(lua_State *state);
/* sandbox.c: what replaces base functions that could escape the limits, with those of the two below. */
void cleave_sandbox_register(lua_State *state);
/* sandbox_coroutine.c: pcall, xpcall and coroutines. */
void cleave_sandbox_register_coroutines(lua_State *state);
/* sandbox_list.c: pairs, next, sort and what has many results. */
void cleave_sandbox_register_lists(lua_State *state);
/* function_info.c: parameters and lines of a function. */
void cleave_function_info_register(lua_State *state);
/* include.c: files that rule files include. */
void cleave_include_register(lua_State *state);
/* text_match.c: find, match, gmatch and gsub with a bounded number of steps. */
void cleave_text_match_register(lua_State *state);

/* " (did you mean 'float32'?)" for an unknown dtype, or "". */
const char *cleave_host_dtype_hint(const char *name, char *buffer, size_t size);

/* Name of an attribute kind for messages: "list of integers". */
const char *cleave_host_kind_name(cleave_attribute_kind_t kind);

#endif /* CLEAVE_SCRIPT_HOST_H */
