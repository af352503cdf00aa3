// SPDX-License-Identifier: Apache-2.0
/* The built-in modules, compiled once per process. Every load of a rule file makes an interpreter of its own,
 * and would otherwise spend most of its time on parsing them. */
#ifndef CLEAVE_SCRIPT_STATE_MODULE_CODE_H
#define CLEAVE_SCRIPT_STATE_MODULE_CODE_H

#include <lua.h>

#include "script/state/embedded.h"

/* Pushes the file's chunk, which Lua calls `chunk`; raises if it cannot be compiled. Messages have the line
 * numbers of the source. May be called for any number of interpreters on any threads. */
void cleave_module_code_push(lua_State *state, const cleave_embedded_file_t *file, const char *chunk);

#endif /* CLEAVE_SCRIPT_STATE_MODULE_CODE_H */
