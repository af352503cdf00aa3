// SPDX-License-Identifier: Apache-2.0
// What the embedding API says about isolated libraries: which ones are to be, and what became of one.
#include "backend/registry/context.h"

#include <stdio.h>
#include <string.h>

#include "backend/isolate/isolate.h"
#include "base/hash.h"

static cleave_isolation_options_t copy_options(const cleave_isolation_options_t *options) {
  cleave_isolation_options_t copy = {.size = sizeof copy};
  if (options != NULL) {
    memcpy(&copy, options, options->size < sizeof copy ? options->size : sizeof copy);
    copy.size = sizeof copy;
  }
  return copy;
}

/* The last one of a name counts. */
static cleave_status_t add(cleave_isolation_wishes_t *wishes, const char *name,
                           const cleave_isolation_options_t *options, cleave_error_t *error) {
  cleave_isolation_wish_t wish = {.options = copy_options(options)};
  (void)snprintf(wish.name, sizeof wish.name, "%s", name);
  for (size_t k = 0; k < wishes->list.count; k++) {
    if (strcmp(wishes->list.items[k].name, wish.name) == 0) {
      wishes->list.items[k] = wish;
      return CLEAVE_OK;
    }
  }
  CLEAVE_ARRAY_PUSH(&wishes->list, wish, error);
  return CLEAVE_OK;
}

bool cleave_isolation_find(cleave_context_t *context, const char *name,
                           cleave_isolation_options_t *out_options) {
  cleave_isolation_wishes_t *wishes = &cleave_context_get(context)->isolation;
  bool found = false;
  (void)pthread_mutex_lock(&wishes->lock);
  for (size_t k = 0; k < wishes->list.count && !found; k++) {
    found = name == NULL || strcmp(wishes->list.items[k].name, name) == 0;
    if (found) {
      *out_options = wishes->list.items[k].options;
    }
  }
  (void)pthread_mutex_unlock(&wishes->lock);
  return found;
}

void cleave_isolation_end(cleave_context_t *context) {
  cleave_array_free(&context->isolation.list);
  (void)pthread_mutex_destroy(&context->isolation.lock);
}

cleave_status_t cleave_backend_isolate(cleave_context_t *context, const char *name,
                                       const cleave_isolation_options_t *options, cleave_error_t *error) {
  cleave_isolation_wishes_t *wishes = &cleave_context_get(context)->isolation;
  bool is_library = false;
  if (cleave_registry_holds(context, name, &is_library)) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            is_library ? "backend '%s' is loaded already: isolate it before"
                                       : "backend '%s' is linked in: it cannot be isolated",
                            name);
  }
  if (name[0] == '\0' || strlen(name) >= sizeof((cleave_isolation_wish_t *)0)->name) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "'%.80s' is no name for a backend", name);
  }
  (void)pthread_mutex_lock(&wishes->lock);
  cleave_status_t status = add(wishes, name, options, error);
  (void)pthread_mutex_unlock(&wishes->lock);
  return status;
}

cleave_status_t cleave_backend_load_isolated(cleave_context_t *context, const char *path, const char *name,
                                             const cleave_isolation_options_t *options,
                                             cleave_error_t *error) {
  cleave_isolation_options_t copy = copy_options(options);
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
