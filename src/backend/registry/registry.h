// SPDX-License-Identifier: Apache-2.0
/*
 * The backends of a context (NULL: the process's own). Linked-in ones come from the generated
 * linked_backends.inc; libraries are added by cleave_registry_load, and, when a name is not known otherwise
 * or all are listed, from the folders of CLEAVE_BACKEND_PATH (separated by ':') and the folder
 * "cleave/backends" beside the installed library, or those that the context was made with. Each is asked for
 * its struct and initialised when it is first looked up, once in a context.
 */
#ifndef CLEAVE_BACKEND_REGISTRY_REGISTRY_H
#define CLEAVE_BACKEND_REGISTRY_REGISTRY_H

#include <stdatomic.h>

#include "base/status.h"
#include "system/digest.h"

/* An initialised backend: `state` goes into the calls of `backend`. What the library filled in is copied:
 * fields that are younger than the library are NULL. */
typedef struct cleave_backend_handle {
  const cleave_backend_t *backend;
  void *state;
  atomic_uint *users;              /* see cleave_registry_retain */
  atomic_uint_least64_t *settings; /* hash of the settings of cleave_backend_configure; 0: none */
  struct cleave_isolate *isolate;  /* of a library in a process of its own, or NULL */
  cleave_context_t *context;       /* that it is of; NULL: the process's own */
} cleave_backend_handle_t;

/* The backend of this name. CLEAVE_ERROR_UNSUPPORTED with the list of names if there is none;
 * CLEAVE_ERROR_BACKEND with the backend's own reason if it refuses to start (it is not asked again).
 * Thread-safe. The handle stays valid until the backend is unloaded. */
CLEAVE_STATUS cleave_registry_find(cleave_context_t *context, const char *name,
                                   const cleave_backend_handle_t **out_handle, cleave_error_t *error);

/* Whoever keeps something of a backend (a program, memory of a device) retains it meanwhile: it is not
 * unloaded then. Thread-safe. */
void cleave_registry_retain(const cleave_backend_handle_t *handle);
void cleave_registry_release(const cleave_backend_handle_t *handle);

/* The digest of a backend's code as it is loaded (cleave_library_digest). Thread-safe. */
cleave_digest_t cleave_registry_digest(const cleave_backend_handle_t *handle);

/* Loads a library and starts its backend. `name` takes the place of the name that the library gives itself;
 * NULL: keeps it. The same file loaded again under the same name is not an error.
 * CLEAVE_ERROR_INVALID_ARGUMENT if the name is taken; nothing of a library stays that does not load or start.
 */
CLEAVE_STATUS cleave_registry_load(cleave_context_t *context, const char *path, const char *name,
                                   cleave_error_t *error);

/* Loads the library in a process of its own; see cleave_backend_load_isolated. */
CLEAVE_STATUS cleave_registry_load_isolated(cleave_context_t *context, const char *path, const char *name,
                                            const cleave_isolation_options_t *options, cleave_error_t *error);
/* There is a backend of this name; nothing is searched for or started. */
bool cleave_registry_holds(cleave_context_t *context, const char *name, bool *out_is_library);

/* Starts a new process if that of the backend is lost. Programs of the old one stay lost, and sessions
 * that are made from now on share none of them. */
CLEAVE_STATUS cleave_registry_restart(const cleave_backend_handle_t *handle, cleave_error_t *error);

/* The process of the backend is lost: its functions fail. *out_falls_back (may be NULL): `cpu` is to run its
 * regions. */
bool cleave_registry_is_lost(const cleave_backend_handle_t *handle, bool *out_falls_back);

/* Unloads a library. CLEAVE_ERROR_INVALID_ARGUMENT if it is in use, linked in, or not there. Nobody may be
 * partitioning with it meanwhile. */
CLEAVE_STATUS cleave_registry_unload(cleave_context_t *context, const char *name, cleave_error_t *error);

/* Names of all backends, whether they start or not, in the order of the registry. Looks through the folders.
 */
uint32_t cleave_registry_count(cleave_context_t *context);
const char *cleave_registry_name(cleave_context_t *context, uint32_t index);
/* Path of the library, or "" for a backend that is linked in, and beyond the last. */
const char *cleave_registry_path(cleave_context_t *context, uint32_t index);

/* The rule file called `name` ("mirror" or "mirror.lua") that a library brings, one that is loaded or one of
 * the folders: its path, beside the library. False if none does, or if the path is too long. */
bool cleave_registry_find_rules(cleave_context_t *context, const char *name, char *path, size_t size);

/* A backend struct fits this program: version, size, and the functions that every backend has. */
CLEAVE_STATUS cleave_registry_check(const cleave_backend_t *backend, const char *name, cleave_error_t *error);

/* A backend's status and message as an error: "<place>: <message>". Refusals that are not statuses of
 * cleave become CLEAVE_ERROR_BACKEND. */
cleave_status_t cleave_registry_fail(cleave_error_t *error, cleave_status_t status, const char *place,
                                     const cleave_message_t *message);

#endif /* CLEAVE_BACKEND_REGISTRY_REGISTRY_H */
