// SPDX-License-Identifier: Apache-2.0
// Backends of a context in the embedding API: listed, loaded, isolated, described.
#include <stdio.h>

#include "backend/isolate/isolate.h"
#include "backend/registry/registry.h"
#include "backend/registry/registry_entry.h"
#include "base/sized.h"

uint32_t cleave_backend_count(cleave_context_t *context) {
  return cleave_registry_count(context);
}

const char *cleave_backend_name(cleave_context_t *context, uint32_t index) {
  return cleave_registry_name(context, index);
}

cleave_status_t cleave_backend_load(cleave_context_t *context, const char *path, const char *name,
                                    cleave_error_t *error) {
  return cleave_registry_load(context, path, name, error);
}

cleave_status_t cleave_backend_unload(cleave_context_t *context, const char *name, cleave_error_t *error) {
  return cleave_registry_unload(context, name, error);
}

static const char *text_or_nothing(const char *text) {
  return text == NULL ? "" : text;
}

cleave_status_t cleave_backend_describe(cleave_context_t *context, uint32_t index,
                                        cleave_backend_info_t *out_info, cleave_error_t *error) {
  uint32_t count = cleave_registry_count(context);
  CLEAVE_TRY(CLEAVE_SIZED_CHECK(cleave_backend_info_t, out_info, error));
  cleave_backend_info_t info = {.version = "",
                                .description = "",
                                .name = cleave_registry_name(context, index),
                                .path = cleave_registry_path(context, index)};
  if (index >= count) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "backend %u: there are %u", (unsigned)index,
                            (unsigned)count);
  }
  cleave_error_t refusal = CLEAVE_ERROR_INIT;
  const cleave_backend_handle_t *handle = NULL;
  if (cleave_registry_find(context, info.name, &handle, &refusal) != CLEAVE_OK) {
    (void)snprintf(info.reason, sizeof info.reason, "%.255s", refusal.message);
  } else {
    const cleave_backend_t *backend = handle->backend;
    info.is_ready = true;
    info.version = text_or_nothing(backend->version);
    info.description = text_or_nothing(backend->description);
    if (backend->devices != NULL && backend->devices->count != NULL) {
      info.device_count = backend->devices->count(handle->state);
    }
  }
  CLEAVE_SIZED_OUT(cleave_backend_info_t, &info, out_info);
  return CLEAVE_OK;
}

cleave_status_t cleave_backend_isolate(cleave_context_t *context, const char *name,
                                       const cleave_isolation_options_t *options, cleave_error_t *error) {
  bool is_library = false;
  cleave_isolation_options_t own = {.size = sizeof own};
  CLEAVE_TRY(CLEAVE_SIZED_IN(cleave_isolation_options_t, options, &own, error));
  if (cleave_registry_holds(context, name, &is_library)) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            is_library ? "backend '%s' is loaded already: isolate it before"
                                       : "backend '%s' is linked in: it cannot be isolated",
                            name);
  }
  return cleave_isolation_policy_set(context, name, &own, error);
}

cleave_status_t cleave_backend_load_isolated(cleave_context_t *context, const char *path, const char *name,
                                             const cleave_isolation_options_t *options,
                                             cleave_error_t *error) {
  cleave_isolation_options_t own = {.size = sizeof own};
  CLEAVE_TRY(CLEAVE_SIZED_IN(cleave_isolation_options_t, options, &own, error));
  return cleave_registry_load_isolated(context, path, name, &own, error);
}

cleave_status_t cleave_backend_isolation(cleave_context_t *context, const char *name,
                                         cleave_isolation_t *out_isolation, cleave_error_t *error) {
  const cleave_backend_handle_t *handle = NULL;
  cleave_isolation_t isolation = {.process = -1};
  CLEAVE_TRY(CLEAVE_SIZED_CHECK(cleave_isolation_t, out_isolation, error));
  CLEAVE_TRY(cleave_registry_find(context, name, &handle, error));
  if (handle->isolate != NULL) {
    cleave_isolate_describe(handle->isolate, &isolation);
  }
  CLEAVE_SIZED_OUT(cleave_isolation_t, &isolation, out_isolation);
  return CLEAVE_OK;
}
