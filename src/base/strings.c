// SPDX-License-Identifier: Apache-2.0
/* Open addressing with linear probing; the table is at most half full. */
#include "base/strings.h"

#include <stdatomic.h>
#include <string.h>

#include "base/hash.h"

struct cleave_string_texts {
  atomic_uint references;
  cleave_arena_t arena;
  cleave_string_texts_t *before; /* of the set that this one began as a copy of; NULL */
};

static cleave_string_texts_t *retain_texts(cleave_string_texts_t *texts) {
  if (texts != NULL) {
    (void)atomic_fetch_add_explicit(&texts->references, 1, memory_order_relaxed);
  }
  return texts;
}

static void release_texts(cleave_string_texts_t *texts) {
  while (texts != NULL && atomic_fetch_sub_explicit(&texts->references, 1, memory_order_acq_rel) == 1) {
    cleave_string_texts_t *before = texts->before;
    cleave_arena_deinit(&texts->arena);
    cleave_free(texts);
    texts = before;
  }
}

/* Gives the set an arena of its own for what is added. */
static cleave_status_t own_texts(cleave_strings_t *strings, cleave_error_t *error) {
  if (strings->own != NULL && !strings->is_shared) {
    return CLEAVE_OK;
  }
  cleave_string_texts_t *texts = cleave_allocate_zeroed(1, sizeof *texts);
  CLEAVE_TRY_MEMORY(texts, error);
  atomic_init(&texts->references, 1);
  texts->before = strings->own;
  strings->own = texts;
  strings->is_shared = false;
  return CLEAVE_OK;
}

static uint32_t text_hash(const char *text, size_t length) {
  return (uint32_t)cleave_hash_bytes(CLEAVE_HASH_SEED, text, length);
}

static uint32_t find_slot(const cleave_strings_t *strings, const char *text, size_t length, uint32_t hash) {
  uint32_t slot = hash & (strings->slot_count - 1);
  for (;; slot = (slot + 1) & (strings->slot_count - 1)) {
    uint32_t entry = strings->slots[slot];
    if (entry == 0) {
      return slot;
    }
    const char *candidate = strings->texts[entry - 1];
    if (strings->hashes[entry - 1] == hash && strncmp(candidate, text, length) == 0 &&
        candidate[length] == '\0') {
      return slot;
    }
  }
}

static cleave_status_t grow_slots(cleave_strings_t *strings, cleave_error_t *error) {
  if (strings->slot_count > UINT32_MAX / 4) {
    return cleave_error_set(error, CLEAVE_ERROR_LIMIT, "too many distinct names (2^30)");
  }
  uint32_t wanted = strings->slot_count == 0 ? 64 : strings->slot_count * 2;
  uint32_t *slots = cleave_allocate_zeroed(wanted, sizeof *slots);
  CLEAVE_TRY_MEMORY(slots, error);
  for (uint32_t id = 0; id < strings->count; id++) {
    uint32_t slot = strings->hashes[id] & (wanted - 1);
    while (slots[slot] != 0) {
      slot = (slot + 1) & (wanted - 1);
    }
    slots[slot] = id + 1;
  }
  cleave_free(strings->slots);
  strings->slots = slots;
  strings->slot_count = wanted;
  return CLEAVE_OK;
}

static cleave_status_t grow_texts(cleave_strings_t *strings, cleave_error_t *error) {
  uint32_t wanted = strings->capacity == 0 ? 32 : strings->capacity * 2;
  const char **texts = cleave_reallocate(strings->texts, wanted, sizeof *texts);
  CLEAVE_TRY_MEMORY(texts, error);
  strings->texts = texts;
  uint32_t *hashes = cleave_reallocate(strings->hashes, wanted, sizeof *hashes);
  CLEAVE_TRY_MEMORY(hashes, error);
  strings->hashes = hashes;
  strings->capacity = wanted;
  return CLEAVE_OK;
}

static cleave_status_t insert(cleave_strings_t *strings, const char *text, size_t length, uint32_t hash,
                              cleave_string_t *out_string, cleave_error_t *error) {
  if (strings->count == strings->capacity) {
    CLEAVE_TRY(grow_texts(strings, error));
  }
  if (strings->count * 2 >= strings->slot_count) {
    CLEAVE_TRY(grow_slots(strings, error));
  }
  CLEAVE_TRY(own_texts(strings, error));
  char *copy = cleave_arena_copy_text(&strings->own->arena, text, length);
  CLEAVE_TRY_MEMORY(copy, error);
  uint32_t slot = find_slot(strings, text, length, hash);
  strings->texts[strings->count] = copy;
  strings->hashes[strings->count] = hash;
  strings->slots[slot] = strings->count + 1;
  out_string->index = strings->count++;
  return CLEAVE_OK;
}

cleave_status_t cleave_strings_add(cleave_strings_t *strings, const char *text, size_t length,
                                   cleave_string_t *out_string, cleave_error_t *error) {
  const char *end = length > 0 ? memchr(text, '\0', length) : NULL;
  length = end != NULL ? (size_t)(end - text) : length;
  if (strings->count == 0) {
    CLEAVE_TRY(insert(strings, "", 0, text_hash("", 0), out_string, error));
  }
  if (length == 0) {
    *out_string = CLEAVE_STRING_EMPTY;
    return CLEAVE_OK;
  }
  uint32_t hash = text_hash(text, length);
  uint32_t entry = strings->slots[find_slot(strings, text, length, hash)];
  if (entry != 0) {
    out_string->index = entry - 1;
    return CLEAVE_OK;
  }
  return insert(strings, text, length, hash, out_string, error);
}

cleave_string_t cleave_strings_find(const cleave_strings_t *strings, const char *text, size_t length) {
  if (length == 0) {
    return CLEAVE_STRING_EMPTY;
  }
  if (strings->slot_count == 0) {
    return CLEAVE_STRING_NONE;
  }
  uint32_t entry = strings->slots[find_slot(strings, text, length, text_hash(text, length))];
  return entry == 0 ? CLEAVE_STRING_NONE : (cleave_string_t){entry - 1};
}

cleave_status_t cleave_strings_copy(const cleave_strings_t *from, cleave_strings_t *to,
                                    cleave_error_t *error) {
  if (from->count == 0) {
    return CLEAVE_OK;
  }
  cleave_strings_t copy = {.count = from->count, .capacity = from->count, .slot_count = from->slot_count};
  copy.texts = cleave_allocate(copy.capacity, sizeof *copy.texts);
  copy.hashes = cleave_allocate(copy.capacity, sizeof *copy.hashes);
  copy.slots = cleave_allocate(copy.slot_count, sizeof *copy.slots);
  if (copy.texts == NULL || copy.hashes == NULL || copy.slots == NULL) {
    cleave_strings_deinit(&copy);
    return cleave_error_out_of_memory(error);
  }
  memcpy(copy.texts, from->texts, copy.count * sizeof *copy.texts);
  memcpy(copy.hashes, from->hashes, copy.count * sizeof *copy.hashes);
  memcpy(copy.slots, from->slots, copy.slot_count * sizeof *copy.slots);
  copy.own = retain_texts(from->own);
  copy.is_shared = true;
  *to = copy;
  return CLEAVE_OK;
}

void cleave_strings_deinit(cleave_strings_t *strings) {
  release_texts(strings->own);
  cleave_free(strings->texts);
  cleave_free(strings->hashes);
  cleave_free(strings->slots);
  *strings = (cleave_strings_t){0};
}
