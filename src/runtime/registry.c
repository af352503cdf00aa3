// SPDX-License-Identifier: Apache-2.0
// Backends by name. Every entry is in one of three states: not asked yet, ready, or refused with its reason;
// it moves once, under the lock, and never back.
#include "runtime/registry.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

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
  cleave_error_t refusal;
} entry_t;

#define CLEAVE_LINKED_BACKEND(backend) {.name = #backend, .enter = cleave_backend_##backend},
static entry_t entries[] = {
#include "linked_backends.inc"
};
#undef CLEAVE_LINKED_BACKEND

enum { ENTRY_COUNT = sizeof entries / sizeof entries[0] };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const cleave_host_t host = {
    .size = sizeof(cleave_host_t),
    .abi_major = CLEAVE_BACKEND_ABI_MAJOR,
    .abi_minor = CLEAVE_BACKEND_ABI_MINOR,
    .version = CLEAVE_VERSION,
    .parallel_for = cleave_parallel_for,
};

uint32_t cleave_registry_count(void) {
  return ENTRY_COUNT;
}

const char *cleave_registry_name(uint32_t index) {
  return index < ENTRY_COUNT ? entries[index].name : "";
}

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

/* Asks the entry function and initialises; the outcome is for good. */
static void start(entry_t *entry) {
  cleave_message_t message = {.text = ""};
  char place[96];
  (void)snprintf(place, sizeof place, "backend '%.60s' does not start", entry->name);
  const cleave_backend_t *backend =
      entry->enter(CLEAVE_BACKEND_ABI_MAJOR, CLEAVE_BACKEND_ABI_MINOR, &message);
  entry->state = ENTRY_REFUSED;
  if (backend == NULL) {
    (void)cleave_registry_fail(&entry->refusal, CLEAVE_ERROR_BACKEND, place, &message);
    return;
  }
  if (cleave_registry_check(backend, entry->name, &entry->refusal) != CLEAVE_OK) {
    return;
  }
  cleave_status_t status = backend->initialise(&host, &entry->handle.state, &message);
  if (status == CLEAVE_ERROR_OUT_OF_MEMORY) {
    entry->state = ENTRY_NEW;
  }
  if (status != CLEAVE_OK) {
    cleave_error_clear(&entry->refusal);
    (void)cleave_registry_fail(&entry->refusal, status, place, &message);
    return;
  }
  entry->handle.backend = backend;
  entry->state = ENTRY_READY;
}

static cleave_status_t fail_unknown(const char *name, cleave_error_t *error) {
  cleave_text_t list = {0};
  cleave_nearest_t nearest = {0};
  char hint[128];
  for (uint32_t k = 0; k < ENTRY_COUNT; k++) {
    cleave_text_format(&list, "%s%s", k == 0 ? "" : ", ", entries[k].name);
    cleave_nearest_offer(&nearest, name, entries[k].name);
  }
  cleave_status_t status =
      cleave_error_set(error, CLEAVE_ERROR_UNSUPPORTED, "backend '%s' is unknown%s; there are: %s", name,
                       cleave_nearest_hint(&nearest, hint, sizeof hint), cleave_text_get(&list));
  cleave_text_deinit(&list);
  return status;
}

cleave_status_t cleave_registry_find(const char *name, const cleave_backend_handle_t **out_handle,
                                     cleave_error_t *error) {
  *out_handle = NULL;
  entry_t *entry = NULL;
  for (uint32_t k = 0; k < ENTRY_COUNT; k++) {
    if (strcmp(entries[k].name, name) == 0) {
      entry = &entries[k];
    }
  }
  if (entry == NULL) {
    return fail_unknown(name, error);
  }
  (void)pthread_mutex_lock(&lock);
  if (entry->state == ENTRY_NEW) {
    start(entry);
  }
  bool is_ready = entry->state == ENTRY_READY;
  cleave_error_t refusal = entry->refusal;
  (void)pthread_mutex_unlock(&lock);
  if (!is_ready) {
    return cleave_error_set(error, refusal.status, "%s", refusal.message);
  }
  *out_handle = &entry->handle;
  return CLEAVE_OK;
}
