// SPDX-License-Identifier: Apache-2.0
// What a backend hands over is looked at here: the struct that it is, and why it refuses.
#include <string.h>

#include "backend/registry/registry.h"

enum { MAX_OPTION_KEYS = 1024 };

cleave_status_t cleave_registry_fail(cleave_error_t *error, cleave_status_t status, const char *place,
                                     const cleave_message_t *message) {
  if (status <= CLEAVE_OK || status > CLEAVE_ERROR_INTERNAL) {
    status = CLEAVE_ERROR_BACKEND;
  }
  const char *text = message->text[0] != '\0'               ? message->text
                     : status == CLEAVE_ERROR_OUT_OF_MEMORY ? cleave_status_text(status)
                                                            : "no reason given";
  return cleave_error_set(error, status, "%s: %.*s", place, (int)sizeof message->text - 1, text);
}

/* Fields of libraries that are too old for them are not looked at. */
static cleave_status_t check_option_keys(const cleave_backend_t *backend, cleave_error_t *error) {
  if (backend->size < offsetof(cleave_backend_t, option_key_count) + sizeof backend->option_key_count) {
    return CLEAVE_OK;
  }
  uint32_t count = backend->option_key_count;
  if (count > MAX_OPTION_KEYS || (count > 0 && backend->option_keys == NULL)) {
    return cleave_error_set(error, CLEAVE_ERROR_BACKEND,
                            "backend '%s': %u key%s of options: expected a list of at most %d", backend->name,
                            (unsigned)count, CLEAVE_PLURAL(count), MAX_OPTION_KEYS);
  }
  for (uint32_t k = 0; k < count; k++) {
    if (backend->option_keys[k] == NULL || backend->option_keys[k][0] == '\0') {
      return cleave_error_set(error, CLEAVE_ERROR_BACKEND, "backend '%s': key %u of its options is missing",
                              backend->name, (unsigned)k);
    }
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_registry_check(const cleave_backend_t *backend, const char *name,
                                      cleave_error_t *error) {
  if (backend->size < offsetof(cleave_backend_t, name)) {
    return cleave_error_set(error, CLEAVE_ERROR_BACKEND, "backend '%s': struct of %zu byte%s, too small",
                            name, backend->size, CLEAVE_PLURAL(backend->size));
  }
  if (backend->abi_major != CLEAVE_BACKEND_ABI_MAJOR) {
    return cleave_error_set(error, CLEAVE_ERROR_BACKEND,
                            "backend '%s': made for interface version %u, this is version %u", name,
                            (unsigned)backend->abi_major, CLEAVE_BACKEND_ABI_MAJOR);
  }
  if (backend->size < CLEAVE_BACKEND_SIZE_REQUIRED) {
    return cleave_error_set(error, CLEAVE_ERROR_BACKEND,
                            "backend '%s': struct of %zu byte%s, version %u.0 has %zu", name, backend->size,
                            CLEAVE_PLURAL(backend->size), CLEAVE_BACKEND_ABI_MAJOR,
                            (size_t)CLEAVE_BACKEND_SIZE_REQUIRED);
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
  return check_option_keys(backend, error);
}
