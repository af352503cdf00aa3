// SPDX-License-Identifier: Apache-2.0
/* 64-bit hashes that are the same on every run and machine. Not for secrets. */
#ifndef CLEAVE_BASE_HASH_H
#define CLEAVE_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define CLEAVE_HASH_SEED UINT64_C(0x9e3779b97f4a7c15)

/* Mixes one word into a running hash (the finaliser of MurmurHash3 over the sum). */
static inline uint64_t cleave_hash_combine(uint64_t hash, uint64_t word) {
  uint64_t x = hash * UINT64_C(0x9ddfea08eb382d69) + word + CLEAVE_HASH_SEED;
  x ^= x >> 33;
  x *= UINT64_C(0xff51afd7ed558ccd);
  x ^= x >> 33;
  x *= UINT64_C(0xc4ceb9fe1a85ec53);
  x ^= x >> 33;
  return x;
}

/* Hash of bytes, starting from `hash`. */
uint64_t cleave_hash_bytes(uint64_t hash, const void *data, size_t length);

#endif /* CLEAVE_BASE_HASH_H */
