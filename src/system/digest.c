// SPDX-License-Identifier: Apache-2.0
// Lanes of 64 bits side by side, each word mixed into its own as XXH64 does it; a step is a bijection of the
// lane and of the word, so that two contents that differ in one word never meet. The end mixes all lanes into
// two words.
#include "system/digest.h"

#include <string.h>

#include "base/hash.h"

#define PRIME_1 UINT64_C(0x9e3779b185ebca87)
#define PRIME_2 UINT64_C(0xc2b2ae3d27d4eb4f)

static void add_block(uint64_t *lanes, const unsigned char *block) {
  for (size_t k = 0; k < CLEAVE_DIGEST_LANES; k++) {
    uint64_t word = 0;
    memcpy(&word, block + 8 * k, sizeof word);
    uint64_t lane = lanes[k] + word * PRIME_2;
    lanes[k] = (lane << 31 | lane >> 33) * PRIME_1;
  }
}

void cleave_digest_start(cleave_digest_state_t *state) {
  *state = (cleave_digest_state_t){.length = 0};
  for (size_t k = 0; k < CLEAVE_DIGEST_LANES; k++) {
    state->lanes[k] = cleave_hash_combine(CLEAVE_HASH_SEED, k);
  }
}

void cleave_digest_add(cleave_digest_state_t *state, const void *data, size_t length) {
  if (length == 0) {
    return;
  }
  const unsigned char *bytes = data;
  size_t used = (size_t)(state->length % CLEAVE_DIGEST_BLOCK);
  state->length += length;
  if (used > 0) {
    size_t count = length < CLEAVE_DIGEST_BLOCK - used ? length : CLEAVE_DIGEST_BLOCK - used;
    memcpy(state->rest + used, bytes, count);
    bytes += count;
    length -= count;
    if (used + count < CLEAVE_DIGEST_BLOCK) {
      return;
    }
    add_block(state->lanes, state->rest);
  }
  uint64_t lanes[CLEAVE_DIGEST_LANES];
  memcpy(lanes, state->lanes, sizeof lanes);
  for (; length >= CLEAVE_DIGEST_BLOCK; length -= CLEAVE_DIGEST_BLOCK) {
    add_block(lanes, bytes);
    bytes += CLEAVE_DIGEST_BLOCK;
  }
  memcpy(state->lanes, lanes, sizeof lanes);
  memcpy(state->rest, bytes, length);
}

cleave_digest_t cleave_digest_end(const cleave_digest_state_t *state) {
  uint64_t lanes[CLEAVE_DIGEST_LANES];
  unsigned char last[CLEAVE_DIGEST_BLOCK] = {0};
  memcpy(lanes, state->lanes, sizeof lanes);
  memcpy(last, state->rest, (size_t)(state->length % CLEAVE_DIGEST_BLOCK));
  add_block(lanes, last);
  cleave_digest_t digest = {{cleave_hash_combine(PRIME_1, state->length), ~state->length}};
  for (size_t k = 0; k < CLEAVE_DIGEST_LANES; k++) {
    digest.words[0] = cleave_hash_combine(digest.words[0], lanes[k]);
    digest.words[1] = cleave_hash_combine(digest.words[1] ^ PRIME_2, lanes[CLEAVE_DIGEST_LANES - 1 - k]);
  }
  return digest;
}

cleave_digest_t cleave_digest_bytes(const void *data, size_t length) {
  cleave_digest_state_t state;
  cleave_digest_start(&state);
  cleave_digest_add(&state, data, length);
  return cleave_digest_end(&state);
}
