// SPDX-License-Identifier: Apache-2.0
/* The built-in Lua sources: lua/cleave/ and the shipped rules/. The table is written by src/embed when cleave
 * is built. Beside the text it holds compiled code, so that no start of a program parses them. */
#ifndef CLEAVE_SCRIPT_STATE_EMBEDDED_H
#define CLEAVE_SCRIPT_STATE_EMBEDDED_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>

/* This comes before the text of every script, on its first line. A script's `return ruleset { ... }` would be
 * a tail call, whose line is unknown to messages; with a variable to be closed it is an ordinary call. */
#define CLEAVE_SCRIPT_HEAD "local _ <close> = nil "

typedef struct cleave_embedded_file {
  const char *name; /* below the project's root: "rules/onednn.lua" */
  const char *text; /* as in the file; ends in NUL */
  size_t length;
  const char *code; /* of the text as the chunk "@" name, with its line numbers; rules with the head */
  size_t code_length;
} cleave_embedded_file_t;

/* Ends in an entry with a NULL name. */
extern const cleave_embedded_file_t cleave_embedded_files[];
/* lua_ident of the Lua that made the code. */
extern const char cleave_embedded_lua[];

/* The file of that name, or NULL. */
const cleave_embedded_file_t *cleave_embedded_find(const char *name);

/* Pushes the file's code as a function if the Lua of this process is the release that made it; otherwise
 * pushes nothing and returns false: the text is to be parsed. Raises if memory is short. */
bool cleave_embedded_push_code(lua_State *state, const cleave_embedded_file_t *file);

#endif /* CLEAVE_SCRIPT_STATE_EMBEDDED_H */
