// SPDX-License-Identifier: Apache-2.0
/* Eight bytes at a time, little-endian by definition, so that saved hashes travel. */
#include "base/hash.h"

uint64_t cleave_hash_bytes(uint64_t hash, const void *data, size_t length) {
  const unsigned char *bytes = data;
  hash = cleave_hash_combine(hash, length);
  while (length >= 8) {
    uint64_t word = 0;
    for (int k = 7; k >= 0; k--) {
      word = word << 8 | bytes[k];
    }
    hash = cleave_hash_combine(hash, word);
    bytes += 8;
    length -= 8;
  }
  if (length > 0) {
    uint64_t word = 0;
    for (size_t k = length; k-- > 0;) {
      word = word << 8 | bytes[k];
    }
    hash = cleave_hash_combine(hash, word);
  }
  return hash;
}
