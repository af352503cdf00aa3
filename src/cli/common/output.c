// SPDX-License-Identifier: Apache-2.0
// Printing for people. Columns are measured in characters of UTF-8, not bytes.
#include "cli/common/output.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/common/command.h"

const char *cleave_output_style(cleave_style_t style) {
  static int is_coloured = -1;
  if (is_coloured < 0) {
    const char *no_color = getenv("NO_COLOR");
    const char *terminal = getenv("TERM");
    is_coloured = isatty(STDOUT_FILENO) && (no_color == NULL || no_color[0] == '\0') &&
                  (terminal == NULL || strcmp(terminal, "dumb") != 0);
  }
  if (!is_coloured) {
    return "";
  }
  switch (style) {
    case CLEAVE_STYLE_PLAIN: return "\033[0m";
    case CLEAVE_STYLE_BOLD: return "\033[1m";
    case CLEAVE_STYLE_DIM: return "\033[2m";
    case CLEAVE_STYLE_GOOD: return "\033[32m";
    case CLEAVE_STYLE_BAD: return "\033[31m";
  }
  return "";
}

CLEAVE_PRINTF(2, 0)
static void print_list(FILE *stream, const char *format, va_list arguments) {
  char room[1024];
  char *text = room;
  va_list again;
  va_copy(again, arguments);
  int length = cleave_show_list(room, sizeof room, format, arguments);
  if (length >= (int)sizeof room) {
    char *longer = cleave_allocate((size_t)length + 1, 1);
    if (longer != NULL) { /* else what fits is printed */
      (void)cleave_show_list(longer, (size_t)length + 1, format, again);
      text = longer;
    }
  }
  va_end(again);
  (void)fputs(text, stream);
  if (text != room) {
    cleave_free(text);
  }
}

void cleave_print(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  print_list(stdout, format, arguments);
  va_end(arguments);
}

void cleave_print_error(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  print_list(stderr, format, arguments);
  va_end(arguments);
}

static const char *hint_of(const cleave_error_t *error) {
  switch (error->hint) {
    case CLEAVE_HINT_LOAD: return " (--load)";
    case CLEAVE_HINT_PARTITION: return " (--rules or --backend)";
    case CLEAVE_HINT_PLAN: return " (--plan)";
    case CLEAVE_HINT_NONE: break;
  }
  return "";
}

int cleave_output_error(const cleave_error_t *error) {
  cleave_output_progress_end();
  (void)fflush(stdout);
  cleave_print_error("cleave: %s%s\n",
                     error->message[0] == '\0' ? "failed without a message" : error->message, hint_of(error));
  return CLEAVE_EXIT_FAILURE;
}

static bool has_progress;

void cleave_output_progress(const char *format, ...) {
  if (!isatty(STDERR_FILENO)) {
    return;
  }
  va_list arguments;
  va_start(arguments, format);
  cleave_print_error("\r\033[K");
  print_list(stderr, format, arguments);
  (void)fflush(stderr);
  va_end(arguments);
  has_progress = true;
}

void cleave_output_progress_end(void) {
  if (has_progress) {
    cleave_print_error("\r\033[K");
    (void)fflush(stderr);
  }
  has_progress = false;
}

void cleave_output_table(cleave_text_t *rows, const char *alignment) {
  cleave_text_t table = {0};
  cleave_text_align(&table, cleave_text_get(rows), alignment, cleave_output_style(CLEAVE_STYLE_BOLD),
                    cleave_output_style(CLEAVE_STYLE_PLAIN));
  cleave_print(CLEAVE_TRUSTED,
               rows->failed || table.failed ? "  (no memory for this table)\n" : cleave_text_get(&table));
  cleave_text_deinit(&table);
  cleave_text_deinit(rows);
}

void cleave_output_json_text(const char *json) {
  size_t length = strlen(json);
  size_t begin = 0;
  for (size_t k = 0; k < length;) {
    uint32_t c = 0;
    size_t size = cleave_show_character(json + k, length - k, &c);
    if (size > 0 && c != '\n' && cleave_show_is_control(c)) {
      (void)fwrite(json + begin, 1, k - begin, stdout);
      if (c > 0xffff) {
        cleave_print("\\u%04x", (unsigned)(0xd7c0 + (c >> 10)));
        c = 0xdc00 + (c & 0x3ff);
      }
      cleave_print("\\u%04x", (unsigned)c);
      begin = k + size;
    }
    k += size > 0 ? size : 1;
  }
  (void)fwrite(json + begin, 1, length - begin, stdout);
}

void cleave_output_printed(const cleave_text_t *text, bool is_json) {
  if (is_json) {
    cleave_output_json_text(cleave_text_get(text));
  } else {
    cleave_print(CLEAVE_TRUSTED, cleave_text_get(text));
  }
}

int cleave_output_json(json_t *json) {
  char *text = json == NULL ? NULL : json_dumps(json, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
  json_decref(json);
  if (text == NULL) {
    cleave_print_error("cleave: the JSON could not be written\n");
    return CLEAVE_EXIT_FAILURE;
  }
  cleave_output_json_text(text);
  cleave_print("\n");
  free(text);
  return CLEAVE_EXIT_OK;
}

const char *cleave_output_bytes(double bytes, char *buffer, size_t size) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (bytes >= 1024.0 && unit + 1 < sizeof units / sizeof units[0]) {
    bytes /= 1024.0;
    unit++;
  }
  (void)snprintf(buffer, size, unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
  return buffer;
}

const char *cleave_output_count(double count, char *buffer, size_t size) {
  static const char *const units[] = {"", " k", " M", " G", " T", " P"};
  size_t unit = 0;
  while (count >= 1000.0 && unit + 1 < sizeof units / sizeof units[0]) {
    count /= 1000.0;
    unit++;
  }
  (void)snprintf(buffer, size, unit == 0 ? "%.0f%s" : "%.2f%s", count, units[unit]);
  return buffer;
}
