// SPDX-License-Identifier: Apache-2.0
/* First error wins: a message that is there is never overwritten by what follows from it. */
#include "base/status.h"

#include <stdio.h>

const char *cleave_version(void) {
  return CLEAVE_VERSION;
}

const char *cleave_status_text(cleave_status_t status) {
  switch (status) {
    case CLEAVE_OK: return "no error";
    case CLEAVE_ERROR_INVALID_ARGUMENT: return "invalid argument";
    case CLEAVE_ERROR_OUT_OF_MEMORY: return "out of memory";
    case CLEAVE_ERROR_IO: return "a file cannot be read or written";
    case CLEAVE_ERROR_FORMAT: return "malformed file or text";
    case CLEAVE_ERROR_UNSUPPORTED: return "not supported";
    case CLEAVE_ERROR_SHAPE: return "shapes or dtypes do not fit";
    case CLEAVE_ERROR_RULE: return "a rule is wrong, or failed";
    case CLEAVE_ERROR_LIMIT: return "a limit is reached";
    case CLEAVE_ERROR_BACKEND: return "a backend failed";
    case CLEAVE_ERROR_MISMATCH: return "a check failed";
    case CLEAVE_ERROR_INTERNAL: return "internal error";
  }
  return "unknown status";
}

/* Messages are one line whatever names from outside they quote: those are escaped. */
static void write_message(cleave_error_t *error, cleave_status_t status, const char *file, int line,
                          const char *format, va_list arguments) {
  if (error == NULL || error->status != CLEAVE_OK) {
    return;
  }
  int used = 0;
  error->status = status;
  error->line = line;
  error->file[0] = '\0';
  if (file != NULL) {
    (void)snprintf(error->file, sizeof error->file, "%s", file);
    used = line > 0 ? cleave_show(error->message, sizeof error->message, "%s:%d: ", error->file, line)
                    : cleave_show(error->message, sizeof error->message, "%s: ", error->file);
  }
  size_t offset = (size_t)used < sizeof error->message ? (size_t)used : sizeof error->message - 1;
  (void)cleave_show_list(error->message + offset, sizeof error->message - offset, format, arguments);
}

cleave_status_t cleave_error_set(cleave_error_t *error, cleave_status_t status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  write_message(error, status, NULL, 0, format, arguments);
  va_end(arguments);
  return status;
}

cleave_status_t cleave_error_set_at(cleave_error_t *error, cleave_status_t status, const char *file, int line,
                                    const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  write_message(error, status, file, line, format, arguments);
  va_end(arguments);
  return status;
}

cleave_status_t cleave_error_out_of_memory(cleave_error_t *error) {
  return cleave_error_set(error, CLEAVE_ERROR_OUT_OF_MEMORY, "out of memory");
}

void cleave_error_hint(cleave_error_t *error, cleave_hint_t hint) {
  if (error != NULL && error->status != CLEAVE_OK && error->hint == CLEAVE_HINT_NONE) {
    error->hint = hint;
  }
}

cleave_status_t cleave_error_take(cleave_error_t *error, const cleave_error_t *from) {
  if (error != NULL && error->status == CLEAVE_OK) {
    *error = *from;
  }
  return from->status;
}

void cleave_error_clear(cleave_error_t *error) {
  if (error != NULL) {
    *error = (cleave_error_t)CLEAVE_ERROR_INIT;
  }
}
