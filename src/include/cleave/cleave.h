/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The embedding API of cleave: load a model, load rules, partition, compile a session, run it.
 *
 * Every function that can fail returns a `cleave_status_t` and takes a `cleave_error_t *` last: owned by the
 * caller, may be NULL; the first error that is written to it stays. The library never prints, exits or
 * asserts on input. Objects are not locked: use one object from one thread at a time, except where a
 * function says otherwise; different sessions over one model may run on different threads.
 */
#ifndef CLEAVE_CLEAVE_H
#define CLEAVE_CLEAVE_H

#include "cleave/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define CLEAVE_PRINTF(format_index, first_argument) \
  __attribute__((format(printf, format_index, first_argument)))
#else
#define CLEAVE_PRINTF(format_index, first_argument)
#endif

/* What went wrong: one lower-case line with place, expected and found. Start from CLEAVE_ERROR_INIT. */
typedef struct cleave_error {
  cleave_status_t status; /* CLEAVE_OK: nothing was written yet */
  int line;               /* in `file`; 0 where there is none */
  char file[192];         /* of the rule, script or model; "" where there is none */
  char rule[64];          /* rule at work; "" where there is none */
  char message[768];      /* whole line for people, file:line included */
} cleave_error_t;

#define CLEAVE_ERROR_INIT \
  { CLEAVE_OK, 0, "", "", "" }

/* Version of the library: "0.1.0". */
const char *cleave_version(void);

#ifdef __cplusplus
}
#endif

#endif /* CLEAVE_CLEAVE_H */
