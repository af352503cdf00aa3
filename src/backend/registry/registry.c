// SPDX-License-Identifier: Apache-2.0
// Backends by name: those that are linked in, then libraries in the order in which they came. Every entry is
// in one of three states: not asked yet, ready, or refused with its reason. All changes happen under the
// lock.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/isolate/isolate.h"
#include "backend/library/library.h"
#include "backend/region/region_json.h"
#include "backend/registry/context.h"
#include "backend/registry/extensions.h"
#include "base/text.h"
#include "system/threads.h"

#define CLEAVE_LINKED_BACKEND(name)                                                     \
  const cleave_backend_t *cleave_backend_##name(uint32_t abi_major, uint32_t abi_minor, \
                                                cleave_message_t *message);
#include "linked_backends.inc"
#undef CLEAVE_LINKED_BACKEND

typedef enum entry_state { ENTRY_NEW, ENTRY_READY, ENTRY_REFUSED } entry_state_t;

typedef struct cleave_registry_entry {
  const char *name;
  cleave_backend_entry_t enter;
  entry_state_t state;
  cleave_backend_handle_t handle;
  cleave_backend_t table; /* a copy, with NULL for what a library does not know */
  atomic_uint users;
  atomic_uint_least64_t settings;
  cleave_error_t refusal;
  cleave_library_t library;        /* of a loaded one */
  cleave_extensions_t *extensions; /* what it adds to cleave; NULL: nothing */
  cleave_digest_t digest;          /* of the code, where has_digest */
  bool has_digest;
  char text[64];             /* `name` of a loaded one */
  cleave_isolate_t *isolate; /* of one in a process of its own: owned */
  cleave_context_t *context; /* NULL: the process's own */
} entry_t;

typedef struct linked {
  const char *name;
  cleave_backend_entry_t enter;
} linked_t;

#define CLEAVE_LINKED_BACKEND(backend) {.name = #backend, .enter = cleave_backend_##backend},
static const linked_t LINKED[] = {
#include "linked_backends.inc"
};
#undef CLEAVE_LINKED_BACKEND

enum { LINKED_COUNT = sizeof LINKED / sizeof LINKED[0] };

/* For cleave_host_t.log: levels of libraries that do not exist count as details. */
static void log_line(const cleave_host_t *host, int32_t level, const char *line) {
  const cleave_context_host_t *own = (const cleave_context_host_t *)(const void *)host;
  bool is_known = level >= CLEAVE_LOG_ERROR && level <= CLEAVE_LOG_DETAIL;
  cleave_log(own->log, is_known ? (cleave_log_level_t)level : CLEAVE_LOG_DETAIL, "%s",
             line == NULL ? "" : line);
}

static const cleave_host_t HOST = {
    .size = sizeof(cleave_host_t),
    .abi_major = CLEAVE_BACKEND_ABI_MAJOR,
    .abi_minor = CLEAVE_BACKEND_ABI_MINOR,
    .version = CLEAVE_VERSION,
    .parallel_for = cleave_parallel_for,
    .log = log_line,
    .region_to_json = cleave_host_region_to_json,
    .free_json = cleave_host_free_json,
    .region_from_json = cleave_host_region_from_json,
    .free_region = cleave_host_free_region,
};

/* Enters what is linked in, once; where memory is short, none of it. */
static cleave_status_t enter_linked(cleave_context_t *context, cleave_error_t *error) {
  if (context->has_linked) {
    return CLEAVE_OK;
  }
  context->host = (cleave_context_host_t){.table = HOST, .log = &context->log};
  CLEAVE_TRY(cleave_array_reserve(&context->entries, LINKED_COUNT, error));
  for (size_t k = 0; k < LINKED_COUNT; k++) {
    entry_t *entry = cleave_allocate_zeroed(1, sizeof *entry);
    if (entry == NULL) {
      while (k-- > 0) {
        cleave_free(context->entries.items[k]);
      }
      context->entries.count = 0;
      return cleave_error_out_of_memory(error);
    }
    entry->name = LINKED[k].name;
    entry->enter = LINKED[k].enter;
    entry->context = context->self;
    cleave_array_push_reserved(&context->entries, entry);
  }
  context->has_linked = true;
  return CLEAVE_OK;
}

/* The context, its registry locked, with the linked-in backends unless memory is short. */
static cleave_context_t *lock(cleave_context_t *context) {
  context = cleave_context_get(context);
  (void)pthread_mutex_lock(&context->lock);
  (void)enter_linked(context, NULL);
  return context;
}

static void unlock(cleave_context_t *context) {
  (void)pthread_mutex_unlock(&context->lock);
}

static entry_t *find_entry(const cleave_context_t *context, const char *name) {
  for (size_t k = 0; k < context->entries.count; k++) {
    if (strcmp(context->entries.items[k]->name, name) == 0) {
      return context->entries.items[k];
    }
  }
  return NULL;
}

/* ---- starting ---- */

/* Takes over what a library filled in: the fields that both sides know. */
static void copy_table(entry_t *entry, const cleave_backend_t *backend) {
  entry->table = (cleave_backend_t){0};
  memcpy(&entry->table, backend, backend->size < sizeof entry->table ? backend->size : sizeof entry->table);
  entry->table.name = entry->name;
  entry->handle = (cleave_backend_handle_t){.backend = &entry->table,
                                            .users = &entry->users,
                                            .settings = &entry->settings,
                                            .isolate = entry->isolate,
                                            .context = entry->context};
}

/* Asks the entry function for the struct. Without a name of its own, the entry takes the library's. */
static cleave_status_t enter(entry_t *entry, const char *place, cleave_error_t *error) {
  cleave_message_t message = {.text = ""};
  bool is_library = entry->library.path != NULL;
  const cleave_backend_t *backend =
      entry->isolate != NULL ? cleave_isolate_table(entry->isolate)
                             : entry->enter(CLEAVE_BACKEND_ABI_MAJOR, CLEAVE_BACKEND_ABI_MINOR, &message);
  if (backend == NULL) {
    return cleave_registry_fail(error, CLEAVE_ERROR_BACKEND, place, &message);
  }
  const char *own = entry->name;
  if (is_library && backend->size >= CLEAVE_BACKEND_SIZE_1_0 && backend->name != NULL) {
    own = backend->name;
  }
  CLEAVE_TRY(cleave_registry_check(backend, own, error));
  if (entry->text[0] == '\0' && is_library) {
    (void)snprintf(entry->text, sizeof entry->text, "%s", own);
    entry->name = entry->text;
  }
  copy_table(entry, backend);
  return CLEAVE_OK;
}

/* Initialises what was entered; the outcome is for good, unless memory was short. */
static cleave_status_t initialise(cleave_context_t *context, entry_t *entry, const char *place,
                                  cleave_error_t *error) {
  cleave_message_t message = {.text = ""};
  cleave_status_t status = CLEAVE_OK;
  if (entry->isolate != NULL) {
    entry->handle.state = entry->isolate;
    status = cleave_isolate_initialise(entry->isolate, &message);
    bool goes_on = cleave_isolate_is_lost(entry->isolate) && cleave_isolate_falls_back(entry->isolate);
    status = goes_on ? CLEAVE_OK : status;
  } else {
    status = entry->table.initialise(&context->host.table, &entry->handle.state, &message);
  }
  if (status != CLEAVE_OK) {
    return cleave_registry_fail(error, status, place, &message);
  }
  entry->state = ENTRY_READY;
  return CLEAVE_OK;
}

static void start(cleave_context_t *context, entry_t *entry) {
  char place[96];
  (void)snprintf(place, sizeof place, "backend '%.60s' does not start", entry->name);
  cleave_error_clear(&entry->refusal);
  cleave_status_t status = entry->handle.backend == NULL ? enter(entry, place, &entry->refusal) : CLEAVE_OK;
  if (status == CLEAVE_OK) {
    status = initialise(context, entry, place, &entry->refusal);
  }
  if (status != CLEAVE_OK) {
    entry->state = status == CLEAVE_ERROR_OUT_OF_MEMORY ? ENTRY_NEW : ENTRY_REFUSED;
  }
}

/* ---- libraries ---- */

static void free_entry(entry_t *entry) {
  cleave_extensions_remove(entry->extensions);
  if (entry->state == ENTRY_READY && entry->isolate == NULL) {
    entry->table.destroy(entry->handle.state);
  }
  cleave_isolate_destroy(entry->isolate);
  cleave_library_close(&entry->library);
  cleave_free(entry);
}

static bool is_name(const char *name) {
  size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");
  return length > 0 && length < sizeof((entry_t *)0)->text && name[length] == '\0';
}

/* The name is free, or taken by the same file: *out_same. */
static cleave_status_t check_name(const cleave_context_t *context, const entry_t *entry, entry_t **out_same,
                                  cleave_error_t *error) {
  entry_t *other = find_entry(context, entry->name);
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
      "%s: a backend called '%s' is there already (%s); give it another name: NAME=%s", entry->library.path,
      entry->name, other->library.path == NULL ? "linked in" : other->library.path, entry->library.path);
}

static cleave_status_t open_isolated(cleave_context_t *context, const char *path,
                                     const cleave_isolation_options_t *options, entry_t *entry,
                                     cleave_error_t *error) {
  char *absolute = realpath(path, NULL);
  if (absolute == NULL) {
    return cleave_error_set(error, CLEAVE_ERROR_IO, "%s: %s", path, strerror(errno));
  }
  entry->library.path = cleave_copy_text(absolute, strlen(absolute));
  free(absolute);
  if (entry->library.path == NULL) {
    return cleave_error_out_of_memory(error);
  }
  const char *label = entry->text[0] != '\0' ? entry->text : strrchr(entry->library.path, '/') + 1;
  return cleave_isolate_open(path, entry->library.path, label, &context->log, options, &entry->isolate,
                             error);
}

/* Opens the library, in a process of its own where that is wished. A library whose name is not known yet
 * says it there, since its code may be what is not trusted. */
static cleave_status_t open_library(cleave_context_t *context, const char *path, const char *name,
                                    const cleave_isolation_options_t *options, entry_t *entry,
                                    cleave_error_t *error) {
  cleave_isolation_options_t wished;
  if (options == NULL && cleave_isolation_find(context, name, &wished)) {
    if (name == NULL) {
      CLEAVE_TRY(open_isolated(context, path, &wished, entry, error));
      name = cleave_isolate_table(entry->isolate)->name;
      options = name != NULL && cleave_isolation_find(context, name, &wished) ? &wished : NULL;
      cleave_isolate_destroy(entry->isolate);
      entry->isolate = NULL;
      cleave_library_close(&entry->library);
    } else {
      options = &wished;
    }
  }
  if (options != NULL) {
    return open_isolated(context, path, options, entry, error);
  }
  CLEAVE_TRY(cleave_library_open(path, &entry->library, error));
  entry->enter = entry->library.enter;
  return CLEAVE_OK;
}

/* Opens, enters and initialises; *out_entry is NULL where the same file is there already. */
static cleave_status_t open_entry(cleave_context_t *context, const char *path, const char *name,
                                  const cleave_isolation_options_t *options, entry_t **out_entry,
                                  cleave_error_t *error) {
  *out_entry = NULL;
  entry_t *entry = cleave_allocate_zeroed(1, sizeof *entry);
  if (entry == NULL) {
    return cleave_error_out_of_memory(error);
  }
  entry_t *same = NULL;
  cleave_status_t status = CLEAVE_OK;
  entry->context = context->self;
  if (name != NULL && !is_name(name)) {
    CLEAVE_TRY_CLEANUP(cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                                        "'%s' is no name for a backend: expected letters, digits, '_', '.' "
                                        "and '-'",
                                        name));
  }
  (void)snprintf(entry->text, sizeof entry->text, "%s", name == NULL ? "" : name);
  entry->name = entry->text;
  CLEAVE_TRY_CLEANUP(open_library(context, path, name, options, entry, error));
  CLEAVE_TRY_CLEANUP(enter(entry, path, error));
  if (!is_name(entry->name)) {
    CLEAVE_TRY_CLEANUP(cleave_error_set(error, CLEAVE_ERROR_BACKEND,
                                        "%s: calls itself '%s', which is no name", path, entry->name));
  }
  if (entry->isolate != NULL) {
    cleave_isolate_rename(entry->isolate, entry->name);
  }
  CLEAVE_TRY_CLEANUP(check_name(context, entry, &same, error));
  if (same != NULL && same->isolate != NULL && same->state == ENTRY_READY) {
    CLEAVE_TRY_CLEANUP(cleave_registry_restart(&same->handle, error));
  } else if (same == NULL) {
    CLEAVE_TRY_CLEANUP(initialise(context, entry, path, error));
    CLEAVE_TRY_CLEANUP(cleave_extensions_add(&entry->handle, &entry->extensions, error));
    *out_entry = entry;
    entry = NULL;
  }
cleanup:
  if (entry != NULL) {
    free_entry(entry);
  }
  return status;
}

static cleave_status_t load(cleave_context_t *context, const char *path, const char *name,
                            const cleave_isolation_options_t *options, cleave_error_t *error) {
  entry_t *entry = NULL;
  CLEAVE_TRY(enter_linked(context, error));
  CLEAVE_TRY(cleave_array_reserve(&context->entries, 1, error));
  CLEAVE_TRY(open_entry(context, path, name, options, &entry, error));
  if (entry != NULL) {
    cleave_array_push_reserved(&context->entries, entry);
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_registry_load_isolated(cleave_context_t *context, const char *path, const char *name,
                                              const cleave_isolation_options_t *options,
                                              cleave_error_t *error) {
  context = lock(context);
  cleave_status_t status = load(context, path, name, options, error);
  unlock(context);
  return status;
}

cleave_status_t cleave_registry_load(cleave_context_t *context, const char *path, const char *name,
                                     cleave_error_t *error) {
  return cleave_registry_load_isolated(context, path, name, NULL, error);
}

bool cleave_registry_holds(cleave_context_t *context, const char *name, bool *out_is_library) {
  context = lock(context);
  const entry_t *entry = find_entry(context, name);
  *out_is_library = entry != NULL && entry->library.path != NULL;
  unlock(context);
  return entry != NULL;
}

/* A library of a folder that did not load: kept by its file's name, for who asks why. */
static void keep_refused(cleave_context_t *context, const char *path, const cleave_error_t *refusal) {
  const char *name = strrchr(path, '/') + 1;
  name += strncmp(name, "lib", 3) == 0 ? 3 : 0;
  char text[sizeof((entry_t *)0)->text];
  (void)snprintf(text, sizeof text, "%.*s", (int)strcspn(name, "."), name);
  entry_t *entry =
      find_entry(context, text) == NULL && cleave_array_reserve(&context->entries, 1, NULL) == CLEAVE_OK
          ? cleave_allocate_zeroed(1, sizeof *entry)
          : NULL;
  if (entry == NULL) {
    return;
  }
  memcpy(entry->text, text, sizeof text);
  entry->name = entry->text;
  entry->library.path = cleave_copy_text(path, strlen(path));
  entry->state = ENTRY_REFUSED;
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

/* Loads what the folders hold, once. */
static void search(cleave_context_t *context) {
  if (context->has_searched) {
    return;
  }
  cleave_path_list_t paths = {0};
  // Where memory is short, what was listed by then is loaded.
  context->has_searched = list_folders(context, &paths) == CLEAVE_OK;
  for (size_t k = 0; k < paths.count; k++) {
    cleave_error_t refusal = CLEAVE_ERROR_INIT;
    if (load(context, paths.items[k], NULL, NULL, &refusal) != CLEAVE_OK) {
      cleave_log(&context->log, CLEAVE_LOG_WARNING, "%s", refusal.message);
      keep_refused(context, paths.items[k], &refusal);
    }
    cleave_free(paths.items[k]);
  }
  cleave_array_free(&paths);
}

cleave_status_t cleave_registry_unload(cleave_context_t *context, const char *name, cleave_error_t *error) {
  cleave_status_t status = CLEAVE_OK;
  context = lock(context);
  size_t at = 0;
  while (at < context->entries.count && strcmp(context->entries.items[at]->name, name) != 0) {
    at++;
  }
  entry_t *entry = at < context->entries.count ? context->entries.items[at] : NULL;
  bool is_library = entry != NULL && entry->library.path != NULL;
  unsigned users = is_library ? atomic_load(&entry->users) : 0;
  if (!is_library) {
    status =
        cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "backend '%s' is no loaded library", name);
  } else if (users > 0) {
    status = cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                              "backend '%s' is in use: %u compiled program%s of it live", name, users,
                              users == 1 ? "" : "s");
  } else {
    entry_t **items = context->entries.items;
    memmove(items + at, items + at + 1, (context->entries.count - at - 1) * sizeof *items);
    context->entries.count--;
    free_entry(entry);
  }
  unlock(context);
  return status;
}

void cleave_registry_end(cleave_context_t *context) {
  while (context->entries.count > 0) {
    free_entry(context->entries.items[--context->entries.count]);
  }
  cleave_array_free(&context->entries);
}

/* ---- looking up ---- */

static cleave_status_t fail_unknown(const cleave_context_t *context, const char *name,
                                    cleave_error_t *error) {
  cleave_text_t list = {0};
  cleave_nearest_t nearest = {0};
  char hint[128];
  for (size_t k = 0; k < context->entries.count; k++) {
    const char *known = context->entries.items[k]->name;
    cleave_text_format(&list, "%s%s", k == 0 ? "" : ", ", known);
    cleave_nearest_offer(&nearest, name, known);
  }
  const char *meant = cleave_nearest_hint(&nearest, hint, sizeof hint);
  bool may_be_library = meant[0] == '\0' && is_name(name);
  cleave_status_t status = cleave_error_set(
      error, CLEAVE_ERROR_UNSUPPORTED, "backend '%s' is unknown%s; there are: %s%s", name, meant,
      cleave_text_get(&list), may_be_library ? "; if it is a library, it is not loaded" : "");
  cleave_error_hint(error, may_be_library ? CLEAVE_HINT_LOAD : CLEAVE_HINT_NONE);
  cleave_text_deinit(&list);
  return status;
}

static cleave_status_t find(cleave_context_t *context, const char *name,
                            const cleave_backend_handle_t **out_handle, cleave_error_t *error) {
  CLEAVE_TRY(enter_linked(context, error));
  entry_t *entry = find_entry(context, name);
  if (entry == NULL) {
    search(context);
    entry = find_entry(context, name);
  }
  if (entry == NULL) {
    return fail_unknown(context, name, error);
  }
  if (entry->state == ENTRY_NEW) {
    start(context, entry);
  }
  if (entry->state != ENTRY_READY) {
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

void cleave_registry_retain(const cleave_backend_handle_t *handle) {
  (void)atomic_fetch_add(handle->users, 1);
}

void cleave_registry_release(const cleave_backend_handle_t *handle) {
  (void)atomic_fetch_sub(handle->users, 1);
}

cleave_digest_t cleave_registry_digest(const cleave_backend_handle_t *handle) {
  cleave_context_t *context = lock(handle->context);
  entry_t *entry = find_entry(context, handle->backend->name);
  cleave_digest_t digest = {{0}};
  if (entry != NULL && !entry->has_digest) {
    entry->digest = entry->isolate != NULL ? cleave_isolate_digest(entry->isolate)
                                           : cleave_library_digest((void (*)(void))entry->table.compile);
    entry->has_digest = true;
  }
  digest = entry != NULL ? entry->digest : digest;
  unlock(context);
  return digest;
}

uint32_t cleave_registry_count(cleave_context_t *context) {
  context = lock(context);
  search(context);
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
    const entry_t *entry = context->entries.items[k];
    const cleave_backend_extensions_t *extensions = entry->table.extensions;
    uint32_t count = entry->state == ENTRY_READY && extensions != NULL ? extensions->rule_file_count : 0;
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
    search(context);
    found = find_rules(context, name, path, size);
  }
  unlock(context);
  return found;
}
