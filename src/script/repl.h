/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sandbox of rule files at a prompt, with a graph in hand: one interpreter that runs chunk after chunk.
 * What a chunk assigns without `local` stays for the next. A chunk that fails, runs away or is interrupted
 * ends by itself; the session goes on. One thread at a time.
 */
#ifndef CLEAVE_SCRIPT_REPL_H
#define CLEAVE_SCRIPT_REPL_H

#include <stdatomic.h>

#include "base/text.h"
#include "graph/graph.h"

#define CLEAVE_REPL_BUDGET 2000u /* milliseconds for one chunk, without what the services take */

/* What a prompt needs from above. Texts are the caller's (cleave_text_free). Members may be NULL: the word is
 * then an error. */
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
CLEAVE_MUST_USE cleave_status_t cleave_repl_create(const cleave_graph_t *graph,
                                                   const cleave_repl_services_t *services,
                                                   cleave_repl_t **out_repl, cleave_error_t *error);
void cleave_repl_destroy(cleave_repl_t *repl);

/* Runs a chunk, an expression or statements; what it prints and the values of an expression are appended to
 * `output`, in bounded size. *out_incomplete: it is the beginning of a chunk, nothing ran. An error's message
 * says the line where the chunk has more than one. */
CLEAVE_MUST_USE cleave_status_t cleave_repl_run(cleave_repl_t *repl, const char *text, size_t length,
                                                bool *out_incomplete, cleave_text_t *output,
                                                cleave_error_t *error);

/* Ends the chunk that runs, as if its budget were spent. For signal handlers. */
void cleave_repl_interrupt(cleave_repl_t *repl);

/* Is set by that until the next chunk runs: for services that take long. */
const atomic_bool *cleave_repl_interrupted(const cleave_repl_t *repl);

/* What may stand in place of the word that a line ends with: whole words, one a line, in order; "" for none.
 * *out_start: where that word begins. */
CLEAVE_MUST_USE cleave_status_t cleave_repl_complete(cleave_repl_t *repl, const char *line, size_t length,
                                                     size_t *out_start, cleave_text_t *output,
                                                     cleave_error_t *error);

#endif /* CLEAVE_SCRIPT_REPL_H */
