// SPDX-License-Identifier: Apache-2.0
// Backends by name: those that are linked in, then libraries in the order in which they came. All changes
// happen under the lock.
#include <stdio.h>
#include <string.h>

#include "backend/registry/registry_entry.h"
#include "base/text.h"

/* The context, its registry locked, with the linked-in backends unless memory is short. */
static cleave_context_t *lock(cleave_context_t *context) {
  context = cleave_context_get(context);
  (void)pthread_mutex_lock(&context->lock);
  (void)cleave_registry_enter_linked(context, NULL);
  return context;
}

static void unlock(cleave_context_t *context) {
  (void)pthread_mutex_unlock(&context->lock);
}

/* ---- libraries ---- */

cleave_status_t cleave_registry_load_isolated(cleave_context_t *context, const char *path, const char *name,
                                              const cleave_isolation_options_t *options,
                                              cleave_error_t *error) {
  context = lock(context);
  cleave_status_t status = cleave_registry_load_entry(context, path, name, options, error);
  unlock(context);
  return status;
}

cleave_status_t cleave_registry_load(cleave_context_t *context, const char *path, const char *name,
                                     cleave_error_t *error) {
  return cleave_registry_load_isolated(context, path, name, NULL, error);
}

bool cleave_registry_holds(cleave_context_t *context, const char *name, bool *out_is_library) {
  context = lock(context);
  const cleave_registry_entry_t *entry = cleave_registry_find_entry(context, name);
  *out_is_library = entry != NULL && entry->library.path != NULL;
  unlock(context);
  return entry != NULL;
}

cleave_status_t cleave_registry_unload(cleave_context_t *context, const char *name, cleave_error_t *error) {
  cleave_status_t status = CLEAVE_OK;
  context = lock(context);
  size_t at = 0;
  while (at < context->entries.count && strcmp(context->entries.items[at]->name, name) != 0) {
    at++;
  }
  cleave_registry_entry_t *entry = at < context->entries.count ? context->entries.items[at] : NULL;
  bool is_library = entry != NULL && entry->library.path != NULL;
  unsigned users = is_library ? atomic_load(&entry->users) : 0;
  if (!is_library) {
    status =
        cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "backend '%s' is not a loaded library", name);
  } else if (users > 0) {
    status = cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                              "backend '%s' is in use: %u compiled program%s of it live", name, users,
                              CLEAVE_PLURAL(users));
  } else {
    cleave_registry_entry_t **items = context->entries.items;
    memmove(items + at, items + at + 1, (context->entries.count - at - 1) * sizeof *items);
    context->entries.count--;
    entry->functions->end(entry);
  }
  unlock(context);
  return status;
}

/* ---- looking up ---- */

static cleave_status_t fail_unknown(const cleave_context_t *context, const char *name,
                                    cleave_error_t *error) {
  cleave_text_t list = {0};
  cleave_nearest_t nearest = {0};
  for (size_t k = 0; k < context->entries.count; k++) {
    const char *known = context->entries.items[k]->name;
    cleave_text_format(&list, "%s%s", k == 0 ? "" : ", ", known);
    cleave_nearest_offer(&nearest, name, known);
  }
  const char *meant = cleave_nearest_hint(&nearest);
  bool may_be_library = meant[0] == '\0' && cleave_registry_is_name(name);
  cleave_status_t status = cleave_error_set(
      error, CLEAVE_ERROR_UNSUPPORTED, "backend '%s' is unknown%s; there are: %s%s", name, meant,
      cleave_text_get(&list), may_be_library ? "; if it is a library, it is not loaded" : "");
  cleave_error_hint(error, may_be_library ? CLEAVE_HINT_LOAD : CLEAVE_HINT_NONE);
  cleave_text_deinit(&list);
  return status;
}

static cleave_status_t find(cleave_context_t *context, const char *name,
                            const cleave_backend_handle_t **out_handle, cleave_error_t *error) {
  CLEAVE_TRY(cleave_registry_enter_linked(context, error));
  cleave_registry_entry_t *entry = cleave_registry_find_entry(context, name);
  if (entry == NULL) {
    cleave_registry_search(context);
    entry = cleave_registry_find_entry(context, name);
  }
  if (entry == NULL) {
    return fail_unknown(context, name, error);
  }
  if (entry->state == CLEAVE_ENTRY_NEW) {
    cleave_registry_start(context, entry);
  }
  if (entry->state != CLEAVE_ENTRY_READY) {
    return cleave_error_set(error, entry->refusal.status, "%s", entry->refusal.message);
  }
  *out_handle = &entry->handle;
  return CLEAVE_OK;
}

cleave_status_t cleave_registry_find(cleave_context_t *context, const char *name,
                                     const cleave_backend_handle_t **out_handle, cleave_error_t *error) {
  *out_handle = NULL;
  context = lock(context);
  cleave_status_t status = find(context, name, out_handle, error);
  unlock(context);
  return status;
}

cleave_digest_t cleave_registry_digest(const cleave_backend_handle_t *handle) {
  cleave_context_t *context = lock(handle->context);
  cleave_registry_entry_t *entry = cleave_registry_find_entry(context, handle->backend->name);
  cleave_digest_t digest = {{0}};
  if (entry != NULL && !entry->has_digest) {
    entry->digest = entry->functions->digest(entry);
    entry->has_digest = true;
  }
  digest = entry != NULL ? entry->digest : digest;
  unlock(context);
  return digest;
}

uint32_t cleave_registry_count(cleave_context_t *context) {
  context = lock(context);
  cleave_registry_search(context);
  uint32_t count = (uint32_t)context->entries.count;
  unlock(context);
  return count;
}

const char *cleave_registry_name(cleave_context_t *context, uint32_t index) {
  context = lock(context);
  const char *name = index < context->entries.count ? context->entries.items[index]->name : "";
  unlock(context);
  return name;
}

const char *cleave_registry_path(cleave_context_t *context, uint32_t index) {
  context = lock(context);
  const char *path = index < context->entries.count ? context->entries.items[index]->library.path : NULL;
  unlock(context);
  return path == NULL ? "" : path;
}

/* "mirror" and "mirror.lua" name mirror.lua. A file elsewhere than beside the library is not taken. */
static bool is_rules(const char *file, const char *name) {
  size_t length = strlen(name);
  return file != NULL && strchr(file, '/') == NULL && strncmp(file, name, length) == 0 &&
         (file[length] == '\0' || strcmp(file + length, ".lua") == 0);
}

/* Looks through the libraries that are loaded. */
static bool find_rules(const cleave_context_t *context, const char *name, char *path, size_t size) {
  for (size_t k = 0; k < context->entries.count; k++) {
    const cleave_registry_entry_t *entry = context->entries.items[k];
    const cleave_backend_extensions_t *extensions = entry->table.extensions;
    uint32_t count =
        entry->state == CLEAVE_ENTRY_READY && extensions != NULL ? extensions->rule_file_count : 0;
    for (uint32_t r = 0; r < count; r++) {
      if (is_rules(extensions->rule_files[r], name)) {
        int folder = (int)(strrchr(entry->library.path, '/') - entry->library.path);
        int length = snprintf(path, size, "%.*s/%s", folder, entry->library.path, extensions->rule_files[r]);
        return length > 0 && (size_t)length < size;
      }
    }
  }
  return false;
}

bool cleave_registry_find_rules(cleave_context_t *context, const char *name, char *path, size_t size) {
  context = lock(context);
  bool found = find_rules(context, name, path, size);
  if (!found && strchr(name, '/') == NULL) {
    cleave_registry_search(context);
    found = find_rules(context, name, path, size);
  }
  unlock(context);
  return found;
}
