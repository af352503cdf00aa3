// SPDX-License-Identifier: Apache-2.0
// printf for people: arguments that are texts are escaped, all else is as the C library prints it. It
// allocates nothing, since errors about memory go through it.
#include "base/show.h"

#include <stdio.h>
#include <string.h>

// The buffer for the result. `length` goes on counting once it is full.
typedef struct sink {
  char *buffer;
  size_t size;
  size_t length;
  bool is_full;
} sink_t;

// All of the piece or nothing.
static void put(sink_t *sink, const char *piece, size_t length) {
  sink->is_full = sink->is_full || sink->length + length >= sink->size;
  if (!sink->is_full) {
    memcpy(sink->buffer + sink->length, piece, length);
    sink->buffer[sink->length + length] = '\0';
  }
  sink->length += length;
}

static void pad(sink_t *sink, size_t count) {
  for (; count > 0; count--) {
    put(sink, " ", 1);
  }
}

// ---- characters ----

size_t cleave_show_character(const char *bytes, size_t length, uint32_t *out_character) {
  const unsigned char *text = (const unsigned char *)bytes;
  static const uint32_t LEAST[] = {0, 0, 0x80, 0x800, 0x10000};
  uint32_t character = text[0];
  size_t count = character < 0x80   ? 1
                 : character < 0xc2 ? 0
                 : character < 0xe0 ? 2
                 : character < 0xf0 ? 3
                                    : 4;
  if (count == 0 || count > length || character > 0xf4) {
    return 0;
  }
  character &= count == 1 ? 0x7fu : 0xffu >> (count + 1);
  for (size_t k = 1; k < count; k++) {
    if ((text[k] & 0xc0u) != 0x80u) {
      return 0;
    }
    character = character << 6 | (text[k] & 0x3fu);
  }
  *out_character = character;
  bool is_character =
      character >= LEAST[count] && character <= 0x10ffff && (character < 0xd800 || character > 0xdfff);
  return is_character ? count : 0;
}

// Does it move the cursor, end a line, change the direction of writing, or hide among others?
bool cleave_show_is_control(uint32_t c) {
  return c < 0x20 || (c >= 0x7f && c <= 0x9f) || c == 0x61c || (c >= 0x200e && c <= 0x200f) ||
         (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x206f) || c == 0xfeff ||
         (c >= 0xfff9 && c <= 0xfffb) || (c >= 0xe0000 && c <= 0xe007f);
}

// Puts the first character of `text`, which has at least one byte; the number of bytes taken. Counts the
// characters that it takes on the screen.
static size_t put_character(sink_t *sink, const char *text, size_t length, size_t *width) {
  char escape[16];
  uint32_t character = 0;
  size_t count = cleave_show_character(text, length, &character);
  if (count > 0 && !cleave_show_is_control(character)) {
    put(sink, text, count);
    *width += 1;
    return count;
  }
  int written = 0;
  switch (text[0]) {
    case '\n': written = snprintf(escape, sizeof escape, "\\n"); break;
    case '\r': written = snprintf(escape, sizeof escape, "\\r"); break;
    case '\t': written = snprintf(escape, sizeof escape, "\\t"); break;
    default:
      written = count > 1 ? snprintf(escape, sizeof escape, "\\u{%x}", (unsigned)character)
                          : snprintf(escape, sizeof escape, "\\x%02x", (unsigned)(unsigned char)text[0]);
      break;
  }
  put(sink, escape, (size_t)written);
  *width += (size_t)written;
  return count > 0 ? count : 1;
}

static size_t put_text(sink_t *sink, const char *text, size_t length) {
  size_t width = 0;
  for (size_t k = 0; k < length;) {
    k += put_character(sink, text + k, length - k, &width);
  }
  return width;
}

// Length without a last sequence that a precision cut short.
static size_t whole_characters(const char *text, size_t length) {
  uint32_t character = 0;
  for (size_t back = 1; back <= 3 && back <= length; back++) {
    unsigned char c = (unsigned char)text[length - back];
    if (c >= 0xc2) {
      bool is_whole = cleave_show_character(text + length - back, back, &character) > 0;
      return is_whole ? length : length - back;
    }
    if (c < 0x80) {
      break;
    }
  }
  return length;
}

// ---- conversions ----

typedef struct conversion {
  char text[32];  // with numbers in place of '*'
  size_t length;
  bool is_left;
  size_t width;
  int precision;    // -1: none
  char modifier;    // 'h', 'l', 'L' (long long), 'z', 'j', 't', or 0
  char conversion;  // 's', 'd', ...
} conversion_t;

// va_list is an array on some machines: passed on in a struct.
typedef struct list {
  va_list arguments;
} list_t;

static void keep(conversion_t *conversion, char c) {
  if (conversion->length + 1 < sizeof conversion->text) {
    conversion->text[conversion->length++] = c;
    conversion->text[conversion->length] = '\0';
  }
}

// A number, or '*'.
static int parse_number(conversion_t *conversion, const char **format, list_t *list) {
  int number = 0;
  if (**format == '*') {
    number = va_arg(list->arguments, int);
    int written = snprintf(conversion->text + conversion->length,
                           sizeof conversion->text - conversion->length, "%d", number);
    conversion->length += (size_t)written;
    (*format)++;
    return number;
  }
  for (; **format >= '0' && **format <= '9'; (*format)++) {
    number = number < 100000 ? number * 10 + (**format - '0') : number;
    keep(conversion, **format);
  }
  return number;
}

// `*format` is behind the '%'; afterwards behind the conversion.
static conversion_t parse(const char **format, list_t *list) {
  conversion_t conversion = {.precision = -1};
  keep(&conversion, '%');
  for (; **format != '\0' && strchr("-+ #0", **format) != NULL; (*format)++) {
    conversion.is_left = conversion.is_left || **format == '-';
    keep(&conversion, **format);
  }
  int width = parse_number(&conversion, format, list);
  conversion.is_left = conversion.is_left || width < 0;
  conversion.width = width < 0 ? (size_t) - (long)width : (size_t)width;
  if (**format == '.') {
    keep(&conversion, *(*format)++);
    conversion.precision = parse_number(&conversion, format, list);
  }
  for (; **format != '\0' && strchr("hlzjtL", **format) != NULL; (*format)++) {
    conversion.modifier = conversion.modifier == 'l' && **format == 'l' ? 'L' : **format;
    keep(&conversion, **format);
  }
  conversion.conversion = **format;
  keep(&conversion, **format);
  *format += **format != '\0' ? 1 : 0;
  return conversion;
}

static int print_signed(char *buffer, size_t size, const conversion_t *conversion, list_t *list) {
  switch (conversion->modifier) {
    case 'l': return snprintf(buffer, size, conversion->text, va_arg(list->arguments, long));
    case 'L': return snprintf(buffer, size, conversion->text, va_arg(list->arguments, long long));
    case 'z':
    case 't': return snprintf(buffer, size, conversion->text, va_arg(list->arguments, ptrdiff_t));
    case 'j': return snprintf(buffer, size, conversion->text, va_arg(list->arguments, intmax_t));
    default: return snprintf(buffer, size, conversion->text, va_arg(list->arguments, int));
  }
}

static int print_unsigned(char *buffer, size_t size, const conversion_t *conversion, list_t *list) {
  switch (conversion->modifier) {
    case 'l': return snprintf(buffer, size, conversion->text, va_arg(list->arguments, unsigned long));
    case 'L': return snprintf(buffer, size, conversion->text, va_arg(list->arguments, unsigned long long));
    case 'z':
    case 't': return snprintf(buffer, size, conversion->text, va_arg(list->arguments, size_t));
    case 'j': return snprintf(buffer, size, conversion->text, va_arg(list->arguments, uintmax_t));
    default: return snprintf(buffer, size, conversion->text, va_arg(list->arguments, unsigned));
  }
}

static void put_argument(sink_t *sink, const conversion_t *conversion, const char *text) {
  text = text == NULL ? "(null)" : text;
  if (strcmp(conversion->text, CLEAVE_TRUSTED) == 0) {
    put(sink, text, strlen(text));
    return;
  }
  size_t length = conversion->precision < 0 ? strlen(text) : strnlen(text, (size_t)conversion->precision);
  if (conversion->precision >= 0 && length == (size_t)conversion->precision) {
    length = whole_characters(text, length);
  }
  size_t width = 0;
  if (!conversion->is_left && conversion->width > 0) {
    sink_t nowhere = {0};
    width = put_text(&nowhere, text, length);
    pad(sink, width < conversion->width ? conversion->width - width : 0);
  }
  width = put_text(sink, text, length);
  if (conversion->is_left) {
    pad(sink, width < conversion->width ? conversion->width - width : 0);
  }
}

static void put_conversion(sink_t *sink, const conversion_t *conversion, list_t *list) {
  char number[512];
  int length = 0;
  switch (conversion->conversion) {
    case '%': put(sink, "%", 1); return;
    case 's': put_argument(sink, conversion, va_arg(list->arguments, const char *)); return;
    case 'c':
      number[0] = (char)va_arg(list->arguments, int);
      (void)put_text(sink, number, 1);
      return;
    case 'd':
    case 'i': length = print_signed(number, sizeof number, conversion, list); break;
    case 'u':
    case 'o':
    case 'x':
    case 'X': length = print_unsigned(number, sizeof number, conversion, list); break;
    case 'p': length = snprintf(number, sizeof number, "%p", va_arg(list->arguments, void *)); break;
    default:
      length = snprintf(number, sizeof number, conversion->text, va_arg(list->arguments, double));
      break;
  }
  put(sink, number, length < (int)sizeof number ? (size_t)length : sizeof number - 1);
}

int cleave_show_list(char *buffer, size_t size, const char *format, va_list arguments) {
  sink_t sink = {.buffer = buffer, .size = size};
  list_t list;
  va_copy(list.arguments, arguments);
  if (size > 0) {
    buffer[0] = '\0';
  }
  while (*format != '\0') {
    size_t literal = strcspn(format, "%");
    size_t room = size > sink.length + 1 ? size - sink.length - 1 : 0;
    if (sink.is_full || literal <= room) {
      put(&sink, format, literal);
    } else {  // of our own text what fits is kept
      put(&sink, format, room);
      sink.length += literal - room;
      sink.is_full = true;
    }
    format += literal;
    if (*format == '%') {
      format++;
      conversion_t conversion = parse(&format, &list);
      put_conversion(&sink, &conversion, &list);
    }
  }
  va_end(list.arguments);
  return sink.length > INT32_MAX ? -1 : (int)sink.length;
}

int cleave_show(char *buffer, size_t size, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int length = cleave_show_list(buffer, size, format, arguments);
  va_end(arguments);
  return length;
}
