// SPDX-License-Identifier: Apache-2.0
/*
 * The sandbox of rule files at a prompt, with a graph in hand: one interpreter that runs chunk after chunk.
 * Globals that a chunk assigns are kept for the next one. If a chunk fails, exceeds its budget or is
 * interrupted, only this chunk ends; the session goes on. One thread at a time.
 */
#ifndef CLEAVE_SCRIPT_REPL_H
#define CLEAVE_SCRIPT_REPL_H

#include <stdatomic.h>

#include "base/text.h"
#include "graph/graph.h"

#define CLEAVE_REPL_BUDGET 2000u /* milliseconds for one chunk, without the time of services */

/* Functions of higher layers for the prompt. The caller owns their strings (cleave_text_free). If a member is
 * NULL, its word is an error. */
typedef struct cleave_repl_services {
  void *context;
  cleave_status_t (*plan)(void *context, char **out_text, cleave_error_t *error);
  cleave_status_t (*rules)(void *context, char **out_text, cleave_error_t *error);
  /* `node` as for "cleave why --node", or NULL; `rule` a rule's name, or NULL. */
  cleave_status_t (*why)(void *context, const char *node, const char *rule, char **out_text,
                         cleave_error_t *error);
} cleave_repl_services_t;

typedef struct cleave_repl cleave_repl_t;

/* The graph must outlive the session and not change. `services` is copied. */
CLEAVE_STATUS cleave_repl_create(const cleave_graph_t *graph, const cleave_repl_services_t *services,
                                 cleave_repl_t **out_repl, cleave_error_t *error);
void cleave_repl_destroy(cleave_repl_t *repl);

/* Runs a chunk, an expression or statements; what it prints and the values of an expression are appended to
 * `output`, in bounded size. *out_incomplete: it is the beginning of a chunk, and nothing was run. If the
 * chunk has more than one line, an error's message names the line. */
CLEAVE_STATUS cleave_repl_run(cleave_repl_t *repl, const char *text, size_t length, bool *out_incomplete,
                              cleave_text_t *output, cleave_error_t *error);

/* Ends the running chunk, as if its budget were spent. For signal handlers. */
void cleave_repl_interrupt(cleave_repl_t *repl);

/* The flag that cleave_repl_interrupt sets until the next chunk runs: for slow services. */
const atomic_bool *cleave_repl_interrupted(const cleave_repl_t *repl);

/* Completions of the last word of a line: whole words in order, one per line; "" if there are none.
 * *out_start: where the last word begins. */
CLEAVE_STATUS cleave_repl_complete(cleave_repl_t *repl, const char *line, size_t length, size_t *out_start,
                                   cleave_text_t *output, cleave_error_t *error);

#endif /* CLEAVE_SCRIPT_REPL_H */
