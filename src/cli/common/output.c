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

void cleave_table_cell(cleave_table_t *table, const char *format, ...) {
  if (table->count == table->capacity) {
    size_t wanted = table->capacity == 0 ? 32 : table->capacity * 2;
    char **grown = cleave_reallocate(table->cells, wanted, sizeof *grown);
    if (grown == NULL) {
      table->failed = true;
      return;
    }
    table->cells = grown;
    table->capacity = wanted;
  }
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  (void)cleave_show_list(text, sizeof text, format, arguments);
  va_end(arguments);
  char *cell = cleave_copy_text(text, strlen(text));
  if (cell == NULL) {
    table->failed = true;
    return;
  }
  table->cells[table->count++] = cell;
}

/* In characters; escape sequences of styles take no room. */
static int text_width(const char *text) {
  int width = 0;
  bool is_escape = false;
  for (; *text != '\0'; text++) {
    is_escape = is_escape || *text == '\033';
    width += !is_escape && ((unsigned char)*text & 0xc0u) != 0x80u;
    is_escape = is_escape && *text != 'm';
  }
  return width;
}

static void print_row(const cleave_table_t *table, size_t row, const int *widths) {
  cleave_print("  " CLEAVE_TRUSTED, row == 0 ? cleave_output_style(CLEAVE_STYLE_BOLD) : "");
  for (size_t column = 0; column < table->columns; column++) {
    const char *cell = table->cells[row * table->columns + column];
    int padding = widths[column] - text_width(cell);
    bool is_last = column + 1 == table->columns;
    if (table->alignment[column] == 'r') {
      cleave_print("%*s" CLEAVE_TRUSTED, padding, "", cell);
    } else {
      cleave_print(CLEAVE_TRUSTED "%*s", cell, is_last ? 0 : padding, "");
    }
    cleave_print("%s", is_last ? "" : "  ");
  }
  cleave_print(CLEAVE_TRUSTED "\n", row == 0 ? cleave_output_style(CLEAVE_STYLE_PLAIN) : "");
}

void cleave_table_print(const cleave_table_t *table) {
  int *widths = cleave_allocate_zeroed(table->columns, sizeof *widths);
  if (table->failed || widths == NULL) {
    cleave_free(widths);
    cleave_print("  (no memory for this table)\n");
    return;
  }
  size_t rows = table->count / table->columns;
  for (size_t cell = 0; cell < rows * table->columns; cell++) {
    int width = text_width(table->cells[cell]);
    int *widest = &widths[cell % table->columns];
    *widest = width > *widest ? width : *widest;
  }
  for (size_t row = 0; row < rows; row++) {
    print_row(table, row, widths);
  }
  cleave_free(widths);
}

void cleave_table_deinit(cleave_table_t *table) {
  for (size_t k = 0; k < table->count; k++) {
    cleave_free(table->cells[k]);
  }
  cleave_free(table->cells);
  table->cells = NULL;
  table->count = 0;
  table->capacity = 0;
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
