// SPDX-License-Identifier: Apache-2.0
// Printing for people. Columns are measured in characters of UTF-8, not bytes.
#include "cli/output.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"

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

int cleave_output_error(const cleave_error_t *error) {
  cleave_output_progress_end();
  (void)fflush(stdout);
  (void)fprintf(stderr, "cleave: %s\n",
                error->message[0] == '\0' ? "failed without a message" : error->message);
  return CLEAVE_EXIT_FAILURE;
}

static bool has_progress;

void cleave_output_progress(const char *format, ...) {
  if (!isatty(STDERR_FILENO)) {
    return;
  }
  va_list arguments;
  va_start(arguments, format);
  (void)fprintf(stderr, "\r\033[K");
  (void)vfprintf(stderr, format, arguments);
  (void)fflush(stderr);
  va_end(arguments);
  has_progress = true;
}

void cleave_output_progress_end(void) {
  if (has_progress) {
    (void)fprintf(stderr, "\r\033[K");
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
  (void)vsnprintf(text, sizeof text, format, arguments);
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

void cleave_table_print(const cleave_table_t *table) {
  if (table->failed) {
    (void)printf("  (no memory for this table)\n");
    return;
  }
  size_t rows = table->count / table->columns;
  for (size_t row = 0; row < rows; row++) {
    (void)printf("  %s", row == 0 ? cleave_output_style(CLEAVE_STYLE_BOLD) : "");
    for (size_t column = 0; column < table->columns; column++) {
      int width = 0;
      for (size_t other = 0; other < rows; other++) {
        int cell_width = text_width(table->cells[other * table->columns + column]);
        width = cell_width > width ? cell_width : width;
      }
      const char *cell = table->cells[row * table->columns + column];
      int padding = width - text_width(cell);
      bool is_last = column + 1 == table->columns;
      if (table->alignment[column] == 'r') {
        (void)printf("%*s%s", padding, "", cell);
      } else {
        (void)printf("%s%*s", cell, is_last ? 0 : padding, "");
      }
      (void)printf("%s", is_last ? "" : "  ");
    }
    (void)printf("%s\n", row == 0 ? cleave_output_style(CLEAVE_STYLE_PLAIN) : "");
  }
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

int cleave_output_json(json_t *json) {
  if (json == NULL || json_dumpf(json, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6)) != 0) {
    (void)fprintf(stderr, "cleave: the JSON could not be written\n");
    json_decref(json);
    return CLEAVE_EXIT_FAILURE;
  }
  (void)printf("\n");
  json_decref(json);
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
