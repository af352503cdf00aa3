// SPDX-License-Identifier: Apache-2.0
// Backends of a context in the embedding API: listed, loaded, isolated, described.
#include <stdio.h>

#include "backend/isolate/isolate.h"
#include "backend/registry/registry.h"
#include "backend/registry/registry_entry.h"

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
  *out_info = (cleave_backend_info_t){.size = sizeof *out_info, .version = "", .description = ""};
  out_info->name = cleave_registry_name(context, index);
  out_info->path = cleave_registry_path(context, index);
  if (index >= count) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "backend %u: there are %u", (unsigned)index,
                            (unsigned)count);
  }
  cleave_error_t refusal = CLEAVE_ERROR_INIT;
  const cleave_backend_handle_t *handle = NULL;
  if (cleave_registry_find(context, out_info->name, &handle, &refusal) != CLEAVE_OK) {
    (void)snprintf(out_info->reason, sizeof out_info->reason, "%.255s", refusal.message);
    return CLEAVE_OK;
  }
  const cleave_backend_t *backend = handle->backend;
  out_info->is_ready = true;
  out_info->version = text_or_nothing(backend->version);
  out_info->description = text_or_nothing(backend->description);
  if (backend->devices != NULL && backend->devices->count != NULL) {
    out_info->device_count = backend->devices->count(handle->state);
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_backend_isolate(cleave_context_t *context, const char *name,
                                       const cleave_isolation_options_t *options, cleave_error_t *error) {
  bool is_library = false;
  if (cleave_registry_holds(context, name, &is_library)) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            is_library ? "backend '%s' is loaded already: isolate it before"
                                       : "backend '%s' is linked in: it cannot be isolated",
                            name);
  }
  return cleave_isolation_policy_set(context, name, options, error);
}

cleave_status_t cleave_backend_load_isolated(cleave_context_t *context, const char *path, const char *name,
                                             const cleave_isolation_options_t *options,
                                             cleave_error_t *error) {
  cleave_isolation_options_t copy = cleave_isolation_options_copy(options);
  return cleave_registry_load_isolated(context, path, name, &copy, error);
}

cleave_status_t cleave_backend_isolation(cleave_context_t *context, const char *name,
                                         cleave_isolation_t *out_isolation, cleave_error_t *error) {
  const cleave_backend_handle_t *handle = NULL;
  *out_isolation = (cleave_isolation_t){.size = sizeof *out_isolation, .process = -1};
  CLEAVE_TRY(cleave_registry_find(context, name, &handle, error));
  if (handle->isolate != NULL) {
    cleave_isolate_describe(handle->isolate, out_isolation);
  }
  return CLEAVE_OK;
}
