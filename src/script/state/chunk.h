// SPDX-License-Identifier: Apache-2.0
/* Pieces of Lua that somebody types at a prompt: expressions, statements, and what is not complete yet. */
#ifndef CLEAVE_SCRIPT_STATE_CHUNK_H
#define CLEAVE_SCRIPT_STATE_CHUNK_H

#include "script/state/script.h"

typedef struct cleave_chunk {
  const char *text; /* ends with a zero byte, which length does not count */
  size_t length;
} cleave_chunk_t;

/* Compiles the chunk, as an expression if it is one, and pushes the function; false: more lines are needed,
 * nothing is pushed. Raises an error if the text is neither. */
bool cleave_chunk_load(lua_State *state, const cleave_chunk_t *chunk);

/* Runs the function that cleave_chunk_load pushed last; what it returns goes to the function `show` at this
 * index, if there is anything. The stack is that of before. */
void cleave_chunk_run(lua_State *state, int show);

/* An error of a call of the script that ran the chunk, in the words of a prompt: "line 2: text", or the text
 * alone if the chunk has one line; "interrupted" if somebody ended the script. Returns the error's status. */
cleave_status_t cleave_chunk_error(const cleave_script_t *script, const cleave_chunk_t *chunk,
                                   const cleave_error_t *inner, cleave_error_t *error);

#endif /* CLEAVE_SCRIPT_STATE_CHUNK_H */
