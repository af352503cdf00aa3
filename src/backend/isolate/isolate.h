// SPDX-License-Identifier: Apache-2.0
/*
 * A library that runs in a process of its own, as a backend of this one: its table has the functions that the
 * library has, each of which asks the process. What the library gets are copies: constants and inputs that it
 * cannot write, and outputs and workspace with memory around them that cannot be touched. When the process is
 * lost, every call fails at once with the reason, until the library is loaded again.
 */
#ifndef CLEAVE_BACKEND_ISOLATE_ISOLATE_H
#define CLEAVE_BACKEND_ISOLATE_ISOLATE_H

#include "system/digest.h"
#include "system/log.h"

typedef struct cleave_isolate cleave_isolate_t;

/* Starts a process and opens the library there; `path` and `name` are for messages, `log` outlives it. The
 * table is as the library filled it in, unchecked: the fields that it knows, functions that it lacks NULL. */
CLEAVE_STATUS cleave_isolate_open(const char *path, const char *absolute, const char *name, cleave_log_t *log,
                                  const cleave_isolation_options_t *options, cleave_isolate_t **out_isolate,
                                  cleave_error_t *error);
void cleave_isolate_destroy(cleave_isolate_t *isolate);

/* The table in place of the library's own. It lives as long as `isolate`, which its functions take as their
 * state. Its `initialise` and `destroy` must not be called. */
const cleave_backend_t *cleave_isolate_table(const cleave_isolate_t *isolate);
/* Name for messages from now on. */
void cleave_isolate_rename(cleave_isolate_t *isolate, const char *name);

/* `initialise` of the library; a failure is the library's. */
CLEAVE_STATUS cleave_isolate_initialise(cleave_isolate_t *isolate, cleave_message_t *message);

/* If the process is lost, or belongs to the parent of a fork, starts a new one, opened and initialised;
 * programs of the old one stay lost. */
CLEAVE_STATUS cleave_isolate_restart(cleave_isolate_t *isolate, cleave_error_t *error);

/* The digest of the library's file as it was when it was opened, as cleave_library_digest has it in this
 * process. Zeros if the library has no blobs. */
cleave_digest_t cleave_isolate_digest(const cleave_isolate_t *isolate);

void cleave_isolate_describe(cleave_isolate_t *isolate, cleave_isolation_t *out_description);
bool cleave_isolate_is_lost(cleave_isolate_t *isolate);
bool cleave_isolate_falls_back(const cleave_isolate_t *isolate);

/* The process of a partitioner at work is lost, and so its selectors answer "no": the reason, in `message`.
 * `state` is from `begin` of the definition. */
bool cleave_isolate_partitioner_is_lost(const void *state, cleave_message_t *message);

#endif /* CLEAVE_BACKEND_ISOLATE_ISOLATE_H */
