// SPDX-License-Identifier: Apache-2.0
// What a backend hands over is looked at here: the struct that it is, and why it refuses.
#include <stdio.h>
#include <string.h>

#include "backend/registry.h"

cleave_status_t cleave_registry_fail(cleave_error_t *error, cleave_status_t status, const char *place,
                                     const cleave_message_t *message) {
  if (status <= CLEAVE_OK || status > CLEAVE_ERROR_INTERNAL) {
    status = CLEAVE_ERROR_BACKEND;
  }
  const char *text = message->text[0] != '\0' ? message->text : "no reason given";
  return cleave_error_set(error, status, "%s: %.*s", place, (int)sizeof message->text - 1, text);
}

cleave_status_t cleave_registry_check(const cleave_backend_t *backend, const char *name,
                                      cleave_error_t *error) {
  if (backend->size < offsetof(cleave_backend_t, name)) {
    return cleave_error_set(error, CLEAVE_ERROR_BACKEND, "backend '%s': struct of %zu bytes, too small", name,
                            backend->size);
  }
  if (backend->abi_major != CLEAVE_BACKEND_ABI_MAJOR) {
    return cleave_error_set(error, CLEAVE_ERROR_BACKEND,
                            "backend '%s': made for interface version %u, this is version %u", name,
                            (unsigned)backend->abi_major, CLEAVE_BACKEND_ABI_MAJOR);
  }
  if (backend->size < CLEAVE_BACKEND_SIZE_1_0) {
    return cleave_error_set(error, CLEAVE_ERROR_BACKEND,
                            "backend '%s': struct of %zu bytes, version %u.0 has %zu", name, backend->size,
                            CLEAVE_BACKEND_ABI_MAJOR, (size_t)CLEAVE_BACKEND_SIZE_1_0);
  }
  if (backend->name == NULL || strcmp(backend->name, name) != 0) {
    return cleave_error_set(error, CLEAVE_ERROR_BACKEND, "backend '%s': calls itself '%s'", name,
                            backend->name == NULL ? "" : backend->name);
  }
  const char *missing = backend->initialise == NULL ? "initialise"
                        : backend->destroy == NULL  ? "destroy"
                        : backend->supports == NULL ? "supports"
                        : backend->compile == NULL  ? "compile"
                        : backend->unload == NULL   ? "unload"
                        : backend->info == NULL     ? "info"
                        : backend->run == NULL      ? "run"
                                                    : NULL;
  if (missing != NULL) {
    return cleave_error_set(error, CLEAVE_ERROR_BACKEND, "backend '%s': function '%s' is missing", name,
                            missing);
  }
  return CLEAVE_OK;
}
