// SPDX-License-Identifier: Apache-2.0
/* Text that grows, for printers; and the nearest name, for "did you mean". */
#ifndef CLEAVE_BASE_TEXT_H
#define CLEAVE_BASE_TEXT_H

#include "base/memory.h"

/* All zero is an empty text. Appending after a failed allocation does nothing; `failed` tells. */
typedef struct cleave_text {
  char *data; /* ends in NUL once something was appended; NULL before */
  size_t length;
  size_t capacity;
  bool failed;
} cleave_text_t;

void cleave_text_append(cleave_text_t *text, const char *data, size_t length);
void cleave_text_add(cleave_text_t *text, const char *data);
void cleave_text_format(cleave_text_t *text, const char *format, ...) CLEAVE_PRINTF(2, 3);
/* cleave_text_format for text that people read: arguments that are texts are escaped (base/show.h). */
void cleave_text_show(cleave_text_t *text, const char *format, ...) CLEAVE_PRINTF(2, 3);
/* Shows what was appended raw from this length on as an argument of the above: escaped. */
void cleave_text_show_from(cleave_text_t *text, size_t from);
/* "" if nothing was appended. */
const char *cleave_text_get(const cleave_text_t *text);
/* Appends `rows` as a table: a line for each of its lines, whose cells, between tabs, are columns two spaces
 * apart. `alignment` has 'l' or 'r' for each column. The first line is the heading: `style` goes before it
 * and `plain` behind. Nothing is appended if there is only a heading. cleave_text_show escapes tabs and
 * newlines in its arguments, so that those of its format alone end cells and rows. */
void cleave_text_align(cleave_text_t *text, const char *rows, const char *alignment, const char *style,
                       const char *plain);
/* CLEAVE_ERROR_OUT_OF_MEMORY if an append failed. */
CLEAVE_STATUS cleave_text_check(const cleave_text_t *text, cleave_error_t *error);
void cleave_text_deinit(cleave_text_t *text);

/* Is the word in a list with blanks between words? */
bool cleave_text_has_word(const char *list, const char *word);

/* Keeps the nearest of many candidates. Start from {0}, offer all, then read. */
typedef struct cleave_nearest {
  const char *name; /* nearest so far, or NULL if none is near enough to be meant */
  uint32_t distance;
  char hint[256]; /* of cleave_nearest_hint */
} cleave_nearest_t;

/* `candidate` must outlive the struct. Case counts little; distance is Damerau-Levenshtein. */
void cleave_nearest_offer(cleave_nearest_t *nearest, const char *wanted, const char *candidate);

/* " (did you mean 'Conv'?)", or "". Valid as long as the struct. */
const char *cleave_nearest_hint(cleave_nearest_t *nearest);

#endif /* CLEAVE_BASE_TEXT_H */
