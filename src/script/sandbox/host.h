// SPDX-License-Identifier: Apache-2.0
/*
 * The C functions that the modules in lua/cleave get as `host`. Scripts never see this table. Each function
 * fills the table on top of the stack; host.c calls the others.
 */
#ifndef CLEAVE_SCRIPT_SANDBOX_HOST_H
#define CLEAVE_SCRIPT_SANDBOX_HOST_H

#include "script/state/script.h"

/* host.c: lookups in the operator table, lines, hints. */
void cleave_host_register(lua_State *state);
/* sandbox.c: replacements for base functions that could escape the limits; includes coroutines and lists. */
void cleave_sandbox_register(lua_State *state);
/* sandbox_late.c: keeps the script's own metatable, on top of the stack, in its copy below it; pops it. */
void cleave_sandbox_set_original(lua_State *state);
/* Pushes the script's own metatable of the copy on top of the stack, nil for a metatable of the host's.
 * Returns its type. */
int cleave_sandbox_push_original(lua_State *state);
/* Pushes the function for an event that is not in a metatable when the metatable is set, or nil. */
void cleave_sandbox_push_late(lua_State *state, const char *name);
/* sandbox_coroutine.c: pcall, xpcall and coroutines. */
void cleave_sandbox_register_coroutines(lua_State *state);
/* sandbox_list.c: pairs, next, sort and functions with many results. */
void cleave_sandbox_register_lists(lua_State *state);
/* function_info.c: parameters and lines of a function. */
void cleave_function_info_register(lua_State *state);
/* include.c: files that rule files include. */
void cleave_include_register(lua_State *state);
/* print.c: print, to the log. */
void cleave_print_register(lua_State *state);
/* text_match.c: find, match, gmatch and gsub with a bounded number of steps. */
void cleave_text_match_register(lua_State *state);

enum { CLEAVE_HOST_DTYPE_HINT = 512 }; /* room for what follows */
/* " (did you mean 'float32'?); there are float32, uint8, ..." for an unknown dtype. */
const char *cleave_host_dtype_hint(const char *name, char *buffer, size_t size);

/* Name of an attribute kind for messages: "list of integers". */
const char *cleave_host_kind_name(cleave_attribute_kind_t kind);

#endif /* CLEAVE_SCRIPT_SANDBOX_HOST_H */
