// SPDX-License-Identifier: Apache-2.0
/* Status and error: how a function says that it failed, and why. */
#ifndef CLEAVE_BASE_STATUS_H
#define CLEAVE_BASE_STATUS_H

#include <stdarg.h>

#include "base/show.h"
#include "cleave/cleave.h"

/* Functions that can fail return this: a status that callers must look at. */
#define CLEAVE_STATUS CLEAVE_MUST_USE cleave_status_t

/* Returns the status of `expression` from the calling function unless it is CLEAVE_OK. */
#define CLEAVE_TRY(expression)                  \
  do {                                          \
    cleave_status_t try_status_ = (expression); \
    if (try_status_ != CLEAVE_OK) {             \
      return try_status_;                       \
    }                                           \
  } while (0)

/* Returns CLEAVE_ERROR_OUT_OF_MEMORY, with its message, unless `memory` is there: a pointer, or several that
 * are all compared with NULL. */
#define CLEAVE_TRY_MEMORY(memory, error)          \
  do {                                            \
    if (!(memory)) {                              \
      return cleave_error_out_of_memory((error)); \
    }                                             \
  } while (0)

/* CLEAVE_TRY that undoes what was done before: `undo` is one statement. */
#define CLEAVE_TRY_OR(expression, undo)     \
  do {                                      \
    cleave_status_t status_ = (expression); \
    if (status_ != CLEAVE_OK) {             \
      undo;                                 \
      return status_;                       \
    }                                       \
  } while (0)

/* The next step, unless one before it failed: `status` becomes what it returns. */
#define CLEAVE_THEN(status, ...) \
  do {                           \
    if ((status) == CLEAVE_OK) { \
      (status) = (__VA_ARGS__);  \
    }                            \
  } while (0)

/* CLEAVE_TRY and CLEAVE_TRY_MEMORY for functions with a `cleanup:` label and a variable `status`. */
#define CLEAVE_TRY_CLEANUP(expression) \
  do {                                 \
    status = (expression);             \
    if (status != CLEAVE_OK) {         \
      goto cleanup;                    \
    }                                  \
  } while (0)

#define CLEAVE_TRY_MEMORY_CLEANUP(memory, error) \
  CLEAVE_TRY_CLEANUP((memory) ? CLEAVE_OK : cleave_error_out_of_memory((error)))

/* Writes the message unless `error` is NULL or holds one already. Returns `status`. */
cleave_status_t cleave_error_set(cleave_error_t *error, cleave_status_t status, const char *format, ...)
    CLEAVE_PRINTF(3, 4);

/* cleave_error_set with a place: the message becomes "file:line: message" (line 0: "file: message"). */
cleave_status_t cleave_error_set_at(cleave_error_t *error, cleave_status_t status, const char *file, int line,
                                    const char *format, ...) CLEAVE_PRINTF(5, 6);

/* CLEAVE_ERROR_OUT_OF_MEMORY with the usual message. */
cleave_status_t cleave_error_out_of_memory(cleave_error_t *error);

/* Adds what may help to an error that is set and has no hint yet; NULL is a no-op. */
void cleave_error_hint(cleave_error_t *error, cleave_hint_t hint);

/* Hands on what another error holds, unless `error` is NULL or holds one already. Returns its status. */
cleave_status_t cleave_error_take(cleave_error_t *error, const cleave_error_t *from);

/* Back to CLEAVE_ERROR_INIT. */
void cleave_error_clear(cleave_error_t *error);

#endif /* CLEAVE_BASE_STATUS_H */
