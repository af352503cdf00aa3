// SPDX-License-Identifier: Apache-2.0
/*
 * Entries of the registry, and the table of functions by which each is entered, started and ended: one for
 * code in this process, linked in or loaded (registry_entry.c), one for isolated libraries (registry_load.c).
 * All under the lock of the context.
 */
#ifndef CLEAVE_BACKEND_REGISTRY_REGISTRY_ENTRY_H
#define CLEAVE_BACKEND_REGISTRY_REGISTRY_ENTRY_H

#include <pthread.h>

#include "backend/isolate/isolate.h"
#include "backend/library/library.h"
#include "backend/registry/context.h"
#include "backend/registry/extensions.h"
#include "backend/registry/registry.h"
#include "base/containers/array.h"
#include "base/status.h"
#include "partition/pattern/named_rules.h"
#include "partition/rewrite/editor.h"

typedef struct cleave_registry_entry cleave_registry_entry_t;

typedef struct cleave_registry_functions {
  /* The struct that the backend filled in; NULL: it refuses, and `message` says why. */
  const cleave_backend_t *(*enter)(cleave_registry_entry_t *entry, cleave_message_t *message);
  /* Initialises what was entered. */
  cleave_status_t (*initialise)(cleave_registry_entry_t *entry, const cleave_host_t *host,
                                cleave_message_t *message);
  cleave_digest_t (*digest)(const cleave_registry_entry_t *entry); /* of the code */
  void (*end)(cleave_registry_entry_t *entry);                     /* frees the entry, too */
} cleave_registry_functions_t;

typedef enum cleave_registry_state {
  CLEAVE_ENTRY_NEW, /* not asked yet */
  CLEAVE_ENTRY_READY,
  CLEAVE_ENTRY_REFUSED /* for the reason in `refusal` */
} cleave_registry_state_t;

struct cleave_registry_entry {
  const char *name;
  const cleave_registry_functions_t *functions;
  cleave_backend_entry_t enter; /* of code in this process */
  cleave_registry_state_t state;
  cleave_backend_handle_t handle;
  cleave_backend_t table; /* a copy, with NULL for what a library does not know */
  atomic_uint users;
  atomic_uint_least64_t settings;
  cleave_error_t refusal;
  cleave_library_t library;        /* of a loaded one */
  cleave_extensions_t *extensions; /* what it adds to cleave; NULL: nothing */
  cleave_digest_t digest;          /* of the code, if has_digest */
  bool has_digest;
  char text[64];             /* `name` of a loaded one */
  cleave_isolate_t *isolate; /* of one in a process of its own: owned */
  cleave_context_t *context; /* NULL: the process's own */
};

/* For code in this process. */
extern const cleave_registry_functions_t cleave_registry_local;

/* The entry of this name, or NULL. */
cleave_registry_entry_t *cleave_registry_find_entry(const cleave_context_t *context, const char *name);

/* A name that a backend may have. */
bool cleave_registry_is_name(const char *name);

/* Asks for the struct of the backend and copies it. An entry without a name takes the library's. `place` is
 * for messages. */
CLEAVE_STATUS cleave_registry_enter(cleave_registry_entry_t *entry, const char *place, cleave_error_t *error);
/* Initialises what was entered: it is ready then. */
CLEAVE_STATUS cleave_registry_initialise(cleave_context_t *context, cleave_registry_entry_t *entry,
                                         const char *place, cleave_error_t *error);
/* Both, for a new entry; the outcome stays in the entry, unless memory was short. */
void cleave_registry_start(cleave_context_t *context, cleave_registry_entry_t *entry);

/* Enters what is linked in, once; if memory is short, none of it. */
cleave_status_t cleave_registry_enter_linked(cleave_context_t *context, cleave_error_t *error);

/* cleave_registry_load_isolated under the lock. */
CLEAVE_STATUS cleave_registry_load_entry(cleave_context_t *context, const char *path, const char *name,
                                         const cleave_isolation_options_t *options, cleave_error_t *error);
/* Loads what the folders of the context hold, once. */
void cleave_registry_search(cleave_context_t *context);

/* library_rules.c: Partitioners and passes of loaded libraries as rules. */

/* Checks what a library brings and adds it, all or nothing. */
CLEAVE_STATUS cleave_library_rules_take(const cleave_backend_handle_t *library, cleave_error_t *error);
void cleave_library_rules_leave(const cleave_backend_handle_t *library);

/* Asks a backend that has `backward` for the gradients of a region. CLEAVE_ERROR_UNSUPPORTED, with `reason`
 * alone: it has none of this region. */
CLEAVE_MUST_USE cleave_status_t cleave_library_backward(const cleave_backend_handle_t *library,
                                                        cleave_editor_t *editor,
                                                        cleave_backward_request_t *request,
                                                        cleave_message_t *reason, cleave_error_t *error);

/* ---- shared by the files that bind ---- */

/* The library and the definition that a named rule stands for. */
typedef struct cleave_library_rule {
  const cleave_backend_handle_t *library; /* retained while in use */
  const cleave_custom_partitioner_t *partitioner;
  const cleave_custom_pass_t *pass;
} cleave_library_rule_t;

/* Looks it up again, and retains the library. */
CLEAVE_STATUS cleave_library_rule_enter(cleave_rule_kind_t kind, const cleave_named_rule_use_t *use,
                                        cleave_library_rule_t *out_rule, cleave_error_t *error);
void cleave_library_rule_leave(const cleave_library_rule_t *rule);

void cleave_library_partitioner_bind(const cleave_named_rule_t *named, cleave_rule_t *rule);
void cleave_library_pass_bind(const cleave_named_rule_t *named, cleave_rule_t *rule);

/* "partitioner 'x' of library 'y': <function>: <message>" as an error, with a status that a rule may have. */
cleave_status_t cleave_library_rule_fail(const cleave_library_rule_t *rule,
                                         const cleave_named_rule_use_t *use, const char *function,
                                         cleave_status_t status, cleave_message_t *message,
                                         cleave_error_t *error);

#endif /* CLEAVE_BACKEND_REGISTRY_REGISTRY_ENTRY_H */
