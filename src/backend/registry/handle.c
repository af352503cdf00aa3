// SPDX-License-Identifier: Apache-2.0
// Handles of backends that are in use: retained, released, and restarted if the process of an isolated
// library is lost.
#include "backend/isolate/isolate.h"
#include "backend/registry/registry.h"
#include "base/hash.h"

void cleave_registry_retain(const cleave_backend_handle_t *handle) {
  (void)atomic_fetch_add(handle->users, 1);
}

void cleave_registry_release(const cleave_backend_handle_t *handle) {
  (void)atomic_fetch_sub(handle->users, 1);
}

cleave_status_t cleave_registry_restart(const cleave_backend_handle_t *handle, cleave_error_t *error) {
  if (handle->isolate == NULL || !cleave_isolate_is_lost(handle->isolate)) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(cleave_isolate_restart(handle->isolate, error));
  (void)atomic_fetch_add(handle->settings, CLEAVE_HASH_SEED);
  return CLEAVE_OK;
}

bool cleave_registry_is_lost(const cleave_backend_handle_t *handle, bool *out_falls_back) {
  bool is_lost = handle->isolate != NULL && cleave_isolate_is_lost(handle->isolate);
  if (out_falls_back != NULL) {
    *out_falls_back = is_lost && cleave_isolate_falls_back(handle->isolate);
  }
  return is_lost;
}
