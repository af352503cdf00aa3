// SPDX-License-Identifier: Apache-2.0
/*
 * 128-bit digests of content, at the speed of memory: for large weights and for files that may be broken.
 * They differ between machines of other byte order, and keep nobody out who wants the same digest.
 */
#ifndef CLEAVE_SYSTEM_DIGEST_H
#define CLEAVE_SYSTEM_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cleave_digest {
  uint64_t words[2];
} cleave_digest_t;

enum { CLEAVE_DIGEST_BLOCK = 64, CLEAVE_DIGEST_LANES = CLEAVE_DIGEST_BLOCK / 8 };

/* The state of a digest of content that comes in parts; the result does not depend on the parts. */
typedef struct cleave_digest_state {
  uint64_t lanes[CLEAVE_DIGEST_LANES];
  uint64_t length;
  unsigned char rest[CLEAVE_DIGEST_BLOCK]; /* length % CLEAVE_DIGEST_BLOCK bytes */
} cleave_digest_state_t;

void cleave_digest_start(cleave_digest_state_t *state);
void cleave_digest_add(cleave_digest_state_t *state, const void *data, size_t length);
cleave_digest_t cleave_digest_end(const cleave_digest_state_t *state);

cleave_digest_t cleave_digest_bytes(const void *data, size_t length);

static inline bool cleave_digest_equal(cleave_digest_t a, cleave_digest_t b) {
  return a.words[0] == b.words[0] && a.words[1] == b.words[1];
}

#endif /* CLEAVE_SYSTEM_DIGEST_H */
