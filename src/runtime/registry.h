/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The backends of this process. Linked-in ones come from the generated linked_backends.inc; each is asked
 * for its struct and initialised when it is first looked up, and stays until the process ends. An entry is
 * a name and an entry function: whatever else brings backends in only adds entries.
 */
#ifndef CLEAVE_RUNTIME_REGISTRY_H
#define CLEAVE_RUNTIME_REGISTRY_H

#include "base/status.h"

/* An initialised backend: `state` goes into the calls of `backend`. */
typedef struct cleave_backend_handle {
  const cleave_backend_t *backend;
  void *state;
} cleave_backend_handle_t;

/* The backend of this name. CLEAVE_ERROR_UNSUPPORTED with the list of names where there is none;
 * CLEAVE_ERROR_BACKEND with the backend's own reason where it refuses to start (it is not asked again).
 * Thread-safe. The handle stays valid until the process ends. */
CLEAVE_MUST_USE cleave_status_t cleave_registry_find(const char *name,
                                                     const cleave_backend_handle_t **out_handle,
                                                     cleave_error_t *error);

/* Names of all backends, whether they start or not, in the order of the registry. */
uint32_t cleave_registry_count(void);
const char *cleave_registry_name(uint32_t index);

/* A backend struct fits this program: version, size, and the functions that every backend has. */
CLEAVE_MUST_USE cleave_status_t cleave_registry_check(const cleave_backend_t *backend, const char *name,
                                                      cleave_error_t *error);

/* A backend's status and message as an error: "<place>: <message>". Refusals that are no statuses of
 * cleave become CLEAVE_ERROR_BACKEND. */
cleave_status_t cleave_registry_fail(cleave_error_t *error, cleave_status_t status, const char *place,
                                     const cleave_message_t *message);

#endif /* CLEAVE_RUNTIME_REGISTRY_H */
