// SPDX-License-Identifier: Apache-2.0
// Libraries of a context: opened in this process or in one of their own, entered, and started; those of the
// folders are found when a name is not known otherwise. Nothing stays of a library that does not load.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/registry/registry_entry.h"
#include "base/text.h"

/* ---- isolated libraries ---- */

static const cleave_backend_t *enter_isolated(cleave_registry_entry_t *entry, cleave_message_t *message) {
  (void)message;
  return cleave_isolate_table(entry->isolate);
}

/* A process that is lost while it starts is not a failure if `cpu` is to take over. */
static cleave_status_t initialise_isolated(cleave_registry_entry_t *entry, const cleave_host_t *host,
                                           cleave_message_t *message) {
  (void)host;
  entry->handle.state = entry->isolate;
  cleave_status_t status = cleave_isolate_initialise(entry->isolate, message);
  bool goes_on = cleave_isolate_is_lost(entry->isolate) && cleave_isolate_falls_back(entry->isolate);
  return goes_on ? CLEAVE_OK : status;
}

static cleave_digest_t digest_isolated(const cleave_registry_entry_t *entry) {
  return cleave_isolate_digest(entry->isolate);
}

static void end_isolated(cleave_registry_entry_t *entry) {
  cleave_extensions_remove(entry->extensions);
  cleave_isolate_destroy(entry->isolate);
  cleave_library_close(&entry->library);
  cleave_free(entry);
}

static const cleave_registry_functions_t ISOLATED = {.enter = enter_isolated,
                                                     .initialise = initialise_isolated,
                                                     .digest = digest_isolated,
                                                     .end = end_isolated};

/* ---- opening ---- */

/* The name is free, or taken by the same file: *out_same. */
static cleave_status_t check_name(const cleave_context_t *context, const cleave_registry_entry_t *entry,
                                  cleave_registry_entry_t **out_same, cleave_error_t *error) {
  cleave_registry_entry_t *other = cleave_registry_find_entry(context, entry->name);
  bool is_same =
      other != NULL && other->library.path != NULL && strcmp(other->library.path, entry->library.path) == 0;
  *out_same = is_same ? other : NULL;
  if (is_same && entry->isolate != NULL && other->isolate == NULL) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "%s: is loaded already, and not isolated: unload '%s' first", entry->library.path,
                            entry->name);
  }
  if (other == NULL || is_same) {
    return CLEAVE_OK;
  }
  return cleave_error_set(
      error, CLEAVE_ERROR_INVALID_ARGUMENT,
      "%s: a backend called '%s' exists already (%s); give it another name: NAME=%s", entry->library.path,
      entry->name, other->library.path == NULL ? "linked in" : other->library.path, entry->library.path);
}

static cleave_status_t open_isolated(cleave_context_t *context, const char *path,
                                     const cleave_isolation_options_t *options,
                                     cleave_registry_entry_t *entry, cleave_error_t *error) {
  char *absolute = realpath(path, NULL);
  if (absolute == NULL) {
    return cleave_error_set(error, CLEAVE_ERROR_IO, "%s: %s", path, strerror(errno));
  }
  entry->library.path = cleave_copy_text(absolute, strlen(absolute));
  free(absolute);
  CLEAVE_TRY_MEMORY(entry->library.path, error);
  entry->functions = &ISOLATED;
  const char *label = entry->text[0] != '\0' ? entry->text : strrchr(entry->library.path, '/') + 1;
  return cleave_isolate_open(path, entry->library.path, label, &context->log, options, &entry->isolate,
                             error);
}

/* Opens the library, in a process of its own if an isolation policy asks for that. A library whose name is
 * not known yet is asked for it there, since its code may be what is not trusted. */
static cleave_status_t open_library(cleave_context_t *context, const char *path, const char *name,
                                    const cleave_isolation_options_t *options, cleave_registry_entry_t *entry,
                                    cleave_error_t *error) {
  cleave_isolation_options_t policy;
  if (options == NULL && cleave_isolation_policy_find(context, name, &policy)) {
    if (name == NULL) {
      CLEAVE_TRY(open_isolated(context, path, &policy, entry, error));
      name = cleave_isolate_table(entry->isolate)->name;
      options = name != NULL && cleave_isolation_policy_find(context, name, &policy) ? &policy : NULL;
      cleave_isolate_destroy(entry->isolate);
      entry->isolate = NULL;
      cleave_library_close(&entry->library);
      entry->functions = &cleave_registry_local;
    } else {
      options = &policy;
    }
  }
  if (options != NULL) {
    return open_isolated(context, path, options, entry, error);
  }
  CLEAVE_TRY(cleave_library_open(path, &entry->library, error));
  entry->enter = entry->library.enter;
  return CLEAVE_OK;
}

/* Opens, enters and initialises; *out_entry is NULL if the same file is there already. */
static cleave_status_t open_entry(cleave_context_t *context, const char *path, const char *name,
                                  const cleave_isolation_options_t *options,
                                  cleave_registry_entry_t **out_entry, cleave_error_t *error) {
  *out_entry = NULL;
  cleave_registry_entry_t *entry = cleave_allocate_zeroed(1, sizeof *entry);
  CLEAVE_TRY_MEMORY(entry, error);
  cleave_registry_entry_t *same = NULL;
  cleave_status_t status = CLEAVE_OK;
  entry->functions = &cleave_registry_local;
  entry->context = context->self;
  if (name != NULL && !cleave_registry_is_name(name)) {
    CLEAVE_TRY_CLEANUP(
        cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                         "'%s' is not a name for a backend: expected letters, digits, '_', '.' "
                         "and '-'",
                         name));
  }
  (void)snprintf(entry->text, sizeof entry->text, "%s", name == NULL ? "" : name);
  entry->name = entry->text;
  CLEAVE_TRY_CLEANUP(open_library(context, path, name, options, entry, error));
  CLEAVE_TRY_CLEANUP(cleave_registry_enter(entry, path, error));
  if (!cleave_registry_is_name(entry->name)) {
    CLEAVE_TRY_CLEANUP(cleave_error_set(
        error, CLEAVE_ERROR_BACKEND, "%s: calls itself '%s', which is not a valid name", path, entry->name));
  }
  if (entry->isolate != NULL) {
    cleave_isolate_rename(entry->isolate, entry->name);
  }
  CLEAVE_TRY_CLEANUP(check_name(context, entry, &same, error));
  if (same != NULL && same->isolate != NULL && same->state == CLEAVE_ENTRY_READY) {
    CLEAVE_TRY_CLEANUP(cleave_registry_restart(&same->handle, error));
  } else if (same == NULL) {
    CLEAVE_TRY_CLEANUP(cleave_registry_initialise(context, entry, path, error));
    CLEAVE_TRY_CLEANUP(cleave_extensions_add(&entry->handle, &entry->extensions, error));
    *out_entry = entry;
    entry = NULL;
  }
cleanup:
  if (entry != NULL) {
    entry->functions->end(entry);
  }
  return status;
}

cleave_status_t cleave_registry_load_entry(cleave_context_t *context, const char *path, const char *name,
                                           const cleave_isolation_options_t *options, cleave_error_t *error) {
  cleave_registry_entry_t *entry = NULL;
  CLEAVE_TRY(cleave_registry_enter_linked(context, error));
  CLEAVE_TRY(cleave_array_reserve(&context->entries, 1, error));
  CLEAVE_TRY(open_entry(context, path, name, options, &entry, error));
  if (entry != NULL) {
    cleave_array_push_reserved(&context->entries, entry);
  }
  return CLEAVE_OK;
}

/* ---- folders ---- */

/* A library of a folder that did not load: kept by its file's name, with the reason. */
static void keep_refused(cleave_context_t *context, const char *path, const cleave_error_t *refusal) {
  const char *name = strrchr(path, '/') + 1;
  name += strncmp(name, "lib", 3) == 0 ? 3 : 0;
  char text[sizeof((cleave_registry_entry_t *)0)->text];
  (void)snprintf(text, sizeof text, "%.*s", (int)strcspn(name, "."), name);
  cleave_registry_entry_t *entry = cleave_registry_find_entry(context, text) == NULL &&
                                           cleave_array_reserve(&context->entries, 1, NULL) == CLEAVE_OK
                                       ? cleave_allocate_zeroed(1, sizeof *entry)
                                       : NULL;
  if (entry == NULL) {
    return;
  }
  memcpy(entry->text, text, sizeof text);
  entry->name = entry->text;
  entry->library.path = cleave_copy_text(path, strlen(path));
  entry->functions = &cleave_registry_local;
  entry->state = CLEAVE_ENTRY_REFUSED;
  entry->refusal = *refusal;
  cleave_array_push_reserved(&context->entries, entry);
}

static cleave_status_t list_folders(const cleave_context_t *context, cleave_path_list_t *paths) {
  if (context->folders != NULL) {
    return cleave_library_list(context->folders, paths, NULL);
  }
  CLEAVE_TRY(cleave_library_list(getenv("CLEAVE_BACKEND_PATH"), paths, NULL));
  return cleave_library_list_bundled(paths, NULL);
}

void cleave_registry_search(cleave_context_t *context) {
  if (context->has_searched) {
    return;
  }
  cleave_path_list_t paths = {0};
  // If memory is short, what was listed by then is loaded.
  context->has_searched = list_folders(context, &paths) == CLEAVE_OK;
  for (size_t k = 0; k < paths.count; k++) {
    cleave_error_t refusal = CLEAVE_ERROR_INIT;
    if (cleave_registry_load_entry(context, paths.items[k], NULL, NULL, &refusal) != CLEAVE_OK) {
      cleave_log(&context->log, CLEAVE_LOG_WARNING, "%s", refusal.message);
      keep_refused(context, paths.items[k], &refusal);
    }
    cleave_free(paths.items[k]);
  }
  cleave_array_free(&paths);
}
