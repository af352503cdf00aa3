// SPDX-License-Identifier: Apache-2.0
// Digests of content.
#include "system/digest.h"
#include "unit.h"

enum { BYTES = 400 };

static void fill(unsigned char *data) {
  for (size_t k = 0; k < BYTES; k++) {
    data[k] = (unsigned char)(k * 31 + k / 7);
  }
}

UNIT_TEST(how_content_is_cut_changes_nothing) {
  unsigned char data[BYTES + 1];
  fill(data + 1); /* unaligned */
  for (size_t length = 0; length <= BYTES; length++) {
    cleave_digest_t whole = cleave_digest_bytes(data + 1, length);
    for (size_t step = 1; step < 140; step += 23) {
      cleave_digest_state_t state;
      cleave_digest_start(&state);
      for (size_t at = 0; at < length; at += step) {
        cleave_digest_add(&state, data + 1 + at, length - at < step ? length - at : step);
      }
      ck_assert(cleave_digest_equal(whole, cleave_digest_end(&state)));
    }
  }
}

UNIT_TEST(every_bit_and_the_length_count_in_both_words) {
  unsigned char data[BYTES];
  fill(data);
  for (size_t length = 0; length <= BYTES; length += 37) {
    cleave_digest_t whole = cleave_digest_bytes(data, length);
    for (size_t bit = 0; bit < length * 8; bit++) {
      data[bit / 8] ^= (unsigned char)(1U << bit % 8);
      cleave_digest_t other = cleave_digest_bytes(data, length);
      ck_assert(whole.words[0] != other.words[0] && whole.words[1] != other.words[1]);
      data[bit / 8] ^= (unsigned char)(1U << bit % 8);
    }
  }
  unsigned char zeros[BYTES] = {0};
  for (size_t a = 0; a < 200; a++) {
    for (size_t b = 0; b < a; b++) {
      cleave_digest_t left = cleave_digest_bytes(zeros, a);
      cleave_digest_t right = cleave_digest_bytes(zeros, b);
      ck_assert(left.words[0] != right.words[0] && left.words[1] != right.words[1]);
    }
  }
}

UNIT_TEST(words_that_change_places_are_other_content) {
  uint64_t words[32];
  for (size_t k = 0; k < 32; k++) {
    words[k] = k;
  }
  cleave_digest_t before = cleave_digest_bytes(words, sizeof words);
  for (size_t a = 0; a < 32; a++) {
    for (size_t b = 0; b < a; b++) {
      words[a] = b;
      words[b] = a;
      ck_assert(!cleave_digest_equal(before, cleave_digest_bytes(words, sizeof words)));
      words[a] = a;
      words[b] = b;
    }
  }
}

UNIT_SUITE("digest")
