// SPDX-License-Identifier: Apache-2.0
// Settings for a library and its answers. Answers live until the library's next call, so that they are copied
// before another thread may make one; they come from outside, so that everything about them is checked.
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "backend/registry/registry.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/sized.h"

enum { MAX_ANSWERS = 4096, MAX_TEXT = 1 << 20 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static cleave_status_t check_settings(const char *name, const cleave_key_value_t *settings, uint32_t count,
                                      cleave_error_t *error) {
  for (uint32_t k = 0; k < count; k++) {
    if (settings[k].key == NULL || settings[k].key[0] == '\0') {
      return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "backend '%s': setting %u has no key",
                              name, (unsigned)k);
    }
  }
  return CLEAVE_OK;
}

/* Programs that are compiled from now on are others than those before: also if the call fails half-way.
 * Hints change nothing about programs. */
static void note_settings(const cleave_backend_handle_t *handle, const cleave_key_value_t *settings,
                          uint32_t count) {
  uint64_t hash = atomic_load(handle->settings);
  for (uint32_t k = 0; k < count; k++) {
    if (settings[k].value != NULL && strncmp(settings[k].key, "hint.", 5) != 0) {
      hash = cleave_hash_bytes(hash, settings[k].key, strlen(settings[k].key));
      hash = cleave_hash_bytes(hash, settings[k].value, strlen(settings[k].value));
    }
  }
  atomic_store(handle->settings, hash);
}

/* Bytes of all texts, their ends included. */
static cleave_status_t measure(const char *name, const cleave_key_value_t *answers, uint32_t count,
                               size_t *out_bytes, cleave_error_t *error) {
  *out_bytes = 0;
  if (count > MAX_ANSWERS || (count > 0 && answers == NULL)) {
    return cleave_error_set(error, CLEAVE_ERROR_BACKEND, "backend '%s': it says it has %u answer%s, %s", name,
                            (unsigned)count, CLEAVE_PLURAL(count),
                            answers == NULL ? "and gives none" : "expected at most 4096");
  }
  for (uint32_t k = 0; k < count; k++) {
    const char *texts[2] = {answers[k].key, answers[k].value};
    for (size_t t = 0; t < 2; t++) {
      if (texts[t] == NULL) {
        return cleave_error_set(error, CLEAVE_ERROR_BACKEND, "backend '%s': answer %u has no %s", name,
                                (unsigned)k, t == 0 ? "key" : "value");
      }
      size_t length = strnlen(texts[t], MAX_TEXT);
      if (length == MAX_TEXT) {
        return cleave_error_set(error, CLEAVE_ERROR_BACKEND, "backend '%s': answer %u is longer than 1 MiB",
                                name, (unsigned)k);
      }
      *out_bytes += length + 1;
    }
  }
  return CLEAVE_OK;
}

static char *add_text(char **next, const char *text) {
  size_t size = strlen(text) + 1;
  char *copy = memcpy(*next, text, size);
  *next += size;
  return copy;
}

/* One piece of memory: the pairs, then their texts. */
static cleave_status_t copy_answers(const char *name, const cleave_key_value_t *answers, uint32_t count,
                                    cleave_key_value_t **out_answers, cleave_error_t *error) {
  size_t bytes = 0;
  CLEAVE_TRY(measure(name, answers, count, &bytes, error));
  cleave_key_value_t *copies = cleave_allocate(1, count * sizeof *copies + bytes + 1);
  CLEAVE_TRY_MEMORY(copies, error);
  char *next = (char *)(copies + count);
  for (uint32_t k = 0; k < count; k++) {
    copies[k].key = add_text(&next, answers[k].key);
    copies[k].value = add_text(&next, answers[k].value);
  }
  *out_answers = copies;
  return CLEAVE_OK;
}

static cleave_status_t configure(const cleave_backend_handle_t *handle, const cleave_key_value_t *settings,
                                 uint32_t count, cleave_key_value_t **out_answers, uint32_t *out_count,
                                 cleave_error_t *error) {
  const cleave_backend_t *backend = handle->backend;
  const cleave_key_value_t *answers = NULL;
  uint32_t answer_count = 0;
  cleave_message_t message = {.text = ""};
  note_settings(handle, settings, count);
  cleave_status_t status =
      backend->configure(handle->state, settings, count, &answers, &answer_count, &message);
  if (status != CLEAVE_OK) {
    char place[96];
    (void)snprintf(place, sizeof place, "backend '%.64s'", backend->name);
    return cleave_registry_fail(error, status, place, &message);
  }
  if (out_answers == NULL) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(copy_answers(backend->name, answers, answer_count, out_answers, error));
  *out_count = answer_count;
  return CLEAVE_OK;
}

cleave_status_t cleave_backend_configure(cleave_context_t *context, const char *name,
                                         const cleave_key_value_t *settings, uint32_t setting_count,
                                         cleave_key_value_t **out_answers, uint32_t *out_answer_count,
                                         cleave_error_t *error) {
  uint32_t ignored = 0;
  uint32_t *count = out_answer_count == NULL ? &ignored : out_answer_count;
  const cleave_backend_handle_t *handle = NULL;
  *count = 0;
  if (out_answers != NULL) {
    *out_answers = NULL;
  }
  CLEAVE_TRY(cleave_list_check("settings", settings, setting_count, error));
  CLEAVE_TRY(cleave_registry_find(context, name, &handle, error));
  if (handle->backend->configure == NULL) {
    return cleave_error_set(error, CLEAVE_ERROR_UNSUPPORTED, "backend '%s' has nothing to configure", name);
  }
  CLEAVE_TRY(check_settings(name, settings, setting_count, error));
  (void)pthread_mutex_lock(&lock);
  cleave_status_t status = configure(handle, settings, setting_count, out_answers, count, error);
  (void)pthread_mutex_unlock(&lock);
  return status;
}

void cleave_answers_free(cleave_key_value_t *answers) {
  cleave_free(answers);
}
