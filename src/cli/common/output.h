// SPDX-License-Identifier: Apache-2.0
/* Commands print aligned tables, colours and progress if there is a terminal, errors and JSON. All that
 * goes to standard output or standard error goes through here: arguments that are texts are escaped, but for
 * those that the format says CLEAVE_TRUSTED of (base/show.h): styles, and texts that are printed already. */
#ifndef CLEAVE_CLI_COMMON_OUTPUT_H
#define CLEAVE_CLI_COMMON_OUTPUT_H

#include <jansson.h>
#include <stdio.h>

#include "base/show.h"
#include "base/text.h"

typedef enum cleave_style {
  CLEAVE_STYLE_PLAIN,
  CLEAVE_STYLE_BOLD,
  CLEAVE_STYLE_DIM,
  CLEAVE_STYLE_GOOD,
  CLEAVE_STYLE_BAD
} cleave_style_t;

/* On standard output, and on standard error. */
void cleave_print(const char *format, ...) CLEAVE_PRINTF(1, 2);
void cleave_print_error(const char *format, ...) CLEAVE_PRINTF(1, 2);

/* Escape sequence of a style for standard output, "" if it is not a terminal or NO_COLOR is set.
 * CLEAVE_STYLE_PLAIN ends any style. */
const char *cleave_output_style(cleave_style_t style);

/* "cleave: <message>" on standard error; returns the exit status for failures. */
int cleave_output_error(const cleave_error_t *error);

/* A line on standard error that the next one replaces; nothing if that is not a terminal. NULL ends it. */
void cleave_output_progress(const char *format, ...) CLEAVE_PRINTF(1, 2);
void cleave_output_progress_end(void);

/* Prints rows as a table with a bold heading (cleave_text_align), and deinitialises them. */
void cleave_output_table(cleave_text_t *rows, const char *alignment);

/* Prints what a printer of libcleave made: text, which is escaped already, or JSON. */
void cleave_output_printed(const cleave_text_t *text, bool is_json);
/* Prints JSON: what a terminal would obey in its texts as \uXXXX, so that they stay what they are. */
void cleave_output_json_text(const char *json);
/* Prints and releases; numbers with six digits. Returns the exit status. */
int cleave_output_json(json_t *json);

/* "12.3 MiB" */
const char *cleave_output_bytes(double bytes, char *buffer, size_t size);
/* "4.1 G" */
const char *cleave_output_count(double count, char *buffer, size_t size);

#endif /* CLEAVE_CLI_COMMON_OUTPUT_H */
