// SPDX-License-Identifier: Apache-2.0
/*
 * Text for people, with parts that come from files: names, values, reasons, messages of libraries. In such a
 * part a terminal would obey control characters, a newline would begin a line that looks like one of ours,
 * and characters that change the direction of writing would show it in another order. They are shown as
 * escapes: \n, \x1b, \u{202e}; so are bytes that are not UTF-8. What has been escaped once stays as it is.
 */
#ifndef CLEAVE_BASE_SHOW_H
#define CLEAVE_BASE_SHOW_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cleave/context.h"

/* Of a function: argument `format_index` is a format, of the arguments from `first_argument` on. */
#if defined(__GNUC__)
#define CLEAVE_PRINTF(format_index, first_argument) \
  __attribute__((format(printf, format_index, first_argument)))
#else
#define CLEAVE_PRINTF(format_index, first_argument)
#endif

/* In arguments of a format: one of two texts, as the count is one or not; and the ending of most nouns: ("%u
 * region%s", count, CLEAVE_PLURAL(count)). */
#define CLEAVE_BY_COUNT(count, one, many) ((count) == 1 ? (one) : (many))
#define CLEAVE_PLURAL(count) CLEAVE_BY_COUNT(count, "", "s")

/* In a format: a text of ours, which is taken over as it is, its newlines and escape sequences, too. */
#define CLEAVE_TRUSTED "%-s"

/* snprintf and vsnprintf with the arguments of %s and %c escaped. A precision counts bytes before escaping, a
 * width characters after it. What does not fit is truncated between characters. */
int cleave_show(char *buffer, size_t size, const char *format, ...) CLEAVE_PRINTF(3, 4);
int cleave_show_list(char *buffer, size_t size, const char *format, va_list arguments) CLEAVE_PRINTF(3, 0);

/* Bytes of the character at the start of a text that is not empty, and the character; 0: no UTF-8. */
size_t cleave_show_character(const char *text, size_t length, uint32_t *out_character);
/* Is it one that is escaped? */
bool cleave_show_is_control(uint32_t character);

#endif /* CLEAVE_BASE_SHOW_H */
