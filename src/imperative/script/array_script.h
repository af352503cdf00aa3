// SPDX-License-Identifier: Apache-2.0
/*
 * Scripts that compute with arrays: `local y = nd.Conv(x, w, { pads = { 1, 1, 1, 1 } })`. They are programs
 * of whoever runs them, not rule files: they have all of Lua's libraries, files and other programs included,
 * and no limit of time; Lua's own values may take 256 MiB, arrays what there is. At a prompt, such a program
 * runs piece by piece.
 */
#ifndef CLEAVE_IMPERATIVE_SCRIPT_ARRAY_SCRIPT_H
#define CLEAVE_IMPERATIVE_SCRIPT_ARRAY_SCRIPT_H

#include "base/status.h"
#include "base/text.h"
#include "cleave/array.h"

typedef struct cleave_array_script {
  cleave_context_t *context;
  const char *path;             /* of a prompt: its name in messages */
  const char *const *arguments; /* the script's `arg` */
  size_t argument_count;
  const cleave_imperative_options_t *options;
  const cleave_rule_source_t *rules; /* that partition compiled functions */
  size_t rule_count;
} cleave_array_script_t;

/* Runs the script to its end, and waits for its arrays. An error is one line with file and line. */
CLEAVE_STATUS cleave_array_script_run(const cleave_array_script_t *request, cleave_error_t *error);

/* ---- a prompt ---- */

typedef struct cleave_array_prompt cleave_array_prompt_t;

/* `request` and what it points to must outlive the prompt. One thread at a time. */
CLEAVE_STATUS cleave_array_prompt_create(const cleave_array_script_t *request,
                                         cleave_array_prompt_t **out_prompt, cleave_error_t *error);
void cleave_array_prompt_destroy(cleave_array_prompt_t *prompt);

/* Runs an expression, whose values are printed, or statements; globals stay for the next chunk.
 * *out_incomplete: it is the beginning of a chunk, and nothing was run. If the chunk has more than one line,
 * an error's message names the line. */
CLEAVE_STATUS cleave_array_prompt_run(cleave_array_prompt_t *prompt, const char *text, size_t length,
                                      bool *out_incomplete, cleave_error_t *error);

/* Ends the chunk at work at its next instruction of Lua; operators that run already come to their end. For
 * signal handlers. */
void cleave_array_prompt_interrupt(cleave_array_prompt_t *prompt);

/* Completions of the last word of a line: whole words in order, one per line. *out_start: where the word
 * begins. */
CLEAVE_STATUS cleave_array_prompt_complete(cleave_array_prompt_t *prompt, const char *line, size_t length,
                                           size_t *out_start, cleave_text_t *output, cleave_error_t *error);

#endif /* CLEAVE_IMPERATIVE_SCRIPT_ARRAY_SCRIPT_H */
