// SPDX-License-Identifier: Apache-2.0
/* Lines for a prompt: edited, with history and completion, if standard input is a terminal and libedit was
 * found when this was built; plain lines otherwise. */
#ifndef CLEAVE_CLI_COMMON_REPL_INPUT_H
#define CLEAVE_CLI_COMMON_REPL_INPUT_H

#include "base/text.h"

/* The interpreter behind a prompt. */
typedef struct cleave_repl_target {
  void *context;
  /* Runs what was typed so far, and prints; true: the beginning of a chunk, nothing was run. */
  bool (*run)(void *context, const char *chunk, size_t length);
  /* Ends the chunk at work, as Ctrl-C asks. For signal handlers. */
  void (*interrupt)(void *context);
  /* Words that the last word of a line may become, one per line, and where that word begins. */
  cleave_status_t (*complete)(void *context, const char *line, size_t length, size_t *out_start,
                              cleave_text_t *words, cleave_error_t *error);
} cleave_repl_target_t;

bool cleave_repl_input_is_terminal(void);

/* Reads standard input to its end, chunk after chunk. The target must outlive the process's next SIGINT. */
CLEAVE_STATUS cleave_repl_input_run(const cleave_repl_target_t *target, cleave_error_t *error);

#endif /* CLEAVE_CLI_COMMON_REPL_INPUT_H */
