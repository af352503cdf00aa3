// SPDX-License-Identifier: Apache-2.0
/* Growing text and nearest names. A failed append makes the text fail as a whole, so printers need no checks.
 */
#include "base/text.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/show.h"

enum { MAX_COLUMNS = 16 };

static bool reserve(cleave_text_t *text, size_t extra) {
  size_t wanted = 0;
  if (text->failed || !cleave_size_add(text->length, extra, &wanted) || wanted == SIZE_MAX) {
    text->failed = true;
    return false;
  }
  if (wanted + 1 <= text->capacity) {
    return true;
  }
  size_t capacity = text->capacity < 64 ? 64 : text->capacity;
  while (capacity < wanted + 1) {
    capacity = capacity > SIZE_MAX / 2 ? wanted + 1 : capacity * 2;
  }
  char *grown = cleave_reallocate(text->data, capacity, 1);
  if (grown == NULL) {
    text->failed = true;
    return false;
  }
  text->data = grown;
  text->capacity = capacity;
  return true;
}

void cleave_text_append(cleave_text_t *text, const char *data, size_t length) {
  if (!reserve(text, length)) {
    return;
  }
  if (length > 0) {
    memcpy(text->data + text->length, data, length);
  }
  text->length += length;
  text->data[text->length] = '\0';
}

void cleave_text_add(cleave_text_t *text, const char *data) {
  cleave_text_append(text, data, strlen(data));
}

typedef int (*formatter_t)(char *buffer, size_t size, const char *format, va_list arguments);

CLEAVE_PRINTF(3, 0)
static void add_formatted(cleave_text_t *text, formatter_t print, const char *format, va_list arguments) {
  va_list again;
  va_copy(again, arguments);
  int length = print(NULL, 0, format, arguments);
  if (length < 0) {
    text->failed = true;
  } else if (reserve(text, (size_t)length)) {
    (void)print(text->data + text->length, (size_t)length + 1, format, again);
    text->length += (size_t)length;
  }
  va_end(again);
}

void cleave_text_format(cleave_text_t *text, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  add_formatted(text, vsnprintf, format, arguments);
  va_end(arguments);
}

void cleave_text_show(cleave_text_t *text, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  add_formatted(text, cleave_show_list, format, arguments);
  va_end(arguments);
}

void cleave_text_show_from(cleave_text_t *text, size_t from) {
  if (text->failed || text->length <= from) {
    return;
  }
  char *raw = cleave_copy_text(text->data + from, text->length - from);
  text->failed = raw == NULL;
  text->length = from;
  if (raw != NULL) {
    cleave_text_show(text, "%s", raw);
  }
  cleave_free(raw);
}

/* The width in characters; escape sequences of styles take no room. */
static size_t width_of(const char *cell, size_t length) {
  size_t width = 0;
  bool is_escape = false;
  for (size_t k = 0; k < length; k++) {
    is_escape = is_escape || cell[k] == '\033';
    width += !is_escape && ((unsigned char)cell[k] & 0xc0u) != 0x80u;
    is_escape = is_escape && cell[k] != 'm';
  }
  return width;
}

static void add_spaces(cleave_text_t *text, size_t count) {
  for (; count > 0; count--) {
    cleave_text_add(text, " ");
  }
}

/* Appends one row; returns what follows it. */
static const char *add_row(cleave_text_t *text, const char *row, const char *alignment,
                           const size_t *widths) {
  for (size_t column = 0;; column++) {
    size_t length = strcspn(row, "\t\n");
    size_t padding = widths[column] - width_of(row, length);
    bool is_last = row[length] != '\t';
    add_spaces(text, alignment[column] == 'r' ? padding : 0);
    cleave_text_append(text, row, length);
    row += length + (row[length] != '\0');
    if (is_last) {
      return row;
    }
    add_spaces(text, (alignment[column] == 'r' ? 0 : padding) + 2);
  }
}

void cleave_text_align(cleave_text_t *text, const char *rows, const char *alignment, const char *style,
                       const char *plain) {
  size_t widths[MAX_COLUMNS] = {0};
  size_t column = 0;
  for (const char *at = rows; *at != '\0';) {
    size_t length = strcspn(at, "\t\n");
    size_t width = width_of(at, length);
    widths[column] = width > widths[column] ? width : widths[column];
    column = at[length] == '\t' && column + 1 < MAX_COLUMNS ? column + 1 : 0;
    at += length + (at[length] != '\0');
  }
  if (rows[strcspn(rows, "\n")] == '\0' || rows[strcspn(rows, "\n") + 1] == '\0') {
    return;
  }
  for (const char *row = rows; *row != '\0';) {
    cleave_text_add(text, "  ");
    cleave_text_add(text, row == rows ? style : "");
    const char *next = add_row(text, row, alignment, widths);
    cleave_text_add(text, row == rows ? plain : "");
    cleave_text_add(text, "\n");
    row = next;
  }
}

const char *cleave_text_get(const cleave_text_t *text) {
  return text->data != NULL ? text->data : "";
}

cleave_status_t cleave_text_check(const cleave_text_t *text, cleave_error_t *error) {
  return text->failed ? cleave_error_out_of_memory(error) : CLEAVE_OK;
}

void cleave_text_deinit(cleave_text_t *text) {
  cleave_free(text->data);
  *text = (cleave_text_t){0};
}

enum { NEAREST_LONGEST = 48 };

/* Distance with transpositions; a change of case costs 1, any other edit 2. */
static uint32_t edit_distance(const char *a, const char *b) {
  uint32_t rows[3][NEAREST_LONGEST + 1];
  size_t a_length = strnlen(a, NEAREST_LONGEST + 1);
  size_t b_length = strnlen(b, NEAREST_LONGEST + 1);
  if (a_length > NEAREST_LONGEST || b_length > NEAREST_LONGEST) {
    return UINT32_MAX;
  }
  for (size_t j = 0; j <= b_length; j++) {
    rows[0][j] = (uint32_t)j * 2;
  }
  for (size_t i = 1; i <= a_length; i++) {
    uint32_t *row = rows[i % 3];
    const uint32_t *above = rows[(i + 2) % 3];
    row[0] = (uint32_t)i * 2;
    for (size_t j = 1; j <= b_length; j++) {
      int x = (unsigned char)a[i - 1];
      int y = (unsigned char)b[j - 1];
      uint32_t change = x == y ? 0U : (tolower(x) == tolower(y) ? 1U : 2U);
      uint32_t best = above[j - 1] + change;
      best = above[j] + 2 < best ? above[j] + 2 : best;
      best = row[j - 1] + 2 < best ? row[j - 1] + 2 : best;
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        uint32_t swapped = rows[(i + 1) % 3][j - 2] + 2;
        best = swapped < best ? swapped : best;
      }
      row[j] = best;
    }
  }
  return rows[a_length % 3][b_length];
}

void cleave_nearest_offer(cleave_nearest_t *nearest, const char *wanted, const char *candidate) {
  uint32_t distance = edit_distance(wanted, candidate);
  uint32_t limit = 2 + (uint32_t)strnlen(wanted, 40) / 2;
  if (distance <= limit && (nearest->name == NULL || distance < nearest->distance)) {
    nearest->name = candidate;
    nearest->distance = distance;
  }
}

const char *cleave_nearest_hint(cleave_nearest_t *nearest) {
  nearest->hint[0] = '\0';
  if (nearest->name != NULL) {
    (void)snprintf(nearest->hint, sizeof nearest->hint, " (did you mean '%s'?)", nearest->name);
  }
  return nearest->hint;
}

bool cleave_text_has_word(const char *list, const char *word) {
  size_t length = strlen(word);
  for (const char *at = strstr(list, word); at != NULL && length > 0; at = strstr(at + 1, word)) {
    if ((at == list || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0')) {
      return true;
    }
  }
  return false;
}
