// SPDX-License-Identifier: Apache-2.0
/* Lines for a prompt: edited, with history and completion, if standard input is a terminal and libedit was
 * found when this was built; plain lines otherwise. */
#ifndef CLEAVE_CLI_COMMON_REPL_INPUT_H
#define CLEAVE_CLI_COMMON_REPL_INPUT_H

#include "script/repl.h"

/* Starts on standard input; `repl` completes words. */
void cleave_repl_input_begin(cleave_repl_t *repl);

typedef enum cleave_repl_line {
  CLEAVE_REPL_LINE_READ,
  CLEAVE_REPL_LINE_DROPPED, /* Ctrl-C: what was typed so far is void */
  CLEAVE_REPL_LINE_END
} cleave_repl_line_t;

/* The next line without its end; the caller frees it with free(). Prompts only on a terminal. */
cleave_repl_line_t cleave_repl_input_read(bool continues, char **out_line);

/* Keeps a chunk for the arrow keys. */
void cleave_repl_input_remember(const char *chunk);

/* While a chunk runs, Ctrl-C ends it. */
void cleave_repl_input_guard(bool running);

bool cleave_repl_input_is_terminal(void);

#endif /* CLEAVE_CLI_COMMON_REPL_INPUT_H */
