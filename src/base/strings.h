// SPDX-License-Identifier: Apache-2.0
/* Interned strings: equal texts have one 32-bit id, and a pointer that stays. Id 0 is "". */
#ifndef CLEAVE_BASE_STRINGS_H
#define CLEAVE_BASE_STRINGS_H

#include "base/arena.h"

typedef struct cleave_string {
  uint32_t index;
} cleave_string_t;

#define CLEAVE_STRING_EMPTY ((cleave_string_t){0})
#define CLEAVE_STRING_NONE ((cleave_string_t){UINT32_MAX})

/* Texts that a set and its copies hold together. */
typedef struct cleave_string_texts cleave_string_texts_t;

/* All zero is an empty set. */
typedef struct cleave_strings {
  cleave_string_texts_t *own; /* that were added here, and what they lean on; NULL: none yet */
  bool is_shared;             /* `own` are those of another set: what is added goes elsewhere */
  const char **texts;         /* by id */
  uint32_t *hashes;           /* by id */
  uint32_t count;
  uint32_t capacity;
  uint32_t *slots; /* id + 1, 0 = free; a power of two of them */
  uint32_t slot_count;
} cleave_strings_t;

/* The id of `text` (length bytes, copied, cut at an embedded NUL). */
CLEAVE_STATUS cleave_strings_add(cleave_strings_t *strings, const char *text, size_t length,
                                 cleave_string_t *out_string, cleave_error_t *error);

/* The id of `text`, or CLEAVE_STRING_NONE if it was never added. */
cleave_string_t cleave_strings_find(const cleave_strings_t *strings, const char *text, size_t length);

static inline const char *cleave_strings_text(const cleave_strings_t *strings, cleave_string_t string) {
  return string.index == 0 || string.index >= strings->count ? "" : strings->texts[string.index];
}

/* Makes the empty set `to` one with the same ids and the same texts, which either set holds: `from` may go
 * first. It is only read: several threads may copy it at once. */
CLEAVE_STATUS cleave_strings_copy(const cleave_strings_t *from, cleave_strings_t *to, cleave_error_t *error);

void cleave_strings_deinit(cleave_strings_t *strings);

#endif /* CLEAVE_BASE_STRINGS_H */
