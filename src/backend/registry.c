// SPDX-License-Identifier: Apache-2.0
// Backends by name: those that are linked in, then libraries in the order in which they came. Every entry is
// in one of three states: not asked yet, ready, or refused with its reason. All changes happen under the
// lock.
#include "backend/registry.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/extensions.h"
#include "backend/isolate.h"
#include "backend/isolation.h"
#include "backend/library.h"
#include "backend/region_json.h"
#include "base/log.h"
#include "base/text.h"
#include "base/threads.h"

#define CLEAVE_LINKED_BACKEND(name)                                                     \
  const cleave_backend_t *cleave_backend_##name(uint32_t abi_major, uint32_t abi_minor, \
                                                cleave_message_t *message);
#include "linked_backends.inc"
#undef CLEAVE_LINKED_BACKEND

typedef enum entry_state { ENTRY_NEW, ENTRY_READY, ENTRY_REFUSED } entry_state_t;

typedef struct entry {
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
} entry_t;

#define CLEAVE_LINKED_BACKEND(backend) {.name = #backend, .enter = cleave_backend_##backend},
static entry_t linked[] = {
#include "linked_backends.inc"
};
#undef CLEAVE_LINKED_BACKEND

enum { LINKED_COUNT = sizeof linked / sizeof linked[0] };

static CLEAVE_ARRAY(entry_t *) loaded;
static bool has_searched; /* the folders */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* For cleave_host_t.log: levels of libraries that do not exist count as details. */
static void log_line(int32_t level, const char *line) {
  bool is_known = level >= CLEAVE_LOG_ERROR && level <= CLEAVE_LOG_DETAIL;
  cleave_log(is_known ? (cleave_log_level_t)level : CLEAVE_LOG_DETAIL, "%s", line == NULL ? "" : line);
}

static const cleave_host_t host = {
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

static uint32_t entry_count(void) {
  return LINKED_COUNT + (uint32_t)loaded.count;
}

static entry_t *entry_at(uint32_t index) {
  return index < LINKED_COUNT ? &linked[index] : loaded.items[index - LINKED_COUNT];
}

static entry_t *find_entry(const char *name) {
  for (uint32_t k = 0; k < entry_count(); k++) {
    if (strcmp(entry_at(k)->name, name) == 0) {
      return entry_at(k);
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
                                            .isolate = entry->isolate};
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
static cleave_status_t initialise(entry_t *entry, const char *place, cleave_error_t *error) {
  cleave_message_t message = {.text = ""};
  cleave_status_t status = CLEAVE_OK;
  if (entry->isolate != NULL) {
    entry->handle.state = entry->isolate;
    status = cleave_isolate_initialise(entry->isolate, &message);
    bool goes_on = cleave_isolate_is_lost(entry->isolate) && cleave_isolate_falls_back(entry->isolate);
    status = goes_on ? CLEAVE_OK : status;
  } else {
    status = entry->table.initialise(&host, &entry->handle.state, &message);
  }
  if (status != CLEAVE_OK) {
    return cleave_registry_fail(error, status, place, &message);
  }
  entry->state = ENTRY_READY;
  return CLEAVE_OK;
}

static void start(entry_t *entry) {
  char place[96];
  (void)snprintf(place, sizeof place, "backend '%.60s' does not start", entry->name);
  cleave_error_clear(&entry->refusal);
  cleave_status_t status = entry->handle.backend == NULL ? enter(entry, place, &entry->refusal) : CLEAVE_OK;
  if (status == CLEAVE_OK) {
    status = initialise(entry, place, &entry->refusal);
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
static cleave_status_t check_name(const entry_t *entry, entry_t **out_same, cleave_error_t *error) {
  entry_t *other = find_entry(entry->name);
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

static cleave_status_t open_isolated(const char *path, const cleave_isolation_options_t *options,
                                     entry_t *entry, cleave_error_t *error) {
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
  return cleave_isolate_open(path, entry->library.path, label, options, &entry->isolate, error);
}

/* Opens the library, in a process of its own where that is wished. A library whose name is not known yet
 * says it there, since its code may be what is not trusted. */
static cleave_status_t open_library(const char *path, const char *name,
                                    const cleave_isolation_options_t *options, entry_t *entry,
                                    cleave_error_t *error) {
  cleave_isolation_options_t wished;
  if (options == NULL && cleave_isolation_find(name, &wished)) {
    if (name == NULL) {
      CLEAVE_TRY(open_isolated(path, &wished, entry, error));
      name = cleave_isolate_table(entry->isolate)->name;
      options = name != NULL && cleave_isolation_find(name, &wished) ? &wished : NULL;
      cleave_isolate_destroy(entry->isolate);
      entry->isolate = NULL;
      cleave_library_close(&entry->library);
    } else {
      options = &wished;
    }
  }
  if (options != NULL) {
    return open_isolated(path, options, entry, error);
  }
  CLEAVE_TRY(cleave_library_open(path, &entry->library, error));
  entry->enter = entry->library.enter;
  return CLEAVE_OK;
}

/* Opens, enters and initialises; *out_entry is NULL where the same file is there already. */
static cleave_status_t open_entry(const char *path, const char *name,
                                  const cleave_isolation_options_t *options, entry_t **out_entry,
                                  cleave_error_t *error) {
  *out_entry = NULL;
  entry_t *entry = cleave_allocate_zeroed(1, sizeof *entry);
  if (entry == NULL) {
    return cleave_error_out_of_memory(error);
  }
  entry_t *same = NULL;
  cleave_status_t status = CLEAVE_OK;
  if (name != NULL && !is_name(name)) {
    CLEAVE_TRY_CLEANUP(cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                                        "'%s' is no name for a backend: expected letters, digits, '_', '.' "
                                        "and '-'",
                                        name));
  }
  (void)snprintf(entry->text, sizeof entry->text, "%s", name == NULL ? "" : name);
  entry->name = entry->text;
  CLEAVE_TRY_CLEANUP(open_library(path, name, options, entry, error));
  CLEAVE_TRY_CLEANUP(enter(entry, path, error));
  if (!is_name(entry->name)) {
    CLEAVE_TRY_CLEANUP(cleave_error_set(error, CLEAVE_ERROR_BACKEND,
                                        "%s: calls itself '%s', which is no name", path, entry->name));
  }
  if (entry->isolate != NULL) {
    cleave_isolate_rename(entry->isolate, entry->name);
  }
  CLEAVE_TRY_CLEANUP(check_name(entry, &same, error));
  if (same != NULL && same->isolate != NULL && same->state == ENTRY_READY) {
    CLEAVE_TRY_CLEANUP(cleave_registry_restart(&same->handle, error));
  } else if (same == NULL) {
    CLEAVE_TRY_CLEANUP(initialise(entry, path, error));
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

static cleave_status_t load(const char *path, const char *name, const cleave_isolation_options_t *options,
                            cleave_error_t *error) {
  entry_t *entry = NULL;
  CLEAVE_TRY(cleave_array_reserve(&loaded, 1, error));
  CLEAVE_TRY(open_entry(path, name, options, &entry, error));
  if (entry != NULL) {
    cleave_array_push_reserved(&loaded, entry);
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_registry_load(const char *path, const char *name, cleave_error_t *error) {
  (void)pthread_mutex_lock(&lock);
  cleave_status_t status = load(path, name, NULL, error);
  (void)pthread_mutex_unlock(&lock);
  return status;
}

cleave_status_t cleave_registry_load_isolated(const char *path, const char *name,
                                              const cleave_isolation_options_t *options,
                                              cleave_error_t *error) {
  (void)pthread_mutex_lock(&lock);
  cleave_status_t status = load(path, name, options, error);
  (void)pthread_mutex_unlock(&lock);
  return status;
}

bool cleave_registry_holds(const char *name, bool *out_is_library) {
  (void)pthread_mutex_lock(&lock);
  const entry_t *entry = find_entry(name);
  *out_is_library = entry != NULL && entry->library.path != NULL;
  (void)pthread_mutex_unlock(&lock);
  return entry != NULL;
}

/* A library of a folder that did not load: kept by its file's name, for who asks why. */
static void keep_refused(const char *path, const cleave_error_t *refusal) {
  const char *name = strrchr(path, '/') + 1;
  name += strncmp(name, "lib", 3) == 0 ? 3 : 0;
  char text[sizeof((entry_t *)0)->text];
  (void)snprintf(text, sizeof text, "%.*s", (int)strcspn(name, "."), name);
  entry_t *entry = find_entry(text) == NULL && cleave_array_reserve(&loaded, 1, NULL) == CLEAVE_OK
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
  cleave_array_push_reserved(&loaded, entry);
}

/* Loads what the folders hold, once. */
static void search(void) {
  if (has_searched) {
    return;
  }
  has_searched = true;
  cleave_path_list_t paths = {0};
  // Where memory is short, what was listed by then is loaded.
  if (cleave_library_list(getenv("CLEAVE_BACKEND_PATH"), &paths, NULL) == CLEAVE_OK &&
      cleave_library_list_bundled(&paths, NULL) != CLEAVE_OK) {
    has_searched = false;
  }
  for (size_t k = 0; k < paths.count; k++) {
    cleave_error_t refusal = CLEAVE_ERROR_INIT;
    if (load(paths.items[k], NULL, NULL, &refusal) != CLEAVE_OK) {
      cleave_log(CLEAVE_LOG_WARNING, "%s", refusal.message);
      keep_refused(paths.items[k], &refusal);
    }
    cleave_free(paths.items[k]);
  }
  cleave_array_free(&paths);
}

cleave_status_t cleave_registry_unload(const char *name, cleave_error_t *error) {
  cleave_status_t status = CLEAVE_OK;
  (void)pthread_mutex_lock(&lock);
  size_t at = 0;
  while (at < loaded.count && strcmp(loaded.items[at]->name, name) != 0) {
    at++;
  }
  entry_t *entry = at < loaded.count ? loaded.items[at] : NULL;
  unsigned users = entry == NULL ? 0 : atomic_load(&entry->users);
  if (entry == NULL) {
    status =
        cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "backend '%s' is no loaded library", name);
  } else if (users > 0) {
    status = cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                              "backend '%s' is in use: %u compiled program%s of it live", name, users,
                              users == 1 ? "" : "s");
  } else {
    memmove(loaded.items + at, loaded.items + at + 1, (loaded.count - at - 1) * sizeof(entry_t *));
    loaded.count--;
    free_entry(entry);
  }
  (void)pthread_mutex_unlock(&lock);
  return status;
}

/* ---- looking up ---- */

static cleave_status_t fail_unknown(const char *name, cleave_error_t *error) {
  cleave_text_t list = {0};
  cleave_nearest_t nearest = {0};
  char hint[128];
  for (uint32_t k = 0; k < entry_count(); k++) {
    cleave_text_format(&list, "%s%s", k == 0 ? "" : ", ", entry_at(k)->name);
    cleave_nearest_offer(&nearest, name, entry_at(k)->name);
  }
  const char *meant = cleave_nearest_hint(&nearest, hint, sizeof hint);
  char load_hint[128] = "";
  if (meant[0] == '\0' && is_name(name)) {
    (void)snprintf(load_hint, sizeof load_hint, "; where it is a library: --load lib%s.so", name);
  }
  cleave_status_t status =
      cleave_error_set(error, CLEAVE_ERROR_UNSUPPORTED, "backend '%s' is unknown%s; there are: %s%s", name,
                       meant, cleave_text_get(&list), load_hint);
  cleave_text_deinit(&list);
  return status;
}

static cleave_status_t find(const char *name, const cleave_backend_handle_t **out_handle,
                            cleave_error_t *error) {
  entry_t *entry = find_entry(name);
  if (entry == NULL) {
    search();
    entry = find_entry(name);
  }
  if (entry == NULL) {
    return fail_unknown(name, error);
  }
  if (entry->state == ENTRY_NEW) {
    start(entry);
  }
  if (entry->state != ENTRY_READY) {
    return cleave_error_set(error, entry->refusal.status, "%s", entry->refusal.message);
  }
  *out_handle = &entry->handle;
  return CLEAVE_OK;
}

cleave_status_t cleave_registry_find(const char *name, const cleave_backend_handle_t **out_handle,
                                     cleave_error_t *error) {
  *out_handle = NULL;
  (void)pthread_mutex_lock(&lock);
  cleave_status_t status = find(name, out_handle, error);
  (void)pthread_mutex_unlock(&lock);
  return status;
}

void cleave_registry_retain(const cleave_backend_handle_t *handle) {
  (void)atomic_fetch_add(handle->users, 1);
}

void cleave_registry_release(const cleave_backend_handle_t *handle) {
  (void)atomic_fetch_sub(handle->users, 1);
}

cleave_digest_t cleave_registry_digest(const cleave_backend_handle_t *handle) {
  (void)pthread_mutex_lock(&lock);
  entry_t *entry = find_entry(handle->backend->name);
  cleave_digest_t digest = {{0}};
  if (entry != NULL && !entry->has_digest) {
    entry->digest = cleave_library_digest((void (*)(void))entry->table.compile);
    entry->has_digest = true;
  }
  digest = entry != NULL ? entry->digest : digest;
  (void)pthread_mutex_unlock(&lock);
  return digest;
}

uint32_t cleave_registry_count(void) {
  (void)pthread_mutex_lock(&lock);
  search();
  uint32_t count = entry_count();
  (void)pthread_mutex_unlock(&lock);
  return count;
}

const char *cleave_registry_name(uint32_t index) {
  (void)pthread_mutex_lock(&lock);
  const char *name = index < entry_count() ? entry_at(index)->name : "";
  (void)pthread_mutex_unlock(&lock);
  return name;
}

const char *cleave_registry_path(uint32_t index) {
  (void)pthread_mutex_lock(&lock);
  const char *path = index < entry_count() ? entry_at(index)->library.path : NULL;
  (void)pthread_mutex_unlock(&lock);
  return path == NULL ? "" : path;
}

/* "mirror" and "mirror.lua" name mirror.lua. A file elsewhere than beside the library is not taken. */
static bool is_rules(const char *file, const char *name) {
  size_t length = strlen(name);
  return file != NULL && strchr(file, '/') == NULL && strncmp(file, name, length) == 0 &&
         (file[length] == '\0' || strcmp(file + length, ".lua") == 0);
}

/* Looks through the libraries that are loaded. */
static bool find_rules(const char *name, char *path, size_t size) {
  for (size_t k = 0; k < loaded.count; k++) {
    const entry_t *entry = loaded.items[k];
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

bool cleave_registry_find_rules(const char *name, char *path, size_t size) {
  (void)pthread_mutex_lock(&lock);
  bool found = find_rules(name, path, size);
  if (!found && strchr(name, '/') == NULL) {
    search();
    found = find_rules(name, path, size);
  }
  (void)pthread_mutex_unlock(&lock);
  return found;
}
