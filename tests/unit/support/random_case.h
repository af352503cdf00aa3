// SPDX-License-Identifier: Apache-2.0
/* Random numbers that are the same in every run (xorshift); tests set the state, which must not be 0. */
#ifndef CLEAVE_TESTS_RANDOM_CASE_H
#define CLEAVE_TESTS_RANDOM_CASE_H

#include <stdbool.h>
#include <stdint.h>

static uint64_t random_state = UINT64_C(88172645463325252);

__attribute__((unused)) static uint32_t random_below(uint32_t bound) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return (uint32_t)((random_state >> 16) % bound);
}

/* True in so many of a hundred cases. */
__attribute__((unused)) static bool random_chance(uint32_t percent) {
  return random_below(100) < percent;
}

#endif /* CLEAVE_TESTS_RANDOM_CASE_H */
