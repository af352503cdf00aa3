// SPDX-License-Identifier: Apache-2.0
// Entries of the registry: found by name, entered, and started. An entry is in one of three states: not asked
// yet, ready, or refused with its reason.
#include "backend/registry/registry_entry.h"

#include <stdio.h>
#include <string.h>

cleave_registry_entry_t *cleave_registry_find_entry(const cleave_context_t *context, const char *name) {
  for (size_t k = 0; k < context->entries.count; k++) {
    if (strcmp(context->entries.items[k]->name, name) == 0) {
      return context->entries.items[k];
    }
  }
  return NULL;
}

bool cleave_registry_is_name(const char *name) {
  size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");
  return length > 0 && length < sizeof((cleave_registry_entry_t *)0)->text && name[length] == '\0';
}

/* ---- starting ---- */

/* Takes over what a library filled in: the fields that both sides know. */
static void copy_table(cleave_registry_entry_t *entry, const cleave_backend_t *backend) {
  entry->table = (cleave_backend_t){0};
  memcpy(&entry->table, backend, backend->size < sizeof entry->table ? backend->size : sizeof entry->table);
  entry->table.name = entry->name;
  entry->handle = (cleave_backend_handle_t){.backend = &entry->table,
                                            .users = &entry->users,
                                            .settings = &entry->settings,
                                            .isolate = entry->isolate,
                                            .context = entry->context};
}

cleave_status_t cleave_registry_enter(cleave_registry_entry_t *entry, const char *place,
                                      cleave_error_t *error) {
  cleave_message_t message = {.text = ""};
  bool is_library = entry->library.path != NULL;
  const cleave_backend_t *backend = entry->functions->enter(entry, &message);
  if (backend == NULL) {
    return cleave_registry_fail(error, CLEAVE_ERROR_BACKEND, place, &message);
  }
  const char *own = entry->name;
  if (is_library && backend->size >= CLEAVE_BACKEND_SIZE_REQUIRED && backend->name != NULL) {
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

cleave_status_t cleave_registry_initialise(cleave_context_t *context, cleave_registry_entry_t *entry,
                                           const char *place, cleave_error_t *error) {
  cleave_message_t message = {.text = ""};
  cleave_status_t status = entry->functions->initialise(entry, &context->host.table, &message);
  if (status != CLEAVE_OK) {
    return cleave_registry_fail(error, status, place, &message);
  }
  entry->state = CLEAVE_ENTRY_READY;
  return CLEAVE_OK;
}

void cleave_registry_start(cleave_context_t *context, cleave_registry_entry_t *entry) {
  char place[96];
  (void)snprintf(place, sizeof place, "backend '%.60s' does not start", entry->name);
  cleave_error_clear(&entry->refusal);
  cleave_status_t status =
      entry->handle.backend == NULL ? cleave_registry_enter(entry, place, &entry->refusal) : CLEAVE_OK;
  CLEAVE_THEN(status, cleave_registry_initialise(context, entry, place, &entry->refusal));
  if (status != CLEAVE_OK) {
    entry->state = status == CLEAVE_ERROR_OUT_OF_MEMORY ? CLEAVE_ENTRY_NEW : CLEAVE_ENTRY_REFUSED;
  }
}

/* ---- code in this process ---- */

static const cleave_backend_t *enter(cleave_registry_entry_t *entry, cleave_message_t *message) {
  return entry->enter(CLEAVE_BACKEND_ABI_MAJOR, CLEAVE_BACKEND_ABI_MINOR, message);
}

static cleave_status_t initialise(cleave_registry_entry_t *entry, const cleave_host_t *host,
                                  cleave_message_t *message) {
  return entry->table.initialise(host, &entry->handle.state, message);
}

static cleave_digest_t digest(const cleave_registry_entry_t *entry) {
  return cleave_library_digest((void (*)(void))entry->table.compile);
}

static void end(cleave_registry_entry_t *entry) {
  cleave_extensions_remove(entry->extensions);
  if (entry->state == CLEAVE_ENTRY_READY) {
    entry->table.destroy(entry->handle.state);
  }
  cleave_library_close(&entry->library);
  cleave_free(entry);
}

const cleave_registry_functions_t cleave_registry_local = {
    .enter = enter, .initialise = initialise, .digest = digest, .end = end};
