// SPDX-License-Identifier: Apache-2.0
/*
 * Libraries with many ways to misbehave: which one it is, somebody says in an option, an attribute, or the
 * environment (CLEAVE_TEST_MISDEED).
 */
#ifndef CLEAVE_TESTS_HOSTILE_MISDEED_H
#define CLEAVE_TESTS_HOSTILE_MISDEED_H

#include "hostile.h"

/* Is it this one? Then a crash or a hang happens here, and others are left to the caller. */
static inline bool misdeed_is(const char *wanted, const char *place) {
  char text[64];
  (void)snprintf(text, sizeof text, "crash %s", place);
  if (wanted != NULL && strcmp(wanted, text) == 0) {
    hostile_crash();
  }
  (void)snprintf(text, sizeof text, "hang %s", place);
  if (wanted != NULL && strcmp(wanted, text) == 0) {
    hostile_hang();
  }
  return wanted != NULL && strcmp(wanted, place) == 0;
}

static inline bool misdeed(const char *place) {
  return misdeed_is(getenv("CLEAVE_TEST_MISDEED"), place);
}

/* A frame of its own to whoever is behind descriptor 3: magic, kind, length, content. */
static inline void misdeed_send(uint32_t kind, const void *content, uint64_t length) {
  unsigned char head[16] = {'C', 'L', 'V', 'W'};
  memcpy(head + 4, &kind, sizeof kind);
  memcpy(head + 8, &length, sizeof length);
  if (write(3, head, sizeof head) == (ssize_t)sizeof head && length > 0) {
    ssize_t written = write(3, content, length);
    (void)written;
  }
}

#endif /* CLEAVE_TESTS_HOSTILE_MISDEED_H */
